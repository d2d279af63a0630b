//! Long lists, which are copied in portions.

use std::sync::Arc;

use paddock_front::{ClientBuffers, Front, Limits, Settings};
use paddock_proto::jute::Writer;
use paddock_proto::{
    Acl, CreateMode, ErrorCode, Extensions, Id, IdList, OpCode, Perms, SessionId, Xid, encode,
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

/// A front that copies 1000 children in a turn, and a znode `/a` with 2500.
fn stage_with_long_list() -> FrontStage {
    let stage = FrontStage::new(Limits { children_per_turn: 1000, ..Limits::default() });
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
fn a_long_list_is_copied_again_when_it_has_changed_and_in_one_step_when_it_always_does() {
    let mut stage = stage_with_long_list();
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &list(1, OpCode::GetChildren, false));
    create_znode(&stage, "/a/new");
    // What was copied is thrown away, and 4000 are copied at a time.
    stage.front.resume(conn, 0, &stage.around);
    assert!(stage.replies(conn).is_empty());
    stage.front.resume(conn, 0, &stage.around);
    assert!(stage.sent(conn) == answered_at_once(&stage, 1, OpCode::GetChildren));

    // Longer than what is copied at a time in the fourth try.
    (0..62_000).for_each(|number| create_znode(&stage, &format!("/a/more-{number}")));
    stage.receive(conn, &list(2, OpCode::GetChildren, false));
    let mut turns = 0;
    let sent = loop {
        let sent = stage.sent(conn);
        if !sent.is_empty() {
            break sent;
        }
        create_znode(&stage, &format!("/a/at-{turns}"));
        stage.front.resume(conn, 0, &stage.around);
        turns += 1;
    };
    assert!(sent == answered_at_once(&stage, 2, OpCode::GetChildren));
    assert_eq!(turns, 8, "each try has two turns: one copies, one sees that the list has changed");
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
