//! Settings of a front end on an etcd cluster.

use super::Secret;

/// An etcd cluster that orders writes and holds all data, in the place of a log of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Members of the cluster; one that does not answer is followed by the next one.
    pub endpoints: Vec<EtcdEndpoint>,
    /// All keys lie below it. Nothing else may.
    pub prefix: String,
    pub user: Option<EtcdUser>,
    /// etcd's `--max-txn-ops`.
    pub txn_operations_max: usize,
    /// etcd's `--max-request-bytes`.
    pub request_bytes_max: usize,
    /// A request that has waited for etcd for so long ends its connection, in milliseconds.
    pub write_timeout_ms: u64,
    /// True if reads are answered however long etcd has not been heard of.
    pub stale_reads: bool,
}

impl EtcdSettings {
    pub const PREFIX: &'static str = "/paddock";

    pub fn new(endpoints: Vec<EtcdEndpoint>) -> EtcdSettings {
        EtcdSettings {
            endpoints,
            prefix: EtcdSettings::PREFIX.to_owned(),
            user: None,
            txn_operations_max: 128,
            request_bytes_max: 1536 * 1024,
            write_timeout_ms: 10_000,
            stale_reads: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUser {
    pub name: String,
    pub password: Secret,
}

/// Address of a member of an etcd cluster, as `http://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdEndpoint {
    /// `host:port`.
    authority: String,
}

impl EtcdEndpoint {
    const PORT: u16 = 2379;

    /// Reads `http://host:port`, where `http://` and the port may be left out.
    pub fn parse(text: &str) -> Result<EtcdEndpoint, String> {
        let wrong = |what: &str| format!("{text:?} is no endpoint of etcd: {what}");
        if text.starts_with("https://") {
            return Err(wrong("TLS to etcd is not there yet"));
        }
        let authority = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        if authority.is_empty() || authority.contains(['/', '@', ' ', '?', '#']) {
            return Err(wrong("an example is http://127.0.0.1:2379"));
        }
        let has_port = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') && !host.is_empty() => {
                port.parse::<u16>().map_err(|_| wrong("its port is no number from 0 to 65535"))?;
                true
            }
            Some(("", _)) => return Err(wrong("it has no host")),
            _ => false,
        };
        let authority =
            if has_port { authority.to_owned() } else { format!("{authority}:{}", EtcdEndpoint::PORT) };
        Ok(EtcdEndpoint { authority })
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_may_leave_out_scheme_and_port() {
        let authority = |text| EtcdEndpoint::parse(text).map(|endpoint| endpoint.authority);
        for text in ["http://one:2379", "one:2379", "one", "http://one", "http://one:2379/"] {
            assert_eq!(authority(text), Ok("one:2379".to_owned()), "{text}");
        }
        assert_eq!(authority("[::1]"), Ok("[::1]:2379".to_owned()));
        assert_eq!(authority("http://[::1]:7"), Ok("[::1]:7".to_owned()));
        for text in ["", "http://", "one:port", ":2379", "http://a/b", "https://one:2379", "ann:pw@one"] {
            assert!(authority(text).is_err(), "{text}");
        }
    }
}
