//! Settings of the HTTP server out of those of the member: its ports, and paths that a setting has moved.

use std::borrow::Cow;
use std::net::SocketAddr;

use super::health;
use crate::Config;
use crate::config::AdminSettings;
use crate::error::ServerError;
use crate::http::{HttpPort, Surface};

/// Addresses of the ports, with their real numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HttpAddresses {
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
}

/// Listens at all addresses that the settings name.
pub(crate) fn ports(
    config: &Config,
    bind: fn(SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), ServerError>,
) -> Result<(Vec<HttpPort>, HttpAddresses), ServerError> {
    let mut ports = Vec::new();
    let mut open = |wanted: Option<SocketAddr>, surface| -> Result<Option<SocketAddr>, ServerError> {
        let Some(wanted) = wanted else { return Ok(None) };
        let (listener, address) = bind(wanted)?;
        ports.push(HttpPort { listener, surface });
        Ok(Some(address))
    };
    let metrics = open(config.metrics_listen, Surface::Metrics)?;
    let admin = open(config.admin_listen, Surface::Admin)?;
    Ok((ports, HttpAddresses { metrics, admin }))
}

/// The path by which the table of routes knows what stands at `path`.
pub(super) fn canonical<'a>(settings: &AdminSettings, path: &'a str) -> Cow<'a, str> {
    if path == settings.ready_path {
        return Cow::Borrowed(health::READY);
    }
    let moved =
        (settings.command_url != COMMANDS).then(|| path.strip_prefix(&*settings.command_url)).flatten();
    match moved {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Cow::Owned(format!("{COMMANDS}{rest}")),
        _ => Cow::Borrowed(path),
    }
}

/// ZooKeeper's path of commands, unless a setting moves it.
pub(super) const COMMANDS: &str = "/commands";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_setting_moved_is_found() {
        let settings = AdminSettings {
            command_url: "/zk".into(),
            ready_path: "/health/ready".into(),
            ..AdminSettings::default()
        };
        for (path, expected) in [
            ("/zk", "/commands"),
            ("/zk/stat", "/commands/stat"),
            ("/zkstat", "/zkstat"),
            ("/health/ready", "/ready"),
            ("/metrics", "/metrics"),
        ] {
            assert_eq!(canonical(&settings, path), expected);
        }
        assert_eq!(canonical(&AdminSettings::default(), "/commands/stat"), "/commands/stat");
    }
}
