//! The connections of a member: the server's own front, and sockets that give and take bytes in pieces of any size.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

use paddock_chance::Chance;
use paddock_front::{Front, Host, Reached, Settings, WordAnswer};
use paddock_proto::jute::Reader;
use paddock_proto::{ConnectResponse, Extensions, ReplyHeader, SessionId, Xid, Zxid, blocks, frame};
use paddock_replica::Replicated;
use paddock_state::{ClientInput, ConnId, Now, Outbox, Outboxes, State};

use super::shell::Locked;
use crate::wire::{Frame, WirePacket};

/// The process as the front of one worker finds it.
#[derive(Debug)]
struct SimHost {
    state: Rc<Locked>,
    mail: RefCell<Outbox>,
    now: Cell<Now>,
    confirmed_ms: Cell<u64>,
    is_looking: Cell<bool>,
}

impl Host for SimHost {
    type StateGuard<'a> = Ref<'a, State>;
    type Stats = ();
    type Span = ();

    fn now(&self) -> Now {
        self.now.get()
    }

    fn lock_state(&self) -> Ref<'_, State> {
        Ref::map(self.state.read(), Replicated::state)
    }

    fn take_mail(&self, mail: &mut Outbox) -> bool {
        std::mem::swap(&mut *self.mail.borrow_mut(), mail);
        !mail.is_empty()
    }

    fn confirmed_ms(&self) -> u64 {
        self.confirmed_ms.get()
    }

    fn is_looking(&self) -> bool {
        self.is_looking.get()
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn nonce(&self) -> u128 {
        unreachable!("no client speaks SASL here")
    }

    fn answer_word(&self, _: [u8; 4], _: &[u8]) -> Option<WordAnswer> {
        None
    }
}

/// The two ends of a connection.
#[derive(Debug, Default)]
struct Socket {
    /// Bytes from the client that the front has not read.
    incoming: Vec<u8>,
    /// Bytes from the front that are not a whole packet yet.
    outgoing: Vec<u8>,
    /// Bytes out of compressed blocks.
    unpacked: Vec<u8>,
    /// The answer to the greeting has come.
    is_greeted: bool,
    /// Agreed with the client by its greeting.
    extensions: Extensions,
    turns: Turns,
}

/// The turns in which the front took requests of a connection, and what was sent of their replies.
#[derive(Debug, Default)]
struct Turns {
    /// For each, the bytes that the front had for the client up to its end, and the zxid of the state.
    ends: VecDeque<(usize, Zxid)>,
    /// Bytes that the front has sent.
    sent: usize,
    /// Bytes that packets were made of.
    taken: usize,
}

impl Turns {
    fn end(&mut self, unsent: usize, zxid: Zxid) {
        self.ends.push_back((self.sent + unsent, zxid));
    }

    /// The next packet ends behind `bytes` bytes more. Returns the zxid of the turn that it is of.
    fn take(&mut self, bytes: usize) -> Zxid {
        self.taken += bytes;
        while self.ends.len() > 1 && self.ends.front().is_some_and(|(end, _)| *end < self.taken) {
            self.ends.pop_front();
        }
        self.ends.front().map_or(Zxid(0), |(_, zxid)| *zxid)
    }
}

/// Worker threads with their connections.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<(Front<SimHost>, SimHost)>,
    sockets: BTreeMap<ConnId, Socket>,
    /// Connections whose turns were cut short, so that others have theirs.
    put_off: BTreeSet<ConnId>,
    /// Dice for the pieces in which bytes come and go; without them all comes and goes at once.
    chance: Option<Chance>,
}

/// Inputs for the engine, and packets for clients.
#[derive(Debug, Default)]
pub(crate) struct Yield {
    pub(crate) inputs: Vec<ClientInput>,
    pub(crate) packets: Vec<(ConnId, WirePacket)>,
}

impl Workers {
    pub(crate) fn new(count: usize, settings: &Settings, state: &Rc<Locked>, chance: Chance) -> Workers {
        let worker = |_| {
            let host = SimHost {
                state: state.clone(),
                mail: RefCell::default(),
                now: Cell::default(),
                confirmed_ms: Cell::new(0),
                is_looking: Cell::new(true),
            };
            (Front::new(settings.clone()), host)
        };
        Workers {
            workers: (0..count).map(worker).collect(),
            sockets: BTreeMap::new(),
            put_off: BTreeSet::new(),
            chance: Some(chance),
        }
    }

    /// From now on bytes come and go at once, as much as there is.
    pub(crate) fn take_whole(&mut self) {
        self.chance = None;
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.chance.as_mut().is_some_and(|chance| chance.one_in(count))
    }

    /// Notes the member's last contact to a quorum, and whether it knows of a leader.
    pub(crate) fn note_member(&mut self, confirmed_ms: u64, is_looking: bool) {
        for (_, host) in &self.workers {
            host.confirmed_ms.set(confirmed_ms);
            host.is_looking.set(is_looking);
        }
    }

    pub(crate) fn accept(&mut self, conn: ConnId, address: SocketAddr) {
        self.workers[conn.worker()].0.accept(conn, address, ());
        self.sockets.insert(conn, Socket::default());
    }

    /// The connections that have not ended, as far as the member knows.
    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.sockets.keys().copied()
    }

    /// The session that a connection serves.
    pub(crate) fn session(&self, conn: ConnId) -> SessionId {
        self.workers[conn.worker()].0.session(conn)
    }

    /// True if the front has read all that has come on a connection.
    pub(crate) fn has_read_all(&self, conn: ConnId) -> bool {
        self.sockets.get(&conn).is_none_or(|socket| socket.incoming.is_empty())
    }

    /// A frame of a client has come.
    pub(crate) fn receive(&mut self, conn: ConnId, frame: &Frame, now: Now) -> Yield {
        self.workers[conn.worker()].1.now.set(now);
        let Some(socket) = self.sockets.get_mut(&conn) else { return Yield::default() };
        if let Frame::Hangup = frame {
            self.leave(conn);
            return self.finish(conn.worker(), Vec::new());
        }
        if let Frame::Greet { extensions, .. } = frame {
            socket.extensions = *extensions;
        }
        let bytes = frame.encode(socket.extensions);
        self.receive_bytes(conn, &bytes, now)
    }

    /// Frames of a client have come, whole.
    pub(crate) fn receive_bytes(&mut self, conn: ConnId, bytes: &[u8], now: Now) -> Yield {
        self.workers[conn.worker()].1.now.set(now);
        let Some(socket) = self.sockets.get_mut(&conn) else { return Yield::default() };
        socket.incoming.extend_from_slice(bytes);
        let mut packets = Vec::new();
        self.serve(conn, &mut packets);
        self.finish(conn.worker(), packets)
    }

    /// Takes the member's mail for connections. Returns the workers who had no mail before.
    pub(crate) fn post(&mut self, outboxes: &mut Outboxes) -> Vec<usize> {
        let mut woken = Vec::new();
        for (worker, outbox) in outboxes.iter_mut().filter(|(_, outbox)| !outbox.is_empty()) {
            let mut mail = self.workers[worker].1.mail.borrow_mut();
            if mail.is_empty() {
                woken.push(worker);
            }
            mail.append(outbox);
        }
        woken
    }

    /// Empties a worker's mailbox.
    pub(crate) fn deliver(&mut self, worker: usize, now: Now) -> Yield {
        let (front, host) = &mut self.workers[worker];
        host.now.set(now);
        front.deliver(host);
        self.finish(worker, Vec::new())
    }

    /// Reports the sessions that were heard since this was called last, closes the connections of those that may have been ended
    /// elsewhere soon, and sends what clients have not read yet.
    pub(crate) fn report_heard(&mut self, now: Now) -> Yield {
        let mut all = Yield::default();
        for worker in 0..self.workers.len() {
            let (front, host) = &mut self.workers[worker];
            host.now.set(now);
            front.report_heard();
            front.close_without_contact(host);
            front.look_after_memory(host);
            let mut packets = Vec::new();
            let conns: Vec<ConnId> = self.conns().filter(|conn| conn.worker() == worker).collect();
            conns.into_iter().for_each(|conn| self.serve_whole(conn, &mut packets));
            let more = self.finish(worker, packets);
            all.inputs.extend(more.inputs);
            all.packets.extend(more.packets);
        }
        all
    }

    /// Lets connections go on whose turns were cut short.
    pub(crate) fn take_turns(&mut self, now: Now) -> Yield {
        let mut all = Yield::default();
        for conn in std::mem::take(&mut self.put_off) {
            self.workers[conn.worker()].1.now.set(now);
            let mut packets = Vec::new();
            self.serve(conn, &mut packets);
            let more = self.finish(conn.worker(), packets);
            all.inputs.extend(more.inputs);
            all.packets.extend(more.packets);
        }
        all
    }

    /// True if connections are to go on whose turns were cut short.
    pub(crate) fn has_put_off(&self) -> bool {
        !self.put_off.is_empty()
    }

    /// Number of the workers.
    pub(crate) fn count(&self) -> usize {
        self.workers.len()
    }

    /// Wakes the tasks of the connections that mail has reached, until nothing comes of that.
    fn finish(&mut self, worker: usize, mut packets: Vec<(ConnId, WirePacket)>) -> Yield {
        loop {
            let mut reached = Vec::new();
            self.workers[worker].0.take_reached(&mut reached);
            if reached.is_empty() {
                break;
            }
            for Reached { conn, has_changed } in reached {
                self.flush(conn, false, &mut packets);
                if has_changed {
                    self.serve(conn, &mut packets);
                }
            }
        }
        let inputs = std::mem::take(self.workers[worker].0.inputs());
        Yield { inputs, packets }
    }

    /// The task of a connection: takes what it can, sends what it can.
    fn serve(&mut self, conn: ConnId, packets: &mut Vec<(ConnId, WirePacket)>) {
        let may_take_less = self.one_in(8);
        self.serve_up_to(conn, may_take_less, packets);
    }

    fn serve_whole(&mut self, conn: ConnId, packets: &mut Vec<(ConnId, WirePacket)>) {
        self.serve_up_to(conn, false, packets);
    }

    fn serve_up_to(&mut self, conn: ConnId, may_take_less: bool, packets: &mut Vec<(ConnId, WirePacket)>) {
        loop {
            let (front, host) = &mut self.workers[conn.worker()];
            let Some(condition) = front.condition(conn, host) else { return };
            let before = front.inputs().len();
            let resumes = condition.takes_input && condition.has_input;
            if resumes {
                front.resume(conn, host.now().monotonic_ms, host);
            }
            let Some(socket) = self.sockets.get_mut(&conn) else { return };
            let is_open = front.condition(conn, host).is_some_and(|condition| condition.takes_input);
            let mut read = 0;
            if is_open && !socket.incoming.is_empty() {
                // Pieces are what a network makes of frames.
                let all = socket.incoming.len();
                let thrown = self.chance.as_mut().map(|chance| chance.mostly_low(1, 2 * all as u64) as usize);
                read = thrown.map_or(all, |thrown| thrown.min(all));
                let piece: Vec<u8> = socket.incoming.drain(..read).collect();
                front.receive(conn, &piece, host.now().monotonic_ms, host);
            }
            if (read > 0 || resumes)
                && let Some(condition) = front.condition(conn, host)
            {
                socket.turns.end(condition.unsent_bytes, host.lock_state().tree().zxid());
            }
            let has_submitted = front.inputs().len() > before;
            let sent = self.flush(conn, may_take_less, packets);
            let (front, host) = &self.workers[conn.worker()];
            let condition = front.condition(conn, host);
            let has_more = condition.is_some_and(|condition| condition.takes_input && condition.has_more);
            if read == 0 && !has_submitted && sent == 0 && !has_more {
                return;
            }
            if has_more && self.one_in(2) {
                self.put_off.insert(conn);
                return;
            }
        }
    }

    /// Sends what is unsent: all of it, or less if the client reads slowly. Returns the number of bytes sent.
    fn flush(&mut self, conn: ConnId, may_take_less: bool, packets: &mut Vec<(ConnId, WirePacket)>) -> usize {
        let (front, host) = &mut self.workers[conn.worker()];
        let Some(socket) = self.sockets.get_mut(&conn) else { return 0 };
        let less = self.chance.as_mut().filter(|_| may_take_less).map(|chance| chance.below(100) as usize);
        let mut room = less.unwrap_or(usize::MAX);
        let mut sent = 0;
        let sending = front.send(conn, |bytes| {
            let taken = bytes.len().min(room);
            if taken == 0 {
                return Err(());
            }
            socket.outgoing.extend_from_slice(&bytes[..taken]);
            (room, sent) = (room - taken, sent + taken);
            Ok(taken)
        });
        socket.turns.sent += sent;
        packets.extend(socket.take_packets().into_iter().map(|packet| (conn, packet)));
        let condition = front.condition(conn, host);
        if sending.is_ok() && condition.is_some_and(|condition| condition.is_closing) {
            packets.push((conn, WirePacket::Closed));
            self.leave(conn);
        }
        sent
    }

    fn leave(&mut self, conn: ConnId) {
        self.sockets.remove(&conn);
        self.put_off.remove(&conn);
        let (front, host) = &mut self.workers[conn.worker()];
        front.leave(conn, host);
    }
}

impl Socket {
    /// The packets that have come whole, as a client library reads them.
    fn take_packets(&mut self) -> Vec<WirePacket> {
        let mut packets = Vec::new();
        if !self.is_greeted {
            let Ok(Some((body, len))) = frame::split(&self.outgoing, i32::MAX) else { return packets };
            match ConnectResponse::decode(body) {
                Ok(response) => packets.extend(WirePacket::of_greeting(&response)),
                Err(_) => packets.push(WirePacket::Unreadable),
            }
            self.outgoing.drain(..len);
            self.turns.take(len);
            self.is_greeted = true;
        }
        if self.extensions.compression {
            while let Ok(Some(len)) = blocks::unpack(&self.outgoing, &mut self.unpacked) {
                self.outgoing.drain(..len);
            }
        } else {
            self.unpacked.append(&mut self.outgoing);
        }
        let mut taken = 0;
        while let Ok(Some((body, len))) = frame::split(&self.unpacked[taken..], i32::MAX) {
            // Compressed bytes are not those that the front counts.
            let counted = if self.extensions.compression { self.turns.sent - self.turns.taken } else { len };
            let zxid = self.turns.take(counted);
            packets.push(Socket::packet(body, self.extensions, zxid));
            taken += len;
        }
        self.unpacked.drain(..taken);
        packets
    }

    /// A frame with an xid as members know it.
    fn packet(body: &[u8], extensions: Extensions, zxid: Zxid) -> WirePacket {
        let narrow = if extensions.wide_xids { body.get(4..) } else { Some(body) };
        let Some(body) = narrow else { return WirePacket::Unreadable };
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| out.extend_from_slice(body));
        let header = ReplyHeader::decode(&mut Reader::new(body));
        if header.is_ok_and(|header| header.xid == Xid::AUTH) {
            // A server says no zxid here. The client has to know since when events go by what it has shown.
            bytes[8..16].copy_from_slice(&zxid.0.to_be_bytes());
        }
        WirePacket::Frames(bytes)
    }
}
