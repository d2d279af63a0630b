//! Lanes: for each connection, in their order, the requests that wait for their turn.
//!
//! A lane is ready if its first request may be looked at, busy while something of it is with etcd, blocked while it meets
//! a transaction that is under way, and held while another connection resumes its session: if that is refused, it goes on.

use std::collections::{HashMap, VecDeque};

use paddock_proto::{OpCode, SessionId};
use paddock_state::{ConnId, QueuedRead, RequestId};

/// A request of a connection.
#[derive(Debug)]
pub(crate) enum Item {
    Write {
        request: RequestId,
        op: OpCode,
        command: Vec<u8>,
    },
    Session(SessionItem),
    /// The client of a session has proved who it is. No connection waits for an answer.
    Bind {
        command: Vec<u8>,
    },
    Read(QueuedRead),
    Disconnect,
}

/// A client waits for its session.
#[derive(Debug)]
pub(crate) struct SessionItem {
    pub(crate) session: SessionId,
    pub(crate) timeout_ms: i32,
    pub(crate) command: Vec<u8>,
    /// The client has asked for a new session, not for one that it had.
    pub(crate) is_new: bool,
    /// The client only asks if the session that it is to resume lives.
    pub(crate) is_asking: bool,
    /// A new session needs a lease first, and so does one that is resumed with another timeout.
    pub(crate) has_lease: bool,
    /// The lease that takes the place of the session's former one.
    pub(crate) next_lease: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) item: Item,
    pub(crate) since_ms: u64,
    /// The request has failed together with others, and is to be tried alone.
    pub(crate) is_alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LanePlace {
    Idle,
    Ready,
    Busy,
    Blocked,
    Held,
}

#[derive(Debug)]
struct Lane {
    items: VecDeque<QueuedRequest>,
    place: LanePlace,
    /// The connection was told to close: what it asks is not carried out any more.
    is_closed: bool,
    /// Number of connections that resume its session.
    holders: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: HashMap<ConnId, Lane>,
    ready: VecDeque<ConnId>,
    blocked: Vec<ConnId>,
    /// Lanes that wait for the next tick.
    paused: Vec<ConnId>,
    /// Connections that resume a session, and those that serve it until then.
    resuming: HashMap<ConnId, ConnId>,
}

impl Lane {
    fn new() -> Lane {
        Lane { items: VecDeque::new(), place: LanePlace::Idle, is_closed: false, holders: 0 }
    }

    /// True if the connection is gone.
    fn has_end(&self) -> bool {
        self.items.iter().any(|waiting| matches!(waiting.item, Item::Disconnect))
    }
}

impl Lanes {
    pub(crate) fn push(&mut self, conn: ConnId, item: Item, since_ms: u64) {
        let lane = self.lanes.entry(conn).or_insert_with(Lane::new);
        if lane.is_closed && !matches!(item, Item::Disconnect) {
            return;
        }
        if matches!(item, Item::Disconnect) {
            // Its client may have the session elsewhere by now.
            lane.items.retain(|waiting| !matches!(waiting.item, Item::Session(_)));
        }
        lane.items.push_back(QueuedRequest { item, since_ms, is_alone: false });
        if lane.place == LanePlace::Idle {
            lane.place = LanePlace::Ready;
            self.ready.push_back(conn);
        }
    }

    /// The next ready lane, which is busy from now on. It is to be freed, blocked or kept ready.
    pub(crate) fn next(&mut self) -> Option<ConnId> {
        while let Some(conn) = self.ready.pop_front() {
            if let Some(lane) = self.lanes.get_mut(&conn).filter(|lane| lane.place == LanePlace::Ready) {
                lane.place = LanePlace::Busy;
                return Some(conn);
            }
        }
        None
    }

    pub(crate) fn first(&mut self, conn: ConnId) -> Option<&mut QueuedRequest> {
        self.lanes.get_mut(&conn)?.items.front_mut()
    }

    pub(crate) fn take(&mut self, conn: ConnId) -> Option<QueuedRequest> {
        self.lanes.get_mut(&conn)?.items.pop_front()
    }

    /// Takes the read that the lane waits for. A lane that was closed meanwhile has none: what is first then is its end.
    pub(crate) fn take_read(&mut self, conn: ConnId) -> Option<QueuedRead> {
        let items = &mut self.lanes.get_mut(&conn)?.items;
        match items.pop_front()? {
            QueuedRequest { item: Item::Read(read), .. } => Some(read),
            other => {
                items.push_front(other);
                None
            }
        }
    }

    /// Puts a request back in front of the others, unless the connection was closed meanwhile. One for a session is dropped if the
    /// connection is gone.
    pub(crate) fn put_back(&mut self, conn: ConnId, waiting: QueuedRequest) {
        let is_for_session = matches!(waiting.item, Item::Session(_));
        let is_over = |lane: &Lane| lane.is_closed || is_for_session && lane.has_end();
        match self.lanes.get_mut(&conn).filter(|lane| !is_over(lane)) {
            Some(lane) => lane.items.push_front(waiting),
            None if is_for_session => self.release(conn),
            None => {}
        }
    }

    /// Holds a lane, as another connection resumes its session: what it asks from now on is not begun before that is released.
    pub(crate) fn hold(&mut self, former: ConnId, by: ConnId) {
        if former != by && !self.resuming.contains_key(&by) {
            self.resuming.insert(by, former);
            self.lanes.entry(former).or_insert_with(Lane::new).holders += 1;
        }
    }

    /// True if the connection holds the lane of another one.
    pub(crate) fn is_holding(&self, by: ConnId) -> bool {
        self.resuming.contains_key(&by)
    }

    /// The connection resumes its session no more: it has it, or does not get it. Lets the lane go on that it held.
    pub(crate) fn release(&mut self, by: ConnId) {
        let Some(former) = self.resuming.remove(&by) else { return };
        let Some(lane) = self.lanes.get_mut(&former) else { return };
        lane.holders -= 1;
        if lane.holders > 0 {
            return;
        }
        match lane.place {
            LanePlace::Held => self.free(former),
            LanePlace::Idle if !lane.is_closed => drop(self.lanes.remove(&former)),
            _ => {}
        }
    }

    /// True if another connection resumes the session of this one. It waits for the end of that then.
    pub(crate) fn wait_if_held(&mut self, conn: ConnId) -> bool {
        let lane = self.lanes.get_mut(&conn).filter(|lane| lane.holders > 0);
        lane.map(|lane| lane.place = LanePlace::Held).is_some()
    }

    /// The lane waits for nothing any more.
    pub(crate) fn free(&mut self, conn: ConnId) {
        let Some(lane) = self.lanes.get_mut(&conn) else { return };
        if !lane.items.is_empty() {
            lane.place = LanePlace::Ready;
            self.ready.push_back(conn);
        } else if lane.is_closed || lane.holders > 0 {
            lane.place = LanePlace::Idle;
        } else {
            self.lanes.remove(&conn);
        }
    }

    /// Lanes that go before all others, in this order.
    pub(crate) fn keep_ready(&mut self, conns: &[ConnId]) {
        for conn in conns.iter().rev() {
            if let Some(lane) = self.lanes.get_mut(conn) {
                lane.place = LanePlace::Ready;
                self.ready.push_front(*conn);
            }
        }
    }

    pub(crate) fn block(&mut self, conn: ConnId) {
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.place = LanePlace::Blocked;
            self.blocked.push(conn);
        }
    }

    /// The lane waits for the next tick.
    pub(crate) fn pause(&mut self, conn: ConnId) {
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.place = LanePlace::Blocked;
            self.paused.push(conn);
        }
    }

    /// A tick: lanes that have waited for it try again.
    pub(crate) fn resume_paused(&mut self) {
        let paused = std::mem::take(&mut self.paused);
        self.keep_ready(&paused);
    }

    /// Lets the blocked lanes try again, before others.
    pub(crate) fn unblock(&mut self) {
        let blocked = std::mem::take(&mut self.blocked);
        self.keep_ready(&blocked);
    }

    /// Drops what the connection has asked and was not begun.
    pub(crate) fn close(&mut self, conn: ConnId) {
        let lane = self.lanes.entry(conn).or_insert_with(Lane::new);
        lane.items.retain(|waiting| matches!(waiting.item, Item::Disconnect));
        lane.is_closed = true;
    }

    /// True if the connection was told to close.
    pub(crate) fn is_closed(&self, conn: ConnId) -> bool {
        self.lanes.get(&conn).is_some_and(|lane| lane.is_closed)
    }

    /// The connection is gone, and nothing of it waits.
    pub(crate) fn remove(&mut self, conn: ConnId) {
        self.lanes.remove(&conn);
    }

    /// Connections that have waited since before that time.
    pub(crate) fn overdue(&self, before_ms: u64) -> Vec<ConnId> {
        let is_overdue = |lane: &Lane| lane.items.front().is_some_and(|first| first.since_ms < before_ms);
        let lanes = self.lanes.iter().filter(|(_, lane)| !lane.is_closed && is_overdue(lane));
        sorted(lanes.map(|(conn, _)| *conn))
    }

    /// Nothing is with etcd any more: lanes that were busy, blocked or held look again at what is left.
    pub(crate) fn settle(&mut self) {
        self.blocked.clear();
        self.paused.clear();
        self.resuming.clear();
        self.lanes.values_mut().for_each(|lane| lane.holders = 0);
        for conn in self.conns() {
            self.free(conn);
        }
    }

    /// Connections that hold the lane of another one, and have no resume in their own.
    pub(crate) fn holders_without_resume(&self) -> Vec<ConnId> {
        let is_resume = |waiting: &QueuedRequest| matches!(waiting.item, Item::Session(_));
        let has_resume =
            |conn: &ConnId| self.lanes.get(conn).is_some_and(|lane| lane.items.iter().any(is_resume));
        sorted(self.resuming.keys().copied().filter(|conn| !has_resume(conn)))
    }

    /// Connections of which something is with etcd, and those that wait for a transaction to end.
    pub(crate) fn busy_and_blocked(&self) -> (Vec<ConnId>, Vec<ConnId>) {
        let at =
            |place| sorted(self.lanes.iter().filter(|(_, lane)| lane.place == place).map(|(conn, _)| *conn));
        let is_paused = |conn: &ConnId| self.paused.contains(conn);
        (at(LanePlace::Busy), at(LanePlace::Blocked).into_iter().filter(|conn| !is_paused(conn)).collect())
    }

    /// All connections of which something waits.
    pub(crate) fn conns(&self) -> Vec<ConnId> {
        sorted(self.lanes.keys().copied())
    }
}

/// The order of a table is another one in every process.
fn sorted(conns: impl Iterator<Item = ConnId>) -> Vec<ConnId> {
    let mut conns: Vec<ConnId> = conns.collect();
    conns.sort_unstable();
    conns
}
