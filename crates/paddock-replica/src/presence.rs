//! Parts that a member has once, however many groups it holds: its disk and its process, the ensemble, its clients.

use paddock_state::{Now, WatchTable};
use paddock_tree::UnknownLevel;

use crate::contact::Contact;
use crate::disk_age::DiskAge;
use crate::feature_levels::FeatureLevels;
use crate::file_lists::FileLists;
use crate::gates::Gates;
use crate::joining::Joining;
use crate::own_cluster::OwnCluster;
use crate::processes::Processes;
use crate::sessions::Sessions;
use crate::{Cluster, Recovered, ReplicaOptions};

/// One member of an ensemble, but for its groups. Each part has its own file, and does not know the others.
#[derive(Debug)]
pub struct Presence {
    pub(crate) options: ReplicaOptions,
    pub(crate) cluster: OwnCluster,
    pub(crate) processes: Processes,
    pub(crate) file_lists: FileLists,
    pub(crate) levels: FeatureLevels,
    pub(crate) disk_age: DiskAge,
    /// Admission by the others, of a member that has just come.
    pub(crate) joining: Joining,
    pub(crate) contact: Contact,
    pub(crate) sessions: Sessions,
    pub(crate) gates: Gates,
    pub(crate) is_disk_full: bool,
}

impl Presence {
    /// A member as its disk describes it; `recovered` is that of the group in which the ensemble is named, and `watches` the table of all its
    /// states.
    pub fn new(options: ReplicaOptions, recovered: &Recovered, watches: WatchTable, now: Now) -> Presence {
        let (silent_until, incarnation) =
            (recovered.hard_state.silent_until, recovered.hard_state.incarnation);
        assert!(incarnation > 0, "a member begins with the number of its start");
        Presence {
            cluster: OwnCluster::new(recovered.cluster, &recovered.entries),
            processes: Processes::default(),
            file_lists: FileLists::new(&options.founding.members, options.founding.files_change_members),
            levels: FeatureLevels::new(options.known_level, options.level_max),
            disk_age: DiskAge::new(options.member, recovered),
            joining: Joining::new(options.member, silent_until),
            contact: Contact::new(now.monotonic_ms),
            sessions: Sessions::new(options.tick_ms, options.member, incarnation, watches),
            gates: Gates::default(),
            is_disk_full: false,
            options,
        }
    }

    /// The level of a state that this member has been sent, and whose features its program does not know: it has to stop.
    pub fn unknown_level(&self) -> Option<&UnknownLevel> {
        self.levels.unknown()
    }

    /// The ensemble that this member belongs to. It has to be on the disk before a round of work is reported as synced.
    pub fn cluster(&self) -> Cluster {
        self.cluster.cluster()
    }
}
