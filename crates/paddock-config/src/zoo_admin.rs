//! ZooKeeper's AdminServer in a `zoo.cfg`: whether it is served, and where.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use paddock_server::{AdminSettings, LateNames, PortProtocol};

use super::value::{self, Text};
use super::zoo_values;

/// The port of a `zoo.cfg` that does not say.
const PORT: u16 = 8080;

#[derive(Debug, Default)]
pub(super) struct ZooAdmin {
    is_enabled: Option<bool>,
    address: Option<IpAddr>,
    port: Option<u16>,
    is_unified: bool,
    is_https_forced: bool,
    settings: AdminSettings,
}

impl ZooAdmin {
    /// Takes a key, unless it says something else.
    pub(super) fn take(
        &mut self,
        key: &str,
        value: &Text<'_>,
        late: &mut LateNames,
    ) -> Option<Result<(), String>> {
        self.set(key.strip_prefix("admin.")?, value, late).transpose()
    }

    fn set(&mut self, key: &str, value: &Text<'_>, late: &mut LateNames) -> Result<Option<()>, String> {
        match key {
            "enableServer" => self.is_enabled = Some(zoo_values::boolean(value)?),
            "serverAddress" => self.address = Some(value::host_address(value.0, late)?),
            "serverPort" => self.port = zoo_values::port(value)?,
            "commandURL" => self.settings.command_url = url(value)?,
            "idleTimeout" => self.settings.idle_timeout_ms = value::milliseconds(value)?,
            "snapshot.enabled" => self.settings.has_snapshots = zoo_values::boolean(value)?,
            "portUnification" => self.is_unified = zoo_values::boolean(value)?,
            "forceHttps" => self.is_https_forced = zoo_values::boolean(value)?,
            "needClientAuth" => self.settings.tls.needs_certificate = zoo_values::boolean(value)?,
            // A key of Paddock's own.
            "hosts" => self.settings.hosts = hosts(value)?,
            "rateLimiterIntervalInMS" => self.settings.rate_limit_ms = value::milliseconds(value)?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    /// Address at which it is served, if it is. A file that only says at which port wants it; without an address that is this
    /// machine's own.
    pub(super) fn listen(&self) -> Option<SocketAddr> {
        let is_served = self.is_enabled.unwrap_or(self.port.is_some() || self.address.is_some());
        let address = self.address.unwrap_or(Ipv4Addr::LOCALHOST.into());
        is_served.then(|| SocketAddr::new(address, self.port.unwrap_or(PORT)))
    }

    /// The settings. If HTTPS is forced, port unification does not count, as in ZooKeeper.
    pub(super) fn into_settings(mut self) -> AdminSettings {
        self.settings.tls.protocol = match (self.is_https_forced, self.is_unified) {
            (true, _) => PortProtocol::Tls,
            (false, true) => PortProtocol::Either,
            (false, false) => PortProtocol::Plaintext,
        };
        self.settings
    }
}

/// Names with commas between them.
pub(super) fn hosts(value: &Text<'_>) -> Result<Vec<String>, String> {
    let names: Vec<String> = value.0.split(',').map(|name| name.trim().to_owned()).collect();
    let are_names = names.iter().all(|name| !name.is_empty() && !name.contains([' ', '/']));
    are_names
        .then_some(names)
        .ok_or_else(|| value::wrong("names such as zk1.example.org,ops.example.org", value))
}

/// A path such as `/commands`, without a slash at its end.
pub(super) fn url(value: &impl value::Value) -> Result<String, String> {
    let is_path = |text: &&str| text.starts_with('/') && text.len() > 1 && !text.contains(['?', '#', ' ']);
    let path = value.text().map(|text| text.trim_end_matches('/')).filter(is_path);
    path.map(str::to_owned).ok_or_else(|| value::wrong("a path such as /commands", value))
}
