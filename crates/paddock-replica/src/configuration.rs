//! Entries of the log that are about the ensemble itself, as those that change its membership, and log entries as the Raft library has them.

use bytes::Bytes;
use paddock_proto::jute::{Reader, Writer};
use paddock_tree::{FeatureLevel, RaisedLevel, Roster, UnknownLevel, member_lines, parse_members};
use raft::eraftpb::{Entry, EntryType, Message, MessageType};

use crate::batch::is_floor;
use crate::log_entry::{
    CHANGE, COMMANDS, COMMANDS_WITH_FLOOR, FOUNDING, GROUPS, LEVEL, PLACED_GROUPS, PROMOTION, REFOUNDING,
    ROSTER,
};
use crate::membership::{MembershipStep, StepTo};
use crate::{LogEntry, Membership};

/// An entry that is about the ensemble itself: most set or change the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigurationEntry {
    /// The first entry of a log: all members that begin an ensemble write the same one.
    Founding(Membership),
    /// One step from a membership to another.
    Change(MembershipStep),
    /// Written by a survivor of a lost quorum: whatever was said before, these take part, in an ensemble of another id.
    Refounding { membership: Membership, cluster: u64, members: String },
    /// All members know these features: they may be used from here on.
    Level(RaisedLevel),
    /// From here on there are `count` groups with the home group; these members begin those that are new. Each of those has
    /// `replicas` replicas, or one on each member if that is 0.
    Groups { count: u32, founders: Membership, replicas: u32 },
    /// In a group beside the home group: it comes to this roster, unless it has come to a later one.
    Roster(Roster),
    /// In the home group: all groups are prepared for the change of members whose roster has this number.
    Promotion { roster: u64 },
}

impl ConfigurationEntry {
    /// `None` for commands.
    pub(crate) fn decode(payload: &[u8]) -> Option<ConfigurationEntry> {
        let (kind, body) = payload.split_first()?;
        let is_one = matches!(
            *kind,
            FOUNDING | CHANGE | REFOUNDING | LEVEL | GROUPS | ROSTER | PROMOTION | PLACED_GROUPS
        );
        is_one.then(|| ConfigurationEntry::read(*kind, body).expect("what is in the log is whole"))
    }

    /// `None` for bytes that `encode` did not write.
    fn read(kind: u8, body: &[u8]) -> Option<ConfigurationEntry> {
        match kind {
            FOUNDING => Membership::decode(body).map(ConfigurationEntry::Founding),
            CHANGE => decode_step(body).map(ConfigurationEntry::Change),
            REFOUNDING => {
                let mut reader = Reader::new(body);
                let membership = reader.buffer().ok()?.and_then(Membership::decode).unwrap_or_default();
                let (cluster, members) = (reader.i64().ok()? as u64, reader.string().ok()?.to_owned());
                Some(ConfigurationEntry::Refounding { membership, cluster, members })
            }
            LEVEL => {
                let (level, since) = body.split_first_chunk::<2>()?;
                let level = FeatureLevel(u16::from_be_bytes(*level));
                let since = std::str::from_utf8(since).ok()?.to_owned();
                Some(ConfigurationEntry::Level(RaisedLevel { level, since }))
            }
            GROUPS => {
                let (count, founders) = body.split_first_chunk::<4>()?;
                let (count, founders) = (u32::from_be_bytes(*count), Membership::decode(founders)?);
                Some(ConfigurationEntry::Groups { count, founders, replicas: 0 })
            }
            PLACED_GROUPS => {
                let (count, body) = body.split_first_chunk::<4>()?;
                let (replicas, founders) = body.split_first_chunk::<4>()?;
                let [count, replicas] = [count, replicas].map(|number| u32::from_be_bytes(*number));
                let founders = Membership::decode(founders)?;
                Some(ConfigurationEntry::Groups { count, founders, replicas })
            }
            ROSTER => decode_roster(body).map(ConfigurationEntry::Roster),
            PROMOTION => {
                let roster = u64::from_be_bytes(body.try_into().ok()?);
                Some(ConfigurationEntry::Promotion { roster })
            }
            _ => None,
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            ConfigurationEntry::Founding(membership) => {
                out.push(FOUNDING);
                out.extend(membership.encode());
            }
            ConfigurationEntry::Change(step) => {
                out.push(CHANGE);
                out.extend(ConfigurationEntry::encode_step(step));
            }
            ConfigurationEntry::Refounding { membership, cluster, members } => {
                out.push(REFOUNDING);
                out.put_buffer(Some(&membership.encode()));
                out.put_i64(*cluster as i64);
                out.put_string(members);
            }
            ConfigurationEntry::Level(RaisedLevel { level, since }) => {
                out.push(LEVEL);
                out.extend_from_slice(&level.0.to_be_bytes());
                out.extend_from_slice(since.as_bytes());
            }
            ConfigurationEntry::Groups { count, founders, replicas } => {
                out.push(if *replicas == 0 { GROUPS } else { PLACED_GROUPS });
                out.extend_from_slice(&count.to_be_bytes());
                if *replicas > 0 {
                    out.extend_from_slice(&replicas.to_be_bytes());
                }
                out.extend(founders.encode());
            }
            ConfigurationEntry::Roster(roster) => {
                out.push(ROSTER);
                encode_roster(roster, &mut out);
            }
            ConfigurationEntry::Promotion { roster } => {
                out.push(PROMOTION);
                out.extend_from_slice(&roster.to_be_bytes());
            }
        }
        Bytes::from(out)
    }

    /// The body of a change: for each member its number and what it becomes.
    pub(crate) fn encode_step(step: &MembershipStep) -> Vec<u8> {
        let mut out = Vec::new();
        for (member, standing) in step {
            out.extend_from_slice(&member.to_le_bytes());
            out.push(match standing {
                StepTo::Voter => 1,
                StepTo::Learner => 2,
                StepTo::Removed => 3,
            });
        }
        out
    }
}

fn encode_roster(roster: &Roster, out: &mut Vec<u8>) {
    let Roster { number, cluster, members, target } = roster;
    out.put_i64(*number as i64);
    out.put_i64(*cluster as i64);
    out.put_string(&member_lines(members));
    out.put_bool(target.is_some());
    if let Some(target) = target {
        out.put_string(&member_lines(target));
    }
}

fn decode_roster(body: &[u8]) -> Option<Roster> {
    let mut reader = Reader::new(body);
    let (number, cluster) = (reader.i64().ok()? as u64, reader.i64().ok()? as u64);
    let members = parse_members(reader.string().ok()?)?;
    let has_target = reader.bool().ok()?;
    let target = if has_target { Some(parse_members(reader.string().ok()?)?) } else { None };
    reader.is_empty().then_some(Roster { number, cluster, members, target })
}

fn decode_step(body: &[u8]) -> Option<MembershipStep> {
    let (members, rest) = body.as_chunks::<9>();
    let decode = |[id @ .., standing]: &[u8; 9]| {
        let standing = match standing {
            1 => StepTo::Voter,
            2 => StepTo::Learner,
            3 => StepTo::Removed,
            _ => return None,
        };
        Some((u64::from_le_bytes(*id), standing))
    };
    let step = members.iter().map(decode).collect::<Option<MembershipStep>>()?;
    rest.is_empty().then_some(step)
}

/// True if an entry is a change of the membership that gives a vote to another member than this one, or cannot be read.
pub(crate) fn may_give_vote(entry: &Entry, own: u64) -> bool {
    let gives = |step: MembershipStep| {
        step.into_iter().any(|(member, standing)| standing == StepTo::Voter && member != own)
    };
    entry.get_entry_type() != EntryType::EntryNormal && decode_step(&entry.context).is_none_or(gives)
}

/// True if this member can read and write an entry of the Raft library that another member has sent. Commands are not looked at: they
/// were when they came to the leader.
pub(crate) fn is_readable(entry: &Entry) -> bool {
    if entry.get_entry_type() != EntryType::EntryNormal {
        return decode_step(&entry.context).is_some();
    }
    let is_known = match entry.data.split_first() {
        None | Some((&COMMANDS, _)) => true,
        Some((&COMMANDS_WITH_FLOOR, body)) => is_floor(body),
        // The entry would be one of another kind when it is read again.
        Some((&CHANGE, _)) => false,
        Some((kind, body)) => ConfigurationEntry::read(*kind, body).is_some(),
    };
    is_known && entry.data.len() <= LogEntry::PAYLOAD_BYTES_MAX
}

impl LogEntry {
    /// The id of the ensemble that a survivor has begun with this entry.
    pub fn refounded_cluster(&self) -> Option<u64> {
        match ConfigurationEntry::decode(&self.payload) {
            Some(ConfigurationEntry::Refounding { cluster, .. }) => Some(cluster),
            _ => None,
        }
    }

    /// True if it is about the ensemble itself: it has no commands.
    pub fn is_about_ensemble(&self) -> bool {
        ConfigurationEntry::decode(&self.payload).is_some()
    }

    /// True if there may be more groups from this entry on.
    pub fn founds_groups(&self) -> bool {
        matches!(self.payload.first(), Some(&GROUPS | &PLACED_GROUPS))
    }

    /// The level to which this entry raises the ensemble.
    pub fn raised_level(&self) -> Option<RaisedLevel> {
        let is_one = self.payload.first() == Some(&LEVEL);
        match is_one.then(|| ConfigurationEntry::decode(&self.payload))?? {
            ConfigurationEntry::Level(raised) => Some(raised),
            _ => None,
        }
    }

    /// Number of groups that there are to be from this entry on, with the home group, if it founds any. A state that is not ready for
    /// them leaves it at those that it has.
    pub fn founded_groups(&self) -> Option<u32> {
        let is_one = matches!(self.payload.first(), Some(&GROUPS | &PLACED_GROUPS));
        match is_one.then(|| ConfigurationEntry::decode(&self.payload))?? {
            ConfigurationEntry::Groups { count, .. } => Some(count),
            _ => None,
        }
    }

    /// Number of the roster to which this entry brings a group.
    pub fn roster(&self) -> Option<u64> {
        let is_one = self.payload.first() == Some(&ROSTER);
        match is_one.then(|| ConfigurationEntry::decode(&self.payload))?? {
            ConfigurationEntry::Roster(roster) => Some(roster.number),
            _ => None,
        }
    }

    /// Written by a survivor, alone: behind it there is another ensemble, of this member only.
    pub fn refounding(index: u64, term: u64, member: u64, seed: u64, members: &str) -> LogEntry {
        let membership = Membership::new(vec![member], vec![]);
        // Never 0, and not that of the ensemble before.
        let (cluster, members) = (seed | 1, members.to_owned());
        let payload = ConfigurationEntry::Refounding { membership, cluster, members }.encode();
        LogEntry { index, term, payload }
    }
}

/// Checks that a program that knows the levels up to `known` may have the entries of the log that another member sends. What other messages carry as
/// entries is no part of the log.
pub(crate) fn check_levels(message: &Message, known: FeatureLevel) -> Result<(), UnknownLevel> {
    if message.msg_type != MessageType::MsgAppend {
        return Ok(());
    }
    for entry in message.entries.iter().filter(|entry| entry.data.first() == Some(&LEVEL)) {
        if let Some(ConfigurationEntry::Level(raised)) = ConfigurationEntry::decode(&entry.data) {
            raised.check(known)?;
        }
    }
    Ok(())
}

/// An entry as the transaction log and the wire have it. Of a change the library looks at the entry's type only, so what
/// it is lies in the entry's context, in our own form.
pub(crate) fn from_raft(entry: Entry) -> LogEntry {
    let (index, term) = (entry.index, entry.term);
    let payload = match entry.get_entry_type() {
        EntryType::EntryNormal => entry.data,
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
            [&[CHANGE], &entry.context[..]].concat().into()
        }
    };
    LogEntry { index, term, payload }
}

pub(crate) fn to_raft(entry: LogEntry) -> Entry {
    let LogEntry { index, term, payload } = entry;
    match payload.split_first() {
        Some((&CHANGE, body)) => {
            let context = Bytes::copy_from_slice(body);
            let mut change = Entry { index, term, context, ..Entry::default() };
            change.set_entry_type(EntryType::EntryConfChangeV2);
            change
        }
        _ => Entry { index, term, data: payload, ..Entry::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_gives_no_other_member_a_vote_is_told_from_one_that_does() {
        let entry = |step: &MembershipStep| {
            let payload = ConfigurationEntry::Change(step.clone()).encode();
            to_raft(LogEntry { index: 1, term: 1, payload })
        };
        let (own, other) = (1, 2);
        for step in [vec![], vec![(own, StepTo::Voter)], vec![(other, StepTo::Removed), (3, StepTo::Learner)]]
        {
            assert!(!may_give_vote(&entry(&step), own), "{step:?}");
        }
        let step = vec![(own, StepTo::Learner), (other, StepTo::Voter)];
        assert!(may_give_vote(&entry(&step), own));
        let mut unreadable = entry(&step);
        unreadable.context = Bytes::from_static(b"?");
        assert!(may_give_vote(&unreadable, own));
        assert!(!may_give_vote(&Entry::default(), own), "it is a write");
    }

    fn roster(target: Option<&str>) -> Roster {
        let parse = |lines: &str| parse_members(lines).expect("lines of members");
        let members = parse("server.0=a:1:2\nserver.1=b:1:2:observer;0.0.0.0:9\n");
        Roster { number: 5, cluster: u64::MAX, members, target: target.map(parse) }
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let membership = Membership::new(vec![1, 2], vec![3]);
        let members = "server.1=a:1:2:participant\n".to_owned();
        for about in [
            ConfigurationEntry::Founding(membership.clone()),
            ConfigurationEntry::Change(vec![
                (1, StepTo::Voter),
                (300, StepTo::Learner),
                (2, StepTo::Removed),
            ]),
            ConfigurationEntry::Change(Vec::new()),
            ConfigurationEntry::Refounding { membership, cluster: 7, members },
            ConfigurationEntry::Level(RaisedLevel { level: FeatureLevel(258), since: "1.2.0".to_owned() }),
            ConfigurationEntry::Groups {
                count: 300,
                founders: Membership::new(vec![1, 2], vec![3]),
                replicas: 0,
            },
            ConfigurationEntry::Groups {
                count: 3,
                founders: Membership::new(vec![1, 2], vec![]),
                replicas: 2,
            },
            ConfigurationEntry::Roster(roster(None)),
            ConfigurationEntry::Roster(roster(Some("server.300=c:1:2:observer\n"))),
            ConfigurationEntry::Promotion { roster: 5 },
        ] {
            let payload = about.encode();
            assert_eq!(ConfigurationEntry::decode(&payload), Some(about.clone()));
            let entry = LogEntry { index: 4, term: 2, payload };
            let is_change = matches!(about, ConfigurationEntry::Change(_));
            assert_eq!(to_raft(entry.clone()).get_entry_type() == EntryType::EntryConfChangeV2, is_change);
            assert_eq!(from_raft(to_raft(entry.clone())), entry);
        }
        assert_eq!(ConfigurationEntry::decode(&[]), None);
        assert_eq!(ConfigurationEntry::decode(&[COMMANDS, 1]), None);
    }

    #[test]
    fn an_entry_that_no_member_writes_is_not_readable() {
        let entry = |data: &[u8]| Entry { data: Bytes::copy_from_slice(data), ..Entry::default() };
        let founding = ConfigurationEntry::Founding(Membership::new(vec![1], vec![])).encode();
        let floored = [&[COMMANDS_WITH_FLOOR][..], &[0; 8], &[7]].concat();
        for readable in [&[][..], &[COMMANDS], &[COMMANDS, 7], &floored[..9], &floored, &founding] {
            assert!(is_readable(&entry(readable)), "{readable:?}");
        }
        let longer = [&founding[..], &[0]].concat();
        for other in [
            &floored[..8],
            &[FOUNDING],
            &[CHANGE],
            &[REFOUNDING, 1],
            &[LEVEL, 1],
            &[GROUPS, 0, 0, 0, 2],
            &ConfigurationEntry::Roster(roster(None)).encode()[..20],
            &[&ConfigurationEntry::Roster(roster(None)).encode()[..], &[0]].concat(),
            &[PROMOTION, 0, 0, 0, 0, 0, 0, 1],
            &[COMMANDS - 1],
            &[99, 1],
            &longer,
        ] {
            assert!(!is_readable(&entry(other)), "{other:?}");
        }
        let mut change = Entry { context: Bytes::from_static(b"step"), ..Entry::default() };
        change.set_entry_type(EntryType::EntryConfChangeV2);
        assert!(!is_readable(&change));
        change.context = ConfigurationEntry::encode_step(&vec![(3, StepTo::Voter)]).into();
        assert!(is_readable(&change));
    }

    #[test]
    fn entries_of_a_level_that_is_not_known_are_not_taken() {
        let raised = RaisedLevel { level: FeatureLevel(2), since: "1.2.0".to_owned() };
        let data = ConfigurationEntry::Level(raised.clone()).encode();
        let message = |msg_type, data: &Bytes| Message {
            msg_type,
            entries: vec![Entry::default(), Entry { data: data.clone(), ..Entry::default() }].into(),
            ..Message::default()
        };
        let append = message(MessageType::MsgAppend, &data);
        assert_eq!(check_levels(&append, FeatureLevel(2)), Ok(()));
        assert_eq!(check_levels(&append, FeatureLevel(1)), Err(raised.check(FeatureLevel(1)).unwrap_err()));
        // The question of a member with this number.
        let question = message(MessageType::MsgReadIndex, &Bytes::from_static(&[LEVEL, 0]));
        assert_eq!(check_levels(&question, FeatureLevel::NONE), Ok(()));
        let entry = |payload: Bytes| LogEntry { index: 4, term: 2, payload };
        assert_eq!(entry(data).raised_level(), Some(raised));
        assert_eq!(entry(ConfigurationEntry::Change(Vec::new()).encode()).raised_level(), None);
    }

    #[test]
    fn an_entry_may_be_as_large_as_a_record_and_no_byte_larger() {
        // Zeros that are never touched take no memory.
        let sized = |bytes: usize| {
            let mut data = vec![0; bytes];
            data[0] = COMMANDS;
            Entry { data: data.into(), ..Entry::default() }
        };
        assert!(is_readable(&sized(LogEntry::PAYLOAD_BYTES_MAX)));
        assert!(!is_readable(&sized(LogEntry::PAYLOAD_BYTES_MAX + 1)));
    }
}
