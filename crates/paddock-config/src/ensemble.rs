//! Rules that an ensemble must keep, whatever file names its members.

use std::net::{IpAddr, SocketAddr};

use paddock_proto::MemberNumber;
use paddock_server::{ClientAddress, Ensemble, EnsembleMember, LateNames, Role};

use super::origins::MEMBERS;
use super::remark::{ConfigError, Location, Remarks};
use super::value;

/// A member as a file names it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) place: Location,
    /// Name of the member in the file: `server.2`.
    pub(super) name: String,
    pub(super) member: EnsembleMember,
    /// True if its peers know one port of it only, so that the port for elections says nothing.
    pub(super) has_one_port: bool,
}

impl Named {
    pub(super) fn fault(&self, what: impl AsRef<str>) -> ConfigError {
        self.place.clone().fault(format!("{}: {}", self.name, what.as_ref()))
    }
}

/// This member's own number, and where it is said.
#[derive(Clone, Debug)]
pub(super) struct OwnNumber {
    pub(super) place: Location,
    pub(super) number: MemberNumber,
}

/// Puts the members in order and refuses a number or an address that is given twice.
pub(super) fn sort(members: &mut [Named]) -> Result<(), ConfigError> {
    let mut used: Vec<Use> = Vec::new();
    for (at, named) in members.iter().enumerate() {
        let id = named.member.id;
        if let Some(earlier) = members[..at].iter().find(|earlier| earlier.member.id == id) {
            let what = format!(
                "member {id} is {} at {} already; give each its own number",
                earlier.name, earlier.place
            );
            return Err(named.fault(what));
        }
        for new in uses(named) {
            if let Some(earlier) = used.iter().find(|earlier| new.meets(earlier)) {
                return Err(named.fault(format!("its {new} is the {earlier} of member {}", earlier.id)));
            }
            used.push(new);
        }
    }
    members.sort_by_key(|named| named.member.id);
    Ok(())
}

/// The ensemble of these members, with what is said of it as a whole, and the member of it that `own` is.
pub(super) fn settle(
    mut members: Vec<Named>,
    own: &OwnNumber,
    place: &Location,
    settings: Ensemble,
    remarks: &mut Remarks,
) -> Result<(Ensemble, Named), ConfigError> {
    sort(&mut members)?;
    let own = self::own(&members, own)?.member.id;
    if members.len() > 1 {
        remark_on_voters(&members, place, remarks);
        remark_on_hosts(&members, own, remarks);
    }
    note_origins(&members, remarks);
    let ensemble =
        Ensemble { members: members.iter().map(|named| named.member.clone()).collect(), ..settings };
    let own = members.into_iter().find(|named| named.member.id == own);
    Ok((ensemble, own.expect("it was found among them just now")))
}

/// Notes where each member is named.
pub(super) fn note_origins(members: &[Named], remarks: &mut Remarks) {
    for Named { place, name, member, .. } in members {
        remarks.origins.note(&format!("{MEMBERS}{}", member.id), format_args!("{place}: {name}"));
    }
}

/// A port of a host, and its purpose.
struct Use {
    id: MemberNumber,
    purpose: &'static str,
    host: String,
    port: u16,
}

impl Use {
    fn meets(&self, other: &Use) -> bool {
        self.port == other.port && self.host.eq_ignore_ascii_case(&other.host)
    }
}

impl std::fmt::Display for Use {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Use { purpose, host, port, .. } = self;
        if host.contains(':') {
            write!(f, "{purpose} [{host}]:{port}")
        } else {
            write!(f, "{purpose} {host}:{port}")
        }
    }
}

fn uses(Named { member, has_one_port, .. }: &Named) -> Vec<Use> {
    let of = |purpose, host: &str, port| Use { id: member.id, purpose, host: host.to_owned(), port };
    let mut uses = vec![of("quorum address", &member.host, member.quorum_port)];
    if !has_one_port {
        uses.push(of("election address", &member.host, member.election_port));
    }
    if let Some(ClientAddress { address: Some(address), port }) = &member.client {
        // Every machine has such addresses of its own.
        let is_local = address.eq_ignore_ascii_case("localhost")
            || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback() || ip.is_unspecified());
        if !is_local {
            uses.push(of("client address", address, *port));
        }
    }
    uses
}

/// Number of members with a vote.
pub(super) fn voters(members: &[Named]) -> usize {
    members.iter().filter(|named| named.member.role == Role::Participant).count()
}

/// Warns of an ensemble that is weaker than its operator may think.
pub(super) fn remark_on_voters(members: &[Named], place: &Location, remarks: &mut Remarks) {
    let voters = voters(members);
    if voters == 2 {
        let what = "two participants serve only while both are up; a third lets one of them fail";
        remarks.push(place.clone().warning(what));
    } else if voters > 0 && voters.is_multiple_of(2) {
        let what =
            format!("{voters} participants bear no more failures than {}; have an odd number", voters - 1);
        remarks.push(place.clone().warning(what));
    }
}

/// Warns of members that only a process on their own machine can reach.
pub(super) fn remark_on_hosts(members: &[Named], own: MemberNumber, remarks: &mut Remarks) {
    for named in members.iter().filter(|named| named.member.id != own) {
        let host = &named.member.host;
        if host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified()) {
            let what =
                format!("{}: {host} is not an address at which another member can be reached", named.name);
            remarks.push(named.place.clone().warning(what));
        }
    }
}

pub(super) fn own<'a>(members: &'a [Named], number: &OwnNumber) -> Result<&'a Named, ConfigError> {
    members.iter().find(|named| named.member.id == number.number).ok_or_else(|| {
        let what = format!(
            "this is member {}, but the members are {}; correct this number, or name member {0} among them",
            number.number,
            numbers(members)
        );
        let members = members.iter().map(|named| named.member.clone()).collect();
        number.place.clone().fault(what).with_members(members)
    })
}

/// `1, 2 and 3`
pub(super) fn numbers(members: &[Named]) -> String {
    let numbers: Vec<String> = members.iter().map(|named| named.member.id.to_string()).collect();
    match numbers.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => numbers.concat(),
    }
}

/// The address where this member's clients connect, if that is said of it. `otherwise` stands in for an address that is not.
pub(super) fn listen(
    client: &ClientAddress,
    otherwise: IpAddr,
    late: &mut LateNames,
) -> Result<SocketAddr, String> {
    let address = client.address.as_deref();
    let address = address.map_or(Ok(otherwise), |host| value::host_address(host, late))?;
    Ok(SocketAddr::new(address, client.port))
}
