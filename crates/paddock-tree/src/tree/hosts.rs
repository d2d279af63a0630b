//! Hosts in a state: those that the home group decides on, and the writes that a group takes through them.

use paddock_proto::{ErrorCode, MemberNumber, SessionId, StreamItem};

use super::Tree;

impl Tree {
    /// The host that a member has for a group, if this is the home group's state.
    pub fn host_of(&self, guest: MemberNumber, group: u32) -> Option<MemberNumber> {
        self.hosts.decided.get(&(guest, group)).copied()
    }

    /// Number of decisions about hosts that were carried out on this state since it was made or loaded, if it is the home group's.
    pub fn host_decisions(&self) -> u64 {
        self.host_decisions
    }

    /// The host that this group, which is not the home group, knows a member to have.
    pub fn host_here(&self, guest: MemberNumber) -> Option<MemberNumber> {
        self.hosts.received.get(&guest).copied()
    }

    /// Refuses a write that comes from the member itself which serves its session, if that member has a host, or the session has not come since it came through one.
    pub(crate) fn check_guest(&self, session: SessionId, member: MemberNumber) -> Result<(), ErrorCode> {
        let is_right = !self.hosts.received.contains_key(&member) && self.has_come(session);
        if self.session_owner(session) == Some(member) && !is_right {
            return Err(ErrorCode::SessionMoved);
        }
        Ok(())
    }

    /// True if the group takes writes of a session from the member that serves it, as far as hosts are concerned; else it has to come with its moves first.
    pub fn has_come(&self, session: SessionId) -> bool {
        self.hosts.has_come((session, self.session_moves(session)))
    }

    /// The number of moves that a session had when it came last, if it ever came through a host of this group.
    pub fn came_through(&self, session: SessionId) -> Option<u32> {
        self.hosts.through.get(&session).copied()
    }

    /// A session comes through the host of its owner, or to its owner, with the moves that it has now; if it has moved on, it does not.
    pub(crate) fn come_through(
        &mut self,
        id: SessionId,
        member: MemberNumber,
        moves: u32,
    ) -> Result<(), ErrorCode> {
        let known = self.sessions.get(&id).ok_or(ErrorCode::SessionExpired)?;
        if known.moves != moves {
            return Err(ErrorCode::SessionMoved);
        }
        self.hosts.come_through((id, moves), (known.owner, member))
    }

    /// A guest is to have this host for a group, or, if it is its own, none: the group is told.
    pub(crate) fn decide_host(&mut self, guest: MemberNumber, group: u32, host: MemberNumber) {
        let is_group = (1..self.groups.count()).contains(&group);
        let are_numbers = [guest, host].into_iter().all(|member| i32::try_from(member).is_ok());
        let is_new = self.host_of(guest, group).unwrap_or(guest) != host;
        if is_group && are_numbers && is_new {
            self.host_decisions += 1;
            if guest == host {
                self.hosts.decided.remove(&(guest, group));
            } else {
                self.hosts.decided.insert((guest, group), host);
            }
            self.between_groups.streams.push(group, self.zxid, &StreamItem::Host { guest, host });
        }
    }

    /// The home group has decided who the host of a guest is.
    pub(crate) fn receive_host(&mut self, guest: MemberNumber, host: MemberNumber) {
        // The host may have been the guest's before, and something that came through it then may be late.
        let Tree { hosts, sessions, .. } = self;
        hosts.through.retain(|id, _| sessions.contains_key(id));
        hosts.forget_host(|id| sessions.get(&id).is_some_and(|session| session.owner == guest));
        if guest == host {
            self.hosts.received.remove(&guest);
        } else {
            self.hosts.received.insert(guest, host);
        }
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::{CreateMode, GroupsCommand, IdList, OpCode, encode};

    use paddock_proto::jute::Reader;

    use super::*;
    use crate::features::{FeatureLevel, RaisedLevel};
    use crate::hosts::Hosts;
    use crate::{Command, GroupFounders};

    const SESSION: SessionId = SessionId(7);
    /// Serves the session, and has no replica of the other group.
    const GUEST: MemberNumber = 1;

    struct Pair {
        home: Tree,
        other: Tree,
    }

    fn apply(
        tree: &mut Tree,
        (session, member): (SessionId, MemberNumber),
        op: OpCode,
        body: &[u8],
    ) -> Option<ErrorCode> {
        let mut bytes = Vec::new();
        Command::encode(session, 5, IdList::NONE, op, body, &mut bytes);
        let command = Command { member, ..Command::decode(&bytes).unwrap() };
        tree.apply(&command).result.err()
    }

    impl Pair {
        fn new() -> Pair {
            let tree = || {
                let mut tree = Tree::new();
                tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
                tree
            };
            let mut pair = Pair { home: tree(), other: tree() };
            pair.home.found_groups(2, GroupFounders::default());
            let created =
                apply(&mut pair.home, (SESSION, GUEST), OpCode::CreateSession, &1000_i32.to_be_bytes());
            assert_eq!(created, None);
            pair.decide(SESSION, &GroupsCommand::Attach { group: 1 });
            let mut body = Vec::new();
            encode::create_open(&mut body, "/p", None, CreateMode::Persistent);
            assert_eq!(apply(&mut pair.home, (SESSION, GUEST), OpCode::Create, &body), None);
            pair.decide(SessionId::NONE, &GroupsCommand::Split { path: "/p" });
            let (path, first, last) = ("/p", 0, crate::SLOTS - 1);
            pair.decide(SessionId::NONE, &GroupsCommand::Move { path, first, last, group: 1 });
            pair
        }

        /// A command of the home group, whose items the other group applies.
        fn decide(&mut self, session: SessionId, command: &GroupsCommand<'_>) {
            let mut body = Vec::new();
            command.encode(&mut body);
            assert_eq!(apply(&mut self.home, (session, GUEST), GroupsCommand::OP, &body), None);
            let stream = self.home.streams().to_group(1).cloned().unwrap();
            for (number, item) in stream.behind(self.other.received_items()) {
                let decided = item.decided;
                let item = StreamItem::decode(&mut Reader::new(&item.bytes)).unwrap();
                let mut body = Vec::new();
                GroupsCommand::Item { number, decided, item }.encode(&mut body);
                assert_eq!(apply(&mut self.other, (SessionId::NONE, 3), GroupsCommand::OP, &body), None);
            }
        }

        fn host(&mut self, host: MemberNumber) {
            self.decide(SessionId::NONE, &GroupsCommand::Host { guest: GUEST, group: 1, host });
        }

        fn come_through(&mut self, member: MemberNumber, moves: u32) -> Option<ErrorCode> {
            let mut body = Vec::new();
            GroupsCommand::Through { moves }.encode(&mut body);
            apply(&mut self.other, (SESSION, member), GroupsCommand::OP, &body)
        }

        /// The session writes through a member.
        fn write_through(&mut self, member: MemberNumber) -> Option<ErrorCode> {
            let mut body = Vec::new();
            encode::create_open(&mut body, "/p/a", None, CreateMode::Persistent);
            self.write(member, &body)
        }

        fn write(&mut self, member: MemberNumber, body: &[u8]) -> Option<ErrorCode> {
            apply(&mut self.other, (SESSION, member), OpCode::Create, body)
                .filter(|error| *error != ErrorCode::NodeExists)
        }
    }

    #[test]
    fn a_group_takes_writes_through_the_host_of_the_owner_alone() {
        let mut pair = Pair::new();
        assert_eq!(pair.write_through(GUEST), None);
        for host in [2, 3] {
            pair.host(host);
            assert_eq!(pair.write_through(host), Some(ErrorCode::SessionMoved), "it has not come through");
            assert_eq!(pair.come_through(1, 0), Some(ErrorCode::SessionMoved), "that is no host");
            assert_eq!(pair.come_through(host, 1), Some(ErrorCode::SessionMoved), "it has not moved yet");
            assert_eq!(pair.come_through(host, 0), None);
            assert_eq!((pair.home.host_of(GUEST, 1), pair.other.host_here(GUEST)), (Some(host), Some(host)));
            for member in 1..=3 {
                let refused = (member != host).then_some(ErrorCode::SessionMoved);
                assert_eq!(pair.write_through(member), refused, "through {member}, the host is {host}");
            }
        }
        pair.host(GUEST);
        assert_eq!((pair.home.host_of(GUEST, 1), pair.other.host_here(GUEST)), (None, None));
        assert_eq!(pair.write_through(GUEST), Some(ErrorCode::SessionMoved), "what a host has may be late");
        assert_eq!((pair.come_through(GUEST, 0), pair.write_through(GUEST)), (None, None));
    }

    #[test]
    fn a_late_write_through_a_host_is_refused_when_its_session_has_moved_on() {
        let mut pair = Pair::new();
        pair.host(2);
        assert_eq!((pair.come_through(2, 0), pair.write_through(2)), (None, None));
        let mut body = Vec::new();
        encode::resume_session(&mut body, 1000, false, false, Some(0));
        assert_eq!(apply(&mut pair.home, (SESSION, GUEST), OpCode::ResumeSession, &body), None);
        pair.decide(SessionId::NONE, &GroupsCommand::Host { guest: 9, group: 1, host: 8 });
        assert_eq!(pair.other.session_moves(SESSION), 1);
        assert_eq!(pair.write_through(2), Some(ErrorCode::SessionMoved));
        assert_eq!((pair.come_through(2, 1), pair.write_through(2)), (None, None));
    }

    /// A write that a member hands over as a host is one of its own batches, and may be late.
    #[test]
    fn a_late_write_through_a_host_is_refused_when_its_session_has_moved_to_the_host() {
        for has_other_host in [false, true] {
            let mut pair = Pair::new();
            pair.host(2);
            assert_eq!((pair.come_through(2, 0), pair.write_through(2)), (None, None));
            if has_other_host {
                pair.host(3);
            }
            let mut body = Vec::new();
            encode::resume_session(&mut body, 1000, false, false, Some(0));
            assert_eq!(apply(&mut pair.home, (SESSION, 2), OpCode::ResumeSession, &body), None);
            pair.decide(SessionId::NONE, &GroupsCommand::Host { guest: 9, group: 1, host: 8 });
            assert_eq!(pair.other.session_owner(SESSION), Some(2));
            assert!(!pair.other.has_come(SESSION));
            assert_eq!(pair.write_through(2), Some(ErrorCode::SessionMoved));
            assert_eq!((pair.come_through(2, 1), pair.write_through(2)), (None, None));
            assert!(pair.other.has_come(SESSION));
        }
    }

    #[test]
    fn the_same_host_again_is_no_item_and_unknown_groups_have_none() {
        let mut pair = Pair::new();
        pair.host(2);
        let items = pair.home.streams().to_group(1).unwrap().last();
        pair.host(2);
        pair.decide(SessionId::NONE, &GroupsCommand::Host { guest: GUEST, group: 0, host: 2 });
        pair.decide(SessionId::NONE, &GroupsCommand::Host { guest: GUEST, group: 9, host: 2 });
        pair.decide(SessionId::NONE, &GroupsCommand::Host { guest: GUEST, group: 1, host: u32::MAX });
        assert_eq!(pair.home.streams().to_group(1).unwrap().last(), items);
        assert_eq!((pair.home.host_of(GUEST, 0), pair.home.host_of(GUEST, 9)), (None, None));
    }

    #[test]
    fn hosts_are_a_part_of_snapshots_and_of_digests() {
        let mut pair = Pair::new();
        let before = pair.home.digest();
        pair.host(2);
        assert_ne!(pair.home.digest(), before);
        for tree in [&mut pair.home, &mut pair.other] {
            let mut bytes = Vec::new();
            tree.hosts.encode(&mut bytes);
            assert_eq!(Hosts::decode(&mut Reader::new(&bytes)).as_ref(), Ok(&tree.hosts));
        }
        pair.host(GUEST);
        assert_eq!(pair.home.hosts.digest(), 0);
    }
}
