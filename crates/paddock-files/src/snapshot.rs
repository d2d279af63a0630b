//! A snapshot file, read into a draft. It may be fuzzy: only the transactions after it make it one state.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use paddock_proto::{Acl, Id, Perms, SessionId, Zxid};
use paddock_tree::{Draft, DraftAcl, Facts};

use crate::error::{FileError, Problem, failed};
use crate::jute_stream::JuteStream;
use crate::owner::kind_of;
use crate::proportion::Proportionate;
use crate::snappy::SnappyReader;

/// `ZKSN`
pub(crate) const MAGIC: u32 = 0x5a4b_534e;
pub(crate) const VERSION: i32 = 2;
/// Number of the ACL that everybody may do everything.
pub(crate) const OPEN_ACL: i64 = -1;
/// Bytes of the facts of a znode behind its data: the number of its ACL, and its stat.
const FACTS_BYTES: usize = 68;
/// Word with which a leader ends a snapshot that it sends.
const SIGNATURE: &[u8] = b"BenWasHere";
/// Znodes between two reports of progress.
const REPORT_ZNODES: u64 = 1 << 16;

/// Content of a snapshot.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) draft: Draft,
    pub(crate) znodes: u64,
    pub(crate) digest: Option<WrittenDigest>,
}

/// A digest that ZooKeeper wrote down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenDigest {
    pub(crate) zxid: Zxid,
    pub(crate) version: i32,
    pub(crate) value: u64,
}

pub(crate) fn read(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<Snapshot, FileError> {
    let file = File::open(path).map_err(failed("open", path))?;
    let input: Box<dyn Read> = match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Box::new(gzip(file)),
        Some("snappy") => Box::new(SnappyReader::new(file)),
        _ => Box::new(file),
    };
    read_from(input, progress).map_err(|(offset, problem)| match problem {
        Problem::Io(source) => failed("read", path)(source),
        problem => FileError::Damaged { path: path.to_owned(), offset, problem },
    })
}

/// Content of a stream of gzip.
pub(crate) fn gzip(input: impl Read) -> impl Read {
    Proportionate::new(input, MultiGzDecoder::new)
}

/// Reads a snapshot from a stream; an error comes with its offset.
pub(crate) fn read_from(input: impl Read, progress: &mut dyn FnMut(u64)) -> Result<Snapshot, (u64, Problem)> {
    let mut stream = JuteStream::new(input);
    let mut parser = Parser::new(&mut stream);
    match parser.parse(progress) {
        Ok((znodes, digest)) => Ok(parser.finished(znodes, digest)),
        Err(problem) => Err((stream.offset(), problem)),
    }
}

/// Reads a snapshot as a leader sends it: without a header, and with a word of its own at the end.
pub(crate) fn read_sent<R: Read>(
    stream: &mut JuteStream<R>,
    progress: &mut dyn FnMut(u64),
) -> Result<Snapshot, Problem> {
    let mut parser = Parser::new(stream);
    let znodes = parser.content(progress)?;
    let is_whole = parser.stream.buffer(&mut parser.path)? && parser.path == SIGNATURE;
    if !is_whole {
        return Err(Problem::Signature);
    }
    Ok(parser.finished(znodes, None))
}

struct Parser<'s, R> {
    stream: &'s mut JuteStream<R>,
    draft: Draft,
    acls: HashMap<i64, DraftAcl>,
    /// Path and data of the znode that is being read.
    path: Vec<u8>,
    data: Vec<u8>,
}

impl<'s, R: Read> Parser<'s, R> {
    fn new(stream: &'s mut JuteStream<R>) -> Parser<'s, R> {
        let acls = HashMap::new();
        Parser { stream, draft: Draft::new(), acls, path: Vec::new(), data: Vec::new() }
    }

    fn finished(self, znodes: u64, digest: Option<WrittenDigest>) -> Snapshot {
        Snapshot { draft: self.draft, znodes, digest }
    }

    fn parse(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(u64, Option<WrittenDigest>), Problem> {
        self.header()?;
        let znodes = self.content(progress)?;
        self.seal()?;
        Ok((znodes, self.trailer()?))
    }

    /// Sessions, ACLs and znodes; returns the count of znodes.
    fn content(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Problem> {
        self.sessions()?;
        self.acls()?;
        let mut znodes = 0;
        while self.znode()? {
            znodes += 1;
            if znodes % REPORT_ZNODES == 0 {
                progress(znodes);
            }
        }
        Ok(znodes)
    }

    fn header(&mut self) -> Result<(), Problem> {
        let found = self.stream.i32()? as u32;
        if found != MAGIC {
            return Err(Problem::Magic { expected: "snapshot", found });
        }
        let (version, _database) = (self.stream.i32()?, self.stream.i64()?);
        if version == VERSION { Ok(()) } else { Err(Problem::Version(version)) }
    }

    fn sessions(&mut self) -> Result<(), Problem> {
        for _ in 0..self.stream.count()? {
            let (session, timeout_ms) = (SessionId(self.stream.i64()?), self.stream.i32()?);
            self.draft.begin_session(session, timeout_ms);
        }
        Ok(())
    }

    fn acls(&mut self) -> Result<(), Problem> {
        self.acls.insert(OPEN_ACL, self.draft.open_acl());
        for _ in 0..self.stream.count()? {
            let (number, mut list) = (self.stream.i64()?, Vec::new());
            for _ in 0..self.stream.count()? {
                let perms = Perms(self.stream.i32()?);
                let (scheme, id) = (self.stream.string(&mut self.data)?, self.stream.string(&mut self.data)?);
                list.push(Acl { perms, id: Id { scheme, id } });
            }
            let acl = self.draft.hold_acl(list);
            self.acls.insert(number, acl);
        }
        Ok(())
    }

    /// Reads a znode; false at the end of them.
    fn znode(&mut self) -> Result<bool, Problem> {
        self.stream.buffer(&mut self.path)?;
        if self.path == b"/" {
            return Ok(false);
        }
        let has_data = self.stream.buffer(&mut self.data)?;
        let bytes: [u8; FACTS_BYTES] = self.stream.array()?;
        let long = |at: usize| i64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let int = |at: usize| i32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let acl = *self.acls.get(&long(0)).ok_or(Problem::UnknownAcl(long(0)))?;
        let facts = Facts {
            data: has_data.then_some(&self.data[..]),
            czxid: long(8),
            mzxid: long(16),
            ctime_ms: long(24),
            mtime_ms: long(32),
            version: int(40),
            cversion: int(44),
            aversion: int(48),
            pzxid: long(60),
            kind: kind_of(long(52), |session| self.draft.has_session(session)),
        };
        let path = std::str::from_utf8(&self.path).map_err(|_| Problem::NotUtf8)?;
        let path = if path.is_empty() { "/" } else { path };
        let placed = self.draft.place(path, &facts, acl);
        placed.map_err(|error| Problem::Znode { path: path.to_owned(), error })?;
        Ok(true)
    }

    /// Compares the checksum of everything read with the one that follows.
    fn seal(&mut self) -> Result<(), Problem> {
        let found = self.stream.checksum();
        let expected = self.stream.i64()?;
        if found != expected {
            return Err(Problem::Checksum { found, expected });
        }
        let is_end = self.stream.buffer(&mut self.path)? && self.path == b"/";
        if is_end { Ok(()) } else { Err(Problem::Trailer) }
    }

    /// Parts behind the first seal: the digest of 3.6, the last zxid of 3.9. Nothing but their lengths tells which are there.
    fn trailer(&mut self) -> Result<Option<WrittenDigest>, Problem> {
        if self.stream.is_at_end()? {
            return Ok(None);
        }
        let first = self.stream.i64()?;
        // A last zxid alone is followed by its seal. The upper half of an Adler-32 in 64 bits is zero, and no digest has version 0.
        let checksum = self.stream.checksum();
        let next = self.stream.i32()?;
        if next == 0 {
            let expected = i64::from(self.stream.i32()? as u32);
            return self.end_of_seal(checksum, expected).map(|()| None);
        }
        let digest = self.digest_of(Zxid(first), next)?;
        self.seal()?;
        if !self.stream.is_at_end()? {
            let _last_zxid = self.stream.i64()?;
            self.seal()?;
        }
        if self.stream.is_at_end()? { Ok(Some(digest)) } else { Err(Problem::Trailing) }
    }

    fn end_of_seal(&mut self, found: i64, expected: i64) -> Result<(), Problem> {
        if found != expected {
            return Err(Problem::Checksum { found, expected });
        }
        let is_end = self.stream.buffer(&mut self.path)? && self.path == b"/";
        if is_end && self.stream.is_at_end()? { Ok(()) } else { Err(Problem::Trailer) }
    }

    fn digest_of(&mut self, zxid: Zxid, version: i32) -> Result<WrittenDigest, Problem> {
        let value = if version >= 2 {
            self.stream.i64()? as u64
        } else {
            let text = self.stream.string(&mut self.path)?;
            u64::from_str_radix(&text, 16).map_err(|_| Problem::Trailer)?
        };
        Ok(WrittenDigest { zxid, version, value })
    }
}
