//! Parts that a member has once, however many groups it holds: its disk and its process, the ensemble, its clients.

use paddock_proto::{MemberNumber, Zxid};
use paddock_state::{ConnId, Now, WatchTable};
use paddock_tree::{FeatureLevel, Tree, UnknownLevel};

use crate::contact::Contact;
use crate::feature_levels::FeatureLevels;
use crate::file_lists::FileLists;
use crate::gates::Gates;
use crate::lead_times::LeadTimes;
use crate::link_times::LinkTimes;
use crate::own_cluster::OwnCluster;
use crate::own_placement::OwnPlacement;
use crate::processes::Processes;
use crate::raft_id::raft_id;
use crate::rosters::Rosters;
use crate::sessions::Sessions;
use crate::stamps::MemberClocks;
use crate::told_members::ToldMembers;
use crate::{Cluster, HardState, Membership, Recovered, ReplicaOptions};

/// One member of an ensemble, but for its groups. Each part has its own file, and does not know the others.
#[derive(Debug)]
pub struct Presence {
    pub(crate) options: ReplicaOptions,
    pub(crate) cluster: OwnCluster,
    pub(crate) processes: Processes,
    pub(crate) file_lists: FileLists,
    pub(crate) told_members: ToldMembers,
    pub(crate) rosters: Rosters,
    pub(crate) placement: OwnPlacement,
    pub(crate) levels: FeatureLevels,
    pub(crate) contact: Contact,
    pub(crate) sessions: Sessions,
    pub(crate) gates: Gates,
    pub(crate) lead_times: LeadTimes,
    pub(crate) link_times: LinkTimes,
    pub(crate) clocks: MemberClocks,
    pub(crate) is_disk_full: bool,
    /// Members whose processes were followed by others since [`Presence::take_successions`].
    pub(crate) successions: Vec<u64>,
    /// The last entry of the home group that was in this member's log when its process was started.
    pub(crate) logged_at_start: u64,
    /// The last entry of the home group that this member may have applied later than the ensemble did, since it came without data or lost it
    /// (`HardState::learned_through`); `u64::MAX` while it learns.
    pub(crate) learned_through: u64,
    /// Level of the features that the ensemble may use, as the home group's state says.
    pub(crate) ensemble_level: FeatureLevel,
    /// Groups of which the home group's state has told since [`Presence::take_new_groups`].
    pub(crate) new_groups: Vec<NewGroup>,
}

/// A group that the member does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    pub number: u32,
    /// The members that begin it.
    pub founders: Membership,
    /// The group was not there before this entry of the home group; `None` where that is not known.
    pub not_before: Option<u64>,
}

impl Presence {
    /// A member as its disk describes it; `recovered` is that of the group in which the ensemble is named, and `watches` the table of all its
    /// states.
    pub fn new(options: ReplicaOptions, recovered: &Recovered, watches: WatchTable, now: Now) -> Presence {
        let incarnation = recovered.hard_state.incarnation;
        assert!(incarnation > 0, "a member begins with the number of its start");
        Presence {
            cluster: OwnCluster::new(recovered.cluster, &recovered.entries),
            processes: Processes::default(),
            file_lists: FileLists::new(&options.founding.members, options.founding.files_change_members),
            told_members: ToldMembers::default(),
            rosters: Rosters::default(),
            placement: OwnPlacement::default(),
            levels: FeatureLevels::new(options.known_level, options.level_max),
            contact: Contact::new(now.monotonic_ms),
            sessions: Sessions::new(options.tick_ms, options.member, incarnation, watches),
            gates: Gates::default(),
            lead_times: LeadTimes::default(),
            link_times: LinkTimes::default(),
            clocks: MemberClocks::default(),
            is_disk_full: false,
            successions: Vec::new(),
            logged_at_start: recovered.last_index(),
            learned_through: match recovered.hard_state {
                HardState { silent_until: 0, learned_through, .. } => learned_through,
                _ => u64::MAX,
            },
            ensemble_level: FeatureLevel::NONE,
            new_groups: Vec::new(),
            options,
        }
    }

    /// The level of a state that this member has been sent, and whose features its program does not know: it has to stop.
    pub fn unknown_level(&self) -> Option<&UnknownLevel> {
        self.levels.unknown()
    }

    /// The watch table of the member.
    pub fn watches(&self) -> &WatchTable {
        self.sessions.watches()
    }

    /// Members that have a replica of a group and are there, those first that this one is to ask first: each guest begins with another one.
    pub fn hosts_of(&self, home: &Tree, group: u32, now: Now) -> Vec<MemberNumber> {
        let replicas = home.placed(group).unwrap_or_default();
        let own = self.options.member;
        let first = replicas.iter().filter(|member| raft_id(**member) < own).count();
        let around = replicas.iter().cycle().skip(first).take(replicas.len()).copied();
        around.filter(|member| self.processes.is_there(raft_id(*member), now.monotonic_ms)).collect()
    }

    /// Stamp of this moment by the members' clocks; 0 while they are not known.
    pub fn clock_stamp(&self, now: Now) -> Zxid {
        self.clocks.clock().floor(now)
    }

    /// The largest stamp that any group can have given by now.
    pub fn latest_stamp(&self, now: Now) -> Zxid {
        self.clocks.clock().latest(now)
    }

    /// Serves no session any more. Returns the connections that served one, which are to be closed.
    pub fn end_serving_all(&mut self) -> Vec<ConnId> {
        self.sessions.end_all()
    }

    /// True if the member serves clients of a group, and does not ask a host for it. It may have a replica that only learns.
    pub fn serves(&self, group: u32) -> bool {
        self.placement.serves(group)
    }

    /// True if the member serves other groups than when this was asked last.
    pub fn take_placement_changed(&mut self) -> bool {
        self.placement.take_changed()
    }

    /// Groups that the member has to make, of which it was not told before.
    pub fn take_new_groups(&mut self) -> Vec<NewGroup> {
        std::mem::take(&mut self.new_groups)
    }

    /// Groups that cannot be made yet: they are told again.
    pub fn put_back_new_groups(&mut self, new: Vec<NewGroup>) {
        self.new_groups.extend(new);
    }

    /// True if there are groups whose clients this member does not serve.
    pub fn has_groups_away(&self) -> bool {
        self.placement.has_away()
    }

    /// Members that were heard in another process than before, since this was asked last. The group whose message told it knows; the others
    /// are to be told by [`crate::Replica::note_restart`].
    pub fn take_successions(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.successions)
    }

    /// A sync of this member's log took so many microseconds. A leader that is much slower than others hands the lead over.
    pub fn synced(&mut self, micros: u64) {
        self.lead_times.synced(micros);
    }

    /// The ensemble that this member belongs to. It has to be on the disk before a round of work is reported as synced.
    pub fn cluster(&self) -> Cluster {
        self.cluster.cluster()
    }
}
