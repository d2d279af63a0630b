//! Turns of connections: who is read from, and for how long.

use std::sync::Arc;

use paddock_front::{Counters, LimitHit, Limits, OutstandingLimit, Reached};
use paddock_proto::{Extensions, OpCode, SessionId, Zxid, encode};

use crate::stage::*;

#[test]
fn a_connection_that_lets_too_much_wait_is_not_read_from() {
    let limits = Limits { waiting_max: 2, ..Limits::default() };
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.reached();
    stage.receive(conn, &[write(1), write(2), write(3)].concat());
    assert_eq!(stage.inputs().len(), 2);
    assert!(!stage.takes_input(conn));
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(stage.reached(), [Reached { conn, has_changed: true }], "the worker has to look again");
    assert!(stage.takes_input(conn));
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 1);
}

#[test]
fn a_connection_that_does_not_read_its_replies_is_not_read_from() {
    let limits = Limits { unsent_bytes_max: 100, ..Limits::default() };
    let mut stage = FrontStage::new(limits);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[read(1), read(2), read(3), read(4)].concat());
    assert!(!stage.takes_input(conn));
    assert_eq!(stage.replies(conn), [(1, None), (2, None)]);
    assert!(stage.takes_input(conn));
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.replies(conn), [(3, None), (4, None)]);
}

#[test]
fn a_turn_ends_behind_many_bytes_of_replies() {
    let mut stage = FrontStage::new(Limits { turn_bytes_max: 100, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    let has_more =
        |stage: &FrontStage| stage.front.condition(conn, &stage.around).expect("it is there").has_more;
    stage.receive(conn, &[read(1), read(2), read(3), read(4)].concat());
    assert!(stage.takes_input(conn) && has_more(&stage), "others have their turn");
    stage.front.resume(conn, 0, &stage.around);
    assert!(!has_more(&stage));
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None), (4, None)]);
}

#[test]
fn with_too_many_requests_under_way_only_those_who_wait_for_none_may_ask() {
    let limits = Limits {
        counters: Counters { outstanding: Arc::new(OutstandingLimit::new(3)), ..Counters::default() },
        ..Limits::default()
    };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let (first, second) = {
        let mut connect = |number, session| stage.connect(number, session, Extensions::default());
        (connect(1, FIRST), connect(2, SECOND))
    };
    let writes: Vec<u8> = (1..=5).flat_map(write).collect();
    stage.receive(first, &writes);
    assert_eq!(stage.inputs().len(), 3);
    assert!(!stage.takes_input(first) && stage.takes_input(second));
    stage.receive(second, &writes);
    assert_eq!(stage.inputs().len(), 1, "it waits for nothing, so it may ask");
    assert!(!stage.takes_input(second));
    assert_eq!(hits.count(LimitHit::Outstanding), 2);
    for xid in 1..=3 {
        stage.engine(|out| reply(out, first, xid));
    }
    stage.engine(|out| reply(out, second, 1));
    stage.front.deliver(&stage.around);
    assert!(stage.reached().iter().all(|reached| reached.has_changed), "their worker looks again");
    stage.front.leave(second, &stage.around);
    stage.inputs();
    stage.front.resume(first, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 2, "who has gone waits for nothing");
}

#[test]
fn turns_are_heavy_until_replies_have_been_small() {
    let mut stage =
        FrontStage::new(Limits { first_reply_bytes: 400, turn_bytes_max: 200, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    let is_heavy =
        |stage: &FrontStage| stage.front.condition(conn, &stage.around).expect("it is there").is_heavy;
    assert!(is_heavy(&stage), "nothing is known of it");
    for xid in 1..=20 {
        stage.receive(conn, &read(xid));
        stage.sent(conn);
    }
    assert!(!is_heavy(&stage));
    stage.receive(conn, &write(21));
    stage.engine(|out| {
        let request = out.request(conn, 21);
        out.write_reply(conn, request, (Zxid(7), None), |out| out.resize(out.len() + 300, 7))
    });
    stage.front.deliver(&stage.around);
    assert!(is_heavy(&stage));
}

#[test]
fn long_multis_of_several_connections_wait_for_each_other() {
    let limits = Limits { long_multi_bytes: 20, long_multis_max: 100, ..Limits::default() };
    let hits = limits.counters.hits.clone();
    let mut stage = FrontStage::new(limits);
    let multi = |xid| {
        request(xid, OpCode::Multi, |out| {
            encode::multi_operation(out, OpCode::Delete);
            encode::path_and_version(out, &format!("/{}", "a".repeat(60)), -1);
            encode::multi_end(out);
        })
    };
    let first = stage.connect(1, FIRST, Extensions::default());
    let second = stage.connect(2, SECOND, Extensions::default());
    let third = stage.connect(3, SessionId(0x103), Extensions::default());
    stage.receive(first, &[multi(1), multi(2)].concat());
    stage.receive(second, &[multi(1), write(2)].concat());
    stage.receive(third, &[write(1), multi(2)].concat());
    assert_eq!(stage.inputs().len(), 2, "the first multi, and what is none");
    let waiting = |stage: &FrontStage| [first, second, third].map(|conn| !stage.takes_input(conn));
    assert_eq!((waiting(&stage), hits.count(LimitHit::LongMultis)), ([true; 3], 3));
    stage.reached();

    stage.engine(|out| reply(out, first, 1));
    stage.front.deliver(&stage.around);
    assert_eq!(waiting(&stage), [false, true, true], "who has waited longest goes on");
    assert!(stage.reached().contains(&Reached { conn: first, has_changed: true }));
    stage.front.resume(first, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 1);

    // Its multi goes with it, and the next one may be taken.
    stage.front.leave(first, &stage.around);
    stage.inputs();
    assert!(stage.takes_input(second) && !stage.takes_input(third));
    stage.front.resume(second, 0, &stage.around);
    assert_eq!(stage.inputs().len(), 2, "its multi and what stands behind it");
    stage.front.leave(third, &stage.around);
}
