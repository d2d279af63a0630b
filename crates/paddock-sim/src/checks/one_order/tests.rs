//! Histories made by hand, right and wrong ones.

mod coming_back;

use std::collections::BTreeMap;

use paddock_model::{Call, Question, Wish};
use paddock_proto::jute::Writer;
use paddock_proto::{
    Acl, AddWatchMode, ErrorCode, EventKind, Id, MultiResult, OpCode, Perms, ReplyHeader, SessionId,
    WriteReply, Xid, Zxid,
};
use paddock_tree::MISPLACED;

use super::counted_names::ChildCounts;
use super::history::{AnsweredRequest, Happening, History};
use super::judge::judge;
use super::order::{Logged, LoggedWrite, MultiParts, OneOrder};
use crate::answer_limits::AnswerLimits;
use crate::ask::{Ask, AskedRequest};
use crate::checks::watching::Watching;
use crate::checks::{Checked, Violation};

const HOME: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;
const ANN: SessionId = SessionId(1);
const BEN: SessionId = SessionId(2);

/// Logs of three groups and what clients saw. Both sessions begin at 1 and 2, and the split point `/a` is made at 3.
struct HandMadeRun {
    logs: BTreeMap<u32, Vec<Logged>>,
    history: History,
    xid: i32,
    /// Largest zxid of any group, when answers come from now on.
    latest: Zxid,
}

type Outcome = Result<WriteReply<'static>, ErrorCode>;

fn done() -> Outcome {
    Ok(WriteReply::Done)
}

fn created(path: &str) -> Outcome {
    Ok(WriteReply::Created { path: path.to_owned().into() })
}

fn create(path: &str, flags: i32) -> Wish {
    let (path, data, acl) = (path.to_owned(), Some(b"d".to_vec()), vec![Acl::open()]);
    Wish::Create { op: OpCode::Create, path, data, acl, flags, ttl_ms: 0 }
}

fn delete(path: &str) -> Wish {
    Wish::Delete { path: path.to_owned(), version: -1 }
}

/// Names below `/a`.
fn names(names: &[&str]) -> (Question, Option<ErrorCode>, Vec<u8>) {
    let mut body = Vec::new();
    body.put_count(names.len());
    names.iter().for_each(|name| body.put_string(name));
    (Question::GetChildren { path: "/a".to_owned() }, None, body)
}

fn empty(path: &str) -> (Question, Option<ErrorCode>, Vec<u8>) {
    (Question::GetChildren { path: path.to_owned() }, None, vec![0; 4])
}

fn missing(path: &str) -> (Question, Option<ErrorCode>, Vec<u8>) {
    (Question::GetData { path: path.to_owned() }, Some(ErrorCode::NoNode), Vec::new())
}

fn client(session: SessionId) -> usize {
    session.0 as usize
}

impl HandMadeRun {
    fn new() -> HandMadeRun {
        let (logs, history) = (BTreeMap::new(), History::default());
        let mut story = HandMadeRun { logs, history, xid: 0, latest: Zxid(0) };
        for session in [ANN, BEN] {
            story.log(HOME, session.0, session, Wish::CreateSession { timeout_ms: 4000 }, done());
            let (ids, watching) = (vec![Id::new("ip", "10.0.0.1")], Box::new(Watching::default()));
            story.history.note(client(session), session, Happening::Begins { ids, watching });
        }
        story.log(HOME, 3, SessionId::NONE, create("/a", 0), created("/a"));
        story
    }

    fn log(
        &mut self,
        group: u32,
        stamp: i64,
        session: SessionId,
        wish: Wish,
        result: Outcome,
    ) -> &mut HandMadeRun {
        let call = Call { session, member: 0, wish, ..Call::plain_create("/") };
        let (stamp, counts) = (Zxid(stamp), ChildCounts::default());
        let write =
            LoggedWrite { stamp, call, result, portion: None, level: 0, parts: None, decided: None, counts };
        self.logs.entry(group).or_default().push(Logged::Write(Box::new(write)));
        self
    }

    /// The home group had made this number of children when it carried out the last command of its log.
    fn counted(&mut self, parent: &str, count: i32) -> &mut HandMadeRun {
        let last = self.logs.get_mut(&HOME).and_then(|log| log.last_mut());
        let Some(Logged::Write(write)) = last else { panic!("the last of the log is a command") };
        write.counts = ChildCounts::one(parent, count);
        self
    }

    /// The last command of the home group has appended an item to the stream to a group.
    fn append(&mut self, group: u32, last: u64) -> &mut HandMadeRun {
        self.logs.entry(HOME).or_default().push(Logged::Appends { group, last });
        self
    }

    fn item(&mut self, group: u32, number: u64, decided: i64) -> &mut HandMadeRun {
        self.logs.entry(group).or_default().push(Logged::Item {
            number,
            decided: Zxid(decided),
            changes_znodes: true,
            zxid: Zxid(decided + 1),
        });
        self
    }

    /// A group carries out a create that the home group has relayed to it.
    fn relayed(
        &mut self,
        group: u32,
        (number, decided): (u64, i64),
        stamp: i64,
        (session, path): (SessionId, &str),
    ) {
        let (decided, stamp) = (Zxid(decided), Zxid(stamp));
        let call = Call { session, member: 0, wish: create(path, 0), ..Call::plain_create("/") };
        let (result, counts) = (created(path), ChildCounts::default());
        let write =
            LoggedWrite { stamp, call, result, portion: None, level: 0, parts: None, decided: None, counts };
        let log = self.logs.entry(group).or_default();
        log.push(Logged::Item { number, decided, changes_znodes: true, zxid: stamp });
        log.push(Logged::Relayed { number, decided, write: Box::new(write) });
    }

    fn ask(&mut self, session: SessionId, ask: Ask) -> AskedRequest {
        self.xid += 1;
        let xid = Xid(self.xid);
        if let Some(wish) = ask.as_logged() {
            self.history.note(client(session), session, Happening::Asks { xid, wish });
        }
        let (shown, asked_at, ids) = (Zxid(0), self.history.len(), Vec::new());
        AskedRequest { xid, ask, shown, asked_at, ids }
    }

    fn answer(
        &mut self,
        session: SessionId,
        request: AskedRequest,
        zxid: i64,
        error: Option<ErrorCode>,
        body: &[u8],
    ) {
        let header = ReplyHeader { xid: request.xid, zxid: Zxid(zxid), error };
        let limits = AnswerLimits { watches_per_turn: 1000, list_bytes_max: usize::MAX };
        let (body, latest, is_newest) = (body.to_vec(), self.latest, false);
        let answered = AnsweredRequest { request, header, body, limits, latest, is_newest };
        self.history.note(client(session), session, Happening::Answered(Box::new(answered)));
    }

    /// A session writes, and is answered with the zxid that its write took.
    fn write(
        &mut self,
        group: u32,
        stamp: i64,
        session: SessionId,
        wish: Wish,
        result: Outcome,
    ) -> &mut HandMadeRun {
        let request = self.ask(session, Ask::Write(wish.clone()));
        let mut body = Vec::new();
        if let Ok(reply) = &result {
            reply.encode(&mut body);
        }
        let error = result.as_ref().err().copied();
        self.log(group, stamp, session, wish, result);
        self.answer(session, request, stamp, error, &body);
        self
    }

    fn read(
        &mut self,
        session: SessionId,
        zxid: i64,
        (question, error, body): (Question, Option<ErrorCode>, Vec<u8>),
        watch: bool,
    ) -> &mut HandMadeRun {
        let request = self.ask(session, Ask::Read { question, watch });
        self.answer(session, request, zxid, error, &body);
        self
    }

    fn sync(&mut self, session: SessionId, zxid: i64) -> &mut HandMadeRun {
        let request = self.ask(session, Ask::Sync);
        self.answer(session, request, zxid, None, &[]);
        self
    }

    fn told(&mut self, session: SessionId, zxid: i64, kind: EventKind, path: &str) -> &mut HandMadeRun {
        let (path, zxid) = (path.to_owned(), Zxid(zxid));
        self.history.note(client(session), session, Happening::Told { kind, path, zxid });
        self
    }

    fn order(&self) -> Checked<OneOrder> {
        let logs = self.logs.iter().map(|(group, log)| (*group, &log[..])).collect();
        OneOrder::new(&logs, &["/a"])
    }

    fn judge(&self) -> Checked {
        judge(&self.order()?, &self.history)
    }

    fn holds(&self) {
        assert_eq!(self.judge(), Ok(()));
    }

    /// The history is wrong, and that is noticed with these words.
    fn fails(&self, words: &str) {
        let Err(Violation { what, .. }) = self.judge() else { panic!("nothing is noticed of {words:?}") };
        assert!(what.contains(words), "{what}");
    }
}

fn places(order: &OneOrder) -> Vec<(u32, i64)> {
    order.writes().map(|placed| (placed.group, placed.place.0)).collect()
}

#[test]
fn a_write_in_front_of_an_item_stands_in_front_of_its_decision() {
    let mut story = HandMadeRun::new();
    story.log(B, 20, BEN, create("/a/x", 0), created("/a/x")).item(B, 1, 10);
    story.log(B, 21, BEN, create("/a/y", 0), created("/a/y"));
    story.log(HOME, 9, ANN, create("/h", 0), created("/h"));
    story.log(HOME, 10, ANN, Wish::CloseSession, done()).append(B, 1);
    story.log(C, 15, BEN, create("/a/z", 0), created("/a/z"));
    let order = story.order().unwrap();
    let expected = [(HOME, 1), (HOME, 2), (HOME, 3), (HOME, 9), (B, 10), (HOME, 10), (C, 15), (B, 21)];
    assert_eq!(places(&order), expected);
    assert_eq!((order.before(Zxid(10)), order.before(Zxid(11))), (4, 6));
}

#[test]
fn a_write_is_pulled_in_front_of_the_decision_and_not_of_what_has_the_same_zxid() {
    let mut story = HandMadeRun::new();
    story.log(HOME, 9, ANN, create("/h", 0), created("/h"));
    let moves = Wish::ResumeSession { timeout_ms: 4000, is_keyed: false, is_asking: false, moves: None };
    story.log(HOME, 9, BEN, moves, done()).append(B, 1);
    story.log(B, 20, BEN, create("/a/x", 0), created("/a/x")).item(B, 1, 9);
    let order = story.order().unwrap();
    assert_eq!(places(&order)[3..], [(HOME, 9), (B, 9), (HOME, 9)]);
}

/// Another group removes a znode at once when it has heard that the multi is given up, with the zxid that home's part of it has.
#[test]
fn a_multi_that_was_refused_stands_where_it_was_decided() {
    let story = |decided: Option<Zxid>| {
        let mut story = HandMadeRun::new();
        story.log(B, 10, BEN, create("/a/x", 0), created("/a/x"));
        let refused = [None, Some(ErrorCode::NoNode)].map(MultiResult::Failed).to_vec();
        let wish = Wish::Multi(vec![delete("/a/x"), delete("/h")]);
        story.log(HOME, 21, ANN, wish, Ok(WriteReply::Multi(refused)));
        let Some(Logged::Write(multi)) = story.logs.get_mut(&HOME).and_then(|log| log.last_mut()) else {
            panic!("the last of the log is a command")
        };
        multi.decided = decided;
        story.log(B, 21, BEN, delete("/a/x"), done());
        story
    };
    let order = story(Some(Zxid(20))).order().unwrap();
    assert_eq!(places(&order)[4..], [(HOME, 20), (B, 21)]);
    assert!(story(None).order().is_err(), "what the multi was to remove is gone");
}

#[test]
fn behind_an_item_zxids_are_above_its_decision() {
    let mut story = HandMadeRun::new();
    story.log(HOME, 30, ANN, Wish::CloseSession, done()).append(B, 1);
    story.item(B, 1, 30).log(B, 29, BEN, create("/a/x", 0), created("/a/x"));
    story.fails("behind");
    let mut story = HandMadeRun::new();
    story.item(B, 1, 30);
    story.fails("never decided");
}

#[test]
fn a_read_waits_for_what_was_shown_of_other_groups() {
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, create("/a/x", 0), created("/a/x"));
    story.write(C, 12, ANN, create("/a/y", 0), created("/a/y"));
    // Ben sees one after the other, and may see the first without the second.
    story.read(BEN, 3, names(&[]), false).read(BEN, 10, names(&["x"]), false);
    story.read(BEN, 12, names(&["x", "y"]), false);
    story.holds();
    story.read(BEN, 12, missing("/a/x"), false);
    story.fails("true nowhere");
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, create("/a/x", 0), created("/a/x"));
    story.write(C, 12, ANN, create("/a/y", 0), created("/a/y"));
    story.read(BEN, 12, names(&["y"]), false);
    story.fails("true nowhere");
}

#[test]
fn a_write_waits_for_what_was_shown_of_other_groups() {
    let mut story = HandMadeRun::new();
    story.write(B, 20, ANN, create("/a/x", 0), created("/a/x"));
    story.write(C, 15, ANN, create("/a/y", 0), created("/a/y"));
    story.fails("was not asked for since");
    let mut story = HandMadeRun::new();
    story.write(B, 20, BEN, create("/a/x", 0), created("/a/x"));
    story.read(ANN, 20, empty("/a/x"), false);
    story.write(C, 15, ANN, create("/a/y", 0), created("/a/y"));
    story.fails("before it was answered the session had seen");
}

/// A client closes its session at one member, goes to another one, and writes. What it asked first comes when the session has expired, and does nothing.
#[test]
fn a_session_that_has_expired_may_be_closed_late() {
    let story = |is_expired: bool| {
        let mut story = HandMadeRun::new();
        story.ask(ANN, Ask::Write(Wish::CloseSession));
        story.write(HOME, 10, ANN, create("/a/x", 0), created("/a/x"));
        if is_expired {
            story.log(HOME, 20, SessionId::NONE, Wish::ExpireSession { session: ANN }, done());
        }
        story.log(HOME, 30, ANN, Wish::CloseSession, done());
        story
    };
    story(true).holds();
    story(false).fails("was not asked for since");
}

#[test]
fn an_end_is_seen_where_it_comes_late() {
    let ephemeral = || create("/a/x", 1);
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, ephemeral(), created("/a/x"));
    story.log(HOME, 20, SessionId::NONE, Wish::ExpireSession { session: ANN }, done()).append(B, 1);
    // Ben has seen nothing of the end.
    story.write(B, 30, BEN, ephemeral(), Err(ErrorCode::NodeExists)).item(B, 1, 20);
    story.write(B, 31, BEN, ephemeral(), created("/a/x"));
    story.holds();
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, ephemeral(), created("/a/x"));
    story.log(HOME, 20, SessionId::NONE, Wish::ExpireSession { session: ANN }, done()).append(B, 1);
    story.write(HOME, 25, BEN, create("/h", 0), created("/h"));
    story.write(B, 30, BEN, ephemeral(), Err(ErrorCode::NodeExists)).item(B, 1, 20);
    story.fails("was not asked for since");
    // The item never comes.
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, ephemeral(), created("/a/x"));
    story.log(HOME, 20, SessionId::NONE, Wish::ExpireSession { session: ANN }, done()).append(B, 1);
    story.write(B, 30, BEN, ephemeral(), Err(ErrorCode::NodeExists));
    story.fails("it comes to Ok");
}

#[test]
fn a_slot_that_has_moved_takes_nothing() {
    let mut story = HandMadeRun::new();
    story.log(HOME, 10, SessionId::NONE, Wish::BetweenGroups { body: Vec::new() }, done()).append(B, 1);
    story.item(B, 1, 10).write(HOME, 12, ANN, create("/a/x", 0), created("/a/x"));
    story.read(ANN, 12, missing("/a/x"), false);
    story.fails("true nowhere");
}

#[test]
fn what_is_sent_again_keeps_its_order() {
    let story = |is_stalled: bool| {
        let mut story = HandMadeRun::new();
        let (first, second) = (create("/a/x", 0), create("/a/y", 0));
        let asked = [&first, &second].map(|wish| story.ask(ANN, Ask::Write(wish.clone())));
        story.log(HOME, 10, ANN, first.clone(), Err(MISPLACED));
        if is_stalled {
            story.log(HOME, 11, ANN, second.clone(), Err(MISPLACED));
        } else {
            story.log(HOME, 11, ANN, second.clone(), created("/a/y"));
        }
        story.log(B, 20, ANN, first, created("/a/x"));
        let last = if is_stalled { 21 } else { 11 };
        if is_stalled {
            story.log(B, 21, ANN, second, created("/a/y"));
        }
        for (request, (zxid, path)) in asked.into_iter().zip([(20, "/a/x"), (last, "/a/y")]) {
            let mut body = Vec::new();
            body.put_string(path);
            story.answer(ANN, request, zxid, None, &body);
        }
        story
    };
    story(true).holds();
    story(false).fails("was not asked for since");
}

#[test]
fn what_home_relays_stands_in_the_order_in_which_home_has_it() {
    let story = |second_is_relayed_first: bool| {
        let mut story = HandMadeRun::new();
        let asked = ["/a/x", "/a/y"].map(|path| story.ask(ANN, Ask::Write(create(path, 0))));
        let relay = || Wish::BetweenGroups { body: Vec::new() };
        story.log(HOME, 10, ANN, relay(), done()).append(if second_is_relayed_first { C } else { B }, 1);
        story.log(HOME, 11, ANN, relay(), done()).append(if second_is_relayed_first { B } else { C }, 1);
        let (first, second) = if second_is_relayed_first { (11, 10) } else { (10, 11) };
        story.relayed(B, (1, first), 30, (ANN, "/a/x"));
        story.relayed(C, (1, second), 15, (ANN, "/a/y"));
        for (request, (zxid, path)) in asked.into_iter().zip([(30, "/a/x"), (31, "/a/y")]) {
            let mut body = Vec::new();
            body.put_string(path);
            story.answer(ANN, request, zxid, None, &body);
        }
        story
    };
    let mut right = story(false);
    let expected = [(HOME, 1), (HOME, 2), (HOME, 3), (HOME, 10), (B, 10), (HOME, 11), (C, 11)];
    assert_eq!(places(&right.order().unwrap()), expected);
    right.read(BEN, 12, names(&["x", "y"]), false).holds();
    story(true).fails("was not asked for since");
    let mut half_seen = story(false);
    half_seen.read(BEN, 12, names(&["y"]), false).fails("true nowhere");
}

/// A host tells of a change later than the client shows the identity that may hear of it.
#[test]
fn an_event_may_go_by_identities_that_were_shown_behind_it() {
    let owner = Id::new("digest", "ann:meMUxltk+OnqVz5fejUAykzSaNA=");
    let story = |shown_at: Option<i64>, is_told: bool| {
        let mut story = HandMadeRun::new();
        let question = Question::Exists { path: "/a/x".to_owned() };
        story.read(ANN, 5, (question, Some(ErrorCode::NoNode), Vec::new()), true);
        let acl = vec![Acl { perms: Perms::ALL, id: owner.clone() }];
        let Wish::Create { op, path, data, flags, ttl_ms, .. } = create("/a/x", 0) else { unreachable!() };
        story.write(B, 10, BEN, Wish::Create { op, path, data, acl, flags, ttl_ms }, created("/a/x"));
        if let Some(latest) = shown_at.map(Zxid) {
            let ids = vec![Id::new("ip", "10.0.0.1"), owner.clone()];
            story.history.note(client(ANN), ANN, Happening::Identified { latest, ids });
        }
        if is_told {
            story.told(ANN, 10, EventKind::NodeCreated, "/a/x");
        }
        story.history.note(client(ANN), ANN, Happening::Rests);
        story
    };
    for behind in [10, 12] {
        story(Some(behind), true).holds();
        story(Some(behind), false).holds();
    }
    story(Some(9), true).holds();
    story(Some(9), false).fails("was not told");
    story(None, true).fails("is no event of a watch");
    story(None, false).holds();
}

#[test]
fn an_event_comes_in_front_of_what_is_newer() {
    let story = |is_told: bool| {
        let mut story = HandMadeRun::new();
        story.write(B, 10, BEN, create("/a/x", 0), created("/a/x"));
        story.read(ANN, 10, names(&["x"]), true);
        story.write(B, 15, BEN, delete("/a/x"), done());
        story.write(HOME, 20, BEN, create("/h", 0), created("/h"));
        if is_told {
            story.told(ANN, 15, EventKind::NodeChildrenChanged, "/a");
        }
        let mut stat = Vec::new();
        let at = story.order().unwrap();
        at.state(at.len()).stat("/h").unwrap().encode(&mut stat);
        story.read(ANN, 20, (Question::Exists { path: "/h".to_owned() }, None, stat), false);
        story
    };
    story(true).holds();
    story(false).fails("was not told");
    let mut twice = story(true);
    twice.told(ANN, 15, EventKind::NodeChildrenChanged, "/a");
    twice.fails("no event of a watch");
    // Behind the event nothing is older than it.
    let mut story = HandMadeRun::new();
    story.write(B, 10, BEN, create("/a/x", 0), created("/a/x"));
    story.read(ANN, 10, names(&["x"]), true);
    story.write(C, 12, BEN, create("/a/y", 0), created("/a/y"));
    story.write(B, 15, BEN, delete("/a/x"), done());
    story.told(ANN, 12, EventKind::NodeChildrenChanged, "/a");
    story.read(ANN, 12, names(&["x"]), false);
    story.fails("true nowhere");
}

/// One of the changes is told of twice, since two watches tell of it.
#[test]
fn two_changes_with_one_zxid_are_told_one_behind_the_other() {
    let mut story = HandMadeRun::new();
    let question = Question::Exists { path: "/a/x".to_owned() };
    story.read(ANN, 5, (question, Some(ErrorCode::NoNode), Vec::new()), true);
    let stays = Ask::AddWatch { path: "/a".to_owned(), mode: AddWatchMode::Persistent };
    let request = story.ask(ANN, stays);
    story.answer(ANN, request, 5, None, &[]);
    story.write(B, 10, BEN, create("/a/x", 0), created("/a/x"));
    story.write(C, 10, BEN, create("/a/y", 0), created("/a/y"));
    story.told(ANN, 10, EventKind::NodeCreated, "/a/x");
    story.told(ANN, 10, EventKind::NodeChildrenChanged, "/a");
    story.told(ANN, 10, EventKind::NodeChildrenChanged, "/a");
    story.holds();
}

/// A watch that stays tells of both changes of a multi, and of the one of another group that has the same place.
#[test]
fn a_multi_that_changes_a_list_twice_is_told_twice() {
    let mut story = HandMadeRun::new();
    let request = story.ask(ANN, Ask::AddWatch { path: "/a".to_owned(), mode: AddWatchMode::Persistent });
    story.answer(ANN, request, 5, None, &[]);
    let both = Wish::Multi(vec![create("/a/x", 0), delete("/a/x")]);
    let results = vec![
        MultiResult::Done(OpCode::Create, created("/a/x").expect("it is")),
        MultiResult::Done(OpCode::Delete, WriteReply::Done),
    ];
    story.write(B, 10, BEN, both, Ok(WriteReply::Multi(results)));
    story.write(C, 10, BEN, create("/a/y", 0), created("/a/y"));
    for _ in 0..3 {
        story.told(ANN, 10, EventKind::NodeChildrenChanged, "/a");
    }
    story.holds();
    story.told(ANN, 10, EventKind::NodeChildrenChanged, "/a");
    story.fails("where None is due");
}

#[test]
fn a_sync_shows_what_any_client_was_shown() {
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, create("/a/x", 0), created("/a/x"));
    story.read(BEN, 3, names(&[]), false);
    story.holds();
    story.sync(BEN, 10).read(BEN, 10, names(&[]), false);
    story.fails("true nowhere");
}

/// The sync was asked for before the write, and is answered behind the event of it.
#[test]
fn an_event_of_an_own_write_may_overtake_other_answers() {
    let story = |is_told: bool| {
        let mut story = HandMadeRun::new();
        story.write(HOME, 3, ANN, create("/h", 0), created("/h"));
        if is_told {
            let question = Question::Exists { path: "/a/x".to_owned() };
            story.read(ANN, 5, (question, Some(ErrorCode::NoNode), Vec::new()), true);
        }
        let [sync, write] = [Ask::Sync, Ask::Write(create("/a/x", 0))].map(|ask| story.ask(ANN, ask));
        story.log(B, 10, ANN, create("/a/x", 0), created("/a/x"));
        if is_told {
            story.told(ANN, 10, EventKind::NodeCreated, "/a/x");
        } else {
            // The session has read what it wrote.
            story.read(ANN, 12, names(&["x"]), false);
        }
        story.answer(ANN, sync, 12, None, &[]);
        let mut body = Vec::new();
        body.put_string("/a/x");
        story.answer(ANN, write, 12, None, &body);
        story
    };
    story(true).holds();
    story(false).fails("before it was answered the session had seen");
}

#[test]
fn writes_of_a_group_are_linearizable() {
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, create("/a/x", 0), created("/a/x"));
    story.write(C, 9, BEN, create("/a/y", 0), created("/a/y"));
    story.holds();
    let mut story = HandMadeRun::new();
    story.log(B, 9, BEN, create("/a/y", 0), created("/a/y"));
    story.write(B, 10, ANN, create("/a/x", 0), created("/a/x"));
    let request = story.ask(BEN, Ask::Write(create("/a/y", 0)));
    let mut body = Vec::new();
    body.put_string("/a/y");
    story.answer(BEN, request, 9, None, &body);
    story.fails("behind what was acknowledged before it was asked for");
}

#[test]
fn sequential_names_of_a_split_point_are_those_that_home_counts() {
    let mut story = HandMadeRun::new();
    story.write(B, 10, ANN, create("/a/x", 0), created("/a/x"));
    story.write(HOME, 11, ANN, create("/a/s-", 2), created("/a/s-0000000000")).counted("/a", 0);
    story.read(ANN, 11, names(&["s-0000000000", "x"]), false);
    // The names of home's next children are taken, and those of one tree's would not be.
    story.write(HOME, 12, ANN, create("/a/s-0000000002", 0), created("/a/s-0000000002"));
    story.write(HOME, 13, ANN, create("/a/s-", 2), Err(ErrorCode::NodeExists)).counted("/a", 2);
    story.holds();
    story.write(HOME, 14, ANN, create("/a/s-", 2), created("/a/s-0000000002")).counted("/a", 2);
    story.fails("it comes to Err(NodeExists)");
}

#[test]
fn results_of_a_multi_are_those_of_its_groups() {
    let story = |version: i32| {
        let mut story = HandMadeRun::new();
        let wishes = vec![create("/a/x", 0), create("/a/s-", 2)];
        story.ask(ANN, Ask::Write(Wish::Multi(wishes.clone())));
        story.log(HOME, 20, ANN, Wish::Multi(wishes), done()).counted("/a", version).append(B, 1);
        let result = |path: &str| {
            let reply = WriteReply::Created { path: path.to_owned().into() };
            let mut encoded = Vec::new();
            MultiResult::Done(OpCode::Create, reply).encode(&mut encoded);
            encoded
        };
        let own = vec![(1, result("/a/s-0000000004"))];
        let Some(Logged::Write(write)) =
            story.logs.get_mut(&HOME).and_then(|log| log.iter_mut().rev().nth(1))
        else {
            panic!("a command is in front of what it appends")
        };
        write.parts = Some(MultiParts { multi: 20, groups: vec![B, HOME], own });
        story.item(B, 1, 20);
        let settled = Logged::Settled { multi: 20, zxid: Zxid(22), own: vec![(0, result("/a/x"))] };
        story.logs.entry(B).or_default().push(settled);
        story
    };
    story(4).holds();
    story(3).fails("in one order it comes to");
}
