//! Ids of members in the Raft library, where no member has the id 0. Membership, votes and messages of this crate have these; everybody else has
//! numbers of members.

use paddock_proto::{MEMBER_NUMBER_MAX, MemberNumber};

/// The id of the member with the number 0: no number is as large.
const ID_OF_ZERO: u64 = 1 << 32;

/// The Raft id of a member.
pub fn raft_id(member: MemberNumber) -> u64 {
    if member == 0 { ID_OF_ZERO } else { member.into() }
}

/// The member with a Raft id; `None` if no member has it.
pub fn member_number(raft_id: u64) -> Option<MemberNumber> {
    match raft_id {
        0 => None,
        ID_OF_ZERO => Some(0),
        id => MemberNumber::try_from(id).ok().filter(|member| *member <= MEMBER_NUMBER_MAX),
    }
}

/// A Raft id as logs name its member.
pub(crate) fn logged(raft_id: u64) -> u64 {
    member_number(raft_id).map_or(raft_id, u64::from)
}

/// Raft ids as logs name their members.
pub(crate) fn all_logged(raft_ids: &[u64]) -> Vec<u64> {
    raft_ids.iter().copied().map(logged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_an_id_of_its_own() {
        for member in [0, 1, 255, 256, 257, 1001, MEMBER_NUMBER_MAX] {
            assert_ne!(raft_id(member), raft::INVALID_ID);
            assert_eq!(member_number(raft_id(member)), Some(member));
        }
        // Data of earlier builds keeps its meaning.
        assert!((1..=255).all(|member| raft_id(member) == u64::from(member)));
        for nobodys in [0, u64::from(MEMBER_NUMBER_MAX) + 1, ID_OF_ZERO - 1, ID_OF_ZERO + 1, u64::MAX] {
            assert_eq!(member_number(nobodys), None);
        }
    }
}
