//! Settings of a front end on an etcd cluster.

use paddock_tls::{CallerIdentity, Secret, Store};

/// An etcd cluster that orders writes and holds all data, in the place of a log of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Members of the cluster; one that does not answer is followed by the next one.
    pub endpoints: Vec<EtcdEndpoint>,
    /// All keys lie below it. Nothing else may.
    pub prefix: String,
    /// Needed by endpoints with `https://`, and by no others.
    pub tls: Option<EtcdTls>,
    /// User of an etcd with authentication.
    pub user: Option<EtcdUser>,
    /// Operations that a transaction of etcd may have: its `--max-txn-ops`, by default 128.
    pub txn_operations_max: usize,
    /// Bytes that a request to etcd may have: its `--max-request-bytes`, by default 1.5 MiB.
    pub request_bytes_max: usize,
    /// A request that has waited for etcd for this time ends its connection, in milliseconds; by default 10,000.
    pub write_timeout_ms: u64,
    /// True if reads are answered however long etcd has not been heard of.
    pub stale_reads: bool,
    /// True if each write is a transaction of its own, with a zxid of its own; otherwise some share one.
    pub separate_writes: bool,
}

impl EtcdSettings {
    /// The prefix of keys by default.
    pub const PREFIX: &'static str = "/paddock";

    /// Settings by default for a cluster of these members, of which one is enough: without TLS and without a user.
    pub fn new(endpoints: Vec<EtcdEndpoint>) -> EtcdSettings {
        EtcdSettings {
            endpoints,
            prefix: EtcdSettings::PREFIX.to_owned(),
            tls: None,
            user: None,
            txn_operations_max: 128,
            request_bytes_max: 1536 * 1024,
            write_timeout_ms: 10_000,
            stale_reads: false,
            separate_writes: false,
        }
    }
}

/// TLS towards etcd: whom this front end believes, and how it shows who it is itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTls {
    /// Certificates whose signature makes etcd's certificate trusted.
    pub authorities: Store,
    /// Key and certificate of this front end, for an etcd with `--client-cert-auth`.
    pub identity: Option<CallerIdentity>,
}

/// A user of etcd, as which the front end logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUser {
    /// Name in etcd's list of users.
    pub name: String,
    /// Password with which a token is asked for.
    pub password: Secret,
}

/// Address of a member of an etcd cluster, as `http://host:port` or `https://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdEndpoint {
    /// `host:port`.
    authority: String,
    has_tls: bool,
}

impl EtcdEndpoint {
    const PORT: u16 = 2379;

    /// Reads `http://host:port` or `https://host:port`, where `http://` and the port may be left out; the port is 2379 then.
    ///
    /// # Errors
    /// A sentence for the operator, with the text and the part that is wrong with it.
    pub fn parse(text: &str) -> Result<EtcdEndpoint, String> {
        let wrong = |what: &str| format!("{text:?} is no endpoint of etcd: {what}");
        let (has_tls, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://").unwrap_or(text)),
        };
        let authority = rest.trim_end_matches('/');
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
        Ok(EtcdEndpoint { authority, has_tls })
    }

    /// True if it begins with `https://`.
    pub fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// The host alone, an address of IPv6 without its brackets.
    pub fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// `host:port`, an address of IPv6 in brackets.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.has_tls { "https" } else { "http" }
    }

    /// The whole address, with its port.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.authority)
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
        let tls = EtcdEndpoint::parse("https://[::1]").unwrap();
        assert_eq!((tls.host(), tls.url()), ("::1", "https://[::1]:2379".to_owned()));
        assert!(tls.has_tls() && !EtcdEndpoint::parse("one").unwrap().has_tls());
        for text in ["", "http://", "https://", "one:port", ":2379", "http://a/b", "ann:pw@one"] {
            assert!(authority(text).is_err(), "{text}");
        }
    }
}
