//! The engine, and the etcd cluster of a front end: `[etcd]`, and options of the command line.

use std::path::PathBuf;

use paddock_server::{
    CallerIdentity, EtcdEndpoint, EtcdSettings, EtcdTls, EtcdUser, Password, Secret, Store,
};

/// Engines that order writes and keep the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// A log of this member's own, replicated if it has an ensemble.
    Log,
    /// An etcd cluster.
    Etcd,
}

/// Settings of etcd while they are collected.
#[derive(Clone, Debug, Default)]
pub struct EtcdDraft {
    /// The engine that orders writes.
    pub engine: Option<EngineName>,
    /// Members of the etcd cluster.
    pub endpoints: Option<Vec<EtcdEndpoint>>,
    /// Beginning of all keys in etcd.
    pub prefix: Option<String>,
    /// File of the authorities whose certificates are believed.
    pub ca: Option<PathBuf>,
    /// File of the certificate to show to etcd.
    pub cert: Option<PathBuf>,
    /// File of its private key.
    pub key: Option<PathBuf>,
    /// File with the password of that key.
    pub key_password_file: Option<PathBuf>,
    /// Name of a user of etcd.
    pub user: Option<String>,
    /// Password of that user.
    pub password: Option<String>,
    /// File with the password of that user.
    pub password_file: Option<PathBuf>,
    /// The limit that etcd was given as `--max-txn-ops`.
    pub txn_operations_max: Option<usize>,
    /// The limit that etcd was given as `--max-request-bytes`.
    pub request_bytes_max: Option<usize>,
    /// Time for which a request waits for etcd before its connection ends, in milliseconds.
    pub write_timeout_ms: Option<u64>,
    /// True if reads are answered however long etcd has not been heard of.
    pub stale_reads: Option<bool>,
    /// True if each write is a transaction of etcd's.
    pub separate_writes: Option<bool>,
}

impl EtcdDraft {
    /// These settings, and those of `other` where there are none.
    pub fn or(self, other: EtcdDraft) -> EtcdDraft {
        // A password belongs to where it is given: a file of the command line counts before a text of the file.
        let has_password = self.password.is_some() || self.password_file.is_some();
        let (password, password_file) = if has_password {
            (self.password, self.password_file)
        } else {
            (other.password, other.password_file)
        };
        EtcdDraft {
            engine: self.engine.or(other.engine),
            endpoints: self.endpoints.or(other.endpoints),
            prefix: self.prefix.or(other.prefix),
            ca: self.ca.or(other.ca),
            cert: self.cert.or(other.cert),
            key: self.key.or(other.key),
            key_password_file: self.key_password_file.or(other.key_password_file),
            user: self.user.or(other.user),
            password,
            password_file,
            txn_operations_max: self.txn_operations_max.or(other.txn_operations_max),
            request_bytes_max: self.request_bytes_max.or(other.request_bytes_max),
            write_timeout_ms: self.write_timeout_ms.or(other.write_timeout_ms),
            stale_reads: self.stale_reads.or(other.stale_reads),
            separate_writes: self.separate_writes.or(other.separate_writes),
        }
    }

    /// The settings of a front end; `None` for a member with a log of its own.
    pub fn settle(self) -> Result<Option<EtcdSettings>, String> {
        if self.engine != Some(EngineName::Etcd) {
            return match self.endpoints {
                Some(_) => {
                    Err("there are endpoints of etcd, but the engine is not etcd: set engine = \"etcd\""
                        .to_owned())
                }
                None => Ok(None),
            };
        }
        let endpoints = self.endpoints.clone().filter(|endpoints| !endpoints.is_empty());
        let endpoints = endpoints.ok_or("the engine etcd needs endpoints, such as http://127.0.0.1:2379")?;
        let tls = self.tls(&endpoints)?;
        let mut settings = EtcdSettings::new(endpoints);
        settings.tls = tls;
        settings.user = self.login()?;
        if let Some(prefix) = self.prefix {
            settings.prefix = parse_prefix(&prefix)?;
        }
        settings.txn_operations_max = self.txn_operations_max.unwrap_or(settings.txn_operations_max);
        settings.request_bytes_max = self.request_bytes_max.unwrap_or(settings.request_bytes_max);
        settings.write_timeout_ms = self.write_timeout_ms.unwrap_or(settings.write_timeout_ms);
        settings.stale_reads = self.stale_reads.unwrap_or(settings.stale_reads);
        settings.separate_writes = self.separate_writes.unwrap_or(settings.separate_writes);
        Ok(Some(settings))
    }

    fn tls(&self, endpoints: &[EtcdEndpoint]) -> Result<Option<EtcdTls>, String> {
        let plain = endpoints.iter().find(|endpoint| !endpoint.has_tls());
        let has_files = self.ca.is_some() || self.cert.is_some() || self.key.is_some();
        match (endpoints.iter().find(|endpoint| endpoint.has_tls()), plain) {
            (Some(secure), Some(plain)) => {
                return Err(format!(
                    "{} has TLS and {} has none: etcd has it at all members",
                    secure.url(),
                    plain.url()
                ));
            }
            (None, _) if has_files => {
                return Err("files for TLS to etcd count only with endpoints of https://".to_owned());
            }
            (None, _) => return Ok(None),
            (Some(_), None) => {}
        }
        let store = |path: &PathBuf, password| Store { path: path.clone(), password };
        let ca = self.ca.as_ref().ok_or(
            "endpoints of https:// need the authority that etcd's certificates are signed by: name its file by \
             --etcd-ca, or as etcd.ca",
        )?;
        let identity = match (&self.key, &self.cert) {
            (None, Some(_)) => return Err("a certificate for etcd needs its key: etcd.key".to_owned()),
            (None, None) => None,
            (Some(key), certificates) => {
                let key = store(key, self.key_password_file.clone().map(Password::File));
                Some(CallerIdentity { key, certificates: certificates.clone() })
            }
        };
        Ok(Some(EtcdTls { authorities: store(ca, None), identity }))
    }

    fn login(&self) -> Result<Option<EtcdUser>, String> {
        let password = match (&self.password, &self.password_file) {
            (Some(password), _) => Some(password.clone()),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file);
                let text =
                    text.map_err(|error| format!("read etcd's password in {}: {error}", file.display()))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            (None, None) => None,
        };
        match (&self.user, password) {
            (Some(name), Some(password)) => {
                Ok(Some(EtcdUser { name: name.clone(), password: Secret::new(password) }))
            }
            (None, None) => Ok(None),
            (Some(name), None) => Err(format!("etcd's user {name} needs a password")),
            (None, Some(_)) => Err("a password for etcd needs a user".to_owned()),
        }
    }
}

/// Endpoints with commas between them.
pub fn parse_endpoints(text: &str) -> Result<Vec<EtcdEndpoint>, String> {
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(EtcdEndpoint::parse).collect()
}

fn parse_prefix(text: &str) -> Result<String, String> {
    let prefix = text.trim_end_matches('/');
    if prefix.starts_with('/') && !prefix.contains("//") {
        Ok(prefix.to_owned())
    } else {
        Err(format!("expected a prefix of etcd's keys such as /paddock, not {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(endpoints: &str) -> EtcdDraft {
        let endpoints = Some(parse_endpoints(endpoints).unwrap());
        EtcdDraft { engine: Some(EngineName::Etcd), endpoints, ..EtcdDraft::default() }
    }

    #[test]
    fn a_front_end_needs_endpoints_and_a_user_its_password() {
        assert_eq!(EtcdDraft::default().settle(), Ok(None));
        let settings = draft("http://one:2379, two").settle().unwrap().unwrap();
        assert_eq!((settings.endpoints.len(), settings.prefix.as_str()), (2, "/paddock"));
        assert!(draft("").settle().unwrap_err().contains("needs endpoints"));
        let no_engine = EtcdDraft { engine: None, ..draft("one") };
        assert!(no_engine.settle().unwrap_err().contains("engine"));
        let alone = EtcdDraft { user: Some("ann".into()), ..draft("one") };
        assert!(alone.clone().settle().unwrap_err().contains("needs a password"));
        let password = EtcdDraft { password: Some("hush".into()), ..EtcdDraft::default() };
        assert!(alone.or(password).settle().unwrap().unwrap().user.is_some());
        let secure = draft("https://one,https://two");
        assert!(secure.clone().settle().unwrap_err().contains("--etcd-ca"));
        let with_ca = EtcdDraft { ca: Some("ca.pem".into()), ..secure };
        assert_eq!(with_ca.clone().settle().unwrap().unwrap().tls.unwrap().identity, None);
        let no_key = EtcdDraft { cert: Some("cert.pem".into()), ..with_ca.clone() };
        assert!(no_key.clone().settle().unwrap_err().contains("etcd.key"));
        let whole = EtcdDraft { key: Some("key.pem".into()), ..no_key };
        assert!(whole.settle().unwrap().unwrap().tls.unwrap().identity.is_some());
        let mixed = EtcdDraft { endpoints: draft("https://one,http://two").endpoints, ..with_ca.clone() };
        assert!(
            mixed.settle().unwrap_err().contains("https://one:2379 has TLS and http://two:2379 has none")
        );
        let plain = EtcdDraft { endpoints: draft("one").endpoints, ..with_ca };
        assert!(plain.settle().unwrap_err().contains("https://"));
        for prefix in ["", "/", "paddock", "/a//b"] {
            let wrong = EtcdDraft { prefix: Some(prefix.into()), ..draft("one") };
            assert!(wrong.settle().is_err(), "{prefix}");
        }
    }
}
