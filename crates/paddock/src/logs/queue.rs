//! Lines on their way to standard error, which a thread of its own writes.
//!
//! A thread that logs does not wait for the reader of standard error: a collector that is stuck would stop the member with it. The queue is bounded;
//! while it is full, lines are dropped and counted, and once there is room one line says how many.
//!
//! A line that finds the queue empty is waited for, a moment at most: as long as the reader keeps up, what happened is in the log before it
//! is noticed elsewhere.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{io, mem};

/// Bytes that may be on their way.
const BYTES_MAX: usize = 2 << 20;
/// A buffer that has become larger than this, in bytes, is given back once it is written.
const BUFFER_KEPT: usize = 64 << 10;
/// Time that a thread that logs gives the thread to write a line that nothing stands in front of.
const MOMENT: Duration = Duration::from_millis(10);
/// Name of the thread that writes.
const THREAD: &str = "log";

/// Lines that wait, and the thread that writes them.
#[derive(Clone, Debug)]
pub(super) struct LineQueue(Arc<QueueShared>);

#[derive(Debug)]
struct QueueShared {
    lines: Mutex<Lines>,
    /// There is something to write.
    more: Condvar,
    /// All is written.
    done: Condvar,
    /// Counts lines that are lost.
    count: fn(u64),
}

#[derive(Debug, Default)]
struct Lines {
    /// Text of whole lines.
    waiting: Vec<u8>,
    waiting_count: u64,
    /// Bytes that are being written.
    writing: usize,
    /// Lines that have come so far, and those that have left.
    come: u64,
    left: u64,
    /// The thread did not write a line in a moment. Until it has, no line is waited for.
    is_slow: bool,
    /// Lines dropped since there was room last. Until there is again, all others are dropped, too: so the line that tells of them stands
    /// in their place.
    dropped: u64,
    /// Lost lines are about to be told of.
    is_telling: bool,
}

impl LineQueue {
    /// Starts the thread. `count` is called for lost lines at once, and `tell` in the thread when lines can be written again; it puts the
    /// line that tells into the queue.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        count: fn(u64),
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<LineQueue> {
        let (lines, more, done) = Default::default();
        let shared = Arc::new(QueueShared { lines, more, done, count });
        let queue = LineQueue(shared.clone());
        thread::Builder::new().name(THREAD.to_owned()).spawn(move || shared.write_all(out, tell))?;
        Ok(queue)
    }

    /// Takes a line, or drops it if too much waits.
    pub(super) fn put(&self, line: &[u8]) {
        let mut lines = self.0.lock();
        let is_full = lines.waiting.len() + lines.writing + line.len() > BYTES_MAX;
        if lines.dropped > 0 || is_full {
            lines.dropped += 1;
            drop(lines);
            (self.0.count)(1);
        } else {
            let is_waited_for = lines.is_written() && !lines.is_slow && !LineQueue::is_own_thread();
            lines.add(line);
            self.0.more.notify_one();
            if is_waited_for {
                self.0.wait_for_line(lines);
            }
        }
    }

    /// Takes the last words of a process, however much waits.
    pub(super) fn put_last(&self, text: &[u8]) {
        self.0.lock().add(text);
        self.0.more.notify_one();
    }

    /// Waits until all is written, or the time is over. True if all is.
    pub(super) fn flush(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let mut lines = self.0.lock();
        while !lines.is_written() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            lines = self.0.done.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// True in the thread that writes, which cannot wait for itself.
    pub(super) fn is_own_thread() -> bool {
        thread::current().name() == Some(THREAD)
    }
}

impl Lines {
    fn add(&mut self, text: &[u8]) {
        self.waiting.extend_from_slice(text);
        self.waiting_count += 1;
        self.come += 1;
    }

    fn is_written(&self) -> bool {
        self.waiting.is_empty() && self.writing == 0 && !self.is_telling
    }
}

impl QueueShared {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the line that has come last is written, a moment at most.
    fn wait_for_line(&self, mut lines: MutexGuard<'_, Lines>) {
        let (own, deadline) = (lines.come, Instant::now() + MOMENT);
        while lines.left < own {
            let left = deadline.saturating_duration_since(Instant::now());
            lines.is_slow = left.is_zero();
            if lines.is_slow {
                return;
            }
            lines = self.done.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_all(&self, mut out: impl Write, tell: impl Fn(u64)) {
        let (mut batch, mut untold) = (Vec::new(), 0);
        loop {
            let count = self.next(&mut batch);
            let is_written = out.write_all(&batch).and_then(|()| out.flush()).is_ok();
            untold += self.written(count);
            if !is_written {
                (self.count)(count);
                untold += count;
            } else if untold > 0 {
                tell(mem::take(&mut untold));
            }
            batch.clear();
            batch.shrink_to(BUFFER_KEPT);
        }
    }

    /// Takes all that waits, and returns the number of lines. Waits until there is something.
    fn next(&self, batch: &mut Vec<u8>) -> u64 {
        let mut lines = self.lock();
        lines.is_telling = false;
        while lines.waiting.is_empty() {
            self.done.notify_all();
            lines = self.more.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
        mem::swap(batch, &mut lines.waiting);
        lines.writing = batch.len();
        mem::take(&mut lines.waiting_count)
    }

    /// Notes that a batch of some lines has left, or could not, and returns the number of lines that were dropped meanwhile.
    fn written(&self, count: u64) -> u64 {
        let mut lines = self.lock();
        (lines.writing, lines.is_slow) = (0, false);
        lines.left += count;
        self.done.notify_all();
        lines.is_telling = true;
        mem::take(&mut lines.dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A reader that takes one batch whenever it is let.
    struct Reader {
        may: Receiver<bool>,
        asks: Sender<()>,
        read: Sender<String>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.asks.send(());
            match self.may.recv() {
                Ok(true) => {}
                _ => return Err(io::Error::other("the disk is full")),
            }
            let _ = self.read.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Outside {
        may: Sender<bool>,
        asked: Receiver<()>,
        read: Receiver<String>,
    }

    fn queue(count: fn(u64)) -> (LineQueue, Outside) {
        let ((may, of_reader), (asks, asked), (sends, read)) = (channel(), channel(), channel());
        let reader = Reader { may: of_reader, asks, read: sends };
        let (hand, own) = channel::<LineQueue>();
        let place = Mutex::new((own, None));
        let tell = move |lines| {
            let mut place = place.lock().unwrap();
            let own = place.0.try_recv().ok().or_else(|| place.1.take()).expect("it was handed over");
            own.put(format!("{lines} lost\n").as_bytes());
            place.1 = Some(own);
        };
        let queue = LineQueue::start(reader, count, tell).unwrap();
        hand.send(queue.clone()).unwrap();
        (queue, Outside { may, asked, read })
    }

    #[test]
    fn whoever_logs_does_not_wait_and_the_lines_that_are_missing_are_told_in_their_place() {
        static LOST: AtomicU64 = AtomicU64::new(0);
        let (queue, outside) = queue(|lines| {
            LOST.fetch_add(lines, Relaxed);
        });
        queue.put(b"first\n");
        outside.asked.recv_timeout(LONG).unwrap();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let sent = 2 * BYTES_MAX / line.len();
        (0..sent).for_each(|_| queue.put(&line));
        let taken = (BYTES_MAX - "first\n".len()) / line.len();
        let dropped = (sent - taken) as u64;
        assert_eq!(LOST.load(Relaxed), dropped, "they count before anything flows");
        assert!(!queue.flush(Duration::from_millis(1)));
        (0..3).for_each(|_| outside.may.send(true).unwrap());
        assert!(queue.flush(LONG));
        queue.put(b"last\n");
        outside.may.send(true).unwrap();
        assert!(queue.flush(LONG));
        let read: String = outside.read.try_iter().collect();
        let lines: Vec<&str> = read.lines().collect();
        assert_eq!(lines.len(), taken + 3);
        assert_eq!(lines[0], "first");
        assert_eq!(lines[taken + 1..], [format!("{dropped} lost").as_str(), "last"]);
        assert_eq!(LOST.load(Relaxed), dropped);
    }

    #[test]
    fn lines_that_cannot_be_written_are_told_of_when_others_can() {
        let (queue, outside) = queue(|_| {});
        for line in ["one\n", "two\n"] {
            queue.put(line.as_bytes());
            outside.may.send(false).unwrap();
            assert!(queue.flush(LONG), "they are gone");
        }
        queue.put(b"three\n");
        (0..2).for_each(|_| outside.may.send(true).unwrap());
        assert!(queue.flush(LONG));
        assert_eq!(outside.read.try_iter().collect::<String>(), "three\n2 lost\n");
    }

    #[test]
    fn a_line_is_written_when_its_author_goes_on_if_somebody_reads() {
        let (queue, outside) = queue(|_| {});
        for number in 0..100 {
            outside.may.send(true).unwrap();
            let before = Instant::now();
            queue.put(b"line\n");
            let is_read = outside.read.try_recv().is_ok();
            assert!(is_read || before.elapsed() >= MOMENT, "line {number}");
            assert!(queue.flush(LONG));
            outside.read.try_iter().for_each(drop);
        }
    }

    #[test]
    fn last_words_are_taken_when_nothing_else_is() {
        let (queue, outside) = queue(|_| {});
        queue.put(b"first\n");
        outside.asked.recv_timeout(LONG).unwrap();
        queue.put(&vec![b'x'; BYTES_MAX]);
        queue.put_last(b"broken\n");
        (0..3).for_each(|_| outside.may.send(true).unwrap());
        assert!(queue.flush(LONG));
        assert_eq!(outside.read.try_iter().collect::<String>(), "first\nbroken\n1 lost\n");
    }
}
