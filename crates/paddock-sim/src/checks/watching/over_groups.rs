//! Watches that are set again where znodes are spread over groups: each in some state between that of the answer's zxid and the last that any member had.

use paddock_proto::{AddWatchMode, EventKind, Id, Zxid};
use paddock_tree::Change;

use super::{CHECKER, FoundAgain, SetAgain, Table, ToldEvent, WatchedHistory, Watching, may_read};
use crate::checks::{Checked, ensure};

/// The states in which a watch may have been set.
struct Window<'h, H> {
    history: &'h H,
    first: Zxid,
    /// States behind the first one.
    later: Vec<Zxid>,
    ids: &'h [Id],
}

impl<H: WatchedHistory> Window<'_, H> {
    fn changes(&self, path: &str) -> impl Iterator<Item = &Change<'_>> {
        let all = self.later.iter().filter_map(|at| self.history.changes_at(*at)).flatten();
        all.filter(move |change| *change.path == *path)
    }

    fn has_changed(&self, path: &str) -> bool {
        self.changes(path).next().is_some()
    }

    /// True if a znode that was not there in the first state may have come and gone, or come unseen, before its watch was set.
    fn may_be_missed(&self, path: &str) -> bool {
        let created = self.changes(path).filter(|change| change.kind == EventKind::NodeCreated).count();
        let last = self.later.last().unwrap_or(&self.first);
        let is_there = self.history.stamps_at(*last, path).is_some();
        created > 1 || created == 1 && !(is_there && self.is_always(path, true))
    }

    /// True if the client could read the znode in each of the states, or in none: `is_readable` says which.
    fn is_always(&self, path: &str, is_readable: bool) -> bool {
        let states = std::iter::once(&self.first).chain(&self.later);
        let mut there = states.filter(|at| self.history.stamps_at(**at, path).is_some());
        there.all(|at| self.history.may_read_at(*at, path, self.ids) == is_readable)
            && self.changes(path).all(|change| may_read(change, self.ids) == is_readable)
    }
}

impl Watching {
    /// They were set again: what had changed was told at once, and other changes since the first of the states as they came.
    pub(super) fn set_over_groups<H: WatchedHistory>(
        &mut self,
        again: &SetAgain,
        history: &H,
        ids: &[Id],
        found: FoundAgain,
    ) -> Checked {
        let SetAgain { relative_zxid, now, latest, .. } = *again;
        let FoundAgain { expected, mut left, mut hidden } = found;
        let behind = |at: &Zxid| history.changes_behind(*at).map(|(next, _)| next);
        let later = std::iter::successors(behind(&now), behind).take_while(|at| *at <= latest).collect();
        let window = Window { history, first: now, later, ids };
        let (told, between) = (std::mem::take(&mut self.caught_up), std::mem::take(&mut self.between));
        self.is_setting = false;
        let mut uncertain = Table::default();
        for event @ (kind, path) in &expected {
            let is_about = |(_, about): &ToldEvent| about == path;
            let is_told = match window.has_changed(path) {
                true => told.iter().chain(&between).any(is_about),
                // An event that came while the watches were being set again may be that of the last change before they were.
                false => told.contains(event) || between.contains(event),
            };
            // A znode that goes before its watch is set is not told of.
            let may_be_gone = *kind == EventKind::NodeCreated && window.has_changed(path);
            ensure!(
                is_told || may_be_gone || !window.is_always(path, true),
                CHECKER,
                "watches are set again, and {told:?} is told, then {between:?}, but not {kind:?} of {path}"
            );
            if !is_told {
                uncertain.extend_at(&self.known, path);
            }
        }
        for event @ (kind, path) in &told {
            let was_hidden = hidden.data.contains(path) || hidden.children.contains(path);
            ensure!(
                expected.contains(event)
                    || window.has_changed(path)
                    || *kind == EventKind::NodeChildrenChanged
                        && history.tells_list_again(path, relative_zxid, latest)
                    || was_hidden && !window.is_always(path, false),
                CHECKER,
                "watches are set again, and {event:?} is told, which has not come about since {relative_zxid}"
            );
        }
        for table in [&mut left, &mut hidden, &mut uncertain] {
            told.iter().for_each(|(kind, path)| table.forget_caught_up(*kind, path));
            between.iter().for_each(|(kind, path)| table.forget_woken(*kind, path));
        }
        // Set behind a change of which the client is not told, a watch outlives it; set before, it is used up.
        uncertain.exist.extend(left.exist.extract_if(.., |path| window.may_be_missed(path)));
        let is_unclear = |path: &String| window.has_changed(path) && !window.is_always(path, true);
        uncertain.data.extend(left.data.extract_if(.., |path| is_unclear(path)));
        uncertain.children.extend(left.children.extract_if(.., |path| is_unclear(path)));
        let is_hidden_unclear = |path: &String| window.has_changed(path) || !window.is_always(path, false);
        uncertain.data.extend(hidden.data.extract_if(.., |path| is_hidden_unclear(path)));
        uncertain.children.extend(hidden.children.extract_if(.., |path| is_hidden_unclear(path)));
        left.data.append(&mut hidden.data);
        left.children.append(&mut hidden.children);
        let persistent = std::mem::take(&mut self.known.persistent);
        let recursive = std::mem::take(&mut self.known.recursive);
        (self.known, self.held, self.through) = (left.clone(), left, now);
        persistent.iter().for_each(|path| self.watch_mode_by(path, AddWatchMode::Persistent, latest));
        recursive.iter().for_each(|path| self.watch_mode_by(path, AddWatchMode::PersistentRecursive, latest));
        self.known.data.extend(uncertain.data.iter().cloned());
        self.known.exist.extend(uncertain.exist.iter().cloned());
        self.known.children.extend(uncertain.children.iter().cloned());
        self.uncertain = uncertain;
        Ok(())
    }
}

impl Table {
    /// Adds the other table's watches that tell once of this znode.
    fn extend_at(&mut self, other: &Table, path: &str) {
        for (own, others) in [
            (&mut self.data, &other.data),
            (&mut self.exist, &other.exist),
            (&mut self.children, &other.children),
        ] {
            own.extend(others.get(path).cloned());
        }
    }

    /// Removes watches that were not set, since this was told instead: each watch of a znode is told of by itself.
    fn forget_caught_up(&mut self, kind: EventKind, path: &str) {
        if matches!(kind, EventKind::NodeDataChanged | EventKind::NodeDeleted) {
            self.data.remove(path);
        }
        if matches!(kind, EventKind::NodeChildrenChanged | EventKind::NodeDeleted) {
            self.children.remove(path);
        }
        if kind == EventKind::NodeCreated {
            self.exist.remove(path);
        }
    }
}
