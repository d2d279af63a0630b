//! Everything that must be true of front ends on etcd: what each revision may hold, and what clients may be told.

mod contact;
mod states;

use std::collections::{BTreeMap, BTreeSet};

use paddock_chance::Chance;
use paddock_etcd::{Key, KeyEvent, Keys, decode_znode};
use paddock_proto::{Password, SessionId, parent_and_name};
use paddock_state::{ConnId, State};
use paddock_tree::Znode;

use super::client::{Ask, EtcdReply, OpenRequest, QUOTA_EXCEEDED};
use super::history::{Changes, ZnodeStep};
use super::store::EtcdModel;
use crate::checks::{Checked, Violation, ensure};

const ONCE: &str = "exactly once";
const ORDER: &str = "session order";
const PARENTS: &str = "parents";
const OWN_WRITES: &str = "own writes";
const SYNC: &str = "sync";
const CONVERGENCE: &str = "convergence";

/// A write that a client has asked for.
#[derive(Debug)]
struct AskedWrite {
    session: SessionId,
    conn: ConnId,
    ask: Ask,
    /// Revision that shows it, and the path.
    carried_out: Option<(i64, String)>,
    end: Option<End>,
}

/// Reason why a request must not be carried out any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its client was told that it is not.
    Refused,
    /// Its client goes on with the session on another connection.
    LeftBehind,
}

/// All checkers. They see each revision of the store as soon as it is there.
#[derive(Debug)]
pub(crate) struct Checks {
    keys: Keys,
    /// Newest revision that was looked at.
    revision: i64,
    /// Newest revision that changed a znode.
    newest: i64,
    znodes: BTreeMap<String, Znode>,
    sessions: BTreeSet<SessionId>,
    /// Sessions that end in the revision that is looked at.
    ending: BTreeSet<SessionId>,
    requests: BTreeMap<u64, AskedWrite>,
    /// Password that clients were told, of each session.
    passwords: BTreeMap<SessionId, Password>,
    /// Number of the request that was carried out last, of each session.
    last: BTreeMap<SessionId, u64>,
    /// Paths that a client has asked to delete.
    doomed: BTreeSet<String>,
    /// Everything that watches may tell.
    pub(super) changes: Changes,
    /// Times at which revisions were made, for the contact that front ends claim.
    pub(super) contact: contact::EtcdContactCheck,
}

impl Checks {
    pub(crate) fn new(keys: Keys) -> Checks {
        Checks {
            keys,
            revision: 0,
            newest: 0,
            znodes: BTreeMap::new(),
            sessions: BTreeSet::new(),
            ending: BTreeSet::new(),
            requests: BTreeMap::new(),
            passwords: BTreeMap::new(),
            last: BTreeMap::new(),
            doomed: BTreeSet::new(),
            changes: Changes::default(),
            contact: contact::EtcdContactCheck::default(),
        }
    }

    pub(crate) fn newest(&self) -> i64 {
        self.newest
    }

    /// Number of children that a directory has had.
    pub(crate) fn children_created(&self, directory: &str) -> i32 {
        self.znodes.get(directory).map_or(0, |znode| znode.children_created)
    }

    pub(crate) fn any_child(&self, directory: &str, chance: &mut Chance) -> Option<String> {
        let is_child = |path: &&String| parent_and_name(path).is_some_and(|(parent, _)| parent == directory);
        let children: Vec<&String> = self.znodes.keys().filter(is_child).collect();
        (!children.is_empty()).then(|| (*chance.pick(&children)).clone())
    }

    /// A client asks for something.
    pub(crate) fn asked(&mut self, session: SessionId, conn: ConnId, number: u64, ask: &Ask) {
        if let Ask::Delete { path } = ask {
            self.doomed.insert(path.clone());
        }
        let request = AskedWrite { session, conn, ask: ask.clone(), carried_out: None, end: None };
        self.requests.insert(number, request);
    }

    /// A client is told its password, which is the same at all front ends.
    pub(crate) fn check_password(&mut self, session: SessionId, password: Password) -> Checked {
        let known = self.passwords.entry(session).or_insert(password);
        ensure!(*known == password, "sessions", "session {session} has another password than before");
        Ok(())
    }

    /// A client is told that it has its session on this connection.
    pub(crate) fn connected(&mut self, session: SessionId, conn: ConnId) {
        let earlier = self
            .requests
            .values_mut()
            .filter(|request| request.session == session && request.conn != conn && request.end.is_none());
        earlier.for_each(|request| request.end = Some(End::LeftBehind));
    }

    /// Looks at the revisions of the store that are new.
    pub(crate) fn observe(&mut self, store: &EtcdModel, now_ms: u64) -> Checked {
        while let Some(events) = store.revision_from(self.revision + 1) {
            self.revision = events[0].mod_revision;
            self.contact.note(self.revision, now_ms);
            self.observe_revision(events)?;
        }
        store.check_leases()
    }

    fn observe_revision(&mut self, events: &[KeyEvent]) -> Checked {
        let mut numbers = Vec::new();
        let mut children: BTreeMap<String, i32> = BTreeMap::new();
        self.ending = events
            .iter()
            .filter(|event| event.value.is_none())
            .filter_map(|event| self.session(event))
            .collect();
        let before: BTreeMap<String, Option<Znode>> = self.znodes_before(events);
        let mut changed: Vec<String> = Vec::new();
        for event in events {
            let Some(Key::Znode(path)) = self.keys.parse(&event.key) else { continue };
            changed.push(path.to_owned());
            self.newest = self.revision;
            let after = event.value.as_deref().map(|value| self.decode(path, value)).transpose()?;
            let had = before.get(path).and_then(Option::as_ref);
            self.look_at_children(path, (had, after.as_ref()), &mut children);
            numbers.extend(self.look_at_znode(path, (had, after.as_ref()))?);
            match after {
                Some(znode) => drop(self.znodes.insert(path.to_owned(), znode)),
                None => drop(self.znodes.remove(path)),
            }
        }
        self.check_parents(&before, &children)?;
        let steps: Vec<ZnodeStep<'_>> =
            changed.iter().map(|path| (&**path, before[path].as_ref(), self.znodes.get(path))).collect();
        self.changes.note(self.revision, &steps);
        for number in numbers {
            let last =
                self.requests.get(&number).map(|request| self.last.entry(request.session).or_default());
            last.into_iter().for_each(|last| *last = number.max(*last));
        }
        let begun =
            events.iter().filter(|event| event.value.is_some()).filter_map(|event| self.session(event));
        let begun: Vec<SessionId> = begun.collect();
        self.sessions.extend(begun);
        self.sessions.retain(|session| !self.ending.contains(session));
        Ok(())
    }

    fn decode(&self, path: &str, value: &[u8]) -> Checked<Znode> {
        let wrong = |error| Violation { checker: CONVERGENCE, what: format!("{path} is no znode: {error}") };
        Ok(decode_znode(value, self.revision).map_err(wrong)?.0)
    }

    /// Znodes of which a revision says something, and their parents, before it.
    fn znodes_before(&self, events: &[KeyEvent]) -> BTreeMap<String, Option<Znode>> {
        let mut before = BTreeMap::new();
        for event in events {
            let Some(Key::Znode(path)) = self.keys.parse(&event.key) else { continue };
            let parent = parent_and_name(path).map(|(parent, _)| parent);
            for path in [Some(path), parent].into_iter().flatten() {
                before.insert(path.to_owned(), self.znodes.get(path).cloned());
            }
        }
        before
    }

    fn session(&self, event: &KeyEvent) -> Option<SessionId> {
        match self.keys.parse(&event.key) {
            Some(Key::Session(session)) => Some(session),
            _ => None,
        }
    }

    fn look_at_children(
        &self,
        path: &str,
        (had, has): (Option<&Znode>, Option<&Znode>),
        children: &mut BTreeMap<String, i32>,
    ) {
        let is_new = has.is_some_and(|has| had.is_none_or(|had| had.czxid != has.czxid));
        if let Some((parent, _)) = parent_and_name(path)
            && (is_new || has.is_none())
        {
            *children.entry(parent.to_owned()).or_default() += i32::from(is_new);
        }
    }

    /// A parent whose children come or go has counters that say so, in the same revision.
    fn check_parents(
        &self,
        before: &BTreeMap<String, Option<Znode>>,
        children: &BTreeMap<String, i32>,
    ) -> Checked {
        for (parent, created) in children {
            let (Some(Some(before)), Some(after)) = (before.get(parent), self.znodes.get(parent)) else {
                continue;
            };
            let revision = self.revision;
            ensure!(
                after.pzxid == revision && after.children_created == before.children_created + created,
                PARENTS,
                "children of {parent} came or went in revision {revision}, {created} came; its pzxid is {}, {} had come \
                 before and now it says {}",
                after.pzxid,
                before.children_created,
                after.children_created
            );
        }
        Ok(())
    }

    /// Returns the number of the request that the change of a znode shows, if it is one of a client.
    fn look_at_znode(
        &mut self,
        path: &str,
        (had, has): (Option<&Znode>, Option<&Znode>),
    ) -> Checked<Option<u64>> {
        let revision = self.revision;
        let Some(has) = has else {
            let owner = had.and_then(Znode::owner);
            let has_ended = |session| !self.sessions.contains(&session) || self.ending.contains(&session);
            let is_right = owner.map_or(self.doomed.contains(path), has_ended);
            ensure!(is_right, ONCE, "{path} is deleted in revision {revision}, and nobody asked for that");
            return Ok(None);
        };
        if has.czxid != revision && has.mzxid != revision {
            return Ok(None);
        }
        let data = has.data.as_deref().and_then(|data| data.try_into().ok());
        let Some(number) = data.map(u64::from_be_bytes) else { return Ok(None) };
        if let Some(had) = had {
            let is_next = has.czxid == had.czxid && has.version == had.version + 1;
            ensure!(
                is_next,
                ONCE,
                "{path} of request {number} is written over in revision {revision}: {had:?}"
            );
        }
        self.carried_out(number, path)?;
        Ok(Some(number))
    }

    fn carried_out(&mut self, number: u64, path: &str) -> Checked {
        let revision = self.revision;
        let Some(request) = self.requests.get_mut(&number) else {
            let what = format!("{path} holds {number} in revision {revision}, and nobody asked for that");
            return Err(Violation { checker: ONCE, what });
        };
        let session = request.session;
        if let Some((earlier, other)) = &request.carried_out {
            let what = format!(
                "request {number} is carried out in revision {revision} at {path}, and was in {earlier} at {other}"
            );
            return Err(Violation { checker: ONCE, what });
        }
        request.carried_out = Some((revision, path.to_owned()));
        match request.end {
            Some(End::Refused) => {
                let what = format!("request {number} is carried out in revision {revision}, and was refused");
                return Err(Violation { checker: ONCE, what });
            }
            Some(End::LeftBehind) => {
                let what = format!(
                    "request {number} of session {session} is carried out in revision {revision}, after its client went \
                     on with another connection"
                );
                return Err(Violation { checker: ORDER, what });
            }
            None => {}
        }
        ensure!(
            self.sessions.contains(&session),
            ORDER,
            "request {number} is carried out in revision {revision}, after its session {session} ended"
        );
        let last = self.last.get(&session).copied().unwrap_or(0);
        ensure!(
            last < number,
            ORDER,
            "request {number} of session {session} is carried out in revision {revision}, after request {last}"
        );
        Ok(())
    }

    /// A client reads a reply to a request; `state` is the one that it can read now.
    pub(crate) fn replied(&mut self, waiting: &OpenRequest, reply: &EtcdReply<'_>, state: &State) -> Checked {
        let OpenRequest { number, ask, asked_at, .. } = waiting;
        let shown = state.tree().zxid().0;
        match ask {
            Ask::Sync => {
                let is_right = shown >= *asked_at || reply.error == QUOTA_EXCEEDED;
                ensure!(
                    is_right,
                    SYNC,
                    "sync {number} was asked at revision {asked_at}, and {shown} is shown"
                );
                Ok(())
            }
            Ask::Read { path, number: written } => {
                let found = reply.number();
                let is_right = reply.error == 0 && found == Some(*written);
                let error = reply.error;
                ensure!(
                    is_right,
                    OWN_WRITES,
                    "{path} of request {written} is read as {found:?}, error {error}"
                );
                Ok(())
            }
            Ask::Close if reply.error == 0 => {
                let session = self.requests[number].session;
                let left = state.tree().ephemerals_of(session);
                ensure!(
                    left.is_empty(),
                    "sessions",
                    "session {session} is closed, and {left:?} of it are there"
                );
                Ok(())
            }
            Ask::Close
            | Ask::Watch { .. }
            | Ask::AddWatch { .. }
            | Ask::RemoveWatches { .. }
            | Ask::SetWatches { .. } => Ok(()),
            Ask::Create { .. } | Ask::Set { .. } | Ask::Delete { .. } => {
                ensure!(
                    shown >= reply.zxid,
                    OWN_WRITES,
                    "request {number} is answered with zxid {}, and revision {shown} is shown",
                    reply.zxid
                );
                self.written(*number, reply)
            }
        }
    }

    fn written(&mut self, number: u64, reply: &EtcdReply<'_>) -> Checked {
        let request = self.requests.get_mut(&number).expect("it was asked for");
        if reply.error != 0 {
            let carried_out = &request.carried_out;
            let is_delete = matches!(request.ask, Ask::Delete { .. });
            let is_gone = is_delete && reply.error == NO_NODE;
            ensure!(
                carried_out.is_none() && !is_gone,
                ONCE,
                "request {number}, {:?}, is refused with {}, and was carried out: {carried_out:?}",
                request.ask,
                reply.error
            );
            request.end = Some(End::Refused);
            return Ok(());
        }
        let (revision, path) = match (&request.ask, &request.carried_out) {
            (Ask::Delete { path }, _) => {
                let is_gone = !self.znodes.contains_key(path);
                ensure!(is_gone, ONCE, "request {number} has deleted {path}, which is there");
                return Ok(());
            }
            (_, Some(carried_out)) => carried_out,
            (ask, None) => {
                let what = format!("request {number}, {ask:?}, is acknowledged and was not carried out");
                return Err(Violation { checker: ONCE, what });
            }
        };
        let is_named = matches!(request.ask, Ask::Set { .. }) || reply.path() == Some(path);
        ensure!(
            *revision == reply.zxid && is_named,
            ONCE,
            "request {number} was carried out in revision {revision} at {path}, and its client is told {reply:?}"
        );
        Ok(())
    }
}

/// The error code of a request about a znode that does not exist.
pub(super) const NO_NODE: i32 = -101;
