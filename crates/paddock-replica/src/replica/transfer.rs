//! Getting a snapshot from the leader, for a member that lags so far that the entries it needs are gone.
//!
//! The leader only offers; the member that lags asks for one piece after the other, writes it, and asks for the next. So
//! neither side holds more than a piece in memory, a slow disk slows only itself, and what was written before a link
//! broke need not come again. The offer, which is the Raft library's own message, is taken when all is written. An offer
//! that came to nothing, because it was lost or its taker began anew, is made again.

use raft::eraftpb::Message;

use super::{Effects, Replica};
use crate::effects::{SnapshotRead, SnapshotWrite};
use crate::message::PeerMessage;

/// After so many ticks without a piece it is asked for again.
const PATIENCE_TICKS: u32 = 10;

/// After so many ticks in which a member has not asked for a piece of what it was offered, it is offered one again.
const OFFER_TICKS: u32 = 3 * PATIENCE_TICKS;

/// After a complaint about this member's snapshot so many ticks pass before the next one counts: the fault may be on the
/// other side.
const COMPLAINT_TICKS: u32 = 300;

/// A snapshot on its way to this member.
#[derive(Debug)]
pub(super) struct Transfer {
    offer: Message,
    /// So many bytes are written.
    offset: u64,
    /// A piece is being written now.
    is_writing: bool,
    idle_ticks: u32,
    /// A piece has to be asked for.
    is_due: bool,
}

impl Transfer {
    fn index(&self) -> u64 {
        self.offer.get_snapshot().get_metadata().index
    }
}

impl Replica {
    pub(super) fn on_offer(&mut self, offer: Message) {
        if offer.get_snapshot().get_metadata().index <= self.consensus.committed() {
            // It was here before, and the answer was lost: the library says what this member has.
            return self.consensus.step(offer);
        }
        // A newer snapshot of the same leader is no reason to begin anew: what the one under way lacks comes as entries.
        if self.transfer.as_ref().is_none_or(|transfer| transfer.offer.term < offer.term) {
            self.transfer =
                Some(Transfer { offer, offset: 0, is_writing: false, idle_ticks: 0, is_due: true });
        }
    }

    /// An offer is worth something for as long as its leader leads: the next one makes its own.
    pub(super) fn forget_offer_before(&mut self, term: u64) {
        self.transfer = self.transfer.take().filter(|transfer| transfer.offer.term == term);
    }

    /// Gives up offers that nobody seems to know of any more, so that they are made again.
    pub(super) fn renew_offers(&mut self) {
        let gets_one = |member: u64| self.consensus.follower(member).is_some_and(|f| f.gets_snapshot);
        let offered: Vec<u64> =
            self.consensus.membership().all().filter(|member| gets_one(*member)).collect();
        self.idle_offers.retain(|member, _| offered.contains(member));
        for member in offered {
            let ticks = self.idle_offers.entry(member).or_default();
            *ticks += 1;
            if *ticks >= OFFER_TICKS {
                *ticks = 0;
                self.consensus.snapshot_failed(member);
            }
        }
    }

    pub(super) fn on_fetch(&mut self, read: SnapshotRead) {
        self.idle_offers.insert(read.to, 0);
        self.reads.push(read);
    }

    pub(super) fn on_piece(&mut self, from: u64, piece: SnapshotWrite) {
        let Some(transfer) = &mut self.transfer else { return };
        let is_next = transfer.offer.from == from
            && transfer.index() == piece.index
            && transfer.offset == piece.offset
            && !transfer.is_writing;
        if is_next {
            transfer.is_writing = true;
            transfer.is_due = false;
            self.writes.push(piece);
        }
    }

    /// A piece was written, up to `offset`; or it could not be, and what came of the snapshot is of no use.
    pub(super) fn on_written(&mut self, index: u64, offset: u64, is_last: bool, is_good: bool) {
        let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.index() == index) else {
            return;
        };
        transfer.is_writing = false;
        transfer.idle_ticks = 0;
        if !is_good {
            // Again from the start, but not at once: whatever is wrong may last.
            transfer.offset = 0;
            if is_last {
                // It was whole, and would be no better. The leader will offer another one.
                let damaged = (transfer.offer.from, PeerMessage::Damaged { index }.encode());
                self.letters.push(damaged);
                self.transfer = None;
            }
            return;
        }
        transfer.offset = offset;
        transfer.is_due = true;
        if is_last && let Some(transfer) = self.transfer.take() {
            self.consensus.step(transfer.offer);
        }
    }

    pub(super) fn on_gone(&mut self, from: u64, index: u64) {
        self.transfer = self.transfer.take().filter(|t| t.offer.from != from || t.index() != index);
    }

    /// The file may be damaged, so another one takes its place.
    pub(super) fn on_damaged(&mut self, from: u64, index: u64) {
        if self.ticks_to_complaint == 0 {
            tracing::error!(
                member = from,
                index,
                "this member's snapshot arrives damaged; taking another one"
            );
            self.ticks_to_complaint = COMPLAINT_TICKS;
            self.consensus.want_snapshot();
        }
    }

    pub(super) fn tick_transfer(&mut self) {
        self.ticks_to_complaint = self.ticks_to_complaint.saturating_sub(1);
        if let Some(transfer) = &mut self.transfer {
            transfer.idle_ticks += 1;
            transfer.is_due |= !transfer.is_writing && transfer.idle_ticks >= PATIENCE_TICKS;
        }
    }

    pub(super) fn ask_for_piece(&mut self, effects: &mut Effects) {
        if let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.is_due) {
            transfer.is_due = false;
            transfer.idle_ticks = 0;
            let fetch = PeerMessage::Fetch { index: transfer.index(), offset: transfer.offset };
            effects.messages.push((transfer.offer.from, fetch.encode()));
        }
    }

    /// A piece of this member's snapshot was read, or the snapshot is not there any more.
    pub(super) fn on_read(&mut self, read: SnapshotRead, piece: Option<(Vec<u8>, bool)>) {
        let SnapshotRead { to, index, offset } = read;
        let message = match piece {
            Some((bytes, is_last)) => PeerMessage::Piece(SnapshotWrite { index, offset, bytes, is_last }),
            None => {
                self.consensus.snapshot_failed(to);
                PeerMessage::Gone { index }
            }
        };
        self.letters.push((to, message.encode()));
    }
}
