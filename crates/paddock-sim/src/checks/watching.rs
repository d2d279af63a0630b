//! Watches, as a client must be told of them: no event is lost, none comes twice, and each stands in front of the first
//! answer that shows what it tells.
//!
//! Whenever a client is shown a zxid, the changes up to that zxid are played to the table of its watches: what they wake must
//! have been told by then, in that order.

mod over_groups;

use std::collections::{BTreeSet, VecDeque};

use paddock_proto::{AddWatchMode, EventKind, Id, Perms, SetWatches, WatcherKind, Zxid};
use paddock_tree::Change;

use super::{Checked, ensure};

const CHECKER: &str = "watches";

/// Changes and znodes as they really were, by which watches are judged.
pub(crate) trait WatchedHistory {
    /// True if the changes of one zxid are told in their order.
    const IS_ORDERED: bool;

    /// True if an answer is about the state of its zxid, and not about a later one.
    const HAS_MOMENTS: bool = true;

    /// Changes of a zxid, or `None` if nothing has it yet.
    fn changes_at(&self, zxid: Zxid) -> Option<&[Change<'_>]>;

    /// The next zxid behind this one that something has, with its changes.
    fn changes_behind(&self, zxid: Zxid) -> Option<(Zxid, &[Change<'_>])>;

    /// Zxids of a znode as they were at this zxid, or `None` if it was not there.
    fn stamps_at(&self, zxid: Zxid, path: &str) -> Option<Stamps>;

    /// True if a client that comes back and knows everything up to the zxid `since` may be told of the children of a znode, though nothing has changed that it does not know; `up_to` is the
    /// last state in which that may be.
    fn tells_list_again(&self, _path: &str, _since: Zxid, _up_to: Zxid) -> bool {
        false
    }

    /// True if a client with these identities may read a znode as it was at this zxid. Without ACLs everybody may.
    fn may_read_at(&self, _zxid: Zxid, _path: &str, _ids: &[Id]) -> bool {
        true
    }
}

/// Zxids of a znode, by which watches are set again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    pub(crate) mzxid: Zxid,
    pub(crate) pzxid: Zxid,
}

/// A member holds the watches of its clients and no others. Of connections that it does not know to be over it cannot be told.
pub(crate) fn check_held(member: u8, found: usize, expected: usize, knows_all: bool) -> Checked {
    ensure!(
        found == expected || (found > expected && !knows_all),
        CHECKER,
        "member {member} holds {found} watches; its clients have {expected}"
    );
    Ok(())
}

/// A client's watches, by their kinds.
#[derive(Clone, Debug, Default)]
struct Table {
    data: BTreeSet<String>,
    /// On znodes that were not there.
    exist: BTreeSet<String>,
    children: BTreeSet<String>,
    persistent: BTreeSet<String>,
    recursive: BTreeSet<String>,
}

/// Event as the server tells it: of nothing but the znode, or its data.
type ToldEvent = (EventKind, String);

#[derive(Clone, Debug, Default)]
pub(crate) struct Watching {
    /// Watches that the client has asked for and was not told of yet.
    known: Table,
    /// Watches that the member should hold for its connection, after the changes up to `through`.
    held: Table,
    through: Zxid,
    /// Events that must be told before anything newer is shown.
    due: VecDeque<(Zxid, ToldEvent)>,
    /// Events of the time before the watches were set again.
    caught_up: Vec<ToldEvent>,
    /// The watches were asked for again, and not all of them need be set.
    is_setting: bool,
    /// Events of watches that were set again when others were not.
    between: Vec<ToldEvent>,
    /// Watches that were set again in portions, on znodes that the client may not have been allowed to read then. The member holds them,
    /// or has used them up for changes that the client was not to be told of.
    uncertain: Table,
    /// Events of which the client was not to be told by the identities that it had, and is told if they come behind those that it has shown since.
    late: Vec<(Zxid, ToldEvent)>,
    /// Watches that stay and were set in some state up to one that is known.
    begun: Vec<BegunWatch>,
}

/// A watch that stays. What has changed before it was set is not told, and no answer says in which state that was.
#[derive(Clone, Debug)]
struct BegunWatch {
    /// A table with this watch alone.
    table: Table,
    /// Changes up to here may be told; later ones have to be.
    by: Zxid,
    /// The member should hold it: what has changed by now is behind its setting.
    is_held: bool,
}

/// A setWatches that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetAgain {
    /// The zxid up to which the client knew all.
    pub(crate) relative_zxid: Zxid,
    /// Place of that zxid in the history.
    pub(crate) since: Zxid,
    /// Zxid of the state in which it was answered.
    pub(crate) now: Zxid,
    /// Watches that are set at once, at most. Those of a longer request are set in states between these two.
    pub(crate) watches_per_turn: usize,
    /// Over several groups, where the state may be later than the answer's zxid: the last that any member had when the answer came.
    pub(crate) latest: Zxid,
}

/// Watches that a setWatches has to do with, as the state of its zxid has them.
#[derive(Debug)]
struct FoundAgain {
    /// Events that tell at once what has changed.
    expected: Vec<ToldEvent>,
    /// Watches on znodes that have not changed.
    left: Table,
    /// Watches on znodes that have changed, and that the client may not read.
    hidden: Table,
}

impl Watching {
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// An answer at this zxid has come.
    pub(crate) fn show(&mut self, history: &impl WatchedHistory, zxid: Zxid, ids: &[Id]) -> Checked {
        self.play(history, zxid, ids);
        // Over several groups, events may be told ahead of an answer that shows less.
        let missing = self.due.front().filter(|(due, _)| *due <= zxid);
        ensure!(missing.is_none(), CHECKER, "the client is shown zxid {zxid} and was not told {missing:?}");
        Ok(())
    }

    /// An event has come.
    pub(crate) fn tell<H: WatchedHistory>(
        &mut self,
        history: &H,
        zxid: Zxid,
        kind: EventKind,
        path: &str,
        ids: &[Id],
    ) -> Checked {
        let told = (kind, path.to_owned());
        if zxid == Zxid::NONE {
            self.caught_up.push(told);
            return Ok(());
        }
        if self.is_setting {
            return self.tell_between(history, zxid, told, ids);
        }
        self.play(history, zxid, ids);
        let found = (zxid, told);
        if let Some(place) = self.late.iter().position(|late| *late == found) {
            self.late.remove(place);
            return Ok(());
        }
        let first = self.due.front().map(|(first, _)| *first);
        let next = self.due.iter().take_while(|(due, _)| Some(*due) == first);
        let place = next.take(if H::IS_ORDERED { 1 } else { usize::MAX }).position(|due| *due == found);
        let is_possible = self.uncertain.wakes(kind, path) || self.may_be_of_begun(zxid, kind, path);
        self.uncertain.forget_woken(kind, path);
        if place.is_none() && is_possible {
            self.known.forget_woken(kind, path);
            return Ok(());
        }
        ensure!(place.is_some(), CHECKER, "the client is told {found:?} where {:?} is due", self.due.front());
        self.due.remove(place.expect("that was just looked at"));
        self.known.forget_woken(kind, path);
        Ok(())
    }

    /// The moment of the next event of this kind that the client is to be told, in a history that orders all changes; `None` if none comes.
    pub(crate) fn next_due(
        &self,
        history: &impl WatchedHistory,
        kind: EventKind,
        path: &str,
        ids: &[Id],
    ) -> Option<Zxid> {
        let is_it =
            |change: &Change<'_>| change.kind == kind && *change.path == *path && may_read(change, ids);
        let due = self.due.iter().find(|(_, told)| (told.0, &*told.1) == (kind, path));
        let is_here = |at: Zxid| history.changes_at(at).is_some_and(|changes| changes.iter().any(is_it));
        let may_be_here = self.uncertain.wakes(kind, path) || self.may_be_of_begun(self.through, kind, path);
        let here = Some(self.through).filter(|at| may_be_here && is_here(*at));
        let mut next = due.map(|(zxid, _)| *zxid).or(here);
        let mut at = self.through;
        while next.is_none() {
            let (behind, changes) = history.changes_behind(at)?;
            next = changes.iter().any(is_it).then_some(behind);
            at = behind;
        }
        next
    }

    /// True while watches are being set again.
    pub(crate) fn is_setting(&self) -> bool {
        self.is_setting
    }

    /// True if it is not known whether the member holds a watch that this event would be of, and none is due.
    pub(crate) fn is_uncertain(&self, kind: EventKind, path: &str) -> bool {
        let is_due = self.due.iter().any(|(_, told)| (told.0, &*told.1) == (kind, path));
        !is_due && self.uncertain.wakes(kind, path)
    }

    /// True for an event that may be told, and need not be, because the client has shown an identity since its change.
    pub(crate) fn may_be_late(&self, zxid: Zxid, kind: EventKind, path: &str) -> bool {
        self.late.iter().any(|(at, told)| (*at, told.0, &*told.1) == (zxid, kind, path))
    }

    /// True for an event that a watch tells of which stays, and was set where znodes are spread.
    pub(crate) fn has_begun(&self, kind: EventKind, path: &str) -> bool {
        self.begun.iter().any(|one| one.table.wakes(kind, path))
    }

    /// True for an event that may be told, and need not be: it is of a watch that stays, and may have been set behind this change.
    fn may_be_of_begun(&self, zxid: Zxid, kind: EventKind, path: &str) -> bool {
        self.begun.iter().any(|one| zxid <= one.by && one.table.wakes(kind, path))
    }

    /// Moment of the first event that is due and was not told.
    pub(crate) fn first_due(&self) -> Option<Zxid> {
        self.due.front().map(|(due, _)| *due)
    }

    /// Watches from now on may be set at an earlier moment than any that was shown.
    pub(crate) fn rewind(&mut self) {
        self.through = Zxid(0);
    }

    /// The client has asked for these watches again.
    pub(crate) fn know_as(&mut self, other: &Watching) {
        self.known = other.known.clone();
    }

    /// An event has come, and is judged later.
    pub(crate) fn note_told(&mut self, kind: EventKind, path: &str) {
        self.known.forget_woken(kind, path);
    }

    /// An event has come while the watches are being set again. None may be left out or invented, but the client cannot know which
    /// of its watches are set.
    fn tell_between(
        &mut self,
        history: &impl WatchedHistory,
        zxid: Zxid,
        told: ToldEvent,
        ids: &[Id],
    ) -> Checked {
        let is_what_happened =
            |change: &Change<'_>| (change.kind, &*change.path) == (told.0, &*told.1) && may_read(change, ids);
        let is_true = history.changes_at(zxid).is_some_and(|changes| changes.iter().any(is_what_happened));
        ensure!(
            is_true && self.known.wakes(told.0, &told.1),
            CHECKER,
            "the client is told {told:?} at {zxid}"
        );
        self.between.push(told);
        Ok(())
    }

    /// The client is to be told of the changes up to this zxid as one with these identities, before it is shown any of them.
    pub(crate) fn play(&mut self, history: &impl WatchedHistory, zxid: Zxid, ids: &[Id]) {
        self.play_until_shown(history, zxid, (ids, &[]));
    }

    /// As [`Watching::play`], up to the moment at which the client has shown the `later` identities. What is told behind that may be told by those.
    pub(crate) fn play_until_shown(
        &mut self,
        history: &impl WatchedHistory,
        zxid: Zxid,
        (ids, later): (&[Id], &[Id]),
    ) {
        while self.through < zxid && !(self.held.is_empty() && self.begun.is_empty()) {
            let Some((next, changes)) = history.changes_behind(self.through) else { return };
            if next > zxid {
                break;
            }
            self.through = next;
            for one in self.begun.iter_mut().filter(|one| !one.is_held && one.by < next) {
                one.is_held = true;
                self.held.persistent.extend(one.table.persistent.iter().cloned());
                self.held.recursive.extend(one.table.recursive.iter().cloned());
            }
            for change in changes {
                let (kind, path) = (change.kind, &*change.path);
                if self.held.wakes(kind, path) && may_read(change, ids) {
                    self.due.push_back((self.through, (kind, path.to_owned())));
                } else if self.held.wakes(kind, path) {
                    // Used up in silence: a client without the right to know is not told of it.
                    self.known.forget_woken(kind, path);
                    if may_read(change, later) {
                        self.late.push((self.through, (kind, path.to_owned())));
                    }
                }
                self.held.forget_woken(kind, path);
            }
        }
        self.through = self.through.max(zxid);
    }

    /// Number of watches after the changes up to `zxid`, as a server counts them: by znode, those on it and those on
    /// its children.
    ///
    /// A member may hold those that are uncertain as well.
    pub(crate) fn held_at(&self, history: &impl WatchedHistory, zxid: Zxid, ids: &[Id]) -> usize {
        let mut later = self.clone();
        later.play(history, zxid, ids);
        later.held.len()
    }

    /// True if it is known of all watches that the client has asked for whether the member holds them.
    pub(crate) fn is_certain(&self) -> bool {
        self.uncertain.is_empty()
    }

    fn watch(&mut self, which: impl Fn(&mut Table) -> &mut BTreeSet<String>, path: &str) {
        for table in [&mut self.known, &mut self.held] {
            which(table).insert(path.to_owned());
        }
    }

    /// Sets a watch as of a moment behind which others may have been played already: what it tells of since then is due.
    pub(crate) fn watch_since(
        &mut self,
        history: &impl WatchedHistory,
        since: Zxid,
        ids: &[Id],
        set: impl Fn(&mut Watching),
    ) {
        set(self);
        let mut one = Watching { through: since, ..Watching::default() };
        set(&mut one);
        one.play(history, self.through, ids);
        for due @ (zxid, (kind, path)) in &one.due {
            self.held.forget_woken(*kind, path);
            if self.held.wakes(*kind, path) || self.due.contains(due) {
                // One event is of all watches, of those that stay, too.
                continue;
            }
            let place = self.due.partition_point(|(known, _)| known <= zxid);
            self.due.insert(place, due.clone());
        }
    }

    pub(crate) fn watch_data(&mut self, path: &str) {
        self.watch(|table| &mut table.data, path);
    }

    pub(crate) fn watch_exist(&mut self, path: &str) {
        self.watch(|table| &mut table.exist, path);
    }

    pub(crate) fn watch_children(&mut self, path: &str) {
        self.watch(|table| &mut table.children, path);
    }

    pub(crate) fn watch_mode(&mut self, path: &str, mode: AddWatchMode) {
        self.known.insert_mode(path, mode);
        self.held.insert_mode(path, mode);
    }

    /// Sets a watch that stays, in a state that may be any up to this one.
    pub(crate) fn watch_mode_by(&mut self, path: &str, mode: AddWatchMode, by: Zxid) {
        self.known.insert_mode(path, mode);
        let mut table = Table::default();
        table.insert_mode(path, mode);
        self.begun.push(BegunWatch { table, by, is_held: false });
    }

    /// The server says whether there is such a watch.
    pub(crate) fn check(&self, path: &str, kind: WatcherKind, is_there: bool) -> Checked {
        if self.uncertain.clone().remove(path, kind) {
            return Ok(());
        }
        let expected = self.held.clone().remove(path, kind);
        ensure!(
            expected == is_there,
            CHECKER,
            "{kind:?} at {path}: the server says {is_there}, it is {expected}"
        );
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &str, kind: WatcherKind) {
        self.known.remove(path, kind);
        self.held.remove(path, kind);
        self.uncertain.remove(path, kind);
    }

    /// The connection is another one: what was on its way is lost, and nothing is watched until it is asked for again.
    pub(crate) fn lose_connection(&mut self) {
        self.held = Table::default();
        self.uncertain = Table::default();
        self.due.clear();
        self.caught_up.clear();
        self.between.clear();
        self.late.clear();
        self.begun.clear();
        self.is_setting = !self.known.is_empty();
    }

    /// Request with which a client sets its watches again.
    pub(crate) fn to_set_again(&self, relative_zxid: Zxid) -> SetWatches<'_> {
        let Table { data, exist, children, persistent, recursive } = &self.known;
        SetWatches {
            relative_zxid,
            data: data.iter().map(String::as_str).collect(),
            exist: exist.iter().map(String::as_str).collect(),
            child: children.iter().map(String::as_str).collect(),
            persistent: persistent.iter().map(String::as_str).collect(),
            persistent_recursive: recursive.iter().map(String::as_str).collect(),
        }
    }

    /// They were set again: what had changed was told at once.
    pub(crate) fn set_again<H: WatchedHistory>(
        &mut self,
        again: &SetAgain,
        history: &H,
        ids: &[Id],
    ) -> Checked {
        let SetAgain { relative_zxid, since, now, watches_per_turn, .. } = *again;
        let is_at_once = self.known.count() <= watches_per_turn;
        let mut left = Table::default();
        // Watches of znodes that have changed and that the client may not read now. It may have been told of them when it could.
        let mut hidden = Table::default();
        let mut expected = Vec::new();
        let mut tell = |kind, path: &String| expected.push((kind, path.clone()));
        // Nothing is told of a znode that the client may not read, and its watch is set.
        let may_read = |path: &String| history.may_read_at(now, path, ids);
        for path in &self.known.data {
            match history.stamps_at(now, path) {
                None => tell(EventKind::NodeDeleted, path),
                Some(stamps) if stamps.mzxid > relative_zxid && may_read(path) => {
                    tell(EventKind::NodeDataChanged, path);
                }
                Some(stamps) if stamps.mzxid > relative_zxid => drop(hidden.data.insert(path.clone())),
                Some(_) => drop(left.data.insert(path.clone())),
            }
        }
        for path in &self.known.exist {
            match history.stamps_at(now, path) {
                Some(_) if may_read(path) => tell(EventKind::NodeCreated, path),
                // The client watches the data of a znode that is there.
                Some(_) => drop(hidden.data.insert(path.clone())),
                None => drop(left.exist.insert(path.clone())),
            }
        }
        for path in &self.known.children {
            match history.stamps_at(now, path) {
                None => tell(EventKind::NodeDeleted, path),
                Some(stamps) if stamps.pzxid > relative_zxid && may_read(path) => {
                    tell(EventKind::NodeChildrenChanged, path);
                }
                Some(stamps) if stamps.pzxid > relative_zxid => drop(hidden.children.insert(path.clone())),
                Some(_) => drop(left.children.insert(path.clone())),
            }
        }
        if !H::HAS_MOMENTS {
            return self.set_over_groups(again, history, ids, FoundAgain { expected, left, hidden });
        }
        let mut told = std::mem::take(&mut self.caught_up);
        let between = std::mem::take(&mut self.between);
        self.is_setting = false;
        if is_at_once {
            ensure!(
                told == expected && between.is_empty(),
                CHECKER,
                "watches are set again, and {told:?} is told, then {between:?}; it should be {expected:?}"
            );
            left.data.append(&mut hidden.data);
            left.children.append(&mut hidden.children);
        } else {
            told.extend(between);
            left.be_told_meanwhile(&told)?;
            told.iter().for_each(|(kind, path)| hidden.forget_woken(*kind, path));
            let behind = |zxid: &Zxid| history.changes_behind(*zxid).map(|(next, _)| next);
            let since: Vec<Zxid> =
                std::iter::successors(behind(&since), behind).take_while(|zxid| *zxid <= now).collect();
            for (kind, path) in expected {
                let is_told = told.iter().any(|(_, about)| *about == path);
                // The client may read it now. A portion may have come to it when it could not.
                let was_hidden = |zxid: &Zxid| {
                    let is_there = history.stamps_at(*zxid, &path).is_some();
                    happened_unseen(history, *zxid, &path, ids)
                        || is_there && !history.may_read_at(*zxid, &path, ids)
                };
                ensure!(
                    is_told || since.iter().any(was_hidden),
                    CHECKER,
                    "watches are set again in portions, and {told:?} is told, but not {kind:?} of {path}"
                );
                match kind {
                    _ if is_told => {}
                    EventKind::NodeChildrenChanged => drop(hidden.children.insert(path)),
                    _ => drop(hidden.data.insert(path)),
                }
            }
        }
        left.persistent = std::mem::take(&mut self.known.persistent);
        left.recursive = std::mem::take(&mut self.known.recursive);
        (self.known, self.held, self.through) = (left.clone(), left, now);
        if !is_at_once {
            self.known.data.extend(hidden.data.iter().cloned());
            self.known.children.extend(hidden.children.iter().cloned());
            self.uncertain = hidden;
        }
        Ok(())
    }
}

impl Table {
    fn is_empty(&self) -> bool {
        let Table { data, exist, children, persistent, recursive } = self;
        [data, exist, children, persistent, recursive].into_iter().all(BTreeSet::is_empty)
    }

    fn len(&self) -> usize {
        let Table { data, exist, children, persistent, recursive } = self;
        let on_znodes: BTreeSet<&String> =
            [data, exist, persistent, recursive].into_iter().flatten().collect();
        let on_children: BTreeSet<&String> = [children, persistent].into_iter().flatten().collect();
        on_znodes.len() + on_children.len()
    }

    fn insert_mode(&mut self, path: &str, mode: AddWatchMode) {
        let paths = match mode {
            AddWatchMode::Persistent => &mut self.persistent,
            AddWatchMode::PersistentRecursive => &mut self.recursive,
        };
        paths.insert(path.to_owned());
    }

    /// Watches in a request that sets them.
    fn count(&self) -> usize {
        let Table { data, exist, children, persistent, recursive } = self;
        [data, exist, children, persistent, recursive].into_iter().map(BTreeSet::len).sum()
    }

    /// These watches, about which nothing is to be told after a setWatches in portions, were told this before it was answered. Only
    /// a znode that did not exist may have come and gone.
    fn be_told_meanwhile(&mut self, told: &[ToldEvent]) -> Checked {
        let (data, children) = (self.data.len(), self.children.len());
        told.iter().for_each(|(kind, path)| self.forget_woken(*kind, path));
        ensure!(
            (self.data.len(), self.children.len()) == (data, children),
            CHECKER,
            "watches are set again, and {told:?} is told of znodes that have not changed"
        );
        Ok(())
    }

    fn wakes(&self, kind: EventKind, path: &str) -> bool {
        let on_znode = self.data.contains(path) || self.exist.contains(path);
        let on_children = self.children.contains(path);
        let is_persistent = self.persistent.contains(path);
        match kind {
            EventKind::NodeCreated | EventKind::NodeDataChanged => {
                on_znode || is_persistent || self.is_recursive(path)
            }
            EventKind::NodeDeleted => on_znode || on_children || is_persistent || self.is_recursive(path),
            EventKind::NodeChildrenChanged => on_children || is_persistent,
        }
    }

    fn is_recursive(&self, path: &str) -> bool {
        let is_at_or_below = |top: &String| {
            top == "/"
                || path.strip_prefix(&**top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.recursive.iter().any(is_at_or_below)
    }

    /// Removes what tells only once.
    fn forget_woken(&mut self, kind: EventKind, path: &str) {
        if kind != EventKind::NodeChildrenChanged {
            self.data.remove(path);
            self.exist.remove(path);
        }
        if matches!(kind, EventKind::NodeDeleted | EventKind::NodeChildrenChanged) {
            self.children.remove(path);
        }
    }

    /// Removes what `kind` means; false if there was nothing.
    fn remove(&mut self, path: &str, kind: WatcherKind) -> bool {
        let Table { data, exist, children, persistent, recursive } = self;
        let sets: &mut [&mut BTreeSet<String>] = match kind {
            WatcherKind::Children => &mut [children],
            WatcherKind::Data => &mut [data, exist],
            WatcherKind::Any => &mut [data, exist, children, persistent, recursive],
            WatcherKind::Persistent => &mut [persistent],
            WatcherKind::PersistentRecursive => &mut [recursive],
        };
        // All of them, not only the first that has it.
        sets.iter_mut().map(|set| usize::from(set.remove(path))).sum::<usize>() > 0
    }
}

/// A change of the znode that the client must not be told of.
fn happened_unseen(history: &impl WatchedHistory, zxid: Zxid, path: &str, ids: &[Id]) -> bool {
    let is_unseen = |change: &Change<'_>| *change.path == *path && !may_read(change, ids);
    history.changes_at(zxid).is_some_and(|changes| changes.iter().any(is_unseen))
}

fn may_read(change: &Change<'_>, ids: &[Id]) -> bool {
    let Some(acl) = &change.readers else { return true };
    ids.iter().any(|id| id.scheme == "super")
        || acl.iter().any(|entry| entry.perms.any_of(Perms::READ) && ids.contains(&entry.id))
}
