//! Requests of a client, and what it has to remember until they are answered.

use paddock_model::{Question, Wish};
use paddock_proto::jute::Writer;
use paddock_proto::{AddWatchMode, Id, OpCode, WatcherKind, Write, Xid, Zxid, encode};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ask {
    Write(Wish),
    Read {
        question: Question,
        watch: bool,
    },
    Sync,
    WhoAmI,
    AddWatch {
        path: String,
        mode: AddWatchMode,
    },
    CheckWatches {
        path: String,
        kind: WatcherKind,
    },
    RemoveWatches {
        path: String,
        kind: WatcherKind,
    },
    /// The watches are the client's; they were set when it had seen this zxid.
    SetWatches {
        relative_zxid: Zxid,
    },
}

impl Ask {
    /// The operation and the body of the request, but for `SetWatches`.
    pub(crate) fn encode(&self) -> (OpCode, Vec<u8>) {
        let mut body = Vec::new();
        let op = match self {
            Ask::Write(wish) => {
                wish.put_body(&mut body);
                wish.op()
            }
            Ask::Read { question, watch } => {
                question.put_body(*watch, &mut body);
                question.op()
            }
            Ask::Sync => {
                body.put_string("/");
                OpCode::Sync
            }
            Ask::WhoAmI => OpCode::WhoAmI,
            Ask::AddWatch { path, mode } => {
                body.put_string(path);
                body.put_i32(encode::add_watch_mode(*mode));
                OpCode::AddWatch
            }
            Ask::CheckWatches { path, kind } => {
                body.put_string(path);
                body.put_i32(encode::watcher_kind(*kind));
                OpCode::CheckWatches
            }
            Ask::RemoveWatches { path, kind } => {
                body.put_string(path);
                body.put_i32(encode::watcher_kind(*kind));
                OpCode::RemoveWatches
            }
            Ask::SetWatches { .. } => unreachable!("a client encodes its watches itself"),
        };
        (op, body)
    }

    /// True for an operation that no client may ask for: it is refused, and the connection ends.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(self, Ask::Write(Wish::Check { .. } | Wish::DeleteContainer { .. }))
    }

    /// A write as the state will read it; `None` for what never reaches the log.
    pub(crate) fn as_logged(&self) -> Option<Wish> {
        let Ask::Write(wish) = self else { return None };
        if self.ends_connection() {
            return None;
        }
        let (op, body) = self.encode();
        let read = Write::decode(op, &body);
        // Only a multi that cannot be read goes through the log.
        (read.is_ok() || matches!(wish, Wish::Multi(_))).then(|| Wish::of(&read))
    }
}

/// A question under way.
#[derive(Clone, Debug)]
pub(crate) struct AskedRequest {
    pub(crate) xid: Xid,
    pub(crate) ask: Ask,
    /// The newest zxid that any client had seen when it was asked.
    pub(crate) shown: Zxid,
    /// Moments of the history when it was asked, where znodes are spread.
    pub(crate) asked_at: usize,
    /// The identities that the connection had shown before.
    pub(crate) ids: Vec<Id>,
}
