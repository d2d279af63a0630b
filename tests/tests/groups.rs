//! An ensemble with several Raft groups: every member has them all, their leaders are spread over the members, and spread again when one is away
//! and when it is back. Members join, leave and are replaced in all groups.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paddock_client::{AddWatchMode, Client, ClientOptions, Error, ErrorCode, Event, EventKind};
use paddock_proto::{Acl, CreateMode, Id, Perms};
use paddock_tests::administered::{
    Administered, admin_settings, connect, identity_file, name_administrator, refusal, succeed, text,
};
use paddock_tests::bursts::{look_on_until, write_bursts_until};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, free_port, metric};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time;

const GROUPS: usize = 6;
/// The user `super` may change the members: `super:secret`.
const SUPER: (&str, &str) =
    ("DigestAuthenticationProvider.superDigest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4=");
const WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

#[test]
fn leaders_of_groups_are_spread_and_spread_again() {
    let groups = GROUPS.to_string();
    let settings = [("paddock.group_count", groups.as_str())];
    let mut ensemble = Ensemble::start_with(3, &settings);
    write(&ensemble.hosts(), "/first");
    // Five groups beside the home group: one or two for each member.
    await_leads([0, 1, 2].map(|place| ensemble.at(place)), 1);

    assert!(ensemble.member(1).stop().success());
    await_leads([0, 2].map(|place| ensemble.at(place)), 2);
    write(&ensemble.hosts(), "/second");
    ensemble.member(1).spawn();
    ensemble.settle();
    await_leads([0, 1, 2].map(|place| ensemble.at(place)), 1);

    for place in 0..3 {
        ensemble.member(place).kill();
    }
    for place in 0..3 {
        ensemble.member(place).spawn();
    }
    ensemble.settle();
    await_leads([0, 1, 2].map(|place| ensemble.at(place)), 1);
    write(&ensemble.hosts(), "/third");
}

/// Three members become four, the first one goes, and one that has died is replaced, while a client writes.
#[test]
fn members_of_all_groups_change_while_clients_write() {
    let lines = server_lines(5);
    let groups = GROUPS.to_string();
    let start = |id: usize, named: &[usize]| {
        let own = [SUPER, ("reconfigEnabled", "true"), ("paddock.group_count", groups.as_str())];
        let named = named.iter().map(|id| (&*lines[id - 1].0, &*lines[id - 1].1));
        Server::start_member(id, &named.chain(own).collect::<Vec<_>>())
    };
    let mut members: Vec<Server> = (1..=3).map(|id| start(id, &[1, 2, 3])).collect();
    await_leads(&members, 1);
    members.push(start(4, &[1, 2, 3, 4]));
    let hosts = |members: &[Server]| {
        let addresses: Vec<String> = members.iter().map(|member| member.address().to_string()).collect();
        addresses.join(",")
    };
    let joins = |member: &Server, id: usize| {
        format!("server.{id}={}:participant;{}", lines[id - 1].1, member.address())
    };
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (hosts, stop) = (hosts(&members), stop.clone());
        move || write_until(&hosts, &stop)
    });

    change_members(&hosts(&members[..3]), &joins(&members[3], 4), "").expect("4 joins");
    await_leads(&members, 1);
    change_members(&hosts(&members[1..]), "", "1").expect("1 leaves");
    // No group needs it from here on: of 2, 3 and 4 any two are enough.
    members.remove(0).kill();
    await_leads(&members, 1);
    members.remove(0).kill();
    await_leads(&members, 2);
    members.push(start(5, &[2, 3, 4, 5]));
    change_members(&hosts(&members[..2]), &joins(&members[2], 5), "2").expect("5 takes the place of 2");
    await_leads(&members, 1);

    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().expect("the writer ends well");
    assert!(acknowledged.len() > 20, "only {} writes", acknowledged.len());
    let lost = missing(&hosts(&members[2..]), &acknowledged);
    assert!(lost.is_empty(), "5 lacks {lost:?}");
}

/// A member joins five of which each group is on three, the first one leaves, and one loses its disk, while a client writes in all groups.
#[test]
fn groups_are_placed_again_when_members_come_and_go() {
    let (lines, groups) = (server_lines(6), GROUPS.to_string());
    let ports: Vec<u16> = (0..6).map(|_| free_port()).collect();
    let start = |id: usize, count: usize| {
        let own = [
            SUPER,
            ("reconfigEnabled", "true"),
            ("paddock.group_count", groups.as_str()),
            ("paddock.group_replicas", "3"),
            ("paddock.split_points", "/app"),
        ];
        let admin = admin_settings(ports[id - 1]);
        let named = lines[..count].iter().map(|(name, place)| (&**name, &**place));
        let admin = admin.iter().map(|(key, value)| (&**key, &**value));
        Server::start_member(id, &named.chain(own).chain(admin).collect::<Vec<_>>())
    };
    let hosts = |members: &[Server]| {
        let addresses: Vec<String> = members.iter().map(|member| member.address().to_string()).collect();
        addresses.join(",")
    };
    let mut members: Vec<Server> = (1..=5).map(|id| start(id, 5)).collect();
    // The home group, and three of the five others.
    await_placed(&members, &[4; 5]);
    write(&hosts(&members), "/app");
    name_administrator_of(&hosts(&members));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (hosts, stop) = (hosts(&members[1..]), stop.clone());
        move || write_below_until(&hosts, &stop)
    });
    let directory = tempfile::tempdir().expect("make a directory");
    let (host, auth) = (format!("127.0.0.1:{}", ports[4]), identity_file(directory.path()));
    succeed(&["groups", "move", &host, "/app", "--evenly", "--at-once", "512", "--auth", &auth]);

    members.push(start(6, 6));
    let joins = format!("server.6={}:participant;{}", lines[5].1, members[5].address());
    change_members(&hosts(&members[..5]), &joins, "").expect("6 joins");
    // Each of the five groups is on the members from its place on: 2 to 4, 3 to 5, 4 to 6, 5 to 1, 6 to 2.
    await_placed(&members, &[3, 3, 3, 4, 4, 4]);
    let has_snapshots = |member: &Server, group: usize| {
        let directory = member.data_directory().join(format!("snapshots/group-{group}"));
        fs::read_dir(directory).is_ok_and(|mut names| names.next().is_some())
    };
    assert!(!has_snapshots(&members[0], 3), "member 1 has something of a group that has left it");
    let table = succeed(&["groups", "list", &format!("127.0.0.1:{}", ports[5])]);
    assert_eq!(table.matches("not on this member, which asks member").count(), 2, "{table}");

    change_members(&hosts(&members[1..]), "", "1").expect("1 leaves");
    members.remove(0).kill();
    await_placed(&members, &[4; 5]);
    // A group that has left a member and comes back begins anew there, and goes on when the member is started again.
    assert!(members[0].stop().success());
    members[0].spawn();
    await_placed(&members, &[4; 5]);
    members[2].kill();
    let data = members[2].data_directory();
    for name in ["log", "snapshots"] {
        fs::remove_dir_all(data.join(name)).expect("lose the data");
    }
    fs::remove_file(data.join("identity")).expect("lose the data");
    members[2].spawn();
    await_placed(&members, &[4; 5]);

    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().expect("the writer ends well");
    assert!(acknowledged.len() > 20, "only {} writes", acknowledged.len());
    check_below(&members, &acknowledged);
}

/// Children of a split point go to all groups while a client writes, lists and holds ephemerals; members die, and nothing is lost.
#[test]
fn children_of_a_split_point_are_spread_while_clients_write() {
    let groups = GROUPS.to_string();
    let ports = [free_port(), free_port(), free_port()];
    let settings = |number: usize| {
        let own = [("paddock.group_count", groups.as_str()), ("paddock.split_points", "/app")];
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
        own.into_iter().chain(admin_settings(ports[number - 1])).collect()
    };
    let mut ensemble = Ensemble::start_each(3, &server_lines(3), settings);
    name_administrator_of(&ensemble.hosts());
    await_leads([0, 1, 2].map(|place| ensemble.at(place)), 1);
    write(&ensemble.hosts(), "/app");
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (hosts, stop) = (ensemble.hosts(), stop.clone());
        move || write_below_until(&hosts, &stop)
    });
    let directory = tempfile::tempdir().expect("make a directory");
    let (host, auth) = (format!("127.0.0.1:{}", ports[0]), identity_file(directory.path()));
    let moved = succeed(&["groups", "move", &host, "/app", "--evenly", "--at-once", "512", "--auth", &auth]);
    assert!(moved.contains("slots of /app moved"), "{moved}");
    assert!(ensemble.member(1).stop().success());
    ensemble.member(1).spawn();
    ensemble.settle();
    ensemble.member(2).kill();
    ensemble.member(2).spawn();
    ensemble.settle();
    await_leads([0, 1, 2].map(|place| ensemble.at(place)), 1);
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().expect("the writer ends well");
    assert!(acknowledged.len() > 20, "only {} writes", acknowledged.len());
    check_below((0..3).map(|place| ensemble.at(place)), &acknowledged);
}

/// Groups beside the home group are on three of five members each: every member serves all znodes, and has fewer groups than there are.
#[test]
fn members_serve_groups_that_they_do_not_have() {
    const MEMBERS: usize = 5;
    let ports: Vec<u16> = (0..MEMBERS).map(|_| free_port()).collect();
    let mut ensemble = start_with_three_replicas(&ports);
    let all = |ensemble: &Ensemble, least: usize| {
        // The home group, and three of the five others.
        await_groups((0..MEMBERS).map(|place| ensemble.at(place)), 4, least);
    };
    name_administrator_of(&ensemble.hosts());
    all(&ensemble, 1);
    write(&ensemble.hosts(), "/app");
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (hosts, stop) = (ensemble.hosts(), stop.clone());
        move || write_below_until(&hosts, &stop)
    });
    let directory = tempfile::tempdir().expect("make a directory");
    let (host, auth) = (format!("127.0.0.1:{}", ports[0]), identity_file(directory.path()));
    let moved = succeed(&["groups", "move", &host, "/app", "--evenly", "--at-once", "512", "--auth", &auth]);
    assert!(moved.contains("slots of /app moved"), "{moved}");
    let table = succeed(&["groups", "list", &host]);
    assert_eq!(table.matches("not on this member, which asks member").count(), 2, "{table}");
    let members: Vec<String> = (0..MEMBERS).map(|place| ensemble.at(place).address().to_string()).collect();
    check_whole_subtree_is_told(&members);
    assert!(ensemble.member(1).stop().success());
    ensemble.member(1).spawn();
    ensemble.settle();
    ensemble.member(2).kill();
    ensemble.member(2).spawn();
    ensemble.settle();
    all(&ensemble, 1);
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().expect("the writer ends well");
    assert!(acknowledged.len() > 20, "only {} writes", acknowledged.len());
    check_below((0..MEMBERS).map(|place| ensemble.at(place)), &acknowledged);
}

/// A session creates children of a split point many at once, in all groups, while slots move and members die: who looks on sees none before those that were asked for in
/// front of it, on a member that has half of the groups.
#[test]
fn writes_of_a_session_are_seen_in_its_order_whatever_groups_they_go_to() {
    const MEMBERS: usize = 5;
    let ports: Vec<u16> = (0..MEMBERS).map(|_| free_port()).collect();
    let mut ensemble = start_with_three_replicas(&ports);
    name_administrator_of(&ensemble.hosts());
    await_groups((0..MEMBERS).map(|place| ensemble.at(place)), 4, 1);
    write(&ensemble.hosts(), "/app");
    let stop = Arc::new(AtomicBool::new(false));
    let address = |place: usize| ensemble.at(place).address().to_string();
    let (first, second, third) = (address(0), address(1), address(2));
    let onlooker = thread::spawn({
        let (hosts, stop) = (format!("{third},{second}"), stop.clone());
        move || look_on_until(&hosts, "/app", &stop)
    });
    let writer = thread::spawn({
        let (hosts, stop) = (format!("{first},{second}"), stop.clone());
        move || write_bursts_until(&hosts, "/app", &stop)
    });
    let directory = tempfile::tempdir().expect("make a directory");
    let (host, auth) = (format!("127.0.0.1:{}", ports[0]), identity_file(directory.path()));
    let moved = succeed(&["groups", "move", &host, "/app", "--evenly", "--at-once", "512", "--auth", &auth]);
    assert!(moved.contains("slots of /app moved"), "{moved}");
    await_items(&host, 1000);
    ensemble.member(1).kill();
    ensemble.member(1).spawn();
    ensemble.member(0).kill();
    ensemble.member(0).spawn();
    ensemble.settle();
    await_items(&host, 2000);
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().expect("the writer ends well");
    let growths = onlooker.join().expect("the onlooker ends well");
    assert!(growths > 10, "only {growths} lists that have grown");
    check_below((0..MEMBERS).map(|place| ensemble.at(place)), &acknowledged);
}

/// Limits count in the group of their znode, for clients of all members, and the statistics are those of all groups together.
#[test]
fn quotas_count_in_all_groups() {
    const MEMBERS: usize = 5;
    let ports: Vec<u16> = (0..MEMBERS).map(|_| free_port()).collect();
    let ensemble = start_with_three_replicas(&ports);
    name_administrator_of(&ensemble.hosts());
    await_groups((0..MEMBERS).map(|place| ensemble.at(place)), 4, 1);
    write(&ensemble.hosts(), "/app");
    let directory = tempfile::tempdir().expect("make a directory");
    let (host, auth) = (format!("127.0.0.1:{}", ports[0]), identity_file(directory.path()));
    let moved = succeed(&["groups", "move", &host, "/app", "--evenly", "--at-once", "512", "--auth", &auth]);
    assert!(moved.contains("slots of /app moved"), "{moved}");
    let members: Vec<String> = (0..MEMBERS).map(|place| ensemble.at(place).address().to_string()).collect();
    check_quotas(&members);
}

#[tokio::main(flavor = "current_thread")]
async fn check_quotas(members: &[String]) {
    let client = connect(&members.join(",")).await;
    set_quota(&client, "/app", "count=-1,bytes=-1").await;
    // By their hashes they lie in all groups.
    let paths: Vec<String> = (0..20).map(|count| format!("/app/bounded-{count}")).collect();
    for path in &paths {
        client.create(path, b"data", CreateMode::Persistent).await.expect("create");
        set_quota(&client, path, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2").await;
    }
    for (path, member) in paths.iter().zip(members.iter().cycle()) {
        let client = connect(member).await;
        client.sync("/").await.expect("there is a quorum");
        let create =
            async |name: &str| client.create(&format!("{path}/{name}"), b"", CreateMode::Persistent).await;
        create("within").await.expect("two are allowed");
        let refused = create("above").await;
        let is_refused = matches!(refused, Err(Error::Refused { code: ErrorCode::QuotaExceeded, .. }));
        assert!(is_refused, "{path} at {member}: {refused:?}");
    }
    for member in members {
        let client = connect(member).await;
        client.sync("/").await.expect("there is a quorum");
        for (path, expected) in [("/app", "count=21,bytes=84"), (&*paths[0], "count=2,bytes=4")] {
            let statistics = format!("/zookeeper/quota{path}/zookeeper_stats");
            let told = client.get_data(&statistics).await.expect("read").bytes.expect("it has data");
            assert_eq!(String::from_utf8_lossy(&told), expected, "{path} at {member}");
        }
    }
}

/// As `setquota` of ZooKeeper's shell.
async fn set_quota(client: &Client, subject: &str, limits: &str) {
    let quota = format!("/zookeeper/quota{subject}");
    let ends = quota.match_indices('/').map(|(slash, _)| slash).skip(3).chain([quota.len()]);
    for path in ends.map(|end| &quota[..end]) {
        match client.create(path, b"", CreateMode::Persistent).await {
            Ok(_) | Err(Error::Refused { code: ErrorCode::NodeExists, .. }) => {}
            Err(error) => panic!("{path}: {error}"),
        }
    }
    for (name, text) in [("zookeeper_limits", limits), ("zookeeper_stats", "count=0,bytes=0")] {
        let path = format!("{quota}/{name}");
        client.create(&path, text.as_bytes(), CreateMode::Persistent).await.expect("set a quota");
    }
}

/// An ensemble whose groups beside the home group are on three members each, with `/app` as a split point. Each member has its HTTP interface at its port.
fn start_with_three_replicas(ports: &[u16]) -> Ensemble {
    let groups = GROUPS.to_string();
    let settings = |number: usize| {
        let own = [
            ("paddock.group_count", groups.as_str()),
            ("paddock.group_replicas", "3"),
            ("paddock.split_points", "/app"),
            ("enforceQuota", "true"),
        ];
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
        own.into_iter().chain(admin_settings(ports[number - 1])).collect()
    };
    Ensemble::start_each(ports.len(), &server_lines(ports.len()), settings)
}

/// Waits until other groups have applied this number of items of the home group's streams, or more, as a member knows.
fn await_items(host: &str, least: u64) {
    let deadline = Instant::now() + WITHIN;
    loop {
        let told: Value = serde_json::from_str(&succeed(&["groups", "list", host, "--json"])).expect("JSON");
        let groups = told["groups"].as_array().expect("groups are listed");
        if groups.iter().filter_map(|group| group["items_applied"].as_u64()).sum::<u64>() >= least {
            return;
        }
        assert!(Instant::now() < deadline, "no {least} items after {WITHIN:?}: {told}");
        thread::sleep(POLL);
    }
}

/// Waits until these members have all groups and lead them together, each at least `least` of them, and wait for nothing in any.
fn await_leads<'a>(members: impl IntoIterator<Item = &'a Server>, least: usize) {
    await_groups(members, GROUPS, least);
}

/// Likewise, where each member has this number of groups.
fn await_groups<'a>(members: impl IntoIterator<Item = &'a Server>, of_each: usize, least: usize) {
    let members: Vec<&Server> = members.into_iter().collect();
    await_counts(&members, &vec![of_each; members.len()], least);
}

/// Likewise, where each member has a number of groups of its own.
fn await_placed(members: &[Server], counts: &[usize]) {
    await_counts(&members.iter().collect::<Vec<_>>(), counts, 0);
}

fn await_counts(members: &[&Server], of_each: &[usize], least: usize) {
    let deadline = Instant::now() + WITHIN;
    let count = |member: &&Server| {
        let told = member.four_letter_word("mntr").unwrap_or_default();
        ["groups", "groups_led", "groups_joining", "groups_without_leader", "groups_changing"]
            .map(|name| metric(&told, &format!("zk_{name}"))?.parse().ok())
    };
    loop {
        let counts: Vec<[Option<usize>; 5]> = members.iter().map(count).collect();
        let has_all = |([groups, led, waits @ ..], expected): (&[Option<usize>; 5], &usize)| {
            *groups == Some(*expected) && *led >= Some(least) && *waits == [Some(0); 3]
        };
        if counts.iter().zip(of_each).all(has_all)
            && counts.iter().filter_map(|[_, led, ..]| *led).sum::<usize>() == GROUPS
        {
            return;
        }
        assert!(Instant::now() < deadline, "groups and leads after {WITHIN:?}: {counts:?}");
        thread::sleep(POLL);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn write(hosts: &str, path: &str) {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    client.create(path, b"data", CreateMode::Persistent).await.expect("create a znode");
    client.close().await.expect("close");
}

/// Writes until it is stopped; returns the names of the znodes whose creation was acknowledged.
#[tokio::main(flavor = "current_thread")]
async fn write_until(hosts: &str, stop: &AtomicBool) -> Vec<String> {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    let mut acknowledged = Vec::new();
    for count in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("w-{count}");
        match client.create(&format!("/{name}"), b"data", CreateMode::Persistent).await {
            Ok(_) => acknowledged.push(name),
            // Its member has gone: it is not known what became of the write.
            Err(Error::ConnectionLost) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
    acknowledged
}

/// The znodes of these that a member does not have.
#[tokio::main(flavor = "current_thread")]
async fn missing(hosts: &str, expected: &[String]) -> Vec<String> {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    client.sync("/").await.expect("there is a quorum");
    let there: HashSet<String> = client.get_children("/").await.expect("list").into_iter().collect();
    expected.iter().filter(|name| !there.contains(*name)).cloned().collect()
}

#[tokio::main(flavor = "current_thread")]
async fn name_administrator_of(hosts: &str) {
    name_administrator(hosts).await;
}

/// Checks that a client of each member, which watches all below a split point, is told of children in all groups, and of changes of each one.
#[tokio::main(flavor = "current_thread")]
async fn check_whole_subtree_is_told(members: &[String]) {
    let mut watching = Vec::new();
    for member in members {
        let (events, told) = mpsc::unbounded_channel();
        let options = ClientOptions { events: Some(events), ..ClientOptions::default() };
        let client = Client::connect(member, options).await.expect("connect");
        client.add_watch("/app", AddWatchMode::PersistentRecursive).await.expect("watch");
        watching.push((member, client, told));
    }
    let writer = Client::connect(&members[0], ClientOptions::default()).await.expect("connect");
    // By their hashes they lie in all groups.
    let paths: Vec<String> = (0..60).map(|count| format!("/app/told-{count}")).collect();
    for path in &paths {
        writer.create(path, b"data", CreateMode::Persistent).await.expect("create");
        writer.set_data(path, b"more", None).await.expect("set");
    }
    for (member, client, told) in &mut watching {
        let kinds = [EventKind::NodeCreated, EventKind::NodeDataChanged];
        let of_one = |path: &String| kinds.map(|kind| (kind, path.clone()));
        let mut expected: HashSet<(EventKind, String)> = paths.iter().flat_map(of_one).collect();
        while !expected.is_empty() {
            match time::timeout(WITHIN, told.recv()).await {
                Ok(Some(Event::Znode { kind, path, .. })) => drop(expected.remove(&(kind, path))),
                other => panic!("member {member}: {other:?} instead of {expected:?}"),
            }
        }
        client.close().await.expect("close");
    }
}

/// Creates children of a split point, and ephemerals below them, until it is stopped, and looks at each; returns the names that were acknowledged.
#[tokio::main(flavor = "current_thread")]
async fn write_below_until(hosts: &str, stop: &AtomicBool) -> Vec<String> {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    let mut acknowledged = Vec::new();
    for count in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("w-{count}");
        let (path, alive) = (format!("/app/{name}"), format!("/app/{name}/alive"));
        match client.create(&path, b"data", CreateMode::Persistent).await {
            Ok(_) => acknowledged.push(name),
            // Its member has gone: it is not known what became of the write.
            Err(Error::ConnectionLost) => continue,
            Err(error) => panic!("{name}: {error}"),
        }
        match client.create(&alive, b"", CreateMode::Ephemeral).await {
            Ok(_) | Err(Error::ConnectionLost) => {}
            Err(error) => panic!("{alive}: {error}"),
        }
        match client.get_data(&path).await {
            Ok(_) | Err(Error::ConnectionLost) => {}
            Err(error) => panic!("{path} is not there for the client that has created it: {error}"),
        }
    }
    client.close().await.expect("close");
    acknowledged
}

/// Checks that each member has all znodes below the split point whose creation was acknowledged, and no ephemerals of the session that has ended.
fn check_below<'a>(members: impl IntoIterator<Item = &'a Server>, acknowledged: &[String]) {
    for (place, member) in members.into_iter().enumerate() {
        let (names, alive) = list_below(&member.address().to_string());
        let lost: Vec<&String> = acknowledged.iter().filter(|name| !names.contains(*name)).collect();
        assert!(lost.is_empty(), "member {place} lacks {lost:?}");
        assert!(alive.is_empty(), "ephemerals of a session that has ended: {alive:?}");
    }
}

/// Children of the split point as one member has them, and the ephemerals below them.
#[tokio::main(flavor = "current_thread")]
async fn list_below(hosts: &str) -> (HashSet<String>, Vec<String>) {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    client.sync("/").await.expect("there is a quorum");
    let names = client.get_children("/app").await.expect("list");
    let mut alive = Vec::new();
    for name in &names {
        alive.extend(client.get_children(&format!("/app/{name}")).await.expect("list"));
    }
    (names.into_iter().collect(), alive)
}

#[tokio::main(flavor = "current_thread")]
async fn change_members(hosts: &str, joining: &str, leaving: &str) -> Result<(), Error> {
    let client = Client::connect(hosts, ClientOptions::default()).await?;
    client.add_auth("digest", b"super:secret").await?;
    client.reconfig(joining, leaving, None).await?;
    client.close().await
}

#[tokio::test]
async fn split_points_are_listed_and_every_group_knows_them() {
    let settings = [("paddock.group_count", "3"), ("paddock.split_points", "/split,/hidden,/absent")];
    let Administered { mut server, admin } = Administered::start(&settings).await;
    let client =
        Client::connect(&server.address().to_string(), ClientOptions::default()).await.expect("connect");
    let owner = [Acl { perms: Perms::ALL, id: Id { scheme: "auth".to_owned(), id: String::new() } }];
    client.add_auth("digest", b"owner:secret").await.expect("show an identity");
    client.create("/split", b"", CreateMode::Persistent).await.expect("create a split point");
    client.create_with_acl("/hidden", b"", &owner, CreateMode::Persistent).await.expect("create another");
    client.close().await.expect("close");

    let (host, directory) = (admin.to_string(), tempfile::tempdir().expect("make a directory"));
    let auth = identity_file(directory.path());
    let deadline = Instant::now() + WITHIN;
    let page: Value = loop {
        let page = serde_json::from_str(&succeed(&["groups", "list", &host, "--auth", &auth, "--json"]));
        let page: Value = page.expect("it is JSON");
        let groups = page["groups"].as_array().expect("a list");
        let has_items = |group: &Value| group["items"] == 2 && group["items_applied"] == 2;
        if groups.len() == 3 && groups[1..].iter().all(has_items) {
            break page;
        }
        assert!(Instant::now() < deadline, "groups after {WITHIN:?}: {page}");
        thread::sleep(POLL);
    };
    let paths = |page: &Value| {
        let points = page["split_points"].as_array().expect("a list").clone();
        points.iter().map(|point| (point["path"].clone(), point["is_there"].clone())).collect::<Vec<_>>()
    };
    let all = [("/absent", false), ("/hidden", true), ("/split", true)];
    assert_eq!(paths(&page), all.map(|(path, is_there)| (json!(path), json!(is_there))));
    assert_eq!(page["split_points"][2]["slots"], json!([{ "first": 0, "last": 4095, "group": 0 }]));
    let seen = serde_json::from_str(&succeed(&["groups", "list", &host, "--json"])).expect("it is JSON");
    assert_eq!(paths(&seen), [all[0], all[2]].map(|(path, is_there)| (json!(path), json!(is_there))));
    let table = succeed(&["groups", "list", &host]);
    assert!(table.contains("split point /split\n  slots 0 to 4095: group 0\n"), "{table}");
    let refused = refusal(&["groups", "list", &server.address().to_string()]);
    assert!(refused.contains("HTTP interface"), "{refused}");

    // An administrator adds one, and takes one away.
    succeed(&["groups", "split", &host, "/added", "--auth", &auth]);
    succeed(&["groups", "join", &host, "/absent", "--auth", &auth]);
    let table = succeed(&["groups", "list", &host, "--auth", &auth]);
    assert!(table.contains("split point /added (no such znode)\n") && !table.contains("/absent"), "{table}");
    for (arguments, told) in [
        (["split", "/split/below"], "split points are not nested"),
        (["split", "/zookeeper/quota"], "cannot be a split point"),
        (["join", "/other"], "/other is no split point"),
    ] {
        let refused = refusal(&["groups", arguments[0], &host, arguments[1], "--auth", &auth]);
        assert!(refused.contains(told), "{refused}");
    }
    let refused = refusal(&["groups", "split", &host, "/other"]);
    assert!(refused.contains("administrator"), "{refused}");

    assert!(server.stop().success());
    let inspected = succeed(&["inspect", "state", text(&server.data_directory())]);
    for told in
        ["/split: slots 0-4095 in group 0", "/added (no such znode)", "group 2: 2 items, 2 acknowledged"]
    {
        assert!(inspected.contains(told), "{told}: {inspected}");
    }
    let directory = server.data_directory();
    let of_group = |what: &str| succeed(&["inspect", what, text(&directory), "--group", "2"]);
    let (state, log) = (of_group("state"), of_group("log"));
    assert!(state.contains("items of its stream applied       2"), "{state}");
    assert!(log.contains("number 1: this split point is there"), "{log}");
    let refused = refusal(&["inspect", "state", text(&directory), "--group", "3"]);
    assert!(refused.contains("no Raft group 3"), "{refused}");
}
