//! A client: where it is connected, and what it waits for.

use std::collections::VecDeque;

use paddock_proto::SessionId;
use paddock_state::{ConnId, Resumption};

use crate::checks::watching::Watching;
use crate::etcd::client::{OpenRequest, Owned};

/// The server that a client is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientPlace {
    Nowhere,
    /// The mirror, or the member in its place.
    Mirror(ConnId),
    /// A member of the source.
    Source,
}

#[derive(Debug)]
pub(super) struct MirrorClient {
    pub(super) place: ClientPlace,
    pub(super) session: Option<SessionId>,
    pub(super) is_connected: bool,
    /// The session that it wants back once it has been told that it lives.
    pub(super) asking: Option<Resumption>,
    /// Requests under way, in their order.
    pub(super) waiting: VecDeque<OpenRequest>,
    /// Newest zxid that a reply had.
    pub(super) zxid: i64,
    /// Persistent znodes that are its own.
    pub(super) owned: Vec<Owned>,
    /// The last set of its own directory on this connection, which a read behind it must see.
    pub(super) last_set: Option<u64>,
    pub(super) watching: Watching,
    pub(super) acknowledged: u64,
    /// Connections that were closed on it.
    pub(super) closed: u64,
}

impl MirrorClient {
    pub(super) fn new() -> MirrorClient {
        MirrorClient {
            place: ClientPlace::Nowhere,
            session: None,
            is_connected: false,
            asking: None,
            waiting: VecDeque::new(),
            zxid: 0,
            owned: Vec::new(),
            last_set: None,
            watching: Watching::default(),
            acknowledged: 0,
            closed: 0,
        }
    }

    /// The connection is gone.
    pub(super) fn disconnected(&mut self) -> ClientPlace {
        (self.is_connected, self.last_set, self.asking) = (false, None, None);
        self.waiting.clear();
        self.watching.lose_connection();
        std::mem::replace(&mut self.place, ClientPlace::Nowhere)
    }

    /// The session has ended, and its watches with it.
    pub(super) fn ended(&mut self) {
        self.session = None;
        self.watching = Watching::default();
    }
}
