//! The ensemble of a `zoo.cfg`: the server lines, and the keys that count between members only.
//!
//! An ensemble is known for one only when everything has been read, so the keys wait here until then. As in
//! ZooKeeper, one server line is a member alone, unless `standaloneEnabled` is false.

use paddock_proto::MemberNumber;
use paddock_server::{Ensemble, EnsembleMember, Role};

use super::ensemble::{self, Named, OwnNumber};
use super::known_keys::{self, Fixed};
use super::remark::{ConfigError, Location, Remark, Remarks};
use super::source::Line;
use super::value::{self, Text};
use super::zoo_keys::{BETWEEN_MEMBERS, NO_PEERS};
use super::zoo_quorum::{self, QuorumKey};
use super::zoo_tls::ZooTls;
use super::zoo_values;

#[derive(Debug, Default)]
pub(super) struct ZooServers {
    named: Vec<Named>,
    alone_disabled: bool,
    listen_on_all_addresses: bool,
    reconfig_enabled: bool,
    peer_type: Option<(Location, Role)>,
    quorum: Vec<QuorumKey>,
    tls: ZooTls,
    between_members: Vec<(Line, &'static Fixed)>,
}

/// The outcome of the server lines.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) member: MemberNumber,
    /// The place where this member's number is said, if it is.
    pub(super) member_place: Option<Location>,
    /// The line that counts for this member.
    pub(super) own: Option<Named>,
    pub(super) ensemble: Option<Ensemble>,
}

impl ZooServers {
    /// Takes a line, unless it says something else.
    pub(super) fn take(&mut self, line: &Line, remarks: &mut Remarks) -> Result<bool, ConfigError> {
        if let Some(number) = line.key.strip_prefix("server.") {
            self.take_server(line, number, remarks)?;
            return Ok(true);
        }
        if line.key.starts_with("group.") || line.key.starts_with("weight.") {
            self.quorum.push(QuorumKey::new(line));
            return Ok(true);
        }
        if self.tls.take(line) {
            return Ok(true);
        }
        if let Some(fixed) = known_keys::find(BETWEEN_MEMBERS, &line.key) {
            self.between_members.push((line.clone(), fixed));
            return Ok(true);
        }
        self.set(line).map_err(|what| line.fault(what))
    }

    fn set(&mut self, line: &Line) -> Result<bool, String> {
        let value = Text(&line.value);
        match line.key.as_str() {
            "standaloneEnabled" => self.alone_disabled = !zoo_values::boolean(&value)?,
            "quorumListenOnAllIPs" => self.listen_on_all_addresses = zoo_values::boolean(&value)?,
            "reconfigEnabled" => self.reconfig_enabled = zoo_values::boolean(&value)?,
            "peerType" => {
                self.peer_type =
                    Some((line.place.clone(), Role::parse(value.0).map_err(|wrong| wrong.to_string())?))
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_server(&mut self, line: &Line, number: &str, remarks: &mut Remarks) -> Result<(), ConfigError> {
        let id = value::number(&Text(number), value::MEMBER, value::A_MEMBER)
            .map_err(|what| line.fault(format!("{what} after server.")))?;
        let (member, more_addresses) =
            EnsembleMember::parse(id, &line.value).map_err(|wrong| line.fault(wrong.to_string()))?;
        if let Some(earlier) = &line.earlier {
            let what = format!("it was given at {earlier} too; the last one counts, as in ZooKeeper");
            remarks.push(line.warning(what));
        }
        if more_addresses > 0 {
            let first = &member.host;
            remarks.push(line.warning(format!("of its addresses only the first, {first}, is used")));
        }
        let (place, name) = (line.place.clone(), line.key.clone());
        self.named.push(Named { place, name, member, has_one_port: false });
        Ok(())
    }

    /// The first server line.
    pub(super) fn first(&self) -> Option<&Named> {
        self.named.first()
    }

    /// `own` is this member's number, if it is said; `missing` is the fault if it must be.
    pub(super) fn settle(
        mut self,
        own: Option<OwnNumber>,
        place: &Location,
        missing: impl FnOnce(String) -> ConfigError,
        remarks: &mut Remarks,
    ) -> Result<Settled, ConfigError> {
        ensemble::sort(&mut self.named)?;
        self.check_voters()?;
        if self.is_alone() {
            return Ok(self.settle_alone(own, remarks));
        }
        let place_of_own = own.as_ref().map(|own| own.place.clone());
        let member = match (own, self.named.as_slice()) {
            (Some(own), named) => ensemble::own(named, &own)?.member.id,
            (None, [only]) => only.member.id,
            (None, named) => return Err(missing(ensemble::numbers(named))),
        };
        self.check_keys(member, remarks)?;
        if self.named.len() > 1 {
            ensemble::remark_on_voters(&self.named, place, remarks);
            ensemble::remark_on_hosts(&self.named, member, remarks);
        }
        let tls = self.tls.settle(remarks)?;
        let ensemble = Ensemble {
            members: self.named.iter().map(|named| named.member.clone()).collect(),
            listen_on_all_addresses: self.listen_on_all_addresses,
            reconfig_enabled: self.reconfig_enabled,
            tls,
            ..Ensemble::default()
        };
        ensemble::note_origins(&self.named, remarks);
        let own = self.named.into_iter().find(|named| named.member.id == member);
        let member_place = place_of_own.or_else(|| own.as_ref().map(|own| own.place.clone()));
        Ok(Settled { member, member_place, own, ensemble: Some(ensemble) })
    }

    fn check_voters(&self) -> Result<(), ConfigError> {
        let voters = ensemble::voters(&self.named);
        match self.named.iter().find(|named| named.member.role == Role::Observer) {
            Some(observer) if voters == 0 => {
                Err(observer.fault("there is no participant; observers alone have no votes"))
            }
            Some(observer) if voters == 1 && !self.alone_disabled => Err(observer.fault(
                "one participant is a member alone and has no observers; set standaloneEnabled=false",
            )),
            _ => Ok(()),
        }
    }

    /// True if these lines are those of a member alone.
    pub(super) fn is_alone(&self) -> bool {
        self.named.is_empty() || (self.named.len() == 1 && !self.alone_disabled)
    }

    fn settle_alone(mut self, own: Option<OwnNumber>, remarks: &mut Remarks) -> Settled {
        let unused = self.between_members.iter().map(|(line, _)| (&line.place, line.key.as_str()));
        let unused = unused.chain(self.peer_type.iter().map(|(place, _)| (place, "peerType")));
        let unused = unused.chain(self.tls.lines().map(|line| (&line.place, line.key.as_str())));
        let unused = unused.chain(self.quorum.iter().map(|key| (&key.place, key.name.as_str())));
        remarks.extend(unused.map(|(place, key)| unused_detail(place, key)));
        let server = self.named.pop();
        if let (Some(own), Some(server)) = (&own, &server)
            && own.number != server.member.id
        {
            let what = format!("{} says {}, which counts", own.place.source(), own.number);
            remarks.push(server.place.clone().warning(format!("{}: {what}", server.name)));
        }
        let said = own.map(|own| (own.number, own.place));
        let said = said.or(server.as_ref().map(|server| (server.member.id, server.place.clone())));
        let (member, member_place) = said.map_or((1, None), |(number, place)| (number, Some(place)));
        Settled { member, member_place, own: server, ensemble: None }
    }

    /// Remarks on keys that can only be judged now that there is an ensemble.
    fn check_keys(&self, own: MemberNumber, remarks: &mut Remarks) -> Result<(), ConfigError> {
        zoo_quorum::check(&self.quorum, &self.named, remarks)?;
        for (line, fixed) in &self.between_members {
            remarks.extend(fixed.remark_on(line)?);
        }
        let own = self.named.iter().find(|named| named.member.id == own);
        if let (Some((place, role)), Some(own)) = (&self.peer_type, own)
            && *role != own.member.role
        {
            // All members must agree on who votes, and the others know this line only.
            let what = format!("peerType: {} at {} says otherwise, which counts", own.name, own.place);
            remarks.push(place.clone().warning(what));
        }
        Ok(())
    }
}

fn unused_detail(place: &Location, key: &str) -> Remark {
    place.clone().detail(format!("{key} changes nothing: {NO_PEERS}"))
}

#[cfg(test)]
mod tests;
