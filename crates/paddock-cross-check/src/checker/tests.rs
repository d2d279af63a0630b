//! Stories of a client, this member and a reference, as the checker hears them.

use std::sync::Arc;

use paddock_proto::jute::Writer;
use paddock_proto::{ConnectRequest, ConnectResponse, Password, SessionId, Zxid, frame};
use paddock_state::ConnId;

use super::*;

const CREATE: i32 = 1;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const GET_CHILDREN: i32 = 8;
const CLOSE: i32 = -11;

struct Story {
    checker: Checker,
    stats: Arc<CrossCheckStats>,
}

impl Story {
    /// A connection whose session is there on both sides.
    fn begin() -> (Story, ConnId) {
        let stats = Arc::<CrossCheckStats>::default();
        let mut story = Story { checker: Checker::new(stats.clone()), stats };
        let conn = story.connect(1);
        (story, conn)
    }

    fn connect(&mut self, number: u64) -> ConnId {
        let conn = self.greet(number, SessionId::NONE);
        assert_eq!(self.connected(), [conn]);
        self.checker.own(conn, &greeted(0x100 + number as i64));
        self.checker.reference(conn, greeted(0x900 + number as i64)[4..].to_vec());
        conn
    }

    /// A connection for this session, or for a new one; neither side has answered.
    fn greet(&mut self, number: u64, session: SessionId) -> ConnId {
        let conn = ConnId::new(0, number);
        self.checker.opened(conn);
        let mut greeting = Vec::new();
        ConnectRequest {
            protocol_version: 0,
            extensions: Default::default(),
            last_zxid_seen: Zxid(9),
            timeout_ms: 4000,
            session,
            password: None,
            read_only: None,
        }
        .encode(&mut greeting);
        self.checker.client(conn, &greeting);
        conn
    }

    /// Connections for which the reference has been greeted.
    fn connected(&mut self) -> Vec<ConnId> {
        let effects = self.checker.take_effects().into_iter();
        effects
            .filter_map(|effect| if let Effect::Connect(conn, _) = effect { Some(conn) } else { None })
            .collect()
    }

    /// A request of the client.
    fn ask(&mut self, conn: ConnId, xid: i32, op: i32, path: &str) {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            out.put_i32(xid);
            out.put_i32(op);
            out.put_string(path);
        });
        // The request comes in two pieces.
        let (front, back) = bytes.split_at(6);
        self.checker.client(conn, front);
        self.checker.client(conn, back);
        assert_eq!(self.checker.take_effects(), [], "this member has not answered yet");
    }

    /// Xids of the requests that go to the reference after a moment.
    fn gone(&mut self) -> Vec<i32> {
        self.checker.set_now(self.checker.now_ms + 100);
        let effects = self.checker.take_effects();
        let xid = |effect: &Effect| match effect {
            Effect::Send(_, bytes) => i32::from_be_bytes(bytes[4..8].try_into().unwrap()),
            other => panic!("{other:?}"),
        };
        effects.iter().map(xid).collect()
    }

    fn own(&mut self, conn: ConnId, xid: i32, error: i32, text: &str) {
        self.own_at(7, conn, xid, (error, text));
    }

    fn own_at(&mut self, zxid: i64, conn: ConnId, xid: i32, (error, text): (i32, &str)) {
        self.checker.own(conn, &framed(&answer(xid, zxid, error, text)));
    }

    fn reference(&mut self, conn: ConnId, xid: i32, error: i32, text: &str) {
        self.checker.reference(conn, answer(xid, 3, error, text));
    }

    /// Compared, differences and connections that were given up.
    fn counts(&self) -> (u64, u64, u64) {
        self.stats.counts()
    }
}

fn greeted(session: i64) -> Vec<u8> {
    let (session, password) = (SessionId(session), Password::ZERO);
    let mut out = Vec::new();
    ConnectResponse { protocol_version: 0, timeout_ms: 4000, session, password, read_only: None }
        .encode(&mut out);
    out
}

fn answer(xid: i32, zxid: i64, error: i32, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(xid);
    out.put_i64(zxid);
    out.put_i32(error);
    if error == 0 && !text.is_empty() {
        out.put_string(text);
    }
    out
}

fn event(path: &str) -> Vec<u8> {
    let mut out = answer(-1, -1, 0, "");
    out.put_i32(3);
    out.put_i32(3);
    out.put_string(path);
    out
}

#[test]
fn equal_answers_are_counted_and_others_are_differences() {
    let (mut story, conn) = Story::begin();
    story.ask(conn, 1, CREATE, "/a");
    story.own(conn, 1, 0, "/a");
    assert_eq!(story.gone(), [1]);
    story.reference(conn, 1, 0, "/a");
    assert_eq!(story.counts(), (1, 0, 0), "zxids differ, and do not count");
    story.ask(conn, 2, CREATE, "/a");
    story.own(conn, 2, -110, "");
    assert_eq!(story.gone(), [2]);
    story.reference(conn, 2, 0, "/a");
    assert_eq!(story.counts(), (2, 1, 0));
}

#[test]
fn requests_go_to_the_reference_in_the_order_of_this_member_and_behind_the_writes_of_others() {
    let (mut story, first) = Story::begin();
    let second = story.connect(2);
    story.ask(first, 11, GET_CHILDREN, "/a");
    story.ask(second, 21, CREATE, "/a");
    // The read was asked first, and has seen the create.
    story.own_at(8, first, 11, (0, ""));
    story.own_at(8, second, 21, (0, "/a"));
    assert_eq!(story.gone(), [21]);
    story.reference(second, 21, 0, "/a");
    assert_eq!(story.gone(), [11]);
}

#[test]
fn an_event_matches_whichever_side_sends_it_first_and_is_missed_in_the_end() {
    let (mut story, conn) = Story::begin();
    story.checker.own(conn, &framed(&event("/a")));
    story.checker.reference(conn, event("/a"));
    story.checker.reference(conn, event("/b"));
    story.checker.set_now(PATIENCE_MS);
    story.checker.tick();
    assert_eq!(story.counts(), (1, 0, 0));
    story.checker.set_now(PATIENCE_MS + 1);
    story.checker.tick();
    assert_eq!(story.counts(), (1, 1, 0));
}

#[test]
fn an_event_is_missed_as_soon_as_its_session_has_ended() {
    let (mut story, conn) = Story::begin();
    story.checker.own(conn, &framed(&event("/a")));
    story.checker.reference(conn, event("/a"));
    story.checker.own(conn, &framed(&event("/b")));
    story.ask(conn, 1, CLOSE, "");
    story.own(conn, 1, 0, "");
    assert_eq!(story.gone(), [1]);
    assert_eq!(story.counts(), (1, 0, 0), "the reference may still send it");
    story.reference(conn, 1, 0, "");
    assert_eq!(story.counts(), (2, 1, 0));
}

#[test]
fn a_reference_that_is_gone_or_silent_ends_the_check_and_nothing_else() {
    let (mut story, conn) = Story::begin();
    let second = story.connect(2);
    story.checker.reference_gone(conn, "reset");
    assert_eq!(story.checker.take_effects(), [Effect::HangUp(conn)]);
    story.ask(conn, 1, CREATE, "/a");
    story.own(conn, 1, 0, "/a");
    assert_eq!(story.gone(), Vec::<i32>::new(), "it is not looked at any more");
    story.ask(second, 2, CREATE, "/b");
    story.own(second, 2, 0, "/b");
    assert_eq!(story.gone(), [2]);
    story.checker.set_now(story.checker.now_ms + PATIENCE_MS + 1);
    story.checker.tick();
    assert_eq!(story.counts(), (0, 0, 2));
}

#[test]
fn a_connection_whose_session_has_moved_on_is_not_given_up_when_the_reference_ends_it_first() {
    let (mut story, conn) = Story::begin();
    let other = story.connect(2);
    let again = story.greet(3, SessionId(0x101));
    assert_eq!(story.connected(), [again]);
    story.checker.reference_gone(conn, "closed");
    assert_eq!(story.checker.take_effects(), [Effect::HangUp(conn)]);
    assert_eq!(story.counts(), (0, 0, 0));
    story.checker.reference_gone(other, "closed");
    assert_eq!(story.counts(), (0, 0, 1), "nobody has come back to this session");
    story.checker.reference_gone(again, "closed");
    assert_eq!(story.counts(), (0, 0, 2), "the client is still there");
}

#[test]
fn a_client_that_is_back_before_the_reference_has_its_session_waits_for_it() {
    let (mut story, other) = Story::begin();
    let first = story.greet(2, SessionId::NONE);
    assert_eq!(story.connected(), [first]);
    story.checker.own(first, &greeted(0x102));
    let second = story.greet(3, SessionId(0x102));
    story.checker.own(second, &greeted(0x102));
    story.ask(second, 31, CREATE, "/a");
    story.ask(other, 11, CREATE, "/b");
    story.own_at(7, second, 31, (0, "/a"));
    story.own_at(8, other, 11, (0, "/b"));
    assert_eq!(story.gone(), Vec::<i32>::new(), "what comes behind its create waits, too");

    story.checker.reference(first, greeted(0x902)[4..].to_vec());
    story.checker.tick();
    let effects = story.checker.take_effects();
    assert!(
        matches!(&effects[..], [Effect::Connect(of, _), Effect::Send(..)] if *of == second),
        "{effects:?}"
    );
    story.checker.reference(second, greeted(0x902)[4..].to_vec());
    story.reference(second, 31, 0, "/a");
    assert_eq!(story.gone(), [11]);
    story.reference(other, 11, 0, "/b");
    assert_eq!(story.counts(), (2, 0, 0));
}

#[test]
fn a_client_that_comes_back_to_a_closed_session_is_refused_by_both() {
    let (mut story, conn) = Story::begin();
    story.ask(conn, 1, CLOSE, "");
    story.own(conn, 1, 0, "");
    assert_eq!(story.gone(), [1]);
    story.reference(conn, 1, 0, "");
    story.checker.take_effects();
    let again = story.greet(2, SessionId(0x101));
    assert_eq!(story.connected(), [again]);
    let mut refused = Vec::new();
    let (session, password) = (SessionId::NONE, Password::ZERO);
    ConnectResponse { protocol_version: 0, timeout_ms: 0, session, password, read_only: None }
        .encode(&mut refused);
    story.checker.own(again, &refused);
    story.checker.reference(again, refused[4..].to_vec());
    story.checker.closed(again);
    assert_eq!(story.counts(), (1, 0, 0));
}

#[test]
fn what_was_asked_over_the_connection_before_goes_to_the_reference_before_the_client_is_back_there() {
    let (mut story, first) = Story::begin();
    story.ask(first, 11, CREATE, "/a");
    story.ask(first, 12, CREATE, "/b");
    story.own_at(7, first, 11, (0, "/a"));
    // The connection ends before the second one is answered.
    story.checker.closed(first);
    let second = story.greet(2, SessionId(0x101));
    story.checker.own(second, &greeted(0x101));
    story.ask(second, 21, SET_DATA, "/a");
    story.own_at(9, second, 21, (0, ""));
    assert_eq!(story.gone(), [11, 12], "the new connection has no twin yet");
    story.reference(first, 11, 0, "/a");
    story.reference(first, 12, 0, "/b");
    story.checker.tick();
    let effects = story.checker.take_effects();
    let [Effect::HangUp(left), Effect::Connect(greeted_again, _), Effect::Send(..)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((*left, *greeted_again), (first, second));
    story.checker.reference(second, greeted(0x901)[4..].to_vec());
    story.reference(second, 21, 0, "");
    assert_eq!(story.counts(), (2, 0, 0), "the second create has no answer to compare with");
}

#[test]
fn a_client_that_is_back_does_not_wait_for_ever() {
    let (mut story, other) = Story::begin();
    let first = story.greet(2, SessionId::NONE);
    story.checker.own(first, &greeted(0x102));
    let second = story.greet(3, SessionId(0x102));
    story.checker.own(second, &greeted(0x102));
    assert_eq!(story.connected(), [first]);
    story.ask(second, 31, CREATE, "/a");
    story.ask(other, 11, CREATE, "/b");
    story.own_at(7, second, 31, (0, "/a"));
    story.own_at(8, other, 11, (0, "/b"));
    story.checker.set_now(PATIENCE_MS + 1);
    story.checker.tick();
    assert_eq!(story.counts(), (0, 0, 1));
    let effects = story.checker.take_effects();
    assert!(matches!(&effects[..], [Effect::HangUp(of), Effect::Send(..)] if *of == second), "{effects:?}");
}

#[test]
fn a_client_that_shows_clickhouses_dialect_is_given_up() {
    for (op, path) in [(GET_DATA, "/keeper/feature_flags"), (OpCode::CreateIfNotExists.code(), "/a")] {
        let (mut story, conn) = Story::begin();
        let mut bytes = Vec::new();
        frame::write(&mut bytes, |out| {
            out.put_i32(1);
            out.put_i32(op);
            out.put_string(path);
        });
        story.checker.client(conn, &bytes);
        assert_eq!(story.checker.take_effects(), [Effect::HangUp(conn)], "{path}");
        assert_eq!(story.counts(), (0, 0, 1));
    }
}

#[test]
fn a_client_that_closes_its_session_is_checked_to_the_end() {
    let (mut story, conn) = Story::begin();
    story.ask(conn, 1, CLOSE, "");
    story.own(conn, 1, 0, "");
    story.checker.closed(conn);
    assert_eq!(story.gone(), [1]);
    story.reference(conn, 1, 0, "");
    story.checker.reference_gone(conn, "closed");
    assert_eq!(story.checker.take_effects(), [Effect::HangUp(conn)]);
    assert_eq!(story.counts(), (1, 0, 0));
}
