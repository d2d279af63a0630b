//! A client: it connects, asks, moves, comes back, goes. What a client library does for its user it does, too: answers find
//! their questions, watches are set again, a silent server is left for another.

mod habits;
mod hearing;
mod hearing_spread;

use std::collections::VecDeque;
use std::net::IpAddr;

use paddock_chance::Chance;
use paddock_model::Wish;
use paddock_proto::{Id, OpCode, Password, SessionId, Xid, Zxid, encode};
use paddock_state::ConnId;

use crate::ask::{Ask, AskedRequest};
use crate::checks::Checks;
use crate::checks::truth::Truth;
use crate::checks::watching::Watching;
use crate::names;
use crate::time::{SimDuration, Time};
use crate::wire::Frame;
pub(crate) use habits::Habits;

/// Time that a client stays on a connection that only reads, about.
const READ_ONLY: SimDuration = SimDuration::seconds(5);

/// One of so many times a client that has not said who it is does so, instead of asking for something.
const LATE_IDENTITIES: u64 = 8;

/// A client without a connection tries to take over another session, instead of going on with its own, one time in this number.
const CLAIMS: u64 = 12;

/// A client that shows unknown users does so one time in this number.
const STRANGERS: u64 = 16;

/// Deed that a client wants done.
#[derive(Debug)]
pub(crate) enum Deed {
    Connect {
        member: u8,
        greeting: Frame,
    },
    Send(Frame),
    /// The client will hear nothing more of this connection. The member may not learn of it.
    Leave {
        conn: ConnId,
        says_so: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPhase {
    /// Without a connection.
    Away,
    Greeting,
    /// The client has told who it is, and waits until that was taken.
    Identifying,
    Serving,
}

/// Load of the clients: how busy they are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientLoad {
    Busy,
    /// They keep their sessions and wait for what they have asked for.
    Quiet,
}

#[derive(Debug)]
pub(crate) struct SimClient {
    number: usize,
    chance: Chance,
    habits: Habits,
    phase: ClientPhase,
    conn: Option<ConnId>,
    /// The member to which it connected last; 0 for none.
    member: u8,
    is_gone: bool,
    session: SessionId,
    password: Password,
    /// Dice for trying to take over sessions of others: those of everything else fall as they would without.
    claims: Chance,
    /// The session of another client that it tries to take over on this connection.
    claimed: Option<SessionId>,
    /// The session is known to one member, and ends with the connection.
    is_temporary: bool,
    /// Nothing is written on this connection.
    only_reads: bool,
    /// This connection is of no use.
    has_enough: bool,
    timeout: SimDuration,
    /// The identities of its connection that the member has taken.
    ids: Vec<Id>,
    /// User and password that it has shown, without an answer to that yet.
    unconfirmed: Option<&'static str>,
    asked: VecDeque<AskedRequest>,
    /// Time at which the oldest of them was asked, or the one before it was answered.
    waits_since: Time,
    pings: usize,
    next_xid: i32,
    marks: u64,
    /// The newest zxid of an answer. An event does not count: others may still be on their way.
    last_zxid: Zxid,
    /// The newest zxid of all.
    seen: Zxid,
    heard: Time,
    sent: Time,
    watching: Watching,
    /// Sessions that it will not come back to.
    abandoned: Vec<SessionId>,
    acknowledged: u64,
}

impl SimClient {
    pub(crate) fn new(number: usize, habits: Habits, chance: Chance) -> SimClient {
        SimClient {
            number,
            claims: chance.clone(),
            claimed: None,
            password: Password::ZERO,
            chance,
            habits,
            phase: ClientPhase::Away,
            conn: None,
            member: 0,
            is_gone: false,
            session: SessionId::NONE,
            is_temporary: false,
            only_reads: false,
            has_enough: false,
            timeout: SimDuration::seconds(4),
            ids: Vec::new(),
            unconfirmed: None,
            asked: VecDeque::new(),
            waits_since: Time(0),
            pings: 0,
            next_xid: 1,
            marks: 0,
            last_zxid: Zxid(0),
            seen: Zxid(0),
            heard: Time(0),
            sent: Time(0),
            watching: Watching::default(),
            abandoned: Vec::new(),
            acknowledged: 0,
        }
    }

    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    pub(crate) fn address(&self) -> IpAddr {
        IpAddr::from([10, 0, 0, self.number as u8 + 1])
    }

    /// The identity that a connection has by itself.
    fn address_id(&self) -> Id {
        Id::new("ip", self.address().to_string())
    }

    pub(crate) fn is_content(&self) -> bool {
        let is_served = self.phase == ClientPhase::Serving && !self.only_reads && self.asked.is_empty();
        self.is_gone || is_served
    }

    /// The oldest request that is not answered, and for how long it could have been. A change of members takes its time.
    pub(crate) fn waits_for(&self, now: Time) -> Option<(SimDuration, Xid)> {
        let takes_time = |asked: &AskedRequest| matches!(asked.ask, Ask::Write(Wish::Reconfig { .. }));
        let oldest = self.asked.front().filter(|asked| !takes_time(asked))?;
        Some((now - self.waits_since, oldest.xid))
    }

    /// The one member to which it is about to come back.
    pub(crate) fn comes_back_to(&self) -> Option<u8> {
        let is_about_to = self.phase == ClientPhase::Away && self.habits.knows_one && self.member > 0;
        is_about_to.then_some(self.member)
    }

    /// Has it connect to another member than the one that it knows.
    pub(crate) fn forget_member(&mut self) {
        self.member = 0;
    }

    pub(crate) fn abandoned(&self) -> impl Iterator<Item = SessionId> {
        self.abandoned.iter().copied()
    }

    /// Number of watches that its member holds for its connection.
    pub(crate) fn watches_held(&self, truth: &Truth) -> usize {
        self.watching.held_at(truth, truth.last_zxid(), &self.ids)
    }

    /// False if its member may hold more of them: it cannot be told.
    pub(crate) fn is_certain_of_watches(&self) -> bool {
        self.watching.is_certain()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Time at which it wants to act again; never, if it is gone.
    pub(crate) fn next_act(&mut self, now: Time) -> Option<Time> {
        let pause = self.habits.pause.0;
        let wait = self.chance.between(pause / 4, pause * 7 / 4).min(self.timeout.0 / 8);
        let next = now + SimDuration(wait);
        // A client keeps the protocol's times, whatever it has to do.
        let due = match self.phase {
            ClientPhase::Away => next,
            ClientPhase::Serving => (self.sent + self.ping_after()).min(self.heard + self.patience()),
            ClientPhase::Greeting | ClientPhase::Identifying => self.heard + self.patience(),
        };
        (!self.is_gone).then_some(next.min(due).max(now + SimDuration::micros(1)))
    }

    pub(crate) fn timeout(&self) -> SimDuration {
        self.timeout
    }

    /// A client asks for a sign of life if it has sent nothing for this time,
    fn ping_after(&self) -> SimDuration {
        SimDuration(self.timeout.0 / 3)
    }

    /// and gives its connection up if it has heard nothing for longer than that.
    fn patience(&self) -> SimDuration {
        SimDuration(self.timeout.0 * 2 / 3)
    }

    /// The session that it takes for its own and for alive, by the rules of the protocol: it is connected, and has heard of
    /// its member a short time ago. Who is about to end its session itself relies on nothing any more.
    pub(crate) fn belief(&self, now: Time) -> Option<(SessionId, ConnId, SimDuration)> {
        let close = Ask::Write(Wish::CloseSession);
        let is_connected = self.phase == ClientPhase::Serving && !self.only_reads && !self.is_gone;
        let relies = is_connected
            && now - self.heard <= self.patience()
            && !self.asked.iter().any(|request| request.ask == close);
        self.conn.filter(|_| relies).map(|conn| (self.session, conn, self.timeout))
    }

    /// Acts. There are `machines` machines.
    pub(crate) fn act(
        &mut self,
        now: Time,
        machines: u8,
        client_load: ClientLoad,
        checks: &mut Checks,
    ) -> Vec<Deed> {
        if self.is_gone {
            return Vec::new();
        }
        let silence = now - self.heard;
        let read_only_acts = READ_ONLY.0 / self.habits.pause.0 + 1;
        match self.phase {
            ClientPhase::Away => self.connect(now, machines, checks),
            _ if silence >= self.patience() || self.has_enough => self.leave(),
            ClientPhase::Greeting | ClientPhase::Identifying => Vec::new(),
            // Meanwhile it has found a member that writes, or thinks so.
            ClientPhase::Serving if self.only_reads && self.chance.one_in(read_only_acts) => self.leave(),
            ClientPhase::Serving if client_load == ClientLoad::Busy => self.be_busy(now, checks),
            ClientPhase::Serving => self.ping_if_due(now),
        }
    }

    fn connect(&mut self, now: Time, machines: u8, checks: &Checks) -> Vec<Deed> {
        let any = self.chance.between(1, u64::from(machines)) as u8;
        self.member = self.comes_back_to().unwrap_or(any);
        self.phase = ClientPhase::Greeting;
        self.heard = now;
        // No client remembers what it was told by events.
        self.seen = self.last_zxid;
        self.watching.lose_connection();
        (self.ids, self.unconfirmed) = (vec![self.address_id()], None);
        let (mut session, mut password, last_zxid) = (self.session, self.password, self.last_zxid);
        self.claimed = self.session_to_claim(checks);
        if let Some(claimed) = self.claimed {
            (session, password) = (claimed, Password::of_zookeeper(claimed));
        }
        let Habits { timeout_ms, may_only_read, extensions, .. } = self.habits;
        let greeting = Frame::Greet { session, password, last_zxid, timeout_ms, may_only_read, extensions };
        vec![Deed::Connect { member: self.member, greeting }]
    }

    /// Now and then a session that it sees, to be taken over with the password that its id gives away.
    fn session_to_claim(&mut self, checks: &Checks) -> Option<SessionId> {
        if !self.claims.one_in(CLAIMS) {
            return None;
        }
        let others: Vec<SessionId> = checks.truth.model().sessions().map(|(session, _)| session).collect();
        (!others.is_empty()).then(|| *self.claims.pick(&others))
    }

    /// The world has made the connection.
    pub(crate) fn connected_by(&mut self, conn: ConnId) {
        self.conn = Some(conn);
    }

    /// Gives its connection up.
    fn leave(&mut self) -> Vec<Deed> {
        let says_so = self.chance.one_in(2);
        let conn = self.lose_connection();
        conn.map(|conn| Deed::Leave { conn, says_so }).into_iter().collect()
    }

    /// The outcome of unanswered requests is unknown.
    fn lose_connection(&mut self) -> Option<ConnId> {
        self.phase = ClientPhase::Away;
        self.asked.clear();
        self.pings = 0;
        (self.has_enough, self.claimed) = (false, None);
        if std::mem::take(&mut self.is_temporary) {
            self.session = SessionId::NONE;
            self.watching = Watching::default();
        }
        self.conn.take()
    }

    fn be_busy(&mut self, now: Time, checks: &mut Checks) -> Vec<Deed> {
        if self.chance.one_in(self.habits.vanishes) {
            self.is_gone = true;
            if !self.is_temporary {
                self.abandoned.push(self.session);
            }
            return self.leave();
        }
        if self.chance.one_in(self.habits.moves) {
            return self.leave();
        }
        if let Some(credentials) = self.credentials_to_show()
            && self.chance.one_in(LATE_IDENTITIES)
        {
            return vec![self.identify(credentials)];
        }
        if self.habits.shows_strangers && self.unconfirmed.is_none() && self.chance.one_in(STRANGERS) {
            let credentials = *self.chance.pick(&names::STRANGERS);
            return vec![self.identify(credentials)];
        }
        if self.chance.one_in(self.habits.closes) {
            return vec![self.ask(now, Ask::Write(Wish::CloseSession), checks)];
        }
        let is_closing = self.asked.iter().any(|request| request.ask == Ask::Write(Wish::CloseSession));
        let room = self.habits.depth.saturating_sub(self.asked.len() as u64);
        if is_closing || room == 0 {
            return self.ping_if_due(now);
        }
        let burst = if self.habits.is_hasty { room } else { self.chance.mostly_low(1, room) };
        (0..burst).map(|_| self.ask_something(now, checks)).collect()
    }

    /// Its user and password, if it has not shown them on this connection.
    fn credentials_to_show(&self) -> Option<&'static str> {
        let is_shown = self.ids.len() > 1 || self.unconfirmed.is_some();
        self.habits.credentials.filter(|_| !is_shown)
    }

    /// From now on requests are taken for this identity's, too.
    fn identify(&mut self, credentials: &'static str) -> Deed {
        self.unconfirmed = Some(credentials);
        Deed::Send(Frame::Identify { credentials })
    }

    /// The identities of its connection once the member has taken the one that it has shown last. Each counts once.
    fn shown_ids(&self) -> Vec<Id> {
        let mut ids = self.ids.clone();
        for id in self.unconfirmed.into_iter().flat_map(names::identities) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    fn ask_something(&mut self, now: Time, checks: &mut Checks) -> Deed {
        self.marks += 1;
        let mark = format!("c{}-{}", self.number, self.marks);
        let ask = self.habits.ask(&mut self.chance, checks.truth.model(), &mark);
        self.ask(now, ask, checks)
    }

    fn ping_if_due(&mut self, now: Time) -> Vec<Deed> {
        if now - self.sent < self.ping_after() {
            return Vec::new();
        }
        self.sent = now;
        self.pings += 1;
        vec![Deed::Send(Frame::Request { xid: Xid::PING, op: OpCode::Ping, body: Vec::new() })]
    }

    fn ask(&mut self, now: Time, ask: Ask, checks: &mut Checks) -> Deed {
        self.sent = now;
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        if let Some(wish) = ask.as_logged() {
            checks.ask(self.number, self.session, xid, wish);
        }
        let (op, body) = ask.encode();
        let (shown, ids) = (checks.real_time.shown(), self.shown_ids());
        let asked_at = checks.moments();
        self.await_answer(now, AskedRequest { xid, ask, shown, asked_at, ids });
        Deed::Send(Frame::Request { xid, op, body })
    }

    /// Sets the watches again that it had on another connection, if there are any.
    fn set_watches(&mut self, now: Time, checks: &Checks) -> Vec<Deed> {
        self.phase = ClientPhase::Serving;
        if self.watching.is_empty() {
            return Vec::new();
        }
        self.sent = now;
        let relative_zxid = self.last_zxid;
        let watches = self.watching.to_set_again(relative_zxid);
        let op = if encode::needs_set_watches2(&watches) { OpCode::SetWatches2 } else { OpCode::SetWatches };
        let mut body = Vec::new();
        encode::set_watches(&mut body, &watches);
        let (xid, ask) = (Xid::SET_WATCHES, Ask::SetWatches { relative_zxid });
        let (shown, ids) = (checks.real_time.shown(), self.shown_ids());
        let asked_at = checks.moments();
        self.await_answer(now, AskedRequest { xid, ask, shown, asked_at, ids });
        vec![Deed::Send(Frame::Request { xid, op, body })]
    }

    fn await_answer(&mut self, now: Time, request: AskedRequest) {
        if self.asked.is_empty() {
            self.waits_since = now;
        }
        self.asked.push_back(request);
    }
}
