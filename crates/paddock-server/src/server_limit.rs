//! Limits of a server, outside of its fronts, that are hit: which connections it takes, what its watches and its HTTP port allow.

use paddock_front::Limit;

/// A limit, or a rule, that a client hits before a front has it, or beside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerLimit {
    ConnectionsOfAddress,
    Connections,
    Descriptors,
    AcceptRate,
    Handshakes,
    Watches,
    TlsFailure,
    FailedLogin,
}

impl Limit for ServerLimit {
    const ALL: &'static [ServerLimit] = &[
        ServerLimit::ConnectionsOfAddress,
        ServerLimit::Connections,
        ServerLimit::Descriptors,
        ServerLimit::AcceptRate,
        ServerLimit::Handshakes,
        ServerLimit::Watches,
        ServerLimit::TlsFailure,
        ServerLimit::FailedLogin,
    ];

    fn place(self) -> usize {
        self as usize
    }

    fn label(self) -> &'static str {
        match self {
            ServerLimit::ConnectionsOfAddress => "connections_per_address",
            ServerLimit::Connections => "connections",
            ServerLimit::Descriptors => "descriptors",
            ServerLimit::AcceptRate => "accept_rate",
            ServerLimit::Handshakes => "handshakes",
            ServerLimit::Watches => "watches",
            ServerLimit::TlsFailure => "tls_failure",
            ServerLimit::FailedLogin => "failed_login",
        }
    }

    fn message(self) -> &'static str {
        match self {
            ServerLimit::ConnectionsOfAddress => {
                "connection refused: its address has as many as connections_per_address_max allows"
            }
            ServerLimit::Connections => "connection refused: there are as many as connections_max allows",
            ServerLimit::Descriptors => {
                "connection refused: the process has as many descriptors open as it may (ulimit -n), but for those that the \
                 member keeps for itself"
            }
            ServerLimit::AcceptRate => {
                "connections have to wait: more come than accepts_per_second_max allows"
            }
            ServerLimit::Handshakes => {
                "connection refused: as many TLS handshakes are under way as handshakes_max allows"
            }
            ServerLimit::Watches => {
                "watch refused: watches_per_session_max, watches_max or memory_max does not allow more"
            }
            ServerLimit::TlsFailure => "rejected a connection to a port for TLS",
            ServerLimit::FailedLogin => "refused a request over HTTP",
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_front::LimitHit;

    use super::*;

    #[test]
    fn each_limit_has_its_own_place_and_its_own_label() {
        for (place, limit) in ServerLimit::ALL.iter().enumerate() {
            assert_eq!(limit.place(), place);
            assert!(LimitHit::ALL.iter().all(|other| other.label() != limit.label()));
        }
    }
}
