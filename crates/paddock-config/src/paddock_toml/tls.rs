//! `[ensemble.tls]`.

use std::path::PathBuf;

use paddock_server::{CipherSuite, OneSidedStores, Password, PeerTls, Secret, Store, TlsMode, TlsVersions};
use toml::Spanned;
use toml::de::DeValue;

use super::super::remark::{ConfigError, Location, Remarks};
use super::super::value::{self, Value};
use super::file::{File, Item, boolean, each_key, table};

const TLS: &str = "ensemble.tls";
const KEYS: &[&str] = &[
    "mode",
    "key_store",
    "key_store_password",
    "key_store_password_file",
    "certificates",
    "trust_store",
    "trust_store_password",
    "trust_store_password_file",
    "calling_key_store",
    "calling_key_store_password",
    "calling_key_store_password_file",
    "calling_certificates",
    "callers_trust_store",
    "callers_trust_store_password",
    "callers_trust_store_password_file",
    "verify_called",
    "verify_callers",
    "versions",
    "cipher_suites",
];

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    remarks: &mut Remarks,
) -> Result<PeerTls, ConfigError> {
    let fault = |what: &str| place.clone().fault(format!("{TLS}: {what}"));
    let table = table(value, place, TLS)?;
    let mut draft = TomlTls::default();
    each_key(file, table, (TLS, KEYS), remarks, |setting, _| {
        draft.set(setting.key, &setting.item).map_err(|what| setting.fault(what))
    })?;
    draft.finish().map_err(|what| fault(&what))
}

#[derive(Default)]
struct TomlTls {
    mode: Option<TlsMode>,
    key_store: StoreDraft,
    certificates: Option<PathBuf>,
    trust_store: StoreDraft,
    calling_key_store: StoreDraft,
    calling_certificates: Option<PathBuf>,
    callers_trust_store: StoreDraft,
    verify_called: Option<bool>,
    verify_callers: Option<bool>,
    versions: Option<TlsVersions>,
    cipher_suites: Option<Vec<CipherSuite>>,
}

#[derive(Default)]
pub(super) struct StoreDraft {
    pub(super) path: Option<PathBuf>,
    pub(super) password: Option<Secret>,
    pub(super) password_file: Option<PathBuf>,
}

impl StoreDraft {
    /// Takes a key of this store, which the file calls `name`. False for other keys.
    pub(super) fn set(&mut self, name: &str, key: &str, value: &Item<'_>) -> Result<bool, String> {
        match key.strip_prefix(name) {
            Some("") => self.path = Some(value::path(value)?),
            Some("_password") => self.password = Some(secret(value)?),
            Some("_password_file") => self.password_file = Some(value::path(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A store that need not be there.
    fn finish_some(self, name: &str) -> Result<Option<Store>, String> {
        let StoreDraft { path, password, password_file } = &self;
        let is_said = path.is_some() || password.is_some() || password_file.is_some();
        is_said.then(|| self.finish(name)).transpose()
    }

    pub(super) fn finish(self, name: &str) -> Result<Store, String> {
        let password = match (self.password, self.password_file) {
            (Some(_), Some(_)) => {
                return Err(format!("{name}_password and {name}_password_file are both given; keep one"));
            }
            (Some(text), None) => Some(Password::Text(text)),
            (None, file) => file.map(Password::File),
        };
        let path = self.path.ok_or_else(|| format!("{name} is missing"))?;
        Ok(Store { path, password })
    }
}

impl TomlTls {
    /// Takes a setting, unless its key is not known.
    fn set(&mut self, key: &str, value: &Item<'_>) -> Result<bool, String> {
        match key {
            "mode" => self.mode = Some(mode(value)?),
            "certificates" => self.certificates = Some(value::path(value)?),
            "calling_certificates" => self.calling_certificates = Some(value::path(value)?),
            "verify_called" => self.verify_called = Some(boolean(value)?),
            "verify_callers" => self.verify_callers = Some(boolean(value)?),
            "versions" => self.versions = Some(versions(value)?),
            "cipher_suites" => self.cipher_suites = Some(cipher_suites(value)?),
            _ => {
                return Ok(self.key_store.set("key_store", key, value)?
                    || self.trust_store.set("trust_store", key, value)?
                    || self.calling_key_store.set("calling_key_store", key, value)?
                    || self.callers_trust_store.set("callers_trust_store", key, value)?);
            }
        }
        Ok(true)
    }

    fn finish(self) -> Result<PeerTls, String> {
        Ok(PeerTls {
            mode: self.mode.unwrap_or(TlsMode::Required),
            key_store: self.key_store.finish("key_store")?,
            certificates: self.certificates,
            trust_store: self.trust_store.finish("trust_store")?,
            one_sided: OneSidedStores {
                calling_key_store: self.calling_key_store.finish_some("calling_key_store")?,
                calling_certificates: self.calling_certificates,
                callers_trust_store: self.callers_trust_store.finish_some("callers_trust_store")?,
            },
            verify_called: self.verify_called.unwrap_or(true),
            verify_callers: self.verify_callers.unwrap_or(true),
            versions: self.versions.unwrap_or(TlsVersions::Both),
            cipher_suites: self.cipher_suites,
        })
    }
}

fn mode(value: &Item<'_>) -> Result<TlsMode, String> {
    match value.text() {
        Some("accepted") => Ok(TlsMode::Accepted),
        Some("preferred") => Ok(TlsMode::Preferred),
        Some("required") => Ok(TlsMode::Required),
        _ => Err(value::wrong("\"accepted\", \"preferred\" or \"required\"", value)),
    }
}

/// Reads a password. A message does not show the value: it may be a password.
fn secret(value: &Item<'_>) -> Result<Secret, String> {
    value.text().map(Secret::new).ok_or_else(|| "expected a text".to_owned())
}

pub(super) fn versions(value: &Item<'_>) -> Result<TlsVersions, String> {
    let wrong = || value::wrong("a list of \"1.2\" and \"1.3\"", value);
    let list = texts(value).ok_or_else(wrong)?;
    if list.iter().any(|version| !["1.2", "1.3"].contains(version)) {
        return Err(wrong());
    }
    match (list.contains(&"1.2"), list.contains(&"1.3")) {
        (true, true) => Ok(TlsVersions::Both),
        (true, false) => Ok(TlsVersions::Only12),
        (false, true) => Ok(TlsVersions::Only13),
        (false, false) => Err(wrong()),
    }
}

pub(super) fn cipher_suites(value: &Item<'_>) -> Result<Vec<CipherSuite>, String> {
    let suites: Option<Vec<_>> =
        texts(value).and_then(|list| list.into_iter().map(CipherSuite::named).collect());
    suites.filter(|suites| !suites.is_empty()).ok_or_else(|| {
        let offered: Vec<&str> = CipherSuite::all().map(CipherSuite::name).collect();
        value::wrong(&format!("a list of some of {}", offered.join(", ")), value)
    })
}

fn texts<'a>(value: &Item<'a>) -> Option<Vec<&'a str>> {
    value.value.get_ref().as_array()?.iter().map(|item| item.get_ref().as_str()).collect()
}
