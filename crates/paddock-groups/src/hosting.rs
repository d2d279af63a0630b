//! A member as the host of groups that others do not have: what they ask for is done on its replicas, and they are told of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paddock_proto::{GroupsCommand, MemberNumber, SessionId, Zxid};
use paddock_state::{Client, ClientInput, ConnId, Outboxes, Parcel, QueuedRead, RequestId, Slot};
use paddock_tree::{AppliedItem, MultiEnd, MultiOutcome, Origin, RelayedAnswer, Tree};

use crate::away::{
    GuestLetter, GuestRequest, Guests, HostLetter, Line, LineFrame, LineName, SessionStanding,
};
use crate::marks::{Marks, RaisedStamps};
use crate::turn::{Order, session_command};
use crate::view::{GroupView, Groups, Replicas};

/// Number of items above which a guest is told of them, whether it waits for anything or not.
const ITEMS_MAX: usize = 256;

/// Ticks after which nothing is kept for a guest that has acknowledged nothing.
const SILENT_TICKS_MAX: u32 = 100;

/// A group of this member, and a guest of it.
type GroupAndGuest = (u32, MemberNumber);

/// Guests of this member, each with its group.
#[derive(Debug, Default)]
pub struct Hosting {
    guests: BTreeMap<GroupAndGuest, Hosted>,
    conns: BTreeMap<ConnId, HostedConn>,
    /// Connections that were given a number.
    conns_begun: u64,
    marks: Marks,
    /// Guests from which something has come since the last turn, or for which something may have changed.
    stirred: BTreeSet<GroupAndGuest>,
    /// Guests to which something may have to be sent.
    writing: BTreeSet<GroupAndGuest>,
}

/// A connection of a guest.
#[derive(Clone, Copy, Debug)]
struct HostedConn {
    guest: MemberNumber,
    group: u32,
    /// The connection as the guest calls it.
    there: ConnId,
}

/// One guest of one group.
#[derive(Debug)]
struct Hosted {
    line: Line,
    is_welcome: bool,
    /// The last batch into which something of the guest's came: before it is applied, no other line begins.
    last_batch: Option<(Origin, u64)>,
    /// Letters whose time has not come, by rising numbers.
    held: VecDeque<(u64, GuestLetter)>,
    /// The guest's connections, as they are called here.
    conns: BTreeMap<ConnId, ConnId>,
    /// Requests that were handed over, with the numbers of their letters.
    asked: BTreeMap<(ConnId, u32), u64>,
    /// Requests that will not be answered: they are done when this batch, the last one that they can have come into, is applied.
    unanswered: Vec<(u64, Option<(Origin, u64)>)>,
    next_slot: u32,
    /// Sessions of which the group is to know that they come through this member, with their moves.
    brought_through: BTreeSet<(SessionId, u32)>,
    /// The level that the guest was told of.
    told: Zxid,
    /// The largest stamp for which it waits.
    awaited: Zxid,
    /// Items that were applied since it was told of any.
    items: Vec<AppliedItem>,
    /// Something was said to it since its level was.
    was_told: bool,
}

impl Hosted {
    fn new(name: LineName, last_batch: Option<(Origin, u64)>) -> Hosted {
        Hosted {
            line: Line::new(name),
            is_welcome: false,
            last_batch,
            held: VecDeque::new(),
            conns: BTreeMap::new(),
            asked: BTreeMap::new(),
            unanswered: Vec::new(),
            next_slot: 0,
            brought_through: BTreeSet::new(),
            told: Zxid(0),
            awaited: Zxid(0),
            items: Vec::new(),
            was_told: false,
        }
    }

    /// The group answers nothing that was asked for on a connection.
    fn abandon(&mut self, conn: ConnId) {
        let asked = self.asked.extract_if(.., |(of, _), _| *of == conn);
        let numbers: Vec<u64> = asked.map(|(_, number)| number).collect();
        let batch = self.last_batch;
        self.unanswered.extend(numbers.into_iter().map(|number| (number, batch)));
    }

    /// True if the guest waits for something that may come with any transaction of the home group.
    fn waits(&self) -> bool {
        !self.is_welcome || !self.held.is_empty() || !self.unanswered.is_empty() || self.awaited > self.told
    }

    fn tell(&mut self, letter: &HostLetter) {
        self.push(letter.encode());
    }

    fn push(&mut self, letter: Vec<u8>) {
        self.line.push(letter);
        self.was_told = true;
    }
}

impl Hosting {
    /// Takes a message of a guest. Returns connections that are gone: nothing more is told to them. `None` if it is no whole message.
    pub fn take_frame(&mut self, from: MemberNumber, group: u32, bytes: &[u8]) -> Option<Vec<ConnId>> {
        let frame = LineFrame::decode(bytes).ok()?;
        let mut gone = Vec::new();
        let key = (group, from);
        self.stirred.insert(key);
        let known = self.guests.get(&key);
        if known.is_none_or(|hosted| hosted.line.name() != frame.line) {
            // Only its own beginning begins a line; the rest of a former one, or all of it, may come late.
            let is_former = known.is_some_and(|hosted| hosted.line.name() > frame.line);
            if is_former || frame.first != 1 {
                // A guest that has forgotten how it has called its lines hears it.
                if let Some(hosted) = self.guests.get_mut(&key).filter(|_| is_former) {
                    hosted.line.answer();
                }
                return Some(gone);
            }
            let last_batch = known.and_then(|hosted| hosted.last_batch);
            if let Some(former) = self.guests.insert(key, Hosted::new(frame.line, last_batch)) {
                gone.extend(former.conns.into_values());
                self.conns.retain(|conn, _| !gone.contains(conn));
            }
        }
        let hosted = self.guests.get_mut(&key)?;
        for (number, letter) in hosted.line.receive(&frame) {
            match GuestLetter::decode(&letter) {
                Ok(GuestLetter::Level { at_least }) => hosted.awaited = hosted.awaited.max(at_least),
                Ok(letter) => hosted.held.push_back((number, letter)),
                // The guest closes the connection that waits for it.
                Err(_) => hosted.tell(&HostLetter::Done { number, zxid: Zxid(0) }),
            }
        }
        Some(gone)
    }

    /// True if this member has guests.
    pub fn has_guests(&self) -> bool {
        !self.guests.is_empty()
    }

    /// Takes what a group, whose state is this one, tells the connections of guests, and what writes of their sessions came to that were relayed. The rest is left alone.
    pub fn take_mail(
        &mut self,
        (group, state): (u32, &Tree),
        mail: &mut Outboxes,
        (items, answers): (&[AppliedItem], &[RelayedAnswer]),
    ) {
        let zxid = state.zxid();
        let Hosting { guests, conns, stirred, .. } = self;
        for (_, outbox) in mail.iter_mut() {
            for (conn, parcel) in outbox.iter().filter(|(conn, _)| conn.is_of_guest()) {
                // Another group's change of a znode whose children are watched here is not this guest's affair.
                let Some(of) = conns.get(&conn).filter(|of| of.group == group) else { continue };
                let Some(hosted) = guests.get_mut(&(group, of.guest)) else { continue };
                match parcel {
                    Parcel::Reply(slot, bytes) => {
                        if let Some(number) = hosted.asked.remove(&(conn, slot.0)) {
                            hosted.push(HostLetter::encode_reply(number, zxid, bytes));
                        }
                    }
                    Parcel::Event(bytes) | Parcel::SharedEvent(bytes) => {
                        hosted.tell(&HostLetter::Event { conn: of.there, bytes: bytes.to_vec() });
                    }
                    Parcel::Close => {
                        hosted.abandon(conn);
                        hosted.tell(&HostLetter::Close { conn: of.there });
                    }
                    Parcel::Connected(..) | Parcel::Expired => {}
                }
            }
        }
        for (key, hosted) in guests.range_mut((group, MemberNumber::MIN)..=(group, MemberNumber::MAX)) {
            hosted.items.extend(items);
            stirred.insert(*key);
        }
        for answer in answers {
            let guest = state.session_owner(answer.session).and_then(|owner| guests.get_mut(&(group, owner)));
            if let Some(hosted) = guest.filter(|hosted| hosted.is_welcome) {
                hosted.tell(&HostLetter::Relayed { answer: answer.clone() });
            }
        }
    }

    /// The home group has applied something.
    pub fn follow_home(&mut self) {
        let waiting = self.guests.iter().filter(|(_, hosted)| hosted.waits());
        self.stirred.extend(waiting.map(|(key, _)| *key));
    }

    /// The state of a group, or of the home group, was replaced by another: what guests wait for, or watch, may have happened between them. Their connections
    /// are closed. Returns how they are called here.
    pub fn begin_anew(&mut self, group: u32) -> Vec<ConnId> {
        let mut gone = Vec::new();
        for (key, hosted) in self.guests.iter_mut().filter(|((of, _), _)| group == 0 || *of == group) {
            self.stirred.insert(*key);
            if key.0 == group && hosted.is_welcome {
                hosted.tell(&HostLetter::LostAnswers);
            }
            for (there, here) in std::mem::take(&mut hosted.conns) {
                hosted.abandon(here);
                hosted.tell(&HostLetter::Close { conn: there });
                gone.push(here);
            }
        }
        self.conns.retain(|conn, _| !gone.contains(conn));
        gone
    }

    /// True if there may be something to do.
    pub fn has_work(&self) -> bool {
        !self.stirred.is_empty()
    }

    /// A tick has passed.
    pub fn tick(&mut self) {
        self.marks.tick();
        self.guests.values_mut().for_each(|hosted| hosted.line.tick());
        self.stirred.extend(self.guests.keys());
    }

    /// Does what can be done. Returns what is asked of the groups. `replicas` are those of this member; `clock` is the stamp of this moment, 0 if it is not known.
    pub fn work(&mut self, replicas: &dyn Replicas, member: MemberNumber, clock: Zxid) -> Vec<Order> {
        let none = Guests::default();
        let groups = Groups::new(replicas, member, &none).at(clock);
        self.marks.follow(|group| groups.get(group).map(|view| view.tree().zxid()));
        let stirred = std::mem::take(&mut self.stirred);
        self.let_go(&stirred, &groups);
        let (mut orders, mut raised) = (Vec::new(), RaisedStamps::default());
        let Hosting { guests, conns, conns_begun, marks, writing, .. } = self;
        for (group, guest) in stirred {
            let Some(hosted) = guests.get_mut(&(group, guest)) else { continue };
            writing.insert((group, guest));
            let Some(view) = groups.get(group) else { continue };
            let mut turn = HostTurn {
                groups,
                view,
                guest,
                group,
                orders: &mut orders,
                marks,
                raised: &mut raised,
                conns,
                conns_begun,
            };
            turn.work(hosted);
        }
        orders
    }

    /// Keeps nothing for those of these guests that have other hosts, or have acknowledged nothing for too long.
    fn let_go(&mut self, looked_at: &BTreeSet<GroupAndGuest>, groups: &Groups<'_>) {
        let is_gone = |(group, guest): &GroupAndGuest, hosted: &Hosted| {
            let host = || groups.get(*group).and_then(|view| view.tree().host_here(*guest));
            let is_silent = hosted.line.silent_ticks() >= SILENT_TICKS_MAX;
            is_silent || hosted.is_welcome && host() != Some(groups.member)
        };
        for key in looked_at {
            if self.guests.get(key).is_none_or(|hosted| !is_gone(key, hosted)) {
                continue;
            }
            let gone = self.guests.remove(key).map(|hosted| hosted.conns).unwrap_or_default();
            for here in gone.into_values() {
                self.conns.remove(&here);
                groups.home().state.watches().drop_conn(here);
            }
        }
    }

    /// A request of a guest was handed to a group, as a part of this batch.
    pub fn handed(&mut self, guest: MemberNumber, group: u32, batch: (Origin, u64)) {
        if let Some(hosted) = self.guests.get_mut(&(group, guest)) {
            hosted.last_batch = Some(batch);
        }
    }

    /// Messages for guests, with their groups.
    pub fn frames(&mut self) -> Vec<(MemberNumber, u32, Vec<u8>)> {
        let mut frames = Vec::new();
        for (group, guest) in std::mem::take(&mut self.writing) {
            let Some(hosted) = self.guests.get_mut(&(group, guest)) else { continue };
            while let Some(frame) = hosted.line.next_frame() {
                frames.push((guest, group, frame));
            }
        }
        frames
    }
}

/// Standing of a connection, with the number of moves that its session had by then: its writes are taken through the host, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attendance {
    Now,
    NotYet,
    /// The session has another owner, or another connection, or has ended.
    Never,
}

/// A turn for one guest of one group.
struct HostTurn<'t, 'g> {
    groups: Groups<'g>,
    view: GroupView<'g>,
    guest: MemberNumber,
    group: u32,
    orders: &'t mut Vec<Order>,
    marks: &'t mut Marks,
    raised: &'t mut RaisedStamps,
    conns: &'t mut BTreeMap<ConnId, HostedConn>,
    conns_begun: &'t mut u64,
}

impl HostTurn<'_, '_> {
    fn work(&mut self, hosted: &mut Hosted) {
        if !hosted.is_welcome {
            if !self.may_welcome(hosted) {
                return;
            }
            hosted.is_welcome = true;
            let (zxid, level) = (self.view.tree().zxid(), self.view.level());
            hosted.tell(&HostLetter::Welcome { zxid, level });
            hosted.told = level;
        }
        let (tree, origin) = (self.view.tree(), self.view.origin);
        let is_over = |batch: Option<(Origin, u64)>| {
            batch.is_none_or(|(of, batch)| of != origin || tree.applied_batch(of) >= batch)
        };
        let done = hosted.unanswered.extract_if(.., |(_, batch)| is_over(*batch));
        for (number, _) in done.collect::<Vec<_>>() {
            hosted.tell(&HostLetter::Done { number, zxid: tree.zxid() });
        }
        let mut held_up: BTreeSet<SessionId> = BTreeSet::new();
        // Connections whose requests are held, or are handed over in this turn, so that it is not known yet which batch they come into.
        let mut asking: BTreeSet<ConnId> = BTreeSet::new();
        for (number, letter) in std::mem::take(&mut hosted.held) {
            let session = letter.session();
            if let GuestLetter::Request { client, .. } = &letter {
                asking.insert(client.conn);
            }
            let is_gone_later = matches!(&letter, GuestLetter::Gone { conn } if asking.contains(conn));
            let is_held_up = is_gone_later || session.is_some_and(|session| held_up.contains(&session));
            if is_held_up || !self.carry_out(number, &letter, hosted) {
                held_up.extend(session);
                hosted.held.push_back((number, letter));
            }
        }
        if hosted.awaited > self.view.level() {
            self.is_at(hosted.awaited);
        }
        self.tell_level(hosted);
    }

    /// True once nothing that was asked for on an earlier line can follow: all of it has been applied, or the group refuses it.
    fn may_welcome(&mut self, hosted: &Hosted) -> bool {
        let tree = self.view.tree();
        let is_settled = hosted
            .last_batch
            .is_none_or(|(origin, batch)| origin != self.view.origin || tree.applied_batch(origin) >= batch);
        if !self.groups.knows_start_in(self.group) {
            if self.marks.is_start_due(self.group) {
                self.orders.push(Order::Mark { group: self.group, at_least: Zxid(0) });
            }
            return false;
        }
        is_settled && tree.host_here(self.guest) == Some(self.groups.member)
    }

    /// Outcome of a multi in the group, once it is known; without results if the group had no part in it: a guest may know an older map of slots than the home group had when
    /// it gave out the parts.
    fn outcome(&mut self, session: SessionId, multi: i64) -> Option<MultiOutcome> {
        let is_of = |outcome: &&MultiOutcome| outcome.multi == multi;
        let own = self.view.tree().multi_outcome(session).filter(is_of);
        if own.is_some() {
            return own.cloned();
        }
        let decided = self.groups.home().tree().multi_outcome(session).filter(is_of)?.zxid;
        self.is_at(decided).then(|| MultiOutcome { multi, zxid: Zxid(0), end: MultiEnd::Done(Vec::new()) })
    }

    /// True if the group's replica lacks nothing up to a stamp; asks for entries if that is missing.
    fn is_at(&mut self, stamp: Zxid) -> bool {
        self.bring_home(stamp);
        let (group, zxid) = (self.group, self.view.tree().zxid());
        if zxid < stamp && self.marks.is_due(group, stamp) {
            self.orders.push(Order::Mark { group, at_least: stamp });
        }
        self.view.level() >= stamp
    }

    /// True if the group may be given a write of a session that was shown this stamp elsewhere; asks for an entry of home's if that is missing.
    fn takes_write(&mut self, shown: Zxid) -> bool {
        self.bring_home(shown);
        self.groups.takes_writes(self.group, shown)
    }

    fn bring_home(&mut self, awaited: Zxid) {
        if let Some(at_least) = self.groups.home_mark(awaited)
            && self.marks.is_due(0, at_least)
        {
            self.orders.push(Order::Mark { group: 0, at_least });
        }
    }

    fn attendance(&self, session: SessionId, standing: SessionStanding) -> Attendance {
        let SessionStanding { moves, home: at_least } = standing;
        let (tree, home) = (self.view.tree(), self.groups.home().tree());
        let known = tree.session_moves(session);
        let has_ended = home.session_timeout_ms(session).is_none() && home.zxid() >= at_least;
        let is_over = has_ended || home.session_moves(session) > moves;
        if known > moves || is_over {
            Attendance::Never
        } else if tree.came_through(session) == Some(moves) {
            Attendance::Now
        } else {
            Attendance::NotYet
        }
    }

    /// Lets the group know that a session comes through this member, if the group has heard that the guest is its owner. What was asked for before is in front of that, or
    /// is refused.
    fn bring_through(&mut self, session: SessionId, moves: u32, hosted: &mut Hosted) {
        let tree = self.view.tree();
        let is_owner =
            tree.session_owner(session) == Some(self.guest) && tree.session_moves(session) == moves;
        if is_owner && hosted.brought_through.insert((session, moves)) {
            let command = session_command(session, GroupsCommand::Through { moves });
            self.orders.push(Order::SubmitFor { guest: self.guest, group: self.group, command });
        }
    }

    /// The connection of a guest as it is called here.
    fn client(&mut self, client: &Client, hosted: &mut Hosted) -> Client {
        let conn = *hosted.conns.entry(client.conn).or_insert_with(|| {
            let conn = ConnId::of_guest(*self.conns_begun);
            *self.conns_begun += 1;
            let (guest, group, there) = (self.guest, self.group, client.conn);
            self.conns.insert(conn, HostedConn { guest, group, there });
            conn
        });
        client.clone().with_conn(conn)
    }

    /// Does what a letter asks for. Returns false if its time has not come.
    fn carry_out(&mut self, number: u64, letter: &GuestLetter, hosted: &mut Hosted) -> bool {
        match letter {
            GuestLetter::Request { client, xid, needs, standing, what } => {
                let is_write = matches!(what, GuestRequest::Write { .. });
                let attendance =
                    if is_write { self.attendance(client.session, *standing) } else { Attendance::Now };
                if attendance == Attendance::Never {
                    // Its connection is gone.
                    hosted.tell(&HostLetter::Done { number, zxid: self.view.tree().zxid() });
                    return true;
                }
                let is_its_turn = if is_write { self.takes_write(*needs) } else { self.is_at(*needs) };
                if !is_its_turn || attendance == Attendance::NotYet {
                    return false;
                }
                if is_write && self.raised.needs_mark(self.group, self.view.tree().zxid(), *needs) {
                    self.orders.push(Order::Mark { group: self.group, at_least: *needs });
                }
                let client = self.client(client, hosted);
                let request = RequestId { xid: *xid, slot: Slot(hosted.next_slot) };
                hosted.asked.insert((client.conn, hosted.next_slot), number);
                hosted.next_slot = hosted.next_slot.wrapping_add(1);
                let input = match what {
                    GuestRequest::Write { op, command } => {
                        let (conn, op, command) = (client.conn, *op, command.clone());
                        ClientInput::Write { conn, request, op, command }
                    }
                    GuestRequest::Read { op, body } => {
                        ClientInput::Read(QueuedRead::new(client, request, *op, body.clone()))
                    }
                };
                self.orders.push(Order::HandFor { guest: self.guest, group: self.group, input });
            }
            GuestLetter::Parts { client, as_of, queries } => {
                if !self.is_at(*as_of) {
                    return false;
                }
                let client = self.client(client, hosted);
                let (tree, points) = (self.view.tree(), self.groups.points());
                let watched = queries.iter().filter_map(|query| query.watched());
                watched.for_each(|(path, mode)| {
                    // A guest keeps to its own limits.
                    self.view.state.watches().watch_for_guest(&client, path, mode);
                });
                let answer = |query: &crate::parts::PartQuery| {
                    query.answer((self.group, tree), points, &client, *as_of)
                };
                let parts = queries.iter().map(answer).collect();
                hosted.tell(&HostLetter::Parts { number, parts });
            }
            GuestLetter::Outcome { session, multi } => {
                let Some(outcome) = self.outcome(*session, *multi) else { return false };
                hosted.tell(&HostLetter::Outcome { number, outcome });
            }
            GuestLetter::Attend { session, standing } => {
                if self.attendance(*session, *standing) == Attendance::NotYet {
                    self.bring_through(*session, standing.moves, hosted);
                    return false;
                }
                hosted.brought_through.remove(&(*session, standing.moves));
                hosted.tell(&HostLetter::Done { number, zxid: self.view.tree().zxid() });
            }
            GuestLetter::Submit { command, .. } => {
                if self.view.tree().has_open_multis() {
                    return false;
                }
                let (guest, group, command) = (self.guest, self.group, command.clone());
                self.orders.push(Order::SubmitFor { guest, group, command });
                hosted.tell(&HostLetter::Done { number, zxid: self.view.tree().zxid() });
            }
            GuestLetter::Unwatch { conn, path } => {
                if let Some(conn) = hosted.conns.get(conn) {
                    self.view.state.watches().unwatch(*conn, path);
                }
            }
            GuestLetter::Gone { conn } => {
                if let Some(conn) = hosted.conns.remove(conn) {
                    // The guest waits until nothing of it can follow.
                    hosted.abandon(conn);
                    self.conns.remove(&conn);
                    self.view.state.watches().drop_conn(conn);
                }
            }
            GuestLetter::Level { .. } => {}
        }
        true
    }

    /// Tells the guest how far the group has come, if it waits for that or was told something else.
    fn tell_level(&mut self, hosted: &mut Hosted) {
        let level = self.view.level();
        let is_awaited = hosted.awaited > hosted.told || !hosted.asked.is_empty() || !hosted.held.is_empty();
        let is_further = level > hosted.told && (is_awaited || hosted.was_told);
        if is_further || hosted.items.len() > ITEMS_MAX || hosted.was_told && !hosted.items.is_empty() {
            let items = std::mem::take(&mut hosted.items);
            hosted.told = hosted.told.max(level);
            hosted.tell(&HostLetter::Level { zxid: self.view.tree().zxid(), level, items });
        }
        hosted.was_told = false;
    }
}
