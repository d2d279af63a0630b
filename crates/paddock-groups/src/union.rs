//! Answers that several groups give together: lists and Stats of split points as of one moment, and what is spread over all groups.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    AddWatchMode, ChildFilter, ErrorCode, EventKind, OpCode, Read, Request, SetWatches, Stat, WatchEvent,
    WatchRequest, Zxid,
};
use paddock_state::{Client, ZnodeMarks};
use paddock_tree::{Asker, ChildrenAsOf, Guess, add_to_statistics, is_statistics, multi_read};

use crate::parts::{ChildrenPart, GroupPart, PartQuery, put_names};
use crate::place::watched_list;
use crate::view::Groups;

/// Parts of groups that are not here, as their hosts have answered.
pub(crate) type Parts = BTreeMap<(u32, PartQuery), GroupPart>;

/// A union of groups for one client, as of a moment.
#[derive(Debug)]
pub(crate) struct Union<'a> {
    pub(crate) groups: Groups<'a>,
    pub(crate) client: &'a Client,
    /// All groups lack nothing up to here.
    pub(crate) as_of: Zxid,
    /// The largest stamp in what was shown.
    pub(crate) shown: Zxid,
    /// Znodes are on their way from one group to another: it is to be asked again later.
    pub(crate) has_left: bool,
    /// An event that follows the answer at once, with its place: what was listed has changed since.
    pub(crate) event: Option<(Zxid, Vec<u8>)>,
    /// Stamp that all groups have to lack nothing up to before this can be answered.
    pub(crate) needs: Zxid,
    parts: &'a Parts,
    /// Questions to groups that are not here and whose parts are not known: it is to be asked again when they are.
    pub(crate) missing: BTreeSet<(u32, PartQuery)>,
}

impl<'a> Union<'a> {
    /// A union as of a stamp up to which all groups lack nothing, with these parts of groups that are not here.
    pub(crate) fn new(groups: Groups<'a>, client: &'a Client, as_of: Zxid, parts: &'a Parts) -> Union<'a> {
        Union {
            groups,
            client,
            as_of,
            shown: Zxid(0),
            has_left: false,
            event: None,
            needs: Zxid(0),
            parts,
            missing: BTreeSet::new(),
        }
    }

    /// A union of the groups as they are, however far each has come. It has no parts of groups that are not here.
    pub(crate) fn as_is(groups: Groups<'a>, client: &'a Client) -> Union<'a> {
        static NONE: Parts = BTreeMap::new();
        Union::new(groups, client, Zxid(i64::MAX), &NONE)
    }

    /// True if something is missing: nothing was set, and what was appended is no answer.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.has_left || !self.missing.is_empty() || self.needs > self.as_of
    }

    /// The part of a group; `None` if it is not known yet.
    fn part(&mut self, group: u32, query: PartQuery) -> Option<GroupPart> {
        if let Some(view) = self.groups.get(group) {
            let place = (group, view.tree());
            return Some(query.answer(place, self.groups.points(), self.client, self.as_of));
        }
        let key = (group, query);
        let known = self.parts.get(&key).cloned();
        if known.is_none() {
            self.missing.insert(key);
        }
        known
    }

    /// Appends the body of the answer to a request, and the events in front of it, to the one and the other. As for [`Union::read`].
    pub(crate) fn answer(
        &mut self,
        op: OpCode,
        body: &[u8],
        events: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let Ok(request) = Request::decode(op, body, self.client.dialect) else {
            return Err(ErrorCode::MarshallingError);
        };
        match &request {
            Request::Read(read) => self.read(read, out),
            Request::Watch(WatchRequest::Set(watches)) => {
                self.set_watches(watches, events);
                Ok(())
            }
            other => {
                if let Request::Watch(WatchRequest::Add { path, mode }) = other {
                    self.watch_at_hosts(path, *mode);
                }
                if self.is_incomplete() {
                    return Ok(());
                }
                self.groups.home().state.answer_body(self.client, other, Guess::NONE, out)
            }
        }
    }

    /// Has the hosts of groups that are not here tell what happens at a path, which may be at or above a split point. The replicas that are here do without being asked.
    fn watch_at_hosts(&mut self, path: &str, mode: AddWatchMode) {
        let points = self.groups.points();
        let (own, map) = points.place_of(path);
        self.need(map);
        self.has_left |= points.is_leaving(path);
        let groups = if points.are_spread_below(path) { self.groups.numbers() } else { own..own + 1 };
        for group in groups {
            let is_recursive = mode == AddWatchMode::PersistentRecursive;
            self.part(group, PartQuery::Watch { path: path.to_owned(), is_recursive });
        }
    }

    fn asker(&self) -> Asker<'_> {
        let Client { session, dialect, .. } = *self.client;
        Asker { session, ids: self.client.ids(), dialect, guess: Guess::NONE }
    }

    /// Appends the body of the answer to a read, and sets its watch. If `needs` is above `as_of` afterwards, it is to be asked again later, and
    /// nothing was set.
    pub(crate) fn read(&mut self, read: &Read<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        match read {
            Read::MultiRead(reads) => {
                multi_read(reads, self.client.dialect, out, |read, out| self.read(read, out))
            }
            Read::GetEphemerals { prefix } => self.ephemerals(prefix.unwrap_or_default(), out),
            Read::GetAllChildrenNumber { path } => self.descendants(path, out),
            Read::ListRecursive { path, nodes_max } => self.recursive(path, *nodes_max, out),
            Read::GetData { path, .. } if is_statistics(path) && self.groups.know_quotas() => {
                self.statistics(path, read, out)
            }
            Read::Exists { path, .. }
            | Read::GetData { path, .. }
            | Read::GetAcl { path }
            | Read::GetChildren { path, .. }
            | Read::GetChildren2 { path, .. }
            | Read::FilteredList { path, .. }
            | Read::FilteredListWithStatsAndData { path, .. } => match self.groups.points().get(path) {
                Some(point) if !point.slots().is_home() => {
                    self.need(Zxid(point.version()));
                    self.has_left |= !self.groups.have_slots_of(path, point);
                    if self.has_left { Ok(()) } else { self.point(path, read, out) }
                }
                _ => self.single(path, read, out),
            },
        }
    }

    fn need(&mut self, zxid: Zxid) {
        self.needs = self.needs.max(zxid);
    }

    /// A read of one group, among others.
    fn single(&mut self, path: &str, read: &Read<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let (group, map) = self.groups.points().place_of(path);
        self.need(map);
        let Some(view) = self.groups.get(group) else { return self.single_elsewhere(group, path, read, out) };
        if self.groups.points().is_leaving(path) || !view.tree().has_places_of(read) {
            self.has_left = true;
            return Ok(());
        }
        let shown = view.tree().shown_by(read);
        self.shown = self.shown.max(shown);
        // Else another group may lack what stands before what is shown here: the other half of a multi, for one.
        self.need(shown);
        if self.needs > self.as_of {
            return Ok(());
        }
        view.state.read(self.client, read, Guess::NONE, out)
    }

    /// A read of a group that is not here.
    fn single_elsewhere(
        &mut self,
        group: u32,
        path: &str,
        read: &Read<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let path = path.to_owned();
        let query = match read {
            Read::GetData { .. } => PartQuery::Data { path },
            Read::GetChildren { .. } => PartQuery::Names { path },
            _ => return Err(ErrorCode::Unimplemented),
        };
        self.has_left |= self.groups.points().is_leaving(query.path());
        let Some(part) = self.part(group, query) else { return Ok(()) };
        let GroupPart::Znode(Some(found)) = part else {
            self.has_left = true;
            return Ok(());
        };
        self.shown = self.shown.max(found.shown);
        self.need(found.shown);
        out.extend_from_slice(&found.answer?);
        Ok(())
    }

    /// A read of a split point whose children lie in several groups.
    fn point(&mut self, path: &str, read: &Read<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let home = self.groups.home();
        let shown = home.tree().shown_by(&Read::GetAcl { path });
        // What stands in front of the Stat in the answer of the home group.
        let mut data = Vec::new();
        let own = match read {
            Read::GetData { .. } => Read::GetData { path, watch: false },
            Read::GetAcl { .. } => Read::GetAcl { path },
            _ => Read::Exists { path, watch: false },
        };
        let result = home.tree().read(&own, &self.asker(), &mut data);
        // The znode itself, but for its children, is shown as it is: its version of the ACL, too.
        let own = home.tree().shown_without_children(path).unwrap_or(shown);
        self.need(own.max(Zxid(home.tree().split_points().get(path).map_or(0, |point| point.version()))));
        if let Err(error) = result {
            self.shown = self.shown.max(shown);
            self.need(shown);
            return if !self.is_incomplete() {
                home.state.watch_read(self.client, read, Err(error))
            } else {
                Ok(())
            };
        }
        let stat = data.split_off(data.len() - Stat::BYTES);
        let stat = Stat::decode(&mut Reader::new(&stat)).expect("it was just encoded");
        let found = self.children(path, read);
        if self.is_incomplete() {
            return Ok(());
        }
        let children: Vec<&ChildrenAsOf> = found.iter().filter_map(|part| part.children.as_ref()).collect();
        let stat = self.merged(&stat, &children);
        self.shown = self.shown.max(own).max(stat.pzxid);
        out.extend_from_slice(&data);
        match read {
            Read::Exists { .. } | Read::GetData { .. } | Read::GetAcl { .. } => stat.encode(out),
            Read::GetChildren { .. } => put_names(out, children.iter().flat_map(|one| &one.names)),
            Read::GetChildren2 { .. } => {
                put_names(out, children.iter().flat_map(|one| &one.names));
                stat.encode(out);
            }
            Read::FilteredList { filter: ChildFilter::All, .. } => {
                put_names(out, children.iter().flat_map(|one| &one.names));
                stat.encode(out);
            }
            Read::FilteredList { filter, .. } => {
                self.filtered((*filter, false, false), (&found, stat), out)?;
            }
            Read::FilteredListWithStatsAndData { filter, with_stats, with_data, .. } => {
                self.filtered((*filter, *with_stats, *with_data), (&found, stat), out)?;
            }
            _ => unreachable!("the others are about no single znode"),
        }
        self.watch(path, read, &children)
    }

    /// Sets the watch of a read of a split point. One on children that have changed since is told of that instead.
    fn watch(&mut self, path: &str, read: &Read<'_>, children: &[&ChildrenAsOf]) -> Result<(), ErrorCode> {
        match children.iter().filter_map(|one| one.next_change).min() {
            Some(zxid) if watched_list(read).is_some() => {
                let mut event = Vec::new();
                WatchEvent { kind: EventKind::NodeChildrenChanged, path, zxid }.encode(&mut event);
                self.event = Some((zxid, event));
                Ok(())
            }
            _ => self.groups.home().state.watch_read(self.client, read, Ok(())),
        }
    }

    /// Children of a split point in each group, as far as they are known.
    fn children(&mut self, path: &str, read: &Read<'_>) -> Vec<ChildrenPart> {
        let map = Zxid(self.groups.points().get(path).map_or(0, |point| point.version()));
        let (is_exact, watch) = (is_exact(read), watched_list(read).is_some());
        let mut found = Vec::new();
        for group in self.groups.numbers() {
            let query = PartQuery::Children { path: path.to_owned(), map, is_exact, watch };
            let Some(GroupPart::Children(part)) = self.part(group, query) else { continue };
            self.has_left |= part.has_left;
            if part.children.is_none() {
                self.need(part.newest);
            }
            found.push(part);
        }
        found
    }

    fn merged(&self, home: &Stat, children: &[&ChildrenAsOf]) -> Stat {
        let count: usize = children.iter().map(|one| one.names.len()).sum();
        let created = children.iter().fold(0i32, |sum, one| sum.wrapping_add(one.created));
        let pzxid = children.iter().map(|one| one.pzxid).max().unwrap_or(home.pzxid);
        let num_children = count as i32;
        Stat { cversion: created.wrapping_mul(2).wrapping_sub(num_children), num_children, pzxid, ..*home }
    }

    fn filtered(
        &mut self,
        (filter, with_stats, with_data): (ChildFilter, bool, bool),
        (parts, stat): (&[ChildrenPart], Stat),
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let (mut names, mut stats, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for (name, child) in parts.iter().flat_map(|part| &part.znodes) {
            if !child.may_read {
                return Err(ErrorCode::NoAuth);
            }
            let is_wanted = match filter {
                ChildFilter::All => true,
                ChildFilter::Persistent => !child.is_ephemeral,
                ChildFilter::Ephemeral => child.is_ephemeral,
            };
            if is_wanted {
                let stat = &child.stat;
                self.shown = self.shown.max(stat.czxid).max(stat.mzxid).max(stat.pzxid);
                names.push(name);
                stats.push(stat);
                data.push(&child.data);
            }
        }
        put_names(out, names.into_iter());
        stat.encode(out);
        if with_stats || with_data {
            out.put_count(if with_stats { stats.len() } else { 0 });
            stats.iter().filter(|_| with_stats).for_each(|stat| stat.encode(out));
            out.put_count(if with_data { data.len() } else { 0 });
            data.iter().filter(|_| with_data).for_each(|data| out.put_buffer(data.as_deref()));
        }
        Ok(())
    }

    /// Ephemerals of the client in all groups.
    fn ephemerals(&mut self, path: &str, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let mut paths = Vec::new();
        for group in self.groups.numbers() {
            let query = PartQuery::Ephemerals { path: path.to_owned() };
            let Some(GroupPart::Paths { found, zxid }) = self.part(group, query) else { continue };
            paths.extend(found?);
            self.shown = self.shown.max(zxid);
        }
        paths.sort_unstable();
        put_names(out, paths.iter());
        Ok(())
    }

    /// A path in the home group, and split points at or below it in the other groups, which have stubs of them.
    fn places_below(&self, path: &str) -> Vec<(u32, String)> {
        let below =
            self.groups.points().iter().filter(|(point, _)| paddock_proto::is_at_or_below(point, path));
        let stubs =
            below.flat_map(|(point, _)| self.groups.numbers().skip(1).map(|group| (group, point.to_owned())));
        std::iter::once((0, path.to_owned())).chain(stubs).collect()
    }

    fn descendants(&mut self, path: &str, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let mut sum = 0i32;
        for (group, path) in self.places_below(path) {
            let query = PartQuery::Descendants { path };
            let Some(GroupPart::Number { found, zxid }) = self.part(group, query) else { continue };
            match found {
                Ok(number) => sum = sum.wrapping_add(number),
                Err(error) if group == 0 => return Err(error),
                Err(_) => {}
            }
            self.shown = self.shown.max(zxid);
        }
        out.put_i32(sum);
        Ok(())
    }

    /// Statistics of a quota: what all groups have counted.
    fn statistics(&mut self, path: &str, read: &Read<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let mut sum = (0i64, 0i64);
        for group in self.groups.numbers().skip(1) {
            let query = PartQuery::Counted { path: path.to_owned() };
            let Some(GroupPart::Counted { found, zxid }) = self.part(group, query) else { continue };
            let (count, bytes) = found.unwrap_or_default();
            sum = (sum.0.saturating_add(count), sum.1.saturating_add(bytes));
            self.shown = self.shown.max(zxid);
        }
        if self.is_incomplete() {
            return Ok(());
        }
        let mut body = Vec::new();
        self.single(path, read, &mut body)?;
        if self.is_incomplete() {
            return Ok(());
        }
        let mut reader = Reader::new(&body);
        let data = reader.buffer().expect("it was just encoded");
        let mut stat = Stat::decode(&mut reader).expect("it was just encoded");
        let all = data.and_then(|data| add_to_statistics(data, sum)).or_else(|| data.map(<[u8]>::to_vec));
        stat.data_length = all.as_ref().map_or(0, Vec::len) as i32;
        out.put_buffer(all.as_deref());
        stat.encode(out);
        Ok(())
    }

    fn recursive(&mut self, path: &str, nodes_max: u32, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        // The nearest first.
        let mut all: BTreeSet<(usize, String)> = BTreeSet::new();
        for (group, path) in self.places_below(path) {
            let query = PartQuery::Recursive { path, nodes_max };
            let Some(GroupPart::Paths { found, zxid }) = self.part(group, query) else { continue };
            match found {
                Ok(found) => all.extend(found.into_iter().map(|path| (path.matches('/').count(), path))),
                Err(error) if group == 0 => return Err(error),
                Err(_) => continue,
            }
            self.shown = self.shown.max(zxid);
        }
        put_names(out, all.iter().take(nodes_max as usize).map(|(_, path)| path));
        Ok(())
    }

    /// Sets watches of a client that has come back. As for [`Union::read`].
    pub(crate) fn set_watches(&mut self, asked: &SetWatches<'_>, out: &mut Vec<u8>) {
        for path in asked.data.iter().chain(&asked.exist).chain(&asked.child) {
            self.need(self.groups.points().place_of(path).1);
            let point = self.groups.points().get(path).filter(|point| !point.slots().is_home());
            let has_slots = point.is_none_or(|point| self.groups.have_slots_of(path, point));
            self.has_left |= !has_slots || self.groups.points().is_leaving(path);
        }
        let mut marks = BTreeMap::new();
        for path in asked.data.iter().chain(&asked.exist).chain(&asked.child) {
            marks.insert(*path, self.marks(path));
        }
        asked.persistent.iter().for_each(|path| self.watch_at_hosts(path, AddWatchMode::Persistent));
        for path in &asked.persistent_recursive {
            self.watch_at_hosts(path, AddWatchMode::PersistentRecursive);
        }
        if !self.is_incomplete() {
            let known = |path: &str| marks.get(path).copied().flatten();
            self.groups.home().state.watches().restore(self.client, asked, known, out);
        }
    }

    /// Marks of a znode; those of a split point are of the last change of its children in any group.
    fn marks(&mut self, path: &str) -> Option<ZnodeMarks> {
        let own = self.groups.points().place_of(path).0;
        let stubs = if self.groups.points().get(path).is_some() { self.groups.numbers() } else { 0..0 };
        let (mut marks, mut newest) = (None, Zxid(0));
        for group in std::iter::once(own).chain(stubs) {
            let Some(part) = self.part(group, PartQuery::Marks { path: path.to_owned() }) else { continue };
            let GroupPart::Marks(Some(found)) = part else {
                self.has_left = true;
                continue;
            };
            newest = newest.max(found.map_or(Zxid(0), |found| found.pzxid));
            if group == own {
                marks = found;
            }
        }
        marks.map(|marks| ZnodeMarks { pzxid: marks.pzxid.max(newest), ..marks })
    }
}

/// True if a list tells more of the children than their names.
fn is_exact(read: &Read<'_>) -> bool {
    match read {
        Read::FilteredList { filter, .. } => *filter != ChildFilter::All,
        Read::FilteredListWithStatsAndData { .. } => true,
        _ => false,
    }
}
