//! TLS for clients in `openSSL.server`, which counts with `tcp_port_secure`.

use std::net::SocketAddr;
use std::path::PathBuf;

use paddock_server::{ClientAuth, ClientTls, Password, PortProtocol, Secret, Store};

use super::super::remark::{ConfigError, Remarks};
use super::super::source::Line;
use super::super::value::{self, Text};
use super::tls::DisabledVersions;
use super::values::boolean;

pub(super) const SERVER: &str = "openSSL.server.";

#[derive(Default)]
pub(super) struct KeeperClientTlsDraft {
    key: Option<PathBuf>,
    password: Option<String>,
    certificate: Option<PathBuf>,
    trusted: Option<PathBuf>,
    client_auth: Option<ClientAuth>,
    verify_addresses: bool,
    disabled: DisabledVersions,
}

impl KeeperClientTlsDraft {
    pub(super) fn take(&mut self, line: &Line, remarks: &mut Remarks) -> Result<(), ConfigError> {
        let value = Text(&line.value);
        let fault = |what: String| line.fault(what);
        let path = || value::path(&value).map_err(fault);
        match line.key.strip_prefix(SERVER).unwrap_or_default() {
            "privateKeyFile" => self.key = Some(path()?),
            "certificateFile" => self.certificate = Some(path()?),
            "caConfig" => self.trusted = Some(path()?),
            "privateKeyPassphraseHandler.options.password" => self.password = Some(line.value.clone()),
            "verificationMode" => self.client_auth = Some(client_auth(&value).map_err(fault)?),
            "extendedVerification" => self.verify_addresses = boolean(&value).map_err(fault)?,
            key if self.disabled.take(key, &value).map_err(fault)? => {}
            "cipherList" | "cipherSuites" => {
                remarks
                    .push(line.warning("it has no effect: all cipher suites are offered that are not weak"));
            }
            "invalidCertificateHandler.name" if line.value == "AcceptCertificateHandler" => {
                let what = "it has no effect: a certificate that is not trusted ends the connection";
                remarks.push(line.warning(what));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn finish(
        self,
        (listen, at_listen): (Option<SocketAddr>, PortProtocol),
    ) -> Result<ClientTls, String> {
        let missing =
            |key: &str, with: &str| format!("server.{key} is missing: name a file of PEM with {with}");
        let client_auth = match (self.client_auth, &self.trusted) {
            (Some(client_auth), Some(_)) => client_auth,
            (Some(ClientAuth::None) | None, None) => ClientAuth::None,
            (Some(_), None) => return Err(missing("caConfig", "the certificates to trust")),
            (None, Some(_)) => ClientAuth::Want,
        };
        let trusted = self.trusted.filter(|_| client_auth != ClientAuth::None);
        let versions = self.disabled.others()?;
        Ok(ClientTls {
            listen,
            at_listen,
            key_store: Store {
                path: self.key.ok_or_else(|| missing("privateKeyFile", "this member's key"))?,
                password: self.password.map(|text| Password::Text(Secret::new(text))),
            },
            certificates: Some(
                self.certificate.ok_or_else(|| missing("certificateFile", "this member's certificate"))?,
            ),
            trust_store: trusted.map(|path| Store { path, password: None }),
            client_auth,
            verify_addresses: self.verify_addresses,
            revocations: None,
            versions,
            cipher_suites: None,
            detection_timeout_ms: ClientTls::DETECTION_TIMEOUT_MS,
            superuser: None,
        })
    }
}

/// Modes of ClickHouse, for a server.
fn client_auth(value: &Text<'_>) -> Result<ClientAuth, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "none" => Ok(ClientAuth::None),
        "relaxed" => Ok(ClientAuth::Want),
        "strict" | "once" => Ok(ClientAuth::Need),
        _ => Err(value::wrong("none, relaxed, strict or once", value)),
    }
}
