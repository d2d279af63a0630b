//! Answers that several groups give together: lists and Stats of split points as of one moment, and what is spread over all groups.

use std::collections::BTreeMap;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    ChildFilter, ErrorCode, EventKind, OpCode, Read, Request, SetWatches, Stat, WatchEvent, WatchRequest,
    Zxid,
};
use paddock_state::{Client, ZnodeMarks};
use paddock_tree::{Asker, ChildrenAsOf, Guess, ZnodeKind, allows, multi_read};

use crate::place::watched_list;
use crate::view::Groups;

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
}

impl<'a> Union<'a> {
    pub(crate) fn new(groups: Groups<'a>, client: &'a Client) -> Union<'a> {
        let as_of = groups.groups.iter().map(|group| group.level).min().unwrap_or_default();
        Union { groups, client, as_of, shown: Zxid(0), has_left: false, event: None, needs: Zxid(0) }
    }

    /// A union of the groups as they are, however far each has come.
    pub(crate) fn as_is(groups: Groups<'a>, client: &'a Client) -> Union<'a> {
        Union { as_of: Zxid(i64::MAX), ..Union::new(groups, client) }
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
            other => self.groups.home().state.answer_body(self.client, other, Guess::NONE, out),
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
            Read::GetEphemerals { .. } => self.ephemerals(read, out),
            Read::GetAllChildrenNumber { path } => self.descendants(path, out),
            Read::ListRecursive { path, nodes_max } => self.recursive(path, *nodes_max, out),
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
        let Some(view) = self.groups.get(group) else { return Err(ErrorCode::NoNode) };
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
        // The znode itself, but for its children, is shown as it is.
        let own = home.tree().stat(path).map_or(shown, |stat| stat.czxid.max(stat.mzxid));
        self.need(own.max(Zxid(home.tree().split_points().get(path).map_or(0, |point| point.version()))));
        if let Err(error) = result {
            self.shown = self.shown.max(shown);
            self.need(shown);
            let is_ready = self.needs <= self.as_of;
            return if is_ready { home.state.watch_read(self.client, read, Err(error)) } else { Ok(()) };
        }
        let stat = data.split_off(data.len() - Stat::BYTES);
        let stat = Stat::decode(&mut Reader::new(&stat)).expect("it was just encoded");
        let Some(children) = self.children(path, is_exact(read)) else { return Ok(()) };
        if self.needs > self.as_of {
            return Ok(());
        }
        let stat = self.merged(&stat, &children);
        self.shown = self.shown.max(own).max(stat.pzxid);
        out.extend_from_slice(&data);
        match read {
            Read::Exists { .. } | Read::GetData { .. } | Read::GetAcl { .. } => stat.encode(out),
            Read::GetChildren { .. } => put_names(children.iter().flat_map(|one| &one.names), out),
            Read::GetChildren2 { .. } => {
                put_names(children.iter().flat_map(|one| &one.names), out);
                stat.encode(out);
            }
            Read::FilteredList { filter: ChildFilter::All, .. } => {
                put_names(children.iter().flat_map(|one| &one.names), out);
                stat.encode(out);
            }
            Read::FilteredList { filter, .. } => {
                self.filtered(path, (*filter, false, false), (&children, stat), out)?
            }
            Read::FilteredListWithStatsAndData { filter, with_stats, with_data, .. } => {
                self.filtered(path, (*filter, *with_stats, *with_data), (&children, stat), out)?;
            }
            _ => unreachable!("the others are about no single znode"),
        }
        self.watch(path, read, &children)
    }

    /// Sets the watch of a read of a split point. One on children that have changed since is told of that instead.
    fn watch(&mut self, path: &str, read: &Read<'_>, children: &[ChildrenAsOf]) -> Result<(), ErrorCode> {
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

    /// Children of a split point in each group; `None` if that is to be asked again later. `is_exact`: what the children hold is shown, too.
    fn children(&mut self, path: &str, is_exact: bool) -> Option<Vec<ChildrenAsOf>> {
        let mut found = Vec::new();
        for group in self.groups.groups {
            let newest = group.tree().stat(path).map_or(Zxid(0), |stat| stat.pzxid);
            match group.tree().children_as_of(path, self.as_of) {
                Some(children) if !is_exact || children.next_change.is_none() => found.push(children),
                _ => self.need(newest),
            }
        }
        (found.len() == self.groups.groups.len()).then_some(found)
    }

    fn merged(&self, home: &Stat, children: &[ChildrenAsOf]) -> Stat {
        let count: usize = children.iter().map(|one| one.names.len()).sum();
        let created = children.iter().fold(0i32, |sum, one| sum.wrapping_add(one.created));
        let pzxid = children.iter().map(|one| one.pzxid).max().unwrap_or(home.pzxid);
        let num_children = count as i32;
        Stat { cversion: created.wrapping_mul(2).wrapping_sub(num_children), num_children, pzxid, ..*home }
    }

    fn filtered(
        &mut self,
        path: &str,
        (filter, with_stats, with_data): (ChildFilter, bool, bool),
        (children, stat): (&[ChildrenAsOf], Stat),
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let (mut names, mut stats, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for (group, children) in self.groups.groups.iter().zip(children) {
            for name in &children.names {
                let path = format!("{path}/{name}");
                let Some(znode) = group.tree().znode(&path) else { continue };
                if !allows(&znode.acl, paddock_proto::Perms::READ, self.client.ids()) {
                    return Err(ErrorCode::NoAuth);
                }
                let is_ephemeral = matches!(znode.kind, ZnodeKind::Ephemeral(_));
                let is_wanted = match filter {
                    ChildFilter::All => true,
                    ChildFilter::Persistent => !is_ephemeral,
                    ChildFilter::Ephemeral => is_ephemeral,
                };
                if is_wanted {
                    let stat = group.tree().stat(&path).expect("the znode is there");
                    self.shown = self.shown.max(stat.czxid).max(stat.mzxid).max(stat.pzxid);
                    names.push(name);
                    stats.push(stat);
                    data.push(znode.data);
                }
            }
        }
        put_names(names.into_iter(), out);
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
    fn ephemerals(&mut self, read: &Read<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let mut paths = Vec::new();
        for group in self.groups.groups {
            let mut body = Vec::new();
            group.tree().read(read, &self.asker(), &mut body)?;
            let mut reader = Reader::new(&body);
            for _ in 0..reader.count().unwrap_or_default() {
                paths.extend(reader.string().map(str::to_owned));
            }
            self.shown = self.shown.max(group.tree().zxid());
        }
        paths.sort_unstable();
        put_names(paths.iter(), out);
        Ok(())
    }

    /// Split points at or below a path, with the other groups that have a stub of them.
    fn points_below(&self, path: &str) -> Vec<(u32, String)> {
        let below =
            self.groups.points().iter().filter(|(point, _)| paddock_proto::is_at_or_below(point, path));
        below
            .flat_map(|(point, _)| self.groups.numbers().skip(1).map(|group| (group, point.to_owned())))
            .collect()
    }

    fn descendants(&mut self, path: &str, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let places = std::iter::once((0, path.to_owned())).chain(self.points_below(path));
        let mut sum = 0i32;
        for (group, path) in places {
            let Some(view) = self.groups.get(group) else { continue };
            let mut body = Vec::new();
            match view.tree().read(&Read::GetAllChildrenNumber { path: &path }, &self.asker(), &mut body) {
                Ok(()) => sum = sum.wrapping_add(Reader::new(&body).i32().unwrap_or_default()),
                Err(error) if group == 0 => return Err(error),
                Err(_) => {}
            }
            self.shown = self.shown.max(view.tree().zxid());
        }
        out.put_i32(sum);
        Ok(())
    }

    fn recursive(&mut self, path: &str, nodes_max: u32, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let places = std::iter::once((0, path.to_owned())).chain(self.points_below(path));
        // The nearest first.
        let mut found: BTreeMap<(usize, String), ()> = BTreeMap::new();
        for (group, path) in places {
            let Some(view) = self.groups.get(group) else { continue };
            let mut body = Vec::new();
            match view.tree().read(&Read::ListRecursive { path: &path, nodes_max }, &self.asker(), &mut body)
            {
                Ok(()) => {}
                Err(error) if group == 0 => return Err(error),
                Err(_) => continue,
            }
            let mut reader = Reader::new(&body);
            for _ in 0..reader.count().unwrap_or_default() {
                let Ok(path) = reader.string() else { break };
                found.insert((path.matches('/').count(), path.to_owned()), ());
            }
            self.shown = self.shown.max(view.tree().zxid());
        }
        put_names(found.keys().take(nodes_max as usize).map(|(_, path)| path), out);
        Ok(())
    }

    /// Sets watches of a client that has come back. As for [`Union::read`].
    pub(crate) fn set_watches(&mut self, asked: &SetWatches<'_>, out: &mut Vec<u8>) {
        for path in asked.data.iter().chain(&asked.exist).chain(&asked.child) {
            self.need(self.groups.points().place_of(path).1);
            let point = self.groups.points().get(path).filter(|point| !point.slots().is_home());
            let has_slots = point.is_none_or(|point| self.groups.have_slots_of(path, point));
            let group = self.groups.points().place_of(path).0;
            let is_there = self.groups.get(group).is_some_and(|view| view.tree().has_place_of(path));
            self.has_left |= !has_slots || !is_there || self.groups.points().is_leaving(path);
        }
        if self.has_left || self.needs > self.as_of {
            return;
        }
        let Union { groups, client, .. } = *self;
        let marks = |path: &str| {
            let (group, _) = groups.points().place_of(path);
            let mut marks = ZnodeMarks::of(groups.get(group)?.tree(), path, client)?;
            if groups.points().get(path).is_some() {
                let stubs = groups.groups.iter().filter_map(|group| group.tree().stat(path));
                marks.pzxid = stubs.map(|stat| stat.pzxid).max().unwrap_or(marks.pzxid);
            }
            Some(marks)
        };
        groups.home().state.watches().restore(client, asked, marks, out);
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

fn put_names<'n>(names: impl Iterator<Item = &'n String>, out: &mut Vec<u8>) {
    let names: Vec<&String> = names.collect();
    out.put_count(names.len());
    names.iter().for_each(|name| out.put_string(name));
}
