//! Clients and members, as the world brings them together.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use paddock_state::ConnId;

use super::{Event, World};
use crate::checks::Checked;
use crate::checks::sessions::Believer;
use crate::client::Deed;
use crate::time::{SimDuration, Time};
use crate::wire::{Frame, Packet};

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
    packets: VecDeque<(Packet, Option<Rc<str>>)>,
    last_frame: Time,
    last_packet: Time,
    /// Number of frames that the member has taken, and the time of the last one.
    taken: u64,
    heard: Time,
    /// Time at which a frame came last that should have come earlier.
    late: Option<Time>,
}

/// A machine that wakes needs so long to look at its connections.
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
        let (now, machines, mood) = (self.now, self.plan.settings.machines(), self.mood);
        let client = &mut self.clients[number];
        let deeds = client.act(now, machines, mood, &mut self.checks);
        let next = client.next_act(now);
        self.carry_out(number, deeds);
        if let Some(at) = next {
            self.queue.plan(at, Event::Client { number });
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
        self.queue.plan(wire.last_frame, Event::Frame { conn });
    }

    pub(super) fn send_packets(&mut self, packets: Vec<(ConnId, Packet)>) {
        for (conn, packet) in packets {
            let at = self.now + self.network.delay();
            let Some(wire) = self.wires.get_mut(&conn) else { continue };
            wire.last_packet = wire.last_packet.max(at);
            let wrong = self.machines[usize::from(wire.member) - 1].may_show_wrong();
            wire.packets.push_back((packet, wrong));
            self.queue.plan(wire.last_packet, Event::Packet { conn });
        }
    }

    /// The next frame arrives at the member.
    pub(super) fn frame(&mut self, conn: ConnId) -> Checked {
        let now = self.now;
        let Some(wire) = self.wires.get(&conn) else { return Ok(()) };
        let (member, client, life) = (wire.member, wire.client, wire.life);
        let cut = self.network.clients_cut(now, member);
        let address = self.clients[client].address();
        let machine = self.machine(member);
        if let Some(until) = cut {
            self.queue.plan(until, Event::Frame { conn });
            return Ok(());
        }
        if machine.is_paused(now) {
            self.freeze(member, Event::Frame { conn });
            return Ok(());
        }
        let local = machine.now(now);
        let this_life = machine.life;
        let Some(frame) = self.wires.get_mut(&conn).and_then(|wire| wire.frames.pop_front()) else {
            return Ok(());
        };
        let machine = self.machine(member);
        // Clients of another ensemble are not simulated.
        let is_another = life.is_some_and(|life| life != this_life) || machine.is_foreign;
        let Some(process) = machine.process.as_mut().filter(|_| !is_another) else {
            self.send_packets(vec![(conn, Packet::Closed)]);
            return Ok(());
        };
        if life.is_none() {
            process.accept(conn, SocketAddr::new(address, 1));
        }
        let text = frame.to_string();
        let packets = process.receive(conn, &frame, local);
        let (session, is_heard) = (process.session(conn), process.has_read_all(conn));
        self.trace.note(now, format_args!("{member} takes of client {client}, session {session}: {text}"));
        let timeout = self.clients[client].timeout();
        if let Some(wire) = self.wires.get_mut(&conn) {
            wire.life = Some(this_life);
            if is_heard {
                wire.late = wire.is_late(now, timeout).then_some(now).or(wire.late);
                (wire.heard, wire.taken) = (now, wire.taken + 1);
            }
        }
        if is_heard {
            self.checks.sessions.heard(member, session, local.monotonic_ms);
        }
        self.send_packets(packets);
        self.wake(member);
        Ok(())
    }

    /// The next packet arrives at the client.
    pub(super) fn packet(&mut self, conn: ConnId) -> Checked {
        let now = self.now;
        let Some(wire) = self.wires.get(&conn) else { return Ok(()) };
        let (client, member) = (wire.client, wire.member);
        if let Some(until) = self.network.clients_cut(now, member) {
            self.queue.plan(until, Event::Packet { conn });
            return Ok(());
        }
        let Some((packet, wrong)) = self.wires.get_mut(&conn).and_then(|wire| wire.packets.pop_front())
        else {
            return Ok(());
        };
        if matches!(packet, Packet::Closed) {
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
        let believer = |(client, this): (usize, &crate::client::Client)| {
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
            self.send_packets(vec![(conn, Packet::Closed)]);
        }
    }
}
