//! Order of answers and events on a connection, up to its end.

use paddock_front::Limits;
use paddock_proto::{ErrorCode, EventKind, Extensions, OpCode, WatchEvent, Xid, Zxid};
use paddock_state::ClientInput;

use crate::stage::*;

#[test]
fn replies_that_come_in_another_order_are_sent_in_that_of_the_requests() {
    let mut stage = FrontStage::new(Limits::default());
    let [conn, other] =
        [FIRST, SECOND].map(|session| stage.connect(session.0 as u64, session, Extensions::default()));
    stage.receive(conn, &[write(1), write(2), read(3), write(4)].concat());
    stage.receive(other, &write(1));
    stage.engine(|out| {
        reply(out, conn, 3);
        reply(out, conn, 2);
        event(out, conn);
        reply(out, other, 1);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None)], "an event is not kept for a reply");
    assert_eq!(stage.replies(other), [(1, None)], "a connection does not wait for another one");
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)]);
    stage.receive(conn, &read(5));
    stage.engine(|out| {
        reply(out, conn, 5);
        reply(out, conn, 4);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(4, None), (5, None)]);
    stage.receive(conn, &read(6));
    assert_eq!(stage.replies(conn), [(6, None)], "nothing waits any more");
}

#[test]
fn early_replies_of_a_connection_that_closes_are_not_sent() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), write(2)].concat());
    stage.engine(|out| {
        reply(out, conn, 2);
        out.close(conn);
    });
    stage.front.deliver(&stage.around);
    assert!(stage.replies(conn).is_empty() && stage.is_closing(conn));
}

#[test]
fn a_read_waits_behind_a_write_and_a_ping_does_not() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    let ping = request(Xid::PING.0, OpCode::Ping, |_| {});
    stage.receive(conn, &[write(1), read(2), ping].concat());
    let inputs = stage.inputs();
    assert!(matches!(inputs[..], [ClientInput::Write { .. }, ClientInput::Read(_)]), "{inputs:?}");
    assert_eq!(stage.replies(conn), [(Xid::PING.0, None)]);
    stage.engine(|out| {
        reply(out, conn, 1);
        reply(out, conn, 2);
    });
    stage.front.deliver(&stage.around);
    stage.receive(conn, &read(3));
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)]);
    assert!(stage.inputs().is_empty(), "nothing waits, so the read is answered from the state");
}

#[test]
fn frames_come_in_pieces_of_any_size() {
    for size in [1, 3, 7, 100] {
        let mut stage = FrontStage::new(Limits::default());
        let conn = stage.connect(1, FIRST, Extensions::default());
        let bytes = [read(1), read(2), read(3)].concat();
        bytes.chunks(size).for_each(|piece| stage.receive(conn, piece));
        assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)], "pieces of {size} bytes");
    }
}

#[test]
fn events_stand_before_the_answer_that_shows_their_change() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.engine(|out| event(out, conn));
    stage.receive(conn, &read(1));
    assert_eq!(stage.replies(conn), [(Xid::NOTIFICATION.0, None), (1, None)]);
}

#[test]
fn a_connection_with_many_events_is_flushed_once() {
    let mut stage = FrontStage::new(Limits::default());
    let conns = [1, 2].map(|number| stage.connect(number, FIRST, Extensions::default()));
    stage.reached();
    stage.engine(|out| {
        for _ in 0..1000 {
            let mut mail = out.event(WatchEvent { kind: EventKind::NodeCreated, path: "/b", zxid: Zxid(7) });
            conns.iter().for_each(|conn| mail.tell(*conn));
        }
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.reached().iter().map(|reached| reached.conn).collect::<Vec<_>>(), conns);
    for conn in conns {
        assert_eq!(stage.replies(conn).len(), 1000);
    }
}

#[test]
fn nothing_is_answered_behind_the_end_of_a_connection() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    // The end lies in the mailbox when a read is taken: its watches are gone, so it must not see anything newer.
    stage.engine(|out| out.close(conn));
    stage.receive(conn, &read(1));
    assert_eq!(stage.replies(conn), []);
    assert!(stage.is_closing(conn));

    let conn = stage.connect(2, SECOND, Extensions::default());
    stage.receive(conn, &[write(1), write(2)].concat());
    stage.engine(|out| {
        reply(out, conn, 1);
        out.close(conn);
        reply(out, conn, 2);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None)]);
}

#[test]
fn a_request_that_ends_its_connection_is_refused_behind_earlier_ones() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), request(2, OpCode::Check, |_| {}), read(3)].concat());
    assert_eq!(stage.inputs().len(), 1, "nothing behind it is taken");
    assert!(!stage.is_closing(conn) && !stage.takes_input(conn));
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(conn), [(1, None), (2, Some(ErrorCode::Unimplemented))]);
    assert!(stage.is_closing(conn));
}

#[test]
fn a_reply_for_a_connection_that_is_gone_reaches_nobody() {
    let mut stage = FrontStage::new(Limits::default());
    let (gone, here) =
        (stage.connect(1, FIRST, Extensions::default()), stage.connect(2, SECOND, Extensions::default()));
    stage.receive(gone, &write(1));
    stage.receive(here, &write(2));
    assert_eq!(stage.front.outstanding(), 2);
    stage.front.leave(gone, &stage.around);
    assert_eq!(stage.front.outstanding(), 1);
    stage.engine(|out| {
        reply(out, gone, 1);
        reply(out, here, 2);
    });
    stage.front.deliver(&stage.around);
    assert_eq!(stage.replies(here), [(2, None)]);
    let inputs = stage.inputs();
    let last = &inputs[inputs.len() - 2..];
    assert!(
        matches!(last, [ClientInput::Touch { session: FIRST }, ClientInput::Disconnect { .. }]),
        "{last:?}"
    );
}
