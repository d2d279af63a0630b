//! Hosts: members that read and write in a group for members that have no replica of it.
//!
//! The home group decides who is the host of each guest, and tells the group by an item of its stream. From that item on the group takes writes of the guest's
//! sessions through the host alone: what comes through a former one, or from the guest itself, is refused.

use std::collections::BTreeMap;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, ErrorCode, MemberNumber, SessionId};
use xxhash_rust::xxh3::xxh3_64;

use crate::member_bytes::{put_member, read_member};

/// Hosts of a state. A group has those of its own guests, the home group those of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// In the home group: by guest and group.
    pub(crate) decided: BTreeMap<(MemberNumber, u32), MemberNumber>,
    /// In another group: by guest.
    pub(crate) received: BTreeMap<MemberNumber, MemberNumber>,
    /// In another group: sessions that have come through a host, and the number of moves that they had when they came last, through a host or to a member with a replica.
    pub(crate) through: BTreeMap<SessionId, u32>,
}

/// The moves of a session that has come through a host which its owner does not have any more.
const NOT_COME: u32 = u32::MAX;

impl Hosts {
    /// 0 while there are none.
    pub(crate) fn digest(&self) -> u64 {
        if *self == Hosts::default() {
            return 0;
        }
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        xxh3_64(&bytes)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.decided.len());
        for ((guest, group), host) in &self.decided {
            put_member(*guest, out);
            out.put_i32(*group as i32);
            put_member(*host, out);
        }
        out.put_count(self.received.len());
        for (guest, host) in &self.received {
            put_member(*guest, out);
            put_member(*host, out);
        }
        out.put_count(self.through.len());
        for (session, moves) in &self.through {
            out.put_i64(session.0);
            out.put_i32(*moves as i32);
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Hosts, DecodeError> {
        let mut hosts = Hosts::default();
        for _ in 0..r.count()? {
            let (guest, group) = (read_member(r, true)?, r.i32()? as u32);
            hosts.decided.insert((guest, group), read_member(r, true)?);
        }
        for _ in 0..r.count()? {
            let guest = read_member(r, true)?;
            hosts.received.insert(guest, read_member(r, true)?);
        }
        for _ in 0..r.count()? {
            hosts.through.insert(SessionId(r.i64()?), r.i32()? as u32);
        }
        Ok(hosts)
    }

    /// Refuses a write that comes through a member which does not serve its session, and is not the host of the one that does, or was asked for when the session
    /// had moved less often.
    #[cold]
    pub(crate) fn check_host(
        &self,
        (session, moves): (SessionId, u32),
        (owner, member): (MemberNumber, MemberNumber),
    ) -> Result<(), ErrorCode> {
        let has_come = self.through.get(&session) == Some(&moves);
        if has_come && self.is_host(owner, member) { Ok(()) } else { Err(ErrorCode::SessionMoved) }
    }

    fn is_host(&self, owner: MemberNumber, member: MemberNumber) -> bool {
        self.received.get(&owner) == Some(&member)
    }

    /// True unless a session has come through a host and has moved since, or its owner has another host: what came through that one may be late, and would count as asked for now if its host
    /// serves the session itself.
    pub(crate) fn has_come(&self, (session, moves): (SessionId, u32)) -> bool {
        self.through.get(&session).is_none_or(|come| *come == moves)
    }

    /// A guest has another host, or none: these are the sessions that it serves.
    pub(crate) fn forget_host(&mut self, is_of_guest: impl Fn(SessionId) -> bool) {
        for (session, moves) in &mut self.through {
            if is_of_guest(*session) {
                *moves = NOT_COME;
            }
        }
    }

    /// A session comes through the host of its owner, or to its owner that has a replica, with this number of moves.
    pub(crate) fn come_through(
        &mut self,
        (session, moves): (SessionId, u32),
        (owner, member): (MemberNumber, MemberNumber),
    ) -> Result<(), ErrorCode> {
        let is_owner = owner == member && !self.received.contains_key(&owner);
        if !is_owner && !self.is_host(owner, member) {
            return Err(ErrorCode::SessionMoved);
        }
        self.through.insert(session, moves);
        Ok(())
    }
}
