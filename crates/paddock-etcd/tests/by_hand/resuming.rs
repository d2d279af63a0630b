//! Sessions that clients want back: what happens to the connection that serves such a session, whatever becomes of the resume.

use paddock_etcd::{Answer, CallError, Input, KeyEvent, Keys, Operation, SessionRecord, Tag, WatchMessage};
use paddock_proto::{Id, IdList, OpCode};
use paddock_state::{ClientInput, ConnId, ProvenIds, Resumption};

use crate::front::{EPHEMERAL, Front, PERSISTENT, SESSION_TIMEOUT_MS, create_body, events_of};

/// A second connection.
fn other() -> ConnId {
    ConnId::new(0, 2)
}

fn keyed(front: &Front) -> Resumption {
    Resumption::keyed(front.session, SESSION_TIMEOUT_MS)
}

/// A create of the session's owner has waited since another connection wanted to resume the session, and is carried out now.
fn assert_owner_goes_on(front: &mut Front) {
    let (conn, session) = (front.conn, front.session);
    let create = front.sent().expect("the owner's request is carried out");
    assert_eq!(
        create.1.operations.iter().filter(|put| put.key() == Keys::new("/p").znode("/owned")).count(),
        1
    );
    front.carry_out(create);
    assert_eq!((front.replies, front.refusals.len(), front.is_closed), (1, 0, false));
    let next = front.write_of(conn, session, OpCode::Create, &create_body("/next", PERSISTENT));
    front.input(next);
    let next = front.sent().expect("and so is the next one");
    front.carry_out(next);
    assert_eq!((front.replies, front.is_closed), (2, false));
}

/// The session is bound to its owner's identity by the time at which the engine looks.
#[test]
fn a_stranger_who_may_not_have_a_session_harms_nobody() {
    let mut front = Front::new();
    let (conn, session) = (front.conn, front.session);
    let ids = IdList::encode(&[Id::new("x509", "CN=ann")]);
    let ids =
        ProvenIds::of(IdList::decode(&mut paddock_proto::jute::Reader::new(&ids)).expect("an identity"));
    front.input(Input::Client(ClientInput::Bind { conn, session, ids }));
    let bind = front.sent().expect("the session is bound");
    let stranger = keyed(&front);
    front.resume(other(), stranger);
    front.create("/owned");
    assert!(front.sent().is_none(), "both wait");
    front.carry_out(bind);
    let resume = front.sent().expect("the stranger's resume is tried");
    assert!(resume.1.operations.is_empty(), "{resume:?}");
    front.carry_out(resume);
    assert_eq!(front.closed, [other()]);
    assert_owner_goes_on(&mut front);
}

#[test]
fn whatever_etcd_says_to_a_resume_the_owner_goes_on() {
    let errors = [
        CallError::NoSpace,
        CallError::Compacted,
        CallError::TooLarge("by the test".to_owned()),
        CallError::Refused("by the test".to_owned()),
    ];
    for error in errors {
        let mut front = Front::new();
        let stranger = keyed(&front);
        front.resume(other(), stranger);
        front.create("/owned");
        let (id, _) = front.sent().expect("the resume is sent, and nothing else");
        front.fail(id, error);
        assert_eq!(front.closed, [other()]);
        assert_owner_goes_on(&mut front);
    }
    // The lease of the other timeout is refused.
    let mut front = Front::new();
    let stranger = Resumption::keyed(front.session, SESSION_TIMEOUT_MS / 2);
    front.resume(other(), stranger);
    front.create("/owned");
    let (grant, _) = front.asked_lease();
    front.fail(grant, CallError::Refused("by the test".to_owned()));
    assert_owner_goes_on(&mut front);
    // The password is one of ZooKeeper's, and the session has another one.
    let mut front = Front::new();
    let stranger = Resumption { is_keyed: false, ..keyed(&front) };
    front.resume(other(), stranger);
    front.create("/owned");
    let resume = front.sent().expect("the resume is tried");
    front.carry_out(resume);
    assert_eq!(front.expired, [other()]);
    assert_owner_goes_on(&mut front);
}

#[test]
fn what_the_owner_asked_before_its_session_was_resumed_is_dropped() {
    let mut front = Front::new();
    let (former, session) = (front.conn, front.session);
    let resumption = keyed(&front);
    front.resume(other(), resumption);
    front.create("/owned");
    let resume = front.sent().expect("the session is resumed");
    front.carry_out(resume);
    assert_eq!((front.sessions[&other()], front.closed.clone()), (session, vec![former]));
    assert!(front.sent().is_none(), "it is carried out behind the resume");
    let create = front.write_of(other(), session, OpCode::Create, &create_body("/next", PERSISTENT));
    front.input(create);
    let create = front.sent().expect("the session goes on");
    front.carry_out(create);
    front.disconnect(former);
    assert!(front.state.tree().znode("/owned").is_none() && front.state.tree().znode("/next").is_some());
}

/// The client has the session elsewhere by the time at which its first try could be carried out.
#[test]
fn a_resume_whose_connection_is_gone_steals_nothing() {
    for is_gone_first in [false, true] {
        let mut front = Front::new();
        let (session, resumption) = (front.session, keyed(&front));
        front.resume(other(), resumption);
        let (id, _) = front.sent().expect("the resume is sent");
        if is_gone_first {
            front.disconnect(other());
        }
        front.revision += 1;
        let revision = front.revision;
        front.input(Input::Answer(id, Ok(Answer::Transacted { is_done: false, revision })));
        if !is_gone_first {
            front.disconnect(other());
        }
        let elsewhere = SessionRecord {
            timeout_ms: SESSION_TIMEOUT_MS,
            is_keyed: true,
            proven: None,
            tag: Tag { front: 9 << 32, number: 1 },
            lease: None,
        };
        let key = Keys::new("/p").session(session);
        let events = vec![KeyEvent { key, value: Some(elsewhere.encode()), mod_revision: revision }];
        front.watched(WatchMessage::Events { revision, events });
        assert!(front.sent().is_none(), "the session is resumed for a connection that is gone");
        assert!(front.is_closed, "the session has moved");
    }
}

#[test]
fn a_resume_that_is_gone_before_it_has_its_lease_leaves_the_owner_as_it_was() {
    let mut front = Front::new();
    let resumption = Resumption::keyed(front.session, 2 * SESSION_TIMEOUT_MS);
    front.resume(other(), resumption);
    front.create("/owned");
    let (grant, _) = front.asked_lease();
    front.disconnect(other());
    front.input(Input::Answer(grant, Ok(Answer::Granted)));
    assert_owner_goes_on(&mut front);
}

/// A client that has yet to prove who it is is told that its session lives, and the connection that is served on it goes on.
#[test]
fn a_provisional_resume_changes_nothing_for_the_owner() {
    let mut front = Front::new();
    let (former, session) = (front.conn, front.session);
    let asking = Resumption { is_asking: true, timeout_ms: SESSION_TIMEOUT_MS / 2, ..keyed(&front) };
    front.resume(other(), asking);
    let asked = front.sent().expect("etcd is asked if the session lives");
    assert!(asked.1.operations.is_empty() && !asked.1.compares.is_empty(), "{asked:?}");
    front.create("/owned");
    let create = front.sent().expect("the owner's request does not wait");
    front.carry_out(create);
    front.carry_out(asked);
    assert_eq!((front.sessions[&other()], front.replies, front.is_closed), (session, 1, false));
    let timeout_ms = front.state.tree().session_timeout_ms(session);
    assert_eq!(timeout_ms, Some(SESSION_TIMEOUT_MS));

    let proven = keyed(&front);
    front.resume(other(), proven);
    let resume = front.sent().expect("the session is resumed");
    front.carry_out(resume);
    assert_eq!(front.closed, [former]);
}

/// A session that has ended is none that lives, also for one who only asks.
#[test]
fn a_provisional_resume_of_a_session_that_is_gone_has_expired() {
    let mut front = Front::new();
    front.connect(other());
    let asking = Resumption { is_asking: true, ..keyed(&front) };
    front.write(OpCode::CloseSession, b"");
    let close = front.sent().expect("the session is closed");
    front.carry_out(close);
    let conn = ConnId::new(0, 3);
    front.resume(conn, asking);
    let asked = front.sent().expect("etcd is asked if the session lives");
    front.carry_out(asked);
    assert_eq!(front.expired, [conn]);
}

/// A close waits until etcd has space for the session's end, and its client comes back before that, here or at another front end.
#[test]
fn a_close_that_is_overtaken_by_a_resume_leaves_nothing_behind() {
    for is_elsewhere in [false, true] {
        let mut front = Front::new();
        front.create_as("/mine", EPHEMERAL);
        let create = front.sent().expect("the create is sent");
        front.carry_out(create);
        let (former, session, resumption) = (front.conn, front.session, keyed(&front));
        let mut body = Vec::new();
        paddock_proto::encode::path_and_watch(&mut body, "/", true);
        front.read_of(former, OpCode::GetChildren, body);
        front.write(OpCode::CloseSession, b"");
        let (id, _) = front.sent().expect("the close is sent");
        front.fail(id, CallError::NoSpace);
        front.disconnect(former);
        if is_elsewhere {
            let lease = Some(77);
            let tag = Tag { front: 9 << 32, number: 1 };
            let record =
                SessionRecord { timeout_ms: SESSION_TIMEOUT_MS, is_keyed: true, proven: None, tag, lease };
            front.revision += 1;
            let (revision, key) = (front.revision, Keys::new("/p").session(session));
            let events = vec![KeyEvent { key, value: Some(record.encode()), mod_revision: revision }];
            front.watched(WatchMessage::Events { revision, events });
        } else {
            front.resume(other(), resumption);
            let resume = front.sent().expect("the session is resumed");
            front.carry_out(resume);
        }
        assert_eq!(front.state.watches().count(), 0, "elsewhere: {is_elsewhere}");
        front.pass(3000);
        assert!(front.sent().is_none(), "the session that goes on is ended");
    }
}

/// ZooKeeper counts the timeout of the last resume, too. The lease that held the session for longer would outlive it.
#[test]
fn a_shorter_timeout_counts_from_the_resume_on_and_has_a_lease_of_its_own() {
    let mut front = Front::new();
    let resumption = Resumption::keyed(front.session, 4000);
    front.resume(other(), resumption);
    let (grant, lease) = front.asked_lease();
    front.input(Input::Answer(grant, Ok(Answer::Granted)));
    let resume = front.sent().expect("the session is resumed");
    let on_lease =
        |operation: &Operation| matches!(operation, Operation::Put { lease: Some(on), .. } if *on == lease);
    assert!(resume.1.operations.iter().any(on_lease), "{resume:?}");
    front.carry_out(resume);
    front.disconnect(other());
    front.pass(4000);
    assert!(front.sent().is_none(), "the session ends too early");
    front.pass(4000);
    let end = front.sent().expect("the session has expired");
    assert_eq!(end.1.operations, [Operation::Delete { key: Keys::new("/p").session(front.session) }]);
}

/// Each front end draws a secret, and one of them is that of all.
#[test]
fn front_ends_share_the_secret_that_came_first() {
    let [mut first, mut second, mut third] = [1, 2, 3].map(Front::start_as);
    first.follow();
    second.follow();
    let (id, lost) = second.sent().expect("the secret is written");
    let won = first.sent().expect("the secret is written");
    let events = events_of(won.1.clone(), first.revision + 1);
    first.carry_out(won);
    // The other one's is refused, and the stream brings the first one's.
    second.revision += 1;
    let revision = second.revision;
    second.input(Input::Answer(id, Ok(Answer::Transacted { is_done: false, revision })));
    assert!(!second.state.tree().has_secret());
    second.watched(WatchMessage::Events { revision, events: events.clone() });
    assert!(second.sent().is_none(), "the secret {lost:?} is written again");
    // The third one starts later, and reads it.
    third.tick();
    let (id, _) = third.calls.pop().expect("a page is asked for");
    third.revision = revision;
    third.input(Input::Answer(id, Ok(Answer::Page { revision, pairs: events, is_last: true })));
    let session = first.connect(other());
    let password = first.state.tree().password(session);
    for front in [&second, &third] {
        assert_eq!(front.state.tree().password(session).0, password.0);
        let shown = front.state.tree().compare_password(session, &password.0);
        assert!(matches!(shown, paddock_tree::ShownPassword::Right { is_keyed: true }), "{shown:?}");
    }
}
