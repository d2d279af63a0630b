//! Suites of servers that are this test program itself: a child process that speaks as much of the protocol as a suite
//! needs. The runner measures nothing.

mod hold;

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use paddock_proto::jute::Writer;
use paddock_proto::{ConnectResponse, OpCode, Password, SessionId, frame};
use tempfile::TempDir;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::charts::charts;
use super::*;
use crate::BenchError;
use crate::report::RunReport;
use crate::report::chart::Chart;
use crate::report::units::Unit;
use crate::report::{Ended, Latency, Pace, ServerUse};
use crate::workload::tree::Znodes;

/// Begins only as a child of a test: its directory then has a file that names its port.
#[test]
#[ignore = "no test of its own: the tests of this file start it as the process that they measure"]
fn server() {
    let Ok(port) = fs::read_to_string("port") else { return };
    if let Ok(failure) = fs::read_to_string("failure") {
        println!("cannot serve: {failure}");
        std::process::exit(3);
    }
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).expect("listen");
    for stream in listener.incoming().flatten() {
        thread::spawn(move || serve(stream));
    }
}

/// Leaves something like a snapshot after as many sets as the directory's file `every` says, and something like a log. That file must not
/// look like a snapshot, whose names begin with the word.
fn keep(request: &[u8]) {
    static SETS: AtomicU64 = AtomicU64::new(0);
    let Ok(writes) = fs::read_to_string("every") else { return };
    let is_set = request[4..8] == OpCode::SetData.code().to_be_bytes();
    let sets = SETS.fetch_add(u64::from(is_set), Ordering::Relaxed) + u64::from(is_set);
    let writes: u64 = writes.parse().expect("a number of writes");
    fs::create_dir_all("data").expect("make a directory");
    if is_set && sets.is_multiple_of(writes) {
        let name = format!("data/snapshot.{}.{sets}", std::process::id());
        fs::write(name, [1; 500]).expect("write a snapshot");
    }
    let log = OpenOptions::new().create(true).append(true).open("data/log.1");
    log.and_then(|mut log| log.write_all(&[1; 7])).expect("write a log");
}

/// Grants a session, then answers every request with success and a path.
fn serve(mut stream: TcpStream) {
    read_frame(&mut stream).expect("a connect request");
    let response = ConnectResponse {
        protocol_version: 0,
        timeout_ms: 30_000,
        session: SessionId(1),
        password: Password::ZERO,
        read_only: Some(false),
    };
    let mut bytes = Vec::new();
    response.encode(&mut bytes);
    stream.write_all(&bytes).expect("grant the session");
    while let Some(request) = read_frame(&mut stream) {
        keep(&request);
        let mut answer = Vec::new();
        frame::write(&mut answer, |out| {
            out.extend_from_slice(&request[..4]);
            out.put_i64(1);
            out.put_i32(0);
            if request[4..8] != OpCode::CloseSession.code().to_be_bytes() {
                out.put_string("/a");
            }
        });
        stream.write_all(&answer).expect("answer");
    }
}

fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

fn template(name: &str) -> ServerTemplate {
    let program = std::env::current_exe().expect("this program has a path").display().to_string();
    let arguments = ["suite::tests::server", "--exact", "--ignored", "--nocapture"];
    ServerTemplate {
        name: name.to_owned(),
        members: 1,
        command: std::iter::once(program).chain(arguments.map(str::to_owned)).collect(),
        ready_within: Duration::from_secs(30),
        prepare: Vec::new(),
        use_compression: false,
        tls_ca: None,
        through_relays: false,
        files: [("port".to_owned(), "{port}".to_owned())].into(),
    }
}

fn cell(workload: &str, fresh: bool) -> Measurement {
    Measurement::Run(Cell {
        workload: workload.to_owned(),
        sessions: 1,
        load: Pace::Closed { window: 1 },
        until: End::Requests(10),
        warm_up_s: 0.0,
        fresh,
        tree: None,
        network: None,
    })
}

fn suite(repetitions: usize, measurements: Vec<Measurement>) -> Suite {
    Suite {
        name: "test".to_owned(),
        repetitions,
        baseline: 0,
        servers: vec![template("a"), template("b")],
        measurements,
        only: BTreeMap::new(),
        workload_files: BTreeMap::new(),
    }
}

fn report(cell: &Cell, requests_per_second: f64) -> RunReport {
    RunReport {
        tool: "test".to_owned(),
        started_unix_s: 0,
        workload: cell.workload.clone(),
        hosts: Vec::new(),
        sessions: cell.sessions,
        load: cell.load,
        ended: Ended::Complete,
        elapsed_s: 1.0,
        requests: 10,
        errors: 0,
        requests_per_second,
        bytes_sent_per_second: 0.0,
        bytes_received_per_second: 0.0,
        latency: Latency::default(),
        operations: Vec::new(),
        phases: Vec::new(),
        seconds: Vec::new(),
        server: Some(ServerUse {
            cpu_us_per_request: Some(2.0),
            resident_bytes_peak: Some(3 << 20),
            resident_bytes_after: Some(3 << 20),
            fsyncs: None,
            processes: Vec::new(),
        }),
        client_cpu_us_per_request: 1.0,
    }
}

/// An action of a runner at one step.
#[derive(Clone, Copy)]
enum Act {
    Rate(f64),
    Errors(u64),
    Refuse,
    /// As when Ctrl-C comes meanwhile.
    Stop,
}

struct SuiteScript<'a> {
    acts: VecDeque<Act>,
    stop: &'a AtomicBool,
    pids: Vec<u32>,
}

impl Runner for SuiteScript<'_> {
    fn run(
        &mut self,
        cell: &Cell,
        _: &ServerTemplate,
        hosts: &[String],
        pids: &[u32],
    ) -> Result<RunReport, BenchError> {
        TcpStream::connect(&hosts[0]).expect("the server serves");
        self.pids.extend(pids);
        match self.acts.pop_front().expect("there is an act for every run") {
            Act::Rate(rate) => Ok(report(cell, rate)),
            Act::Errors(errors) => Ok(RunReport { errors, ..report(cell, 9e9) }),
            Act::Refuse => {
                Err(BenchError::Protocol { host: hosts[0].clone(), reason: "it sings".to_owned() })
            }
            Act::Stop => {
                self.stop.store(true, Ordering::Relaxed);
                Ok(RunReport { ended: Ended::Interrupted, ..report(cell, 9e9) })
            }
        }
    }
}

#[derive(Default)]
struct ToldLines(Vec<String>);

impl SuiteWatcher for ToldLines {
    fn plan(&mut self, _suite: &Suite, steps: usize, done: usize, _left: Duration) {
        self.0.push(format!("{done} of {steps}"));
    }

    fn begin(&mut self, step: &SuiteStep<'_>) {
        let what = match step.measurement {
            Measurement::Run(cell) => cell.workload.as_str(),
            Measurement::Memory(_) => "memory",
            Measurement::Idle(_) => "idle",
            Measurement::Snapshot(_) => "snapshot",
            Measurement::Growth(_) => "growth",
        };
        self.0.push(format!("{} {} {what}", step.repetition, step.server));
    }

    fn end(&mut self, _step: &SuiteStep<'_>, _outcome: &StepOutcome) {}
}

struct Played {
    conclusion: Result<Conclusion, BenchError>,
    told: Vec<String>,
}

impl Played {
    fn summary(self) -> Summary {
        match self.conclusion {
            Ok(Conclusion::Complete(summary)) => summary,
            other => panic!("{other:?}"),
        }
    }
}

/// Plays a suite and looks that none of its servers is left.
fn play(suite: &Suite, out: &TempDir, acts: &[Act]) -> Played {
    let stop = AtomicBool::new(false);
    let mut runner = SuiteScript { acts: acts.iter().copied().collect(), stop: &stop, pids: Vec::new() };
    let mut told = ToldLines::default();
    let conclusion = run(suite, out.path(), &mut runner, &stop, &mut told);
    for pid in runner.pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "server {pid} still runs");
    }
    Played { conclusion, told: told.0 }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("make a directory")
}

#[test]
fn servers_take_turns() {
    let out = directory();
    let suite = suite(2, vec![cell("x", true), cell("y", true)]);
    let rates = [1.0, 10.0, 0.0, 5.0, 3.0, 30.0, 0.0, 7.0].map(Act::Rate);
    let played = play(&suite, &out, &rates);
    let order = ["0 of 8", "1 a x", "1 b x", "1 a y", "1 b y", "2 a x", "2 b x", "2 a y", "2 b y"];
    assert_eq!(played.told, order);
    let summary = played.summary();
    let throughput = &summary.groups[0].figures[0];
    assert_eq!(
        throughput.servers.iter().map(|of| of.map(|of| of.median)).collect::<Vec<_>>(),
        [Some(2.0), Some(20.0)]
    );
    assert_eq!(throughput.ratios, [Some(1.0), Some(10.0)]);
    assert_eq!(summary.groups[1].figures[0].ratios, [None, None]);
    assert!(!out.path().join("servers").exists());
    let written = fs::read_to_string(out.path().join("summary.json")).expect("the summary is written");
    let read: serde_json::Value = serde_json::from_str(&written).expect("the summary is JSON");
    assert_eq!(read, serde_json::to_value(&summary).expect("a summary is plain data"));
}

#[test]
fn cells_can_share_a_server() {
    let out = directory();
    let suite = suite(1, vec![cell("x", false), cell("y", true), cell("z", false)]);
    let played = play(&suite, &out, &[Act::Rate(1.0); 6]);
    assert_eq!(played.told, ["0 of 6", "1 a x", "1 a z", "1 b x", "1 b z", "1 a y", "1 b y"]);
}

#[test]
fn an_interrupted_suite_goes_on() {
    let out = directory();
    let suite = suite(1, vec![cell("x", true), cell("y", true)]);
    let stopped = play(&suite, &out, &[Act::Rate(1.0), Act::Rate(2.0), Act::Stop]);
    assert!(matches!(stopped.conclusion, Ok(Conclusion::Interrupted)));
    // A kill in the middle of a write leaves a part of a line.
    let results = out.path().join("results.jsonl");
    let mut bytes = fs::read(&results).expect("there are results");
    bytes.extend_from_slice(b"{\"repetition\":0,\"mea");
    fs::write(&results, bytes).expect("cut a line short");
    let resumed = play(&suite, &out, &[Act::Rate(3.0), Act::Rate(4.0)]);
    assert_eq!(resumed.told, ["2 of 4", "1 a y", "1 b y"]);
    let resumed = resumed.summary();
    assert!(resumed.failures.is_empty());
    assert_eq!(resumed.groups[0].figures[0].ratios, [Some(1.0), Some(2.0)]);
    let again = play(&suite, &out, &[]);
    assert_eq!(again.told, ["4 of 4"]);
    assert_eq!(again.summary(), resumed);
}

#[test]
fn a_changed_suite_is_refused() {
    let out = directory();
    play(&suite(1, vec![cell("x", true)]), &out, &[Act::Rate(1.0); 2]).summary();
    let other = play(&suite(1, vec![cell("y", true)]), &out, &[]);
    let error = other.conclusion.expect_err("it is another suite").to_string();
    assert!(error.contains("another suite") && error.contains("--out"), "{error}");
}

#[test]
fn a_failed_run_is_no_figure() {
    let out = directory();
    let suite = suite(2, vec![cell("x", true)]);
    let acts = [Act::Errors(3), Act::Rate(1.0), Act::Rate(4.0), Act::Refuse];
    let summary = play(&suite, &out, &acts).summary();
    let of = |server: usize| summary.groups[0].figures[0].servers[server].map(|of| (of.runs, of.mean));
    assert_eq!((of(0), of(1)), (Some((1, 4.0)), Some((1, 1.0))));
    let failures: Vec<_> =
        summary.failures.iter().map(|f| (f.server.as_str(), f.repetition, f.reason.as_str())).collect();
    assert_eq!(failures[0], ("a", 1, "3 requests failed"));
    assert!(failures[1].2.contains("it sings"), "{failures:?}");
    assert!(markdown(&summary).contains("Failed: a, repetition 1, x"));
    // The next call makes again what failed, and only that.
    let repaired = play(&suite, &out, &[Act::Rate(2.0), Act::Rate(3.0)]);
    assert_eq!(repaired.told, ["2 of 4", "1 a x", "2 b x"], "{:?}", repaired.conclusion);
    assert!(repaired.summary().failures.is_empty());
}

#[test]
fn a_server_that_ends_is_told_with_its_log() {
    let out = directory();
    let mut suite = suite(1, vec![cell("x", true)]);
    suite.servers[0].files.insert("failure".to_owned(), "no room on member {id}".to_owned());
    let error = play(&suite, &out, &[]).conclusion.expect_err("it does not start").to_string();
    assert!(error.contains("a: ended with exit status: 3 before it served"), "{error}");
    assert!(error.contains("cannot serve: no room on member 1"), "{error}");
}

#[test]
fn a_server_that_does_not_serve_is_given_up() {
    let out = directory();
    let mut suite = suite(1, vec![cell("x", true)]);
    suite.servers[0].command = ["sleep", "600"].map(str::to_owned).into();
    suite.servers[0].ready_within = Duration::ZERO;
    let error = play(&suite, &out, &[]).conclusion.expect_err("it does not serve").to_string();
    assert!(error.contains("does not serve on 127.0.0.1:"), "{error}");
}

#[test]
fn a_server_is_prepared_once_all_members_serve() {
    let out = directory();
    let mut suite = suite(1, vec![cell("x", true)]);
    let prepare = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let prepared = out.path().join("prepared");
    suite.servers[0].prepare = prepare(&format!("echo {{id}} >> {}", prepared.display()));
    play(&suite, &out, &[Act::Rate(1.0), Act::Rate(1.0)]).summary();
    assert_eq!(std::fs::read_to_string(&prepared).expect("it was written"), "1\n");

    let out = directory();
    suite.servers[0].prepare = prepare("echo no split point; exit 4");
    let error = play(&suite, &out, &[]).conclusion.expect_err("it is not prepared").to_string();
    assert!(error.contains("a: is not prepared: sh ended with exit status: 4"), "{error}");
    assert!(error.contains("no split point"), "{error}");
}

#[test]
fn members_have_places_of_their_own() {
    let out = directory();
    let mut suite = suite(1, vec![cell("x", true)]);
    suite.servers[1].members = 3;
    let stop = AtomicBool::new(false);
    let mut hosts = Vec::new();
    struct Hosts<'a>(&'a mut Vec<Vec<String>>);
    impl Runner for Hosts<'_> {
        fn run(
            &mut self,
            cell: &Cell,
            _: &ServerTemplate,
            hosts: &[String],
            pids: &[u32],
        ) -> Result<RunReport, BenchError> {
            assert_eq!(hosts.len(), pids.len());
            self.0.push(hosts.to_vec());
            Ok(report(cell, 1.0))
        }
    }
    run(&suite, out.path(), &mut Hosts(&mut hosts), &stop, &mut ToldLines::default()).expect("it runs");
    let mut distinct = hosts.concat();
    distinct.sort();
    distinct.dedup();
    assert_eq!((hosts[0].len(), hosts[1].len(), distinct.len()), (1, 3, 4));
}

#[test]
fn a_shell_around_a_server_counts_and_ends_with_it() {
    let out = directory();
    let mut suite = suite(1, vec![cell("x", true)]);
    let command = suite.servers[1].command.join(" ");
    suite.servers[1].command = ["sh", "-c", &format!("{command}; true")].map(str::to_owned).into();
    let mut pids = Vec::new();
    struct Pids<'a>(&'a mut Vec<Vec<u32>>);
    impl Runner for Pids<'_> {
        fn run(
            &mut self,
            cell: &Cell,
            _: &ServerTemplate,
            _: &[String],
            pids: &[u32],
        ) -> Result<RunReport, BenchError> {
            self.0.push(pids.to_vec());
            Ok(report(cell, 1.0))
        }
    }
    let stop = AtomicBool::new(false);
    run(&suite, out.path(), &mut Pids(&mut pids), &stop, &mut ToldLines::default()).expect("it runs");
    assert_eq!((pids[0].len(), pids[1].len()), (1, 2));
    assert!(!pids.concat().iter().any(|pid| is_running(*pid)), "{pids:?} still run");
}

/// True if there is such a process, and it has not just ended without being waited for.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn znodes_are_loaded_for_their_memory() {
    let out = directory();
    let znodes = Znodes { znodes: 5000, value_bytes: 10, name_bytes: 8, parents: 10, below: String::new() };
    let suite = suite(1, vec![Measurement::Memory(znodes)]);
    let summary = play(&suite, &out, &[]).summary();
    assert_eq!(summary.groups[0].figures[0].name, "memory per znode");
    assert!(summary.groups[0].figures.iter().all(|figure| figure.servers.iter().all(Option::is_some)));
}

#[test]
fn charts_show_what_was_measured() {
    let out = directory();
    let suite = suite(1, vec![cell("x", true)]);
    let summary = play(&suite, &out, &[Act::Rate(5.0), Act::Refuse]).summary();
    let charts = charts(&summary);
    let Chart::Bars(throughput) = &charts[0] else { panic!("a suite is shown by bars") };
    assert_eq!((throughput.title.as_str(), throughput.unit), ("Throughput", Unit::PerSecond));
    assert_eq!(throughput.groups, ["x 1×1, 10"]);
    let bars = [("a".to_owned(), vec![Some(5.0)]), ("b".to_owned(), vec![None])];
    assert_eq!(throughput.series, bars);
    let titles: Vec<&str> = charts
        .iter()
        .filter_map(|chart| match chart {
            Chart::Bars(bars) => Some(bars.title.as_str()),
            Chart::Lines(_) => None,
        })
        .collect();
    assert!(
        titles.contains(&"Peak memory by requests") && !titles.contains(&"Memory of each znode"),
        "{titles:?}"
    );
    let row = "| x, 1 session × 1 in flight, 10 requests | throughput | 5.00/s | – | – |";
    assert!(markdown(&summary).contains(row), "{}", markdown(&summary));
    let page = fs::read_to_string(out.path().join("report.html")).expect("the page is written");
    assert!(page.contains("it sings") && page.contains("Peak memory by requests"));
}
