//! Stores of keys that front ends can share: the contract of etcd as far as it is used, and a model of it in memory.

use std::collections::{BTreeMap, BTreeSet};

use paddock_etcd::{KeyEvent, Operation, Transaction};

/// First key of a range and the first one behind it.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

pub(crate) trait MirrorStore {
    fn revision(&mut self) -> i64;
    /// All keys of a range as they are in the revision that comes with them.
    fn read(&mut self, range: &Range) -> (i64, Vec<KeyEvent>);
    /// The revision after a transaction; `None` if a compare did not hold.
    fn transact(&mut self, transaction: &Transaction) -> Option<i64>;
    /// Events of the revisions from `first` to `last`, revision by revision.
    fn events(&mut self, range: &Range, first: i64, last: i64) -> Vec<(i64, Vec<KeyEvent>)>;
    fn grant(&mut self, lease: i64);
    /// Ends a lease: its keys are deleted in one revision.
    fn revoke(&mut self, lease: i64);
}

/// A model of etcd.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    revision: i64,
    pairs: BTreeMap<Vec<u8>, StoredPair>,
    history: Vec<KeyEvent>,
    leases: BTreeSet<i64>,
}

#[derive(Debug)]
struct StoredPair {
    value: Vec<u8>,
    mod_revision: i64,
    lease: Option<i64>,
}

impl Default for MemoryStore {
    /// A new etcd is at revision 1.
    fn default() -> MemoryStore {
        MemoryStore { revision: 1, pairs: BTreeMap::new(), history: Vec::new(), leases: BTreeSet::new() }
    }
}

impl MemoryStore {
    fn write(&mut self, operations: Vec<Operation>) {
        let mod_revision = self.revision + 1;
        let before = self.history.len();
        for operation in operations {
            let event = match operation {
                Operation::Put { key, value, lease } => {
                    assert!(lease.is_none_or(|lease| self.leases.contains(&lease)), "lease not found");
                    self.pairs.insert(key.clone(), StoredPair { value: value.clone(), mod_revision, lease });
                    KeyEvent { key, value: Some(value), mod_revision }
                }
                Operation::Delete { key } if self.pairs.remove(&key).is_some() => {
                    KeyEvent { key, value: None, mod_revision }
                }
                Operation::Delete { .. } => continue,
            };
            let is_second = self.history[before..].iter().any(|earlier| earlier.key == event.key);
            assert!(!is_second, "duplicate key given in txn request");
            self.history.push(event);
        }
        if self.history.len() > before {
            self.revision = mod_revision;
        }
    }
}

impl MirrorStore for MemoryStore {
    fn revision(&mut self) -> i64 {
        self.revision
    }

    fn read(&mut self, (first, end): &Range) -> (i64, Vec<KeyEvent>) {
        let event = |(key, pair): (&Vec<u8>, &StoredPair)| KeyEvent {
            key: key.clone(),
            value: Some(pair.value.clone()),
            mod_revision: pair.mod_revision,
        };
        (self.revision, self.pairs.range(first.clone()..end.clone()).map(event).collect())
    }

    fn transact(&mut self, transaction: &Transaction) -> Option<i64> {
        let found = |key: &Vec<u8>| self.pairs.get(key).map_or(0, |pair| pair.mod_revision);
        if transaction.compares.iter().any(|compare| found(&compare.key) != compare.mod_revision) {
            return None;
        }
        self.write(transaction.operations.clone());
        Some(self.revision)
    }

    fn events(&mut self, (start, end): &Range, first: i64, last: i64) -> Vec<(i64, Vec<KeyEvent>)> {
        let mut revisions = BTreeMap::<i64, Vec<KeyEvent>>::new();
        for event in &self.history {
            if (first..=last).contains(&event.mod_revision) && (start..end).contains(&&event.key) {
                revisions.entry(event.mod_revision).or_default().push(event.clone());
            }
        }
        revisions.into_iter().collect()
    }

    fn grant(&mut self, lease: i64) {
        self.leases.insert(lease);
    }

    fn revoke(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let doomed = self.pairs.iter().filter(|(_, pair)| pair.lease == Some(lease));
        let doomed = doomed.map(|(key, _)| Operation::Delete { key: key.clone() }).collect();
        self.write(doomed);
    }
}
