//! TLS between members in a `zoo.cfg`: `sslQuorum`, `portUnification` and the keys of `ssl.quorum`.
//!
//! The keys wait until it is known whether there are other members, and whether TLS is on.

use std::path::PathBuf;

use paddock_server::{CipherSuite, OneSidedStores, Password, PeerTls, Secret, Store, TlsMode, TlsVersions};

use super::remark::{ConfigError, Remark, Remarks};
use super::source::Line;
use super::value::{self, Text};
use super::zoo_values::{boolean, list};

const PREFIX: &str = "ssl.quorum.";

#[derive(Debug, Default)]
pub(super) struct ZooTls {
    ssl_quorum: Option<Line>,
    port_unification: Option<Line>,
    /// All others.
    lines: Vec<Line>,
}

impl ZooTls {
    /// Takes a line, unless it says something else.
    pub(super) fn take(&mut self, line: &Line) -> bool {
        match line.key.as_str() {
            "sslQuorum" => self.ssl_quorum = Some(line.clone()),
            "portUnification" => self.port_unification = Some(line.clone()),
            "sslQuorumReloadCertFiles" => self.lines.push(line.clone()),
            key if key.starts_with(PREFIX) => self.lines.push(line.clone()),
            _ => return false,
        }
        true
    }

    /// The lines that were taken.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.ssl_quorum.iter().chain(&self.port_unification).chain(&self.lines)
    }

    /// Settings of TLS for a member that has others.
    pub(super) fn settle(&self, remarks: &mut Remarks) -> Result<Option<PeerTls>, ConfigError> {
        let (mode, line) = match (is_on(&self.ssl_quorum)?, is_on(&self.port_unification)?) {
            (Some(line), None) => (TlsMode::Required, line),
            (Some(line), Some(_)) => (TlsMode::Preferred, line),
            (None, Some(line)) => (TlsMode::Accepted, line),
            (None, None) => {
                remarks.extend(
                    self.lines.iter().map(|line| line.changes_nothing("it counts only with sslQuorum")),
                );
                return Ok(None);
            }
        };
        let mut draft = ZooTlsDraft::default();
        for line in &self.lines {
            draft.set(line, remarks)?;
        }
        match draft.finish(mode) {
            Ok(tls) => Ok(Some(tls)),
            // ZooKeeper has such members too, and they are well as long as no client calls them with TLS.
            Err(what) if mode == TlsMode::Accepted => {
                remarks.push(line.warning(format!("no calls with TLS are taken: {what}")));
                Ok(None)
            }
            Err(what) => Err(line.fault(what)),
        }
    }
}

/// The line, if it says that something is on.
fn is_on(line: &Option<Line>) -> Result<Option<&Line>, ConfigError> {
    match line {
        Some(line) => {
            let is_on = boolean(&Text(&line.value)).map_err(|what| line.fault(what))?;
            Ok(is_on.then_some(line))
        }
        None => Ok(None),
    }
}

#[derive(Default)]
struct ZooTlsDraft {
    key_store: StoreDraft,
    trust_store: StoreDraft,
    calling_key_store: StoreDraft,
    callers_trust_store: StoreDraft,
    no_verification: bool,
    no_verification_of_callers: bool,
    protocol: Option<TlsVersions>,
    enabled: Option<TlsVersions>,
    cipher_suites: Option<Vec<CipherSuite>>,
}

#[derive(Default)]
pub(super) struct StoreDraft {
    pub(super) location: Option<PathBuf>,
    pub(super) password: Option<String>,
    pub(super) password_path: Option<PathBuf>,
}

impl StoreDraft {
    /// Takes a key of this store, which the file calls `name`. False for other keys.
    pub(super) fn set(&mut self, name: &str, key: &str, value: &Text<'_>) -> Result<bool, String> {
        match key.strip_prefix(name) {
            Some(".location") => self.location = Some(value::path(value)?),
            Some(".password") => self.password = Some(value.0.to_owned()),
            Some(".passwordPath") => self.password_path = Some(value::path(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// As in ZooKeeper, a file with the password counts before the password.
    pub(super) fn finish(self) -> Option<Store> {
        let text = self.password.map(|text| Password::Text(Secret::new(text)));
        let password = self.password_path.map(Password::File).or(text);
        self.location.map(|path| Store { path, password })
    }
}

impl ZooTlsDraft {
    fn finish(self, mode: TlsMode) -> Result<PeerTls, String> {
        let missing =
            |key, with| format!("{PREFIX}{key} is missing: name a file of PEM, PKCS12 or JKS with {with}");
        let key_store = self.key_store.finish();
        let trust_store = self.trust_store.finish();
        Ok(PeerTls {
            mode,
            key_store: key_store
                .ok_or_else(|| missing("keyStore.location", "this member's key and certificate"))?,
            certificates: None,
            trust_store: trust_store
                .ok_or_else(|| missing("trustStore.location", "the certificates to trust"))?,
            one_sided: OneSidedStores {
                calling_key_store: self.calling_key_store.finish(),
                calling_certificates: None,
                callers_trust_store: self.callers_trust_store.finish(),
            },
            verify_called: !self.no_verification,
            verify_callers: !self.no_verification && !self.no_verification_of_callers,
            versions: self.enabled.or(self.protocol).unwrap_or(TlsVersions::Both),
            cipher_suites: self.cipher_suites,
        })
    }

    fn set(&mut self, line: &Line, remarks: &mut Remarks) -> Result<(), ConfigError> {
        let key = line.key.strip_prefix(PREFIX).unwrap_or(&line.key);
        let said = self.set_value(key, &Text(&line.value)).map_err(|what| line.fault(what))?;
        remarks.extend(said.remark_on(line));
        Ok(())
    }

    fn set_value(&mut self, key: &str, value: &Text<'_>) -> Result<Said, String> {
        // `client.` and `server.` are of ZooKeeper after 3.9.
        let is_of_store = self.key_store.set("keyStore", key, value)?
            || self.trust_store.set("trustStore", key, value)?
            || self.calling_key_store.set("client.keyStore", key, value)?
            || self.callers_trust_store.set("server.trustStore", key, value)?;
        if is_of_store {
            return Ok(Said::Setting);
        }
        match key {
            "keyStore.type" | "trustStore.type" | "client.keyStore.type" | "server.trustStore.type" => {
                return store_type(value);
            }
            "hostnameVerification" => self.no_verification = !boolean(value)?,
            "clientHostnameVerification" => self.no_verification_of_callers = !boolean(value)?,
            "protocol" => self.protocol = Some(protocol(value)?),
            "enabledProtocols" => {
                let (versions, said) = enabled_protocols(value)?;
                self.enabled = Some(versions);
                return Ok(said);
            }
            "ciphersuites" => {
                let (suites, said) = cipher_suites(value)?;
                self.cipher_suites = Some(suites);
                return Ok(said);
            }
            "clientAuth" => return client_auth(value),
            "crl" | "ocsp" if !boolean(value)? => {}
            "crl" | "ocsp" => {
                let why = "certificates that were revoked would not be turned away";
                return Err(format!("{:?} is not offered: {why}", value.0));
            }
            "context.supplier.class" => {
                return Err(
                    "it is not offered: keys and certificates come from the two stores only".to_owned()
                );
            }
            "handshakeDetectionTimeoutMillis" => {
                return Ok(Said::Nothing("a link between two members has limits of its own"));
            }
            "allowReverseDnsLookup" => {
                return Ok(Said::Nothing(
                    "a caller's certificate is verified for the host of its server line",
                ));
            }
            "sslQuorumReloadCertFiles" => {
                return Ok(Said::Nothing("files that have changed are read again for the next link"));
            }
            _ => return Ok(Said::Unknown),
        }
        Ok(Said::Setting)
    }
}

/// The outcome of a key.
pub(super) enum Said {
    Setting,
    /// The key sets something, but not all that was asked for.
    Less(String),
    /// For this reason.
    Nothing(&'static str),
    Unknown,
}

impl Said {
    pub(super) fn remark_on(self, line: &Line) -> Option<Remark> {
        match self {
            Said::Setting => None,
            Said::Less(what) => Some(line.warning(what)),
            Said::Nothing(reason) => Some(line.changes_nothing(reason)),
            Said::Unknown => {
                let what = format!("{} is not a setting that Paddock knows; it is ignored", line.key);
                Some(line.place.clone().warning(what))
            }
        }
    }
}

pub(super) fn store_type(value: &Text<'_>) -> Result<Said, String> {
    match value.0.to_ascii_uppercase().as_str() {
        "" | "JKS" | "PEM" | "PKCS12" => Ok(Said::Nothing("a store's content says of which type it is")),
        "BCFKS" => {
            Err("\"BCFKS\" is not offered; convert the store: keytool -importkeystore -srcstoretype BCFKS \
                        -srckeystore FILE -destkeystore NEW.p12 -deststoretype PKCS12"
                .to_owned())
        }
        _ => Err(value::wrong("PEM, PKCS12 or JKS", value)),
    }
}

fn client_auth(value: &Text<'_>) -> Result<Said, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "" | "need" => Ok(Said::Setting),
        "want" | "none" => {
            Ok(Said::Less(format!("{:?} has no effect: every member must show a certificate", value.0)))
        }
        _ => Err(value::wrong("need, want or none", value)),
    }
}

/// As in ZooKeeper, the newer version allows the older one too.
pub(super) fn protocol(value: &Text<'_>) -> Result<TlsVersions, String> {
    match value.0 {
        "TLSv1.3" | "TLS" => Ok(TlsVersions::Both),
        "TLSv1.2" => Ok(TlsVersions::Only12),
        _ => Err(value::wrong("TLSv1.3 or TLSv1.2", value)),
    }
}

pub(super) fn enabled_protocols(value: &Text<'_>) -> Result<(TlsVersions, Said), String> {
    const OLD: [&str; 4] = ["TLSv1.1", "TLSv1", "SSLv3", "SSLv2Hello"];
    let names: Vec<&str> = list(value.0).collect();
    let versions = match (names.contains(&"TLSv1.2"), names.contains(&"TLSv1.3")) {
        (true, true) => TlsVersions::Both,
        (true, false) => TlsVersions::Only12,
        (false, true) => TlsVersions::Only13,
        (false, false) => return Err(value::wrong("TLSv1.3, TLSv1.2 or both", value)),
    };
    let others: Vec<&str> = names.into_iter().filter(|name| !["TLSv1.2", "TLSv1.3"].contains(name)).collect();
    match others.iter().find(|name| !OLD.contains(name)) {
        Some(_) => Err(value::wrong("TLSv1.3, TLSv1.2 or both", value)),
        None => Ok((versions, less_than(&others))),
    }
}

pub(super) fn cipher_suites(value: &Text<'_>) -> Result<(Vec<CipherSuite>, Said), String> {
    let (mut suites, mut others) = (Vec::new(), Vec::new());
    for name in list(value.0) {
        match CipherSuite::named(name) {
            Some(suite) => suites.push(suite),
            None => others.push(name),
        }
    }
    if suites.is_empty() {
        let offered: Vec<&str> = CipherSuite::all().map(CipherSuite::name).collect();
        return Err(value::wrong(&format!("some of {}", offered.join(", ")), value));
    }
    Ok((suites, less_than(&others)))
}

fn less_than(others: &[&str]) -> Said {
    match others {
        [] => Said::Setting,
        others => Said::Less(format!("without {}, which Paddock does not offer", others.join(", "))),
    }
}

#[cfg(test)]
mod tests;
