//! The source: a ZooKeeper that orders writes, and tells of every transaction.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::{IdList, MemberNumber, OpCode, SessionId, Zxid};
use paddock_tree::{AppliedTransaction, Command, Outcome, Tree, Znode};

/// Numbers of the source's member, and of the mirror as the source sees it.
pub(super) const DIRECT: MemberNumber = 1;
pub(super) const MIRROR: MemberNumber = 2;

#[derive(Debug, Default)]
pub(super) struct SourceModel {
    pub(super) tree: Tree,
    /// All transactions, by zxid from 1.
    log: Vec<AppliedTransaction>,
    /// Time at which each session ends unless it is heard, in milliseconds.
    ends_ms: BTreeMap<SessionId, u64>,
}

impl SourceModel {
    pub(super) fn zxid(&self) -> Zxid {
        self.tree.zxid()
    }

    /// Carries out or refuses a write that one of its clients has asked for, or one of the mirror's.
    pub(super) fn write(
        &mut self,
        member: MemberNumber,
        asked: (SessionId, i32),
        op: OpCode,
        body: &[u8],
        now_ms: u64,
    ) -> AppliedTransaction {
        let (session, _) = asked;
        let mut bytes = Vec::new();
        Command::encode(session, now_ms as i64, IdList::NONE, op, body, &mut bytes);
        let command = Command::decode(&bytes).expect("it was just encoded").taken_by(member);
        let outcome = self.tree.apply(&command);
        let transaction = applied(&self.tree, asked, &command, &outcome);
        assert_eq!(transaction.zxid.0, self.log.len() as i64 + 1, "each write has a zxid");
        self.log.push(transaction.clone());
        for (session, timeout_ms) in &transaction.began {
            self.ends_ms.insert(*session, now_ms + *timeout_ms as u64);
        }
        self.ends_ms.retain(|session, _| !transaction.ended.contains(session));
        self.touch(session, now_ms);
        transaction
    }

    /// The session's client is at this member now; false if it has ended.
    pub(super) fn resume(
        &mut self,
        member: MemberNumber,
        session: SessionId,
        timeout_ms: i32,
        now_ms: u64,
    ) -> bool {
        if self.tree.session_timeout_ms(session).is_none() {
            return false;
        }
        self.tree.install_session(session, timeout_ms, member);
        self.touch(session, now_ms);
        true
    }

    /// A session was heard.
    pub(super) fn touch(&mut self, session: SessionId, now_ms: u64) {
        if let Some(timeout_ms) = self.tree.session_timeout_ms(session) {
            self.ends_ms.insert(session, now_ms + timeout_ms as u64);
        }
    }

    /// A session that was not heard for too long.
    pub(super) fn unheard(&self, now_ms: u64) -> Option<SessionId> {
        self.ends_ms.iter().find(|(_, end_ms)| **end_ms < now_ms).map(|(session, _)| *session)
    }

    /// Transactions behind a zxid.
    pub(super) fn behind(&self, zxid: Zxid) -> &[AppliedTransaction] {
        &self.log[zxid.0 as usize..]
    }

    /// The whole state, as a mirror learns it that is too far behind. `znodes`: all of it.
    pub(super) fn copy(&self, znodes: &BTreeMap<String, Znode>) -> Tree {
        let mut tree = Tree::new();
        for (session, timeout_ms) in self.tree.sessions() {
            tree.install_session(session, timeout_ms, MIRROR);
        }
        let znodes: Vec<(&str, Option<Znode>)> =
            znodes.iter().map(|(path, znode)| (path.as_str(), Some(znode.clone()))).collect();
        tree.install(self.zxid(), &znodes).expect("the znodes of a source are a tree");
        tree
    }
}

/// The transaction that a command became.
pub(super) fn applied(
    tree: &Tree,
    asked: (SessionId, i32),
    command: &Command<'_>,
    outcome: &Outcome<'_>,
) -> AppliedTransaction {
    let encode = |reply: &paddock_proto::WriteReply<'_>| {
        let mut body = Vec::new();
        reply.encode(&mut body);
        body
    };
    let answer = outcome.result.as_ref().map(encode).map_err(|error| *error);
    let is_begin = matches!(command.write, Ok(paddock_proto::Write::CreateSession { .. }));
    let began = tree.session_timeout_ms(asked.0).filter(|_| is_begin && answer.is_ok());
    let ended = command.ended_session().filter(|_| answer.is_ok());
    let paths: BTreeSet<&str> = outcome.changes.iter().map(|change| &*change.path).collect();
    AppliedTransaction {
        zxid: outcome.zxid,
        asked,
        answer,
        began: began.map(|timeout_ms| (asked.0, timeout_ms)).into_iter().collect(),
        znodes: paths.into_iter().map(|path| (path.to_owned(), tree.znode(path))).collect(),
        ended: ended.into_iter().collect(),
    }
}
