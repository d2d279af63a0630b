//! Clients of a large ensemble. Their own work takes none of the members' time.

use std::collections::{BTreeMap, VecDeque};

use paddock_proto::{CreateMode, Extensions, OpCode, Password, SessionId, Xid, Zxid, encode};
use paddock_state::ConnId;
use paddock_tree::slot_of;

use super::ensemble::{ROOT, Replies, ScaledEnsemble};
use super::shape::{LoadKind, Shape};
use crate::time::Time;
use crate::wire::{Frame, WirePacket};

/// Bytes of data of each znode that is created.
const DATA: [u8; 100] = [b'x'; 100];
const TIMEOUT_MS: i32 = 40_000;

/// Answers since it is counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests, or sessions where these are counted.
    pub(super) answered: u64,
    pub(super) latencies_us: Vec<u32>,
}

#[derive(Debug)]
struct LoadClient {
    member: u8,
    group: usize,
    conn: ConnId,
    sent: u64,
    /// True if it has asked for the end of its session.
    is_closing: bool,
    /// Times at which what is not answered was sent.
    under_way: VecDeque<Time>,
}

#[derive(Debug)]
pub(super) struct ScaleLoad {
    kind: LoadKind,
    in_flight: u32,
    clients: Vec<LoadClient>,
    by_conn: BTreeMap<ConnId, usize>,
    /// For each group, the znode below which clients write there.
    parents: Vec<String>,
    conns: u64,
    is_counted: bool,
    tally: Tally,
}

impl ScaleLoad {
    pub(super) fn new(shape: &Shape) -> ScaleLoad {
        let groups = shape.loaded_groups() as usize;
        let client = |number: u32| LoadClient {
            // Each group has clients on all members, and each member has clients of all groups.
            member: (number as usize / groups + number as usize * 7) as u8 % shape.members + 1,
            group: number as usize % groups,
            conn: ConnId::new(0, 0),
            sent: 0,
            is_closing: false,
            under_way: VecDeque::new(),
        };
        ScaleLoad {
            kind: shape.load,
            in_flight: if shape.load == LoadKind::Sessions { 1 } else { shape.in_flight },
            clients: (0..shape.sessions).map(client).collect(),
            by_conn: BTreeMap::new(),
            parents: Vec::new(),
            conns: 0,
            is_counted: false,
            tally: Tally::default(),
        }
    }

    /// The first client opens its session, and creates the znode whose children are spread then.
    pub(super) fn create_root(&mut self, ensemble: &mut ScaledEnsemble) {
        self.open(ensemble, 0);
        self.hear_once(ensemble);
        self.create_parent(ensemble, ROOT);
    }

    fn create_parent(&self, ensemble: &mut ScaledEnsemble, path: &str) {
        let LoadClient { member, conn, .. } = self.clients[0];
        ensemble.request(member, conn, create(path));
        self.hear_once(ensemble);
    }

    /// Creates the znodes below which clients write, and opens the sessions that stay open. That of the first client may have ended since it has
    /// created the root.
    pub(super) fn prepare(&mut self, ensemble: &mut ScaledEnsemble) {
        let groups = self.clients.iter().map(|client| client.group + 1).max().unwrap_or(1) as u32;
        let name_in = |(first, last): (u16, u16)| {
            let mut names = (0..).map(|number| format!("p{number}"));
            names.find(|name| slot_of(name).is_some_and(|slot| (first..=last).contains(&slot)))
        };
        for group in 1..=groups {
            let name = name_in(ensemble.slots(group)).expect("there are endless names");
            self.parents.push(format!("{ROOT}/{name}"));
        }
        self.open(ensemble, 0);
        self.hear_once(ensemble);
        for path in self.parents.clone() {
            self.create_parent(ensemble, &path);
        }
        if self.kind != LoadKind::Sessions {
            for number in 1..self.clients.len() {
                self.open(ensemble, number);
                self.hear_once(ensemble);
            }
        }
    }

    /// The client that has asked for something is answered.
    fn hear_once(&self, ensemble: &mut ScaledEnsemble) {
        let replies = loop {
            let replies = ensemble.next_replies();
            if self.by_conn.contains_key(&replies.conn) {
                break replies;
            }
        };
        replies.packets.iter().for_each(check);
    }

    pub(super) fn begin(&mut self, ensemble: &mut ScaledEnsemble) {
        for number in 0..self.clients.len() {
            if self.kind == LoadKind::Sessions {
                self.open(ensemble, number);
            } else {
                self.send(ensemble, number, self.in_flight);
            }
        }
    }

    pub(super) fn count_from_now(&mut self) {
        self.is_counted = true;
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    fn open(&mut self, ensemble: &mut ScaledEnsemble, number: usize) {
        self.conns += 1;
        let conn = ConnId::new(0, self.conns);
        let client = &mut self.clients[number];
        self.by_conn.remove(&client.conn);
        self.by_conn.insert(conn, number);
        (client.conn, client.is_closing) = (conn, false);
        if self.kind == LoadKind::Sessions {
            client.under_way.push_back(ensemble.now());
        }
        let greeting = Frame::Greet {
            session: SessionId::NONE,
            password: Password::ZERO,
            last_zxid: Zxid(0),
            timeout_ms: TIMEOUT_MS,
            may_only_read: false,
            extensions: Extensions::default(),
        };
        ensemble.accept(client.member, conn);
        ensemble.request(client.member, conn, greeting.encode(Extensions::default()));
    }

    /// A client sends requests, all at once.
    fn send(&mut self, ensemble: &mut ScaledEnsemble, number: usize, count: u32) {
        let (now, groups) = (ensemble.now(), self.parents.len());
        let client = &mut self.clients[number];
        let mut bytes = Vec::new();
        for _ in 0..count {
            client.sent += 1;
            let moves = if self.kind == LoadKind::Everywhere { client.sent as usize } else { 0 };
            let parent = &self.parents[(client.group + moves) % groups];
            bytes.extend(create(&format!("{parent}/c{number}-{}", client.sent)));
            if self.kind != LoadKind::Sessions {
                client.under_way.push_back(now);
            }
        }
        ensemble.request(client.member, client.conn, bytes);
    }

    pub(super) fn hear(&mut self, ensemble: &mut ScaledEnsemble, replies: Replies) {
        let Some(number) = self.by_conn.get(&replies.conn).copied() else { return };
        let mut answered = 0;
        for packet in &replies.packets {
            check(packet);
            match packet {
                WirePacket::Connected { .. } => self.send(ensemble, number, 1),
                WirePacket::Frames(_)
                    if self.kind == LoadKind::Sessions && !self.clients[number].is_closing =>
                {
                    let LoadClient { member, conn, is_closing, .. } = &mut self.clients[number];
                    *is_closing = true;
                    let frame = Frame::Request { xid: Xid(2), op: OpCode::CloseSession, body: Vec::new() };
                    ensemble.request(*member, *conn, frame.encode(Extensions::default()));
                }
                WirePacket::Frames(_) => answered += 1,
                WirePacket::Closed => {}
                WirePacket::Expired | WirePacket::Unreadable => unreachable!("these are refused above"),
            }
        }
        self.note_answered(ensemble.now(), number, answered);
        match self.kind {
            LoadKind::Sessions if answered > 0 => self.open(ensemble, number),
            LoadKind::Sessions => {}
            LoadKind::Create | LoadKind::Everywhere => self.send(ensemble, number, answered),
        }
    }

    fn note_answered(&mut self, now: Time, number: usize, answered: u32) {
        for _ in 0..answered {
            let sent = self.clients[number].under_way.pop_front().expect("what is answered was sent");
            if self.is_counted {
                self.tally.answered += 1;
                self.tally.latencies_us.push((now - sent).0 as u32);
            }
        }
    }
}

fn create(path: &str) -> Vec<u8> {
    let (mode, mut body) = (CreateMode::Persistent, Vec::new());
    encode::create_open(&mut body, path, Some(&DATA), mode);
    Frame::Request { xid: Xid(1), op: encode::create_op(mode), body }.encode(Extensions::default())
}

/// Nothing is refused here, whatever is asked for.
fn check(packet: &WirePacket) {
    let is_good = match packet {
        // Length, xid, zxid, and the error.
        WirePacket::Frames(bytes) => bytes.get(16..20) == Some(&[0; 4]),
        WirePacket::Connected { .. } | WirePacket::Closed => true,
        WirePacket::Expired | WirePacket::Unreadable => false,
    };
    assert!(is_good, "a client is told: {packet}");
}
