//! The world of a seed: a source, a mirror with the link between them, and clients that are at either.

use std::collections::VecDeque;
use std::fmt::Arguments;

use paddock_chance::Chance;
use paddock_forward::{Effects, Input, MirrorEngine, MirrorMode, SourceRequest};
use paddock_proto::{CreateMode, OpCode, SessionId, encode};
use paddock_state::{ClientInput, ConnId, Outboxes, State};
use paddock_tree::Tree;

use super::checks::Checks;
use super::client::{ClientPlace, MirrorClient};
use super::cutover::Cutover;
use super::source::{DIRECT, MIRROR, SourceModel};
use super::successor::Successor;
use crate::checks::{Checked, ensure};
use crate::etcd::client::Ask;
use crate::time::{SimDuration, Time};
use crate::trace::{Telling, Trace};
use crate::world::Account;

pub(super) const CLIENTS: usize = 4;
/// Steps in which things go wrong.
const STEPS: u64 = 4000;
/// Steps between two comparisons of the mirror's state with the source's.
const COMPARISON_STEPS: u64 = 25;
/// A directory that all clients share.
pub(super) const SHARED: &str = "/s";
/// Sessions that begin at the mirror, at the source, and at the member in the mirror's place get ids from here on.
const SESSIONS_OF_MIRROR: i64 = 0x7e << 56;
const SESSIONS_OF_SOURCE: i64 = 0x01 << 56;
pub(super) const SESSIONS_OF_SUCCESSOR: i64 = 0x02 << 56;

/// Rates of what happens: once in this number of steps, or of requests.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    pub(super) link_lost: u64,
    pub(super) hold: u64,
    pub(super) disconnect: u64,
    pub(super) to_source: u64,
    /// The member takes over as soon as it may; else requests are let go until the end.
    pub(super) takes_over: bool,
}

/// MirrorServer of the clients.
#[derive(Debug)]
pub(super) enum MirrorServer {
    Mirror(Box<MirrorEngine>),
    Successor(Successor),
}

pub(crate) struct MirrorWorld {
    pub(super) chance: Chance,
    pub(super) weather: Weather,
    trace: Trace,
    pub(super) source: SourceModel,
    pub(super) server: MirrorServer,
    pub(super) state: State,
    pub(super) out: Outboxes,
    /// Requests on their way to the source.
    pub(super) requests: VecDeque<SourceRequest>,
    /// Words of the source on their way to the mirror; `None` while there is no connection.
    pub(super) words: Option<VecDeque<Input>>,
    /// The mirror was told of the connection.
    pub(super) is_linked: bool,
    pub(super) cutover: Cutover,
    pub(super) clients: Vec<MirrorClient>,
    /// Connections whose clients are gone, of which the mirror has not heard.
    pub(super) lingering: Vec<ConnId>,
    pub(super) checks: Checks,
    now_ms: u64,
    steps: u64,
    faults: u64,
    next_conn: u64,
    pub(super) next_session: i64,
    pub(super) next_request: u64,
    pub(super) has_faults: bool,
}

pub(super) fn own_directory(client: usize) -> String {
    format!("/c{client}")
}

impl MirrorWorld {
    pub(crate) fn new(seed: u64, telling: Telling) -> MirrorWorld {
        let mut chance = Chance::of(seed, "mirror");
        let weather = Weather {
            link_lost: chance.mostly_low(80, 2000),
            hold: chance.mostly_low(80, 2000),
            disconnect: chance.mostly_low(10, 200),
            to_source: chance.between(2, 8),
            takes_over: chance.one_in(2),
        };
        let engine = MirrorEngine::new(MirrorMode::Forwarding, MIRROR, SessionId(SESSIONS_OF_MIRROR));
        MirrorWorld {
            chance,
            weather,
            trace: Trace::new(telling),
            source: SourceModel::default(),
            server: MirrorServer::Mirror(Box::new(engine)),
            state: State::new(Tree::new()),
            out: Outboxes::new(1),
            requests: VecDeque::new(),
            words: None,
            is_linked: false,
            cutover: Cutover::NotYet,
            clients: (0..CLIENTS).map(|_| MirrorClient::new()).collect(),
            lingering: Vec::new(),
            checks: Checks::default(),
            now_ms: 10_000,
            steps: 0,
            faults: 0,
            next_conn: 1,
            next_session: SESSIONS_OF_SOURCE,
            next_request: 1,
            has_faults: true,
        }
    }

    pub(crate) fn live(mut self) -> (Account, Vec<String>) {
        let violation = self.go_on().err();
        if let Some(violation) = &violation {
            self.note(format_args!("VIOLATION {violation}"));
        }
        let account = Account {
            violation,
            steps: self.steps,
            trace: self.trace.hash(),
            entries: self.checks.newest as u64,
            writes: self.clients.iter().map(|client| client.acknowledged).sum(),
            faults: self.faults,
        };
        (account, self.trace.into_lines())
    }

    fn go_on(&mut self) -> Checked {
        let weather = self.weather.clone();
        self.note(format_args!("{weather:?}"));
        self.found()?;
        while self.steps < STEPS {
            self.steps += 1;
            self.step()?;
        }
        self.heal()
    }

    /// Creates the directories that clients work in.
    fn found(&mut self) -> Checked {
        for path in (0..CLIENTS).map(own_directory).chain([SHARED.to_owned()]) {
            let mut body = Vec::new();
            encode::create_open(&mut body, &path, None, CreateMode::Persistent);
            self.write_at_source(DIRECT, (SessionId::NONE, 0), OpCode::Create, &body)?;
        }
        Ok(())
    }

    pub(super) fn note(&mut self, what: Arguments<'_>) {
        self.trace.note(Time(0) + SimDuration::millis(self.now_ms), what);
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(super) fn new_conn(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId::new(0, self.next_conn - 1)
    }

    /// True if a fault strikes.
    pub(super) fn strikes(&mut self, one_in: u64) -> bool {
        let strikes = self.has_faults && self.chance.one_in(one_in);
        self.faults += u64::from(strikes);
        strikes
    }

    fn step(&mut self) -> Checked {
        match self.chance.below(10) {
            0..=2 => self.deliver_request()?,
            3..=5 => self.deliver_word()?,
            6 => self.tick()?,
            _ => self.act()?,
        }
        self.trouble_link()?;
        self.work_on_cutover()?;
        if self.steps.is_multiple_of(COMPARISON_STEPS) {
            self.checks.check_state(self.state.tree())?;
        }
        Ok(())
    }

    pub(super) fn tick(&mut self) -> Checked {
        self.now_ms += 50;
        for at in 0..CLIENTS {
            let client = &self.clients[at];
            match (client.place, client.session.filter(|_| client.is_connected)) {
                (ClientPlace::Mirror(_), Some(session)) => {
                    self.input(Input::Client(ClientInput::Touch { session }))?;
                }
                (ClientPlace::Source, Some(session)) => self.source.touch(session, self.now_ms),
                _ => {}
            }
        }
        if let Some(words) = self.words.as_mut().filter(|_| self.is_linked) {
            words.push_back(Input::Heard);
        }
        // While requests are held back nothing happens at the source: that is what operators see to. Later it is gone.
        let is_source_there =
            self.cutover == Cutover::NotYet && matches!(self.server, MirrorServer::Mirror(_));
        let mut ordered = (is_source_there && self.strikes(80)).then(|| self.any_session()).flatten();
        while let Some(session) =
            ordered.take().or_else(|| self.source.unheard(self.now_ms)).filter(|_| is_source_there)
        {
            self.note(format_args!("session {session} ends at the source"));
            let owner = self.source.tree.session_owner(session).expect("it is there");
            self.write_at_source(owner, (session, 0), OpCode::CloseSession, &[])?;
        }
        Ok(())
    }

    /// A session that an administrator ends.
    fn any_session(&mut self) -> Option<SessionId> {
        let sessions: Vec<SessionId> = self.source.tree.sessions().map(|(session, _)| session).collect();
        (!sessions.is_empty()).then(|| *self.chance.pick(&sessions))
    }

    pub(super) fn input(&mut self, input: Input) -> Checked {
        match &mut self.server {
            MirrorServer::Mirror(engine) => {
                engine.step(self.now_ms, input, &mut self.state, &mut self.out);
                let Effects { requests, held } = engine.take_effects();
                self.note_held(&requests, held)?;
                if self.is_linked {
                    self.requests.extend(requests);
                }
            }
            MirrorServer::Successor(successor) => {
                let Input::Client(input) = input else { return Ok(()) };
                let told = successor.take(input, self.now_ms, &mut self.state, &mut self.out);
                if let Some((transaction, changes)) = told {
                    self.checks.observe(&transaction, Some(changes))?;
                }
            }
        }
        self.take_mail()?;
        self.check_sessions()
    }

    /// Clients that are served have sessions that have not ended in the state that is shown.
    fn check_sessions(&self) -> Checked {
        for (at, client) in self.clients.iter().enumerate() {
            let (ClientPlace::Mirror(_), true, Some(session)) =
                (client.place, client.is_connected, client.session)
            else {
                continue;
            };
            let lives = self.state.tree().session_timeout_ms(session).is_some();
            let is_closing = client.waiting.iter().any(|waiting| waiting.ask == Ask::Close);
            ensure!(
                lives || is_closing,
                "sessions",
                "client {at} is served, and its session {session} has ended"
            );
        }
        Ok(())
    }
}
