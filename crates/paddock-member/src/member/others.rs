//! Groups of a member beside its home group: they begin when the home group's state tells of them.
//!
//! They share the member's log, its syncs and its links. Each has a state of its own, which the member keeps: what clients ask of it comes through the
//! member's router (`member/routing.rs`), and who takes a snapshot has the state for a slice at a time.

use std::collections::BTreeMap;

use paddock_groups::Router;
use paddock_proto::{MemberNumber, Zxid};
#[cfg(feature = "testing")]
use paddock_replica::LogEntry;
use paddock_replica::{
    Effects, Group, GroupStanding, HardState, MemberFacts, Membership, NewGroup, Recovered, Replayed,
    Replica, Replicated, Standing, founders_of, member_number, raft_id,
};
use paddock_state::{Now, WatchTable};
use paddock_storage::{GroupNumber, Index};
use paddock_tree::Tree;

use super::Member;
use super::group::MemberGroup;
use crate::group_state::GroupState;
use crate::incoming::Incoming;
use crate::recovery::FoundGroup;
use crate::running_whole::GroupHandle;
use crate::snapshots::Snapshots;

impl Member {
    /// Number of Raft groups that this member has, with the home group.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The member's standing in its home group, with the numbers of its groups.
    pub(super) fn with_groups(&self, mut standing: Standing) -> Standing {
        (standing.groups, standing.groups_led) = (0, 0);
        (standing.other_groups, standing.group_items_pending) = (self.other_groups(), self.carrier.pending());
        standing.home_commands = self.groups[0].writes;
        for group in self.group_standings() {
            // A replica that is not served from is beginning, or is about to end.
            let is_other = group.number > 0 && self.presence.serves(group.number);
            standing.groups += 1;
            standing.groups_led += u32::from(group.leads);
            standing.groups_joining += u32::from(is_other && (group.is_silent || group.awaits_vote));
            standing.groups_without_leader += u32::from(is_other && group.leader.is_none());
        }
        standing
    }

    /// This member's part in each of its groups, by rising number.
    pub fn group_standings(&self) -> impl Iterator<Item = GroupStanding> {
        self.groups.iter().map(|group| MemberFacts::of(&self.presence, &group.group).group_standing())
    }

    /// Calls `look` with the state of a group that is not the home group, if this member has it.
    pub fn look_at_group<T>(&self, number: u32, look: impl FnOnce(&Replicated) -> T) -> Option<T> {
        let at = self.place_of(GroupNumber(number))?;
        let state = self.groups[at].own_state.as_ref()?;
        Some(look(&state.look()))
    }

    /// The states of the groups beside the home group that this member has and serves clients from.
    pub fn group_handles(&self) -> Vec<GroupHandle> {
        let state = |group: &MemberGroup| Some(GroupHandle::new(group.number.0, group.own_state.clone()?));
        let serving = self.groups.iter().filter(|group| self.presence.serves(group.number.0));
        serving.filter_map(state).collect()
    }

    /// Members to ask for what is in a group that this one does not serve, those first that are to be asked first. `home` is the home group's state.
    pub fn hosts_of_others(&self, home: &Tree, now: Now) -> BTreeMap<u32, Vec<MemberNumber>> {
        let others = (1..home.groups().count()).filter(|group| !self.presence.serves(*group));
        others.map(|group| (group, self.presence.hosts_of(home, group, now))).collect()
    }

    /// Asks a group, if this member has it, for a transaction with a zxid that is not below this one, and changes nothing.
    pub fn mark_group(&mut self, group: u32, at_least: Zxid) {
        if let Some(at) = self.place_of(GroupNumber(group)) {
            self.submit_mark(at, at_least);
        }
    }

    /// Submits a command to a group that is not the home group, if this member has it: no client does yet. No connection waits for it.
    #[cfg(any(test, feature = "testing"))]
    pub fn submit_to_group(&mut self, number: u32, command: &[u8]) {
        if let Some(at) = self.place_of(GroupNumber(number)).filter(|at| *at > 0) {
            self.replica(at).submit(command);
        }
    }

    /// Entries that were applied while the log was read, each behind the number of its group, since this was asked last.
    #[cfg(feature = "testing")]
    pub fn take_replayed(&mut self) -> Vec<(u32, LogEntry)> {
        std::mem::take(&mut self.replayed)
    }

    /// Begins with the groups that were found on the disk, and with those of which only the home group's state tells.
    pub(super) fn begin_others(&mut self, found: Vec<FoundGroup>, home: &Replicated, now: Now) {
        let mut found: BTreeMap<GroupNumber, FoundGroup> =
            found.into_iter().map(|group| (group.number, group)).collect();
        for number in 1..home.tree().groups().count() {
            let founders = founders_of(home.tree(), number).expect("the state says who founds its groups");
            if !home.tree().has_replica(number, self.config.member) {
                continue;
            }
            // The state does not tell since when the group is there.
            let not_before = Some(1);
            match found.remove(&GroupNumber(number)) {
                Some(group) => self.begin_other(group, founders, not_before, now),
                None => self.begin_new_group(NewGroup { number, founders, not_before }, now),
            }
        }
        // The home group's log tells of these when it is applied: they were founded, or this member is to have them, or is to have them no more.
        for group in found.into_values().filter(|group| !group.is_let_go()) {
            self.begin_other(group, Membership::default(), None, now);
        }
        self.carrier.follow_home(home.tree());
    }

    /// Begins with the groups that the home group has founded, but for those that were found on the disk.
    pub(super) fn found_new_groups(&mut self, now: Now) {
        if self.presence.take_placement_changed() {
            self.follow_placement();
        }
        let new = self.presence.take_new_groups().into_iter();
        let (later, new): (Vec<NewGroup>, Vec<_>) = new.partition(|new| self.leaves(new.number));
        for new in new {
            match self.place_of(GroupNumber(new.number)) {
                Some(at) => {
                    self.groups[at].group.note_founders(new);
                    self.stir(at);
                }
                None => self.begin_new_group(new, now),
            }
        }
        self.presence.put_back_new_groups(later);
    }

    /// The home group has placed groups on other members: watches are told of the changes of those that this one serves now.
    fn follow_placement(&mut self) {
        for at in 1..self.groups.len() {
            self.share_watches(at);
        }
        self.router.iter_mut().for_each(Router::look_for_hosts);
    }

    /// A group that the member serves tells its watches what changes. What a replica only learns, or applies before it goes, its clients are told by a host.
    fn share_watches(&mut self, at: usize) {
        let MemberGroup { number, own_state, .. } = &self.groups[at];
        let Some(state) = own_state else { return };
        if self.presence.serves(number.0) {
            state.share_watches(self.presence.watches());
            return;
        }
        state.share_watches(&WatchTable::default());
        // Guests are told before they hear how far the replica has come without watching.
        for conn in self.hosting.begin_anew(number.0) {
            self.presence.watches().drop_conn(conn);
        }
    }

    fn begin_new_group(&mut self, new: NewGroup, now: Now) {
        let NewGroup { number, founders, not_before } = new;
        let state = Replicated::new(Tree::new(), (0, 0), Membership::default());
        let mut recovered = Recovered::new((0, 0), Membership::default(), HardState::default(), Vec::new());
        recovered.begin(raft_id(self.config.member), self.config.process(), state.tree(), now);
        let group =
            FoundGroup { number: GroupNumber(number), state, recovered, replayed: Replayed::default() };
        self.begin_other(group, founders, not_before, now);
    }

    fn begin_other(&mut self, found: FoundGroup, founders: Membership, not_before: Option<u64>, now: Now) {
        let FoundGroup { number, state, mut recovered, replayed } = found;
        recovered.cluster = self.presence.cluster();
        let snapshot = recovered.snapshot.0;
        #[cfg(feature = "testing")]
        self.replayed.extend(replayed.entries.into_iter().map(|entry| (number.0, entry)));
        let mut group = Group::other(&self.presence, (number.0, founders), recovered, &state, now);
        Replica::new(&mut self.presence, &mut group).open_other(&state, not_before);
        let at = self.groups.partition_point(|group| group.number < number);
        let other = MemberGroup {
            number,
            group,
            effects: Effects::default(),
            snapshots: Snapshots::behind(number, snapshot),
            incoming: Incoming::new(number, self.disk.clone(), self.config.snapshot_dir(number)),
            unsynced: None,
            writes: replayed.commands,
            own_state: Some(GroupState::new(state)),
            joining_term: None,
        };
        self.groups.insert(at, other);
        self.stirred.insert(at, true);
        self.share_watches(at);
        self.follow_received(at);
    }

    /// Tells the other groups which members were heard in another process than before, with a message for the group at this place. That one knows, and
    /// what it has heard from the new process must not be taken for the former one's.
    pub(super) fn tell_successions(&mut self, heard_at: usize) {
        for member in self.presence.take_successions() {
            let others = (0..self.groups.len()).filter(|at| *at != heard_at);
            others.for_each(|at| self.replica(at).note_restart(member));
            if let (Some(router), Some(number)) = (&mut self.router, member_number(member)) {
                router.begin_anew_with(number);
            }
        }
    }

    /// Lets old files of the log go that only say where idle groups end, by saying that again in a new one.
    pub(super) fn release_idle_groups(&mut self) {
        for group in &self.groups[1..] {
            self.log.release(group.number, Index(0));
        }
    }
}
