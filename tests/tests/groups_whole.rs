//! Znodes in several Raft groups are copied as one tree: of members that are stopped, by whatever reads a data directory, and of members that run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{Client, CreateMode, Error, Multi};
use paddock_tests::administered::{
    Administered, admin_settings, connect, files, identity_file, name_administrator, refusal, succeed, text,
};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, ServerKind, free_port, metric};
use paddock_tests::waiting::wait_until;
use paddock_tree::slot_of;
use serde_json::Value;
use tempfile::TempDir;

const GROUPS: usize = 4;
const WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Members whose znodes below `/app` are spread over four groups.
struct SpreadEnsemble {
    members: Ensemble,
    admins: Vec<String>,
    desk: TempDir,
    auth: String,
}

impl SpreadEnsemble {
    /// Three members that have all groups.
    async fn start() -> SpreadEnsemble {
        SpreadEnsemble::start_with(3, &[], &[GROUPS; 3]).await
    }

    /// Members that have these numbers of groups.
    async fn start_with(count: usize, more: &[(&str, &str)], groups_of_each: &[usize]) -> SpreadEnsemble {
        let (groups, ports) = (GROUPS.to_string(), (0..count).map(|_| free_port()).collect::<Vec<_>>());
        let settings = |number: usize| {
            let own = [("paddock.group_count", groups.as_str()), ("paddock.split_points", "/app")];
            let own = own.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            own.chain(admin_settings(ports[number - 1])).collect()
        };
        let members = Ensemble::start_each(count, &server_lines(count), settings);
        name_administrator(&members.hosts()).await;
        let desk = tempfile::tempdir().expect("make a directory");
        let auth = identity_file(desk.path());
        let admins = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let spread = SpreadEnsemble { members, admins, desk, auth };
        let places = groups_of_each.iter().enumerate();
        places.for_each(|(place, groups)| await_groups(spread.members.at(place), *groups));
        let client = spread.client().await;
        client.create("/app", b"", CreateMode::Persistent).await.expect("create the split point");
        for number in 0..40 {
            let path = format!("/app/early-{number}");
            client.create(&path, b"early", CreateMode::Persistent).await.expect("create below it");
        }
        client.close().await.expect("close");
        let moving = ["groups", "move", &spread.admins[0], "/app", "--evenly", "--at-once", "512"];
        let moved = succeed(&[&moving[..], &["--auth", &spread.auth]].concat());
        assert!(moved.contains("slots of /app moved"), "{moved}");
        spread
    }

    async fn client(&self) -> Client {
        connect(&self.members.hosts()).await
    }

    fn path(&self, name: &str) -> String {
        text(&self.desk.path().join(name)).to_owned()
    }
}

/// Waits until a member has all its groups, and each has a leader.
fn await_groups(member: &Server, groups: usize) {
    let has_all = || {
        let told = member.four_letter_word("mntr").unwrap_or_default();
        let number = |name: &str| metric(&told, name).and_then(|number| number.parse().ok());
        (number("zk_groups"), number("zk_groups_without_leader")) == (Some(groups), Some(0))
    };
    wait_until("all groups have leaders", has_all);
}

/// Lines of all znodes below the split point and of itself, with the numbers of their Stats.
fn dumped(source: &str) -> String {
    succeed(&["dump", source, "--path", "/app", "--stat", "--ephemerals"])
}

#[tokio::test]
async fn the_directory_of_a_stopped_member_has_what_clients_saw() {
    let mut spread = SpreadEnsemble::start().await;
    let client = spread.client().await;
    for number in 0..40 {
        let path = format!("/app/late-{number}");
        client.create(&path, b"late", CreateMode::Persistent).await.expect("create below it");
        client
            .create(&format!("{path}/alive"), b"", CreateMode::Ephemeral)
            .await
            .expect("create an ephemeral");
        client.delete(&format!("/app/early-{number}"), None).await.expect("delete");
    }
    client.create("/app/s-", b"", CreateMode::PersistentSequential).await.expect("create");
    client.sync("/app").await.expect("there is a quorum");
    let seen = dumped(&spread.members.hosts());
    assert_eq!(seen.lines().count(), 1 + 1 + 40 + 40 + 1, "{seen}");
    for place in 0..3 {
        assert!(spread.members.member(place).stop().success());
    }
    for place in 0..3 {
        let directory = spread.members.at(place).data_directory();
        assert_eq!(dumped(text(&directory)), seen, "member {place}");
        let to = spread.path(&format!("zookeeper-{place}"));
        succeed(&["export", "zookeeper", "--data-dir", text(&directory), "--to", &to]);
        assert_eq!(dumped(&to), seen, "export of member {place}");
    }
    let directories = [0, 1].map(|place| spread.members.at(place).data_directory());
    let [one, other] = directories.each_ref().map(|directory| text(directory));
    let compared = succeed(&["diff", one, other]);
    assert!(compared.contains(" 0 different, 0 only in A, 0 only in B"), "{compared}");
    drop(client);
}

/// Number of writers.
const WRITERS: u64 = 8;

/// Znodes below the split point in which one writer counts.
#[derive(Clone)]
struct Counters {
    /// In two groups, set one after the other.
    chain: [String; 2],
    /// In two groups, set together.
    together: [String; 2],
}

impl Counters {
    /// Counters of all writers. Each has its own in other groups than the one before.
    fn of(spread: &SpreadEnsemble) -> Vec<Counters> {
        let page = succeed(&["groups", "list", &spread.admins[0], "--auth", &spread.auth, "--json"]);
        let page: Value = serde_json::from_str(&page).expect("it is JSON");
        let runs = page["split_points"][0]["slots"].as_array().expect("a list").clone();
        let is_in = |name: &str, group: u64| {
            let slot = u64::from(slot_of(name).expect("it has a slot"));
            let number = |run: &Value, key: &str| run[key].as_u64().expect("a number");
            let run = runs.iter().find(|run| (number(run, "first")..=number(run, "last")).contains(&slot));
            number(run.expect("every slot is in a group"), "group") == group
        };
        let in_group = |writer: u64, what: &str, group: u64| {
            let group = (writer + group) % GROUPS as u64;
            let mut names = (0..).map(|number| format!("{what}-{writer}-{number}"));
            format!("/app/{}", names.find(|name| is_in(name, group)).expect("some name is"))
        };
        let counters = |writer| Counters {
            chain: [0, 1].map(|group| in_group(writer, "chain", group)),
            together: [2, 3].map(|group| in_group(writer, "together", group)),
        };
        (0..WRITERS).map(counters).collect()
    }

    /// Makes sure that a copy has these counters as they were at one point.
    async fn check(&self, copy: &Client, round: usize) -> u64 {
        let ([first, second], [one, other]) =
            (numbers(copy, &self.chain).await, numbers(copy, &self.together).await);
        assert!(first == second || first == second + 1, "round {round}: {first} in front of {second}");
        assert_eq!(one, other, "round {round}: a multi is all or nothing");
        assert!(one + 1 >= first && one <= second, "round {round}: {one} behind {first} and {second}");
        first
    }

    /// Writes a number into both counters of the chain, in this order, and into the others together, until it is stopped. Returns the last number.
    #[tokio::main(flavor = "current_thread")]
    async fn count_until(&self, hosts: &str, stop: &AtomicBool) -> Result<u64, Error> {
        let client = connect(hosts).await;
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            number += 1;
            for path in &self.chain {
                client.set_data(path, number.to_string().as_bytes(), None).await?;
            }
            self.set_together(&client, number).await?;
        }
        client.close().await?;
        Ok(number)
    }

    /// Counts in both that are set together, until its member is gone.
    #[tokio::main(flavor = "current_thread")]
    async fn count_together(&self, hosts: &str) -> Error {
        let client = connect(hosts).await;
        for number in 1.. {
            if let Err(error) = self.set_together(&client, number).await {
                return error;
            }
        }
        unreachable!("numbers do not end")
    }

    async fn set_together(&self, client: &Client, number: u64) -> Result<(), Error> {
        let data = number.to_string();
        let set = |multi: Multi, path: &String| multi.set_data(path, data.as_bytes(), None);
        client.multi(&self.together.iter().fold(Multi::new(), set)).await.map(drop)
    }
}

/// Numbers that the znodes have.
async fn numbers(client: &Client, paths: &[String; 2]) -> [u64; 2] {
    let mut numbers = [0; 2];
    for (number, path) in numbers.iter_mut().zip(paths) {
        let bytes = client.get_data(path).await.expect("read a counter").bytes.expect("it has data");
        *number = String::from_utf8(bytes).expect("it is text").parse().expect("it is a number");
    }
    numbers
}

/// A member alone on a data directory that was made.
fn started_on(directory: &Path) -> Server {
    let mut server = Server::prepare(ServerKind::Paddock, &[]);
    fs::remove_dir_all(server.data_directory()).expect("make room");
    copy(directory, &server.data_directory());
    server.restart();
    server
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(target.parent().expect("it has one")).expect("make a directory");
        fs::copy(&file, &target).expect("copy a file");
    }
}

#[tokio::test]
async fn a_backup_of_a_member_that_runs_is_of_one_point_of_the_order() {
    let spread = SpreadEnsemble::start().await;
    check_backups_under_load(&spread, 9).await;
    for refused in [&["--with-log"][..], &["--incremental"]] {
        let to = spread.path("backups/");
        fs::create_dir_all(&to).expect("make a directory");
        if refused == ["--incremental"] {
            succeed(&["backup", &spread.admins[0], "--auth", &spread.auth, "--to", &to]);
        }
        let told =
            refusal(&[&["backup", &spread.admins[0], "--auth", &spread.auth, "--to", &to], refused].concat());
        assert!(told.contains("several Raft groups, whose logs are not copied"), "{told}");
    }
    let backups = files(Path::new(&spread.path("backups")));
    let snapshot = backups.iter().find(|file| file.ends_with("snapshot")).expect("a backup has one");
    let [file, state] = ["snapshot", "state"].map(|what| succeed(&["inspect", what, text(snapshot)]));
    assert!(file.contains("entry     0 of term 0"), "{file}");
    assert!(state.contains("72  /app\n"), "{state}");
}

/// No member of the five has all groups: others copy for it what it does not have.
#[tokio::test]
async fn a_backup_has_the_groups_that_are_on_other_members() {
    // Group 1 is on members 2 to 4, group 2 on 3 to 5, group 3 on 4, 5 and 1.
    let mut spread =
        SpreadEnsemble::start_with(5, &[("paddock.group_replicas", "3")], &[2, 2, 3, 4, 3]).await;
    check_backups_under_load(&spread, 5).await;
    // Others have the groups of a member that is gone.
    let seen = dumped(&spread.members.hosts());
    spread.members.member(3).kill();
    let (host, to, restored) = (&spread.admins[0], spread.path("last"), spread.path("restored-last"));
    succeed(&["backup", host, "--auth", &spread.auth, "--to", &to]);
    succeed(&["restore", "--from", &to, "--data-dir", &restored]);
    assert_eq!(dumped(&restored), seen);
    for place in [2, 4] {
        spread.members.member(place).kill();
    }
    let told = refusal(&["backup", host, "--auth", &spread.auth, "--to", &spread.path("none")]);
    assert!(
        told.contains("could not be had: no member that has it is there")
            || told.contains("has not come as far as the others")
            || told.contains("not currently serving requests"),
        "{told}"
    );
    // The other member may be making a copy that is not waited for any more.
    for place in [0, 1] {
        let directory = spread.members.at(place).data_directory();
        let is_copy = |path: &PathBuf| {
            path.parent() == Some(&directory) && path.to_string_lossy().contains("/snapshot-")
        };
        wait_until("no copy is left", || !files(&directory).iter().any(is_copy));
    }
}

/// Clients write in all groups, and slots go from group to group, while members are backed up in turn: each backup is of one point of the order, and has all.
async fn check_backups_under_load(spread: &SpreadEnsemble, rounds: usize) {
    let client = spread.client().await;
    let counters = Counters::of(spread);
    for path in counters.iter().flat_map(|own| own.chain.iter().chain(&own.together)) {
        client.create(path, b"0", CreateMode::Persistent).await.expect("create a counter");
    }
    client.create("/app/alive", b"", CreateMode::Ephemeral).await.expect("create an ephemeral");
    let stop = Arc::new(AtomicBool::new(false));
    let start = |own: &Counters| {
        let (hosts, stop, own) = (spread.members.hosts(), stop.clone(), own.clone());
        thread::spawn(move || own.count_until(&hosts, &stop))
    };
    let writers: Vec<_> = counters.iter().map(start).collect();
    // A quarter of the slots goes from group to group meanwhile.
    let mover = {
        let (host, auth, stop) = (spread.admins[0].clone(), spread.auth.clone(), stop.clone());
        thread::spawn(move || {
            for to in (0..GROUPS).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                let to = to.to_string();
                let slots = ["--to", &to, "--slots", "1000-2023", "--at-once", "512", "--auth", &auth];
                succeed(&[&["groups", "move", &host, "/app"], &slots[..]].concat());
            }
        })
    };
    let mut last = 0;
    for round in 0..rounds {
        let host = &spread.admins[round % spread.admins.len()];
        let to = spread.path(&format!("backup-{round}"));
        succeed(&["backup", host, "--auth", &spread.auth, "--to", &to]);
        let restored = spread.path(&format!("restored-{round}"));
        succeed(&["restore", "--from", &to, "--data-dir", &restored]);
        let server = started_on(Path::new(&restored));
        let alone = connect(&server.address().to_string()).await;
        let mut sum = 0;
        for own in &counters {
            sum += own.check(&alone, round).await;
        }
        assert!(sum >= last, "round {round}: {sum} behind {last}");
        last = sum;
        assert_eq!(alone.get_children("/app").await.expect("list").len(), 40 + 4 * WRITERS as usize + 1);
        // Its znodes are all its own.
        alone.create("/app/one-more", b"", CreateMode::Persistent).await.expect("create");
        alone.close().await.expect("close");
    }
    stop.store(true, Ordering::Relaxed);
    mover.join().expect("the mover ends well");
    let ended = writers.into_iter().map(|writer| writer.join().expect("the writer ends well"));
    let written: u64 = ended.map(|number| number.expect("all is written")).sum();
    assert!(written >= last && last > 0, "{written} were written, and {last} are there");

    // What is written no more is the same from a client, a snapshot and a backup.
    client.sync("/app").await.expect("there is a quorum");
    let seen = dumped(&spread.members.hosts());
    let (file, exported) = (spread.path("archive"), spread.path("exported"));
    let url = format!("http://{}", spread.admins[1]);
    assert_eq!(
        succeed(&["dump", &url, "--auth", &spread.auth, "--path", "/app", "--stat", "--ephemerals"]),
        seen
    );
    succeed(&["backup", &spread.admins[2], "--auth", &spread.auth, "--to", &file]);
    succeed(&["export", "zookeeper", "--from", &url, "--auth", &spread.auth, "--to", &exported]);
    assert_eq!(dumped(&exported), seen);
    let restored = spread.path("restored");
    succeed(&["restore", "--from", &file, "--data-dir", &restored]);
    assert_eq!(dumped(&restored), seen);
    client.close().await.expect("close");
}

#[tokio::test]
async fn a_backup_without_a_quorum_fails_and_leaves_nothing() {
    let mut spread = SpreadEnsemble::start().await;
    let told = |spread: &SpreadEnsemble| {
        let (host, to) = (&spread.admins[0], spread.path("backup"));
        let begun = Instant::now();
        let told = refusal(&["backup", host, "--auth", &spread.auth, "--to", &to]);
        assert!(begun.elapsed() < WITHIN && !Path::new(&to).exists(), "{told}");
        told
    };
    for place in [1, 2] {
        spread.members.member(place).kill();
    }
    let refused = told(&spread);
    assert!(
        refused.contains("has not come as far as the others within 10 seconds")
            || refused.contains("not currently serving requests"),
        "{refused}"
    );
    let left = files(&spread.members.at(0).data_directory());
    let is_copy = |path: &std::path::PathBuf| path.to_string_lossy().contains("snapshot-0000000000000000");
    assert!(!left.iter().any(is_copy), "{left:?}");
}

/// The home group's log tells of all znodes again when they have come back; of a moment between it has a part.
#[tokio::test]
async fn a_log_goes_over_a_time_in_which_znodes_were_spread() {
    let settings = [("paddock.group_count", "3"), ("paddock.split_points", "/app")];
    let Administered { mut server, admin } = Administered::start(&settings).await;
    let (host, desk) = (admin.to_string(), tempfile::tempdir().expect("make a directory"));
    let auth = identity_file(desk.path());
    let path = |name: &str| text(&desk.path().join(name)).to_owned();
    let backups = path("backups/");
    let ask = |words: &[&str]| succeed(&[words, &["--auth", &auth]].concat());
    await_groups(&server, 3);
    let client = connect(&server.address().to_string()).await;
    let create = async |path: &str| client.create(path, b"data", CreateMode::Persistent).await.map(drop);
    create("/app").await.expect("create the split point");
    create("/app/before").await.expect("create below it");
    ask(&["backup", &host, "--to", &backups]);
    ask(&["groups", "move", &host, "/app", "--evenly"]);
    for number in 0..20 {
        create(&format!("/app/spread-{number}")).await.expect("create below it");
    }
    let between = client.get_data("/app/spread-19").await.expect("it is there").stat.czxid.0.to_string();
    let told = refusal(&["backup", &host, "--to", &backups, "--incremental", "--auth", &auth]);
    assert!(told.contains("several Raft groups, whose logs are not copied"), "{told}");
    ask(&["groups", "move", &host, "/app", "--to", "0"]);
    create("/app/after").await.expect("create below it");
    ask(&["backup", &host, "--to", &backups, "--incremental"]);
    let restored = path("restored");
    succeed(&["restore", "--from", &backups, "--data-dir", &restored]);
    assert_eq!(dumped(&restored), dumped(&server.address().to_string()));
    let moment = ["--to-zxid", &between];
    let told =
        refusal(&[&["restore", "--from", &backups, "--data-dir", &path("between")], &moment[..]].concat());
    assert!(told.contains("a part of the znodes lay in other Raft groups"), "{told}");
    client.close().await.expect("close");

    // A copy that a process has left which was killed goes with the next start.
    assert!(server.stop().success());
    let left = server.data_directory().join("snapshot-0000000000000000");
    fs::write(&left, "a part of a copy").expect("write a file");
    server.restart();
    assert!(!left.exists());
}

/// All members die while clients write multis. No directory has a half of one.
#[tokio::test]
async fn the_directory_of_a_member_that_died_has_no_half_of_a_multi() {
    let mut spread = SpreadEnsemble::start().await;
    let client = spread.client().await;
    let counters = Counters::of(&spread);
    for path in counters.iter().flat_map(|own| &own.together) {
        client.create(path, b"0", CreateMode::Persistent).await.expect("create a counter");
    }
    let start = |own: &Counters| {
        let (hosts, own) = (spread.members.hosts(), own.clone());
        thread::spawn(move || own.count_together(&hosts))
    };
    let writers: Vec<_> = counters.iter().map(start).collect();
    // All of them: one that is not connected yet would look for a member for ever.
    for own in &counters {
        while client.get_data(&own.together[0]).await.expect("read").stat.version < 10 {
            thread::sleep(POLL);
        }
    }
    for place in 0..3 {
        spread.members.member(place).kill();
    }
    drop(client);
    for place in 0..3 {
        let directory = spread.members.at(place).data_directory();
        let lines = dumped(text(&directory));
        let number = |path: &String| {
            let name = path.trim_start_matches("/app");
            let line = lines.lines().find(|line| line.contains(&format!("\"{name}\""))).expect("it is there");
            let line: Value = serde_json::from_str(line).expect("it is JSON");
            line["text"].as_str().expect("it has data").parse::<u64>().expect("it is a number")
        };
        for own in &counters {
            let [one, other] = own.together.each_ref().map(number);
            assert_eq!(one, other, "member {place}");
        }
    }
    for writer in writers {
        assert!(matches!(writer.join().expect("the writer ends well"), Error::ConnectionLost));
    }
}
