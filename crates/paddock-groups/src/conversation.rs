//! The requests of one connection, and what it is told.
//!
//! Requests are answered in their order. Those that follow each other in one group are under way together, and so are writes that the home group relays to several; any other one for another
//! group waits until all before it are answered. A reply waits until every group in which the client watches has come as far as what it shows, and so does an event: both leave in the order of
//! their places.

mod asking;
mod relaying;
mod rounds;
mod telling;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use paddock_proto::{
    Acl, ErrorCode, EventKind, IdList, OpCode, ReplyHeader, Request, SessionId, WatchEvent, Zxid,
};
use paddock_state::{ClientInput, ConnId, Outboxes, QueuedRead, RequestId, Slot, Woken, guest_event};
use paddock_tree::{Command, Guess, MISPLACED, RelayedAnswer};

use crate::answer::{LENGTH_BYTES, RoutedAnswer, is_misplaced, zxid_of};
use crate::moment::{NewItems, OrderMoment};
use crate::parts::{GroupPart, PartQuery};
use crate::place::sets_watch;
use crate::shown::ShownStamps;
use crate::turn::{Turn, session_command};
use crate::union::Parts;
use crate::view::Groups;

/// Requests of a connection, and events for it that have not left.
#[derive(Debug)]
pub(crate) struct Conversation {
    conn: ConnId,
    session: SessionId,
    shown: ShownStamps,
    /// The largest stamp in what has left.
    told: Zxid,
    /// Likewise, in read-only mode.
    shown_as_is: Zxid,
    /// A write of this connection was handed over: nothing of an earlier one can come behind it.
    has_written: bool,
    /// Groups in which the client may watch.
    watched: BTreeSet<u32>,
    requests: VecDeque<RoutedRequest>,
    /// Each with its number, by which those of one moment keep their order.
    events: BTreeMap<(OrderMoment, u64), Vec<u8>>,
    /// Split points whose children are watched, with the stamp as of which they were listed. One of which this is not known was listed before its children could
    /// lie in several groups.
    lists: BTreeMap<String, Zxid>,
    /// Changes of lists that hosts have told of behind the events that have used their watches up, with the znodes: an item can still move one in front of those.
    list_changes: Vec<(OrderMoment, String)>,
    /// Number of events that have left.
    events_sent: u64,
    /// The largest place of an event that has left.
    event_place: Zxid,
    /// Events of groups that have answered, or given their parts of an answer, for a client that does not watch yet: it does when the answer leaves, or is
    /// put together.
    held_events: Vec<HeldEvent>,
    /// Events that a host has told before the home group's replica here had come as far, of znodes that the client could not read: the identity counts that
    /// it has shown by then.
    unheard: Vec<UnheardEvent>,
    /// Groups that are not here and have refused a write because of its slot: they refuse all writes of the session.
    refused_elsewhere: BTreeSet<u32>,
    events_taken: u64,
    /// Number of requests that the home group is to relay, or has relayed.
    relays: usize,
    /// Answers to relayed writes, by the zxids of home's decisions, of which the home group's replica here does not know yet.
    early_answers: BTreeMap<Zxid, (u32, RelayedAnswer)>,
    /// A request has met a slot that its group does not have: nothing more is handed over before all that is under way there has come back.
    is_refused: bool,
    /// A write was carried out before an earlier read was answered, which its group had refused.
    has_overtaken: bool,
    /// A read that is to be asked for again has set its watch.
    has_watch_too_early: bool,
    /// Something was refused since the last tick: what is refused again at once would be for ever.
    was_refused: bool,
    /// The connection is closed behind what is answered already.
    is_ending: bool,
}

#[derive(Debug)]
struct RoutedRequest {
    request: RequestId,
    what: What,
    /// False while its bytes may be in a block with those of requests that came together with it.
    has_own_bytes: bool,
    stage: RequestStage,
    /// The groups were asked how far they have come, and that is awaited.
    is_synced: bool,
    /// A multi that was given up because a group was busy: it is asked for again when there is no other, or a tick has passed.
    was_busy: bool,
    /// Groups of a multi over several, which the home group has.
    over_groups: Vec<u32>,
    /// The home group is to relay it, or has.
    is_relayed: bool,
    /// Stamp that all groups have to lack nothing up to before it is asked for again.
    needs: Zxid,
    /// Watches of the client at the znode that it is to watch, when it was read first. `None` if it is to watch none, or was not read.
    watched_before: Option<WatchedBefore>,
    /// The znode of a split point is changed: the answer leaves when all groups know.
    binds_all: bool,
}

/// Watches that a client has at a znode, before it sets another one. An event that comes later, and of a kind of which they do not tell, is of that one.
#[derive(Debug)]
struct WatchedBefore {
    /// Kinds of the events of which they tell.
    kinds: Vec<EventKind>,
    /// Number of the last event that had come by then.
    events_taken: u64,
}

/// An event of a host, for a watch that does not count yet.
#[derive(Debug)]
struct HeldEvent {
    moment: OrderMoment,
    /// The event, and those who may hear of it.
    bytes: Vec<u8>,
}

/// An event of a znode that its client could not read when it came.
#[derive(Debug)]
struct UnheardEvent {
    moment: OrderMoment,
    frame: Vec<u8>,
    readers: Vec<Acl>,
}

#[derive(Debug)]
enum What {
    Write { op: OpCode, command: Bytes },
    Read(QueuedRead),
}

impl What {
    /// Gives the request bytes of its own.
    fn own_bytes(&mut self) {
        let (What::Write { command: bytes, .. } | What::Read(QueuedRead { body: bytes, .. })) = self;
        *bytes = Bytes::copy_from_slice(bytes);
    }
}

#[derive(Debug)]
enum RequestStage {
    Waiting,
    UnderWay {
        group: u32,
    },
    /// These groups have not said yet how far they have come.
    Syncing {
        left: BTreeSet<u32>,
        reply: Vec<u8>,
    },
    /// The home group has relayed it to its group, with this zxid.
    Relayed {
        decided: Zxid,
    },
    /// The home group has asked the groups for their parts of this multi.
    Deciding {
        multi: i64,
    },
    /// These groups have not given their parts yet.
    Gathering {
        as_of: Zxid,
        left: BTreeSet<u32>,
        parts: Parts,
    },
    Answered {
        answer: RoutedAnswer,
        freshness: Freshness,
    },
}

/// Until when an answer that waits for its turn can be given.
#[derive(Clone, Copy, Debug)]
enum Freshness {
    Forever,
    /// While the number of events that have left is this one.
    UntilEvent(u64),
    /// Until an event leaves whose place is behind this stamp, up to which the answer lacks nothing.
    UpTo(Zxid),
}

impl Conversation {
    /// A connection that was not heard of before. Its client was told no zxid beyond `told`; what it asks for is to lack nothing up to `shown`.
    pub(crate) fn new(
        conn: ConnId,
        session: SessionId,
        (told, shown): (Zxid, Zxid),
        watched: BTreeSet<u32>,
    ) -> Conversation {
        Conversation {
            conn,
            session,
            shown: ShownStamps::elsewhere(shown),
            told,
            shown_as_is: Zxid(0),
            has_written: false,
            watched,
            requests: VecDeque::new(),
            events: BTreeMap::new(),
            list_changes: Vec::new(),
            lists: BTreeMap::new(),
            events_sent: 0,
            event_place: Zxid(0),
            held_events: Vec::new(),
            unheard: Vec::new(),
            refused_elsewhere: BTreeSet::new(),
            events_taken: 0,
            relays: 0,
            early_answers: BTreeMap::new(),
            is_refused: false,
            has_overtaken: false,
            has_watch_too_early: false,
            was_refused: false,
            is_ending: false,
        }
    }

    /// The stamps that the client was shown.
    pub(crate) fn shown(&self) -> &ShownStamps {
        &self.shown
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// True if the connection is to be closed behind what is answered already.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    pub(crate) fn set_session(&mut self, session: SessionId) {
        self.session = session;
    }

    /// True if nothing is held back.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.requests.is_empty() && self.events.is_empty() && self.unheard.is_empty()
    }

    /// True if it may go on when a group has come further. What is under way, and nothing else, waits for its answer first.
    pub(crate) fn waits_for_more_than_answers(&self) -> bool {
        let waits_for_answer = |asked: &RoutedRequest| {
            matches!(asked.stage, RequestStage::UnderWay { .. } | RequestStage::Relayed { .. })
        };
        !self.events.is_empty()
            || !self.unheard.is_empty()
            || !self.held_events.is_empty()
            || !self.requests.iter().all(waits_for_answer)
    }

    /// True if a request is under way, or answered, that sets a watch of paths which are meant, or may.
    pub(crate) fn is_about_to_watch_at(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        self.requests.iter().any(|asked| match &asked.what {
            What::Read(read) if !matches!(asked.stage, RequestStage::Waiting) => {
                sets_watch(read.op, &read.body, read.client.dialect)
                    && telling::watched_path(read).is_none_or(&is_meant)
            }
            _ => false,
        })
    }

    /// The map has changed: what is watched may lie in any group.
    pub(crate) fn watch_all(&mut self, groups: impl Iterator<Item = u32>) {
        if !self.watched.is_empty() {
            self.watched.extend(groups);
        }
    }

    /// The client watches in any of these groups.
    pub(crate) fn watch_in(&mut self, groups: impl Iterator<Item = u32>) {
        self.watched.extend(groups);
    }

    /// The client watches the children of these znodes, which it was shown as of this stamp. Of what is no split point, or has all children in the home group, the stamp
    /// does not count, nor does one of an earlier watch.
    pub(crate) fn watch_lists(&mut self, paths: Vec<String>, as_of: Zxid, is_spread: impl Fn(&str) -> bool) {
        for path in paths {
            if is_spread(&path) {
                self.lists.insert(path, as_of);
            } else {
                self.lists.remove(&path);
            }
        }
    }

    /// Lists whose children are all in the home group again have the moments of its own changes: what they were shown as of is no matter any more.
    pub(crate) fn keep_lists(&mut self, is_spread: impl Fn(&str) -> bool) {
        self.lists.retain(|point, _| is_spread(point));
    }

    pub(crate) fn ask_write(&mut self, request: RequestId, op: OpCode, command: Bytes) {
        self.push(request, What::Write { op, command });
    }

    pub(crate) fn ask_read(&mut self, read: QueuedRead) {
        self.push(read.request, What::Read(read));
    }

    /// Keeps a request that the home group has been given.
    pub(crate) fn keep(&mut self, input: &ClientInput) {
        match input {
            ClientInput::Write { request, op, command, .. } => {
                self.ask_write(*request, *op, command.clone());
            }
            ClientInput::Read(read) => self.ask_read(read.clone()),
            other => unreachable!("{other:?} is no request"),
        }
        if let Some(asked) = self.requests.back_mut() {
            asked.stage = RequestStage::UnderWay { group: 0 };
        }
    }

    /// Sends what the home group has answered, as it came. A state that has given its first znodes away tells less of its zxid than clients were told `before`.
    pub(crate) fn pass_out(&mut self, out: &mut Outboxes, before: Option<Zxid>) {
        while matches!(
            self.requests.front(),
            Some(RoutedRequest { stage: RequestStage::Answered { .. }, .. })
        ) {
            let Some(RoutedRequest { request, stage: RequestStage::Answered { mut answer, .. }, .. }) =
                self.requests.pop_front()
            else {
                return;
            };
            let told = self.tell(answer.zxid.max(before.unwrap_or_default()));
            if before.is_some() {
                answer.set_zxid(told);
            }
            out.reply(self.conn, request.slot, |out| out.extend_from_slice(&answer.bytes));
        }
    }

    /// The client is told a zxid. Returns the one that it is to be told, which does not fall.
    pub(crate) fn tell(&mut self, zxid: Zxid) -> Zxid {
        self.told = self.told.max(zxid);
        self.told
    }

    /// True if the client may be told this zxid from groups as they are: none in which it watches, or is about to, lacks anything up to all that it is told.
    pub(crate) fn may_be_told(&self, zxid: Zxid, about_to: &BTreeSet<u32>, groups: &Groups<'_>) -> bool {
        let told = self.told.max(zxid);
        self.watched.union(about_to).all(|group| groups.level(*group) >= told)
    }

    /// As [`Conversation::tell`], from groups as they are: when they can be asked again, none is to be behind what was shown.
    pub(crate) fn tell_as_is(&mut self, zxid: Zxid) -> Zxid {
        let told = self.tell(zxid);
        self.shown_as_is = told;
        told
    }

    /// Znodes lie in these groups from now on. All that was shown is the home group's, up to `shown`. Up to `told` others may have told the client, which watches,
    /// or may soon: what home has been given, and has not answered, may yet set a watch.
    pub(crate) fn begin_spread(
        &mut self,
        (told, shown): (Zxid, Zxid),
        watches: bool,
        groups: impl Iterator<Item = u32>,
    ) {
        self.shown.note(0, shown);
        self.told = self.told.max(told);
        if watches || self.is_about_to_watch_at(|_| true) {
            self.watched.extend(groups);
        }
    }

    fn push(&mut self, request: RequestId, what: What) {
        self.shown.note_elsewhere(self.shown_as_is);
        self.requests.push_back(RoutedRequest {
            request,
            what,
            has_own_bytes: false,
            stage: RequestStage::Waiting,
            is_synced: false,
            was_busy: false,
            over_groups: Vec::new(),
            is_relayed: false,
            needs: Zxid(0),
            watched_before: None,
            binds_all: false,
        });
    }

    /// A group has told an event with this stamp.
    pub(crate) fn take_event(&mut self, group: u32, stamp: Zxid, bytes: Vec<u8>) {
        self.take_event_at(OrderMoment::of_change(group, stamp), bytes);
    }

    fn take_event_at(&mut self, moment: OrderMoment, bytes: Vec<u8>) {
        self.events_taken += 1;
        self.events.insert((moment, self.events_taken), bytes);
    }

    /// A group has applied items: what came before one, and from it, comes no later than the decision.
    pub(crate) fn pull_forward(&mut self, items: &NewItems<'_>) {
        let pulled = self.events.keys().filter_map(|key| Some((*key, items.pull(key.0)?)));
        for (key, moment) in pulled.collect::<Vec<_>>() {
            if let Some(event) = self.events.remove(&key) {
                self.events.insert((moment, key.1), event);
            }
        }
        let held = self.held_events.iter_mut().map(|event| &mut event.moment);
        let unheard = self.unheard.iter_mut().map(|event| &mut event.moment);
        let answers = self.requests.iter_mut().filter_map(|asked| match &mut asked.stage {
            RequestStage::Answered { answer, .. } => Some(&mut answer.moment),
            _ => None,
        });
        let lists = self.list_changes.iter_mut().map(|(moment, _)| moment);
        for moment in held.chain(unheard).chain(answers).chain(lists) {
            *moment = items.pull(*moment).unwrap_or(*moment);
        }
    }

    /// A group has answered. False if the connection has no such request under way.
    pub(crate) fn take_reply(&mut self, group: u32, slot: Slot, bytes: Cow<'_, [u8]>) -> bool {
        let Some(at) = self.requests.iter().position(|asked| asked.request.slot == slot) else {
            return false;
        };
        let is_refused = self.is_refused;
        let asked = &mut self.requests[at];
        match &mut asked.stage {
            RequestStage::Syncing { left, reply } => {
                if group == 0 {
                    *reply = bytes.into_owned();
                }
                left.remove(&group)
            }
            RequestStage::UnderWay { group: asked_of } if *asked_of == group => {
                let mut answer = RoutedAnswer::new(bytes.into_owned());
                answer.binds_all = asked.binds_all;
                // While nothing can be written, no entry of the group's log has it.
                let is_logged = answer.error != Some(ErrorCode::NotReadOnly.code());
                if is_logged && matches!(asked.what, What::Write { .. }) {
                    answer.moment = OrderMoment::of_change(group, answer.zxid);
                }
                // Behind a refused write a group refuses all writes of its session. Behind a refused read it does not: they are not to be carried out again.
                let is_misplaced = answer.error == Some(MISPLACED.code());
                let read = match &asked.what {
                    What::Read(read) if is_refused => Some(read),
                    _ => None,
                };
                if read.is_some() || is_misplaced {
                    // The home group's replica is the member's own, and its watch may tell of what the answer is yet to show.
                    self.has_watch_too_early |= group == 0
                        && !is_misplaced
                        && read.is_some_and(|read| sets_watch(read.op, &read.body, read.client.dialect));
                    asked.stage = RequestStage::Waiting;
                    self.is_refused = true;
                    if std::mem::take(&mut asked.is_relayed) {
                        self.let_relay_go();
                    }
                    return true;
                }
                self.has_overtaken |= is_refused;
                if asked.is_relayed {
                    self.take_word_of_home(at, answer);
                    return true;
                }
                if !asked.over_groups.is_empty() && answer.error.is_none() && answer.is_empty() {
                    asked.stage = RequestStage::Deciding { multi: answer.zxid.0 };
                } else {
                    self.shown.note(group, answer.zxid);
                    asked.stage = RequestStage::Answered { answer, freshness: Freshness::Forever };
                }
                true
            }
            _ => false,
        }
    }

    /// The host of a group has answered a request, when the group had come to this level.
    pub(crate) fn take_reply_of_host(&mut self, (group, level): (u32, Zxid), slot: Slot, bytes: Vec<u8>) {
        let is_misplaced = is_misplaced(&bytes);
        let is_write =
            |asked: &RoutedRequest| asked.request.slot == slot && matches!(asked.what, What::Write { .. });
        if is_misplaced && self.requests.iter().any(is_write) {
            self.refused_elsewhere.insert(group);
        }
        if !self.take_reply(group, slot, bytes.into()) {
            return;
        }
        let asked = self.requests.iter_mut().find(|asked| asked.request.slot == slot);
        let Some(RoutedRequest {
            what: What::Read(read),
            stage: RequestStage::Answered { answer, freshness },
            ..
        }) = asked
        else {
            return;
        };
        *freshness = Freshness::UpTo(level);
        let request = Request::decode(read.op, &read.body, read.client.dialect);
        if !matches!(request, Ok(Request::Read(_))) {
            answer.show_nothing();
        }
        if sets_watch(read.op, &read.body, read.client.dialect) {
            // What came before this answer is in it. What comes behind it is for the watch.
            self.held_events.retain(|event| event.moment.group != group);
            answer.sets_watch_in = Some(group);
            // Where the znode lies the home group says.
            self.watched.extend([0, group]);
        }
    }

    /// The host of a group has given its parts of an answer.
    pub(crate) fn take_parts(&mut self, group: u32, found: Vec<(PartQuery, GroupPart)>) {
        if let Some(RoutedRequest { stage: RequestStage::Gathering { left, parts, .. }, .. }) =
            self.requests.front_mut()
            && left.remove(&group)
        {
            parts.extend(found.into_iter().map(|(query, part)| ((group, query), part)));
        }
    }

    /// The host of a group has told an event. It counts if the client watches here. Returns a path that the client does not watch at all.
    pub(crate) fn take_event_of_host(
        &mut self,
        group: u32,
        bytes: Vec<u8>,
        groups: &Groups<'_>,
    ) -> Option<String> {
        let (frame, _) = guest_event::split(&bytes).ok()?;
        let moment = OrderMoment::of_change(group, event_in(frame)?.zxid);
        self.take_held_event(HeldEvent { moment, bytes }, groups)
    }

    fn take_held_event(&mut self, event: HeldEvent, groups: &Groups<'_>) -> Option<String> {
        let HeldEvent { moment, bytes } = event;
        let (group, stamp) = (moment.group, moment.stamp());
        let (frame, readers) = guest_event::split(&bytes).ok()?;
        let event = event_in(frame)?;
        let (kind, path) = (event.kind, event.path.to_owned());
        let is_list = kind == EventKind::NodeChildrenChanged;
        if is_list && self.lists.get(&path).is_some_and(|as_of| stamp <= *as_of) {
            return None;
        }
        let watches = groups.home().state.watches();
        match watches.wake(self.conn, kind, &path, readers.as_deref()) {
            Woken::NoWatch => {}
            Woken::Unheard => {
                if moment.place > groups.home().tree().zxid() {
                    let (frame, readers) = (frame.to_vec(), readers.unwrap_or_default());
                    self.unheard.push(UnheardEvent { moment, frame, readers });
                }
                return None;
            }
            Woken::Told => {
                self.take_event_at(moment, frame.to_vec());
                return None;
            }
        }
        let may_watch = match self.requests.front().map(|front| &front.stage) {
            Some(RequestStage::Gathering { left, .. }) => !left.contains(&group),
            Some(RequestStage::Answered { answer, .. }) => answer.sets_watch_in == Some(group),
            _ => false,
        };
        if may_watch {
            self.held_events.push(HeldEvent { moment, bytes });
            return None;
        }
        if is_list && self.events.values().any(|told| telling::point_of(told) == Some(&path)) {
            self.list_changes.push((moment, path.clone()));
        }
        // A request that is under way may be about to watch it.
        let is_done_with = !watches.is_watched_by(self.conn, &path) && !self.waits_for(group);
        is_done_with.then_some(path)
    }

    /// True if the client waits for a group's host, or watches there.
    pub(crate) fn needs_host(&self, group: u32) -> bool {
        self.watched.contains(&group) || self.waits_for(group)
    }

    fn waits_for(&self, group: u32) -> bool {
        self.requests.iter().any(|asked| match &asked.stage {
            // Its group is known for sure when it is carried out.
            RequestStage::UnderWay { .. } if asked.is_relayed => true,
            RequestStage::Relayed { .. } => true,
            RequestStage::UnderWay { group: of } => *of == group,
            RequestStage::Syncing { left, .. } | RequestStage::Gathering { left, .. } => {
                left.contains(&group)
            }
            RequestStage::Deciding { .. } => asked.over_groups.contains(&group),
            RequestStage::Waiting | RequestStage::Answered { .. } => false,
        })
    }

    /// The engine ends the connection. True if it is to be closed at once.
    pub(crate) fn end(&mut self) -> bool {
        let is_farewell = |asked: &RoutedRequest| {
            matches!(
                (&asked.what, &asked.stage),
                (What::Write { op: OpCode::CloseSession, .. }, RequestStage::Answered { .. })
            )
        };
        self.is_ending = self.requests.back().is_some_and(is_farewell);
        !self.is_ending
    }

    /// A tick has passed: what was busy is asked for again. Requests that wait for long do not keep the blocks that they came in.
    pub(crate) fn tick(&mut self) {
        self.was_refused = false;
        for asked in self.requests.iter_mut().filter(|asked| !asked.has_own_bytes) {
            asked.what.own_bytes();
            asked.has_own_bytes = true;
        }
        if let Some(front) = self.requests.front_mut() {
            front.was_busy = false;
        }
    }

    /// True if the oldest read, which was asked again, shows something that came after a later write: it cannot be answered any more.
    fn is_out_of_order(&self) -> bool {
        let mut requests = self.requests.iter();
        let Some(RoutedRequest { what: What::Read(_), stage: RequestStage::Answered { answer, .. }, .. }) =
            requests.next().filter(|_| self.has_overtaken)
        else {
            return false;
        };
        requests.any(|later| match (&later.what, &later.stage) {
            (What::Write { .. }, RequestStage::Answered { answer: own, .. }) => {
                own.moment.stamp() < answer.zxid
            }
            _ => false,
        })
    }

    /// Does what can be done. Returns true if the connection is over.
    pub(crate) fn go_on(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        self.look_at_lists(turn);
        self.hear_unheard(turn);
        while !self.has_watch_too_early
            && (self.hear_held(turn)
                || self.send_event(turn)
                || self.send_answer(turn)
                || self.ask_next(turn))
        {}
        let is_done = self.is_ending && self.requests.is_empty();
        let is_over = is_done || self.is_out_of_order() || self.has_watch_too_early;
        if is_over {
            turn.out.close(self.conn);
        }
        self.has_overtaken &= !self.requests.is_empty();
        is_over
    }
}

/// A write of a client as the home group is to know it, which has it carried out in other groups: the client's identities, the body of its request, and if limits of quotas count.
fn for_home<'c>(command: &'c [u8], groups: &Groups<'_>) -> (IdList<'c>, &'c [u8], bool) {
    let Ok(Command { ids, enforces_quotas, .. }) = Command::decode(command) else {
        unreachable!("it was just read")
    };
    let Ok((_, body)) = Command::request(command) else { unreachable!("it was just read") };
    (ids, body, enforces_quotas && groups.know_quotas())
}

/// Sets the watch of a read that a group's host has answered, with this error or none.
fn watch_here(read: &QueuedRead, error: Option<i32>, groups: &Groups<'_>) -> Result<(), ErrorCode> {
    let result = match error {
        None => Ok(()),
        Some(code) => Err(ErrorCode::from_code(code).unwrap_or(ErrorCode::BadArguments)),
    };
    let home = groups.home().state;
    match Request::decode(read.op, &read.body, read.client.dialect) {
        Ok(Request::Read(asked)) => match home.watch_read(&read.client, &asked, result) {
            Err(refused) if result != Err(refused) => Err(refused),
            _ => Ok(()),
        },
        Ok(request) if result.is_ok() => {
            home.answer_body(&read.client, &request, Guess::NONE, &mut Vec::new())
        }
        _ => Ok(()),
    }
}

/// The event in a frame.
fn event_in(frame: &[u8]) -> Option<WatchEvent<'_>> {
    WatchEvent::decode(zxid_of(frame)?, frame.get(LENGTH_BYTES + ReplyHeader::BYTES..)?).ok()
}
