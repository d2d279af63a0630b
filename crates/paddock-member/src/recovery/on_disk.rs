//! A group of a member as it is on the disk, before it runs: its newest snapshot, and what the log has behind that.

use std::io;

use paddock_replica::{HardState, Membership, Recovered, Replayed, ReplayedState, Replicated, raft_id};
use paddock_storage::snapshot::{self, Newest};
use paddock_storage::{Disk, GroupNumber, Index, Log, SnapshotMeta};
use paddock_tree::Tree;

use super::{RecoveryError, Tail, membership, newest_state};
use crate::clock::Clock;
use crate::config::HOME;
use crate::{Config, incoming, let_go};

/// A group as it was found, which is ready to run.
#[derive(Debug)]
pub(crate) struct FoundGroup {
    pub(crate) number: GroupNumber,
    pub(crate) state: Replicated,
    pub(crate) recovered: Recovered,
    /// Entries that were applied while the log was read.
    pub(crate) replayed: Replayed,
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
    pub(super) meta: SnapshotMeta,
    /// Membership as of the snapshot.
    membership: Membership,
    /// State of the snapshot, or a later one.
    pub(super) state: ReplayedState,
    /// Entries that the log has behind that state.
    pub(super) tail: Tail,
    /// Index of a snapshot from the leader whose installation was begun.
    unfinished: Option<Index>,
    /// False if there has never been a snapshot.
    has_dir: bool,
    /// The group was to be let go.
    pub(super) is_let_go: bool,
}

impl GroupOnDisk {
    /// Reads the group's newest snapshot.
    pub(super) fn read(
        disk: &dyn Disk,
        config: &Config,
        group: GroupNumber,
        clock: &impl Clock,
    ) -> Result<GroupOnDisk, RecoveryError> {
        let dir = config.snapshot_dir(group);
        let has_dir = match disk.list(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(RecoveryError::ListDirectory { path: dir, source }),
            Ok(_) => true,
        };
        if group != HOME && let_go::is_marked(disk, &dir)? {
            return Ok(GroupOnDisk {
                meta: SnapshotMeta { group, ..SnapshotMeta::default() },
                membership: Membership::default(),
                state: ReplayedState::new(Tree::new(), (0, 0), Membership::default()),
                tail: Tail::default(),
                unfinished: None,
                has_dir: false,
                is_let_go: true,
            });
        }
        let newest = if has_dir { snapshot::newest_valid(disk, &dir)? } else { Newest::default() };
        let (tree, meta) = newest_state(disk, config, group, newest, clock)?;
        tree.raised_level().check(config.known_level)?;
        let unfinished = if has_dir { incoming::unfinished(disk, &dir)? } else { None };
        let membership = membership(config, &meta)?;
        let state = ReplayedState::new(tree, (meta.index.0, meta.term.0), membership.clone());
        let tail = Tail::behind(meta.index);
        Ok(GroupOnDisk { meta, membership, state, tail, unfinished, has_dir, is_let_go: false })
    }

    /// True if the log begins anew behind the snapshot, which the leader has sent: what there is of it stands before that.
    pub(super) fn begins_anew(&self) -> bool {
        self.unfinished == Some(self.meta.index)
    }

    /// True if what the log has of the group counts.
    pub(super) fn has_log(&self) -> bool {
        !self.begins_anew() && !self.is_let_go
    }

    /// True if the state has entries of the log.
    pub(super) fn has_applied(&self) -> bool {
        self.state.applied().0 > self.meta.index.0
    }

    /// Ends what a crash has left half done.
    pub(super) fn settle_files(
        &self,
        disk: &dyn Disk,
        config: &Config,
        log: &mut Log,
    ) -> Result<(), RecoveryError> {
        let dir = config.snapshot_dir(self.meta.group);
        if self.begins_anew() {
            incoming::begin_log_behind(log, self.meta.group, self.meta.index, self.meta.term)?;
        }
        if let Some(index) = self.unfinished {
            incoming::remove_mark(disk, &dir, index)?;
        }
        if self.has_dir {
            snapshot::remove_unfinished(disk, &dir)?;
        }
        Ok(())
    }

    /// The group as its replica begins with it.
    pub(super) fn found(self) -> FoundGroup {
        let GroupOnDisk { meta, membership, state, tail, .. } = self;
        let (state, replayed) = state.into_parts();
        let snapshot = (meta.index.0, meta.term.0);
        let recovered = Recovered::new(snapshot, membership, tail.hard_state, tail.entries.into());
        let recovered = recovered.applied_up_to(state.applied(), state.membership().clone());
        FoundGroup { number: meta.group, state, recovered, replayed }
    }

    /// Ends what a crash has left half done, and numbers this start of the member in the group, which is not the home group.
    pub(super) fn settle(
        mut self,
        disk: &dyn Disk,
        config: &Config,
        log: &mut Log,
        clock: &impl Clock,
    ) -> Result<FoundGroup, RecoveryError> {
        let number = self.meta.group;
        if self.is_let_go {
            // Nothing counts but the number of an earlier start.
            let incarnation = self.tail.hard_state.incarnation;
            self.tail.hard_state = HardState { incarnation, ..HardState::default() };
            let_go::let_go(disk, &config.snapshot_dir(number), log, number, incarnation)?;
        }
        self.settle_files(disk, config, log)?;
        // What is in the snapshot is not needed in the log: a group that is idle must not hold old files of it.
        log.release(number, self.meta.index);
        let mut found = self.found();
        let FoundGroup { state, recovered, .. } = &mut found;
        recovered.begin(raft_id(config.member), config.process(), state.tree(), clock.now());
        Ok(found)
    }
}
