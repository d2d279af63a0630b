//! Groups beside the home group: their members agree about every entry and every state, vote once in a term, and follow one leader in it. None needs a
//! voter that is no member of the ensemble, and is not to become one.

use std::collections::BTreeMap;

use paddock_proto::{MemberNumber, Zxid};
use paddock_replica::{GroupStanding, LogEntry, Membership, member_number};

use super::one_order::Spread;
use super::{Checked, ensure};

const CHECKER: &str = "groups";

/// A clock that is ahead of those of a quorum by more than this many milliseconds counts for no stamp.
const CLOCK_BOUND_MS: i64 = 2000;
/// Milliseconds by which clocks drift apart since members have told them, at most, and in which what is told is on its way.
const TOLD_LATE_MS: i64 = 1500;
/// Milliseconds for which a member counts with a clock that it has told.
const TOLD_FOR_MS: i64 = 10_000;

/// Knowledge of the groups, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct GroupChecks {
    /// Entries of each group that any member has applied, from the first on.
    logs: BTreeMap<u32, Vec<LogEntry>>,
    /// The first digest of a group's state after an entry.
    digests: BTreeMap<(u32, u64), u64>,
    /// Candidate that a member has voted for in a term of a group.
    votes: BTreeMap<(u32, u8, u64), u8>,
    /// The leader of a term of a group.
    leaders: BTreeMap<(u32, u64), u8>,
    /// The last entry of a group that any member had applied when a member lost its data.
    forgot: BTreeMap<(u8, u32), u64>,
    /// Groups that the home group has founded, with itself.
    count: u32,
    /// The newest membership of each group, and the entry up to which a member has applied it.
    memberships: BTreeMap<u32, (u64, Membership)>,
    /// The most that the wall clock of a voter has been ahead of the world's time, in milliseconds; none where voters change.
    clocks: BTreeMap<u8, i64>,
    /// Voters of the group of which a membership was seen first.
    first_voters: Option<Vec<u64>>,
    /// A group has had other voters than those, or no longer has them: other clocks count.
    have_voters_changed: bool,
    /// Milliseconds by which members may take clocks of others for further ahead than they are: their own, which never go back, have jumped.
    jumped_ms: i64,
}

impl GroupChecks {
    /// Number of groups that the home group has founded, with itself.
    pub(crate) fn count(&self) -> u32 {
        self.count.max(1)
    }

    /// The home group's log has come to an entry.
    pub(crate) fn home_committed(&mut self, entry: &LogEntry) {
        self.count = self.count.max(entry.founded_groups().unwrap_or_default());
    }

    /// The last entry of a group that any member has applied.
    pub(crate) fn last_index(&self, group: u32) -> u64 {
        self.logs.get(&group).map_or(0, |log| log.len() as u64)
    }

    /// The wall clock of a voter is ahead of the world's time by these milliseconds.
    pub(crate) fn note_clock(&mut self, voter: u8, ahead_ms: i64) {
        let most = self.clocks.entry(voter).or_insert(ahead_ms);
        *most = ahead_ms.max(*most);
    }

    /// The clock of a member that never goes back has jumped.
    pub(crate) fn clock_jumps(&mut self, by_ms: u64) {
        self.jumped_ms += TOLD_FOR_MS.min(by_ms as i64);
    }

    /// An entry is applied for the first time when the world's time is `now_ms`: its floor is not of a clock that is ahead of a quorum's.
    fn check_floor(&self, group: u32, entry: &LogEntry, now_ms: i64) -> Checked {
        if self.clocks.is_empty() || self.have_voters_changed {
            return Ok(());
        }
        let mut clocks: Vec<i64> = self.clocks.values().copied().collect();
        clocks.sort_unstable_by(|one, other| other.cmp(one));
        let quorum_ms = clocks.get(clocks.len() / 2).copied().unwrap_or_default();
        let (floor_ms, most_ms) = (stamp_ms(entry.floor()), now_ms + quorum_ms);
        ensure!(
            floor_ms <= most_ms + CLOCK_BOUND_MS + TOLD_LATE_MS + self.jumped_ms,
            CHECKER,
            "entry {} of group {group} has a floor of {floor_ms} ms; clocks of a quorum have shown {most_ms} ms at most",
            entry.index
        );
        Ok(())
    }

    /// A member applies an entry of a group, at this time of the world in milliseconds.
    pub(crate) fn committed(&mut self, member: u8, group: u32, entry: &LogEntry, now_ms: i64) -> Checked {
        if entry.index == self.last_index(group) + 1 {
            self.check_floor(group, entry, now_ms)?;
        }
        let last = self.last_index(group);
        let LogEntry { index, term, .. } = entry;
        ensure!(
            *index <= last + 1,
            CHECKER,
            "member {member} applies entry {index} of group {group}, and {last} is the last that anybody has applied"
        );
        let log = self.logs.entry(group).or_default();
        match log.get(*index as usize - 1) {
            None => log.push(entry.clone()),
            Some(settled) => ensure!(
                settled == entry,
                CHECKER,
                "member {member} applies another entry {index} of group {group}, of term {term}, than was applied before, of term {}",
                settled.term
            ),
        }
        Ok(())
    }

    /// A member has this digest of a group's state after an entry.
    pub(crate) fn check_digest(&mut self, member: u8, group: u32, (index, digest): (u64, u64)) -> Checked {
        let first = *self.digests.entry((group, index)).or_insert(digest);
        ensure!(
            digest == first,
            CHECKER,
            "member {member} has the digest {digest:016x} after entry {index} of group {group}; the first one there had {first:016x}"
        );
        Ok(())
    }

    /// A member has this zxid after an entry of a group.
    pub(crate) fn check_zxid(
        &self,
        (member, group): (u8, u32),
        (index, found): (u64, Zxid),
        spread: &Spread,
    ) -> Checked {
        let expected = spread.zxid_after(group, index);
        ensure!(
            expected.is_none_or(|expected| expected == found),
            CHECKER,
            "member {member} is at zxid {found} after entry {index} of group {group}; it should be {expected:?}"
        );
        Ok(())
    }

    /// A member has applied a group up to an entry, with this membership.
    pub(crate) fn has_membership(&mut self, group: u32, (index, membership): (u64, Membership)) {
        // A group that is not founded yet has none.
        if !membership.voters.is_empty() {
            let first = self.first_voters.get_or_insert_with(|| membership.voters.clone());
            self.have_voters_changed |= *first != membership.voters;
        }
        let newest = self.memberships.entry(group).or_default();
        if index > newest.0 {
            *newest = (index, membership);
        }
    }

    /// Voters of a group, and those of before while one set follows another; none if no member has come to any yet.
    pub(crate) fn voters(&self, group: u32) -> impl Iterator<Item = &Vec<u64>> {
        let membership = self.memberships.get(&group).map(|(_, membership)| membership);
        let sets = membership.map(|membership| [&membership.voters, &membership.voters_outgoing]);
        sets.into_iter().flatten().filter(|voters| !voters.is_empty())
    }

    /// `allowed` are the voters of the ensemble, and those to be while they change: no group needs another member.
    pub(crate) fn check_voters(&self, allowed: &[MemberNumber]) -> Checked {
        for (group, (index, membership)) in &self.memberships {
            let voters = membership.voters.iter().chain(&membership.voters_outgoing);
            let needed = voters.filter_map(|id| member_number(*id)).find(|id| !allowed.contains(id));
            ensure!(
                needed.is_none(),
                CHECKER,
                "group {group} needs member {needed:?} after entry {index}, and the voters are {allowed:?}"
            );
        }
        Ok(())
    }

    /// A member lets another one know of its vote, or asks for votes. `last` is the last entry in its log.
    pub(crate) fn check_vote(
        &mut self,
        (member, group): (u8, u32),
        term: u64,
        candidate: u8,
        last: Option<u64>,
    ) -> Checked {
        let chosen = *self.votes.entry((group, member, term)).or_insert(candidate);
        ensure!(
            chosen == candidate,
            CHECKER,
            "member {member} votes for {candidate} in term {term} of group {group}, in which it has voted for {chosen}"
        );
        let forgot = self.forgot.get(&(member, group)).copied().unwrap_or_default();
        ensure!(
            last.is_none_or(|last| last >= forgot),
            CHECKER,
            "member {member} votes in group {group} with a log up to {last:?}; entry {forgot} was there when it lost its data"
        );
        Ok(())
    }

    /// A member's part in a group, whatever the member's disk has been through.
    pub(crate) fn check_standing(&mut self, member: u8, standing: &GroupStanding) -> Checked {
        let GroupStanding { number, leads, term, .. } = *standing;
        if leads {
            let leader = *self.leaders.entry((number, term)).or_insert(member);
            ensure!(
                leader == member,
                CHECKER,
                "members {leader} and {member} lead group {number} in term {term}"
            );
        }
        Ok(())
    }

    /// A member has a new disk, or a damaged one, or puts its data aside: it may not vote in a group before it knows what was there.
    pub(crate) fn loses_data(&mut self, member: u8) {
        for (group, log) in &self.logs {
            self.forgot.insert((member, *group), log.len() as u64);
        }
    }

    /// A member has another disk than before: it is not known for whom it has voted.
    pub(crate) fn forgets_votes(&mut self, member: u8) {
        self.votes.retain(|(_, voter, _), _| *voter != member);
    }
}

/// Milliseconds of a stamp.
fn stamp_ms(zxid: Zxid) -> i64 {
    zxid.0 >> 21
}
