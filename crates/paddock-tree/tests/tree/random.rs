//! Random commands, given to the tree, to the model, and to a second tree that goes through a snapshot half-way.

use std::collections::VecDeque;

use paddock_model::{self as model, Call, Model, Question, Wish, acl, dump};
use paddock_proto::jute::Reader;
use paddock_proto::{
    Acl, AclList, Dialect, ErrorCode, GroupsCommand, Id, IdList, OpCode, Request, SessionId, SessionSecret,
    Stat, StreamItem, Zxid,
};
use paddock_tree::{Asker, Command, Outcome, Tree};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::saved::{load, snapshot};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_tree_is_as_the_model_says(calls in calls(60)) {
        let (mut tree, mut model) = (Tree::new(), Model::new());
        for call in calls {
            both(&mut tree, &mut model, &call)?;
        }
        prop_assert_eq!(dump(&tree), model.dump());
    }

    #[test]
    fn long_removals_in_portions_are_as_the_model_says(calls in calls(60), at_once in 1..4usize) {
        let (mut tree, mut model) = (Tree::new(), Model::new());
        for call in calls {
            both_in_portions(&mut tree, &mut model, &call, at_once)?;
        }
        prop_assert_eq!(dump(&tree), model.dump());
    }

    #[test]
    fn what_is_read_is_as_the_model_says(calls in calls(30), asked in prop::collection::vec((question(), ids()), 20)) {
        let (mut tree, mut model) = (Tree::new(), Model::new());
        for call in calls {
            both(&mut tree, &mut model, &call)?;
        }
        for (question, ids) in asked {
            let asker = model::Asker { session: SessionId(1), ids };
            prop_assert_eq!(ask(&tree, &question, &asker), model.read(&question, &asker), "{:?}", question);
        }
    }

    #[test]
    fn a_snapshot_is_of_the_moment_it_began(calls in calls(80), begin in 0..60usize, slice in 1..4usize) {
        let mut tree = Tree::new();
        let mut calls = VecDeque::from(calls);
        calls.drain(..begin).for_each(|call| drop(run(&mut tree, &call)));
        let at_begin = dump(&tree);
        let blocks = snapshot(&mut tree, slice, |tree| {
            calls.pop_front().into_iter().for_each(|call| drop(run(tree, &call)));
        });
        prop_assert_eq!(dump(&load(&blocks)), at_begin);
    }

    #[test]
    fn a_restored_tree_goes_on_as_if_nothing_had_been(calls in calls(80), restore in 0..70usize) {
        let (mut first, mut second) = (Tree::new(), Tree::new());
        for (n, call) in calls.iter().enumerate() {
            if n == restore {
                second = load(&snapshot(&mut second, 5, |_| {}));
            }
            prop_assert_eq!(run(&mut first, call), run(&mut second, call));
        }
        prop_assert_eq!(dump(&first), dump(&second));
        let (first_blocks, second_blocks) = (snapshot(&mut first, 5, |_| {}), snapshot(&mut second, 5, |_| {}));
        prop_assert_eq!(dump(&load(&first_blocks)), dump(&load(&second_blocks)));
        // The header lists the ACLs in use: one that is not released when its last znode goes would make it longer.
        let header_len = snapshot(&mut load(&first_blocks), 5, |_| {})[0].len();
        prop_assert_eq!((first_blocks[0].len(), second_blocks[0].len()), (header_len, header_len));
    }
}

/// Equal cases in every run, so that a failure is the fault of the change that shows it; `PROPTEST_CASES` asks for
/// more of them.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 1500,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The whole outcome, as text.
fn run(tree: &mut Tree, call: &Call) -> String {
    let bytes = call.encode();
    let command = Command::decode(&bytes).expect("a command comes back as encoded").taken_by(call.member);
    format!("{:?}", tree.apply(&command))
}

fn both(tree: &mut Tree, model: &mut Model, call: &Call) -> Result<(), TestCaseError> {
    let bytes = call.encode();
    let command = Command::decode(&bytes).expect("a command comes back as encoded").taken_by(call.member);
    same(&tree.apply(&command), &model.apply(call), call)
}

/// Both trees, where a transaction removes `at_once` znodes at most.
fn both_in_portions(
    tree: &mut Tree,
    model: &mut Model,
    call: &Call,
    at_once: usize,
) -> Result<(), TestCaseError> {
    let bytes = call.encode();
    let command = Command::decode(&bytes).expect("a command comes back as encoded").taken_by(call.member);
    if let Some(mut removal) = tree.long_removal(&command, at_once) {
        let refusal = loop {
            match removal.look_up(tree) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = refusal {
            prop_assert_eq!(model.remove_portion(call, at_once), None);
            return same(&tree.refuse(error), &model.apply(call), call);
        }
        while let Some(outcome) = removal.remove_portion(tree) {
            let Some(expected) = model.remove_portion(call, at_once) else {
                return Err(TestCaseError::fail(format!("{call:?} has a portion too many")));
            };
            same(&outcome, &expected, call)?;
        }
    }
    prop_assert_eq!(model.remove_portion(call, at_once), None);
    same(&tree.apply(&command), &model.apply(call), call)
}

fn same(outcome: &Outcome<'_>, expected: &Outcome<'_>, call: &Call) -> Result<(), TestCaseError> {
    prop_assert_eq!(&outcome.result, &expected.result, "{:?}", call);
    prop_assert_eq!(&outcome.changes[..], &expected.changes[..], "{:?}", call);
    prop_assert_eq!(outcome.zxid, expected.zxid);
    Ok(())
}

fn ask(tree: &Tree, question: &Question, asker: &model::Asker) -> Result<model::Answer, ErrorCode> {
    let (mut body, mut reply, ids) = (Vec::new(), Vec::new(), IdList::encode(&asker.ids));
    question.put_body(false, &mut body);
    let ids = IdList::decode(&mut Reader::new(&ids)).expect("ids come back as encoded");
    let Ok(Request::Read(read)) = Request::decode(question.op(), &body, Dialect::default()) else {
        panic!("{question:?} is no read")
    };
    let asker = Asker { session: asker.session, ids, ..Asker::NOBODY };
    tree.read(&read, &asker, &mut reply)?;
    Ok(question.decode_answer(&mut Reader::new(&reply)).expect("a reply can be read"))
}

/// Two sessions begin; then anything.
pub(crate) fn calls(count: usize) -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(call(), count).prop_map(|calls| {
        let begin = |id| Call {
            session: SessionId(id),
            member: 1,
            time_ms: 0,
            ids: Vec::new(),
            enforces_quotas: false,
            wish: Wish::CreateSession { timeout_ms: 1000 },
        };
        let mut time_ms = 0;
        let mut calls = [vec![begin(1), begin(2)], calls].concat();
        for call in &mut calls {
            time_ms += call.time_ms;
            call.time_ms = time_ms;
        }
        calls
    })
}

fn call() -> impl Strategy<Value = Call> {
    let session = prop_oneof![8 => 1..=2i64, 1 => Just(0), 1 => Just(3)].prop_map(SessionId);
    let member = prop_oneof![12 => Just(1), 1 => Just(2)];
    let circumstances = (session, member, 0..20i64, ids(), any::<bool>());
    (circumstances, wish()).prop_map(|((session, member, time_ms, ids, enforces_quotas), wish)| Call {
        session,
        member,
        time_ms,
        ids,
        enforces_quotas,
        wish,
    })
}

fn ids() -> impl Strategy<Value = Vec<Id>> {
    let ip = || Id::new("ip", "10.0.0.1");
    select(vec![
        vec![ip()],
        vec![ip(), Id::new("digest", "ann:1")],
        vec![ip(), Id::new("digest", "ann:1"), Id::new("digest", "bob:2")],
        vec![Id::new("super", "")],
        vec![ip(), Id::new("sasl", "ann")],
        vec![Id::new("x509", "CN=bob"), Id::new("sasl", "bob")],
    ])
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        24 => step(),
        4 => prop::collection::vec(step(), 0..6).prop_map(Wish::Multi),
        1 => prop::collection::vec(prop_oneof![9 => step(), 1 => set_acl()], 0..6).prop_map(Wish::Multi),
        2 => set_acl(),
        2 => path().prop_map(|path| Wish::DeleteContainer { path }),
        1 => Just(Wish::CreateSession { timeout_ms: 3000 }),
        1 => Just(Wish::CloseSession),
        2 => (any::<bool>(), any::<bool>(), prop::option::of(0..3_u32)).prop_map(
            |(is_keyed, is_asking, moves)| Wish::ResumeSession { timeout_ms: 2000, is_keyed, is_asking, moves }
        ),
        1 => Just(Wish::BindSession),
        1 => any::<u8>().prop_map(|byte| Wish::SetSecret { secret: SessionSecret([byte; 32]) }),
        2 => members(),
        1 => (1..=3i64).prop_map(|id| Wish::ExpireSession { session: SessionId(id) }),
        1 => Just(Wish::Broken),
    ]
}

fn members() -> impl Strategy<Value = Wish> {
    let line = |id: u8, role: &str| format!("server.{id}=h{id}:1:2:{role};9");
    let list = || {
        let lines = vec![
            String::new(),
            line(1, "participant"),
            line(2, "observer"),
            [line(1, "participant"), line(2, "participant")].join(","),
            [line(2, "observer"), line(3, "participant")].join("\n"),
            "server.1=h1:1:1;9".to_owned(),
            "server.1=h1:1:2".to_owned(),
            "server.300=h3:1:2;9".to_owned(),
            "junk".to_owned(),
        ];
        select(lines)
    };
    let maybe = || prop::option::of(list());
    let ids = select(vec!["", "1", "2,3", "300", "x"]).prop_map(str::to_owned);
    let error = select(vec![None, None, Some(ErrorCode::NewConfigNoQuorum)]);
    prop_oneof![
        2 => list().prop_map(|members| Wish::FoundEnsemble { cluster: 7, members }),
        3 => (maybe(), prop::option::of(ids), prop::option::of(list()), -1..3i64).prop_map(
            |(joining, leaving, new_members, version)| Wish::Reconfig { joining, leaving, new_members, version }
        ),
        2 => error.prop_map(|error| Wish::SettleReconfig { error }),
        1 => between_groups(),
    ]
}

fn between_groups() -> impl Strategy<Value = Wish> {
    let item = StreamItem::SplitPoint { path: "/a", acl: Some(AclList::OPEN) };
    let commands = vec![
        GroupsCommand::Split { path: "/a" },
        GroupsCommand::Join { path: "/a" },
        GroupsCommand::Acknowledge { group: 1, number: 1 },
        GroupsCommand::Item { number: 1, decided: Zxid(7), item },
    ];
    select(commands).prop_map(|command| {
        let mut body = Vec::new();
        command.encode(&mut body);
        Wish::BetweenGroups { body }
    })
}

/// Boxed in parts: a strategy with all of them in it would be too large for the stack of a test.
fn step() -> impl Strategy<Value = Wish> {
    prop_oneof![
        10 => create().boxed(),
        4 => (path(), version()).prop_map(|(path, version)| Wish::Delete { path, version }),
        4 => (path(), data(), version())
            .prop_map(|(path, data, version)| Wish::SetData { path, data, version }),
        1 => (path(), version()).prop_map(|(path, version)| Wish::Check { path, version }),
        4 => extended().boxed(),
    ]
}

fn extended() -> impl Strategy<Value = Wish> {
    prop_oneof![
        (path(), version()).prop_map(|(path, version)| Wish::CheckNotExists { path, version }),
        (path(), version(), stat()).prop_map(|(path, version, stat)| Wish::CheckStat { path, version, stat }),
        (path(), version()).prop_map(|(path, version)| Wish::TryRemove { path, version }),
        (path(), select(vec![0, 1, 2, 4, u32::MAX]))
            .prop_map(|(path, nodes_max)| Wish::RemoveRecursive { path, nodes_max }),
    ]
}

fn create() -> impl Strategy<Value = Wish> {
    use OpCode::{Create, Create2, CreateContainer, CreateIfNotExists, CreateTtl};
    // Mostly what clients send, now and then what does not fit together.
    let kind = prop_oneof![
        8 => select(vec![(Create, 0), (Create2, 0), (Create, 1), (Create2, 2), (Create, 3), (CreateContainer, 4)]),
        3 => (Just(CreateTtl), 5..=6),
        2 => (Just(CreateIfNotExists), 0..=1),
        1 => (select(vec![Create, Create2, CreateContainer, CreateTtl, CreateIfNotExists]), -1..=7),
    ];
    let ttl_ms = select(vec![1, 10, 10, 10, 0, -1, 0xff_ffff_ffff, 0x100_0000_0000]);
    (kind, path(), data(), acl_list(), ttl_ms).prop_map(|((op, flags), path, data, acl, ttl_ms)| {
        Wish::Create { op, path, data, acl, flags, ttl_ms }
    })
}

fn set_acl() -> impl Strategy<Value = Wish> {
    (path(), acl_list(), version()).prop_map(|(path, acl, version)| Wish::SetAcl { path, acl, version })
}

fn question() -> impl Strategy<Value = Question> {
    let prefix = select(vec!["", "/", " ", "/a", "/a/b", "/b"]).prop_map(str::to_owned);
    prop_oneof![
        4 => path().prop_map(|path| Question::Exists { path }),
        4 => path().prop_map(|path| Question::GetData { path }),
        4 => path().prop_map(|path| Question::GetAcl { path }),
        4 => path().prop_map(|path| Question::GetChildren { path }),
        4 => path().prop_map(|path| Question::GetChildren2 { path }),
        2 => path().prop_map(|path| Question::GetAllChildrenNumber { path }),
        1 => prefix.prop_map(|prefix| Question::GetEphemerals { prefix }),
        1 => prop::collection::vec(
            path().prop_map(|path| if path.len() % 2 == 0 {
                Question::GetData { path }
            } else {
                Question::GetChildren { path }
            }), 0..4).prop_map(Question::MultiRead),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let name = || select(vec!["/a", "/b"]);
    prop_oneof![
        6 => name().prop_map(str::to_owned),
        6 => (name(), name()).prop_map(|(a, b)| format!("{a}{b}")),
        3 => (name(), name(), name()).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        1 => name().prop_map(|a| format!("{a}0000000001")),
        1 => name().prop_map(|a| format!("{a}/")),
        3 => (prop_oneof![Just(""), Just("/a"), Just("/a/b"), Just("/zookeeper")],
              select(vec!["", "/zookeeper_limits", "/zookeeper_stats"]))
            .prop_map(|(of, what)| format!("/zookeeper/quota{of}{what}")),
        1 => select(vec!["", "/", "a", "//a", "/a//b", "/a/.", "/..", "/\0", "/a\u{1}", "/zookeeper",
              "/zookeeper/config"]).prop_map(str::to_owned),
    ]
}

fn data() -> impl Strategy<Value = Option<Vec<u8>>> {
    let limits = "count=2,bytes=2=;byteHardLimit=4;countHardLimit=3";
    select(vec![None, Some(""), Some("x"), Some("count=4,bytes=-7"), Some(limits), Some("junk")])
        .prop_map(|data| data.map(|data| data.as_bytes().to_vec()))
}

/// Little is asked for: a znode with all of it would never be there.
fn stat() -> impl Strategy<Value = Stat> {
    let field = || select(vec![-1, -1, -1, 0, 1]);
    (field(), field(), field(), field()).prop_map(|(cversion, aversion, data_length, num_children)| Stat {
        czxid: Zxid(-1),
        mzxid: Zxid(-1),
        ctime_ms: -1,
        mtime_ms: -1,
        version: -1,
        cversion,
        aversion,
        ephemeral_owner: SessionId(-1),
        data_length,
        num_children,
        pzxid: Zxid(-1),
    })
}

fn version() -> impl Strategy<Value = i32> {
    prop_oneof![4 => Just(-1), 3 => 0..3i32, 1 => Just(-2)]
}

fn acl_list() -> impl Strategy<Value = Vec<Acl>> {
    let open = || vec![Acl::open()];
    let rare = select(vec![
        vec![],
        vec![acl(31, "auth", "")],
        vec![acl(31, "auth", ""), acl(31, "digest", "ann:1"), acl(31, "auth", "")],
        vec![acl(31, "digest", "ann:1"), acl(1, "world", "anyone")],
        vec![acl(15, "world", "anyone"), acl(15, "world", "anyone")],
        vec![Acl::open(), Acl::open()],
        vec![acl(30, "world", "anyone"), acl(1, "digest", "bob:2")],
        vec![acl(31, "world", "nobody")],
        vec![acl(31, "digest", "ann")],
        vec![acl(31, "sasl", "ann")],
        vec![acl(31, "x509", "CN=ann")],
        vec![acl(31, "x509", "ann")],
        vec![acl(31, "super", "")],
    ]);
    prop_oneof![5 => Just(open()), 1 => rare]
}
