//! Settings of the HTTP server out of those of the member: its ports, and paths that a setting has moved.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use paddock_http::{HttpPort, HttpTls, Surface};
use paddock_os::binding::LatePort;
use paddock_tls::{ClientPort, TlsError};

use super::health;
use crate::Config;
use crate::config::{AdminSettings, PortProtocol};
use crate::error::ServerError;

/// Addresses of the ports, with their real numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HttpAddresses {
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
}

/// Keys and certificates of the port for administrators, if it speaks TLS.
pub(crate) fn keys(config: &Config) -> Result<Option<Arc<ClientPort>>, ServerError> {
    if config.lacks_admin_keys() {
        return Err(ServerError::AdminTls(TlsError::NoKeys));
    }
    let loaded = config.admin_tls().map(ClientPort::load).transpose();
    Ok(loaded.map_err(ServerError::AdminTls)?.map(Arc::new))
}

/// Listens at all addresses that the settings name. `keys` are those of the port for administrators.
pub(crate) fn ports(
    config: &Config,
    keys: Option<&Arc<ClientPort>>,
) -> Result<(Vec<HttpPort>, HttpAddresses), ServerError> {
    let mut ports = Vec::new();
    let mut open = |wanted: Option<SocketAddr>, surface, tls| -> Result<Option<SocketAddr>, ServerError> {
        let Some(wanted) = wanted else { return Ok(None) };
        let (listener, address) = LatePort::open(wanted, &config.late_names, config.bind_tries)?;
        ports.push(HttpPort { listener, surface, tls });
        Ok(Some(address))
    };
    let metrics = open(config.metrics_listen, Surface::Metrics, None)?;
    let is_required = config.admin.tls.protocol == PortProtocol::Tls;
    let tls = keys.map(|keys| HttpTls { keys: keys.clone(), is_required });
    let admin = open(config.admin_listen, Surface::Admin, tls)?;
    Ok((ports, HttpAddresses { metrics, admin }))
}

/// The path by which the table of routes knows what stands at `path`.
pub(super) fn canonical<'a>(settings: &AdminSettings, path: &'a str) -> Cow<'a, str> {
    if path == settings.ready_path {
        return Cow::Borrowed(health::READY);
    }
    if path == settings.metrics_path {
        return Cow::Borrowed(METRICS);
    }
    let moved =
        (settings.command_url != COMMANDS).then(|| path.strip_prefix(&*settings.command_url)).flatten();
    match moved {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Cow::Owned(format!("{COMMANDS}{rest}")),
        _ => Cow::Borrowed(path),
    }
}

/// Path of metrics, unless a setting moves it.
pub(super) const METRICS: &str = "/metrics";

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
            metrics_path: "/keeper".into(),
            ..AdminSettings::default()
        };
        for (path, expected) in [
            ("/zk", "/commands"),
            ("/zk/stat", "/commands/stat"),
            ("/zkstat", "/zkstat"),
            ("/health/ready", "/ready"),
            ("/keeper", "/metrics"),
            ("/metrics", "/metrics"),
        ] {
            assert_eq!(canonical(&settings, path), expected);
        }
        assert_eq!(canonical(&AdminSettings::default(), "/commands/stat"), "/commands/stat");
    }
}
