//! The operations, one method each.

use paddock_proto::jute::Writer;
use paddock_proto::{Acl, AddWatchMode, CreateMode, Id, OpCode, Stat, WatcherKind, WriteReply, encode};

use crate::outbox::Intent;
use crate::pending::Pending;
use crate::watches::WatchIntent;
use crate::{Children, Client, Created, Data, Multi, MultiRead, ReadReply, multi, results};

/// Writes.
///
/// Paths are whole, begin with `/` and do not end with it. A `version` is the one that the znode has to have; `None` is any. Data may be as long as the
/// server's limit of a request; 1 MiB is what a ZooKeeper takes.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) with the code that each method names, or else with `NoAuth` if the ACL forbids it, `BadArguments` if the path is none, `QuotaExceeded`, `ThrottledOp` from a
/// member that has no memory for it, `NotReadOnly` from one without a quorum or with a full disk. All methods may end in
/// [`Error::ConnectionLost`](crate::Error::ConnectionLost): the write may have been carried out.
impl Client {
    /// Makes a znode that everybody may do everything with. Returns its path, with the suffix of ten digits if it is sequential. Refused with `NodeExists`,
    /// with `NoNode` if the parent is not there, and with `NoChildrenForEphemerals`.
    pub fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Pending<String> {
        let body = |out: &mut Vec<u8>| encode::create_open(out, path, Some(data), mode);
        self.request(encode::create_op(mode), Intent::Nothing, body, results::path)
    }

    /// As [`Client::create`], with an ACL of its own; refused with `InvalidAcl` if that is empty or has an unknown scheme.
    pub fn create_with_acl(&self, path: &str, data: &[u8], acl: &[Acl], mode: CreateMode) -> Pending<String> {
        let body = |out: &mut Vec<u8>| encode::create(out, path, Some(data), acl, mode);
        self.request(encode::create_op(mode), Intent::Nothing, body, results::path)
    }

    /// As [`Client::create_with_acl`], and returns the Stat too.
    pub fn create2(&self, path: &str, data: &[u8], acl: &[Acl], mode: CreateMode) -> Pending<Created> {
        let op = if mode == CreateMode::Container { OpCode::CreateContainer } else { OpCode::Create2 };
        let body = |out: &mut Vec<u8>| encode::create(out, path, Some(data), acl, mode);
        self.request(op, Intent::Nothing, body, results::created)
    }

    /// Makes a znode that goes away when it was not changed for `ttl_ms` milliseconds and has no children. `mode` is one of the
    /// two with a TTL. Refused as [`Client::create_with_acl`] is, and with `BadArguments` if the time is not between 1 and 2^40 - 1.
    pub fn create_ttl(
        &self,
        path: &str,
        data: &[u8],
        acl: &[Acl],
        mode: CreateMode,
        ttl_ms: i64,
    ) -> Pending<Created> {
        let body = |out: &mut Vec<u8>| {
            encode::create(out, path, Some(data), acl, mode);
            out.put_i64(ttl_ms);
        };
        self.request(OpCode::CreateTtl, Intent::Nothing, body, results::created)
    }

    /// Removes a znode. Refused with `NoNode`, `BadVersion`, and `NotEmpty` if it has children.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Pending<()> {
        let body = |out: &mut Vec<u8>| encode::path_and_version(out, path, version.unwrap_or(-1));
        self.request(OpCode::Delete, Intent::Nothing, body, results::nothing)
    }

    /// Replaces the data, and returns the Stat with the new version. Refused with `NoNode` and `BadVersion`.
    pub fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Pending<Stat> {
        let body = |out: &mut Vec<u8>| encode::set_data(out, path, Some(data), version.unwrap_or(-1));
        self.request(OpCode::SetData, Intent::Nothing, body, results::stat)
    }

    /// Replaces the ACL. `version` is that of the ACL: `Stat::aversion`. Refused with `NoNode`, `BadVersion` and `InvalidAcl`.
    pub fn set_acl(&self, path: &str, acl: &[Acl], version: Option<i32>) -> Pending<Stat> {
        let body = |out: &mut Vec<u8>| {
            out.put_string(path);
            encode::put_acl(out, acl);
            out.put_i32(version.unwrap_or(-1));
        };
        self.request(OpCode::SetAcl, Intent::Nothing, body, results::stat)
    }

    /// Carries out all of the operations or none, and returns a result for each, in their order. A failed multi is
    /// [`Error::MultiFailed`](crate::Error::MultiFailed) with the first operation that is refused.
    pub fn multi(&self, operations: &Multi) -> Pending<Vec<WriteReply<'static>>> {
        self.request(OpCode::Multi, Intent::Nothing, |out| operations.encode(out), multi::decode)
    }
}

/// The ensemble.
impl Client {
    /// Changes who belongs to it: `joining` are `server.ID=…` lines with commas between them, `leaving` are ids. `version`
    /// is the one that `/zookeeper/config` must have. Answered with what it holds when the change is in force. Who asks
    /// has to be `super`, unless that znode's ACL was changed. Refused with `ReconfigDisabled`, `ReconfigInProgress`, `NewConfigNoQuorum`, `BadVersion` and
    /// `BadArguments`.
    pub fn reconfig(&self, joining: &str, leaving: &str, version: Option<i64>) -> Pending<Data> {
        let body = |out: &mut Vec<u8>| {
            out.put_string(joining);
            out.put_string(leaving);
            out.put_i32(-1);
            out.put_i64(version.unwrap_or(-1));
        };
        self.request(OpCode::Reconfig, Intent::Nothing, body, results::data)
    }
}

/// Reads.
///
/// They see at least what this session has written or read before. Another session's newest write may still be on its way to this server:
/// [`Client::sync`] first, if that matters.
///
/// # Errors
/// [`Error::Refused`](crate::Error::Refused) with `NoNode` if there is no such znode, `NoAuth` if its ACL forbids it, `BadArguments` if the path is none.
/// [`Error::ConnectionLost`](crate::Error::ConnectionLost) if the connection broke first: a read may be asked again.
impl Client {
    /// Returns the Stat of a znode; refused with `NoNode` if there is none.
    pub fn exists(&self, path: &str) -> Pending<Stat> {
        self.read(OpCode::Exists, path, None, results::stat)
    }

    /// Returns data and Stat of a znode, which go together.
    pub fn get_data(&self, path: &str) -> Pending<Data> {
        self.read(OpCode::GetData, path, None, results::data)
    }

    /// The names of the children, in no order.
    pub fn get_children(&self, path: &str) -> Pending<Vec<String>> {
        self.read(OpCode::GetChildren, path, None, results::names)
    }

    /// Returns the names of the children, in no order, and the Stat of their parent.
    pub fn get_children2(&self, path: &str) -> Pending<Children> {
        self.read(OpCode::GetChildren2, path, None, results::children)
    }

    /// Returns the ACL and the Stat. The hashes of `digest` are `x` for a client that may not change the ACL.
    pub fn get_acl(&self, path: &str) -> Pending<(Vec<Acl>, Stat)> {
        let body = |out: &mut Vec<u8>| out.put_string(path);
        self.request(OpCode::GetAcl, Intent::Nothing, body, results::acl)
    }

    /// The ephemerals of this session whose paths start with `prefix`.
    pub fn get_ephemerals(&self, prefix: &str) -> Pending<Vec<String>> {
        let body = |out: &mut Vec<u8>| out.put_string(prefix);
        self.request(OpCode::GetEphemerals, Intent::Nothing, body, results::names)
    }

    /// Number of znodes below `path`, at any depth.
    pub fn get_all_children_number(&self, path: &str) -> Pending<i32> {
        let body = |out: &mut Vec<u8>| out.put_string(path);
        self.request(OpCode::GetAllChildrenNumber, Intent::Nothing, body, results::count)
    }

    /// Carries out several reads on one state, and returns a result for each, in their order. A read that is refused does not fail the others.
    pub fn multi_read(&self, reads: &MultiRead) -> Pending<Vec<ReadReply>> {
        self.request(OpCode::MultiRead, Intent::Nothing, |out| reads.encode(out), multi::decode_read)
    }

    /// Answered, with the same path, when the server has applied all that was written before anywhere; reads after it are up to date.
    pub fn sync(&self, path: &str) -> Pending<String> {
        let body = |out: &mut Vec<u8>| out.put_string(path);
        self.request(OpCode::Sync, Intent::Nothing, body, results::path)
    }

    fn read<T>(
        &self,
        op: OpCode,
        path: &str,
        watch: Option<WatchIntent>,
        decode: fn(crate::Reply) -> Result<T, crate::pending::Undecoded>,
    ) -> Pending<T> {
        let watches = watch.is_some();
        let intent = watch.map_or(Intent::Nothing, Intent::Watch);
        self.request(op, intent, |out| encode::path_and_watch(out, path, watches), decode)
    }
}

/// Watches: the events arrive on the channel of [`ClientOptions::events`](crate::ClientOptions::events), each before any answer that shows its change. The client
/// registers them again after a reconnect. A read that is refused sets none, but for [`Client::watch_exists`].
impl Client {
    /// As `exists`, and tells once when the znode is created, changed or deleted. Refused with `NoNode`, it has set the watch all the same.
    pub fn watch_exists(&self, path: &str) -> Pending<Stat> {
        self.read(OpCode::Exists, path, Some(WatchIntent::Exists(path.into())), results::stat)
    }

    /// As `get_data`, and tells once when the znode is changed or deleted.
    pub fn watch_data(&self, path: &str) -> Pending<Data> {
        self.read(OpCode::GetData, path, Some(WatchIntent::Data(path.into())), results::data)
    }

    /// As `get_children2`, and tells once when a child comes or goes or the znode is deleted.
    pub fn watch_children(&self, path: &str) -> Pending<Children> {
        self.read(OpCode::GetChildren2, path, Some(WatchIntent::Children(path.into())), results::children)
    }

    /// Tells about every change until the watch is removed. The znode need not exist.
    pub fn add_watch(&self, path: &str, mode: AddWatchMode) -> Pending<()> {
        let body = |out: &mut Vec<u8>| encode::path_and_version(out, path, encode::add_watch_mode(mode));
        let intent = Intent::Watch(WatchIntent::Add(path.into(), mode));
        self.request(OpCode::AddWatch, intent, body, results::nothing)
    }

    /// Fails with `ErrorCode::NoWatcher` if there was none.
    pub fn remove_watches(&self, path: &str, kind: WatcherKind) -> Pending<()> {
        let body = |out: &mut Vec<u8>| encode::path_and_version(out, path, encode::watcher_kind(kind));
        let intent = Intent::Watch(WatchIntent::Remove(path.into(), kind));
        self.request(OpCode::RemoveWatches, intent, body, results::nothing)
    }

    /// Succeeds if this connection has such a watch; `ErrorCode::NoWatcher` if not.
    pub fn check_watches(&self, path: &str, kind: WatcherKind) -> Pending<()> {
        let body = |out: &mut Vec<u8>| encode::path_and_version(out, path, encode::watcher_kind(kind));
        self.request(OpCode::CheckWatches, Intent::Nothing, body, results::nothing)
    }
}

/// Identities of the client.
impl Client {
    /// Shows an identity, now and after every reconnect: of `digest`, `auth` is `user:password`. Refused with `AuthFailed`; the server
    /// closes the connection then.
    pub fn add_auth(&self, scheme: &str, auth: &[u8]) -> Pending<()> {
        let intent = Intent::Auth { scheme: scheme.into(), auth: auth.to_vec() };
        self.request(OpCode::Auth, intent, |out| encode::auth(out, scheme, auth), results::nothing)
    }

    /// Scheme and user of each identity the server knows this connection by.
    pub fn who_am_i(&self) -> Pending<Vec<Id>> {
        self.request(OpCode::WhoAmI, Intent::Nothing, |_| {}, results::identities)
    }
}
