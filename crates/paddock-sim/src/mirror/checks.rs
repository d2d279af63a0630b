//! Everything that must be true of a mirror: what each transaction may do, and what clients may be told.

use std::collections::{BTreeMap, BTreeSet};

use paddock_chance::Chance;
use paddock_proto::SessionId;
use paddock_tree::{AppliedTransaction, Change, Tree, Znode};

use crate::checks::{Checked, ensure};
use crate::etcd::client::{Ask, EtcdReply as Reply, OpenRequest};
use crate::etcd::history::{Changes, ZnodeStep};

const ONCE: &str = "exactly once";
const ORDER: &str = "session order";

/// A write that a client has asked for.
#[derive(Debug)]
struct AskedWrite {
    session: SessionId,
    ask: Ask,
    /// Zxid that it got, and the path.
    carried_out: Option<(i64, String)>,
    /// A request that must not be carried out any more: it was refused, or its client goes on with the session on another connection.
    has_ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Newest zxid.
    pub(super) newest: i64,
    /// All znodes, as the newest transaction has left them.
    pub(super) znodes: BTreeMap<String, Znode>,
    pub(super) sessions: BTreeSet<SessionId>,
    requests: BTreeMap<u64, AskedWrite>,
    /// Number of the request that was carried out last, of each session.
    last: BTreeMap<SessionId, u64>,
    /// Paths that a client has asked to delete.
    doomed: BTreeSet<String>,
    /// Paths of persistent znodes whose creation was acknowledged.
    acknowledged: BTreeSet<String>,
    /// Everything that watches may tell.
    pub(super) changes: Changes,
}

impl Checks {
    pub(super) fn any_child(&self, directory: &str, chance: &mut Chance) -> Option<String> {
        let below = format!("{directory}/");
        let children: Vec<&String> = self.znodes.keys().filter(|path| path.starts_with(&below)).collect();
        (!children.is_empty()).then(|| (*chance.pick(&children)).clone())
    }

    /// Number of children that a directory has had.
    pub(super) fn children_created(&self, directory: &str) -> i32 {
        self.znodes.get(directory).map_or(0, |znode| znode.children_created)
    }

    /// A client asks for something.
    pub(super) fn asked(&mut self, session: SessionId, number: u64, ask: &Ask) {
        if let Ask::Delete { path } = ask {
            self.doomed.insert(path.clone());
        }
        let request = AskedWrite { session, ask: ask.clone(), carried_out: None, has_ended: false };
        self.requests.insert(number, request);
    }

    /// A client has its session on another connection: whatever was not carried out that it asked for on a former one never will be.
    pub(super) fn connected(&mut self, session: SessionId) {
        for request in self.requests.values_mut().filter(|request| request.session == session) {
            request.has_ended = true;
        }
    }

    /// A transaction was carried out. `told`: the changes that watchers hear of, if it is not told as one revision.
    pub(super) fn observe(
        &mut self,
        transaction: &AppliedTransaction,
        told: Option<Vec<Change<'static>>>,
    ) -> Checked {
        self.newest = transaction.zxid.0;
        self.sessions.extend(transaction.began.iter().map(|(session, _)| *session));
        for (path, has) in &transaction.znodes {
            let had = self.znodes.get(path).cloned();
            self.look_at_znode(path, (had.as_ref(), has.as_ref()), transaction)?;
        }
        let step = |(path, has): &(String, Option<Znode>)| {
            let had = self.znodes.get(path).cloned();
            (path.clone(), had, has.clone())
        };
        let steps: Vec<(String, Option<Znode>, Option<Znode>)> =
            transaction.znodes.iter().map(step).collect();
        let steps: Vec<ZnodeStep<'_>> =
            steps.iter().map(|(path, had, has)| (&**path, had.as_ref(), has.as_ref())).collect();
        match told {
            Some(changes) => self.changes.note_told(self.newest, &steps, changes),
            None => self.changes.note(self.newest, &steps),
        }
        for (path, has) in &transaction.znodes {
            match has {
                Some(znode) => drop(self.znodes.insert(path.clone(), znode.clone())),
                None => drop(self.znodes.remove(path)),
            }
        }
        self.sessions.retain(|session| !transaction.ended.contains(session));
        Ok(())
    }

    fn look_at_znode(
        &mut self,
        path: &str,
        (had, has): (Option<&Znode>, Option<&Znode>),
        transaction: &AppliedTransaction,
    ) -> Checked {
        let zxid = self.newest;
        let Some(has) = has else {
            let owner = had.and_then(Znode::owner);
            let is_right = match owner {
                Some(owner) => transaction.ended.contains(&owner),
                None => self.doomed.contains(path),
            };
            ensure!(is_right, ONCE, "{path} is deleted at zxid {zxid}, and nobody asked for that");
            return Ok(());
        };
        let data = has.data.as_deref().and_then(|data| data.try_into().ok());
        let Some(number) = data.map(u64::from_be_bytes).filter(|_| has.mzxid == zxid) else { return Ok(()) };
        let Some(request) = self.requests.get_mut(&number) else {
            ensure!(false, ONCE, "{path} holds {number} at zxid {zxid}, and nobody asked for that");
            return Ok(());
        };
        let (session, earlier) = (request.session, request.carried_out.replace((zxid, path.to_owned())));
        ensure!(
            earlier.is_none(),
            ONCE,
            "request {number} is carried out at {zxid} for {path}, and was at {earlier:?}"
        );
        ensure!(
            !request.has_ended && self.sessions.contains(&session),
            ORDER,
            "request {number} of session {session} is carried out at {zxid}, and its client has gone on or its session has ended"
        );
        let last = self.last.insert(session, number).unwrap_or(0);
        ensure!(
            last < number,
            ORDER,
            "request {number} of session {session} is carried out at {zxid}, after request {last}"
        );
        Ok(())
    }

    /// A client reads a reply to a request, from a server that shows `tree`.
    pub(super) fn replied(&mut self, waiting: &OpenRequest, reply: &Reply<'_>, tree: &Tree) -> Checked {
        let OpenRequest { number, ask, asked_at, .. } = waiting;
        let shown = tree.zxid().0;
        ensure!(
            shown >= reply.zxid,
            "own writes",
            "request {number} is answered with zxid {}, and {shown} is shown",
            reply.zxid
        );
        match ask {
            Ask::Sync => ensure!(
                shown >= *asked_at,
                "sync",
                "sync {number} was asked at zxid {asked_at}, and {shown} is shown"
            ),
            Ask::Read { path, number: written } => ensure!(
                reply.error == 0 && reply.number() == Some(*written),
                "own writes",
                "{path} of request {written} is read as {:?}, error {}",
                reply.number(),
                reply.error
            ),
            Ask::Close => {
                let session = self.requests[number].session;
                let is_there = tree.session_timeout_ms(session).is_some();
                ensure!(
                    !is_there && tree.ephemerals_of(session).is_empty(),
                    "sessions",
                    "session {session} is closed, and something of it is there"
                );
            }
            Ask::Create { .. } | Ask::Set { .. } | Ask::Delete { .. } => self.written(*number, reply)?,
            _ => {}
        }
        Ok(())
    }

    fn written(&mut self, number: u64, reply: &Reply<'_>) -> Checked {
        let request = self.requests.get_mut(&number).expect("it was asked for");
        let AskedWrite { ask, carried_out, .. } = &*request;
        ensure!(reply.error == 0, ONCE, "request {number}, {ask:?}, is refused: {reply:?}");
        if let Ask::Delete { path } = ask {
            let is_gone = !self.znodes.contains_key(path);
            ensure!(is_gone, ONCE, "request {number} has deleted {path}, which is there");
            return Ok(());
        }
        let is_right = carried_out.as_ref().is_some_and(|(zxid, path)| {
            *zxid == reply.zxid && (matches!(ask, Ask::Set { .. }) || reply.path() == Some(path))
        });
        ensure!(
            is_right,
            ONCE,
            "request {number} was carried out at {carried_out:?}, and its client is told {reply:?}"
        );
        if let (Ask::Create { is_ephemeral: false, .. }, Some(path)) = (ask, reply.path()) {
            self.acknowledged.insert(path.to_owned());
        }
        Ok(())
    }

    /// A state that has come as far as the newest transaction is what the transactions have made.
    pub(super) fn check_state(&self, tree: &Tree) -> Checked {
        if tree.zxid().0 != self.newest {
            return Ok(());
        }
        let wrong = self.znodes.iter().find(|(path, znode)| tree.znode(path).as_ref() != Some(*znode));
        ensure!(
            wrong.is_none(),
            "convergence",
            "at zxid {} the state is not as it should be: {wrong:?}",
            self.newest
        );
        let sessions: BTreeSet<SessionId> = tree.sessions().map(|(session, _)| session).collect();
        ensure!(
            sessions == self.sessions && tree.node_count() == Tree::new().node_count() + self.own_znodes(),
            "convergence",
            "at zxid {} there are sessions {sessions:?} and {} znodes; it should be {:?}",
            self.newest,
            tree.node_count(),
            self.sessions
        );
        Ok(())
    }

    fn own_znodes(&self) -> usize {
        self.znodes.keys().filter(|path| path.as_str() != "/").count()
    }

    /// Nothing is lost that was acknowledged.
    pub(super) fn check_acknowledged(&self, tree: &Tree) -> Checked {
        let mut kept = self.acknowledged.iter().filter(|path| !self.doomed.contains(*path));
        let lost = kept.find(|path| tree.znode(path).is_none());
        ensure!(lost.is_none(), ONCE, "{lost:?} was acknowledged, and is not there");
        Ok(())
    }
}
