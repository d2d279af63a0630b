//! Members of the ensemble as clients write them and as `/zookeeper/config` shows them.

use std::fmt::Write as _;

use paddock_proto::{EnsembleMember, MEMBER_NUMBER_MAX, MemberNumber, MemberRole, Reconfig};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ensemble {
    /// Tells this ensemble from all others; never 0.
    pub cluster: u64,
    /// By rising id.
    pub members: Vec<EnsembleMember>,
    /// The zxid of the write that brought these members about.
    pub version: i64,
    /// The members to be, while a change is under way.
    pub target: Option<Vec<EnsembleMember>>,
}

impl Ensemble {
    /// The members that are, and those to be.
    pub fn all_members(&self) -> impl Iterator<Item = &EnsembleMember> {
        self.members.iter().chain(self.target.iter().flatten())
    }

    /// The members that the leader has to bring about.
    pub fn wanted(&self) -> &[EnsembleMember] {
        self.target.as_ref().unwrap_or(&self.members)
    }

    /// Digest of the members and their addresses.
    pub fn members_digest(&self) -> u64 {
        members_digest(&self.members)
    }

    /// Data of `/zookeeper/config`.
    pub fn text(&self) -> String {
        let mut text = lines(&self.members);
        let _ = write!(text, "version={:x}", self.version);
        text
    }

    pub(crate) fn digest(&self) -> u64 {
        let target = self.target.as_deref().map(lines);
        xxh3_64(format!("{}\n{}\n{target:?}", self.cluster, self.text()).as_bytes())
    }
}

/// Digest of the members in these lines, and of their addresses; `None` if the lines name no member, or cannot be read.
pub fn digest_of_members(lines: &str) -> Option<u64> {
    let members = parse_members(lines).filter(|members| !members.is_empty())?;
    Some(members_digest(&members))
}

fn members_digest(members: &[EnsembleMember]) -> u64 {
    xxh3_64(lines(members).as_bytes())
}

/// One line for each member, as `server.N` lines are written.
pub fn lines(members: &[EnsembleMember]) -> String {
    members.iter().fold(String::new(), |mut text, member| {
        let _ = writeln!(text, "{member}");
        text
    })
}

/// The members of lines, or of parts between commas; `None` if one cannot be read or stands there twice.
pub fn parse_members(text: &str) -> Option<Vec<EnsembleMember>> {
    let mut members = real_members(read_members(text, Present(&[]))?)?;
    members.sort_by_key(|member| member.id);
    Some(members)
}

/// A member as a client writes it, whose id may be any number, as ZooKeeper takes any. Until it is known to be one that members have
/// here the member itself has no other.
pub(crate) type Written = (i64, EnsembleMember);

/// Members as they are, by which what is asked for is read.
#[derive(Clone, Copy)]
struct Present<'a>(&'a [EnsembleMember]);

fn read_members(text: &str, present: Present<'_>) -> Option<Vec<Written>> {
    let mut members = Vec::new();
    for line in parts(text).filter(|line| !line.starts_with("version=")) {
        let member = present.read(line)?;
        if members.iter().any(|(id, _)| *id == member.0) {
            return None;
        }
        members.push(member);
    }
    Some(members)
}

/// `None` if one has an id that no member can have here.
pub(crate) fn real_members(written: Vec<Written>) -> Option<Vec<EnsembleMember>> {
    let is_real = |id: i64| (0..=MEMBER_NUMBER_MAX.into()).contains(&id);
    written.into_iter().map(|(id, member)| is_real(id).then_some(member)).collect()
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty())
}

impl Present<'_> {
    /// `server.ID=…`, in ZooKeeper's form or in ClickHouse Keeper's. The latter has no place for the client address and the second
    /// port, so a member that it names again as it is keeps its own.
    fn read(self, line: &str) -> Option<Written> {
        let (key, value) = line.split_once('=')?;
        let id: i64 = key.trim().strip_prefix("server.")?.parse().ok()?;
        let (number, value) = (MemberNumber::try_from(id).unwrap_or(0), value.trim());
        if let Ok((member, _)) = EnsembleMember::parse(number, value) {
            return Some((id, member));
        }
        let mut member = EnsembleMember::parse_of_keeper(number, value)?;
        let is_same = |other: &&EnsembleMember| {
            i64::from(other.id) == id && other.host == member.host && other.quorum_port == member.quorum_port
        };
        if let Some(same) = self.0.iter().find(is_same) {
            (member.election_port, member.client) = (same.election_port, same.client.clone());
        }
        Some((id, member))
    }

    /// True if a member may join as this line says. As ZooKeeper insists, it says where its clients connect, unless it has the form of
    /// ClickHouse Keeper or the members that are there do not say it either.
    fn may_join(self, line: &str, (_, member): &Written) -> bool {
        member.client.is_some() || is_of_keeper(line) || self.0.iter().any(|present| present.client.is_none())
    }
}

fn is_of_keeper(line: &str) -> bool {
    line.split_once('=').is_some_and(|(_, value)| EnsembleMember::parse_of_keeper(0, value.trim()).is_some())
}

/// The members that a request asks for, by ZooKeeper's rules, by rising id; `None` for a request that makes no sense.
pub(crate) fn members_asked_for(members: &[EnsembleMember], asked: &Reconfig<'_>) -> Option<Vec<Written>> {
    let present = Present(members);
    let mut target = match asked.new_members {
        Some(all) => read_members(all, present)?,
        None => {
            let mut next: Vec<Written> =
                members.iter().map(|member| (member.id.into(), member.clone())).collect();
            for id in parts(asked.leaving.unwrap_or_default()) {
                let id: i64 = id.parse().ok()?;
                next.retain(|(other, _)| *other != id);
            }
            for line in parts(asked.joining.unwrap_or_default()) {
                let member = present.read(line).filter(|member| present.may_join(line, member))?;
                next.retain(|(other, _)| *other != member.0);
                next.push(member);
            }
            next
        }
    };
    target.sort_by_key(|(id, _)| *id);
    let has_voter = target.iter().any(|(_, member)| member.role == MemberRole::Participant);
    let asks = [asked.joining, asked.new_members].into_iter().flatten();
    let one_port = members.iter().any(has_one_port) || asks.flat_map(parts).any(is_of_keeper);
    (has_voter && !addresses_meet(&target, one_port)).then_some(target)
}

fn has_one_port(member: &EnsembleMember) -> bool {
    member.quorum_port == member.election_port
}

/// True if two members have one address, or two purposes of one member do. The latter may be if `one_port`, as it is among members
/// that ClickHouse Keeper's form has named.
fn addresses_meet(members: &[Written], one_port: bool) -> bool {
    let ports = |member: &EnsembleMember| {
        let second = (!one_port || !has_one_port(member)).then_some(member.election_port);
        [Some(member.quorum_port), second].into_iter().flatten()
    };
    let mut addresses: Vec<(&str, u16)> = members
        .iter()
        .flat_map(|(_, member)| ports(member).map(|port| (member.host.as_str(), port)))
        .collect();
    let count = addresses.len();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.len() < count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(joining: Option<&'a str>, leaving: Option<&'a str>, all: Option<&'a str>) -> Reconfig<'a> {
        Reconfig { joining, leaving, new_members: all, version: -1 }
    }

    /// `expected` is where a request leads to: nowhere if it makes no sense, or no member can have one of the ids.
    #[track_caller]
    fn check(asked: Reconfig<'_>, expected: Option<&str>) {
        check_from("server.1=a:1:2;9\nserver.2=b:1:2;9", asked, expected);
    }

    #[track_caller]
    fn check_from(members: &str, asked: Reconfig<'_>, expected: Option<&str>) {
        let members = parse_members(members).unwrap();
        let target = members_asked_for(&members, &asked).and_then(real_members);
        let target = target.map(|members| lines(&members).replace('\n', " "));
        assert_eq!(target.as_deref().map(str::trim_end), expected);
    }

    const A: &str = "server.1=a:1:2:participant;0.0.0.0:9";
    const B: &str = "server.2=b:1:2:participant;0.0.0.0:9";

    #[test]
    fn members_join_and_leave() {
        let c = "server.3=c:1:2:observer;0.0.0.0:9";
        check(asked(Some("server.3=c:1:2:observer;9"), None, None), Some(&format!("{A} {B} {c}")));
        check(asked(Some("server.3=c:1:2:observer;9"), Some("1,2,7"), None), None);
        check(asked(Some("server.2=b:1:2:observer;9"), Some("1"), None), None);
        check(asked(None, Some("1, 7"), None), Some(B));
        check(asked(None, None, Some("server.2=b:1:2;9,server.1=a:1:2;9")), Some(&format!("{A} {B}")));
        check(asked(None, None, Some("server.2=b:1:2;9\nversion=3")), Some(B));
    }

    /// Ports of ClickHouse Keeper's members are equal, and nothing says where their clients connect.
    #[test]
    fn members_of_a_keeper_join_and_leave() {
        let all = "server.1=a:1:1:participant server.2=b:1:1:participant server.3=c:1:1:observer";
        let two = "server.1=a:1:1:participant server.2=b:1:1:participant";
        let lines = all.replace(' ', "\n");
        check_from(&lines, asked(None, Some("3"), None), Some(two));
        check_from(&lines, asked(None, None, Some(&lines)), Some(all));
        check_from(&two.replace(' ', "\n"), asked(Some("server.3=c:1:1:observer"), None, None), Some(all));
        let shown = "server.1=a:1;participant;1\nserver.2=b:1;participant;1\nserver.3=c:1;learner;1\n";
        check_from(&lines, asked(None, None, Some(shown)), Some(all));
        check_from(&lines, asked(Some(shown), None, None), Some(all));
        check_from(&two.replace(' ', "\n"), asked(Some("server.3=c:1;learner"), None, None), Some(all));
        check_from(&lines, asked(Some("server.4=c:1"), None, None), None);
        check_from(&lines, asked(Some("server.4=d:1:1,server.5=d:1:1"), None, None), None);
    }

    #[test]
    fn what_keeper_config_shows_changes_nothing_of_members_with_more() {
        let shown = "server.1=a:1;participant;1\nserver.2=b:1;participant;1\n";
        check(asked(None, None, Some(shown)), Some(&format!("{A} {B}")));
        check(asked(Some(shown), None, None), Some(&format!("{A} {B}")));
        check(
            asked(Some("server.2=b:1;learner"), None, None),
            Some(&format!("{A} {}", B.replace("participant", "observer"))),
        );
        check(asked(Some("server.3=c:1"), None, None), Some(&format!("{A} {B} server.3=c:1:1:participant")));
    }

    #[test]
    fn what_zookeeper_config_shows_of_members_without_a_client_address_can_be_given_back() {
        let members = "server.1=a:1:2:participant\nserver.2=b:1:2:participant\n";
        let shown = format!("{members}version=7");
        let all = "server.1=a:1:2:participant server.2=b:1:2:participant";
        check_from(members, asked(None, None, Some(&shown)), Some(all));
        check_from(members, asked(Some(members), None, None), Some(all));
        check_from(members, asked(Some("server.2=b:1:1"), None, None), None);
    }

    #[test]
    fn the_digest_of_members_is_that_of_their_addresses() {
        let digest = digest_of_members(&format!("{B}\n{A}\n"));
        assert!(digest.is_some());
        let ensemble = Ensemble {
            cluster: 7,
            members: parse_members(&format!("{A}\n{B}")).unwrap(),
            version: 5,
            target: None,
        };
        assert_eq!(digest, Some(ensemble.members_digest()), "neither order nor version counts");
        assert_ne!(digest, digest_of_members(&format!("{A}\n{}", B.replace("=b", "=c"))));
        assert_eq!((digest_of_members(""), digest_of_members("server.1")), (None, None));
    }

    #[test]
    fn any_number_that_a_member_can_have_may_join() {
        for number in [0, 3, 256, 1001, MEMBER_NUMBER_MAX] {
            let joining = format!("server.{number}=c:1:2;9");
            let line = format!("server.{number}=c:1:2:participant;0.0.0.0:9");
            let expected = if number == 0 { format!("{line} {A} {B}") } else { format!("{A} {B} {line}") };
            check(asked(Some(&joining), None, None), Some(&expected));
            let members = format!("{A}\n{B}\n{line}");
            check_from(&members, asked(None, Some(&number.to_string()), None), Some(&format!("{A} {B}")));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for joining in
            ["server.3=c:1:2", "server.x=c:1:2;9", "server.3=a:2:3;9", "server.256=c:1:2:2;9", "c:1:2;9"]
        {
            check(asked(Some(joining), None, None), None);
        }
        for joining in ["server.-1=c:1:2;9", "server.2147483648=c:1:2;9"] {
            check(asked(Some(joining), None, None), None);
        }
        check(asked(None, Some("300"), None), Some(&format!("{A} {B}")));
        check(asked(None, Some("one"), None), None);
        check(asked(None, Some("1,2"), None), None);
        check(asked(None, None, Some("")), None);
        check(asked(None, None, Some("server.1=a:1:2;9,server.1=b:1:2;9")), None);
        check(asked(None, None, Some("server.1=a:1:1;9")), None);
    }
}
