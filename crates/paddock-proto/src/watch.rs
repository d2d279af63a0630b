//! Watches on the wire: what can be asked for, and the events that answer.

use crate::frame;
use crate::jute::{DecodeError, Reader, Writer};
use crate::{ReplyHeader, Xid, Zxid};

/// Change of a znode that an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum EventKind {
    /// The znode was made.
    NodeCreated = 1,
    /// The znode was removed.
    NodeDeleted = 2,
    /// Its data were set, also to what they were.
    NodeDataChanged = 3,
    /// A child was made or removed.
    NodeChildrenChanged = 4,
}

/// The state every event of a server carries: the client is connected, else it would not get it.
const SYNC_CONNECTED: i32 = 3;

/// A notification: it goes to the client with xid -1, outside the order of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchEvent<'a> {
    pub kind: EventKind,
    pub path: &'a str,
    /// The transaction that caused it; `Zxid::NONE` for the catch-up events of setWatches.
    pub zxid: Zxid,
}

impl<'a> WatchEvent<'a> {
    /// The whole frame, length included.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame::write(out, |out| {
            ReplyHeader { xid: Xid::NOTIFICATION, zxid: self.zxid, error: None }.encode(out);
            out.put_i32(self.kind as i32);
            out.put_i32(SYNC_CONNECTED);
            out.put_string(self.path);
        });
    }

    /// The event in the body of a notification whose header said `zxid`.
    pub fn decode(zxid: Zxid, body: &'a [u8]) -> Result<WatchEvent<'a>, DecodeError> {
        let mut reader = Reader::new(body);
        let kind = match reader.i32()? {
            1 => EventKind::NodeCreated,
            2 => EventKind::NodeDeleted,
            3 => EventKind::NodeDataChanged,
            4 => EventKind::NodeChildrenChanged,
            value => return Err(DecodeError::UnknownValue { field: "event type", value }),
        };
        reader.i32()?;
        Ok(WatchEvent { kind, path: reader.string()?, zxid })
    }
}

/// Mode of an addWatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddWatchMode {
    /// The znode itself, its data and its children, again and again.
    Persistent,
    /// The znode and everything below it.
    PersistentRecursive,
}

impl AddWatchMode {
    /// The mode with this number on the wire.
    pub fn from_code(code: i32) -> Result<AddWatchMode, DecodeError> {
        match code {
            0 => Ok(AddWatchMode::Persistent),
            1 => Ok(AddWatchMode::PersistentRecursive),
            value => Err(DecodeError::UnknownValue { field: "watch mode", value }),
        }
    }
}

/// Watches that checkWatches and removeWatches mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatcherKind {
    /// One-shot watches of children.
    Children,
    /// One-shot watches of data, and of a znode that is not there.
    Data,
    /// All kinds.
    Any,
    /// Watches of one znode that stay.
    Persistent,
    /// Watches of a subtree.
    PersistentRecursive,
}

impl WatcherKind {
    /// The kind with this number on the wire.
    pub fn from_code(code: i32) -> Result<WatcherKind, DecodeError> {
        match code {
            1 => Ok(WatcherKind::Children),
            2 => Ok(WatcherKind::Data),
            3 => Ok(WatcherKind::Any),
            4 => Ok(WatcherKind::Persistent),
            5 => Ok(WatcherKind::PersistentRecursive),
            value => Err(DecodeError::UnknownValue { field: "watcher type", value }),
        }
    }
}
