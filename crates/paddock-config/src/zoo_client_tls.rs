//! TLS for clients in a `zoo.cfg`: `secureClientPort`, `client.portUnification` and the keys of `ssl`.
//!
//! The keys wait until it is known on which ports clients connect.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use paddock_server::{CipherSuite, ClientAuth, ClientTls, LateNames, PortProtocol, TlsVersions};

use super::remark::{ConfigError, Remarks};
use super::source::Line;
use super::value::{self, Text};
use super::zoo_tls::{Said, StoreDraft, cipher_suites, enabled_protocols, protocol, store_type};
use super::zoo_values::{self, boolean};

const PREFIX: &str = "ssl.";
const UNUSED: &str = "it counts only with secureClientPort or client.portUnification";

#[derive(Debug, Default)]
pub(super) struct ZooClientTls {
    port: Option<(Line, u16)>,
    address: Option<IpAddr>,
    unification: Option<Line>,
    /// All others.
    lines: Vec<Line>,
}

impl ZooClientTls {
    /// Takes a line, unless it says something else.
    pub(super) fn take(&mut self, line: &Line, late: &mut LateNames) -> Result<bool, ConfigError> {
        let value = Text(&line.value);
        let fault = |what: String| line.fault(what);
        match line.key.as_str() {
            "secureClientPort" => {
                let port = zoo_values::port(&value).map_err(fault)?;
                self.port = port.map(|port| (line.clone(), port));
            }
            "secureClientPortAddress" => {
                self.address = Some(value::host_address(value.0, late).map_err(fault)?);
            }
            "client.portUnification" => {
                self.unification = boolean(&value).map_err(fault)?.then(|| line.clone());
            }
            "X509AuthenticationProvider.superUser" | "client.certReload" | "authProvider.x509" => {
                self.lines.push(line.clone());
            }
            key if key.starts_with(PREFIX) => self.lines.push(line.clone()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The address of the port for TLS only.
    pub(super) fn listen(&self) -> Option<SocketAddr> {
        let address = self.address.unwrap_or_else(zoo_values::all_addresses);
        self.port.as_ref().map(|(_, port)| SocketAddr::new(address, *port))
    }

    /// Settings of TLS for clients. Without a port for plaintext, the one for TLS is the only one.
    pub(super) fn settle(
        &self,
        has_plaintext_port: bool,
        remarks: &mut Remarks,
    ) -> Result<Option<ClientTls>, ConfigError> {
        let Some(line) = self.port.as_ref().map(|(line, _)| line).or(self.unification.as_ref()) else {
            remarks.extend(self.lines.iter().map(|line| line.changes_nothing(UNUSED)));
            return Ok(None);
        };
        let mut draft = ZooClientTlsDraft::default();
        for line in &self.lines {
            let said = draft.set(line).map_err(|what| line.fault(what))?;
            remarks.extend(said.remark_on(line));
        }
        let (listen, at_listen) = match (has_plaintext_port, &self.unification) {
            (false, _) => (None, PortProtocol::Tls),
            (true, Some(_)) => (self.listen(), PortProtocol::Either),
            (true, None) => (self.listen(), PortProtocol::Plaintext),
        };
        draft.finish(listen, at_listen).map(Some).map_err(|what| line.fault(what))
    }
}

#[derive(Default)]
struct ZooClientTlsDraft {
    key_store: StoreDraft,
    trust_store: StoreDraft,
    /// Counts before the other, whole.
    clients_trust_store: StoreDraft,
    client_auth: Option<ClientAuth>,
    verify_addresses: bool,
    crl: bool,
    crl_location: Option<PathBuf>,
    protocol: Option<TlsVersions>,
    enabled: Option<TlsVersions>,
    cipher_suites: Option<Vec<CipherSuite>>,
    detection_timeout_ms: Option<u64>,
    superuser: Option<String>,
}

impl ZooClientTlsDraft {
    fn set(&mut self, line: &Line) -> Result<Said, String> {
        let value = &Text(&line.value);
        let key = line.key.strip_prefix(PREFIX).unwrap_or(&line.key);
        // `client.` and `server.` are of ZooKeeper after 3.9. A server calls no client.
        let is_of_store = self.key_store.set("keyStore", key, value)?
            || self.trust_store.set("trustStore", key, value)?
            || self.clients_trust_store.set("server.trustStore", key, value)?;
        if is_of_store {
            return Ok(Said::Setting);
        }
        match key {
            key if key.starts_with("client.keyStore.") => {
                return Ok(Said::Nothing("a member connects to no client"));
            }
            "keyStore.type" | "trustStore.type" | "server.trustStore.type" => return store_type(value),
            "clientAuth" => self.client_auth = Some(client_auth(value)?),
            "clientHostnameVerification" => self.verify_addresses = boolean(value)?,
            "crl" => self.crl = boolean(value)?,
            "crl.location" => self.crl_location = Some(value::path(value)?),
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
            "handshakeDetectionTimeoutMillis" => {
                self.detection_timeout_ms = Some(value::milliseconds(value)?)
            }
            "X509AuthenticationProvider.superUser" => self.superuser = Some(value.0.to_owned()),
            _ => return self.set_fixed(line),
        }
        Ok(Said::Setting)
    }

    /// Keys of which one value only is offered, and those that set nothing.
    fn set_fixed(&mut self, line: &Line) -> Result<Said, String> {
        let value = &Text(&line.value);
        match line.key.strip_prefix(PREFIX).unwrap_or(&line.key) {
            "authProvider" if value.0 == "x509" => {}
            "authProvider" => return Err(value::wrong("x509, the only scheme for certificates", value)),
            "authProvider.x509" if value.0.ends_with(".X509AuthenticationProvider") => {}
            "authProvider.x509" => {
                return Err("a class of Java is not loaded; leave the key out".to_owned());
            }
            "ocsp" if !boolean(value)? => {}
            "ocsp" => {
                let why = "certificates that were revoked would not be turned away; use ssl.crl";
                return Err(format!("{:?} is not offered: {why}", value.0));
            }
            "context.supplier.class" => {
                return Err(
                    "it is not offered: keys and certificates come from the two stores only".to_owned()
                );
            }
            "hostnameVerification" => {
                return Ok(Said::Nothing(
                    "a member connects to no client; clientHostnameVerification counts",
                ));
            }
            "allowReverseDnsLookup" if !boolean(value)? => {}
            "allowReverseDnsLookup" => {
                return Ok(Said::Less(
                    "it has no effect: a client's certificate is verified for its address only".to_owned(),
                ));
            }
            "sslProvider" => return Ok(Said::Nothing("there is one TLS library")),
            "client.certReload" => {
                return Ok(Said::Nothing("files that have changed are read again for the next client"));
            }
            _ => return Ok(Said::Unknown),
        }
        Ok(Said::Setting)
    }

    fn finish(self, listen: Option<SocketAddr>, at_listen: PortProtocol) -> Result<ClientTls, String> {
        let client_auth = self.client_auth.unwrap_or(ClientAuth::Need);
        let key_store = self.key_store.finish().ok_or(
            "ssl.keyStore.location is missing: name a file of PEM, PKCS12 or JKS with this member's key and certificate",
        )?;
        let trust_store = self.clients_trust_store.finish().or(self.trust_store.finish());
        if trust_store.is_none() && client_auth != ClientAuth::None {
            return Err(
                "ssl.trustStore.location is missing: name a file with the certificates to trust, or set \
                        ssl.clientAuth=none to ask clients for no certificate"
                    .to_owned(),
            );
        }
        let revocations = match (self.crl, self.crl_location) {
            (true, None) => {
                return Err("ssl.crl: lists of revoked certificates are not fetched from the network; name a file with \
                            them in ssl.crl.location"
                    .to_owned());
            }
            (true, Some(path)) => Some(path),
            (false, Some(_)) => return Err("ssl.crl.location counts only with ssl.crl=true".to_owned()),
            (false, None) => None,
        };
        Ok(ClientTls {
            listen,
            at_listen,
            key_store,
            certificates: None,
            trust_store,
            client_auth,
            verify_addresses: self.verify_addresses,
            revocations,
            versions: self.enabled.or(self.protocol).unwrap_or(TlsVersions::Both),
            cipher_suites: self.cipher_suites,
            detection_timeout_ms: self.detection_timeout_ms.unwrap_or(ClientTls::DETECTION_TIMEOUT_MS),
            superuser: self.superuser,
        })
    }
}

fn client_auth(value: &Text<'_>) -> Result<ClientAuth, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "" | "need" => Ok(ClientAuth::Need),
        "want" => Ok(ClientAuth::Want),
        "none" => Ok(ClientAuth::None),
        _ => Err(value::wrong("need, want or none", value)),
    }
}

#[cfg(test)]
mod tests;
