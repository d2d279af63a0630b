//! The ids of the scheme `ip`: an address, IPv4 or IPv6, or a network as `address/bits`.
//!
//! ZooKeeper reads them with a parser of its own, which takes other spellings than Rust's: numbers may have a sign and
//! leading zeros, and an IPv6 address has no IPv4 tail.

/// Addresses that share their first bits.
#[derive(Debug)]
pub(crate) struct IpExpression {
    address: Address,
    bits: u32,
}

/// IPv4 addresses stand in the upper four bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Address {
    bits: u32,
    value: u128,
}

impl IpExpression {
    pub(crate) fn parse(text: &str) -> Option<IpExpression> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (Address::parse(address)?, Some(java_int(bits, 10)?)),
            None => (Address::parse(text)?, None),
        };
        let bits = bits.map_or(Some(address.bits), |bits| u32::try_from(bits).ok())?;
        (bits <= address.bits).then_some(IpExpression { address, bits })
    }

    pub(crate) fn matches(&self, address: &str) -> bool {
        let Some(address) = Address::parse(address) else { return false };
        address.bits == self.address.bits && (address.value ^ self.address.value).leading_zeros() >= self.bits
    }
}

impl Address {
    fn parse(text: &str) -> Option<Address> {
        if text.contains(':') { Address::parse_v6(text) } else { Address::parse_v4(text) }
    }

    fn parse_v4(text: &str) -> Option<Address> {
        let mut value = 0u32;
        let mut parts = 0;
        for part in text.split('.') {
            let byte = java_int(part, 10).and_then(|n| u8::try_from(n).ok())?;
            parts += 1;
            if parts > 4 {
                return None;
            }
            value = value << 8 | u32::from(byte);
        }
        (parts == 4).then_some(Address { bits: 32, value: u128::from(value) << 96 })
    }

    fn parse_v6(text: &str) -> Option<Address> {
        let mut halves = text.split("::");
        let (head, tail, more) = (halves.next()?, halves.next(), halves.next());
        let head_segments = segments(head)?;
        let tail_segments = tail.map_or(Some(Vec::new()), segments)?;
        let named = head_segments.len() + tail_segments.len();
        let complete = if tail.is_some() { named < 8 } else { named == 8 };
        if more.is_some() || !complete {
            return None;
        }
        let mut all = head_segments;
        all.resize(8 - tail_segments.len(), 0);
        all.extend(tail_segments);
        let value = all.iter().fold(0, |value, &segment| value << 16 | u128::from(segment));
        Some(Address { bits: 128, value })
    }
}

/// The 16-bit numbers between single colons; an empty text has none.
fn segments(text: &str) -> Option<Vec<u16>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let segment =
        |part: &str| (part.len() <= 4).then(|| java_int(part, 16)).flatten().map(|value| value as u16);
    text.split(':').map(segment).collect()
}

/// As `Integer.parseInt` reads it: an optional sign, then ASCII digits.
fn java_int(text: &str, radix: u32) -> Option<i32> {
    i32::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses() {
        let holds = |network: &str, address: &str| IpExpression::parse(network).unwrap().matches(address);
        assert!(holds("10.1.2.3", "10.1.2.3"));
        assert!(!holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("10.1.2.3/8", "10.9.9.9"));
        assert!(holds("10.1.2.3/0", "1.1.1.1"));
        assert!(!holds("10.1.2.0/25", "10.1.2.128"));
        assert!(holds("::1", "0:0:0:0:0:0:0:1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::9"));
        assert!(!holds("2001:db8::/32", "2001:db9::"));
        assert!(!holds("0.0.0.0/0", "::1"));
        assert!(!holds("::/0", "10.1.2.3"));
        assert!(!holds("10.1.2.3", "no address"));
    }

    #[test]
    fn zookeeper_decides_what_an_address_is() {
        for text in
            ["1.2.3.4", "1.2.3.4/32", "01.+2.3.4", "::", "1::", "::1/128", "1:2:3:4:5:6:7:8", "a:b::C"]
        {
            assert!(IpExpression::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.-1",
            "1.2.3.4/33",
            "1.2.3.4/",
            "1.2.3.4/-1",
            "1.2..4",
            "host",
            "1:2:3",
            ":1::",
            "::1::",
            "1:2:3:4:5:6:7::8:9",
            "12345::",
            "g::",
            "::1/129",
            "1.2.3.4/8/8",
            "::1.2.3.4",
            "1:2:3:4:5:6:7:8::",
        ] {
            assert!(IpExpression::parse(text).is_none(), "{text}");
        }
    }
}
