//! Free ports for servers.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::BenchError;

/// Number of ports below the ephemeral range that are tried.
const COUNT: u16 = 12_000;
/// Linux's usual begin of the ephemeral range.
const EPHEMERAL: u16 = 32_768;

/// A port that is free now. It lies below the ephemeral range: one from inside it could be taken by a client's outgoing
/// connection before the server listens.
pub(super) fn free() -> Result<u16, BenchError> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = ephemeral().saturating_sub(COUNT).max(1024);
    for _ in 0..COUNT {
        // Each process begins somewhere else; the servers of one process stand side by side.
        let place =
            (process::id() as u16).wrapping_mul(61).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = first + place % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(BenchError::Usage(format!("no port from {first} to {} is free", first + COUNT - 1)))
}

fn ephemeral() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    // A machine whose ephemeral ports begin low leaves no room below them.
    first.filter(|first| *first > COUNT).unwrap_or(EPHEMERAL)
}

#[cfg(test)]
mod tests {
    #[test]
    fn free_ports_differ_and_are_not_ephemeral() {
        let ports = [super::free(), super::free(), super::free()].map(|port| port.expect("a port is free"));
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
        assert!(ports.iter().all(|port| *port < super::ephemeral()));
    }
}
