//! Origins of writes: the last batch of each member that has been applied.
//!
//! A member sends its writes in numbered batches, and sends them again to the next leader when it does not know what
//! became of them. So a batch may stand in the log more than once, and not always in order: it counts where its number
//! is next, and nowhere else. That is why every write is applied exactly once, and the writes of a member in their order.

use std::collections::BTreeMap;

use paddock_proto::MemberNumber;

/// A member since it was started last. A later start has a higher incarnation, and numbers its batches anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub member: MemberNumber,
    pub incarnation: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins {
    /// The incarnation of each member that was heard last, and the number of its last batch.
    pub(crate) last: BTreeMap<MemberNumber, (u64, u64)>,
}

impl Origins {
    /// True if this batch is the next of its member; if so it counts as applied from now on.
    pub(crate) fn admit(&mut self, origin: Origin, number: u64) -> bool {
        let expected = match self.last.get(&origin.member) {
            Some(&(incarnation, last)) if incarnation == origin.incarnation => last + 1,
            Some(&(incarnation, _)) if incarnation > origin.incarnation => return false,
            // Its first batch tells that the member was started again; what it had on the way before is void.
            _ => 1,
        };
        if number == expected {
            self.last.insert(origin.member, (origin.incarnation, number));
        }
        number == expected
    }

    /// The number of the last batch of this incarnation; 0 for none.
    pub(crate) fn applied(&self, origin: Origin) -> u64 {
        match self.last.get(&origin.member) {
            Some(&(incarnation, number)) if incarnation == origin.incarnation => number,
            _ => 0,
        }
    }

    /// The incarnation under which the member was heard last.
    pub(crate) fn incarnation(&self, member: MemberNumber) -> Option<u64> {
        self.last.get(&member).map(|&(incarnation, _)| incarnation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_once_and_in_its_order() {
        let mut origins = Origins::default();
        let mut admit = |member, incarnation, number| origins.admit(Origin { member, incarnation }, number);
        assert!(!admit(1, 10, 2), "the first one is missing");
        assert!(admit(1, 10, 1));
        assert!(!admit(1, 10, 1), "sent again");
        assert!(admit(1, 10, 2));
        assert!(admit(2, 5, 1), "every member counts for itself");
        assert!(!admit(1, 11, 3), "a new start begins with its first");
        assert!(admit(1, 11, 1));
        assert!(!admit(1, 10, 3), "from before the member was started again");
        assert!(admit(1, 11, 2));
    }
}
