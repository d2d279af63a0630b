//! Tests of the protocol: frames in, actions out.

use paddock_proto::jute::Writer;
use paddock_proto::{Password, SessionSecret};
use paddock_state::Connected;
use paddock_tree::keyed_password;

use super::*;

const SECRET: SessionSecret = SessionSecret([7; SessionSecret::BYTES]);
const SEVEN: SessionId = SessionId(7);

fn protocol() -> Protocol {
    Protocol::new(ConnId::new(0, 1), "127.0.0.1:1".parse().unwrap(), &[])
}

fn on_frame<'f>(protocol: &mut Protocol, frame: &'f [u8]) -> Action<'f> {
    on_frame_with(protocol, frame, &tree(), &Settings::of_zookeeper())
}

fn on_frame_with<'f>(
    protocol: &mut Protocol,
    frame: &'f [u8],
    tree: &Tree,
    settings: &Settings,
) -> Action<'f> {
    protocol.on_frame(
        frame,
        &Context { tree: Some(tree), ..Context::default() },
        settings,
        &mut HandedBytes::default(),
    )
}

/// A state of zxid 100, with a secret and the session 7.
fn tree() -> Tree {
    let mut tree = Tree::new();
    tree.install_secret(SECRET);
    tree.install_own_session(SEVEN, 10_000, 1, true, None);
    tree.install(Zxid(100), &[]).unwrap();
    tree
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
    connect(&mut protocol, SessionId(5));
    protocol
}

/// The engine gives the connection a session.
fn connect(protocol: &mut Protocol, session: SessionId) -> Granted {
    let connected = Connected { session, timeout_ms: 10_000, read_only: false };
    protocol.on_connected(connected, keyed_password(&SECRET, session))
}

#[test]
fn a_session_is_resumed_only_with_its_password() {
    let password = keyed_password(&SECRET, SEVEN).0;
    let step = |password: &[u8]| format!("{:?}", on_frame(&mut protocol(), &greeting(7, password, 0)));
    assert!(step(&password).contains("Resume"));
    assert!(step(&[0; 16]).contains("Expired"));
    assert!(step(&password[..15]).contains("Expired"));
    assert!(step(&Password::of_zookeeper(SEVEN).0).contains("Expired"));
}

fn bound_to(scheme: &str, id: &str) -> Tree {
    let mut tree = tree();
    tree.install_own_session(SEVEN, 10_000, 1, true, Some(Id::new(scheme, id)));
    tree
}

fn with_sasl() -> Settings {
    Settings { sasl: Some(crate::SaslUsers::default().into()), ..Settings::of_zookeeper() }
}

/// The client comes back with the right password.
fn come_back(protocol: &mut Protocol, tree: &Tree, settings: &Settings) -> String {
    let greeting = greeting(SEVEN.0, &keyed_password(&SECRET, SEVEN).0, 0);
    format!("{:?}", on_frame_with(protocol, &greeting, tree, settings))
}

#[test]
fn a_certificate_s_session_is_resumed_by_nobody_else() {
    let bound = bound_to("x509", "CN=ann");
    let with = |ids: &[Id]| Protocol::new(ConnId::new(0, 1), "127.0.0.1:1".parse().unwrap(), ids);
    let step = |ids: &[Id]| come_back(&mut with(ids), &bound, &with_sasl());
    assert!(step(&[Id::new("x509", "CN=ann")]).contains("is_asking: false"));
    for ids in [vec![], vec![Id::new("x509", "CN=eve")], vec![Id::new("super", "")]] {
        assert!(step(&ids).contains("Expired"), "{ids:?}");
    }
}

#[test]
fn a_session_of_sasl_is_resumed_once_its_client_has_shown_who_it_is() {
    let (bound, settings) = (bound_to("sasl", "ann"), with_sasl());
    let mut protocol = protocol();
    assert!(come_back(&mut protocol, &bound, &settings).contains("is_asking: true"));
    assert!(matches!(connect(&mut protocol, SEVEN), Granted::Greet(response) if response.session == SEVEN));
    assert_eq!(protocol.client().session, SessionId::NONE, "it serves nothing yet");
    assert!(matches!(on_frame_with(&mut protocol, &request(-2, 11), &bound, &settings), Action::Ping));
    assert!(protocol.on_identified(&bound, &settings).is_none());
    protocol.identify(&[Id::new("digest", "ann:x"), Id::new("super", "")], &settings).unwrap();
    assert!(protocol.on_identified(&bound, &settings).is_none(), "that is no proof of who it is");

    protocol.identify(&[Id::new("sasl", "ann")], &settings).unwrap();
    let Some(Identified::Resume(ClientInput::Resume { resumption, .. })) =
        protocol.on_identified(&bound, &settings)
    else {
        panic!("it has shown who it is")
    };
    assert!(!resumption.is_asking && resumption.session == SEVEN);
    assert!(!protocol.takes_frames());
    assert!(matches!(connect(&mut protocol, SEVEN), Granted::Known));
    assert_eq!((protocol.client().session, protocol.takes_frames()), (SEVEN, true));
}

#[test]
fn a_request_before_the_identity_ends_the_connection_and_a_stranger_gets_nothing() {
    let (bound, settings) = (bound_to("sasl", "ann"), with_sasl());
    let proving = || {
        let mut protocol = protocol();
        come_back(&mut protocol, &bound, &settings);
        connect(&mut protocol, SEVEN);
        protocol
    };
    for op in [1, 4, -11, 101, 107] {
        let mut protocol = proving();
        let Action::Refuse(Refusal::Reply(header)) =
            on_frame_with(&mut protocol, &request(3, op), &bound, &settings)
        else {
            panic!("operation {op} was taken")
        };
        assert_eq!(header.error, Some(ErrorCode::SessionClosedRequireSaslAuth));
    }
    let mut protocol = proving();
    protocol.identify(&[Id::new("sasl", "eve")], &settings).unwrap();
    assert!(matches!(protocol.on_identified(&bound, &settings), Some(Identified::Stranger)));
    // Where no client can prove anything by SASL its client is told at once.
    assert!(come_back(&mut self::protocol(), &bound, &Settings::of_zookeeper()).contains("Expired"));
}

#[test]
fn required_schemes_hold_before_a_session_is_resumed() {
    let settings = Settings { required_schemes: vec!["sasl".to_owned()], ..with_sasl() };
    let mut protocol = protocol();
    assert!(come_back(&mut protocol, &tree(), &settings).contains("is_asking: true"));
    connect(&mut protocol, SEVEN);
    assert!(protocol.on_identified(&tree(), &settings).is_none());
    protocol.identify(&[Id::new("sasl", "ann")], &settings).unwrap();
    assert!(matches!(protocol.on_identified(&tree(), &settings), Some(Identified::Resume(_))));
    // The session ended meanwhile: the client has been greeted, and asks again.
    assert!(protocol.on_expired().is_none());
}

#[test]
fn an_identity_that_is_proved_binds_the_session_once() {
    let settings = with_sasl();
    let mut protocol = serving();
    let mut known = tree();
    known.install_own_session(SessionId(5), 10_000, 1, true, None);
    assert!(protocol.on_identified(&known, &settings).is_none());
    protocol.identify(&[Id::new("digest", "ann:x"), Id::new("super", "")], &settings).unwrap();
    assert!(protocol.on_identified(&known, &settings).is_none());
    assert!(protocol.on_identified(&tree(), &settings).is_none(), "a session of read-only mode");
    protocol.identify(&[Id::new("sasl", "ann")], &settings).unwrap();
    assert!(matches!(protocol.on_identified(&known, &settings), Some(Identified::Bind(_))));
    known.install_own_session(SessionId(5), 10_000, 1, true, Some(Id::new("x509", "CN=ann")));
    assert!(protocol.on_identified(&known, &settings).is_none());
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
    for op in [0, 10, 13, 20, -10, -12, -14, -15, -16, -17, -1, 999] {
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
