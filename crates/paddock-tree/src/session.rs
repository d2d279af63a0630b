//! A session, as all members know it.

use paddock_proto::jute::Writer;
use paddock_proto::{Id, IdList, MemberNumber, SessionId};
use xxhash_rust::xxh3::xxh3_64;

use crate::member_bytes::put_member;

/// Session as all members know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) timeout_ms: i32,
    /// The member that serves it.
    pub(crate) owner: MemberNumber,
    /// Its password is made from the secret; else it is the one that ZooKeeper gives.
    pub(crate) is_keyed: bool,
    /// The identity that its client has proved: only who proves the same resumes it.
    pub(crate) proven: Option<Box<Id>>,
    /// Times that its client has come back, at this member or another.
    pub(crate) moves: u32,
}

impl Session {
    /// A session with ZooKeeper's password, whose client has proved nothing.
    pub(crate) fn new(timeout_ms: i32, owner: MemberNumber) -> Session {
        Session { timeout_ms, owner, is_keyed: false, proven: None, moves: 0 }
    }

    /// True if a client with these identities is the one that the session is bound to, or it is bound to none.
    pub(crate) fn admits(&self, ids: IdList<'_>) -> bool {
        let is_the_same =
            |proven: &Id| ids.iter().any(|(scheme, id)| scheme == proven.scheme && id == proven.id);
        self.proven.as_deref().is_none_or(is_the_same)
    }

    /// Part of the state's digest. A session without a keyed password, a proven identity and moves has the digest that it had before there
    /// were any.
    pub(crate) fn digest(&self, id: SessionId) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&id.0.to_le_bytes());
        bytes.extend_from_slice(&self.timeout_ms.to_le_bytes());
        put_member(self.owner, &mut bytes);
        if self.is_keyed || self.proven.is_some() {
            bytes.push(self.is_keyed.into());
        }
        if let Some(proven) = &self.proven {
            bytes.put_string(&proven.scheme);
            bytes.put_string(&proven.id);
        }
        if self.moves > 0 {
            bytes.extend_from_slice(&self.moves.to_le_bytes());
        }
        xxh3_64(&bytes)
    }
}

/// The identity that a session is bound to, of all that its client has shown: the first one that cannot be claimed
/// without a proof.
pub(crate) fn first_proven(ids: IdList<'_>) -> Option<Id> {
    ids.iter().find(|&(scheme, _)| is_proof(scheme)).map(|(scheme, id)| Id::new(scheme, id))
}

/// True for schemes whose identities are proved. An address is only observed, and `digest` takes any name and password.
pub fn is_proof(scheme: &str) -> bool {
    matches!(scheme, "x509" | "sasl")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Snapshots that were written before there were keyed passwords carry the digest of that time.
    #[test]
    fn the_digest_of_a_session_of_zookeeper_is_as_it_was() {
        let mut bytes = 7i64.to_le_bytes().to_vec();
        bytes.extend_from_slice(&4000i32.to_le_bytes());
        bytes.push(3);
        let plain = Session::new(4000, 3);
        assert_eq!(plain.digest(SessionId(7)), xxh3_64(&bytes));
        let keyed = Session { is_keyed: true, ..plain.clone() };
        let bound = |id: &str| Session { proven: Some(Box::new(Id::new("sasl", id))), ..plain.clone() };
        let moved = |moves| Session { moves, ..plain.clone() };
        let all = [plain.clone(), keyed, bound("ann"), bound("bob"), moved(1), moved(2)];
        let distinct: std::collections::BTreeSet<u64> =
            all.map(|session| session.digest(SessionId(7))).into();
        assert_eq!(distinct.len(), 6);
    }
}
