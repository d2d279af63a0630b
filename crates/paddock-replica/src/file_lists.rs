//! Lists of members in configuration files, and the changes of members that they ask for.
//!
//! Files say who the members are where clients may not change them (`reconfigEnabled=false`): an operator who adds a server to an
//! ensemble of ZooKeeper's, or a chart that does it, changes the files; a member reads its own again, or is restarted. Every member tells the leader of the
//! list in its own file. The leader follows a list on which most of the voters agree, all of them running: it changes one member at a
//! time, so that two majorities always share a voter, and asks for a change that failed again after a while.
//!
//! If clients may change the members, files only mend addresses that mean something else on each machine: the container image of
//! ZooKeeper gives a member 0.0.0.0 for itself, and the first leader writes its own file into the state.
//!
//! Files need not be alike to the letter. A member often has 0.0.0.0 or localhost for itself, which is no address for the others; the ports
//! for clients are left as they are for members that are there already.

use std::collections::BTreeMap;

use paddock_proto::{EnsembleMember, MemberNumber, MemberRole, Reach};
use paddock_tree::{member_lines, parse_members};

use crate::raft_id::raft_id;

/// Ticks between two of the times at which a member tells its list.
const TELL_TICKS: u32 = 50;
/// Ticks after which a list counts no more that was not told again.
const HEARD_TICKS: u32 = 3 * TELL_TICKS;
/// Ticks after which a change that did not come about is asked for again.
const AGAIN_TICKS: u32 = 200;
/// Bytes of a list that another member tells, at most.
const BYTES_MAX: usize = 64 << 10;

/// The lists that this member knows of.
#[derive(Debug, Default)]
pub(crate) struct FileLists {
    own: Vec<EnsembleMember>,
    /// False if clients may change the members: only addresses that lead nowhere are mended then.
    are_followed: bool,
    /// True if the leader has not been told of the list in the file since that changed.
    has_news: bool,
    ticks: u32,
    told: BTreeMap<u64, Told>,
    /// The members that the leader asked for last, and the tick.
    asked: Option<(String, u32)>,
}

#[derive(Debug)]
struct Told {
    members: Vec<EnsembleMember>,
    tick: u32,
}

impl FileLists {
    /// `own` are the lines of this member's file.
    pub(crate) fn new(own: &str, are_followed: bool) -> FileLists {
        FileLists { own: parse_members(own).unwrap_or_default(), are_followed, ..FileLists::default() }
    }

    /// This member's file has other lines from now on. This member may not be among them: it is to leave.
    pub(crate) fn replace_own(&mut self, own: &str) {
        self.own = parse_members(own).unwrap_or_default();
        self.has_news = true;
    }

    /// A tick. Returns the list for the leader, if it is time to tell it. `present` are the members as the state has them.
    pub(crate) fn tick(&mut self, present: &[EnsembleMember]) -> Option<String> {
        self.ticks += 1;
        let counts = self.are_followed || present.iter().any(leads_nowhere);
        let is_due = std::mem::take(&mut self.has_news) || self.ticks.is_multiple_of(TELL_TICKS);
        (is_due && counts && !self.own.is_empty()).then(|| member_lines(&self.own))
    }

    /// Another member tells of its file. A list that cannot be read, or is too long, counts as none.
    pub(crate) fn hear(&mut self, from: u64, lines: &str) {
        let lines = if lines.len() <= BYTES_MAX { lines } else { "" };
        let members = parse_members(lines).unwrap_or_default();
        self.told.insert(from, Told { members, tick: self.ticks });
    }

    /// This member begins to lead, or ceases to: what it was told before is old.
    pub(crate) fn begin_anew(&mut self) {
        self.told.clear();
        self.asked = None;
    }

    /// The lines of the members that this leader is to ask for next, since most of the `voters` have a list that leads there; `None` if they
    /// are there already, or it is not time to ask again. `own` is this member's number.
    pub(crate) fn next_members(
        &mut self,
        own: u64,
        voters: &[u64],
        present: &[EnsembleMember],
    ) -> Option<String> {
        if self.own.is_empty() || present.is_empty() {
            return None;
        }
        let lists = self.lists_of(own, voters);
        let next = if self.are_followed {
            one_step(present, &agreed(&lists, voters.len(), present)?)?
        } else {
            mended(&lists, present)?
        };
        let lines = member_lines(&next);
        let is_too_early = |(asked, tick): &(String, u32)| *asked == lines && self.ticks - tick < AGAIN_TICKS;
        if self.asked.as_ref().is_some_and(is_too_early) {
            return None;
        }
        self.asked = Some((lines.clone(), self.ticks));
        Some(lines)
    }

    /// The lists of these voters, as far as they have been told of late.
    fn lists_of(&self, own: u64, voters: &[u64]) -> Vec<List<'_>> {
        let is_fresh = |told: &&Told| self.ticks - told.tick <= HEARD_TICKS;
        let list_of = |voter: &u64| {
            let told = || self.told.get(voter).filter(is_fresh).map(|told| told.members.as_slice());
            let members = if *voter == own { Some(self.own.as_slice()) } else { told() };
            members.map(|members| List { owner: *voter, members })
        };
        voters.iter().filter_map(list_of).collect()
    }
}

/// The members on which the lists of most of `voters` voters agree.
fn agreed(lists: &[List<'_>], voters: usize, present: &[EnsembleMember]) -> Option<Vec<EnsembleMember>> {
    let alike = |one: &List<'_>| lists.iter().filter(|other| have_same_members(one, other)).count();
    let agreed = lists.iter().find(|list| !list.members.is_empty() && 2 * alike(list) > voters)?;
    let entry = |wanted: &EnsembleMember| {
        let common = common_place(lists, wanted.id, voters);
        match present.iter().find(|member| member.id == wanted.id) {
            // The port for clients is told to them, and nothing more hangs on it.
            Some(member) => {
                let place = common.unwrap_or(member).clone();
                Some(EnsembleMember { role: wanted.role, client: member.client.clone(), ..place })
            }
            None => common.cloned(),
        }
    };
    agreed.members.iter().map(entry).collect()
}

/// The members with a better address for one of them whose own leads nowhere; `None` if there is none. The others' files know better.
fn mended(lists: &[List<'_>], present: &[EnsembleMember]) -> Option<Vec<EnsembleMember>> {
    let place = |member: &EnsembleMember| {
        let knowing = lists.iter().filter(|list| list.place_of(member.id).is_some()).count();
        common_place(lists, member.id, knowing).filter(|place| !leads_nowhere(place))
    };
    let lost = present.iter().enumerate().filter(|(_, member)| leads_nowhere(member));
    let (at, place) = lost.into_iter().find_map(|(at, member)| Some((at, place(member)?)))?;
    let mut next = present.to_vec();
    let EnsembleMember { role, client, .. } = next[at].clone();
    next[at] = EnsembleMember { role, client, ..place.clone() };
    Some(next)
}

/// The line of a member that stands in more than half of `of` lists.
fn common_place<'a>(lists: &[List<'a>], id: MemberNumber, of: usize) -> Option<&'a EnsembleMember> {
    let places: Vec<&EnsembleMember> = lists.iter().filter_map(|list| list.place_of(id)).collect();
    let votes = |one: &EnsembleMember| places.iter().filter(|other| has_same_place(one, other)).count();
    places.iter().find(|one| 2 * votes(one) > of).copied()
}

/// True for a host that means something else on each machine.
fn leads_nowhere(member: &EnsembleMember) -> bool {
    Reach::of(&member.host) < Reach::Others
}

/// The list in the file of a voter.
struct List<'a> {
    owner: u64,
    members: &'a [EnsembleMember],
}

impl<'a> List<'a> {
    /// The line of a member, if it says where the others find it: 0.0.0.0 does not, nor does the address for itself on which a member
    /// listens on its own machine.
    fn place_of(&self, id: MemberNumber) -> Option<&'a EnsembleMember> {
        let member = self.members.iter().find(|member| member.id == id)?;
        let least = if self.owner == raft_id(id) { Reach::Others } else { Reach::ItsOwn };
        (Reach::of(&member.host) >= least).then_some(member)
    }
}

fn have_same_members(one: &List<'_>, other: &List<'_>) -> bool {
    let key = |member: &EnsembleMember| (member.id, member.role == MemberRole::Participant);
    one.members.iter().map(key).eq(other.members.iter().map(key))
}

fn has_same_place(one: &EnsembleMember, other: &EnsembleMember) -> bool {
    let place = |member: &EnsembleMember| (member.quorum_port, member.election_port);
    one.host == other.host && place(one) == place(other)
}

/// The members after one of them was added, changed or removed, in this order, on the way from `present` to `wanted`; `None` if they are
/// the same.
fn one_step(present: &[EnsembleMember], wanted: &[EnsembleMember]) -> Option<Vec<EnsembleMember>> {
    let mut next = present.to_vec();
    let of = |members: &[EnsembleMember], id| members.iter().position(|member| member.id == id);
    if let Some(added) = wanted.iter().find(|member| of(present, member.id).is_none()) {
        next.push(added.clone());
    } else if let Some((at, changed)) = wanted.iter().find_map(|member| {
        let at = of(present, member.id)?;
        (present[at] != *member).then_some((at, member))
    }) {
        next[at] = changed.clone();
    } else if let Some(at) = present.iter().rposition(|member| of(wanted, member.id).is_none()) {
        next.remove(at);
    } else {
        return None;
    }
    next.sort_by_key(|member| member.id);
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: MemberNumber, host: &str) -> String {
        format!("server.{id}={host}:2888:3888:participant;2181\n")
    }

    fn lines(ids: &[MemberNumber]) -> String {
        ids.iter().map(|id| line(*id, &format!("zoo{id}"))).collect()
    }

    fn members(text: &str) -> Vec<EnsembleMember> {
        parse_members(text).expect("they can be read")
    }

    /// The members that member 1 asks for when it leads `voters`, who are `present`. `told` are the files of others.
    fn next(own: &str, told: &[(u64, &str)], present: &str) -> Option<String> {
        let mut lists = FileLists::new(own, true);
        told.iter().for_each(|(from, lines)| lists.hear(*from, lines));
        let present = members(present);
        let voters: Vec<u64> = present.iter().map(|member| raft_id(member.id)).collect();
        let asked = lists.next_members(1, &voters, &present);
        assert_eq!(lists.next_members(1, &voters, &present), None, "it was asked for just now");
        asked.map(|lines| lines.replace(":2888:3888:participant;0.0.0.0:2181\n", " "))
    }

    #[test]
    fn most_files_are_followed_one_member_at_a_time() {
        let (three, five) = (lines(&[1, 2, 3]), lines(&[1, 2, 3, 4, 5]));
        assert_eq!(next(&five, &[(2, &three), (3, &three)], &three), None);
        assert_eq!(next(&five, &[], &three), None, "one of three");
        let four = Some("server.1=zoo1 server.2=zoo2 server.3=zoo3 server.4=zoo4 ".to_owned());
        assert_eq!(next(&five, &[(2, &five), (3, &three)], &three), four);
        assert_eq!(next(&five, &[(2, &five), (4, &three)], &three), four, "4 has no vote yet");
        assert_eq!(
            next(&three, &[(2, &five), (3, &five)], &three),
            four,
            "the leader's own file counts as one"
        );
        assert_eq!(next(&five, &[(2, &five)], &five), None, "all are there");
        assert_eq!(next(&three, &[(2, &three), (3, &three)], &five), four);
        assert_eq!(
            next(&lines(&[2, 3]), &[(2, &lines(&[2, 3]))], &three),
            Some("server.2=zoo2 server.3=zoo3 ".to_owned())
        );
    }

    #[test]
    fn a_member_may_have_no_address_for_itself() {
        let own = |id: MemberNumber| lines(&[1, 2, 3, 4]).replace(&format!("zoo{id}:"), "0.0.0.0:");
        let three = lines(&[1, 2, 3]);
        let asked = next(&own(1), &[(2, &own(2)), (3, &own(3))], &three);
        assert_eq!(asked, Some("server.1=zoo1 server.2=zoo2 server.3=zoo3 server.4=zoo4 ".to_owned()));
        let nowhere = own(4);
        assert_eq!(next(&nowhere, &[(2, &nowhere), (3, &nowhere)], &three), None, "nobody knows where 4 is");
    }

    #[test]
    fn a_member_that_moves_keeps_its_port_for_clients() {
        let moved = lines(&[1, 2, 3]).replace("zoo3", "new3").replace(";2181", "");
        let asked = next(&moved, &[(2, &moved)], &lines(&[1, 2, 3]));
        assert_eq!(asked, Some("server.1=zoo1 server.2=zoo2 server.3=new3 ".to_owned()));
    }

    #[test]
    fn a_list_that_was_not_told_again_counts_no_more() {
        let (three, four) = (lines(&[1, 2, 3]), lines(&[1, 2, 3, 4]));
        let mut lists = FileLists::new(&four, true);
        lists.hear(2, &four);
        for _ in 0..=HEARD_TICKS {
            lists.tick(&[]);
        }
        assert_eq!(lists.next_members(1, &[1, 2, 3], &members(&three)), None);
        lists.hear(2, "server.x=");
        assert_eq!(lists.next_members(1, &[1, 2, 3], &members(&three)), None);
        lists.hear(2, &four);
        assert!(lists.next_members(1, &[1, 2, 3], &members(&three)).is_some());
        for _ in 0..AGAIN_TICKS {
            lists.tick(&[]);
        }
        lists.hear(2, &four);
        assert!(lists.next_members(1, &[1, 2, 3], &members(&three)).is_some(), "it is asked for again");
    }

    #[test]
    fn an_address_that_leads_nowhere_is_mended_though_clients_change_the_members() {
        let (three, four) = (lines(&[1, 2, 3]), lines(&[1, 2, 3, 4]));
        let present = three.replace("zoo1", "0.0.0.0");
        let lists = |told: &[(u64, &str)]| {
            let mut lists = FileLists::new(&present, false);
            told.iter().for_each(|(from, lines)| lists.hear(*from, lines));
            lists
        };
        let next =
            |told: &[(u64, &str)], present: &str| lists(told).next_members(1, &[1, 2, 3], &members(present));
        let mended = Some(member_lines(&members(&three)));
        assert_eq!(next(&[(2, &four)], &present), mended, "nothing else of the files counts");
        assert_eq!(next(&[(2, &three), (3, &three)], &present.replace("0.0.0.0", "127.0.0.1")), mended);
        assert_eq!(next(&[(2, &four), (3, &four)], &three), None);
        let other = three.replace("zoo1", "other");
        assert_eq!(next(&[(2, &three), (3, &other)], &present), None, "they do not agree");
        let local = three.replace("zoo1", "127.0.0.1");
        assert_eq!(next(&[(2, &local), (3, &local)], &local), None, "all of them run on one machine");
        let told = |present: &str| {
            let mut lists = lists(&[]);
            (0..2 * TELL_TICKS).filter_map(|_| lists.tick(&members(present))).count()
        };
        assert_eq!((told(&present), told(&three)), (2, 0));
    }

    #[test]
    fn a_list_that_changes_while_the_member_runs_is_told_at_once_and_counts() {
        let (one, three) = (lines(&[1]), lines(&[1, 2, 3]));
        let mut lists = FileLists::new(&one, true);
        assert_eq!(lists.next_members(1, &[1], &members(&one)), None);
        lists.replace_own(&three);
        assert_eq!(lists.tick(&members(&one)), Some(member_lines(&members(&three))));
        assert_eq!(lists.tick(&members(&one)), None, "it was told");
        let two = Some(member_lines(&members(&lines(&[1, 2]))));
        assert_eq!(lists.next_members(1, &[1], &members(&one)), two);
        // The leader is to go, as 3 is, which says so of itself.
        let mut lists = FileLists::new(&three, true);
        lists.replace_own(&lines(&[2]));
        lists.hear(3, &lines(&[2]));
        assert_eq!(lists.next_members(1, &[1, 2, 3], &members(&three)), two);
    }

    #[test]
    fn a_list_is_told_where_files_change_the_members() {
        let mut lists = FileLists::new(&lines(&[1, 2]), true);
        assert_eq!((0..2 * TELL_TICKS).filter_map(|_| lists.tick(&[])).count(), 2);
    }

    #[test]
    fn the_founders_address_becomes_the_one_that_the_others_have() {
        let own = lines(&[1, 2, 3]).replace("zoo1", "0.0.0.0");
        let asked = next(&own, &[(2, &lines(&[1, 2, 3])), (3, &lines(&[1, 2, 3]))], &own);
        assert_eq!(asked, Some("server.1=zoo1 server.2=zoo2 server.3=zoo3 ".to_owned()));
    }
}
