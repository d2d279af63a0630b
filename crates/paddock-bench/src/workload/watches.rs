//! `watches`: fan-out. The first session sets a znode, all the others watch it. The next set waits until every watcher has
//! been told and watches again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paddock_proto::WatchEvent;

use super::shape::Shape;
use super::{Lane, NextRequest, Operation, ReplyVerdict, ServerReply, WorkloadRequest};

const VALUE_BYTES: usize = 100;
pub(super) const OPERATIONS: [&str; 3] = ["set", "notify", "get, watched"];
const SET: Operation = Operation(0);
const NOTIFY: Operation = Operation(1);
const GET: Operation = Operation(2);

/// State that the writer and its watchers share. One thread drives them all.
struct Fan {
    base: Instant,
    /// Nanoseconds from `base` to the last set.
    set_at: AtomicU64,
    /// Watchers that would hear of a set.
    armed: AtomicUsize,
}

pub(super) fn lanes(shape: &Shape) -> Vec<Box<dyn Lane>> {
    let fan = Fan { base: Instant::now(), set_at: AtomicU64::new(0), armed: AtomicUsize::new(0) };
    let (fan, path) = (Arc::new(fan), || shape.root.clone());
    let (value, watchers) = (shape.value(VALUE_BYTES), shape.sessions - 1);
    let writer = WatchedWriter { fan: Arc::clone(&fan), path: path(), value, watchers };
    let watcher =
        |_| Box::new(WatchingLane { fan: Arc::clone(&fan), path: path(), is_armed: false }) as Box<dyn Lane>;
    std::iter::once(Box::new(writer) as Box<dyn Lane>).chain((0..watchers).map(watcher)).collect()
}

struct WatchedWriter {
    fan: Arc<Fan>,
    path: String,
    value: Vec<u8>,
    watchers: usize,
}

impl Lane for WatchedWriter {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        if self.fan.armed.load(Relaxed) < self.watchers {
            return NextRequest::WaitForOthers;
        }
        self.fan.armed.store(0, Relaxed);
        self.fan.set_at.store((request.now - self.fan.base).as_nanos() as u64, Relaxed);
        request.set(&self.path, &self.value);
        NextRequest::Send(SET)
    }
}

struct WatchingLane {
    fan: Arc<Fan>,
    path: String,
    /// Its watch is on the way or set.
    is_armed: bool,
}

impl Lane for WatchingLane {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        if self.is_armed {
            return NextRequest::Wait;
        }
        self.is_armed = true;
        request.get(&self.path, true);
        NextRequest::Send(GET)
    }

    fn answered(&mut self, answer: &ServerReply<'_>) -> ReplyVerdict {
        self.fan.armed.fetch_add(1, Relaxed);
        if answer.error == 0 { ReplyVerdict::Good } else { ReplyVerdict::Bad }
    }

    fn notified(&mut self, _: &WatchEvent<'_>, now: Instant) -> Option<(Operation, Duration)> {
        self.is_armed = false;
        let set_at = self.fan.base + Duration::from_nanos(self.fan.set_at.load(Relaxed));
        Some((NOTIFY, now.saturating_duration_since(set_at)))
    }
}
