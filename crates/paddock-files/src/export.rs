//! A data directory from which Apache ZooKeeper starts, written from a tree.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use paddock_proto::jute::Writer;
use paddock_proto::{Acl, SessionId, Zxid};
use paddock_tree::{Draft, StoredZnode, Tree, Znodes};
use simd_adler32::Adler32;

use crate::data_dir::VERSION_DIR;
use crate::digest::{DIGEST_VERSION, digest as digest_of};
use crate::error::{FileError, failed};
use crate::owner::owner_of;
use crate::snapshot::{MAGIC, OPEN_ACL, VERSION};

/// Bits of a zxid that count within an epoch.
const COUNTER_BITS: u32 = 32;

/// Account of an export.
#[derive(Debug)]
pub struct Exported {
    pub snapshot: PathBuf,
    pub zxid: Zxid,
    pub znodes: u64,
}

/// Writes the tree into a new data directory. The snapshot has its name only when it is whole and on disk.
pub fn export(tree: &Tree, dir: &Path) -> Result<Exported, FileError> {
    let files = dir.join(VERSION_DIR);
    if files.exists() {
        return Err(FileError::Exists { path: files });
    }
    fs::create_dir_all(&files).map_err(failed("create directory", &files))?;
    let zxid = tree.zxid();
    let snapshot = files.join(format!("snapshot.{:x}", zxid.0));
    let unfinished = snapshot.with_extension("unfinished");
    let znodes = write_file(&unfinished, |file| write_snapshot(Content::of_tree(tree), file))?;
    for name in ["acceptedEpoch", "currentEpoch"] {
        write_file(&files.join(name), |file| write!(file, "{}", zxid.0 >> COUNTER_BITS))?;
    }
    fs::rename(&unfinished, &snapshot).map_err(failed("name", &snapshot))?;
    let sync_dir = |dir: &Path| File::open(dir).and_then(|dir| dir.sync_all());
    sync_dir(&files).map_err(failed("sync directory", &files))?;
    sync_dir(dir).map_err(failed("sync directory", dir))?;
    Ok(Exported { snapshot, zxid, znodes })
}

pub(crate) fn write_file<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T, FileError> {
    let mut file = BufWriter::with_capacity(1 << 18, File::create(path).map_err(failed("create", path))?);
    let written = write(&mut file).map_err(failed("write", path))?;
    let file = file.into_inner().map_err(|error| failed("write", path)(error.into_error()))?;
    file.sync_all().map_err(failed("sync", path))?;
    Ok(written)
}

/// Content of a snapshot to be written.
pub(crate) struct Content<'t> {
    zxid: Zxid,
    sessions: Vec<(SessionId, i32)>,
    acls: Vec<Vec<Acl>>,
    znodes: Znodes<'t>,
    /// A second walk over the same.
    digest: Znodes<'t>,
}

impl<'t> Content<'t> {
    pub(crate) fn of_tree(tree: &'t Tree) -> Content<'t> {
        Content {
            zxid: tree.zxid(),
            sessions: tree.sessions().collect(),
            acls: tree.acls().map(<[Acl]>::to_vec).collect(),
            znodes: tree.znodes(),
            digest: tree.znodes(),
        }
    }

    pub(crate) fn of_draft(draft: &'t Draft, zxid: Zxid) -> Content<'t> {
        let mut acls = HashSet::new();
        let mut znodes = draft.znodes();
        while let Some((_, znode)) = znodes.next_znode() {
            if !acls.contains(znode.acl) {
                acls.insert(znode.acl.to_vec());
            }
        }
        Content {
            zxid,
            sessions: draft.sessions().collect(),
            acls: acls.into_iter().collect(),
            znodes: draft.znodes(),
            digest: draft.znodes(),
        }
    }
}

/// Writes a snapshot as ZooKeeper 3.9 does; older ones read as much of it as they know. Returns the count of znodes.
pub(crate) fn write_snapshot(content: Content<'_>, out: &mut dyn Write) -> io::Result<u64> {
    let Content { zxid, sessions, acls, mut znodes, digest } = content;
    let mut file = Sealed { out, checksum: Adler32::new(), bytes: Vec::new() };
    file.bytes.put_i32(MAGIC as i32);
    file.bytes.put_i32(VERSION);
    file.bytes.put_i64(-1);
    file.bytes.put_count(sessions.len());
    for (session, timeout_ms) in sessions {
        file.bytes.put_i64(session.0);
        file.bytes.put_i32(timeout_ms);
    }
    let acls = put_acls(&acls, &mut file.bytes);
    let mut written = 0;
    while let Some((path, znode)) = znodes.next_znode() {
        put_znode(path, &znode, acls[znode.acl], &mut file.bytes);
        file.flush()?;
        written += 1;
    }
    file.bytes.put_string("/");
    file.seal()?;
    file.bytes.put_i64(zxid.0);
    file.bytes.put_i32(DIGEST_VERSION);
    file.bytes.put_i64(digest_of(digest) as i64);
    file.seal()?;
    file.bytes.put_i64(zxid.0);
    file.seal()?;
    Ok(written)
}

/// Numbers the ACLs and appends them.
fn put_acls<'t>(lists: &'t [Vec<Acl>], out: &mut Vec<u8>) -> HashMap<&'t [Acl], i64> {
    let open = [Acl::open()];
    let mut numbers: HashMap<&[Acl], i64> = HashMap::new();
    let mut rows = Vec::new();
    for list in lists.iter().map(Vec::as_slice) {
        let number = if *list == open { OPEN_ACL } else { rows.len() as i64 + 1 };
        numbers.insert(list, number);
        if number != OPEN_ACL {
            rows.push((number, list));
        }
    }
    out.put_count(rows.len());
    for (number, list) in rows {
        out.put_i64(number);
        out.put_count(list.len());
        list.iter().for_each(|acl| acl.encode(out));
    }
    numbers
}

fn put_znode(path: &str, znode: &StoredZnode<'_>, acl: i64, out: &mut Vec<u8>) {
    out.put_string(if path == "/" { "" } else { path });
    out.put_buffer(znode.data);
    out.put_i64(acl);
    for long in [znode.czxid, znode.mzxid, znode.ctime_ms, znode.mtime_ms] {
        out.put_i64(long);
    }
    for int in [znode.version, znode.cversion, znode.aversion] {
        out.put_i32(int);
    }
    out.put_i64(owner_of(znode.kind));
    out.put_i64(znode.pzxid);
}

/// A file whose checksum is written between its parts.
struct Sealed<'w> {
    out: &'w mut dyn Write,
    checksum: Adler32,
    bytes: Vec<u8>,
}

impl Sealed<'_> {
    fn flush(&mut self) -> io::Result<()> {
        self.checksum.write(&self.bytes);
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    fn seal(&mut self) -> io::Result<()> {
        self.flush()?;
        let checksum = i64::from(self.checksum.finish());
        self.bytes.put_i64(checksum);
        self.bytes.put_string("/");
        self.flush()
    }
}
