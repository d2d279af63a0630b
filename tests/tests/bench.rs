//! `paddock bench run` as its users run it, against Paddock and against Apache ZooKeeper.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use std::{env, io, thread};

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ConnectResponse, ErrorCode, OpCode, Password, SessionId, frame};
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::{Server, ServerKind};
use serde_json::Value;

const WORKLOADS: [&str; 8] =
    ["create", "mixed", "clickhouse", "suite", "smoketest", "zkboom", "watches", "sessions"];

fn bench(arguments: &[&str]) -> Command {
    let paddock = env::var("PADDOCK_BIN").expect("PADDOCK_BIN is not set: run `cargo xtask test process`");
    let mut command = Command::new(paddock);
    command.args(["bench", "run"]).args(arguments);
    command
}

/// Runs to the end, whatever comes of it.
fn output(arguments: &[&str]) -> Output {
    bench(arguments).output().expect("run paddock bench")
}

/// Runs with `--json`; it must succeed.
fn report(arguments: &[&str]) -> Value {
    let output = output(&[arguments, &["--json", "--quiet"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}\n{}", stderr(&output), stdout(&output));
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// Starts a run against `server` and returns when the server has taken `packets` packets of it.
fn start(server: &Server, arguments: &[&str], packets: u64) -> Child {
    let hosts = server.address().to_string();
    let mut run = bench(&[arguments, &["--hosts", &hosts, "--json", "--quiet"]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run paddock bench");
    await_packets(server, packets, &mut run);
    run
}

/// Waits until the server has taken `packets` packets; fails if the run, which sends them, ends before.
fn await_packets(server: &Server, packets: u64, run: &mut Child) {
    while packets_received(server) < packets {
        let end = run.try_wait().expect("look at paddock bench");
        assert!(end.is_none(), "the run ended before the server had {packets} packets: {end:?}");
        thread::yield_now();
    }
}

/// Waits for the end of a run: its exit code and its report, which there has to be.
fn finish(run: Child) -> (Option<i32>, Value) {
    let output = run.wait_with_output().expect("wait for paddock bench");
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("no report: {error}: {}", stdout(&output))))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn every_workload_runs_without_an_error(kind: ServerKind) {
    let server = Server::start(kind);
    let hosts = server.address().to_string();
    let pid = server.pid().to_string();
    for workload in WORKLOADS {
        // The system counts CPU in hundredths of a second: fewer requests may take none.
        let limit = if workload == "smoketest" { ["--requests", "3000"] } else { ["--time", "1s"] };
        let report = report(&[&[workload, "--hosts", &hosts, "--pid", &pid], &limit[..]].concat());
        assert_eq!(report["errors"], 0, "{workload}: {report}");
        assert_eq!(report["ended"], "complete", "{workload}: {report}");
        for operation in report["operations"].as_array().expect("a list of operations") {
            assert!(operation["requests"].as_u64() > Some(0), "{workload}: {operation}");
        }
        assert!(report["server"]["cpu_us_per_request"].as_f64() > Some(0.0), "{workload}: {report}");
        assert!(report["server"]["resident_bytes_peak"].as_u64() > Some(1_000_000), "{workload}: {report}");
    }
    let srvr = server.four_letter_word("srvr").expect("ask the server");
    let left = srvr.lines().find(|line| line.starts_with("Node count")).expect("srvr counts znodes");
    assert!(left == "Node count: 4" || left == "Node count: 5", "znodes are left behind: {srvr}");
}

#[test]
fn every_workload_runs_without_an_error_on_paddock() {
    every_workload_runs_without_an_error(ServerKind::Paddock);
}

#[test]
fn every_workload_runs_without_an_error_on_zookeeper() {
    every_workload_runs_without_an_error(ServerKind::ZooKeeper);
}

/// A server whose port for clients speaks TLS only and believes certificates of one authority. `directory` has them.
fn with_tls(directory: &Path, kind: ServerKind) -> Server {
    pem_stores(directory, "ours", 2);
    let path = |name: &str| directory.join(name).display().to_string();
    let lines = [
        ("client.portUnification", "true".to_owned()),
        ("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned()),
        ("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider".to_owned()),
        ("ssl.keyStore.location", path("1.pem")),
        ("ssl.trustStore.location", path("trust.pem")),
        ("ssl.clientAuth", "need".to_owned()),
    ];
    Server::start_with(kind, &lines.each_ref().map(|(key, value)| (*key, value.as_str())))
}

fn workloads_run_over_tls(kind: ServerKind, workloads: &[&str]) {
    let directory = tempfile::tempdir().expect("make a directory");
    let server = with_tls(directory.path(), kind);
    let hosts = server.address().to_string();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (trust, own) = (path("trust.pem"), path("2.pem"));
    let tls = ["--hosts", &hosts, "--tls-ca", &trust, "--tls-cert", &own];
    for &workload in workloads {
        let limit = if workload == "smoketest" { ["--requests", "1000"] } else { ["--time", "500ms"] };
        let report = report(&[&[workload], &tls[..], &limit[..]].concat());
        assert_eq!((&report["errors"], &report["ended"]), (&0.into(), &"complete".into()), "{report}");
        assert!(report["requests"].as_u64() > Some(0), "{report}");
    }
    // More than a record, a buffer of the library and the socket hold, both ways.
    let large = ["--value-bytes", "300000", "--window", "20", "--time", "500ms", "--znodes", "10"];
    for workload in ["get", "set"] {
        let report = report(&[&[workload], &tls[..], &large[..]].concat());
        assert_eq!((&report["errors"], &report["ended"]), (&0.into(), &"complete".into()), "{report}");
    }
    let run = |more: &[&str]| {
        let load = ["create", "--hosts", &hosts, "--time", "500ms", "--connect-timeout", "5s"];
        let output = output(&[&load, more].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    // Who shows no certificate, or does not believe the server, measures nothing.
    run(&["--tls-skip-verify"]);
    let other = tempfile::tempdir().expect("make a directory");
    pem_stores(other.path(), "theirs", 1);
    let theirs = other.path().join("trust.pem").display().to_string();
    let said = run(&["--tls-ca", &theirs, "--tls-cert", &own]);
    assert!(said.contains("invalid peer certificate"), "{said}");
    let skipped = ["create", "--hosts", &hosts, "--requests", "10", "--tls-skip-verify", "--tls-cert", &own];
    report(&skipped);
}

#[test]
fn every_workload_runs_over_tls_on_paddock() {
    workloads_run_over_tls(ServerKind::Paddock, &WORKLOADS);
}

#[test]
fn some_workloads_run_over_tls_on_zookeeper() {
    workloads_run_over_tls(ServerKind::ZooKeeper, &["mixed", "watches", "sessions"]);
}

#[test]
fn every_connection_shows_its_identity() {
    let lines = [("enforce.auth.enabled", "true"), ("enforce.auth.schemes", "digest")];
    for kind in [ServerKind::Paddock, ServerKind::ZooKeeper] {
        let server = Server::start_with(kind, &lines);
        let hosts = server.address().to_string();
        let load = ["mixed", "--hosts", &hosts, "--time", "500ms"];
        assert_eq!(output(&load).status.code(), Some(2), "who shows nothing is not served");
        report(&[&load[..], &["--auth", "digest:ann:secret"]].concat());
    }
}

#[test]
fn what_is_said_can_be_compressed() {
    let server = Server::start(ServerKind::Paddock);
    let hosts = server.address().to_string();
    for workload in ["clickhouse", "mixed", "sessions", "watches"] {
        let load = ["--hosts", &hosts, "--time", "1s", "--use-compression"];
        let report = report(&[&[workload], &load[..]].concat());
        assert_eq!((&report["errors"], &report["ended"]), (&0.into(), &"complete".into()), "{report}");
        assert!(report["requests"].as_u64() > Some(0), "{report}");
    }
    // What is alike in a large value needs no room.
    let sent = |more: &[&str]| {
        let load = ["create", "--hosts", &hosts, "--requests", "500", "--value-bytes", "100000"];
        let report = report(&[&load, more].concat());
        let number = |key: &str| report[key].as_f64().unwrap_or_else(|| panic!("no {key} in {report}"));
        number("bytes_sent_per_second") / number("requests_per_second")
    };
    let (plain, compressed) = (sent(&[]), sent(&["--use-compression"]));
    assert!(compressed < plain, "{compressed} bytes a request instead of {plain}");
}

#[test]
fn what_else_clickhouse_has_can_be_asked_for() {
    let server = Server::start(ServerKind::Paddock);
    let hosts = server.address().to_string();
    for extensions in [
        &["--use-xid-64"][..],
        &["--enable-tracing"],
        &["--use-xid-64", "--enable-tracing"],
        &["--use-xid-64", "--enable-tracing", "--use-compression"],
    ] {
        for workload in ["clickhouse", "mixed", "sessions", "watches"] {
            let load = [workload, "--hosts", &hosts, "--requests", "2000"];
            let report = report(&[&load, extensions].concat());
            assert_eq!((&report["errors"], &report["ended"]), (&0.into(), &"complete".into()), "{report}");
        }
    }
}

#[test]
fn a_server_that_does_not_compress_is_not_measured_as_if_it_did() {
    let server = Server::start(ServerKind::ZooKeeper);
    let hosts = server.address().to_string();
    let output = output(&["create", "--hosts", &hosts, "--time", "1s", "--use-compression", "--quiet"]);
    assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
    let said = format!("{}{}", stderr(&output), stdout(&output));
    assert!(said.contains("it does not compress"), "{said}");
}

/// Files in keeper-bench's form and a recorded log, as they lie in the repository.
fn files_run_as_they_are(kind: ServerKind) {
    let server = Server::start(kind);
    let hosts = server.address().to_string();
    // The first one says itself that its result goes into a file here.
    let directory = tempfile::tempdir().expect("make a directory");
    for (file, limit) in [("mixed.yaml", Some("3000")), ("tagged.yaml", Some("3000")), ("recorded.csv", None)]
    {
        let mut command = bench(&[&example(file), "--hosts", &hosts, "--json", "--quiet"]);
        command.args(limit.iter().flat_map(|limit| ["--requests", limit])).current_dir(directory.path());
        let output = command.output().expect("run paddock bench");
        assert!(output.status.success(), "{file}: {}\n{}", stderr(&output), stdout(&output));
        let report: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
        assert_eq!(
            (&report["errors"], &report["ended"]),
            (&0.into(), &"complete".into()),
            "{file}: {report}"
        );
        assert_eq!(report["requests"], limit.map_or(13, |limit| limit.parse().unwrap()), "{file}: {report}");
    }
    let written = std::fs::read_dir(directory.path()).expect("list the directory").count();
    assert_eq!(written, 1, "the result of mixed.yaml");
}

fn example(name: &str) -> String {
    format!("{}/../docs/examples/bench/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn files_run_as_they_are_on_paddock() {
    files_run_as_they_are(ServerKind::Paddock);
}

#[test]
fn files_run_as_they_are_on_zookeeper() {
    files_run_as_they_are(ServerKind::ZooKeeper);
}

/// The tool counts what the server counts.
fn the_rate_is_the_servers(kind: ServerKind) {
    let server = Server::start(kind);
    let hosts = server.address().to_string();
    let before = packets_received(&server);
    let report = report(&["mixed", "--hosts", &hosts, "--time", "6s", "--keep", "--sessions", "4"]);
    let counted = (packets_received(&server) - before) as f64;
    let told = report["requests"].as_f64().expect("a number of requests");
    assert!((told / counted - 1.0).abs() < 0.1, "the tool says {told}, the server {counted}");

    let elapsed_s = report["elapsed_s"].as_f64().expect("a time");
    let rate = report["requests_per_second"].as_f64().expect("a rate");
    assert!((6.0..8.0).contains(&elapsed_s), "{elapsed_s}");
    assert!((rate * elapsed_s / counted - 1.0).abs() < 0.1, "{rate}/s for {elapsed_s} s is not {counted}");
    let by_seconds: u64 = seconds(&report).iter().map(|(_, requests)| requests).sum();
    assert_eq!(by_seconds, told as u64, "the seconds add up to the whole");
}

#[test]
fn the_rate_is_what_paddock_counts() {
    the_rate_is_the_servers(ServerKind::Paddock);
}

#[test]
fn the_rate_is_what_zookeeper_counts() {
    the_rate_is_the_servers(ServerKind::ZooKeeper);
}

fn packets_received(server: &Server) -> u64 {
    let mntr = server.four_letter_word("mntr").expect("ask the server");
    let value = mntr.lines().find_map(|line| line.strip_prefix("zk_packets_received\t"));
    value.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count of packets in {mntr}"))
}

fn seconds(report: &Value) -> Vec<(f64, u64)> {
    let seconds = report["seconds"].as_array().expect("a list of seconds");
    seconds.iter().map(|s| (s["at_s"].as_f64().unwrap(), s["requests"].as_u64().unwrap())).collect()
}

#[test]
fn an_open_loop_shows_the_time_that_the_server_stood_still() {
    let server = Server::start(ServerKind::Paddock);
    let run = start(&server, &["zkboom", "--rate", "1000", "--time", "5s"], 1000);
    signal("STOP", server.pid());
    // The stall itself is what is tested: it has to last.
    thread::sleep(Duration::from_secs(2));
    signal("CONT", server.pid());
    let (code, report) = finish(run);
    assert_eq!(code, Some(0), "{report}");
    let percentiles = report["latency"]["percentiles"].as_array().expect("a list of percentiles");
    let us =
        |percent: f64| percentiles.iter().find(|p| p["percent"] == percent).unwrap()["us"].as_f64().unwrap();
    assert!((1.8e6..3.5e6).contains(&us(99.9)), "{report}");
    assert!(us(10.0) < 0.5e6, "{report}");
    // Requests that were due while it stood still were sent all the same.
    assert!((4900..5100).contains(&report["requests"].as_u64().unwrap()), "{report}");
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()), "send SIG{name} to {pid}");
}

#[test]
fn a_server_that_dies_leaves_a_report() {
    let mut server = Server::start(ServerKind::Paddock);
    let hosts = server.address().to_string();
    let run = start(&server, &["create", "--time", "60s"], 5000);
    server.kill();
    let (exit, report) = finish(run);
    assert_eq!(exit, Some(1));
    assert!(report["ended"]["server_lost"].as_str().is_some_and(|why| why.contains(&hosts)), "{report}");
    assert!(report["requests"].as_u64() > Some(1000), "{report}");
    assert!(report["errors"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_run_goes_on_with_a_server_that_comes_back() {
    let mut server = Server::start(ServerKind::Paddock);
    let mut run = start(&server, &["create", "--time", "20s", "--continue-on-errors"], 5000);
    server.kill();
    server.restart();
    let before = packets_received(&server);
    await_packets(&server, before + 1000, &mut run);
    let (exit, report) = finish(run);
    assert_eq!(exit, Some(1), "errors are errors");
    assert_eq!(report["ended"], "complete", "{report}");
}

#[test]
fn a_run_that_is_interrupted_leaves_a_report() {
    let server = Server::start(ServerKind::Paddock);
    let run = start(&server, &["create", "--time", "60s"], 5000);
    signal("INT", run.id());
    let (exit, report) = finish(run);
    assert_eq!(exit, Some(130));
    assert_eq!((&report["ended"], &report["errors"]), (&"interrupted".into(), &0.into()), "{report}");
}

/// One clear line on standard error, nothing on standard output, exit code 2.
fn check_refusal(arguments: &[&str], expected: &str) {
    let output = output(arguments);
    let complaint = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
    assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    assert!(complaint.lines().filter(|line| line.starts_with("error: ")).count() == 1, "{complaint}");
    assert_eq!(stdout(&output), "");
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let server = Server::start_with(ServerKind::Paddock, &[("maxClientCnxns", "20")]);
    let hosts = server.address().to_string();
    let nobody = format!("127.0.0.1:{}", paddock_tests::server::free_port());
    check_refusal(&["crate", "--hosts", &hosts], "no workload \"crate\"");
    check_refusal(&["create", "--hosts", &nobody], &format!("connect to {nobody}"));
    check_refusal(&["create", "--hosts", &format!("{hosts},{nobody}")], &format!("connect to {nobody}"));
    check_refusal(&["create", "--hosts", "name.invalid:2181"], "connect to name.invalid:2181");
    check_refusal(&["create", "--hosts", &hosts, "--root", "relative"], "\"relative\"");
    check_refusal(&["create", "--hosts", &hosts, "--root", "/"], "\"/\"");
    check_refusal(&["create", "--hosts", &hosts, "--sessions", "0"], "at least one session");
    check_refusal(&["create", "--hosts", &hosts, "--rate", "0"], "a rate is between");
    check_refusal(&["create", "--hosts", &hosts, "--pid", "4194305"], "no process 4194305");
    check_refusal(&["create", "--hosts", &hosts, "--report", "/nowhere/a.html"], "write /nowhere/a.html");
    check_refusal(
        &["create", "--hosts", &hosts, "--metrics-url", &format!("http://{nobody}/")],
        "no Prometheus page",
    );
    // The last one: the server may count these connections for a moment longer than they are there.
    check_refusal(
        &["create", "--hosts", &hosts, "--sessions", "21", "--connect-timeout", "1s"],
        "maxClientCnxns",
    );
}

#[test]
fn a_wrong_key_is_named_with_its_line() {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("make a file");
    let text = std::fs::read_to_string(example("mixed.yaml")).expect("read the example");
    std::fs::write(file.path(), text.replace("concurrency:", "concurency:")).expect("write the file");
    let path = file.path().to_str().expect("a temporary path is ASCII");
    let line =
        text.lines().position(|line| line.starts_with("concurrency:")).expect("the example has one") + 1;
    check_refusal(&[path, "--hosts", "127.0.0.1:1"], &format!("{path}:{line}: "));
    check_refusal(&[path, "--hosts", "127.0.0.1:1"], "`concurency`");
    check_refusal(&["/no/such.yaml", "--hosts", "127.0.0.1:1"], "/no/such.yaml");
}

#[test]
fn a_host_that_speaks_something_else_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("a bound listener has an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answered = io::Write::write_all(&mut &stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
            answered.expect("answer as a web server would");
        }
    });
    check_refusal(
        &["create", "--hosts", &address],
        &format!("{address} does not speak ZooKeeper's protocol"),
    );
}

/// Against a server that only echoes, what is measured is the tool.
#[test]
fn a_pipelined_request_costs_the_tool_less_than_a_microsecond() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("a bound listener has an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || echo(stream));
        }
    });
    for workload in ["create", "clickhouse"] {
        let arguments = [workload, "--hosts", &address, "--sessions", "4", "--window", "100", "--time", "3s"];
        let report = report(&[&arguments[..], &["--continue-on-errors"]].concat());
        let cost = report["client_cpu_us_per_request"].as_f64().expect("a cost");
        println!("{workload}: {cost:.3} us of CPU per request");
        assert!(report["requests"].as_u64() > Some(10_000), "{report}");
        assert!(cost < 1.0, "{workload} costs {cost} us per request");
    }
}

/// Answers every request with a header; a create also with its path, and a list with the news that nothing is there.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    use io::{Read, Write};
    let mut greeting = [0; 49];
    stream.read_exact(&mut greeting)?;
    let granted = ConnectResponse {
        protocol_version: 0,
        timeout_ms: 30_000,
        session: SessionId(1),
        password: Password::ZERO,
        read_only: Some(false),
    };
    let mut out = Vec::new();
    granted.encode(&mut out);
    stream.write_all(&out)?;

    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let len = stream.read(&mut chunk)?;
        if len == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..len]);
        out.clear();
        let mut used = 0;
        while let Ok(Some((request, len))) = frame::split(&bytes[used..], 1 << 20) {
            frame::write(&mut out, |out| reply(request, out));
            used += len;
        }
        bytes.drain(..used);
        stream.write_all(&out)?;
    }
}

fn reply(request: &[u8], out: &mut Vec<u8>) {
    let mut reader = Reader::new(request);
    let (xid, op) = (reader.i32().expect("a request has an xid"), reader.i32().expect("and an operation"));
    let error = if op == OpCode::GetChildren.code() { ErrorCode::NoNode.code() } else { 0 };
    out.put_i32(xid);
    out.put_i64(1);
    out.put_i32(error);
    if op == OpCode::Create.code() {
        out.put_string(reader.string().expect("a create has a path"));
    }
}
