//! `paddock dump` and `paddock load` between Paddock and Apache ZooKeeper, both ways, and from files.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use paddock_client::{Acl, Client, ClientOptions, CreateMode, Id, Multi, OpCode, Perms};
use paddock_proto::encode;
use paddock_tests::administered::{Administered, identity_file};
use paddock_tests::server::{Server, ServerKind, environment};
use serde_json::Value;

fn paddock(arguments: &[&str]) -> Command {
    let mut command = Command::new(environment("PADDOCK_BIN"));
    command.args(arguments).env_remove("PADDOCK_HOSTS");
    command
}

fn run(arguments: &[&str]) -> Output {
    paddock(arguments).output().expect("run paddock")
}

/// The standard output and the standard error of a command that succeeds.
#[track_caller]
fn succeed(arguments: &[&str]) -> (String, String) {
    let output = run(arguments);
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert!(output.status.success(), "{arguments:?}: {error}");
    (out, error)
}

/// Expects a command to fail with one line in which `part` stands.
#[track_caller]
fn fail(arguments: &[&str], part: &str) {
    let output = run(arguments);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
    assert!(error.lines().count() == 1 && error.contains(part), "{part:?} in {error}");
}

/// A command with something on its standard input, which succeeds.
#[track_caller]
fn succeed_with(arguments: &[&str], input: &str) -> String {
    let mut child = paddock(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start paddock");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("write its input");
    let output = child.wait_with_output().expect("wait for paddock");
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{arguments:?}: {error}");
    error
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect")
}

/// The identity that administers a part of the tree, in a file, and its ACL.
struct Owner {
    directory: tempfile::TempDir,
}

impl Owner {
    fn new() -> Owner {
        let directory = tempfile::tempdir().expect("make a directory");
        fs::write(directory.path().join("identity"), "digest:ann:secret\n").expect("write an identity");
        Owner { directory }
    }

    fn option(&self) -> String {
        format!("@{}", self.directory.path().join("identity").display())
    }

    /// Everything for the owner, reading for all.
    fn acl() -> Vec<Acl> {
        // The hash of `ann:secret`.
        let hash = "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=";
        vec![
            Acl { perms: Perms::ALL, id: Id::new("digest", hash) },
            Acl { perms: Perms::READ, id: Id::new("world", "anyone") },
        ]
    }
}

/// Everything that a dump has to keep: data of all kinds, names, ACLs, counters, ephemerals.
async fn fill(client: &Client) {
    let create = async |path: &str, data: &[u8], mode| client.create(path, data, mode).await.expect(path);
    let (plain, sequential) = (CreateMode::Persistent, CreateMode::PersistentSequential);
    create("/app", b"{\n\t\"a\": 1\n}", plain).await;
    create("/app/binary", &[0, 255, 7], plain).await;
    create("/app/empty", b"", plain).await;
    let null = |out: &mut Vec<u8>| encode::create(out, "/app/null", None, &[Acl::open()], plain);
    client.send(OpCode::Create, null).await.expect("create without data");
    create("/app/zwei Wörter \"&\" \u{4e2d}", "Grüße".as_bytes(), plain).await;
    create("/app/a", b"", plain).await;
    create("/app/a/below", b"1", plain).await;
    // A name that sorts between a znode and its children, byte by byte.
    create("/app/a-b", b"", plain).await;
    create("/app/large", &vec![b'x'; 400_000], plain).await;
    // Five were made, of which two are there; then an ephemeral one.
    create("/app/queue", b"", plain).await;
    for _ in 0..5 {
        create("/app/queue/entry-", b"", sequential).await;
    }
    for number in [0, 2, 4] {
        client.delete(&format!("/app/queue/entry-{number:010}"), None).await.expect("delete");
    }
    create("/app/queue/owner-", b"", CreateMode::EphemeralSequential).await;
    // A counter of a directory that is empty, beyond what one request raises.
    create("/app/spent", b"", plain).await;
    for _ in 0..3 {
        let step = |multi: Multi, _| multi.create("/app/spent/x", b"", plain).delete("/app/spent/x", None);
        client.multi(&(0..90).fold(Multi::new(), step)).await.expect("spend numbers");
    }
    client.create_with_acl("/app/secured", b"s", &Owner::acl(), plain).await.expect("create");
    client
        .create_with_acl("/app/secured/below", b"", &Owner::acl(), plain)
        .await
        .expect_err("not without the identity");
    client.add_auth("digest", b"ann:secret").await.expect("show an identity");
    client.create_with_acl("/app/secured/below", b"", &Owner::acl(), plain).await.expect("create");
}

/// The path that the next sequential child gets.
async fn next(client: &Client, parent: &str) -> String {
    let path = format!("{parent}/next-");
    client.create(&path, b"", CreateMode::PersistentSequential).await.expect("create a sequential znode")
}

async fn check_between(from: ServerKind, to: ServerKind) {
    let (source, target, owner) = (Server::start(from), Server::start(to), Owner::new());
    let [from, to] = [&source, &target].map(|server| server.address().to_string());
    let client = connect(&source).await;
    fill(&client).await;

    // The password in an ACL is hidden from who does not own it.
    fail(&["dump", &from, "--path", "/app"], "/app/secured: the server hides the password in its ACL");
    let auth = owner.option();
    let (dump, told) = succeed(&["dump", &from, "--path", "/app", "--auth", &auth]);
    assert!(told.contains("; 1 ephemerals left out"), "{told}");
    let lines: Vec<&str> = dump.lines().collect();
    assert_eq!(lines[0], r#"{"paddock_dump":1,"path":"/app"}"#);
    assert_eq!(lines[1], r#"{"path":"/","text":"{\n\t\"a\": 1\n}","counter":10}"#);
    assert!(lines.contains(&r#"{"path":"/binary","base64":"AP8H"}"#), "{dump}");
    assert!(lines.contains(&r#"{"path":"/empty","text":""}"#) && lines.contains(&r#"{"path":"/null"}"#));
    assert!(lines.contains(&r#"{"path":"/queue","text":"","counter":6}"#));
    assert!(lines.contains(&r#"{"path":"/spent","text":"","counter":270}"#));
    let place = |path: &str| {
        lines.iter().position(|line| line.starts_with(&format!("{{\"path\":\"{path}\""))).unwrap()
    };
    assert!(place("/a") < place("/a/below") && place("/a/below") < place("/a-b"));
    let (again, _) = succeed(&["dump", &from, "--path", "/app", "--auth", &auth]);
    assert_eq!(again, dump, "the same tree has the same dump");

    let told = succeed_with(&["load", &to, "--auth", &auth, "--dry-run"], &dump);
    assert!(told.contains("would create 15 znodes; 0 are there"), "{told}");
    let at_target = connect(&target).await;
    at_target.exists("/app").await.expect_err("a trial writes nothing");
    let told = succeed_with(&["load", &to, "--auth", &auth], &dump);
    assert!(told.contains("created 15 znodes; 0 were there; 0 ephemerals left out"), "{told}");
    assert!(told.contains("2 counters raised, by 274 in all"), "{told}");
    let (copy, _) = succeed(&["dump", &to, "--path", "/app", "--auth", &auth]);
    assert_eq!(copy, dump, "the copy has the same dump");

    // Elsewhere, too, where it has the same lines below another path.
    at_target.create("/else", b"", CreateMode::Persistent).await.expect("create");
    succeed_with(&["load", &to, "--auth", &auth, "--path", "/else/where"], &dump);
    let (elsewhere, _) = succeed(&["dump", &to, "--path", "/else/where", "--auth", &auth]);
    assert_eq!(elsewhere.lines().collect::<Vec<_>>()[1..], lines[1..]);

    for parent in ["/app", "/app/queue", "/app/spent", "/app/a", "/app/empty"] {
        let expected = next(&client, parent).await;
        assert_eq!(next(&at_target, parent).await, expected, "{from} and {to}");
        let moved = parent.replace("/app", "/else/where");
        assert_eq!(next(&at_target, &moved).await, expected.replace("/app", "/else/where"));
    }
    client.close().await.expect("close");
    at_target.close().await.expect("close");
}

#[tokio::test]
async fn from_zookeeper_to_paddock_the_next_number_is_the_same() {
    check_between(ServerKind::ZooKeeper, ServerKind::Paddock).await;
}

#[tokio::test]
async fn from_paddock_to_zookeeper_the_next_number_is_the_same() {
    check_between(ServerKind::Paddock, ServerKind::ZooKeeper).await;
}

#[tokio::test]
async fn a_load_is_refused_over_what_is_there_unless_it_is_told() {
    let server = Server::start(ServerKind::Paddock);
    let address = server.address().to_string();
    let client = connect(&server).await;
    for (path, data) in [("/app", "old"), ("/app/kept", "old")] {
        client.create(path, data.as_bytes(), CreateMode::Persistent).await.expect("create");
    }
    let directory = tempfile::tempdir().expect("make a directory");
    let file = directory.path().join("app.jsonl");
    let from = file.display().to_string();
    let write = |lines: &[&str]| {
        fs::write(&file, [&["{\"paddock_dump\":1,\"path\":\"/app\"}"], lines].concat().join("\n"))
            .expect("write");
    };
    let text = async |path: &str| {
        let data = client.get_data(path).await.map(|data| data.bytes.unwrap_or_default());
        data.map(|bytes| String::from_utf8(bytes).expect("text")).unwrap_or_else(|error| format!("{error:?}"))
    };
    let (root, kept, new) =
        (r#"{"path":"/","text":"a"}"#, r#"{"path":"/kept","text":"b"}"#, r#"{"path":"/new","text":"c"}"#);

    write(&[root, kept, new]);
    fail(
        &["load", &address, "--from", &from],
        "line 2: /app is there already, and 1 others: say --skip-existing",
    );
    // A line that cannot be used is found before anything is written.
    write(&[root, kept, new, r#"{"path":"/new/x","base64":"!"}"#]);
    fail(&["load", &address, "--from", &from, "--overwrite"], "line 5 of");
    write(&[root, new, kept]);
    fail(&["load", &address, "--from", &from, "--overwrite"], "line 4 of");
    write(&[root, r#"{"path":"/no/parent"}"#]);
    fail(&["load", &address, "--from", &from, "--overwrite"], "there is no line of /no");
    write(&[root]);
    fail(
        &["load", &address, "--from", &from, "--path", "/no/such/place"],
        "there is no /no/such for /no/such/place",
    );
    fail(&["load", &address, "--from", "/no/such/file"], "read /no/such/file");
    assert_eq!([text("/app").await, text("/app/kept").await], ["old", "old"], "nothing was written");

    write(&[root, kept, new]);
    let (_, told) = succeed(&["load", &address, "--from", &from, "--skip-existing"]);
    assert!(told.contains("created 1 znodes; 2 were there"), "{told}");
    assert_eq!([text("/app").await, text("/app/kept").await, text("/app/new").await], ["old", "old", "c"]);
    let (_, told) = succeed(&["load", &address, "--from", &from, "--overwrite"]);
    assert!(told.contains("created 0 znodes; 3 were set"), "{told}");
    assert_eq!([text("/app").await, text("/app/kept").await], ["a", "b"]);

    // A refusal of the target names the line.
    write(&[root, kept, new, r#"{"path":"/odd","text":"","acl":["unknown:x:r"]}"#]);
    fail(&["load", &address, "--from", &from, "--skip-existing"], "line 5: /app/odd: refused: InvalidAcl");

    // A dump that fails leaves no file, and one that succeeds replaces the last.
    let to = directory.path().join("out.jsonl");
    let name = to.display().to_string();
    fs::write(&to, "the last one").expect("write");
    fail(&["dump", &address, "--path", "/nothing", "--to", &name], "there is no /nothing at");
    assert_eq!(fs::read_to_string(&to).expect("read"), "the last one");
    succeed(&["dump", &address, "--path", "/app", "--to", &name]);
    assert!(fs::read_to_string(&to).expect("read").starts_with("{\"paddock_dump\":1"));
    assert_eq!(fs::read_dir(directory.path()).expect("list").count(), 2, "no unfinished file is left");
    client.close().await.expect("close");
}

/// Lines of a dump as JSON.
fn lines(dump: &str) -> Vec<Value> {
    dump.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Files know TTLs and containers, which clients are not told of.
async fn check_files(kind: ServerKind) {
    let Administered { server: mut source, admin } = Administered::start(&[]).await;
    let client = connect(&source).await;
    let acl = [Acl::open()];
    client.create("/app", b"", CreateMode::Persistent).await.expect("create");
    let passing = client.create_ttl("/app/passing", b"1", &acl, CreateMode::PersistentWithTtl, 7_000_000);
    passing.await.expect("create with a TTL");
    client.create("/app/box", b"", CreateMode::Container).await.expect("create a container");
    client.create("/app/box/child", b"", CreateMode::Persistent).await.expect("create");
    client.close().await.expect("close");
    let address = source.address().to_string();
    let (live, _) = succeed(&["dump", &address, "--path", "/app"]);
    // A member that runs gives an administrator a snapshot, which has all of it.
    let (directory, url) = (tempfile::tempdir().expect("make a directory"), format!("http://{admin}"));
    let auth = identity_file(directory.path());
    let (snapshot, _) = succeed(&["dump", &url, "--path", "/app", "--auth", &auth]);
    fail(&["dump", &url, "--path", "/app"], "refuses a snapshot to who is no administrator");
    source.stop();
    let data_dir = source.data_directory().display().to_string();
    let (dump, _) = succeed(&["dump", &data_dir, "--path", "/app"]);
    let expected = [
        r#"{"paddock_dump":1,"path":"/app"}"#,
        r#"{"path":"/","text":"","counter":2}"#,
        r#"{"path":"/box","text":"","counter":1,"container":true}"#,
        r#"{"path":"/box/child","text":""}"#,
        r#"{"path":"/passing","text":"1","ttl_ms":7000000}"#,
    ];
    assert_eq!(dump.lines().collect::<Vec<_>>(), expected);
    assert_eq!(snapshot, dump);
    // A dump of a server that runs has the same lines but for these.
    assert_eq!(
        live.replace('\n', ""),
        dump.replace(",\"container\":true", "").replace(",\"ttl_ms\":7000000", "").replace('\n', "")
    );
    let (with_stat, _) = succeed(&["dump", &data_dir, "--path", "/app", "--stat"]);
    assert!(
        lines(&with_stat)[1..].iter().all(|line| line["stat"]["mtime_ms"].as_i64() > Some(0)),
        "{with_stat}"
    );

    let mut target = Server::start(kind);
    let to = target.address().to_string();
    succeed_with(&["load", &to], &with_stat);
    target.stop();
    let target_dir = target.data_directory().display().to_string();
    let (copy, _) = succeed(&["dump", &target_dir, "--path", "/app"]);
    assert_eq!(copy, dump);
}

#[tokio::test]
async fn a_dump_of_files_has_ttls_and_containers() {
    check_files(ServerKind::Paddock).await;
}

#[tokio::test]
async fn zookeeper_gets_ttls_and_containers_of_a_dump() {
    check_files(ServerKind::ZooKeeper).await;
}

#[tokio::test]
async fn a_whole_tree_is_dumped_but_for_what_belongs_to_the_server() {
    let server = Server::start(ServerKind::Paddock);
    let address = server.address().to_string();
    let client = connect(&server).await;
    for batch in 0..20 {
        let step = |multi: Multi, number: u32| {
            multi.create(&format!("/entry-{:05}", batch * 500 + number), &[b'v'; 200], CreateMode::Persistent)
        };
        client.multi(&(0..500).fold(Multi::new(), step)).await.expect("create");
    }
    let (dump, _) = succeed(&["dump", &address]);
    assert_eq!(dump.lines().count(), 2 + 10_000);
    assert!(!dump.contains("/zookeeper"));
    let (own, _) = succeed(&["dump", &address, "--path", "/zookeeper"]);
    assert!(own.contains("{\"path\":\"/config\""), "{own}");
    // The root is there at every server, and that alone is no obstacle.
    let other = Server::start(ServerKind::Paddock);
    let to = other.address().to_string();
    let told = succeed_with(&["load", &to], &dump);
    assert!(told.contains("created 10000 znodes; 1 were there"), "{told}");
    let (copy, _) = succeed(&["dump", &to]);
    assert_eq!(copy, dump);
    // A reader that has seen enough is no failure.
    let pipe = format!("{} dump {address} | head -n 1", environment("PADDOCK_BIN"));
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &pipe]).output().expect("run a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(Path::new(&environment("PADDOCK_BIN")).exists());
    client.close().await.expect("close");
}
