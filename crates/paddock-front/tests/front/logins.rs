//! Clients that show by SASL who they are, and those that have to.

use std::sync::Arc;

use paddock_front::{Limits, SaslUsers, Settings};
use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{ErrorCode, Extensions, OpCode, Password, ReplyHeader, SessionId, Xid};
use paddock_state::{ClientInput, ConnId, Connected};

use crate::stage::*;

fn sasl(xid: i32, token: &[u8]) -> Vec<u8> {
    request(xid, OpCode::Sasl, |out| out.put_buffer(Some(token)))
}

/// Xid, error and token of each reply to a token of SASL.
fn sasl_replies(stage: &mut FrontStage, conn: ConnId) -> Vec<(i32, Option<ErrorCode>, Option<String>)> {
    let sent = stage.sent(conn);
    let replies = frames(&sent).into_iter().map(|frame| {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::decode(&mut reader).unwrap();
        let token = reader.buffer().unwrap().map(|token| String::from_utf8(token.to_vec()).unwrap());
        (header.xid.0, header.error, token)
    });
    replies.collect()
}

fn with_sasl(keeps_failed_clients: bool, required: &[&str]) -> FrontStage {
    let passwords = [("bob".to_owned(), "secret".to_owned())].into();
    let users = SaslUsers { passwords, super_users: vec![], keeps_failed_clients };
    FrontStage::with(Settings {
        sasl: Some(Arc::new(users)),
        required_schemes: required.iter().map(|scheme| (*scheme).to_owned()).collect(),
        ..FrontStage::settings(Limits::default())
    })
}

#[test]
fn a_client_that_cannot_answer_the_challenge_is_refused_at_once() {
    for (required, error) in
        [(&[][..], ErrorCode::AuthFailed), (&["sasl"], ErrorCode::SessionClosedRequireSaslAuth)]
    {
        let mut stage = with_sasl(false, required);
        let conn = stage.connect(1, FIRST, Extensions::default());
        stage.receive(conn, &[sasl(1, b""), sasl(2, b"username=\"bob\""), read(3)].concat());
        let replies = sasl_replies(&mut stage, conn);
        let challenge = replies[0].2.as_deref().unwrap();
        assert!(challenge.contains("nonce=\"00000000000000000000000000001234\""), "{challenge}");
        assert_eq!(replies[1..], [(2, Some(error), None)], "nothing behind it is answered");
        assert!(stage.is_closing(conn));
    }
}

#[test]
fn a_client_that_cannot_show_who_it_is_is_kept_where_that_is_wanted() {
    let mut stage = with_sasl(true, &[]);
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[sasl(1, b""), sasl(2, b"x"), read(3)].concat());
    assert_eq!(stage.replies(conn), [(1, None), (2, None), (3, None)]);
    assert!(!stage.is_closing(conn));
}

#[test]
fn a_member_without_sasl_answers_with_no_token() {
    let mut stage = FrontStage::new(Limits::default());
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &sasl(1, b""));
    assert_eq!(sasl_replies(&mut stage, conn), [(1, None, None)]);
    assert!(!stage.is_closing(conn));
}

#[test]
fn who_has_to_show_who_it_is_may_ask_for_nothing_before() {
    let ping = request(Xid::PING.0, OpCode::Ping, |_| {});
    for (xid, asked) in [(Xid::PING.0, ping), (1, read(1)), (1, write(1))] {
        let mut stage = with_sasl(false, &["sasl", "digest"]);
        let conn = stage.connect(1, FIRST, Extensions::default());
        stage.receive(conn, &asked);
        assert_eq!(stage.replies(conn), [(xid, Some(ErrorCode::SessionClosedRequireSaslAuth))]);
        assert!(stage.is_closing(conn) && stage.inputs().is_empty());
    }
    let mut stage = with_sasl(false, &["sasl", "digest"]);
    let conn = stage.connect(1, FIRST, Extensions::default());
    let auth = request(Xid::AUTH.0, OpCode::Auth, |out| {
        out.put_i32(0);
        out.put_string("digest");
        out.put_buffer(Some(b"ann:pw"));
    });
    stage.receive(conn, &[auth, read(1)].concat());
    assert_eq!(stage.replies(conn), [(Xid::AUTH.0, None)]);
    // Only now is its session resumed; until then it was only asked for, and what came behind it waits.
    let inputs = stage.inputs();
    let [ClientInput::Resume { resumption, .. }] = &inputs[..] else { panic!("{inputs:?}") };
    assert!(!resumption.is_asking && stage.front.session(conn) == SessionId::NONE);
    let connected = Connected { session: FIRST, timeout_ms: 10_000, read_only: false };
    stage.engine(|out| out.connected(conn, connected, &Password::of_zookeeper(FIRST)));
    stage.front.deliver(&stage.around);
    stage.front.resume(conn, stage.around.now.get().monotonic_ms, &stage.around);
    assert_eq!(stage.replies(conn), [(1, None)], "it is greeted once");
    assert_eq!(stage.front.session(conn), FIRST);
}
