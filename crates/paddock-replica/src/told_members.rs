//! The members of which others have told this one.
//!
//! A member has links to those on the list in its state, and calls of others are refused. One that was away while members were replaced, or that
//! has lost its disk and has an old configuration, may not have the leader on its list, and cannot hear from it what the list is now. So a
//! member without a leader tells those that it knows how new its list is, and those with a newer one answer with it. Those in its configuration count
//! meanwhile, too. Links to all these are all that follows: what it takes to vote, and to be told the state, is as it was.
//!
//! A list that is being changed counts with those who are and those who are to be, since both may lead.

use std::collections::BTreeMap;

use paddock_proto::{EnsembleMember, MemberNumber};
use paddock_tree::{Ensemble, digest_of_members, member_lines, parse_members};

use crate::raft_id::raft_id;

/// Ticks without a word of a leader before this member asks, and between two of the times at which it does.
const ASK_TICKS: u32 = 30;
/// Bytes of a list that another member tells, at most.
const BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct ToldMembers {
    /// The list in this member's state.
    own: MemberList,
    /// A list that is not older, and names others.
    told: MemberList,
    /// True since this member has asked, until it hears a leader that its state names.
    is_seeking: bool,
    /// True if the shell does not know all of this yet.
    has_news: bool,
    ticks_without_leader: u32,
}

/// Members to whom a member is to have links beside those in its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoughtMembers {
    /// Members of whom others have told.
    pub told: Vec<EnsembleMember>,
    /// True if those in the configuration count, too.
    pub has_configured: bool,
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

    /// A leader speaks to this member, or this member leads.
    pub(crate) fn note_leader(&mut self, leader: u64) {
        self.ticks_without_leader = 0;
        let is_needless = self.is_seeking || !self.told.members.is_empty();
        if is_needless && self.own.members.keys().any(|member| raft_id(*member) == leader) {
            (self.told, self.is_seeking, self.has_news) = (MemberList::default(), false, true);
        }
    }

    /// A tick. Returns what to ask the others, if it is time to.
    pub(crate) fn tick(&mut self) -> Option<ListMark> {
        self.ticks_without_leader += 1;
        if !self.ticks_without_leader.is_multiple_of(ASK_TICKS) {
            return None;
        }
        self.has_news |= !std::mem::replace(&mut self.is_seeking, true);
        Some(self.own.mark())
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

    /// The members that are sought, if they are others than when this was called before.
    pub(crate) fn take_news(&mut self) -> Option<SoughtMembers> {
        let (told, has_configured) = (self.told.members.values().cloned().collect(), self.is_seeking);
        std::mem::take(&mut self.has_news).then_some(SoughtMembers { told, has_configured })
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
        (0..ASK_TICKS).find_map(|_| told.tick()).expect("it asks")
    }

    fn numbers(sought: Option<SoughtMembers>) -> Vec<MemberNumber> {
        sought.into_iter().flat_map(|sought| sought.told).map(|member| member.id).collect()
    }

    /// Numbers of the members that one with `old` has been told when it has asked those with the lists of `others`.
    fn told_by(old: Option<&Ensemble>, others: &[Ensemble]) -> Vec<MemberNumber> {
        let mut asker = old.map(following).unwrap_or_default();
        let mark = asked(&mut asker);
        for other in others {
            if let Some((version, lines)) = following(other).answer(mark) {
                asker.hear(version, &lines);
            }
        }
        numbers(asker.take_news())
    }

    #[test]
    fn a_member_with_an_old_list_or_none_is_told_of_those_that_it_does_not_know() {
        let new = ensemble(9, &[2, 3, 4], None);
        assert_eq!(told_by(Some(&ensemble(5, &[1, 2, 3], None)), std::slice::from_ref(&new)), [4]);
        assert_eq!(told_by(None, &[ensemble(0, &[1], None), new.clone()]), [2, 3, 4]);
        assert_eq!(told_by(Some(&new), std::slice::from_ref(&new)), []);
        assert_eq!(told_by(Some(&new), &[ensemble(5, &[1, 2, 3], None)]), []);
    }

    #[test]
    fn members_of_a_change_under_way_are_told_too() {
        let (before, under_way) = (ensemble(5, &[1, 2], None), ensemble(5, &[1, 2], Some(&[2, 3])));
        assert_eq!(told_by(Some(&before), &[under_way.clone(), before.clone()]), [3]);
        assert_eq!(told_by(Some(&under_way), &[before]), []);
    }

    #[test]
    fn the_newest_list_counts_in_whatever_order_they_come() {
        let (middle, newest) = (ensemble(7, &[1, 4], None), ensemble(9, &[1, 5], None));
        let old = ensemble(5, &[1, 2], None);
        assert_eq!(told_by(Some(&old), &[middle.clone(), newest.clone()]), [5]);
        assert_eq!(told_by(Some(&old), &[newest, middle]), [5]);
    }

    #[test]
    fn what_was_told_is_forgotten_when_the_state_knows_as_much() {
        let mut told = following(&ensemble(5, &[1, 2], None));
        told.hear(9, &lines(&[2, 3]));
        assert_eq!(numbers(told.take_news()), [3]);
        told.follow(&ensemble(7, &[2, 4], None));
        assert_eq!(told.take_news(), None);
        told.follow(&ensemble(9, &[2, 3], None));
        assert_eq!(told.take_news(), Some(SoughtMembers::default()));
    }

    #[test]
    fn a_list_that_cannot_be_read_or_is_too_long_names_none() {
        let mut told = following(&ensemble(5, &[1, 2], None));
        told.hear(9, "server.3=nonsense");
        told.hear(9, &lines(&(1..9999).collect::<Vec<_>>()));
        assert_eq!(told.take_news(), None);
    }

    #[test]
    fn a_member_asks_again_and_again_while_it_hears_no_leader() {
        let mut told = following(&ensemble(5, &[1, 2], None));
        let times = |told: &mut ToldMembers, is_heard: bool| {
            let tick = |number: u32| {
                if is_heard && number.is_multiple_of(5) {
                    told.note_leader(1);
                }
                told.tick()
            };
            (0..90).filter_map(tick).count()
        };
        assert_eq!([times(&mut told, false), times(&mut told, true), times(&mut told, false)], [3, 0, 3]);
    }

    /// A leader that the state does not name may be out of reach when its list is dropped.
    #[test]
    fn the_configuration_counts_until_a_leader_is_heard_that_the_state_names() {
        let mut told = following(&ensemble(5, &[1, 2], None));
        let has_configured = |told: &mut ToldMembers| told.take_news().map(|sought| sought.has_configured);
        asked(&mut told);
        assert_eq!(has_configured(&mut told), Some(true));
        told.note_leader(3);
        told.follow(&ensemble(7, &[1, 4], None));
        told.note_leader(3);
        assert_eq!(has_configured(&mut told), None);
        told.follow(&ensemble(9, &[1, 3], None));
        told.note_leader(3);
        assert_eq!(has_configured(&mut told), Some(false));
        told.note_leader(3);
        assert_eq!(has_configured(&mut told), None);
    }
}
