//! One link that is up: its socket, what it has to send, and the loop that serves it.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep_until, timeout};

use super::chunks::Chunks;
use super::frame::{Decoder, FrameError, FramePosition};
use super::inflow::{Inflow, Received};
use super::outbox::Outbox;
use super::settings::{MESSAGE_BYTES_MAX, Timing};
use super::stream::Stream;

/// Reasons for the end of a link.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkEnd {
    #[error("the other side closed the connection")]
    Closed,
    #[error("the connection failed: {0}")]
    Socket(io::Error),
    #[error("the connection is not what was sent: {0}")]
    Frame(#[from] FrameError),
    #[error("nothing was heard for {} ms", .0.as_millis())]
    Silent(Duration),
    #[error("the other side connected again")]
    Replaced,
    #[error("the member has another address now")]
    Moved,
    #[error("the member was removed")]
    Removed,
    #[error("it belongs to ensemble {theirs:016x}, and this member to ensemble {own:016x}")]
    OtherCluster { own: u64, theirs: u64 },
}

/// A connection after its greeting, and the place where each direction's frames begin.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) stream: Stream,
    /// Address of the other side.
    pub(super) address: SocketAddr,
    /// The other side's process, and its ensemble, as it has said: 0 if it did not know that.
    pub(super) process: u64,
    pub(super) cluster: u64,
    pub(super) sending: FramePosition,
    pub(super) receiving: FramePosition,
}

#[derive(Debug)]
pub(super) struct Link {
    stream: Stream,
    address: SocketAddr,
    process: u64,
    cluster: u64,
    outbox: Mutex<Outbox>,
    /// There is something to send, or the link was closed.
    changed: Notify,
    /// Something has come, or the link was closed.
    heard: Notify,
    inflow: Arc<Inflow>,
}

impl Link {
    /// The link, and where the frames begin that come from the other side.
    pub(super) fn new(greeted: Greeted) -> (Link, FramePosition) {
        let Greeted { stream, address, process, cluster, sending, receiving } = greeted;
        let outbox = Mutex::new(Outbox::new(sending));
        let (changed, heard, inflow) = (Notify::new(), Notify::new(), Arc::default());
        (Link { stream, address, process, cluster, outbox, changed, heard, inflow }, receiving)
    }

    /// The address of the other side.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells the other side's process from all others.
    pub(super) fn process(&self) -> u64 {
        self.process
    }

    /// The other side's ensemble, as it said when the link began; 0 if it did not know.
    pub(super) fn cluster(&self) -> u64 {
        self.cluster
    }

    /// True if the other side is heard again within a time.
    pub(super) async fn is_heard_within(&self, time: Duration) -> bool {
        let is_heard = timeout(time, self.heard.notified()).await.is_ok();
        is_heard && !self.is_closed()
    }

    /// Sends messages together. Returns the number of those for which there is no room.
    pub(super) fn send(&self, messages: impl IntoIterator<Item = Vec<u8>>) -> u64 {
        let mut outbox = self.outbox.lock();
        let (mut pushed, mut dropped) = (0, 0);
        for message in messages {
            if message.len() > MESSAGE_BYTES_MAX {
                tracing::error!(bytes = message.len(), address = %self.address, "dropped a message that no link takes");
            }
            if outbox.has_room(message.len()) {
                outbox.push(message);
                pushed += 1;
            } else {
                dropped += 1;
            }
        }
        let is_left_to_thread = pushed > 0 && outbox.end_push(&self.stream);
        drop(outbox);
        if is_left_to_thread {
            self.changed.notify_one();
        }
        dropped
    }

    #[cfg(test)]
    pub(super) fn queued_bytes(&self) -> usize {
        self.outbox.lock().bytes()
    }

    /// Ends the link, without another message of it.
    pub(super) fn close(&self) {
        self.outbox.lock().close();
        self.changed.notify_one();
        self.heard.notify_waiters();
    }

    fn is_closed(&self) -> bool {
        self.outbox.lock().is_closed()
    }
}

/// The side of a link that the thread alone has.
#[derive(Debug)]
pub(super) struct LinkThread {
    link: Arc<Link>,
    timing: Timing,
    decoder: Decoder,
    /// Chunks that the thread is writing.
    written_out: Chunks,
    /// True if there may be more to write.
    is_writing: bool,
    /// Too many messages are held: the link is not read.
    is_paused: bool,
    heard_at: Instant,
    /// Time at which the link is looked at next, if nothing happens before: it may have to say that it is there, or may have been silent.
    next_look: Instant,
}

impl LinkThread {
    pub(super) fn new(link: Arc<Link>, receiving: FramePosition, timing: Timing) -> LinkThread {
        LinkThread {
            link,
            timing,
            decoder: Decoder::new(receiving),
            written_out: Chunks::default(),
            is_writing: false,
            is_paused: false,
            heard_at: Instant::now(),
            next_look: Instant::now(),
        }
    }

    /// Serves the link until it ends. All links read into `scratch`. Messages are delivered with whether they are the last
    /// of those that came together. `None` if the link was closed from here, which knows
    /// why.
    pub(super) async fn run(
        mut self,
        scratch: &RefCell<Box<[u8]>>,
        deliver: impl Fn(Received, bool),
    ) -> Option<LinkEnd> {
        let mut look = pin!(sleep_until(self.next_look.into()));
        loop {
            let ticked = self.wait(look.as_mut()).await;
            if self.link.is_closed() {
                return None;
            }
            if let Err(end) = self.turn(ticked, &mut scratch.borrow_mut(), &deliver) {
                return Some(end);
            }
            if ticked {
                look.as_mut().reset(self.next_look.into());
            }
        }
    }

    /// Waits until there is something to do. True if time has passed.
    async fn wait(&self, look: Pin<&mut Sleep>) -> bool {
        let interest = match (!self.is_paused, self.is_writing) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let socket_ready = async {
            match interest {
                // A broken socket tells so when it is used.
                Some(interest) => drop(self.link.stream.ready(interest).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.link.changed.notified() => false,
            () = self.link.inflow.resumed() => false,
            () = look => true,
            () = socket_ready => false,
        }
    }

    /// Reads once and writes once. What came in counts before time does: a member that was stopped for a while has not
    /// been silent to itself.
    fn turn(
        &mut self,
        ticked: bool,
        scratch: &mut [u8],
        deliver: &impl Fn(Received, bool),
    ) -> Result<(), LinkEnd> {
        if self.is_paused && self.link.inflow.has_drained() {
            self.is_paused = false;
            self.heard_at = Instant::now();
        }
        if !self.is_paused {
            self.receive(scratch, deliver)?;
        }
        if ticked {
            if !self.is_paused && self.heard_at.elapsed() >= self.timing.silence {
                return Err(LinkEnd::Silent(self.timing.silence));
            }
            let keep_alive_at = self.link.outbox.lock().keep_alive(self.timing.heartbeat);
            self.next_look = match self.is_paused {
                false => keep_alive_at.min(self.heard_at + self.timing.silence),
                true => keep_alive_at,
            };
        }
        self.transmit()
    }

    fn receive(&mut self, scratch: &mut [u8], deliver: &impl Fn(Received, bool)) -> Result<(), LinkEnd> {
        let bytes = match self.link.stream.try_read(scratch) {
            Ok(0) => return Err(LinkEnd::Closed),
            Ok(count) => &scratch[..count],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(LinkEnd::Socket(error)),
        };
        self.heard_at = Instant::now();
        self.link.heard.notify_waiters();
        let inflow = &self.link.inflow;
        let mut latest = None;
        let fed = self.decoder.feed(bytes, |message| {
            if let Some(message) = latest.replace(Received::new(message, inflow.clone())) {
                deliver(message, false);
            }
        });
        if let Some(message) = latest {
            deliver(message, true);
        }
        fed?;
        self.is_paused = inflow.is_full();
        Ok(())
    }

    fn transmit(&mut self) -> Result<(), LinkEnd> {
        if self.written_out.is_empty() {
            self.is_writing = self.link.outbox.lock().hand_over(&mut self.written_out);
        }
        if !self.is_writing {
            return Ok(());
        }
        match self.written_out.write_to(&self.link.stream) {
            Ok(written) => self.link.outbox.lock().sent(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(LinkEnd::Socket(error)),
        }
        Ok(())
    }
}
