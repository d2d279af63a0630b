use super::*;

const SERVERS: &str = r#"
[[server]]
name = "a"
command = ["${PROGRAM}", "{dir}/zoo.cfg"]
files = { "zoo.cfg" = "clientPort={port}" }
[[server]]
name = "b"
members = 3
command = ["b"]
ready_within = "500ms"
"#;

const WORKLOAD: &str = r#"
[[workload]]
name = "create"
sessions = [1]
window = [1]
time = "1s"
"#;

fn read(text: &str) -> Result<Suite, BenchError> {
    let directory = tempfile::tempdir().expect("make a directory");
    let file = directory.path().join("suite.toml");
    fs::write(&file, text).expect("write the suite");
    fs::write(directory.path().join("own.yaml"), "generator: {}").expect("write a workload");
    load(&file, &|name| (name == "PROGRAM").then(|| "/bin/a".to_owned()))
}

/// Checks that a file is refused, with its line.
fn check(text: &str, expected: &str) {
    let error = read(text).expect_err("it is wrong").to_string();
    let found = error.split_once("suite.toml:").map_or(error.as_str(), |(_, found)| found);
    assert!(found.starts_with(expected), "{found:?} does not start with {expected:?}");
}

#[test]
fn a_whole_suite() {
    let suite = read(&format!(
        r#"name = "x"
        repetitions = 2
        baseline = "b"
        [files]
        "zoo.cfg" = "clientPort={{port}} of all"
        {SERVERS}
        [[workload]]
        name = "create"
        sessions = [1, 10]
        window = [1, 100]
        requests = [80000]
        warm_up = "1500ms"
        servers = ["a"]
        [[workload]]
        name = "own.yaml"
        sessions = [1]
        rate = [1000]
        time = "2m"
        fresh = false
        [[memory]]
        znodes = 1000
        value_bytes = 100
        name_bytes = 13
        parents = 10
        servers = ["a"]
        [[idle]]
        sessions = [10, 100]
        watches = 1
        [[snapshot]]
        znodes = 1000
        value_bytes = 100
        name_bytes = 13
        parents = 10
        values = "random"
        writes = 5000
        time = "4s"
        servers = ["b"]
        [[growth]]
        watches = [0, 1000]
        time = "1s"
        warm_up = "1s"
        "#
    ))
    .expect("it is right");
    assert_eq!((suite.repetitions, suite.baseline, suite.servers.len()), (2, 1, 2));
    assert_eq!(suite.servers[0].command, ["/bin/a", "{dir}/zoo.cfg"]);
    assert_eq!(suite.servers[0].files["zoo.cfg"], "clientPort={port}");
    assert_eq!(suite.servers[1].files["zoo.cfg"], "clientPort={port} of all");
    assert_eq!((suite.servers[1].members, suite.servers[1].ready_within.as_millis()), (3, 500));
    let prepared =
        format!("name = \"n\"\n{SERVERS}prepare = [\"sh\", \"fill.sh\", \"{{port}}\"]\n{WORKLOAD}");
    let prepared = read(&prepared).expect("it is good");
    assert_eq!([0, 1].map(|server: usize| prepared.servers[server].prepare.len()), [0, 3]);
    let compressed =
        read(&format!("name = \"n\"\n{SERVERS}use_compression = true\n{WORKLOAD}")).expect("it is good");
    assert_eq!([0, 1].map(|server: usize| compressed.servers[server].use_compression), [false, true]);
    let secure =
        read(&format!("name = \"n\"\n{SERVERS}tls_ca = \"ca.pem\"\n{WORKLOAD}")).expect("it is good");
    assert_eq!([0, 1].map(|server: usize| secure.servers[server].tls_ca.is_some()), [false, true]);
    assert!(suite.workload_files["own.yaml"].path.ends_with("own.yaml"));
    let measurements: Vec<String> = suite.measurements.iter().map(ToString::to_string).collect();
    let expected = [
        "create, 1 session × 1 in flight, 80000 requests",
        "create, 1 session × 100 in flight, 80000 requests",
        "create, 10 sessions × 1 in flight, 80000 requests",
        "create, 10 sessions × 100 in flight, 80000 requests",
        "own.yaml, 1 session, 1000 requests/s, 120 s",
        "memory of 1000 znodes of 100 bytes with names of 13",
        "10 to 100 idle sessions with a watch each",
        "snapshots of 1000 znodes of 100 bytes of noise",
        "0 and 1000 watches",
    ];
    assert_eq!(measurements, expected);
    assert_eq!(
        suite.only,
        BTreeMap::from([(0, vec![0]), (1, vec![0]), (2, vec![0]), (3, vec![0]), (5, vec![0]), (7, vec![1])])
    );
    let Measurement::Run(cell) = &suite.measurements[0] else { panic!("it is a run") };
    assert_eq!((cell.warm_up_s, cell.fresh), (1.5, true));
}

#[test]
fn comments_do_not_change_the_meaning() {
    let text = format!("name = \"x\"{SERVERS}{WORKLOAD}");
    assert_eq!(read(&text).ok(), read(&format!("# a comment\n{text}")).ok());
}

#[test]
fn keys_that_are_not_known() {
    check("name = \"x\"\nnme = 1", "2: unknown field `nme`");
    check(&format!("name = \"x\"{SERVERS}port = 1{WORKLOAD}"), "11: unknown field `port`");
    check(&format!("name = \"x\"{SERVERS}{WORKLOAD}windows = [1]"), "17: unknown field `windows`");
    check("name = \"x\"\nrepetitions = \"two\"", "2: invalid type");
    check("name = ", "1: ");
}

#[test]
fn servers_that_cannot_be() {
    let server = |lines: &str| format!("name = \"x\"\n[[server]]\n{lines}\n{WORKLOAD}");
    check("name = \"x\"", "1: the suite needs at least one [[server]]");
    check(&server("name = \"a/b\"\ncommand = [\"x\"]"), "3: a server's name");
    check(&server("name = \"a\"\ncommand = []"), "2: command must name a program");
    check(&server("name = \"a\"\ncommand = [\"x\"]\nmembers = 0"), "2: members must be");
    check(&server("name = \"a\"\ncommand = [\"x\", \"{prot}\"]"), "4: there is no placeholder {prot}");
    check(&server("name = \"a\"\ncommand = [\"${NONE}\"]"), "4: the environment has no NONE");
    check(&server("name = \"a\"\ncommand = [\"x\"]\nfiles = { \"../x\" = \"\" }"), "5: a file must be named");
    check(&server("name = \"a\"\ncommand = [\"x\"]\nready_within = \"10\""), "5: \"10\" is no time");
    let twice = "name = \"a\"\ncommand = [\"x\"]\n[[server]]\nname = \"a\"\ncommand = [\"x\"]";
    check(&server(twice), "6: two servers have the name a");
    check(&format!("name = \"x\"\nbaseline = \"z\"{SERVERS}{WORKLOAD}"), "2: no server has the name z");
}

#[test]
fn workloads_that_cannot_be() {
    let workload = |lines: &str| format!("name = \"x\"{SERVERS}[[workload]]\n{lines}");
    check(&format!("name = \"x\"{SERVERS}"), "1: the suite needs at least one [[workload]]");
    check(
        &workload("name = \"create\"\nsessions = [1]\ntime = \"1s\""),
        "11: a workload has either a window",
    );
    check(&workload("name = \"create\"\nsessions = [1]\nwindow = [1]"), "11: a workload has either requests");
    check(
        &workload("name = \"create\"\nsessions = [0]\nwindow = [1]\ntime = \"1s\""),
        "11: sessions must be",
    );
    check(
        &workload("name = \"create\"\nsessions = [1]\nwindow = [0]\ntime = \"1s\""),
        "11: window or rate must",
    );
    check(
        &workload("name = \"create\"\nsessions = [1]\nwindow = [1]\nrequests = [0]"),
        "11: requests must be",
    );
    check(
        &workload("name = \"crate\"\nsessions = [1]\nwindow = [1]\ntime = \"1s\""),
        "12: there is no workload \"crate\"",
    );
    let no_file = "name = \"no.yaml\"\nsessions = [1]\nwindow = [1]\ntime = \"1s\"";
    check(&workload(no_file), "12: read ");
    check(
        &format!("name = \"x\"{SERVERS}{WORKLOAD}{WORKLOAD}"),
        "18: create, 1 session × 1 in flight, 1 s is",
    );
    let memory = "[[memory]]\nznodes = 1001\nvalue_bytes = 1\nname_bytes = 3\nparents = 1";
    check(&format!("name = \"x\"{SERVERS}{memory}"), "11: 1001 znodes need names of at least 4 bytes");
}

#[test]
fn networks() {
    let suite = |network: &str, workload: &str| {
        format!("name = \"x\"{SERVERS}[[network]]\nname = \"slow\"\n{network}\n{WORKLOAD}{workload}")
    };
    let of_three = "servers = [\"b\"]\nnetwork = [\"slow\"]";
    let followers = "followers = [{ delay = \"50ms\", jitter = \"5ms\" }, { lost_one_in = 100 }]";
    let read_suite = read(&suite(followers, of_three)).expect("it is good");
    assert_eq!(
        read_suite.servers.iter().map(|server| server.through_relays).collect::<Vec<_>>(),
        [false, true]
    );
    let Measurement::Run(cell) = &read_suite.measurements[0] else { panic!("it is a run") };
    assert_eq!(cell.to_string(), "create, 1 session × 1 in flight, 1 s, slow");
    let network = cell.network.as_ref().expect("it has a network");
    let followers = network
        .followers
        .iter()
        .map(|quality| (quality.delay.as_millis(), quality.jitter.as_millis(), quality.lost_one_in));
    assert_eq!(followers.collect::<Vec<_>>(), [(50, 5, 0), (0, 0, 100)]);
    let twice = "[[network]]\nname = \"slow\"";
    check(&suite(twice, of_three), "14: two networks have the name slow");
    check(&suite("", "network = [\"slow\"]"), "15: only members of an ensemble have links");
    check(&suite("", "network = [\"fast\"]"), "15: no network has the name fast");
    check(&suite("", "network = []"), "15: network must name at least one");
    check(&suite("leader = { delya = \"1s\" }", of_three), "13: unknown field `delya`");
    check(&suite("followers = [{}, {}, {}]", of_three), "15: there are more qualities");
    let all = "leader = { lost_one_in = 9 }\nfollowers = [{ delay = \"1s\" }, { delay = \"1s\" }]\nclients_elsewhere = true";
    check(&suite(all, of_three), "17: clients_elsewhere needs a member");
}

#[test]
fn what_cannot_be_held() {
    let entry = |lines: &str| format!("name = \"x\"{SERVERS}{lines}");
    check(&entry("[[idle]]\nsessions = [0, 1]\nwatches = 0"), "11: sessions must begin with");
    check(&entry("[[idle]]\nsessions = [5, 5]\nwatches = 0"), "11: sessions must be a small number");
    check(&entry("[[idle]]\nsessions = [1, 5]\nwatches = 0\nservers = [\"z\"]"), "14: no server has");
    check(&entry("[[idle]]\nsessions = [1, 5]\nwatches = 0\nservers = []"), "14: servers must name");
    let snapshot = |lines: &str| {
        let tree = "znodes = 11\nvalue_bytes = 1\nparents = 1\nvalues = \"text\"";
        entry(&format!("[[snapshot]]\n{tree}\n{lines}"))
    };
    check(&snapshot("name_bytes = 1\nwrites = 1\ntime = \"1s\""), "11: 11 znodes need names");
    check(&snapshot("name_bytes = 2\nwrites = 0\ntime = \"1s\""), "11: writes must be");
    check(&snapshot("name_bytes = 2\nwrites = 1"), "11: time must be");
    check(&entry("[[growth]]\ntime = \"1s\""), "11: either znodes, sessions or watches grow");
    check(&entry("[[growth]]\nznodes = [0, 1]\ntime = \"1s\""), "11: what grows must be");
    check(&entry("[[growth]]\nsessions = [1, 2]"), "11: time must be");
}

#[test]
fn the_suites_of_this_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let load = |file: &str| load(&root.join(file), &|name| Some(name.to_owned())).expect("it is right");
    load("docs/examples/bench/suite.toml");
    for name in [
        "size",
        "size-quick",
        "size-long",
        "reads",
        "reads-quick",
        "log",
        "log-quick",
        "before",
        "before-quick",
        "production",
        "production-long",
        "production-quick",
        "faults",
        "faults-quick",
        "stress",
        "stress-quick",
    ] {
        load(&format!("tests/compare/{name}.toml"));
    }
    let suites = ["default", "long", "quick"].map(|name| load(&format!("tests/compare/{name}.toml")));
    assert_eq!(suites[2].servers, suites[0].servers);
    assert_eq!(suites[1].servers, suites[0].servers[..2], "the bare server knows no reads");
    let is_new = |measurement| !suites[0].measurements.contains(measurement);
    assert!(suites[1].measurements.iter().all(is_new), "nobody waits twice for the same");
}
