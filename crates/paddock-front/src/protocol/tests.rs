//! Tests of the protocol: frames in, actions out.

use paddock_proto::Password;
use paddock_proto::jute::Writer;

use super::*;

fn protocol() -> Protocol {
    Protocol::new(ConnId::new(0, 1), "127.0.0.1:1".parse().unwrap(), &[])
}

fn on_frame<'f>(protocol: &mut Protocol, frame: &'f [u8]) -> Action<'f> {
    protocol.on_frame(frame, &Context { zxid: Zxid(100), ..Context::default() }, &Settings::for_tests())
}

fn greeting(session: i64, password: &[u8], last_zxid_seen: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let request = ConnectRequest {
        protocol_version: 0,
        extensions: Extensions::default(),
        last_zxid_seen: Zxid(last_zxid_seen),
        timeout_ms: 10_000,
        session: SessionId(session),
        password: Some(password),
        read_only: Some(false),
    };
    request.encode(&mut out);
    out.split_off(4)
}

fn request(xid: i32, op: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(xid);
    out.put_i32(op);
    out
}

fn serving() -> Protocol {
    let mut protocol = protocol();
    assert!(matches!(
        on_frame(&mut protocol, &greeting(0, &[0; 16], 0)),
        Action::Submit(ClientInput::Connect { .. })
    ));
    assert!(!protocol.takes_frames());
    protocol.on_connected(SessionId(5), 10_000, false);
    protocol
}

#[test]
fn a_session_is_resumed_only_with_its_password() {
    let password = Password::of(SessionId(7)).0;
    let step = |password: &[u8]| format!("{:?}", on_frame(&mut protocol(), &greeting(7, password, 0)));
    assert!(step(&password).contains("Resume"));
    assert!(step(&[0; 16]).contains("Expired"));
    assert!(step(&password[..15]).contains("Expired"));
}

#[test]
fn a_client_from_the_future_is_turned_away() {
    let mut protocol = protocol();
    assert!(matches!(
        on_frame(&mut protocol, &greeting(0, &[], 101)),
        Action::Refuse(Refusal::Silently { .. })
    ));
    assert!(!protocol.takes_frames());
}

#[test]
fn what_no_client_may_send_is_answered_and_ends_the_protocol() {
    for op in [0, 10, 13, 20, -10, -14, -15, -1, 999] {
        let mut protocol = serving();
        let Action::Refuse(Refusal::Reply(header)) = on_frame(&mut protocol, &request(3, op)) else {
            panic!("operation {op} was taken")
        };
        assert_eq!((header.xid, header.error), (Xid(3), Some(ErrorCode::Unimplemented)));
        assert!(!protocol.takes_frames());
    }
}

#[test]
fn writes_go_to_the_replica_and_reads_do_not() {
    let mut protocol = serving();
    let delete = [request(1, 2), b"\0\0\0\x02/a\0\0\0\0".to_vec()].concat();
    assert!(matches!(on_frame(&mut protocol, &delete), Action::Submit(ClientInput::Write { .. })));
    assert!(matches!(on_frame(&mut protocol, &delete[..9]), Action::Read { op: OpCode::Delete, .. }));
    assert!(matches!(on_frame(&mut protocol, &request(2, 4)), Action::Read { op: OpCode::GetData, .. }));
    assert!(matches!(on_frame(&mut protocol, &request(-2, 11)), Action::Ping));
    assert!(matches!(on_frame(&mut protocol, &request(3, -11)), Action::Submit(ClientInput::Write { .. })));
    assert!(!protocol.takes_frames(), "nothing is read behind a closeSession");
}
