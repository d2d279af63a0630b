//! Greetings: dialects, four-letter words, new sessions.

use std::sync::Arc;

use paddock_front::{ConnectRate, ConnectThrottle, Counters, LimitHit, Limits};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ConnectRequest, Extensions, OpCode, SessionId, Xid, Zxid, encode, frame};
use paddock_state::ConnId;

use crate::stage::*;

#[test]
fn one_connections_dialect_is_not_anothers() {
    let mut stage = FrontStage::new(Limits::default());
    let wide = Extensions { wide_xids: true, ..Extensions::default() };
    let clickhouse = stage.connect(1, FIRST, wide);
    let zookeeper = stage.connect(2, SECOND, Extensions::default());
    stage.receive(zookeeper, &read(5));
    assert_eq!(stage.replies(zookeeper), [(5, None)]);
    let mut bytes = Vec::new();
    frame::write(&mut bytes, |out| {
        out.put_i64(0x1_0000_0005);
        out.extend_from_slice(&read(5)[8..]);
    });
    stage.receive(clickhouse, &bytes);
    let sent = stage.sent(clickhouse);
    assert_eq!(Reader::new(frames(&sent)[0]).i64(), Ok(0x1_0000_0005));
}

#[test]
fn an_auth_that_overtakes_a_request_does_not_take_its_wide_xid() {
    let mut stage = FrontStage::new(Limits::default());
    let wide = Extensions { wide_xids: true, ..Extensions::default() };
    let conn = stage.connect(1, FIRST, wide);
    let widen = |narrow: Vec<u8>, xid: i64| {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            out.put_i64(xid);
            out.extend_from_slice(&narrow[8..]);
        });
        bytes
    };
    let auth = request(0, OpCode::Auth, |out| encode::auth(out, "digest", b"ann:apples"));
    let bytes = [widen(write(9), 0x1_0000_0009), widen(auth, Xid::AUTH.0.into())].concat();
    stage.receive(conn, &bytes);
    stage.engine(|out| reply(out, conn, 9));
    stage.front.deliver(&stage.around);
    let sent = stage.sent(conn);
    let xids: Vec<i64> = frames(&sent).into_iter().map(|frame| Reader::new(frame).i64().unwrap()).collect();
    assert_eq!(xids, [Xid::AUTH.0.into(), 0x1_0000_0009]);
}

#[test]
fn a_four_letter_word_is_answered_in_the_place_of_a_greeting() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = ConnId::new(0, 1);
    stage.front.accept(conn, ([127, 0, 0, 1], 1).into(), ());
    stage.receive(conn, b"ru");
    assert!(!stage.is_closing(conn));
    stage.receive(conn, b"ok");
    assert_eq!(stage.sent(conn), b"imok");
    assert!(stage.is_closing(conn));
}

#[test]
fn a_new_session_is_refused_where_there_are_enough_or_too_many_came_at_once() {
    let rate = ConnectRate { tokens_max: 2, fill_interval_ms: 1000, ..ConnectRate::default() };
    let connects = Arc::new(ConnectThrottle::new(rate));
    for (limits, limit) in [
        (Limits { sessions_max: 0, ..Limits::default() }, LimitHit::Sessions),
        (
            Limits { counters: Counters { connects, ..Counters::default() }, ..Limits::default() },
            LimitHit::ConnectRate,
        ),
    ] {
        let hits = limits.counters.hits.clone();
        let mut stage = FrontStage::new(limits);
        // Who has a session comes back to it.
        stage.connect(1, FIRST, Extensions::default());
        if limit == LimitHit::ConnectRate {
            stage.connect(2, SECOND, Extensions::default());
        }
        let conn = ConnId::new(0, 3);
        stage.front.accept(conn, ([127, 0, 0, 1], 1).into(), ());
        let mut greeting = Vec::new();
        let request = ConnectRequest {
            protocol_version: 0,
            extensions: Extensions::default(),
            last_zxid_seen: Zxid(0),
            timeout_ms: 10_000,
            session: SessionId::NONE,
            password: Some(&[0; 16]),
            read_only: Some(false),
        };
        request.encode(&mut greeting);
        stage.receive(conn, &greeting);
        assert!(stage.is_closing(conn) && stage.inputs().is_empty(), "{limit:?}");
        assert!(stage.sent(conn).is_empty(), "a client takes a closed connection for a member that is gone");
        assert_eq!(hits.count(limit), 1);
    }
}
