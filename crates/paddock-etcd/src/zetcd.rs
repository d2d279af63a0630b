//! zetcd's keys, read into a tree: seven for each znode, in the layout of its default build.
//!
//! A key is `/zk/`, a byte for the part of the znode, a byte for the number of slashes in its path, and the path. zetcd tells a Stat by
//! the revisions and versions that etcd keeps of these keys. Its zxids are those revisions less one. It keeps times in
//! microseconds, asks no ACL, and lets ephemerals have children: a tree has none of these.

mod gob;

use std::collections::BTreeMap;

use paddock_proto::{Acl, MemberNumber, SessionId, Zxid};
use paddock_tree::{Draft, DraftError, Facts, Repairs, Tree, ZnodeKind};

use gob::decode_acls;

const PREFIX: &[u8] = b"/zk/";
/// First key behind all of zetcd's.
const END: &[u8] = b"/zk0";
/// A key that zetcd writes so that a refusal gets a revision.
const REFUSALS: &[u8] = b"e";
/// Keys in which older builds and those for debugging keep data: they have other names for all parts.
const READABLE: &[u8] = b"key/";

/// A key of etcd with what etcd keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// Number of writes since the key was made.
    pub version: i64,
    pub mod_revision: i64,
    /// Lease that holds the key; 0 for none.
    pub lease: i64,
}

/// Reason why keys are not those of a zetcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZetcdError {
    #[error("key {0:?} is none of zetcd's: something else writes below /zk/ in this etcd")]
    Stranger(String),
    #[error("key {0:?} is of a zetcd that was built with path_old or path_debug, whose layout is not read")]
    OtherLayout(String),
    #[error("the value of key {0:?} is not as zetcd writes it")]
    Value(String),
    #[error("znode {path} lacks {part}, which zetcd writes with it")]
    Incomplete { path: String, part: &'static str },
    #[error("znode {path}: {error}")]
    Znode { path: String, error: DraftError },
}

/// Account of what was read and what was left out.
#[derive(Debug, Default)]
pub struct ZetcdReport {
    pub keys: u64,
    /// Znodes whose parent is ephemeral or gone, which zetcd allows; they are left out, with all below them.
    pub misplaced: Vec<String>,
    /// Ephemerals that were left out as asked.
    pub dropped: Vec<String>,
    /// Sessions that were left out as asked.
    pub dropped_sessions: usize,
    /// Znodes whose ACL has an entry of the scheme `auth`, which zetcd keeps as the client wrote it.
    pub unresolved: Vec<String>,
    pub repairs: Repairs,
}

/// The parts of one znode, each a key.
#[derive(Debug, Default)]
struct Parts {
    data: Option<Pair>,
    version: Option<i64>,
    /// Written when a child comes or goes.
    children: Option<Pair>,
    created: Option<(i64, i64)>,
    modified: Option<(i64, i64)>,
    acl: Option<(Vec<Acl>, i64)>,
    count: Option<i64>,
}

/// Keys of a zetcd that have been read.
#[derive(Debug, Default)]
pub struct Zetcd {
    /// By the number of slashes and the path, so that parents come first.
    znodes: BTreeMap<(u8, String), Parts>,
    sessions: BTreeMap<SessionId, i32>,
    report: ZetcdReport,
}

impl Zetcd {
    /// First key of all, and the first one behind all.
    pub fn range() -> (Vec<u8>, Vec<u8>) {
        (PREFIX.to_vec(), END.to_vec())
    }

    pub fn take(&mut self, pair: Pair) -> Result<(), ZetcdError> {
        self.report.keys += 1;
        let name = || String::from_utf8_lossy(&pair.key).into_owned();
        let stranger = || ZetcdError::Stranger(name());
        let rest = pair.key.strip_prefix(PREFIX).ok_or_else(stranger)?;
        if rest == REFUSALS {
            return Ok(());
        }
        if rest.starts_with(READABLE) {
            return Err(ZetcdError::OtherLayout(name()));
        }
        let (&part, rest) = rest.split_first().ok_or_else(stranger)?;
        let text = |bytes| std::str::from_utf8(bytes).ok().ok_or_else(stranger);
        if part == 8 {
            let id = u64::from_str_radix(text(rest)?, 16).map_err(|_| stranger())?;
            self.sessions.insert(SessionId(id as i64), 0);
            return Ok(());
        }
        let (&depth, path) = rest.split_first().ok_or_else(stranger)?;
        let path = text(path)?;
        let slashes = path.bytes().filter(|byte| *byte == b'/').count();
        if !path.starts_with('/') || slashes as u8 != depth {
            return Err(stranger());
        }
        let number = || varint(&pair.value).ok_or_else(|| ZetcdError::Value(name()));
        let parts = self.znodes.entry((depth, path.to_owned())).or_default();
        match part {
            1 => parts.data = Some(pair),
            2 => parts.version = Some(number()?),
            3 => parts.children = Some(pair),
            4 => parts.created = Some((number()?, pair.mod_revision)),
            5 => parts.modified = Some((number()?, pair.mod_revision)),
            6 => {
                let acls = decode_acls(&pair.value).ok_or_else(|| ZetcdError::Value(name()))?;
                parts.acl = Some((acls, pair.version));
            }
            7 => parts.count = Some(number()?),
            _ => return Err(stranger()),
        }
        Ok(())
    }

    /// Sessions, whose ids are those of their leases.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    /// The session's timeout; `None` for one that has ended since its key was read.
    pub fn set_timeout(&mut self, session: SessionId, timeout_ms: Option<i32>) {
        match timeout_ms {
            Some(timeout_ms) => self.sessions.insert(session, timeout_ms),
            None => self.sessions.remove(&session),
        };
    }

    /// The tree, as of the revision that was read. `member` serves the sessions.
    pub fn finish(
        self,
        revision: i64,
        drop_ephemerals: bool,
        member: MemberNumber,
    ) -> Result<(Tree, ZetcdReport), ZetcdError> {
        let Zetcd { znodes, sessions, mut report } = self;
        let mut draft = Draft::new();
        if drop_ephemerals {
            report.dropped_sessions = sessions.len();
        } else {
            sessions.iter().for_each(|(id, timeout_ms)| draft.begin_session(*id, *timeout_ms));
        }
        for ((_, path), parts) in znodes {
            if path == "/" {
                place_root(&mut draft, &parts);
                continue;
            }
            // A parent's key for its children outlives it if a child was removed at the same time.
            let Some(created) = parts.created else { continue };
            let (acl, facts) = parts.facts(&path, created)?;
            if drop_ephemerals && matches!(facts.kind, ZnodeKind::Ephemeral(_)) {
                report.dropped.push(path);
                continue;
            }
            let is_unresolved = acl.iter().any(|acl| acl.id.scheme == "auth");
            match draft.place_with(&path, &facts, acl.clone()) {
                Ok(_) if is_unresolved => report.unresolved.push(path),
                Ok(_) => {}
                Err(DraftError::EphemeralParent | DraftError::NoParent) => report.misplaced.push(path),
                Err(error) => return Err(ZetcdError::Znode { path, error }),
            }
        }
        let (mut tree, repairs) = draft.finish(Zxid(revision), member);
        tree.withdraw_passwords();
        report.repairs = repairs;
        Ok((tree, report))
    }
}

impl Parts {
    fn facts(&self, path: &str, created: (i64, i64)) -> Result<(&Vec<Acl>, Facts<'_>), ZetcdError> {
        let lacks = |part| move || ZetcdError::Incomplete { path: path.to_owned(), part };
        let data = self.data.as_ref().ok_or_else(lacks("its data"))?;
        let (modified_us, modified) = self.modified.ok_or_else(lacks("its time of change"))?;
        let (acl, acl_writes) = self.acl.as_ref().ok_or_else(lacks("its ACL"))?;
        let kind = match data.lease {
            0 => ZnodeKind::Persistent,
            lease => ZnodeKind::Ephemeral(SessionId(lease)),
        };
        let children = self.children.as_ref().map_or(created.1, |pair| pair.mod_revision);
        let facts = Facts {
            data: Some(&data.value),
            czxid: zxid(created.1),
            mzxid: zxid(modified),
            pzxid: zxid(children),
            ctime_ms: created.0 / 1000,
            mtime_ms: modified_us / 1000,
            version: self.version.ok_or_else(lacks("its version"))? as i32,
            cversion: self.count.ok_or_else(lacks("its count of children"))? as i32,
            aversion: (acl_writes - 1) as i32,
            kind,
        };
        Ok((acl, facts))
    }
}

/// zetcd keeps of the root only what its children change.
fn place_root(draft: &mut Draft, parts: &Parts) {
    let root = draft.find("/").expect("a draft has a root");
    if let Some(count) = parts.count {
        draft.set_cversion(root, count as i32);
    }
    if let Some(children) = &parts.children {
        draft.set_pzxid(root, zxid(children.mod_revision));
    }
}

/// The zxid that zetcd's clients see of a revision: etcd counts from one.
fn zxid(revision: i64) -> i64 {
    revision - 1
}

/// A number as Go's `binary.PutVarint` writes it, in ten bytes at most.
fn varint(bytes: &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

#[cfg(test)]
mod tests;
