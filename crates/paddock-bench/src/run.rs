//! One run from beginning to end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use paddock_proto::validate_path;

use crate::driver::{Driver, News, ReactorCommand, Share, probe};
use crate::measure::{Slice, summary};
use crate::progress::{RunProgress, Tick};
use crate::report::{Ended, Pace, RunReport, ServerUse};
use crate::sample::Sampler;
use crate::tally::Tally;
use crate::{BenchError, RunPlan, prepare};

/// Time between two looks whether the run was interrupted.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Does what the plan says. An error means that nothing was measured; a run that broke off in the middle is a report
/// whose `ended` says why.
pub fn run(plan: &RunPlan, progress: &mut dyn RunProgress) -> Result<RunReport, BenchError> {
    check(plan)?;
    progress.stage(&format!("connecting to {}", plan.hosts.join(", ")));
    let addresses = probe_all(plan)?;
    progress.stage(&format!("preparing znodes for {}", plan.workload.name()));
    prepare::set_up(plan)?;
    let report = Run::new(plan, addresses, progress)?.measure()?;
    if plan.keep || matches!(report.ended, Ended::ServerLost(_)) {
        return Ok(report);
    }
    progress.stage("removing what the run has made");
    match prepare::clean_up(plan) {
        Ok(()) => {}
        // What was measured counts more than what it left behind.
        Err(error) => {
            progress.stage(&format!("could not remove {}: {error}", plan.workload.roots().join(", ")))
        }
    }
    Ok(report)
}

fn check(plan: &RunPlan) -> Result<(), BenchError> {
    let refuse = |message: &str| Err(BenchError::Usage(message.to_owned()));
    match plan.pace {
        _ if plan.hosts.is_empty() => refuse("no host is named: say --hosts HOST:PORT,…"),
        _ if plan.sessions == 0 => refuse("a run needs at least one session"),
        _ if plan.threads == 0 => refuse("a run needs at least one thread"),
        Pace::Closed { window: 0 } => refuse("a window holds at least one request"),
        Pace::Open { requests_per_second } if !(0.01..=1e8).contains(&requests_per_second) => {
            refuse("a rate is between 0.01 and 100000000 requests per second")
        }
        _ => match plan.workload.roots().iter().find(|root| !is_root(root)) {
            Some(root) => refuse(&format!("{root:?} cannot be where the znodes are made: say --root /NAME")),
            None => Ok(()),
        },
    }
}

/// True if everything at and below the path may be removed.
fn is_root(path: &str) -> bool {
    validate_path(path).is_ok() && !["/", "/zookeeper"].contains(&path)
}

/// Every host must be one to talk to before anything is asked of any.
fn probe_all(plan: &RunPlan) -> Result<Vec<SocketAddr>, BenchError> {
    let mut known: HashMap<&str, SocketAddr> = HashMap::new();
    for host in &plan.hosts {
        // A host stands in the list once for each session that is meant to be there.
        if !known.contains_key(host.as_str()) {
            known.insert(host, probe(host, plan.access.tls.as_ref(), plan.connect_timeout)?);
        }
    }
    Ok(plan.hosts.iter().map(|host| known[host.as_str()]).collect())
}

/// A run whose threads are there.
struct Run<'a> {
    plan: &'a RunPlan,
    addresses: Vec<SocketAddr>,
    drivers: Vec<Driver>,
    news: Receiver<(usize, News)>,
    progress: &'a mut dyn RunProgress,
    names: Vec<String>,
    ended: Ended,
    client_cpu: Duration,
}

impl<'a> Run<'a> {
    fn new(
        plan: &'a RunPlan,
        addresses: Vec<SocketAddr>,
        progress: &'a mut dyn RunProgress,
    ) -> Result<Run<'a>, BenchError> {
        let (tell, news) = crossbeam_channel::unbounded();
        let names = plan.workload.operations();
        let drivers = start_drivers(plan, &addresses, &names, &tell)?;
        Ok(Run {
            plan,
            addresses,
            drivers,
            news,
            progress,
            names,
            ended: Ended::Complete,
            client_cpu: Duration::ZERO,
        })
    }

    fn measure(mut self) -> Result<RunReport, BenchError> {
        self.await_connections()?;
        self.warm_up();
        let mut tally = Tally::new(self.names.clone(), self.drivers.len());
        let sampler = Sampler::start(&self.plan.sources, &self.addresses)?;
        let started = SystemTime::now();
        self.client_cpu = Duration::ZERO;
        for (number, name) in self.plan.workload.phases().into_iter().enumerate() {
            if self.ended == Ended::Complete {
                let elapsed = self.play(number, self.plan.until.time, Some(&mut tally));
                tally.end_phase(name, elapsed);
            }
        }
        let server = sampler.finish(tally.requests());
        Ok(self.report(tally, started, server))
    }

    fn await_connections(&mut self) -> Result<(), BenchError> {
        let mut missing = self.drivers.len();
        while missing > 0 && self.ended == Ended::Complete {
            match self.next_news() {
                Some(News::Connected) => missing -= 1,
                Some(News::Lost(reason)) => {
                    return Err(BenchError::Sessions { sessions: self.plan.sessions, reason });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn warm_up(&mut self) {
        // Phases are what they are: a first one must not have been played before.
        if self.plan.warm_up > Duration::ZERO && self.plan.workload.phases().len() == 1 {
            self.progress.stage(&format!("warming up for {} s", self.plan.warm_up.as_secs_f64()));
            self.play(0, Some(self.plan.warm_up), None);
        }
    }

    /// Plays a phase and returns how long it took to its last answer. Without a tally nothing of it counts.
    fn play(&mut self, phase: usize, time: Option<Duration>, mut tally: Option<&mut Tally>) -> Duration {
        let start = Instant::now();
        let requests = self.plan.until.requests.filter(|_| tally.is_some());
        for (number, driver) in self.drivers.iter().enumerate() {
            let requests = requests.map_or(u64::MAX, |all| part(all, number, self.drivers.len()));
            driver.tell(ReactorCommand::Play { phase, start, end: time.map(|time| start + time), requests });
        }
        let mut playing = self.drivers.len();
        let mut last = start;
        while playing > 0 {
            match self.next_news() {
                Some(News::Slice { second, slice }) => self.count(&mut tally, second, &slice, time, requests),
                Some(News::Played { last_answer, cpu }) => {
                    playing -= 1;
                    last = last.max(last_answer);
                    self.client_cpu += cpu;
                }
                Some(News::Failed(reason)) => self.end(Ended::Failed(reason)),
                Some(News::Lost(reason)) => self.end(Ended::ServerLost(reason)),
                Some(News::Connected) | None => {}
            }
        }
        last - start
    }

    fn count(
        &mut self,
        tally: &mut Option<&mut Tally>,
        second: u64,
        slice: &Slice,
        time: Option<Duration>,
        requests: Option<u64>,
    ) {
        let Some(tally) = tally else { return };
        let Some(tick) = tally.add(second, slice) else { return };
        let by_time = time.map(|time| (tally.elapsed() + time).saturating_sub(tick.at));
        let by_requests = requests.and_then(|requests| {
            let missing = requests.saturating_sub(tally.requests()) as f64;
            Duration::try_from_secs_f64(missing / tick.requests_per_second).ok()
        });
        let left = [by_time, by_requests].into_iter().flatten().min();
        self.progress.tick(&Tick { left, ..tick });
    }

    fn end(&mut self, ended: Ended) {
        // The first reason counts, but that the server is gone explains all the others.
        if self.ended == Ended::Complete || matches!(ended, Ended::ServerLost(_)) {
            self.ended = ended;
        }
        self.drivers.iter().for_each(|driver| driver.tell(ReactorCommand::Stop));
    }

    fn next_news(&mut self) -> Option<News> {
        match self.news.recv_timeout(LOOK_UP) {
            Ok((_, news)) => return Some(news),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("a thread of the bench ended without a word"),
        }
        if self.ended == Ended::Complete && self.plan.interrupted.load(Ordering::Relaxed) {
            self.end(Ended::Interrupted);
        }
        None
    }

    fn report(self, tally: Tally, started: SystemTime, server: Option<ServerUse>) -> RunReport {
        let plan = self.plan;
        let elapsed_s = tally.elapsed().as_secs_f64();
        let requests = tally.requests();
        // A run that measured nothing has a rate of nothing.
        let per_second = |count: u64| if elapsed_s > 0.0 { count as f64 / elapsed_s } else { 0.0 };
        let total = tally.total();
        let mut report = RunReport {
            tool: format!("paddock bench {}", env!("CARGO_PKG_VERSION")),
            started_unix_s: started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            workload: plan.workload.name(),
            hosts: plan.hosts.clone(),
            sessions: plan.sessions,
            load: plan.pace,
            ended: self.ended,
            elapsed_s,
            requests,
            errors: total.errors(),
            requests_per_second: per_second(requests),
            bytes_sent_per_second: per_second(total.bytes_sent),
            bytes_received_per_second: per_second(total.bytes_received),
            latency: summary(&total.all_latencies()),
            operations: tally.operations(),
            phases: Vec::new(),
            seconds: Vec::new(),
            server,
            client_cpu_us_per_request: self.client_cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
        };
        (report.seconds, report.phases) = tally.into_seconds_and_phases();
        report
    }
}

fn start_drivers(
    plan: &RunPlan,
    addresses: &[SocketAddr],
    names: &[String],
    tell: &Sender<(usize, News)>,
) -> Result<Vec<Driver>, BenchError> {
    let threads = if plan.workload.is_one_thread() { 1 } else { plan.threads.min(plan.sessions) };
    let names: Arc<[String]> = names.into();
    let mut lanes: Vec<Vec<_>> = std::iter::repeat_with(Vec::new).take(threads).collect();
    for (session, lane) in plan.workload.lanes(plan.sessions).into_iter().enumerate() {
        lanes[session % threads].push((session % addresses.len(), lane));
    }
    let start = |(number, lanes)| {
        let share = Share {
            number,
            threads,
            lanes,
            addresses: addresses.to_vec(),
            names: Arc::clone(&names),
            pace: plan.pace,
            session_timeout: plan.session_timeout,
            extensions: plan.extensions,
            access: plan.access.clone(),
            hosts: plan.hosts.clone(),
            connect_timeout: plan.connect_timeout,
            stop_on_error: plan.stop_on_error,
            has_onlookers: plan.workload.is_one_thread(),
        };
        Driver::start(share, tell.clone())
            .map_err(|source| BenchError::System { action: "start a thread of the bench", source })
    };
    lanes.into_iter().enumerate().map(start).collect()
}

/// Share of thread `number` when `all` is dealt out among `threads`.
fn part(all: u64, number: usize, threads: usize) -> u64 {
    let (number, threads) = (number as u64, threads as u64);
    all / threads + u64::from(number < all % threads)
}
