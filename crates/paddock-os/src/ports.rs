//! Ports for servers that want theirs again after a restart.
//!
//! The system's own choice (port 0) comes from the ephemeral range: while such a server is down, any connection or listener of another
//! process may be given its port. So these ports are taken from a range of the caller's, which should lie below the ephemeral one.

use std::net::{IpAddr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// A port of `ports` at which nothing listens at `host` now, or `None` if there is none. Calls of one process return different ports
/// until they have been through the whole range, whether the ports are in use by then or not.
pub fn free_port(host: IpAddr, ports: Range<u16>) -> Option<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = ports.end.checked_sub(ports.start).filter(|count| *count > 0)?;
    // Each process begins at another place; the servers of one process stand side by side.
    let first = (process::id() as u16).wrapping_mul(61);
    (0..count).find_map(|_| {
        let place = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = ports.start + place % count;
        TcpListener::bind((host, port)).is_ok().then_some(port)
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn ports_differ_and_lie_in_the_range() {
        let ports: Vec<u16> = (0..3).filter_map(|_| free_port(HOST, 9_000..9_500)).collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|port| (9_000..9_500).contains(port)), "{ports:?}");
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2], "{ports:?}");
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let taken = TcpListener::bind((HOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_eq!(free_port(HOST, port..port + 1), None);
        assert_eq!(free_port(HOST, 9_000..9_000), None, "an empty range");
    }
}
