//! Pace of a thread that looks at the process now and then: often while something happens, seldom while nothing does.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Looks without anything between them after which they become seldom.
const QUIET_LOOKS: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct QuietPace {
    thread: OnceLock<Thread>,
    /// Something has happened since the last look.
    has_stirred: AtomicBool,
    /// The thread sleeps long, and is to be woken by what happens.
    is_asleep: AtomicBool,
    is_over: AtomicBool,
}

/// The side of the thread that looks.
#[derive(Debug)]
pub(crate) struct Looks<'a> {
    pace: &'a QuietPace,
    quiet_looks: u32,
}

impl QuietPace {
    /// The thread that calls this looks from now on.
    pub(crate) fn begin(&self) -> Looks<'_> {
        let _ = self.thread.set(std::thread::current());
        Looks { pace: self, quiet_looks: 0 }
    }

    /// Something has happened. Costs hardly anything if something has already since the last look.
    pub(crate) fn stir(&self) {
        if self.has_stirred.load(Ordering::Relaxed) {
            return;
        }
        self.has_stirred.store(true, Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The thread is to end.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn has_stirred(&self) -> bool {
        self.has_stirred.load(Ordering::SeqCst)
    }
}

impl Looks<'_> {
    /// Waits until the next look: for `often`, or for `seldom` while nothing happens, which ends when something does. Returns false when the
    /// thread is to end.
    pub(crate) fn wait(&mut self, often: Duration, seldom: Duration) -> bool {
        let pace = self.pace;
        let was_quiet = !pace.has_stirred.swap(false, Ordering::SeqCst);
        self.quiet_looks = if was_quiet { self.quiet_looks + 1 } else { 0 };
        let sleeps_long = self.quiet_looks > QUIET_LOOKS;
        pace.is_asleep.store(sleeps_long, Ordering::SeqCst);
        let until = Instant::now() + if sleeps_long { seldom } else { often };
        let is_awake = || pace.is_over() || sleeps_long && pace.has_stirred();
        while !is_awake() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::park_timeout(left);
        }
        pace.is_asleep.store(false, Ordering::SeqCst);
        !pace.is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_thread_that_sleeps_long_is_woken_by_what_happens_and_by_the_end() {
        let pace = Arc::new(QuietPace::default());
        let (look, looks) = channel();
        let thread = {
            let pace = pace.clone();
            std::thread::spawn(move || {
                let mut waits = pace.begin();
                while waits.wait(MOMENT, HOUR) {
                    look.send(()).unwrap();
                }
            })
        };
        let patience = Duration::from_secs(60);
        for _ in 0..3 {
            while !pace.is_asleep.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            assert!(looks.try_iter().count() >= QUIET_LOOKS as usize, "it has looked by itself before");
            pace.stir();
            looks.recv_timeout(patience).expect("it is woken");
        }
        pace.end();
        thread.join().unwrap();
    }

    #[test]
    fn looks_come_often_while_something_happens() {
        let pace = QuietPace::default();
        let mut waits = pace.begin();
        for _ in 0..2 * QUIET_LOOKS {
            pace.stir();
            assert!(waits.wait(MOMENT, HOUR));
        }
    }
}
