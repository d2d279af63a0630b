//! Clients and members, as the world brings them together.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use paddock_proto::SessionId;
use paddock_state::ConnId;

use super::{World, WorldEvent};
use crate::checks::Checked;
use crate::checks::sessions::Believer;
use crate::client::Deed;
use crate::machine::beside::Beside;
use crate::time::{SimDuration, Time};
use crate::wire::{Frame, WirePacket};

/// A client's connection. What is sent on it arrives in its order.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) client: usize,
    pub(super) member: u8,
    /// The life of the process that has accepted it.
    life: Option<u64>,
    /// On their way. Events only say that the next one arrives, so that none overtakes another.
    frames: VecDeque<Frame>,
    /// Each with the znode that was wrong in the state of its sender, if there was one.
    packets: VecDeque<(WirePacket, Option<Rc<str>>)>,
    last_frame: Time,
    last_packet: Time,
    /// Number of frames that the member has taken, and the time of the last one.
    taken: u64,
    heard: Time,
    /// Time at which a frame came last that should have come earlier.
    late: Option<Time>,
}

/// A frame that has come to a machine.
#[derive(Debug)]
pub(super) struct Arrival {
    conn: ConnId,
    client: usize,
    member: u8,
    frame: Frame,
    /// The address of a connection that begins with it.
    accepts: Option<SocketAddr>,
}

/// A frame that was taken, and what came of it.
#[derive(Debug)]
pub(super) struct Taken {
    conn: ConnId,
    client: usize,
    member: u8,
    text: String,
    session: SessionId,
    is_heard: bool,
    packets: Vec<(ConnId, WirePacket)>,
}

impl Arrival {
    /// A worker takes it.
    pub(super) fn enter(self, beside: &mut Beside<'_>) -> Taken {
        let Arrival { conn, client, member, frame, accepts } = self;
        if let Some(address) = accepts {
            beside.accept(conn, address);
        }
        let text = frame.to_string();
        let packets = beside.receive(conn, &frame);
        let (session, is_heard) = (beside.session(conn), beside.has_read_all(conn));
        Taken { conn, client, member, text, session, is_heard, packets }
    }
}

/// A machine that wakes needs this time to look at its connections.
const REACTION: SimDuration = SimDuration::millis(200);

impl Wire {
    /// True if the member should have heard the client by now. A client that has not got its session yet waits longer.
    fn is_late(&self, now: Time, timeout: SimDuration) -> bool {
        let allowed = if self.taken <= 1 { timeout.0 } else { timeout.0 / 3 + timeout.0 / 8 };
        (now - self.heard).0 > allowed
    }
}

impl World {
    pub(super) fn client_acts(&mut self, number: usize) -> Checked {
        let (now, machines, client_load) = (self.now, self.plan.settings.machines(), self.client_load);
        let only = self.clients[number].comes_back_to();
        if only.is_some_and(|only| self.members().all(|machine| machine.number != only)) {
            self.clients[number].forget_member();
        }
        let client = &mut self.clients[number];
        let deeds = client.act(now, machines, client_load, &mut self.checks);
        let next = client.next_act(now);
        self.carry_out(number, deeds);
        if let Some(at) = next {
            self.queue.plan(at, WorldEvent::Client { number });
        }
        Ok(())
    }

    fn carry_out(&mut self, number: usize, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Connect { member, greeting } => self.connect(number, member, greeting),
                Deed::Send(frame) => {
                    let conn = self.clients[number].conn().expect("who has no connection sends nothing");
                    self.send_frame(conn, frame);
                }
                Deed::Leave { conn, says_so } => {
                    self.trace.note(self.now, format_args!("client {number} leaves {conn:?}"));
                    if says_so {
                        self.send_frame(conn, Frame::Hangup);
                    }
                }
            }
        }
    }

    fn connect(&mut self, client: usize, member: u8, greeting: Frame) {
        self.conns += 1;
        let worker = self.chance.below(self.plan.settings.workers as u64) as usize;
        let conn = ConnId::new(worker, self.conns);
        self.trace.note(self.now, format_args!("client {client} connects to {member} as {conn:?}"));
        let (frames, packets, now) = (VecDeque::new(), VecDeque::new(), self.now);
        let wire = Wire {
            client,
            member,
            life: None,
            frames,
            packets,
            last_frame: now,
            last_packet: now,
            taken: 0,
            heard: now,
            late: None,
        };
        self.wires.insert(conn, wire);
        self.clients[client].connected_by(conn);
        self.send_frame(conn, greeting);
    }

    fn send_frame(&mut self, conn: ConnId, frame: Frame) {
        let at = self.now + self.network.delay();
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        wire.last_frame = wire.last_frame.max(at);
        wire.frames.push_back(frame);
        self.queue.plan(wire.last_frame, WorldEvent::Frame { conn });
    }

    pub(super) fn send_packets(&mut self, packets: Vec<(ConnId, WirePacket)>) {
        for (conn, packet) in packets {
            let at = self.now + self.network.delay();
            let Some(wire) = self.wires.get_mut(&conn) else { continue };
            wire.last_packet = wire.last_packet.max(at);
            let wrong = self.machines[usize::from(wire.member) - 1].may_show_wrong();
            wire.packets.push_back((packet, wrong));
            self.queue.plan(wire.last_packet, WorldEvent::Packet { conn });
        }
    }

    /// The next frame arrives at the member.
    pub(super) fn frame(&mut self, conn: ConnId) -> Checked {
        let now = self.now;
        let Some(wire) = self.wires.get(&conn) else { return Ok(()) };
        let (member, life) = (wire.member, wire.life);
        if let Some(until) = self.network.clients_cut(now, member) {
            self.queue.plan(until, WorldEvent::Frame { conn });
            return Ok(());
        }
        let machine = self.machine(member);
        if machine.is_paused(now) {
            self.freeze(member, WorldEvent::Frame { conn });
            return Ok(());
        }
        let Some(frame) = self.next_frame(conn) else { return Ok(()) };
        let machine = self.machine(member);
        let local = machine.now(now);
        // Clients of another ensemble are not simulated.
        let is_another = life.is_some_and(|life| life != machine.life) || machine.blame.is_foreign;
        let process = machine.process.as_mut().filter(|_| !is_another);
        let Some(taken) = process.map(|process| frame.enter(&mut process.beside(local))) else {
            self.send_packets(vec![(conn, WirePacket::Closed)]);
            return Ok(());
        };
        if let Some(session) = self.note_taken(taken) {
            self.checks.sessions.heard(member, session, local.monotonic_ms);
        }
        self.wake(member);
        Ok(())
    }

    /// Connections to a member on which a frame may come now.
    pub(super) fn conns_with_frames(&self, member: u8) -> Vec<ConnId> {
        let machine = &self.machines[usize::from(member) - 1];
        if machine.blame.is_foreign || self.network.clients_cut(self.now, member).is_some() {
            return Vec::new();
        }
        let comes = |wire: &Wire| {
            let is_same = wire.life.is_none_or(|life| life == machine.life);
            wire.member == member && is_same && !wire.frames.is_empty()
        };
        self.wires.iter().filter(|(_, wire)| comes(wire)).map(|(conn, _)| *conn).collect()
    }

    /// Takes the next frame of a connection from the network.
    pub(super) fn next_frame(&mut self, conn: ConnId) -> Option<Arrival> {
        let wire = self.wires.get_mut(&conn)?;
        let frame = wire.frames.pop_front()?;
        let (client, member) = (wire.client, wire.member);
        let is_first = wire.life.is_none();
        let address = SocketAddr::new(self.clients[client].address(), 1);
        Some(Arrival { conn, client, member, frame, accepts: is_first.then_some(address) })
    }

    /// A process has taken a frame. Returns the session of its connection, if it was heard by that.
    pub(super) fn note_taken(&mut self, taken: Taken) -> Option<SessionId> {
        let Taken { conn, client, member, text, session, is_heard, packets } = taken;
        let now = self.now;
        self.trace.note(now, format_args!("{member} takes of client {client}, session {session}: {text}"));
        let timeout = self.clients[client].timeout();
        let life = self.machine(member).life;
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.life = Some(life);
            if is_heard {
                wire.late = wire.is_late(now, timeout).then_some(now).or(wire.late);
                (wire.heard, wire.taken) = (now, wire.taken + 1);
            }
        }
        self.send_packets(packets);
        is_heard.then_some(session)
    }

    /// The next packet arrives at the client.
    pub(super) fn packet(&mut self, conn: ConnId) -> Checked {
        let now = self.now;
        let Some(wire) = self.wires.get(&conn) else { return Ok(()) };
        let (client, member) = (wire.client, wire.member);
        if let Some(until) = self.network.clients_cut(now, member) {
            self.queue.plan(until, WorldEvent::Packet { conn });
            return Ok(());
        }
        let Some((packet, wrong)) = self.wires.get_mut(&conn).and_then(|wire| wire.packets.pop_front())
        else {
            return Ok(());
        };
        if matches!(packet, WirePacket::Closed) {
            self.wires.remove(&conn);
        }
        if self.clients[client].conn() != Some(conn) {
            return Ok(());
        }
        self.trace.note(now, format_args!("client {client} hears of {member}: {packet}"));
        self.checks.wrong = wrong;
        let deeds = self.clients[client].receive(now, packet, &mut self.checks)?;
        self.carry_out(client, deeds);
        Ok(())
    }

    /// The clients that take their sessions for alive.
    pub(super) fn believers(&self) -> Vec<Believer> {
        let now = self.now;
        let believer = |(client, this): (usize, &crate::client::SimClient)| {
            let (session, conn, timeout) = this.belief(now)?;
            let wire = self.wires.get(&conn)?;
            let machine = &self.machines[usize::from(wire.member) - 1];
            let was_late = wire.late.is_some_and(|late| now - late <= timeout + SimDuration::seconds(1));
            Some(Believer {
                client,
                session,
                timeout,
                member: wire.member,
                is_late: was_late || wire.is_late(now, timeout),
                is_far: self.network.delay_max().0 > timeout.0 / 8,
                cannot_be_told: wire.life != Some(machine.life)
                    || machine.paused_until + REACTION > now
                    || self.network.clients_cut(now, wire.member).is_some(),
            })
        };
        self.clients.iter().enumerate().filter_map(believer).collect()
    }

    /// The connection of a client breaks, and both ends learn of it.
    pub(super) fn break_connection(&mut self, number: usize) {
        if let Some(conn) = self.clients[number].conn() {
            self.send_frame(conn, Frame::Hangup);
            self.send_packets(vec![(conn, WirePacket::Closed)]);
        }
    }
}
