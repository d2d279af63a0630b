//! Groups beside the home group, as the member's disk has them. What they have in the log is read with the home group's; their snapshots lie in
//! directories of their own.

use std::io;

use paddock_replica::{HardState, Membership, Recovered, Replicated, raft_id};
use paddock_storage::snapshot::{self, Newest};
use paddock_storage::{Disk, GroupNumber, Index, Log, SnapshotMeta};
use paddock_tree::Tree;

use super::{RecoveryError, Tail, check_log, membership, newest_state};
use crate::clock::Clock;
use crate::{Config, incoming, let_go};

/// A group as it was found, which is ready to run.
#[derive(Debug)]
pub(crate) struct FoundGroup {
    pub(crate) number: GroupNumber,
    pub(crate) state: Replicated,
    pub(crate) recovered: Recovered,
}

impl FoundGroup {
    /// True if the disk has nothing of the group but the number of an earlier start.
    pub(crate) fn is_let_go(&self) -> bool {
        let HardState { term, vote, commit, silent_until, .. } = self.recovered.hard_state;
        self.state.applied() == (0, 0)
            && self.recovered.entries.is_empty()
            && [term, vote, commit, silent_until] == [0; 4]
    }
}

/// A group as it is on the disk, where nothing has been changed.
#[derive(Debug)]
pub(super) struct GroupOnDisk {
    meta: SnapshotMeta,
    tree: Tree,
    membership: Membership,
    tail: Tail,
    /// Index of a snapshot from the leader whose installation was begun.
    unfinished: Option<Index>,
    /// False if there has never been a snapshot.
    has_dir: bool,
    /// The group was to be let go.
    is_let_go: bool,
}

impl GroupOnDisk {
    /// Reads the group's newest snapshot. `tail` is what the log has of the group.
    pub(super) fn read(
        disk: &dyn Disk,
        config: &Config,
        log: &Log,
        (group, mut tail): (GroupNumber, Tail),
        clock: &impl Clock,
    ) -> Result<GroupOnDisk, RecoveryError> {
        let dir = config.snapshot_dir(group);
        let has_dir = match disk.list(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(RecoveryError::ListDirectory { path: dir, source }),
            Ok(_) => true,
        };
        if let_go::is_marked(disk, &dir)? {
            let hard_state = HardState { incarnation: tail.hard_state.incarnation, ..HardState::default() };
            return Ok(GroupOnDisk {
                meta: SnapshotMeta { group, ..SnapshotMeta::default() },
                tree: Tree::new(),
                membership: Membership::default(),
                tail: Tail { hard_state, ..Tail::default() },
                unfinished: None,
                has_dir: false,
                is_let_go: true,
            });
        }
        let newest = if has_dir { snapshot::newest_valid(disk, &dir)? } else { Newest::default() };
        let (tree, meta) = newest_state(disk, config, group, newest, clock)?;
        tree.raised_level().check(config.known_level)?;
        let unfinished = if has_dir { incoming::unfinished(disk, &dir)? } else { None };
        if unfinished == Some(meta.index) {
            tail.entries.clear();
        } else {
            check_log(log, config, &meta)?;
            tail.entries.retain(|entry| entry.index > meta.index.0);
        }
        let membership = membership(config, &meta)?;
        Ok(GroupOnDisk { meta, tree, membership, tail, unfinished, has_dir, is_let_go: false })
    }

    /// Ends what a crash has left half done, and numbers this start of the member in the group.
    pub(super) fn settle(
        self,
        disk: &dyn Disk,
        config: &Config,
        log: &mut Log,
        clock: &impl Clock,
    ) -> Result<FoundGroup, RecoveryError> {
        let GroupOnDisk { meta, tree, membership, tail, unfinished, has_dir, is_let_go } = self;
        let (number, dir) = (meta.group, config.snapshot_dir(meta.group));
        if is_let_go {
            let_go::let_go(disk, &dir, log, number, tail.hard_state.incarnation)?;
        }
        if let Some(index) = unfinished {
            if index == meta.index {
                incoming::begin_log_behind(log, number, meta.index, meta.term)?;
            }
            incoming::remove_mark(disk, &dir, index)?;
        }
        if has_dir {
            snapshot::remove_unfinished(disk, &dir)?;
        }
        // What is in the snapshot is not needed in the log: a group that is idle must not hold old files of it.
        log.release(number, meta.index);
        let snapshot = (meta.index.0, meta.term.0);
        let state = Replicated::new(tree, snapshot, membership.clone());
        let mut recovered = Recovered::new(snapshot, membership, tail.hard_state, tail.entries);
        recovered.begin(raft_id(config.member), config.process(), state.tree(), clock.now());
        Ok(FoundGroup { number, state, recovered })
    }
}
