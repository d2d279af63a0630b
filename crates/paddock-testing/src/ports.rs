//! Ports for servers. A server keeps its port over a restart, so it is chosen here and not by the system.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;

use crate::StartError;

/// Below the ports that Linux gives to outgoing connections: one of those could take the port of a server that is down.
const PORTS: Range<u16> = 10_240..20_000;
/// Number of starts, each with other ports, before it is an error that all were taken.
const TRIES: u32 = 10;

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Different ports that are free now. Another process may take one before the server does; `with_free_ports` tries again then.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let mut ports = Vec::new();
    while ports.len() < count {
        let port = fastrand::u16(PORTS);
        if !ports.contains(&port) && TcpListener::bind(loopback(port)).is_ok() {
            ports.push(port);
        }
    }
    ports
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
