//! Transfer of a snapshot from the leader to a member that lags so far that the entries it needs are gone.
//!
//! The leader only offers; the member that lags asks for one piece after the other, writes it, and asks for the next. So
//! neither side holds more than a piece in memory, a slow disk slows only itself, and what was written before a link
//! broke need not come again. The offer, which is the Raft library's own message, is taken when all is written. An offer
//! that came to nothing, because it was lost or its taker began anew, is made again.

use std::collections::BTreeMap;

use raft::eraftpb::Message;

use crate::effects::{Messages, SnapshotWrite};
use crate::message::PeerMessage;
use crate::raft_id::logged;

/// Ticks without a piece after which it is asked for again.
const PATIENCE_TICKS: u32 = 10;
/// Ticks in which a member has not asked for a piece of what it was offered after which it is offered one again.
const OFFER_TICKS: u32 = 3 * PATIENCE_TICKS;
/// Ticks from a complaint about this member's snapshot until the next one counts: the fault may be on the other side.
const COMPLAINT_TICKS: u32 = 300;

/// Both sides of what this member has to do with snapshots of others, but for its own offers, which end with its lead.
#[derive(Debug, Default)]
pub(crate) struct SnapshotTransfer {
    pub(crate) receiver: SnapshotReceiver,
    pub(crate) complaints: SnapshotComplaints,
}

/// Receiving side: the snapshot on its way to this member, if there is one.
#[derive(Debug, Default)]
pub(crate) struct SnapshotReceiver {
    transfer: Option<Transfer>,
}

#[derive(Debug)]
struct Transfer {
    /// The Raft library's message, which it is given when the snapshot is here.
    offer: Message,
    /// Bytes written so far.
    offset: u64,
    /// True while a piece is being written.
    is_writing: bool,
    idle_ticks: u32,
    /// True if a piece has to be asked for.
    is_due: bool,
}

impl Transfer {
    fn index(&self) -> u64 {
        self.offer.get_snapshot().get_metadata().index
    }
}

impl SnapshotReceiver {
    /// Takes an offer of a snapshot that this member lacks. A newer snapshot of the same leader is no reason to begin anew: what
    /// the one under way lacks comes as entries.
    pub(crate) fn on_offer(&mut self, offer: Message) {
        if self.transfer.as_ref().is_none_or(|transfer| transfer.offer.term < offer.term) {
            self.transfer =
                Some(Transfer { offer, offset: 0, is_writing: false, idle_ticks: 0, is_due: true });
        }
    }

    /// Drops an offer of another term: the next leader makes its own.
    pub(crate) fn forget_unless_of(&mut self, term: u64) {
        self.transfer = self.transfer.take().filter(|transfer| transfer.offer.term == term);
    }

    /// Takes a piece, to be written if it is the next one.
    pub(crate) fn on_piece(&mut self, from: u64, piece: SnapshotWrite, writes: &mut Vec<SnapshotWrite>) {
        let Some(transfer) = &mut self.transfer else { return };
        let is_next = transfer.offer.from == from
            && transfer.index() == piece.index
            && transfer.offset == piece.offset
            && !transfer.is_writing;
        if is_next {
            transfer.is_writing = true;
            transfer.is_due = false;
            writes.push(piece);
        }
    }

    /// A piece was written, up to `offset`; or it could not be, and what came of the snapshot is of no use. Returns the offer if
    /// the snapshot is here.
    pub(crate) fn on_written(
        &mut self,
        index: u64,
        offset: u64,
        is_last: bool,
        is_good: bool,
        out: &mut Messages,
    ) -> Option<Message> {
        let transfer = self.transfer.as_mut().filter(|transfer| transfer.index() == index)?;
        transfer.is_writing = false;
        transfer.idle_ticks = 0;
        if !is_good {
            // Again from the start, but not at once: whatever is wrong may last.
            transfer.offset = 0;
            if is_last {
                // The snapshot was whole, and would be no better. The leader will offer another one.
                out.push((transfer.offer.from, PeerMessage::Damaged { index }.encode()));
                self.transfer = None;
            }
            return None;
        }
        transfer.offset = offset;
        transfer.is_due = true;
        if is_last { self.transfer.take().map(|transfer| transfer.offer) } else { None }
    }

    /// The sender has this snapshot no more.
    pub(crate) fn on_gone(&mut self, from: u64, index: u64) {
        self.transfer = self.transfer.take().filter(|t| t.offer.from != from || t.index() != index);
    }

    pub(crate) fn tick(&mut self) {
        if let Some(transfer) = &mut self.transfer {
            transfer.idle_ticks += 1;
            transfer.is_due |= !transfer.is_writing && transfer.idle_ticks >= PATIENCE_TICKS;
        }
    }

    /// Asks for the next piece, if it is time.
    pub(crate) fn ask_for_piece(&mut self, out: &mut Messages) {
        if let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.is_due) {
            transfer.is_due = false;
            transfer.idle_ticks = 0;
            let fetch = PeerMessage::Fetch { index: transfer.index(), offset: transfer.offset };
            out.push((transfer.offer.from, fetch.encode()));
        }
    }
}

/// Complaints of members that this member's snapshot has reached them damaged.
#[derive(Debug, Default)]
pub(crate) struct SnapshotComplaints {
    /// Ticks until the next complaint counts.
    ticks: u32,
}

impl SnapshotComplaints {
    /// Takes a complaint. Returns true if another snapshot should take the place of this one, whose file may be damaged.
    pub(crate) fn note(&mut self, member: u64, index: u64) -> bool {
        if self.ticks > 0 {
            return false;
        }
        tracing::error!(
            member = logged(member),
            index,
            "this member's snapshot arrives damaged; taking another one"
        );
        self.ticks = COMPLAINT_TICKS;
        true
    }

    pub(crate) fn tick(&mut self) {
        self.ticks = self.ticks.saturating_sub(1);
    }
}

/// Snapshots that a leader has offered: for each member the ticks since it has asked for a piece.
#[derive(Debug, Default)]
pub(crate) struct SnapshotOffers {
    idle_ticks: BTreeMap<u64, u32>,
}

impl SnapshotOffers {
    /// The member has asked for a piece.
    pub(crate) fn note_fetch(&mut self, member: u64) {
        self.idle_ticks.insert(member, 0);
    }

    /// A tick has passed; `offered` are the members that are to get a snapshot. Returns those that seem to know of no offer any
    /// more, so that it has to be made again.
    pub(crate) fn tick(&mut self, offered: &[u64]) -> Vec<u64> {
        self.idle_ticks.retain(|member, _| offered.contains(member));
        let mut lost = Vec::new();
        for &member in offered {
            let ticks = self.idle_ticks.entry(member).or_default();
            *ticks += 1;
            if *ticks >= OFFER_TICKS {
                *ticks = 0;
                lost.push(member);
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(term: u64, index: u64) -> Message {
        let mut offer = Message { from: 2, term, ..Message::default() };
        offer.mut_snapshot().mut_metadata().index = index;
        offer
    }

    fn piece(offset: u64, is_last: bool) -> SnapshotWrite {
        SnapshotWrite { index: 7, offset, bytes: vec![0; 10], is_last }
    }

    /// Offsets of the pieces that are asked for.
    fn asked(receiver: &mut SnapshotReceiver) -> Vec<u64> {
        let mut out = Messages::new();
        receiver.ask_for_piece(&mut out);
        let offset = |bytes: &[u8]| match PeerMessage::decode(&bytes[17..]) {
            Ok(PeerMessage::Fetch { offset, .. }) => offset,
            other => panic!("{other:?}"),
        };
        out.iter().map(|(_, bytes)| offset(bytes)).collect()
    }

    #[test]
    fn pieces_are_fetched_one_after_the_other() {
        let mut receiver = SnapshotReceiver::default();
        let (mut writes, mut out) = (Vec::new(), Messages::new());
        receiver.on_offer(offer(3, 7));
        assert_eq!(asked(&mut receiver), [0]);
        assert_eq!(asked(&mut receiver), []);
        receiver.on_piece(3, piece(0, false), &mut writes);
        receiver.on_piece(2, piece(10, false), &mut writes);
        assert!(writes.is_empty(), "from another member, or not the next one");
        receiver.on_piece(2, piece(0, false), &mut writes);
        assert_eq!(writes.len(), 1);
        assert_eq!(receiver.on_written(7, 10, false, true, &mut out), None);
        assert_eq!(asked(&mut receiver), [10]);
        for _ in 0..PATIENCE_TICKS {
            receiver.tick();
        }
        assert_eq!(asked(&mut receiver), [10], "it may be lost");
        receiver.on_piece(2, piece(10, true), &mut writes);
        assert_eq!(receiver.on_written(7, 20, true, true, &mut out), Some(offer(3, 7)));
        assert!(out.is_empty());
    }

    #[test]
    fn a_damaged_snapshot_is_complained_of_and_forgotten() {
        let mut receiver = SnapshotReceiver::default();
        let (mut writes, mut out) = (Vec::new(), Messages::new());
        receiver.on_offer(offer(3, 7));
        receiver.on_piece(2, piece(0, true), &mut writes);
        assert_eq!(receiver.on_written(7, 0, true, false, &mut out), None);
        assert_eq!(out, [(2, PeerMessage::Damaged { index: 7 }.encode())]);
        assert!(receiver.transfer.is_none());
        let mut complaints = SnapshotComplaints::default();
        assert!(complaints.note(3, 7));
        assert!(!complaints.note(3, 7), "the fault may be on the other side");
        for _ in 0..COMPLAINT_TICKS {
            complaints.tick();
        }
        assert!(complaints.note(3, 7));
    }

    #[test]
    fn an_offer_of_another_leader_takes_the_place_of_an_older_one() {
        let mut receiver = SnapshotReceiver::default();
        receiver.on_offer(offer(3, 7));
        receiver.on_offer(offer(3, 9));
        assert_eq!(receiver.transfer.as_ref().unwrap().index(), 7);
        receiver.on_offer(offer(4, 9));
        assert_eq!(receiver.transfer.as_ref().unwrap().index(), 9);
        receiver.forget_unless_of(5);
        assert!(receiver.transfer.is_none());
    }

    #[test]
    fn an_offer_that_nobody_takes_is_made_again() {
        let mut offers = SnapshotOffers::default();
        for _ in 1..OFFER_TICKS {
            assert!(offers.tick(&[2, 3]).is_empty());
        }
        offers.note_fetch(3);
        assert_eq!(offers.tick(&[2, 3]), [2]);
    }
}
