//! Profiles: what members tell each other of themselves for those who operate the ensemble. Their content is the business of the
//! server around the replica.

use std::collections::BTreeMap;

use crate::Membership;

#[derive(Debug, Default)]
pub(crate) struct MemberProfiles {
    own: Vec<u8>,
    of_others: BTreeMap<u64, Vec<u8>>,
}

impl MemberProfiles {
    /// Bytes of a profile, at most. What stands behind it in a message counts for earlier builds, which take 1,000, and some 1,024.
    const BYTES_MAX: usize = 992;

    /// From now on the other members are told this.
    pub(crate) fn set_own(&mut self, profile: Vec<u8>) {
        self.own = if profile.len() <= MemberProfiles::BYTES_MAX { profile } else { Vec::new() };
    }

    pub(crate) fn own(&self) -> &[u8] {
        &self.own
    }

    /// Another member tells its profile.
    pub(crate) fn hear(&mut self, from: u64, profile: Vec<u8>) {
        if profile.len() <= MemberProfiles::BYTES_MAX {
            self.of_others.insert(from, profile);
        }
    }

    /// Profiles of those members that still belong to the ensemble, as they were told last.
    pub(crate) fn of_others(&self, membership: &Membership) -> Vec<(u64, Vec<u8>)> {
        let told = membership.all().filter_map(|member| Some((member, self.of_others.get(&member)?.clone())));
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_profiles_of_members_are_told_and_no_long_ones() {
        let mut profiles = MemberProfiles::default();
        profiles.set_own(b"1".to_vec());
        assert_eq!(profiles.own(), b"1");
        profiles.set_own(vec![0; MemberProfiles::BYTES_MAX + 1]);
        assert_eq!(profiles.own(), b"");

        profiles.hear(2, b"old".to_vec());
        profiles.hear(2, b"new".to_vec());
        profiles.hear(2, vec![0; MemberProfiles::BYTES_MAX + 1]);
        profiles.hear(9, b"gone".to_vec());
        let membership = Membership::new(vec![1, 2, 3], vec![]);
        assert_eq!(profiles.of_others(&membership), [(2, b"new".to_vec())]);
    }
}
