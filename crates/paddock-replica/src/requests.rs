//! Requests of this member's connections: those of the batch that is being filled, and the outstanding ones.
//!
//! Requests are answered in the order in which they were handed over: writes travel as commands of a batch, and everything
//! else stands between them as an item of the same batch. So a read behind a write sees that write and nothing that its
//! connection asked for later.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use paddock_state::ConnId;
use paddock_tree::Origin;

use crate::batch::BatchBuilder;
use crate::outstanding::Outstanding;
use crate::question::Question;
use crate::queued_item::QueuedItem;

/// Bytes of commands that make a batch full.
const BATCH_BYTES: usize = 1 << 20;
/// Items for which there is room as soon as a batch of as many was closed.
const ITEMS_ROOM_MAX: usize = 1024;
/// Ticks in which nothing came back after which outstanding batches are sent again: they may have been lost.
const RESEND_TICKS: u32 = 20;

#[derive(Debug)]
pub(crate) struct Requests {
    /// Commands since the last batch was closed.
    batch: BatchBuilder,
    /// Items since the last batch was closed.
    items: VecDeque<QueuedItem>,
    outstanding: Outstanding,
    /// Connections that have asked for a session and are not gone, each with the number of the batch in which it did.
    asked_for_sessions: BTreeMap<ConnId, u64>,
    /// Ticks since an outstanding batch was sent or applied.
    ticks_without_progress: u32,
}

/// Place of items that need no entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// There are none, or they stand behind a batch that is under way.
    Behind,
    /// They wait for a quorum's answer, which is to be asked for.
    AwaitQuorum,
    /// Nothing is in front of them.
    First,
}

impl Requests {
    pub(crate) fn new(origin: Origin) -> Requests {
        Requests {
            batch: BatchBuilder::new(),
            items: VecDeque::new(),
            outstanding: Outstanding::new(origin),
            asked_for_sessions: BTreeMap::new(),
            ticks_without_progress: 0,
        }
    }

    /// Drops everything, and goes on as another start of this member. The caller knows that no connection waits for it.
    pub(crate) fn begin_anew(&mut self, origin: Origin) {
        self.outstanding = self.outstanding.begin_anew(origin);
        (self.batch, self.items) = (BatchBuilder::new(), VecDeque::new());
        self.asked_for_sessions.clear();
    }

    /// The member and the start that number the batches.
    pub(crate) fn origin(&self) -> Origin {
        self.outstanding.origin()
    }

    /// Number of the last batch that a command was submitted for; the batch may not have been closed yet.
    pub(crate) fn submitted(&self) -> u64 {
        let next = self.outstanding.next_number();
        if self.batch.commands() > 0 { next } else { next - 1 }
    }

    /// True if a batch has got a number of this start.
    pub(crate) fn has_numbered(&self) -> bool {
        self.outstanding.has_numbered()
    }

    /// Adds a command, for which `item` waits.
    pub(crate) fn submit(&mut self, command: &[u8], item: QueuedItem) {
        if self.batch.len() + command.len() > BATCH_BYTES {
            self.close_batch();
        }
        self.batch.push(command);
        self.items.push_back(item);
    }

    /// Adds the command for a session, for which a connection waits.
    pub(crate) fn submit_session(&mut self, command: &[u8], conn: ConnId) {
        self.submit(command, QueuedItem::Session { conn });
        self.asked_for_sessions.insert(conn, self.outstanding.next_number());
    }

    /// True if the connection has asked for a session and is not gone.
    pub(crate) fn has_asked_for_session(&self, conn: ConnId) -> bool {
        self.asked_for_sessions.contains_key(&conn)
    }

    /// The connection is gone. The session for which it has asked is withdrawn if it has not got it yet: the client may have that on another
    /// connection by the time at which the command would be carried out, and would lose it.
    pub(crate) fn disconnect(&mut self, conn: ConnId) {
        self.forget_conn(conn);
        self.items.push_back(QueuedItem::Disconnect { conn });
    }

    /// Forgets a connection that has left nothing else behind.
    pub(crate) fn forget_conn(&mut self, conn: ConnId) {
        match self.asked_for_sessions.remove(&conn) {
            Some(number) if number == self.outstanding.next_number() => {
                self.withdraw(|item| item.is_session_of(conn))
            }
            Some(number) => self.outstanding.withdraw(number, conn),
            None => {}
        }
    }

    /// Withdraws commands that are in no batch yet.
    fn withdraw(&mut self, is_such: impl Fn(&QueuedItem) -> bool) {
        let commands = self.items.iter().filter(|item| item.is_command()).enumerate();
        for (place, _) in commands.filter(|(_, item)| is_such(item)) {
            self.batch.withdraw(place);
        }
    }

    /// Adds an item that needs no command.
    pub(crate) fn push(&mut self, item: QueuedItem) {
        self.items.push_back(item);
    }

    pub(crate) fn tick(&mut self) {
        self.ticks_without_progress += 1;
    }

    /// Numbers the commands that were submitted.
    pub(crate) fn close_batch(&mut self) {
        if self.batch.commands() > 0 {
            if self.outstanding.is_empty() {
                self.ticks_without_progress = 0;
            }
            let room = VecDeque::with_capacity(self.items.len().min(ITEMS_ROOM_MAX));
            self.outstanding.push_batch(&mut self.batch, std::mem::replace(&mut self.items, room));
        }
    }

    /// Finds a place for items that need no entry. `needs_quorum` tells whether one has to see what was written anywhere
    /// before it was asked.
    pub(crate) fn place_items(&mut self, now_ms: u64, needs_quorum: impl Fn(&QueuedItem) -> bool) -> Placed {
        if self.items.is_empty() {
            return Placed::Behind;
        }
        if self.items.iter().any(needs_quorum) {
            self.outstanding.push_sync(now_ms, std::mem::take(&mut self.items));
            return Placed::AwaitQuorum;
        }
        // Nothing to write stands behind these: they follow what is under way.
        match self.outstanding.last_items() {
            Some(last) => {
                last.append(&mut self.items);
                Placed::Behind
            }
            None => Placed::First,
        }
    }

    /// Takes the items that nothing is in front of.
    pub(crate) fn take_first(&mut self) -> VecDeque<QueuedItem> {
        if self.outstanding.is_empty() && self.batch.commands() == 0 {
            std::mem::take(&mut self.items)
        } else {
            VecDeque::new()
        }
    }

    /// Sends everything again if nothing has come back for long.
    pub(crate) fn resend_if_lost(&mut self) {
        if self.ticks_without_progress >= RESEND_TICKS {
            self.send_all_again();
        }
    }

    /// The outstanding batches go to a leader that has none of them.
    pub(crate) fn send_all_again(&mut self) {
        self.outstanding.send_all_again();
        self.ticks_without_progress = 0;
    }

    /// The batches that the leader has not been sent, in order; it has now.
    pub(crate) fn unsent(&mut self) -> Vec<Bytes> {
        self.outstanding.unsent()
    }

    /// Takes the items of a batch of this member that is being applied, and those in front of it.
    pub(crate) fn applied(&mut self, number: u64) -> VecDeque<QueuedItem> {
        self.ticks_without_progress = 0;
        self.outstanding.applied(number)
    }

    /// The newest question that has no answer.
    pub(crate) fn ask(&mut self) -> Option<Question> {
        self.outstanding.ask()
    }

    /// A leader's own question: does it still lead?
    pub(crate) fn ask_as_leader(&mut self) -> Question {
        self.outstanding.ask_as_leader()
    }

    /// Takes the answer to a question. Returns when it was asked first, in milliseconds of the monotonic clock.
    pub(crate) fn answer(&mut self, question: Question, index: u64) -> Option<u64> {
        self.outstanding.answer(question, index)
    }

    /// True if items have their answer from the quorum and what they have to see is applied.
    pub(crate) fn is_ready(&self, applied: u64) -> bool {
        self.outstanding.is_ready(applied)
    }

    pub(crate) fn take_ready(&mut self, applied: u64) -> Option<VecDeque<QueuedItem>> {
        self.outstanding.take_ready(applied)
    }

    /// Takes everything that connections wait for. Its commands stay, and will be applied without an answer; sessions that were to begin or to come
    /// back are withdrawn, since their clients look elsewhere.
    pub(crate) fn abandon(&mut self) -> Vec<QueuedItem> {
        self.withdraw(QueuedItem::is_session);
        let mut abandoned = self.outstanding.abandon();
        let (commands, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.items).into_iter().partition(QueuedItem::is_command);
        self.items = commands.iter().map(|_| QueuedItem::Abandoned).collect();
        abandoned.extend(commands);
        abandoned.extend(others);
        abandoned
    }

    /// Drops batches up to this number, which were applied where this member did not see it. Returns the items that waited for them, or
    /// before them.
    pub(crate) fn forget_through(&mut self, last: u64) -> Vec<QueuedItem> {
        self.outstanding.forget_through(last)
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{IdList, OpCode, SessionId, Xid};
    use paddock_state::RequestId;
    use paddock_tree::Command;

    use super::*;
    use crate::batch::{EntryBuilder, batches};

    fn requests() -> Requests {
        Requests::new(Origin { member: 1, incarnation: 7 })
    }

    fn write(number: u64) -> QueuedItem {
        QueuedItem::Write { conn: ConnId::new(0, number), request: RequestId::first(Xid(1)) }
    }

    fn disconnect(number: u64) -> QueuedItem {
        QueuedItem::Disconnect { conn: ConnId::new(0, number) }
    }

    #[test]
    fn items_without_a_command_follow_the_batch_in_front_of_them() {
        let mut requests = requests();
        requests.push(disconnect(1));
        assert_eq!(requests.place_items(0, |_| false), Placed::First);
        assert_eq!(requests.take_first().len(), 1);
        requests.submit(b"command", write(2));
        requests.close_batch();
        requests.push(disconnect(3));
        assert_eq!(requests.place_items(0, |_| false), Placed::Behind);
        assert_eq!(requests.applied(1).len(), 2);
    }

    #[test]
    fn batches_are_sent_again_when_nothing_comes_back() {
        let mut requests = requests();
        requests.submit(b"command", write(1));
        requests.close_batch();
        assert_eq!(requests.unsent().len(), 1);
        for _ in 1..RESEND_TICKS {
            requests.tick();
        }
        requests.resend_if_lost();
        assert_eq!(requests.unsent().len(), 0);
        requests.tick();
        requests.resend_if_lost();
        assert_eq!(requests.unsent().len(), 1);
    }

    fn resume(requests: &mut Requests, session: i64, number: u64) {
        let mut command = Vec::new();
        let (op, body) = (OpCode::ResumeSession, 4000_i32.to_be_bytes());
        Command::encode(SessionId(session), 0, IdList::NONE, op, &body, &mut command);
        requests.submit_session(&command, ConnId::new(0, number));
    }

    /// The sessions of the commands that would be sent to another leader now.
    fn sessions(requests: &mut Requests) -> Vec<i64> {
        requests.close_batch();
        requests.send_all_again();
        let mut entry = EntryBuilder::new(None);
        requests.unsent().iter().for_each(|batch| entry.add(batch, paddock_state::Now::default()));
        batches(&entry.take()).flat_map(|batch| batch.commands()).map(|command| command.session.0).collect()
    }

    #[test]
    fn a_session_is_not_asked_for_when_its_connection_is_gone() {
        for is_sent in [false, true] {
            let mut requests = requests();
            (1..=3).for_each(|number| resume(&mut requests, 10 + number as i64, number));
            if is_sent {
                requests.close_batch();
                assert_eq!(requests.unsent().len(), 1);
            }
            resume(&mut requests, 14, 4);
            requests.disconnect(ConnId::new(0, 2));
            requests.disconnect(ConnId::new(0, 4));
            requests.disconnect(ConnId::new(0, 5));
            assert_eq!(sessions(&mut requests), [11, 0, 13, 0]);
        }
    }

    #[test]
    fn no_session_is_asked_for_when_all_is_abandoned() {
        let mut requests = requests();
        resume(&mut requests, 11, 1);
        requests.close_batch();
        resume(&mut requests, 12, 2);
        assert_eq!(requests.abandon().len(), 2);
        assert_eq!(sessions(&mut requests), [0, 0]);
    }

    #[test]
    fn what_is_abandoned_is_still_applied() {
        let mut requests = requests();
        requests.submit(b"command", write(1));
        requests.close_batch();
        requests.submit(b"command", write(2));
        requests.push(disconnect(3));
        assert_eq!(requests.abandon().len(), 3);
        requests.close_batch();
        for number in [1, 2] {
            let items = requests.applied(number);
            assert!(matches!(items.front(), Some(QueuedItem::Abandoned)), "{items:?}");
        }
    }
}
