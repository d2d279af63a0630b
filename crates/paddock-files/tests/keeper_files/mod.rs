//! Files of a ClickHouse Keeper as docs/formats.md describes them, written without the code that reads them.

use std::fs;
use std::hash::Hasher;
use std::io::Write;
use std::path::Path;

use paddock_proto::blocks;
use paddock_proto::jute::Writer;

/// A znode with the numbers that Keeper keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeeperNode {
    pub(crate) path: &'static str,
    pub(crate) data: &'static str,
    /// Number of its ACL in the table.
    pub(crate) acl: u64,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) pzxid: i64,
    pub(crate) ctime: i64,
    pub(crate) mtime: i64,
    pub(crate) version: i32,
    pub(crate) cversion: i32,
    pub(crate) aversion: i32,
    pub(crate) owner: i64,
    pub(crate) children: i32,
    /// Number that the next sequential child gets.
    pub(crate) sequence: i64,
}

/// Permissions, scheme and id.
pub(crate) type Acl = (i32, &'static str, &'static str);

/// Scheme and id.
pub(crate) type KeeperIdentity = (&'static str, &'static str);

#[derive(Clone, Debug, Default)]
pub(crate) struct Keeper {
    pub(crate) index: u64,
    pub(crate) zxid: i64,
    pub(crate) next_session: i64,
    pub(crate) acls: Vec<(u64, Vec<Acl>)>,
    pub(crate) nodes: Vec<KeeperNode>,
    /// Id, timeout in milliseconds, identities.
    pub(crate) sessions: Vec<(i64, i64, Vec<KeeperIdentity>)>,
}

impl Keeper {
    pub(crate) fn node(&mut self, path: &str) -> &mut KeeperNode {
        self.nodes.iter_mut().find(|node| node.path == path).expect("the znode is there")
    }

    pub(crate) fn digest(&self, version: u8) -> u64 {
        self.nodes.iter().map(|node| digest_of(node, version)).fold(0, u64::wrapping_add)
    }

    /// A snapshot before it is compressed.
    pub(crate) fn snapshot(&self, version: u8) -> Vec<u8> {
        let mut out = vec![version];
        let raft = [&[1][..], &self.index.to_le_bytes(), &3u64.to_le_bytes(), &[0; 8], b"members"].concat();
        put_string(&mut out, &raft);
        if version >= 5 {
            out.extend(self.zxid.to_le_bytes());
            out.push(4);
            out.extend(self.digest(4).to_le_bytes());
        }
        out.extend(self.next_session.to_le_bytes());
        if version >= 1 {
            out.extend((self.acls.len() as u64).to_le_bytes());
            for (number, list) in &self.acls {
                put_acl_number(&mut out, *number, version);
                put_acl(&mut out, list);
            }
        }
        out.extend((self.nodes.len() as u64).to_le_bytes());
        for node in &self.nodes {
            self.put_node(&mut out, node, version);
        }
        out.extend((self.sessions.len() as u64).to_le_bytes());
        for (session, timeout, ids) in &self.sessions {
            out.extend(session.to_le_bytes());
            out.extend(timeout.to_le_bytes());
            if version >= 1 {
                out.extend((ids.len() as u64).to_le_bytes());
                for (scheme, id) in ids {
                    put_string(&mut out, scheme.as_bytes());
                    put_string(&mut out, id.as_bytes());
                }
            }
        }
        put_string(&mut out, b"members");
        out
    }

    fn put_node(&self, out: &mut Vec<u8>, node: &KeeperNode, version: u8) {
        put_string(out, node.path.as_bytes());
        put_string(out, node.data.as_bytes());
        if version == 0 {
            let list = self.acls.iter().find(|(number, _)| *number == node.acl);
            put_acl(out, list.map_or(&[], |(_, list)| list));
        } else {
            put_acl_number(out, node.acl, version);
        }
        if version < 6 {
            out.push(0);
        }
        for long in [node.czxid, node.mzxid, node.ctime, node.mtime] {
            out.extend(long.to_le_bytes());
        }
        for int in [node.version, node.cversion, node.aversion] {
            out.extend(int.to_le_bytes());
        }
        out.extend(node.owner.to_le_bytes());
        if version < 6 {
            out.extend((node.data.len() as i32).to_le_bytes());
        }
        out.extend(node.children.to_le_bytes());
        out.extend(node.pzxid.to_le_bytes());
        if version >= 7 {
            out.extend(node.sequence.to_le_bytes());
        } else {
            out.extend((node.sequence as i32).to_le_bytes());
        }
        if (4..=5).contains(&version) {
            out.extend(200u64.to_le_bytes());
        }
    }

    /// Writes a snapshot file and returns its name.
    pub(crate) fn write_snapshot(&self, dir: &Path, version: u8, is_zstd: bool) -> String {
        let content = self.snapshot(version);
        let (bytes, end) = if is_zstd { (zstd(&content), ".zstd") } else { (packed(&content), "") };
        let name = format!("snapshot_{}.bin{end}", self.index);
        fs::write(dir.join(&name), bytes).unwrap();
        name
    }
}

pub(crate) fn packed(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    blocks::pack(content, &mut bytes);
    bytes
}

pub(crate) fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

/// A stream that a Keeper that was killed has left: its last frame has no end.
pub(crate) fn unfinished_zstd(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.write_all(content).unwrap();
    encoder.flush().unwrap();
    encoder.get_ref().clone()
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut len = bytes.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend(bytes);
}

fn put_acl_number(out: &mut Vec<u8>, number: u64, version: u8) {
    if version >= 7 {
        out.extend((number as u32).to_le_bytes());
    } else {
        out.extend(number.to_le_bytes());
    }
}

fn put_acl(out: &mut Vec<u8>, list: &[Acl]) {
    out.extend((list.len() as u64).to_le_bytes());
    for (perms, scheme, id) in list {
        out.extend(perms.to_le_bytes());
        put_string(out, scheme.as_bytes());
        put_string(out, id.as_bytes());
    }
}

fn sip_hash(pieces: &[&[u8]]) -> u64 {
    #[expect(deprecated, reason = "no other hasher of the standard library promises SipHash-2-4")]
    let mut hash = std::hash::SipHasher::new();
    hash.write(&pieces.concat());
    hash.finish()
}

fn digest_of(node: &KeeperNode, version: u8) -> u64 {
    let end: &[u8] = if version >= 5 { &[0] } else { &[] };
    sip_hash(&[
        node.path.as_bytes(),
        node.data.as_bytes(),
        &node.czxid.to_le_bytes(),
        &node.mzxid.to_le_bytes(),
        &node.ctime.to_le_bytes(),
        &node.mtime.to_le_bytes(),
        &node.version.to_le_bytes(),
        &node.cversion.to_le_bytes(),
        &node.aversion.to_le_bytes(),
        &node.owner.to_le_bytes(),
        &node.children.to_le_bytes(),
        &node.pzxid.to_le_bytes(),
        end,
    ])
}

/// A changelog in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeeperLog {
    pub(crate) bytes: Vec<u8>,
}

impl KeeperLog {
    /// Appends a record of any kind.
    pub(crate) fn record(&mut self, index: u64, version: u8, kind: i32, blob: &[u8]) {
        let header = [
            &[version][..],
            &index.to_le_bytes(),
            &3u64.to_le_bytes(),
            &kind.to_le_bytes(),
            &(blob.len() as u64).to_le_bytes(),
        ]
        .concat();
        self.bytes.extend(sip_hash(&[&header, blob]).to_le_bytes());
        self.bytes.extend(header);
        self.bytes.extend(blob);
    }

    /// Appends a request.
    pub(crate) fn request(&mut self, index: u64, entry: &KeeperEntry) {
        self.record(index, 2, 1, &entry.encoded());
    }
}

/// A request as Keeper logs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeeperEntry {
    pub(crate) session: i64,
    pub(crate) op: i32,
    pub(crate) body: Vec<u8>,
    pub(crate) time: i64,
    pub(crate) zxid: i64,
    /// Version and value.
    pub(crate) digest: (u8, u64),
}

impl KeeperEntry {
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut out = self.session.to_le_bytes().to_vec();
        out.put_i32(8 + self.body.len() as i32);
        out.put_i32(77);
        out.put_i32(self.op);
        out.extend(&self.body);
        out.extend(self.time.to_le_bytes());
        out.extend(self.zxid.to_le_bytes());
        out.push(self.digest.0);
        out.extend(self.digest.1.to_le_bytes());
        out
    }
}

/// Body of a create; flag 1 stands for ephemeral, 2 for sequential.
pub(crate) fn create(path: &str, data: &str, acl: &[Acl], flags: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(path);
    out.put_string(data);
    put_jute_acl(&mut out, acl);
    out.put_i32(flags);
    out
}

pub(crate) fn set_acl(path: &str, acl: &[Acl]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(path);
    put_jute_acl(&mut out, acl);
    out.put_i32(-1);
    out
}

fn put_jute_acl(out: &mut Vec<u8>, acl: &[Acl]) {
    out.put_count(acl.len());
    for (perms, scheme, id) in acl {
        out.put_i32(*perms);
        out.put_string(scheme);
        out.put_string(id);
    }
}

pub(crate) fn set(path: &str, data: &str, version: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(path);
    out.put_string(data);
    out.put_i32(version);
    out
}

/// Body of a delete, a check and others with a path and a number.
pub(crate) fn path_and(path: &str, number: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(path);
    out.put_i32(number);
    out
}

pub(crate) fn auth(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(0);
    out.put_string("digest");
    out.put_string(text);
    out
}

pub(crate) fn new_session(timeout: i64) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i64(5);
    out.put_i64(timeout);
    out.put_i32(1);
    out
}

pub(crate) fn multi(requests: &[(i32, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (op, body) in requests {
        out.put_i32(*op);
        out.put_bool(false);
        out.put_i32(-1);
        out.extend(body);
    }
    out.put_i32(-1);
    out.put_bool(true);
    out.put_i32(-1);
    out
}
