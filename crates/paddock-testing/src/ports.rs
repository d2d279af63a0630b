//! Ports for servers. A server keeps its port over a restart, so it is chosen here and not by the system.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use paddock_os::free_port;

use crate::StartError;

/// Below the ports that Linux gives to outgoing connections: one of those could take the port of a server that is down.
const PORTS: Range<u16> = 10_240..16_000;
/// Number of starts, each with other ports, before it is an error that all were taken.
const TRIES: u32 = 10;

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Different ports that are free now. Another process may take one before the server does; `with_free_ports` tries again then.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>, StartError> {
    let free = || free_port(IpAddr::V4(Ipv4Addr::LOCALHOST), PORTS).ok_or(StartError::NoPort);
    (0..count).map(|_| free()).collect()
}

/// Starts with new ports until no port is taken by others.
pub(crate) fn with_free_ports<T>(mut start: impl FnMut() -> Result<T, StartError>) -> Result<T, StartError> {
    for _ in 1..TRIES {
        match start() {
            Err(error) if error.is_address_in_use() => {}
            ended => return ended,
        }
    }
    start()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_that_others_have_is_not_insisted_on() {
        let taken = TcpListener::bind(loopback(0)).unwrap();
        let mut tries = 0;
        let started = with_free_ports(|| {
            tries += 1;
            let address = if tries < 3 { taken.local_addr().unwrap() } else { loopback(0) };
            TcpListener::bind(address).map_err(StartError::Directory)
        });
        assert!(started.is_ok());
        assert_eq!(tries, 3);
    }

    #[test]
    fn other_errors_are_told_at_once() {
        let mut tries = 0;
        let started: Result<(), StartError> = with_free_ports(|| {
            tries += 1;
            Err(StartError::Directory(std::io::ErrorKind::StorageFull.into()))
        });
        assert!(started.is_err());
        assert_eq!(tries, 1);
    }
}
