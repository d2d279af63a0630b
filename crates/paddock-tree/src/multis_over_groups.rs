//! Multis over several groups: the home group asks the others for their parts, and decides.
//!
//! A group that has tried its part refuses commands on the znodes that it touches until the multi is settled, as it refuses those on slots that are not its own: so what it has voted stays
//! true. What home decides meanwhile cannot be refused; if that may have changed something, the multi is given up and asked for again.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{
    ErrorCode, GroupsCommand, IdList, MultiResult, OpCode, SessionId, StreamItem, Vote, Write, WriteReply,
    Zxid,
};

use crate::Command;
use crate::multi::step;
use crate::open_multis::{HeldPart, MultiEnd, MultiOutcome, OpenMulti};
use crate::outcome::{Change, Changes};
use crate::touched_paths::TouchedPaths;
use crate::tree::{Circumstances, MISPLACED, Tree};
use crate::write_paths::for_each_path;

/// Result of an operation of a multi, encoded, at its place.
type PlacedResult = (u32, Vec<u8>);
/// An operation of a multi at its place.
type PlacedStep<'a> = (u32, OpCode, Write<'a>);

impl Tree {
    /// Result of a session's last multi over several groups, as far as it is known here.
    pub fn multi_outcome(&self, session: SessionId) -> Option<&MultiOutcome> {
        self.between_groups.multis.outcomes.get(&session)
    }

    /// True while a multi over several groups is open in the home group, or held here.
    pub fn has_open_multis(&self) -> bool {
        !self.between_groups.multis.open.is_empty() || !self.between_groups.multis.held.is_empty()
    }

    /// Votes that this group has given on multis that are not settled.
    pub fn votes(&self) -> impl Iterator<Item = (i64, Vote)> {
        self.between_groups.multis.held.iter().map(|(multi, part)| (*multi, part.vote))
    }

    /// Votes that the home group, whose state this is, waits for: multis and groups.
    pub fn awaited_votes(&self) -> impl Iterator<Item = (i64, u32)> {
        let open = self.between_groups.multis.open.iter();
        open.flat_map(|(multi, open)| {
            let awaited = open.votes.iter().filter(|(_, vote)| vote.is_none());
            awaited.map(|(group, _)| (*multi, *group))
        })
    }

    /// A session asks the home group for a multi. One whose znodes are all of one other group came by an old map. One about slots that are on their way
    /// from another group waits until they are where they go: that group has nothing to try of them, and nothing to refuse.
    pub(crate) fn begin_multi<'a>(
        &mut self,
        at: &Circumstances<'a>,
        request: &'a [u8],
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        let Ok(Write::Multi(writes)) = Write::decode(OpCode::Multi, request) else {
            return Err(ErrorCode::MarshallingError);
        };
        if writes.iter().any(|write| step(write).is_none()) {
            return Err(ErrorCode::MarshallingError);
        }
        self.check_spread(&Write::Multi(writes.clone()))?;
        let groups: BTreeSet<u32> = writes.iter().map(|write| self.group_of(write)).collect();
        let others: BTreeSet<u32> = groups.iter().copied().filter(|group| *group != 0).collect();
        if others.is_empty() {
            return self.multi(at, &writes, changes);
        }
        let is_attached = |group: &u32| {
            self.between_groups.attached.get(&at.session).is_some_and(|all| all.contains(group))
        };
        if groups.len() == 1 || !others.iter().all(is_attached) || self.are_leaving(&writes) {
            self.between_groups.stalled.insert(at.session);
            return Err(MISPLACED);
        }
        let command = at.command(OpCode::Multi, request);
        let multi = at.zxid.0;
        for group in &others {
            let item = StreamItem::Prepare { multi, command: &command };
            self.between_groups.streams.push(*group, at.zxid, &item);
        }
        let votes = others.into_iter().map(|group| (group, None)).collect();
        let touched = TouchedPaths::of(&writes, |_| true);
        let open = OpenMulti { command, session: at.session, votes, is_spoiled: false, touched };
        self.between_groups.multis.outcomes.remove(&at.session);
        self.between_groups.multis.open.insert(multi, open);
        Ok(WriteReply::Done)
    }

    fn group_of(&self, write: &Write<'_>) -> u32 {
        let mut group = 0;
        for_each_path(write, &mut |path| group = self.split_points().group_of(path));
        group
    }

    /// True if a write is about slots that leave another group.
    fn are_leaving(&self, writes: &[Write<'_>]) -> bool {
        let mut are_leaving = false;
        writes.iter().for_each(|write| {
            for_each_path(write, &mut |path| are_leaving |= self.split_points().is_leaving(path));
        });
        are_leaving
    }

    /// Operations of a multi that are this group's.
    fn own_steps<'a>(&self, writes: &[Write<'a>]) -> Vec<PlacedStep<'a>> {
        let own = (0..).zip(writes).filter(|(_, write)| {
            let mut is_own = true;
            for_each_path(write, &mut |path| is_own &= self.has_place_of(path));
            is_own
        });
        own.filter_map(|(place, write)| step(write).map(|(op, write)| (place, op, write.into_owned())))
            .collect()
    }

    /// Carries these operations out, or none of them.
    fn carry_out_steps<'a>(
        &mut self,
        at: &Circumstances<'a>,
        steps: &[PlacedStep<'a>],
        changes: &mut Changes<'a>,
    ) -> Result<Vec<PlacedResult>, (u32, ErrorCode)> {
        let mut results = Vec::new();
        self.store.open_journal();
        for (place, op, write) in steps {
            match self.carry_out(at, write, changes) {
                Ok(reply) => results.push((*place, encoded(*op, reply))),
                Err(error) => {
                    self.store.roll_back_journal();
                    changes.clear();
                    return Err((*place, error));
                }
            }
        }
        self.store.commit_journal();
        Ok(results)
    }

    /// Another group tries its part of a multi, and holds it.
    pub(crate) fn prepare(&mut self, zxid: Zxid, multi: i64, command: &[u8]) {
        let part = self.tried_part(zxid, command);
        self.between_groups.multis.held.insert(multi, part);
    }

    fn tried_part(&mut self, zxid: Zxid, bytes: &[u8]) -> HeldPart {
        let touched = TouchedPaths::default();
        let mut part = HeldPart { command: bytes.to_vec(), vote: Vote::Busy, touched };
        let Ok(Command { session, time_ms, ids, enforces_quotas, write: Ok(Write::Multi(writes)), .. }) =
            Command::decode(bytes)
        else {
            return part;
        };
        let steps = self.own_steps(&writes);
        if steps.iter().any(|(_, _, write)| self.meets_held(write)) {
            return part;
        }
        // A stub changes by items only.
        let is_stub = |path: &str| self.between_groups.own_slots.contains_key(path);
        part.touched = TouchedPaths::of(steps.iter().map(|(_, _, write)| write), |path| !is_stub(path));
        let at = Circumstances { session, ids, zxid, time_ms, enforces_quotas };
        let mut changes = Changes::new();
        self.store.open_journal();
        let tried = self.carry_out_steps(&at, &steps, &mut changes);
        self.store.roll_back_journal();
        part.vote = match tried {
            Ok(_) => Vote::Yes,
            Err((operation, error)) => Vote::No { operation, error },
        };
        part
    }

    /// A group has voted. With the last vote the home group decides.
    pub(crate) fn take_vote<'a>(
        &mut self,
        at: &Circumstances<'a>,
        (multi, group, vote): (i64, u32, Vote),
        changes: &mut Changes<'a>,
    ) {
        let Some(open) = self.between_groups.multis.open.get_mut(&multi) else { return };
        let Some(slot @ None) = open.votes.get_mut(&group) else { return };
        *slot = Some(vote);
        if open.votes.values().any(Option::is_none) {
            return;
        }
        let Some(open) = self.between_groups.multis.open.remove(&multi) else { return };
        let decided = at.zxid;
        let zxid = self.take_zxid();
        self.note_own_part(decided);
        let end = self.decide(&open, zxid, changes);
        self.settle_in_groups(&open.votes, decided, multi, matches!(end, MultiEnd::Done(_)));
        self.between_groups.multis.outcomes.insert(open.session, MultiOutcome { multi, zxid, end });
    }

    fn settle_in_groups<T>(&mut self, groups: &BTreeMap<u32, T>, decided: Zxid, multi: i64, is_done: bool) {
        for group in groups.keys() {
            self.between_groups.streams.push(*group, decided, &StreamItem::Settle { multi, is_done });
        }
    }

    /// Decides on a multi on which all groups have voted, and carries out what is the home group's.
    fn decide(&mut self, open: &OpenMulti, zxid: Zxid, changes: &mut Changes<'_>) -> MultiEnd {
        let Ok(Command { session, time_ms, ids, enforces_quotas, write: Ok(Write::Multi(writes)), .. }) =
            Command::decode(&open.command)
        else {
            return MultiEnd::Busy;
        };
        let groups: BTreeSet<u32> =
            writes.iter().map(|write| self.group_of(write)).filter(|group| *group != 0).collect();
        if open.is_spoiled
            || open.votes.values().any(|vote| *vote == Some(Vote::Busy))
            || groups.iter().any(|group| !open.votes.contains_key(group))
        {
            return MultiEnd::Busy;
        }
        let refused = open.votes.values().filter_map(|vote| match vote {
            Some(Vote::No { operation, error }) => Some((*operation, *error)),
            _ => None,
        });
        let refused = refused.min_by_key(|(operation, _)| *operation);
        let at = Circumstances { session, ids, zxid, time_ms, enforces_quotas };
        let steps = self.own_steps(&writes);
        let mut own = Changes::new();
        self.store.open_journal();
        let tried = self.carry_out_steps(&at, &steps, &mut own);
        let failed =
            tried.as_ref().err().copied().into_iter().chain(refused).min_by_key(|(operation, _)| *operation);
        match (failed, tried) {
            (None, Ok(results)) => {
                self.store.commit_journal();
                changes.extend(own.into_iter().map(owned));
                MultiEnd::Done(results)
            }
            (failed, _) => {
                self.store.roll_back_journal();
                let (operation, error) = failed.expect("an operation of a multi that is not done has failed");
                MultiEnd::Failed { operation, error }
            }
        }
    }

    /// Another group carries its part out, or lets it go.
    pub(crate) fn settle(&mut self, zxid: Zxid, (multi, is_done): (i64, bool), changes: &mut Changes<'_>) {
        let Some(part) = self.between_groups.multis.held.remove(&multi) else { return };
        if !is_done {
            return;
        }
        let Ok(Command { session, time_ms, ids, write: Ok(Write::Multi(writes)), .. }) =
            Command::decode(&part.command)
        else {
            return;
        };
        // What was tried within its limits is carried out, though others may have been set since.
        let at = Circumstances { session, ids, zxid, time_ms, enforces_quotas: false };
        let steps = self.own_steps(&writes);
        let mut own = Changes::new();
        let results = self.carry_out_steps(&at, &steps, &mut own);
        let results = results.expect("a part that was tried is as it was tried until it is settled");
        changes.extend(own.into_iter().map(owned));
        let end = MultiEnd::Done(results);
        self.between_groups.multis.outcomes.insert(session, MultiOutcome { multi, zxid, end });
    }

    /// The session has another owner, or has ended: its open multi is given up, and what came of the last one is forgotten.
    pub(crate) fn give_up_multis(&mut self, session: SessionId, decided: Zxid) {
        self.between_groups.multis.outcomes.remove(&session);
        let is_own = |_: &i64, open: &mut OpenMulti| open.session == session;
        let given_up: Vec<(i64, OpenMulti)> =
            self.between_groups.multis.open.extract_if(.., is_own).collect();
        for (multi, open) in given_up {
            self.settle_in_groups(&open.votes, decided, multi, false);
        }
    }
}

/// The command with which a session asks the home group for a multi over several groups; `request` is the body of the client's.
pub fn multi_over_groups(
    session: SessionId,
    ids: IdList<'_>,
    request: &[u8],
    enforces_quotas: bool,
) -> Vec<u8> {
    Command::between_groups(session, ids, &GroupsCommand::Multi { request, enforces_quotas })
}

/// Body of the reply to a multi that these groups have carried out: each with the results of its own operations.
pub fn done_multi<'o>(outcomes: impl Iterator<Item = &'o MultiOutcome>) -> Vec<u8> {
    let mut results: Vec<&(u32, Vec<u8>)> = Vec::new();
    for outcome in outcomes {
        if let MultiEnd::Done(own) = &outcome.end {
            results.extend(own);
        }
    }
    results.sort_by_key(|(place, _)| *place);
    let mut body = Vec::new();
    results.iter().for_each(|(_, result)| body.extend_from_slice(result));
    MultiResult::encode_end(&mut body);
    body
}

/// Body of the reply to a multi of which one operation has failed.
pub fn failed_multi(operations: usize, failed: u32, error: ErrorCode) -> Vec<u8> {
    let mut body = Vec::new();
    WriteReply::Multi(crate::multi::failure(operations, failed as usize, error)).encode(&mut body);
    body
}

/// The result of one operation, as it stands in the reply.
fn encoded(op: OpCode, reply: WriteReply<'_>) -> Vec<u8> {
    let mut result = Vec::new();
    MultiResult::Done(op, reply).encode(&mut result);
    result
}

fn owned<'a>(change: Change<'_>) -> Change<'a> {
    let Change { kind, path, readers } = change;
    Change { kind, path: path.into_owned().into(), readers }
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Writer;
    use paddock_proto::{CreateMode, encode};

    use super::*;
    use crate::SLOTS;
    use crate::pair_of_groups::{GroupPair, SESSION, apply, between, create, name, put_end, put_operation};

    #[test]
    fn a_held_part_refuses_what_touches_it_until_it_is_settled() {
        let (at_home, in_other) = (name(false, 0), name(true, 0));
        let mut pair = GroupPair::new();
        let multi = pair.ask(&[&at_home, &in_other]);
        pair.prepare();
        assert_eq!(pair.other.votes().collect::<Vec<_>>(), [(multi, Vote::Yes)]);
        assert_eq!(create(&mut pair.other, &in_other), Err(MISPLACED));
        // The session has to go on first, whatever it asks.
        assert_eq!(create(&mut pair.other, &name(true, 1)), Err(MISPLACED));
        assert!(pair.other.is_stalled(SESSION) && pair.other.stat(&in_other).is_none());
        pair.send();
        assert!(matches!(pair.end(multi), MultiEnd::Done(own) if own.len() == 1));
        assert!(pair.other.stat(&in_other).is_some() && pair.home.stat(&at_home).is_some());
        assert_eq!(pair.other.multi_outcome(SESSION).map(MultiOutcome::results), Some(1));
        between(&mut pair.other, SESSION, GroupsCommand::GoOn);
        assert_eq!(create(&mut pair.other, &in_other), Err(ErrorCode::NodeExists));
        assert_eq!(create(&mut pair.other, &at_home), Err(MISPLACED), "its slot is the home group's");
    }

    /// A third group may be at the place of the decision by chance, and a list is made as of that.
    #[test]
    fn no_list_shows_one_part_of_a_multi_without_the_other() {
        let (at_home, in_other) = (name(false, 0), name(true, 0));
        let mut pair = GroupPair::new();
        pair.ask(&[&at_home, &in_other]);
        pair.prepare();
        let before = pair.home.zxid();
        pair.send();
        let decided = before.next();
        assert_eq!(pair.home.stat(&at_home).unwrap().czxid, decided.next());
        let are_shown = |zxid| {
            let lists = [&pair.home, &pair.other].map(|tree| tree.children_as_of("/p", zxid));
            lists.map(|list| list.map(|list| list.names.len()))
        };
        assert_eq!(are_shown(before), [Some(0), Some(0)]);
        assert_eq!(are_shown(decided), [Some(1), Some(1)]);
    }

    #[test]
    fn what_comes_below_a_znode_that_a_held_part_removes_with_all_below_it_is_refused() {
        let (at_home, in_other) = (name(false, 0), name(true, 0));
        let mut pair = GroupPair::new();
        let child = format!("{in_other}/x");
        [&in_other, &child].into_iter().for_each(|path| create(&mut pair.other, path).unwrap());
        let mut request = Vec::new();
        put_operation(OpCode::Create, &mut request);
        encode::create_open(&mut request, &at_home, None, CreateMode::Persistent);
        put_operation(OpCode::RemoveRecursive, &mut request);
        request.put_string(&in_other);
        request.put_i32(2);
        put_end(&mut request);
        let multi = pair.ask_for(&request);
        pair.prepare();
        assert_eq!(pair.other.votes().collect::<Vec<_>>(), [(multi, Vote::Yes)]);
        assert_eq!(create(&mut pair.other, &format!("{child}/y")), Err(MISPLACED));
        pair.send();
        assert!(matches!(pair.end(multi), MultiEnd::Done(_)));
        assert!(pair.other.stat(&in_other).is_none() && pair.home.stat(&at_home).is_some());
    }

    #[test]
    fn nothing_is_done_if_the_session_moves_or_something_was_decided_meanwhile() {
        let (at_home, in_other) = (name(false, 0), name(true, 0));
        let mut pair = GroupPair::new();
        let multi = pair.ask(&[&at_home, &in_other]);
        pair.prepare();
        // Another split point changes what the group may rely on.
        create(&mut pair.home, "/q").unwrap();
        between(&mut pair.home, SessionId::NONE, GroupsCommand::Split { path: "/q" });
        pair.send();
        assert_eq!(pair.end(multi), &MultiEnd::Busy);
        pair.ask(&[&at_home, &in_other]);
        pair.prepare();
        let mut body = Vec::new();
        encode::resume_session(&mut body, 1000, false, false, Some(0));
        let shown = pair.home.zxid();
        apply(&mut pair.home, SESSION, OpCode::ResumeSession, &body).unwrap();
        let given_up = pair.home.streams().to_group(1).unwrap().behind(0).last().unwrap().1;
        assert_eq!((given_up.decided, pair.home.zxid()), (shown, shown));
        assert!(
            !given_up.changes_znodes(),
            "it was decided at a zxid up to which clients were shown everything"
        );
        pair.send();
        assert_eq!(pair.home.multi_outcome(SESSION), None);
        assert!(!pair.home.has_open_multis() && !pair.other.has_open_multis());
        assert!(pair.other.stat(&in_other).is_none() && pair.home.stat(&at_home).is_none());
    }

    #[test]
    fn a_multi_about_slots_on_the_way_between_groups_waits_until_they_are_there() {
        let (at_home, in_other) = (name(false, 0), name(true, 0));
        let mut pair = GroupPair::new();
        let back = GroupsCommand::Move { path: "/p", first: 0, last: SLOTS / 2 - 1, group: 0 };
        between(&mut pair.home, SessionId::NONE, back);
        pair.send();
        assert_eq!(pair.try_ask(&[&at_home, &in_other]), Err(MISPLACED));
        assert!(pair.home.is_stalled(SESSION) && !pair.home.has_open_multis());
        let above = pair.other.given_portion("/p", 0, 0).unwrap().above;
        let given =
            GroupsCommand::Given { path: "/p", first: 0, portion: 0, is_last: true, above, znodes: &[] };
        between(&mut pair.home, SessionId::NONE, given);
        between(&mut pair.home, SESSION, GroupsCommand::GoOn);
        pair.ask(&[&at_home, &in_other]);
        assert!(pair.home.stat(&at_home).is_some() && pair.home.stat(&in_other).is_some());
    }

    #[test]
    fn ephemerals_on_the_way_between_groups_go_with_their_session() {
        let mut pair = GroupPair::new();
        let path = name(true, 0);
        let mut body = Vec::new();
        encode::create_open(&mut body, &path, None, CreateMode::Ephemeral);
        apply(&mut pair.other, SESSION, OpCode::Create, &body).unwrap();
        create(&mut pair.other, &name(true, 1)).unwrap();
        let back = GroupsCommand::Move { path: "/p", first: 0, last: SLOTS / 2 - 1, group: 0 };
        between(&mut pair.home, SessionId::NONE, back);
        pair.send();
        assert!(pair.other.stat(&path).is_none() && pair.home.split_points().is_leaving(&path));
        assert_eq!(create(&mut pair.other, &path), Err(MISPLACED));
        between(&mut pair.other, SESSION, GroupsCommand::GoOn);
        let given = pair.other.given_portion("/p", 0, 0).unwrap();
        assert!(given.is_last);
        let (znodes, above) = (given.znodes.to_vec(), given.above);
        apply(&mut pair.home, SESSION, OpCode::CloseSession, &[]).unwrap();
        let given =
            GroupsCommand::Given { path: "/p", first: 0, portion: 0, is_last: true, above, znodes: &znodes };
        between(&mut pair.home, SessionId::NONE, given);
        assert!(pair.home.stat(&path).is_none(), "its session has ended before it came");
        assert!(pair.home.stat(&name(true, 1)).is_some() && pair.home.has_all_znodes());
        pair.send();
        assert_eq!(pair.other.given_portion("/p", 0, 0), None, "home has them");
    }
}
