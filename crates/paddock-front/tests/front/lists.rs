//! Long lists, which are copied in portions.

use std::sync::Arc;

use paddock_front::{ClientBuffers, Front, Limits, Settings};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{
    Acl, CreateMode, ErrorCode, Extensions, Id, IdList, OpCode, Perms, SessionId, Stat, Xid, encode, frame,
};
use paddock_state::{Client, ClientInput, ConnId, Outboxes};
use paddock_tree::{Command, Guess};

use crate::stage::*;

/// A command of the service, applied to the state.
fn apply(stage: &FrontStage, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
    let (mut bytes, mut command) = (Vec::new(), Vec::new());
    body(&mut bytes);
    Command::encode(SessionId::NONE, 1_700_000_000_000, IdList::NONE, op, &bytes, &mut command);
    let mut outboxes = Outboxes::new(1);
    stage.around.state.borrow_mut().apply(&Command::decode(&command).unwrap(), &mut outboxes);
    outboxes.iter_mut().for_each(|(_, outbox)| stage.around.mail.borrow_mut().append(outbox));
}

fn create_znode(stage: &FrontStage, path: &str) {
    apply(stage, OpCode::Create, |out| encode::create_open(out, path, None, CreateMode::Persistent));
}

/// A front that copies 1000 children in a turn, and a znode `/a` with 2500. Its list is copied each time that it is asked for.
fn stage_with_long_list() -> FrontStage {
    let stage = FrontStage::new(Limits { children_per_turn: 1000, ..Limits::default() });
    stage.around.state.borrow_mut().tree_mut().set_prepared_list_bytes_max(0);
    create_znode(&stage, "/a");
    (0..2500).for_each(|number| create_znode(&stage, &format!("/a/child-{number}")));
    stage
}

fn list(xid: i32, op: OpCode, watch: bool) -> Vec<u8> {
    request(xid, op, |out| encode::path_and_watch(out, "/a", watch))
}

/// The frame that answers a list in one step.
fn answered_at_once(stage: &FrontStage, xid: i32, op: OpCode) -> Vec<u8> {
    let (mut body, mut out) = (Vec::new(), Vec::new());
    encode::path_and_watch(&mut body, "/a", false);
    let client = Client::new(ConnId::new(0, 99), FIRST, &[]);
    stage.around.state.borrow().answer(&client, Xid(xid), op, &body, Guess::NONE, &mut out);
    out
}

#[test]
fn others_have_their_turn_while_a_long_list_is_copied() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    for op in [OpCode::GetChildren, OpCode::GetChildren2] {
        stage.receive(conn, &[list(1, op, true), read(2)].concat());
        for _ in 0..2 {
            let condition = stage.front.condition(conn, &stage.around).expect("it is there");
            assert!(condition.takes_input && condition.has_more, "others have their turn");
            assert!(stage.replies(conn).is_empty() && stage.around.state.borrow().watches().count() == 0);
            stage.front.resume(conn, 0, &stage.around);
        }
        assert!(stage.sent(conn) == answered_at_once(&stage, 1, op));
        assert_eq!(stage.around.state.borrow().watches().count(), 1);
        stage.front.resume(conn, 0, &stage.around);
        assert_eq!(stage.replies(conn), [(2, None)]);
        // The event of the watch, which is set by the next list again.
        create_znode(&stage, &format!("/a/another-{op:?}"));
        stage.front.deliver(&stage.around);
        assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None)]);
    }
}

#[test]
fn a_long_list_keeps_up_with_changes_and_is_answered_in_one_step_when_there_are_too_many() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren2, false));
    for number in 0..2 {
        create_znode(&stage, &format!("/a/new-{number}"));
        assert!(stage.replies(conn).is_empty());
        stage.front.resume(conn, 0, &stage.around);
    }
    assert_eq!(sorted(&stage.sent(conn)), sorted(&answered_at_once(&stage, 1, OpCode::GetChildren2)));

    stage.receive(conn, &list(2, OpCode::GetChildren, false));
    let mut turns = 0;
    let sent = loop {
        let sent = stage.sent(conn);
        if !sent.is_empty() {
            break sent;
        }
        (0..20_000).for_each(|number| create_znode(&stage, &format!("/a/at-{turns}-{number}")));
        stage.front.resume(conn, 0, &stage.around);
        turns += 1;
    };
    assert!(sent == answered_at_once(&stage, 2, OpCode::GetChildren));
    assert_eq!(turns, 8, "each try has two turns: one copies, one sees that too much has changed");
}

#[test]
fn a_long_list_waits_for_the_writes_in_front_of_it_and_keeps_those_behind_it_waiting() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), list(2, OpCode::GetChildren, false), write(3)].concat());
    assert_eq!(stage.inputs().len(), 1);
    assert!(!stage.takes_input(conn), "there is nothing to be done now");
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert!(stage.reached().iter().any(|reached| reached.has_changed), "its worker looks again");
    for _ in 0..3 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert_eq!(stage.replies(conn), [(1, None), (2, None)]);
    assert!(stage.inputs().is_empty());
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 1);
}

/// A connection that ends, or holds too much for too long, takes its list with it.
#[test]
fn memory_of_a_list_that_is_being_copied_is_counted_and_let_go() {
    let buffers = Arc::new(ClientBuffers::new(1 << 20));
    let limits = Limits {
        little_bytes: 100,
        children_per_turn: 1000,
        counters: counters(&buffers),
        ..Limits::default()
    };
    let mut stage = FrontStage { front: Front::new(FrontStage::settings(limits)), ..stage_with_long_list() };
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    assert!(buffers.held() > 10_000, "{} bytes", buffers.held());
    stage.front.leave(conn, &stage.around);
    assert_eq!(buffers.held(), 0);
}

#[test]
fn a_client_that_may_not_read_a_list_any_more_when_it_is_copied_is_refused() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, true));
    apply(&stage, OpCode::SetAcl, |out| {
        out.put_string("/a");
        encode::put_acl(out, &[Acl { perms: Perms::ALL, id: Id::new("digest", "ann:x") }]);
        out.put_i32(-1);
    });
    for _ in 0..2 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert_eq!(stage.replies(conn), [(1, Some(ErrorCode::NoAuth))]);
    assert_eq!(stage.around.state.borrow().watches().count(), 0);
}

#[test]
fn a_list_whose_tree_is_replaced_while_it_is_copied_is_copied_again() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    // Everything in it has the same place, and another name.
    let other = FrontStage::new(Limits::default());
    create_znode(&other, "/a");
    (0..2500).for_each(|number| create_znode(&other, &format!("/a/other-{number}")));
    let other = other.around.state.take().into_tree();
    stage.around.state.borrow_mut().replace(other);
    for _ in 0..2 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert!(stage.sent(conn) == answered_at_once(&stage, 1, OpCode::GetChildren));
}

#[test]
fn a_list_is_not_answered_behind_the_end_of_its_connection() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, true));
    stage.engine(|out| out.close(conn));
    for _ in 0..3 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert!(stage.is_closing(conn) && stage.replies(conn).is_empty());
    assert_eq!(stage.around.state.borrow().watches().count(), 0);
}

#[test]
fn a_long_list_asks_the_quorum_where_every_read_does() {
    let limits = Limits { children_per_turn: 1000, ..Limits::default() };
    let settings = Settings { linearizable_reads: true, ..FrontStage::settings(limits) };
    let mut stage = FrontStage { front: Front::new(settings), ..stage_with_long_list() };
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    assert!(matches!(stage.inputs()[..], [ClientInput::Read(_)]));
    assert!(stage.replies(conn).is_empty());
}

/// Clients that ask for a long list again and again are sent the same bytes, in one turn.
#[test]
fn a_long_list_that_is_asked_for_again_is_not_copied_again() {
    let mut stage = stage_with_long_list();
    stage.around.state.borrow_mut().tree_mut().set_prepared_list_bytes_max(1 << 20);
    let conns =
        [stage.connect(1, FIRST, Extensions::default()), stage.connect(2, SECOND, Extensions::default())];
    let mut turns = Vec::new();
    for round in 0..4 {
        if round == 3 {
            create_znode(&stage, "/a/another");
            stage.front.deliver(&stage.around);
            for conn in conns {
                assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None)]);
            }
        }
        let conn = conns[round % 2];
        stage.receive(conn, &list(1, OpCode::GetChildren2, true));
        let mut taken = 0;
        let sent = loop {
            taken += 1;
            let sent = stage.sent(conn);
            if !sent.is_empty() {
                break sent;
            }
            stage.front.resume(conn, 0, &stage.around);
        };
        turns.push(taken);
        assert_eq!(
            sorted(&sent),
            sorted(&answered_at_once(&stage, 1, OpCode::GetChildren2)),
            "round {round}"
        );
    }
    // The first list and the comparison with it are the two that it takes.
    assert_eq!(turns, [3, 1, 1, 1]);
    assert_eq!(stage.around.state.borrow().watches().count(), 1);
}

/// The frame of a list as its header, its names in order, and its Stat.
fn sorted(reply: &[u8]) -> (Vec<u8>, Vec<String>, Vec<u8>) {
    let (len, body) = reply.split_at(4);
    assert_eq!(u32::from_be_bytes(len.try_into().unwrap()) as usize, body.len());
    let (header, body) = body.split_at(16);
    let mut reader = Reader::new(body);
    let mut names: Vec<String> = reader.strings().unwrap().into_iter().map(str::to_owned).collect();
    names.sort();
    let stat = Stat::decode(&mut reader).unwrap();
    let mut bytes = Vec::new();
    stat.encode(&mut bytes);
    assert!(reader.is_empty());
    (header.to_vec(), names, bytes)
}

/// Each dialect has the list behind its own header, and one that is compressed, too.
#[test]
fn a_list_in_pieces_is_the_same_for_all_dialects() {
    let mut stage = stage_with_long_list();
    let wide = Extensions { wide_xids: true, ..Extensions::default() };
    let conn = stage.connect(1, FIRST, wide);
    let request = |xid: i64| {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            out.put_i64(xid);
            out.put_i32(OpCode::GetChildren.code());
            encode::path_and_watch(out, "/a", false);
        });
        bytes
    };
    stage.receive(conn, &request(1 << 40));
    for _ in 0..2 {
        stage.front.resume(conn, 0, &stage.around);
    }
    let sent = stage.sent(conn);
    let expected = answered_at_once(&stage, 1, OpCode::GetChildren);
    assert_eq!(sent[..4], ((expected.len() as u32 - 4) + 4).to_be_bytes());
    assert_eq!(sent[4..12], (1i64 << 40).to_be_bytes());
    assert!(sent[12..] == expected[8..]);
}

/// A stage whose clients may hold `bytes` together.
fn stage_with_buffers(bytes: usize) -> FrontStage {
    let limits = Limits {
        children_per_turn: 1000,
        counters: counters(&Arc::new(ClientBuffers::new(bytes))),
        ..Limits::default()
    };
    FrontStage { front: Front::new(FrontStage::settings(limits)), ..stage_with_long_list() }
}

#[test]
fn a_list_that_takes_much_more_than_all_clients_may_hold_is_refused_before_it_is_copied() {
    // 2500 names of 14 bytes with their lengths, and a bit: more than four times as much.
    let mut stage = stage_with_buffers(8_000);
    let conn = stage.connect(1, FIRST, Extensions::default());
    for op in [OpCode::GetChildren, OpCode::GetChildren2] {
        stage.receive(conn, &[list(1, op, true), read(2)].concat());
        assert_eq!(stage.replies(conn), [(1, Some(ErrorCode::BadArguments))], "in the first turn");
        stage.front.resume(conn, 0, &stage.around);
        assert_eq!(stage.replies(conn), [(2, None)], "the connection goes on");
    }
    assert_eq!(stage.around.state.borrow().watches().count(), 0);
}

/// The newest names are long, so the list is taken for longer than it is.
#[test]
fn a_list_that_is_expected_to_be_too_long_is_answered_if_it_is_not() {
    let mut stage = stage_with_buffers(60_000);
    (0..100).for_each(|number| create_znode(&stage, &format!("/a/{number:060}")));
    let conn = stage.connect(1, FIRST, Extensions::default());
    let expected = stage.around.state.borrow().tree().list_bytes_expected("/a").expect("it is long");
    assert!(expected > 2 * 60_000 && expected < 4 * 60_000, "{expected} bytes");
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    for _ in 0..2 {
        stage.front.resume(conn, 0, &stage.around);
    }
    assert!(stage.sent(conn) == answered_at_once(&stage, 1, OpCode::GetChildren));
}

/// The newest names are short, so the list is taken for shorter than it is.
#[test]
fn a_list_that_turns_out_too_long_is_refused_while_it_is_copied() {
    let mut stage = stage_with_buffers(30_000);
    (0..200).for_each(|number| create_znode(&stage, &format!("/a/{number}")));
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, true));
    let mut turns = 1;
    let replies = loop {
        let replies = stage.replies(conn);
        if !replies.is_empty() {
            break replies;
        }
        stage.front.resume(conn, 0, &stage.around);
        turns += 1;
    };
    assert_eq!((replies, turns), (vec![(1, Some(ErrorCode::BadArguments))], 3));
    assert_eq!(stage.around.state.borrow().watches().count(), 0);
}

/// A list of many children: between two portions of it others read, it is counted as a whole from the beginning on, and what was sent of it is
/// let go of piece by piece.
#[test]
fn others_read_between_portions_and_a_list_takes_no_more_memory_than_its_names() {
    const CHILDREN: usize = 40_000;
    let buffers = Arc::new(ClientBuffers::new(64 << 20));
    let limits = Limits { children_per_turn: 1000, counters: counters(&buffers), ..Limits::default() };
    let mut stage = FrontStage { front: Front::new(FrontStage::settings(limits)), ..stage_with_long_list() };
    (2500..CHILDREN).for_each(|number| create_znode(&stage, &format!("/a/child-{number}")));
    let [conn, other] =
        [(1, FIRST), (2, SECOND)].map(|(n, session)| stage.connect(n, session, Extensions::default()));
    let expected = answered_at_once(&stage, 1, OpCode::GetChildren);
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    let mut between = 0;
    loop {
        let condition = stage.front.condition(conn, &stage.around).expect("it is there");
        let held = buffers.held();
        assert!(held.abs_diff(expected.len()) < expected.len() / 16, "{held} of {}", expected.len());
        if !condition.has_more {
            break;
        }
        stage.receive(other, &read(between));
        assert_eq!(stage.replies(other), [(between, None)], "a read between two portions");
        between += 1;
        stage.front.resume(conn, 0, &stage.around);
    }
    assert_eq!(between as usize, CHILDREN / 1000 - 1);

    // The socket takes a part at a time.
    let (mut sent, mut calls, mut held_before) = (Vec::new(), 0, buffers.held());
    while sent.len() < expected.len() {
        let mut budget = 100_000;
        let step = stage.front.send(conn, |bytes| {
            let taken = bytes.len().min(budget);
            sent.extend_from_slice(&bytes[..taken]);
            budget -= taken;
            if taken == 0 { Err(()) } else { Ok(taken) }
        });
        assert!(step.is_ok() || budget == 0);
        assert!(buffers.held() <= held_before, "it is let go of");
        (calls, held_before) = (calls + 1, buffers.held());
    }
    assert_eq!(names(&sent), names(&expected));
    assert!(calls > 5 && buffers.held() == 0, "{calls} calls, {} bytes held", buffers.held());
}

/// The names of a reply without a Stat, in order.
fn names(reply: &[u8]) -> Vec<&str> {
    let mut names = Reader::new(&reply[20..]).strings().unwrap();
    names.sort_unstable();
    names
}
