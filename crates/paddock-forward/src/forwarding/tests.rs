//! Requests of clients and the words of their source, one by one.

use paddock_proto::{Dialect, Xid, Zxid};
use paddock_state::{Client, Parcel, ProvenIds, RequestId, Resumption};
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
    held: Option<Held>,
    sent: Vec<SourceRequest>,
}

impl Story {
    /// A source that is connected, and a client whose session it knows.
    fn begin() -> Story {
        let mut tree = Tree::new();
        tree.install_session(SESSION, 4000, 1);
        let (state, out) = (State::new(tree), Outboxes::new(1));
        let mut story = Story { forwarding: Forwarding::new(100), state, out, held: None, sent: Vec::new() };
        story.forwarding.begin_link(0);
        story.resume_on(conn());
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
        self.write_on(conn(), xid);
    }

    fn resume_on(&mut self, conn: ConnId) {
        let resumption = Resumption::keyed(SESSION, 4000);
        self.take(ClientInput::Resume { conn, resumption, may_only_read: false });
    }

    fn write_on(&mut self, conn: ConnId, xid: i32) {
        let mut command = Vec::new();
        Command::encode(SESSION, 0, IdList::NONE, OpCode::Delete, b"body", &mut command);
        self.take(ClientInput::Write {
            conn,
            request: RequestId::first(Xid(xid)),
            op: OpCode::Delete,
            command: command.into(),
        });
    }

    fn read(&mut self, xid: i32, op: OpCode) {
        let client = Client::new(conn(), SESSION, &[]).with_dialect(Dialect::ZooKeeper);
        let body = [&1i32.to_be_bytes()[..], b"/", &[0]].concat();
        self.take(ClientInput::Read(QueuedRead::new(client, RequestId::first(Xid(xid)), op, body)));
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

    fn end_session(&mut self) {
        let change = AppliedTransaction {
            zxid: Zxid(10),
            asked: (SessionId(8), 1),
            answer: Ok(Vec::new()),
            began: Vec::new(),
            znodes: Vec::new(),
            ended: vec![SESSION],
        };
        self.forwarding.note_transaction(&change, &self.state, &mut self.out);
    }

    /// Takes what the engine wants done.
    fn look(&mut self) {
        let Effects { requests, held } = self.forwarding.take_effects();
        self.sent.extend(requests);
        self.held = held.or(self.held.take());
    }

    /// The answer to `hold`, if it has come.
    fn held(&mut self) -> Option<Held> {
        self.look();
        self.held.take()
    }

    fn sent(&mut self) -> Vec<SourceRequest> {
        self.look();
        std::mem::take(&mut self.sent)
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
        let told = self.parcels_of_all().into_iter();
        told.map(|(of, word)| {
            assert_eq!(of, conn());
            word
        })
        .collect()
    }

    fn parcels_of_all(&mut self) -> Vec<(ConnId, String)> {
        let mut told = Vec::new();
        for (_, outbox) in self.out.iter_mut() {
            for (of, parcel) in outbox.iter() {
                let word = match parcel {
                    Parcel::Reply(_, frame) => {
                        let number = |at: usize| i32::from_be_bytes(*frame[at..].first_chunk().unwrap());
                        format!("reply {} error {}", number(4), number(16))
                    }
                    Parcel::Connected(connected, _) => format!("connected {}", connected.session),
                    Parcel::Close => "close".to_owned(),
                    other => format!("{other:?}"),
                };
                told.push((of, word));
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
    story.forwarding.hold();
    story.forwarding.look_at_hold(&story.state);
    story.write(2);
    assert!(story.sent().is_empty(), "it is held back, and the first one is under way");
    story.commit(SESSION, numbers[0], Ok(Vec::new()));
    assert_eq!(story.sent(), [SourceRequest::Sync { session: SessionId::NONE }]);
    assert_eq!(story.held(), None, "the source may have more");
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    story.forwarding.look_at_hold(&story.state);
    assert_eq!(story.held(), Some(Held { elsewhere: Vec::new() }));
    assert_eq!(story.parcels(), ["reply 1 error 0"]);
    story.forwarding.end_link(&story.state, &mut story.out);
    assert!(story.parcels().is_empty(), "the source is not needed any more");

    let Retired { held: inputs, serving } = story.forwarding.retire();
    assert!(
        matches!(&inputs[..], [ClientInput::Write { request: RequestId { xid: Xid(2), .. }, .. }]),
        "{inputs:?}"
    );
    assert_eq!(serving.conn(SESSION), Some(conn()));
}

#[test]
fn a_session_elsewhere_is_named_and_what_was_held_goes_on() {
    let mut story = Story::begin();
    story.state.tree_mut().install_session(SessionId(8), 4000, 1);
    story.forwarding.hold();
    story.write(1);
    assert_eq!(story.sent(), [SourceRequest::Sync { session: SessionId::NONE }]);
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    story.forwarding.look_at_hold(&story.state);
    assert_eq!(story.held(), Some(Held { elsewhere: vec![SessionId(8)] }));
    story.forwarding.release(&story.state, &mut story.out);
    assert_eq!(story.numbers().len(), 1);
}

#[test]
fn a_source_that_is_lost_while_all_is_at_rest_gets_nothing_that_was_held() {
    let mut story = Story::begin();
    story.forwarding.hold();
    story.write(1);
    story.sent();
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    story.forwarding.look_at_hold(&story.state);
    assert_eq!(story.held(), Some(Held { elsewhere: Vec::new() }));
    story.forwarding.end_link(&story.state, &mut story.out);
    assert!(story.parcels().is_empty(), "a member may take over");

    story.forwarding.release(&story.state, &mut story.out);
    assert_eq!(story.parcels(), ["close"]);
    story.forwarding.begin_link(0);
    assert!(story.sent().is_empty(), "an answer would come behind one that never comes");
}

#[test]
fn a_session_that_is_asked_for_and_not_known_yet_is_answered_when_all_is_known() {
    let mut story = Story::begin();
    let (known, unknown, asking) = (SessionId(8), SessionId(9), ConnId::new(0, 2));
    for session in [known, unknown] {
        let resumption = Resumption { is_asking: true, ..Resumption::keyed(session, 4000) };
        story.take(ClientInput::Resume { conn: asking, resumption, may_only_read: false });
        assert!(story.parcels_of_all().is_empty(), "the source may know it");
        assert_eq!(story.sent(), [SourceRequest::Sync { session: SessionId::NONE }]);
    }
    story.state.tree_mut().install_session(known, 4000, 1);
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    assert_eq!(story.parcels_of_all(), [(asking, "connected 0x8".to_owned())]);
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    assert_eq!(story.parcels_of_all(), [(asking, "Expired".to_owned())]);
}

#[test]
fn numbers_of_requests_are_none_of_a_client() {
    let mut forwarding = Forwarding::new(100);
    forwarding.next_xid = XID_END - 2;
    let xids: Vec<i32> = (0..3).map(|_| forwarding.take_xid()).collect();
    assert_eq!(xids, [XID_END - 2, XID_END - 1, FIRST_XID]);
}

#[test]
fn a_connection_that_its_session_has_left_asks_for_nothing_any_more() {
    let mut story = Story::begin();
    let second = ConnId::new(0, 2);
    story.write(1);
    let first_write = story.numbers()[0];
    story.resume_on(second);
    story.write(2);
    assert_eq!(story.sent().len(), 2, "its client may not have left it: the source has not answered");
    story.forwarding.note_revalidated(SESSION, true, &story.state, &mut story.out);
    assert_eq!(story.parcels_of_all(), [(conn(), "close".to_owned()), (second, "connected 0x7".to_owned())]);
    story.sent();
    story.write_on(second, 1);
    story.write(3);
    story.read(4, OpCode::Sync);
    let numbers = story.numbers();
    assert_eq!(numbers.len(), 1, "the third write would come behind one of the second connection");
    story.commit(SESSION, first_write, Ok(Vec::new()));
    assert!(story.parcels_of_all().is_empty(), "nobody waits for it");
    story.commit(SESSION, numbers[0], Ok(Vec::new()));
    assert_eq!(story.parcels_of_all(), [(second, "reply 1 error 0".to_owned())]);
    story.take(ClientInput::Disconnect { conn: conn() });
    assert_eq!(story.forwarding.serving.conn(SESSION), Some(second));
}

#[test]
fn two_connections_that_want_one_session_get_it_one_after_the_other() {
    let mut story = Story::begin();
    let (second, third) = (ConnId::new(0, 2), ConnId::new(0, 3));
    story.resume_on(second);
    story.resume_on(third);
    story.take(ClientInput::Disconnect { conn: second });
    story.forwarding.note_revalidated(SESSION, true, &story.state, &mut story.out);
    assert!(story.parcels_of_all().is_empty(), "the second is gone");
    assert_eq!(story.forwarding.serving.conn(SESSION), Some(conn()));
    story.forwarding.note_revalidated(SESSION, true, &story.state, &mut story.out);
    assert_eq!(story.forwarding.serving.conn(SESSION), Some(third));
}

#[test]
fn a_session_that_the_source_calls_dead_is_not_served() {
    let mut story = Story::begin();
    let second = ConnId::new(0, 2);
    story.resume_on(second);
    story.forwarding.note_revalidated(SESSION, false, &story.state, &mut story.out);
    let told = story.parcels_of_all();
    assert!(matches!(&told[..], [(of, word)] if *of == second && word != "connected 0x7"), "{told:?}");
    assert_eq!(
        story.forwarding.serving.conn(SESSION),
        Some(conn()),
        "the source says so of this one when it ends"
    );
    story.sent();
    story.take(ClientInput::Touch { session: SESSION });
    assert_eq!(story.sent(), [SourceRequest::Touch { session: SESSION, timeout_ms: 4000 }]);

    story.write(1);
    story.sent();
    story.end_session();
    assert_eq!(story.parcels(), ["close"]);
    story.write(2);
    story.take(ClientInput::Touch { session: SESSION });
    assert!(story.sent().is_empty(), "nothing is said of a session that has ended");
}

#[test]
fn a_source_that_says_nothing_is_no_contact() {
    let mut story = Story::begin();
    story.forwarding.note_heard(500);
    story.write(1);
    story.take(ClientInput::Touch { session: SESSION });
    assert_eq!(story.forwarding.confirmed_ms(9000), 500, "clients are closed by it");
    story.forwarding.note_heard(9100);
    assert_eq!(story.forwarding.confirmed_ms(9200), 9100);
}

#[test]
fn a_session_is_not_asked_for_when_its_connection_went_while_all_was_held() {
    let mut story = Story::begin();
    story.forwarding.hold();
    let second = ConnId::new(0, 2);
    story.resume_on(second);
    story.take(ClientInput::Disconnect { conn: second });
    story.sent();
    story.forwarding.release(&story.state, &mut story.out);
    assert!(story.sent().is_empty());
    assert_eq!(story.forwarding.serving.conn(SESSION), Some(conn()));
}

#[test]
fn a_cut_over_hands_on_nothing_of_a_connection_that_its_session_has_left() {
    let mut story = Story::begin();
    let second = ConnId::new(0, 2);
    story.resume_on(second);
    story.sent();
    story.forwarding.hold();
    story.write(1);
    story.forwarding.note_revalidated(SESSION, true, &story.state, &mut story.out);
    story.write(2);
    story.write_on(second, 1);
    story.forwarding.look_at_hold(&story.state);
    story.forwarding.note_caught_up(&story.state, &mut story.out);
    story.forwarding.look_at_hold(&story.state);
    assert!(story.held().is_some(), "nothing is under way");
    let Retired { held: inputs, serving } = story.forwarding.retire();
    assert_eq!(serving.conn(SESSION), Some(second));
    let of: Vec<ConnId> = inputs.iter().filter_map(asking_conn).collect();
    assert_eq!(of, [second]);
}
