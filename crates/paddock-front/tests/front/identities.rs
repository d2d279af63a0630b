//! Identities of clients, what they weigh, and ACLs that name some.

use std::cell::RefCell;

use paddock_front::{LimitHit, Limits};
use paddock_proto::{
    Acl, ConnectRequest, CreateMode, ErrorCode, Extensions, Id, OpCode, Perms, SessionId, Xid, Zxid, encode,
};
use paddock_state::{ClientInput, ConnId, Outboxes, State};
use paddock_tree::Command;

use crate::stage::*;

/// Size of the commands that the engine was given.
fn command_bytes(stage: &mut FrontStage) -> Vec<usize> {
    let command = |input| match input {
        ClientInput::Write { command, .. } => Some(command.len()),
        _ => None,
    };
    stage.inputs().into_iter().filter_map(command).collect()
}

#[test]
fn identities_above_the_limit_are_refused_and_end_the_connection() {
    let limits = Limits { identities_max: 4, ..Limits::default() };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    // Its address is one, and each of the others counts once.
    for user in ["a", "b", "b", "c", "a", "c"] {
        stage.receive(conn, &auth(format!("{user}:pw").as_bytes()));
    }
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, None); 6]);
    stage.receive(conn, &[write(1), auth(b"d:pw"), write(2)].concat());
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, Some(ErrorCode::AuthFailed))]);
    assert!(stage.is_closing(conn));
    assert_eq!(hits.count(LimitHit::Identities), 1);
    assert_eq!(stage.inputs().len(), 1, "what came before is carried out, and nothing behind it");
}

#[test]
fn megabytes_of_identities_are_not_kept_and_do_not_travel_with_a_write() {
    let mut stage = FrontStage::new(Limits::default());
    let conns = [1, 2, 3]
        .map(|number| stage.connect(number, SessionId(0x100 + number as i64), Extensions::default()));
    let buffers = stage.settings.limits.counters.buffers.clone();
    for conn in conns {
        // A few small ones are taken; the first of the large ones ends the connection.
        stage.receive(
            conn,
            &(0..10).flat_map(|n| auth(format!("user-{n}:pw").as_bytes())).collect::<Vec<u8>>(),
        );
        stage.receive(conn, &write(1));
        assert!(command_bytes(&mut stage)[0] < 1000);
        let large = auth(&[&[b'u'; 900_000][..], b":pw"].concat());
        stage.receive(conn, &[&large[..], &large, &large, &write(2)].concat());
        assert!(stage.is_closing(conn));
        assert!(command_bytes(&mut stage).is_empty());
        stage.front.leave(conn, &stage.around);
        assert_eq!(buffers.held(), 0);
    }
}

#[test]
fn ten_thousand_small_identities_are_as_many_as_the_limit() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    for number in 0..10_000 {
        stage.receive(conn, &auth(format!("u{number}:pw").as_bytes()));
    }
    let replies = stage.replies(conn);
    assert_eq!(replies.len(), Limits::default().identities_max, "its address is one of them");
    assert_eq!(replies.last(), Some(&(Xid::AUTH.0, Some(ErrorCode::AuthFailed))));
}

#[test]
fn identities_of_a_certificate_count_too() {
    let limits = Limits { identity_bytes_max: 1000, ..Limits::default() };
    let mut stage = FrontStage::new(limits);
    for (number, bytes, is_taken) in [(1, 900, true), (2, 1001, false)] {
        let conn = ConnId::new(0, number);
        let name = Id::new("x509", format!("CN={}", "n".repeat(bytes)));
        stage.front.accept_proven(conn, ([127, 0, 0, 1], 1).into(), (), &[name]);
        let request = ConnectRequest {
            protocol_version: 0,
            extensions: Extensions::default(),
            last_zxid_seen: Zxid(0),
            timeout_ms: 10_000,
            session: SessionId::NONE,
            password: None,
            read_only: Some(false),
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        stage.receive(conn, &bytes);
        assert_eq!((stage.inputs().len(), stage.is_closing(conn)), (usize::from(is_taken), !is_taken));
    }
}

#[test]
fn a_write_that_is_too_large_with_its_identities_is_refused_in_its_turn_and_its_connection_lives() {
    let mut settings = FrontStage::settings(Limits::default());
    let ids = 4 + 8 + "ip".len() + "127.0.0.1".len();
    let body = create(2, 100).len() - 12;
    settings.command_bytes_max = 8 + 8 + ids + 4 + body;
    let hits = settings.limits.counters.hits.clone();
    let mut stage = FrontStage::with(settings);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &create(1, 100));
    assert_eq!(command_bytes(&mut stage), [stage.settings.command_bytes_max]);
    stage.receive(conn, &create(2, 101));
    let read_of_refusal = stage.inputs();
    let [ClientInput::Read(read)] = &read_of_refusal[..] else { panic!("{read_of_refusal:?}") };
    assert!(read.body.is_empty(), "nothing of it is kept");
    let state = RefCell::new(State::default());
    stage.engine(|out| {
        reply(out, conn, 1);
        state.borrow().answer_queued(read, out);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None), (2, Some(ErrorCode::MarshallingError))]);
    // This write of a client that has shown another identity.
    stage.receive(conn, &[auth(b"a:pw"), create(3, 100)].concat());
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, None), (3, Some(ErrorCode::MarshallingError))]);
    assert!(!stage.is_closing(conn) && stage.inputs().is_empty());
    assert_eq!(hits.count(LimitHit::CommandBytes), 2);
}

/// A member without SASL and without certificates takes no ACL that no client could meet, alone or in a multi.
#[test]
fn an_acl_of_a_scheme_that_nothing_provides_is_refused_by_the_state() {
    let mut stage = FrontStage::new(Limits::default());
    let (conn, reader) =
        (stage.connect(1, FIRST, Extensions::default()), stage.connect(2, SECOND, Extensions::default()));
    let acl = |scheme: &str| [Acl { perms: Perms::ALL, id: Id::new(scheme, "carol:x") }];
    let create = |out: &mut Vec<u8>, path: &str, scheme: &str| {
        encode::create(out, path, Some(b"sasl"), &acl(scheme), CreateMode::Persistent);
    };
    let alone = |xid, path: &str, scheme: &str| request(xid, OpCode::Create, |out| create(out, path, scheme));
    let multi = |xid, scheme: &str| {
        request(xid, OpCode::Multi, |out| {
            for (path, scheme) in [("/m1", "digest"), ("/m2", scheme)] {
                encode::multi_operation(out, OpCode::Create);
                create(out, path, scheme);
            }
            encode::multi_end(out);
        })
    };
    stage.receive(conn, &[alone(1, "/s", "sasl"), alone(2, "/x", "x509"), alone(3, "/d", "digest")].concat());
    stage.receive(conn, &multi(4, "sasl"));
    for input in stage.inputs() {
        let ClientInput::Write { command, .. } = input else { panic!("{input:?}") };
        let mut command = command.to_vec();
        // As if the service asked, whose session need not live.
        command[..8].fill(0);
        let mut outboxes = Outboxes::new(1);
        stage.around.state.borrow_mut().apply(&Command::decode(&command).unwrap(), &mut outboxes);
    }
    for (path, expected) in [
        ("/s", Some(ErrorCode::NoNode)),
        ("/x", Some(ErrorCode::NoNode)),
        // The znode is there, and its ACL names another.
        ("/d", Some(ErrorCode::NoAuth)),
        ("/m1", Some(ErrorCode::NoNode)),
    ] {
        let exists = |out: &mut Vec<u8>| encode::path_and_watch(out, path, false);
        stage.receive(reader, &request(1, OpCode::Exists, exists));
        assert_eq!(stage.replies(reader), [(1, expected)], "{path}");
    }
}
