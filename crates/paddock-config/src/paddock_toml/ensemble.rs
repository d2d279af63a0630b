//! `[ensemble]`, with `[ensemble.tls]`, and `[[ensemble.member]]`. A key that is not known here is refused: to pass over half of what is said of
//! an ensemble is worse than not to start.

use std::ops::RangeInclusive;

use paddock_proto::MemberNumber;
use paddock_server::{ClientAddress, Ensemble, EnsembleMember, Role};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::ensemble::{self, Named, OwnNumber};
use super::super::remark::{ConfigError, Location, Remarks};
use super::super::value::{self, Value};
use super::file::{File, Item, boolean, each_key};
use super::tls;

const ENSEMBLE: &str = "ensemble";
const KEYS: &[&str] = &[
    "member",
    "listen_on_all_addresses",
    "reconfig_enabled",
    "linearizable_reads",
    "lease_clock_bound_ms",
    "tls",
];
const MEMBER: &str = "ensemble.member";
const MEMBER_KEYS: &[&str] =
    &["id", "host", "quorum_port", "election_port", "role", "client_address", "client_port"];
const QUORUM_PORT: u16 = 2888;
const ELECTION_PORT: u16 = 3888;
/// A lease is shorter by this time, and lasts less than a second.
const CLOCK_BOUND_MS: RangeInclusive<i64> = 0..=500;
const A_CLOCK_BOUND: &str = "a number of milliseconds from 0 to 500";

#[derive(Debug)]
pub(super) struct Table {
    place: Location,
    named: Vec<Named>,
    /// All but its members.
    settings: Ensemble,
}

impl Table {
    pub(super) fn read(
        file: &File<'_>,
        place: Location,
        value: &Spanned<DeValue<'_>>,
        remarks: &mut Remarks,
    ) -> Result<Table, ConfigError> {
        let Some(table) = value.get_ref().as_table() else {
            return Err(place.fault("ensemble: expected a table [ensemble] or [[ensemble.member]]"));
        };
        let mut found = Table { place, named: Vec::new(), settings: Ensemble::default() };
        let settings = &mut found.settings;
        each_key(file, table, (ENSEMBLE, KEYS), remarks, |setting, remarks| {
            let (place, item) = (&setting.place, &setting.item);
            let named = |what: String| setting.fault(what);
            match setting.key {
                "member" => found.named = members(file, place, setting.value, remarks)?,
                "listen_on_all_addresses" => {
                    settings.listen_on_all_addresses = boolean(item).map_err(named)?;
                }
                "reconfig_enabled" => settings.reconfig_enabled = boolean(item).map_err(named)?,
                "linearizable_reads" => settings.linearizable_reads = boolean(item).map_err(named)?,
                "lease_clock_bound_ms" => {
                    let bound = value::number(item, CLOCK_BOUND_MS, A_CLOCK_BOUND);
                    settings.lease_clock_bound_ms = Some(bound.map_err(named)?);
                }
                "tls" => settings.tls = Some(tls::read(file, place, setting.value, remarks)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// The ensemble, and the member of it that `own` is.
    pub(super) fn settle(
        self,
        own: Option<&OwnNumber>,
        remarks: &mut Remarks,
    ) -> Result<(Ensemble, Named), ConfigError> {
        if ensemble::voters(&self.named) == 0 {
            return Err(self.place.fault("ensemble: there is no participant"));
        }
        let Some(own) = own else {
            let numbers = ensemble::numbers(&self.named);
            let what = format!(
                "member is missing; say there, or by ZOO_MY_ID, which of the members {numbers} this is"
            );
            return Err(self.place.whole().fault(what));
        };
        ensemble::settle(self.named, own, &self.place, self.settings, remarks)
    }
}

fn members(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    remarks: &mut Remarks,
) -> Result<Vec<Named>, ConfigError> {
    let malformed = || place.clone().fault(format!("{MEMBER}: expected tables [[{MEMBER}]]"));
    let list = value.get_ref().as_array().ok_or_else(malformed)?;
    let (mut members, mut outcome) = (Vec::new(), Ok(()));
    for value in list {
        let table = value.get_ref().as_table().ok_or_else(malformed)?;
        match member(file, file.place(value.span().start), table, remarks) {
            Ok(member) => members.push(member),
            Err(fault) => {
                remarks.note(std::mem::replace(&mut outcome, Err(fault)));
            }
        }
    }
    outcome.map(|()| members)
}

fn member(
    file: &File<'_>,
    place: Location,
    table: &DeTable<'_>,
    remarks: &mut Remarks,
) -> Result<Named, ConfigError> {
    let mut draft = TomlEnsemble::default();
    each_key(file, table, (MEMBER, MEMBER_KEYS), remarks, |setting, _| {
        draft.set(setting.key, &setting.item).map_err(|what| setting.fault(what))
    })?;
    // Members listen at one port, and clients are told of the other: one that was not named cannot be taken.
    let has_one_port = draft.election_port.is_none();
    let member = draft.finish().map_err(|what| place.clone().fault(format!("{MEMBER}: {what}")))?;
    Ok(Named { place, name: MEMBER.to_owned(), member, has_one_port })
}

#[derive(Default)]
struct TomlEnsemble {
    id: Option<MemberNumber>,
    host: Option<String>,
    quorum_port: Option<u16>,
    election_port: Option<u16>,
    role: Option<Role>,
    client_address: Option<String>,
    client_port: Option<u16>,
}

impl TomlEnsemble {
    /// Takes a setting, unless its key is not known.
    fn set(&mut self, key: &str, value: &Item<'_>) -> Result<bool, String> {
        match key {
            "id" => self.id = Some(value::number(value, value::MEMBER, value::A_MEMBER)?),
            "host" => self.host = Some(value::host(value)?),
            "quorum_port" => self.quorum_port = Some(port(value)?),
            "election_port" => self.election_port = Some(port(value)?),
            "role" => self.role = Some(role(value)?),
            "client_address" => self.client_address = Some(value::host(value)?),
            "client_port" => self.client_port = Some(port(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self) -> Result<EnsembleMember, String> {
        let address = self.client_address;
        let client = match (self.client_port, &address) {
            (Some(port), _) => Some(ClientAddress { address, port }),
            (None, Some(_)) => return Err("client_port is missing beside client_address".to_owned()),
            (None, None) => None,
        };
        let quorum_port = self.quorum_port.unwrap_or(QUORUM_PORT);
        let next = quorum_port.checked_add(ELECTION_PORT - QUORUM_PORT).unwrap_or(quorum_port);
        let election_port = self.election_port.unwrap_or(next);
        Ok(EnsembleMember {
            id: self.id.ok_or("id is missing")?,
            host: self.host.ok_or("host is missing")?,
            quorum_port,
            election_port,
            role: self.role.unwrap_or(Role::Participant),
            client,
        })
    }
}

fn port(value: &Item<'_>) -> Result<u16, String> {
    value::number(value, value::PORT, value::A_PORT)
}

fn role(value: &Item<'_>) -> Result<Role, String> {
    match value.text() {
        Some("participant") => Ok(Role::Participant),
        Some("observer") => Ok(Role::Observer),
        _ => Err(value::wrong("\"participant\" or \"observer\"", value)),
    }
}
