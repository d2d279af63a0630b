//! One peer: where it listens, its link while there is one, and who calls whom.
//!
//! The side with the higher number calls, so that the two do not call each other at the same time. If it does not reach the other one, it takes
//! the other one's call: one direction that works is enough. Then it sends no greeting of its own meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paddock_proto::MemberNumber;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::link::Link;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: MemberNumber,
    state: Mutex<PeerState>,
    dropped: AtomicU64,
    /// The link came or went, or the peer has knocked.
    news: Notify,
    /// A call of the peer's begins to be taken, or was.
    taking: Notify,
}

/// A call of the peer's is being taken, for as long as this lives.
#[derive(Debug)]
pub(super) struct TakenCall(Arc<Peer>);

impl Drop for TakenCall {
    fn drop(&mut self) {
        self.0.state.lock().taken_calls -= 1;
        self.0.taking.notify_one();
    }
}

#[derive(Debug)]
struct PeerState {
    address: String,
    link: Option<Arc<Link>>,
    /// Reason for which there is no link.
    reason: String,
    /// The last attempt did not reach the peer.
    is_unreached: bool,
    /// A greeting was sent in an attempt that goes on.
    is_greeting: bool,
    /// Number of calls of the peer's that are being taken now.
    taken_calls: usize,
}

/// The host of `host:port`.
pub(super) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

impl Peer {
    pub(super) fn new(id: MemberNumber, address: String) -> Peer {
        let reason = "no attempt was made yet".to_owned();
        let state = PeerState {
            address,
            link: None,
            reason,
            is_unreached: false,
            is_greeting: false,
            taken_calls: 0,
        };
        Peer {
            id,
            state: Mutex::new(state),
            dropped: AtomicU64::new(0),
            news: Notify::new(),
            taking: Notify::new(),
        }
    }

    /// Sends messages together. Returns the number of those that were dropped.
    pub(super) fn send(&self, messages: impl IntoIterator<Item = Vec<u8>>) -> u64 {
        let dropped = match self.link() {
            Some(link) => link.send(messages),
            None => messages.into_iter().count() as u64,
        };
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        dropped
    }

    pub(super) fn address(&self) -> String {
        self.state.lock().address.clone()
    }

    pub(super) fn set_address(&self, address: String) {
        self.state.lock().address = address;
        self.news.notify_one();
    }

    pub(super) fn link(&self) -> Option<Arc<Link>> {
        self.state.lock().link.clone()
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> super::tests::LinkStatus {
        use super::tests::{LinkState, LinkStatus};

        let state = self.state.lock();
        LinkStatus {
            peer: self.id,
            address: state.address.clone(),
            state: if state.link.is_some() {
                LinkState::Up
            } else {
                LinkState::Down { reason: state.reason.clone() }
            },
            queued_bytes: state.link.as_ref().map_or(0, |link| link.queued_bytes()),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    pub(super) fn set_up(&self, link: Arc<Link>) {
        let mut state = self.state.lock();
        assert!(state.link.is_none(), "a second link to member {}", self.id);
        state.link = Some(link);
        self.news.notify_one();
    }

    /// Takes the link away. `None` if there is none.
    pub(super) fn set_down(&self, reason: &str) -> Option<Arc<Link>> {
        let mut state = self.state.lock();
        let link = state.link.take()?;
        reason.clone_into(&mut state.reason);
        self.news.notify_one();
        Some(link)
    }

    /// Notes why an attempt failed. False if the last one failed for the same reason, or the link is up by now.
    pub(super) fn set_reason(&self, reason: &str) -> bool {
        let mut state = self.state.lock();
        let is_new = state.link.is_none() && state.reason != reason;
        if is_new {
            reason.clone_into(&mut state.reason);
        }
        is_new
    }

    /// Asks for an attempt at once. One that could not reach the peer before leaves a pause, in which the peer's next call is taken.
    pub(super) fn knock(&self) {
        if !self.state.lock().is_unreached {
            self.news.notify_one();
        }
    }

    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// An attempt has a connection, and greets.
    pub(super) fn begin_greeting(&self) {
        self.state.lock().is_greeting = true;
    }

    /// An attempt is over, or goes on at the peer's next address.
    pub(super) fn end_greeting(&self) {
        self.state.lock().is_greeting = false;
    }

    pub(super) fn note_reached(&self, is_reached: bool) {
        self.state.lock().is_unreached = !is_reached;
    }

    /// Takes the call of a peer that this member ought to call, but does not reach. `None` if the peer had better wait: it can be reached, as far as
    /// is known, or is being greeted.
    pub(super) fn take_call(self: &Arc<Peer>) -> Option<TakenCall> {
        let mut state = self.state.lock();
        if !state.is_unreached || state.is_greeting {
            return None;
        }
        state.taken_calls += 1;
        drop(state);
        self.taking.notify_one();
        Some(TakenCall(self.clone()))
    }

    /// Waits until a call of the peer's is being taken.
    pub(super) async fn call_taken(&self) {
        while !self.is_taking() {
            self.taking.notified().await;
        }
    }

    /// Waits until no call of the peer's is being taken.
    pub(super) async fn calls_done(&self) {
        while self.is_taking() {
            self.taking.notified().await;
        }
    }

    fn is_taking(&self) -> bool {
        self.state.lock().taken_calls > 0
    }
}
