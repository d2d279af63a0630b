//! The way of clients' requests into the groups of a member, and of answers and events back.
//!
//! This is the one place that looks at several groups, here or at their hosts: it holds each request until its group lacks nothing that the session was shown of other
//! groups, and each answer and event until those that come before it have left ([`crate`] says by which rules). It keeps nothing that must not be
//! lost: a connection that ends takes its part with it.

mod hosts;
mod read_only;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{MemberNumber, Password, SessionId, Zxid};
use paddock_state::{ClientInput, ConnId, Connected, Outboxes, Parcel, Slot};
use paddock_tree::{AppliedItem, Command, Origin, RelayedAnswer, SlotMaps, SplitPoints};

use crate::answer::{is_misplaced, zxid_of};
use crate::away::Guests;
use crate::conversation::Conversation;
use crate::marks::{Marks, RaisedStamps};
use crate::moment::NewItems;
use crate::turn::{HostQuestion, Order, Turn};
use crate::under_way::{self, HandedBy, UnderWay};
use crate::view::{GroupView, Groups, Replicas};

pub use hosts::HostChoice;
pub use read_only::ReadOnlyRequest;

/// Ticks after a change of the map of slots within which the next one is expected: slots move in portions that follow each other.
const MOVING_TICKS: u32 = 50;

/// Requests of the clients of one member, while znodes are spread over groups.
#[derive(Debug)]
pub struct Router {
    member: MemberNumber,
    are_reads_linearizable: bool,
    conversations: BTreeMap<ConnId, Conversation>,
    /// Connections that have asked for something, by their sessions.
    conns_of: BTreeMap<SessionId, BTreeSet<ConnId>>,
    /// Connections of sessions whose writes the home group relays.
    relaying: BTreeMap<SessionId, ConnId>,
    /// Inputs that have come and were not looked at.
    inputs: Vec<ClientInput>,
    /// Stamps that clients who greet say they have seen.
    claims: BTreeMap<ConnId, Zxid>,
    /// Connections that are closed before they have a session.
    refused: BTreeSet<ConnId>,
    /// Requests of clients while nothing can be written.
    read_only: Vec<ReadOnlyRequest>,
    /// Parcels that go to connections as they came.
    passed: Vec<Passed>,
    /// Writes of sessions that were handed over and may not have been applied yet, though their connections may be gone.
    under_way: BTreeMap<SessionId, Vec<UnderWay>>,
    /// Clients that want sessions back of which something is under way.
    returning: Vec<(SessionId, ClientInput)>,
    /// Nothing can be written.
    is_read_only: bool,
    /// Connections by which sessions have come back, as far as they are there.
    came_by: CameBy,
    /// The last batch that was handed to the home group before there was a router: nothing goes to another group before that is applied.
    fence: Option<(Origin, u64)>,
    marks: Marks,
    /// Conversations for which something may have changed.
    ready: BTreeSet<ConnId>,
    /// Conversations that go on when a group has come further, as they were after their last turn.
    waiting: BTreeSet<ConnId>,
    /// Znodes lie in several groups; before that everything goes to the home group, and back from there, at once.
    are_spread: bool,
    /// They do since the last turn.
    is_beginning: bool,
    /// The largest zxid that clients may have been told by others than the router. Those that greeted before znodes were spread, and so have no claim, have seen nothing newer.
    spread_from: Zxid,
    /// Newest map of slots that was looked at.
    map: Zxid,
    /// Groups of the slots by that map.
    slots: SlotMaps,
    /// Ticks for which more slots are to be expected to move.
    moving_ticks: u32,
    /// Split points with children in several groups, each with the stamp from which on that has been so, as far as it was looked at.
    spread_since: BTreeMap<String, Zxid>,
    /// A group has applied something since the last turn.
    is_changed: bool,
    /// Groups that hosts have for this member.
    guests: Guests,
    /// Groups whose hosts have said something that makes another line necessary.
    lost_hosts: BTreeSet<u32>,
    /// There are groups that are not here.
    has_guests: bool,
    /// Number of the home group's decisions about hosts that were looked at.
    host_decisions: u64,
    /// Not all members have all groups: this one may come to serve others, and need hosts, or need them no more.
    are_groups_placed: bool,
    /// A tick has passed, and there may be groups that need a host, or need it no more.
    is_looking_for_hosts: bool,
}

/// Connections by which sessions have come back to this member.
#[derive(Debug, Default)]
struct CameBy {
    conns: BTreeMap<SessionId, ConnId>,
    sessions: BTreeMap<ConnId, SessionId>,
}

impl CameBy {
    fn come(&mut self, session: SessionId, conn: ConnId) {
        if let Some(former) = self.conns.insert(session, conn) {
            self.sessions.remove(&former);
        }
        self.sessions.insert(conn, session);
    }

    /// True if the session has come back by another connection than this one.
    fn is_former(&self, (conn, session): (ConnId, SessionId)) -> bool {
        self.conns.get(&session).is_some_and(|newest| *newest != conn)
    }

    fn forget(&mut self, conn: ConnId) {
        if let Some(session) = self.sessions.remove(&conn) {
            self.conns.remove(&session);
        }
    }
}

/// A parcel that concerns no request that is routed.
#[derive(Debug)]
enum Passed {
    Connected(ConnId, Connected, Password),
    Expired(ConnId),
    Close(ConnId),
    Reply(ConnId, Slot, Vec<u8>),
}

impl Router {
    /// A router that nothing was asked of. The batches of the home group from this start up to the number in `fence` may still be under way.
    pub fn new(member: MemberNumber, are_reads_linearizable: bool, fence: (Origin, u64)) -> Router {
        Router {
            member,
            are_reads_linearizable,
            conversations: BTreeMap::new(),
            conns_of: BTreeMap::new(),
            relaying: BTreeMap::new(),
            inputs: Vec::new(),
            claims: BTreeMap::new(),
            refused: BTreeSet::new(),
            read_only: Vec::new(),
            passed: Vec::new(),
            under_way: BTreeMap::new(),
            returning: Vec::new(),
            is_read_only: false,
            came_by: CameBy::default(),
            fence: Some(fence),
            marks: Marks::default(),
            ready: BTreeSet::new(),
            waiting: BTreeSet::new(),
            are_spread: false,
            is_beginning: false,
            spread_from: Zxid(0),
            map: Zxid(0),
            slots: SlotMaps::default(),
            moving_ticks: 0,
            spread_since: BTreeMap::new(),
            is_changed: false,
            guests: Guests::default(),
            lost_hosts: BTreeSet::new(),
            has_guests: false,
            host_decisions: 0,
            are_groups_placed: true,
            // Who asks in the first moments of a process must not be taken for one who has waited for another host.
            is_looking_for_hosts: true,
        }
    }

    /// Takes an input of a connection. Returns it if it is for the home group as it is.
    pub fn take(&mut self, input: ClientInput) -> Option<ClientInput> {
        match input {
            _ if input.conn().is_some_and(|conn| self.refused.contains(&conn)) => {
                if let ClientInput::Disconnect { conn } = input {
                    self.refused.remove(&conn);
                    self.came_by.forget(conn);
                    self.guests.forget(conn);
                    return Some(input);
                }
            }
            // What is left out of what a connection has asked for must not be followed by more of it.
            ClientInput::Write { .. } | ClientInput::Read(_) if self.came_by.is_former(asker(&input)) => {
                self.refused.insert(asker(&input).0);
            }
            ClientInput::Write { .. } | ClientInput::Read(_) if !self.are_spread => {
                return Some(self.pass_in(input));
            }
            ClientInput::Write { .. } | ClientInput::Read(_) => self.inputs.push(input),
            ClientInput::Seen { conn, zxid } => {
                self.claims.insert(conn, zxid);
            }
            ClientInput::Disconnect { conn } => {
                self.forget(conn);
                return Some(input);
            }
            // What an earlier connection of the session has asked for here must not come behind what is asked of another member meanwhile: so the
            // session is taken over when nothing of it is under way.
            ClientInput::Resume { conn, ref resumption, .. } if !resumption.is_asking => {
                let session = resumption.session;
                self.forget_session(session);
                self.came_by.come(session, conn);
                if !self.under_way.contains_key(&session) {
                    return Some(input);
                }
                self.returning.push((session, input));
            }
            _ => return Some(input),
        }
        None
    }

    /// Keeps a request that goes to the home group until it is answered: its znode may go to another group meanwhile.
    fn pass_in(&mut self, input: ClientInput) -> ClientInput {
        let (conn, session) = asker(&input);
        let begin = || Conversation::new(conn, SessionId::NONE, (Zxid(0), Zxid(0)), BTreeSet::new());
        let one = self.conversations.entry(conn).or_insert_with(begin);
        one.keep(&input);
        self.set_session(conn, session);
        input
    }

    /// A connection has asked for something in this session.
    fn set_session(&mut self, conn: ConnId, session: SessionId) {
        let Some(one) = self.conversations.get_mut(&conn).filter(|one| one.session() != session) else {
            return;
        };
        let former = one.session();
        one.set_session(session);
        self.forget_conn_of(former, conn);
        self.conns_of.entry(session).or_default().insert(conn);
    }

    fn forget_conn_of(&mut self, session: SessionId, conn: ConnId) {
        if let Entry::Occupied(mut conns) = self.conns_of.entry(session) {
            conns.get_mut().remove(&conn);
            if conns.get().is_empty() {
                conns.remove();
            }
        }
    }

    /// Ends the conversation of a connection.
    fn end_conversation(&mut self, conn: ConnId) {
        self.waiting.remove(&conn);
        let Some(session) = self.conversations.remove(&conn).map(|one| one.session()) else { return };
        self.forget_conn_of(session, conn);
        if self.relaying.get(&session) == Some(&conn) {
            self.relaying.remove(&session);
        }
    }

    /// The home group's state says that znodes lie in several groups: with the next turn requests are routed. `told` is the largest zxid that clients may have
    /// been told by others, who read that state while all znodes were in it.
    pub fn begin_spread(&mut self, told: Zxid) {
        if !self.are_spread && !self.is_beginning {
            (self.is_beginning, self.spread_from) = (true, told);
        }
    }

    /// True while znodes lie in several groups.
    pub fn are_spread(&self) -> bool {
        self.are_spread
    }

    /// Passes on what the home group answers and tells while all znodes are in it, but for what was refused because its znode has just moved.
    /// `before` is the largest zxid that clients may have been told, if the home group's state has given znodes away.
    pub fn pass_out(&mut self, mail: &mut Outboxes, out: &mut Outboxes, before: Option<Zxid>) {
        for (_, outbox) in mail.iter_mut() {
            for (conn, parcel) in outbox.iter() {
                match parcel {
                    Parcel::Event(bytes) | Parcel::SharedEvent(bytes) => {
                        if let Some(one) = self.conversations.get_mut(&conn) {
                            one.tell(event_stamp(bytes).unwrap_or_default());
                        }
                        out.event_bytes(conn, bytes);
                    }
                    other => self.take_parcel((0, 1), conn, other, before),
                }
                if let Some(one) = self.conversations.get_mut(&conn) {
                    one.pass_out(out, before);
                }
                self.send_passed(out);
            }
            outbox.clear();
        }
    }

    /// The connection is gone, or is to be closed.
    fn forget(&mut self, conn: ConnId) {
        self.guests.forget(conn);
        self.end_conversation(conn);
        self.claims.remove(&conn);
        self.came_by.forget(conn);
        self.ready.remove(&conn);
        self.inputs.retain(|input| match input {
            ClientInput::Write { conn: of, .. } => *of != conn,
            ClientInput::Read(read) => read.client.conn != conn,
            _ => true,
        });
        self.returning
            .retain(|(_, input)| !matches!(input, ClientInput::Resume { conn: of, .. } if *of == conn));
    }

    /// Closes a connection, of which nothing more is taken. Its session goes on.
    fn close(&mut self, conn: ConnId) {
        self.forget(conn);
        self.refused.insert(conn);
        self.passed.push(Passed::Close(conn));
    }

    /// The session comes back on another connection: nothing more is taken of those that it had. They are closed when that one has it, and at once if the session
    /// has ended: the home group closes them no more.
    fn forget_session(&mut self, session: SessionId) {
        for conn in self.conns_of.get(&session).cloned().unwrap_or_default() {
            if self.conversations.get(&conn).is_some_and(Conversation::is_ending) {
                self.close(conn);
                continue;
            }
            self.forget(conn);
            self.refused.insert(conn);
        }
    }

    /// Read-only mode begins or ends. While nothing can be written, what is under way may never end: connections that were to be closed behind earlier answers
    /// are closed at once, and clients that want sessions back are answered by the home group as it answers all then.
    pub fn follow_mode(&mut self, is_read_only: bool) {
        if std::mem::replace(&mut self.is_read_only, is_read_only) || !is_read_only {
            return;
        }
        let ending = self.conversations.iter().filter(|(_, one)| one.is_ending()).map(|(conn, _)| *conn);
        for conn in ending.collect::<Vec<_>>() {
            self.close(conn);
        }
    }

    /// A client says that it has seen a stamp that none can have given: its connection is closed, whatever it asks for.
    pub fn refuse(&mut self, conn: ConnId) {
        self.refused.insert(conn);
        self.passed.push(Passed::Close(conn));
    }

    /// Drops everything: the connections of this member are to be closed, also those that serve sessions and have asked for nothing. Of those that are returned nothing more
    /// is taken.
    pub fn begin_anew(&mut self, serving: Vec<ConnId>) -> BTreeSet<ConnId> {
        self.inputs.clear();
        self.is_looking_for_hosts = true;
        let conns: BTreeSet<ConnId> = self.conversations.keys().copied().chain(serving).collect();
        for conn in &conns {
            self.forget(*conn);
            self.refused.insert(*conn);
        }
        conns
    }

    /// A group has applied something: these are its answers and events, and items that it has applied.
    pub fn take_mail(
        &mut self,
        group: u32,
        mail: &mut Outboxes,
        (items, answers): (&[AppliedItem], Vec<RelayedAnswer>),
        home: Zxid,
        groups: u32,
    ) {
        let home = Some(home).filter(|_| self.are_spread || self.is_beginning);
        for (_, outbox) in mail.iter_mut() {
            // Answers to other members' clients are no affair of this router.
            for (conn, parcel) in outbox.iter().filter(|(conn, _)| !conn.is_of_guest()) {
                self.take_parcel((group, groups), conn, parcel, home);
            }
            outbox.clear();
        }
        self.come_further(&NewItems::new(group, items));
        answers.into_iter().for_each(|answer| self.take_relayed(group, answer));
        self.is_changed = true;
    }

    /// A group has come further, and has applied these items: those who wait for that go on.
    fn come_further(&mut self, items: &NewItems<'_>) {
        self.ready.append(&mut self.waiting);
        if !items.is_empty() {
            for conn in &self.ready {
                if let Some(one) = self.conversations.get_mut(conn) {
                    one.pull_forward(items);
                }
            }
        }
    }

    /// A group has carried out a write that was relayed to it.
    fn take_relayed(&mut self, group: u32, answer: RelayedAnswer) {
        if let Some(conn) = self.relaying.get(&answer.session)
            && let Some(one) = self.conversations.get_mut(conn)
        {
            self.ready.insert(*conn);
            one.take_relayed(group, answer);
        }
    }

    /// `home` is the zxid of the home group's state while znodes are spread.
    fn take_parcel(
        &mut self,
        (group, groups): (u32, u32),
        conn: ConnId,
        parcel: Parcel<'_>,
        home: Option<Zxid>,
    ) {
        match parcel {
            Parcel::Reply(slot, bytes) => {
                let known = self.conversations.get_mut(&conn);
                if known.is_some_and(|one| one.take_reply(group, slot, bytes.into())) {
                    self.ready.insert(conn);
                    return;
                }
                // Its connection is gone, or is about to be closed; of the home group it may also be one that came by no router, as in read-only mode.
                if group > 0 {
                    return;
                }
                // Such an answer tells less than its client was told before, if znodes have gone to other groups since it was asked for.
                let is_late = home.is_some() || is_misplaced(bytes);
                self.passed.push(if is_late {
                    Passed::Close(conn)
                } else {
                    Passed::Reply(conn, slot, bytes.to_vec())
                });
            }
            Parcel::Event(bytes) | Parcel::SharedEvent(bytes) => {
                let stamp = event_stamp(bytes).unwrap_or(home.unwrap_or_default());
                let one = self.conversation(conn, home.unwrap_or_default(), || (0..groups).collect());
                one.take_event(group, stamp, bytes.to_vec());
                self.ready.insert(conn);
            }
            Parcel::Connected(connected, password) => {
                self.passed.push(Passed::Connected(conn, connected, password));
            }
            Parcel::Expired => self.passed.push(Passed::Expired(conn)),
            Parcel::Close => {
                if self.conversations.get_mut(&conn).is_none_or(Conversation::end) {
                    self.close(conn);
                } else {
                    self.ready.insert(conn);
                }
            }
        }
    }

    /// True if there may be something to do.
    pub fn has_work(&self) -> bool {
        !self.inputs.is_empty()
            || !self.passed.is_empty()
            || !self.read_only.is_empty()
            || self.is_read_only && !self.returning.is_empty()
            || self.is_beginning
            || !self.ready.is_empty() && self.fence.is_none()
            || self.is_changed && !self.under_way.is_empty()
            || self.guests.has_news()
            || self.is_looking_for_hosts
    }

    /// The member has come to serve other groups, or has lost another member.
    pub fn look_for_hosts(&mut self) {
        self.is_looking_for_hosts = true;
    }

    /// A tick has passed.
    pub fn tick(&mut self) {
        self.marks.tick();
        self.guests.tick();
        self.is_looking_for_hosts = self.has_guests || self.are_groups_placed;
        self.moving_ticks = self.moving_ticks.saturating_sub(1);
        self.conversations.values_mut().for_each(Conversation::tick);
        let waiting = self.conversations.iter().filter(|(_, one)| !one.is_at_rest());
        self.ready.extend(waiting.map(|(conn, _)| *conn));
    }

    /// Does what can be done: fills `out`, and returns what is asked of the groups that are here. `replicas` are those of this member as they are; `hosts` says who
    /// can be asked for the others. `clock` is the stamp of this moment, 0 if it is not known.
    pub fn work(
        &mut self,
        replicas: &dyn Replicas,
        hosts: HostChoice<'_>,
        clock: Zxid,
        out: &mut Outboxes,
    ) -> Vec<Order> {
        let mut guests = std::mem::take(&mut self.guests);
        let (mut orders, mut questions) = (Vec::new(), Vec::new());
        if self.has_to_follow_hosts(replicas) {
            orders = self.follow_hosts((replicas, hosts), &mut guests);
        }
        if guests.has_news() {
            self.hear_hosts(replicas, &mut guests);
        }
        let groups = Groups::new(replicas, self.member, &guests).at(clock);
        orders.extend(self.work_with(&groups, &mut questions, out));
        self.is_looking_for_hosts = false;
        if !guests.is_empty() {
            orders = self.write_letters((orders, questions), replicas, &mut guests);
        }
        self.guests = guests;
        orders
    }

    fn work_with(
        &mut self,
        groups: &Groups<'_>,
        questions: &mut Vec<(u32, HostQuestion)>,
        out: &mut Outboxes,
    ) -> Vec<Order> {
        self.is_changed = false;
        self.send_passed(out);
        for request in std::mem::take(&mut self.read_only) {
            self.answer_in_read_only(groups, &request, out);
        }
        self.marks.follow(|group| groups.get(group).map(|view| view.tree().zxid()));
        self.follow_map(groups);
        let mut orders = self.settle_under_way(groups);
        orders.extend(self.let_return());
        if !self.are_spread {
            self.ready.clear();
            return orders;
        }
        for input in std::mem::take(&mut self.inputs) {
            self.sort_in(input, groups);
        }
        if self.fence.is_some() {
            return orders;
        }
        let mut raised = RaisedStamps::default();
        for conn in std::mem::take(&mut self.ready) {
            let Some(conversation) = self.conversations.get_mut(&conn) else { continue };
            let mut turn = Turn {
                groups: *groups,
                out,
                orders: &mut orders,
                questions,
                marks: &mut self.marks,
                raised: &mut raised,
                spread_since: &self.spread_since,
                are_reads_linearizable: self.are_reads_linearizable,
                may_slots_move: self.moving_ticks > 0,
            };
            let is_over = conversation.go_on(&mut turn);
            if conversation.waits_for_more_than_answers() {
                self.waiting.insert(conn);
            }
            if conversation.has_relays() {
                self.relaying.insert(conversation.session(), conn);
            }
            if is_over {
                // What its client has asked for behind that is not to be carried out.
                self.end_conversation(conn);
                self.refused.insert(conn);
            }
        }
        orders
    }

    /// Forgets what was under way and has been applied, or can never be.
    fn settle_under_way(&mut self, groups: &Groups<'_>) -> Vec<Order> {
        self.under_way.retain(|_, all| {
            all.retain(|one| !one.is_over(groups));
            !all.is_empty()
        });
        self.fence.take_if(|(origin, batch)| {
            let home = groups.home();
            home.origin != *origin || home.tree().applied_batch(*origin) >= *batch
        });
        // A group has to hear of a later start of the process before it is known that nothing of an earlier one comes.
        let mut orders = Vec::new();
        for one in self.under_way.values().flatten().filter(|one| one.is_of_earlier_start(groups)) {
            if self.marks.is_start_due(one.group) {
                orders.push(Order::Mark { group: one.group, at_least: Zxid(0) });
            }
        }
        orders
    }

    /// Sessions of which nothing is under way any more are taken over. While nothing can be written, they are only read from.
    fn let_return(&mut self) -> Vec<Order> {
        let Router { returning, under_way, is_read_only, .. } = self;
        let back = returning.extract_if(.., |(session, _)| *is_read_only || !under_way.contains_key(session));
        back.map(|(session, input)| Order::Hand { group: 0, session, needs: Zxid(0), input }).collect()
    }

    fn send_passed(&mut self, out: &mut Outboxes) {
        for passed in self.passed.drain(..) {
            match passed {
                Passed::Connected(conn, connected, password) => out.connected(conn, connected, &password),
                Passed::Expired(conn) => out.expired(conn),
                Passed::Close(conn) => out.close(conn),
                Passed::Reply(conn, slot, bytes) => {
                    out.reply(conn, slot, |out| out.extend_from_slice(&bytes))
                }
            }
        }
    }

    fn follow_map(&mut self, groups: &Groups<'_>) {
        let newest = groups.points().iter().map(|(_, point)| Zxid(point.version())).max().unwrap_or_default();
        if !self.are_spread && groups.points().are_spread() {
            (self.are_spread, self.is_beginning) = (true, false);
            let home = groups.home();
            let shown = home.tree().zxid();
            for (conn, one) in &mut self.conversations {
                let watches = home.state.watches().has_any(*conn);
                one.begin_spread((self.spread_from, shown), watches, groups.numbers());
            }
            self.ready.extend(self.conversations.keys());
        }
        if newest > self.map || groups.points().leaving().next().is_some() {
            self.moving_ticks = MOVING_TICKS;
        }
        if newest > self.map {
            self.map = newest;
            self.follow_spread(groups.points());
            if groups.numbers().any(|group| !groups.is_here(group)) {
                self.close_moved_watchers(groups);
            }
            self.slots = groups.points().slot_maps();
            for one in self.conversations.values_mut() {
                one.watch_all(groups.numbers());
                one.keep_lists(|point| self.spread_since.contains_key(point));
            }
        }
    }

    fn follow_spread(&mut self, points: &SplitPoints) {
        let is_spread = |path: &str| points.get(path).is_some_and(|point| !point.slots().is_home());
        self.spread_since.retain(|path, _| is_spread(path));
        for (path, point) in points.iter().filter(|(path, _)| is_spread(path)) {
            if !self.spread_since.contains_key(path) {
                self.spread_since.insert(path.to_owned(), Zxid(point.version()));
            }
        }
    }

    /// The conversation of a connection, which begins with its first request, or with the first event for it. What it asks for lacks nothing up to `shown`. One that may watch in groups, which are
    /// `watched`, counts as told of what it has said, or what others have told it, and no more: events of what came since may be on their way.
    fn conversation(
        &mut self,
        conn: ConnId,
        shown: Zxid,
        watched: impl FnOnce() -> BTreeSet<u32>,
    ) -> &mut Conversation {
        let Router { conversations, claims, spread_from, .. } = self;
        conversations.entry(conn).or_insert_with(|| {
            let (told, watched) = (claims.remove(&conn).unwrap_or(*spread_from), watched());
            let shown = told.max(shown);
            let told = if watched.is_empty() { shown } else { told };
            Conversation::new(conn, SessionId::NONE, (told, shown), watched)
        })
    }

    /// Likewise, with the first request.
    fn conversation_of_asker(&mut self, conn: ConnId, shown: Zxid, groups: &Groups<'_>) -> &mut Conversation {
        self.conversation(conn, shown, || {
            let watches = groups.home().state.watches().has_any(conn);
            groups.numbers().filter(|_| watches).collect()
        })
    }

    /// Gives a request to its conversation.
    fn sort_in(&mut self, input: ClientInput, groups: &Groups<'_>) {
        let (conn, session) = asker(&input);
        let one = self.conversation_of_asker(conn, groups.home().tree().zxid(), groups);
        match input {
            ClientInput::Write { request, op, command, .. } => one.ask_write(request, op, command),
            ClientInput::Read(read) => one.ask_read(read),
            other => unreachable!("{other:?} is no request"),
        }
        self.set_session(conn, session);
        self.ready.insert(conn);
    }

    /// A write of a session was handed to a group, as a part of this batch.
    pub fn handed(&mut self, session: SessionId, group: u32, (origin, batch): (Origin, u64)) {
        self.note_handed(session, UnderWay { group, by: HandedBy::Batch(origin, batch) });
    }

    fn note_handed(&mut self, session: SessionId, handed: UnderWay) {
        under_way::note(&mut self.under_way, session, handed);
    }
}

/// Connections of this member's clients that watch anything.
fn watchers(home: GroupView<'_>) -> impl Iterator<Item = ConnId> {
    let watches = home.state.watches();
    let watchers = (0..).map_while(|slice| watches.watchers(slice)).flatten();
    watchers.map(|(conn, _)| conn).filter(|conn| !conn.is_of_guest())
}

/// Connection and session of a request.
fn asker(input: &ClientInput) -> (ConnId, SessionId) {
    match input {
        ClientInput::Write { conn, command, .. } => (*conn, Command::session_of(command)),
        ClientInput::Read(read) => (read.client.conn, read.client.session),
        other => unreachable!("{other:?} is no request"),
    }
}

/// Stamp in the header of an event.
fn event_stamp(bytes: &[u8]) -> Option<Zxid> {
    zxid_of(bytes).filter(|zxid| *zxid > Zxid(0))
}

#[cfg(test)]
mod tests;
