//! Limits that clients hit: how often, and a line in the log that names the client.
//!
//! An attacker hits a limit as often as it likes. So there are a few lines a second for each limit at most, with the number of hits that
//! had none.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use paddock_proto::SessionId;

/// Limits, or rules that clients break, which are counted together.
pub trait Limit: Copy + 'static {
    /// All of them, each at its place.
    const ALL: &'static [Self];

    /// Its place among them, from 0.
    fn place(self) -> usize;

    /// Its label in metrics.
    fn label(self) -> &'static str;

    /// Its line in the log.
    fn message(self) -> &'static str;
}

/// A limit, or a rule, of what clients ask a front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitHit {
    Sessions,
    ConnectRate,
    RequestBytes,
    CommandBytes,
    Identities,
    BadInput,
    Outstanding,
    LongMultis,
    Memory,
    Buffers,
    FailedSasl,
    Rate,
    RateRefused,
    SoftRate,
    ListBytes,
}

impl Limit for LimitHit {
    const ALL: &'static [LimitHit] = &[
        LimitHit::Sessions,
        LimitHit::ConnectRate,
        LimitHit::RequestBytes,
        LimitHit::CommandBytes,
        LimitHit::Identities,
        LimitHit::BadInput,
        LimitHit::Outstanding,
        LimitHit::LongMultis,
        LimitHit::Memory,
        LimitHit::Buffers,
        LimitHit::FailedSasl,
        LimitHit::Rate,
        LimitHit::RateRefused,
        LimitHit::SoftRate,
        LimitHit::ListBytes,
    ];

    fn place(self) -> usize {
        self as usize
    }

    fn label(self) -> &'static str {
        match self {
            LimitHit::Sessions => "sessions",
            LimitHit::ConnectRate => "connect_rate",
            LimitHit::RequestBytes => "request_bytes",
            LimitHit::CommandBytes => "command_bytes",
            LimitHit::Identities => "identities",
            LimitHit::BadInput => "bad_input",
            LimitHit::Outstanding => "outstanding_requests",
            LimitHit::LongMultis => "long_multis",
            LimitHit::Memory => "memory",
            LimitHit::Buffers => "client_buffers",
            LimitHit::FailedSasl => "failed_sasl",
            LimitHit::Rate => "rate",
            LimitHit::RateRefused => "rate_refused",
            LimitHit::SoftRate => "soft_rate",
            LimitHit::ListBytes => "list_bytes",
        }
    }

    fn message(self) -> &'static str {
        match self {
            LimitHit::Sessions => "session refused: there are as many as sessions_max allows",
            LimitHit::ConnectRate => "connection closed: more clients connect than connect_tokens_max allows",
            LimitHit::RequestBytes => "connection closed: its request is larger than frame_bytes_max allows",
            LimitHit::CommandBytes => {
                "write refused: with its client's identities it is larger than a write may be in the log"
            }
            LimitHit::Identities => "connection closed: it shows more identities than a connection may",
            LimitHit::BadInput => "connection closed",
            LimitHit::Outstanding => {
                "client has to wait: as many requests are under way as outstanding_max allows"
            }
            LimitHit::LongMultis => {
                "client has to wait: its long multi would hold up others behind those under way"
            }
            LimitHit::Memory => {
                "write refused: the member holds as much memory as memory_max allows; delete znodes"
            }
            LimitHit::Buffers => {
                "connection closed: it holds memory and does not read, and clients hold nearly as much together as \
                 client_buffers_max allows"
            }
            LimitHit::FailedSasl => "client has not proved who it is by SASL",
            LimitHit::Rate => "client has to wait: its tenant asks for more than rate_limits allow",
            LimitHit::RateRefused => {
                "request refused: its tenant asks for more than rate_limits allow, and it would wait longer than rate_wait_ms_max"
            }
            LimitHit::SoftRate => "tenant asks for more than its soft limit in rate_limits",
            LimitHit::ListBytes => {
                "list refused: its names take more than client_buffers_max allows all clients together; raise it, or list a znode with \
                 fewer children"
            }
        }
    }
}

/// Lines in the log for one limit.
const LINES_PER_SECOND: u64 = 10;

#[derive(Debug, Default)]
struct Counter {
    hits: AtomicU64,
    /// Hits that the log has told of, one by one or together.
    told: AtomicU64,
    /// Second of the monotonic clock, counted from 1, in which the log was last told, and in the lowest byte the lines in it.
    told_in: AtomicU64,
}

/// Hits of some limits of one member.
#[derive(Debug)]
pub struct LimitHits<L> {
    counters: Vec<Counter>,
    limits: PhantomData<L>,
}

impl<L: Limit> Default for LimitHits<L> {
    fn default() -> LimitHits<L> {
        LimitHits { counters: L::ALL.iter().map(|_| Counter::default()).collect(), limits: PhantomData }
    }
}

impl<L: Limit> LimitHits<L> {
    /// Number of times that a limit was hit.
    pub fn count(&self, limit: L) -> u64 {
        self.counters[limit.place()].hits.load(Relaxed)
    }

    /// Counts a hit. Returns the number of hits without a line in the log since the last one, if this one is to have one.
    fn note(&self, limit: L, hits: u64, now_ms: u64) -> Option<u64> {
        let counter = &self.counters[limit.place()];
        let all = counter.hits.fetch_add(hits, Relaxed) + hits;
        let second = now_ms / 1000 + 1;
        let next = |told_in: u64| match (told_in >> 8, told_in & 0xff) {
            (then, lines) if then == second => (lines < LINES_PER_SECOND).then_some(told_in + 1),
            _ => Some(second << 8 | 1),
        };
        counter.told_in.fetch_update(Relaxed, Relaxed, next).ok()?;
        let told = counter.told.fetch_add(1, Relaxed) + 1;
        let others = all.saturating_sub(told);
        counter.told.fetch_add(others, Relaxed);
        Some(others)
    }

    /// Counts a hit by a client, at a time of the monotonic clock in milliseconds, and names the client in the log.
    #[cold]
    pub fn hit(
        &self,
        limit: L,
        client: Option<SocketAddr>,
        session: SessionId,
        now_ms: u64,
        detail: &dyn std::fmt::Display,
    ) {
        self.hit_often(limit, 1, client, session, now_ms, detail);
    }

    /// Counts several hits of which the last was by this client.
    pub fn hit_often(
        &self,
        limit: L,
        hits: u64,
        client: Option<SocketAddr>,
        session: SessionId,
        now_ms: u64,
        detail: &dyn std::fmt::Display,
    ) {
        let Some(others) = self.note(limit, hits, now_ms) else { return };
        let client = client.map(tracing::field::display);
        tracing::warn!(client, %session, others, detail = %detail, "{}", limit.message());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hit_counts_and_a_few_a_second_are_told() {
        let hits = LimitHits::<LimitHit>::default();
        let note = |ms| hits.note(LimitHit::Sessions, 1, ms);
        assert!((0..LINES_PER_SECOND).all(|ms| note(ms) == Some(0)));
        assert_eq!([note(998), note(999), note(1000), note(1001)], [None, None, Some(2), Some(0)]);
        assert_eq!((hits.count(LimitHit::Sessions), hits.count(LimitHit::Memory)), (LINES_PER_SECOND + 4, 0));
        assert_eq!(hits.note(LimitHit::Identities, 5, 0), Some(4), "one of five has the line");
    }

    #[test]
    fn each_limit_has_its_own_place() {
        for (place, limit) in LimitHit::ALL.iter().enumerate() {
            assert_eq!(limit.place(), place);
        }
    }
}
