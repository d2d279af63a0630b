//! Metrics in a `zoo.cfg`: `metricsProvider.className` and where its HTTP server listens.

use std::net::{IpAddr, SocketAddr};

use paddock_server::LateNames;

use super::value::{self, Text};
use super::zoo_values;

/// ZooKeeper's class that serves Prometheus.
const PROMETHEUS: &str = "PrometheusMetricsProvider";
/// ZooKeeper's classes that serve no metrics.
const SILENT: [&str; 2] = ["NullMetricsProvider", "DefaultMetricsProvider"];
/// The port of a `zoo.cfg` that does not say.
const PORT: u16 = 7000;

#[derive(Debug, Default)]
pub(super) struct ZooMetrics {
    is_served: bool,
    host: Option<IpAddr>,
    port: Option<u16>,
}

impl ZooMetrics {
    /// Takes a key, unless it says something else. `Ok(Some(remark))` is what the operator should know.
    pub(super) fn take(
        &mut self,
        key: &str,
        value: &Text<'_>,
        late: &mut LateNames,
    ) -> Option<Result<Option<String>, String>> {
        match key.strip_prefix("metricsProvider.")? {
            "className" => Some(Ok(self.set_class(value.0))),
            "httpHost" => Some(value::host_address(value.0, late).map(|host| {
                self.host = Some(host);
                None
            })),
            "httpPort" => Some(zoo_values::port(value).map(|port| {
                self.port = port;
                None
            })),
            "httpsPort" => Some(Ok(Some("metrics are served without TLS only, at httpPort".to_owned()))),
            _ => None,
        }
    }

    fn set_class(&mut self, class: &str) -> Option<String> {
        let name = class.rsplit('.').next().unwrap_or_default();
        self.is_served = name == PROMETHEUS;
        let is_known = self.is_served || SILENT.contains(&name);
        (!is_known).then(|| format!("{class} is not offered; metrics are served by {PROMETHEUS} only"))
    }

    /// Address at which metrics are served, if they are.
    pub(super) fn listen(&self) -> Option<SocketAddr> {
        let host = || self.host.unwrap_or_else(zoo_values::all_addresses);
        self.is_served.then(|| SocketAddr::new(host(), self.port.unwrap_or(PORT)))
    }
}
