//! Requests of clients and the words of their source, one by one.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use paddock_proto::{Dialect, Zxid};
use paddock_state::{Client, Parcel, ProvenIds, Resumption};
use paddock_tree::Tree;

use super::*;

fn conn() -> ConnId {
    ConnId::new(0, 1)
}

const SESSION: SessionId = SessionId(7);

struct Story {
    forwarding: Forwarding,
    state: State,
    out: Outboxes,
    sent: Arc<Mutex<Vec<SourceRequest>>>,
}

impl Story {
    /// A source that is connected, and a client whose session it knows.
    fn begin() -> Story {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut tree = Tree::new();
        tree.install_session(SESSION, 4000, 1);
        let (state, out) = (State::new(tree), Outboxes::new(1));
        let mut story = Story { forwarding: Forwarding::new(100), state, out, sent: sent.clone() };
        let link = Box::new(move |requests| sent.lock().unwrap().extend(requests));
        story.forwarding.begin_link(link, 0);
        story.take(ClientInput::Resume {
            conn: conn(),
            resumption: Resumption::keyed(SESSION, 4000),
            may_only_read: false,
        });
        assert_eq!(story.sent(), [SourceRequest::Revalidate { session: SESSION, timeout_ms: 4000 }]);
        story.forwarding.note_revalidated(SESSION, true, &story.state, &mut story.out);
        assert_eq!(story.parcels(), ["connected 0x7"]);
        assert_eq!(story.sent(), [SourceRequest::Touch { session: SESSION, timeout_ms: 4000 }]);
        story
    }

    fn take(&mut self, input: ClientInput) {
        self.forwarding.take(input, &self.state, &mut self.out);
        self.forwarding.look_at_hold(&self.state);
    }

    fn write(&mut self, xid: i32) {
        let mut command = Vec::new();
        Command::encode(SESSION, 0, IdList::NONE, OpCode::Delete, b"body", &mut command);
        self.take(ClientInput::Write { conn: conn(), xid: Xid(xid), op: OpCode::Delete, command });
    }

    fn read(&mut self, xid: i32, op: OpCode) {
        let client = Client::new(conn(), SESSION, &[]).with_dialect(Dialect::ZooKeeper);
        let body = [&1i32.to_be_bytes()[..], b"/", &[0]].concat();
        self.take(ClientInput::Read(QueuedRead { client, xid: Xid(xid), op, body }));
    }

    /// The source has carried a request out, or refused it.
    fn commit(&mut self, session: SessionId, number: i32, answer: Result<Vec<u8>, ErrorCode>) {
        let change = AppliedTransaction {
            zxid: Zxid(9),
            asked: (session, number),
            answer,
            began: Vec::new(),
            znodes: Vec::new(),
            ended: Vec::new(),
        };
        self.forwarding.note_transaction(&change, &self.state, &mut self.out);
        self.forwarding.look_at_hold(&self.state);
    }

    fn sent(&mut self) -> Vec<SourceRequest> {
        self.forwarding.send();
        std::mem::take(&mut self.sent.lock().unwrap())
    }

    /// Numbers of the writes that were sent.
    fn numbers(&mut self) -> Vec<i32> {
        let number = |request| match request {
            SourceRequest::Write { session: SESSION, xid, op: OpCode::Delete, body, .. } => {
                assert_eq!(body, b"body");
                xid
            }
            other => panic!("{other:?}"),
        };
        self.sent().into_iter().map(number).collect()
    }

    /// Parcels for the connection: the xid and the error of a reply, or a word.
    fn parcels(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        for (_, outbox) in self.out.iter_mut() {
            for (of, parcel) in outbox.iter() {
                assert_eq!(of, conn());
                told.push(match parcel {
                    Parcel::Reply(frame) => {
                        let number = |at: usize| i32::from_be_bytes(*frame[at..].first_chunk().unwrap());
                        format!("reply {} error {}", number(4), number(16))
                    }
                    Parcel::Connected(connected, _) => format!("connected {}", connected.session),
                    Parcel::Close => "close".to_owned(),
                    other => format!("{other:?}"),
                });
            }
            outbox.clear();
        }
        told
    }
}

#[test]
fn what_stands_behind_a_write_waits_for_it() {
    let mut story = Story::begin();
    story.read(1, OpCode::Exists);
    assert_eq!(story.parcels(), ["reply 1 error 0"]);
    story.write(2);
    story.read(3, OpCode::Exists);
    story.write(4);
    let numbers = story.numbers();
    assert_eq!((numbers.len(), story.parcels().len()), (2, 0));
    story.commit(SessionId(8), numbers[0], Ok(Vec::new()));
    assert!(story.parcels().is_empty(), "that is another session's");
    story.commit(SESSION, numbers[0], Ok(Vec::new()));
    assert_eq!(story.parcels(), ["reply 2 error 0", "reply 3 error 0"]);
    story.commit(SESSION, numbers[1], Err(ErrorCode::NoNode));
    assert_eq!(story.parcels(), ["reply 4 error -101"]);
    story.commit(SESSION, numbers[1], Ok(Vec::new()));
    assert!(story.parcels().is_empty(), "it was answered");
}

#[test]
fn a_sync_waits_for_the_source() {
    let mut story = Story::begin();
    story.read(1, OpCode::Sync);
    story.read(2, OpCode::Exists);
    assert_eq!(story.sent(), [SourceRequest::Sync { session: SESSION }]);
    assert!(story.parcels().is_empty());
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    assert_eq!(story.parcels(), ["reply 1 error 0", "reply 2 error 0"]);
}

#[test]
fn a_session_that_has_moved_closes_its_connection() {
    let mut story = Story::begin();
    story.write(1);
    let numbers = story.numbers();
    story.commit(SESSION, numbers[0], Err(ErrorCode::SessionMoved));
    assert_eq!(story.parcels(), ["close"]);
}

#[test]
fn clients_are_closed_when_the_source_is_lost() {
    let mut story = Story::begin();
    story.write(1);
    story.forwarding.end_link(&story.state, &mut story.out);
    assert_eq!(story.parcels(), ["close"]);
    story.write(2);
    assert!(story.parcels().is_empty(), "it has not heard of its end yet");
    story.take(ClientInput::Connect {
        conn: conn(),
        timeout_ms: 4000,
        may_only_read: false,
        ids: ProvenIds::default(),
    });
    assert_eq!(story.parcels(), ["close"], "nobody can give it a session");
}

#[test]
fn nothing_is_held_ready_before_everything_is_answered() {
    let mut story = Story::begin();
    story.write(1);
    let numbers = story.numbers();
    let (done, held) = mpsc::channel();
    story.forwarding.hold(done);
    story.forwarding.look_at_hold(&story.state);
    story.write(2);
    assert!(story.sent().is_empty(), "it is held back, and the first one is under way");
    story.commit(SESSION, numbers[0], Ok(Vec::new()));
    assert_eq!(story.sent(), [SourceRequest::Sync { session: SessionId::NONE }]);
    assert!(held.try_recv().is_err(), "the source may have more");
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    story.forwarding.look_at_hold(&story.state);
    assert_eq!(held.try_recv(), Ok(Held { elsewhere: Vec::new() }));
    assert_eq!(story.parcels(), ["reply 1 error 0"]);
    story.forwarding.end_link(&story.state, &mut story.out);
    assert!(story.parcels().is_empty(), "the source is not needed any more");

    let (inputs, serving) = story.forwarding.retire();
    assert!(matches!(&inputs[..], [ClientInput::Write { xid: Xid(2), .. }]), "{inputs:?}");
    assert_eq!(serving.conn(SESSION), Some(conn()));
}

#[test]
fn a_session_elsewhere_is_named_and_what_was_held_goes_on() {
    let mut story = Story::begin();
    story.state.tree_mut().install_session(SessionId(8), 4000, 1);
    let (done, held) = mpsc::channel();
    story.forwarding.hold(done);
    story.write(1);
    assert_eq!(story.sent(), [SourceRequest::Sync { session: SessionId::NONE }]);
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    story.forwarding.look_at_hold(&story.state);
    assert_eq!(held.try_recv(), Ok(Held { elsewhere: vec![SessionId(8)] }));
    story.forwarding.release(&story.state, &mut story.out);
    assert_eq!(story.numbers().len(), 1);
}

#[test]
fn numbers_of_requests_are_none_of_a_client() {
    let mut forwarding = Forwarding::new(100);
    forwarding.next_xid = XID_END - 2;
    let xids: Vec<i32> = (0..3).map(|_| forwarding.take_xid()).collect();
    assert_eq!(xids, [XID_END - 2, XID_END - 1, FIRST_XID]);
}
