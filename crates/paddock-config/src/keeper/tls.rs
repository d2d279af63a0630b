//! TLS between members in `openSSL`: `server` is for those that call, `client` for those that are called. A member
//! that has one certificate for both says it in one of them, or in both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use paddock_server::{
    ClientTls, OneSidedStores, Password, PeerTls, PortProtocol, Secret, Store, TlsMode, TlsVersions,
};

use super::super::remark::{ConfigError, Location, Remarks};
use super::super::source::Line;
use super::super::value::{self, Text};
use super::super::zoo_values::list;
use super::client_tls;
use super::values::boolean;

pub(super) const SECTION: &str = "openSSL";
const UNUSED: &str =
    "it counts only with tcp_port_secure, or with raft_configuration.secure and more than one member";

#[derive(Debug, Default)]
pub(super) struct KeeperTls {
    lines: Vec<Line>,
}

/// Files of both sides of a link, by their names in a section. One side may leave out what the other says.
#[derive(Default)]
struct KeeperTlsDraft<'a> {
    /// For those that are called.
    server: BTreeMap<&'a str, &'a Line>,
    /// For those that call.
    client: BTreeMap<&'a str, &'a Line>,
    verify_called: bool,
    verify_callers: bool,
    disabled: DisabledVersions,
}

/// Versions of TLS that a section of `openSSL` does without.
#[derive(Default)]
pub(super) struct DisabledVersions {
    tls12: bool,
    tls13: bool,
}

impl DisabledVersions {
    /// Takes a key about versions. False for other keys.
    pub(super) fn take(&mut self, key: &str, value: &Text<'_>) -> Result<bool, String> {
        match key {
            "disableProtocols" => {
                self.tls12 |= list(value.0).any(|name| name == "tlsv1_2");
                self.tls13 |= list(value.0).any(|name| name == "tlsv1_3");
            }
            "requireTLSv1_3" => self.tls12 |= boolean(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn others(&self) -> Result<TlsVersions, String> {
        match (self.tls12, self.tls13) {
            (false, false) => Ok(TlsVersions::Both),
            (false, true) => Ok(TlsVersions::Only12),
            (true, false) => Ok(TlsVersions::Only13),
            (true, true) => Err("disableProtocols leaves no version of TLS".to_owned()),
        }
    }
}

impl KeeperTls {
    pub(super) fn take(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }

    pub(super) fn remark_on_unused(&self, remarks: &mut Remarks) {
        remarks.extend(self.lines.iter().map(|line| line.changes_nothing(UNUSED)));
    }

    /// Settings of TLS for clients, at their ports.
    pub(super) fn settle_clients(
        &self,
        file: &Location,
        ports: (Option<SocketAddr>, PortProtocol),
        remarks: &mut Remarks,
    ) -> Result<ClientTls, ConfigError> {
        let mut draft = client_tls::KeeperClientTlsDraft::default();
        for line in self.lines.iter().filter(|line| line.key.starts_with(client_tls::SERVER)) {
            draft.take(line, remarks)?;
        }
        let place = self.lines.first().map_or(file, |line| &line.place);
        draft.finish(ports).map_err(|what| place.clone().fault(format!("{SECTION}: {what}")))
    }

    /// Settings of TLS for a member that has others and is to speak TLS with them.
    pub(super) fn settle(&self, file: &Location, remarks: &mut Remarks) -> Result<PeerTls, ConfigError> {
        let mut draft = KeeperTlsDraft::default();
        for line in &self.lines {
            draft.take(line, remarks)?;
        }
        let place = self.lines.first().map_or(file, |line| &line.place);
        draft.finish().map_err(|what| place.clone().fault(format!("{SECTION}: {what}")))
    }
}

impl<'a> KeeperTlsDraft<'a> {
    fn take(&mut self, line: &'a Line, remarks: &mut Remarks) -> Result<(), ConfigError> {
        let rest = line.key.strip_prefix(SECTION).unwrap_or_default();
        let (side, key) = rest.trim_start_matches('.').split_once('.').unwrap_or_default();
        if !["server", "client"].contains(&side) {
            return Err(line.fault("it is not a setting that Paddock knows"));
        }
        let value = Text(&line.value);
        let fault = |what: String| line.fault(what);
        match key {
            "certificateFile"
            | "privateKeyFile"
            | "caConfig"
            | "privateKeyPassphraseHandler.options.password" => {
                let side = if side == "client" { &mut self.client } else { &mut self.server };
                side.insert(key, line);
            }
            "verificationMode" => match line.value.to_ascii_lowercase().as_str() {
                "strict" | "once" => {}
                "none" | "relaxed" => {
                    let what = "has no effect: both sides of a link must show a certificate that is trusted";
                    remarks.push(line.warning(format!("{:?} {what}", line.value)));
                }
                _ => return Err(line.fault(value::wrong("none, relaxed, strict or once", &value))),
            },
            "extendedVerification" if side == "client" => {
                self.verify_called = boolean(&value).map_err(fault)?
            }
            "extendedVerification" => self.verify_callers = boolean(&value).map_err(fault)?,
            key if self.disabled.take(key, &value).map_err(fault)? => {}
            "cipherList" | "cipherSuites" => {
                remarks
                    .push(line.warning("it has no effect: all cipher suites are offered that are not weak"));
            }
            "invalidCertificateHandler.name" if line.value == "AcceptCertificateHandler" => {
                remarks
                    .push(line.warning("it has no effect: a certificate that is not trusted ends the link"));
            }
            "loadDefaultCAFile"
            | "cacheSessions"
            | "preferServerCiphers"
            | "dhParamsFile"
            | "requireTLSv1"
            | "requireTLSv1_1"
            | "requireTLSv1_2"
            | "privateKeyPassphraseHandler.name"
            | "verificationDepth"
            | "sessionIdContext"
            | "sessionTimeout"
            | "sessionCacheSize"
            | "invalidCertificateHandler.name" => {
                remarks.push(line.changes_nothing("a link between two members has its own ways"));
            }
            _ => return Err(line.fault("it is not a setting that Paddock knows")),
        }
        Ok(())
    }

    fn finish(self) -> Result<PeerTls, String> {
        let said = |side: &BTreeMap<&str, &'a Line>, other: &BTreeMap<&str, &'a Line>, key: &str| {
            let line = side.get(key).filter(|line| !line.value.is_empty()).or(other.get(key))?;
            Some(line.value.as_str()).filter(|value| !value.is_empty())
        };
        let path = |is_client: bool, key: &'static str, with: &str| {
            let (side, other) =
                if is_client { (&self.client, &self.server) } else { (&self.server, &self.client) };
            let path = said(side, other, key).map(PathBuf::from);
            path.ok_or_else(|| format!("{key} is missing: name a file of PEM with {with}"))
        };
        let key_of = |is_client: bool| {
            let side = if is_client { &self.client } else { &self.server };
            let other = if is_client { &self.server } else { &self.client };
            const PASSWORD: &str = "privateKeyPassphraseHandler.options.password";
            let path = path(is_client, "privateKeyFile", "this member's key")?;
            // The other side's password is that of its own key.
            let is_same =
                other.get("privateKeyFile").is_none_or(|line| path.as_os_str() == line.value.as_str());
            let of_other = if is_same { other.get(PASSWORD) } else { None };
            let password = side.get(PASSWORD).or(of_other).map(|line| line.value.as_str());
            let password = password.map(|text| Password::Text(Secret::new(text)));
            Ok::<_, String>(Store { path, password })
        };
        let certificates = |is_client| path(is_client, "certificateFile", "this member's certificate");
        let trusted = |is_client: bool| {
            Ok::<_, String>(Store {
                path: path(is_client, "caConfig", "the certificates to trust")?,
                password: None,
            })
        };
        // The section for those that are called verifies those that call, and the other way round.
        let (called, calling) =
            ((key_of(false)?, certificates(false)?), (key_of(true)?, certificates(true)?));
        let (of_called, of_callers) = (trusted(true)?, trusted(false)?);
        let mut one_sided = OneSidedStores::default();
        if calling != called {
            (one_sided.calling_key_store, one_sided.calling_certificates) =
                (Some(calling.0), Some(calling.1));
        }
        one_sided.callers_trust_store = Some(of_callers).filter(|store| *store != of_called);
        let versions = self.disabled.others()?;
        Ok(PeerTls {
            mode: TlsMode::Required,
            key_store: called.0,
            certificates: Some(called.1),
            trust_store: of_called,
            one_sided,
            verify_called: self.verify_called,
            verify_callers: self.verify_callers,
            versions,
            cipher_suites: None,
        })
    }
}
