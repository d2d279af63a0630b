//! `paddock backup` and `paddock restore`: what is restored is what the member had, at its end or at any moment before, and what is not whole is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use paddock_client::{Client, CreateMode};
use paddock_tests::administered::{
    Administered, admin_settings, connect, files, identity_file, name_administrator, paddock, refusal,
    succeed, text,
};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, ServerKind, free_port};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A directory, and what commands say who read from a member and write there.
struct Desk {
    temp: tempfile::TempDir,
    auth: String,
}

impl Desk {
    fn new() -> Desk {
        let temp = tempfile::tempdir().expect("temporary directory");
        let auth = identity_file(temp.path());
        Desk { temp, auth }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Makes a backup, and returns what it says of it.
    fn backup(&self, host: &str, to: &Path, more: &[&str]) -> Value {
        let arguments = [&["backup", host, "--auth", &self.auth, "--to", text(to), "--json"], more].concat();
        serde_json::from_str(&succeed(&arguments)).expect("it is JSON")
    }

    /// Restores into a directory of this name.
    fn restore(&self, from: &Path, name: &str, more: &[&str]) -> PathBuf {
        let dir = self.path(name);
        let arguments = [&["restore", "--from", text(from), "--data-dir", text(&dir)], more].concat();
        succeed(&arguments);
        dir
    }

    fn refused(&self, from: &Path, more: &[&str]) -> String {
        let dir = self.path("refused");
        let told = refusal(&[&["restore", "--from", text(from), "--data-dir", text(&dir)], more].concat());
        assert!(!dir.exists(), "{told}");
        told
    }
}

/// Both trees are equal, the list of members apart.
fn check_equal(a: &str, b: &str) {
    let output =
        paddock(&["diff", "--exclude", "/zookeeper/config", a, b]).output().expect("run paddock diff");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains(" znodes equal, 0 different, 0 only in A, 0 only in B"), "{printed}");
}

/// A server on a data directory that was made.
fn started_on(dir: &Path) -> Server {
    let mut server = Server::prepare(ServerKind::Paddock, &[]);
    fs::remove_dir_all(server.data_directory()).expect("make room");
    fs::rename(dir, server.data_directory())
        .or_else(|_| copy(dir, &server.data_directory()))
        .expect("move the data");
    server.restart();
    server
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for file in files(from) {
        let new = to.join(file.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(new.parent().expect("it has one"))?;
        fs::copy(&file, new)?;
    }
    Ok(())
}

/// Clients on a thread of their own, beside the commands that this one waits for: some write until they are told to stop, and one holds an ephemeral
/// until the end.
struct Writers {
    is_over: Arc<AtomicBool>,
    stopped: mpsc::Receiver<()>,
    _end: oneshot::Sender<()>,
}

impl Writers {
    fn start(hosts: &str) -> Writers {
        let (is_over, hosts) = (Arc::new(AtomicBool::new(false)), hosts.to_owned());
        let (stop, stopped) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let of_thread = is_over.clone();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let owner = connect(&hosts).await;
                owner
                    .create("/ephemeral", b"mine", CreateMode::Ephemeral)
                    .await
                    .expect("create an ephemeral");
                let mut writers = JoinSet::new();
                for writer in 0..4 {
                    writers.spawn(write(connect(&hosts).await, writer, of_thread.clone()));
                }
                while let Some(writer) = writers.join_next().await {
                    writer.expect("a writer does not panic");
                }
                stop.send(()).expect("the test waits for it");
                let _ = ended.await;
            });
        });
        Writers { is_over, stopped, _end: end }
    }

    fn stop(&self) {
        self.is_over.store(true, SeqCst);
        self.stopped.recv().expect("the writers have stopped");
    }
}

async fn write(client: Client, writer: usize, is_over: Arc<AtomicBool>) {
    let root = format!("/writer-{writer}");
    client.create(&root, b"", CreateMode::Persistent).await.expect("create");
    let mut written = 0;
    while !is_over.load(SeqCst) {
        let job = format!("{root}/job-");
        client.create(&job, &[7; 300], CreateMode::PersistentSequential).await.expect("create");
        client.set_data(&root, written.to_string().as_bytes(), None).await.expect("set");
        if written % 3 == 2 {
            client.delete(&format!("{root}/job-{:010}", written - 2), None).await.expect("delete");
        }
        written += 1;
    }
    client.close().await.expect("close");
}

/// Waits until the root of a writer has data that count so far.
async fn written(client: &Client, count: u64) {
    loop {
        let data = client.get_data("/writer-0").await.ok().and_then(|data| data.bytes);
        let number = data.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()?.parse::<u64>().ok());
        if number.is_some_and(|number| number >= count) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_backup_under_load_is_the_state_at_its_zxid() {
    let desk = Desk::new();
    let member = Administered::start(&[]).await;
    let host = member.admin.to_string();
    let client = member.client().await;
    let writers = Writers::start(&member.server.address().to_string());
    written(&client, 50).await;
    let backups = desk.path("backups/");
    let made = desk.backup(&host, &backups, &["--with-log"]);
    written(&client, 150).await;
    let more = desk.backup(&host, &backups, &["--incremental"]);
    assert_eq!(made["backup"], more["backup"]);
    assert!(more["logs"].as_u64() > Some(0) && made["zxid"] != more["zxid"], "{made} {more}");
    written(&client, 200).await;
    writers.stop();
    let last = desk.backup(&host, &backups, &["--incremental"]);

    // The end of all is what the member has now.
    let end = desk.restore(&backups, "end", &[]);
    check_equal(&member.server.address().to_string(), text(&end));
    // A moment before is what the member's own log says of it.
    let mut source = member;
    source.server.kill();
    let data = source.server.data_directory();
    for wanted in [&made["snapshot_zxid"], &made["zxid"], &more["zxid"], &last["zxid"]] {
        let wanted = wanted.as_str().expect("a zxid");
        let restored = desk.restore(&backups, &format!("at-{wanted}"), &["--to-zxid", wanted]);
        let state: Value =
            serde_json::from_str(&succeed(&["inspect", "state", text(&restored), "--json"])).expect("JSON");
        assert_eq!(state["zxid"], wanted);
    }
    check_equal(text(&data), text(&end));

    // A member that starts from it goes on counting where the source would have.
    let restored = started_on(&end);
    let client = connect(&restored.address().to_string()).await;
    let counter = client.exists("/writer-1").await.expect("it is there").cversion;
    let made = client.create("/writer-1/job-", b"", CreateMode::PersistentSequential).await.expect("create");
    assert!(made.starts_with("/writer-1/job-") && counter > 0, "{made}");
    let mut source = source.server;
    source.restart();
    let client = connect(&source.address().to_string()).await;
    let of_source =
        client.create("/writer-1/job-", b"", CreateMode::PersistentSequential).await.expect("create");
    assert_eq!(made, of_source);
}

/// A value that was written, with its zxid and the time when that was known.
struct Recorded {
    zxid: i64,
    value: String,
    time: SystemTime,
}

#[tokio::test]
async fn any_moment_of_a_recorded_history_is_restored() {
    let desk = Desk::new();
    let member = Administered::start(&[("snapCount", "100")]).await;
    let client = member.client().await;
    client.create("/value", b"", CreateMode::Persistent).await.expect("create");
    let backups = desk.path("backups/");
    let host = member.admin.to_string();
    desk.backup(&host, &backups, &[]);
    let mut history = Vec::new();
    for number in 0..60 {
        let value = format!("value {number}");
        client.set_data("/value", value.as_bytes(), None).await.expect("set");
        let stat = client.exists("/value").await.expect("it is there");
        client.create("/n-", b"", CreateMode::PersistentSequential).await.expect("create");
        history.push(Recorded { zxid: stat.mzxid.0, value, time: SystemTime::now() });
        // Times are told apart by the millisecond.
        tokio::time::sleep(Duration::from_millis(3)).await;
        if number % 20 == 19 {
            desk.backup(&host, &backups, &["--incremental"]);
        }
    }
    let value_in = |dir: &Path| {
        let server = started_on(dir);
        async move {
            let client = connect(&server.address().to_string()).await;
            let data = client.get_data("/value").await.expect("read").bytes.expect("it has data");
            let children = client.get_children("/").await.expect("list").len();
            (String::from_utf8(data.to_vec()).expect("text"), children)
        }
    };
    for at in [0, 19, 20, 37, 59] {
        let Recorded { zxid, value, .. } = &history[at];
        let dir = desk.restore(&backups, &format!("zxid-{at}"), &["--to-zxid", &zxid.to_string()]);
        // The child behind the value was written after it; beside them stand /value and /zookeeper.
        assert_eq!(value_in(&dir).await, (value.clone(), at + 2), "zxid {zxid}");
    }
    for at in [5, 30, 45] {
        let Recorded { value, time, .. } = &history[at];
        let time = humantime::format_rfc3339_millis(*time).to_string();
        let dir = desk.restore(&backups, &format!("time-{at}"), &["--to-time", &time]);
        assert_eq!(value_in(&dir).await, (value.clone(), at + 3), "{time}");
    }
    let told = desk.refused(&backups, &["--to-zxid", "0x1"]);
    assert!(told.contains("has no state of zxid 0x1: it goes from zxid 0x"), "{told}");
    let told = desk.refused(&backups, &["--to-zxid", "0x7fffffff"]);
    assert!(told.contains("has no state of zxid 0x7fffffff"), "{told}");
    let told = desk.refused(&backups, &["--to-time", "2020-01-01T00:00:00Z"]);
    assert!(told.contains("has no state of 2020-01-01T00:00:00.000Z"), "{told}");
}

#[tokio::test]
async fn what_is_not_whole_is_refused_with_one_line() {
    let desk = Desk::new();
    let member = Administered::start(&[]).await;
    let host = member.admin.to_string();
    let client = member.client().await;
    client.create("/a", &[1; 1000], CreateMode::Persistent).await.expect("create");
    let backups = desk.path("backups/");
    let name = desk.backup(&host, &backups, &[])["backup"].as_str().expect("a name").to_owned();
    for number in 0..20 {
        client.set_data("/a", format!("{number}").as_bytes(), None).await.expect("set");
    }
    desk.backup(&host, &backups, &["--incremental"]);
    let archive = desk.path("one.paddock");
    desk.backup(&host, &archive, &["--with-log"]);
    let one = backups.join(&name);
    let parts = files(&one);
    assert_eq!(parts.len(), 3, "{parts:?}");

    // Every file, with a bit that is wrong, cut, and missing.
    for part in &parts {
        let whole = fs::read(part).expect("read a part");
        let file = part.file_name().expect("it has one").to_string_lossy().into_owned();
        for at in [0, whole.len() / 3, whole.len() / 2, whole.len() - 2] {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::write(part, &wrong).expect("write a part");
            let told = desk.refused(&backups, &[]);
            assert!(told.contains(&file), "{file}, a bit at {at}: {told}");
        }
        for end in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(part, &whole[..end]).expect("write a part");
            let told = desk.refused(&backups, &[]);
            assert!(told.contains(&file), "{file}, cut at {end}: {told}");
        }
        fs::remove_file(part).expect("remove a part");
        let told = desk.refused(&one, &[]);
        assert!(
            told.contains("incomplete") || told.contains("one backup") || told.contains("no backup"),
            "{told}"
        );
        fs::write(part, &whole).expect("write a part");
    }
    let whole = fs::read(&archive).expect("read the archive");
    for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
        let mut wrong = whole.clone();
        wrong[at] ^= 1;
        fs::write(&archive, &wrong).expect("write the archive");
        let told = desk.refused(&archive, &[]);
        assert!(told.contains("one.paddock"), "a bit at {at}: {told}");
        fs::write(&archive, &whole[..at]).expect("write the archive");
        let told = desk.refused(&archive, &[]);
        assert!(told.contains("cut off") || told.contains("no backup"), "cut at {at}: {told}");
    }
    fs::write(&archive, &whole).expect("write the archive");
    check_equal(
        text(&desk.restore(&archive, "from-archive", &[])),
        text(&desk.restore(&one, "from-directory", &[])),
    );

    // Parts of another backup.
    let other = Administered::start(&[]).await;
    let others = desk.path("others/");
    let name =
        desk.backup(&other.admin.to_string(), &others, &[])["backup"].as_str().expect("a name").to_owned();
    let foreign = others.join(name).join("snapshot");
    let own = fs::read(one.join("snapshot")).expect("read the snapshot");
    fs::copy(&foreign, one.join("snapshot")).expect("copy the snapshot");
    let told = desk.refused(&backups, &[]);
    assert!(
        told.contains("snapshot has") || told.contains("its checksum is not that of the manifest"),
        "{told}"
    );
    fs::write(one.join("snapshot"), own).expect("write the snapshot");
    // The log of another member, which has as many entries.
    let client = other.client().await;
    client.create("/b", b"", CreateMode::Persistent).await.expect("create");
    for number in 0..30 {
        client.set_data("/b", format!("{number}").as_bytes(), None).await.expect("set");
    }
    let other_host = other.admin.to_string();
    let told =
        refusal(&["backup", &other_host, "--auth", &desk.auth, "--to", text(&backups), "--incremental"]);
    assert!(told.contains("is not the one that the backup ends with"), "{told}");

    // Nothing is written over.
    let dir = desk.path("from-archive");
    let told = refusal(&["restore", "--from", text(&archive), "--data-dir", text(&dir)]);
    assert!(told.contains("nothing is written over"), "{told}");
    let told = refusal(&["backup", &host, "--auth", &desk.auth, "--to", text(&archive)]);
    assert!(told.contains("nothing is written over"), "{told}");
    let nothing = desk.path("nothing");
    fs::create_dir(&nothing).expect("make a directory");
    let told = desk.refused(&nothing, &[]);
    assert!(told.contains("there is no backup in"), "{told}");
    let told = refusal(&["backup", &host, "--to", text(&nothing)]);
    assert!(told.contains("show an identity with --auth") && files(&nothing).is_empty(), "{told}");
}

#[tokio::test]
async fn the_oldest_go_and_the_newest_is_taken() {
    let desk = Desk::new();
    let member = Administered::start(&[]).await;
    let (host, backups) = (member.admin.to_string(), desk.path("backups/"));
    let client = member.client().await;
    let mut names = Vec::new();
    for number in 0..4 {
        client.create(&format!("/a-{number}"), b"", CreateMode::Persistent).await.expect("create");
        names.push(
            desk.backup(&host, &backups, &["--keep", "2"])["backup"].as_str().expect("a name").to_owned(),
        );
    }
    let listed = succeed(&["restore", "--from", text(&backups), "--list"]);
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(listed, names[2..]);
    check_equal(&member.server.address().to_string(), text(&desk.restore(&backups, "newest", &[])));
    let dir = desk.restore(&backups, "older", &["--backup", &names[2]]);
    let output =
        paddock(&["diff", text(&dir), text(&desk.path("newest"))]).output().expect("run paddock diff");
    assert_eq!(output.status.code(), Some(1), "the older one lacks a znode");
    // A stream, as it goes through a pipe.
    let made =
        paddock(&["backup", &host, "--auth", &desk.auth, "--to", "-"]).output().expect("run paddock backup");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (piped, stream) = (desk.path("piped"), desk.path("stream"));
    fs::write(&stream, &made.stdout).expect("write");
    let mut command = paddock(&["restore", "--from", "-", "--data-dir", text(&piped)]);
    let output = command.stdin(fs::File::open(&stream).expect("open")).output().expect("run paddock restore");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check_equal(text(&piped), text(&desk.path("newest")));
}

/// Returns when a member has all that was written before.
async fn caught_up(server: &Server) {
    connect(&server.address().to_string()).await.sync("/").await.expect("sync");
}

#[tokio::test]
async fn an_ensemble_is_backed_up_from_any_member_and_restored_as_one() {
    let desk = Desk::new();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut ensemble =
        Ensemble::start_each(3, &server_lines(3), |number| admin_settings(ports[number - 1]).to_vec());
    let hosts = ensemble.hosts();
    name_administrator(&hosts).await;
    let client = connect(&hosts).await;
    client.create("/a", b"1", CreateMode::Persistent).await.expect("create");
    let backups = desk.path("backups/");
    ensemble.settle();
    // Parts of one backup may be from different members.
    let host = |place: usize| format!("127.0.0.1:{}", ports[place]);
    desk.backup(&host(0), &backups, &["--with-log"]);
    client.set_data("/a", b"2", None).await.expect("set");
    ensemble.settle();
    desk.backup(&host(1), &backups, &["--incremental"]);
    let leader = ensemble.leader();
    ensemble.member(leader).kill();
    let left: Vec<usize> = (0..3).filter(|place| *place != leader).collect();
    while client.set_data("/a", b"3", None).await.is_err() {}
    caught_up(ensemble.at(left[0])).await;
    desk.backup(&host(left[0]), &backups, &["--incremental"]);
    client.create("/b", b"", CreateMode::Persistent).await.expect("create");
    for place in &left {
        caught_up(ensemble.at(*place)).await;
    }
    desk.backup(&host(left[1]), &backups, &["--incremental"]);
    let dir = desk.restore(&backups, "restored", &["--member", "2"]);
    check_equal(&ensemble.at(left[0]).address().to_string(), text(&dir));

    // One member begins with it, and the others join with nothing.
    let servers = server_lines(3);
    let mut restored = Vec::new();
    for id in [2, 1, 3] {
        let lines: Vec<(&str, &str)> =
            servers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut server = Server::prepare(ServerKind::Paddock, &lines);
        if id == 2 {
            fs::remove_dir_all(server.data_directory()).expect("make room");
            copy(&dir, &server.data_directory()).expect("copy the data");
        }
        fs::write(server.data_directory().join("myid"), id.to_string()).expect("write myid");
        server.restart();
        restored.push(server);
    }
    for server in &restored {
        let client = connect(&server.address().to_string()).await;
        client.sync("/").await.expect("sync");
        let data = client.get_data("/a").await.expect("read").bytes.expect("it has data");
        assert_eq!(&data[..], b"3");
    }
    let client = connect(&restored[2].address().to_string()).await;
    client.create("/of-the-new-one", b"", CreateMode::Persistent).await.expect("create");
}
