//! Two front ends on one store: they plan writes on their own state, the store takes or refuses the transactions by their
//! compares, and both install the revisions.

#[cfg(feature = "on-etcd")]
mod gateway;
mod stores;

use paddock_etcd::{Keys, Limits, Mirror, MirrorError, PlanError, Reply};
use paddock_proto::jute::Writer;
use paddock_proto::{Acl, ErrorCode, IdList, MultiResult, OpCode, SessionId, WriteReply, Zxid};
use paddock_state::{Outboxes, State};
use paddock_tree::Command;

use stores::{MemoryStore, MirrorStore};

const ANN: SessionId = SessionId(7001);
const BOB: SessionId = SessionId(7002);

/// One front end: its state, and how far it has read.
struct Front {
    state: State,
    mirror: Mirror,
    installed: i64,
    time_ms: i64,
    transactions: u32,
}

impl Front {
    /// Reads all keys, three in a page.
    fn start(number: u64, keys: &Keys, store: &mut dyn MirrorStore) -> Front {
        let mirror = Mirror::new(keys.clone(), number, Limits::default());
        let mut front = Front { state: State::default(), mirror, installed: 0, time_ms: 0, transactions: 0 };
        let (revision, pairs) = store.read(&keys.range());
        for page in pairs.chunks(3) {
            front.install(revision, page).expect("a page is installed");
        }
        front.installed = revision;
        front
    }

    fn install(&mut self, revision: i64, events: &[paddock_etcd::KeyEvent]) -> Result<(), MirrorError> {
        self.mirror.install(&mut self.state, revision, events, &mut Outboxes::new(1)).map(drop)
    }

    /// Installs everything up to `revision`.
    fn follow(&mut self, keys: &Keys, store: &mut dyn MirrorStore, revision: i64) {
        for (revision, events) in store.events(&keys.range(), self.installed + 1, revision) {
            self.install(revision, &events).expect("a revision is installed");
        }
        self.installed = revision;
    }

    /// One transaction for these commands; `None` if another front end was faster.
    fn try_write(
        &mut self,
        keys: &Keys,
        store: &mut dyn MirrorStore,
        session: SessionId,
        wishes: &[Wish],
    ) -> Option<Vec<Reply>> {
        self.time_ms += 10;
        let bytes: Vec<Vec<u8>> = wishes.iter().map(|wish| wish.encode(session, self.time_ms)).collect();
        let commands: Vec<Command<'_>> = bytes.iter().map(|bytes| command(bytes)).collect();
        self.transactions += 1;
        let plan = self.mirror.plan(self.state.tree_mut(), &commands, self.transactions).expect("a plan");
        let revision = store.transact(&plan.transaction)?;
        self.follow(keys, store, revision);
        Some(plan.replies(Zxid(revision)))
    }
}

fn command(bytes: &[u8]) -> Command<'_> {
    Command::decode(bytes).expect("a command comes back as encoded").taken_by(Mirror::MEMBER)
}

/// A write in words.
enum Wish {
    Begin,
    Resume,
    Close,
    Expire(SessionId),
    Create(&'static str, i32),
    Set(&'static str, i32),
    SetAcl(&'static str),
    Delete(&'static str),
    Multi(Vec<Wish>),
}

impl Wish {
    fn op(&self) -> OpCode {
        match self {
            Wish::Begin => OpCode::CreateSession,
            Wish::Resume => OpCode::ResumeSession,
            Wish::Close => OpCode::CloseSession,
            Wish::Expire(_) => OpCode::ExpireSession,
            Wish::Create(..) => OpCode::Create,
            Wish::Set(..) => OpCode::SetData,
            Wish::SetAcl(_) => OpCode::SetAcl,
            Wish::Delete(_) => OpCode::Delete,
            Wish::Multi(_) => OpCode::Multi,
        }
    }

    fn encode(&self, session: SessionId, time_ms: i64) -> Vec<u8> {
        let session = if matches!(self, Wish::Expire(_)) { SessionId::NONE } else { session };
        let mut bytes = Vec::new();
        Command::encode(session, time_ms, IdList::NONE, self.op(), &self.body(), &mut bytes);
        bytes
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Wish::Begin | Wish::Resume => body.put_i32(6000),
            Wish::Close => {}
            Wish::Expire(session) => body.put_i64(session.0),
            Wish::Create(path, flags) => {
                body.put_string(path);
                body.put_buffer(Some(b"born"));
                body.put_count(1);
                Acl::open().encode(&mut body);
                body.put_i32(*flags);
            }
            Wish::Set(path, version) => {
                body.put_string(path);
                body.put_buffer(Some(b"set"));
                body.put_i32(*version);
            }
            Wish::SetAcl(path) => {
                body.put_string(path);
                body.put_count(1);
                Acl { perms: paddock_proto::Perms::READ, ..Acl::open() }.encode(&mut body);
                body.put_i32(-1);
            }
            Wish::Delete(path) => {
                body.put_string(path);
                body.put_i32(-1);
            }
            Wish::Multi(wishes) => {
                for wish in wishes {
                    body.put_i32(wish.op().code());
                    body.put_bool(false);
                    body.put_i32(-1);
                    body.extend(wish.body());
                }
                body.put_i32(-1);
                body.put_bool(true);
                body.put_i32(-1);
            }
        }
        body
    }
}

/// Two front ends, and a story for them.
struct MirrorStage<'a> {
    keys: Keys,
    store: &'a mut dyn MirrorStore,
    fronts: [Front; 2],
}

impl MirrorStage<'_> {
    /// One write of a front end; the other one follows, and both states are compared with a third one that starts now.
    fn write(&mut self, front: usize, session: SessionId, wish: Wish) -> Reply {
        let [reply] = self.write_all(front, session, &[wish]).try_into().expect("one reply");
        reply
    }

    fn write_all(&mut self, front: usize, session: SessionId, wishes: &[Wish]) -> Vec<Reply> {
        let replies = self.fronts[front].try_write(&self.keys, self.store, session, wishes);
        self.agree();
        replies.expect("nobody was faster")
    }

    fn agree(&mut self) {
        let revision = self.store.revision();
        for front in &mut self.fronts {
            front.follow(&self.keys, self.store, revision);
        }
        let third = Front::start(3, &self.keys, self.store);
        let [first, second] = self.fronts.each_ref().map(|front| front.state.tree());
        for path in ["/", "/a", "/a/b", "/a/e", "/a/s-0000000001", "/q"] {
            let znode = first.znode(path);
            assert_eq!((&znode, &znode), (&second.znode(path), &third.state.tree().znode(path)), "{path}");
            assert_eq!(first.stat(path), third.state.tree().stat(path), "{path}");
        }
        assert_eq!(first.node_count(), third.state.tree().node_count());
        assert_eq!(first.data_bytes(), third.state.tree().data_bytes());
    }
}

fn play(store: &mut dyn MirrorStore, prefix: &str) {
    let keys = Keys::new(prefix);
    let fronts = [1, 2].map(|number| Front::start(number, &keys, store));
    let mut stage = MirrorStage { keys, store, fronts };
    znodes(&mut stage);
    sessions(&mut stage);
    races(&mut stage);
    leases(&mut stage);
}

fn znodes(stage: &mut MirrorStage<'_>) {
    stage.store.grant(ANN.0);
    stage.store.grant(BOB.0);
    assert_eq!(stage.write(0, ANN, Wish::Begin), Ok(WriteReply::Done));
    assert_eq!(stage.write(0, ANN, Wish::Create("/a", 0)), Ok(created("/a")));
    let at = stage.store.revision();
    let Ok(WriteReply::Changed { stat }) = stage.write(0, ANN, Wish::Set("/a", 0)) else { panic!("no stat") };
    assert_eq!((stat.czxid, stat.mzxid, stat.version), (Zxid(at), Zxid(stage.store.revision()), 1));
    assert_eq!(stage.fronts[1].state.tree().stat("/a"), Some(stat));

    assert_eq!(stage.write(0, ANN, Wish::Set("/a", 7)), Err(ErrorCode::BadVersion));
    assert_eq!(stage.write(0, ANN, Wish::Delete("/b")), Err(ErrorCode::NoNode));
    let together = [Wish::Create("/a/s-", 2), Wish::Create("/a/s-", 2)];
    let names = ["/a/s-0000000000", "/a/s-0000000001"].map(|path| Ok(created(path)));
    assert_eq!(stage.write_all(0, ANN, &together), names);
    let steps = vec![Wish::Create("/a/b", 0), Wish::Delete("/a/s-0000000000"), Wish::Set("/a/b", 0)];
    let Ok(WriteReply::Multi(results)) = stage.write(0, ANN, Wish::Multi(steps)) else { panic!("no multi") };
    let now = Zxid(stage.store.revision());
    assert!(matches!(&results[2], MultiResult::Done(OpCode::SetData, WriteReply::Changed { stat })
        if stat.czxid == now && stat.mzxid == now));
    let failing = vec![Wish::Create("/q", 0), Wish::Delete("/a")];
    let failed = [None, Some(ErrorCode::NotEmpty)].map(MultiResult::Failed).to_vec();
    assert_eq!(stage.write(0, ANN, Wish::Multi(failing)), Ok(WriteReply::Multi(failed)));
    assert_eq!(stage.fronts[0].state.tree().stat("/q"), None);
}

fn sessions(stage: &mut MirrorStage<'_>) {
    assert_eq!(stage.write(1, BOB, Wish::Create("/x", 0)), Err(ErrorCode::SessionExpired));
    assert_eq!(stage.write(1, ANN, Wish::Create("/x", 0)), Err(ErrorCode::SessionMoved));
    assert_eq!(stage.write(1, ANN, Wish::Resume), Ok(WriteReply::Done));
    assert_eq!(stage.write(0, ANN, Wish::Create("/x", 0)), Err(ErrorCode::SessionMoved));
    assert_eq!(stage.write(1, ANN, Wish::Create("/a/e", 1)), Ok(created("/a/e")));
    assert_eq!(stage.write(1, ANN, Wish::Create("/a/e/f", 0)), Err(ErrorCode::NoChildrenForEphemerals));
    assert_eq!(stage.write(1, ANN, Wish::Close), Ok(WriteReply::Done));
    let tree = stage.fronts[0].state.tree();
    assert_eq!((tree.session_count(), tree.ephemeral_count()), (0, 0));
    assert_eq!(tree.stat("/a").map(|stat| stat.pzxid), Some(Zxid(stage.store.revision())));
}

fn races(stage: &mut MirrorStage<'_>) {
    for (front, session) in [(0, ANN), (1, BOB)] {
        assert_eq!(stage.write(front, session, Wish::Begin), Ok(WriteReply::Done));
    }
    let MirrorStage { keys, store, fronts: [first, second] } = stage;
    let wish = || [Wish::Create("/a/r", 0)];
    assert_eq!(first.try_write(keys, *store, ANN, &wish()), Some(vec![Ok(created("/a/r"))]));
    assert_eq!(second.try_write(keys, *store, BOB, &wish()), None, "its state is of the past");
    let revision = store.revision();
    second.follow(keys, *store, revision);
    assert_eq!(second.try_write(keys, *store, BOB, &wish()), Some(vec![Err(ErrorCode::NodeExists)]));

    // An ACL leaves no zxid behind, and still no client may write on a state of before.
    let revision = store.revision();
    first.follow(keys, *store, revision);
    first.try_write(keys, *store, ANN, &[Wish::SetAcl("/a/r")]).expect("nobody was faster");
    assert_eq!(second.try_write(keys, *store, BOB, &[Wish::Set("/a/r", -1)]), None);
    let revision = store.revision();
    second.follow(keys, *store, revision);
    assert_eq!(
        second.try_write(keys, *store, BOB, &[Wish::Set("/a/r", -1)]),
        Some(vec![Err(ErrorCode::NoAuth)])
    );
    // Neither is a refusal believed that rests on a state of before.
    first.try_write(keys, *store, ANN, &[Wish::Create("/n", 0)]).expect("nobody was faster");
    assert_eq!(second.try_write(keys, *store, BOB, &[Wish::Create("/n/x", 0)]), None);
    // Writes that have nothing in common pass each other.
    for path in ["/a/b", "/a/s-0000000001"] {
        assert!(second.try_write(keys, *store, BOB, &[Wish::Set(path, -1)]).expect("is free")[0].is_ok());
    }
    assert!(first.try_write(keys, *store, ANN, &[Wish::Create("/q", 0)]).expect("is free")[0].is_ok());
    stage.agree();
}

fn leases(stage: &mut MirrorStage<'_>) {
    assert_eq!(stage.write(1, BOB, Wish::Create("/a/e", 1)), Ok(created("/a/e")));
    stage.store.revoke(BOB.0);
    let revision = stage.store.revision();
    stage.fronts[0].follow(&stage.keys, stage.store, revision);
    let ended = |front: &Front| front.mirror.ended().collect::<Vec<_>>();
    assert_eq!(ended(&stage.fronts[0]), [BOB]);
    // The front end that served the session has not heard of it yet.
    let late = stage.fronts[1].try_write(&stage.keys, stage.store, BOB, &[Wish::Set("/q", -1)]);
    assert_eq!(late, None);
    let third = Front::start(3, &stage.keys, stage.store);
    assert_eq!((ended(&third), third.state.tree().ephemeral_count()), (vec![BOB], 1));

    assert_eq!(stage.write(0, SessionId::NONE, Wish::Expire(BOB)), Ok(WriteReply::Done));
    for front in &stage.fronts {
        assert_eq!((ended(front), front.state.tree().ephemeral_count()), (vec![], 0));
        let pzxid = front.state.tree().stat("/a").map(|stat| stat.pzxid);
        assert_eq!(pzxid, Some(Zxid(stage.store.revision())));
    }
}

fn created(path: &'static str) -> WriteReply<'static> {
    WriteReply::Created { path: path.into() }
}

#[test]
fn two_front_ends_agree_on_a_store_in_memory() {
    play(&mut MemoryStore::default(), "/paddock");
}

/// `ETCD_BIN` says where etcd is.
#[cfg(feature = "on-etcd")]
#[test]
fn two_front_ends_agree_on_etcd() {
    let program = std::env::var("ETCD_BIN").expect("ETCD_BIN names etcd's program");
    play(&mut gateway::Etcd::start(&program), "/paddock");
}

#[test]
fn a_transaction_above_a_limit_names_the_flag_of_etcd() {
    let limits = Limits { operations_max: 2, bytes_max: 1 << 20, ..Limits::default() };
    let plan = |limits, wish: Wish| {
        let mirror = Mirror::new(Keys::new("/p"), 1, limits);
        let (mut state, bytes) = (State::default(), wish.encode(SessionId::NONE, 1));
        mirror.plan(state.tree_mut(), &[command(&bytes)], 1).map(|plan| plan.transaction.operations.len())
    };
    assert_eq!(plan(limits, Wish::Create("/a", 0)), Ok(2));
    let two = Wish::Multi(vec![Wish::Create("/a", 0), Wish::Create("/b", 0)]);
    let above = plan(limits, two).unwrap_err();
    assert_eq!(above, PlanError::TooManyOperations { operations: 3, max: 2 });
    assert!(above.to_string().contains("--max-txn-ops"));
    let above = plan(Limits { bytes_max: 40, ..limits }, Wish::Create("/a", 0)).unwrap_err();
    assert!(above.to_string().contains("--max-request-bytes"), "{above}");
}

#[test]
fn a_key_of_somebody_else_below_the_prefix_is_named() {
    let mut front = Front::start(1, &Keys::new("/p"), &mut MemoryStore::default());
    let event = |key: &str, value: &[u8]| {
        [paddock_etcd::KeyEvent { key: key.into(), value: Some(value.to_vec()), mod_revision: 5 }]
    };
    assert_eq!(front.install(5, &event("/p/x", b"")), Err(MirrorError::Stranger("/p/x".into())));
    let wrong = front.install(5, &event("/p/znodes/x", b"\x09")).unwrap_err();
    assert!(wrong.to_string().contains("/p/znodes/x"), "{wrong}");
}
