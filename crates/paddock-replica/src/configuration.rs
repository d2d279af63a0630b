//! Entries of the log that change its membership, and log entries as the Raft library has them.

use bytes::Bytes;
use paddock_proto::jute::{Reader, Writer};
use raft::eraftpb::{Entry, EntryType};

use crate::log_entry::{CHANGE, FOUNDING, REFOUNDING};
use crate::membership::{MembershipStep, StepTo};
use crate::{LogEntry, Membership};

/// An entry that sets or changes the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigurationEntry {
    /// The first entry of a log: all members that begin an ensemble write the same one.
    Founding(Membership),
    /// One step from a membership to another.
    Change(MembershipStep),
    /// Written by a survivor of a lost quorum: whatever was said before, these take part, in an ensemble of another id.
    Refounding { membership: Membership, cluster: u64, members: String },
}

impl ConfigurationEntry {
    /// `None` for commands.
    pub(crate) fn decode(payload: &[u8]) -> Option<ConfigurationEntry> {
        let (kind, body) = payload.split_first()?;
        match *kind {
            FOUNDING => {
                Some(ConfigurationEntry::Founding(Membership::decode(body).expect("a founding is whole")))
            }
            CHANGE => {
                Some(ConfigurationEntry::Change(decode_step(body).expect("a change of members is whole")))
            }
            REFOUNDING => {
                let mut reader = Reader::new(body);
                let mut read = || -> Result<ConfigurationEntry, paddock_proto::DecodeError> {
                    let membership = reader.buffer()?.and_then(Membership::decode).unwrap_or_default();
                    let (cluster, members) = (reader.i64()? as u64, reader.string()?.to_owned());
                    Ok(ConfigurationEntry::Refounding { membership, cluster, members })
                };
                Some(read().expect("a refounding is whole"))
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

impl LogEntry {
    /// The id of the ensemble that a survivor has begun with this entry.
    pub fn refounded_cluster(&self) -> Option<u64> {
        match ConfigurationEntry::decode(&self.payload) {
            Some(ConfigurationEntry::Refounding { cluster, .. }) => Some(cluster),
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
    use crate::log_entry::COMMANDS;

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
}
