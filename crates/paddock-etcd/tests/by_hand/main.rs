//! One engine, whose calls are answered by the test, when it likes.

mod contact;
mod endings;
mod front;
mod portions;
mod resuming;

use paddock_etcd::{
    Answer, Call, CallError, CallId, Engine, Input, KeyEvent, Keys, Pending, Tag, WatchMessage, encode_znode,
};
use paddock_proto::{Acl, ErrorCode, OpCode, Xid};
use paddock_state::{Client, ClientInput, QueuedRead, RequestId};
use paddock_tree::{Znode, ZnodeKind};

use front::{EPHEMERAL, Front, WRITE_TIMEOUT_MS, events_of};

/// The page that is asked for: its call, the first key and the number of keys.
fn asked_page(front: &mut Front) -> (CallId, Vec<u8>, i64) {
    front.now_ms += 100;
    front.tick();
    match front.calls.pop() {
        Some((id, Call::Read { start, limit, .. })) => (id, start, limit),
        other => panic!("no page is asked for, but {other:?}"),
    }
}

/// etcd's answer has to come in time, and large values may need more than that.
#[test]
fn a_page_that_does_not_come_is_asked_for_with_fewer_keys() {
    let mut front = Front::start();
    let (id, first, limit) = asked_page(&mut front);
    front.input(Input::Answer(id, Err(CallError::Lost("too late".to_owned()))));
    let (id, again, fewer) = asked_page(&mut front);
    assert_eq!((again, fewer), (first.clone(), limit / 2));
    // The page comes, and is large: the next one has as many bytes as a page should have.
    let key = Keys::new("/p").znode("/a");
    let znode = Znode {
        data: Some(vec![0; 1 << 20]),
        acl: [Acl::open()].into(),
        kind: ZnodeKind::Persistent,
        czxid: 1,
        mzxid: 1,
        pzxid: 1,
        ctime_ms: 0,
        mtime_ms: 0,
        version: 0,
        children_created: 0,
        aversion: 0,
    };
    let value = encode_znode(&znode, Pending(i64::MAX), Tag::default());
    let pairs = vec![KeyEvent { key, value: Some(value), mod_revision: 2 }];
    front.input(Input::Answer(id, Ok(Answer::Page { revision: 2, pairs, is_last: false })));
    let (_, next, limit) = asked_page(&mut front);
    assert!(next > first);
    assert_eq!(limit, 3, "four of them are above 4 MiB");
}

/// Writes about one znode are carried out one after the other. The last of many waits for longer than etcd may take for one.
#[test]
fn a_queue_that_moves_is_not_too_late() {
    let mut front = Front::new();
    front.create("/a");
    let create = front.sent().expect("the create is sent");
    front.carry_out(create);
    (0..6).for_each(|_| front.set("/a"));
    for done in 1..=6 {
        front.pass(WRITE_TIMEOUT_MS / 2);
        let next = front.sent().expect("a set is under way");
        front.carry_out(next);
        assert_eq!((front.replies, front.is_closed), (1 + done, false));
    }
}

#[test]
fn a_transaction_that_etcd_does_not_answer_ends_the_connection() {
    let mut front = Front::new();
    front.create("/a");
    front.pass(WRITE_TIMEOUT_MS / 2);
    assert!(!front.is_closed);
    front.pass(WRITE_TIMEOUT_MS);
    assert!(front.is_closed, "the client still waits");
}

/// etcd's answer says in which revision the transaction was carried out. If that is the next one, its contents are known.
#[test]
fn a_transaction_that_follows_on_the_state_does_not_wait_for_the_watch_stream() {
    let mut front = Front::new();
    front.create("/a");
    let (id, transaction) = front.sent().expect("the create is sent");
    front.revision += 1;
    let revision = front.revision;
    front.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
    assert_eq!((front.replies, front.state.tree().zxid().0), (1, revision));
    // The stream brings it again.
    let events = events_of(transaction, revision);
    front.watched(WatchMessage::Events { revision, events });
    assert_eq!((front.replies, front.state.tree().zxid().0), (1, revision));
}

#[test]
fn a_transaction_behind_one_of_somebody_else_waits_for_the_watch_stream() {
    let mut front = Front::new();
    front.create("/a");
    let (id, transaction) = front.sent().expect("the create is sent");
    front.revision += 2;
    let revision = front.revision;
    front.input(Input::Answer(id, Ok(Answer::Transacted { is_done: true, revision })));
    assert_eq!(front.replies, 0);
    // The other one was about a key outside the prefix: the stream does not tell of it.
    let events = events_of(transaction, revision);
    front.watched(WatchMessage::Events { revision, events });
    assert_eq!(front.replies, 1);
}

#[test]
fn without_space_writes_are_refused_and_ends_of_sessions_wait() {
    let mut front = Front::new();
    front.create_as("/mine", EPHEMERAL);
    let create = front.sent().expect("the create is sent");
    front.carry_out(create);
    front.set("/mine");
    let (id, _) = front.sent().expect("the set is sent");
    front.input(Input::Answer(id, Err(CallError::NoSpace)));
    assert_eq!((front.replies, front.is_closed), (2, false));
    assert_eq!(front.refusals, [ErrorCode::QuotaExceeded.code()]);

    // The session's lease is over. To remove its znode, the parent has to be written, too.
    front.pass(2000);
    front.revision += 1;
    let (revision, key) = (front.revision, Keys::new("/p").session(front.session));
    let events = vec![KeyEvent { key, value: None, mod_revision: revision }];
    front.watched(WatchMessage::Events { revision, events });
    let (id, _) = front.sent().expect("the end of the session is sent");
    front.input(Input::Answer(id, Err(CallError::NoSpace)));
    assert!(front.sent().is_none(), "what was refused is tried again at once");
    front.pass(500);
    assert!(front.sent().is_none());
    front.pass(600);
    let end = front.sent().expect("it is tried again");
    front.carry_out(end);
    assert!(front.state.tree().znode("/mine").is_none());
}

/// etcd looks at its space first and at compares never, so it refuses again what it has carried out.
#[test]
fn a_write_whose_first_call_got_no_answer_is_not_refused_for_space() {
    let mut front = Front::new();
    front.create("/a");
    let (id, _) = front.sent().expect("the create is sent");
    front.input(Input::Answer(id, Err(CallError::Lost("by the test".to_owned()))));
    front.pass(Engine::TICK_MS);
    let (id, _) = front.sent().expect("it is sent again");
    front.input(Input::Answer(id, Err(CallError::NoSpace)));
    assert_eq!((front.replies, front.is_closed), (0, true));
}

/// The newest revision is that of a key outside the prefix, of which the watch stream does not tell.
#[test]
fn a_sync_that_takes_a_mark_is_refused_without_space() {
    let mut front = Front::new();
    front.pass(5000);
    front.revision += 1;
    let (client, xid) = (Client::new(front.conn, front.session, &[]), Xid(7));
    let read = QueuedRead::new(client, RequestId::first(xid), OpCode::Sync, b"\0\0\0\x01/".to_vec());
    front.input(Input::Client(ClientInput::Read(read)));
    front.answer_others();
    let mut marks = 0;
    for _ in 0..3000 / Engine::TICK_MS {
        front.pass(Engine::TICK_MS);
        if let Some((id, _)) = front.sent() {
            marks += 1;
            front.input(Input::Answer(id, Err(CallError::NoSpace)));
        }
    }
    assert_eq!((front.refusals.clone(), front.is_closed), (vec![ErrorCode::QuotaExceeded.code()], false));
    assert_eq!(
        marks, 3,
        "a mark is tried once a second, for contact also when nobody waits for a sync any more"
    );
}
