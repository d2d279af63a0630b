//! Statistics of the traffic, for the four-letter words: counted by the workers, read by anyone.
//!
//! A counter that every request changes has one writer, the worker that the request comes to, and needs no locked instruction; nor do
//! workers take each other's cache lines away. Readers add up.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use paddock_proto::{SessionId, Zxid};
use paddock_state::ConnId;
use parking_lot::Mutex;

use super::request_times::add;

/// Latencies in milliseconds, recorded by one thread.
#[derive(Debug)]
pub struct Latency {
    min: AtomicU32,
    max: AtomicU32,
    sum: AtomicU64,
    count: AtomicU64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { min: u32::MAX.into(), max: 0.into(), sum: 0.into(), count: 0.into() }
    }
}

impl Latency {
    #[inline]
    fn record(&self, ms: u64, requests: u64) {
        if short(ms) < self.min.load(Relaxed) {
            self.min.store(short(ms), Relaxed);
        }
        if short(ms) > self.max.load(Relaxed) {
            self.max.store(short(ms), Relaxed);
        }
        if ms > 0 {
            add(&self.sum, ms * requests);
        }
        add(&self.count, requests);
    }

    /// Adds what another one has recorded. No other thread may see this one.
    fn take_in(&self, other: &Latency) {
        self.min.fetch_min(other.min.load(Relaxed), Relaxed);
        self.max.fetch_max(other.max.load(Relaxed), Relaxed);
        add(&self.sum, other.sum.load(Relaxed));
        add(&self.count, other.count.load(Relaxed));
    }

    /// Forgets all latencies. Some that are recorded at the same moment may be lost.
    fn reset(&self) {
        self.min.store(u32::MAX, Relaxed);
        self.max.store(0, Relaxed);
        self.sum.store(0, Relaxed);
        self.count.store(0, Relaxed);
    }

    /// The shortest one.
    pub fn min(&self) -> u64 {
        match self.min.load(Relaxed) {
            u32::MAX => 0,
            min => min.into(),
        }
    }

    /// The longest one.
    pub fn max(&self) -> u64 {
        self.max.load(Relaxed).into()
    }

    /// Their average; 0 without any.
    pub fn average(&self) -> f64 {
        match self.count.load(Relaxed) {
            0 => 0.0,
            count => self.sum.load(Relaxed) as f64 / count as f64,
        }
    }
}

/// A time that is longer than seven weeks counts as no longer.
#[inline]
fn short(ms: u64) -> u32 {
    u32::try_from(ms).unwrap_or(u32::MAX)
}

/// Sizes of replies in bytes; -1 while there was none.
#[derive(Debug)]
pub struct Sizes {
    last: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { last: (-1).into(), min: i64::MAX.into(), max: (-1).into() }
    }
}

impl Sizes {
    /// Records a reply, by any thread.
    #[inline]
    pub fn record(&self, bytes: usize) {
        let bytes = bytes as i64;
        // What changes nothing should cost nothing.
        if bytes != self.last.load(Relaxed) {
            self.last.store(bytes, Relaxed);
        }
        if bytes < self.min.load(Relaxed) {
            self.min.fetch_min(bytes, Relaxed);
        }
        if bytes > self.max.load(Relaxed) {
            self.max.fetch_max(bytes, Relaxed);
        }
    }

    /// Forgets all sizes.
    fn reset(&self) {
        self.last.store(-1, Relaxed);
        self.min.store(i64::MAX, Relaxed);
        self.max.store(-1, Relaxed);
    }

    /// The last one, the smallest, the largest.
    pub fn get(&self) -> (i64, i64, i64) {
        let (last, min) = (self.last.load(Relaxed), self.min.load(Relaxed));
        (last, if last < 0 { -1 } else { min }, self.max.load(Relaxed))
    }
}

/// One connection, as `cons` shows it. Most are idle, so this is small.
#[derive(Debug)]
pub struct ConnStats {
    ip: IpAddr,
    port: u16,
    /// True for TLS.
    pub is_secure: AtomicBool,
    /// Time of its begin, in milliseconds since 1970.
    pub established_ms: i64,
    /// Session of the client; 0 before there is one.
    pub session: AtomicI64,
    /// Timeout of the session, in milliseconds.
    pub timeout_ms: AtomicI32,
    /// Requests.
    pub received: AtomicU64,
    /// Answers and watch events.
    pub sent: AtomicU64,
    /// Requests that are not answered yet.
    pub waiting: AtomicU32,
    /// Operation of the last request.
    pub last_op: AtomicI32,
    /// Xid of the last request; -1 without one.
    pub last_xid: AtomicI32,
    /// Zxid in the last reply; -1 without one.
    pub last_zxid: AtomicI64,
    /// Time of the last reply, in milliseconds since 1970.
    pub last_response_ms: AtomicI64,
    /// Time from the last request to its answer, in milliseconds.
    pub last_latency_ms: AtomicU32,
    /// Latencies of all requests.
    pub latency: Latency,
}

impl ConnStats {
    /// A connection from this address that has just been taken.
    pub fn new(address: SocketAddr, now_ms: i64) -> ConnStats {
        ConnStats {
            ip: address.ip(),
            port: address.port(),
            is_secure: false.into(),
            established_ms: now_ms,
            session: 0.into(),
            timeout_ms: 0.into(),
            received: 0.into(),
            sent: 0.into(),
            waiting: 0.into(),
            last_op: 0.into(),
            last_xid: (-1).into(),
            last_zxid: (-1).into(),
            last_response_ms: 0.into(),
            last_latency_ms: 0.into(),
            latency: Latency::default(),
        }
    }

    /// Address of the client.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, self.port)
    }

    /// The client has a session from now on.
    #[inline]
    pub fn set_session(&self, session: SessionId, timeout_ms: i32) {
        self.session.store(session.0, Relaxed);
        self.timeout_ms.store(timeout_ms, Relaxed);
    }

    /// `requests` of a kind were answered together.
    #[inline]
    pub fn answered(&self, zxid: Zxid, now_ms: i64, latency_ms: u64, requests: u64) {
        self.last_zxid.store(zxid.0, Relaxed);
        self.last_response_ms.store(now_ms, Relaxed);
        self.last_latency_ms.store(short(latency_ms), Relaxed);
        add(&self.sent, requests);
        self.latency.record(latency_ms, requests);
    }

    /// A request was taken from the connection.
    #[inline]
    pub fn received(&self) {
        add(&self.received, 1);
    }

    /// The client was told of a watch.
    #[inline]
    pub fn told_event(&self) {
        add(&self.sent, 1);
    }

    /// Forgets the traffic; address, session and requests under way stay, as in ZooKeeper.
    pub fn reset(&self) {
        self.received.store(0, Relaxed);
        self.sent.store(0, Relaxed);
        self.last_op.store(0, Relaxed);
        self.last_xid.store(-1, Relaxed);
        self.last_zxid.store(-1, Relaxed);
        self.last_response_ms.store(0, Relaxed);
        self.last_latency_ms.store(0, Relaxed);
        self.latency.reset();
    }
}

/// ZooKeeper's trace mask when it starts: requests, packets, sessions and warnings.
const TRACE_MASK: i64 = 2 | 16 | 32 | 256;

/// Connections that are listed at a time, in some tens of microseconds.
const CONNS_PER_SLICE: usize = 1024;

/// Reasons for which a connection was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// Too many come from its address.
    FromAddress,
    /// Too many are there in all.
    InAll,
}

/// Requests and answers of one worker, in cache lines that no other worker writes to.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
    latency: Latency,
}

impl Traffic {
    /// A request has come.
    #[inline]
    pub fn received(&self) {
        add(&self.received, 1);
    }

    /// Counts requests that were answered together, each after `latency_ms`.
    #[inline]
    pub fn answered(&self, latency_ms: u64, requests: u64) {
        self.latency.record(latency_ms, requests);
        add(&self.sent, requests);
    }

    /// A client was told of a watch.
    #[inline]
    pub fn told_event(&self) {
        add(&self.sent, 1);
    }

    /// Forgets everything. A request that is counted at the same moment may be lost, or the forgetting of one number.
    fn reset(&self) {
        self.received.store(0, Relaxed);
        self.sent.store(0, Relaxed);
        self.latency.reset();
    }
}

/// Traffic of a member, and its connections.
#[derive(Debug)]
pub struct Stats {
    /// Monotonic time of the member's start, in milliseconds.
    pub started_ms: u64,
    /// By worker.
    traffic: Box<[Traffic]>,
    /// Sizes of replies.
    pub replies: Sizes,
    /// Connections that were refused because there were too many.
    pub rejected: AtomicU64,
    /// Proofs of clients that were refused.
    pub auth_failed: AtomicU64,
    /// Syncs of the transaction log.
    pub fsyncs: AtomicU64,
    /// Alarms that the state of a member differs from that of most others.
    pub differing: AtomicU64,
    /// TLS handshakes of clients under way.
    pub handshakes: AtomicU32,
    /// ZooKeeper's trace mask, which changes nothing but itself here.
    pub trace_mask: AtomicI64,
    conns: Mutex<Conns>,
}

#[derive(Debug, Default)]
struct Conns {
    all: BTreeMap<ConnId, Arc<ConnStats>>,
    by_address: HashMap<IpAddr, u32>,
}

impl Stats {
    /// Counters for some workers, from a start at this time.
    pub fn new(started_ms: u64, workers: usize) -> Stats {
        Stats {
            started_ms,
            traffic: (0..workers).map(|_| Traffic::default()).collect(),
            replies: Sizes::default(),
            rejected: 0.into(),
            auth_failed: 0.into(),
            fsyncs: 0.into(),
            differing: 0.into(),
            handshakes: 0.into(),
            trace_mask: TRACE_MASK.into(),
            conns: Mutex::default(),
        }
    }

    /// Forgets the traffic of the member: packets, latencies, sizes of replies. Statistics of connections stay.
    pub fn reset(&self) {
        self.traffic.iter().for_each(Traffic::reset);
        self.replies.reset();
    }

    /// Counters of a worker.
    #[inline]
    pub fn traffic(&self, worker: usize) -> &Traffic {
        &self.traffic[worker]
    }

    /// Requests that clients have sent.
    pub fn received(&self) -> u64 {
        self.traffic.iter().map(|traffic| traffic.received.load(Relaxed)).sum()
    }

    /// Answers and watch events that clients were sent.
    pub fn sent(&self) -> u64 {
        self.traffic.iter().map(|traffic| traffic.sent.load(Relaxed)).sum()
    }

    /// Latencies of all workers, as they are now.
    pub fn latency(&self) -> Latency {
        let all = Latency::default();
        self.traffic.iter().for_each(|traffic| all.take_in(&traffic.latency));
        all
    }

    /// Forgets the traffic of every connection.
    pub fn reset_conns(&self) {
        self.conns().iter().for_each(|(_, conn)| conn.reset());
    }

    /// Takes a connection in, unless there are too many; 0 is no limit.
    pub fn admit(
        &self,
        conn: ConnId,
        stats: Arc<ConnStats>,
        per_address_max: u32,
        max: u32,
    ) -> Result<(), TooMany> {
        let mut conns = self.conns.lock();
        let in_all = conns.all.len();
        let from_address = conns.by_address.entry(stats.ip).or_default();
        let refusal = if per_address_max > 0 && *from_address >= per_address_max {
            Some(TooMany::FromAddress)
        } else if max > 0 && in_all >= max as usize {
            Some(TooMany::InAll)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.rejected.fetch_add(1, Relaxed);
            return Err(refusal);
        }
        *from_address += 1;
        conns.all.insert(conn, stats);
        Ok(())
    }

    /// A connection is gone.
    pub fn leave(&self, conn: ConnId) {
        let mut conns = self.conns.lock();
        let Some(stats) = conns.all.remove(&conn) else { return };
        let address = stats.ip;
        let from_address = conns.by_address.get_mut(&address).expect("it was counted when it came in");
        *from_address -= 1;
        if *from_address == 0 {
            conns.by_address.remove(&address);
        }
    }

    /// All connections, listed without keeping others waiting for long; those that come or go meanwhile may be missing.
    pub fn conns(&self) -> Vec<(ConnId, Arc<ConnStats>)> {
        let mut all: Vec<(ConnId, Arc<ConnStats>)> = Vec::new();
        loop {
            let passed = all.last().map_or(Bound::Unbounded, |(conn, _)| Bound::Excluded(*conn));
            let mut slice = Vec::with_capacity(CONNS_PER_SLICE);
            let conns = self.conns.lock();
            let behind = conns.all.range((passed, Bound::Unbounded)).take(CONNS_PER_SLICE);
            slice.extend(behind.map(|(conn, stats)| (*conn, stats.clone())));
            drop(conns);
            let is_last = slice.len() < CONNS_PER_SLICE;
            all.append(&mut slice);
            if is_last {
                return all;
            }
        }
    }

    /// Address and session of a connection, if it is still there.
    pub fn client(&self, conn: ConnId) -> (Option<SocketAddr>, SessionId) {
        let conn = self.conns.lock().all.get(&conn).cloned();
        let session = conn.as_ref().map_or(SessionId::NONE, |conn| SessionId(conn.session.load(Relaxed)));
        (conn.map(|conn| conn.address()), session)
    }

    /// Number of connections.
    pub fn conn_count(&self) -> usize {
        self.conns.lock().all.len()
    }

    /// Requests of all connections that are not answered yet.
    pub fn waiting(&self) -> u64 {
        self.conns().iter().map(|(_, conn)| u64::from(conn.waiting.load(Relaxed))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_so_many_connections_and_no_more() {
        let stats = Stats::new(0, 1);
        let come = |number, address: &str| {
            let conn = Arc::new(ConnStats::new(address.parse().unwrap(), 0));
            stats.admit(ConnId::new(0, number), conn, 2, 3)
        };
        assert_eq!(come(1, "10.0.0.1:1"), Ok(()));
        assert_eq!(come(2, "10.0.0.1:2"), Ok(()));
        assert_eq!(come(3, "10.0.0.1:3"), Err(TooMany::FromAddress));
        assert_eq!(come(4, "10.0.0.2:1"), Ok(()));
        assert_eq!(come(5, "10.0.0.3:1"), Err(TooMany::InAll));
        stats.leave(ConnId::new(0, 1));
        assert_eq!(come(6, "10.0.0.1:4"), Ok(()));
        assert_eq!(stats.conn_count(), 3);
    }
}
