//! A disk that is full, and one that cannot be written.

use std::fs;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Error, ErrorCode, Pending};
use paddock_tests::damage::member::{self, MemberProcess};
use paddock_tests::damage::tree::{check_same, read_tree};
use paddock_tests::filesystem::Filesystem;
use rustix::process::{Resource, Rlimit, prlimit};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const DISK_BYTES: usize = 4 << 20;
const BALLAST_BYTES: usize = 2 << 20;
const SETTINGS: [(&str, &str); 2] = [("preAllocSize", "256"), ("minSessionTimeout", "1000")];
/// Sessions would expire in this time if the member forgot that it heard their clients.
const SESSION_TIMEOUT: Duration = Duration::from_secs(1);
const FULL_FOR: Duration = Duration::from_millis(2500);
const PATIENCE: Duration = Duration::from_secs(20);
const VALUE: [u8; 16_000] = [b'v'; 16_000];

#[tokio::test]
async fn writes_are_refused_until_there_is_room_and_reads_go_on() {
    let Some(disk) = Filesystem::mount(DISK_BYTES) else { return };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; BALLAST_BYTES]).expect("take up room");
    let data_dir = disk.path().join("data");
    let member = member::start(&data_dir, &SETTINGS).serves("a disk with some room");
    let reader = connect(&member).await;
    reader.create("/alive", b"", CreateMode::Ephemeral).await.expect("create");
    let writer = connect(&member).await;

    let session = writer.session();
    let acknowledged = write_until_full(&writer, &member).await;
    assert!(acknowledged > 0, "nothing was written before the disk was full");
    let refused = reader.set_data("/alive", b"x", None).await.expect_err("there is no room");
    assert_eq!(refused.code(), Some(ErrorCode::NotReadOnly));
    check_reads_go_on(&reader, acknowledged, &member).await;

    fs::remove_file(&ballast).expect("free some room");
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = writer.create("/after", b"", CreateMode::Persistent).await {
        assert!(Instant::now() < deadline, "there is room, and writes are still refused: {error:?}");
    }
    assert_eq!(writer.session(), session, "no session ends while nobody can come back to it");
    member.wait_for_log("disk has room again");
    let tree = read_tree(&reader).await;
    assert_eq!(tree["/alive"].stat.ephemeral_owner, reader.session(), "the reader's session goes on");
    for number in 0..acknowledged {
        assert!(tree.contains_key(&path(number)), "write {number} was acknowledged");
    }
    drop(member);
    let member = member::start(&data_dir, &SETTINGS).serves("after a crash");
    check_same(&read_tree(&connect(&member).await).await, &tree, "after a crash");
}

/// More than the log's first two files, and less than its third.
const LARGEST_FILE_BYTES: u64 = 12 << 20;
static LARGE_VALUE: [u8; 1_000_000] = [b'v'; 1_000_000];

#[tokio::test]
async fn a_limit_for_the_size_of_files_is_as_a_full_disk() {
    let directory = tempfile::tempdir().expect("make a directory");
    let data_dir = directory.path().join("data");
    let member = member::start(&data_dir, &[]).serves("a disk with room");
    let limit = |bytes| {
        let limit = Rlimit { current: Some(bytes), maximum: None };
        prlimit(Some(member.process_id()), Resource::Fsize, limit).expect("limit the size of its files");
    };
    limit(LARGEST_FILE_BYTES);
    let (client, reader) = (member.connect().await, member.connect().await);
    let create = |number| client.create(&path(number), &LARGE_VALUE, CreateMode::Persistent);
    let mut acknowledged = 0;
    while timeout(PATIENCE, create(acknowledged)).await.expect("every write gets some answer").is_ok() {
        acknowledged += 1;
    }
    assert!(acknowledged > 0, "nothing was written");
    member.wait_for_log("disk full: refusing writes");
    let refused = reader.set_data("/", b"x", None).await.expect_err("there is no room");
    assert_eq!(refused.code(), Some(ErrorCode::NotReadOnly));
    reader.get_data(&path(acknowledged - 1)).await.expect("a read does not wait for room");

    limit(1 << 30);
    let deadline = Instant::now() + PATIENCE;
    while client.create("/after", b"", CreateMode::Persistent).await.is_err() {
        assert!(Instant::now() < deadline, "there is room, and writes are still refused: {}", member.log());
    }
    drop(member);
    let member = member::start(&data_dir, &[]).serves("after a crash");
    let tree = read_tree(&member.connect().await).await;
    assert!(
        (0..acknowledged).all(|number| tree.contains_key(&path(number))),
        "{acknowledged} were acknowledged"
    );
}

#[tokio::test]
async fn a_crash_with_a_full_disk_loses_nothing() {
    let Some(disk) = Filesystem::mount(DISK_BYTES) else { return };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; BALLAST_BYTES]).expect("take up room");
    let data_dir = disk.path().join("data");
    let member = member::start(&data_dir, &SETTINGS).serves("a disk with some room");
    let writer = connect(&member).await;
    let acknowledged = write_until_full(&writer, &member).await;
    drop((member, writer));

    fs::remove_file(&ballast).expect("free some room");
    let member = member::start(&data_dir, &SETTINGS).serves("after a crash");
    let tree = read_tree(&connect(&member).await).await;
    for number in 0..acknowledged {
        let znode = tree.get(&path(number)).unwrap_or_else(|| panic!("write {number} was acknowledged"));
        assert_eq!(znode.data.as_deref(), Some(&VALUE[..]), "write {number}");
    }
}

#[tokio::test]
async fn a_full_disk_does_not_hold_up_the_end() {
    let Some(disk) = Filesystem::mount(DISK_BYTES) else { return };
    let member = member::start(&disk.path().join("data"), &SETTINGS).serves("a disk with some room");
    let writer = connect(&member).await;
    write_until_full(&writer, &member).await;
    let (exit_code, log) = spawn_blocking(|| member.terminate()).await.expect("it ends");
    assert_eq!(exit_code, Some(1), "a write was left without an answer: {log}");
    assert!(log.lines().last().is_some_and(|line| line.contains("no room on disk")), "{log}");
}

#[tokio::test]
async fn a_disk_that_cannot_be_written_is_refused() {
    let Some(disk) = Filesystem::mount(DISK_BYTES) else { return };
    let data_dir = disk.path().join("data");
    drop(member::start(&data_dir, &SETTINGS).serves("a good disk"));
    disk.make_read_only();
    let refusal = member::start(&data_dir, &SETTINGS).refuses("a read-only disk");
    assert_eq!(refusal.exit_code, Some(1), "{}", refusal.log);
    for part in [&data_dir.display().to_string(), "Read-only file system"] {
        assert!(refusal.line().contains(part), "{part:?} is not in {:?}", refusal.line());
    }
}

async fn connect(member: &MemberProcess) -> Client {
    member.connect_with(ClientOptions { session_timeout: SESSION_TIMEOUT, ..ClientOptions::default() }).await
}

fn path(number: usize) -> String {
    format!("/write-{number}")
}

fn write(client: &Client, number: usize) -> Pending<String> {
    client.create(&path(number), &VALUE, CreateMode::Persistent)
}

/// Writes one after the other until the disk is full, when it cannot be told what becomes of the last one. Returns how many
/// were acknowledged.
async fn write_until_full(client: &Client, member: &MemberProcess) -> usize {
    for number in 0.. {
        let answer = timeout(PATIENCE, write(client, number)).await.expect("every write gets some answer");
        match answer {
            Ok(_) => {}
            Err(Error::ConnectionLost) => {
                member.wait_for_log("disk full");
                return number;
            }
            Err(error) => panic!("write {number}: {error:?}"),
        }
    }
    unreachable!("the disk is small")
}

/// For longer than a session lives unheard.
async fn check_reads_go_on(reader: &Client, acknowledged: usize, member: &MemberProcess) {
    let until = Instant::now() + FULL_FOR;
    let mut reads = 0;
    while Instant::now() < until {
        let read = timeout(SESSION_TIMEOUT, reader.get_data(&path(reads % acknowledged))).await;
        let data = read.expect("a read does not wait for room").expect("it was acknowledged");
        assert_eq!(data.bytes.as_deref(), Some(&VALUE[..]));
        reads += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let log = member.log();
    let is_of_start = |line: &&str| {
        ["paddock starts", "ready for clients", "feature level raised"].iter().any(|part| line.contains(part))
    };
    let lines = log.lines().filter(|line| !is_of_start(line)).count();
    assert!(lines <= 2, "{lines} lines in {FULL_FOR:?} hide the one that matters: {log}");
    let unseen = reader.exists(&path(acknowledged)).await.expect_err("a write that waits cannot be seen");
    assert_eq!(unseen.code(), Some(ErrorCode::NoNode));
}
