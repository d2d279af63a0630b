//! Operators are told the same by Apache ZooKeeper and by Paddock: every four-letter word and every command of the
//! AdminServer, asked of both in the same state, field by field.
//!
//! A field is a name with the names of what it stands in; `#` stands for a number in a name or the place in a list, `SESSION` for
//! the session's id. Fields that one of them has alone, and values that differ, are listed by
//! [`differences`], each with its reason. A row that is not needed fails the test, too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::operating::{Difference, FieldDifference, differences, differences_in_ensembles};
use paddock_tests::server::{Server, ServerKind, free_port};
use paddock_tests::waiting::wait_until;
use serde_json::Value;

/// Words in the order in which they are asked: those that reset what is counted come last.
const WORDS: [&str; 19] = [
    "ruok", "isro", "conf", "envi", "dirs", "srvr", "stat", "mntr", "cons", "dump", "wchs", "wchc", "wchp",
    "gtmk", "hash", "lead", "nope", "crst", "srst",
];

const COMMANDS: [&str; 28] = [
    "configuration",
    "connections",
    "dirs",
    "dump",
    "environment",
    "get_trace_mask",
    "hash",
    "initial_configuration",
    "is_read_only",
    "last_snapshot",
    "leader",
    "monitor",
    "observers",
    "ruok",
    "server_stats",
    "set_trace_mask",
    "set_trace_mask?traceMask=2",
    "stats",
    "system_properties",
    "voting_view",
    "watch_summary",
    "watches",
    "watches_by_path",
    "zabstate",
    "nonsense",
    "observer_connection_stat_reset",
    "connection_stat_reset",
    "stat_reset",
];

/// Fields of an answer with their values.
type OperatingFields = BTreeMap<String, String>;

/// A server in the state that is looked at.
struct OperatingStage<'s> {
    server: &'s Server,
    admin: SocketAddr,
    session: i64,
}

/// A client whose session lives on while nothing runs: no pings are counted, and the session lives longer than the test takes.
struct IdleClient {
    client: Client,
    _runtime: tokio::runtime::Runtime,
}

impl IdleClient {
    /// Brings the server at an address into the state that is looked at.
    fn at(address: SocketAddr) -> IdleClient {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("make a runtime");
        IdleClient { client: runtime.block_on(work(address)), _runtime: runtime }
    }
}

/// Settings of a server with an interface for administrators.
fn settings(admin_port: u16) -> [(String, String); 4] {
    let port = admin_port.to_string();
    let settings = [
        ("admin.enableServer", "true"),
        ("admin.serverAddress", "127.0.0.1"),
        ("admin.serverPort", &*port),
        ("snapCount", "100000"),
    ];
    settings.map(|(key, value)| (key.to_owned(), value.to_owned()))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl OperatingStage<'_> {
    fn word(&self, word: &str) -> OperatingFields {
        text_fields(&self.server.four_letter_word(word).expect("a word is answered"), self.session)
    }

    fn command(&self, command: &str) -> OperatingFields {
        let (status, body) = get(self.admin, &format!("/commands/{command}"));
        let mut fields = OperatingFields::from([("status".to_owned(), status.to_string())]);
        let value = serde_json::from_slice(&body);
        let value: Value = value.unwrap_or_else(|_| panic!("{command}: {}", String::from_utf8_lossy(&body)));
        json_fields("", &value, self.session, &mut fields);
        fields
    }
}

/// Brings a server into the state: three znodes, an ephemeral one among them, and watches.
async fn work(address: SocketAddr) -> Client {
    let options = ClientOptions { session_timeout: Duration::from_secs(40), ..ClientOptions::default() };
    let client = Client::connect(&address.to_string(), options).await.expect("connect");
    client.create("/a", b"12345", CreateMode::Persistent).await.expect("create");
    client.create("/a/b", b"", CreateMode::Persistent).await.expect("create");
    client.create("/a/e", b"678", CreateMode::Ephemeral).await.expect("create");
    client.set_data("/a", b"54321", None).await.expect("write");
    client.get_data("/a").await.expect("read");
    client.watch_data("/a").await.expect("watch");
    client.watch_children("/a").await.expect("watch");
    client
}

fn get(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("connect to the port for administrators");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is connected");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("ask");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer.split_off(end + 4))
}

/// A part of a name: `SESSION` for the id of the session, `#` for another number.
fn name(text: &str, session: i64) -> String {
    if text == session.to_string() || text == format!("0x{session:x}") {
        return "SESSION".into();
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { "#".into() } else { text.into() }
}

fn json_fields(path: &str, value: &Value, session: i64, fields: &mut OperatingFields) {
    let below = |part: &str| if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") };
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                json_fields(&below(&name(key, session)), value, session, fields);
            }
        }
        Value::Array(items) => {
            fields.insert(path.to_owned(), format!("{} items", items.len()));
            for item in items {
                json_fields(&below("#"), item, session, fields);
            }
        }
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            fields.insert(path.to_owned(), name_of_value(&text, session));
        }
    }
}

/// Values are kept but for the session's id.
fn name_of_value(text: &str, session: i64) -> String {
    if text == session.to_string() || text == format!("0x{session:x}") {
        "SESSION".into()
    } else {
        text.into()
    }
}

/// A line without ports of clients and times, which are others each time.
fn steady(line: &str) -> String {
    if let Some((sessions, _)) = line.split_once(" expire at ") {
        return format!("{sessions} expire at TIME");
    }
    // An earlier word's connection may still be there.
    if let Some((sets, _)) = line.split_once(" Sets (") {
        return format!("{sets} Sets");
    }
    match line.trim_start().strip_prefix("ip: /") {
        Some(rest) => format!("ip ADDRESS sessionId {}", rest.rsplit(' ').next().unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Values of a field that several connections have, in order.
fn sorted(values: &str, value: &str) -> String {
    let mut all: Vec<&str> = values.split_whitespace().chain([value]).collect();
    all.sort_unstable();
    all.join(" ")
}

/// Fields of a text: lines with a name and a value, or lists of them in brackets behind an address.
fn text_fields(text: &str, session: i64) -> OperatingFields {
    let mut fields = OperatingFields::new();
    for line in text.lines() {
        let line = steady(line);
        let line = line.as_str();
        if let Some((_, details)) = line.split_once("](").filter(|_| line.starts_with(" /")) {
            fields.insert("connection".into(), String::new());
            for detail in details.trim_end_matches(')').split(',') {
                let (key, value) = detail.split_once('=').unwrap_or((detail, ""));
                let values = fields.entry(format!("connection.{key}")).or_default();
                *values = sorted(values, &name_of_value(value, session));
            }
            continue;
        }
        let split = ["\t", "=", ": ", ":"].iter().find_map(|mark| line.split_once(mark));
        let (key, value) = split.filter(|(key, _)| !key.is_empty()).unwrap_or((line, ""));
        let key: Vec<String> = key.split(' ').map(|part| name(part.trim(), session)).collect();
        fields.insert(key.join(" "), name_of_value(value.trim(), session));
    }
    fields
}

/// All that two answers to the same question differ in.
fn compare(
    asked: &str,
    zookeeper: &OperatingFields,
    paddock: &OperatingFields,
) -> Vec<(String, FieldDifference)> {
    let names: BTreeSet<&String> = zookeeper.keys().chain(paddock.keys()).collect();
    let found = |name: &String| match (zookeeper.get(name), paddock.get(name)) {
        (Some(left), Some(right)) if left == right => None,
        (Some(left), Some(right)) => Some(FieldDifference::Values(left.clone(), right.clone())),
        (Some(left), None) => Some(FieldDifference::ZooKeeperOnly(left.clone())),
        (None, Some(right)) => Some(FieldDifference::PaddockOnly(right.clone())),
        (None, None) => None,
    };
    names.into_iter().filter_map(|name| Some((format!("{asked} {name}"), found(name)?))).collect()
}

/// ClickHouse Keeper's words that move the lead, which ZooKeeper does not have.
#[test]
fn the_lead_goes_to_the_member_that_asks_for_it() {
    let mut ensemble = Ensemble::start(3);
    for _ in 0..3 {
        let leader = ensemble.leader();
        let wanted = (leader + 1) % ensemble.len();
        let answer = ensemble.member(wanted).four_letter_word("rqld").expect("rqld is answered");
        assert_eq!(answer, "Sent leadership request to leader.");
        let mut asked = Instant::now();
        wait_until("the member that asked leads", || {
            // A leader that was elected a moment ago may not hand over yet, and keeps no request, as in ClickHouse Keeper.
            if asked.elapsed() > Duration::from_secs(2) {
                asked = Instant::now();
                let _ = ensemble.member(wanted).four_letter_word("rqld");
            }
            ensemble.member(wanted).four_letter_word("srvr").is_ok_and(|text| text.contains("Mode: leader"))
        });
        let leader = ensemble.leader();
        assert_eq!(leader, wanted);
        let answer = ensemble.member(leader).four_letter_word("ydld").expect("ydld is answered");
        assert_eq!(answer, "Sent yield leadership request to leader.");
        wait_until("the leader has yielded", || {
            ensemble.self_declared_leader().is_some_and(|now| now != leader)
        });
    }
}

#[test]
fn every_word_and_command_tells_what_zookeeper_tells() {
    let start = |kind| {
        let port = free_port();
        let settings = settings(port);
        let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (&**key, &**value)).collect();
        (Server::start_with(kind, &settings), loopback(port))
    };
    let (zookeeper, paddock) = thread::scope(|scope| {
        let zookeeper = scope.spawn(|| start(ServerKind::ZooKeeper));
        let paddock = start(ServerKind::Paddock);
        (zookeeper.join().expect("ZooKeeper starts"), paddock)
    });
    let clients = [&zookeeper, &paddock].map(|(server, _)| IdleClient::at(server.address()));
    let [zookeeper, paddock] =
        [(&zookeeper, &clients[0]), (&paddock, &clients[1])].map(|((server, admin), client)| {
            OperatingStage { server, admin: *admin, session: client.client.session().0 }
        });
    judge(&differences(), &found_between(&zookeeper, &paddock), true);
}

/// Three members on each side: the leaders are compared, and two followers, with the client at one of them.
#[test]
fn a_leader_and_a_follower_tell_what_zookeepers_tell() {
    let start = |kind| {
        let lines = server_lines(3);
        let ports = [(); 3].map(|()| free_port());
        let ensemble = Ensemble::start_each_of(kind, 3, &lines, |id| settings(ports[id - 1]).to_vec());
        (ensemble, ports)
    };
    let (mut zookeeper, mut paddock) = thread::scope(|scope| {
        let zookeeper = scope.spawn(|| start(ServerKind::ZooKeeper));
        let paddock = start(ServerKind::Paddock);
        (zookeeper.join().expect("ZooKeeper starts"), paddock)
    });
    let mut clients = Vec::new();
    let mut places = Vec::new();
    for (ensemble, _) in [&mut zookeeper, &mut paddock] {
        let leader = ensemble.leader();
        let follower = (leader + 1) % 3;
        clients.push(IdleClient::at(ensemble.member(follower).address()));
        ensemble.settle();
        places.push([leader, follower]);
    }
    let mut meant = differences();
    meant.extend(differences_in_ensembles());
    let mut found = Vec::new();
    // The leader's place among those of its side, and the follower's.
    for role in [0, 1] {
        let stage = |side: usize| {
            let (ensemble, ports) = if side == 0 { &zookeeper } else { &paddock };
            let place = places[side][role];
            let session = clients[side].client.session().0;
            OperatingStage { server: ensemble.at(place), admin: loopback(ports[place]), session }
        };
        let (left, right) = (stage(0), stage(1));
        found.extend(found_between(&left, &right));
    }
    judge(&meant, &found, false);
    let own: Vec<Difference> = differences_in_ensembles();
    let idle: Vec<&Difference> = own.iter().filter(|difference| is_idle(difference, &found)).collect();
    assert!(idle.is_empty(), "there is no such difference any more: {idle:#?}");
}

/// All that two servers tell differently.
fn found_between(
    zookeeper: &OperatingStage<'_>,
    paddock: &OperatingStage<'_>,
) -> Vec<(String, FieldDifference)> {
    let mut found = Vec::new();
    for word in WORDS {
        found.extend(compare(word, &zookeeper.word(word), &paddock.word(word)));
    }
    for command in COMMANDS {
        let asked = format!("/{command}");
        found.extend(compare(&asked, &zookeeper.command(command), &paddock.command(command)));
    }
    found
}

/// Every difference that was found has to be meant, and if `all` are wanted, every one that is meant has to be found.
fn judge(meant: &[Difference], found: &[(String, FieldDifference)], all: bool) {
    let unknown: Vec<String> = found
        .iter()
        .filter(|(field, found)| !meant.iter().any(|difference| difference.covers(field, found)))
        .map(|(field, found)| format!("{field}: {found}"))
        .collect();
    assert!(unknown.is_empty(), "{} differences that have no reason:\n{}", unknown.len(), unknown.join("\n"));
    let idle: Vec<&Difference> =
        meant.iter().filter(|difference| all && is_idle(difference, found)).collect();
    assert!(idle.is_empty(), "there is no such difference any more: {idle:#?}");
}

fn is_idle(difference: &Difference, found: &[(String, FieldDifference)]) -> bool {
    difference.is_steady() && !found.iter().any(|(field, found)| difference.covers(field, found))
}
