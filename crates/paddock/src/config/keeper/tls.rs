//! TLS between members in `openSSL`: `server` is for those that call, `client` for those that are called. Here a
//! member has one certificate for both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use paddock_server::{ClientTls, Password, PeerTls, PortProtocol, Secret, Store, TlsMode, TlsVersions};

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

/// Settings that must be equal on both sides of a link, by their names in a section.
#[derive(Default)]
struct Draft<'a> {
    shared: BTreeMap<&'a str, &'a Line>,
    verify_called: bool,
    verify_callers: bool,
    no_tls12: bool,
    no_tls13: bool,
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
        let mut draft = client_tls::Draft::default();
        for line in self.lines.iter().filter(|line| line.key.starts_with(client_tls::SERVER)) {
            draft.take(line, remarks)?;
        }
        let place = self.lines.first().map_or(file, |line| &line.place);
        draft.finish(ports).map_err(|what| place.clone().fault(format!("{SECTION}: {what}")))
    }

    /// Settings of TLS for a member that has others and is to speak TLS with them.
    pub(super) fn settle(&self, file: &Location, remarks: &mut Remarks) -> Result<PeerTls, ConfigError> {
        let mut draft = Draft::default();
        for line in &self.lines {
            draft.take(line, remarks)?;
        }
        let place = self.lines.first().map_or(file, |line| &line.place);
        draft.finish().map_err(|what| place.clone().fault(format!("{SECTION}: {what}")))
    }
}

impl<'a> Draft<'a> {
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
                let shared = self.shared.entry(key).or_insert(line);
                if shared.value != line.value {
                    let what =
                        format!("it differs from that of {}; a member has one for both sides", shared.place);
                    return Err(line.fault(what));
                }
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
            "disableProtocols" => {
                self.no_tls12 |= list(&line.value).any(|name| name == "tlsv1_2");
                self.no_tls13 |= list(&line.value).any(|name| name == "tlsv1_3");
            }
            "requireTLSv1_3" => self.no_tls12 |= boolean(&value).map_err(fault)?,
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
        let value = |key: &'static str| self.shared.get(key).map(|line| line.value.as_str());
        let path = |key: &'static str, with| {
            let path = value(key).filter(|path| !path.is_empty()).map(PathBuf::from);
            path.ok_or_else(|| format!("{key} is missing: name a file of PEM with {with}"))
        };
        let password = value("privateKeyPassphraseHandler.options.password");
        let versions = match (self.no_tls12, self.no_tls13) {
            (false, false) => TlsVersions::Both,
            (false, true) => TlsVersions::Only12,
            (true, false) => TlsVersions::Only13,
            (true, true) => return Err("disableProtocols leaves no version of TLS".to_owned()),
        };
        Ok(PeerTls {
            mode: TlsMode::Required,
            key_store: Store {
                path: path("privateKeyFile", "this member's key")?,
                password: password.map(|text| Password::Text(Secret::new(text))),
            },
            certificates: Some(path("certificateFile", "this member's certificate")?),
            trust_store: Store { path: path("caConfig", "the certificates to trust")?, password: None },
            verify_called: self.verify_called,
            verify_callers: self.verify_callers,
            versions,
            cipher_suites: None,
        })
    }
}
