//! Replies and watch events on their way to connections, in the order in which clients must see them.
//!
//! One outbox for each worker. Bytes of many connections lie in one buffer, cut into parcels. An event lies there once, however many
//! connections it is for.

use std::collections::HashMap;
use std::ops::Range;

use paddock_proto::{ErrorCode, Password, ReplyHeader, SessionId, WatchEvent, WriteReply, Zxid, frame};

use crate::{ConnId, RequestId, Slot};

/// Something for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel<'a> {
    /// The answer to one request that was handed to the engine: a whole frame, with the watch events that go out
    /// in front of it, if any.
    Reply(Slot, &'a [u8]),
    /// A watch event: a whole frame.
    Event(&'a [u8]),
    /// A long watch event that an earlier parcel of the same box has, too: a whole frame, in the same place of the box.
    SharedEvent(&'a [u8]),
    /// The connection now serves this session, whose client resumes it with the password.
    Connected(Connected, Password),
    /// The session it asked for is gone.
    Expired,
    /// To be closed when what was sent before has left.
    Close,
}

/// The session that a connection was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    pub session: SessionId,
    pub timeout_ms: i32,
    pub read_only: bool,
}

#[derive(Clone, Copy, Debug)]
enum ParcelKind {
    Reply(Slot),
    Event,
    SharedEvent,
    /// Its bytes are the password.
    Connected(Connected),
    Expired,
    Close,
}

/// Parcels for the connections of one worker.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// Each with the place of its bytes.
    parcels: Vec<(ConnId, ParcelKind, Range<usize>)>,
    /// The most bytes that the box held in one of the rounds of late.
    recent_bytes: usize,
}

impl Outbox {
    /// Memory that may always stay, in bytes.
    const BYTES_KEPT: usize = 64 << 10;
    /// Parcels whose memory may always stay. A round with four times as many lets the rest go.
    const PARCELS_KEPT: usize = 16 << 10;
    /// Bytes of a round above which it does not make the next ones keep more.
    const RECENT_BYTES_MAX: usize = 2 << 20;

    /// Shorter events are copied sooner than shared, in bytes.
    const SHARED_BYTES_MIN: usize = 512;

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// Empties the box. It keeps the memory that rounds of late have needed, so that it is not asked for in each round anew, and
    /// lets go what one huge reply took.
    pub fn clear(&mut self) {
        let faded = self.recent_bytes - self.recent_bytes / 64;
        self.recent_bytes = faded.max(self.bytes.len().min(Outbox::RECENT_BYTES_MAX));
        self.bytes.clear();
        self.parcels.clear();
        let enough = self.recent_bytes.max(Outbox::BYTES_KEPT);
        if self.bytes.capacity() > 4 * enough {
            self.bytes.shrink_to(2 * enough);
        }
        if self.parcels.capacity() > 4 * Outbox::PARCELS_KEPT {
            self.parcels.shrink_to(Outbox::PARCELS_KEPT);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (ConnId, Parcel<'_>)> {
        self.parcels.iter().map(|(conn, kind, place)| {
            let bytes = &self.bytes[place.clone()];
            let parcel = match *kind {
                ParcelKind::Reply(slot) => Parcel::Reply(slot, bytes),
                ParcelKind::Event => Parcel::Event(bytes),
                ParcelKind::SharedEvent => Parcel::SharedEvent(bytes),
                ParcelKind::Connected(connected) => {
                    Parcel::Connected(connected, Password(bytes.try_into().expect("it was sealed like that")))
                }
                ParcelKind::Expired => Parcel::Expired,
                ParcelKind::Close => Parcel::Close,
            };
            (*conn, parcel)
        })
    }

    /// Moves all of `other` behind what is here.
    #[inline]
    pub fn append(&mut self, other: &mut Outbox) {
        if self.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        let shift = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let shifted = |place: &Range<usize>| place.start + shift..place.end + shift;
        self.parcels.extend(other.parcels.iter().map(|(conn, kind, place)| (*conn, *kind, shifted(place))));
        other.clear();
    }

    /// A parcel of the bytes at `place`.
    #[inline]
    fn seal(&mut self, conn: ConnId, kind: ParcelKind, place: Range<usize>) {
        self.parcels.push((conn, kind, place));
    }

    /// A parcel without bytes.
    #[inline]
    fn seal_empty(&mut self, conn: ConnId, kind: ParcelKind) {
        self.seal(conn, kind, 0..0);
    }
}

/// The outboxes of all workers.
#[derive(Debug)]
pub struct Outboxes {
    boxes: Vec<Outbox>,
    /// The bytes of the large replies that a connection got in this round.
    large: HashMap<ConnId, usize>,
    /// Events for connections since that was asked last.
    events: usize,
}

impl Outboxes {
    /// Replies of this size are counted: a connection does not get enough smaller ones in a round to hurt.
    const LARGE_BYTES: usize = 64 << 10;
    /// A connection that got this many bytes in a round gets no more.
    const ROUND_BYTES_MAX: usize = 64 << 20;

    pub fn new(workers: usize) -> Outboxes {
        Outboxes {
            boxes: (0..workers).map(|_| Outbox::default()).collect(),
            large: HashMap::new(),
            events: 0,
        }
    }

    /// True if there is nothing for any connection.
    pub fn is_empty(&self) -> bool {
        self.boxes.iter().all(Outbox::is_empty)
    }

    /// Number of workers whose connections get something.
    pub fn workers(&self) -> usize {
        self.boxes.len()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Outbox)> {
        self.boxes.iter_mut().enumerate()
    }

    #[inline]
    pub fn begin_round(&mut self) {
        self.large.clear();
    }

    /// True if the connection has asked for more than a member holds ready for one.
    #[inline]
    pub fn is_full(&self, conn: ConnId) -> bool {
        self.large.get(&conn).is_some_and(|bytes| *bytes > Outboxes::ROUND_BYTES_MAX)
    }

    #[inline]
    fn of(&mut self, conn: ConnId) -> &mut Outbox {
        &mut self.boxes[conn.worker()]
    }

    /// The reply to a request, whose frame `write` appends, watch events in front of it included.
    pub fn reply(&mut self, conn: ConnId, slot: Slot, write: impl FnOnce(&mut Vec<u8>)) {
        let outbox = self.of(conn);
        let before = outbox.bytes.len();
        write(&mut outbox.bytes);
        let end = outbox.bytes.len();
        let bytes = end - before;
        outbox.seal(conn, ParcelKind::Reply(slot), before..end);
        if bytes >= Outboxes::LARGE_BYTES {
            *self.large.entry(conn).or_default() += bytes;
        }
    }

    /// The reply to a request at a zxid: its header, with an error if there is one, then what `body` appends.
    pub fn write_reply(
        &mut self,
        conn: ConnId,
        request: RequestId,
        (zxid, error): (Zxid, Option<ErrorCode>),
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        self.reply(conn, request.slot, |out| {
            frame::write(out, |out| {
                ReplyHeader { xid: request.xid, zxid, error }.encode(out);
                body(out);
            });
        });
    }

    /// The reply to a write, as the state has decided it.
    pub fn answer(
        &mut self,
        conn: ConnId,
        request: RequestId,
        zxid: Zxid,
        result: &Result<WriteReply<'_>, ErrorCode>,
    ) {
        self.write_reply(conn, request, (zxid, result.as_ref().err().copied()), |out| {
            if let Ok(reply) = result {
                reply.encode(out);
            }
        });
    }

    /// Number of events for connections since this was asked last, as a measure of the work that they were.
    #[inline]
    pub fn take_events(&mut self) -> usize {
        std::mem::take(&mut self.events)
    }

    /// An event, for a connection that is to be told of it.
    #[inline]
    pub fn event<'a>(&'a mut self, event: WatchEvent<'a>) -> EventMail<'a> {
        EventMail { outboxes: self, event, encoded: None }
    }

    /// An event that was encoded before.
    pub fn event_bytes(&mut self, conn: ConnId, event: &[u8]) {
        let outbox = self.of(conn);
        let start = outbox.bytes.len();
        outbox.bytes.extend_from_slice(event);
        let end = outbox.bytes.len();
        outbox.seal(conn, ParcelKind::Event, start..end);
        self.events += 1;
    }

    pub fn connected(&mut self, conn: ConnId, connected: Connected, password: &Password) {
        let outbox = self.of(conn);
        let start = outbox.bytes.len();
        outbox.bytes.extend_from_slice(&password.0);
        let end = outbox.bytes.len();
        outbox.seal(conn, ParcelKind::Connected(connected), start..end);
    }

    #[inline]
    pub fn expired(&mut self, conn: ConnId) {
        self.boxes[conn.worker()].seal_empty(conn, ParcelKind::Expired);
    }

    #[inline]
    pub fn close(&mut self, conn: ConnId) {
        self.boxes[conn.worker()].seal_empty(conn, ParcelKind::Close);
    }
}

/// One event on its way to several connections. It is encoded once for those of a worker that are told one after the other.
#[derive(Debug)]
pub struct EventMail<'a> {
    outboxes: &'a mut Outboxes,
    event: WatchEvent<'a>,
    /// The worker in whose box the event is, and its place there.
    encoded: Option<(usize, Range<usize>)>,
}

impl EventMail<'_> {
    #[inline]
    pub fn tell(&mut self, conn: ConnId) {
        let outbox = &mut self.outboxes.boxes[conn.worker()];
        let mut kind = ParcelKind::Event;
        let place = match &self.encoded {
            Some((worker, place)) if *worker == conn.worker() => {
                if place.len() >= Outbox::SHARED_BYTES_MIN {
                    kind = ParcelKind::SharedEvent;
                }
                place.clone()
            }
            _ => {
                let start = outbox.bytes.len();
                self.event.encode(&mut outbox.bytes);
                let place = start..outbox.bytes.len();
                self.encoded = Some((conn.worker(), place.clone()));
                place
            }
        };
        outbox.seal(conn, kind, place);
        self.outboxes.events += 1;
    }
}

#[cfg(test)]
mod tests {
    use paddock_proto::EventKind;

    use super::*;

    #[test]
    fn memory_of_a_huge_reply_is_let_go_and_that_of_every_round_is_kept() {
        let conn = ConnId::new(0, 1);
        let mut outboxes = Outboxes::new(1);
        let mut round = |bytes: usize| {
            outboxes.reply(conn, Slot(0), |out| out.resize(out.len() + bytes, 0));
            let outbox = &mut outboxes.boxes[0];
            let used = outbox.bytes.capacity();
            outbox.clear();
            (used, outbox.bytes.capacity())
        };
        round(1 << 20);
        for bytes in [10, 1 << 20, 10, 1 << 20] {
            let (used, kept) = round(bytes);
            assert_eq!(used, kept, "after {bytes} bytes");
        }
        round(32 << 20);
        assert!(round(10).1 <= 4 * Outbox::RECENT_BYTES_MAX);
        (0..500).for_each(|_| assert!(round(10).0 <= 4 * Outbox::RECENT_BYTES_MAX));
        assert!(round(10).1 <= 4 * Outbox::BYTES_KEPT);
    }

    #[test]
    fn memory_of_very_many_parcels_is_let_go() {
        let mut outboxes = Outboxes::new(1);
        let mut round = |parcels: u64| {
            (0..parcels).for_each(|number| outboxes.close(ConnId::new(0, number)));
            outboxes.boxes[0].clear();
            outboxes.boxes[0].parcels.capacity()
        };
        let kept = round(10_000);
        assert_eq!(round(10), kept, "an ordinary round keeps what it has");
        assert!(round(1_000_000) <= 4 * Outbox::PARCELS_KEPT);
    }

    #[test]
    fn an_event_lies_once_in_the_box_of_a_worker() {
        let [a, b, c] = [ConnId::new(0, 1), ConnId::new(0, 2), ConnId::new(1, 1)];
        let mut outboxes = Outboxes::new(2);
        outboxes.reply(a, Slot(0), |out| out.extend_from_slice(b"one"));
        let event = WatchEvent { kind: EventKind::NodeCreated, path: "/a", zxid: Zxid(7) };
        let mut encoded = Vec::new();
        event.encode(&mut encoded);
        let mut mail = outboxes.event(event);
        [a, b, c].into_iter().for_each(|conn| mail.tell(conn));

        let own = Parcel::Event(&encoded);
        let parcels = |worker: usize| outboxes.boxes[worker].iter().collect::<Vec<_>>();
        assert_eq!(parcels(0), [(a, Parcel::Reply(Slot(0), b"one")), (a, own), (b, own)]);
        assert_eq!(parcels(1), [(c, own)]);
        assert_eq!(outboxes.boxes[0].bytes.len(), 3 + encoded.len());
        assert_eq!([outboxes.take_events(), outboxes.take_events()], [3, 0]);
    }

    #[test]
    fn a_long_event_is_shared_by_all_but_the_first_of_a_worker() {
        let [a, b, c] = [ConnId::new(0, 1), ConnId::new(0, 2), ConnId::new(1, 1)];
        let mut outboxes = Outboxes::new(2);
        let path = format!("/{}", "x".repeat(Outbox::SHARED_BYTES_MIN));
        let mut mail =
            outboxes.event(WatchEvent { kind: EventKind::NodeCreated, path: &path, zxid: Zxid(7) });
        [a, b, c].into_iter().for_each(|conn| mail.tell(conn));
        let kinds = |worker: usize| {
            let parcels = outboxes.boxes[worker].iter();
            parcels.map(|(_, parcel)| matches!(parcel, Parcel::SharedEvent(_))).collect::<Vec<_>>()
        };
        assert_eq!((kinds(0), kinds(1)), (vec![false, true], vec![false]));
    }

    #[test]
    fn parcels_keep_their_bytes_and_their_order() {
        let (a, b) = (ConnId::new(0, 1), ConnId::new(0, 2));
        let mut outboxes = Outboxes::new(1);
        outboxes.reply(a, Slot(0), |out| out.extend_from_slice(b"one"));
        outboxes.close(b);
        let mut later = Outboxes::new(1);
        later.reply(b, Slot(1), |out| out.extend_from_slice(b"two"));

        let all = &mut outboxes.boxes[0];
        all.append(&mut later.boxes[0]);
        let parcels: Vec<_> = all.iter().collect();
        assert_eq!(
            parcels,
            [(a, Parcel::Reply(Slot(0), b"one")), (b, Parcel::Close), (b, Parcel::Reply(Slot(1), b"two"))]
        );
        assert!(later.boxes[0].is_empty());
    }
}
