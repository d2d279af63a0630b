//! Makes a sequence from a seed.
//!
//! Chance decides what happens, weighted so that most requests mean something: connections are opened again after what
//! closes them, paths are few, and arguments are mostly good.

use paddock_chance::Chance;
use paddock_proto::OpCode;

use super::arguments::{Multis, Paths};
use super::body::ROOT;
use super::identities::OracleIdentity;
use super::malformed;
use super::requests;
use super::sequence::{Connect, OracleCall, OracleStep, SeenZxid, Sequence, Shown, Slot, WantedSession};
use super::{acls, multis, quotas};

/// A sequence below `ROOT` on servers that it shares with others.
pub fn below_a_root(seed: u64, multis: Multis) -> Sequence {
    let steps = Generator::new(seed, Paths::below(ROOT, multis)).steps(36);
    Sequence { whole_tree: false, steps }
}

/// A longer one for servers that no other sequence has touched, with `/` and `/zookeeper` among its paths.
pub fn on_the_whole_tree(seed: u64, multis: Multis) -> Sequence {
    let steps = Generator::new(seed, Paths::everywhere(multis)).steps(250);
    Sequence { whole_tree: true, steps }
}

/// A sequence below `ROOT` that asks one thing at a time.
pub fn one_by_one(seed: u64, multis: Multis) -> Sequence {
    let mut generator = Generator::new(seed, Paths::below(ROOT, multis));
    generator.asks_one_by_one = true;
    Sequence { whole_tree: false, steps: generator.steps(36) }
}

/// A sequence below `ROOT` on servers that enforce limits of quotas.
///
/// ZooKeeper compares a write with the statistics of what is applied, and not with what is under way: nothing is asked here
/// behind a write that it may not have applied yet, and no multi writes twice.
pub fn with_quotas(seed: u64, multis: Multis) -> Sequence {
    let mut generator = Generator::new(seed, Paths::below(ROOT, multis));
    generator.enforces_quotas = true;
    Sequence { whole_tree: false, steps: generator.steps(36) }
}

/// A sequence below `ROOT` whose connections prove who they are, for ACLs that name them.
pub fn with_identities(seed: u64, multis: Multis) -> Sequence {
    let paths = Paths::below(ROOT, multis).with_identities();
    Sequence { whole_tree: false, steps: Generator::new(seed, paths).steps(36) }
}

struct Generator {
    chance: Chance,
    /// The servers enforce limits of quotas.
    enforces_quotas: bool,
    /// No two requests are under way at the same time.
    asks_one_by_one: bool,
    paths: Paths,
    steps: Vec<OracleStep>,
    /// State of each connection as the generator knows it; the servers may know better.
    slots: Vec<SlotState>,
    sessions_opened: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct SlotState {
    open: bool,
    session: Option<usize>,
    /// Identity of the session's client. Paddock gives the session to no other, which is one of the wanted differences.
    identity: OracleIdentity,
}

#[derive(Clone, Copy)]
enum StepKind {
    Single,
    Batch,
    Malformed,
    ShortFrame,
    FanOut,
    Quota,
    Reconnect,
    MoveSession,
    StrangeConnect,
    Cut,
}

impl Generator {
    fn new(seed: u64, mut paths: Paths) -> Generator {
        let mut chance = Chance::new(seed);
        paths.choose_favourites(&mut chance);
        let slots = vec![SlotState::default(); 2 + chance.index(3)];
        Generator {
            chance,
            enforces_quotas: false,
            asks_one_by_one: false,
            paths,
            steps: Vec::new(),
            slots,
            sessions_opened: 0,
        }
    }

    fn steps(mut self, count: usize) -> Vec<OracleStep> {
        (0..self.slots.len()).for_each(|slot| self.open(slot));
        self.plant();
        if self.enforces_quotas {
            let slot = self.chance.index(self.slots.len());
            for call in quotas::set_up(&mut self.chance, &self.paths) {
                self.steps.push(OracleStep::Calls { slot, calls: vec![call] });
            }
        }
        while self.steps.len() < count {
            let slot = self.chance.index(self.slots.len());
            if self.slots[slot].open { self.something(slot) } else { self.open_again(slot) }
        }
        self.steps
    }

    /// Most of the znodes, so that there is something to work with.
    fn plant(&mut self) {
        for path in self.paths.to_begin_with().to_vec() {
            if self.chance.percent(75) {
                let slot = self.chance.index(self.slots.len());
                let call = requests::plant(&mut self.chance, &self.paths, &path);
                self.steps.push(OracleStep::Calls { slot, calls: vec![call] });
            }
        }
    }

    fn something(&mut self, slot: Slot) {
        let many = if self.enforces_quotas || self.asks_one_by_one { 0 } else { 1 };
        let quotas = if self.enforces_quotas { 20 } else { 4 };
        // What ZooKeeper's other implementation of connections, with TLS, makes of broken frames is a matter of its own.
        let broken = if self.paths.names_identities { 0 } else { 1 };
        let kind = self.chance.weighted(&[
            (100, StepKind::Single),
            (10 * many, StepKind::Batch),
            (8 * broken, StepKind::Malformed),
            (broken, StepKind::ShortFrame),
            (2 * many, StepKind::FanOut),
            (quotas, StepKind::Quota),
            (2, StepKind::Reconnect),
            (2, StepKind::MoveSession),
            (2 * broken, StepKind::StrangeConnect),
            (2, StepKind::Cut),
        ]);
        match kind {
            StepKind::Single => {
                let mut call = requests::any(&mut self.chance, &self.paths);
                if self.enforces_quotas && call.op == OpCode::Multi.code() {
                    call = multis::of_one(&mut self.chance, &self.paths);
                }
                if call.op != OpCode::Ping.code() && self.chance.percent(1) {
                    // What auth packets carry; it must not make one of other requests.
                    call.xid = Some(-4);
                }
                self.call(slot, call);
            }
            StepKind::Batch => self.batch(slot),
            StepKind::Malformed => {
                let mut call = requests::any(&mut self.chance, &self.paths);
                if self.enforces_quotas && call.op == OpCode::Multi.code() {
                    call = multis::of_one(&mut self.chance, &self.paths);
                }
                let call = malformed::spoil(&mut self.chance, call);
                self.call(slot, call);
            }
            StepKind::ShortFrame => {
                let bytes = malformed::frame_without_header(&mut self.chance);
                self.slots[slot].open = false;
                self.steps.push(OracleStep::Frame { slot, bytes });
            }
            StepKind::FanOut => {
                let call = multis::fan_out(&mut self.chance, &self.paths);
                self.call(slot, call);
            }
            StepKind::Quota => {
                let call = quotas::quota(&mut self.chance, &self.paths);
                self.call(slot, call);
            }
            StepKind::Reconnect => self.resume(slot, slot),
            StepKind::MoveSession => {
                let other = self.chance.index(self.slots.len());
                self.resume(slot, other);
            }
            StepKind::StrangeConnect => self.strange_connect(slot),
            StepKind::Cut => {
                self.slots[slot].open = false;
                self.steps.push(OracleStep::Cut { slot });
            }
        }
    }

    fn call(&mut self, slot: Slot, call: OracleCall) {
        self.slots[slot].open = !call.ends_connection;
        if call.op == OpCode::CloseSession.code() {
            self.slots[slot].session = None;
        }
        self.steps.push(OracleStep::Calls { slot, calls: vec![call] });
    }

    /// Many requests in one write. Those are left out whose effect on the ones behind them depends, in ZooKeeper, on how
    /// far its threads have come.
    fn batch(&mut self, slot: Slot) {
        let count = 2 + self.chance.index(24);
        let mut calls = Vec::new();
        if self.chance.percent(20) {
            calls.push(acls::good_auth(&mut self.chance));
        }
        while calls.len() < count {
            let call = requests::any(&mut self.chance, &self.paths);
            if !requests::depends_on_timing(&call) {
                calls.push(call);
            }
        }
        if self.chance.percent(5) {
            calls.push(requests::close_session());
            self.slots[slot] = SlotState::default();
        }
        self.steps.push(OracleStep::Calls { slot, calls });
    }

    fn open(&mut self, slot: Slot) {
        let mut connect = Connect::new_session();
        connect.timeout_ms = *self.chance.pick(&[30_000, 30_000, 30_000, 0, -1, 10_000, i32::MAX, 4001]);
        connect.read_only = *self.chance.pick(&[Some(false), Some(false), Some(true), None]);
        connect.protocol_version = *self.chance.pick(&[0, 0, 0, 0, 1, -1]);
        connect.password = *self.chance.pick(&[Shown::Right, Shown::Right, Shown::Wrong, Shown::Null]);
        connect.identity = self.identity();
        if self.chance.percent(30) {
            connect.then.push(acls::good_auth(&mut self.chance));
        }
        let identity = connect.identity;
        self.slots[slot] = SlotState { open: true, session: Some(self.sessions_opened), identity };
        self.sessions_opened += 1;
        self.steps.push(OracleStep::Connect { slot, connect });
    }

    fn identity(&mut self) -> OracleIdentity {
        if self.paths.names_identities {
            *self.chance.pick(&OracleIdentity::ALL)
        } else {
            OracleIdentity::Nobody
        }
    }

    fn open_again(&mut self, slot: Slot) {
        match self.slots[slot].session {
            Some(_) if self.chance.percent(70) => self.resume(slot, slot),
            _ => self.open(slot),
        }
    }

    /// Goes on in `slot` with the session of `from`, as a client does that lost its connection.
    fn resume(&mut self, slot: Slot, from: Slot) {
        let SlotState { session, identity, .. } = self.slots[from];
        let Some(session) = session else { return self.open(slot) };
        let mut connect = Connect { session: WantedSession::Opened(session), ..Connect::new_session() };
        connect.last_zxid = *self.chance.pick(&[SeenZxid::Nothing, SeenZxid::Newest]);
        connect.identity = identity;
        if self.chance.percent(30) {
            connect.then.push(acls::good_auth(&mut self.chance));
        }
        if self.chance.percent(50) {
            connect.then.push(requests::set_watches(&mut self.chance, &self.paths));
        }
        // The session's old connection is closed by the server.
        self.slots
            .iter_mut()
            .filter(|state| state.session == Some(session))
            .for_each(|state| state.open = false);
        self.slots[slot] = SlotState { open: true, session: Some(session), identity };
        self.steps.push(OracleStep::Connect { slot, connect });
    }

    /// A handshake that a server has to refuse, or nearly.
    fn strange_connect(&mut self, slot: Slot) {
        let session = self.slots[slot].session.map_or(WantedSession::Unknown, WantedSession::Opened);
        let ordinary = Connect { session, ..Connect::new_session() };
        let password = *self.chance.pick(&[Shown::Wrong, Shown::TooShort, Shown::Null]);
        let connect = match self.chance.index(4) {
            0 => Connect { password, ..ordinary },
            1 => Connect { session: WantedSession::Unknown, ..ordinary },
            2 => Connect { last_zxid: SeenZxid::Ahead, ..ordinary },
            _ => Connect { last_zxid: SeenZxid::Ahead, password, session: WantedSession::New, ..ordinary },
        };
        self.slots[slot].open = false;
        self.steps.push(OracleStep::Connect { slot, connect });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_makes_the_same_sequence() {
        let story = |seed| format!("{:?}", below_a_root(seed, Multis::Anything).steps);
        assert_eq!(story(7), story(7));
        assert_ne!(story(7), story(8));
        assert_ne!(story(7), format!("{:?}", with_quotas(7, Multis::Anything).steps));
    }
}
