//! A group's log, and what each command in it came to: it is carried out once more, on a state that no member has.

use std::collections::BTreeMap;

use paddock_model::{Call, Wish};
use paddock_proto::{
    ErrorCode, EventKind, GroupsCommand, Id, MultiResult, OpCode, StreamItem, Write, WriteReply, Zxid,
};
use paddock_replica::{Batch, LogEntry, apply_offline};
use paddock_tree::{Command, MISPLACED, MultiEnd, MultiOutcome, Outcome, Tree, for_each_path};

use super::counted_names::ChildCounts;
use super::order::{Logged, LoggedWrite, MultiParts};
use super::relayed_replies::read_reply;
use crate::machine::setup::Settings;

/// The log as it was first applied by any member.
#[derive(Debug)]
pub(crate) struct GroupLog {
    group: u32,
    tree: Tree,
    logged: Vec<Logged>,
    /// Zxid after each entry.
    zxids: Vec<Zxid>,
    /// Last number of each stream, in the home group.
    appended: BTreeMap<u32, u64>,
    /// Multis over several groups: in the home group those that are not decided, in another one those of which it holds a part.
    open: BTreeMap<i64, Call>,
    /// Children that the home group counts for the command that is carried out.
    counts: ChildCounts,
}

impl GroupLog {
    pub(super) fn new(group: u32) -> GroupLog {
        let (logged, zxids) = (Vec::new(), Vec::new());
        let (appended, open, counts) = (BTreeMap::new(), BTreeMap::new(), ChildCounts::default());
        let mut tree = Tree::new();
        tree.record_relayed_answers();
        GroupLog { group, tree, logged, zxids, appended, open, counts }
    }

    pub(super) fn logged(&self) -> &[Logged] {
        &self.logged
    }

    pub(super) fn entry_count(&self) -> usize {
        self.zxids.len()
    }

    pub(super) fn zxid_after(&self, index: u64) -> Option<Zxid> {
        self.zxids.get(usize::try_from(index.checked_sub(1)?).ok()?).copied()
    }

    pub(super) fn last_zxid(&self) -> Zxid {
        self.tree.zxid()
    }

    /// The next entry. Returns the commands in it that counted.
    pub(super) fn apply(&mut self, entry: &LogEntry) -> Vec<LoggedWrite> {
        if entry.is_about_ensemble() {
            apply_offline(&mut self.tree, entry);
        }
        self.tree.begin_entry(entry.floor());
        let mut writes = Vec::new();
        for batch in entry.batches() {
            if batch.number == Batch::UNNUMBERED || self.tree.admit(batch.origin, batch.number) {
                batch.commands().for_each(|command| self.carry_out(&command, &mut writes));
            }
        }
        self.note_streams();
        self.zxids.push(self.tree.zxid());
        writes
    }

    fn carry_out(&mut self, command: &Command<'_>, writes: &mut Vec<LoggedWrite>) {
        let call = call(command);
        self.counts = self.count_children(command, &call);
        let mut refusal = None;
        if let Some(mut removal) = self.tree.long_removal(command, Settings::REMOVED_AT_ONCE) {
            while refusal.is_none() {
                match removal.look_up(&self.tree) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => refusal = Some(error),
                }
            }
            while refusal.is_none()
                && let Some(outcome) = removal.remove_portion(&mut self.tree)
            {
                self.note(&call, outcome, true, writes);
            }
        }
        let received = self.tree.received_items();
        let outcome = match refusal {
            Some(error) => self.tree.refuse(error),
            None => self.tree.apply(command),
        };
        self.tree.take_applied_items();
        match command.write {
            Ok(Write::BetweenGroups(between)) => {
                self.note_between(&call, &between, outcome, received, writes)
            }
            _ => self.note(&call, outcome, false, writes),
        }
        self.note_streams();
    }

    /// The counters by which the home group is to give names.
    fn count_children(&self, command: &Command<'_>, call: &Call) -> ChildCounts {
        let of = |wish: &Wish| ChildCounts::of(wish, &self.tree);
        match command.write {
            _ if self.group > 0 => ChildCounts::default(),
            Ok(Write::BetweenGroups(GroupsCommand::Multi { request, .. })) => of(&wish_of_multi(request)),
            Ok(Write::BetweenGroups(GroupsCommand::Vote { multi, .. })) => {
                self.open.get(&multi).map(|asked| of(&asked.wish)).unwrap_or_default()
            }
            _ => of(&call.wish),
        }
    }

    /// A command between groups has come to this; `received` is the number of the last item that the group had applied before.
    fn note_between(
        &mut self,
        call: &Call,
        between: &GroupsCommand<'_>,
        outcome: Outcome<'_>,
        received: u64,
        writes: &mut Vec<LoggedWrite>,
    ) {
        let zxid = outcome.zxid;
        match *between {
            GroupsCommand::Item { number, decided, item } if self.tree.received_items() > received => {
                let changes_znodes = item.changes_znodes();
                self.logged.push(Logged::Item { number, decided, changes_znodes, zxid });
                match item {
                    StreamItem::Relayed { command } => self.note_relayed(number, decided, command, writes),
                    item => self.note_part(item, zxid),
                }
            }
            GroupsCommand::Multi { request, .. } if outcome.result != Ok(WriteReply::Done) => {
                // The multi concerned no other group, or is refused.
                let wish = wish_of_multi(request);
                self.note(&Call { wish, ..call.clone() }, outcome, false, writes);
            }
            GroupsCommand::Multi { request, .. } => {
                let wish = wish_of_multi(request);
                self.open.insert(zxid.0, Call { wish, ..call.clone() });
                self.note(call, outcome, false, writes);
            }
            GroupsCommand::Relay { op, request, .. } if outcome.result.is_err() => {
                let wish = Wish::of(&Write::decode(op, request));
                self.note(&Call { wish, ..call.clone() }, outcome, false, writes);
            }
            GroupsCommand::Vote { multi, .. } if self.is_decided(multi) => {
                let asked = self.open.remove(&multi).expect("a multi is decided once");
                self.note_multi(multi, asked, writes);
            }
            _ if self.group == 0 => self.note(call, outcome, false, writes),
            _ => {}
        }
    }

    /// An item that is applied in another group may be about its part of a multi.
    fn note_part(&mut self, item: StreamItem<'_>, zxid: Zxid) {
        match item {
            StreamItem::Prepare { multi, command } => {
                let asked = Command::decode(command).expect("the home group has carried it out");
                self.open.insert(multi, call(&asked));
            }
            StreamItem::Settle { multi, is_done } => {
                let asked = self.open.remove(&multi);
                let outcome = asked.and_then(|call| self.tree.multi_outcome(call.session));
                if let Some(MultiEnd::Done(own)) = outcome.filter(|_| is_done).map(|outcome| &outcome.end) {
                    self.logged.push(Logged::Settled { multi, zxid, own: own.clone() });
                }
            }
            _ => {}
        }
    }

    /// A write that was relayed to this group is carried out.
    fn note_relayed(&mut self, number: u64, decided: Zxid, command: &[u8], writes: &mut Vec<LoggedWrite>) {
        let command = Command::decode(command).expect("the home group has relayed it");
        let mut call = call(&command);
        call.member = self.tree.session_owner(call.session).unwrap_or_default();
        let answers = self.tree.take_relayed_answers();
        let answer = answers.into_iter().next().expect("a relayed write comes to something");
        let read = |body: Vec<u8>| read_reply(&call.wish, &body).expect("a group's replies can be read");
        let (stamp, result, level) = (answer.zxid, answer.result.map(read), self.tree.feature_level().0);
        let counts = ChildCounts::default();
        let write =
            LoggedWrite { stamp, call, result, portion: None, level, parts: None, decided: None, counts };
        self.logged.push(Logged::Relayed { number, decided, write: Box::new(write.clone()) });
        writes.push(write);
    }

    /// True if it is known what came of a multi that was open.
    fn is_decided(&self, multi: i64) -> bool {
        let asked = self.open.get(&multi);
        asked
            .and_then(|call| self.tree.multi_outcome(call.session))
            .is_some_and(|outcome| outcome.multi == multi)
    }

    fn note_multi(&mut self, multi: i64, call: Call, writes: &mut Vec<LoggedWrite>) {
        let Some(MultiOutcome { zxid, end, .. }) = self.tree.multi_outcome(call.session).cloned() else {
            return;
        };
        let Wish::Multi(wishes) = &call.wish else { return };
        let groups = wishes.iter().map(|wish| self.group_of(wish)).collect();
        let (result, parts) = match end {
            MultiEnd::Done(own) => (Ok(WriteReply::Done), Some(MultiParts { multi, groups, own })),
            MultiEnd::Failed { operation, error } => {
                let mut results = vec![MultiResult::Failed(None); operation as usize];
                results.push(MultiResult::Failed(Some(error)));
                results.resize(wishes.len(), MultiResult::Failed(Some(ErrorCode::RuntimeInconsistency)));
                (Ok(WriteReply::Multi(results)), None)
            }
            // Nothing was carried out, and it is asked for again.
            MultiEnd::Busy => (Err(MISPLACED), None),
        };
        let level = self.tree.feature_level().0;
        let counts = self.counts.clone();
        let decided = Some(Zxid(zxid.0 - 1));
        let write = LoggedWrite { stamp: zxid, call, result, portion: None, level, parts, decided, counts };
        self.logged.push(Logged::Write(Box::new(write.clone())));
        writes.push(write);
    }

    fn group_of(&self, wish: &Wish) -> u32 {
        let mut body = Vec::new();
        wish.put_body(&mut body);
        let mut group = 0;
        if let Ok(write) = Write::decode(wish.op(), &body) {
            for_each_path(&write, &mut |path| group = self.tree.split_points().group_of(path));
        }
        group
    }

    fn note(&mut self, call: &Call, outcome: Outcome<'_>, goes_on: bool, writes: &mut Vec<LoggedWrite>) {
        let gone = outcome.changes.iter().filter(|change| change.kind == EventKind::NodeDeleted);
        let portion = goes_on.then(|| gone.map(|change| change.path.to_string()).collect());
        let (stamp, call, result) = (outcome.zxid, call.clone(), owned(outcome.result));
        let level = self.tree.feature_level().0;
        let counts = self.counts.clone();
        let write = LoggedWrite { stamp, call, result, portion, level, parts: None, decided: None, counts };
        self.logged.push(Logged::Write(Box::new(write.clone())));
        writes.push(write);
    }

    /// Items that were appended to streams were decided with the last command.
    fn note_streams(&mut self) {
        for (group, stream) in self.tree.streams().iter() {
            let former = self.appended.entry(group).or_default();
            if stream.last() > *former {
                *former = stream.last();
                self.logged.push(Logged::Appends { group, last: *former });
            }
        }
    }
}

fn wish_of_multi(request: &[u8]) -> Wish {
    Wish::of(&Write::decode(OpCode::Multi, request))
}

fn call(command: &Command<'_>) -> Call {
    Call {
        session: command.session,
        member: command.member,
        time_ms: command.time_ms,
        ids: command.ids.iter().map(|(scheme, id)| Id::new(scheme, id)).collect(),
        enforces_quotas: command.enforces_quotas,
        wish: Wish::of(&command.write),
    }
}

fn owned(result: Result<WriteReply<'_>, ErrorCode>) -> Result<WriteReply<'static>, ErrorCode> {
    result.map(owned_reply)
}

fn owned_reply(reply: WriteReply<'_>) -> WriteReply<'static> {
    let path = |path: std::borrow::Cow<'_, str>| path.into_owned().into();
    match reply {
        WriteReply::Done => WriteReply::Done,
        WriteReply::Created { path: created } => WriteReply::Created { path: path(created) },
        WriteReply::CreatedWithStat { path: created, stat } => {
            WriteReply::CreatedWithStat { path: path(created), stat }
        }
        WriteReply::Changed { stat } => WriteReply::Changed { stat },
        WriteReply::Multi(results) => {
            let owned = results.into_iter().map(|result| match result {
                MultiResult::Done(op, reply) => MultiResult::Done(op, owned_reply(reply)),
                MultiResult::Failed(error) => MultiResult::Failed(error),
            });
            WriteReply::Multi(owned.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_replica::Membership;
    use paddock_tree::{FeatureLevel, RaisedLevel};

    use super::*;

    #[test]
    fn groups_are_founded_only_when_members_found_them() {
        // As a leader writes it.
        let mut payload = vec![8, 0, 0, 0, 4];
        payload.extend(Membership::new(vec![1], vec![]).encode());
        let founding = |index| LogEntry { index, term: 1, payload: payload.clone().into() };
        let mut log = GroupLog::new(0);

        log.apply(&founding(1));
        assert_eq!(log.tree.groups().count(), 1, "the members know of no groups yet");

        log.tree.raise_level(&RaisedLevel { level: FeatureLevel::SEVERAL_GROUPS, since: String::new() });
        log.apply(&founding(2));
        assert_eq!(log.tree.groups().count(), 4);
    }
}
