//! A model of etcd: keys with revisions, leases, a history that can be compacted.

use std::collections::BTreeMap;

use paddock_etcd::{Answer, Call, CallError, Key, KeyEvent, Keys, Operation, SessionRecord, Transaction};

/// A mistake that the model makes, to see that it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// Transactions are carried out whatever they compare.
    IgnoresCompares,
    /// A revision is missing in the watch stream now and then.
    LosesRevisions,
}

#[derive(Debug)]
pub(crate) struct Etcd {
    pub(crate) mistake: Mistake,
    pub(crate) revision: i64,
    pairs: BTreeMap<Vec<u8>, (KeyEvent, Option<i64>)>,
    history: Vec<KeyEvent>,
    leases: BTreeMap<i64, (u64, u64)>,
    compacted: i64,
    /// The key of a session that is held by a lease which may end before the session does.
    pub(crate) short_lease: Option<String>,
}

impl Etcd {
    pub(crate) fn new(mistake: Mistake) -> Etcd {
        Etcd {
            mistake,
            revision: 1,
            pairs: BTreeMap::new(),
            history: Vec::new(),
            leases: BTreeMap::new(),
            compacted: 0,
            short_lease: None,
        }
    }

    pub(crate) fn answer(&mut self, call: &Call, now_ms: u64) -> Result<Answer, CallError> {
        match call {
            Call::Read { start, end, revision, limit } => self.read(start, end, *revision, *limit),
            Call::Transact(transaction) => self.transact(transaction),
            Call::Grant { lease, ttl_s } => {
                let ttl_ms = *ttl_s as u64 * 1000;
                if self.leases.contains_key(lease) {
                    return Err(CallError::LeaseExists);
                }
                self.leases.insert(*lease, (ttl_ms, now_ms + ttl_ms));
                Ok(Answer::Granted)
            }
            Call::Revoke { lease } => {
                self.revoke(*lease);
                Ok(Answer::Revoked)
            }
            Call::Probe { .. } => Ok(Answer::Probed { revision: self.revision }),
        }
    }

    fn read(&self, start: &[u8], end: &[u8], asked: i64, limit: i64) -> Result<Answer, CallError> {
        let revision = if asked == 0 { self.revision } else { asked };
        if revision < self.compacted {
            return Err(CallError::Compacted);
        }
        let mut then = BTreeMap::new();
        for event in self.history.iter().filter(|event| event.mod_revision <= revision) {
            match &event.value {
                Some(_) => then.insert(event.key.clone(), event.clone()),
                None => then.remove(&event.key),
            };
        }
        let range = then.range(start.to_vec()..end.to_vec()).map(|(_, pair)| pair.clone());
        let pairs: Vec<KeyEvent> = range.take(limit as usize + 1).collect();
        let is_last = pairs.len() <= limit as usize;
        Ok(Answer::Page { revision, pairs: pairs.into_iter().take(limit as usize).collect(), is_last })
    }

    fn transact(&mut self, transaction: &Transaction) -> Result<Answer, CallError> {
        let is_done = self.mistake == Mistake::IgnoresCompares
            || transaction.compares.iter().all(|compare| {
                self.pairs.get(&compare.key).map_or(0, |(pair, _)| pair.mod_revision) == compare.mod_revision
            });
        if !is_done {
            return Ok(Answer::Transacted { is_done, revision: self.revision });
        }
        let leases = transaction.operations.iter().filter_map(|operation| match operation {
            Operation::Put { lease, .. } => *lease,
            Operation::Delete { .. } => None,
        });
        if leases.into_iter().any(|lease| !self.leases.contains_key(&lease)) {
            return Err(CallError::LeaseNotFound);
        }
        transaction.operations.iter().for_each(|operation| self.check_lease(operation));
        self.write(&transaction.operations);
        Ok(Answer::Transacted { is_done, revision: self.revision })
    }

    fn check_lease(&mut self, operation: &Operation) {
        let Operation::Put { key, value, lease: Some(lease) } = operation else { return };
        let (Some(Key::Session(session)), Ok(record)) =
            (Keys::new("/p").parse(key), SessionRecord::decode(value))
        else {
            return;
        };
        let ttl_ms = self.leases.get(lease).map_or(0, |(ttl_ms, _)| *ttl_ms);
        if ttl_ms < record.timeout_ms as u64 {
            let timeout_ms = record.timeout_ms;
            self.short_lease =
                Some(format!("a lease of {ttl_ms} ms holds {session}, whose timeout is {timeout_ms} ms"));
        }
    }

    fn write(&mut self, operations: &[Operation]) {
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

    fn revoke(&mut self, lease: i64) {
        if self.leases.remove(&lease).is_some() {
            let keys = self.pairs.iter().filter(|(_, (_, of))| *of == Some(lease));
            let doomed: Vec<_> = keys.map(|(key, _)| Operation::Delete { key: key.clone() }).collect();
            self.write(&doomed);
        }
    }

    pub(crate) fn keep_alive(&mut self, lease: i64, now_ms: u64) {
        if let Some((ttl_ms, deadline_ms)) = self.leases.get_mut(&lease) {
            *deadline_ms = now_ms + *ttl_ms;
        }
    }

    pub(crate) fn end_leases(&mut self, now_ms: u64) {
        let over = self.leases.iter().filter(|(_, (_, deadline_ms))| *deadline_ms <= now_ms);
        let over: Vec<i64> = over.map(|(lease, _)| *lease).collect();
        over.into_iter().for_each(|lease| self.revoke(lease));
    }

    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
    }

    /// The first revision from `first` on that a watcher has not seen, with its events; an error if it was compacted.
    pub(crate) fn next_revision(&self, first: i64) -> Result<Option<Vec<KeyEvent>>, ()> {
        if first <= self.compacted && first <= self.revision {
            return Err(());
        }
        let next = self.history.iter().map(|event| event.mod_revision).filter(|of| *of >= first).min();
        let events = |of| self.history.iter().filter(move |event| event.mod_revision == of).cloned();
        Ok(next.map(|of| events(of).collect()))
    }
}
