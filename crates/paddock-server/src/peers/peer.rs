//! One peer: where it listens, and its link while there is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::link::Link;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: u8,
    state: Mutex<PeerState>,
    dropped: AtomicU64,
    /// The link came or went, or the peer has knocked.
    news: Notify,
}

#[derive(Debug)]
struct PeerState {
    address: String,
    link: Option<Arc<Link>>,
    /// Reason for which there is no link.
    reason: String,
}

/// The host of `host:port`.
pub(super) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

impl Peer {
    pub(super) fn new(id: u8, address: String) -> Peer {
        let reason = "no attempt was made yet".to_owned();
        let state = PeerState { address, link: None, reason };
        Peer { id, state: Mutex::new(state), dropped: AtomicU64::new(0), news: Notify::new() }
    }

    pub(super) fn send(&self, message: Vec<u8>) -> bool {
        let link = self.link();
        let is_sent = link.is_some_and(|link| link.send(message));
        if !is_sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_sent
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

    pub(super) fn knock(&self) {
        self.news.notify_one();
    }

    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}
