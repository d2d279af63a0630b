//! An answer that waits for its turn.

use paddock_proto::{ReplyHeader, Zxid};
use paddock_tree::MISPLACED;

use crate::moment::OrderMoment;

/// Bytes of a reply's header behind its length: xid, zxid and error.
const XID_BYTES: usize = 4;
const ZXID_BYTES: usize = 8;
/// Bytes of the length in front of a frame.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A reply as it will leave: watch events in front of it, if any, and one frame.
#[derive(Debug)]
pub(crate) struct RoutedAnswer {
    pub(crate) bytes: Vec<u8>,
    /// The largest stamp that it shows.
    pub(crate) zxid: Zxid,
    /// Its moment: that of the write that it answers, or behind all that it shows.
    pub(crate) moment: OrderMoment,
    /// Code of the error in its header.
    pub(crate) error: Option<i32>,
    /// All groups have to be at the stamp before it leaves, whatever the client watches.
    pub(crate) binds_all: bool,
    /// A group's host has set the watch that was asked for: it counts here when the answer leaves.
    pub(crate) sets_watch_in: Option<u32>,
    /// An event that follows it, with its place.
    pub(crate) event: Option<(Zxid, Vec<u8>)>,
    /// Place of the reply's frame.
    at: usize,
}

impl RoutedAnswer {
    /// The answer of a group: whole frames, the last of which is the reply.
    pub(crate) fn new(bytes: Vec<u8>) -> RoutedAnswer {
        let at = last_frame(&bytes);
        let reply = bytes.get(at..).unwrap_or_default();
        let (zxid, error) = (zxid_of(reply).unwrap_or_default(), error_of(reply));
        RoutedAnswer {
            bytes,
            zxid,
            moment: OrderMoment::of_sight(zxid),
            error,
            binds_all: false,
            sets_watch_in: None,
            event: None,
            at,
        }
    }

    /// True for a reply without a body.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == self.at + LENGTH_BYTES + ReplyHeader::BYTES
    }

    /// The answer with another stamp that it shows.
    pub(crate) fn showing(self, zxid: Zxid) -> RoutedAnswer {
        RoutedAnswer { zxid, moment: OrderMoment::of_sight(zxid), ..self }
    }

    /// Nothing of a znode is shown.
    pub(crate) fn show_nothing(&mut self) {
        (self.zxid, self.moment) = (Zxid(0), OrderMoment::of_sight(Zxid(0)));
    }

    /// Writes the zxid into the reply.
    pub(crate) fn set_zxid(&mut self, zxid: Zxid) {
        set_zxid(&mut self.bytes[self.at..], zxid);
    }
}

/// The zxid in the frame of a reply or an event.
pub(crate) fn zxid_of(frame: &[u8]) -> Option<Zxid> {
    let bytes = frame.get(LENGTH_BYTES + XID_BYTES..)?.first_chunk()?;
    Some(Zxid(i64::from_be_bytes(*bytes)))
}

/// Code of the error in the frame of a reply.
fn error_of(frame: &[u8]) -> Option<i32> {
    let code = frame.get(LENGTH_BYTES + XID_BYTES + ZXID_BYTES..)?.first_chunk()?;
    Some(i32::from_be_bytes(*code)).filter(|code| *code != 0)
}

/// True if a group's answer says that the request is to be sent again.
pub(crate) fn is_misplaced(bytes: &[u8]) -> bool {
    error_of(&bytes[last_frame(bytes)..]) == Some(MISPLACED.code())
}

/// Writes a zxid into the frame of a reply or an event.
pub(crate) fn set_zxid(frame: &mut [u8], zxid: Zxid) {
    if let Some(bytes) = frame.get_mut(LENGTH_BYTES + XID_BYTES..).and_then(<[u8]>::first_chunk_mut) {
        *bytes = zxid.0.to_be_bytes();
    }
}

/// Place of the last of these whole frames.
fn last_frame(bytes: &[u8]) -> usize {
    let (mut at, mut last) = (0, 0);
    while let Some(length) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        last = at;
        at += LENGTH_BYTES + u32::from_be_bytes(*length) as usize;
    }
    last
}
