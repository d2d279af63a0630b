//! Performs a sequence on one server and writes down what comes back.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{AclList, OpCode};

use super::answer::Names;
use super::connection::Incoming;
use super::identities::Entrance;
use super::line::{AnswerLine, REFUSED, request};
use super::order::by_order;
use super::sequence::{Connect, OracleCall, OracleStep, Sequence, Slot, WantedSession};
use super::tree;

/// Answers to each step, line by line; behind them the tree in the end.
pub type Transcript = Vec<Vec<String>>;

/// A server that sequences are performed on, one at a time.
#[derive(Debug)]
pub struct OracleStage {
    entrance: Entrance,
    /// A session of our own that sets the stage.
    control: AnswerLine,
    zxids: Zxids,
}

/// The part of zxids that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zxids {
    /// Their distance from where the sequence began, or themselves on servers that no other sequence has used.
    Exactly,
    /// Their order.
    ByOrder,
}

impl OracleStage {
    pub fn new(entrance: Entrance, zxids: Zxids) -> OracleStage {
        let mut names = Names::default();
        let (control, answer) = AnswerLine::connect(&entrance, &Connect::new_session(), &mut names, "");
        assert!(names.sessions.len() == 1, "{} refuses a session: {answer:?}", entrance.address);
        OracleStage { entrance, control: control.expect("a session has a connection"), zxids }
    }

    /// Performs `sequence` below `root`. All its sessions are closed in the end.
    pub fn play(&mut self, sequence: &Sequence, root: &str) -> Transcript {
        let mut names = Names::default();
        if !sequence.whole_tree {
            names.base = self.set_up(root);
        }
        if self.zxids == Zxids::ByOrder {
            names.steps = Some(vec![names.base]);
        }
        let mut player = Player { entrance: self.entrance.clone(), root, names, lines: Vec::new() };
        let mut transcript: Transcript = sequence.steps.iter().map(|step| player.perform(step)).collect();
        let top = if sequence.whole_tree { "/" } else { root };
        transcript.push(tree::describe(&mut self.control.connection, top, &player.names));
        player.close_all();
        match self.zxids {
            Zxids::Exactly => transcript,
            Zxids::ByOrder => by_order(transcript),
        }
    }

    /// Makes the root; returns the zxid of that.
    fn set_up(&mut self, root: &str) -> i64 {
        let mut body = Vec::new();
        body.put_string(root);
        body.put_buffer(Some(b""));
        body.extend_from_slice(AclList::OPEN.wire());
        body.put_i32(0);
        self.control.connection.write(&request(1, OpCode::Create.code(), &body));
        let Incoming::Frame(reply) = self.control.connection.read() else {
            panic!("{} is gone", self.entrance.address)
        };
        let mut reader = Reader::new(&reply);
        let header = (reader.i32(), reader.i64(), reader.i32());
        let (Ok(1), Ok(zxid), Ok(0)) = header else {
            panic!("{} does not make {root}: {header:?}", self.entrance.address)
        };
        zxid
    }
}

struct Player<'a> {
    entrance: Entrance,
    root: &'a str,
    names: Names,
    lines: Vec<Option<AnswerLine>>,
}

impl Player<'_> {
    fn perform(&mut self, step: &OracleStep) -> Vec<String> {
        let mut lines = Vec::new();
        let (slot, others_notice) = match step {
            OracleStep::Connect { slot, connect } => {
                self.end(*slot);
                let (line, answer) = AnswerLine::connect(&self.entrance, connect, &mut self.names, self.root);
                lines.push(format!("connection {slot}: {answer}"));
                self.put(*slot, line);
                (*slot, true)
            }
            OracleStep::Calls { slot, calls } => {
                let Player { root, names, lines, .. } = self;
                let line = lines.get_mut(*slot).and_then(Option::as_mut);
                let Some(line) = line else { return vec!["no connection".into()] };
                let mut bytes = Vec::new();
                calls.iter().for_each(|call| line.put_call(call, root, names, &mut bytes));
                line.connection.write(&bytes);
                (*slot, calls.iter().any(OracleCall::may_change_something))
            }
            OracleStep::Frame { slot, bytes } => {
                let Some(line) = self.line(*slot) else { return vec!["no connection".into()] };
                line.connection.write(bytes);
                (*slot, true)
            }
            OracleStep::Cut { slot } => {
                self.end(*slot);
                (*slot, true)
            }
        };
        if !step.ends_connection() && !lines.iter().any(|line| line.ends_with(REFUSED)) {
            self.send_barrier(slot);
        }
        self.collect(slot, &mut lines);
        if others_notice {
            for other in (0..self.lines.len()).filter(|&other| other != slot) {
                if !self.has_taken_over(slot, other) {
                    self.send_barrier(other);
                }
            }
            (0..self.lines.len())
                .filter(|&other| other != slot)
                .for_each(|other| self.collect(other, &mut lines));
        }
        let reached = self.lines.iter().flatten().map(|line| line.reached).max();
        if let Some(steps) = &mut self.names.steps {
            let before = steps.last().copied().unwrap_or(0);
            steps.push(reached.unwrap_or(0).max(before));
        }
        if closes_a_session(step) {
            sort_events_of_one_zxid(&mut lines);
        }
        lines
    }

    /// True if nothing but the end of `other` is to be waited for.
    fn has_taken_over(&self, slot: Slot, other: Slot) -> bool {
        let line = |slot: Slot| self.lines.get(slot).and_then(Option::as_ref);
        line(slot).zip(line(other)).is_some_and(|(line, other)| line.has_taken_over(other))
    }

    fn send_barrier(&mut self, slot: Slot) {
        if let Some(line) = self.line(slot) {
            line.send_barrier();
        }
    }

    /// Writes down what comes on `slot` before the barrier.
    fn collect(&mut self, slot: Slot, lines: &mut Vec<String>) {
        let Some(line) = self.lines.get_mut(slot).and_then(Option::as_mut) else { return };
        let open = line.collect(&self.names, &format!("connection {slot}: "), lines);
        if !open {
            self.lines[slot] = None;
        }
    }

    fn line(&mut self, slot: Slot) -> Option<&mut AnswerLine> {
        self.lines.get_mut(slot).and_then(Option::as_mut)
    }

    fn put(&mut self, slot: Slot, line: Option<AnswerLine>) {
        if self.lines.len() <= slot {
            self.lines.resize_with(slot + 1, || None);
        }
        self.lines[slot] = line;
    }

    /// Ends the connection of `slot`, if there is one.
    fn end(&mut self, slot: Slot) {
        if let Some(line) = self.lines.get_mut(slot).and_then(Option::take) {
            line.connection.end();
        }
    }

    /// No session may outlive its sequence: its end would take a zxid in the middle of another one.
    fn close_all(&mut self) {
        (0..self.lines.len()).for_each(|slot| self.end(slot));
        for number in 0..self.names.sessions.len() {
            let identity = self.names.identities[&self.names.sessions[number]];
            let session = WantedSession::Opened(number);
            let connect = Connect { session, identity, ..Connect::new_session() };
            let (line, _) = AnswerLine::connect(&self.entrance, &connect, &mut self.names, "");
            if let Some(mut line) = line {
                line.connection.write(&request(1, OpCode::CloseSession.code(), &[]));
                while let Incoming::Frame(_) = line.connection.read() {}
            }
        }
    }
}

fn closes_a_session(step: &OracleStep) -> bool {
    let OracleStep::Calls { calls, .. } = step else { return false };
    calls.iter().any(|call| call.op == OpCode::CloseSession.code())
}

/// ZooKeeper deletes the ephemerals of a session in the order of a hash table.
fn sort_events_of_one_zxid(lines: &mut [String]) {
    let is_event = |line: &String| line.contains(": event ");
    let key = |line: &String| line.split(" zxid=").nth(1).map(str::to_string);
    lines.chunk_by_mut(|a, b| is_event(a) && is_event(b) && key(a) == key(b)).for_each(<[String]>::sort);
}
