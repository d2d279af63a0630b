//! The members of which others have told this one.
//!
//! A member has links to those on the list in its state, and calls of others are refused. One that was away while members were replaced, or that
//! has lost its disk and has an old configuration, may not have the leader on its list, and cannot hear from it what the list is now. So a
//! member without a leader tells those that it knows how new its list is, and those with a newer one answer with it. Links to these members are
//! all that follows from the answer: what it takes to vote, and to be told the state, is as it was.
//!
//! A list that is being changed counts with those who are and those who are to be, since both may lead.

use std::collections::BTreeMap;

use paddock_proto::{EnsembleMember, MemberNumber};
use paddock_tree::{Ensemble, digest_of_members, member_lines, parse_members};

/// Ticks without a leader before this member asks, and between two of the times at which it does.
const ASK_TICKS: u32 = 30;
/// Bytes of a list that another member tells, at most.
const BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct ToldMembers {
    /// The list in this member's state.
    own: MemberList,
    /// A list that is not older, and names others.
    told: MemberList,
    /// True if the shell does not know yet what was told.
    has_news: bool,
    ticks_without_leader: u32,
}

/// Members of the ensemble, as a write has left them.
#[derive(Debug, Default)]
struct MemberList {
    /// The zxid of the write that settled who the members are; 0 in front of all.
    version: i64,
    members: BTreeMap<MemberNumber, EnsembleMember>,
}

impl MemberList {
    fn of(ensemble: &Ensemble) -> MemberList {
        let members = ensemble.all_members().map(|member| (member.id, member.clone()));
        MemberList { version: ensemble.version, members: members.collect() }
    }

    fn lines(&self) -> String {
        member_lines(&self.members.values().cloned().collect::<Vec<_>>())
    }

    fn mark(&self) -> ListMark {
        ListMark { version: self.version, digest: digest_of_members(&self.lines()).unwrap_or_default() }
    }
}

/// Version and digest of the list of a member that asks for a newer one; both are 0 if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListMark {
    pub(crate) version: i64,
    pub(crate) digest: u64,
}

impl ToldMembers {
    /// The state has these members now.
    pub(crate) fn follow(&mut self, ensemble: &Ensemble) {
        self.own = MemberList::of(ensemble);
        let names_them =
            |told: &MemberList| told.members.iter().all(|one| self.own.members.get(one.0) == Some(one.1));
        let is_needless = self.own.version > self.told.version || names_them(&self.told);
        if !self.told.members.is_empty() && is_needless {
            self.told = MemberList::default();
            self.has_news = true;
        }
    }

    /// A tick. Returns what to ask the others, if it is time to.
    pub(crate) fn tick(&mut self, has_leader: bool) -> Option<ListMark> {
        self.ticks_without_leader = if has_leader { 0 } else { self.ticks_without_leader + 1 };
        let is_due = !has_leader && self.ticks_without_leader.is_multiple_of(ASK_TICKS);
        is_due.then(|| self.own.mark())
    }

    /// Answer to a member whose list has this mark: version and lines of this member's, unless that is older or the same.
    pub(crate) fn answer(&self, theirs: ListMark) -> Option<(i64, String)> {
        let own = self.own.mark();
        let is_news = own.version > 0 && own.version >= theirs.version && own.digest != theirs.digest;
        is_news.then(|| (own.version, self.own.lines()))
    }

    /// Another member tells its list. One that is older than this member's, is too long or cannot be read changes nothing.
    pub(crate) fn hear(&mut self, version: i64, lines: &str) {
        let members = Some(lines).filter(|lines| lines.len() <= BYTES_MAX).and_then(parse_members);
        if version < self.own.version.max(self.told.version) {
            return;
        }
        if version > self.told.version {
            self.told = MemberList { version, members: BTreeMap::new() };
        }
        // Members that answer need not have come equally far with a change.
        for member in members.unwrap_or_default() {
            let known = self.told.members.get(&member.id).or_else(|| self.own.members.get(&member.id));
            if known != Some(&member) {
                self.told.members.insert(member.id, member);
                self.has_news = true;
            }
        }
    }

    /// The members that were told, if they are others than when this was called before.
    pub(crate) fn take_news(&mut self) -> Option<Vec<EnsembleMember>> {
        std::mem::take(&mut self.has_news).then(|| self.told.members.values().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ids: &[MemberNumber]) -> String {
        ids.iter().map(|id| format!("server.{id}=h{id}:1:2:participant\n")).collect()
    }

    fn ensemble(version: i64, members: &[MemberNumber], target: Option<&[MemberNumber]>) -> Ensemble {
        let parse = |ids: &[MemberNumber]| parse_members(&lines(ids)).unwrap();
        Ensemble { cluster: 1, members: parse(members), version, target: target.map(parse) }
    }

    fn following(ensemble: &Ensemble) -> ToldMembers {
        let mut told = ToldMembers::default();
        told.follow(ensemble);
        told
    }

    fn asked(told: &mut ToldMembers) -> ListMark {
        (0..ASK_TICKS).find_map(|_| told.tick(false)).expect("it asks")
    }

    /// Numbers of the members that one with `old` has been told when it has asked those with the lists of `others`.
    fn told_by(old: Option<&Ensemble>, others: &[Ensemble]) -> Option<Vec<MemberNumber>> {
        let mut asker = old.map(following).unwrap_or_default();
        let mark = asked(&mut asker);
        for other in others {
            if let Some((version, lines)) = following(other).answer(mark) {
                asker.hear(version, &lines);
            }
        }
        asker.take_news().map(|members| members.iter().map(|member| member.id).collect())
    }

    #[test]
    fn a_member_with_an_old_list_or_none_is_told_of_those_that_it_does_not_know() {
        let new = ensemble(9, &[2, 3, 4], None);
        assert_eq!(told_by(Some(&ensemble(5, &[1, 2, 3], None)), std::slice::from_ref(&new)), Some(vec![4]));
        assert_eq!(told_by(None, &[ensemble(0, &[1], None), new.clone()]), Some(vec![2, 3, 4]));
        assert_eq!(told_by(Some(&new), std::slice::from_ref(&new)), None);
        assert_eq!(told_by(Some(&new), &[ensemble(5, &[1, 2, 3], None)]), None);
    }

    #[test]
    fn members_of_a_change_under_way_are_told_too() {
        let (before, under_way) = (ensemble(5, &[1, 2], None), ensemble(5, &[1, 2], Some(&[2, 3])));
        assert_eq!(told_by(Some(&before), &[under_way.clone(), before.clone()]), Some(vec![3]));
        assert_eq!(told_by(Some(&under_way), &[before]), None);
    }

    #[test]
    fn the_newest_list_counts_in_whatever_order_they_come() {
        let (middle, newest) = (ensemble(7, &[1, 4], None), ensemble(9, &[1, 5], None));
        let old = ensemble(5, &[1, 2], None);
        assert_eq!(told_by(Some(&old), &[middle.clone(), newest.clone()]), Some(vec![5]));
        assert_eq!(told_by(Some(&old), &[newest, middle]), Some(vec![5]));
    }

    #[test]
    fn what_was_told_is_forgotten_when_the_state_knows_as_much() {
        let mut told = following(&ensemble(5, &[1, 2], None));
        told.hear(9, &lines(&[2, 3]));
        assert_eq!(told.take_news().map(|members| members.len()), Some(1));
        told.follow(&ensemble(7, &[2, 4], None));
        assert_eq!(told.take_news(), None);
        told.follow(&ensemble(9, &[2, 3], None));
        assert_eq!(told.take_news(), Some(Vec::new()));
    }

    #[test]
    fn a_list_that_cannot_be_read_or_is_too_long_names_none() {
        let mut told = following(&ensemble(5, &[1, 2], None));
        told.hear(9, "server.3=nonsense");
        told.hear(9, &lines(&(1..9999).collect::<Vec<_>>()));
        assert_eq!(told.take_news(), None);
    }

    #[test]
    fn a_member_asks_again_and_again_while_it_knows_no_leader() {
        let mut told = ToldMembers::default();
        let times =
            |told: &mut ToldMembers, has_leader| (0..90).filter_map(|_| told.tick(has_leader)).count();
        assert_eq!([times(&mut told, false), times(&mut told, true), times(&mut told, false)], [3, 0, 3]);
    }
}
