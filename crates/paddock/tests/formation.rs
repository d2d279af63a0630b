//! Ensembles of three processes, formed from every kind of configuration file, on IPv4 and on IPv6.

#[path = "shared/process.rs"]
mod process;

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use process::{Server, directory, free_port};
use tempfile::TempDir;

/// Members wait for each other, and for what changes of members take; other tests may take the processors meanwhile.
const WITHIN: Duration = Duration::from_secs(120);

/// Ports of a member.
struct Ports {
    number: u32,
    client: u16,
    quorum: u16,
    election: u16,
}

/// Text of member `id`'s file, of members at `host`.
type Text = fn(id: usize, host: &str, members: &[Ports]) -> String;

/// A name of a file, and its text.
const FILES: [(&str, Text); 5] = [
    ("zoo.cfg", |id, host, members| zoo_cfg(id, host, members, false)),
    ("zoo.cfg", |id, host, members| zoo_cfg(id, host, members, true)),
    ("paddock.toml", |id, host, members| toml(id, host, members, false)),
    ("paddock.toml", |id, host, members| toml(id, host, members, true)),
    ("keeper_config.xml", keeper_config),
];

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn zoo_cfg(id: usize, host: &str, members: &[Ports], on_all: bool) -> String {
    let own = &members[id - 1];
    let mut text = format!(
        "dataDir=data\nclientPort={}\nclientPortAddress={host}\nquorumListenOnAllIPs={on_all}\n",
        own.client
    );
    for Ports { number, quorum, election, .. } in members {
        text += &format!("server.{number}={}:{quorum}:{election}\n", bracketed(host));
    }
    text
}

fn toml(id: usize, host: &str, members: &[Ports], on_all: bool) -> String {
    let mut text = format!(
        "data_dir = 'data'\nlisten = '{}:{}'\nmember = {}\n[ensemble]\nlisten_on_all_addresses = {on_all}\n",
        bracketed(host),
        members[id - 1].client,
        members[id - 1].number
    );
    for ports in members {
        text += &format!(
            "[[ensemble.member]]\nid = {}\nhost = '{host}'\nquorum_port = {}\nelection_port = {}\n",
            ports.number, ports.quorum, ports.election
        );
    }
    text
}

fn keeper_config(id: usize, host: &str, members: &[Ports]) -> String {
    let server = |Ports { number, quorum, .. }: &Ports| {
        format!("<server><id>{number}</id><hostname>{host}</hostname><port>{quorum}</port></server>")
    };
    let servers: String = members.iter().map(server).collect();
    let Ports { number, client, .. } = members[id - 1];
    format!(
        "<clickhouse><listen_host>{host}</listen_host><keeper_server><tcp_port>{client}</tcp_port><server_id>{number}</server_id>\
         <storage_path>data</storage_path><four_letter_word_white_list>*</four_letter_word_white_list>\
         <raft_configuration>{servers}</raft_configuration></keeper_server></clickhouse>\n"
    )
}

fn free_members(host: &str, count: usize) -> Vec<Ports> {
    let free = || free_port(host);
    let member = |number| Ports { number, client: free(), quorum: free(), election: free() };
    (1..=count as u32).map(member).collect()
}

/// Members with these numbers.
fn free_members_of(host: &str, numbers: &[u32]) -> Vec<Ports> {
    let members = free_members(host, numbers.len()).into_iter().zip(numbers);
    members.map(|(ports, number)| Ports { number: *number, ..ports }).collect()
}

fn write(id: usize, file: &str, text: &str) -> TempDir {
    let dir = directory();
    fs::write(dir.path().join(file), text).expect("write the configuration");
    fs::create_dir(dir.path().join("data")).expect("make the data directory");
    fs::write(dir.path().join("data/myid"), format!("{id}\n")).expect("write myid");
    dir
}

/// Waits until all say that they lead or follow.
#[track_caller]
fn check_formed(servers: &[Server], what: &str) {
    let deadline = Instant::now() + WITHIN;
    for server in servers {
        while !["Mode: leader", "Mode: follower"].iter().any(|mode| server.ask("srvr").contains(mode)) {
            assert!(Instant::now() < deadline, "{what}: no quorum: {}", server.log_so_far());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[track_caller]
fn check_mode(server: &Server, mode: &str) {
    let deadline = Instant::now() + WITHIN;
    while !server.ask("srvr").contains(mode) {
        assert!(Instant::now() < deadline, "not {mode}: {}", server.log_so_far());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn check_formation(host: &str) {
    for (number, (file, text)) in FILES.iter().enumerate() {
        let members = free_members(host, 3);
        let dirs: Vec<TempDir> = (1..=3).map(|id| write(id, file, &text(id, host, &members))).collect();
        let servers: Vec<Server> =
            dirs.iter().map(|dir| Server::start(dir.path(), &["--config", file])).collect();
        check_formed(&servers, &format!("{file} ({number}) at {host}"));
        // Two of them would wait for a quorum that is gone: all are asked first.
        servers.iter().for_each(|server| server.signal("-TERM"));
    }
}

#[test]
fn an_ensemble_forms_on_ipv4() {
    check_formation("127.0.0.1");
}

#[test]
fn an_ensemble_forms_on_ipv6() {
    if TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: this machine has no ::1");
        return;
    }
    check_formation("::1");
}

/// As charts scale: the file gets another line everywhere, and one member after the other is started again.
#[test]
fn an_ensemble_grows_by_its_files() {
    let host = "127.0.0.1";
    for (file, text) in [FILES[0], FILES[2], FILES[4]] {
        let members = free_members(host, 4);
        let dirs: Vec<TempDir> =
            (1..=4).map(|id| write(id, file, &text(id, host, &members[..id.max(3)]))).collect();
        let start = |dir: &TempDir| Server::start(dir.path(), &["--config", file]);
        let mut servers: Vec<Server> = dirs[..3].iter().map(start).collect();
        check_formed(&servers, file);
        dirs.iter().zip(1..).for_each(|(dir, id)| {
            fs::write(dir.path().join(file), text(id, host, &members)).expect("write the configuration");
        });
        servers.push(start(&dirs[3]));
        for (place, dir) in dirs[..3].iter().enumerate() {
            let former = servers.remove(place);
            former.stop();
            servers.insert(place, start(dir));
            check_formed(&servers[..3], file);
        }
        check_formed(&servers, &format!("{file}, grown"));
        servers.iter().for_each(|server| server.signal("-TERM"));
    }
}

/// A member alone with data becomes one of three, of which the other two were started first.
#[test]
fn a_member_alone_is_waited_for_by_those_who_join_it() {
    let (host, file) = ("127.0.0.1", "zoo.cfg");
    let members = free_members(host, 3);
    let dirs: Vec<TempDir> = (1..=3).map(|id| write(id, file, &zoo_cfg(id, host, &members, false))).collect();
    let start = |dir: &TempDir, arguments: &[&str]| {
        Server::start(dir.path(), &[&["--config", file], arguments].concat())
    };
    let alone = zoo_cfg(1, host, &members[..1], false);
    fs::write(dirs[0].path().join("alone.cfg"), alone).expect("write the configuration");
    let server = Server::start(dirs[0].path(), &["--config", "alone.cfg"]);
    check_mode(&server, "Mode: standalone");
    server.stop();
    let mut servers: Vec<Server> = dirs[1..].iter().map(|dir| start(dir, &[])).collect();
    servers[0].logged("it waits for members that were never heard and may have data");
    servers.push(start(&dirs[0], &[]));
    check_formed(&servers, "grown");
    check_mode(&servers[2], "Mode: leader");
    servers.iter().for_each(|server| server.signal("-TERM"));
}

/// Digest of `super:secret`.
const SUPER_DIGEST: &str = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=";

/// Lets clients change the members, and one be a superuser.
fn with_reconfig(file: &str, text: String) -> String {
    match file {
        "zoo.cfg" => {
            format!("{text}reconfigEnabled=true\nDigestAuthenticationProvider.superDigest={SUPER_DIGEST}\n")
        }
        "paddock.toml" => {
            let text = text.replace("[ensemble]\n", "[ensemble]\nreconfig_enabled = true\n");
            format!("super_digest = '{SUPER_DIGEST}'\n{text}")
        }
        _ => text.replace(
            "<keeper_server>",
            &format!(
                "<keeper_server><enable_reconfiguration>true</enable_reconfiguration><superdigest>{SUPER_DIGEST}</superdigest>"
            ),
        ),
    }
}

/// Whatever the members were read from: what is shown of them can be given back, and changes nothing, and a member can leave.
#[tokio::test]
async fn members_can_be_changed_whatever_file_they_are_from() {
    let host = "127.0.0.1";
    for (file, text) in [FILES[0], FILES[2], FILES[4]] {
        let members = free_members(host, 3);
        let text = |id| with_reconfig(file, text(id, host, &members));
        let dirs: Vec<TempDir> = (1..=3).map(|id| write(id, file, &text(id))).collect();
        let servers: Vec<Server> =
            dirs.iter().map(|dir| Server::start(dir.path(), &["--config", file])).collect();
        check_formed(&servers, file);
        let client = Client::connect(&servers[0].address.to_string(), ClientOptions::default())
            .await
            .expect("connect");
        client.add_auth("digest", b"super:secret").await.expect("be the superuser");
        for path in ["/zookeeper/config", "/keeper/config"] {
            let Ok(shown) = client.get_data(path).await else {
                assert!(path == "/keeper/config" && file != "keeper_config.xml", "{file} has no {path}");
                continue;
            };
            let shown = String::from_utf8(shown.bytes.expect("the members")).expect("text");
            // A client of ZooKeeper's names the members without the version.
            let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("server.")).collect();
            let after = client.reconfig(&lines.join(","), "", None).await;
            assert!(after.is_ok(), "{file}, {path}: {after:?} for {shown}");
        }
        let left = client.reconfig("", "3", None).await.expect("member 3 leaves");
        let left = String::from_utf8(left.bytes.expect("the members")).expect("text");
        assert!(left.contains("server.2=") && !left.contains("server.3="), "{file}: {left}");
        servers.iter().for_each(|server| server.signal("-TERM"));
    }
}

/// The files say who belongs to the survivor's ensemble: the others come back by being started with empty directories.
#[tokio::test]
async fn a_survivor_is_joined_again_by_the_others() {
    let (host, file) = ("127.0.0.1", "zoo.cfg");
    let members = free_members(host, 3);
    let dirs: Vec<TempDir> = (1..=3).map(|id| write(id, file, &zoo_cfg(id, host, &members, false))).collect();
    let start =
        |id: usize, more: &[&str]| Server::start(dirs[id - 1].path(), &[&["--config", file], more].concat());
    let servers: Vec<Server> = (1..=3).map(|id| start(id, &[])).collect();
    check_formed(&servers, "three");
    let client =
        Client::connect(&servers[1].address.to_string(), ClientOptions::default()).await.expect("connect");
    client.create("/a", b"one", CreateMode::Persistent).await.expect("member 2 knows its ensemble");
    client.close().await.expect("close the session");
    servers.iter().for_each(|server| server.signal("-TERM"));
    servers.into_iter().for_each(|server| drop(server.wait()));
    let survivor = start(1, &["--recover", "--yes"]);
    check_mode(&survivor, "Mode: leader");
    // A member comes back with its data: it has no quorum, and disturbs no client.
    let late = start(2, &[]);
    late.logged("different ensembles");
    check_mode(&survivor, "Mode: leader");
    late.signal("-TERM");
    late.wait();
    for id in [2, 3] {
        let data = dirs[id - 1].path().join("data");
        fs::remove_dir_all(&data).expect("remove what it had");
        fs::create_dir(&data).expect("make the data directory");
        fs::write(data.join("myid"), format!("{id}\n")).expect("write myid");
    }
    let servers = [survivor, start(2, &[]), start(3, &[])];
    check_formed(&servers, "joined again");
    let client =
        Client::connect(&servers[2].address.to_string(), ClientOptions::default()).await.expect("connect");
    let data = client.get_data("/a").await.expect("it was acknowledged to all");
    assert_eq!(data.bytes.as_deref(), Some(&b"one"[..]));
    servers.iter().for_each(|server| server.signal("-TERM"));
}

/// The container image of ZooKeeper gives a member 0.0.0.0 for itself, and the first leader writes its own file into the state.
#[test]
fn the_ensemble_comes_to_know_the_address_of_its_founder() {
    let (host, file) = ("127.0.0.1", "zoo.cfg");
    let members = free_members(host, 3);
    let text = |id: usize| {
        let named = format!("server.{id}={host}");
        let text = zoo_cfg(id, host, &members, true).replace(&named, &named.replace(host, "0.0.0.0"));
        format!("{text}4lw.commands.whitelist=*\n")
    };
    let dirs: Vec<TempDir> = (1..=3).map(|id| write(id, file, &text(id))).collect();
    let servers: Vec<Server> =
        dirs.iter().map(|dir| Server::start(dir.path(), &["--config", file])).collect();
    check_formed(&servers, "founders at 0.0.0.0");
    let is_known = || (1..=3).all(|id| servers[0].ask("conf").contains(&format!("server.{id}={host}:")));
    let deadline = Instant::now() + WITHIN;
    while !is_known() {
        assert!(Instant::now() < deadline, "{}", servers[0].ask("conf"));
        std::thread::sleep(Duration::from_millis(20));
    }
    servers.iter().for_each(|server| server.signal("-TERM"));
}

#[test]
fn most_found_an_ensemble_if_they_are_told_to() {
    let (host, file) = ("127.0.0.1", "zoo.cfg");
    let members = free_members(host, 3);
    let dirs: Vec<TempDir> = (1..=2).map(|id| write(id, file, &zoo_cfg(id, host, &members, false))).collect();
    let arguments = ["--config", file, "--found-by-majority"];
    let servers: Vec<Server> = dirs.iter().map(|dir| Server::start(dir.path(), &arguments)).collect();
    check_formed(&servers, "two of three");
    servers.iter().for_each(|server| server.signal("-TERM"));
}

/// An address for documentation, which no machine has.
const NOT_OURS: &str = "192.0.2.1";

fn one_of_three(retries: &str) -> TempDir {
    let members = free_members("127.0.0.1", 3);
    let text = zoo_cfg(1, "127.0.0.1", &members, false);
    let own = format!("server.1=127.0.0.1:{}", members[0].quorum);
    let text = text.replace(&own, &own.replace("127.0.0.1", NOT_OURS));
    write(1, "zoo.cfg", &format!("{text}electionPortBindRetry={retries}\n"))
}

#[test]
fn a_member_without_its_own_address_waits_as_long_as_it_is_told() {
    let dir = one_of_three("0");
    let server = Server::start(dir.path(), &["--config", "zoo.cfg"]);
    server.logged("cannot listen for members yet: trying again");
    server.stop();

    let dir = one_of_three("2");
    let server = Server::start(dir.path(), &["--config", "zoo.cfg"]);
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains(&format!("listen for members: listen on {NOT_OURS}")), "{log}");
}

/// ZooKeeper takes 0, of countless guides, and numbers of more than a byte. The low bytes of two are the same.
#[tokio::test]
async fn members_have_any_number_that_one_of_zookeeper_has() {
    let host = "127.0.0.1";
    for (file, text) in [FILES[0], FILES[2], FILES[4]] {
        let members = free_members_of(host, &[0, 257, 1, 1001]);
        let founders = &members[..3];
        let dirs: Vec<TempDir> = (1..=3)
            .map(|id| {
                let text = with_reconfig(file, text(id, host, founders));
                write(founders[id - 1].number as usize, file, &text)
            })
            .collect();
        let mut servers: Vec<Server> =
            dirs.iter().map(|dir| Server::start(dir.path(), &["--config", file])).collect();
        check_formed(&servers, file);

        let mut sessions = Vec::new();
        for (server, Ports { number, .. }) in servers.iter().zip(founders) {
            let client = connect(server).await;
            assert_eq!(client.session().0 >> 56, i64::from(*number as u8 as i8), "{file}: its low byte");
            client
                .create(&format!("/of-{number}"), b"", CreateMode::Ephemeral)
                .await
                .unwrap_or_else(|error| panic!("{file}: member {number}: {error}"));
            sessions.push(client);
        }
        let shown = sessions[0].get_data("/zookeeper/config").await.expect("the members");
        let shown = String::from_utf8(shown.bytes.expect("the members")).expect("text");
        for number in [0, 1, 257] {
            assert!(shown.contains(&format!("server.{number}={host}:")), "{file}: {shown}");
        }

        // The data of member 0 is that of member 0 at the next start, too.
        servers.remove(0).stop();
        servers.insert(0, Server::start(dirs[0].path(), &["--config", file]));
        check_formed(&servers, file);

        let superuser = connect(&servers[2]).await;
        superuser.add_auth("digest", b"super:secret").await.expect("be the superuser");
        let logs = || servers.iter().map(Server::log_so_far).collect::<String>();
        let left = superuser.reconfig("", "257", None).await;
        assert!(left.is_ok(), "{file}: 257 leaves: {left:?}: {}", logs());
        servers[1].signal("-TERM");
        let with_newcomer = [0, 2, 3].map(|at| Ports { ..members[at] });
        let dir = write(1001, file, &with_reconfig(file, text(3, host, &with_newcomer)));
        let newcomer = Server::start(dir.path(), &["--config", file]);
        let Ports { quorum, election, .. } = members[3];
        let line = match file {
            "keeper_config.xml" => format!("server.1001={host}:{quorum};participant;1"),
            _ => format!("server.1001={host}:{quorum}:{election};{}", members[3].client),
        };
        let after = superuser.reconfig(&line, "", None).await;
        let after =
            after.unwrap_or_else(|error| panic!("{file}: 1001 joins: {error}: {}", newcomer.log_so_far()));
        let after = String::from_utf8(after.bytes.expect("the members")).expect("text");
        assert!(after.contains("server.1001=") && !after.contains("server.257="), "{file}: {after}");
        check_mode(&newcomer, "Mode: follower");
        let client = connect(&newcomer).await;
        assert_eq!(client.session().0 >> 56, i64::from(1001_u32 as u8 as i8));
        client.create("/of-1001", b"", CreateMode::Ephemeral).await.expect("the newcomer writes");
        [&servers[0], &servers[2], &newcomer].iter().for_each(|server| server.signal("-TERM"));
    }
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.address.to_string(), ClientOptions::default()).await.expect("connect")
}
