//! The next request of a client on its way to a group, when its turn has come.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{ErrorCode, EventKind, GroupsCommand, OpCode, Request, Zxid};
use paddock_state::ClientInput;
use paddock_tree::{Command, Guess};

use super::telling::watched_path;
use super::{Conversation, Freshness, RequestStage, RoutedRequest, WatchedBefore, What, session_command};
use crate::answer::RoutedAnswer;
use crate::parts::PartQuery;
use crate::place::{RequestPlace, sets_watch, watched_lists};
use crate::turn::{HostQuestion, Order, Turn};
use crate::union::{Parts, Union};

const EVENT_KINDS: [EventKind; 4] = [
    EventKind::NodeCreated,
    EventKind::NodeDeleted,
    EventKind::NodeDataChanged,
    EventKind::NodeChildrenChanged,
];

impl Conversation {
    /// Hands the next request over, or answers it, if it is its turn.
    pub(super) fn ask_next(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        if self.is_refused && !self.begin_again(turn) {
            return false;
        }
        match self.requests.front() {
            Some(RoutedRequest { stage: RequestStage::Syncing { left, .. }, .. }) => {
                return left.is_empty() && self.end_sync(turn);
            }
            Some(RoutedRequest { stage: RequestStage::Gathering { left, .. }, .. }) => {
                return left.is_empty() && self.answer_of_all(turn);
            }
            Some(RoutedRequest { stage: RequestStage::Deciding { multi }, .. }) => {
                return self.end_multi(*multi, turn);
            }
            _ => {}
        }
        let Some(at) = self.requests.iter().position(|asked| matches!(asked.stage, RequestStage::Waiting))
        else {
            return false;
        };
        let is_sync_due = turn.are_reads_linearizable && !self.requests[at].is_synced;
        let place = self.place_of(at, turn);
        match place {
            RequestPlace::One { group, map } if !self.is_answered_here(at) => {
                self.hand_over(at, group, map, turn)
            }
            _ if at > 0 => false,
            RequestPlace::Sync => self.begin_sync(turn),
            _ if is_sync_due && matches!(self.requests[0].what, What::Read(_)) => self.begin_sync(turn),
            RequestPlace::One { group, map } if turn.groups.is_away(group) => {
                self.hand_over(at, group, map, turn)
            }
            RequestPlace::One { group, map } => self.answer_of_one(group, map, turn),
            RequestPlace::All => self.answer_of_all(turn),
            RequestPlace::Several => self.ask_several(turn),
            RequestPlace::OnTheWay => false,
        }
    }

    fn place_of(&self, at: usize, turn: &Turn<'_, '_>) -> RequestPlace {
        match &self.requests[at].what {
            // A session that has ended is told so at home.
            _ if turn.groups.home().tree().session_timeout_ms(self.session).is_none() => RequestPlace::HOME,
            What::Write { command, .. } => RequestPlace::of_write(&turn.groups, command),
            What::Read(read) if read.refusal.is_some() => RequestPlace::HOME,
            What::Read(read) => RequestPlace::of_read(&turn.groups, read.op, &read.body, read.client.dialect),
        }
    }

    /// True for a request that is not handed over to its group: a read that sets a watch, or may have to be read again.
    fn is_answered_here(&self, at: usize) -> bool {
        match &self.requests[at].what {
            What::Write { .. } => false,
            What::Read(read) => {
                !self.watched.is_empty()
                    || read.refusal.is_some()
                    || !matches!(
                        Request::decode(read.op, &read.body, read.client.dialect),
                        Ok(Request::Read(_))
                    )
                    || sets_watch(read.op, &read.body, read.client.dialect)
            }
        }
    }

    /// Hands a request over to its group, if it may follow what is under way.
    fn hand_over(&mut self, at: usize, group: u32, map: Zxid, turn: &mut Turn<'_, '_>) -> bool {
        let is_write = matches!(self.requests[at].what, What::Write { .. });
        if at > 0 && matches!(self.requests[at].what, What::Write { op: OpCode::CloseSession, .. }) {
            // With the session its watches go, and what is told before the answers to earlier requests would be of no watch.
            return false;
        }
        if is_write && self.is_to_be_relayed(at, group, turn) {
            return self.hand_to_relay(at, group, turn);
        }
        let may_follow_relays = is_write && group == 0 && self.may_follow_at_home(at);
        let may_follow = may_follow_relays
            || self.requests.iter().take(at).all(|before| match &before.stage {
                // A write that is carried out must not have a refused read before it, which would show something later.
                RequestStage::UnderWay { .. }
                    if is_write && turn.may_slots_move && matches!(before.what, What::Read(_)) =>
                {
                    false
                }
                // A multi over several groups is carried out later than its command.
                RequestStage::UnderWay { group: other } => {
                    *other == group && before.over_groups.is_empty() && !before.is_relayed
                }
                RequestStage::Answered { freshness, .. } => matches!(freshness, Freshness::Forever),
                RequestStage::Waiting
                | RequestStage::Relayed { .. }
                | RequestStage::Syncing { .. }
                | RequestStage::Deciding { .. }
                | RequestStage::Gathering { .. } => false,
            });
        if !may_follow || !turn.groups.can_ask(group) || is_write && !self.may_write(group, turn) {
            return false;
        }
        let needs = self.shown.of_others(group).max(map);
        // A host waits for that itself.
        let is_its_turn = turn.groups.is_away(group)
            || if is_write { turn.takes_write(group, needs) } else { turn.is_at(group, needs) };
        if !is_its_turn {
            return false;
        }
        let asked = &mut self.requests[at];
        if let What::Write { command, .. } = &asked.what {
            asked.binds_all = Command::is_about(command, |path| turn.groups.points().get(path).is_some());
        }
        let request = asked.request;
        let input = match &asked.what {
            What::Write { op, command } => {
                ClientInput::Write { conn: self.conn, request, op: *op, command: command.clone() }
            }
            What::Read(read) => ClientInput::Read(read.clone()),
        };
        asked.stage = RequestStage::UnderWay { group };
        turn.orders.push(Order::Hand { group, session: self.session, needs, input });
        true
    }

    /// True if a group takes the session's writes, and none of an earlier connection can follow; else it is asked for what is missing.
    pub(super) fn may_write(&mut self, group: u32, turn: &mut Turn<'_, '_>) -> bool {
        let home = turn.groups.home().tree();
        if home.session_timeout_ms(self.session).is_none() {
            return true;
        }
        let is_attached = group == 0 || home.attached_groups(self.session).any(|attached| attached == group);
        let moves = home.session_moves(self.session);
        if !is_attached && turn.marks.is_attach_due((self.session, moves), group) {
            let attach = GroupsCommand::Attach { group };
            turn.orders.push(Order::Submit { group: 0, command: session_command(self.session, attach) });
        }
        let mut is_ready = is_attached;
        let attached = || home.attached_groups(self.session).chain((!is_attached).then_some(group));
        for group in attached() {
            if !turn.groups.knows_start_in(group) {
                turn.tell_start(group);
                is_ready = false;
            }
            let attends = turn.groups.has_owner_in(self.session, group);
            if !attends && turn.groups.is_away(group) {
                turn.ask(group, HostQuestion::Attend { session: self.session, moves });
            } else if !attends && turn.groups.is_owner_in(self.session, group) {
                // The session has come through a host before, which may be this member: what comes from there is to be refused from now on.
                turn.bring(self.session, group);
            }
            is_ready &= attends;
        }
        if is_ready && !self.has_written {
            // The client may have asked for more on another connection than it was answered. That comes before all that it asks for on this one.
            self.has_written = true;
            for group in attached() {
                self.shown.note(group, turn.groups.zxid(group));
            }
        }
        is_ready
    }

    /// Something was refused because of its slot: when all that was under way has come back, it is sent again.
    fn begin_again(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let is_under_way = |asked: &RoutedRequest| matches!(asked.stage, RequestStage::UnderWay { .. });
        if self.requests.iter().any(is_under_way) {
            return false;
        }
        let is_stalled =
            |group: u32| turn.groups.get(group).is_some_and(|view| view.tree().is_stalled(self.session));
        let stalled: Vec<u32> = turn.groups.numbers().filter(|group| is_stalled(*group)).collect();
        let holds = |group: &u32| turn.groups.get(*group).is_some_and(|view| view.tree().has_open_multis());
        if stalled.iter().any(|group| *group > 0 && holds(group)) {
            // What a multi holds there is let go soon.
            return false;
        }
        if std::mem::replace(&mut self.was_refused, true) {
            return false;
        }
        self.is_refused = false;
        for group in stalled.into_iter().chain(std::mem::take(&mut self.refused_elsewhere)) {
            let command = session_command(self.session, GroupsCommand::GoOn);
            turn.orders.push(Order::Submit { group, command });
        }
        true
    }

    /// Notes which watches the client has at the znode that the oldest request is to watch, which is about to be read.
    fn note_watched_before(&mut self, turn: &Turn<'_, '_>) {
        let front = &mut self.requests[0];
        let What::Read(read) = &front.what else { return };
        if front.watched_before.is_none()
            && let Some(path) = watched_path(read)
        {
            let watches = turn.groups.home().state.watches();
            let is_told = |kind: &EventKind| watches.is_told_of(self.conn, path, *kind);
            let kinds = EVENT_KINDS.into_iter().filter(is_told).collect();
            front.watched_before = Some(WatchedBefore { kinds, events_taken: self.events_taken });
        }
    }

    /// Answers the oldest request from the state of one group.
    fn answer_of_one(&mut self, group: u32, map: Zxid, turn: &mut Turn<'_, '_>) -> bool {
        if !turn.is_at(group, self.shown.of_others(group).max(map)) {
            return false;
        }
        let Some(view) = turn.groups.get(group) else { return false };
        let What::Read(read) = &self.requests[0].what else { unreachable!("writes are handed over") };
        let has_left = match Request::decode(read.op, &read.body, read.client.dialect) {
            Ok(Request::Read(read)) => !view.tree().has_places_of(&read),
            _ => false,
        };
        if has_left {
            // The group has given the znode away, and the home group's replica here has yet to say so.
            return false;
        }
        self.note_watched_before(turn);
        let What::Read(read) = &self.requests[0].what else { unreachable!("that was just looked at") };
        let mut bytes = Vec::new();
        match read.refusal {
            Some(error) => view.state.refuse(read.request.xid, error, &mut bytes),
            None => {
                view.state.answer(
                    &read.client,
                    read.request.xid,
                    read.op,
                    &read.body,
                    Guess::NONE,
                    &mut bytes,
                );
            }
        }
        let is_read =
            matches!(Request::decode(read.op, &read.body, read.client.dialect), Ok(Request::Read(_)));
        let mut answer = RoutedAnswer::new(bytes);
        if !is_read || read.refusal.is_some() {
            // Nothing of a znode is shown.
            answer = answer.showing(Zxid(0));
        }
        if answer.error.is_none() || answer.error == Some(ErrorCode::NoNode.code()) {
            let sets = sets_watch(read.op, &read.body, read.client.dialect);
            self.watched.extend(sets.then_some(group));
            let lists = watched_lists(read.op, &read.body, read.client.dialect);
            self.watch_lists(lists, view.level(), |path| turn.spread_since.contains_key(path));
        }
        self.shown.note(group, answer.zxid);
        let freshness = Freshness::UntilEvent(self.events_sent);
        self.requests[0].stage = RequestStage::Answered { answer, freshness };
        true
    }

    /// Answers the oldest request from the states of all groups. What hosts have of it is asked for first.
    fn answer_of_all(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let all: BTreeSet<u32> = turn.groups.numbers().collect();
        let shown = self.shown.of_all();
        let are_all_here = !turn.groups.numbers().any(|group| turn.groups.is_away(group));
        let stage = std::mem::replace(&mut self.requests[0].stage, RequestStage::Waiting);
        let (as_of, parts) = if let RequestStage::Gathering { as_of, parts, .. } = stage {
            (as_of, parts)
        } else {
            let front = &self.requests[0];
            let can_ask_all = all.iter().all(|group| turn.groups.can_ask(*group));
            if front.was_busy || !can_ask_all || !self.are_at(&all, shown.max(front.needs), turn) {
                return false;
            }
            (turn.groups.least_level(), Parts::new())
        };
        self.note_watched_before(turn);
        let What::Read(read) = &self.requests[0].what else { unreachable!("writes are handed over") };
        let mut union = Union::new(turn.groups, &read.client, as_of, &parts);
        union.needs = shown;
        let (mut bytes, mut body) = (Vec::new(), Vec::new());
        let result = union.answer(read.op, &read.body, &mut bytes, &mut body);
        let Union { needs, shown, event, has_left, missing, .. } = union;
        if has_left {
            self.requests[0].was_busy = !are_all_here;
            return false;
        }
        if needs > as_of {
            self.requests[0].needs = needs;
            self.are_at(&all, needs, turn);
            return false;
        }
        if !missing.is_empty() {
            let client = read.client.clone();
            let mut by_group: BTreeMap<u32, Vec<PartQuery>> = BTreeMap::new();
            missing.into_iter().for_each(|(group, query)| by_group.entry(group).or_default().push(query));
            let left = by_group.keys().copied().collect();
            for (group, queries) in by_group {
                turn.ask(group, HostQuestion::Parts { client: client.clone(), as_of, queries });
            }
            self.requests[0].stage = RequestStage::Gathering { as_of, left, parts };
            return true;
        }
        turn.groups.home().state.write_answer(read.request.xid, shown, &mut bytes, |out| {
            out.extend_from_slice(&body);
            result
        });
        let mut answer = RoutedAnswer::new(bytes);
        let mut lists = watched_lists(read.op, &read.body, read.client.dialect);
        // What was told in front of the answer, or refused, is not watched. The event behind an answer is that of its watch. A watch that stays tells each change at its own moment.
        let watches = turn.groups.home().state.watches();
        let is_watched = |path: &str| watches.watches_list_once(self.conn, path);
        for path in lists.extract_if(.., |path| event.is_none() && !is_watched(path)) {
            self.lists.remove(&path);
        }
        answer.event = event;
        if sets_watch(read.op, &read.body, read.client.dialect) {
            self.watched.extend(all.iter());
        }
        self.watch_lists(lists, as_of, |path| turn.spread_since.contains_key(path));
        all.iter().for_each(|group| self.shown.note(*group, answer.zxid.min(turn.groups.level(*group))));
        let freshness =
            if are_all_here { Freshness::UntilEvent(self.events_sent) } else { Freshness::UpTo(as_of) };
        self.requests[0].stage = RequestStage::Answered { answer, freshness };
        true
    }

    /// Refuses the oldest request.
    pub(super) fn refuse(&mut self, error: ErrorCode, turn: &Turn<'_, '_>) {
        let front = &mut self.requests[0];
        let mut bytes = Vec::new();
        turn.groups.home().state.refuse(front.request.xid, error, &mut bytes);
        let answer = RoutedAnswer::new(bytes).showing(Zxid(0));
        front.stage = RequestStage::Answered { answer, freshness: Freshness::Forever };
    }
}
