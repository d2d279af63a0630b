//! Free ports for servers.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use paddock_os::free_port;

use crate::BenchError;

/// Number of ports below the ephemeral range that are tried.
const COUNT: u16 = 12_000;
/// Linux's usual begin of the ephemeral range.
const EPHEMERAL: u16 = 32_768;

/// A port that is free now, below the ephemeral range.
pub(super) fn free() -> Result<u16, BenchError> {
    let first = ephemeral().saturating_sub(COUNT).max(1024);
    let end = first + COUNT;
    free_port(IpAddr::V4(Ipv4Addr::LOCALHOST), first..end)
        .ok_or_else(|| BenchError::Usage(format!("no port from {first} to {} is free", end - 1)))
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
