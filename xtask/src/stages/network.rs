//! Networks with other settings than this machine's, in which the Rust programs of tests can be run: `TEST_NETWORK=NAME`.
//!
//! Each program gets a network namespace of its own, in which there is nothing but loopback. That takes root.

use std::env;
use std::ffi::OsStr;

use crate::process::{Error, Program};

/// The variable that names one of `NETWORKS`; without it programs run in the network of the machine.
const VARIABLE: &str = "TEST_NETWORK";

/// Networks, each with the settings of its kernel.
const NETWORKS: [(&str, &[&str]); 4] = [
    ("small-buffers", &["net.ipv4.tcp_rmem=4096 16384 262144", "net.ipv4.tcp_wmem=4096 16384 262144"]),
    ("large-buffers", &["net.ipv4.tcp_rmem=4096 131072 67108864", "net.ipv4.tcp_wmem=4096 16384 33554432"]),
    (
        "without-ipv6",
        &[
            "net.ipv6.conf.all.disable_ipv6=1",
            "net.ipv6.conf.default.disable_ipv6=1",
            "net.ipv6.conf.lo.disable_ipv6=1",
        ],
    ),
    ("short-queues", &["net.core.somaxconn=1024"]),
];

/// Makes the network of its first arguments, and becomes the program of the rest.
const MAKE: &str = r#"ip link set lo up || exit; while [ "$1" != -- ]; do sysctl -q -w "$1" || exit; shift; done; shift; exec "$@""#;

/// A refusal of a name that is no network's, before anything runs.
pub(super) fn check() -> Result<(), Error> {
    env::var(VARIABLE).map_or(Ok(()), |name| settings(&name).map(drop))
}

/// A program, in the network that the variable names.
pub(super) fn program(program: impl AsRef<OsStr>) -> Program {
    match env::var(VARIABLE).ok().and_then(|name| settings(&name).ok()) {
        None => Program::new(program),
        Some(settings) => {
            let make = Program::new("unshare").args(["--net", "sh", "-c", MAKE, "network"]);
            make.args(settings).arg("--").arg(program)
        }
    }
}

fn settings(name: &str) -> Result<&'static [&'static str], Error> {
    let network = NETWORKS.iter().find(|(known, _)| *known == name);
    network.map(|(_, settings)| *settings).ok_or_else(|| {
        let known = NETWORKS.map(|(name, _)| name).join(", ");
        Error::new(format!("{VARIABLE}: there is no network {name:?}; there are: {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::settings;

    #[test]
    fn networks_are_known_by_their_names() {
        assert_eq!(settings("short-queues").expect("it is known"), ["net.core.somaxconn=1024"]);
        let error = settings("fast").expect_err("it is not").to_string();
        assert!(error.contains("\"fast\"") && error.contains("without-ipv6"), "{error}");
    }
}
