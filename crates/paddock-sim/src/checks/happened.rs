//! Commands that counted, as checkers hear of them.

use paddock_model::Call;
use paddock_replica::LogEntry;
use paddock_tree::Outcome;

/// A command that counted, or a transaction of one that removes more than goes into one.
#[derive(Debug)]
pub(crate) struct Happened {
    /// The command goes on in another transaction.
    pub(crate) goes_on: bool,
    /// The entry it stands in.
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) call: Call,
    pub(crate) outcome: Outcome<'static>,
}

impl Happened {
    pub(super) fn new(entry: &LogEntry, call: Call, outcome: Outcome<'static>) -> Happened {
        Happened { goes_on: false, index: entry.index, term: entry.term, call, outcome }
    }
}
