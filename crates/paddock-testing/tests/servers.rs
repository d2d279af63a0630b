//! Promises of the servers themselves.

use std::net::TcpStream;

use paddock_testing::{StartError, TestEnsemble, TestServer, WordList};

#[test]
fn servers_begin_empty_on_ports_of_their_own() {
    let (one, other) = (TestServer::start().unwrap(), TestServer::start().unwrap());
    assert_ne!(one.address(), other.address());
    for server in [&one, &other] {
        let answer = server.word("srvr").unwrap();
        assert!(answer.contains("Mode: standalone") && answer.contains("Node count: 5"), "{answer}");
    }
}

#[test]
fn a_server_that_was_dropped_leaves_nothing() {
    let server = TestServer::start().unwrap();
    let (address, directory) = (server.address(), server.directory().to_owned());
    assert!(server.data_directory().starts_with(&directory) && server.data_directory().is_dir());
    drop(server);
    assert!(!directory.exists());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_restart_keeps_the_port() {
    let mut server = TestServer::start().unwrap();
    let address = server.address();
    server.stop().unwrap();
    assert!(!server.is_running());
    assert!(TcpStream::connect(address).is_err());
    server.restart().unwrap();
    assert!(server.is_running());
    assert_eq!(server.address(), address);
    assert!(server.word("srvr").unwrap().contains("Mode: standalone"));
}

#[test]
fn settings_can_be_others() {
    let server = TestServer::start_with(|config| {
        config.tick_ms = 100;
        config.words = WordList::All;
    });
    let answer = server.unwrap().word("conf").unwrap();
    assert!(answer.contains("tickTime=100"), "{answer}");
}

#[test]
fn members_have_the_settings_of_the_ensemble() {
    let ensemble = TestEnsemble::start_with(3, |config| config.words = WordList::All).unwrap();
    for member in ensemble.members() {
        assert!(member.word("ruok").unwrap().contains("imok"));
    }
    assert_eq!(ensemble.hosts().split(',').count(), 3);
}

#[test]
fn an_address_that_is_taken_is_told_of() {
    let server = TestServer::start().unwrap();
    let address = server.address();
    let refused = TestServer::start_with(|config| config.listen = address);
    let Err(StartError::Server(error)) = refused else { panic!("two servers listen at {address}") };
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
