//! Items of the queue of what this member's connections have handed over, in the order in which they did.

use paddock_proto::OpCode;
use paddock_state::{ConnId, QueuedRead, RequestId};

/// One of a connection's inputs, waiting for its turn. `Write`, `Session` and `Abandoned` stand for the commands of the batch, in
/// its order; the others stand between them.
#[derive(Debug)]
pub(crate) enum QueuedItem {
    Write {
        conn: ConnId,
        request: RequestId,
    },
    /// A client waits for its session, a new one or its own.
    Session {
        conn: ConnId,
    },
    /// A command whose answer is not waited for any more.
    Abandoned,
    Read(QueuedRead),
    Disconnect {
        conn: ConnId,
    },
}

impl QueuedItem {
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, QueuedItem::Write { .. } | QueuedItem::Session { .. } | QueuedItem::Abandoned)
    }

    /// True if a client waits for its session by it.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self, QueuedItem::Session { .. })
    }

    pub(crate) fn is_session_of(&self, of: ConnId) -> bool {
        matches!(self, QueuedItem::Session { conn } if *conn == of)
    }

    /// The connection that waits for the item.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self {
            QueuedItem::Write { conn, .. } | QueuedItem::Session { conn } => Some(*conn),
            QueuedItem::Read(read) => Some(read.client.conn),
            QueuedItem::Abandoned | QueuedItem::Disconnect { .. } => None,
        }
    }

    /// True if the item has to see what was written anywhere before it was asked.
    pub(crate) fn needs_quorum(&self, is_linearizable: bool) -> bool {
        matches!(self, QueuedItem::Read(read) if is_linearizable || read.op == OpCode::Sync)
    }
}
