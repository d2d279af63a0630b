//! Listening at addresses that may not be this machine's yet.
//!
//! Under Kubernetes a name leads to a pod only a while after its process has begun, and a container may get its address late. So a name
//! that cannot be looked up, and an address that is not there, are tried again, a number of times or for ever. An address that another
//! process listens at is not: it is its own.

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use tokio::task::spawn_blocking;

use crate::late_names::LateNames;
use crate::look_up::LookUp;
use crate::socket;

/// Time between two tries, as in ZooKeeper.
pub const PAUSE: Duration = Duration::from_secs(1);

/// Addresses of this machine at which the other members connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAt {
    /// All of this machine's, of IPv6 and of IPv4.
    All { port: u16 },
    /// `host:port`; the host is looked up at every try, and each of its addresses counts.
    Name(String),
}

/// Reasons for which nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A name is not known after all tries.
    #[error("look up {name}, at which to listen")]
    LookUp {
        /// The name.
        name: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The address cannot be had: another process has it, or this machine does not.
    #[error("listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

impl BindError {
    fn is_passing(&self) -> bool {
        match self {
            BindError::LookUp { .. } => true,
            BindError::Listen { source, .. } => is_passing(source),
        }
    }
}

/// True if an address may be one of this machine's later.
fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
}

/// Tries to listen that are left.
#[derive(Clone, Copy, Debug)]
pub struct Tries {
    /// 0: there is no end.
    max: u32,
    failed: u32,
}

impl Tries {
    pub fn new(max: u32) -> Tries {
        Tries { max, failed: 0 }
    }

    /// Judges the first one. `None` if there is to be another, of which the log is told.
    pub fn first<T>(&mut self, tried: Result<T, BindError>, purpose: &str) -> Result<Option<T>, BindError> {
        match tried {
            Err(error) if self.has_more_after(&error) => {
                let cause = error.source().map(tracing::field::display);
                tracing::warn!(%error, cause, "cannot listen{purpose} yet: trying again");
                Ok(None)
            }
            tried => tried.map(Some),
        }
    }

    /// Counts one that has failed. True if there is to be another.
    pub fn has_more_after(&mut self, error: &BindError) -> bool {
        self.failed = self.failed.saturating_add(1);
        error.is_passing() && (self.max == 0 || self.failed < self.max)
    }
}

/// Listens at all addresses that are meant. Of those of a name, the ones that this machine does not have are left out, unless it has none.
pub fn listen<L>(
    at: &ListenAt,
    look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>>,
    bind: impl Fn(SocketAddr) -> io::Result<L>,
) -> Result<Vec<L>, BindError> {
    let name = match at {
        ListenAt::All { port } => return listen_at_all(*port, bind).map(|listener| vec![listener]),
        ListenAt::Name(name) => name,
    };
    let mut addresses = look_up(name).map_err(|source| BindError::LookUp { name: name.clone(), source })?;
    addresses.sort_unstable();
    addresses.dedup();
    let (mut listeners, mut missing) = (Vec::new(), None);
    for address in addresses {
        match bind(address) {
            Ok(listener) => listeners.push(listener),
            Err(source) if is_passing(&source) => missing = Some(BindError::Listen { address, source }),
            Err(source) => return Err(BindError::Listen { address, source }),
        }
    }
    if !listeners.is_empty() {
        return Ok(listeners);
    }
    let nothing = || BindError::LookUp { name: name.clone(), source: io::ErrorKind::NotFound.into() };
    Err(missing.unwrap_or_else(nothing))
}

/// `[::]` is every address of IPv4, too. A kernel without IPv6 has only those.
fn listen_at_all<L>(port: u16, bind: impl Fn(SocketAddr) -> io::Result<L>) -> Result<L, BindError> {
    let at = |ip: IpAddr| SocketAddr::new(ip, port);
    let both = at(Ipv6Addr::UNSPECIFIED.into());
    match bind(both) {
        Ok(listener) => Ok(listener),
        Err(source) if source.kind() == io::ErrorKind::AddrInUse => {
            Err(BindError::Listen { address: both, source })
        }
        Err(_) => {
            let address = at(Ipv4Addr::UNSPECIFIED.into());
            bind(address).map_err(|source| BindError::Listen { address, source })
        }
    }
}

/// A port for clients or for HTTP, which listens or will.
#[derive(Debug)]
pub enum LatePort {
    /// Listening.
    Bound(TcpListener),
    /// Its address is not there yet.
    Waiting { at: PortAt, tries: Tries },
}

/// The place of a port.
#[derive(Debug)]
pub enum PortAt {
    Address(SocketAddr),
    /// `host:port`, looked up at every try. Its first address counts, one of IPv4 before others, as in Java.
    Name(String, LookUp),
}

impl PortAt {
    fn listen(&self) -> Result<TcpListener, BindError> {
        let address = match self {
            PortAt::Address(address) => *address,
            PortAt::Name(name, look_up) => {
                let failed = |source| BindError::LookUp { name: name.clone(), source };
                let found = look_up.find(name).map_err(failed)?;
                let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first());
                *preferred.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?
            }
        };
        socket::bind(address).map_err(|source| BindError::Listen { address, source })
    }
}

impl LatePort {
    /// Listens, now or later. Returns the address, with the real number if any free port was asked for.
    pub fn open(
        address: SocketAddr,
        names: &LateNames,
        tries_max: u32,
    ) -> Result<(LatePort, SocketAddr), BindError> {
        let at = match names.name_of(address.ip()) {
            Some(name) => PortAt::Name(format!("{name}:{}", address.port()), LookUp::of_system()),
            None => PortAt::Address(address),
        };
        LatePort::open_at(at, address, tries_max)
    }

    fn open_at(at: PortAt, address: SocketAddr, tries_max: u32) -> Result<(LatePort, SocketAddr), BindError> {
        let mut tries = Tries::new(tries_max);
        match tries.first(at.listen(), "")? {
            Some(listener) => {
                let bound = listener.local_addr().map_err(|source| BindError::Listen { address, source })?;
                Ok((LatePort::Bound(listener), bound))
            }
            None => Ok((LatePort::Waiting { at, tries }, address)),
        }
    }

    /// True if nothing listens yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self, LatePort::Waiting { .. })
    }

    /// The socket, once there is one. To be called on a thread that polls sockets.
    pub async fn listener(self) -> Result<tokio::net::TcpListener, BindError> {
        let listener = match self {
            LatePort::Bound(listener) => listener,
            LatePort::Waiting { mut at, mut tries } => loop {
                tokio::time::sleep(PAUSE).await;
                // Looking up a name blocks.
                let tried = spawn_blocking(move || (at.listen(), at)).await;
                let (listened, returned) = tried.expect("nothing in it panics");
                at = returned;
                match listened {
                    Err(error) if tries.has_more_after(&error) => {}
                    ended => {
                        let listener = ended?;
                        let address = listener.local_addr().ok().map(tracing::field::display);
                        tracing::info!(address, "listening: the address is there");
                        break listener;
                    }
                }
            },
        };
        listener.set_nonblocking(true).expect("a listening socket can be polled");
        Ok(tokio::net::TcpListener::from_std(listener).expect("a listening socket can be polled"))
    }
}

/// Addresses that the listeners have.
pub fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

#[cfg(test)]
mod tests {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied, Unsupported};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Addresses that are listened at, or the error. Those in `refused` cannot be.
    fn check(
        at: &ListenAt,
        found: &[&str],
        refused: &[(&str, io::ErrorKind)],
        expected: Result<&[&str], &str>,
    ) {
        let look_up = |_: &str| match found {
            [] => Err(io::ErrorKind::NotFound.into()),
            found => Ok(found.iter().map(|text| address(text)).collect()),
        };
        let bind = |wanted: SocketAddr| {
            let refused = refused.iter().find(|(text, _)| address(text) == wanted);
            refused.map_or(Ok(wanted), |(_, kind)| Err((*kind).into()))
        };
        let listeners = listen(at, look_up, bind).map_err(|error| error.to_string());
        let expected = expected.map(|all| all.iter().map(|text| address(text)).collect::<Vec<_>>());
        assert_eq!(listeners, expected.map_err(str::to_owned));
    }

    #[test]
    fn all_addresses_are_those_of_both_families_where_there_are_two() {
        let all = ListenAt::All { port: 7 };
        check(&all, &[], &[], Ok(&["[::]:7"]));
        check(&all, &[], &[("[::]:7", Unsupported)], Ok(&["0.0.0.0:7"]));
        check(&all, &[], &[("[::]:7", AddrNotAvailable)], Ok(&["0.0.0.0:7"]));
        check(&all, &[], &[("[::]:7", AddrInUse)], Err("listen on [::]:7"));
    }

    #[test]
    fn each_address_of_a_name_is_listened_at() {
        let name = ListenAt::Name("zoo:7".to_owned());
        let both = ["10.0.0.1:7", "[fd00::1]:7", "10.0.0.1:7"];
        check(&name, &both, &[], Ok(&["10.0.0.1:7", "[fd00::1]:7"]));
        check(&name, &both, &[("10.0.0.1:7", AddrNotAvailable)], Ok(&["[fd00::1]:7"]));
        check(&name, &both, &[("10.0.0.1:7", AddrInUse)], Err("listen on 10.0.0.1:7"));
        check(&name, &[], &[], Err("look up zoo:7, at which to listen"));
    }

    #[test]
    fn what_may_pass_is_tried_again_as_often_as_is_said() {
        let listen =
            |kind: io::ErrorKind| BindError::Listen { address: address("10.0.0.1:7"), source: kind.into() };
        let look_up =
            || BindError::LookUp { name: "zoo:7".to_owned(), source: io::ErrorKind::NotFound.into() };
        let mut tries = Tries::new(3);
        assert!(tries.has_more_after(&look_up()));
        assert!(tries.has_more_after(&listen(AddrNotAvailable)));
        assert!(!tries.has_more_after(&look_up()), "this was the third");
        let mut for_ever = Tries::new(0);
        assert!((0..1000).all(|_| for_ever.has_more_after(&look_up())));
        assert!(!for_ever.has_more_after(&listen(AddrInUse)));
        assert!(!for_ever.has_more_after(&listen(PermissionDenied)));
    }

    /// A port at a name that is not known the first `unknown` times.
    fn late(unknown: usize, tries: u32) -> Result<(LatePort, SocketAddr), BindError> {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let look_up = LookUp::new(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            count if count < unknown => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![address("[::1]:0"), address("127.0.0.1:0")]),
        });
        LatePort::open_at(PortAt::Name("zoo:0".to_owned(), look_up), address("[100::1]:0"), tries)
    }

    #[test]
    fn a_port_for_clients_waits_for_its_name() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap();
        let (port, bound) = late(0, 3).unwrap();
        assert!(matches!(port, LatePort::Bound(_)) && bound.is_ipv4(), "{bound}");
        let (port, unknown) = late(1, 3).unwrap();
        assert_eq!(unknown, address("[100::1]:0"), "the address stands in for the name");
        let listener = runtime.block_on(port.listener()).unwrap();
        assert!(listener.local_addr().unwrap().is_ipv4());
        let (port, _) = late(2, 2).unwrap();
        let error = runtime.block_on(port.listener()).unwrap_err();
        assert_eq!(error.to_string(), "look up zoo:0, at which to listen");
        assert_eq!(late(1, 1).unwrap_err().to_string(), "look up zoo:0, at which to listen");
    }

    #[test]
    fn a_name_in_the_settings_is_looked_up_by_the_port() {
        let mut names = LateNames::default();
        let at = SocketAddr::new(names.stand_in("localhost"), 0);
        let (port, bound) = LatePort::open(at, &names, 1).unwrap();
        assert!(matches!(port, LatePort::Bound(_)) && bound.ip().is_loopback(), "{bound}");
    }
}
