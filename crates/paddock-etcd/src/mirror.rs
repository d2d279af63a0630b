//! State of a front end as a mirror of etcd's keys: revisions are installed in their order, and writes planned on it.
//!
//! Invariant: the state is that of one revision. A session whose key has gone with its lease keeps its znodes until a front end
//! closes it: their parents have to be told, which etcd cannot do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use paddock_proto::{MemberNumber, SessionId, Zxid};
use paddock_state::{Outboxes, State};
use paddock_tree::{Command, InstallError, Tree, Znode};

use crate::keys::{Key, Keys};
use crate::plan::{Compare, Limits, Plan, PlanError, Planner};
use crate::record::{RecordError, SessionRecord, Tag, decode_mark, decode_secret, decode_znode};
use crate::revisions::{KeyEvent, Revisions};

/// Reason why the keys below the prefix are no state. The mirror is to be thrown away and read again.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    #[error("read etcd key {key:?}")]
    Record { key: String, source: RecordError },
    #[error("install etcd revision {revision}")]
    Install { revision: i64, source: InstallError },
    #[error("etcd key {0:?} is below the prefix, and is no key of this layout: choose another prefix")]
    Stranger(String),
}

/// Numbers by which the tree knows front ends: it has to tell only this one from all others.
pub(crate) const OTHER_FRONT: MemberNumber = 0;
const THIS_FRONT: MemberNumber = 1;
/// Owner of a session that has ended and still has znodes.
const NO_FRONT: MemberNumber = 2;

/// Contents of a revision beside znodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Number of this front end's transaction that made the revision.
    pub own: Option<u32>,
    /// Sessions that were written, and `None` for those that have ended.
    pub sessions: BTreeMap<SessionId, Option<SessionRecord>>,
}

#[derive(Debug)]
pub struct Mirror {
    keys: Keys,
    front: u64,
    limits: Limits,
    revisions: Revisions,
    ended: BTreeSet<SessionId>,
    /// Leases of sessions that have another one than their first.
    leases: HashMap<SessionId, i64>,
}

impl Mirror {
    /// The number by which `Command::taken_by` says that this front end took the command.
    pub const MEMBER: MemberNumber = THIS_FRONT;

    /// `front`: a number that no other front end has, drawn when it starts.
    pub fn new(keys: Keys, front: u64, limits: Limits) -> Mirror {
        let (revisions, ended, leases) = (Revisions::default(), BTreeSet::new(), HashMap::new());
        Mirror { keys, front, limits, revisions, ended, leases }
    }

    /// Sessions that have ended and still have znodes, by id: a front end has to close each by `Write::ExpireSession`.
    pub fn ended(&self) -> impl Iterator<Item = SessionId> {
        self.ended.iter().copied()
    }

    /// The transaction for some commands in their order, with this number. The tree is afterwards as it was before.
    pub fn plan(&self, tree: &mut Tree, commands: &[Command<'_>], number: u32) -> Result<Plan, PlanError> {
        self.plan_on_leases(tree, commands, number, &BTreeMap::new())
    }

    /// A plan for a write. Keys of sessions that are written are held by these leases from then on.
    pub fn plan_on_leases(
        &self,
        tree: &mut Tree,
        commands: &[Command<'_>],
        number: u32,
        next_leases: &BTreeMap<SessionId, i64>,
    ) -> Result<Plan, PlanError> {
        let Mirror { keys, revisions, front, limits, leases, .. } = self;
        let tag = Tag { front: *front, number };
        Planner { keys, revisions, leases, next_leases, tag, limits: *limits }.plan(tree, commands)
    }

    /// The lease that holds a session's key. The first one has the id of the session.
    pub fn lease_of(&self, session: SessionId) -> i64 {
        self.leases.get(&session).copied().unwrap_or(session.0)
    }

    fn note_lease(&mut self, session: SessionId, record: Option<&SessionRecord>) {
        match record.and_then(|record| record.lease) {
            Some(lease) => self.leases.insert(session, lease),
            None => self.leases.remove(&session),
        };
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Revision in which the key of a session was last written; 0 if there is none.
    pub fn session_revision(&self, session: SessionId) -> i64 {
        self.revisions.of_session(session)
    }

    /// True if the compares hold in the mirrored revision.
    pub fn holds(&self, tree: &Tree, compares: &[Compare]) -> bool {
        compares.iter().all(|compare| match self.keys.parse(&compare.key) {
            Some(Key::Znode(path)) => self.revisions.of_znode(tree, path) == compare.mod_revision,
            Some(Key::Session(id)) => self.revisions.of_session(id) == compare.mod_revision,
            // The secret is made once, if there is none.
            Some(Key::Secret) => !tree.has_secret(),
            Some(Key::Front(_)) | None => true,
        })
    }

    /// Installs all changes of one revision, and tells their watchers.
    ///
    /// At first the keys may be read in any number of calls with the revision of the read, in the order of
    /// the keys.
    pub fn install(
        &mut self,
        state: &mut State,
        revision: i64,
        events: &[KeyEvent],
        out: &mut Outboxes,
    ) -> Result<Installed, MirrorError> {
        let mut sessions = BTreeMap::new();
        let mut own = None;
        let front = self.front;
        let mut note = |tag: Tag| own = own.or((tag.front == front).then_some(tag.number));
        let mut znodes: Vec<(&str, Option<Znode>)> = Vec::new();
        for event in events {
            let key = || String::from_utf8_lossy(&event.key).into_owned();
            let wrong = |source| MirrorError::Record { key: key(), source };
            match self.keys.parse(&event.key) {
                None => return Err(MirrorError::Stranger(key())),
                Some(Key::Znode(path)) => {
                    let value = event.value.as_deref();
                    let value = value.map(|value| decode_znode(value, event.mod_revision));
                    let znode = value.transpose().map_err(wrong)?.map(|(znode, tag)| {
                        note(tag);
                        znode
                    });
                    self.revisions.note_znode(path, znode.as_ref(), event.mod_revision);
                    znodes.push((path, znode));
                }
                Some(Key::Session(id)) => {
                    let session = event.value.as_deref().map(SessionRecord::decode);
                    let session: Option<SessionRecord> = session.transpose().map_err(wrong)?;
                    session.iter().for_each(|session| note(session.tag));
                    self.revisions.note_session(id, session.as_ref().map(|_| event.mod_revision));
                    self.note_lease(id, session.as_ref());
                    sessions.insert(id, session);
                }
                // Without it no session begins and none is resumed; one that was known stays in force until it is written again.
                Some(Key::Secret) => {
                    if let Some(value) = event.value.as_deref() {
                        state.tree_mut().install_secret(decode_secret(value).map_err(wrong)?);
                    }
                }
                Some(Key::Front(_)) => {
                    let tag = event.value.as_deref().map(decode_mark).transpose().map_err(wrong)?;
                    tag.into_iter().for_each(&mut note);
                }
            }
        }
        self.add_owners(state.tree(), &znodes);
        self.begin_sessions(state.tree_mut(), &sessions);
        self.note_deaths(state, &znodes);
        let installed = state.install(Zxid(revision), &znodes, out);
        installed.map_err(|source| MirrorError::Install { revision, source })?;
        self.end_sessions(state.tree_mut());
        Ok(Installed { own, sessions })
    }

    /// Tells the state which of its ephemerals go because their sessions have ended.
    fn note_deaths(&self, state: &mut State, znodes: &[(&str, Option<Znode>)]) {
        if self.ended.is_empty() {
            return;
        }
        let gone = znodes.iter().filter(|(_, znode)| znode.is_none());
        let owned =
            gone.filter_map(|(path, _)| Some((state.tree().znode(path)?.owner()?, (*path).to_owned())));
        let deaths: Vec<_> = owned.filter(|(owner, _)| self.ended.contains(owner)).collect();
        state.note_deaths(deaths);
    }

    /// Sessions of ephemerals that are read at first, after the keys of their sessions have gone.
    fn add_owners(&mut self, tree: &Tree, znodes: &[(&str, Option<Znode>)]) {
        let owners = znodes.iter().filter_map(|(_, znode)| znode.as_ref()?.owner());
        let unknown = owners.filter(|id| tree.session_owner(*id).is_none());
        self.ended.extend(unknown.filter(|id| self.revisions.of_session(*id) == 0));
    }

    fn begin_sessions(&mut self, tree: &mut Tree, sessions: &BTreeMap<SessionId, Option<SessionRecord>>) {
        for (&id, session) in sessions {
            match session {
                Some(SessionRecord { timeout_ms, is_keyed, proven, tag, .. }) => {
                    let member = if tag.front == self.front { THIS_FRONT } else { OTHER_FRONT };
                    self.ended.remove(&id);
                    tree.install_own_session(id, *timeout_ms, member, *is_keyed, proven.clone());
                }
                None => drop(self.ended.insert(id)),
            }
        }
        for &id in &self.ended {
            let timeout_ms = tree.session_timeout_ms(id).unwrap_or(0);
            let (is_keyed, proven) = (tree.is_session_keyed(id), tree.session_identity(id).cloned());
            tree.install_own_session(id, timeout_ms, NO_FRONT, is_keyed, proven);
        }
    }

    fn end_sessions(&mut self, tree: &mut Tree) {
        self.ended.retain(|id| !tree.uninstall_session(*id));
    }
}
