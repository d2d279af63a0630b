//! The tree together with this member's watches: a read looks at it, a write changes it.
//!
//! State stands behind one lock. A read and the watch it sets happen under the read side, a write and the events it
//! fires under the write side, so that no event is missed or overtaken.

use paddock_proto::jute::Writer;
use paddock_proto::{
    ErrorCode, EventKind, OpCode, Read, ReplyHeader, Request, SessionId, SetWatches, WatchRequest, Write,
    Xid, Zxid, frame,
};
use paddock_tree::{
    Asker, Command, Guess, InstallError, Installed, LongRemoval, MISPLACED, Outcome, Tree, check_reply_bytes,
    multi_read,
};

use crate::computed;
use crate::computed::MemberFacts;
use crate::watches::ZnodeMarks;
use crate::{Client, Outboxes, QueuedRead, WatchTable};

#[derive(Debug, Default)]
pub struct State {
    tree: Tree,
    /// The table of the member, which may have other states.
    watches: WatchTable,
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
    /// State with this tree, and the table of a member that has no other state.
    pub fn new(tree: Tree) -> State {
        State::of_member(tree, WatchTable::default())
    }

    /// State with this tree, whose changes are told to those who watch in the table of its member.
    pub fn of_member(tree: Tree, watches: WatchTable) -> State {
        State { tree, watches, ..State::default() }
    }

    /// The watch table of the member.
    #[inline]
    pub fn watches(&self) -> &WatchTable {
        &self.watches
    }

    /// From now on changes are told to those who watch in this table, which is that of the member.
    pub fn share_watches(&mut self, watches: &WatchTable) {
        self.watches = watches.clone();
    }

    /// Puts another tree in the place of this one. Watches stay: others than this state fire them, too.
    pub fn replace_tree(&mut self, mut tree: Tree) {
        tree.record_as(&self.tree);
        self.tree = tree;
        self.replaced += 1;
    }

    /// Puts another tree in the place of this one, and drops all watches.
    pub fn replace(&mut self, tree: Tree) {
        self.tree = tree;
        self.replaced += 1;
        self.watches.lock().drop_all();
    }

    /// Takes the place of another state of the same member, which equals this one: with its watch table, and what clients are told of the
    /// member.
    pub fn take_place_of(&mut self, other: &mut State) {
        self.tree.record_as(&other.tree);
        self.watches = other.watches.clone();
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
        self.watches.fire(&outcome.changes, outcome.zxid, out);
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
        let changes = self.tree.install(revision, znodes)?;
        self.watches.fire(&changes, revision, out);
        Ok(())
    }

    /// Answers a request that needs no write and has waited for its turn in the engine.
    pub fn answer_queued(&self, read: &QueuedRead, out: &mut Outboxes) {
        let QueuedRead { client, request, op, body, refusal } = read;
        let is_elsewhere = self.tree.are_znodes_spread() && self.is_elsewhere(client, *op, body);
        let refusal = if is_elsewhere { &Some(MISPLACED) } else { refusal };
        out.reply(client.conn, request.slot, |out| match refusal {
            Some(error) => self.refuse(request.xid, *error, out),
            None => self.answer(client, request.xid, *op, body, Guess::NONE, out),
        });
    }

    /// True if a read is about a znode of another group, or sets watches of one again. It came here before the znode went there.
    #[cold]
    fn is_elsewhere(&self, client: &Client, op: OpCode, body: &[u8]) -> bool {
        match Request::decode(op, body, client.dialect) {
            Ok(Request::Read(read)) => !self.tree.has_places_of(&read),
            Ok(Request::Watch(WatchRequest::Set(SetWatches { data, exist, child, .. }))) => {
                let has_list =
                    |path: &&str| self.tree.has_places_of(&Read::GetChildren { path, watch: false });
                let has_znodes = data.iter().chain(&exist).all(|path| self.tree.has_place_of(path));
                !has_znodes || !child.iter().all(has_list)
            }
            _ => false,
        }
    }

    /// Answers a request with an error: a whole frame.
    pub fn refuse(&self, xid: Xid, error: ErrorCode, out: &mut Vec<u8>) {
        frame::write(out, |out| {
            ReplyHeader { xid, zxid: self.tree.zxid(), error: Some(error) }.encode(out);
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
        let request = match Request::decode(op, body, client.dialect) {
            Ok(request) => request,
            Err(_) => return self.refuse(xid, ErrorCode::MarshallingError, out),
        };
        if let Request::Watch(WatchRequest::Set(watches)) = &request {
            self.set_watches(client, watches, out);
        }
        self.write_answer(xid, self.zxid_of_answer(&request), out, |out| {
            self.answer_body(client, &request, guess, out)
        });
    }

    /// Zxid of the answer to a request: the last one, or the largest one in what is shown where those of several groups have to be compared.
    #[inline]
    fn zxid_of_answer(&self, request: &Request<'_>) -> Zxid {
        match request {
            Request::Read(read) if self.tree.are_znodes_spread() => self.tree.shown_by(read),
            _ => self.tree.zxid(),
        }
    }

    /// Appends the frame of an answer with this zxid, whose body `write` appends, or of the error that it returns.
    #[inline]
    pub fn write_answer(
        &self,
        xid: Xid,
        zxid: Zxid,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), ErrorCode>,
    ) {
        let start = out.len();
        let mut result = Ok(());
        frame::write(out, |out| {
            ReplyHeader { xid, zxid, error: None }.encode(out);
            let before = out.len();
            result = write(out);
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
            frame::write(out, |out| ReplyHeader { xid, zxid, error: Some(error) }.encode(out));
        }
    }

    /// Appends the body of the answer to a request that changes nothing, and sets the watch that it asks for.
    pub fn answer_body(
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
            Request::Write(_) | Request::Auth(_) | Request::Sasl => Err(ErrorCode::Unimplemented),
        }
    }

    /// Appends the body of the answer to a read, and sets the watch that it asks for.
    pub fn read(
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
    pub fn watch_read(
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
        self.watches.restore(client, asked, |path| ZnodeMarks::of(&self.tree, path, client), out);
    }
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
