//! One thread of the driver: its sessions, its poll, its clock.
//!
//! A round handles what the poll brought, then whatever the clock made due, then writes. Rounds happen when a socket,
//! the timer or a command wakes the poll, so an idle reactor sleeps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use mio::{Events, Poll, Token, Waker};
use paddock_proto::Extensions;
use rustix::time::{ClockId, clock_gettime};

use super::handshake::SessionRequest;
use super::pacer::Pacer;
use super::session::{Broken, DriverSession, Round, SessionReadiness};
use super::timer::Timer;
use crate::access::Access;
use crate::measure::Slice;
use crate::report::Pace;
use crate::workload::Lane;

const WAKER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
const BUFFER_BYTES: usize = 256 << 10;
/// A thread opens this many sessions at once: more would overflow a listener's queue.
const CONNECTING_MAX: usize = 64;
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Answers that have not come this long after the last request are lost.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
const SLICE: Duration = Duration::from_secs(1);

/// The sessions that a thread drives, and how it does.
pub(crate) struct Share {
    /// Number of the thread, and of how many there are.
    pub(crate) number: usize,
    pub(crate) threads: usize,
    /// Each session's lane and the place of its first server in `addresses`.
    pub(crate) lanes: Vec<(usize, Box<dyn Lane>)>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) names: Arc<[String]>,
    pub(crate) pace: Pace,
    pub(crate) session_timeout: Duration,
    pub(crate) extensions: Extensions,
    pub(crate) access: Access,
    /// `host:port` of each of `addresses`.
    pub(crate) hosts: Vec<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) stop_on_error: bool,
    /// True if lanes may wait for what comes for others.
    pub(crate) has_onlookers: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReactorCommand {
    /// Play a phase until its time or its share of requests is over.
    Play { phase: usize, start: Instant, end: Option<Instant>, requests: u64 },
    /// Send nothing more in this phase.
    Stop,
    /// Close the sessions and end.
    Quit,
}

/// A message of a thread, which goes with the thread's number.
#[derive(Debug)]
pub(crate) enum News {
    /// All sessions are open.
    Connected,
    /// A second of the phase, counted from its start.
    Slice { second: u64, slice: Slice },
    /// The phase is over: when its last answer came, and the CPU time it took here.
    Played { last_answer: Instant, cpu: Duration },
    /// A request failed; the first one tells.
    Failed(String),
    /// There is no server to talk to.
    Lost(String),
}

/// The handle of a thread.
pub(crate) struct Driver {
    commands: Sender<ReactorCommand>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts a thread, which opens its sessions at once.
    pub(crate) fn start(share: Share, news: Sender<(usize, News)>) -> io::Result<Driver> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let (commands, orders) = crossbeam_channel::unbounded();
        let number = share.number;
        let reactor = Reactor::new(share, poll, timer, orders, news);
        let thread =
            std::thread::Builder::new().name(format!("bench-{number}")).spawn(move || reactor.run())?;
        Ok(Driver { commands, waker, thread: Some(thread) })
    }

    pub(crate) fn tell(&self, command: ReactorCommand) {
        // A thread that is gone has said why.
        let _ = self.commands.send(command);
        let _ = self.waker.wake();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.tell(ReactorCommand::Quit);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A phase that is being played.
struct Play {
    end: Option<Instant>,
    pacer: Option<Pacer>,
    /// No session can take the request that is due.
    is_blocked: bool,
    /// Number of slices that have been reported.
    second: u64,
    last_answer: Instant,
    /// Time from which the answers that are still missing count as lost.
    answers_until: Option<Instant>,
    cpu_before: Duration,
}

struct Reactor {
    share: Share,
    poll: Poll,
    timer: Timer,
    orders: Receiver<ReactorCommand>,
    news: Sender<(usize, News)>,
    sessions: Vec<DriverSession>,
    round: Round,
    play: Option<Play>,
    links: Links,
    /// Sessions whose lanes have put off their next request.
    appointments: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The session that an open loop asked last.
    turn: usize,
    /// Time at which idle sessions are looked after next.
    next_tick: Instant,
    has_ended: bool,
}

/// The state of all the connections together.
struct Links {
    /// Place in `Share::addresses` where each session connects next.
    servers: Vec<usize>,
    /// Sessions without a connection, and from when on they may try again.
    down: Vec<(Instant, usize)>,
    connecting: usize,
    /// Since when no session has had a connection.
    all_down_since: Option<Instant>,
    last_break: String,
    /// True if all sessions were open once.
    were_up: bool,
}

impl Reactor {
    fn new(
        mut share: Share,
        poll: Poll,
        timer: Timer,
        orders: Receiver<ReactorCommand>,
        news: Sender<(usize, News)>,
    ) -> Reactor {
        let now = Instant::now();
        let access = Arc::new(share.access.clone());
        let (servers, sessions): (Vec<usize>, Vec<DriverSession>) = std::mem::take(&mut share.lanes)
            .into_iter()
            .map(|(server, lane)| {
                let asked = SessionRequest::new(share.session_timeout, share.extensions);
                (server, DriverSession::new(asked, Arc::clone(&access), lane))
            })
            .unzip();
        let links = Links {
            servers,
            down: (0..sessions.len()).map(|number| (now, number)).collect(),
            connecting: 0,
            all_down_since: Some(now),
            last_break: String::new(),
            were_up: false,
        };
        let round = Round {
            now,
            start: now,
            slice: Slice::new(share.names.len()),
            budget: 0,
            in_flight: 0,
            first_failure: None,
            names: Arc::clone(&share.names),
            buffer: vec![0; BUFFER_BYTES],
        };
        Reactor {
            share,
            poll,
            timer,
            orders,
            news,
            sessions,
            round,
            play: None,
            links,
            appointments: BinaryHeap::new(),
            turn: 0,
            next_tick: now + SLICE,
            has_ended: false,
        }
    }

    fn run(mut self) {
        if let Err(error) = self.work() {
            self.tell(News::Lost(format!("a thread of the bench failed: {error}")));
        }
        self.sessions.iter_mut().for_each(DriverSession::close);
    }

    fn work(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.has_ended {
            self.round.now = Instant::now();
            self.take_orders();
            self.on_time();
            self.timer.arm(self.next_deadline())?;
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    TIMER => self.timer.rang(),
                    Token(number) => self.on_socket(number),
                }
            }
        }
        Ok(())
    }

    fn tell(&self, news: News) {
        // The receiver is gone when the run was given up.
        let _ = self.news.send((self.share.number, news));
    }

    fn take_orders(&mut self) {
        loop {
            match self.orders.try_recv() {
                Ok(ReactorCommand::Play { phase, start, end, requests }) => {
                    self.begin(phase, start, end, requests)
                }
                Ok(ReactorCommand::Stop) => self.round.budget = 0,
                Ok(ReactorCommand::Quit) | Err(TryRecvError::Disconnected) => return self.has_ended = true,
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    fn begin(&mut self, phase: usize, start: Instant, end: Option<Instant>, requests: u64) {
        let pacer = match self.share.pace {
            Pace::Open { requests_per_second } => {
                Some(Pacer::new(start, requests_per_second, self.share.number, self.share.threads))
            }
            Pace::Closed { .. } => None,
        };
        self.play = Some(Play {
            end,
            pacer,
            is_blocked: false,
            second: 0,
            last_answer: start,
            answers_until: None,
            cpu_before: thread_cpu(),
        });
        self.round.start = start;
        self.round.budget = requests;
        self.round.slice = Slice::new(self.share.names.len());
        for number in 0..self.sessions.len() {
            self.sessions[number].begin(phase);
            self.push_on(number);
        }
    }

    /// Handles a readable or writable socket, and lets its session go on.
    fn on_socket(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        let was_greeting = session.is_greeting();
        let outcome = session.receive(&mut self.round);
        if was_greeting && !session.is_greeting() {
            self.links.connecting -= 1;
        }
        match outcome {
            Err(why) => self.on_break(number, &why),
            Ok(any) => {
                if let Some(play) = self.play.as_mut().filter(|_| any) {
                    play.last_answer = self.round.now;
                }
                if self.sessions[number].is_down() {
                    // The lane wanted a new session.
                    return self.links.down.push((self.round.now, number));
                }
                self.push_on(number);
            }
        }
    }

    /// Lets a session send what it can.
    fn push_on(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        if let Pace::Closed { window } = self.share.pace {
            session.fill(window, &mut self.round);
        }
        self.send(number);
    }

    fn send(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        if let Some(time) = session.new_appointment() {
            self.appointments.push(Reverse((time, number)));
        }
        if let Err(why) = session.flush(&mut self.round.slice) {
            self.on_break(number, &why);
        }
    }

    fn on_break(&mut self, number: usize, why: &Broken) {
        let session = &mut self.sessions[number];
        if session.is_greeting() {
            self.links.connecting -= 1;
        }
        session.disconnect(why, &mut self.round);
        let server = &mut self.links.servers[number];
        self.links.last_break = format!("{}: {why}", self.share.addresses[*server]);
        *server = (*server + 1) % self.share.addresses.len();
        self.links.down.push((self.round.now + RECONNECT_PAUSE, number));
        if self.links.were_up && self.share.stop_on_error {
            self.give_up();
        }
    }

    /// There is no going on without the server.
    fn give_up(&mut self) {
        self.round.budget = 0;
        self.tell(News::Lost(self.links.last_break.clone()));
    }

    /// Handles everything that is due by the clock.
    fn on_time(&mut self) {
        self.connect();
        self.watch_links();
        self.keep_alive();
        self.keep_pace();
        self.keep_appointments();
        self.ask_onlookers();
        self.report_failure();
        self.cut_slices();
        self.end_phase();
    }

    fn connect(&mut self) {
        let (now, links) = (self.round.now, &mut self.links);
        let mut broken = Vec::new();
        links.down.retain(|&(time, number)| {
            if time > now || links.connecting >= CONNECTING_MAX {
                return true;
            }
            let server = links.servers[number];
            let address = self.share.addresses[server];
            let session = &mut self.sessions[number];
            let tls = self.share.access.tls.as_ref().map(|tls| tls.call(&self.share.hosts[server]));
            let connected = tls
                .transpose()
                .map_err(Broken::Io)
                .and_then(|tls| session.connect(address, tls, self.poll.registry(), Token(number), now));
            match connected {
                Ok(()) => links.connecting += 1,
                Err(why) => broken.push((number, why)),
            }
            false
        });
        for (number, why) in broken {
            self.on_break(number, &why);
        }
    }

    fn watch_links(&mut self) {
        let links = &mut self.links;
        if !links.were_up && links.down.is_empty() && links.connecting == 0 {
            links.were_up = true;
            links.all_down_since = None;
            return self.tell(News::Connected);
        }
        let is_any_up = links.down.len() + links.connecting < self.sessions.len();
        if is_any_up && links.were_up {
            return links.all_down_since = None;
        }
        let since = *links.all_down_since.get_or_insert(self.round.now);
        if self.round.now > since + self.share.connect_timeout && !links.last_break.is_empty() {
            links.all_down_since = Some(self.round.now);
            self.give_up();
        }
    }

    fn keep_alive(&mut self) {
        if self.round.now < self.next_tick {
            return;
        }
        self.next_tick = self.round.now + SLICE;
        for number in 0..self.sessions.len() {
            self.sessions[number].ping_if_idle(self.round.now);
            self.send(number);
        }
    }

    /// Sends what an open loop should have sent by now, to one session after the other.
    fn keep_pace(&mut self) {
        let Some(play) = &mut self.play else { return };
        let Some(pacer) = &mut play.pacer else { return };
        play.is_blocked = false;
        let mut first_turn = None;
        while pacer.next() <= self.round.now && self.round.budget > 0 {
            let count = self.sessions.len();
            let taker = (1..=count)
                .map(|step| (self.turn + step) % count)
                .find(|&number| self.sessions[number].ask(pacer.next(), &mut self.round));
            let Some(number) = taker else {
                play.is_blocked = true;
                break;
            };
            self.turn = number;
            first_turn.get_or_insert(number);
            pacer.advance();
        }
        if first_turn.is_some() {
            (0..self.sessions.len()).for_each(|number| self.send(number));
        }
    }

    fn keep_appointments(&mut self) {
        while let Some(&Reverse((time, number))) = self.appointments.peek() {
            if time > self.round.now {
                break;
            }
            self.appointments.pop();
            self.push_on(number);
        }
    }

    /// Asks the lanes that wait for what happens to others.
    fn ask_onlookers(&mut self) {
        let count = if self.share.has_onlookers { self.sessions.len() } else { 0 };
        for number in 0..count {
            if self.sessions[number].readiness() == SessionReadiness::Watching {
                self.push_on(number);
            }
        }
    }

    fn report_failure(&mut self) {
        if self.share.stop_on_error
            && self.round.budget > 0
            && let Some(failure) = self.round.first_failure.clone()
        {
            self.round.budget = 0;
            self.tell(News::Failed(failure));
        }
    }

    fn cut_slices(&mut self) {
        let Some(play) = &mut self.play else { return };
        let due = self.round.now.saturating_duration_since(self.round.start).as_secs();
        if due == play.second {
            return;
        }
        let slice = std::mem::replace(&mut self.round.slice, Slice::new(self.share.names.len()));
        // What a late round has to tell belongs to the last of the seconds that it missed.
        let second = due - 1;
        play.second = due;
        self.tell(News::Slice { second, slice });
    }

    fn end_phase(&mut self) {
        let Some(play) = &mut self.play else { return };
        if play.end.is_some_and(|end| self.round.now >= end) {
            self.round.budget = 0;
        }
        if self.round.budget == 0 {
            let until = *play.answers_until.get_or_insert(self.round.now + ANSWERS_WITHIN);
            if self.round.in_flight > 0 && self.round.now >= until {
                return self.give_up_answers();
            }
        }
        let is_over = self.round.budget == 0
            || self.sessions.iter().all(|session| session.readiness() == SessionReadiness::Done);
        if self.round.in_flight > 0 || !is_over {
            return;
        }
        let (second, last_answer) = (play.second, play.last_answer);
        let cpu = thread_cpu() - play.cpu_before;
        self.play = None;
        self.round.budget = 0;
        let slice = std::mem::replace(&mut self.round.slice, Slice::new(self.share.names.len()));
        self.tell(News::Slice { second, slice });
        self.tell(News::Played { last_answer, cpu });
    }

    fn give_up_answers(&mut self) {
        let why = Broken::Protocol(format!("no answer within {} s", ANSWERS_WITHIN.as_secs()));
        for number in 0..self.sessions.len() {
            if self.sessions[number].is_up() {
                self.on_break(number, &why);
            }
        }
    }

    fn next_deadline(&self) -> Instant {
        let play = self.play.as_ref();
        let next_second = play.map(|play| self.round.start + SLICE * (play.second as u32 + 1));
        let end = play.and_then(|play| play.answers_until.or(play.end));
        let send = play
            .filter(|play| !play.is_blocked && self.round.budget > 0)
            .and_then(|play| play.pacer.as_ref().map(Pacer::next));
        let appointment = self.appointments.peek().map(|Reverse((time, _))| *time);
        let connect = self
            .links
            .down
            .iter()
            .map(|(time, _)| *time)
            .min()
            .filter(|_| self.links.connecting < CONNECTING_MAX);
        let all = [next_second, end, send, appointment, connect];
        all.into_iter().flatten().fold(self.next_tick, Instant::min)
    }
}

/// The CPU time that this thread has used.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
