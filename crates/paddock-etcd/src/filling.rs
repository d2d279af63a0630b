//! A whole tree as transactions for an empty prefix: for imports, before any front end serves it.

use paddock_proto::SessionId;
use paddock_tree::Tree;

use crate::keys::Keys;
use crate::plan::{Compare, Limits, Operation, Transaction};
use crate::record::{Pending, SessionRecord, Tag, encode_znode};

/// Estimated bytes of an operation and its compare beside key and value.
const OPERATION_RESERVE: usize = 64;

/// Transactions that write all znodes, children before their parents: what is left of an attempt that did not end is no tree, unless
/// nothing is missing but the root's counters. Each succeeds only if none of its keys is there.
pub fn fill_znodes(keys: &Keys, tree: &Tree, limits: Limits) -> Vec<Transaction> {
    let new = Tree::new();
    let mut znodes = tree.znodes();
    let mut puts = Vec::new();
    while let Some((path, znode)) = znodes.next_znode() {
        let znode = znode.to_znode();
        // A front end begins with these.
        if new.znode(path).as_ref() != Some(&znode) {
            puts.push((keys.znode(path), encode_znode(&znode, Pending(i64::MAX), Tag::default())));
        }
    }
    let mut transactions = Vec::new();
    let (mut bytes, mut transaction) = (0, Transaction::default());
    for (key, value) in puts.into_iter().rev() {
        let more = 2 * key.len() + value.len() + OPERATION_RESERVE;
        let is_full =
            transaction.operations.len() == limits.operations_max || bytes + more > limits.bytes_max;
        if is_full && !transaction.operations.is_empty() {
            transactions.push(std::mem::take(&mut transaction));
            bytes = 0;
        }
        bytes += more;
        put(key, value, None, &mut transaction);
    }
    transactions.extend((!transaction.operations.is_empty()).then_some(transaction));
    transactions
}

/// The transaction that writes the key of a session of another system whose id is that of its lease.
pub fn fill_session(keys: &Keys, session: SessionId, timeout_ms: i32) -> Transaction {
    // Its client has a password that is not known here, and comes back with none.
    let record = SessionRecord { is_keyed: true, ..SessionRecord::of_zookeeper(timeout_ms) };
    let mut transaction = Transaction::default();
    put(keys.session(session), record.encode(), Some(session.0), &mut transaction);
    transaction
}

fn put(key: Vec<u8>, value: Vec<u8>, lease: Option<i64>, transaction: &mut Transaction) {
    transaction.compares.push(Compare { key: key.clone(), mod_revision: 0 });
    transaction.operations.push(Operation::Put { key, value, lease });
}
