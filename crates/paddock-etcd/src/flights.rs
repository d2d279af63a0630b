//! Transactions that are under way: sent to etcd, and not seen in the watch stream yet.
//!
//! Invariant: of two transactions that are under way none writes a key that the other one compares. Their order does not
//! matter then, and none can make the other one fail.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use paddock_proto::SessionId;
use paddock_state::ConnId;
use paddock_tree::QuotaOverrun;

use crate::lanes::{Item, QueuedRequest};
use crate::plan::{Operation, PlannedReply, Transaction};
use crate::revisions::KeyEvent;

/// One of those for whom a transaction is under way.
#[derive(Debug)]
pub(crate) enum Part {
    Client {
        conn: ConnId,
        waiting: QueuedRequest,
        planned: Box<PlannedReply>,
    },
    /// A session has ended, or is to end: its znodes go, or its key if that has to go first.
    End {
        session: SessionId,
    },
    /// A znode that has expired goes.
    Garbage,
    /// The secret for passwords of sessions.
    Secret,
    /// Nothing but the revision: the watch stream has come as far.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Unknown,
    /// Carried out in this revision.
    Done(i64),
    /// A compare did not hold in this revision. Since a compare that fails never holds again, the transaction will not be carried
    /// out any more; it may have been carried out before.
    Refused(i64),
}

#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) transaction: Arc<Transaction>,
    pub(crate) parts: Vec<Part>,
    /// Limits of quotas that its writes go above.
    pub(crate) overruns: Vec<QuotaOverrun>,
    pub(crate) fate: Fate,
    /// Time at which etcd said that it was carried out, in milliseconds of the monotonic clock.
    pub(crate) done_ms: Option<u64>,
    /// Time of the first tick that saw it, in milliseconds of the monotonic clock.
    pub(crate) since_ms: Option<u64>,
    /// Nothing was heard of the call that carried it: it has to be sent again.
    pub(crate) is_lost: bool,
    /// Some of the calls that carried it got no answer.
    pub(crate) has_lost_calls: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Flights {
    last: u32,
    flights: BTreeMap<u32, Flight>,
    /// Keys that are written, and compared, by how many transactions.
    written: HashMap<Vec<u8>, u32>,
    compared: HashMap<Vec<u8>, u32>,
}

impl Flight {
    /// Connections of the clients that wait for it.
    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.parts.iter().filter_map(|part| match part {
            Part::Client { conn, .. } => Some(*conn),
            _ => None,
        })
    }
}

impl Flights {
    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Number for the next transaction.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    pub(crate) fn is_written(&self, key: &[u8]) -> bool {
        self.written.contains_key(key)
    }

    /// True if the transaction meets one that is under way.
    pub(crate) fn meets(&self, transaction: &Transaction) -> bool {
        transaction.compares.iter().any(|compare| self.written.contains_key(&compare.key))
            || transaction.operations.iter().any(|operation| {
                self.compared.contains_key(operation.key()) || self.written.contains_key(operation.key())
            })
    }

    pub(crate) fn insert(&mut self, number: u32, transaction: Arc<Transaction>, parts: Vec<Part>) {
        for compare in &transaction.compares {
            *self.compared.entry(compare.key.clone()).or_default() += 1;
        }
        for operation in &transaction.operations {
            *self.written.entry(operation.key().to_vec()).or_default() += 1;
        }
        let (overruns, fate) = (Vec::new(), Fate::Unknown);
        let (since_ms, done_ms) = (None, None);
        let (is_lost, has_lost_calls) = (false, false);
        let flight =
            Flight { transaction, parts, overruns, fate, done_ms, since_ms, is_lost, has_lost_calls };
        let before = self.flights.insert(number, flight);
        assert!(before.is_none(), "transaction {number} is under way twice");
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Flight> {
        self.flights.get_mut(&number)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Flight> {
        let flight = self.flights.remove(&number)?;
        for compare in &flight.transaction.compares {
            release(&mut self.compared, &compare.key);
        }
        for operation in &flight.transaction.operations {
            release(&mut self.written, operation.key());
        }
        Some(flight)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Flight)> {
        self.flights.iter().map(|(number, flight)| (*number, flight))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Flight)> {
        self.flights.iter_mut().map(|(number, flight)| (*number, flight))
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.flights.values().flat_map(|flight| &flight.parts)
    }

    /// Events of the transaction that etcd has carried out in this revision, if there is one.
    pub(crate) fn events_of(&self, revision: i64) -> Option<Vec<KeyEvent>> {
        let is_it = |flight: &&Flight| {
            flight.fate == Fate::Done(revision) && !flight.transaction.operations.is_empty()
        };
        let flight = self.flights.values().find(is_it)?;
        let event = |operation: &Operation| match operation {
            Operation::Put { key, value, .. } => {
                KeyEvent { key: key.clone(), value: Some(value.clone()), mod_revision: revision }
            }
            Operation::Delete { key } => KeyEvent { key: key.clone(), value: None, mod_revision: revision },
        };
        Some(flight.transaction.operations.iter().map(event).collect())
    }

    pub(crate) fn is_ending(&self, ending: SessionId) -> bool {
        self.parts().any(|part| matches!(part, Part::End { session } if *session == ending))
    }

    /// True if a resume of this connection is under way.
    pub(crate) fn is_resuming(&self, by: ConnId) -> bool {
        self.parts().any(|part| match part {
            Part::Client { conn, waiting, .. } => *conn == by && matches!(waiting.item, Item::Session(_)),
            _ => false,
        })
    }

    pub(crate) fn has_mark(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::Mark))
    }

    /// Time of the oldest transaction that etcd has carried out and the watch stream has not brought back.
    pub(crate) fn unseen_since_ms(&self) -> Option<u64> {
        self.flights.values().filter_map(|flight| flight.done_ms).min()
    }

    /// Transactions that have been under way since before that time.
    pub(crate) fn overdue(&self, before_ms: u64) -> Vec<u32> {
        let is_overdue = |flight: &Flight| flight.since_ms.is_some_and(|since_ms| since_ms < before_ms);
        self.iter().filter(|(_, flight)| is_overdue(flight)).map(|(number, _)| number).collect()
    }

    /// Asserts that the keys which count as written and compared are those of the transactions under way.
    pub(crate) fn assert_counted(&self) {
        let mut counted = Flights::default();
        for (number, flight) in &self.flights {
            counted.insert(*number, flight.transaction.clone(), Vec::new());
        }
        assert!(self.written == counted.written, "keys count as written without a transaction");
        assert!(self.compared == counted.compared, "keys count as compared without a transaction");
    }

    /// Gives all up.
    pub(crate) fn clear(&mut self) {
        (self.written, self.compared) = Default::default();
        self.flights.clear();
    }
}

fn release(keys: &mut HashMap<Vec<u8>, u32>, key: &[u8]) {
    let count = keys.get_mut(key).expect("every key of a transaction is counted");
    *count -= 1;
    if *count == 0 {
        keys.remove(key);
    }
}
