//! Requests that all groups have a part in: a sync, and a multi over several groups.

use std::collections::BTreeSet;

use paddock_proto::jute::Writer;
use paddock_proto::{ErrorCode, GroupsCommand, OpCode, Write, Zxid};
use paddock_state::ClientInput;
use paddock_tree::{Command, MultiEnd, MultiOutcome, done_multi, failed_multi, multi_over_groups};

use super::{Conversation, Freshness, RequestStage, What, for_home};
use crate::answer::RoutedAnswer;
use crate::moment::OrderMoment;
use crate::turn::{HostQuestion, Order, Turn};

impl Conversation {
    /// Asks the home group for the oldest request, a multi over several groups.
    pub(super) fn ask_several(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let places = match &self.requests[0].what {
            What::Write { op: OpCode::Multi, command } => places_of(command, turn),
            _ => Err(ErrorCode::Unimplemented),
        };
        let places = match places {
            Ok(places) => places,
            Err(error) => {
                self.refuse(error, turn);
                return true;
            }
        };
        if self.requests[0].was_busy && turn.groups.home().tree().has_open_multis() {
            return false;
        }
        // All of them are asked at once.
        let unready = places.iter().filter(|(group, _)| !self.may_write(*group, turn)).count();
        if unready > 0 {
            return false;
        }
        let home = (0, Zxid(0));
        let behind = places
            .iter()
            .chain([&home])
            .filter(|(group, map)| !turn.is_at(*group, self.shown.of_others(*group).max(*map)));
        if behind.count() > 0 {
            return false;
        }
        let What::Write { command, .. } = &self.requests[0].what else { unreachable!("it is a multi") };
        let (ids, request, enforces_quotas) = for_home(command, &turn.groups);
        let command = multi_over_groups(self.session, ids, request, enforces_quotas);
        let front = &mut self.requests[0];
        let op = GroupsCommand::OP;
        let input =
            ClientInput::Write { conn: self.conn, request: front.request, op, command: command.into() };
        front.over_groups = places.iter().map(|(group, _)| *group).collect();
        front.stage = RequestStage::UnderWay { group: 0 };
        turn.orders.push(Order::Hand { group: 0, session: self.session, needs: Zxid(0), input });
        true
    }

    /// Answers a multi over several groups, once it is settled in all of them.
    pub(super) fn end_multi(&mut self, multi: i64, turn: &mut Turn<'_, '_>) -> bool {
        let (home, session) = (turn.groups.home(), self.session);
        let groups = turn.groups;
        let of = |group: u32| {
            let outcome = groups.multi_outcome(group, session)?;
            (outcome.multi == multi).then_some((group, outcome))
        };
        let Some((_, decided)) = of(0) else { return false };
        let What::Write { command, .. } = &self.requests[0].what else { unreachable!("it is a write") };
        let Ok(Command { write: Ok(Write::Multi(writes)), .. }) = Command::decode(command) else {
            unreachable!("it was read before")
        };
        let (body, outcomes) = match &decided.end {
            MultiEnd::Busy => {
                let front = &mut self.requests[0];
                (front.was_busy, front.stage) = (true, RequestStage::Waiting);
                return false;
            }
            MultiEnd::Failed { operation, error } => {
                (failed_multi(writes.len(), *operation, *error), vec![(0, decided)])
            }
            MultiEnd::Done(_) => {
                let asked: BTreeSet<u32> = self.requests[0].over_groups.iter().copied().chain([0]).collect();
                let has_all = |outcomes: &[(u32, &MultiOutcome)]| {
                    outcomes.iter().map(|(_, outcome)| outcome.results()).sum::<usize>() == writes.len()
                };
                let mut outcomes: Vec<(u32, &MultiOutcome)> = asked.into_iter().filter_map(of).collect();
                if !has_all(&outcomes) {
                    // Slots have moved since the multi was handed over: any group may have a part in it.
                    outcomes = turn.groups.numbers().filter_map(of).collect();
                }
                if !has_all(&outcomes) {
                    let is_unknown = |group: &u32| groups.is_away(*group) && of(*group).is_none();
                    let over_groups = &mut self.requests[0].over_groups;
                    if !over_groups.iter().any(is_unknown) {
                        over_groups.extend(groups.numbers().filter(is_unknown));
                    }
                    for group in over_groups.iter().copied().filter(is_unknown) {
                        turn.ask(group, HostQuestion::Outcome { session, multi });
                    }
                    return false;
                }
                (done_multi(outcomes.iter().map(|(_, outcome)| *outcome)), outcomes)
            }
        };
        let stamps: Vec<(u32, Zxid)> =
            outcomes.iter().map(|(group, outcome)| (*group, outcome.zxid)).collect();
        let shown = stamps.iter().map(|(_, zxid)| *zxid).max().unwrap_or_default();
        let (request, mut bytes) = (self.requests[0].request, Vec::new());
        home.state.write_answer(request.xid, shown, &mut bytes, |out| {
            out.extend_from_slice(&body);
            Ok(())
        });
        let mut answer = RoutedAnswer::new(bytes);
        answer.moment = OrderMoment::of_multi(decided.zxid);
        stamps.iter().for_each(|(group, zxid)| self.shown.note(*group, *zxid));
        self.requests[0].stage = RequestStage::Answered { answer, freshness: Freshness::Forever };
        true
    }

    /// Asks all groups how far they have come, for the oldest request.
    pub(super) fn begin_sync(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        // Nothing that an earlier connection has asked for comes behind it, as behind a write.
        let can_ask_all = turn.groups.numbers().all(|group| turn.groups.can_ask(group));
        if !can_ask_all || !self.may_write(0, turn) {
            return false;
        }
        let front = &mut self.requests[0];
        let What::Read(read) = &front.what else { unreachable!("a write asks no group how far it has come") };
        let left: BTreeSet<u32> = turn.groups.numbers().collect();
        for group in &left {
            let mut sync = read.clone();
            if sync.op != OpCode::Sync {
                let mut body = Vec::new();
                body.put_string("/");
                (sync.op, sync.body) = (OpCode::Sync, body.into());
            }
            let input = ClientInput::Read(sync);
            turn.orders.push(Order::Hand { group: *group, session: self.session, needs: Zxid(0), input });
        }
        front.stage = RequestStage::Syncing { left, reply: Vec::new() };
        true
    }

    /// All groups have said how far they have come: from here on that counts as shown.
    pub(super) fn end_sync(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        for group in turn.groups.numbers() {
            self.shown.note(group, turn.groups.zxid(group));
        }
        let shown = self.shown.of_all();
        let front = &mut self.requests[0];
        front.is_synced = true;
        let is_sync = matches!(&front.what, What::Read(read) if read.op == OpCode::Sync);
        let stage = std::mem::replace(&mut front.stage, RequestStage::Waiting);
        if let (true, RequestStage::Syncing { reply, .. }) = (is_sync, stage) {
            let answer = RoutedAnswer::new(reply).showing(shown);
            front.stage = RequestStage::Answered { answer, freshness: Freshness::Forever };
        }
        true
    }
}

/// Groups of the operations of a multi, with the zxids of the maps that say so.
fn places_of(command: &[u8], turn: &Turn<'_, '_>) -> Result<Vec<(u32, Zxid)>, ErrorCode> {
    let Ok(Command { write: Ok(Write::Multi(writes)), .. }) = Command::decode(command) else {
        return Err(ErrorCode::MarshallingError);
    };
    let mut places = Vec::new();
    for write in &writes {
        paddock_tree::for_each_path(write, &mut |path| places.push(turn.groups.points().place_of(path)));
    }
    Ok(places)
}
