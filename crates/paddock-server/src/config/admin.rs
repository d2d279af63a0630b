//! Settings of the HTTP interface for those who operate the member, beside its address.

use super::{ClientAuth, ClientTls, Config, PortProtocol};

/// The HTTP interface at `Config::admin_listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Path of ZooKeeper's commands; by default `/commands`.
    pub command_url: String,
    /// Path of readiness, in ClickHouse Keeper's form; by default `/ready`.
    pub ready_path: String,
    /// Path of metrics; by default `/metrics`.
    pub metrics_path: String,
    /// True if metrics have ClickHouse Keeper's names where a request does not say which.
    pub has_keeper_names: bool,
    /// A connection on which nothing moves is closed after this time, in milliseconds; by default 30,000.
    pub idle_timeout_ms: u64,
    /// True if administrators may take snapshots over HTTP.
    pub has_snapshots: bool,
    /// Administrators may take one in this time, in milliseconds; by default 300,000.
    pub rate_limit_ms: u64,
    /// Names beside the member's own by which browsers may ask for it; `*` is any.
    pub hosts: Vec<String>,
    /// TLS of the interface; by default there is none.
    pub tls: AdminTls,
}

/// TLS at `Config::admin_listen`, with the keys and certificates of clients' ports, or else of the links between members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminTls {
    /// Protocol at the port.
    pub protocol: PortProtocol,
    /// True if a requester without a certificate is turned away.
    pub needs_certificate: bool,
}

impl Default for AdminSettings {
    fn default() -> AdminSettings {
        AdminSettings {
            command_url: "/commands".into(),
            ready_path: "/ready".into(),
            metrics_path: "/metrics".into(),
            has_keeper_names: false,
            idle_timeout_ms: 30_000,
            has_snapshots: true,
            rate_limit_ms: 300_000,
            hosts: Vec::new(),
            tls: AdminTls { protocol: PortProtocol::Plaintext, needs_certificate: false },
        }
    }
}

impl Config {
    /// True if the HTTP interface speaks TLS and there are no keys for it.
    pub fn lacks_admin_keys(&self) -> bool {
        self.has_admin_tls() && self.admin_tls().is_none()
    }

    pub(crate) fn has_admin_tls(&self) -> bool {
        self.admin_listen.is_some() && self.admin.tls.protocol != PortProtocol::Plaintext
    }

    /// TLS of the HTTP interface, if it speaks that and there are keys.
    pub fn admin_tls(&self) -> Option<ClientTls> {
        let AdminTls { protocol, needs_certificate } = self.admin.tls;
        if !self.has_admin_tls() {
            return None;
        }
        let of_peers = || self.ensemble.as_ref()?.tls.as_ref().map(ClientTls::of_peers);
        let tls = self.tls.clone().or_else(of_peers)?;
        let client_auth = match tls.client_auth {
            _ if needs_certificate => ClientAuth::Need,
            ClientAuth::None => ClientAuth::None,
            // A browser may have none.
            ClientAuth::Want | ClientAuth::Need => ClientAuth::Want,
        };
        Some(ClientTls { listen: None, at_listen: protocol, client_auth, verify_addresses: false, ..tls })
    }
}
