//! A room: something that one thread at a time works with, and what waits for it.
//!
//! One thread keeps the room and sleeps when nothing waits. Whoever puts something at the door may also go in himself, if nobody
//! is there. To wake the keeper costs more than most visits: so it is left to sleep while somebody is in, who looks at the door
//! once more when he has left.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::thread::Thread;
use std::time::Instant;

use crossbeam_channel::Sender;
use parking_lot::{Mutex, RwLock};

/// A keeper who expects more looks so many times before it sleeps, and lets others go first each time.
const LOOKS: usize = 10;

#[derive(Debug)]
pub(crate) struct Room<T, I> {
    /// Nothing before the keeper comes and after it has gone.
    inside: Mutex<Option<T>>,
    /// `None` once the room is closed.
    door: RwLock<Option<Sender<I>>>,
    keeper: OnceLock<Thread>,
}

/// What the keeper does when nothing waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// It sleeps until then at most.
    pub(crate) until: Instant,
    /// There was so much to do that more is likely to come before it has fallen asleep.
    pub(crate) expects_more: bool,
}

impl<T, I> Room<T, I> {
    /// What is put at the door comes out at the channel's other end, which `T` has.
    pub(crate) fn new(door: Sender<I>) -> Room<T, I> {
        Room { inside: Mutex::new(None), door: RwLock::new(Some(door)), keeper: OnceLock::new() }
    }

    /// Keeps the room until `turn` has enough, which is called whenever something waits, and when the keeper has rested. The
    /// channel's end counts as something that waits.
    pub(crate) fn keep<E>(&self, inside: T, mut turn: impl FnMut(&mut T) -> ControlFlow<E, Rest>) -> (T, E) {
        self.keeper.set(std::thread::current()).expect("a room has one keeper");
        *self.inside.lock() = Some(inside);
        let mut rest = Rest { until: Instant::now(), expects_more: false };
        loop {
            self.rest(rest);
            let mut room = self.inside.lock();
            match turn(room.as_mut().expect("only its keeper empties the room")) {
                ControlFlow::Continue(next) => rest = next,
                ControlFlow::Break(end) => return (room.take().expect("it was just here"), end),
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

    /// Puts something at the door. Somebody is told by `visit` or `knock`, one of which has to follow. True if nothing else
    /// waits. When the room is closed it goes nowhere.
    pub(crate) fn put(&self, item: I) -> bool {
        let door = self.door.read();
        let Some(door) = door.as_ref() else { return false };
        let is_first = door.is_empty();
        // Whoever had the other end is gone, with all that waited.
        let _ = door.send(item);
        is_first
    }

    /// Something waits: the keeper is woken, unless somebody is in.
    pub(crate) fn knock(&self) {
        // Either a visitor is seen here, or what waits is seen when he has left.
        fence(Ordering::SeqCst);
        if !self.inside.is_locked() {
            self.wake();
        }
    }

    /// Goes in, if nobody is there. `work` says with `None` that it did nothing.
    pub(crate) fn visit<R>(&self, work: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let mut room = self.inside.try_lock()?;
        let result = room.as_mut().and_then(work);
        drop(room);
        if self.has_waiting() {
            self.wake();
        }
        result
    }

    /// Nothing more is taken. The keeper sees the channel's end.
    pub(crate) fn close(&self) {
        *self.door.write() = None;
        self.wake();
    }

    fn wake(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }

    /// To be asked outside of the room.
    fn has_waiting(&self) -> bool {
        fence(Ordering::SeqCst);
        self.door.read().as_ref().is_none_or(|door| !door.is_empty())
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

    /// A keeper who sleeps for an hour if nobody wakes it.
    fn keep(room: Arc<Room<Counter, u64>>, waiting: Receiver<u64>) -> std::thread::JoinHandle<u64> {
        std::thread::spawn(move || {
            let hour = Duration::from_secs(3600);
            let (counter, ()) = room.keep(Counter { waiting, sum: 0 }, |counter| match counter.take() {
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
    fn whatever_waits_is_found_by_the_keeper_or_by_a_visitor() {
        let (door, waiting) = unbounded();
        let room = Arc::new(Room::new(door));
        let keeper = keep(room.clone(), waiting);
        let (done, dones) = unbounded();
        let visitors: Vec<_> = (0..3)
            .map(|visitor| {
                let (room, done) = (room.clone(), done.clone());
                std::thread::spawn(move || {
                    for number in 0..20_000 {
                        let is_first = room.put(number);
                        let may_visit = is_first && (number + visitor) % 3 > 0;
                        if !may_visit || room.visit(|counter| Some(counter.take())).is_none() {
                            room.knock();
                        }
                        if number % 100 == 0 {
                            // All is found without another word from here.
                            while room.has_waiting() {
                                std::thread::yield_now();
                            }
                        }
                    }
                    done.send(()).unwrap();
                })
            })
            .collect();
        for _ in &visitors {
            dones.recv_timeout(Duration::from_secs(60)).expect("nobody came for what waits");
        }
        room.close();
        assert_eq!(keeper.join().unwrap(), 3 * (0..20_000).sum::<u64>());
    }

    #[test]
    fn what_is_put_at_a_closed_door_goes_nowhere() {
        let (door, waiting) = unbounded();
        let room = Arc::new(Room::new(door));
        let keeper = keep(room.clone(), waiting);
        room.put(7);
        room.close();
        assert!(!room.put(8));
        assert_eq!(keeper.join().unwrap(), 7);
        assert!(room.visit(|counter| Some(counter.sum)).is_none(), "nothing is left inside");
    }
}
