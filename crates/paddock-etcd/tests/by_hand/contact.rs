//! Contact with etcd: since when the state is known to be no older than etcd's.

use paddock_etcd::{Answer, Call, CallError, CallId, Engine, Input, WatchMessage};
use paddock_proto::OpCode;

use crate::front::{Front, events_of};

/// The question to etcd that is under way.
fn asked(front: &mut Front) -> CallId {
    match front.calls.pop() {
        Some((id, Call::Probe { .. })) => id,
        other => panic!("etcd is not asked, but {other:?}"),
    }
}

/// Lets time pass until etcd is asked, and returns when that was.
fn ask(front: &mut Front) -> (CallId, u64) {
    while front.calls.is_empty() {
        front.now_ms += Engine::TICK_MS;
        front.tick();
    }
    (asked(front), front.now_ms)
}

fn probed(front: &mut Front, id: CallId, revision: i64) {
    front.input(Input::Answer(id, Ok(Answer::Probed { revision })));
}

#[test]
fn contact_counts_since_the_question() {
    let mut front = Front::new();
    let (id, asked_ms) = ask(&mut front);
    front.now_ms += 700;
    let revision = front.revision;
    probed(&mut front, id, revision);
    assert_eq!(front.engine.confirmed_ms(), asked_ms);
}

/// The watch stream is open, and lags.
#[test]
fn contact_counts_when_the_state_has_come_as_far_as_the_answer() {
    let mut front = Front::new();
    front.create("/a");
    let (_, transaction) = front.sent().expect("the create is sent");
    // The transaction is carried out, and its answer is on its way.
    front.revision += 1;
    let revision = front.revision;
    let before_ms = front.engine.confirmed_ms();
    let (id, asked_ms) = ask(&mut front);
    probed(&mut front, id, revision);
    assert_eq!(front.engine.confirmed_ms(), before_ms);
    let events = events_of(transaction, revision);
    front.watched(WatchMessage::Events { revision, events });
    assert_eq!(front.engine.confirmed_ms(), asked_ms);
}

/// etcd's revision is that of a key outside the prefix, of which the watch stream does not tell.
#[test]
fn contact_writes_a_mark_if_the_stream_does_not_tell_of_the_newest_revision() {
    let mut front = Front::new();
    front.revision += 1;
    let (id, asked_ms) = ask(&mut front);
    let revision = front.revision;
    probed(&mut front, id, revision);
    assert!(front.engine.confirmed_ms() < asked_ms);
    front.pass(200);
    let mark = front.sent().expect("a mark is sent");
    assert!(mark.1.compares.is_empty());
    front.carry_out(mark);
    assert!(front.engine.confirmed_ms() >= asked_ms);
}

/// Without space there is no mark. The state does not change either, so that an open stream has to do.
#[test]
fn contact_goes_by_the_open_stream_while_there_is_no_space_for_a_mark() {
    let mut front = Front::new();
    front.revision += 1;
    for _ in 0..10_000 / Engine::TICK_MS {
        front.pass(Engine::TICK_MS);
        if let Some((id, _)) = front.sent() {
            front.fail(id, CallError::NoSpace);
        }
    }
    assert!(front.engine.confirmed_ms() + 1500 > front.now_ms, "{}", front.engine.confirmed_ms());
    assert!(!front.is_closed);
}

#[test]
fn a_watch_stream_that_says_nothing_is_opened_anew() {
    let mut front = Front::new();
    front.revision += 1;
    let first = front.generation;
    front.pass(4000);
    assert_eq!(front.generation, first);
    front.pass(2000);
    assert_eq!(front.generation, first + 1);
    // A front end that has nothing to say is left alone.
    let mut idle = Front::new();
    idle.pass(20_000);
    assert_eq!(idle.generation, first);
}

/// Without a connection a call fails at once.
#[test]
fn a_question_that_fails_is_asked_again_at_a_tick() {
    let mut front = Front::new();
    front.read_of(front.conn, OpCode::Sync, b"\0\0\0\x01/".to_vec());
    let id = asked(&mut front);
    front.fail(id, CallError::Lost("there is no connection".to_owned()));
    assert!(front.calls.is_empty(), "it is asked again at once: {:?}", front.calls);
    front.now_ms += Engine::TICK_MS;
    front.tick();
    let id = asked(&mut front);
    let revision = front.revision;
    probed(&mut front, id, revision);
    assert_eq!(front.replies, 1);
}
