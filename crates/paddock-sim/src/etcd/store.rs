//! A model of etcd: keys with revisions, leases, a history that can be compacted.

use std::collections::BTreeMap;

use paddock_etcd::{Answer, Call, CallError, Key, KeyEvent, Keys, Operation, SessionRecord, Transaction};

use crate::checks::{Checked, ensure};

/// Time that a lease lives longer than five quarters of its session's timeout at most, in milliseconds: a tick, and whole seconds.
const LEASE_SLACK_MS: u64 = 4000;

/// Mistakes that the model makes, to see that they are noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mistakes {
    /// Transactions are carried out whatever they compare.
    pub(crate) ignores_compares: bool,
    /// A revision is missing in the watch stream now and then.
    pub(crate) loses_revisions: bool,
}

/// The watch stream cannot begin where it is asked to: that has been compacted.
#[derive(Debug)]
pub(crate) struct IsCompacted;

#[derive(Debug)]
struct Lease {
    ttl_ms: u64,
    deadline_ms: u64,
}

#[derive(Debug)]
pub(crate) struct EtcdModel {
    pub(crate) mistakes: Mistakes,
    /// The alarm NOSPACE is raised.
    pub(crate) is_full: bool,
    /// Time of the last refusal for want of space, in milliseconds.
    pub(crate) refused_ms: Option<u64>,
    keys: Keys,
    /// Newest revision, which may be that of a key that no front end asks for.
    revision: i64,
    /// Newest value of each key, and its lease.
    pairs: BTreeMap<Vec<u8>, (KeyEvent, Option<i64>)>,
    /// Changes of the keys in the order of their revisions.
    history: Vec<KeyEvent>,
    leases: BTreeMap<i64, Lease>,
    compacted: i64,
    /// Complaint about the key of a session that is held by a lease which may end before the session does, or long after it.
    wrong_lease: Option<String>,
}

/// True if a call is refused while there is no space. etcd looks only at what it would put, and at no compare.
fn grows(call: &Call) -> bool {
    match call {
        Call::Transact(transaction) => {
            transaction.operations.iter().any(|operation| matches!(operation, Operation::Put { .. }))
        }
        Call::Grant { .. } => true,
        Call::Read { .. } | Call::Revoke { .. } | Call::Probe { .. } => false,
    }
}

impl EtcdModel {
    pub(crate) fn new(keys: Keys, mistakes: Mistakes) -> EtcdModel {
        EtcdModel {
            mistakes,
            is_full: false,
            refused_ms: None,
            keys,
            revision: 1,
            pairs: BTreeMap::new(),
            history: Vec::new(),
            leases: BTreeMap::new(),
            compacted: 0,
            wrong_lease: None,
        }
    }

    pub(crate) fn answer(&mut self, call: &Call, now_ms: u64) -> Result<Answer, CallError> {
        if self.is_full && grows(call) {
            self.refused_ms = Some(now_ms);
            return Err(CallError::NoSpace);
        }
        match call {
            Call::Read { start, end, revision, limit } => self.read((start, end), *revision, *limit),
            Call::Transact(transaction) => self.transact(transaction),
            Call::Grant { lease, ttl_s } => {
                if self.leases.contains_key(lease) {
                    return Err(CallError::LeaseExists);
                }
                let ttl_ms = *ttl_s as u64 * 1000;
                self.leases.insert(*lease, Lease { ttl_ms, deadline_ms: now_ms + ttl_ms });
                Ok(Answer::Granted)
            }
            Call::Revoke { lease } => {
                self.revoke(*lease);
                Ok(Answer::Revoked)
            }
            Call::Probe { .. } => Ok(Answer::Probed { revision: self.revision }),
        }
    }

    fn read(&self, (start, end): (&[u8], &[u8]), asked: i64, limit: i64) -> Result<Answer, CallError> {
        let revision = if asked == 0 { self.revision } else { asked };
        if revision < self.compacted {
            return Err(CallError::Compacted);
        }
        let then = self.pairs_at(revision);
        let mut pairs: Vec<KeyEvent> =
            then.range(start..end).take(limit as usize + 1).map(|(_, pair)| (*pair).clone()).collect();
        let is_last = pairs.len() <= limit as usize;
        pairs.truncate(limit as usize);
        Ok(Answer::Page { revision, pairs, is_last })
    }

    /// The keys as they were in a revision, compacted or not.
    pub(crate) fn pairs_at(&self, revision: i64) -> BTreeMap<&[u8], &KeyEvent> {
        let mut then = BTreeMap::new();
        for event in &self.history[..self.events_before(revision + 1)] {
            match &event.value {
                Some(_) => then.insert(&event.key[..], event),
                None => then.remove(&event.key[..]),
            };
        }
        then
    }

    /// Number of events of earlier revisions than this one.
    fn events_before(&self, revision: i64) -> usize {
        self.history.partition_point(|event| event.mod_revision < revision)
    }

    fn transact(&mut self, transaction: &Transaction) -> Result<Answer, CallError> {
        let mod_revision = |key: &Vec<u8>| self.pairs.get(key).map_or(0, |(pair, _)| pair.mod_revision);
        let holds =
            transaction.compares.iter().all(|compare| mod_revision(&compare.key) == compare.mod_revision);
        if !holds && !self.mistakes.ignores_compares {
            return Ok(Answer::Transacted { is_done: false, revision: self.revision });
        }
        let mut leases = transaction.operations.iter().filter_map(|operation| match operation {
            Operation::Put { lease, .. } => *lease,
            Operation::Delete { .. } => None,
        });
        if leases.any(|lease| !self.leases.contains_key(&lease)) {
            return Err(CallError::LeaseNotFound);
        }
        transaction.operations.iter().for_each(|operation| self.look_at_lease(operation));
        self.write(&transaction.operations);
        Ok(Answer::Transacted { is_done: true, revision: self.revision })
    }

    fn look_at_lease(&mut self, operation: &Operation) {
        let Operation::Put { key, value, lease: Some(lease) } = operation else { return };
        let (Some(Key::Session(session)), Ok(record)) = (self.keys.parse(key), SessionRecord::decode(value))
        else {
            return;
        };
        let ttl_ms = self.leases.get(lease).map_or(0, |lease| lease.ttl_ms);
        let timeout_ms = record.timeout_ms;
        let shortest_ms = timeout_ms as u64;
        if !(shortest_ms..=shortest_ms + shortest_ms / 4 + LEASE_SLACK_MS).contains(&ttl_ms) {
            self.wrong_lease = Some(format!(
                "a lease of {ttl_ms} ms holds session {session}, whose timeout is {timeout_ms} ms"
            ));
        }
    }

    /// Leases live as long as the sessions that they hold, and not much longer.
    pub(crate) fn check_leases(&self) -> Checked {
        ensure!(self.wrong_lease.is_none(), "sessions", "{:?}", self.wrong_lease);
        Ok(())
    }

    /// Writes keys in one revision.
    pub(crate) fn write(&mut self, operations: &[Operation]) {
        let mod_revision = self.revision + 1;
        for operation in operations {
            let key = operation.key().to_vec();
            let event = match operation {
                Operation::Put { value, lease, .. } => {
                    let event = KeyEvent { key: key.clone(), value: Some(value.clone()), mod_revision };
                    self.pairs.insert(key, (event.clone(), *lease));
                    event
                }
                Operation::Delete { .. } if self.pairs.remove(&key).is_some() => {
                    KeyEvent { key, value: None, mod_revision }
                }
                Operation::Delete { .. } => continue,
            };
            self.history.push(event);
            self.revision = mod_revision;
        }
    }

    /// Another program writes a key of its own.
    pub(crate) fn write_elsewhere(&mut self) {
        self.revision += 1;
    }

    fn revoke(&mut self, lease: i64) {
        if self.leases.remove(&lease).is_some() {
            let held = self.pairs.iter().filter(|(_, (_, of))| *of == Some(lease));
            let deletes: Vec<_> = held.map(|(key, _)| Operation::Delete { key: key.clone() }).collect();
            self.write(&deletes);
        }
    }

    pub(crate) fn keep_alive(&mut self, lease: i64, now_ms: u64) {
        if let Some(lease) = self.leases.get_mut(&lease) {
            lease.deadline_ms = now_ms + lease.ttl_ms;
        }
    }

    pub(crate) fn end_leases(&mut self, now_ms: u64) {
        let over = self.leases.iter().filter(|(_, lease)| lease.deadline_ms <= now_ms);
        let over: Vec<i64> = over.map(|(lease, _)| *lease).collect();
        over.into_iter().for_each(|lease| self.revoke(lease));
    }

    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
    }

    pub(crate) fn revision(&self) -> i64 {
        self.revision
    }

    /// The events of the first revision from `first` on that changed a key, if there is one.
    pub(crate) fn next_revision(&self, first: i64) -> Result<Option<&[KeyEvent]>, IsCompacted> {
        if first <= self.compacted && first <= self.revision {
            return Err(IsCompacted);
        }
        Ok(self.revision_from(first))
    }

    /// Events of revisions from `first` on, compacted or not.
    pub(crate) fn revision_from(&self, first: i64) -> Option<&[KeyEvent]> {
        let behind = &self.history[self.events_before(first)..];
        let of = behind.first()?.mod_revision;
        Some(&behind[..behind.partition_point(|event| event.mod_revision == of)])
    }
}
