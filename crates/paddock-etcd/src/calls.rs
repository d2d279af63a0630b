//! Calls to etcd that have no answer yet, and those that have to be made again.

use std::collections::HashMap;

use crate::contract::{Call, CallId, Effects};

/// Subject of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Page,
    Flight(u32),
    Grant(paddock_state::ConnId),
    Revoke,
    Probe,
}

#[derive(Debug)]
pub(crate) struct Calls {
    next: u64,
    under_way: HashMap<CallId, Purpose>,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls { next: 1, under_way: HashMap::new() }
    }
}

impl Calls {
    pub(crate) fn make(&mut self, call: Call, purpose: Purpose, effects: &mut Effects) {
        let id = CallId(self.next);
        self.next += 1;
        self.under_way.insert(id, purpose);
        effects.calls.push((id, call));
    }

    /// The subject of a call that has been answered; `None` if its answer is not needed any more.
    pub(crate) fn answered(&mut self, id: CallId) -> Option<Purpose> {
        self.under_way.remove(&id)
    }

    pub(crate) fn has(&self, purpose: Purpose) -> bool {
        self.under_way.values().any(|other| *other == purpose)
    }

    /// Answers to earlier calls are passed over from now on.
    pub(crate) fn forget_all(&mut self) {
        self.under_way.clear();
    }
}
