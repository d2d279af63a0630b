//! Members linked over real sockets on loopback: what arrives, what is noticed, and who is kept out.

mod certificates;
mod delivery;
mod faults;
mod late;
mod membership;
mod node;
mod one_way;
mod processes;
mod proxy;
mod speaker;
mod strangers;
mod tls;
mod tls_strangers;

use paddock_proto::MemberNumber;

/// State of the link to one peer.
#[derive(Clone, Debug)]
pub(super) struct LinkStatus {
    pub(super) peer: MemberNumber,
    pub(super) address: String,
    pub(super) state: LinkState,
    /// Bytes that wait to be taken by the socket.
    pub(super) queued_bytes: usize,
    /// Messages for which there was no link or no room, since the peer is known.
    pub(super) dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    Down { reason: String },
}
