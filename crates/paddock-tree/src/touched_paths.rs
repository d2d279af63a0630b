//! Paths that a write touches, so that what was tried stays true: a part of a multi is held until home has decided.

use std::collections::BTreeSet;

use paddock_proto::{Write, is_at_or_below, parent_and_name};

/// Calls `look` with the paths that a write depends on, or that depend on it: a znode, and its parent if it comes or goes.
pub(crate) fn for_each_touched(write: &Write<'_>, look: &mut impl FnMut(&str)) {
    if let Write::Multi(writes) = write {
        return writes.iter().for_each(|write| for_each_touched(write, look));
    }
    let has_parent = matches!(
        write,
        Write::Create(_) | Write::Delete { .. } | Write::TryRemove { .. } | Write::RemoveRecursive { .. }
    );
    crate::write_paths::for_each_path(write, &mut |path| {
        look(path);
        let parent = parent_and_name(path).filter(|_| has_parent);
        parent.into_iter().for_each(|(parent, _)| look(parent));
    });
}

/// Paths that writes touch which were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TouchedPaths {
    paths: BTreeSet<String>,
    /// Znodes that are to go with all that is below them.
    subtrees: BTreeSet<String>,
}

impl TouchedPaths {
    /// The paths among those that these writes touch that `is_held` says.
    pub(crate) fn of<'w>(
        writes: impl IntoIterator<Item = &'w Write<'w>>,
        is_held: impl Fn(&str) -> bool,
    ) -> TouchedPaths {
        let mut touched = TouchedPaths::default();
        for write in writes {
            for_each_touched(write, &mut |path| {
                if is_held(path) {
                    touched.paths.insert(path.to_owned());
                }
            });
            touched.note_subtrees(write);
        }
        touched
    }

    /// These paths, with the subtrees that the writes behind them remove.
    pub(crate) fn restore(paths: BTreeSet<String>, writes: &[Write<'_>]) -> TouchedPaths {
        let mut touched = TouchedPaths { paths, subtrees: BTreeSet::new() };
        // A part that touches nothing was not tried.
        if !touched.paths.is_empty() {
            writes.iter().for_each(|write| touched.note_subtrees(write));
        }
        touched
    }

    fn note_subtrees(&mut self, write: &Write<'_>) {
        if let Write::RemoveRecursive { path, .. } = write
            && self.paths.contains(*path)
        {
            self.subtrees.insert((*path).to_owned());
        }
    }

    pub(crate) fn paths(&self) -> &BTreeSet<String> {
        &self.paths
    }

    /// True if a path is one of these, or below a znode that goes with all that is below it.
    pub(crate) fn have(&self, path: &str) -> bool {
        self.paths.contains(path) || self.subtrees.iter().any(|top| is_at_or_below(path, top))
    }

    /// True if any of these is a path or below it.
    pub(crate) fn are_below(&self, path: &str) -> bool {
        self.paths.iter().any(|touched| is_at_or_below(touched, path))
    }

    /// True if a write touches any of these. A split point, or its stub, does not count as `is_point` says: it changes by what home decides only.
    pub(crate) fn are_met_by(&self, write: &Write<'_>, is_point: impl Fn(&str) -> bool) -> bool {
        let mut are_met = false;
        for_each_touched(write, &mut |path| are_met |= !is_point(path) && self.have(path));
        are_met || self.are_removed_by(write)
    }

    fn are_removed_by(&self, write: &Write<'_>) -> bool {
        match write {
            Write::RemoveRecursive { path, .. } => self.are_below(path),
            Write::Multi(writes) => writes.iter().any(|write| self.are_removed_by(write)),
            _ => false,
        }
    }
}
