//! Raft groups that the home group has founded: how many there are, and which members each of them began with.
//!
//! Groups are numbered from 1 on without a gap; the home group is number 0. They are founded some at a time, and never go. The founders of a
//! group are part of the state, since a member that founds it late has to begin it with the same members as the others.
//!
//! The members of all groups follow those of the home group. Its state numbers the rosters that it wants them to have (`roster.rs`). Groups that not all
//! members have are placed on some of the voters each (`placement.rs`).

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, MemberNumber};
use xxhash_rust::xxh3::xxh3_64;

use crate::member_bytes::{put_member, read_member};

/// Members that a group begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFounders {
    pub voters: Vec<MemberNumber>,
    pub learners: Vec<MemberNumber>,
}

/// Groups beside the home group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundedGroups {
    /// Number behind the last group that was founded together, by rising number, and the founders.
    together: Vec<(u32, GroupFounders)>,
    /// Replicas of each of the groups that were founded together, in their order; 0 for one on each member.
    replicas: Vec<u32>,
    /// Number of the roster that the groups are to have; 0 until the members change for the first time.
    roster: u64,
    /// True while a change of members is under way for which all groups were ready: their voters may change.
    is_promoted: bool,
    /// Number of groups, with the home group, when voters were let change last. All of these were there.
    established: u32,
}

impl FoundedGroups {
    /// Number of groups, with the home group.
    pub fn count(&self) -> u32 {
        self.together.last().map_or(1, |(end, _)| *end)
    }

    fn place(&self, group: u32) -> Option<usize> {
        self.together.iter().position(|(end, _)| group < *end).filter(|_| group > 0)
    }

    /// The members of the ensemble when a group was founded; `None` for the home group, and for one that there is not.
    pub fn founders(&self, group: u32) -> Option<&GroupFounders> {
        self.place(group).map(|place| &self.together[place].1)
    }

    /// The number of replicas with which a group was founded; `None` if all members have one.
    pub fn replicas(&self, group: u32) -> Option<u32> {
        let replicas = self.place(group).and_then(|place| self.replicas.get(place));
        replicas.copied().filter(|replicas| *replicas > 0)
    }

    /// Founds groups, so that there are `count` with the home group. `replicas` is the number of replicas of each; 0 for one on each member.
    pub(crate) fn grow(&mut self, count: u32, founders: GroupFounders, replicas: u32) {
        if count > self.count() {
            self.together.push((count, founders));
            self.replicas.push(replicas);
        }
    }

    /// Number of groups, with the home group, that are known to have been founded by members that may have left since. None may found them again.
    pub fn established(&self) -> u32 {
        self.established
    }

    /// Number of the roster that the groups are to have; 0 until the members change for the first time.
    pub fn roster(&self) -> u64 {
        self.roster
    }

    /// True while a change of members is under way for which all groups were ready: their voters may change.
    pub fn is_promoted(&self) -> bool {
        self.is_promoted
    }

    /// A change of members has begun, or is over. Without other groups none has to know.
    pub(crate) fn begin_roster(&mut self) {
        if self.count() > 1 {
            (self.roster, self.is_promoted) = (self.roster + 1, false);
        }
    }

    /// All groups are ready for the change of members that is under way.
    pub(crate) fn promote(&mut self) {
        (self.roster, self.is_promoted, self.established) = (self.roster + 1, true, self.count());
    }

    /// 0 while there is only the home group.
    pub(crate) fn digest(&self) -> u64 {
        if self.together.is_empty() {
            return 0;
        }
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        if self.replicas.iter().any(|replicas| *replicas > 0) {
            self.encode_replicas(&mut bytes);
        }
        xxh3_64(&bytes)
    }

    /// True if some group has fewer replicas than there are members.
    pub fn have_placement(&self) -> bool {
        self.replicas.iter().any(|replicas| *replicas > 0)
    }

    /// Appends the numbers of replicas, which only a feature level of their own knows.
    pub(crate) fn encode_replicas(&self, out: &mut Vec<u8>) {
        self.replicas.iter().for_each(|replicas| out.put_i32(*replicas as i32));
    }

    /// Reads the numbers of replicas of groups that were just read.
    pub(crate) fn decode_replicas(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        for replicas in &mut self.replicas {
            *replicas = r.i32()? as u32;
        }
        Ok(())
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.together.len());
        for (end, GroupFounders { voters, learners }) in &self.together {
            out.put_i32(*end as i32);
            for members in [voters, learners] {
                out.put_count(members.len());
                members.iter().for_each(|member| put_member(*member, out));
            }
        }
        if !self.together.is_empty() {
            out.put_i64(self.roster as i64);
            out.put_bool(self.is_promoted);
            out.put_i32(self.established as i32);
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<FoundedGroups, DecodeError> {
        let mut groups = FoundedGroups::default();
        for _ in 0..r.count()? {
            let end = r.i32()?;
            let unknown = DecodeError::UnknownValue { field: "number of groups", value: end };
            let count = u32::try_from(end).ok().filter(|count| *count > groups.count()).ok_or(unknown)?;
            let [mut voters, mut learners] = [Vec::new(), Vec::new()];
            for members in [&mut voters, &mut learners] {
                for _ in 0..r.count()? {
                    members.push(read_member(r, true)?);
                }
            }
            groups.grow(count, GroupFounders { voters, learners }, 0);
        }
        if !groups.together.is_empty() {
            (groups.roster, groups.is_promoted) = (r.i64()? as u64, r.bool()?);
            groups.established = r.i32()? as u32;
        }
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_know_their_founders_and_come_back_from_bytes() {
        let founders =
            |voters: &[MemberNumber]| GroupFounders { voters: voters.to_vec(), learners: vec![300] };
        let mut groups = FoundedGroups::default();
        assert_eq!((groups.count(), groups.digest(), groups.founders(0)), (1, 0, None));
        groups.grow(4, founders(&[1, 2, 3]), 0);
        let digest = groups.digest();
        groups.grow(4, founders(&[9]), 0);
        assert_eq!(groups.digest(), digest, "a number that is not higher founds nothing");
        groups.grow(6, founders(&[1, 2, 257]), 0);
        assert_ne!(groups.digest(), digest);
        let expected = [None, Some(3), Some(3), Some(3), Some(257), Some(257), None];
        for (group, last) in (0..).zip(expected) {
            assert_eq!(groups.founders(group).and_then(|members| members.voters.last().copied()), last);
            assert_eq!(groups.replicas(group), None);
        }
        let digest = groups.digest();
        groups.begin_roster();
        assert_ne!(groups.digest(), digest);
        groups.promote();
        groups.grow(7, founders(&[1, 2]), 0);
        assert_eq!((groups.roster(), groups.is_promoted()), (2, true));
        assert_eq!(groups.established(), 6, "group 6 came later");
        let mut bytes = Vec::new();
        groups.encode(&mut bytes);
        assert_eq!(FoundedGroups::decode(&mut Reader::new(&bytes)), Ok(groups.clone()));
        groups.begin_roster();
        assert_eq!((groups.roster(), groups.is_promoted()), (3, false));
        let mut bytes = Vec::new();
        FoundedGroups::default().encode(&mut bytes);
        assert_eq!(bytes, [0; 4], "nothing else without other groups");
        let mut alone = FoundedGroups::default();
        alone.begin_roster();
        assert_eq!(alone, FoundedGroups::default());
        for end in [1, -1] {
            let mut bytes = Vec::new();
            bytes.put_count(1);
            bytes.put_i32(end);
            assert!(FoundedGroups::decode(&mut Reader::new(&bytes)).is_err(), "{end}");
        }
    }
}
