//! Slow requests and busy paths: the slowest requests of late, and who asks for most, and for what, in the last minute.
//!
//! Memory is bounded: a table that is full gives the place of its smallest entry to a newcomer, which takes over its weight, so that what is
//! asked for often is never missing (the sketch is known as *space saving*). Not every request is looked at: of a busy worker's, one in
//! [`SAMPLED`], which then counts as that number.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use paddock_proto::SessionId;
use parking_lot::Mutex;

use super::request_times::operation_name;

/// Number of requests of which one is looked at, once a worker has had `ALL_UP_TO` since it was asked to begin anew.
pub const SAMPLED: u32 = 1024;
/// Requests of a worker that are all looked at.
pub const ALL_UP_TO: u32 = 16;
/// Entries of a table.
const ENTRIES_MAX: usize = 256;
/// Time that a table covers, in milliseconds: two of them are a minute.
const WINDOW_MS: u64 = 30_000;
/// Slow requests that are kept.
const SLOW_MAX: usize = 64;
/// A request that took less, in milliseconds, is never slow.
const SLOW_MS_MIN: u64 = 20;
/// Slow requests are forgotten after this time, in milliseconds.
const SLOW_KEPT_MS: i64 = 600_000;
/// A request that took this long, in milliseconds, is named in the log.
const LOGGED_MS: u64 = 1000;
/// Pause between two such lines, in milliseconds.
const LOG_PAUSE_MS: u64 = 1000;

/// Requests and bytes of something that is asked for, or of a client that asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
}

/// Heaviest keys of a table, in the order of their weights.
pub type Top<K> = Vec<(K, Weight)>;

impl Weight {
    fn add(&mut self, more: Weight) {
        self.requests += more.requests;
        self.bytes += more.bytes;
    }
}

/// A bounded table of what weighs most.
#[derive(Debug)]
struct Table<K>(HashMap<K, Weight>);

impl<K> Default for Table<K> {
    fn default() -> Table<K> {
        Table(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash> Table<K> {
    fn add(&mut self, key: &K, more: Weight) {
        if let Some(weight) = self.0.get_mut(key) {
            return weight.add(more);
        }
        let mut weight = more;
        if self.0.len() >= ENTRIES_MAX {
            let smallest = self.0.iter().min_by_key(|(_, weight)| weight.requests);
            let smallest = smallest.map(|(key, _)| key.clone()).expect("a full table has entries");
            weight.add(self.0.remove(&smallest).expect("it was just found"));
        }
        self.0.insert(key.clone(), weight);
    }
}

/// Two tables: one that is being filled, and the one before it.
#[derive(Debug)]
struct Windows<K> {
    now: Table<K>,
    before: Table<K>,
}

impl<K: Clone + Eq + Hash> Windows<K> {
    fn top(&self, max: usize) -> Top<K> {
        let mut all = self.before.0.clone();
        for (key, weight) in &self.now.0 {
            all.entry(key.clone()).or_default().add(*weight);
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(_, weight)| std::cmp::Reverse((weight.requests, weight.bytes)));
        all.truncate(max);
        all
    }
}

impl<K> Default for Windows<K> {
    fn default() -> Windows<K> {
        Windows { now: Table::default(), before: Table::default() }
    }
}

#[derive(Debug, Default)]
struct Busy {
    paths: Windows<String>,
    sessions: Windows<SessionId>,
    /// Beginning of the table that is being filled, in milliseconds of the monotonic clock.
    since_ms: u64,
    /// Time that the table before it covers, in milliseconds.
    before_ms: u64,
}

impl Busy {
    fn turn(&mut self, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(self.since_ms);
        if age_ms < WINDOW_MS {
            return;
        }
        let (paths, sessions) = (std::mem::take(&mut self.paths.now), std::mem::take(&mut self.sessions.now));
        let is_recent = age_ms < 2 * WINDOW_MS;
        self.paths.before = if is_recent { paths } else { Table::default() };
        self.sessions.before = if is_recent { sessions } else { Table::default() };
        self.before_ms = if is_recent { age_ms } else { 0 };
        self.since_ms = now_ms;
    }
}

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// Time at which it was answered, in milliseconds since 1970.
    pub at_ms: i64,
    /// The operation's code.
    pub op: i32,
    /// Its path, the first one of a multi, cut off if it is very long; `None` if it is about no znode.
    pub path: Option<String>,
    /// Session of the client.
    pub session: SessionId,
    /// Address of the client.
    pub client: SocketAddr,
    /// Time from the request to its answer, in milliseconds.
    pub took_ms: u64,
    /// Bytes of the reply.
    pub reply_bytes: usize,
    /// Zxid in the reply.
    pub zxid: i64,
    /// Times that the stages took when they were timed last before the answer, in microseconds: queue, sync, replicate, apply, reply.
    pub stages_us: [u64; 5],
}

/// The slowest requests and the busiest paths and sessions of a member.
#[derive(Debug)]
pub struct Hot {
    busy: Mutex<Busy>,
    slow: Mutex<VecDeque<SlowRequest>>,
    /// A request that took less is not kept, in milliseconds.
    slow_ms: AtomicU64,
    logged_ms: AtomicU64,
}

impl Default for Hot {
    fn default() -> Hot {
        Hot {
            busy: Mutex::default(),
            slow: Mutex::default(),
            slow_ms: SLOW_MS_MIN.into(),
            logged_ms: 0.into(),
        }
    }
}

impl Hot {
    /// Counts a request that was looked at, in the place of `times` of them.
    pub fn count(&self, now_ms: u64, path: Option<&str>, session: SessionId, bytes: usize, times: u32) {
        let weight = Weight { requests: times.into(), bytes: bytes as u64 * u64::from(times) };
        let mut busy = self.busy.lock();
        busy.turn(now_ms);
        if let Some(path) = path {
            busy.paths.now.add(&path.to_owned(), weight);
        }
        busy.sessions.now.add(&session, weight);
    }

    /// The busiest paths and sessions of the last minute.
    pub fn top(&self, now_ms: u64, max: usize) -> (Top<String>, Top<SessionId>) {
        let mut busy = self.busy.lock();
        busy.turn(now_ms);
        (busy.paths.top(max), busy.sessions.top(max))
    }

    /// Time in milliseconds in which `top` has counted: up to a minute, less behind a start or a pause.
    pub fn covered_ms(&self, now_ms: u64) -> u64 {
        let mut busy = self.busy.lock();
        busy.turn(now_ms);
        busy.before_ms + now_ms.saturating_sub(busy.since_ms)
    }

    /// True if a request that took this long is worth being kept.
    #[inline]
    pub fn is_slow(&self, took_ms: u64) -> bool {
        took_ms >= self.slow_ms.load(Relaxed)
    }

    /// Keeps a slow request, if it is among the slowest.
    pub fn keep(&self, request: SlowRequest, now_ms: u64) {
        self.log(&request, now_ms);
        let mut slow = self.slow.lock();
        let oldest_ms = request.at_ms - SLOW_KEPT_MS;
        slow.retain(|kept| kept.at_ms >= oldest_ms);
        slow.push_back(request);
        if slow.len() > SLOW_MAX {
            let fastest = slow.iter().enumerate().min_by_key(|(_, kept)| kept.took_ms);
            let fastest = fastest.map(|(index, _)| index).expect("there are some");
            slow.remove(fastest);
        }
        let bar = slow.iter().map(|kept| kept.took_ms).min().filter(|_| slow.len() == SLOW_MAX);
        self.slow_ms.store(bar.unwrap_or(0).max(SLOW_MS_MIN), Relaxed);
    }

    /// True if a request of this duration is to be logged now.
    fn is_logged(&self, took_ms: u64, now_ms: u64) -> bool {
        let is_due = now_ms.saturating_sub(self.logged_ms.load(Relaxed)) >= LOG_PAUSE_MS;
        let is_logged = took_ms >= LOGGED_MS && is_due;
        if is_logged {
            self.logged_ms.store(now_ms, Relaxed);
        }
        is_logged
    }

    fn log(&self, request: &SlowRequest, now_ms: u64) {
        if !self.is_logged(request.took_ms, now_ms) {
            return;
        }
        let [queue, sync, replicate, apply, reply] = request.stages_us;
        tracing::warn!(
            operation = operation_name(request.op),
            path = request.path.as_deref().map(tracing::field::debug),
            took_ms = request.took_ms,
            session = format!("{:#x}", request.session.0),
            client = %request.client,
            queue_us = queue,
            sync_us = sync,
            replicate_us = replicate,
            apply_us = apply,
            reply_us = reply,
            "slow request"
        );
    }

    /// The slowest requests that are kept, the slowest first. From now on requests that were not slow enough before may be.
    pub fn slowest(&self, now_wall_ms: i64) -> Vec<SlowRequest> {
        let mut slow = self.slow.lock();
        slow.retain(|kept| kept.at_ms >= now_wall_ms - SLOW_KEPT_MS);
        if slow.len() < SLOW_MAX {
            self.slow_ms.store(SLOW_MS_MIN, Relaxed);
        }
        let mut all: Vec<_> = slow.iter().cloned().collect();
        all.sort_by_key(|kept| std::cmp::Reverse(kept.took_ms));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_most_is_found_among_very_many() {
        let hot = Hot::default();
        for number in 0..20_000_u64 {
            let path = if number % 10 == 0 { "/busy".to_owned() } else { format!("/rare-{number}") };
            hot.count(number / 10, Some(&path), SessionId((number % 5) as i64), 100, 1);
        }
        let (paths, sessions) = hot.top(2000, 3);
        assert_eq!(paths[0].0, "/busy");
        assert!(paths[0].1.requests >= 2000, "{paths:?}");
        assert_eq!(sessions.len(), 3);
        assert!(hot.busy.lock().paths.now.0.len() <= ENTRIES_MAX);
    }

    #[test]
    fn a_minute_later_it_is_forgotten() {
        let hot = Hot::default();
        hot.count(10_000, Some("/a"), SessionId(1), 10, SAMPLED);
        assert_eq!(hot.top(39_000, 9).0, [("/a".to_owned(), Weight { requests: 1024, bytes: 10240 })]);
        assert_eq!(hot.covered_ms(39_000), 39_000);
        assert_eq!(hot.top(71_000, 9).0, []);
        assert_eq!(hot.covered_ms(71_000), 32_000);
        assert_eq!(hot.covered_ms(500_000), 0);
    }

    #[test]
    fn more_than_a_second_is_logged_once_in_a_second() {
        let hot = Hot::default();
        let logged = [(999, 5000), (1000, 5000), (9000, 5999), (1000, 6000), (1500, 6500), (1500, 7000)];
        let logged = logged.map(|(took_ms, now_ms)| hot.is_logged(took_ms, now_ms));
        assert_eq!(logged, [false, true, false, true, false, true]);
    }

    #[test]
    fn the_slowest_are_kept() {
        let hot = Hot::default();
        let request = |took_ms, at_ms| SlowRequest {
            at_ms,
            op: 1,
            path: Some("/a".to_owned()),
            session: SessionId(1),
            client: "127.0.0.1:1".parse().unwrap(),
            took_ms,
            reply_bytes: 0,
            zxid: 0,
            stages_us: [0; 5],
        };
        assert!(!hot.is_slow(SLOW_MS_MIN - 1));
        (0..200).for_each(|number| hot.keep(request(20 + number, 1000), 0));
        assert_eq!(hot.slowest(1000).len(), SLOW_MAX);
        assert_eq!(hot.slowest(1000)[0].took_ms, 219);
        assert!(!hot.is_slow(100) && hot.is_slow(219));
        assert_eq!(hot.slowest(1001 + SLOW_KEPT_MS), []);
        assert!(hot.is_slow(SLOW_MS_MIN));
    }
}
