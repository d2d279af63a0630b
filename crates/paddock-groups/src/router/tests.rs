mod handed_writes;
mod kept_watches;
mod placement;
mod quotas;
mod read_only;
mod relayed_writes;
mod routed_pair;
mod watched_lists;

use paddock_proto::{CreateMode, ErrorCode, GroupsCommand, IdList, OpCode, Xid, encode};
use paddock_state::{Client, QueuedRead, RequestId, State};
use paddock_tree::{FeatureLevel, GroupFounders, Guess, MISPLACED, RaisedLevel, SLOTS, Tree};

use super::*;

const MEMBER: MemberNumber = 1;
const ORIGIN: Origin = Origin { member: MEMBER, incarnation: 1 };
const NO_HOSTS: fn(u32) -> Vec<MemberNumber> = |_| Vec::new();

impl<const GROUPS: usize> Replicas for [Option<GroupView<'_>>; GROUPS] {
    fn count(&self) -> u32 {
        GROUPS as u32
    }

    fn has(&self, group: u32) -> bool {
        self.look(group).is_some()
    }

    fn look(&self, group: u32) -> Option<GroupView<'_>> {
        self.get(group as usize).copied().flatten()
    }
}

/// The state of a home group with one other group, to which slots of `/p` have gone.
fn home() -> State {
    let mut tree = Tree::new();
    tree.raise_level(&RaisedLevel::known(FeatureLevel::KNOWN));
    tree.found_groups(2, GroupFounders::default());
    let mut apply = |op: OpCode, body: &[u8]| {
        let mut bytes = Vec::new();
        Command::encode(SessionId::NONE, 5, IdList::NONE, op, body, &mut bytes);
        tree.apply(&Command::decode(&bytes).unwrap()).result.unwrap();
    };
    let mut body = Vec::new();
    encode::create_open(&mut body, "/p", None, CreateMode::Persistent);
    apply(OpCode::Create, &body);
    let commands = [
        GroupsCommand::Split { path: "/p" },
        GroupsCommand::Move { path: "/p", first: 0, last: SLOTS / 2, group: 1 },
    ];
    for command in commands {
        body.clear();
        command.encode(&mut body);
        apply(GroupsCommand::OP, &body);
    }
    State::new(tree)
}

/// Asks for a read, a write and a read on a connection.
fn ask(router: &mut Router) {
    let conn = ConnId::new(0, 1);
    let client = Client::new(conn, SessionId(7), &[]);
    let request = |number: u32| RequestId { xid: Xid(number as i32), slot: Slot(number) };
    let (mut path, mut set, mut command) = (Vec::new(), Vec::new(), Vec::new());
    encode::path_and_watch(&mut path, "/", false);
    encode::set_data(&mut set, "/", None, -1);
    Command::encode(client.session, 0, client.ids(), OpCode::SetData, &set, &mut command);
    let read = |number| {
        ClientInput::Read(QueuedRead::new(client.clone(), request(number), OpCode::GetData, path.clone()))
    };
    let write =
        ClientInput::Write { conn, request: request(2), op: OpCode::SetData, command: command.into() };
    for input in [read(1), write, read(3)] {
        assert!(router.take(input).is_none(), "it goes to no group at once");
    }
}

/// Numbers of the requests that a router hands over in a turn.
fn handed(router: &mut Router, views: &dyn Replicas) -> Vec<i32> {
    let orders = router.work(views, &NO_HOSTS, Zxid(0), &mut Outboxes::new(1));
    let handed = orders.into_iter().filter_map(|order| match order {
        Order::Hand { input: ClientInput::Write { request, .. }, .. } => Some(request.xid.0),
        Order::Hand { input: ClientInput::Read(read), .. } => Some(read.request.xid.0),
        _ => None,
    });
    handed.collect()
}

#[test]
fn no_write_goes_behind_a_read_under_way_while_slots_may_move() {
    let (home, other) = (home(), State::new(Tree::new()));
    let settled = home.tree().zxid();
    let views = [&home, &other].map(|state| Some(GroupView { state, settled, origin: ORIGIN }));
    let mut router = Router::new(MEMBER, false, (ORIGIN, 0));
    router.begin_spread(home.tree().zxid());
    router.work(&views, &NO_HOSTS, Zxid(0), &mut Outboxes::new(1));
    ask(&mut router);
    assert_eq!(handed(&mut router, &views), [1]);
    (1..MOVING_TICKS).for_each(|_| router.tick());
    assert_eq!(handed(&mut router, &views), []);
    router.tick();
    assert_eq!(handed(&mut router, &views), [2, 3], "no slot has moved of late");
}

/// An answer to one of the requests that were passed on, as the home group's replica gives it.
fn answer(mail: &mut Outboxes, number: u32, error: i32) {
    mail.reply(ConnId::new(0, 1), Slot(number), |out| {
        out.extend_from_slice(&16_i32.to_be_bytes());
        out.extend_from_slice(&(number as i32).to_be_bytes());
        out.extend_from_slice(&5_i64.to_be_bytes());
        out.extend_from_slice(&error.to_be_bytes());
    });
}

/// The first slot goes to another group behind requests that were passed on to the home group. Returns true if their connection is closed.
fn is_closed_behind_refused_read(watch: bool) -> bool {
    let (home, other) = (home(), State::new(Tree::new()));
    let settled = home.tree().zxid();
    let views = [&home, &other].map(|state| Some(GroupView { state, settled, origin: ORIGIN }));
    let mut router = Router::new(MEMBER, false, (ORIGIN, 0));
    let (conn, client) = (ConnId::new(0, 1), Client::new(ConnId::new(0, 1), SessionId(7), &[]));
    for (number, watch) in [(1, false), (2, watch)] {
        let mut path = Vec::new();
        encode::path_and_watch(&mut path, "/p/x", watch);
        let request = RequestId { xid: Xid(number as i32), slot: Slot(number) };
        let read = QueuedRead::new(client.clone(), request, OpCode::Exists, path);
        assert!(router.take(ClientInput::Read(read)).is_some(), "it goes to the home group at once");
    }
    router.begin_spread(home.tree().zxid());
    let mut mail = Outboxes::new(1);
    answer(&mut mail, 1, MISPLACED.code());
    answer(&mut mail, 2, 0);
    router.take_mail(0, &mut mail, (&[], vec![]), home.tree().zxid(), 2);
    let mut out = Outboxes::new(1);
    router.work(&views, &NO_HOSTS, Zxid(0), &mut out);
    let is_close = |(of, parcel): (ConnId, Parcel<'_>)| of == conn && matches!(parcel, Parcel::Close);
    let is_closed = out.iter_mut().any(|(_, outbox)| outbox.iter().any(is_close));
    ask(&mut router);
    assert_eq!(handed(&mut router, &views).is_empty(), is_closed, "nothing more is taken of a closed one");
    is_closed
}

/// A read that was passed on is asked for again, and a write behind it was carried out: what the client is told of later comes behind the answers to both.
#[test]
fn no_event_overtakes_the_answer_to_a_write_behind_a_refused_read() {
    let (mut home, other) = (home(), State::new(Tree::new()));
    let client = Client::new(ConnId::new(0, 1), SessionId(7), &[]);
    let mut path = Vec::new();
    encode::path_and_watch(&mut path, "/h", true);
    home.answer(&client, Xid(0), OpCode::Exists, &path, Guess::NONE, &mut Vec::new());
    let mut router = Router::new(MEMBER, false, (ORIGIN, 0));
    let (mut body, mut command) = (Vec::new(), Vec::new());
    encode::path_and_watch(&mut body, "/p/x", false);
    let request = |number: u32| RequestId { xid: Xid(number as i32), slot: Slot(number) };
    let read = QueuedRead::new(client.clone(), request(1), OpCode::Exists, body.clone());
    Command::encode(client.session, 0, client.ids(), OpCode::SetData, &body, &mut command);
    let write = ClientInput::Write {
        conn: client.conn,
        request: request(2),
        op: OpCode::SetData,
        command: command.into(),
    };
    for input in [ClientInput::Read(read), write] {
        assert!(router.take(input).is_some(), "it goes to the home group at once");
    }
    router.begin_spread(home.tree().zxid());
    let (mut mail, mut create) = (Outboxes::new(1), Vec::new());
    answer(&mut mail, 1, MISPLACED.code());
    answer(&mut mail, 2, 0);
    body.clear();
    encode::create_open(&mut body, "/h", None, CreateMode::Persistent);
    Command::encode(SessionId::NONE, 5, IdList::NONE, OpCode::Create, &body, &mut create);
    home.tree_mut().begin_entry(Zxid(30));
    home.apply(&Command::decode(&create).unwrap(), &mut mail).result.unwrap();
    router.take_mail(0, &mut mail, (&[], vec![]), home.tree().zxid(), 2);
    let settled = home.tree().zxid();
    let views = [&home, &other].map(|state| Some(GroupView { state, settled, origin: ORIGIN }));
    let mut out = Outboxes::new(1);
    router.work(&views, &NO_HOSTS, Zxid(0), &mut out);
    let told: usize = out.iter_mut().map(|(_, outbox)| outbox.iter().count()).sum();
    assert_eq!(told, 0, "the read waits for its group, and the event for the write behind the read");
}

/// The read is asked for again, and its watch would tell of what the client is yet to be shown.
#[test]
fn a_watch_that_was_set_behind_a_refused_read_closes_the_connection() {
    assert!(is_closed_behind_refused_read(true));
    assert!(!is_closed_behind_refused_read(false));
}

/// A read was passed on, and sets its watch when znodes are spread already: what the client is told of later waits for all groups.
#[test]
fn an_event_of_a_watch_that_was_set_behind_the_first_slots_waits_for_the_other_groups() {
    let (mut home, mut other) = (home(), State::new(Tree::new()));
    let create = |state: &mut State, path: &str, floor: i64, mail: &mut Outboxes| {
        let (mut body, mut command) = (Vec::new(), Vec::new());
        encode::create_open(&mut body, path, None, CreateMode::Persistent);
        Command::encode(SessionId::NONE, 5, IdList::NONE, OpCode::Create, &body, &mut command);
        state.tree_mut().begin_entry(Zxid(floor));
        state.apply(&Command::decode(&command).unwrap(), mail).result.unwrap();
    };
    create(&mut other, "/g", 20, &mut Outboxes::new(1));
    create(&mut home, "/g", 10, &mut Outboxes::new(1));
    let client = Client::new(ConnId::new(0, 1), SessionId(7), &[]);
    let mut path = Vec::new();
    encode::path_and_watch(&mut path, "/h", true);
    let request = RequestId { xid: Xid(1), slot: Slot(1) };
    let mut router = Router::new(MEMBER, false, (ORIGIN, 0));
    let read = QueuedRead::new(client.clone(), request, OpCode::Exists, path.clone());
    assert!(router.take(ClientInput::Read(read)).is_some(), "it goes to the home group at once");
    let told = |router: &mut Router, home: &State| {
        let settled = home.tree().zxid().max(Zxid(20));
        let views = [home, &other].map(|state| Some(GroupView { state, settled, origin: ORIGIN }));
        let mut out = Outboxes::new(1);
        router.work(&views, &NO_HOSTS, Zxid(0), &mut out);
        out.iter_mut().map(|(_, outbox)| outbox.iter().count()).sum::<usize>()
    };
    router.begin_spread(home.tree().zxid());
    assert_eq!(told(&mut router, &home), 0, "home has yet to answer");
    let mut mail = Outboxes::new(1);
    home.answer(&client, Xid(1), OpCode::Exists, &path, Guess::NONE, &mut Vec::new());
    answer(&mut mail, 1, ErrorCode::NoNode.code());
    router.take_mail(0, &mut mail, (&[], vec![]), home.tree().zxid(), 2);
    assert_eq!(told(&mut router, &home), 1, "both groups are further than the answer");
    create(&mut home, "/h", 30, &mut mail);
    router.take_mail(0, &mut mail, (&[], vec![]), home.tree().zxid(), 2);
    assert_eq!(told(&mut router, &home), 0, "the other group may have an earlier event");
}
