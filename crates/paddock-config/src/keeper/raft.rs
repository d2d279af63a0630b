//! `raft_configuration`: who belongs to the ensemble. A key that is not known here is refused: to pass over half of what
//! is said of an ensemble is worse than not to start.

use paddock_proto::MemberNumber;
use paddock_server::{Ensemble, EnsembleMember, Role};
use paddock_yaml::{Entry, Value};

use super::super::ensemble::{self, Named, OwnNumber};
use super::super::remark::{ConfigError, Location, Remarks};
use super::super::source::Line;
use super::super::value::{self, Text};
use super::settings::{File, entries};
use super::values;

pub(super) const SECTION: &str = "raft_configuration";
const SERVER: &str = "raft_configuration.server";

#[derive(Debug, Default)]
pub(super) struct Raft {
    is_secure: bool,
    named: Vec<Named>,
}

impl Raft {
    pub(super) fn read(
        &mut self,
        file: &File<'_>,
        section: &Entry,
        remarks: &mut Remarks,
    ) -> Result<(), ConfigError> {
        for entry in entries(&section.value) {
            match entry.key.as_str() {
                "secure" => {
                    for line in file.settings("raft_configuration.secure", entry)? {
                        self.is_secure =
                            values::boolean(&Text(&line.value)).map_err(|what| line.fault(what))?;
                    }
                }
                key if key.starts_with("server") => match &entry.value.value {
                    Value::Sequence(items) => {
                        for item in items {
                            let server = Entry { key: key.to_owned(), line: item.line, value: item.clone() };
                            self.named.push(member(file, &server, remarks)?);
                        }
                    }
                    _ => self.named.push(member(file, entry, remarks)?),
                },
                key => return Err(unknown(file.place(entry.line), &format!("{SECTION}.{key}"))),
            }
        }
        Ok(())
    }

    pub(super) fn has_peers(&self) -> bool {
        self.named.len() > 1
    }

    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The ensemble; none for a member alone.
    pub(super) fn settle(
        self,
        own: Option<OwnNumber>,
        place: &Location,
        settings: Ensemble,
        remarks: &mut Remarks,
    ) -> Result<Option<Ensemble>, ConfigError> {
        if self.named.is_empty() {
            return Ok(None);
        }
        let Some(own) = own else {
            let numbers = ensemble::numbers(&self.named);
            let what =
                format!("keeper_server.server_id is missing; say which of the members {numbers} this is");
            return Err(place.clone().fault(what));
        };
        if !self.has_peers() {
            return ensemble::own(&self.named, &own).map(|_| None);
        }
        if ensemble::voters(&self.named) == 0 {
            return Err(place.clone().fault(format!("{SECTION}: no member can become leader")));
        }
        ensemble::settle(self.named, &own, place, settings, remarks).map(|(ensemble, _)| Some(ensemble))
    }
}

#[derive(Default)]
struct RaftDraft {
    id: Option<MemberNumber>,
    host: Option<String>,
    port: Option<u16>,
    is_learner: bool,
}

fn member(file: &File<'_>, entry: &Entry, remarks: &mut Remarks) -> Result<Named, ConfigError> {
    let mut draft = RaftDraft::default();
    for line in file.settings(SERVER, entry)? {
        let value = Text(&line.value);
        let known = draft.set(&line, &value, remarks).map_err(|what| line.fault(what))?;
        if !known {
            return Err(unknown(line.place, &line.key));
        }
    }
    let place = file.place(entry.line);
    let member = draft.finish().map_err(|what| place.clone().fault(format!("{SERVER}: {what}")))?;
    Ok(Named { place, name: SERVER.to_owned(), member, has_one_port: true })
}

impl RaftDraft {
    /// Takes a setting, unless its key is not known.
    fn set(&mut self, line: &Line, value: &Text<'_>, remarks: &mut Remarks) -> Result<bool, String> {
        let key = line.key.strip_prefix(SERVER).and_then(|rest| rest.strip_prefix('.'));
        match key.unwrap_or_default() {
            "id" => self.id = Some(value::number(value, value::MEMBER, value::A_MEMBER)?),
            "hostname" => self.host = Some(host(value)?),
            "port" => self.port = Some(value::number(value, value::PORT, value::A_PORT)?),
            "can_become_leader" => self.is_learner = !values::boolean(value)?,
            "priority" => remarks.push(line.changes_nothing("every participant may lead")),
            "start_as_follower" => remarks.push(line.changes_nothing("who leads is elected")),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A member of ClickHouse Keeper has one port for all that its peers say.
    fn finish(self) -> Result<EnsembleMember, String> {
        let port = self.port.ok_or("port is missing")?;
        Ok(EnsembleMember {
            id: self.id.ok_or("id is missing")?,
            host: self.host.ok_or("hostname is missing")?,
            quorum_port: port,
            election_port: port,
            role: if self.is_learner { Role::Observer } else { Role::Participant },
            client: None,
        })
    }
}

fn host(value: &Text<'_>) -> Result<String, String> {
    let bare = value.0.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(value.0);
    value::host(&Text(bare))
}

fn unknown(place: Location, key: &str) -> ConfigError {
    place.fault(format!("{key} is not a setting that Paddock knows"))
}
