//! Settings that are read again while a member serves: when the file changes, and by SIGHUP.

#[path = "shared/process.rs"]
mod process;

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::time::Instant;

use process::{Server, WITHIN, directory};

/// A file of configuration in one of the formats.
struct Format {
    name: &'static str,
    text: fn(words: &str, connections_max: u32, snapshot_writes: u32) -> String,
    /// Text that cannot be used, and the fault that is found in it.
    wrong: (&'static str, &'static str),
}

const FORMATS: [Format; 3] = [
    Format {
        name: "paddock.toml",
        text: |words, connections_max, snapshot_writes| {
            let words: Vec<&str> = words.split(',').collect();
            format!(
                "data_dir = 'data'\nwords = {words:?}\nconnections_max = {connections_max}\nsnapshot_writes = {snapshot_writes}\n"
            )
        },
        wrong: ("connections_max = 'many'\n", "paddock.toml:1: connections_max: expected "),
    },
    Format {
        name: "zoo.cfg",
        text: |words, connections_max, snapshot_writes| {
            format!(
                "dataDir=data\nclientPort=2181\n4lw.commands.whitelist={words}\nmaxCnxns={connections_max}\nsnapCount={snapshot_writes}\n"
            )
        },
        wrong: ("dataDir=data\nclientPort=2181\ntickTime=2s\n", "zoo.cfg:3: tickTime: expected "),
    },
    Format {
        name: "keeper_config.xml",
        text: |words, connections_max, snapshot_writes| {
            format!(
                "<clickhouse><max_connections>{connections_max}</max_connections><keeper_server><tcp_port>9181</tcp_port>\
                 <storage_path>data</storage_path><four_letter_word_allow_list>{words}</four_letter_word_allow_list>\
                 <coordination_settings><snapshot_distance>{snapshot_writes}</snapshot_distance></coordination_settings>\
                 </keeper_server></clickhouse>"
            )
        },
        wrong: ("<clickhouse><keeper_server>", "keeper_config.xml:1: "),
    },
];

#[test]
fn a_file_that_changes_is_read_again() {
    for Format { name, text, wrong: (wrong, fault) } in FORMATS {
        let dir = directory();
        let file = dir.path().join(name);
        fs::write(&file, text("srvr", 0, 1000)).unwrap();
        let server = Server::start(dir.path(), &["--config", name, "--listen", "127.0.0.1:0"]);
        assert_ne!(server.ask("ruok"), "imok", "{name}");

        // The file alone.
        fs::write(&file, text("srvr,ruok", 0, 1000)).unwrap();
        let log = server.logged("changed=words");
        assert!(log.contains("the file has changed"), "{name}: {log}");
        assert_eq!(server.ask("ruok"), "imok", "{name}");

        // With a signal at once; what needs a restart is named.
        fs::write(&file, text("srvr,ruok", 1, 2000)).unwrap();
        server.signal("-HUP");
        let log = server.logged("changed=connections_max");
        assert!(log.contains("need_restart=snapshot_writes"), "{name}: {log}");
        check_one_connection(&server);

        // With a mistake nothing changes.
        fs::write(&file, wrong).unwrap();
        server.signal("-HUP");
        let log = server.logged("the new configuration cannot be used: nothing has changed");
        assert!(log.contains(fault), "{name}: {log}");
        check_one_connection(&server);

        fs::write(&file, text("srvr", 0, 1000)).unwrap();
        server.signal("-HUP");
        server.logged("changed=connections_max, words");
        assert_ne!(server.ask("ruok"), "imok", "{name}");
        server.stop();
    }
}

/// Makes sure that one connection may be open, and no second one.
fn check_one_connection(server: &Server) {
    let deadline = Instant::now() + WITHIN;
    // Connections of before may not have been counted off yet.
    while server.ask("ruok") != "imok" {
        assert!(Instant::now() < deadline, "nobody is served");
    }
    let first = TcpStream::connect(server.address).unwrap();
    first.set_read_timeout(Some(WITHIN)).unwrap();
    let mut second = TcpStream::connect(server.address).unwrap();
    second.set_read_timeout(Some(WITHIN)).unwrap();
    // One of them is closed at once, whichever came second.
    assert_eq!(second.read(&mut [0]).unwrap_or(0), 0);
    drop(first);
}

#[test]
fn the_log_level_follows_the_file() {
    let dir = directory();
    let file = dir.path().join("paddock.toml");
    fs::write(&file, "log = 'warn'\ndata_dir = 'data'\n").unwrap();
    let server = Server::start(dir.path(), &["--config", "paddock.toml", "--listen", "127.0.0.1:0"]);
    fs::write(&file, "log = 'info'\ndata_dir = 'data'\nconnections_max = 5\n").unwrap();
    server.signal("-HUP");
    // By the level of before this is not logged, by the one of now it is.
    let deadline = Instant::now() + WITHIN;
    while !server.log_so_far().contains("nothing has changed") {
        assert!(Instant::now() < deadline, "the level has not changed: {}", server.log_so_far());
        server.signal("-HUP");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let log = server.stop();
    assert!(!log.contains("changed=connections_max"), "{log}");
}
