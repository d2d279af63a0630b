//! Writes that the home group relays to other groups. Those of one session in several groups are so under way together: the home group's log has their order, and each group
//! carries its own out as items of its stream, in that order.

use paddock_proto::{
    ErrorCode, GroupsCommand, IdList, OpCode, SessionId, StreamItem, Write, WriteReply, Zxid,
};

use super::{Circumstances, MISPLACED, Tree};
use crate::Command;
use crate::features::FeatureLevel;
use crate::outcome::Changes;
use crate::write_paths::for_each_path;

/// Bytes of items that a group has not acknowledged, above which nothing more is relayed to it.
const PENDING_BYTES_MAX: usize = 4 << 20;

/// Outcome of a relayed write in its group, for the member that serves its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedAnswer {
    pub session: SessionId,
    /// Zxid with which the home group has relayed it.
    pub decided: Zxid,
    /// Zxid that it has in its group.
    pub zxid: Zxid,
    /// Body of the reply.
    pub result: Result<Vec<u8>, ErrorCode>,
}

/// True for writes that can be relayed: those that one transaction carries out, and that are about znodes.
pub fn can_be_relayed(write: &Write<'_>) -> bool {
    matches!(
        write,
        Write::Create(_)
            | Write::Delete { .. }
            | Write::SetData { .. }
            | Write::SetAcl { .. }
            | Write::Multi(_)
    )
}

/// The command with which a session asks the home group to relay a write; `request` is the body of the client's.
pub fn relay_command(
    session: SessionId,
    ids: IdList<'_>,
    (op, request): (OpCode, &[u8]),
    enforces_quotas: bool,
) -> Vec<u8> {
    Command::between_groups(session, ids, &GroupsCommand::Relay { op, request, enforces_quotas })
}

impl Tree {
    /// From now on what relayed writes come to is kept for [`Tree::take_relayed_answers`].
    pub fn record_relayed_answers(&mut self) {
        self.relayed_answers.get_or_insert_default();
    }

    /// The tree takes the place of another one, and keeps what relayed writes come to if that one did.
    pub fn record_as(&mut self, other: &Tree) {
        self.relayed_answers = other.relayed_answers.is_some().then(Vec::new);
    }

    /// Outcomes of relayed writes that were applied since this was asked last.
    pub fn take_relayed_answers(&mut self) -> Vec<RelayedAnswer> {
        self.relayed_answers.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A session asks the home group to relay a write. One that cannot be relayed now is to be sent again, as all that the session asks for behind it: its znodes are home's, are on
    /// their way, or are those of an open multi, or the group has not come as far for too long.
    pub(super) fn relay<'a>(
        &mut self,
        at: &Circumstances<'a>,
        op: OpCode,
        request: &[u8],
    ) -> Result<WriteReply<'a>, ErrorCode> {
        // At a lower level a snapshot could not say it.
        if self.raised.level < FeatureLevel::RELAYS {
            return Err(ErrorCode::Unimplemented);
        }
        let Ok(write) = Write::decode(op, request) else { return Err(ErrorCode::MarshallingError) };
        if !can_be_relayed(&write) {
            return Err(ErrorCode::BadArguments);
        }
        let Some(group) = self.relays_to(&write) else {
            self.between_groups.stalled.insert(at.session);
            return Err(MISPLACED);
        };
        self.attach(at.session, group);
        let command = at.command(op, request);
        self.between_groups.streams.push(group, at.zxid, &StreamItem::Relayed { command: &command });
        Ok(WriteReply::Done)
    }

    /// The group to which a write can be relayed now.
    fn relays_to(&self, write: &Write<'_>) -> Option<u32> {
        let points = self.split_points();
        let (mut group, mut is_one) = (None, true);
        for_each_path(write, &mut |path| {
            let own = points.group_of(path);
            is_one &= *group.get_or_insert(own) == own && !points.is_leaving(path);
        });
        let group = group.filter(|group| is_one && *group > 0)?;
        // What a group has voted has to stay true.
        let is_point = |path: &str| points.get(path).is_some();
        let mut open = self.between_groups.multis.open.values();
        let meets_open = open.any(|open| open.touched.are_met_by(write, is_point));
        (!meets_open && self.has_room_for(group)).then_some(group)
    }

    /// True if a group, as the home group knows, has come as far that more can be relayed to it.
    pub fn has_room_for(&self, group: u32) -> bool {
        self.streams().to_group(group).is_none_or(|stream| stream.pending_bytes() <= PENDING_BYTES_MAX)
    }

    /// Carries out a write that the home group has relayed with this zxid.
    pub(super) fn carry_out_relayed<'a>(
        &mut self,
        (zxid, decided): (Zxid, Zxid),
        command: &'a [u8],
        changes: &mut Changes<'a>,
    ) {
        let Ok(command) = Command::decode(command) else { return };
        let Command { session, time_ms, ids, enforces_quotas, write, .. } = command;
        let at = Circumstances { session, ids, zxid, time_ms, enforces_quotas };
        let result = match write {
            Ok(Write::Multi(writes)) => self.multi(&at, &writes, changes),
            Ok(Write::SetAcl { path, acl, version }) => self.set_acl(&at, path, acl, version),
            Ok(write) if can_be_relayed(&write) => self.carry_out(&at, &write, changes),
            _ => Err(ErrorCode::MarshallingError),
        };
        let Some(answers) = &mut self.relayed_answers else { return };
        let result = result.map(|reply| {
            let mut body = Vec::new();
            reply.encode(&mut body);
            body
        });
        answers.push(RelayedAnswer { session, decided, zxid, result });
    }
}

#[cfg(test)]
mod tests;
