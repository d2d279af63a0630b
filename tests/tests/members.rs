//! Members join, leave, are replaced and lose their data, as processes, while clients write.

use std::fs;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode, Error};
use paddock_tests::server::{Server, free_port};

/// `super:secret`
const SUPER: (&str, &str) =
    ("DigestAuthenticationProvider.superDigest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4=");
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// Pause between two questions: asking without one takes the cores from those it waits for.
const POLL: Duration = Duration::from_millis(5);

/// A member and the line that names it.
struct TestedMember {
    id: u8,
    line: String,
    server: Server,
}

impl TestedMember {
    /// Starts a member whose configuration names those in `others` and itself.
    fn start(id: u8, others: &[&TestedMember]) -> TestedMember {
        let (quorum, election) = (free_port(), free_port());
        let peers = format!("127.0.0.1:{quorum}:{election}");
        let mut lines: Vec<(String, String)> =
            others.iter().map(|other| (format!("server.{}", other.id), other.peers().to_owned())).collect();
        lines.push((format!("server.{id}"), peers.clone()));
        let mut settings: Vec<(&str, &str)> =
            vec![SUPER, ("reconfigEnabled", "true"), ("standaloneEnabled", "false"), ("snapCount", "500")];
        settings.extend(lines.iter().map(|(key, value)| (&**key, &**value)));
        let server = Server::start_member(usize::from(id), &settings);
        let line = format!("server.{id}={peers}:participant;{}", server.address());
        TestedMember { id, line, server }
    }

    fn peers(&self) -> &str {
        let (_, value) = self.line.split_once('=').expect("a line has a value");
        value.split_once(":participant").expect("it is a participant").0
    }

    fn mode(&self) -> Option<String> {
        let srvr = self.server.four_letter_word("srvr").ok()?;
        srvr.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    fn wait_for_mode(&self, expected: &[&str]) {
        wait(
            || self.mode().is_some_and(|mode| expected.contains(&&*mode)),
            || format!("member {} is {:?} and not one of {expected:?}", self.id, self.mode()),
        );
    }

    async fn connect(&self) -> Client {
        connect(&self.server.address().to_string()).await
    }
}

fn wait(mut condition: impl FnMut() -> bool, what: impl Fn() -> String) {
    let deadline = Instant::now() + SETTLED_WITHIN;
    while !condition() {
        assert!(Instant::now() < deadline, "{} after {SETTLED_WITHIN:?}", what());
        std::thread::sleep(POLL);
    }
}

async fn connect(hosts: &str) -> Client {
    let options = ClientOptions { session_timeout: Duration::from_secs(30), ..ClientOptions::default() };
    let client = Client::connect(hosts, options).await.expect("connect");
    client.add_auth("digest", b"super:secret").await.expect("prove to be super");
    client
}

/// Writes until it is stopped; returns what was acknowledged.
async fn write(client: Client, name: &str, stop: tokio::sync::watch::Receiver<bool>) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if *stop.borrow() {
            break;
        }
        let path = format!("/w/{name}-{number}");
        match client.create(&path, b"x", CreateMode::Persistent).await {
            Ok(_) => acknowledged.push(path),
            Err(Error::ConnectionLost) => {}
            Err(error) => panic!("{path}: {error}"),
        }
    }
    acknowledged
}

#[tokio::test]
async fn one_becomes_three_and_five_and_three_again_under_load() {
    let mut members = vec![TestedMember::start(1, &[])];
    members[0].wait_for_mode(&["leader"]);
    let client = members[0].connect().await;
    client.create("/w", b"", CreateMode::Persistent).await.expect("create the parent");
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut writers = Vec::new();
    for (count, leaving) in [(3, ""), (5, ""), (5, "1,2")] {
        while members.len() < count {
            let others: Vec<&TestedMember> = members.iter().collect();
            members.push(TestedMember::start(members.len() as u8 + 1, &others));
        }
        let joining: Vec<&str> = members[1..].iter().map(|member| member.line.as_str()).collect();
        let joining = if leaving.is_empty() { joining.join(",") } else { String::new() };
        let hosts: Vec<String> = members.iter().map(|member| member.server.address().to_string()).collect();
        writers.push(tokio::spawn({
            let (hosts, stopped, name) = (hosts.join(","), stopped.clone(), format!("{count}-{leaving}"));
            async move { write(connect(&hosts).await, &name, stopped).await }
        }));
        let asker = if leaving.is_empty() { &members[0] } else { &members[3] };
        let config =
            asker.connect().await.reconfig(&joining, leaving, None).await.expect("change the members");
        let text = String::from_utf8(config.bytes.expect("the config has data")).expect("it is text");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("server.")).count(),
            if leaving.is_empty() { count } else { 3 }
        );
        if leaving.is_empty() {
            members.iter().for_each(|member| member.wait_for_mode(&["leader", "follower"]));
        }
    }
    // Who left says so, and what remains does without it.
    members[..2]
        .iter()
        .for_each(|member| wait(|| member.mode().is_none(), || format!("member {} serves", member.id)));
    members.drain(..2).for_each(|mut member| member.server.kill());
    stop.send(true).expect("the writers listen");
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.expect("a writer ends well"));
    }
    assert!(acknowledged.len() > 100, "only {} writes", acknowledged.len());
    for member in &members {
        let reader = member.connect().await;
        reader.sync("/").await.expect("there is a quorum");
        let there = reader.get_children("/w").await.expect("list what is there");
        let there: std::collections::HashSet<String> = there.into_iter().collect();
        let missing: Vec<_> = acknowledged.iter().filter(|path| !there.contains(&path[3..])).collect();
        assert!(
            missing.is_empty(),
            "member {} has lost {} of {}",
            member.id,
            missing.len(),
            acknowledged.len()
        );
    }
}

#[tokio::test]
async fn files_that_change_while_members_run_change_the_members() {
    change_files(&[("standaloneEnabled", "false")]).await;
}

#[tokio::test]
async fn files_change_the_members_of_all_groups() {
    change_files(&[("standaloneEnabled", "false"), ("paddock.group_count", "3")]).await;
}

/// As with a chart that changes a mounted file: no member is restarted, and clients ask for no change.
async fn change_files(settings: &[(&str, &str)]) {
    let lines: Vec<(String, String)> = (1..=3)
        .map(|id| (format!("server.{id}"), format!("127.0.0.1:{}:{}", free_port(), free_port())))
        .collect();
    let of = |members: usize| -> Vec<(&str, &str)> {
        let lines = lines[..members].iter().map(|(key, value)| (&**key, &**value));
        lines.chain(settings.iter().copied()).collect()
    };
    let mut members = vec![Server::start_member(1, &of(1))];
    let client = connect(&members[0].address().to_string()).await;
    for id in [2, 3] {
        members.iter().for_each(|member| member.write_config(&of(id)));
        members.push(Server::start_member(id, &of(id)));
        let added = connect(&members[id - 1].address().to_string()).await;
        added.create(&format!("/of-{id}"), b"", CreateMode::Persistent).await.expect("it serves");
        assert!(client.exists(&format!("/of-{id}")).await.is_ok());
    }
    // Two of three are to go, and say so themselves: the one that stays is no majority.
    members.iter().for_each(|member| member.write_config(&of(1)));
    for member in &members[1..] {
        member.wait_for_log("the new configuration does not name this member");
        member.wait_for_log("this member was removed from the ensemble");
    }
    members.drain(1..).for_each(|mut member| member.kill());
    client.create("/alone", b"", CreateMode::Persistent).await.expect("it needs nobody");
    let config = client.get_data("/zookeeper/config").await.expect("read the members");
    let config = String::from_utf8(config.bytes.expect("there are some")).expect("it is text");
    assert_eq!(config.lines().filter(|line| line.starts_with("server.")).count(), 1, "{config}");
}

#[tokio::test]
async fn a_dead_member_is_replaced_and_a_stranger_is_not_let_in() {
    let mut members = three().await;
    members[2].server.kill();
    members.truncate(2);
    members.iter().for_each(|member| member.wait_for_mode(&["leader", "follower"]));
    let client = members[0].connect().await;
    client.create("/a", b"x", CreateMode::Persistent).await.expect("two of three are a quorum");

    // Not asked for yet, it gets nothing.
    let others: Vec<&TestedMember> = members.iter().collect();
    let fourth = TestedMember::start(4, &others);
    let config = client.reconfig(&fourth.line, "3", None).await.expect("replace the dead member");
    assert!(String::from_utf8_lossy(&config.bytes.unwrap_or_default()).contains("server.4="));
    fourth.wait_for_mode(&["leader", "follower"]);
    let reader = fourth.connect().await;
    assert!(reader.exists("/a").await.is_ok());

    // A member with the data of another ensemble is refused, and says why.
    let mut foreign = three().await;
    let stranger = foreign[2].connect().await;
    stranger.create("/theirs", b"x", CreateMode::Persistent).await.expect("an ensemble like any other");
    let foreign = foreign.swap_remove(2);
    let mut foreign_server = foreign.server;
    foreign_server.kill();
    let lines: Vec<(String, String)> =
        members.iter().map(|other| (format!("server.{}", other.id), other.peers().to_owned())).collect();
    let mut settings: Vec<(&str, &str)> = vec![("standaloneEnabled", "false")];
    settings.extend(lines.iter().map(|(key, value)| (&**key, &**value)));
    let peers = format!("127.0.0.1:{}:{}", free_port(), free_port());
    settings.push(("server.3", &peers));
    foreign_server.write_config(&settings);
    foreign_server.spawn();
    let failed = client.reconfig(&format!("server.3={peers}:participant;127.0.0.1:1"), "", None).await;
    assert!(matches!(failed, Err(Error::Refused { .. })), "{failed:?}");
    foreign_server.wait_for_log("different ensembles");
    client.create("/b", b"x", CreateMode::Persistent).await.expect("nobody else is harmed");
}

#[tokio::test]
async fn a_member_that_lost_its_disk_gets_everything_again() {
    let mut members = three().await;
    let client = members[0].connect().await;
    client.create("/w", b"", CreateMode::Persistent).await.expect("create the parent");
    let pending: Vec<_> = (0..2000)
        .map(|number| client.create(&format!("/w/{number}"), b"x", CreateMode::Persistent))
        .collect();
    for created in pending {
        created.await.expect("create a znode");
    }
    members[2].server.kill();
    lose_data(&members[2]);
    members[2].server.spawn();
    members[2].wait_for_mode(&["follower"]);
    let reader = members[2].connect().await;
    reader.sync("/").await.expect("there is a quorum");
    assert_eq!(reader.get_children("/w").await.expect("list what is there").len(), 2000);
}

fn lose_data(member: &TestedMember) {
    let data = member.server.data_directory();
    for name in ["log", "snapshots"] {
        fs::remove_dir_all(data.join(name)).expect("lose the data");
    }
    fs::remove_file(data.join("identity")).expect("lose the data");
}

/// Asks the member to lead until it does.
fn make_leader(member: &TestedMember) {
    let leads = || {
        let _ = member.server.four_letter_word("rqld");
        member.mode().as_deref() == Some("leader")
    };
    wait(leads, || format!("member {} is {:?} and not the leader", member.id, member.mode()));
}

#[tokio::test]
async fn a_member_with_an_old_list_finds_a_leader_that_is_not_on_it() {
    let mut members = three().await;
    let mut away = members.pop().expect("there are three");
    // Of two members the one with the higher number calls: once the leader, once the member that was away.
    for number in [4, 0] {
        away.server.kill();
        let client = members[0].connect().await;
        let leader = TestedMember::start(number, &members.iter().collect::<Vec<_>>());
        client.reconfig(&leader.line, "", None).await.expect("it joins");
        make_leader(&leader);
        away.server.spawn();
        away.wait_for_mode(&["follower"]);
        away.server.kill();
        lose_data(&away);
        away.server.spawn();
        away.wait_for_mode(&["follower"]);
        members.push(leader);
    }
}

#[tokio::test]
async fn a_member_that_the_others_have_left_starts_without_them() {
    let mut members = three().await;
    let client = members[0].connect().await;
    client.reconfig("", "2,3", None).await.expect("two members leave");
    client.create("/a", b"x", CreateMode::Persistent).await.expect("it needs nobody");
    members.iter_mut().for_each(|member| member.server.kill());
    members[0].server.spawn();
    members[0].wait_for_mode(&["leader"]);
    let client = members[0].connect().await;
    client.exists("/a").await.expect("it is there");
    client.create("/b", b"x", CreateMode::Persistent).await.expect("it needs nobody");
}

#[tokio::test]
async fn a_survivor_recovers_alone_and_the_others_join_again() {
    let mut members = three().await;
    let client = members[0].connect().await;
    client.create("/a", b"x", CreateMode::Persistent).await.expect("create a znode");
    client.sync("/").await.expect("there is a quorum");
    members.iter_mut().for_each(|member| member.server.kill());
    members[0].server.spawn_with(&["--recover", "--yes"]);
    members[0].wait_for_mode(&["leader"]);
    let client = members[0].connect().await;
    assert!(client.exists("/a").await.is_ok());
    client.create("/b", b"x", CreateMode::Persistent).await.expect("it needs nobody");

    // The member remembers that it has left.
    members[0].server.kill();
    members[0].server.spawn();
    members[0].wait_for_mode(&["leader"]);
    let others: Vec<&TestedMember> = vec![&members[0]];
    let second = TestedMember::start(2, &others);
    let client = members[0].connect().await;
    client.reconfig(&second.line, "", None).await.expect("a new second member joins");
    second.wait_for_mode(&["leader", "follower"]);
    assert!(second.connect().await.exists("/b").await.is_ok());
    // A member that comes back from before belongs to an ensemble that is not there any more.
    members[2].server.spawn();
    wait(
        || members[2].server.log().contains("different ensembles"),
        || "nobody refused the member from before".into(),
    );
}

async fn three() -> Vec<TestedMember> {
    let ids = [1, 2, 3];
    let ports: Vec<(u16, u16)> = ids.iter().map(|_| (free_port(), free_port())).collect();
    let lines: Vec<(String, String)> = ids
        .iter()
        .zip(&ports)
        .map(|(id, (quorum, election))| (format!("server.{id}"), format!("127.0.0.1:{quorum}:{election}")))
        .collect();
    let mut settings: Vec<(&str, &str)> = vec![SUPER, ("reconfigEnabled", "true"), ("snapCount", "500")];
    settings.extend(lines.iter().map(|(key, value)| (&**key, &**value)));
    let members: Vec<TestedMember> = ids
        .iter()
        .zip(&lines)
        .map(|(id, (key, value))| {
            let server = Server::start_member(usize::from(*id), &settings);
            let line = format!("{key}={value}:participant;{}", server.address());
            TestedMember { id: *id, line, server }
        })
        .collect();
    members.iter().for_each(|member| member.wait_for_mode(&["leader", "follower"]));
    members
}
