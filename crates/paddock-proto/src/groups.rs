//! Commands between Raft groups: what the home group decides for the others, and how that gets to them. No client sends them.

use crate::jute::{DecodeError, Reader, Writer};
use crate::{AclList, ErrorCode, MemberNumber, OpCode, SessionId, Zxid};

/// A command between groups, for the group in whose log it stands. Those that say so are a session's, and the others the service's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsCommand<'a> {
    /// In the home group: children of this znode may be spread over groups from now on.
    Split { path: &'a str },
    /// In the home group: this znode is no split point any more, if all slots are in the home group.
    Join { path: &'a str },
    /// In the home group: slots of a split point, from `first` to `last`, all of one group, go to another one with the znodes in them.
    Move { path: &'a str, first: u16, last: u16, group: u32 },
    /// In the home group, of a session: it is about to write in another group.
    Attach { group: u32 },
    /// In the home group: another group has applied the items of its stream up to this number.
    Acknowledge { group: u32, number: u64 },
    /// In another group: an item of the home group's stream to it, decided with the home group's transaction `decided`. It counts if the one
    /// before it was applied, and it was not.
    Item { number: u64, decided: Zxid, item: StreamItem<'a> },
    /// Changes nothing, and has a zxid that is not below this one: behind it a replica knows that it lacks nothing up to there.
    Mark { at_least: Zxid },
    /// In the home group, of a session: a multi whose znodes lie in several groups, as the body of its request. Limits of quotas count for it, or do not.
    Multi { request: &'a [u8], enforces_quotas: bool },
    /// In the home group, of a session: a write whose znodes are another group's, which gets it as an item of its stream. Limits of quotas count for it, or do not.
    Relay { op: OpCode, request: &'a [u8], enforces_quotas: bool },
    /// In the home group: another group has tried its part of the multi with this number, or has not been heard of it for too long.
    Vote { multi: i64, group: u32, vote: Vote },
    /// In the home group: a portion of the znodes of slots that leave another group, the first of which is `first`. `above` is a zxid that none of that group's transactions
    /// on them has passed.
    Given { path: &'a str, first: u16, portion: u32, is_last: bool, above: Zxid, znodes: &'a [u8] },
    /// A session's, one of whose commands met a slot that is not this group's: those that come from now on are carried out again.
    GoOn,
    /// In the home group: `guest` has no replica of another group, and `host` reads and writes there for it. A guest that is its own host has a replica.
    Host { guest: MemberNumber, group: u32, host: MemberNumber },
    /// In another group, of a session and through the host of its owner: from here on writes come that were asked for when the session had moved so often. Those that
    /// were asked for before, and are late, are refused.
    Through { moves: u32 },
}

/// Word of a group on its part of a multi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// The part can be carried out, until it is settled.
    Yes,
    /// The operation at this place of the multi cannot be carried out.
    No { operation: u32, error: ErrorCode },
    /// Another multi holds znodes that it is about, or the group is away: it is to be asked for again.
    Busy,
}

/// An item of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamItem<'a> {
    /// The znode of a split point as it is in the home group: its ACL, or `None` if it is not there.
    SplitPoint { path: &'a str, acl: Option<AclList<'a>> },
    /// A session may write in the group, through this member. `moves` counts the members and connections that it has had.
    Session { session: SessionId, timeout_ms: i32, owner: MemberNumber, moves: u32 },
    /// A session has ended.
    End { session: SessionId },
    /// Slots of a split point, from `first` to `last`, are this group's from now on.
    Slots { path: &'a str, first: u16, last: u16 },
    /// Znodes that come with slots, encoded: parents before their children.
    Znodes { znodes: &'a [u8] },
    /// Slots of a split point, from `first` to `last`, are not this group's any more: their znodes are given to the home group.
    Leave { path: &'a str, first: u16, last: u16 },
    /// The home group has all znodes of slots that have left, the first of which is this.
    Taken { path: &'a str, first: u16 },
    /// A part of a multi is to be tried, and held until it is settled. `command` is that of the session, with its identities and the request.
    Prepare { multi: i64, command: &'a [u8] },
    /// A multi is carried out, or is not.
    Settle { multi: i64, is_done: bool },
    /// A write that a session has asked the home group to relay: its command, with its identities and the request.
    Relayed { command: &'a [u8] },
    /// Writes of sessions of `guest` come through `host` from now on, and no other member.
    Host { guest: MemberNumber, host: MemberNumber },
    /// Limits of the quota on a path, as the home group has them; `None` if it has none any more. On the empty path there are none at all.
    Limits { path: &'a str, limits: Option<&'a [u8]> },
}

const SPLIT: u8 = 1;
const ACKNOWLEDGE: u8 = 2;
const ITEM: u8 = 3;
const JOIN: u8 = 4;
const MOVE: u8 = 5;
const ATTACH: u8 = 6;
const MARK: u8 = 7;
const GO_ON: u8 = 8;
const MULTI: u8 = 9;
const VOTE: u8 = 10;
const GIVEN: u8 = 11;
const HOST: u8 = 12;
const THROUGH: u8 = 13;
const RELAY: u8 = 14;
const RELAY_WITH_QUOTAS: u8 = 15;
const MULTI_WITH_QUOTAS: u8 = 16;
const SPLIT_POINT: u8 = 1;
const SESSION: u8 = 2;
const END: u8 = 3;
const SLOTS: u8 = 4;
const ZNODES: u8 = 5;
const PREPARE: u8 = 6;
const SETTLE: u8 = 7;
const LEAVE: u8 = 8;
const TAKEN: u8 = 9;
const HOST_OF: u8 = 10;
const RELAYED: u8 = 11;
const LIMITS: u8 = 12;
const YES: u8 = 0;
const NO: u8 = 1;
const BUSY: u8 = 2;

impl<'a> GroupsCommand<'a> {
    /// Operation of these commands.
    pub const OP: OpCode = OpCode::BetweenGroups;

    /// Bytes for which there has to be room, about, to encode the command.
    pub fn encoded_len_about(&self) -> usize {
        const FIXED_BYTES: usize = 64;
        FIXED_BYTES
            + match self {
                GroupsCommand::Split { path } | GroupsCommand::Join { path } => path.len(),
                GroupsCommand::Multi { request, .. } | GroupsCommand::Relay { request, .. } => request.len(),
                GroupsCommand::Given { znodes, .. } => znodes.len(),
                GroupsCommand::Item { item, .. } => item.encoded_len_about(),
                _ => 0,
            }
    }

    /// Appends the body of the command.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            GroupsCommand::Split { path } => {
                out.push(SPLIT);
                out.put_string(path);
            }
            GroupsCommand::Join { path } => {
                out.push(JOIN);
                out.put_string(path);
            }
            GroupsCommand::Move { path, first, last, group } => {
                out.push(MOVE);
                put_slots(path, *first, *last, out);
                out.put_i32(*group as i32);
            }
            GroupsCommand::Attach { group } => {
                out.push(ATTACH);
                out.put_i32(*group as i32);
            }
            GroupsCommand::Acknowledge { group, number } => {
                out.push(ACKNOWLEDGE);
                out.put_i32(*group as i32);
                out.put_i64(*number as i64);
            }
            GroupsCommand::Item { number, decided, item } => {
                out.push(ITEM);
                out.put_i64(*number as i64);
                out.put_i64(decided.0);
                item.encode(out);
            }
            GroupsCommand::Mark { at_least } => {
                out.push(MARK);
                out.put_i64(at_least.0);
            }
            GroupsCommand::GoOn => out.push(GO_ON),
            GroupsCommand::Through { moves } => {
                out.push(THROUGH);
                out.put_i32(*moves as i32);
            }
            GroupsCommand::Host { guest, group, host } => {
                out.push(HOST);
                for number in [guest, group, host] {
                    out.put_i32(*number as i32);
                }
            }
            GroupsCommand::Multi { request, enforces_quotas } => {
                out.push(if *enforces_quotas { MULTI_WITH_QUOTAS } else { MULTI });
                out.put_buffer(Some(request));
            }
            GroupsCommand::Relay { op, request, enforces_quotas } => {
                out.push(if *enforces_quotas { RELAY_WITH_QUOTAS } else { RELAY });
                out.put_i32(op.code());
                out.put_buffer(Some(request));
            }
            GroupsCommand::Given { path, first, portion, is_last, above, znodes } => {
                out.push(GIVEN);
                put_slots(path, *first, *first, out);
                out.put_i32(*portion as i32);
                out.put_bool(*is_last);
                out.put_i64(above.0);
                out.put_buffer(Some(znodes));
            }
            GroupsCommand::Vote { multi, group, vote } => {
                out.push(VOTE);
                out.put_i64(*multi);
                out.put_i32(*group as i32);
                vote.encode(out);
            }
        }
    }

    /// Reads the body of a command.
    ///
    /// # Errors
    /// If it is none that this build knows.
    pub fn decode(r: &mut Reader<'a>) -> Result<GroupsCommand<'a>, DecodeError> {
        match r.u8()? {
            SPLIT => Ok(GroupsCommand::Split { path: r.string()? }),
            JOIN => Ok(GroupsCommand::Join { path: r.string()? }),
            MOVE => {
                let (path, first, last) = read_slots(r)?;
                Ok(GroupsCommand::Move { path, first, last, group: r.i32()? as u32 })
            }
            ATTACH => Ok(GroupsCommand::Attach { group: r.i32()? as u32 }),
            ACKNOWLEDGE => Ok(GroupsCommand::Acknowledge { group: r.i32()? as u32, number: r.i64()? as u64 }),
            ITEM => Ok(GroupsCommand::Item {
                number: r.i64()? as u64,
                decided: Zxid(r.i64()?),
                item: StreamItem::decode(r)?,
            }),
            MARK => Ok(GroupsCommand::Mark { at_least: Zxid(r.i64()?) }),
            GO_ON => Ok(GroupsCommand::GoOn),
            THROUGH => Ok(GroupsCommand::Through { moves: r.i32()? as u32 }),
            HOST => {
                let mut number = || Ok::<u32, DecodeError>(r.i32()? as u32);
                Ok(GroupsCommand::Host { guest: number()?, group: number()?, host: number()? })
            }
            tag @ (MULTI | MULTI_WITH_QUOTAS) => {
                let request = r.buffer()?.ok_or(DecodeError::UnexpectedNull)?;
                Ok(GroupsCommand::Multi { request, enforces_quotas: tag == MULTI_WITH_QUOTAS })
            }
            tag @ (RELAY | RELAY_WITH_QUOTAS) => {
                let code = r.i32()?;
                let unknown = DecodeError::UnknownValue { field: "operation", value: code };
                let op = OpCode::from_code(code).ok_or(unknown)?;
                let request = r.buffer()?.ok_or(DecodeError::UnexpectedNull)?;
                Ok(GroupsCommand::Relay { op, request, enforces_quotas: tag == RELAY_WITH_QUOTAS })
            }
            GIVEN => {
                let (path, first, _) = read_slots(r)?;
                let (portion, is_last, above) = (r.i32()? as u32, r.bool()?, Zxid(r.i64()?));
                let znodes = r.buffer()?.ok_or(DecodeError::UnexpectedNull)?;
                Ok(GroupsCommand::Given { path, first, portion, is_last, above, znodes })
            }
            VOTE => {
                Ok(GroupsCommand::Vote { multi: r.i64()?, group: r.i32()? as u32, vote: Vote::decode(r)? })
            }
            other => Err(DecodeError::UnknownValue { field: "command between groups", value: other.into() }),
        }
    }

    /// True if it is a session's, and not the service's own.
    pub fn is_of_session(&self) -> bool {
        matches!(
            self,
            GroupsCommand::Attach { .. }
                | GroupsCommand::GoOn
                | GroupsCommand::Multi { .. }
                | GroupsCommand::Relay { .. }
                | GroupsCommand::Through { .. }
        )
    }
}

impl<'a> StreamItem<'a> {
    /// True if it changes znodes, or where they are. The end of a multi that is given up does not, and may be decided at a zxid up to which all was shown: that of a session's move, which takes
    /// none.
    pub fn changes_znodes(&self) -> bool {
        !matches!(
            self,
            StreamItem::Session { .. }
                | StreamItem::Prepare { .. }
                | StreamItem::Taken { .. }
                | StreamItem::Host { .. }
                | StreamItem::Limits { .. }
                | StreamItem::Settle { is_done: false, .. }
        )
    }

    /// Bytes for which there has to be room, about, to encode the item.
    pub fn encoded_len_about(&self) -> usize {
        const FIXED_BYTES: usize = 32;
        FIXED_BYTES
            + match self {
                StreamItem::Znodes { znodes } => znodes.len(),
                StreamItem::Prepare { command, .. } | StreamItem::Relayed { command } => command.len(),
                StreamItem::Limits { path, limits } => path.len() + limits.map_or(0, <[u8]>::len),
                _ => 0,
            }
    }

    /// Appends the item.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            StreamItem::SplitPoint { path, acl } => {
                out.push(SPLIT_POINT);
                out.put_string(path);
                out.put_bool(acl.is_some());
                acl.iter().for_each(|acl| out.extend_from_slice(acl.wire()));
            }
            StreamItem::Session { session, timeout_ms, owner, moves } => {
                out.push(SESSION);
                out.put_i64(session.0);
                out.put_i32(*timeout_ms);
                out.put_i32(*owner as i32);
                out.put_i32(*moves as i32);
            }
            StreamItem::End { session } => {
                out.push(END);
                out.put_i64(session.0);
            }
            StreamItem::Slots { path, first, last } => {
                out.push(SLOTS);
                put_slots(path, *first, *last, out);
            }
            StreamItem::Znodes { znodes } => {
                out.push(ZNODES);
                out.put_buffer(Some(znodes));
            }
            StreamItem::Leave { path, first, last } => {
                out.push(LEAVE);
                put_slots(path, *first, *last, out);
            }
            StreamItem::Taken { path, first } => {
                out.push(TAKEN);
                put_slots(path, *first, *first, out);
            }
            StreamItem::Prepare { multi, command } => {
                out.push(PREPARE);
                out.put_i64(*multi);
                out.put_buffer(Some(command));
            }
            StreamItem::Settle { multi, is_done } => {
                out.push(SETTLE);
                out.put_i64(*multi);
                out.put_bool(*is_done);
            }
            StreamItem::Relayed { command } => {
                out.push(RELAYED);
                out.put_buffer(Some(command));
            }
            StreamItem::Host { guest, host } => {
                out.push(HOST_OF);
                out.put_i32(*guest as i32);
                out.put_i32(*host as i32);
            }
            StreamItem::Limits { path, limits } => {
                out.push(LIMITS);
                out.put_string(path);
                out.put_buffer(*limits);
            }
        }
    }

    /// Reads an item.
    ///
    /// # Errors
    /// If it is none that this build knows.
    pub fn decode(r: &mut Reader<'a>) -> Result<StreamItem<'a>, DecodeError> {
        match r.u8()? {
            SPLIT_POINT => {
                let path = r.string()?;
                let acl = if r.bool()? { Some(AclList::decode(r)?) } else { None };
                Ok(StreamItem::SplitPoint { path, acl })
            }
            SESSION => Ok(StreamItem::Session {
                session: SessionId(r.i64()?),
                timeout_ms: r.i32()?,
                owner: r.i32()? as MemberNumber,
                moves: r.i32()? as u32,
            }),
            END => Ok(StreamItem::End { session: SessionId(r.i64()?) }),
            SLOTS => {
                let (path, first, last) = read_slots(r)?;
                Ok(StreamItem::Slots { path, first, last })
            }
            ZNODES => Ok(StreamItem::Znodes { znodes: r.buffer()?.ok_or(DecodeError::UnexpectedNull)? }),
            LEAVE => {
                let (path, first, last) = read_slots(r)?;
                Ok(StreamItem::Leave { path, first, last })
            }
            TAKEN => {
                let (path, first, _) = read_slots(r)?;
                Ok(StreamItem::Taken { path, first })
            }
            PREPARE => {
                let multi = r.i64()?;
                Ok(StreamItem::Prepare { multi, command: r.buffer()?.ok_or(DecodeError::UnexpectedNull)? })
            }
            SETTLE => Ok(StreamItem::Settle { multi: r.i64()?, is_done: r.bool()? }),
            RELAYED => Ok(StreamItem::Relayed { command: r.buffer()?.ok_or(DecodeError::UnexpectedNull)? }),
            HOST_OF => Ok(StreamItem::Host { guest: r.i32()? as u32, host: r.i32()? as u32 }),
            LIMITS => Ok(StreamItem::Limits { path: r.string()?, limits: r.buffer()? }),
            other => Err(DecodeError::UnknownValue { field: "item of a stream", value: other.into() }),
        }
    }
}

impl Vote {
    /// Appends the vote.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Vote::Yes => out.push(YES),
            Vote::No { operation, error } => {
                out.push(NO);
                out.put_i32(*operation as i32);
                out.put_i32(error.code());
            }
            Vote::Busy => out.push(BUSY),
        }
    }

    /// Reads a vote.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(r: &mut Reader<'_>) -> Result<Vote, DecodeError> {
        match r.u8()? {
            YES => Ok(Vote::Yes),
            NO => {
                let (operation, code) = (r.i32()? as u32, r.i32()?);
                let unknown = DecodeError::UnknownValue { field: "error of a vote", value: code };
                Ok(Vote::No { operation, error: ErrorCode::from_code(code).ok_or(unknown)? })
            }
            BUSY => Ok(Vote::Busy),
            other => Err(DecodeError::UnknownValue { field: "vote", value: other.into() }),
        }
    }
}

fn put_slots(path: &str, first: u16, last: u16, out: &mut Vec<u8>) {
    out.put_string(path);
    out.put_i32(first.into());
    out.put_i32(last.into());
}

fn read_slots<'a>(r: &mut Reader<'a>) -> Result<(&'a str, u16, u16), DecodeError> {
    let path = r.string()?;
    let slot =
        |value: i32| u16::try_from(value).map_err(|_| DecodeError::UnknownValue { field: "slot", value });
    Ok((path, slot(r.i32()?)?, slot(r.i32()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Write;

    #[test]
    fn commands_come_back_from_their_bytes() {
        let session = SessionId(7);
        let items = [
            StreamItem::SplitPoint { path: "/a", acl: Some(AclList::OPEN) },
            StreamItem::SplitPoint { path: "/a/b", acl: None },
            StreamItem::Session { session, timeout_ms: 4000, owner: 1001, moves: 3 },
            StreamItem::End { session },
            StreamItem::Slots { path: "/a", first: 0, last: 4095 },
            StreamItem::Znodes { znodes: b"some" },
            StreamItem::Leave { path: "/a", first: 7, last: 9 },
            StreamItem::Taken { path: "/a", first: 7 },
            StreamItem::Prepare { multi: 7, command: b"one" },
            StreamItem::Settle { multi: i64::MAX, is_done: true },
            StreamItem::Relayed { command: b"one" },
            StreamItem::Limits { path: "/a", limits: Some(b"count=3") },
            StreamItem::Limits { path: "", limits: None },
        ];
        let items = (1..).zip(items).map(|(number, item)| GroupsCommand::Item {
            number,
            decided: Zxid(number as i64 * 1000),
            item,
        });
        let commands = [
            GroupsCommand::Split { path: "/a" },
            GroupsCommand::Join { path: "/a" },
            GroupsCommand::Move { path: "/a", first: 5, last: u16::MAX, group: 63 },
            GroupsCommand::Attach { group: 1 },
            GroupsCommand::Acknowledge { group: 63, number: u64::MAX },
            GroupsCommand::Mark { at_least: Zxid(i64::MAX) },
            GroupsCommand::GoOn,
            GroupsCommand::Given {
                path: "/a",
                first: 7,
                portion: 3,
                is_last: true,
                above: Zxid(9),
                znodes: b"some",
            },
            GroupsCommand::Multi { request: b"many", enforces_quotas: false },
            GroupsCommand::Multi { request: b"many", enforces_quotas: true },
            GroupsCommand::Relay { op: OpCode::SetData, request: b"one", enforces_quotas: false },
            GroupsCommand::Relay { op: OpCode::SetData, request: b"one", enforces_quotas: true },
            GroupsCommand::Vote { multi: 7, group: 3, vote: Vote::Yes },
            GroupsCommand::Vote { multi: 7, group: 3, vote: Vote::Busy },
            GroupsCommand::Vote {
                multi: i64::MAX,
                group: 3,
                vote: Vote::No { operation: 2, error: ErrorCode::NoNode },
            },
        ];
        for command in commands.into_iter().chain(items) {
            let mut bytes = Vec::new();
            command.encode(&mut bytes);
            let decoded = Write::decode(GroupsCommand::OP, &bytes);
            assert_eq!(decoded, Ok(Write::BetweenGroups(command)));
            for end in 0..bytes.len() {
                assert!(Write::decode(GroupsCommand::OP, &bytes[..end]).is_err(), "{command:?} cut at {end}");
            }
        }
        let unknown_item = [&[ITEM][..], &[0; 7], &[1], &[0; 8], &[99]].concat();
        let large_slot = [&[MOVE, 0, 0, 0, 0, 0, 1, 0, 0], &[0; 8][..]].concat();
        for unknown in [&[0][..], &[99], &unknown_item, &large_slot] {
            assert!(Write::decode(GroupsCommand::OP, unknown).is_err());
        }
    }
}
