//! A combining lock: a value that one thread at a time works with, and a queue of what waits for it.
//!
//! One thread owns the value and sleeps when nothing waits. A thread that queues something may also work with the value on its own
//! thread, if no other thread does just then. To wake the owner costs more than most of that work: so it is left to sleep while
//! another thread works, which looks at the queue once more when it is done.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::thread::Thread;
use std::time::Instant;

use crossbeam_channel::Sender;
use parking_lot::{Mutex, RwLock};

/// An owner that expects more looks this many times before it sleeps, and lets other threads go first each time.
const LOOKS: usize = 10;

#[derive(Debug)]
pub(crate) struct CombiningLock<T, I> {
    /// `None` before the owner comes and after it has gone.
    value: Mutex<Option<T>>,
    /// `None` once the lock is closed.
    queue: RwLock<Option<Sender<I>>>,
    owner: OnceLock<Thread>,
}

/// The owner's pause when nothing waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// The owner sleeps until then at most.
    pub(crate) until: Instant,
    /// There was so much to do that more is likely to come before the owner has fallen asleep.
    pub(crate) expects_more: bool,
}

impl<T, I> CombiningLock<T, I> {
    /// A lock whose items come out at the other end of this channel, which `T` has.
    pub(crate) fn new(queue: Sender<I>) -> CombiningLock<T, I> {
        CombiningLock { value: Mutex::new(None), queue: RwLock::new(Some(queue)), owner: OnceLock::new() }
    }

    /// Owns the value until `turn` has enough, which is called whenever something waits, and when the owner has rested. The
    /// channel's end counts as something that waits.
    pub(crate) fn run_owner<E>(
        &self,
        value: T,
        mut turn: impl FnMut(&mut T) -> ControlFlow<E, Rest>,
    ) -> (T, E) {
        self.owner.set(std::thread::current()).expect("a combining lock has one owner");
        *self.value.lock() = Some(value);
        let mut rest = Rest { until: Instant::now(), expects_more: false };
        loop {
            self.rest(rest);
            let mut value = self.value.lock();
            match turn(value.as_mut().expect("only its owner takes the value out")) {
                ControlFlow::Continue(next) => rest = next,
                ControlFlow::Break(end) => return (value.take().expect("it was just here"), end),
            }
        }
    }

    fn rest(&self, rest: Rest) {
        let mut looks = if rest.expects_more { LOOKS } else { 0 };
        while !self.has_waiting() {
            if looks == 0 {
                return std::thread::park_timeout(rest.until.saturating_duration_since(Instant::now()));
            }
            looks -= 1;
            std::thread::yield_now();
        }
    }

    /// Queues an item. `try_run` or `wake` has to follow, so that a thread takes it. Returns true if nothing else waits. When
    /// the lock is closed the item is dropped.
    pub(crate) fn queue(&self, item: I) -> bool {
        let queue = self.queue.read();
        let Some(queue) = queue.as_ref() else { return false };
        let is_first = queue.is_empty();
        // The other end is gone with all that waited.
        let _ = queue.send(item);
        is_first
    }

    /// Wakes the owner, because something waits, unless a thread works with the value already.
    pub(crate) fn wake(&self) {
        // Either that thread is seen here, or it sees what waits when it is done.
        fence(Ordering::SeqCst);
        if !self.value.is_locked() {
            self.unpark_owner();
        }
    }

    /// Works with the value on this thread, if no other one does. `work` returns `None` if it did nothing.
    pub(crate) fn try_run<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let mut value = self.value.try_lock()?;
        let result = value.as_mut().and_then(work);
        drop(value);
        if self.has_waiting() {
            self.unpark_owner();
        }
        result
    }

    /// Nothing more is queued. The owner sees the channel's end.
    pub(crate) fn close(&self) {
        *self.queue.write() = None;
        self.unpark_owner();
    }

    fn unpark_owner(&self) {
        if let Some(owner) = self.owner.get() {
            owner.unpark();
        }
    }

    /// True if something waits. To be asked by a thread that does not work with the value.
    fn has_waiting(&self) -> bool {
        fence(Ordering::SeqCst);
        self.queue.read().as_ref().is_none_or(|queue| !queue.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crossbeam_channel::{Receiver, TryRecvError, unbounded};

    use super::*;

    struct Counter {
        waiting: Receiver<u64>,
        sum: u64,
    }

    impl Counter {
        fn take(&mut self) -> TryRecvError {
            loop {
                match self.waiting.try_recv() {
                    Ok(number) => self.sum += number,
                    Err(end) => return end,
                }
            }
        }
    }

    /// Owns a counter, and sleeps for an hour if it is not woken.
    fn own(lock: Arc<CombiningLock<Counter, u64>>, waiting: Receiver<u64>) -> std::thread::JoinHandle<u64> {
        std::thread::spawn(move || {
            let hour = Duration::from_secs(3600);
            let (counter, ()) = lock.run_owner(Counter { waiting, sum: 0 }, |counter| match counter.take() {
                TryRecvError::Empty => {
                    let until = Instant::now() + hour;
                    ControlFlow::Continue(Rest { until, expects_more: counter.sum % 2 == 0 })
                }
                TryRecvError::Disconnected => ControlFlow::Break(()),
            });
            counter.sum
        })
    }

    #[test]
    fn whatever_waits_is_found_by_the_owner_or_by_another_thread() {
        let (queue, waiting) = unbounded();
        let lock = Arc::new(CombiningLock::new(queue));
        let owner = own(lock.clone(), waiting);
        let (done, dones) = unbounded();
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (lock, done) = (lock.clone(), done.clone());
                std::thread::spawn(move || {
                    for number in 0..20_000 {
                        let is_first = lock.queue(number);
                        let may_run = is_first && (number + thread) % 3 > 0;
                        if !may_run || lock.try_run(|counter| Some(counter.take())).is_none() {
                            lock.wake();
                        }
                        if number % 100 == 0 {
                            // All is found without another word from here.
                            while lock.has_waiting() {
                                std::thread::yield_now();
                            }
                        }
                    }
                    done.send(()).unwrap();
                })
            })
            .collect();
        for _ in &threads {
            dones.recv_timeout(Duration::from_secs(60)).expect("nobody came for what waits");
        }
        lock.close();
        assert_eq!(owner.join().unwrap(), 3 * (0..20_000).sum::<u64>());
    }

    #[test]
    fn what_is_queued_at_a_closed_lock_is_dropped() {
        let (queue, waiting) = unbounded();
        let lock = Arc::new(CombiningLock::new(queue));
        let owner = own(lock.clone(), waiting);
        lock.queue(7);
        lock.close();
        assert!(!lock.queue(8));
        assert_eq!(owner.join().unwrap(), 7);
        assert!(lock.try_run(|counter| Some(counter.sum)).is_none(), "nothing is left inside");
    }
}
