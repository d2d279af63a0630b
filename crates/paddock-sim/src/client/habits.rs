//! Habits of a client. Few names, so that clients meet; every piece of data is written once, so that it tells where
//! it comes from.

mod spread;

use crate::ask::Ask;
use crate::numbering::Numbering;
use paddock_model::{Model, Question, Wish, acl};
use paddock_proto::{Acl, AddWatchMode, Extensions, MemberRole, OpCode, WatcherKind};

use crate::names;
use crate::time::SimDuration;
use paddock_chance::Chance;

const TOPS: [&str; 4] = ["/a", "/b", "/c", "/d"];
const NAMES: [&str; 3] = ["x", "y", "z"];
const BOXES: [&str; 2] = ["/box-1", "/box-2"];
/// With this many znodes there is more deleted than created.
const ZNODES_MAX: usize = 80;

#[derive(Clone, Debug)]
pub(crate) struct Habits {
    /// Writes of a thousand requests.
    pub(crate) writes: u64,
    /// Numbers by which it calls the members.
    pub(crate) numbering: Numbering,
    /// Syncs of a thousand other requests: those ask for what is newest, and nothing else.
    syncs: u64,
    /// Watches of a thousand reads that can set one.
    watches: u64,
    /// Requests that are under way, at most.
    pub(crate) depth: u64,
    /// All of them are asked for at once.
    pub(crate) is_hasty: bool,
    /// Between bursts of requests it thinks about this long.
    pub(crate) pause: SimDuration,
    /// The client moves to another member, without need, one time in this number.
    pub(crate) moves: u64,
    /// The client knows one member, to which it comes back.
    pub(crate) knows_one: bool,
    /// As `moves`, for closing its session, and for vanishing.
    pub(crate) closes: u64,
    pub(crate) vanishes: u64,
    /// The session timeout it asks for.
    pub(crate) timeout_ms: i32,
    /// True if it can do with a session that only reads, while nothing can be written.
    pub(crate) may_only_read: bool,
    /// The user and password that it shows, if any.
    pub(crate) credentials: Option<&'static str>,
    /// Extensions of ClickHouse's dialect that it asks for; none for ZooKeeper's dialect.
    pub(crate) extensions: Extensions,
    /// Some time after it has connected, and not before anything else.
    pub(crate) identifies_late: bool,
    /// The client asks for lists more than for anything else, and changes what they say and who may read them.
    lists: bool,
    /// The client asks for znodes that are spread over groups more than for others.
    is_spread: bool,
    /// The client sets watches that stay, where znodes are spread over groups.
    keeps_watches: bool,
    /// Now and then it shows another unknown user, until it may not.
    pub(crate) shows_strangers: bool,
    /// The client changes members, and knows of this many machines.
    changes_members_of: Option<u8>,
    /// The machines from this one on come and go; those before it stay as they are.
    pub(crate) changes_from: u8,
}

impl Habits {
    pub(crate) fn throw(tick_ms: u64, chance: &mut Chance) -> Habits {
        Habits {
            writes: *chance.pick(&[0, 100, 300, 500, 700, 900]),
            numbering: Numbering::Machines,
            syncs: *chance.pick(&[50, 150, 150, 600]),
            watches: *chance.pick(&[0, 100, 500]),
            depth: *chance.pick(&[1, 1, 4, 16, 64]),
            is_hasty: false,
            pause: SimDuration::millis(*chance.pick(&[50, 50, 100, 100, 300, 300, 1000, 5000])),
            moves: *chance.pick(&[30, 100, 1000]),
            knows_one: false,
            closes: *chance.pick(&[100, 300, 1000]),
            vanishes: *chance.pick(&[200, 1000, 10_000]),
            timeout_ms: (tick_ms * chance.between(1, 20)) as i32,
            may_only_read: chance.one_in(3),
            credentials: chance.one_in(3).then_some(names::ANN),
            extensions: Extensions::default(),
            identifies_late: false,
            lists: false,
            is_spread: false,
            keeps_watches: false,
            shows_strangers: false,
            changes_members_of: None,
            changes_from: 1,
        }
    }

    /// A client that waits for each answer, and has the patience to wait for a member that sleeps.
    pub(crate) fn asks_what_is_newest(&mut self, tick_ms: u64) {
        (self.depth, self.syncs, self.pause) = (self.depth.min(4), 600, SimDuration::millis(50));
        self.timeout_ms = (20 * tick_ms) as i32;
        (self.moves, self.closes) = (1000, 1000);
    }

    /// Its session ends soon after it was heard last, and it holds something meanwhile.
    pub(crate) fn stay_with_short_timeout(&mut self, tick_ms: u64) {
        self.timeout_ms = (2 * tick_ms) as i32;
        (self.moves, self.closes, self.vanishes) = (1000, 1000, 10_000);
        self.may_only_read = false;
    }

    pub(crate) fn move_all_the_time(&mut self) {
        (self.moves, self.pause) = (10, self.pause.min(SimDuration::millis(300)));
    }

    /// Much is under way, and the end of its session, when it moves.
    pub(crate) fn leave_much_behind(&mut self) {
        self.move_all_the_time();
        (self.depth, self.closes) = (16, 10);
    }

    /// Much is under way, mostly lists, and changes of what they say.
    pub(crate) fn ask_for_lists(&mut self, tick_ms: u64) {
        (self.lists, self.writes, self.watches) = (true, self.writes.clamp(100, 500), self.watches.max(300));
        (self.depth, self.pause) = (self.depth.clamp(4, 16), SimDuration::millis(50));
        (self.closes, self.timeout_ms) = (30, (10 * tick_ms) as i32);
    }

    /// Znodes are spread over groups.
    pub(crate) fn spread(&mut self) {
        self.is_spread = true;
        // A session that is known to one member has no part in the order of all.
        self.may_only_read = false;
        self.extensions = Extensions::default();
        self.timeout_ms = self.timeout_ms.max(1000);
    }

    /// Watches of several znodes, and of whole subtrees, tell all that happens there.
    pub(crate) fn keep_watches(&mut self) {
        self.keeps_watches = true;
    }

    /// Many writes are under way together, from one group to the next.
    pub(crate) fn write_everywhere(&mut self) {
        (self.writes, self.depth, self.is_hasty) = (950, self.depth.max(16), true);
    }

    /// A client that speaks ClickHouse's dialect, in which events have no zxid: it sets no watches.
    pub(crate) fn speak_clickhouse(&mut self, chance: &mut Chance) {
        let mut asks = || chance.one_in(2);
        self.extensions = Extensions { wide_xids: asks(), compression: asks(), tracing: asks() };
        self.may_only_read = false;
        self.watches = 0;
    }

    /// Habits of an operator, who may do everything, and changes members now and then.
    pub(crate) fn of_operator(self, machines: u8, chance: &mut Chance) -> Habits {
        Habits {
            depth: *chance.pick(&[1, 1, 4]),
            pause: SimDuration::millis(*chance.pick(&[100, 500, 2000])),
            vanishes: 10_000,
            credentials: Some(names::SUPER),
            changes_members_of: Some(machines),
            ..self
        }
    }

    /// True for an operator, who changes members now and then.
    pub(crate) fn changes_members(&self) -> bool {
        self.changes_members_of.is_some()
    }

    /// Habits of a user, who leaves the members as they are.
    pub(crate) fn of_user(self) -> Habits {
        Habits { changes_members_of: None, ..self }
    }

    /// The next thing to ask for. `seen` is what is there now; `mark` is new each time.
    pub(crate) fn ask(&self, chance: &mut Chance, seen: &Model, mark: &str) -> Ask {
        let speaks_clickhouse = self.extensions != Extensions::default();
        let mut mind = Mind { chance, seen, mark, lists: self.lists, numbering: self.numbering };
        let first = self.changes_from;
        if let Some(machines) = self.changes_members_of
            && mind.chance.one_in(5)
        {
            return Ask::Write(mind.change_members(first, machines));
        }
        if self.is_spread {
            return mind.ask_spread((self.writes, self.syncs, self.watches), self.keeps_watches);
        }
        if mind.chance.permille(self.writes) {
            if speaks_clickhouse && mind.chance.one_in(20) {
                return Ask::Write(mind.remove_recursively());
            }
            return Ask::Write(mind.write());
        }
        if mind.chance.permille(self.syncs) {
            return Ask::Sync;
        }
        match mind.chance.below(100) {
            _ if speaks_clickhouse => mind.read_one(0),
            0..90 => mind.read(self.watches),
            90..92 => Ask::WhoAmI,
            92..95 => Ask::AddWatch { path: mind.path(), mode: mind.mode() },
            95..98 => Ask::CheckWatches { path: mind.path(), kind: mind.kind() },
            _ => Ask::RemoveWatches { path: mind.path(), kind: mind.kind() },
        }
    }
}

/// Thoughts of a client about one request.
struct Mind<'a> {
    chance: &'a mut Chance,
    seen: &'a Model,
    mark: &'a str,
    lists: bool,
    numbering: Numbering,
}

impl Mind<'_> {
    fn write(&mut self) -> Wish {
        if self.lists && self.chance.one_in(4) {
            let acls = [acl(31, "digest", &ann()), Acl::open(), Acl::open()];
            let (path, acl) = (self.chance.pick(&TOPS).to_string(), vec![self.chance.pick(&acls).clone()]);
            return Wish::SetAcl { path, acl, version: -1 };
        }
        match self.chance.below(100) {
            0..12 => {
                let count = self.chance.below(5);
                Wish::Multi((0..count).map(|_| self.step()).collect())
            }
            12..16 => Wish::SetAcl { path: self.path(), acl: self.acl(), version: self.version() },
            16 => Wish::Broken,
            17 => Wish::DeleteContainer { path: self.path() },
            _ => self.step(),
        }
    }

    /// Removes a subtree, unless it is larger than the client expects.
    fn remove_recursively(&mut self) -> Wish {
        let path = if self.chance.one_in(2) { self.chance.pick(&TOPS).to_string() } else { self.path() };
        Wish::RemoveRecursive { path, nodes_max: *self.chance.pick(&[1, 3, 5, 100]) }
    }

    /// Some join or get another role, some leave; now and then all are named anew.
    fn change_members(&mut self, first: u8, machines: u8) -> Wish {
        let mut some = |most: u64| -> Vec<u8> {
            let count = self.chance.below(most + 1);
            (0..count).map(|_| self.chance.between(first.into(), machines.into()) as u8).collect()
        };
        let (joining, leaving, all) = (some(2), some(1), some(machines.into()));
        let numbering = self.numbering;
        let mut lines = |mut ids: Vec<u8>| {
            ids.sort_unstable();
            ids.dedup();
            let roles = [MemberRole::Participant, MemberRole::Participant, MemberRole::Observer];
            let lines =
                ids.into_iter().map(|id| names::member(numbering.number(id), *self.chance.pick(&roles)));
            lines.collect::<Vec<String>>().join(",")
        };
        let (joining, all) = (lines(joining), lines(all));
        let ids: Vec<String> = leaving.iter().map(|id| numbering.number(*id).to_string()).collect();
        let leaving = Some(ids.join(",")).filter(|ids| !ids.is_empty());
        let (joining, leaving, new_members) = if self.chance.one_in(5) && first == 1 {
            (None, None, Some(all))
        } else {
            (Some(joining).filter(|lines| !lines.is_empty()), leaving, None)
        };
        Wish::Reconfig { joining, leaving, new_members, version: -1 }
    }

    /// A write that a multi may hold, too.
    fn step(&mut self) -> Wish {
        let crowded = self.seen.len() > ZNODES_MAX;
        match self.chance.below(100) {
            0..45 if !crowded => self.create(),
            0..75 => Wish::SetData { path: self.path(), data: self.data(), version: self.version() },
            75..80 => Wish::Check { path: self.path(), version: self.version() },
            _ => Wish::Delete { path: self.path(), version: self.version() },
        }
    }

    fn create(&mut self) -> Wish {
        use OpCode::{Create, Create2, CreateContainer, CreateTtl};
        let (op, flags, path) = match self.chance.below(20) {
            0..6 => (Create, 0, self.name()),
            6..8 => (Create2, 0, self.name()),
            8..12 => (Create, 1, self.name()),
            12..15 => (Create, 2, format!("{}/s-", self.chance.pick(&TOPS))),
            15..17 => (Create2, 3, format!("{}/e-", self.chance.pick(&TOPS))),
            17 => (CreateContainer, 4, self.chance.pick(&BOXES).to_string()),
            18 => (CreateTtl, 5, format!("/ttl-{}", self.chance.below(3))),
            _ => (Create, self.chance.below(8) as i32, self.path()),
        };
        let ttl_ms = self.chance.between(100, 5000) as i64;
        Wish::Create { op, path, data: self.data(), acl: self.acl(), flags, ttl_ms }
    }

    /// Asks for something that has the same answer in all dialects.
    fn read_one(&mut self, watches: u64) -> Ask {
        let path = self.path();
        let question = match self.chance.below(3) {
            0 => Question::Exists { path },
            1 => Question::GetData { path },
            _ => Question::GetChildren2 { path },
        };
        Ask::Read { question, watch: self.chance.permille(watches) }
    }

    fn read(&mut self, watches: u64) -> Ask {
        if self.lists && self.chance.one_in(2) {
            let path = self.chance.pick(&TOPS).to_string();
            let question = match self.chance.one_in(2) {
                true => Question::GetChildren { path },
                false => Question::GetChildren2 { path },
            };
            return Ask::Read { question, watch: self.chance.permille(watches) };
        }
        let path = self.path();
        let question = match self.chance.below(20) {
            0..4 => Question::Exists { path },
            4..10 => Question::GetData { path },
            10..13 => Question::GetChildren { path },
            13..16 => Question::GetChildren2 { path },
            16 => Question::GetAcl { path },
            17 => Question::GetEphemerals { prefix: self.chance.pick(&["", "/", "/a"]).to_string() },
            18 => Question::GetAllChildrenNumber { path },
            _ => Question::MultiRead(vec![
                Question::GetData { path },
                Question::GetChildren { path: self.path() },
            ]),
        };
        Ask::Read { question, watch: self.chance.permille(watches) }
    }

    /// A path that a client may have used, or that is there.
    fn path(&mut self) -> String {
        match self.chance.below(20) {
            0..10 => {
                let paths: Vec<&str> = self.seen.paths().collect();
                self.chance.pick(&paths).to_string()
            }
            10 => self.chance.pick(&["/", "/zookeeper", "/none/at/all", "bad", "/a//b"]).to_string(),
            _ => self.name(),
        }
    }

    fn name(&mut self) -> String {
        let top = match self.chance.below(8) {
            0 => self.chance.pick(&BOXES),
            _ => self.chance.pick(&TOPS),
        };
        match self.chance.below(3) {
            0 => top.to_string(),
            1 => format!("{top}/{}", self.chance.pick(&NAMES)),
            _ => format!("{top}/{}/{}", self.chance.pick(&NAMES), self.chance.pick(&NAMES)),
        }
    }

    fn data(&mut self) -> Option<Vec<u8>> {
        match self.chance.below(30) {
            0 => None,
            // So large that a record needs a segment of its own.
            1 => Some(format!("{}{}", self.mark, " ".repeat(self.chance.between(500, 3000) as usize)).into()),
            _ => Some(self.mark.as_bytes().to_vec()),
        }
    }

    fn version(&mut self) -> i32 {
        if self.chance.one_in(4) { self.chance.below(3) as i32 } else { -1 }
    }

    fn acl(&mut self) -> Vec<Acl> {
        match self.chance.below(30) {
            0 => vec![acl(31, "auth", "")],
            1 => vec![acl(31, "digest", &ann()), acl(1, "world", "anyone")],
            2 => vec![acl(30, "world", "anyone"), acl(1, "digest", &ann())],
            3 => vec![acl(31, "digest", "bob")],
            _ => vec![Acl::open()],
        }
    }

    fn mode(&mut self) -> AddWatchMode {
        *self.chance.pick(&[AddWatchMode::Persistent, AddWatchMode::PersistentRecursive])
    }

    fn kind(&mut self) -> WatcherKind {
        use WatcherKind::{Any, Children, Data, Persistent, PersistentRecursive};
        *self.chance.pick(&[Any, Children, Data, Persistent, PersistentRecursive])
    }
}

/// The identity of [`names::ANN`].
fn ann() -> String {
    names::identities(names::ANN).remove(0).id
}
