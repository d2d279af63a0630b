//! Multis over several groups, as states keep them: open ones in the home group, parts that are held in the others, and what came of them.
//!
//! A multi is two decisions of the home group. The first asks each group for its part, which the group tries and holds; the second carries all of it out, or nothing.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, ErrorCode, SessionId, Vote, Write, Zxid};

use crate::Command;
use crate::touched_paths::TouchedPaths;

/// A multi in the home group, of which not all groups have given their votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenMulti {
    /// The command of its session.
    pub(crate) command: Vec<u8>,
    pub(crate) session: SessionId,
    /// Votes of the other groups that have a part; `None` for those that are awaited.
    pub(crate) votes: BTreeMap<u32, Option<Vote>>,
    /// Something was decided since that may change what the groups have tried.
    pub(crate) is_spoiled: bool,
    /// Paths that no write may touch that is relayed meanwhile. They follow from the command.
    pub(crate) touched: TouchedPaths,
}

/// A part of a multi in another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldPart {
    pub(crate) command: Vec<u8>,
    pub(crate) vote: Vote,
    /// Paths that no other command may touch.
    pub(crate) touched: TouchedPaths,
}

/// Result of a session's last multi over several groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiOutcome {
    /// Number of the multi.
    pub multi: i64,
    /// Zxid of the transaction that carried it out here, or not.
    pub zxid: Zxid,
    pub end: MultiEnd,
}

impl MultiOutcome {
    /// Number of operations that this group has carried out.
    pub fn results(&self) -> usize {
        match &self.end {
            MultiEnd::Done(results) => results.len(),
            MultiEnd::Failed { .. } | MultiEnd::Busy => 0,
        }
    }

    /// Appends it as it stands in snapshots, and between members.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let MultiOutcome { multi, zxid, end } = self;
        out.put_i64(*multi);
        out.put_i64(zxid.0);
        match end {
            MultiEnd::Done(results) => {
                out.push(0);
                out.put_count(results.len());
                for (place, result) in results {
                    out.put_i32(*place as i32);
                    out.put_buffer(Some(result));
                }
            }
            MultiEnd::Failed { operation, error } => {
                out.push(1);
                Vote::No { operation: *operation, error: *error }.encode(out);
            }
            MultiEnd::Busy => out.push(2),
        }
    }

    pub fn decode(r: &mut Reader<'_>) -> Result<MultiOutcome, DecodeError> {
        let (multi, zxid) = (r.i64()?, Zxid(r.i64()?));
        let end = match r.u8()? {
            0 => {
                let mut results = Vec::new();
                for _ in 0..r.count()? {
                    let place = r.i32()? as u32;
                    results.push((place, r.buffer()?.ok_or(DecodeError::UnexpectedNull)?.to_vec()));
                }
                MultiEnd::Done(results)
            }
            1 => match Vote::decode(r)? {
                Vote::No { operation, error } => MultiEnd::Failed { operation, error },
                _ => return Err(DecodeError::UnknownValue { field: "end of a multi", value: 1 }),
            },
            2 => MultiEnd::Busy,
            other => return Err(DecodeError::UnknownValue { field: "end of a multi", value: other.into() }),
        };
        Ok(MultiOutcome { multi, zxid, end })
    }
}

/// End of a multi over several groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultiEnd {
    /// Carried out: results of the operations that are this group's, encoded, by their places in the request.
    Done(Vec<(u32, Vec<u8>)>),
    /// The operation at this place cannot be carried out: nothing was, in any group.
    Failed { operation: u32, error: ErrorCode },
    /// A group was busy, and nothing was carried out: it is to be asked for again.
    Busy,
}

/// Multis of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Multis {
    pub(crate) open: BTreeMap<i64, OpenMulti>,
    pub(crate) held: BTreeMap<i64, HeldPart>,
    pub(crate) outcomes: BTreeMap<SessionId, MultiOutcome>,
}

impl Multis {
    /// The groups of these multis may have tried something that is not true any more.
    pub(crate) fn spoil(&mut self, is_affected: impl Fn(&OpenMulti) -> bool) {
        self.open.values_mut().filter(|open| is_affected(open)).for_each(|open| open.is_spoiled = true);
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.open.len());
        for (multi, OpenMulti { command, session, votes, is_spoiled, .. }) in &self.open {
            out.put_i64(*multi);
            out.put_buffer(Some(command));
            out.put_i64(session.0);
            out.put_count(votes.len());
            for (group, vote) in votes {
                out.put_i32(*group as i32);
                out.put_bool(vote.is_some());
                vote.iter().for_each(|vote| vote.encode(out));
            }
            out.put_bool(*is_spoiled);
        }
        out.put_count(self.held.len());
        for (multi, HeldPart { command, vote, touched }) in &self.held {
            out.put_i64(*multi);
            out.put_buffer(Some(command));
            vote.encode(out);
            out.put_count(touched.paths().len());
            touched.paths().iter().for_each(|path| out.put_string(path));
        }
        out.put_count(self.outcomes.len());
        for (session, outcome) in &self.outcomes {
            out.put_i64(session.0);
            outcome.encode(out);
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Multis, DecodeError> {
        let mut multis = Multis::default();
        let buffer = |r: &mut Reader<'_>| Ok(r.buffer()?.ok_or(DecodeError::UnexpectedNull)?.to_vec());
        for _ in 0..r.count()? {
            let (multi, command, session) = (r.i64()?, buffer(r)?, SessionId(r.i64()?));
            let mut votes = BTreeMap::new();
            for _ in 0..r.count()? {
                let group = r.i32()? as u32;
                votes.insert(group, if r.bool()? { Some(Vote::decode(r)?) } else { None });
            }
            let is_spoiled = r.bool()?;
            let touched = TouchedPaths::of(&writes_of(&command), |_| true);
            multis.open.insert(multi, OpenMulti { command, session, votes, is_spoiled, touched });
        }
        for _ in 0..r.count()? {
            let (multi, command, vote) = (r.i64()?, buffer(r)?, Vote::decode(r)?);
            let mut paths = BTreeSet::new();
            for _ in 0..r.count()? {
                paths.insert(r.string()?.to_owned());
            }
            let touched = TouchedPaths::restore(paths, &writes_of(&command));
            multis.held.insert(multi, HeldPart { command, vote, touched });
        }
        for _ in 0..r.count()? {
            let session = SessionId(r.i64()?);
            multis.outcomes.insert(session, MultiOutcome::decode(r)?);
        }
        Ok(multis)
    }
}

/// The operations of a multi in an encoded command.
fn writes_of(command: &[u8]) -> Vec<Write<'_>> {
    match Command::decode(command) {
        Ok(Command { write: Ok(Write::Multi(writes)), .. }) => writes,
        _ => Vec::new(),
    }
}
