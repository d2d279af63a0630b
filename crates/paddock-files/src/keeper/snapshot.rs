//! A snapshot of ClickHouse Keeper, read into a state. It is exact: nothing was written while it was taken.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use paddock_proto::{Acl, Id, Perms, SessionId, Zxid};
use paddock_tree::{DraftAcl, DraftError, Facts, ZnodeKind};

use super::blocks::BlockReader;
use super::digest::Counters;
use super::state::{KeeperState, counter, is_computed};
use super::stream::ByteStream;
use super::zstd_reader::zstd;
use crate::error::{FileError, Problem, failed};
use crate::proportion::Proportionate;

/// Newest version that is known, and those with which the form changed.
const VERSION_MAX: u8 = 7;
const WITH_ACL_MAP: u8 = 1;
const WITH_NODE_BYTES: u8 = 4;
const WITH_DIGEST: u8 = 5;
const WITHOUT_SEQUENTIAL: u8 = 6;
const WITH_WIDE_COUNTERS: u8 = 7;
/// First bytes of a file of the later form in chunks, and its version.
const CHUNKED: [u8; 4] = *b"CKFS";
const CHUNKED_VERSION: u8 = 8;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Owner by which a container is known.
const CONTAINER: i64 = i64::MIN;
/// Number of the ACL that everybody may do everything.
const OPEN_ACL: u64 = 0;
/// Znodes between two reports of progress.
const REPORT_ZNODES: u64 = 1 << 16;

#[derive(Debug)]
pub(super) struct KeeperSnapshot {
    pub(super) state: KeeperState,
    pub(super) znodes: u64,
    /// Version and value of the digest that Keeper wrote.
    pub(super) digest: Option<(u8, u64)>,
    /// Paths at or below `/keeper` that held something of a user's.
    pub(super) left_out: Vec<String>,
}

/// Reads the snapshot whose name says this log index.
pub(super) fn read(
    path: &Path,
    index: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<KeeperSnapshot, FileError> {
    let file = File::open(path).map_err(failed("open", path))?;
    read_from(file, Some(index), progress).map_err(|(offset, problem)| match problem {
        Problem::Io(source) => failed("read", path)(source),
        problem => FileError::Damaged { path: path.to_owned(), offset, problem },
    })
}

/// Reads a snapshot from a stream; an error comes with its offset in what was decompressed.
pub(super) fn read_from<'i>(
    mut input: impl Read + 'i,
    index: Option<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<KeeperSnapshot, (u64, Problem)> {
    let mut magic = [0; 4];
    input.read_exact(&mut magic).map_err(|error| (0, error.into()))?;
    let input = Cursor::new(magic).chain(input);
    let content: Box<dyn Read + 'i> = match magic {
        CHUNKED => return Err((0, Problem::KeeperSnapshotVersion(CHUNKED_VERSION))),
        ZSTD => zstd(input).map_err(|error| (0, error.into()))?,
        _ => Box::new(blocks(input)),
    };
    parsed(content, index, progress)
}

/// Content of a file of blocks.
pub(crate) fn blocks(input: impl Read) -> impl Read {
    Proportionate::new(input, BlockReader::new)
}

/// Reads what was compressed.
pub(super) fn read_content(content: impl Read) -> Result<KeeperSnapshot, (u64, Problem)> {
    parsed(content, None, &mut |_| {})
}

fn parsed(
    content: impl Read,
    index: Option<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<KeeperSnapshot, (u64, Problem)> {
    let mut parser = Parser::new(content);
    match parser.parse(index, progress) {
        Ok(digest) => Ok(parser.finished(digest)),
        Err(problem) => Err((parser.stream.offset(), problem)),
    }
}

struct Parser<R> {
    stream: ByteStream<R>,
    version: u8,
    state: KeeperState,
    acls: HashMap<u64, DraftAcl>,
    znodes: u64,
    left_out: Vec<String>,
    /// Children ever created below the root, and its counters. Whether `/keeper` is one of its children shows at the end.
    root: Option<(i32, Counters)>,
    /// Znodes that came before their parents.
    waiting: Vec<WaitingZnode>,
    /// Path and data of the znode that is being read.
    path: Vec<u8>,
    data: Vec<u8>,
}

struct WaitingZnode {
    path: String,
    data: Vec<u8>,
    /// All but the data.
    facts: Facts<'static>,
    acl: DraftAcl,
}

impl<R: Read> Parser<R> {
    fn new(input: R) -> Parser<R> {
        Parser {
            stream: ByteStream::new(input),
            version: 0,
            state: KeeperState::new(),
            acls: HashMap::new(),
            znodes: 0,
            left_out: Vec::new(),
            root: None,
            waiting: Vec::new(),
            path: Vec::new(),
            data: Vec::new(),
        }
    }

    fn finished(self, digest: Option<(u8, u64)>) -> KeeperSnapshot {
        KeeperSnapshot { state: self.state, znodes: self.znodes, digest, left_out: self.left_out }
    }

    fn parse(
        &mut self,
        index: Option<u64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<(u8, u64)>, Problem> {
        self.version = self.stream.u8()?;
        if self.version > VERSION_MAX {
            return Err(Problem::KeeperSnapshotVersion(self.version));
        }
        let last = self.raft_position()?;
        if let Some(named) = index.filter(|index| *index != last) {
            return Err(Problem::SnapshotIndex { found: last, named });
        }
        let digest = self.position(last)?;
        self.state.next_session = self.stream.i64()?;
        if self.version >= WITH_ACL_MAP {
            self.acl_map()?;
        }
        for _ in 0..self.stream.u64()? {
            self.znode()?;
            self.znodes += 1;
            if self.znodes.is_multiple_of(REPORT_ZNODES) {
                progress(self.znodes);
            }
        }
        self.place_waiting()?;
        self.count_root();
        self.sessions()?;
        self.members()?;
        Ok(digest)
    }

    /// The index of the last log entry, from what Raft keeps of a snapshot.
    fn raft_position(&mut self) -> Result<u64, Problem> {
        self.stream.blob(&mut self.data)?;
        let index = self.data.get(1..).and_then(|rest| rest.first_chunk());
        index.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(Problem::Truncated)
    }

    fn position(&mut self, last: u64) -> Result<Option<(u8, u64)>, Problem> {
        if self.version < WITH_DIGEST {
            self.state.zxid = Zxid(last as i64);
            return Ok(None);
        }
        self.state.zxid = Zxid(self.stream.i64()?);
        match self.stream.u8()? {
            0 => Ok(None),
            version => Ok(Some((version, self.stream.u64()?))),
        }
    }

    fn acl_map(&mut self) -> Result<(), Problem> {
        for _ in 0..self.stream.u64()? {
            let number = self.acl_number()?;
            let acl = self.acl()?;
            self.acls.insert(number, acl);
        }
        Ok(())
    }

    fn acl_number(&mut self) -> Result<u64, Problem> {
        if self.version >= WITH_WIDE_COUNTERS {
            return self.stream.u32().map(u64::from);
        }
        let number = self.stream.u64()?;
        // Files that Keeper's converter made of ZooKeeper's have this.
        Ok(if number == u64::MAX { OPEN_ACL } else { number })
    }

    /// An empty list lets everybody do everything.
    fn acl(&mut self) -> Result<DraftAcl, Problem> {
        let mut list = Vec::new();
        for _ in 0..self.stream.u64()? {
            let perms = Perms(self.stream.i32()?);
            let id = self.id()?;
            list.push(Acl { perms, id });
        }
        let draft = &mut self.state.draft;
        Ok(if list.is_empty() { draft.open_acl() } else { draft.hold_acl(list) })
    }

    fn id(&mut self) -> Result<Id, Problem> {
        Ok(Id { scheme: self.stream.string()?, id: self.stream.string()? })
    }

    fn znode(&mut self) -> Result<(), Problem> {
        self.stream.blob(&mut self.path)?;
        self.stream.blob(&mut self.data)?;
        let acl = self.znode_acl()?;
        let path = String::from_utf8(std::mem::take(&mut self.path)).map_err(|_| Problem::NotUtf8)?;
        let (facts, counters) = self.facts(&path)?;
        if is_computed(&path) {
            self.leave_out(path, &facts);
            return Ok(());
        }
        if path == "/" {
            self.root = Some((facts.cversion, counters));
        } else {
            self.state.set_cversion(&path, facts.cversion, counters);
        }
        let facts_with_data = Facts { data: Some(&self.data), ..facts };
        match self.state.draft.place(&path, &facts_with_data, acl) {
            Ok(_) => {}
            Err(DraftError::NoParent) => {
                let data = std::mem::take(&mut self.data);
                self.waiting.push(WaitingZnode { path, data, facts, acl });
                return Ok(());
            }
            Err(error) => return Err(Problem::Znode { path, error }),
        }
        self.path = path.into_bytes();
        Ok(())
    }

    fn znode_acl(&mut self) -> Result<DraftAcl, Problem> {
        if self.version < WITH_ACL_MAP {
            return self.acl();
        }
        match self.acl_number()? {
            OPEN_ACL => Ok(self.state.draft.open_acl()),
            number => self.acls.get(&number).copied().ok_or(Problem::UnknownAcl(number as i64)),
        }
    }

    fn facts(&mut self, path: &str) -> Result<(Facts<'static>, Counters), Problem> {
        let is_old = self.version < WITHOUT_SEQUENTIAL;
        let stream = &mut self.stream;
        if is_old {
            let _is_sequential = stream.u8()?;
        }
        let (czxid, mzxid, ctime_ms, mtime_ms) = (stream.i64()?, stream.i64()?, stream.i64()?, stream.i64()?);
        let (version, cversion, aversion) = (stream.i32()?, stream.i32()?, stream.i32()?);
        let owner = stream.i64()?;
        if is_old {
            let _data_len = stream.i32()?;
        }
        let (children, pzxid) = (stream.i32()?, stream.i64()?);
        let is_wide = self.version >= WITH_WIDE_COUNTERS;
        let created = if is_wide { stream.i64()? } else { i64::from(stream.i32()?) };
        if (WITH_NODE_BYTES..WITHOUT_SEQUENTIAL).contains(&self.version) {
            let _node_bytes = stream.u64()?;
        }
        let kind = match owner {
            0 => ZnodeKind::Persistent,
            CONTAINER => ZnodeKind::Container,
            session => ZnodeKind::Ephemeral(SessionId(session)),
        };
        // An ephemeral has no children; Keeper keeps something else in the same place.
        let created = if matches!(kind, ZnodeKind::Ephemeral(_)) { 0 } else { counter(path, created)? };
        let facts = Facts {
            data: None,
            czxid,
            mzxid,
            pzxid,
            ctime_ms,
            mtime_ms,
            version,
            cversion: created,
            aversion,
            kind,
        };
        Ok((facts, Counters { cversion, children }))
    }

    fn leave_out(&mut self, path: String, facts: &Facts<'_>) {
        let is_users = facts.mzxid != 0 || !self.data.is_empty();
        self.state.has_keeper |= path == paddock_tree::COMPUTED;
        if is_users {
            self.left_out.push(path);
        }
    }

    fn count_root(&mut self) {
        let Some((created, counters)) = self.root else { return };
        let children = counters.children.wrapping_sub(i32::from(self.state.has_keeper));
        self.state.set_cversion("/", created, Counters { children, ..counters });
    }

    fn place_waiting(&mut self) -> Result<(), Problem> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_cached_key(|znode| znode.path.bytes().filter(|byte| *byte == b'/').count());
        for WaitingZnode { path, data, facts, acl } in waiting {
            let facts = Facts { data: Some(&data), ..facts };
            if let Err(error) = self.state.draft.place(&path, &facts, acl) {
                return Err(Problem::Znode { path, error });
            }
        }
        Ok(())
    }

    fn sessions(&mut self) -> Result<(), Problem> {
        for _ in 0..self.stream.u64()? {
            let session = SessionId(self.stream.i64()?);
            let timeout_ms = self.stream.i64()?;
            self.state.draft.begin_session(session, super::timeout(timeout_ms));
            if self.version < WITH_ACL_MAP {
                continue;
            }
            for _ in 0..self.stream.u64()? {
                let id = self.id()?;
                self.state.identities.entry(session).or_default().push(id);
            }
        }
        Ok(())
    }

    /// Passes over the members of the ensemble, the last part, which need not be there.
    fn members(&mut self) -> Result<(), Problem> {
        if !self.stream.is_at_end()? {
            self.stream.blob(&mut self.data)?;
        }
        if self.stream.is_at_end()? { Ok(()) } else { Err(Problem::Trailing) }
    }
}
