//! `watches`: fan-out. The first session sets a znode, all the others watch it. The next set waits until every watcher has
//! been told and watches again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paddock_proto::WatchEvent;

use super::builtin::Shape;
use super::{Answer, Lane, Next, Operation, Request, Verdict, Workload, Znode};

const VALUE_BYTES: usize = 100;
const SET: Operation = Operation(0);
const NOTIFY: Operation = Operation(1);
const GET: Operation = Operation(2);

pub(super) struct Watches {
    shape: Shape,
    fan: Arc<Fan>,
}

/// State that the writer and its watchers share. One thread drives them all.
struct Fan {
    base: Instant,
    /// Nanoseconds from `base` to the last set.
    set_at: AtomicU64,
    /// Watchers that would hear of a set.
    armed: AtomicUsize,
}

impl Watches {
    pub(super) fn new(shape: Shape) -> Watches {
        let fan = Fan { base: Instant::now(), set_at: AtomicU64::new(0), armed: AtomicUsize::new(0) };
        Watches { shape, fan: Arc::new(fan) }
    }

    fn path(&self) -> String {
        self.shape.root.clone()
    }
}

impl Workload for Watches {
    fn name(&self) -> String {
        "watches".into()
    }

    fn operations(&self) -> Vec<String> {
        ["set", "notify", "get, watched"].map(String::from).to_vec()
    }

    fn setup(&self) -> Box<dyn Iterator<Item = Znode> + '_> {
        Box::new(std::iter::once(self.shape.znode("")))
    }

    fn roots(&self) -> Vec<String> {
        vec![self.path()]
    }

    fn is_one_thread(&self) -> bool {
        true
    }

    fn lane(&self, session: usize) -> Box<dyn Lane> {
        let fan = Arc::clone(&self.fan);
        match session {
            0 => Box::new(Writer {
                fan,
                path: self.path(),
                value: self.shape.value(VALUE_BYTES),
                watchers: self.shape.sessions - 1,
            }),
            _ => Box::new(Watcher { fan, path: self.path(), is_armed: false }),
        }
    }
}

struct Writer {
    fan: Arc<Fan>,
    path: String,
    value: Vec<u8>,
    watchers: usize,
}

impl Lane for Writer {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        if self.fan.armed.load(Relaxed) < self.watchers {
            return Next::WaitForOthers;
        }
        self.fan.armed.store(0, Relaxed);
        self.fan.set_at.store((request.now - self.fan.base).as_nanos() as u64, Relaxed);
        request.set(&self.path, &self.value);
        Next::Send(SET)
    }
}

struct Watcher {
    fan: Arc<Fan>,
    path: String,
    /// Its watch is on the way or set.
    is_armed: bool,
}

impl Lane for Watcher {
    fn next(&mut self, request: &mut Request<'_>) -> Next {
        if self.is_armed {
            return Next::Wait;
        }
        self.is_armed = true;
        request.get(&self.path, true);
        Next::Send(GET)
    }

    fn answered(&mut self, answer: &Answer<'_>) -> Verdict {
        self.fan.armed.fetch_add(1, Relaxed);
        if answer.error == 0 { Verdict::Good } else { Verdict::Bad }
    }

    fn notified(&mut self, _: &WatchEvent<'_>, now: Instant) -> Option<(Operation, Duration)> {
        self.is_armed = false;
        let set_at = self.fan.base + Duration::from_nanos(self.fan.set_at.load(Relaxed));
        Some((NOTIFY, now.saturating_duration_since(set_at)))
    }
}
