//! Names in the settings that could not be looked up when those were read.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Names of this machine's own addresses that were not known yet. In the settings an address that no machine has (of 100::/64, RFC 6666) stands
/// in for each. A port at such an address looks the name up as often as it tries to listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateNames(Vec<String>);

impl LateNames {
    /// The address that stands in for a name.
    pub fn stand_in(&mut self, name: &str) -> IpAddr {
        let known = self.0.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        let number = u16::try_from(index + 1).expect("a configuration has few ports");
        Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, number).into()
    }

    /// The name for which an address stands in.
    pub fn name_of(&self, address: IpAddr) -> Option<&str> {
        let mut numbers = 1..=0xffff_u16;
        let stands_in = |number: u16| address == IpAddr::from(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, number));
        self.0.iter().find(|_| numbers.next().is_some_and(stands_in)).map(String::as_str)
    }

    /// The address as it was meant: with the name, if one stands in for it.
    pub fn shown(&self, address: SocketAddr) -> String {
        match self.name_of(address.ip()) {
            Some(name) => format!("{name}:{}", address.port()),
            None => address.to_string(),
        }
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_in_for_a_name() {
        let mut names = LateNames::default();
        let (a, b) = (names.stand_in("a"), names.stand_in("b"));
        assert_ne!(a, b);
        assert_eq!((names.stand_in("a"), names.name_of(b)), (a, Some("b")));
        assert_eq!(names.shown(SocketAddr::new(b, 7)), "b:7");
        let known = SocketAddr::from(([127, 0, 0, 1], 7));
        assert_eq!((names.name_of(known.ip()), names.shown(known)), (None, "127.0.0.1:7".to_owned()));
        assert_eq!(LateNames::default().name_of(a), None);
    }
}
