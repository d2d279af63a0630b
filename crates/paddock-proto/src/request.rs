//! Requests of clients. They borrow their strings and buffers from the frame.
//!
//! They come in kinds that take different ways through a member: a `Write` is replicated and applied by every
//! member; a `Read` and a `WatchRequest` are answered by the member itself; the rest concerns the connection.

use crate::jute::{DecodeError, Reader, Writer};
use crate::{
    AclList, AddWatchMode, Dialect, ErrorCode, GroupsCommand, OpCode, SessionId, SessionSecret, Stat,
    WatcherKind, Xid, Zxid,
};

/// In front of every request but the first. The operation is a bare number here: an unknown one must be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub xid: Xid,
    pub op: i32,
}

impl RequestHeader {
    pub fn decode(reader: &mut Reader<'_>) -> Result<RequestHeader, DecodeError> {
        Ok(RequestHeader { xid: Xid(reader.i32()?), op: reader.i32()? })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(self.xid.0);
        out.put_i32(self.op);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    Write(Write<'a>),
    Read(Read<'a>),
    Watch(WatchRequest<'a>),
    /// Answered when all that was written before it has been applied here. The path is only echoed.
    Sync {
        path: &'a str,
    },
    WhoAmI,
    Ping,
    Auth(Auth<'a>),
    Sasl,
}

/// A change of the replicated state.
#[derive(Clone, Debug, PartialEq)]
pub enum Write<'a> {
    CreateSession {
        timeout_ms: i32,
    },
    CloseSession,
    /// A client has come back to its session, perhaps on another member. Refused from clients, and no transaction: it
    /// takes no zxid.
    ResumeSession {
        timeout_ms: i32,
        /// The client has shown a password that was made from the ensemble's secret, and not ZooKeeper's.
        is_keyed: bool,
        /// The client has yet to show an identity: it is only asked if the session lives.
        is_asking: bool,
        /// Moves of the session that its member knew of when it asked: one that has moved since is not taken from where it is.
        /// `None` from builds that did not count, whose requests count as no move.
        moves: Option<u32>,
    },
    /// The client of a session has proved who it is: from now on no other client resumes it. Refused from clients, and no
    /// transaction: it takes no zxid.
    BindSession,
    /// The service's own secret for passwords of sessions, which counts if there is none yet; refused from clients, and no
    /// transaction: it takes no zxid.
    SetSecret {
        secret: SessionSecret,
    },
    /// The service's own end of a session that was silent for too long; refused from clients.
    ExpireSession {
        session: SessionId,
    },
    Create(Create<'a>),
    Delete {
        path: &'a str,
        version: i32,
    },
    /// The service's own removal of an empty container or an expired TTL znode; refused from clients.
    DeleteContainer {
        path: &'a str,
    },
    SetData {
        path: &'a str,
        data: Option<&'a [u8]>,
        version: i32,
    },
    SetAcl {
        path: &'a str,
        acl: AclList<'a>,
        version: i32,
    },
    /// Only inside a multi.
    Check {
        path: &'a str,
        version: i32,
    },
    /// Refused if there is a znode with this version; -1 stands for any.
    CheckNotExists {
        path: &'a str,
        version: i32,
    },
    /// Every field must be as given; -1 stands for anything.
    CheckStat {
        path: &'a str,
        version: i32,
        stat: Stat,
    },
    /// A delete that is content if it cannot be done.
    TryRemove {
        path: &'a str,
        version: i32,
    },
    /// The znode and all below it, if they are not more than `nodes_max`.
    RemoveRecursive {
        path: &'a str,
        nodes_max: u32,
    },
    /// A change of the ensemble's members. It is answered when the change is in force.
    Reconfig(Reconfig<'a>),
    /// The service's own word on who belongs to an ensemble that has just begun; refused from clients.
    FoundEnsemble {
        cluster: u64,
        /// As lines of `/zookeeper/config`.
        members: &'a str,
    },
    /// A command of the service between Raft groups; refused from clients.
    BetweenGroups(GroupsCommand<'a>),
    /// The service's own word on a change of members: it is in force, or it failed; refused from clients.
    SettleReconfig {
        error: Option<ErrorCode>,
    },
    /// All or nothing. Holds only creates, deletes, setDatas and checks, ClickHouse Keeper's kinds included.
    Multi(Vec<Write<'a>>),
}

/// Members that an ensemble is to have: all of them, or those that join and those that leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconfig<'a> {
    /// `server.ID=…` with commas between them.
    pub joining: Option<&'a str>,
    /// Ids with commas between them.
    pub leaving: Option<&'a str>,
    /// `server.ID=…` with commas or line ends between them.
    pub new_members: Option<&'a str>,
    /// The version that the members must have; -1 for any.
    pub version: i64,
}

/// A create, by any of its five operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Create<'a> {
    /// `Create`, `Create2`, `CreateContainer`, `CreateTtl` or `CreateIfNotExists`: it decides the form of the reply.
    pub op: OpCode,
    pub path: &'a str,
    pub data: Option<&'a [u8]>,
    pub acl: AclList<'a>,
    /// The mode as it came; `mode` says what it means.
    pub flags: i32,
    /// In milliseconds; only `CreateTtl` carries one.
    pub ttl_ms: Option<i64>,
}

impl Create<'_> {
    /// `None` for flags that no mode has.
    pub fn mode(&self) -> Option<CreateMode> {
        CreateMode::from_flags(self.flags)
    }
}

/// Kind of znode that a create makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum CreateMode {
    /// Stays until it is removed.
    Persistent = 0,
    /// Ends with the session that makes it, and has no children.
    Ephemeral = 1,
    /// Stays; the server appends ten digits to its name, which rise with each child made.
    PersistentSequential = 2,
    /// Ends with its session, and has such a suffix.
    EphemeralSequential = 3,
    /// Removed by the server some time after its last child has gone.
    Container = 4,
    /// Removed by the server when it was not changed for its TTL and has no children.
    PersistentWithTtl = 5,
    /// As with a TTL, with a suffix.
    PersistentSequentialWithTtl = 6,
}

impl CreateMode {
    /// The mode with this number on the wire, if there is one.
    pub fn from_flags(flags: i32) -> Option<CreateMode> {
        Some(match flags {
            0 => CreateMode::Persistent,
            1 => CreateMode::Ephemeral,
            2 => CreateMode::PersistentSequential,
            3 => CreateMode::EphemeralSequential,
            4 => CreateMode::Container,
            5 => CreateMode::PersistentWithTtl,
            6 => CreateMode::PersistentSequentialWithTtl,
            _ => return None,
        })
    }

    /// The number on the wire.
    pub fn flags(self) -> i32 {
        self as i32
    }

    /// True if the znode ends with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, CreateMode::Ephemeral | CreateMode::EphemeralSequential)
    }

    /// True if the server appends a suffix to the name.
    pub fn is_sequential(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentSequential
                | CreateMode::EphemeralSequential
                | CreateMode::PersistentSequentialWithTtl
        )
    }

    /// True if the request has to carry a TTL.
    pub fn has_ttl(self) -> bool {
        matches!(self, CreateMode::PersistentWithTtl | CreateMode::PersistentSequentialWithTtl)
    }
}

/// A question to the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Read<'a> {
    Exists {
        path: &'a str,
        watch: bool,
    },
    GetData {
        path: &'a str,
        watch: bool,
    },
    GetAcl {
        path: &'a str,
    },
    GetChildren {
        path: &'a str,
        watch: bool,
    },
    /// As `GetChildren`, and the Stat of the parent.
    GetChildren2 {
        path: &'a str,
        watch: bool,
    },
    /// This session's ephemerals whose path starts with the prefix.
    GetEphemerals {
        prefix: Option<&'a str>,
    },
    GetAllChildrenNumber {
        path: &'a str,
    },
    /// As `GetChildren2`, of some children only.
    FilteredList {
        path: &'a str,
        watch: bool,
        filter: ChildFilter,
    },
    /// As `FilteredList`, and what the children hold.
    FilteredListWithStatsAndData {
        path: &'a str,
        watch: bool,
        filter: ChildFilter,
        with_stats: bool,
        with_data: bool,
    },
    /// The paths of what is below a znode, the nearest first, at most `nodes_max` of them.
    ListRecursive {
        path: &'a str,
        nodes_max: u32,
    },
    /// From a ZooKeeper client it holds only `GetData` and `GetChildren`, without watches.
    MultiRead(Vec<Read<'a>>),
}

/// Children that a filtered list tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildFilter {
    All,
    Persistent,
    Ephemeral,
}

impl ChildFilter {
    fn decode(r: &mut Reader<'_>) -> Result<ChildFilter, DecodeError> {
        match r.u8()? {
            0 => Ok(ChildFilter::All),
            1 => Ok(ChildFilter::Persistent),
            2 => Ok(ChildFilter::Ephemeral),
            other => Err(DecodeError::UnknownValue { field: "child filter", value: other.into() }),
        }
    }
}

/// Request about the watches of the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchRequest<'a> {
    Set(SetWatches<'a>),
    Add { path: &'a str, mode: AddWatchMode },
    Check { path: &'a str, kind: WatcherKind },
    Remove { path: &'a str, kind: WatcherKind },
}

/// The watches a client had before it reconnected, and the newest zxid it had seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetWatches<'a> {
    pub relative_zxid: Zxid,
    pub data: Vec<&'a str>,
    pub exist: Vec<&'a str>,
    pub child: Vec<&'a str>,
    pub persistent: Vec<&'a str>,
    pub persistent_recursive: Vec<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auth<'a> {
    pub scheme: &'a str,
    pub auth: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Reads the body of a request. Bytes after its last field are ignored, as ZooKeeper does.
    pub fn decode(op: OpCode, body: &'a [u8], dialect: Dialect) -> Result<Request<'a>, DecodeError> {
        let r = &mut Reader::new(body);
        if is_write(op) {
            return Write::decode(op, body).map(Request::Write);
        }
        Ok(match op {
            OpCode::Sync => Request::Sync { path: r.string()? },
            OpCode::WhoAmI => Request::WhoAmI,
            OpCode::Ping => Request::Ping,
            OpCode::Auth => Request::Auth(Auth::decode(r)?),
            OpCode::Sasl => Request::Sasl,
            OpCode::SetWatches | OpCode::SetWatches2 => {
                Request::Watch(WatchRequest::Set(SetWatches::decode(op, r)?))
            }
            OpCode::AddWatch => Request::Watch(WatchRequest::Add {
                path: r.string()?,
                mode: AddWatchMode::from_code(r.i32()?)?,
            }),
            OpCode::CheckWatches => Request::Watch(WatchRequest::Check {
                path: r.string()?,
                kind: WatcherKind::from_code(r.i32()?)?,
            }),
            OpCode::RemoveWatches => Request::Watch(WatchRequest::Remove {
                path: r.string()?,
                kind: WatcherKind::from_code(r.i32()?)?,
            }),
            OpCode::MultiRead => {
                let read = |op, r: &mut Reader<'a>| Read::decode_in_multi(op, r, dialect);
                Request::Read(Read::MultiRead(decode_multi(r, read)?))
            }
            _ => Request::Read(Read::decode(op, r)?),
        })
    }
}

/// Flags of a session that is resumed.
pub(crate) const RESUME_KEYED: u8 = 1;
pub(crate) const RESUME_ASKING: u8 = 2;
pub(crate) const RESUME_COUNTED: u8 = 4;

fn decode_secret(r: &mut Reader<'_>) -> Result<SessionSecret, DecodeError> {
    let bytes = r.buffer()?.unwrap_or_default();
    let wrong = DecodeError::UnknownValue { field: "length of a secret", value: bytes.len() as i32 };
    SessionSecret::from_bytes(bytes).ok_or(wrong)
}

/// True if the operation changes the replicated state.
fn is_write(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::Delete
            | OpCode::DeleteContainer
            | OpCode::SetData
            | OpCode::SetAcl
            | OpCode::Check
            | OpCode::Multi
            | OpCode::CheckNotExists
            | OpCode::CreateIfNotExists
            | OpCode::RemoveRecursive
            | OpCode::CheckStat
            | OpCode::TryRemove
            | OpCode::CreateSession
            | OpCode::CloseSession
            | OpCode::ResumeSession
            | OpCode::ExpireSession
            | OpCode::Reconfig
            | OpCode::FoundEnsemble
            | OpCode::SettleReconfig
            | OpCode::SetSecret
            | OpCode::BindSession
            | OpCode::BetweenGroups
    )
}

impl OpCode {
    /// True if the operation changes the replicated state, so that it goes through the log.
    pub fn is_write(self) -> bool {
        is_write(self)
    }
}

impl<'a> Reconfig<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Reconfig<'a>, DecodeError> {
        let (joining, leaving, new_members) =
            (r.nullable_string()?, r.nullable_string()?, r.nullable_string()?);
        Ok(Reconfig { joining, leaving, new_members, version: r.i64()? })
    }
}

impl<'a> Write<'a> {
    /// Reads the body of a write; `op` must be one.
    pub fn decode(op: OpCode, body: &'a [u8]) -> Result<Write<'a>, DecodeError> {
        let r = &mut Reader::new(body);
        match op {
            OpCode::Multi => Ok(Write::Multi(decode_multi(r, Write::decode_in_multi)?)),
            _ => Write::decode_single(op, r),
        }
    }

    fn decode_single(op: OpCode, r: &mut Reader<'a>) -> Result<Write<'a>, DecodeError> {
        Ok(match op {
            OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::CreateIfNotExists => Write::Create(Create::decode(op, r)?),
            OpCode::Delete => Write::Delete { path: r.string()?, version: r.i32()? },
            OpCode::DeleteContainer => Write::DeleteContainer { path: r.string()? },
            OpCode::SetData => Write::SetData { path: r.string()?, data: r.buffer()?, version: r.i32()? },
            OpCode::SetAcl => {
                Write::SetAcl { path: r.string()?, acl: AclList::decode(r)?, version: r.i32()? }
            }
            OpCode::Check => Write::Check { path: r.string()?, version: r.i32()? },
            OpCode::CheckNotExists => Write::CheckNotExists { path: r.string()?, version: r.i32()? },
            OpCode::CheckStat => {
                Write::CheckStat { path: r.string()?, version: r.i32()?, stat: Stat::decode(r)? }
            }
            OpCode::TryRemove => Write::TryRemove { path: r.string()?, version: r.i32()? },
            OpCode::RemoveRecursive => {
                Write::RemoveRecursive { path: r.string()?, nodes_max: r.i32()? as u32 }
            }
            OpCode::CreateSession => Write::CreateSession { timeout_ms: r.i32()? },
            OpCode::CloseSession => Write::CloseSession,
            OpCode::ResumeSession => Write::decode_resume(r)?,
            OpCode::BindSession => Write::BindSession,
            OpCode::SetSecret => Write::SetSecret { secret: decode_secret(r)? },
            OpCode::ExpireSession => Write::ExpireSession { session: SessionId(r.i64()?) },
            OpCode::Reconfig => Write::Reconfig(Reconfig::decode(r)?),
            OpCode::FoundEnsemble => Write::FoundEnsemble { cluster: r.i64()? as u64, members: r.string()? },
            OpCode::SettleReconfig => Write::SettleReconfig { error: ErrorCode::from_code(r.i32()?) },
            OpCode::BetweenGroups => Write::BetweenGroups(GroupsCommand::decode(r)?),
            other => return Err(DecodeError::UnknownValue { field: "write operation", value: other.code() }),
        })
    }

    fn decode_resume(r: &mut Reader<'a>) -> Result<Write<'a>, DecodeError> {
        let timeout_ms = r.i32()?;
        // Builds that knew ZooKeeper's passwords only wrote no flags.
        let flags = if r.is_empty() { 0 } else { r.u8()? };
        if flags & !(RESUME_KEYED | RESUME_ASKING | RESUME_COUNTED) != 0 {
            return Err(DecodeError::UnknownValue {
                field: "flags of a resumed session",
                value: flags.into(),
            });
        }
        let (is_keyed, is_asking) = (flags & RESUME_KEYED != 0, flags & RESUME_ASKING != 0);
        let moves = if flags & RESUME_COUNTED != 0 { Some(r.i32()? as u32) } else { None };
        Ok(Write::ResumeSession { timeout_ms, is_keyed, is_asking, moves })
    }

    fn decode_in_multi(op: OpCode, r: &mut Reader<'a>) -> Result<Write<'a>, DecodeError> {
        let write = match op {
            OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::Delete
            | OpCode::SetData
            | OpCode::Check
            | OpCode::CheckNotExists
            | OpCode::CreateIfNotExists
            | OpCode::RemoveRecursive
            | OpCode::CheckStat
            | OpCode::TryRemove => Write::decode_single(op, r)?,
            other => {
                return Err(DecodeError::UnknownValue { field: "operation in multi", value: other.code() });
            }
        };
        match write {
            // Alone, such flags are a bad argument; inside a multi ZooKeeper cannot even read the request, unless it is
            // a createTTL.
            Write::Create(create) if create.mode().is_none() && op != OpCode::CreateTtl => {
                Err(DecodeError::UnknownValue { field: "create flags", value: create.flags })
            }
            write => Ok(write),
        }
    }
}

impl<'a> Create<'a> {
    fn decode(op: OpCode, r: &mut Reader<'a>) -> Result<Create<'a>, DecodeError> {
        Ok(Create {
            op,
            path: r.string()?,
            data: r.buffer()?,
            acl: AclList::decode(r)?,
            flags: r.i32()?,
            ttl_ms: if op == OpCode::CreateTtl { Some(r.i64()?) } else { None },
        })
    }
}

impl<'a> Read<'a> {
    fn decode(op: OpCode, r: &mut Reader<'a>) -> Result<Read<'a>, DecodeError> {
        Ok(match op {
            OpCode::Exists => Read::Exists { path: r.string()?, watch: r.bool()? },
            OpCode::GetData => Read::GetData { path: r.string()?, watch: r.bool()? },
            OpCode::GetAcl => Read::GetAcl { path: r.string()? },
            OpCode::GetChildren => Read::GetChildren { path: r.string()?, watch: r.bool()? },
            OpCode::GetChildren2 => Read::GetChildren2 { path: r.string()?, watch: r.bool()? },
            OpCode::GetEphemerals => Read::GetEphemerals { prefix: r.nullable_string()? },
            OpCode::GetAllChildrenNumber => Read::GetAllChildrenNumber { path: r.string()? },
            OpCode::FilteredList => {
                Read::FilteredList { path: r.string()?, watch: r.bool()?, filter: ChildFilter::decode(r)? }
            }
            OpCode::FilteredListWithStatsAndData => Read::FilteredListWithStatsAndData {
                path: r.string()?,
                watch: r.bool()?,
                filter: ChildFilter::decode(r)?,
                with_stats: r.bool()?,
                with_data: r.bool()?,
            },
            OpCode::ListRecursive => Read::ListRecursive { path: r.string()?, nodes_max: r.i32()? as u32 },
            other => return Err(DecodeError::UnknownValue { field: "read operation", value: other.code() }),
        })
    }

    fn decode_in_multi(op: OpCode, r: &mut Reader<'a>, dialect: Dialect) -> Result<Read<'a>, DecodeError> {
        let unknown = DecodeError::UnknownValue { field: "operation in multi read", value: op.code() };
        match (dialect, op) {
            (
                Dialect::ClickHouse,
                OpCode::Exists
                | OpCode::GetData
                | OpCode::GetChildren
                | OpCode::GetChildren2
                | OpCode::FilteredList
                | OpCode::FilteredListWithStatsAndData
                | OpCode::ListRecursive,
            ) => Read::decode(op, r),
            (Dialect::ClickHouse, _) => Err(unknown),
            (Dialect::ZooKeeper, _) => {
                // ZooKeeper drops the watch flag of reads in a multi.
                let (path, _watch) = (r.string()?, r.bool()?);
                match op {
                    OpCode::GetData => Ok(Read::GetData { path, watch: false }),
                    OpCode::GetChildren => Ok(Read::GetChildren { path, watch: false }),
                    _ => Err(unknown),
                }
            }
        }
    }
}

impl<'a> SetWatches<'a> {
    fn decode(op: OpCode, r: &mut Reader<'a>) -> Result<SetWatches<'a>, DecodeError> {
        let mut watches = SetWatches {
            relative_zxid: Zxid(r.i64()?),
            data: r.strings()?,
            exist: r.strings()?,
            child: r.strings()?,
            ..SetWatches::default()
        };
        if op == OpCode::SetWatches2 {
            watches.persistent = r.strings()?;
            watches.persistent_recursive = r.strings()?;
        }
        Ok(watches)
    }

    /// These watches in portions of at most `watches_max`.
    pub fn portions(&self, watches_max: usize) -> Vec<SetWatches<'a>> {
        type List<'a> = for<'b> fn(&'b mut SetWatches<'a>) -> &'b mut Vec<&'a str>;
        let lists: [(&[&'a str], List<'a>); 5] = [
            (&self.data, |portion| &mut portion.data),
            (&self.exist, |portion| &mut portion.exist),
            (&self.child, |portion| &mut portion.child),
            (&self.persistent, |portion| &mut portion.persistent),
            (&self.persistent_recursive, |portion| &mut portion.persistent_recursive),
        ];
        let mut portions = Vec::new();
        let mut room = 0;
        for (mut paths, list) in lists {
            while !paths.is_empty() {
                if room == 0 {
                    portions.push(SetWatches { relative_zxid: self.relative_zxid, ..SetWatches::default() });
                    room = watches_max.max(1);
                }
                let (now, later) = paths.split_at(paths.len().min(room));
                list(portions.last_mut().expect("the first path opens a portion")).extend(now);
                (paths, room) = (later, room - now.len());
            }
        }
        portions
    }
}

impl<'a> Auth<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Auth<'a>, DecodeError> {
        r.i32()?;
        Ok(Auth { scheme: r.string()?, auth: r.buffer()? })
    }
}

/// In front of every operation of a multi, and of every result.
pub(crate) struct MultiHeader {
    pub op: i32,
    pub done: bool,
    pub error: i32,
}

impl MultiHeader {
    pub(crate) const END: MultiHeader = MultiHeader { op: -1, done: true, error: -1 };

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<MultiHeader, DecodeError> {
        Ok(MultiHeader { op: r.i32()?, done: r.bool()?, error: r.i32()? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(self.op);
        out.put_bool(self.done);
        out.put_i32(self.error);
    }
}

fn decode_multi<'a, T>(
    r: &mut Reader<'a>,
    item: impl Fn(OpCode, &mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut items = Vec::new();
    loop {
        let header = MultiHeader::decode(r)?;
        if header.done {
            return Ok(items);
        }
        let unknown = DecodeError::UnknownValue { field: "operation in multi", value: header.op };
        items.push(item(OpCode::from_code(header.op).ok_or(unknown)?, r)?);
    }
}
