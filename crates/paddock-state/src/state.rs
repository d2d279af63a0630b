//! The tree together with this member's watches: a read looks at it, a write changes it.
//!
//! State stands behind one lock. A read and the watch it sets happen under the read side, a write and the events it
//! fires under the write side, so that no event is missed or overtaken.

use std::sync::Arc;

use paddock_proto::jute::Writer;
use paddock_proto::{
    ErrorCode, EventKind, OpCode, Perms, Read, ReplyHeader, Request, SessionId, SetWatches, WatchEvent,
    WatchRequest, WatcherKind, Write, Xid, Zxid, frame,
};
use paddock_tree::{
    Asker, Command, Guess, InstallError, Installed, LongRemoval, Outcome, Tree, allows, check_reply_bytes,
    multi_read,
};
use parking_lot::Mutex;

use crate::computed;
use crate::computed::MemberFacts;
use crate::watches::{RefusedWatches, WatchLimits, WatchStatistics, WatchSummary, Watches};
use crate::{Client, ConnId, Outboxes, QueuedRead};

#[derive(Debug, Default)]
pub struct State {
    tree: Tree,
    watches: Mutex<Watches>,
    /// Answers for znodes below `/keeper`, which are computed when they are read.
    facts: MemberFacts,
    /// Ephemerals that went with their sessions, if the owner of the state wants to know.
    deaths: Option<Vec<(SessionId, String)>>,
    /// Number of trees that were replaced by others.
    replaced: u64,
}

/// The session that a command ends, with each ephemeral that goes with it.
fn deaths_by(command: &Command<'_>, outcome: &Outcome<'_>) -> Vec<(SessionId, String)> {
    let Some(session) = command.ended_session() else { return Vec::new() };
    let deleted = outcome.changes.iter().filter(|change| change.kind == EventKind::NodeDeleted);
    deleted.map(|change| (session, change.path.to_string())).collect()
}

impl State {
    /// State with this tree and no watches.
    pub fn new(tree: Tree) -> State {
        State { tree, ..State::default() }
    }

    /// Puts another tree in the place of this one, and drops all watches.
    pub fn replace(&mut self, tree: Tree) {
        self.tree = tree;
        self.replaced += 1;
        self.watches.get_mut().drop_all();
    }

    /// Takes over the watches of another state, which equals this one, and what clients are told of this member.
    pub fn take_watches_of(&mut self, other: &mut State) {
        self.watches = std::mem::take(&mut other.watches);
        self.facts = std::mem::take(&mut other.facts);
        self.replaced = other.replaced + 1;
    }

    /// Number of trees that were replaced by others.
    pub(crate) fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Sets what clients are told that ask about this member.
    pub fn set_facts(&mut self, facts: MemberFacts) {
        self.facts = facts;
    }

    /// Sets how many watches there may be.
    pub fn set_watch_limits(&mut self, limits: WatchLimits) {
        self.watches.get_mut().set_limits(limits);
    }

    /// While there is no memory for them, clients set no new watches.
    pub fn refuse_watches(&self, is_refusing: bool) {
        self.watches.lock().refuse_all(is_refusing);
    }

    /// Watches that were refused since this was asked last.
    pub fn take_refused_watches(&self) -> Option<RefusedWatches> {
        self.watches.lock().take_refused()
    }

    pub fn into_tree(self) -> Tree {
        self.tree
    }

    #[inline]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The tree, for changes that no watch can see: snapshots, numbers of batches, the ensemble's members.
    #[inline]
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// Applies a write and tells watchers what it changed.
    #[inline]
    pub fn apply<'a>(&mut self, command: &Command<'a>, out: &mut Outboxes) -> Outcome<'a> {
        let outcome = self.tree.apply(command);
        self.tell(command, &outcome, out);
        outcome
    }

    /// Removes the next portion of what a command removes in several transactions; `None` once the rest is for [`State::apply`].
    pub fn remove_portion(
        &mut self,
        removal: &mut LongRemoval<'_>,
        command: &Command<'_>,
        out: &mut Outboxes,
    ) -> Option<Outcome<'static>> {
        let outcome = removal.remove_portion(&mut self.tree)?;
        self.tell(command, &outcome, out);
        Some(outcome)
    }

    /// Tells watchers what a transaction of a command has changed.
    #[inline]
    fn tell(&mut self, command: &Command<'_>, outcome: &Outcome<'_>, out: &mut Outboxes) {
        let watches = self.watches.get_mut();
        for change in &outcome.changes {
            watches.fire(change, outcome.zxid, out);
        }
        if let Some(deaths) = &mut self.deaths {
            deaths.extend(deaths_by(command, outcome));
        }
    }

    /// From now on the ephemerals that go with their sessions are kept for [`State::take_deaths`].
    pub fn record_deaths(&mut self) {
        self.deaths.get_or_insert_default();
    }

    /// Keeps ephemerals that go with their sessions in what is about to be installed.
    pub fn note_deaths(&mut self, gone: impl IntoIterator<Item = (SessionId, String)>) {
        if let Some(deaths) = &mut self.deaths {
            deaths.extend(gone);
        }
    }

    /// Ephemerals that went with their sessions since they were taken before.
    pub fn take_deaths(&mut self) -> Vec<(SessionId, String)> {
        self.deaths.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Installs znodes as one revision of a store outside made them, and tells their watchers.
    pub fn install(
        &mut self,
        revision: Zxid,
        znodes: &Installed<'_>,
        out: &mut Outboxes,
    ) -> Result<(), InstallError> {
        let watches = self.watches.get_mut();
        for change in &self.tree.install(revision, znodes)? {
            watches.fire(change, revision, out);
        }
        Ok(())
    }

    /// Answers a request that needs no write and has waited for its turn in the engine.
    pub fn answer_queued(&self, read: &QueuedRead, out: &mut Outboxes) {
        let QueuedRead { client, request, op, body } = read;
        out.reply(client.conn, request.slot, |out| {
            self.answer(client, request.xid, *op, body, Guess::NONE, out);
        });
    }

    /// Answers a request that needs no write. Appends whole frames: the reply, and in front of it the catch-up
    /// events of setWatches.
    pub fn answer(
        &self,
        client: &Client,
        xid: Xid,
        op: OpCode,
        body: &[u8],
        guess: Guess,
        out: &mut Vec<u8>,
    ) {
        let zxid = self.tree.zxid();
        let request = match Request::decode(op, body, client.dialect) {
            Ok(request) => request,
            Err(_) => return refuse(xid, zxid, ErrorCode::MarshallingError, out),
        };
        if let Request::Watch(WatchRequest::Set(watches)) = &request {
            self.set_watches(client, watches, out);
        }
        let start = out.len();
        let mut result = Ok(());
        frame::write(out, |out| {
            ReplyHeader { xid, zxid, error: None }.encode(out);
            let before = out.len();
            result = self.answer_body(client, &request, guess, out);
            if result.is_ok() {
                result = check_reply_bytes(out.len() - before);
            }
            // The length of a frame has 31 bits.
            if result.is_err() {
                out.truncate(before);
            }
        });
        if let Err(error) = result {
            out.truncate(start);
            refuse(xid, zxid, error, out);
        }
    }

    fn answer_body(
        &self,
        client: &Client,
        request: &Request<'_>,
        guess: Guess,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        match request {
            Request::Read(read) => self.read(client, read, guess, out),
            Request::Watch(request) => self.watch(client, request, out),
            Request::Sync { path } => {
                out.put_string(path);
                Ok(())
            }
            Request::WhoAmI => {
                who_am_i(client, out);
                Ok(())
            }
            Request::Ping => Ok(()),
            // Where clients may ask for it, it goes through the log.
            Request::Write(Write::Reconfig(_)) => Err(ErrorCode::ReconfigDisabled),
            // The front lets them come here, and not into the log, because the member has no memory for them.
            Request::Write(
                Write::Create(_) | Write::SetData { .. } | Write::SetAcl { .. } | Write::Multi(_),
            ) => Err(ErrorCode::ThrottledOp),
            Request::Write(_) | Request::Auth(_) | Request::Sasl => Err(ErrorCode::Unimplemented),
        }
    }

    fn read(
        &self,
        client: &Client,
        read: &Read<'_>,
        guess: Guess,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        if let Read::MultiRead(reads) = read {
            return multi_read(reads, client.dialect, out, |read, out| {
                self.read(client, read, Guess::NONE, out)
            });
        }
        if let Some(result) = computed::read(read, &self.tree, &self.facts, out) {
            return result;
        }
        let asker = Asker { session: client.session, ids: client.ids(), dialect: client.dialect, guess };
        let result = self.tree.read(read, &asker, out);
        self.watch_read(client, read, result)
    }

    /// Sets the watch that a read with this result asks for. Returns the result, or a refusal if there may be no more watches.
    pub(crate) fn watch_read(
        &self,
        client: &Client,
        read: &Read<'_>,
        result: Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let is_watched = match *read {
            // A client may wait for a znode that does not exist yet.
            Read::Exists { path, watch: true } if matches!(result, Ok(()) | Err(ErrorCode::NoNode)) => {
                self.watches.lock().add_data(client, path)
            }
            Read::GetData { path, watch: true } if result.is_ok() => {
                self.watches.lock().add_data(client, path)
            }
            Read::GetChildren { path, watch: true }
            | Read::GetChildren2 { path, watch: true }
            | Read::FilteredList { path, watch: true, .. }
            | Read::FilteredListWithStatsAndData { path, watch: true, .. }
                if result.is_ok() =>
            {
                self.watches.lock().add_children(client, path)
            }
            _ => true,
        };
        if is_watched { result } else { Err(ErrorCode::ThrottledOp) }
    }

    fn watch(&self, client: &Client, request: &WatchRequest<'_>, out: &mut Vec<u8>) -> Result<(), ErrorCode> {
        let mut watches = self.watches.lock();
        let found = match *request {
            WatchRequest::Set(_) => true,
            WatchRequest::Add { path, mode } => {
                if !watches.add_mode(client, path, mode) {
                    return Err(ErrorCode::ThrottledOp);
                }
                // The one reply whose body is an error code; a client that misses it hangs up.
                out.put_i32(0);
                true
            }
            WatchRequest::Check { path, kind } => watches.contains(client.conn, path, kind),
            WatchRequest::Remove { path, kind } => watches.remove(client.conn, path, kind),
        };
        if found { Ok(()) } else { Err(ErrorCode::NoWatcher) }
    }

    /// Takes over the watches of a client that reconnected; what it missed it is told at once. Of a znode that it may not read it is told
    /// nothing, as by any event, and its watch is set whatever the znode's zxids are: they are not to be found out by asking. A client whose
    /// watches are more than there may be would wait for events in vain: its connection is to be closed.
    pub fn set_watches(&self, client: &Client, asked: &SetWatches<'_>, out: &mut Vec<u8>) {
        let mut watches = self.watches.lock();
        let mut all_set = true;
        let may_read = |path| self.tree.acl(path).is_some_and(|acl| allows(acl, Perms::READ, client.ids()));
        let mut tell = |kind, path| WatchEvent { kind, path, zxid: Zxid::NONE }.encode(out);
        for path in &asked.data {
            match self.tree.stat(path) {
                None => tell(EventKind::NodeDeleted, path),
                Some(stat) if stat.mzxid > asked.relative_zxid && may_read(path) => {
                    tell(EventKind::NodeDataChanged, path);
                }
                Some(_) => all_set &= watches.restore(client, path, WatcherKind::Data),
            }
        }
        for path in &asked.exist {
            match self.tree.stat(path) {
                Some(_) if may_read(path) => tell(EventKind::NodeCreated, path),
                _ => all_set &= watches.restore(client, path, WatcherKind::Data),
            }
        }
        for path in &asked.child {
            match self.tree.stat(path) {
                None => tell(EventKind::NodeDeleted, path),
                Some(stat) if stat.pzxid > asked.relative_zxid && may_read(path) => {
                    tell(EventKind::NodeChildrenChanged, path);
                }
                Some(_) => all_set &= watches.restore(client, path, WatcherKind::Children),
            }
        }
        for path in &asked.persistent {
            all_set &= watches.restore(client, path, WatcherKind::Persistent);
        }
        for path in &asked.persistent_recursive {
            all_set &= watches.restore(client, path, WatcherKind::PersistentRecursive);
        }
        if !all_set {
            watches.close_for_want_of_watches(client.conn);
        }
    }

    /// The client has shown another identity.
    pub fn identify(&self, client: &Client) {
        self.watches.lock().identify(client);
    }

    /// Drops the watches of a connection that is gone, or whose session another connection has taken over.
    pub fn drop_watches(&self, conn: ConnId) {
        self.watches.lock().drop_conn(conn);
    }

    /// Removes some of the watches of connections that are gone; true if there are more. To be called now and then, beside
    /// everything else, until there are none.
    pub fn sweep_watches(&self) -> bool {
        self.watches.lock().sweep()
    }

    /// Connections that watch, with their sessions, in slices that take some microseconds: 0, 1 and so on until `None`. A connection that comes
    /// meanwhile may be missing, and some may be listed twice.
    pub fn watchers(&self, slice: usize) -> Option<Vec<(ConnId, SessionId)>> {
        self.watches.lock().watchers(slice)
    }

    /// Paths whose znodes are watched, each with the connections that do, in slices as of [`State::watchers`]. Connections that are
    /// gone may be among them.
    pub fn watched_paths(&self, slice: usize) -> Option<Vec<(Arc<str>, Vec<ConnId>)>> {
        self.watches.lock().watched_paths(slice)
    }

    pub fn watch_summary(&self) -> WatchSummary {
        self.watches.lock().summary()
    }

    pub fn watch_statistics(&self) -> WatchStatistics {
        self.watches.lock().statistics()
    }

    /// Watches that take memory and count no more, because [`State::sweep_watches`] has not removed them yet.
    pub fn unswept_watches(&self) -> usize {
        self.watches.lock().gone_paths()
    }

    pub fn watch_count(&self) -> usize {
        self.watches.lock().len()
    }
}

fn refuse(xid: Xid, zxid: Zxid, error: ErrorCode, out: &mut Vec<u8>) {
    frame::write(out, |out| ReplyHeader { xid, zxid, error: Some(error) }.encode(out));
}

/// The connection's identities; of a digest only the user's name.
fn who_am_i(client: &Client, out: &mut Vec<u8>) {
    let ids: Vec<_> = client.ids().iter().collect();
    out.put_count(ids.len());
    for (scheme, id) in ids {
        let shown = if scheme == "digest" { id.split(':').next().unwrap_or(id) } else { id };
        out.put_string(scheme);
        out.put_string(shown);
    }
}

#[cfg(test)]
mod tests;
