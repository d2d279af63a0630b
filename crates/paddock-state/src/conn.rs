//! Connections, the clients behind them, and the time of a step.

use std::sync::{Arc, LazyLock};

use paddock_proto::{Dialect, Id, IdList, SessionId};

/// A client connection of this member. The number is never used again, and says which worker owns the connection,
/// so that an answer finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(u64);

impl ConnId {
    const WORKER_SHIFT: u32 = 48;
    /// Bit of the numbers of connections that stand for clients of other members. Those of workers are below.
    const OF_GUESTS: u64 = 1 << (ConnId::WORKER_SHIFT - 1);

    #[inline]
    pub fn new(worker: usize, number: u64) -> ConnId {
        assert!(number < ConnId::OF_GUESTS, "connection numbers of a worker have 47 bits");
        ConnId((worker as u64) << ConnId::WORKER_SHIFT | number)
    }

    /// A connection whose number is not one of a worker's: it stands for a client of another member, for which this one is the host. Numbers are counted
    /// from 0.
    pub fn of_guest(number: u64) -> ConnId {
        assert!(number < ConnId::OF_GUESTS, "connection numbers of guests have 47 bits");
        ConnId(ConnId::OF_GUESTS | number)
    }

    /// True if the connection stands for a client of another member.
    #[inline]
    pub fn is_of_guest(self) -> bool {
        self.0 & ConnId::OF_GUESTS != 0
    }

    /// The connection as a number, for those that have to name it to another member.
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The connection that [`ConnId::to_u64`] has named.
    pub fn from_u64(number: u64) -> ConnId {
        ConnId(number)
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
        // Clients without identities share one list.
        static NO_IDS: LazyLock<Arc<[u8]>> = LazyLock::new(|| IdList::NONE.wire().into());
        let ids = if ids.is_empty() { NO_IDS.clone() } else { IdList::encode(ids).into() };
        Client { conn, session, dialect: Dialect::default(), ids }
    }

    #[inline]
    pub fn with_dialect(self, dialect: Dialect) -> Client {
        Client { dialect, ..self }
    }

    #[inline]
    pub fn with_conn(self, conn: ConnId) -> Client {
        Client { conn, ..self }
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
