//! Commands between groups: split points of the home group, and what another group keeps of them.
//!
//! A group keeps a *stub* of each split point that is there: a znode with its ACL, below which the children lie that belong to the group. It may only
//! come and go by items of the home group's stream.

use paddock_proto::{AclList, ErrorCode, GroupsCommand, SessionId, StreamItem, Write, WriteReply, Zxid};

use super::{Circumstances, GivenPortion, SYSTEM_PATHS, Tree};
use crate::Command;
use crate::between_groups::OWN;
use crate::features::FeatureLevel;
use crate::outcome::Changes;
use crate::session::Session;
use crate::split_points::{SlotMap, SplitPoint, SplitPoints, ToldZnode};
use crate::store::{NewNode, NodeId, ZnodeKind};
use crate::streams::Streams;
use crate::write_paths::for_each_path;

/// An item that was applied: the zxid that it has in its group, and that of the home group's transaction which decided it. In the home group, its own part of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedItem {
    pub zxid: Zxid,
    pub decided: Zxid,
}

impl Tree {
    /// Split points of the ensemble, if this is the home group's state.
    pub fn split_points(&self) -> &SplitPoints {
        &self.between_groups.split_points
    }

    /// Streams to other groups, if this is the home group's state.
    pub fn streams(&self) -> &Streams {
        &self.between_groups.streams
    }

    /// Number of the last item of its stream that this group has applied; 0 for none, and for the home group.
    pub fn received_items(&self) -> u64 {
        self.between_groups.received
    }

    /// The other groups in which a session may write, if this is the home group's state.
    pub fn attached_groups(&self, session: SessionId) -> impl Iterator<Item = u32> {
        self.between_groups.attached.get(&session).into_iter().flatten().copied()
    }

    /// Items that were applied since this was asked last.
    pub fn take_applied_items(&mut self) -> Vec<AppliedItem> {
        std::mem::take(&mut self.applied_items)
    }

    /// Carries out a command between groups. One that cannot be changes nothing, on any member.
    pub(crate) fn carry_out_between_groups<'a>(
        &mut self,
        at: &Circumstances<'a>,
        command: &GroupsCommand<'a>,
        changes: &mut Changes<'a>,
    ) -> Result<WriteReply<'a>, ErrorCode> {
        if at.is_service() == command.is_of_session() {
            return Err(ErrorCode::BadArguments);
        }
        // At a lower level a snapshot could not say it.
        if self.raised.level < FeatureLevel::SPLIT_POINTS {
            return Ok(WriteReply::Done);
        }
        match *command {
            GroupsCommand::Split { path } => {
                self.between_groups.split_points.add(path, at.zxid.0);
                self.tell_points(at.zxid);
                if !self.is_among_groups {
                    self.tell_all_limits(1, at.zxid);
                }
            }
            GroupsCommand::Join { path } => self.join(path),
            GroupsCommand::Move { path, first, last, group } => {
                self.move_slots(at, path, (first, last), group)
            }
            GroupsCommand::Attach { group } => self.attach(at.session, group),
            GroupsCommand::Acknowledge { group, number } => {
                self.between_groups.streams.acknowledge(group, number);
            }
            GroupsCommand::Item { number, decided, item } => {
                if number == self.between_groups.received + 1 {
                    self.between_groups.received = number;
                    // Of the writes behind it none comes before the decision.
                    self.zxid = self.zxid.max(Zxid(decided.0.saturating_add(1)));
                    if item.changes_znodes() {
                        self.applied_items.push(AppliedItem { zxid: self.zxid, decided });
                    }
                    self.receive(&Circumstances { zxid: self.zxid, ..*at }, decided, item, changes);
                }
            }
            GroupsCommand::Mark { at_least } => {
                self.zxid = self.zxid.max(at_least.min(Zxid::stamp(Zxid::STAMP_MS_MAX)));
            }
            GroupsCommand::GoOn => self.let_go_on(at.session),
            GroupsCommand::Through { .. } => {
                unreachable!("it was carried out where the session is looked at")
            }
            GroupsCommand::Host { guest, group, host } => {
                if self.raised.level >= FeatureLevel::HOSTS {
                    self.decide_host(guest, group, host);
                }
            }
            GroupsCommand::Given { path, first, portion, is_last, above, znodes } => {
                self.zxid = self.zxid.max(above);
                let given = GivenPortion { znodes, is_last, above };
                self.take_given(path, first, portion, given);
            }
            GroupsCommand::Relay { op, request, enforces_quotas } => {
                return self.relay(&Circumstances { enforces_quotas, ..*at }, op, request);
            }
            GroupsCommand::Multi { request, enforces_quotas } => {
                return self.begin_multi(&Circumstances { enforces_quotas, ..*at }, request, changes);
            }
            GroupsCommand::Vote { multi, group, vote } => self.take_vote(at, (multi, group, vote), changes),
        }
        self.are_znodes_spread = self.between_groups.are_znodes_spread();
        self.is_among_groups = self.between_groups.is_among_groups();
        Ok(WriteReply::Done)
    }

    /// The znode is no split point any more: the other groups need no stub of it.
    fn join(&mut self, path: &str) {
        let is_told = self.split_points().get(path).is_some_and(SplitPoint::is_there);
        if !self.between_groups.split_points.remove(path) {
            return;
        }
        if self.split_points().iter().next().is_none() {
            self.end_limits(self.zxid);
        }
        if is_told {
            self.push_to_groups(1, self.zxid, &StreamItem::SplitPoint { path, acl: None });
            // The stubs go, and with them the zxids of changes of the list that were made in their groups.
            if let Some(node) = self.store.find(path).filter(|_| self.are_znodes_spread) {
                self.store.set_child_counters(node, (self.store.cversion(node), self.zxid.0));
            }
        }
    }

    /// A session of the home group is about to write in another group.
    pub(super) fn attach(&mut self, session: SessionId, group: u32) {
        let is_group = (1..self.groups.count()).contains(&group);
        if is_group && self.between_groups.attached.entry(session).or_default().insert(group) {
            self.push_session(session, group);
        }
    }

    fn push_session(&mut self, session: SessionId, group: u32) {
        let Some(known) = self.sessions.get(&session) else { return };
        let Session { timeout_ms, owner, moves, .. } = *known;
        let item = StreamItem::Session { session, timeout_ms, owner, moves };
        self.between_groups.streams.push(group, self.zxid, &item);
    }

    /// Commands of the session are carried out again, if they were not.
    fn let_go_on(&mut self, session: SessionId) {
        if self.between_groups.stalled.remove(&session) {
            self.are_znodes_spread = self.between_groups.are_znodes_spread();
        }
    }

    /// A session has another owner: the groups that it writes in are told.
    pub(crate) fn tell_owner(&mut self, session: SessionId) {
        self.let_go_on(session);
        self.give_up_multis(session, self.zxid);
        let groups: Vec<u32> = self.attached_groups(session).collect();
        groups.into_iter().for_each(|group| self.push_session(session, group));
    }

    /// A session ends: the groups that it has written in are told. Returns the zxid that its end has here: one that is larger than that of the decision, whose
    /// place no change has.
    pub(crate) fn tell_end(&mut self, session: SessionId, zxid: Zxid) -> Zxid {
        self.let_go_on(session);
        self.give_up_multis(session, zxid);
        let Some(groups) = self.between_groups.attached.remove(&session) else { return zxid };
        self.between_groups.multis.spoil(|open| open.votes.keys().any(|group| groups.contains(group)));
        self.forget_leaving_ephemerals(session, zxid);
        for group in groups {
            self.between_groups.streams.push(group, zxid, &StreamItem::End { session });
        }
        let own = self.take_zxid();
        self.note_own_part(zxid);
        own
    }

    /// Notes that the home group's last zxid is that of its own part of a decision: its place is that of the decision, as it is of the other groups' parts.
    pub(crate) fn note_own_part(&mut self, decided: Zxid) {
        if self.are_znodes_spread {
            self.applied_items.push(AppliedItem { zxid: self.zxid, decided });
        }
    }

    /// True if a command names the znode of a split point, or removes one with what is above it.
    pub(super) fn is_about_points(&self, command: &Command<'_>) -> bool {
        let (Ok(write), points) = (&command.write, self.split_points()) else { return false };
        let mut is_about = false;
        for_each_path(write, &mut |path| is_about |= points.get(path).is_some());
        is_about || matches!(write, Write::RemoveRecursive { path, .. } if points.has_any_below(path))
    }

    /// A command has been carried out: what it has changed of the znodes of split points goes to the other groups, as decided at this zxid. True if there is any.
    pub(super) fn tell_points(&mut self, decided: Zxid) -> bool {
        let Tree { store, between_groups, .. } = self;
        let znode = |path: &str| {
            let stat = store.stat(store.find(path)?);
            Some(ToldZnode { czxid: stat.czxid.0, aversion: stat.aversion })
        };
        let changed = between_groups.split_points.tell(znode);
        changed.iter().for_each(|path| self.push_stub(path, 1, decided));
        !changed.is_empty()
    }

    /// There were `before` groups, and are more now: the new ones are told of all split points that are there.
    pub(crate) fn tell_new_groups(&mut self, before: u32) {
        let paths = self.split_points().iter().filter(|(_, point)| point.is_there());
        let paths: Vec<String> = paths.map(|(path, _)| path.to_owned()).collect();
        paths.iter().for_each(|path| self.push_stub(path, before, self.zxid));
        if self.is_among_groups {
            self.tell_all_limits(before, self.zxid);
        }
    }

    /// Appends a split point's znode, as it is, to the streams to the groups from `first` on.
    fn push_stub(&mut self, path: &str, first: u32, decided: Zxid) {
        let mut bytes = Vec::new();
        if let Some(node) = self.store.find(path) {
            paddock_proto::encode::put_acl(&mut bytes, self.store.acl_list(node));
        }
        let mut reader = paddock_proto::jute::Reader::new(&bytes);
        let acl = (!bytes.is_empty()).then(|| AclList::decode(&mut reader).expect("it was just encoded"));
        self.push_to_groups(first, decided, &StreamItem::SplitPoint { path, acl });
    }

    fn push_to_groups(&mut self, first: u32, decided: Zxid, item: &StreamItem<'_>) {
        self.between_groups.multis.spoil(|_| true);
        for group in first..self.groups.count() {
            self.between_groups.streams.push(group, decided, item);
        }
    }

    /// Applies the next item of this group's stream.
    fn receive<'a>(
        &mut self,
        at: &Circumstances<'a>,
        decided: Zxid,
        item: StreamItem<'a>,
        changes: &mut Changes<'a>,
    ) {
        match item {
            StreamItem::SplitPoint { path, acl: Some(acl) } => self.put_stub(at, path, acl),
            StreamItem::SplitPoint { path, acl: None } => self.remove_stub(at, path),
            StreamItem::Session { session, timeout_ms, owner, moves } => {
                self.let_go_on(session);
                self.between_groups.multis.outcomes.remove(&session);
                self.sessions.insert(session, Session { moves, ..Session::new(timeout_ms, owner) });
            }
            StreamItem::End { session } => {
                self.hosts.through.remove(&session);
                self.close_session(session, at.zxid, changes);
                self.end_given_ephemerals(session, (at.zxid, decided), changes);
            }
            StreamItem::Slots { path, first, last } => {
                let slots =
                    self.between_groups.own_slots.entry(path.to_owned()).or_insert_with(SlotMap::home);
                slots.assign(first, last, OWN);
            }
            StreamItem::Znodes { znodes } => self.put_in(znodes),
            StreamItem::Leave { path, first, last } => self.give_away(at.zxid, path, (first, last)),
            StreamItem::Taken { path, first } => {
                self.between_groups.given.retain(|given| (given.path.as_str(), given.first) != (path, first));
            }
            StreamItem::Prepare { multi, command } => self.prepare(at.zxid, multi, command),
            StreamItem::Settle { multi, is_done } => self.settle(at.zxid, (multi, is_done), changes),
            StreamItem::Relayed { command } => self.carry_out_relayed((at.zxid, decided), command, changes),
            // At a lower level a snapshot could not say it.
            StreamItem::Host { .. } if self.raised.level < FeatureLevel::HOSTS => {}
            StreamItem::Host { guest, host } => self.receive_host(guest, host),
            StreamItem::Limits { path, limits } => self.put_limits(at, path, limits),
        }
    }

    fn put_stub(&mut self, at: &Circumstances<'_>, path: &str, acl: AclList<'_>) {
        let stub = self.put_path(at, path);
        self.store.set_acl(stub, (!acl.is_open()).then(|| acl.to_vec()));
        self.between_groups.acl_zxid = at.zxid.0;
    }

    /// Creates what is missing of a path whose znodes no client sees in this group. Returns the last one.
    pub(crate) fn put_path(&mut self, at: &Circumstances<'_>, path: &str) -> NodeId {
        let ends = path.match_indices('/').map(|(slash, _)| slash).skip(1).chain([path.len()]);
        let mut parent = NodeId::ROOT;
        for path in ends.map(|end| &path[..end]) {
            parent = self.store.find(path).unwrap_or_else(|| {
                let (data, acl, kind) = (None, None, ZnodeKind::Persistent);
                // Home knows when it came. That the stub comes is no change of the list.
                let (zxid, time_ms) = (Zxid(0), at.time_ms);
                self.store.create(NewNode { parent, path, data, acl, kind, zxid, time_ms })
            });
        }
        parent
    }

    /// Removes a stub, and the znodes that only lead to it. One with children stays, since an item can always be applied.
    pub(crate) fn remove_stub(&mut self, at: &Circumstances<'_>, path: &str) {
        let mut path = path;
        while !path.is_empty() && !SYSTEM_PATHS.contains(&path) {
            let leaf = self.store.find(path).filter(|node| self.store.child_count(*node) == 0);
            let Some(node) = leaf else { return };
            self.store.delete(node, path, at.zxid);
            path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::jute::Writer as _;
    use paddock_proto::{Acl, Create, CreateMode, IdList, OpCode, Perms, SessionId, encode};

    use super::*;
    use crate::features::RaisedLevel;
    use crate::groups::GroupFounders;
    use crate::{Command, SLOTS, TreeLoader};

    fn tree() -> Tree {
        let mut tree = Tree::new();
        tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
        tree
    }

    fn home(groups: u32) -> Tree {
        let mut home = tree();
        home.found_groups(groups, GroupFounders { voters: vec![1], learners: vec![] });
        home
    }

    /// Applies an entry with one command of the service.
    fn apply(tree: &mut Tree, op: OpCode, body: &[u8]) {
        let mut bytes = Vec::new();
        Command::encode(SessionId::NONE, 5, IdList::NONE, op, body, &mut bytes);
        tree.apply(&Command::decode(&bytes).unwrap()).result.unwrap();
    }

    fn between(tree: &mut Tree, command: GroupsCommand<'_>) {
        let mut body = Vec::new();
        command.encode(&mut body);
        apply(tree, GroupsCommand::OP, &body);
    }

    fn create(tree: &mut Tree, path: &str) {
        let mut body = Vec::new();
        encode::create_open(&mut body, path, None, CreateMode::Persistent);
        apply(tree, OpCode::Create, &body);
    }

    fn delete(tree: &mut Tree, path: &str) {
        let mut body = Vec::new();
        encode::path_and_version(&mut body, path, -1);
        apply(tree, OpCode::Delete, &body);
    }

    fn set_acl(tree: &mut Tree, path: &str, acl: &[Acl]) {
        let mut body = Vec::new();
        body.put_string(path);
        encode::put_acl(&mut body, acl);
        body.put_i32(-1);
        apply(tree, OpCode::SetAcl, &body);
    }

    /// Gives a group what home has for it behind an item.
    fn send(home: &Tree, number: u32, group: &mut Tree, behind: u64) {
        let stream = home.streams().to_group(number).cloned().unwrap_or_default();
        for (number, item) in stream.behind(behind) {
            let decided = item.decided;
            let item = StreamItem::decode(&mut paddock_proto::jute::Reader::new(&item.bytes)).unwrap();
            between(group, GroupsCommand::Item { number, decided, item });
        }
    }

    fn reload(tree: &mut Tree) {
        let mut scan = tree.begin_snapshot();
        let mut loader = TreeLoader::new();
        let mut block = Vec::new();
        loop {
            let more = tree.scan_snapshot(&mut scan, 10, &mut block);
            loader.block(&block).unwrap();
            block.clear();
            if !more {
                break;
            }
        }
        tree.end_snapshot(scan);
        let loaded = loader.finish().unwrap();
        assert_eq!((loaded.digest(), &loaded.between_groups), (tree.digest(), &tree.between_groups));
        *tree = loaded;
    }

    fn reader() -> Vec<Acl> {
        let entry = |perms, scheme, id| Acl { perms, id: paddock_proto::Id::new(scheme, id) };
        vec![entry(Perms::ALL, "world", "anyone"), entry(Perms::READ, "ip", "10.0.0.1")]
    }

    #[test]
    fn groups_learn_what_becomes_of_the_znode_of_a_split_point() {
        let (mut home, mut group) = (home(3), tree());
        create(&mut home, "/a");
        between(&mut home, GroupsCommand::Split { path: "/a/b" });
        assert_eq!(home.streams().iter().count(), 0, "a znode that is not there needs no stub");
        create(&mut home, "/a/b");
        create(&mut home, "/a/b/c");
        reload(&mut home);
        send(&home, 2, &mut group, 0);
        assert_eq!((group.received_items(), group.acl("/a/b")), (1, home.acl("/a/b")));
        assert_eq!(group.stat("/a/b/c"), None);
        set_acl(&mut home, "/a/b", &reader());
        send(&home, 2, &mut group, 1);
        assert_eq!((group.received_items(), group.acl("/a/b")), (2, Some(&reader()[..])));
        reload(&mut group);
        delete(&mut home, "/a/b/c");
        delete(&mut home, "/a/b");
        create(&mut home, "/a/b");
        assert_eq!(
            home.streams().to_group(1).map(|stream| (stream.acknowledged(), stream.last())),
            Some((0, 4))
        );
        send(&home, 2, &mut group, 2);
        assert_eq!((group.received_items(), group.acl("/a/b")), (4, home.acl("/a/b")));
        delete(&mut home, "/a/b");
        send(&home, 2, &mut group, 4);
        assert_eq!((group.stat("/a/b"), group.stat("/a")), (None, None), "nothing else leads to it");
        assert_eq!(group.node_count(), Tree::new().node_count());
    }

    #[test]
    fn a_duplicate_and_an_item_behind_a_gap_are_passed_over() {
        let (mut home, mut group) = (home(2), tree());
        between(&mut home, GroupsCommand::Split { path: "/a" });
        create(&mut home, "/a");
        delete(&mut home, "/a");
        send(&home, 1, &mut group, 1);
        assert_eq!((group.received_items(), group.stat("/a")), (0, None), "the first item is missing");
        send(&home, 1, &mut group, 0);
        assert_eq!((group.received_items(), group.stat("/a")), (2, None));
        send(&home, 1, &mut group, 0);
        assert_eq!((group.received_items(), group.stat("/a")), (2, None), "both came again");
        between(&mut home, GroupsCommand::Acknowledge { group: 1, number: 1 });
        reload(&mut home);
        let stream = home.streams().to_group(1).unwrap();
        assert_eq!((stream.acknowledged(), stream.last()), (1, 2));
    }

    #[test]
    fn a_split_point_that_goes_takes_its_stubs_with_it() {
        let (mut home, mut group) = (home(2), tree());
        for path in ["/a", "/b"] {
            create(&mut home, path);
            between(&mut home, GroupsCommand::Split { path });
        }
        between(&mut home, GroupsCommand::Join { path: "/a" });
        between(&mut home, GroupsCommand::Join { path: "/absent" });
        send(&home, 1, &mut group, 0);
        assert_eq!((group.received_items(), group.stat("/a")), (3, None));
        assert!(group.stat("/b").is_some() && home.stat("/a").is_some());
        between(&mut home, GroupsCommand::Split { path: "/a" });
        send(&home, 1, &mut group, 3);
        assert!(group.stat("/a").is_some());
    }

    #[test]
    fn a_list_has_the_zxids_of_its_own_changes() {
        let pzxid = |tree: &Tree| tree.stat("/a").unwrap().pzxid;
        let (mut home, mut group) = (home(2), tree());
        create(&mut home, "/a");
        create(&mut home, "/a/b");
        let listed = pzxid(&home);
        between(&mut home, GroupsCommand::Split { path: "/a" });
        send(&home, 1, &mut group, 0);
        assert_eq!(pzxid(&group), Zxid(0), "that a stub has come changes no list");
        between(&mut home, GroupsCommand::Join { path: "/a" });
        assert_eq!(pzxid(&home), listed, "all changes were made here");
        between(&mut home, GroupsCommand::Split { path: "/a" });
        let slots = |group| GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group };
        between(&mut home, slots(1));
        between(&mut home, slots(0));
        send(&home, 1, &mut group, 1);
        let given = group.given_portion("/a", 0, 0).unwrap();
        let (znodes, above, is_last) = (given.znodes.to_vec(), given.above, given.is_last);
        let given =
            GroupsCommand::Given { path: "/a", first: 0, portion: 0, is_last, above, znodes: &znodes };
        between(&mut home, given);
        assert_eq!(pzxid(&home), listed, "the znodes were elsewhere all the time");
        let before = home.zxid();
        between(&mut home, GroupsCommand::Join { path: "/a" });
        assert!(pzxid(&home) > before, "the changes that were made elsewhere are not known any more");
    }

    #[test]
    fn what_a_group_gave_for_an_earlier_move_counts_for_no_later_one() {
        let (mut home, mut group) = (home(3), tree());
        create(&mut home, "/a");
        create(&mut home, "/a/b");
        between(&mut home, GroupsCommand::Split { path: "/a" });
        let slots = |group| GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group };
        let give = |home: &mut Tree, (znodes, above): &(Vec<u8>, Zxid)| {
            let (above, is_last) = (*above, true);
            between(home, GroupsCommand::Given { path: "/a", first: 0, portion: 0, is_last, above, znodes });
        };
        let given = |group: &Tree| {
            let given = group.given_portion("/a", 0, 0).unwrap();
            (given.znodes.to_vec(), given.above)
        };
        between(&mut home, slots(1));
        between(&mut home, slots(2));
        send(&home, 1, &mut group, 0);
        let former = given(&group);
        give(&mut home, &former);
        assert_eq!(home.split_points().group_of("/a/b"), 2);
        between(&mut home, slots(1));
        // Group 2 may have changed them. The leader of the first one, which has not heard that home has them, says once more what it gave.
        give(&mut home, &former);
        assert!(home.split_points().is_leaving("/a/b"), "group 2 has yet to give them");
        let mut other = tree();
        send(&home, 2, &mut other, 0);
        give(&mut home, &given(&other));
        assert_eq!(
            (home.split_points().is_leaving("/a/b"), home.split_points().group_of("/a/b")),
            (false, 1)
        );
        let received = group.received_items();
        send(&home, 1, &mut group, received);
        assert!(group.stat("/a/b").is_some());
    }

    #[test]
    fn the_parent_of_an_ephemeral_changes_with_the_end_of_its_session_also_while_both_are_on_their_way() {
        const SESSION: SessionId = SessionId(7);
        let of_session = |tree: &mut Tree, op, body: &[u8]| {
            let mut bytes = Vec::new();
            Command::encode(SESSION, 5, IdList::NONE, op, body, &mut bytes);
            tree.apply(&Command::decode(&bytes).unwrap().taken_by(1)).result.unwrap();
        };
        let given = |group: &Tree| {
            let given = group.given_portion("/a", 0, 0).unwrap();
            (given.znodes.to_vec(), given.above)
        };
        // Home has the znodes before the session ends, or has them later from a group that has heard of the end, or has not.
        for (is_here_before, has_heard) in [(true, false), (false, true), (false, false)] {
            let (mut home, mut group) = (home(2), tree());
            create(&mut home, "/a");
            create(&mut home, "/a/b");
            between(&mut home, GroupsCommand::Split { path: "/a" });
            between(&mut home, GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 1 });
            home.sessions.insert(SESSION, Session::new(1000, 1));
            let mut body = Vec::new();
            GroupsCommand::Attach { group: 1 }.encode(&mut body);
            of_session(&mut home, GroupsCommand::OP, &body);
            send(&home, 1, &mut group, 0);
            let mut body = Vec::new();
            encode::create_open(&mut body, "/a/b/e", None, CreateMode::Ephemeral);
            of_session(&mut group, OpCode::Create, &body);
            between(&mut home, GroupsCommand::Move { path: "/a", first: 0, last: SLOTS - 1, group: 0 });
            let received = group.received_items();
            send(&home, 1, &mut group, received);
            let (znodes, above) = given(&group);
            let give = |home: &mut Tree, portion: u32, is_last: bool, znodes: &[u8]| {
                between(home, GroupsCommand::Given { path: "/a", first: 0, portion, is_last, above, znodes });
            };
            if is_here_before {
                give(&mut home, 0, false, &znodes);
            }
            home.begin_entry(Zxid(100));
            of_session(&mut home, OpCode::CloseSession, &[]);
            let end = home.streams().to_group(1).unwrap().decided_end(SESSION).unwrap();
            if has_heard {
                let received = group.received_items();
                send(&home, 1, &mut group, received);
                between(&mut home, GroupsCommand::Acknowledge { group: 1, number: group.received_items() });
            }
            match is_here_before {
                true => give(&mut home, 1, true, &[]),
                false => give(&mut home, 0, true, &given(&group).0),
            }
            assert!(home.stat("/a/b/e").is_none());
            assert_eq!(home.stat("/a/b").unwrap().pzxid, end, "{is_here_before} {has_heard}");
        }
    }

    #[test]
    fn a_list_as_of_earlier_has_what_went_in_portions() {
        const SESSION: SessionId = SessionId(7);
        let mut home = home(2);
        create(&mut home, "/a");
        between(&mut home, GroupsCommand::Split { path: "/a" });
        between(&mut home, GroupsCommand::Move { path: "/a", first: 0, last: 9, group: 1 });
        home.sessions.insert(SESSION, Session::new(1000, 1));
        let command = |op, body: &[u8]| {
            let mut bytes = Vec::new();
            Command::encode(SESSION, 5, IdList::NONE, op, body, &mut bytes);
            bytes
        };
        for number in 0..5 {
            let mut body = Vec::new();
            // Such names are the home group's.
            encode::create_open(&mut body, &format!("/a/n-{number:010}"), None, CreateMode::Ephemeral);
            let bytes = command(OpCode::Create, &body);
            home.apply(&Command::decode(&bytes).unwrap().taken_by(1)).result.unwrap();
        }
        let (before, bytes) = (home.zxid(), command(OpCode::CloseSession, &[]));
        let close = Command::decode(&bytes).unwrap().taken_by(1);
        let mut removal = home.long_removal(&close, 2).unwrap();
        while removal.look_up(&home).unwrap() {}
        removal.remove_portion(&mut home).unwrap();
        let names = |zxid| home.children_as_of("/a", zxid).unwrap().names.len();
        assert_eq!((names(before), names(home.zxid())), (5, 3));
    }

    #[test]
    fn groups_that_are_founded_later_are_told_of_what_is_there() {
        let mut home = home(2);
        for path in ["/a", "/b"] {
            between(&mut home, GroupsCommand::Split { path });
        }
        create(&mut home, "/b");
        home.found_groups(4, GroupFounders { voters: vec![1], learners: vec![] });
        let lasts: Vec<(u32, u64)> =
            home.streams().iter().map(|(group, stream)| (group, stream.last())).collect();
        assert_eq!(lasts, [(1, 1), (2, 1), (3, 1)]);
        let mut group = tree();
        send(&home, 3, &mut group, 0);
        assert!(group.stat("/b").is_some() && group.stat("/a").is_none());
    }

    #[test]
    fn below_its_level_nothing_joins_groups_and_no_client_may_say_so() {
        let mut old = Tree::new();
        between(&mut old, GroupsCommand::Split { path: "/a" });
        assert!(old.split_points().is_empty());
        let mut bytes = Vec::new();
        let mut body = Vec::new();
        GroupsCommand::Split { path: "/a" }.encode(&mut body);
        Command::encode(SessionId(7), 5, IdList::NONE, GroupsCommand::OP, &body, &mut bytes);
        let mut home = home(2);
        home.sessions.insert(SessionId(7), crate::session::Session::new(1000, 0));
        let refused = home.apply(&Command::decode(&bytes).unwrap()).result;
        assert_eq!(refused, Err(ErrorCode::BadArguments));
        assert!(home.split_points().is_empty());
    }

    #[test]
    fn a_split_point_with_slots_elsewhere_neither_expires_nor_becomes_ephemeral() {
        let mut home = home(3);
        let mut body = Vec::new();
        encode::create_open(&mut body, "/a", None, CreateMode::Container);
        apply(&mut home, OpCode::CreateContainer, &body);
        create(&mut home, "/a/b");
        delete(&mut home, "/a/b");
        assert_eq!(home.expired_nodes(i64::MAX, 9), ["/a"]);
        between(&mut home, GroupsCommand::Split { path: "/a" });
        between(&mut home, GroupsCommand::Move { path: "/a", first: 0, last: 9, group: 1 });
        assert_eq!(home.expired_nodes(i64::MAX, 9), [""; 0]);
        let service = |tree: &mut Tree, write| {
            let (session, ids) = (SessionId::NONE, IdList::NONE);
            let command =
                Command { session, time_ms: 9, member: 0, ids, enforces_quotas: false, write: Ok(write) };
            tree.apply(&command).result.map(|_| ())
        };
        assert_eq!(service(&mut home, Write::DeleteContainer { path: "/a" }), Err(ErrorCode::NotEmpty));
        // What is ephemeral is no split point with slots elsewhere either.
        let create = |path| Create {
            op: OpCode::Create,
            path,
            data: None,
            acl: AclList::OPEN,
            flags: 1,
            ttl_ms: None,
        };
        assert_eq!(service(&mut home, Write::Create(create("/a"))), Err(ErrorCode::BadArguments));
    }
}
