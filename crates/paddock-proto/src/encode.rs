//! The bodies of requests, as a client writes them.

use crate::jute::Writer;
use crate::request::{RESUME_ASKING, RESUME_COUNTED, RESUME_KEYED};
use crate::{Acl, AclList, AddWatchMode, CreateMode, OpCode, SessionSecret, SetWatches, WatcherKind};

/// The operation that makes a znode of this kind and answers with its path alone.
pub fn create_op(mode: CreateMode) -> OpCode {
    match mode {
        CreateMode::Container => OpCode::CreateContainer,
        _ => OpCode::Create,
    }
}

/// The flags of a `Write::ResumeSession` go behind the timeout, and the number of moves behind them.
pub fn resume_session(
    out: &mut Vec<u8>,
    timeout_ms: i32,
    is_keyed: bool,
    is_asking: bool,
    moves: Option<u32>,
) {
    out.put_i32(timeout_ms);
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(
        flag(is_keyed, RESUME_KEYED) | flag(is_asking, RESUME_ASKING) | flag(moves.is_some(), RESUME_COUNTED),
    );
    moves.iter().for_each(|moves| out.put_i32(*moves as i32));
}

pub fn secret(out: &mut Vec<u8>, secret: &SessionSecret) {
    out.put_buffer(Some(&secret.0));
}

/// A create whose znode is open to everybody.
pub fn create_open(out: &mut Vec<u8>, path: &str, data: Option<&[u8]>, mode: CreateMode) {
    out.put_string(path);
    out.put_buffer(data);
    out.extend_from_slice(AclList::OPEN.wire());
    out.put_i32(mode.flags());
}

pub fn create(out: &mut Vec<u8>, path: &str, data: Option<&[u8]>, acl: &[Acl], mode: CreateMode) {
    out.put_string(path);
    out.put_buffer(data);
    put_acl(out, acl);
    out.put_i32(mode.flags());
}

pub fn put_acl(out: &mut Vec<u8>, acl: &[Acl]) {
    out.put_count(acl.len());
    acl.iter().for_each(|entry| entry.encode(out));
}

pub fn path_and_version(out: &mut Vec<u8>, path: &str, version: i32) {
    out.put_string(path);
    out.put_i32(version);
}

pub fn path_and_watch(out: &mut Vec<u8>, path: &str, watch: bool) {
    out.put_string(path);
    out.put_bool(watch);
}

pub fn set_data(out: &mut Vec<u8>, path: &str, data: Option<&[u8]>, version: i32) {
    out.put_string(path);
    out.put_buffer(data);
    out.put_i32(version);
}

pub fn auth(out: &mut Vec<u8>, scheme: &str, auth: &[u8]) {
    // The type of an authentication packet, which was never used.
    out.put_i32(0);
    out.put_string(scheme);
    out.put_buffer(Some(auth));
}

pub fn add_watch_mode(mode: AddWatchMode) -> i32 {
    match mode {
        AddWatchMode::Persistent => 0,
        AddWatchMode::PersistentRecursive => 1,
    }
}

pub fn watcher_kind(kind: WatcherKind) -> i32 {
    match kind {
        WatcherKind::Children => 1,
        WatcherKind::Data => 2,
        WatcherKind::Any => 3,
        WatcherKind::Persistent => 4,
        WatcherKind::PersistentRecursive => 5,
    }
}

/// setWatches, or setWatches2 if there is something only that can say: old servers do not know it.
pub fn set_watches(out: &mut Vec<u8>, watches: &SetWatches<'_>) {
    out.put_i64(watches.relative_zxid.0);
    put_paths(out, &watches.data);
    put_paths(out, &watches.exist);
    put_paths(out, &watches.child);
    if needs_set_watches2(watches) {
        put_paths(out, &watches.persistent);
        put_paths(out, &watches.persistent_recursive);
    }
}

pub fn needs_set_watches2(watches: &SetWatches<'_>) -> bool {
    !watches.persistent.is_empty() || !watches.persistent_recursive.is_empty()
}

fn put_paths(out: &mut Vec<u8>, paths: &[&str]) {
    out.put_count(paths.len());
    paths.iter().for_each(|path| out.put_string(path));
}

/// Behind the last operation of a multi.
pub fn multi_end(out: &mut Vec<u8>) {
    multi_header(out, -1, true);
}

/// In front of each operation of a multi.
pub fn multi_operation(out: &mut Vec<u8>, op: OpCode) {
    multi_header(out, op.code(), false);
}

fn multi_header(out: &mut Vec<u8>, op: i32, done: bool) {
    out.put_i32(op);
    out.put_bool(done);
    out.put_i32(-1);
}
