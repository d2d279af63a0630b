//! A client: one session after the other, at one front end after the other.

use std::collections::VecDeque;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, AddWatchMode, DecodeError, IdList, OpCode, SessionId, WatcherKind, Zxid, encode};
use paddock_state::{ClientInput, ConnId, ProvenIds, Resumption};
use paddock_tree::Command;

use crate::checks::watching::Watching;

/// The error code of a write that etcd has no space for.
pub(crate) const QUOTA_EXCEEDED: i32 = -125;

/// Something that a client asks for, with the number that no other request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Creates a sequential znode below this directory that holds the number of the request.
    Create {
        directory: String,
        is_ephemeral: bool,
    },
    /// Sets the data of a directory to the number of the request.
    Set {
        path: String,
    },
    /// Deletes what this client has created, and no other client deletes.
    Delete {
        path: String,
    },
    /// Reads what this client has created, with the number of that request.
    Read {
        path: String,
        number: u64,
    },
    /// Reads, and asks to be told of the next change.
    Watch {
        path: String,
        how: Look,
    },
    AddWatch {
        path: String,
        mode: AddWatchMode,
    },
    RemoveWatches {
        path: String,
        kind: WatcherKind,
    },
    /// Sets the watches again that the client had when it had seen this zxid.
    SetWatches {
        relative_zxid: Zxid,
        op: OpCode,
        body: Vec<u8>,
    },
    Sync,
    Close,
}

/// The greeting of a client with a session, or of one that wants a new one; and the session as the client asks for it, if it asks first
/// whether that lives.
pub(crate) fn greeting(
    conn: ConnId,
    session: Option<SessionId>,
    timeout_ms: i32,
    is_asking: bool,
) -> (ClientInput, Option<Resumption>) {
    let may_only_read = false;
    let Some(session) = session else {
        let ids = ProvenIds::default();
        return (ClientInput::Connect { conn, timeout_ms, may_only_read, ids }, None);
    };
    let resumption = Resumption { is_asking, ..Resumption::keyed(session, timeout_ms) };
    let asking = is_asking.then(|| resumption.clone());
    (ClientInput::Resume { conn, resumption, may_only_read }, asking)
}

/// A read that can set a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Exists,
    Data,
    Children,
}

impl Ask {
    /// Sets the watches again that a client knows of, which has seen a zxid; `None` if it knows of none.
    pub(crate) fn to_set_again(watching: &Watching, relative_zxid: Zxid) -> Option<Ask> {
        if watching.is_empty() {
            return None;
        }
        let watches = watching.to_set_again(relative_zxid);
        let op = if encode::needs_set_watches2(&watches) { OpCode::SetWatches2 } else { OpCode::SetWatches };
        let mut body = Vec::new();
        encode::set_watches(&mut body, &watches);
        Some(Ask::SetWatches { relative_zxid, op, body })
    }

    pub(crate) fn op(&self) -> OpCode {
        match self {
            Ask::Create { .. } => OpCode::Create,
            Ask::Set { .. } => OpCode::SetData,
            Ask::Delete { .. } => OpCode::Delete,
            Ask::Read { .. } => OpCode::GetData,
            Ask::Watch { how: Look::Exists, .. } => OpCode::Exists,
            Ask::Watch { how: Look::Data, .. } => OpCode::GetData,
            Ask::Watch { how: Look::Children, .. } => OpCode::GetChildren,
            Ask::AddWatch { .. } => OpCode::AddWatch,
            Ask::RemoveWatches { .. } => OpCode::RemoveWatches,
            Ask::SetWatches { op, .. } => *op,
            Ask::Sync => OpCode::Sync,
            Ask::Close => OpCode::CloseSession,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Ask::Create { .. } | Ask::Set { .. } | Ask::Delete { .. } | Ask::Close)
    }

    pub(crate) fn body(&self, number: u64) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Ask::Create { directory, is_ephemeral } => {
                let (name, flags) = if *is_ephemeral { ("e-", 3) } else { ("q-", 2) };
                body.put_string(&format!("{directory}/{name}"));
                body.put_buffer(Some(&number.to_be_bytes()));
                body.put_count(1);
                Acl::open().encode(&mut body);
                body.put_i32(flags);
            }
            Ask::Set { path } => {
                body.put_string(path);
                body.put_buffer(Some(&number.to_be_bytes()));
                body.put_i32(-1);
            }
            Ask::Delete { path } => {
                body.put_string(path);
                body.put_i32(-1);
            }
            Ask::Read { path, .. } => encode::path_and_watch(&mut body, path, false),
            Ask::Watch { path, .. } => encode::path_and_watch(&mut body, path, true),
            Ask::AddWatch { path, mode } => {
                body.put_string(path);
                body.put_i32(encode::add_watch_mode(*mode));
            }
            Ask::RemoveWatches { path, kind } => {
                body.put_string(path);
                body.put_i32(encode::watcher_kind(*kind));
            }
            Ask::SetWatches { body: encoded, .. } => body.extend_from_slice(encoded),
            Ask::Sync => body.put_string("/"),
            Ask::Close => {}
        }
        body
    }

    pub(crate) fn command(&self, session: SessionId, number: u64) -> Vec<u8> {
        let mut command = Vec::new();
        Command::encode(session, 0, IdList::NONE, self.op(), &self.body(number), &mut command);
        command
    }
}

/// A request under way.
#[derive(Clone, Debug)]
pub(crate) struct OpenRequest {
    pub(crate) number: u64,
    pub(crate) ask: Ask,
    /// Newest revision of a znode when it was asked.
    pub(crate) asked_at: i64,
    /// Time when it was asked, in milliseconds.
    pub(crate) asked_ms: u64,
}

/// A znode that a client has created and has not deleted.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) path: String,
    pub(crate) number: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FrontEndClient {
    /// The front end that it is connected to, or was last.
    pub(crate) front: usize,
    pub(crate) conn: Option<ConnId>,
    pub(crate) session: Option<SessionId>,
    pub(crate) is_connected: bool,
    /// The session that it wants back once it has been told that it lives.
    pub(crate) asking: Option<Resumption>,
    /// Requests under way, in their order.
    pub(crate) waiting: VecDeque<OpenRequest>,
    /// Newest zxid that a reply had.
    pub(crate) zxid: i64,
    /// Persistent znodes that are its own.
    pub(crate) owned: Vec<Owned>,
    /// Its watches, and what it has to be told of.
    pub(crate) watching: Watching,
    pub(crate) acknowledged: u64,
    /// Writes that were refused for want of space.
    pub(crate) refused_for_space: u64,
}

impl FrontEndClient {
    /// The connection is gone.
    pub(crate) fn disconnected(&mut self) -> Option<ConnId> {
        self.is_connected = false;
        self.asking = None;
        self.waiting.clear();
        self.watching.lose_connection();
        self.conn.take()
    }

    /// The session has ended, and its watches with it.
    pub(crate) fn ended(&mut self) {
        self.session = None;
        self.watching = Watching::default();
    }
}

/// A reply to a request.
#[derive(Debug)]
pub(crate) struct EtcdReply<'a> {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    /// Error code; 0 for success.
    pub(crate) error: i32,
    body: &'a [u8],
}

impl EtcdReply<'_> {
    /// Out of a whole frame.
    pub(crate) fn decode(frame: &[u8]) -> Result<EtcdReply<'_>, DecodeError> {
        let mut r = Reader::new(&frame[4..]);
        let (xid, zxid, error) = (r.i32()?, r.i64()?, r.i32()?);
        Ok(EtcdReply { xid, zxid, error, body: r.rest() })
    }

    /// The path that a create has made.
    pub(crate) fn path(&self) -> Option<&str> {
        Reader::new(self.body).string().ok()
    }

    /// The data that a read has found, which is a number.
    pub(crate) fn number(&self) -> Option<u64> {
        let data = Reader::new(self.body).buffer().ok()??;
        Some(u64::from_be_bytes(data.try_into().ok()?))
    }
}
