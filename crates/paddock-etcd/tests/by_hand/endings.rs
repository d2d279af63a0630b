//! Ends of transactions, whatever etcd answers: none holds a key for ever.

use paddock_etcd::{CallError, Engine, Input, Keys, Operation, Transaction};
use paddock_proto::{ErrorCode, OpCode, SessionId, encode};
use paddock_state::{ClientInput, ConnId, Resumption};

use crate::front::{Front, PERSISTENT, SESSION_TIMEOUT_MS, WRITE_TIMEOUT_MS, create_body};

/// A second connection.
fn other() -> ConnId {
    ConnId::new(0, 2)
}

fn lost() -> CallError {
    CallError::Lost("by the test".to_owned())
}

/// The lease on which a transaction puts a session's key, if it puts one.
fn lease_of(transaction: &Transaction, session: SessionId) -> Option<i64> {
    let session_key = Keys::new("/p").session(session);
    transaction.operations.iter().find_map(|operation| match operation {
        Operation::Put { key, lease, .. } if *key == session_key => *lease,
        _ => None,
    })
}

fn writes(transaction: &Transaction, path: &str) -> bool {
    let key = Keys::new("/p").znode(path);
    transaction.operations.iter().any(|operation| operation.key() == key)
}

/// The transaction that begins a session, with another client's write, is in flight when etcd is lost for longer than the lease.
#[test]
fn a_lease_that_is_gone_holds_up_nobody() {
    let mut front = Front::new();
    front.ask_to_connect(other());
    let (grant, lease) = front.asked_lease();
    let create = front.write_of(front.conn, front.session, OpCode::Create, &create_body("/a", PERSISTENT));
    front.inputs([create, Input::Answer(grant, Ok(paddock_etcd::Answer::Granted))]);
    let (id, both) = front.sent().expect("both are one transaction");
    assert!(writes(&both, "/a") && lease_of(&both, SessionId(lease)) == Some(lease), "{both:?}");
    front.fail(id, lost());
    front.pass(Engine::TICK_MS);
    let (id, again) = front.sent().expect("it is sent again");
    assert_eq!(again, both);

    front.fail(id, CallError::LeaseNotFound);
    let mut alone = [front.sent_next().expect("one of them"), front.sent_next().expect("the other one")];
    alone.sort_by_key(|(_, transaction)| writes(transaction, "/a"));
    let [opening, create] = alone;
    front.carry_out(create);
    assert_eq!((front.replies, front.refusals.len(), front.is_closed), (1, 0, false));

    front.fail(opening.0, CallError::LeaseNotFound);
    let (grant, next) = front.asked_lease();
    assert!(next != lease, "the lease that is gone is asked for again");
    front.input(Input::Answer(grant, Ok(paddock_etcd::Answer::Granted)));
    let opening = front.sent().expect("the session is written");
    assert_eq!(lease_of(&opening.1, SessionId(next)), Some(next));
    front.carry_out(opening);
    assert_eq!(front.sessions[&other()], SessionId(next));
    assert_eq!(front.engine.transactions_under_way(), 0);
}

/// A resume with a longer timeout takes another lease, which may be gone, too. The session's own is what it was meanwhile.
#[test]
fn a_longer_lease_that_is_gone_is_replaced() {
    let mut front = Front::new();
    let (conn, session) = (other(), front.session);
    let timeout_ms = 2 * SESSION_TIMEOUT_MS;
    front.input(Input::Client(ClientInput::Resume {
        conn,
        resumption: Resumption::keyed(session, timeout_ms),
        may_only_read: false,
    }));
    let (grant, longer) = front.asked_lease();
    front.input(Input::Answer(grant, Ok(paddock_etcd::Answer::Granted)));
    let (id, resume) = front.sent().expect("the session is resumed");
    assert_eq!(lease_of(&resume, session), Some(longer));
    front.fail(id, CallError::LeaseNotFound);
    let (grant, next) = front.asked_lease();
    assert!(next != longer, "the lease that is gone is asked for again");
    front.input(Input::Answer(grant, Ok(paddock_etcd::Answer::Granted)));
    let resume = front.sent().expect("it is tried again");
    assert_eq!(lease_of(&resume.1, session), Some(next));
    front.carry_out(resume);
    assert_eq!(front.sessions[&other()], session);
}

/// Another front end's end of the session is in the stream while the lease that it was to get is gone.
#[test]
fn a_plain_resume_after_a_longer_lease_was_lost_goes_by_the_old_one() {
    let mut front = Front::new();
    let (conn, session) = (other(), front.session);
    let timeout_ms = 2 * SESSION_TIMEOUT_MS;
    front.input(Input::Client(ClientInput::Resume {
        conn,
        resumption: Resumption::keyed(session, timeout_ms),
        may_only_read: false,
    }));
    let (grant, _) = front.asked_lease();
    front.input(Input::Answer(grant, Ok(paddock_etcd::Answer::Granted)));
    let (id, _) = front.sent().expect("the session is resumed");
    front.fail(id, CallError::Refused("permission denied".to_owned()));
    assert!(front.closed.contains(&other()));
    let (conn, timeout_ms) = (ConnId::new(0, 3), SESSION_TIMEOUT_MS);
    front.input(Input::Client(ClientInput::Resume {
        conn,
        resumption: Resumption::keyed(session, timeout_ms),
        may_only_read: false,
    }));
    let (_, resume) = front.sent().expect("the session is resumed");
    assert_eq!(lease_of(&resume, session), Some(session.0));
}

/// A call for a lease may arrive late, when the lease that it makes would bring a transaction to life that was planned anew.
#[test]
fn a_lease_is_asked_for_once() {
    let mut front = Front::new();
    front.ask_to_connect(other());
    let (grant, first) = front.asked_lease();
    front.fail(grant, lost());
    assert!(front.calls.is_empty(), "it is asked for before a tick: {:?}", front.calls);
    front.now_ms += Engine::TICK_MS;
    front.tick();
    let (_, second) = front.asked_lease();
    assert!(second != first);
}

/// Each error, as the first answer and after a call that got none.
#[test]
fn whatever_etcd_answers_the_key_is_free_again() {
    let text = || "by the test".to_owned();
    let errors = [
        (CallError::Lost(text()), None),
        (CallError::Compacted, None),
        (CallError::LeaseNotFound, None),
        (CallError::LeaseExists, None),
        (CallError::NoSpace, Some(ErrorCode::QuotaExceeded)),
        (CallError::TooLarge(text()), Some(ErrorCode::BadArguments)),
        (CallError::Refused(text()), None),
    ];
    for (error, code) in errors {
        for is_in_doubt in [false, true] {
            let mut front = Front::new();
            let session = front.connect(other());
            front.create("/a");
            let (mut id, _) = front.sent().expect("the create is sent");
            if is_in_doubt {
                front.fail(id, lost());
                front.pass(Engine::TICK_MS);
                (id, _) = front.sent().expect("it is sent again");
            }
            front.fail(id, error.clone());
            let mut waited_ms = 0;
            // Nothing is known of it: it is sent again, and gets no answer, for as long as a request may wait.
            while front.replies == 0 && !front.is_closed && waited_ms < 2 * WRITE_TIMEOUT_MS {
                front.pass(Engine::TICK_MS);
                waited_ms += Engine::TICK_MS;
                while let Some((id, _)) = front.sent_next() {
                    front.fail(id, error.clone());
                }
            }
            let expected = code.filter(|_| !is_in_doubt).map(ErrorCode::code);
            assert_eq!(front.refusals, Vec::from_iter(expected), "{error:?}, in doubt: {is_in_doubt}");
            assert_eq!(front.is_closed, expected.is_none(), "{error:?}, in doubt: {is_in_doubt}");
            front.pass(1000);
            assert_eq!(front.engine.transactions_under_way(), 0, "{error:?}");
            let write = front.write_of(other(), session, OpCode::Create, &create_body("/a", PERSISTENT));
            front.input(write);
            let next = front.sent().unwrap_or_else(|| panic!("/a cannot be written after {error:?}"));
            front.carry_out(next);
            assert_eq!(front.replies, 1 + usize::from(expected.is_some()));
        }
    }
}

/// The engine's own writes are tried again, but not as fast as etcd can refuse them.
#[test]
fn an_end_of_a_session_that_etcd_refuses_is_tried_once_a_second() {
    let mut front = Front::new();
    front.create_as("/mine", crate::front::EPHEMERAL);
    let create = front.sent().expect("the create is sent");
    front.carry_out(create);
    front.revision += 1;
    let (revision, key) = (front.revision, Keys::new("/p").session(front.session));
    let events = vec![paddock_etcd::KeyEvent { key, value: None, mod_revision: revision }];
    front.watched(paddock_etcd::WatchMessage::Events { revision, events });
    let mut tries = 0;
    for _ in 0..3000 / Engine::TICK_MS {
        if let Some((id, _)) = front.sent() {
            tries += 1;
            front.fail(id, CallError::Refused("permission denied".to_owned()));
        }
        front.pass(Engine::TICK_MS);
    }
    assert_eq!(tries, 3);
}

/// etcd refuses by a compare, and the state is as new as that refusal and says that all compares hold.
#[test]
fn a_state_that_etcd_contradicts_is_read_anew() {
    let mut front = Front::new();
    front.create("/a");
    let (id, _) = front.sent().expect("the create is sent");
    let revision = front.revision;
    front.input(Input::Answer(id, Ok(paddock_etcd::Answer::Transacted { is_done: false, revision })));
    for _ in 0..1000 / Engine::TICK_MS {
        front.now_ms += Engine::TICK_MS;
        front.tick();
    }
    assert!(front.is_closed && !front.engine.is_following());
}

/// The session goes on elsewhere while its former connection waits for a sync, and that is refused; then the former connection ends.
#[test]
fn the_end_of_a_connection_that_waited_for_a_sync_takes_its_watches() {
    let mut front = Front::new();
    front.pass(5000);
    let mut body = Vec::new();
    encode::path_and_watch(&mut body, "/", true);
    front.read_of(front.conn, OpCode::GetChildren, body);
    assert_eq!(front.state.watches().count(), 1);
    // The newest revision is that of another program's key: the sync waits for a mark.
    front.revision += 1;
    front.read_of(front.conn, OpCode::Sync, b"\0\0\0\x01/".to_vec());
    front.answer_others();
    let (conn, former, session) = (other(), front.conn, front.session);
    let timeout_ms = SESSION_TIMEOUT_MS;
    front.input(Input::Client(ClientInput::Resume {
        conn,
        resumption: Resumption::keyed(session, timeout_ms),
        may_only_read: false,
    }));
    let (id, _) = front.sent().expect("the session is resumed");
    front.fail(id, CallError::Refused("permission denied".to_owned()));
    front.input(Input::Client(ClientInput::Disconnect { conn: former }));
    front.pass(500);
    let mark = front.sent().expect("a mark is sent");
    front.carry_out(mark);
    assert_eq!(front.state.watches().count(), 0);
}
