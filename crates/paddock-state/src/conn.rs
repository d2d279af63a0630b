//! Connections, the clients behind them, and the time of a step.

use std::sync::Arc;

use paddock_proto::{Dialect, Id, IdList, SessionId};

/// A client connection of this member. The number is never used again, and says which worker owns the connection,
/// so that an answer finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(u64);

impl ConnId {
    const WORKER_SHIFT: u32 = 48;

    #[inline]
    pub fn new(worker: usize, number: u64) -> ConnId {
        assert!(number < 1 << ConnId::WORKER_SHIFT, "connection numbers of a worker have 48 bits");
        ConnId((worker as u64) << ConnId::WORKER_SHIFT | number)
    }

    #[inline]
    pub fn worker(self) -> usize {
        (self.0 >> ConnId::WORKER_SHIFT) as usize
    }
}

/// A connection with the session it serves and the identities it has shown.
#[derive(Clone, Debug)]
pub struct Client {
    pub conn: ConnId,
    pub session: SessionId,
    pub dialect: Dialect,
    ids: Arc<[u8]>,
}

impl Client {
    #[inline]
    pub fn new(conn: ConnId, session: SessionId, ids: &[Id]) -> Client {
        Client { conn, session, dialect: Dialect::default(), ids: IdList::encode(ids).into() }
    }

    #[inline]
    pub fn with_dialect(self, dialect: Dialect) -> Client {
        Client { dialect, ..self }
    }

    #[inline]
    pub fn with_session(self, session: SessionId) -> Client {
        Client { session, ..self }
    }

    /// Bytes that the identities take.
    #[inline]
    pub fn ids_bytes(&self) -> usize {
        self.ids.len()
    }

    #[inline]
    pub fn ids(&self) -> IdList<'_> {
        IdList::of_encoded(&self.ids)
    }
}

/// The time of one step, from the member's two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Never goes back; sessions expire by it.
    pub monotonic_ms: u64,
    /// Written by a leader into commands.
    pub wall_ms: i64,
}
