//! The HTTP interface for administrators.

#[path = "shared/common.rs"]
mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{PATIENCE, config, connect, connect_deaf, shutdown};
use paddock_client::CreateMode;
use paddock_proto::{Acl, Id, Perms};
use paddock_server::{AdminSettings, AdminTls, Config, PortProtocol, Server, WordList};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

fn start_with(settings: AdminSettings) -> (Server, SocketAddr, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let listen = "127.0.0.1:0".parse().ok();
    let with = Config {
        admin_listen: listen,
        metrics_listen: listen,
        admin: settings,
        words: WordList::All,
        ..config(directory.path())
    };
    let server = Server::start(with).unwrap();
    let address = server.admin_address().expect("it is served");
    (server, address, directory)
}

fn start() -> (Server, SocketAddr, tempfile::TempDir) {
    start_with(AdminSettings::default())
}

/// An answer of the member.
struct HttpAnswer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl HttpAnswer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &&str| line.to_ascii_lowercase().starts_with(&format!("{name}: "));
        self.head.lines().find(line).map(|line| line[name.len() + 2..].trim())
    }
}

async fn ask(address: SocketAddr, request: &str) -> HttpAnswer {
    ask_over(TcpStream::connect(address).await.unwrap(), request).await
}

async fn ask_over(mut stream: TcpStream, request: &str) -> HttpAnswer {
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(2 * PATIENCE, stream.read_to_end(&mut answer)).await.expect("it answers soon");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = answer.get(end + 4..).unwrap_or_default().to_vec();
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    HttpAnswer { status, head, body: if is_chunked { unchunked(&body) } else { body } }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n").expect("a length");
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
}

async fn request(address: SocketAddr, method: &str, path: &str, headers: &str) -> HttpAnswer {
    ask(
        address,
        &format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"),
    )
    .await
}

async fn get(address: SocketAddr, path: &str) -> HttpAnswer {
    request(address, "GET", path, "").await
}

async fn word(server: &Server, word: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(word.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("it answers soon").unwrap();
    answer
}

#[tokio::test]
async fn words_and_commands_tell_the_same() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.create("/a", b"12345", CreateMode::Ephemeral).await.unwrap();
    let _watch = client.watch_data("/a").await.unwrap();

    let stats = get(address, "/commands/stats").await.json();
    assert_eq!(
        (stats["node_count"].as_u64(), stats["server_stats"]["server_state"].as_str()),
        (Some(6), Some("standalone"))
    );
    // No word has been asked yet: the connection of one may stay for a moment.
    assert_eq!(stats["connections"].as_array().unwrap().len(), 1);
    let monitor = get(address, "/commands/monitor").await.json();
    assert_eq!((monitor["ephemerals_count"].as_u64(), monitor["watch_count"].as_u64()), (Some(1), Some(1)));

    let dump = get(address, "/commands/dump").await.json();
    let ephemerals = dump["session_id_to_ephemeral_paths"].as_object().unwrap();
    let (session, paths) = ephemerals.iter().next().unwrap();
    assert_eq!((ephemerals.len(), paths), (1, &serde_json::json!(["/a"])));
    let session = format!("0x{:x}", session.parse::<i64>().unwrap());
    let text = word(&server, "dump").await;
    assert!(text.contains(&format!("Sessions with Ephemerals (1):\n{session}:\n\t/a\n")), "{text}");
    assert!(text.starts_with("SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at "), "{text}");
    assert_eq!(word(&server, "wchp").await, format!("/a\n\t{session}\n\n"));
    assert_eq!(word(&server, "wchc").await, format!("{session}\n\t/a\n\n"));
    let watched = get(address, "/commands/wchp").await.json();
    assert_eq!(watched["path_to_session_ids"]["/a"].as_array().unwrap().len(), 1);
    assert_eq!((watched["command"].as_str(), &watched["error"]), (Some("watches_by_path"), &Value::Null));
    shutdown(server).await;
}

#[tokio::test]
async fn clickhouse_keepers_words_are_answered() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.create("/a", b"", CreateMode::Persistent).await.unwrap();
    let log = word(&server, "lgif").await;
    assert!(log.contains("last_committed_log_idx\t") && log.contains("last_snapshot_idx\t0\n"), "{log}");
    assert_eq!(word(&server, "apiv").await, "2");
    assert_eq!(word(&server, "rqld").await, "Failed to send leadership request to leader.");
    assert!(word(&server, "ftfl").await.starts_with("filtered_list\t1\nmulti_read\t1\n"));
    assert!(word(&server, "pfev").await.contains("KeeperPacketsReceived\t"));
    let order = r#"{"actions":[{"remove_members":[1]}]}"#;
    let refused = word(&server, &format!("rcfg\0\0\0{}{order}", char::from(order.len() as u8))).await;
    let refused: Value = serde_json::from_str(&refused).unwrap();
    assert_eq!(refused["status"], "error");
    // A mask stands behind the word.
    assert_eq!(word(&server, "stmk\0\0\0\0\0\0\0\x02").await, "2");
    assert_eq!(word(&server, "gtmk").await, "2");
    let answer = get(address, "/api/v1/commands?command=lgif").await;
    assert_eq!(answer.json()["result"].as_str().map(|text| text.lines().count()), Some(12));
    assert_eq!(get(address, "/api/v1/commands?command=csnp").await.status, 405);
    assert_eq!(send(address, "POST", "/api/v1/commands", JSON, "csnp").await.status, 401);
    assert_eq!(get(address, "/api/v1/commands?command=nope").await.status, 400);
    shutdown(server).await;
}

/// keeper-client's commands, in the query with their directory, in the path and as a body.
#[tokio::test]
async fn keeper_clients_commands_are_carried_out() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let only_root = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.create("/a", b"one", CreateMode::Persistent).await.unwrap();
    client.create("/a/b", b"", CreateMode::Persistent).await.unwrap();
    client.create_with_acl("/secret", b"x", &only_root, CreateMode::Persistent).await.unwrap();
    client.set_acl("/", &[only_root[0].clone(), Acl::open()], None).await.unwrap();

    let result = async |path: &str| {
        let answer = get(address, &format!("/api/v1/commands{path}")).await;
        (answer.status, answer.json()["result"].as_str().unwrap_or_default().to_owned())
    };
    let stat = result("/ls?command=get_stat%20%27a%27&cwd=/").await.1;
    assert!(stat.starts_with("cZxid = 2\nmZxid = 2\npZxid = 3\nctime = "), "{stat}");
    assert!(stat.ends_with("ephemeralOwner = 0\ndataLength = 3\nnumChildren = 1\n"), "{stat}");
    for (path, expected) in [
        ("?command=ls%20%27/%27", (200, "a secret zookeeper\n")),
        ("?command=ls&cwd=/a", (200, "b\n")),
        ("/ls?command=ls%20%22a%22&cwd=/", (200, "b\n")),
        ("/ruok", (200, "imok")),
        ("?command=get+a", (200, "one\n")),
        ("?command=get+b&cwd=/a", (200, "\n")),
        ("?command=exists+/a", (200, "1\n")),
        ("?command=exists+/b", (200, "0\n")),
        ("?command=get_direct_children_number", (200, "3\n")),
        ("?command=get_all_children_number+/a", (200, "1\n")),
        ("?command=get_acl+/a", (200, "[world] anyone ALL\n")),
        ("?command=get+/missing", (404, "")),
        ("?command=get+/secret", (403, "")),
        ("?command=get", (400, "")),
        ("?command=find_super_nodes+1", (400, "")),
        ("?command=create+/x+1", (405, "")),
    ] {
        let (status, text) = result(path).await;
        assert_eq!((status, &*text), expected, "{path}");
    }
    assert_eq!(send(address, "POST", "/api/v1/commands", JSON, "create /x 1").await.status, 401);
    let order = async |text: &str| send(address, "POST", "/api/v1/commands", ROOT, text).await.status;
    assert_eq!(order("create /x 'it is'").await, 200);
    assert_eq!(client.get_data("/x").await.unwrap().bytes.as_deref(), Some(&b"it is"[..]));
    assert_eq!(order("create /x again").await, 409);
    assert_eq!((order("touch /x").await, order("touch /y").await), (200, 200));
    assert_eq!(
        (order("set /x two 7").await, order("set /x two 0").await, order("set /x two x").await),
        (409, 200, 400)
    );
    assert_eq!((order("rm /x 0").await, order("rm /x").await, order("rm /x").await), (409, 200, 404));
    let content = get(address, "/dashboard/content").await.json();
    assert_eq!(
        (&content["keeper_details"]["role"], &content["keeper_details"]["node_count"]),
        (&"standalone".into(), &9.into())
    );
    let page = String::from_utf8(get(address, "/dashboard").await.body).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{}", &page[..99]);
    shutdown(server).await;
}

#[tokio::test]
async fn a_page_of_a_stranger_may_not_ask_in_a_browsers_name() {
    let settings = AdminSettings { hosts: vec!["ops.example".into()], ..AdminSettings::default() };
    let (server, address, _directory) = start_with(settings);
    for (path, host, expected) in [
        ("/", "localhost:8080", 200),
        ("/api/children?path=/", "127.0.0.1", 200),
        ("/api/children?path=/", "OPS.example:8080", 200),
        ("/", "evil.example", 421),
        ("/api/children?path=/", "evil.example", 421),
        ("/commands/connections", "evil.example", 421),
        ("/nothing", "evil.example", 421),
        // Probes ask by names that the member is told of, or at the port for metrics.
        ("/ready", "ops.example", 200),
        ("/ready", "member.monitoring.svc", 421),
        ("/metrics", "member.monitoring.svc", 421),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = ask(address, &request).await;
        assert_eq!(answer.status, expected, "{path} of {host}");
    }
    let refused = ask(address, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
    let text = String::from_utf8(refused.body).unwrap();
    assert!(text.contains("\"evil.example\"") && text.contains("admin.hosts"), "{text}");
    let metrics = server.metrics_address().expect("they are served");
    for path in ["/ready", "/alive", "/metrics"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: member.monitoring.svc\r\nConnection: close\r\n\r\n");
        assert_eq!(ask(metrics, &request).await.status, 200, "{path} at the port for metrics");
        let foreign = request.replace("Connection", "Origin: https://evil.example\r\nConnection");
        assert_eq!(ask(metrics, &foreign).await.status, 403, "{path} for a page");
    }
    // The list counts at once.
    let mut wanted = server.settings();
    wanted.admin.hosts = vec!["*".into()];
    server.reload(&wanted).unwrap();
    assert_eq!(
        ask(address, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await.status,
        200
    );
    shutdown(server).await;
}

#[tokio::test]
async fn restore_is_refused_with_the_way_to_do_it() {
    let (server, address, _directory) = start();
    for path in ["/commands/restore", "/commands/rest"] {
        let head = "Content-Type: application/octet-stream\r\nContent-Length: 1000000000\r\n";
        let refused = request(address, "POST", path, head).await;
        let error = refused.json()["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(refused.status, 501, "{path}: {error}");
        assert!(error.contains("paddock restore"), "{path}: {error}");
    }
    assert_eq!(get(address, "/ready").await.status, 200);
    shutdown(server).await;
}

#[tokio::test]
async fn https_without_keys_is_refused_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let tls = AdminTls { protocol: PortProtocol::Tls, needs_certificate: false };
    let with = Config {
        admin_listen: "127.0.0.1:0".parse().ok(),
        admin: AdminSettings { tls, ..AdminSettings::default() },
        ..config(directory.path())
    };
    assert_eq!(Server::start(with).unwrap_err().to_string(), "TLS of the HTTP interface");
}

const JSON: &str = "Content-Type: application/json\r\n";
const ROOT: &str = "Authorization: digest root:root_passwd\r\n";

#[tokio::test]
async fn a_snapshot_is_for_administrators() {
    let settings = AdminSettings { rate_limit_ms: 600_000, ..AdminSettings::default() };
    let (server, address, _directory) = start_with(settings);
    let client = connect(&server).await;
    client.create("/secret", b"12345", CreateMode::Persistent).await.unwrap();
    let refused = get(address, "/commands/snapshot").await;
    assert_eq!(
        (refused.status, refused.json()["error"].as_str()),
        (401, Some("Auth info is missing for the command"))
    );
    // The root is open to the world, which names no identity.
    assert_eq!(request(address, "GET", "/commands/snapshot", ROOT).await.status, 403);
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let only_root = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.set_acl("/", &only_root, None).await.unwrap();
    let wrong = "Authorization: digest root:guess\r\n";
    assert_eq!(request(address, "GET", "/commands/snapshot", wrong).await.status, 403);
    assert_eq!(request(address, "GET", "/commands/snapshot", "Authorization: basic x\r\n").await.status, 401);

    let taken = request(address, "GET", "/commands/snapshot", ROOT).await;
    assert_eq!(taken.status, 200, "{}", String::from_utf8_lossy(&taken.body));
    assert_eq!(taken.header("snapshot_size").and_then(|bytes| bytes.parse().ok()), Some(taken.body.len()));
    assert!(taken.header("last_zxid").is_some_and(|zxid| zxid.starts_with("0x")), "{}", taken.head);
    assert!(!taken.body.is_empty());
    let again = request(address, "GET", "/commands/snapshot", ROOT).await;
    assert_eq!(again.status, 429);
    assert_eq!(request(address, "POST", "/api/v1/lead/yield", "").await.status, 403);
    assert_eq!(request(address, "POST", "/api/v1/lead/yield", JSON).await.status, 401);
    assert_eq!(request(address, "POST", "/api/v1/lead/yield", ROOT).await.status, 409);
    shutdown(server).await;
}

#[tokio::test]
async fn openmetrics_and_clickhouses_names_are_there_for_those_who_ask() {
    let (server, address, _directory) = start();
    let open =
        request(address, "GET", "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n").await;
    let page = String::from_utf8(open.body).unwrap();
    assert!(open.head.contains("application/openmetrics-text") && page.ends_with("# EOF\n"), "{page}");
    assert!(page.contains("\npackets_received 0\n"), "{page}");
    let keeper = String::from_utf8(get(address, "/metrics?names=clickhouse").await.body).unwrap();
    assert!(keeper.contains("\nClickHouseAsyncMetrics_KeeperIsStandalone 1\n"), "{keeper}");
    let ready = get(address, "/ready").await.json();
    assert_eq!((ready["status"].as_str(), ready["details"]["hasLeader"].as_bool()), (Some("ok"), Some(true)));
    shutdown(server).await;
}

/// Connections that say nothing, that begin a head or a body, or that ask and do not read, take all places of the port. None of them
/// keeps an operator out.
#[tokio::test]
async fn an_operator_gets_in_while_strangers_hold_the_port() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.create("/large", &vec![7; 900_000], CreateMode::Persistent).await.unwrap();
    let unread = "GET /api/data?path=/large HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    // Silent ones would be closed after 5 s anyway. Those that do not read are noticed after a while, and first get what the kernel
    // takes for them.
    let soon = Duration::from_secs(4);
    let beginnings = [
        ("", soon),
        ("GET /commands/mon", soon),
        ("POST /api/v1/commands HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nru", soon),
        (unread.as_str(), 2 * PATIENCE),
    ];
    for (beginning, answered_within) in beginnings {
        let mut strangers = Vec::new();
        for _ in 0..70 {
            let mut stranger = connect_deaf(address).await;
            stranger.write_all(beginning.as_bytes()).await.unwrap();
            strangers.push(stranger);
        }
        let asked = timeout(answered_within, get(address, "/commands/ruok"));
        let name = &beginning[..beginning.len().min(20)];
        assert_eq!(asked.await.unwrap_or_else(|_| panic!("beside {name:?}")).status, 200, "{name:?}");
    }
    shutdown(server).await;
}

/// Slow heads, large bodies, wrong methods and thousands of connections do not reach the clients.
#[tokio::test]
async fn an_attack_on_the_port_is_not_noticed_by_clients() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    let mut strangers = Vec::new();
    for _ in 0..2000 {
        // More of them than the system keeps waiting do not get in at once.
        let connected = timeout(Duration::from_millis(200), TcpStream::connect(address)).await;
        let Ok(Ok(mut stranger)) = connected else { break };
        let _ = stranger.write_all(b"GET /commands/mon").await;
        strangers.push(stranger);
        if strangers.len() % 100 == 0 {
            let path = format!("/a{}", strangers.len());
            let created = client.create(&path, b"", CreateMode::Persistent);
            timeout(PATIENCE, created).await.expect("clients are served as ever").unwrap();
        }
    }
    assert!(strangers.len() > 500, "{} connections", strangers.len());
    drop(strangers);
    let large = format!(
        "POST /api/v1/commands HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n{}",
        "x".repeat(10_000)
    );
    assert!([0, 413].contains(&ask(address, &large).await.status));
    let endless = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    assert!([0, 414, 431].contains(&ask(address, &endless).await.status));
    let wrong = request(address, "DELETE", "/commands/stat", "").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(get(address, "/commands/%ff").await.status, 400);
    assert_eq!(get(address, "/nothing").await.status, 404);
    shutdown(server).await;
}

#[tokio::test]
async fn paths_stand_where_the_settings_say() {
    let settings = AdminSettings {
        command_url: "/zk".into(),
        ready_path: "/health".into(),
        metrics_path: "/keeper".into(),
        has_keeper_names: true,
        has_snapshots: false,
        ..AdminSettings::default()
    };
    let (server, address, _directory) = start_with(settings);
    assert_eq!(get(address, "/zk/ruok").await.json()["command"], "ruok");
    assert_eq!(get(address, "/health").await.json()["status"], "ok");
    for (path, has_keeper_names) in
        [("/keeper", true), ("/keeper?names=zookeeper", false), ("/metrics?names=clickhouse", true)]
    {
        let page = String::from_utf8(get(address, path).await.body).unwrap();
        let names =
            ["\navg_latency ", "\nClickHouseAsyncMetrics_KeeperAvgLatency "].map(|name| page.contains(name));
        assert_eq!(names, [!has_keeper_names, has_keeper_names], "{path}");
    }
    let list = String::from_utf8(get(address, "/zk").await.body).unwrap();
    assert!(list.starts_with("<a href=\"/zk/configuration\">configuration</a>\n<br/>\n"), "{list}");
    assert_eq!(get(address, "/zk/").await.body, list.into_bytes());
    let unknown = get(address, "/zk/nonsense").await;
    assert_eq!((unknown.status, unknown.json()["error"].as_str()), (200, Some("Unknown command: nonsense")));
    shutdown(server).await;
}

async fn send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> HttpAnswer {
    let length = format!("{headers}Content-Length: {}\r\n", body.len());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n");
    ask(address, &format!("{head}{body}")).await
}

#[tokio::test]
async fn znodes_are_reached_as_in_clickhouse_keeper() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let all = Acl { perms: Perms::ALL, id: Id::new("auth", "") };
    let readable = Acl { perms: Perms::READ, id: Id::new("world", "anyone") };
    client.set_acl("/", &[all.clone(), readable], None).await.unwrap();
    let storage = "/api/v1/storage/a%20b";

    assert_eq!(get(address, storage).await.status, 404);
    assert_eq!(
        send(address, "POST", storage, JSON, "one").await.status,
        401,
        "changes are for administrators"
    );
    assert_eq!(get(address, storage).await.status, 404);
    let created = send(address, "POST", storage, ROOT, "one").await;
    assert_eq!((created.status, created.header("location")), (201, Some("/a b")));
    assert_eq!(created.body, b"Created\n");
    assert_eq!(send(address, "POST", storage, ROOT, "one").await.status, 409);
    assert_eq!(get(address, storage).await.body, b"one");
    let head = request(address, "HEAD", storage, "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));

    assert_eq!(send(address, "PUT", storage, ROOT, "two").await.status, 400, "the version is missing");
    assert_eq!(send(address, "PUT", &format!("{storage}?version=1"), ROOT, "two").await.status, 409);
    let set = send(address, "PUT", &format!("{storage}?version=0"), ROOT, "two").await;
    assert_eq!((set.status, &*set.body), (200, &b"OK\n"[..]));
    assert_eq!(client.get_data("/a b").await.unwrap().bytes.as_deref(), Some(&b"two"[..]));

    for root in ["/api/v1/storage/?children=true", "/api/v1/storage?children=true"] {
        let listed = get(address, root).await.json();
        assert_eq!(listed["child_node_names"], serde_json::json!(["a b", "zookeeper"]));
        assert_eq!(listed["stat"]["numChildren"], 2);
        // As `statToJSON` of ClickHouse's sources names them.
        let names: Vec<&String> = listed["stat"].as_object().unwrap().keys().collect();
        let expected =
            "aversion ctime cversion czxid dataLength ephemeralOwner mtime mzxid numChildren pzxid version";
        assert_eq!(names, expected.split(' ').collect::<Vec<_>>());
    }
    client.set_acl("/a b", &[all], None).await.unwrap();
    assert_eq!(get(address, storage).await.status, 403, "who may not read it is not shown it");
    assert_eq!(request(address, "GET", storage, ROOT).await.body, b"two");

    assert_eq!(request(address, "DELETE", storage, ROOT).await.status, 400);
    assert_eq!(request(address, "DELETE", &format!("{storage}?version=-1"), ROOT).await.status, 204);
    assert_eq!(request(address, "PATCH", storage, ROOT).await.status, 405);
    assert_eq!(
        get(address, "/api/v1/storage//zookeeper/config/").await.status,
        200,
        "empty names count for nothing"
    );
    shutdown(server).await;
}

#[tokio::test]
async fn connections_are_shed_on_request() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let only_root = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.set_acl("/", &only_root, None).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..9 {
        idle.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let connections = async || get(address, "/commands/server_stats").await.json();
    let connections = async || connections().await["server_stats"]["num_alive_client_connections"].clone();
    while connections().await != 10 {
        tokio::task::yield_now().await;
    }
    let shed = "/commands/shed_connections";
    assert_eq!(send(address, "POST", shed, JSON, r#"{"percentage":50}"#).await.status, 401);
    for wrong in ["", "{}", r#"{"percentage":101}"#, r#"{"percentage":-1}"#, r#"{"percentage":"all"}"#] {
        assert_eq!(send(address, "POST", shed, ROOT, wrong).await.status, 400, "{wrong}");
    }
    let told = send(address, "POST", shed, ROOT, r#"{"percentage":500}"#).await.json();
    assert_eq!(told["error"], "percentage is from 0 to 100, not 500");
    let none = send(address, "POST", shed, ROOT, r#"{"percentage":0}"#).await.json();
    assert_eq!((&none["connections_shed"], &none["error"]), (&0.into(), &Value::Null));
    let half = send(address, "POST", shed, ROOT, r#"{"percentage":50}"#).await.json();
    assert_eq!((&half["percentage_requested"], &half["connections_shed"]), (&50.into(), &5.into()));
    while connections().await.as_u64() > Some(6) {
        tokio::task::yield_now().await;
    }
    assert_eq!(send(address, "POST", "/commands/shed", ROOT, r#"{"percentage":100}"#).await.status, 200);
    // What was under way is lost with the connection; the session goes on over another one.
    let served = async {
        while client.get_data("/").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, served).await.expect("the client finds its session again");
    shutdown(server).await;
}

/// ZooKeeper's commands that reset something and set the trace mask.
#[tokio::test]
async fn what_is_counted_is_reset_by_administrators_and_by_post() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let only_root = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.set_acl("/", &only_root, None).await.unwrap();
    let received =
        async || get(address, "/commands/stats").await.json()["server_stats"]["packets_received"].as_u64();
    for command in ["stat_reset", "srst", "crst", "set_trace_mask?traceMask=3", "stmk?traceMask=3"] {
        let path = format!("/commands/{command}");
        for headers in ["", ROOT] {
            let refused = request(address, "GET", &path, headers).await;
            assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")), "{command}");
            let error = refused.json()["error"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains("POST") && error.contains("Authorization"), "{command}: {error}");
        }
        let refused = send(address, "POST", &path, JSON, "").await;
        assert_eq!(
            (refused.status, refused.json()["error"].as_str()),
            (401, Some("Auth info is missing for the command")),
            "{command}"
        );
    }
    assert!(received().await > Some(1));
    assert_eq!(get(address, "/commands/gtmk").await.json()["tracemask"], 306);

    let reset = send(address, "POST", "/commands/stat_reset", ROOT, "").await;
    assert_eq!(
        (reset.status, &reset.json()["error"], &reset.json()["command"]),
        (200, &Value::Null, &"stat_reset".into())
    );
    assert_eq!(received().await, Some(0));
    let wrong = send(address, "POST", "/commands/set_trace_mask?traceMask=x", ROOT, "").await;
    assert_eq!(wrong.json()["error"], "setTraceMask requires long traceMask argument, got x");
    let set = send(address, "POST", "/commands/set_trace_mask?traceMask=3", ROOT, "").await;
    assert_eq!(set.json()["tracemask"], 3);
    assert_eq!(send(address, "POST", "/commands/crst", ROOT, "").await.status, 200);
    assert_eq!(send(address, "POST", "/commands/orst", ROOT, "").await.status, 200);
    shutdown(server).await;
}

/// Wrong passwords of one address, one after another on one connection, are soon not judged any more.
#[tokio::test]
async fn who_guesses_passwords_has_to_wait_and_nobody_else() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let only_root = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.set_acl("/", &only_root, None).await.unwrap();
    assert_eq!(request(address, "GET", "/api/login", ROOT).await.status, 200);
    let mut judged = 0;
    for number in 0..200 {
        // A znode that one may not read tells as much as a login.
        let path = if number % 2 == 0 { "/api/login" } else { "/api/data?path=/" };
        let guess = format!("Authorization: digest root:guess{number}\r\n");
        let refused = request(address, "GET", path, &guess).await;
        match refused.status {
            403 => judged += 1,
            429 => {
                let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).unwrap();
                assert!((1..=60).contains(&wait), "{wait}");
            }
            other => panic!("{path}: {other}"),
        }
    }
    // Ten are free, and few have waited for their turn.
    assert!((10..20).contains(&judged), "{judged} of 200 were judged");
    let another = "Authorization: digest root:guess\r\n";
    assert_eq!(request(address, "GET", "/api/login", another).await.status, 429);
    assert_eq!(request(address, "GET", "/api/login", ROOT).await.status, 200, "whoever is logged in goes on");
    assert_eq!(get(address, "/commands/ruok").await.status, 200, "and who has no login");
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
    let elsewhere = socket.connect(address).await.unwrap();
    let login = format!("GET /api/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{another}\r\n");
    assert_eq!(ask_over(elsewhere, &login).await.status, 403, "another address is judged");
    let metrics = String::from_utf8(get(address, "/metrics").await.body).unwrap();
    let hits = metrics.lines().find(|line| line.contains("limit=\"failed_login\"")).unwrap();
    let hits: u64 = hits.rsplit(' ').next().and_then(|hits| hits.parse().ok()).unwrap();
    assert!(hits > 200 - judged, "{hits}");
    shutdown(server).await;
}

/// No client is told of what is below a znode that it may not read, by whatever list.
#[tokio::test]
async fn lists_tell_nobody_of_what_it_may_not_read() {
    let (server, address, _directory) = start();
    let client = connect(&server).await;
    client.add_auth("digest", b"ann:test").await.unwrap();
    let only_ann = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.create_with_acl("/hidden", b"12345", &only_ann, CreateMode::Persistent).await.unwrap();
    client.create("/hidden/lock-of-bob", b"", CreateMode::Ephemeral).await.unwrap();
    client.create("/open", b"123", CreateMode::Persistent).await.unwrap();
    client.create("/open/lock", b"", CreateMode::Ephemeral).await.unwrap();
    for path in ["/hidden", "/hidden/lock-of-bob", "/open"] {
        let _watch = client.watch_data(path).await.unwrap();
    }
    // A znode that is not there.
    assert!(client.watch_exists("/hidden/next-of-bob").await.is_err());
    let session = format!("{:#x}", client.session().0);

    let listed = get(address, "/api/children?path=/").await.json();
    let child = |name: &str| {
        let children = listed["children"].as_array().unwrap();
        children.iter().find(|child| child["name"] == name).unwrap().clone()
    };
    assert_eq!(
        child("open"),
        serde_json::json!({ "name": "open", "children": 1, "bytes": 3, "ephemeral": false })
    );
    assert_eq!(
        child("hidden"),
        serde_json::json!({ "name": "hidden", "children": null, "bytes": null, "ephemeral": null })
    );

    const ANN: &str = "Authorization: digest ann:test\r\n";
    for path in [
        "/commands/dump",
        "/commands/watches",
        "/commands/wchp",
        "/api/v1/commands?command=dump",
        "/api/v1/commands?command=wchc",
        "/api/v1/commands/wchp",
        &format!("/api/session?id={session}"),
        "/api/activity",
    ] {
        let told = |answer: HttpAnswer| String::from_utf8(answer.body).unwrap();
        let to_nobody = told(get(address, path).await);
        assert!(!to_nobody.contains("hidden") && !to_nobody.contains("bob"), "{path}: {to_nobody}");
        let to_ann = told(request(address, "GET", path, ANN).await);
        if path != "/api/activity" {
            assert!(to_nobody.contains("/open"), "{path}: {to_nobody}");
            assert!(to_ann.contains("/hidden") && to_ann.contains("-of-bob"), "{path}: {to_ann}");
        }
    }
    // A word that the list of words allows is answered as in ZooKeeper.
    assert!(word(&server, "wchp").await.contains("/hidden/next-of-bob"));

    // An administrator, who may take a snapshot, is told of all.
    client.add_auth("digest", b"root:root_passwd").await.unwrap();
    let of_root = Acl { perms: Perms::ALL, id: Id::new("digest", "root:caE840ic2wNgOPaqEOHwZYFR1xk=") };
    client.set_acl("/", &[of_root, Acl::open()], None).await.unwrap();
    let to_root = request(address, "GET", "/commands/dump", ROOT).await;
    let to_root = String::from_utf8(to_root.body).unwrap();
    assert!(to_root.contains("/hidden/lock-of-bob"), "{to_root}");
    shutdown(server).await;
}
