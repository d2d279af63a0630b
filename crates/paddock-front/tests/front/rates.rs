//! Limits of rate: a tenant that asks for too much waits, and no other does.

use std::sync::Arc;

use paddock_front::{Counters, LimitHit, Limits, RateLimits};
use paddock_proto::jute::Writer;
use paddock_proto::{ErrorCode, Extensions, OpCode, Xid};
use paddock_state::{ClientInput, ConnId, Now, QueuedRead};

use crate::stage::*;

/// A front whose tenants have these rates; a request waits half a second at most.
fn stage(rules: &str) -> FrontStage {
    let rates = Arc::new(RateLimits::new(&rules.parse().unwrap(), 500));
    FrontStage::new(Limits { counters: Counters { rates, ..Counters::default() }, ..Limits::default() })
}

fn exists(xid: i32, path: &str) -> Vec<u8> {
    request(xid, OpCode::Exists, |out| {
        out.put_string(path);
        out.put_bool(false);
    })
}

fn set_time(stage: &FrontStage, ms: i64) {
    stage.around.now.set(Now { monotonic_ms: ms as u64, wall_ms: ms });
}

/// Time for which a connection waits, in milliseconds.
fn wait_ms(stage: &FrontStage, conn: ConnId) -> u32 {
    stage.front.condition(conn, &stage.around).unwrap().rate_wait_ms
}

/// Xids of the replies that were sent.
fn answered(stage: &mut FrontStage, conn: ConnId) -> Vec<i32> {
    stage.replies(conn).into_iter().map(|(xid, _)| xid).collect()
}

#[test]
fn a_connection_is_not_read_from_until_its_tenant_may_ask_again() {
    let mut stage = stage("path=/a:requests=100");
    let (greedy, other) =
        (stage.connect(1, FIRST, Extensions::default()), stage.connect(2, SECOND, Extensions::default()));
    let many: Vec<u8> = (1..=28).flat_map(|xid| exists(xid, "/a/x")).collect();
    stage.receive(greedy, &many);
    assert_eq!(answered(&mut stage, greedy), (1..=26).collect::<Vec<i32>>());
    assert_eq!((stage.takes_input(greedy), wait_ms(&stage, greedy)), (false, 10));
    assert_eq!(stage.settings.limits.counters.hits.count(LimitHit::Rate), 1);
    // Others go on, and what the greedy one sends meanwhile waits behind.
    stage.receive(other, &[exists(1, "/b"), exists(2, "/")].concat());
    assert_eq!(answered(&mut stage, other), [1, 2]);
    set_time(&stage, 9);
    assert!(!stage.takes_input(greedy));
    set_time(&stage, 10);
    assert!(stage.takes_input(greedy));
    stage.front.resume(greedy, 10, &stage.around);
    assert_eq!(answered(&mut stage, greedy), [27], "it was paid for; the next one is not");
    assert_eq!(wait_ms(&stage, greedy), 10);
    set_time(&stage, 5000);
    stage.front.resume(greedy, 5000, &stage.around);
    assert_eq!((answered(&mut stage, greedy), wait_ms(&stage, greedy)), (vec![28], 0));
}

#[test]
fn a_request_that_would_wait_too_long_is_refused_in_its_turn() {
    let mut stage = stage("address:requests=10");
    let conns: Vec<ConnId> =
        (1..=9).map(|number| stage.connect(number, FIRST, Extensions::default())).collect();
    let mut waiting = Vec::new();
    for (number, conn) in conns.iter().enumerate() {
        stage.receive(*conn, &exists(1, "/a"));
        waiting.extend((wait_ms(&stage, *conn) > 0).then_some(number));
    }
    assert_eq!(waiting, [3, 4, 5, 6, 7], "three come at once, and five wait up to half a second");
    assert_eq!(stage.replies(conns[8]), [(1, Some(ErrorCode::ThrottledOp))]);

    // Behind a write that waits for the engine.
    assert_eq!(answered(&mut stage, conns[0]), [1]);
    set_time(&stage, 10_000);
    stage.receive(conns[0], &write(2));
    assert!(matches!(stage.inputs()[..], [ClientInput::Write { .. }]));
    for conn in &conns[1..8] {
        stage.receive(*conn, &exists(2, "/a"));
    }
    stage.inputs();
    stage.receive(conns[0], &[exists(3, "/a"), ping()].concat());
    let inputs = stage.inputs();
    assert!(
        matches!(&inputs[..], [ClientInput::Read(QueuedRead { refusal: Some(ErrorCode::ThrottledOp), .. })]),
        "{inputs:?}"
    );
    let [ClientInput::Read(refused)] = &inputs[..] else { panic!() };
    stage.engine(|out| {
        let deleted = out.request(conns[0], 2);
        out.write_reply(conns[0], deleted, (paddock_proto::Zxid(9), None), |_| {});
    });
    let state = stage.around.state.take();
    stage.engine(|out| state.answer_queued(refused, out));
    stage.around.state.replace(state);
    stage.front.deliver(&stage.around);
    let ping = (Xid::PING.0, None);
    assert_eq!(stage.replies(conns[0]), [ping, (2, None), (3, Some(ErrorCode::ThrottledOp))]);
}

fn ping() -> Vec<u8> {
    request(Xid::PING.0, OpCode::Ping, |_| {})
}

#[test]
fn sessions_are_kept_and_ended_whatever_their_tenant_asks_for() {
    let mut stage = stage("path:requests=1;address:requests=1");
    let conn = stage.connect(1, FIRST, Extensions::default());
    let close = request(9, OpCode::CloseSession, |_| {});
    stage.receive(conn, &[exists(1, "/a"), ping(), ping(), ping(), close].concat());
    assert_eq!(answered(&mut stage, conn), [1, Xid::PING.0, Xid::PING.0, Xid::PING.0]);
    assert!(matches!(stage.inputs()[..], [ClientInput::Write { op: OpCode::CloseSession, .. }]));
}

#[test]
fn nothing_is_refused_behind_the_end_of_a_connection() {
    let mut stage = stage("path:requests=1");
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &exists(1, "/a"));
    assert_eq!(answered(&mut stage, conn), [1]);
    stage.engine(|out| out.close(conn));
    stage.receive(conn, &exists(2, "/a"));
    assert_eq!((answered(&mut stage, conn), stage.is_closing(conn)), (vec![], true));
}

#[test]
fn rules_change_while_connections_are_there() {
    let mut stage = stage("path:requests=4");
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[exists(1, "/a"), exists(2, "/a"), exists(3, "/a"), exists(4, "/a")].concat());
    assert_eq!(answered(&mut stage, conn), [1, 2]);
    stage.settings.limits.counters.rates.set(&Default::default(), 500);
    stage.front.set_settings(stage.settings.clone());
    set_time(&stage, 2000);
    stage.front.resume(conn, 2000, &stage.around);
    assert_eq!(answered(&mut stage, conn), [3, 4]);
}
