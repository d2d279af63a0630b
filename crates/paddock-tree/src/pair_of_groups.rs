//! States of two groups for tests, between which items go as the test says.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{CreateMode, ErrorCode, GroupsCommand, IdList, OpCode, SessionId, StreamItem, encode};

use crate::features::{FeatureLevel, RaisedLevel};
use crate::groups::GroupFounders;
use crate::session::Session;
use crate::{BetweenGroups, Command, MultiEnd, SLOTS, Tree, slot_of};

pub(crate) const SESSION: SessionId = SessionId(7);

/// States of a home group and another one, to which the first half of the slots of `/p` has moved.
pub(crate) struct GroupPair {
    pub(crate) home: Tree,
    pub(crate) other: Tree,
    /// Items that the other group has.
    sent: u64,
}

pub(crate) fn apply(tree: &mut Tree, session: SessionId, op: OpCode, body: &[u8]) -> Result<(), ErrorCode> {
    let mut bytes = Vec::new();
    Command::encode(session, 5, IdList::NONE, op, body, &mut bytes);
    let done = tree.apply(&Command::decode(&bytes).unwrap().taken_by(1)).result.map(drop);
    let mut encoded = Vec::new();
    tree.between_groups.encode(&mut encoded);
    let decoded = BetweenGroups::decode(&mut Reader::new(&encoded));
    assert_eq!(decoded.as_ref(), Ok(&tree.between_groups), "it comes back from a snapshot");
    done
}

pub(crate) fn between(tree: &mut Tree, session: SessionId, command: GroupsCommand<'_>) {
    let mut body = Vec::new();
    command.encode(&mut body);
    apply(tree, session, GroupsCommand::OP, &body).unwrap();
}

pub(crate) fn create(tree: &mut Tree, path: &str) -> Result<(), ErrorCode> {
    let mut body = Vec::new();
    encode::create_open(&mut body, path, None, CreateMode::Persistent);
    apply(tree, SESSION, OpCode::Create, &body)
}

/// A name whose slot is in the other group, or in the home group.
pub(crate) fn name(is_in_other: bool, number: usize) -> String {
    let is_such = |name: &String| (slot_of(name).unwrap() < SLOTS / 2) == is_in_other;
    (0..).map(|at| format!("/p/n{at}")).filter(|path| is_such(&path[3..].to_owned())).nth(number).unwrap()
}

pub(crate) fn put_operation(op: OpCode, request: &mut Vec<u8>) {
    request.put_i32(op.code());
    request.put_bool(false);
    request.put_i32(-1);
}

pub(crate) fn put_end(request: &mut Vec<u8>) {
    request.put_i32(-1);
    request.put_bool(true);
    request.put_i32(-1);
}

impl GroupPair {
    pub(crate) fn new() -> GroupPair {
        GroupPair::at_level(FeatureLevel::KNOWN)
    }

    pub(crate) fn at_level(level: FeatureLevel) -> GroupPair {
        let tree = || {
            let mut tree = Tree::new();
            tree.raise_level(&RaisedLevel::known(level));
            tree
        };
        let mut home = tree();
        home.found_groups(2, GroupFounders { voters: vec![1], learners: vec![] });
        home.sessions.insert(SESSION, Session::new(1000, 1));
        create(&mut home, "/p").unwrap();
        between(&mut home, SessionId::NONE, GroupsCommand::Split { path: "/p" });
        let slots = GroupsCommand::Move { path: "/p", first: 0, last: SLOTS / 2 - 1, group: 1 };
        between(&mut home, SessionId::NONE, slots);
        between(&mut home, SESSION, GroupsCommand::Attach { group: 1 });
        let mut pair = GroupPair { home, other: tree(), sent: 0 };
        pair.other.record_relayed_answers();
        pair.send();
        pair
    }

    /// The other group gets its items, and home the votes.
    pub(crate) fn send(&mut self) {
        loop {
            self.prepare();
            let Some((multi, group)) = self.home.awaited_votes().next() else { return };
            let vote = self.other.votes().find(|(of, _)| *of == multi).map(|(_, vote)| vote);
            let vote = GroupsCommand::Vote { multi, group, vote: vote.unwrap() };
            between(&mut self.home, SessionId::NONE, vote);
        }
    }

    pub(crate) fn ask(&mut self, paths: &[&str]) -> i64 {
        assert_eq!(self.try_ask(paths), Ok(()));
        self.home.zxid().0
    }

    pub(crate) fn try_ask(&mut self, paths: &[&str]) -> Result<(), ErrorCode> {
        let mut request = Vec::new();
        for path in paths {
            put_operation(OpCode::Create, &mut request);
            encode::create_open(&mut request, path, None, CreateMode::Persistent);
        }
        put_end(&mut request);
        self.try_ask_for(&request)
    }

    /// Asks for a multi with this body, and returns its number.
    pub(crate) fn ask_for(&mut self, request: &[u8]) -> i64 {
        assert_eq!(self.try_ask_for(request), Ok(()));
        self.home.zxid().0
    }

    pub(crate) fn try_ask_for(&mut self, request: &[u8]) -> Result<(), ErrorCode> {
        let mut body = Vec::new();
        GroupsCommand::Multi { request, enforces_quotas: true }.encode(&mut body);
        apply(&mut self.home, SESSION, GroupsCommand::OP, &body)
    }

    pub(crate) fn end(&self, multi: i64) -> &MultiEnd {
        let outcome = self.home.multi_outcome(SESSION).unwrap();
        assert_eq!(outcome.multi, multi);
        &outcome.end
    }

    /// The other group gets its items.
    pub(crate) fn prepare(&mut self) {
        let stream = self.home.streams().to_group(1).cloned().unwrap_or_default();
        for (number, item) in stream.behind(self.sent) {
            let (decided, item) = (item.decided, StreamItem::decode(&mut Reader::new(&item.bytes)).unwrap());
            between(&mut self.other, SessionId::NONE, GroupsCommand::Item { number, decided, item });
            self.sent = number;
        }
    }
}
