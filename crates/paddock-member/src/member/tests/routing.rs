//! Znodes that are spread over the groups of a member alone: its clients see one tree.

mod whole;

use std::collections::BTreeSet;

use paddock_proto::{CreateMode, EventKind, GroupsCommand, Stat, WatchEvent, Zxid, encode};
use paddock_state::{Client, QueuedRead, Slot};
use paddock_tree::{FeatureLevel, SLOTS, SplitPaths, slot_of};

use super::*;

const GROUPS: u32 = 4;
const POINT: &str = "/p";

/// A client of a member with several groups.
struct Spread {
    stage: Stage,
    disk: MemDisk,
    asked: u32,
}

fn config() -> Config {
    let config = Config::small_with(|settings| {
        settings.group_count = GROUPS;
        settings.split_points = SplitPaths::of([POINT]).unwrap();
    });
    Config { known_level: FeatureLevel::KNOWN, ..config }
}

/// An answer that came back.
#[derive(Debug)]
struct CameBack {
    zxid: Zxid,
    error: Option<ErrorCode>,
    body: Vec<u8>,
}

impl Spread {
    fn start() -> Spread {
        Spread::start_as(config())
    }

    fn start_as(config: Config) -> Spread {
        let disk = MemDisk::new(1);
        let mut stage = Stage::start_as(&disk, config).unwrap();
        stage.shell.now.wall_ms = 1_000_000;
        for _ in 0..5 {
            stage.pass_time().unwrap();
        }
        stage.shell.kept = Some(Vec::new());
        let mut spread = Spread { stage, disk, asked: 0 };
        assert_eq!(spread.create(POINT).error, None);
        spread
    }

    /// Gives slots of the split point to groups.
    fn move_slots(&mut self, first: u16, last: u16, group: u32) {
        self.begin_move(first, last, group);
        self.settle();
    }

    fn begin_move(&mut self, first: u16, last: u16, group: u32) {
        let mut body = Vec::new();
        GroupsCommand::Move { path: POINT, first, last, group }.encode(&mut body);
        self.stage.member.take(&self.stage.shell, [Input::BetweenGroups(body)]);
    }

    /// Spreads all slots over all groups.
    fn spread(&mut self) {
        let part = SLOTS / GROUPS as u16;
        (1..GROUPS)
            .for_each(|group| self.move_slots(group as u16 * part, (group as u16 + 1) * part - 1, group));
    }

    fn settle(&mut self) {
        for _ in 0..3 {
            self.stage.settle().unwrap();
            self.stage.pass_time().unwrap();
        }
    }

    fn client(&self) -> Client {
        Client::new(conn(), self.stage.shell.session.unwrap(), &[])
    }

    fn ask(&mut self, op: OpCode, body: Vec<u8>, is_write: bool) {
        self.asked += 1;
        let request = RequestId { xid: Xid(self.asked as i32), slot: Slot(self.asked) };
        let client = self.client();
        let input = if is_write {
            let mut command = Vec::new();
            Command::encode(client.session, 0, client.ids(), op, &body, &mut command);
            ClientInput::Write { conn: conn(), request, op, command: command.into() }
        } else {
            ClientInput::Read(QueuedRead::new(client, request, op, body))
        };
        self.stage.member.take(&self.stage.shell, [Input::Client(input)]);
    }

    fn ask_create(&mut self, path: &str, mode: CreateMode) {
        let mut body = Vec::new();
        encode::create_open(&mut body, path, Some(b"data"), mode);
        self.ask(OpCode::Create, body, true);
    }

    fn ask_get(&mut self, path: &str, watch: bool) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_bool(watch);
        self.ask(OpCode::GetData, body, false);
    }

    /// All that has come, in order.
    fn come(&mut self) -> Vec<Vec<u8>> {
        self.settle();
        std::mem::take(self.stage.shell.kept.as_mut().unwrap())
    }

    fn replies(&mut self) -> Vec<CameBack> {
        self.come().iter().map(|bytes| reply(bytes)).collect()
    }

    fn reply(&mut self) -> CameBack {
        let mut replies = self.replies();
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies.remove(0)
    }

    fn create(&mut self, path: &str) -> CameBack {
        self.ask_create(path, CreateMode::Persistent);
        self.reply()
    }

    /// Creates children of the split point, each with an ephemeral below it.
    fn create_all(&mut self) {
        for name in names() {
            self.ask_create(&format!("{POINT}/{name}"), CreateMode::Persistent);
            self.ask_create(&format!("{POINT}/{name}/alive"), CreateMode::Ephemeral);
        }
        assert!(self.replies().iter().all(|reply| reply.error.is_none()));
    }

    fn list(&mut self, watch: bool) -> BTreeSet<String> {
        let mut body = Vec::new();
        body.put_string(POINT);
        body.put_bool(watch);
        self.ask(OpCode::GetChildren, body, false);
        let reply = self.reply();
        assert_eq!(reply.error, None);
        let mut reader = Reader::new(&reply.body);
        (0..reader.count().unwrap()).map(|_| reader.string().unwrap().to_owned()).collect()
    }

    fn znodes_in(&self, group: u32) -> usize {
        let points =
            |state: &Replicated| state.tree().stat(POINT).map_or(0, |stat| stat.num_children as usize);
        match group {
            0 => points(&self.stage.shell.state.0.borrow()),
            group => self.stage.member.look_at_group(group, points).unwrap(),
        }
    }
}

fn reply(bytes: &[u8]) -> CameBack {
    let mut reader = Reader::new(&bytes[4..]);
    let header = ReplyHeader::decode(&mut reader).unwrap();
    CameBack { zxid: header.zxid, error: header.error, body: reader.rest().to_vec() }
}

fn names() -> Vec<String> {
    (0..40).map(|number| format!("n{number}")).collect()
}

#[test]
fn children_lie_in_the_groups_of_their_slots_and_are_listed_together() {
    let mut spread = Spread::start();
    for name in &names()[..10] {
        assert_eq!(spread.create(&format!("{POINT}/{name}")).error, None);
        assert_eq!(spread.create(&format!("{POINT}/{name}/below")).error, None);
    }
    spread.spread();
    for name in &names()[10..] {
        assert_eq!(spread.create(&format!("{POINT}/{name}")).error, None, "{name}");
    }
    assert_eq!(spread.list(false), names().into_iter().collect());
    let part = SLOTS / GROUPS as u16;
    for group in 0..GROUPS {
        let own = names().iter().filter(|name| u32::from(slot_of(name).unwrap() / part) == group).count();
        assert_eq!(spread.znodes_in(group), own, "group {group}");
        assert!(own > 0);
    }
    // What moved is as it was.
    for name in names() {
        spread.ask_get(&format!("{POINT}/{name}"), false);
        let reply = spread.reply();
        assert_eq!((reply.error, &reply.body[..8]), (None, &b"\0\0\0\x04data"[..]), "{name}");
        let again = spread.create(&format!("{POINT}/{name}"));
        assert_eq!(again.error, Some(ErrorCode::NodeExists));
    }
    spread.ask_get(&format!("{POINT}/n3/below"), false);
    assert_eq!(spread.reply().error, None);
    spread.ask_get(POINT, false);
    let stat = spread.reply().body;
    assert_eq!(&stat[stat.len() - 12..stat.len() - 8], 40_i32.to_be_bytes(), "number of children");
}

#[test]
fn slots_come_back_and_go_from_group_to_group_with_their_ephemerals() {
    let mut spread = Spread::start();
    spread.spread();
    spread.create_all();
    let in_all = |spread: &Spread| (0..GROUPS).map(|group| spread.znodes_in(group)).collect::<Vec<_>>();
    let before = in_all(&spread);
    spread.ask_get(POINT, false);
    let stat = spread.reply().body;
    let part = SLOTS / GROUPS as u16;
    spread.move_slots(part, 2 * part - 1, 3);
    spread.move_slots(2 * part, 3 * part - 1, 0);
    spread.move_slots(0, 4, 9);
    spread.move_slots(0, SLOTS - 1, 1);
    assert_eq!(
        in_all(&spread),
        [before[0] + before[2], 0, 0, before[1] + before[3]],
        "what cannot move stays"
    );
    spread.ask_get(POINT, false);
    assert_eq!(spread.reply().body, stat, "nothing has changed");
    for name in names() {
        spread.ask_get(&format!("{POINT}/{name}/alive"), false);
        assert_eq!(spread.reply().error, None, "{name}");
        let again = spread.create(&format!("{POINT}/{name}"));
        assert_eq!(again.error, Some(ErrorCode::NodeExists), "{name}");
    }
    spread.move_slots(part, 2 * part - 1, 0);
    spread.move_slots(3 * part, SLOTS - 1, 0);
    assert_eq!(in_all(&spread), [40, 0, 0, 0]);
    spread.ask(OpCode::CloseSession, Vec::new(), true);
    spread.settle();
    let state = spread.stage.shell.state.0.borrow();
    assert_eq!((state.tree().ephemeral_count(), state.tree().split_points().are_spread()), (0, false));
}

#[test]
fn replies_come_in_order_and_their_zxids_do_not_fall() {
    let mut spread = Spread::start();
    spread.spread();
    for name in names() {
        spread.ask_create(&format!("{POINT}/{name}"), CreateMode::Persistent);
        spread.ask_get(&format!("{POINT}/{name}"), false);
    }
    let replies = spread.replies();
    assert_eq!(replies.len(), 80);
    assert!(replies.iter().all(|reply| reply.error.is_none()));
    assert!(replies.is_sorted_by_key(|reply| reply.zxid));
}

#[test]
fn a_write_behind_a_read_whose_znode_has_moved_is_carried_out_once() {
    let mut spread = Spread::start();
    let child = format!("{POINT}/{}", name_in(1));
    assert_eq!(spread.create(&child).error, None);
    spread.begin_move(0, SLOTS - 1, 1);
    spread.ask_get(&child, false);
    for _ in 0..2 {
        let mut body = Vec::new();
        encode::set_data(&mut body, POINT, Some(b"new"), -1);
        spread.ask(OpCode::SetData, body, true);
        spread.ask_get(&child, false);
    }
    let replies = spread.replies();
    assert_eq!((replies.len(), replies.iter().find(|reply| reply.error.is_some()).is_none()), (5, true));
    assert!(replies.is_sorted_by_key(|reply| reply.zxid));
    spread.ask_get(POINT, false);
    let body = spread.reply().body;
    let mut reader = Reader::new(&body);
    reader.buffer().unwrap();
    assert_eq!(Stat::decode(&mut reader).unwrap().version, 2);
}

#[test]
fn sequential_names_below_a_split_point_have_one_counter() {
    let mut spread = Spread::start();
    spread.spread();
    for number in 0..5 {
        spread.ask_create(&format!("{POINT}/seq-"), CreateMode::PersistentSequential);
        let reply = spread.reply();
        let path = Reader::new(&reply.body).string().unwrap().to_owned();
        assert_eq!(path, format!("{POINT}/seq-{number:010}"));
    }
    assert_eq!(spread.znodes_in(0), 5);
}

#[test]
fn ephemerals_in_all_groups_go_with_their_session() {
    let mut spread = Spread::start();
    spread.spread();
    for name in names() {
        spread.ask_create(&format!("{POINT}/{name}"), CreateMode::Ephemeral);
    }
    assert!(spread.replies().iter().all(|reply| reply.error.is_none()));
    assert_eq!((0..GROUPS).map(|group| spread.znodes_in(group)).sum::<usize>(), 40);
    spread.ask(OpCode::CloseSession, Vec::new(), true);
    spread.settle();
    assert_eq!((0..GROUPS).map(|group| spread.znodes_in(group)).sum::<usize>(), 0);
}

#[test]
fn an_event_comes_before_the_reply_that_shows_its_change() {
    let mut spread = Spread::start();
    spread.spread();
    let (one, other) = (format!("{POINT}/{}", name_in(1)), format!("{POINT}/{}", name_in(2)));
    for path in [&one, &other] {
        assert_eq!(spread.create(path).error, None);
        spread.ask_get(path, true);
        assert_eq!(spread.reply().error, None);
    }
    spread.list(true);
    let set = |path: &str| {
        let mut body = Vec::new();
        encode::set_data(&mut body, path, Some(b"new"), -1);
        body
    };
    spread.ask(OpCode::SetData, set(&one), true);
    spread.ask(OpCode::SetData, set(&other), true);
    spread.ask_create(&format!("{POINT}/{}", "last"), CreateMode::Persistent);
    let come = spread.come();
    let told: Vec<String> = come
        .iter()
        .map(|bytes| {
            let reply = reply(bytes);
            match WatchEvent::decode(reply.zxid, &reply.body) {
                Ok(event) if i32::from_be_bytes(*bytes[4..].first_chunk().unwrap()) == -1 => {
                    format!("{:?} {}", event.kind, event.path)
                }
                _ => "reply".to_owned(),
            }
        })
        .collect();
    let changed = |path: &str| format!("{:?} {path}", EventKind::NodeDataChanged);
    let listed = format!("{:?} {POINT}", EventKind::NodeChildrenChanged);
    let reply = || "reply".to_owned();
    assert_eq!(told, [changed(&one), reply(), changed(&other), reply(), listed, reply()]);
}

/// A name whose slot is in a group, when slots are spread.
fn name_in(group: u32) -> String {
    let part = SLOTS / GROUPS as u16;
    names().into_iter().find(|name| u32::from(slot_of(name).unwrap() / part) == group).unwrap()
}

/// A multi of creates, and of checks that there is such a znode.
fn multi(creates: &[&str], checks: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    let header = |op: i32, is_end: bool, body: &mut Vec<u8>| {
        body.put_i32(op);
        body.put_bool(is_end);
        body.put_i32(-1);
    };
    for path in creates {
        let mut create = Vec::new();
        encode::create_open(&mut create, path, Some(b"data"), CreateMode::Persistent);
        header(OpCode::Create.code(), false, &mut body);
        body.extend_from_slice(&create);
    }
    for path in checks {
        header(OpCode::Check.code(), false, &mut body);
        encode::path_and_version(&mut body, path, -1);
    }
    header(-1, true, &mut body);
    body
}

#[test]
fn a_multi_over_several_groups_is_all_or_nothing() {
    let mut spread = Spread::start();
    spread.spread();
    let paths = [0, 1, 2].map(|group| format!("{POINT}/{}", name_in(group)));
    let [home, one, two] = paths.each_ref().map(String::as_str);
    let exists = |spread: &mut Spread, path: &str| {
        spread.ask_get(path, false);
        spread.reply().error.is_none()
    };
    spread.ask(OpCode::Multi, multi(&[home, one], &[two]), true);
    let reply = spread.reply();
    assert_eq!(reply.error, None);
    let codes = |body: &[u8]| {
        let mut reader = Reader::new(body);
        let mut codes = Vec::new();
        loop {
            let (op, is_end, error) = (reader.i32().unwrap(), reader.bool().unwrap(), reader.i32().unwrap());
            if is_end {
                return codes;
            }
            match OpCode::from_code(op) {
                Some(OpCode::Create) => drop(reader.string().unwrap().to_owned()),
                Some(OpCode::Check) => {}
                _ => assert_eq!(reader.i32().unwrap(), error),
            }
            codes.push(error);
        }
    };
    let (none, inconsistent) = (0, ErrorCode::RuntimeInconsistency.code());
    assert_eq!(codes(&reply.body), [none, none, ErrorCode::NoNode.code()]);
    assert_eq!([home, one, two].map(|path| exists(&mut spread, path)), [false; 3]);

    spread.ask(OpCode::Multi, multi(&[home, one, two], &[POINT]), true);
    let reply = spread.reply();
    assert_eq!((reply.error, codes(&reply.body)), (None, vec![none; 4]));
    assert_eq!([home, one, two].map(|path| exists(&mut spread, path)), [true; 3]);

    // The home group's own part fails at the decision.
    let free = format!("{POINT}/{}-free", name_in(1));
    spread.ask(OpCode::Multi, multi(&[&format!("{one}/below"), home, &format!("{two}/below")], &[]), true);
    assert_eq!(codes(&spread.reply().body), [none, ErrorCode::NodeExists.code(), inconsistent]);
    assert!(!exists(&mut spread, &format!("{one}/below")) && !exists(&mut spread, &free));
    // What follows finds nothing held.
    for path in [home, one, two] {
        assert_eq!(spread.create(&format!("{path}/after")).error, None);
    }
}

#[test]
fn writes_behind_a_multi_over_several_groups_see_it() {
    let mut spread = Spread::start();
    spread.spread();
    let [one, two] = [1, 2].map(|group| format!("{POINT}/{}", name_in(group)));
    spread.ask(OpCode::Multi, multi(&[&one, &two], &[]), true);
    spread.ask_create(&format!("{one}/below"), CreateMode::Ephemeral);
    spread.ask_create(&format!("{two}/below"), CreateMode::Ephemeral);
    spread.ask(OpCode::Multi, multi(&[], &[&format!("{one}/below"), &format!("{two}/below")]), true);
    spread.ask_get(&one, false);
    let replies = spread.replies();
    assert_eq!(replies.len(), 5);
    assert!(replies.iter().all(|reply| reply.error.is_none()), "{replies:?}");
    assert!(replies.is_sorted_by_key(|reply| reply.zxid));
}

#[test]
fn what_lies_in_groups_is_there_again_after_a_crash() {
    let mut spread = Spread::start();
    spread.spread();
    for name in names() {
        assert_eq!(spread.create(&format!("{POINT}/{name}")).error, None);
    }
    let Spread { stage, disk, .. } = spread;
    drop(stage);
    disk.crash();
    let mut stage = Stage::start_as(&disk, config()).unwrap();
    stage.shell.now.wall_ms = 2_000_000;
    stage.shell.kept = Some(Vec::new());
    let mut again = Spread { stage, disk, asked: 0 };
    again.settle();
    assert_eq!(again.list(false), names().into_iter().collect());
    assert_eq!(again.create(&format!("{POINT}/one-more")).error, None);
}

#[test]
fn what_a_client_has_seen_is_known_when_clocks_are_turned_back() {
    let mut spread = Spread::start();
    spread.spread();
    spread.ask_create(&format!("{POINT}/{}", name_in(1)), CreateMode::Persistent);
    let seen = spread.reply().zxid;
    let Spread { stage, disk, .. } = spread;
    drop(stage);
    disk.crash();
    let mut stage = Stage::start_as(&disk, config()).unwrap();
    assert!(stage.shell.now.wall_ms < 500_000);
    let greetings = [(seen, 0), (Zxid::stamp(5_000_000), 1)];
    for (zxid, closed) in greetings {
        stage.member.take(&stage.shell, [Input::Client(ClientInput::Seen { conn: conn(), zxid })]);
        stage.settle().unwrap();
        assert_eq!(stage.shell.closed, closed, "{zxid:?}");
    }
}

#[test]
fn the_end_of_a_connection_is_noticed_while_nothing_can_be_written() {
    let mut spread = Spread::start();
    spread.spread();
    assert_eq!(spread.create(&format!("{POINT}/{}", name_in(1))).error, None);
    let now = spread.stage.shell.now;
    spread.stage.member.step_all(now, || Input::DiskFull(true));
    let end = ClientInput::Disconnect { conn: conn() };
    spread.stage.member.take(&spread.stage.shell, [Input::Client(end)]);
    let mut router = spread.stage.member.router.take().unwrap();
    assert_eq!(router.begin_anew(Vec::new()), BTreeSet::new(), "connections that are still there");
}
