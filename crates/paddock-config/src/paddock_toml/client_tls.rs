//! `[tls]`: TLS for clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use paddock_server::{CipherSuite, ClientAuth, ClientTls, LateNames, PortProtocol, TlsVersions};
use toml::Spanned;
use toml::de::DeValue;

use super::super::remark::{ConfigError, Location, Remarks};
use super::super::value::{self, Value};
use super::file::{File, Item, boolean, each_key, table};
use super::tls::{StoreDraft, cipher_suites, versions};

const TLS: &str = "tls";
const KEYS: &[&str] = &[
    "listen",
    "mode",
    "key_store",
    "key_store_password",
    "key_store_password_file",
    "certificates",
    "trust_store",
    "trust_store_password",
    "trust_store_password_file",
    "client_auth",
    "verify_addresses",
    "revocations",
    "versions",
    "cipher_suites",
    "detection_timeout_ms",
    "superuser",
];

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    late: &mut LateNames,
    remarks: &mut Remarks,
) -> Result<ClientTls, ConfigError> {
    let fault = |what: &str| place.clone().fault(format!("{TLS}: {what}"));
    let table = table(value, place, TLS)?;
    let mut draft = TomlClientTls::default();
    each_key(file, table, (TLS, KEYS), remarks, |setting, _| {
        draft.set(setting.key, &setting.item, late).map_err(|what| setting.fault(what))
    })?;
    draft.finish().map_err(|what| fault(&what))
}

#[derive(Default)]
struct TomlClientTls {
    listen: Option<SocketAddr>,
    at_listen: Option<PortProtocol>,
    key_store: StoreDraft,
    certificates: Option<PathBuf>,
    trust_store: StoreDraft,
    client_auth: Option<ClientAuth>,
    verify_addresses: bool,
    revocations: Option<PathBuf>,
    versions: Option<TlsVersions>,
    cipher_suites: Option<Vec<CipherSuite>>,
    detection_timeout_ms: Option<u64>,
    superuser: Option<String>,
}

impl TomlClientTls {
    /// Takes a setting, unless its key is not known.
    fn set(&mut self, key: &str, value: &Item<'_>, late: &mut LateNames) -> Result<bool, String> {
        match key {
            "listen" => self.listen = Some(value::address(value, late)?),
            "mode" => self.at_listen = Some(mode(value)?),
            "certificates" => self.certificates = Some(value::path(value)?),
            "client_auth" => self.client_auth = Some(client_auth(value)?),
            "verify_addresses" => self.verify_addresses = boolean(value)?,
            "revocations" => self.revocations = Some(value::path(value)?),
            "versions" => self.versions = Some(versions(value)?),
            "cipher_suites" => self.cipher_suites = Some(cipher_suites(value)?),
            "detection_timeout_ms" => self.detection_timeout_ms = Some(value::milliseconds(value)?),
            "superuser" => self.superuser = Some(superuser(value)?),
            _ => {
                return Ok(self.key_store.set("key_store", key, value)?
                    || self.trust_store.set("trust_store", key, value)?);
            }
        }
        Ok(true)
    }

    fn finish(self) -> Result<ClientTls, String> {
        let client_auth = self.client_auth.unwrap_or(ClientAuth::Need);
        let at_listen = match (self.at_listen, self.listen) {
            (Some(PortProtocol::Plaintext), None) => {
                return Err("mode \"separate\" needs tls.listen, the port for TLS".to_owned());
            }
            (Some(at_listen), _) => at_listen,
            (None, Some(_)) => PortProtocol::Plaintext,
            (None, None) => PortProtocol::Tls,
        };
        let trust_store = match client_auth {
            ClientAuth::None if self.trust_store.path.is_none() => None,
            ClientAuth::None => {
                return Err("trust_store counts only if client_auth is \"want\" or \"need\"".to_owned());
            }
            _ if self.trust_store.path.is_none() => {
                return Err("trust_store is missing: name a file with the certificates to trust, or set \
                            client_auth = \"none\""
                    .to_owned());
            }
            _ => Some(self.trust_store.finish("trust_store")?),
        };
        Ok(ClientTls {
            listen: self.listen,
            at_listen,
            key_store: self.key_store.finish("key_store")?,
            certificates: self.certificates,
            trust_store,
            client_auth,
            verify_addresses: self.verify_addresses,
            revocations: self.revocations,
            versions: self.versions.unwrap_or(TlsVersions::Both),
            cipher_suites: self.cipher_suites,
            detection_timeout_ms: self.detection_timeout_ms.unwrap_or(ClientTls::DETECTION_TIMEOUT_MS),
            superuser: self.superuser,
        })
    }
}

fn mode(value: &Item<'_>) -> Result<PortProtocol, String> {
    match value.text() {
        Some("separate") => Ok(PortProtocol::Plaintext),
        Some("unified") => Ok(PortProtocol::Either),
        Some("required") => Ok(PortProtocol::Tls),
        _ => Err(value::wrong("\"separate\", \"unified\" or \"required\"", value)),
    }
}

fn client_auth(value: &Item<'_>) -> Result<ClientAuth, String> {
    match value.text() {
        Some("need") => Ok(ClientAuth::Need),
        Some("want") => Ok(ClientAuth::Want),
        Some("none") => Ok(ClientAuth::None),
        _ => Err(value::wrong("\"need\", \"want\" or \"none\"", value)),
    }
}

fn superuser(value: &Item<'_>) -> Result<String, String> {
    let subject = value.text().filter(|text| text.contains('='));
    subject.map(str::to_owned).ok_or_else(|| value::wrong("a subject, such as \"CN=admin,O=example\"", value))
}
