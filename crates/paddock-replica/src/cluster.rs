//! The cluster id: the number that tells one ensemble's history from all others'.
//!
//! The founders of an ensemble propose numbers, and take the smallest that they hear of before their log begins. The first leader writes its own into
//! the log, and once that entry is committed it is the ensemble's for good. Nothing stands in the log behind that entry before
//! it is committed, so a member that only knows a proposal holds nothing that could be missed.

/// The ensemble's id, as far as a member knows it. It is on the member's disk before anything that the member promises in
/// that ensemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cluster {
    /// The member is alone, or its data is from before ids were kept.
    #[default]
    None,
    /// A proposal, which may not become the ensemble's id.
    Proposed(u64),
    /// The id of the ensemble whose history the member has, or is being told.
    Known(u64),
}

impl Cluster {
    /// 0 if there is none.
    pub fn id(self) -> u64 {
        match self {
            Cluster::None => 0,
            Cluster::Proposed(id) | Cluster::Known(id) => id,
        }
    }

    /// The id that will not change any more.
    pub fn known(self) -> Option<u64> {
        match self {
            Cluster::Known(id) => Some(id),
            Cluster::None | Cluster::Proposed(_) => None,
        }
    }

    /// True if both sides belong to ensembles, and to different ones.
    pub(crate) fn is_foreign_to(self, other: Cluster) -> bool {
        matches!((self, other), (Cluster::Known(one), Cluster::Known(another)) if one != another)
    }

    /// True if messages about the log may pass between members with these ids. While an ensemble is founded all
    /// proposals are as good as each other; the id of an ensemble that exists is compared.
    pub(crate) fn shares_log_with(self, other: Cluster) -> bool {
        match (self.known(), other.known()) {
            (None, None) => true,
            _ => self.id() == other.id(),
        }
    }

    /// The proposal of a founder that has heard of another one's.
    pub(crate) fn agree(self, other: Cluster) -> Cluster {
        match (self, other) {
            (Cluster::Proposed(one), Cluster::Proposed(another)) => Cluster::Proposed(one.min(another)),
            _ => self,
        }
    }

    /// One byte for the kind, then the id.
    pub(crate) fn encode(self) -> [u8; 9] {
        let kind = match self {
            Cluster::None => 0,
            Cluster::Proposed(_) => 1,
            Cluster::Known(_) => 2,
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&self.id().to_be_bytes());
        bytes
    }

    /// `None` for bytes that `encode` did not write.
    pub(crate) fn decode(bytes: [u8; 9]) -> Option<Cluster> {
        let [kind, id @ ..] = bytes;
        match (kind, u64::from_be_bytes(id)) {
            (0, 0) => Some(Cluster::None),
            (1, id) if id > 0 => Some(Cluster::Proposed(id)),
            (2, id) if id > 0 => Some(Cluster::Known(id)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cluster::{Known, None as Nobody, Proposed};
    use super::*;

    const ALL: [Cluster; 5] = [Nobody, Proposed(3), Proposed(4), Known(3), Known(4)];

    #[test]
    fn it_comes_back_as_encoded() {
        for cluster in ALL {
            assert_eq!(Cluster::decode(cluster.encode()), Some(cluster));
        }
        assert_eq!(Cluster::decode([2, 0, 0, 0, 0, 0, 0, 0, 0]), None, "no ensemble has the id 0");
        assert_eq!(Cluster::decode([3; 9]), None);
    }

    #[test]
    fn entries_pass_within_an_ensemble_and_among_those_who_found_one() {
        for one in ALL {
            for other in ALL {
                let are_founders = one.known().is_none() && other.known().is_none();
                let expected = are_founders || one.id() == other.id();
                assert_eq!(one.shares_log_with(other), expected, "{one:?} and {other:?}");
                assert_eq!(other.shares_log_with(one), expected, "{other:?} and {one:?}");
            }
        }
        assert!(Known(3).is_foreign_to(Known(4)));
        assert!(!Known(3).is_foreign_to(Proposed(4)), "a newcomer may ask");
    }

    #[test]
    fn founders_agree_on_the_smallest_proposal() {
        assert_eq!(Proposed(4).agree(Proposed(3)), Proposed(3));
        assert_eq!(Proposed(4).agree(Known(3)), Proposed(4));
        assert_eq!(Known(4).agree(Proposed(3)), Known(4));
    }
}
