//! Scripts: lines in, what became of them out. `UPDATE_SCRIPTS=1` writes the answers anew; review the difference.
//!
//! A script is a list of stories, with a blank line between them: some lines, `---`, the answers. One tree lives through
//! a whole script. `ScriptLine` knows the commands and what may follow them. A stat is printed as zxids of creation, change and
//! children, times of creation and change, versions of data, children and ACL.

use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;

use paddock_model::{Call, Wish, dump};
use paddock_proto::jute::Reader;
use paddock_proto::{
    Acl, ChildFilter, ErrorCode, EventKind, Id, IdList, MultiResult, OpCode, Perms, Read, SessionId,
    SessionSecret, Stat, WriteReply, Zxid,
};
use paddock_tree::{Asker, Change, Command, Outcome, Tree};

use crate::saved::{load, snapshot};

#[test]
fn scripts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<_> = std::fs::read_dir(&directory)
        .expect("list tests/scripts")
        .map(|entry| entry.expect("list tests/scripts").path())
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "there are scripts");
    for path in scripts {
        let script = std::fs::read_to_string(&path).expect("read a script");
        let played = play(&script);
        if std::env::var_os("UPDATE_SCRIPTS").is_some() {
            std::fs::write(&path, played).expect("write a script");
        } else {
            assert!(
                played == script,
                "{} plays differently:\n{}",
                path.display(),
                difference(&script, &played)
            );
        }
    }
}

/// The script with the answers that it gets now.
fn play(script: &str) -> String {
    let mut stage = ScriptStage { tree: Tree::new(), time_ms: 1000, enforces_quotas: false };
    let mut stories = Vec::new();
    for story in script.trim().split("\n\n") {
        let lines = story.split("\n---").next().expect("a story has lines");
        let mut played = lines.to_owned();
        let mut lines: VecDeque<&str> = lines.lines().filter(|line| !line.starts_with('#')).collect();
        if !lines.is_empty() {
            played.push_str("\n---\n");
        }
        while let Some(line) = lines.pop_front() {
            let mut within = Vec::new();
            while let Some(inner) = lines.front().and_then(|line| line.strip_prefix("  ")) {
                within.push(ScriptLine::parse(inner));
                lines.pop_front();
            }
            stage.play(&ScriptLine::parse(line), &within, &mut played);
        }
        stories.push(played.trim_end().to_owned());
    }
    stories.join("\n\n") + "\n"
}

fn difference(expected: &str, played: &str) -> String {
    let mut lines = expected.lines().zip(played.lines()).enumerate();
    match lines.find(|(_, (expected, played))| expected != played) {
        Some((n, (expected, played))) => {
            format!("line {}\n  expected {expected}\n  got      {played}", n + 1)
        }
        None => "one is longer".to_owned(),
    }
}

struct ScriptStage {
    tree: Tree,
    time_ms: i64,
    enforces_quotas: bool,
}

impl ScriptStage {
    fn play(&mut self, line: &ScriptLine, within: &[ScriptLine], out: &mut String) {
        match line.verb() {
            "time" => self.time_ms = line.word(1).parse().expect("a time"),
            "quotas" => self.enforces_quotas = line.word(1) == "enforced",
            "overruns" => {
                for overrun in self.tree.take_quota_overruns() {
                    let (path, limit) = (overrun.path, overrun.limit);
                    let kind = if overrun.is_hard { "hard" } else { "soft" };
                    put(out, format_args!("{path} {kind} {limit:?} {} of {}", overrun.value, overrun.max));
                }
                for (namespace, used) in self.tree.quota_use() {
                    put(out, format_args!("{namespace}: {used:?}"));
                }
            }
            "restart" => {
                let before = dump(&self.tree);
                self.tree = load(&snapshot(&mut self.tree, 2, |_| {}));
                assert_eq!(dump(&self.tree), before, "a restart changes nothing");
            }
            "counts" => {
                let (nodes, ephemerals, bytes) =
                    (self.tree.node_count(), self.tree.ephemeral_count(), self.tree.data_bytes());
                put(out, format_args!("znodes={nodes} ephemerals={ephemerals} bytes={bytes}"));
            }
            "sessions" => {
                for (session, timeout_ms) in self.tree.sessions() {
                    put(out, format_args!("session {} timeout={timeout_ms}", session.0));
                }
            }
            "rights" => {
                for (session, is_keyed, proven) in dump(&self.tree).rights {
                    let password = if is_keyed { "keyed" } else { "zookeeper's" };
                    let proven = proven.map(|id| format!(" {}:{}", id.scheme, id.id)).unwrap_or_default();
                    put(out, format_args!("session {} {password}{proven}", session.0));
                }
            }
            "owners" => {
                for (session, paths) in self.tree.ephemerals() {
                    put(out, format_args!("session {}: {}", session.0, paths.join(" ")));
                }
            }
            "expired" => {
                let mut paths = self.tree.expired_nodes(self.time_ms, usize::MAX);
                paths.sort();
                put(out, format_args!("expired [{}]", paths.join(" ")));
            }
            "exists" | "get" | "getacl" | "ls" | "ls2" | "ephemerals" | "count" | "multiread"
            | "filtered" | "contents" | "below" => {
                self.ask(line, within, out);
            }
            _ => self.write(line, within, out),
        }
    }

    fn write(&mut self, line: &ScriptLine, within: &[ScriptLine], out: &mut String) {
        let wish = match line.verb() {
            "multi" => Wish::Multi(within.iter().map(ScriptLine::wish).collect()),
            _ => line.wish(),
        };
        let (session, ids) = (line.session(), line.ids());
        let bytes = Call {
            session,
            member: 0,
            time_ms: self.time_ms,
            ids,
            enforces_quotas: self.enforces_quotas,
            wish,
        }
        .encode();
        let command = Command::decode(&bytes).expect("a command comes back as encoded");
        let outcome = self.tree.apply(&command);
        put_outcome(&outcome, out);
    }

    fn ask(&self, line: &ScriptLine, within: &[ScriptLine], out: &mut String) {
        let ids = IdList::encode(&line.ids());
        let ids = IdList::decode(&mut Reader::new(&ids)).expect("ids come back as encoded");
        let asker = Asker { session: line.session(), ids, ..Asker::NOBODY };
        let read = match line.verb() {
            "multiread" => Read::MultiRead(within.iter().map(ScriptLine::read).collect()),
            _ => line.read(),
        };
        let mut reply = Vec::new();
        match self.tree.read(&read, &asker, &mut reply) {
            Ok(()) => {
                let mut reader = Reader::new(&reply);
                put_reply(&read, &mut reader, out);
                assert!(reader.is_empty(), "a reply has nothing behind it");
            }
            Err(error) => put(out, format_args!("error {error:?}")),
        }
    }
}

/// A verb, words, and `key=value` pairs; `"quotes"` keep blanks and know `\0`.
struct ScriptLine(Vec<String>);

impl ScriptLine {
    fn parse(line: &str) -> ScriptLine {
        let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
        for c in line.replace("\\0", "\0").chars() {
            match c {
                '"' => (quoted, any) = (!quoted, true),
                ' ' if !quoted => {
                    if any {
                        words.push(std::mem::take(&mut word));
                    }
                    any = false;
                }
                c => {
                    word.push(c);
                    any = true;
                }
            }
        }
        if any {
            words.push(word);
        }
        ScriptLine(words)
    }

    fn verb(&self) -> &str {
        &self.0[0]
    }

    fn word(&self, n: usize) -> &str {
        self.0.get(n).unwrap_or_else(|| panic!("{:?} lacks word {n}", self.0))
    }

    fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(move |word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn number<T: std::str::FromStr>(&self, key: &str, otherwise: T) -> T {
        self.values(key).next().map_or(otherwise, |value| value.parse().ok().expect("a number"))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.values(key).next().map(str::to_owned)
    }

    fn session(&self) -> SessionId {
        match self.verb() {
            "open" | "close" => SessionId(self.word(1).parse().expect("a session")),
            _ => SessionId(self.number("session", 0)),
        }
    }

    /// `id=scheme:id`, any number of them.
    fn ids(&self) -> Vec<Id> {
        let id =
            |value: &str| value.split_once(':').map(|(scheme, id)| Id::new(scheme, id)).expect("scheme:id");
        self.values("id").map(id).collect()
    }

    /// `acl=perms:scheme:id`, any number of them; `acl=none` for an empty list.
    fn acl(&self) -> Vec<Acl> {
        let mut entries = Vec::new();
        for value in self.values("acl").filter(|&value| value != "none") {
            let mut parts = value.splitn(3, ':');
            let perms =
                parts.next().expect("perms").chars().map(|c| 1 << "rwcda".find(c).expect("a perm")).sum();
            let (scheme, id) = (parts.next().expect("a scheme"), parts.next().expect("an id"));
            entries.push(Acl { perms: Perms(perms), id: Id::new(scheme, id) });
        }
        if self.values("acl").next().is_none() { vec![Acl::open()] } else { entries }
    }

    /// The word after the path.
    fn data(&self) -> Option<Vec<u8>> {
        Some(self.word(2)).filter(|&data| data != "null").map(|data| data.as_bytes().to_vec())
    }

    /// Flags that a client would send for the verb and the words `ephemeral` and `sequential`.
    fn mode(&self) -> i32 {
        let says = |word: &str| i32::from(self.0.iter().any(|other| other == word));
        match self.verb() {
            "container" => 4,
            "ttl" => 5 + says("sequential"),
            _ => says("ephemeral") + 2 * says("sequential"),
        }
    }

    fn wish(&self) -> Wish {
        let path = || self.word(1).to_owned();
        match self.verb() {
            "open" => Wish::CreateSession { timeout_ms: self.number("timeout", 30000) },
            "close" => Wish::CloseSession,
            "resume" => Wish::ResumeSession {
                timeout_ms: self.number("timeout", 30000),
                is_keyed: self.0.iter().any(|word| word == "keyed"),
                is_asking: self.0.iter().any(|word| word == "asking"),
                moves: self.text("moves").map(|moves| moves.parse().expect("a number of moves")),
            },
            "bind" => Wish::BindSession,
            "secret" => {
                Wish::SetSecret { secret: SessionSecret([self.number("byte", 1); SessionSecret::BYTES]) }
            }
            "create" | "create2" | "container" | "ttl" | "create-if-not-exists" => Wish::Create {
                op: match self.verb() {
                    "create" => OpCode::Create,
                    "create2" => OpCode::Create2,
                    "container" => OpCode::CreateContainer,
                    "create-if-not-exists" => OpCode::CreateIfNotExists,
                    _ => OpCode::CreateTtl,
                },
                path: path(),
                data: self.data(),
                acl: self.acl(),
                flags: self.number("flags", self.mode()),
                ttl_ms: self.number("ms", -1),
            },
            "delete" => Wish::Delete { path: path(), version: self.number("version", -1) },
            "reap" => Wish::DeleteContainer { path: path() },
            "set" => Wish::SetData { path: path(), data: self.data(), version: self.number("version", -1) },
            "setacl" => Wish::SetAcl { path: path(), acl: self.acl(), version: self.number("version", -1) },
            "check" => Wish::Check { path: path(), version: self.number("version", -1) },
            "check-not-exists" => Wish::CheckNotExists { path: path(), version: self.number("version", -1) },
            "check-stat" => {
                Wish::CheckStat { path: path(), version: self.number("version", -1), stat: self.stat() }
            }
            "try-remove" => Wish::TryRemove { path: path(), version: self.number("version", -1) },
            "remove-recursive" => {
                Wish::RemoveRecursive { path: path(), nodes_max: self.number("max", u32::MAX) }
            }
            "found" => Wish::FoundEnsemble { cluster: 7, members: self.word(1).replace(' ', "\n") },
            "reconfig" => Wish::Reconfig {
                joining: self.text("joining"),
                leaving: self.text("leaving"),
                new_members: self.text("members"),
                version: self.number("version", -1),
            },
            "settle" => Wish::SettleReconfig { error: None },
            "broken" => Wish::Broken,
            other => panic!("{other} is no command"),
        }
    }

    /// Stat that is expected; -1 where the line says nothing.
    fn stat(&self) -> Stat {
        let zxid = |key| Zxid(self.number(key, -1));
        Stat {
            czxid: zxid("czxid"),
            mzxid: zxid("mzxid"),
            ctime_ms: self.number("ctime", -1),
            mtime_ms: self.number("mtime", -1),
            version: self.number("dataversion", -1),
            cversion: self.number("cversion", -1),
            aversion: self.number("aversion", -1),
            ephemeral_owner: SessionId(self.number("owner", -1)),
            data_length: self.number("length", -1),
            num_children: self.number("children", -1),
            pzxid: zxid("pzxid"),
        }
    }

    fn filter(&self) -> ChildFilter {
        match self.values("filter").next() {
            None => ChildFilter::All,
            Some("persistent") => ChildFilter::Persistent,
            Some("ephemeral") => ChildFilter::Ephemeral,
            Some(other) => panic!("{other} is no filter"),
        }
    }

    fn read(&self) -> Read<'_> {
        let watch = false;
        match self.verb() {
            "exists" => Read::Exists { path: self.word(1), watch },
            "get" => Read::GetData { path: self.word(1), watch },
            "getacl" => Read::GetAcl { path: self.word(1) },
            "ls" => Read::GetChildren { path: self.word(1), watch },
            "ls2" => Read::GetChildren2 { path: self.word(1), watch },
            "ephemerals" => Read::GetEphemerals { prefix: self.values("prefix").next() },
            "count" => Read::GetAllChildrenNumber { path: self.word(1) },
            "filtered" => Read::FilteredList { path: self.word(1), watch, filter: self.filter() },
            "contents" => Read::FilteredListWithStatsAndData {
                path: self.word(1),
                watch,
                filter: self.filter(),
                with_stats: self.0.iter().any(|word| word == "stats"),
                with_data: self.0.iter().any(|word| word == "data"),
            },
            "below" => Read::ListRecursive { path: self.word(1), nodes_max: self.number("max", u32::MAX) },
            other => panic!("{other} is no question"),
        }
    }
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("a string takes all");
}

fn put_outcome(outcome: &Outcome<'_>, out: &mut String) {
    let zxid = outcome.zxid.0;
    match &outcome.result {
        Ok(WriteReply::Multi(results)) => {
            put(out, format_args!("ok zxid={zxid} multi"));
            for result in results {
                match result {
                    MultiResult::Done(op, reply) => put(out, format_args!("  {op:?}{}", reply_text(reply))),
                    MultiResult::Failed(error) => put(out, format_args!("  failed {}", error_text(*error))),
                }
            }
        }
        Ok(reply) => put(out, format_args!("ok zxid={zxid}{}", reply_text(reply))),
        Err(error) => put(out, format_args!("error {error:?} zxid={zxid}")),
    }
    if !outcome.changes.is_empty() {
        let changes: Vec<String> = outcome.changes.iter().map(change_text).collect();
        put(out, format_args!("changed {}", changes.join(", ")));
    }
}

fn error_text(error: Option<ErrorCode>) -> String {
    error.map_or("through no fault of its own".to_owned(), |error| format!("{error:?}"))
}

fn reply_text(reply: &WriteReply<'_>) -> String {
    match reply {
        WriteReply::Done => String::new(),
        WriteReply::Created { path } => format!(" path={path}"),
        WriteReply::CreatedWithStat { path, stat } => format!(" path={path} {}", stat_text(stat)),
        WriteReply::Changed { stat } => format!(" {}", stat_text(stat)),
        WriteReply::Multi(_) => panic!("a multi holds no multi"),
    }
}

fn change_text(change: &Change<'_>) -> String {
    let what = match change.kind {
        EventKind::NodeCreated => "created",
        EventKind::NodeDeleted => "deleted",
        EventKind::NodeDataChanged => "data",
        EventKind::NodeChildrenChanged => "children",
    };
    match &change.readers {
        None => format!("{} {what}", change.path),
        Some(acl) => format!("{} {what} for [{}]", change.path, acl_text(acl)),
    }
}

fn acl_text(acl: &[Acl]) -> String {
    let perms = |perms: Perms| -> String {
        "rwcda".chars().enumerate().filter(|(n, _)| perms.0 & 1 << n != 0).map(|(_, c)| c).collect()
    };
    let entry = |entry: &Acl| format!("{}:{}:{}", perms(entry.perms), entry.id.scheme, entry.id.id);
    acl.iter().map(entry).collect::<Vec<_>>().join(" ")
}

fn stat_text(stat: &Stat) -> String {
    format!(
        "zxids={}/{}/{} times={}/{} versions={}/{}/{} owner={} length={} children={}",
        stat.czxid.0,
        stat.mzxid.0,
        stat.pzxid.0,
        stat.ctime_ms,
        stat.mtime_ms,
        stat.version,
        stat.cversion,
        stat.aversion,
        stat.ephemeral_owner.0,
        stat.data_length,
        stat.num_children
    )
}

fn put_reply(read: &Read<'_>, r: &mut Reader<'_>, out: &mut String) {
    match read {
        Read::Exists { .. } => put(out, format_args!("{}", stat_text(&Stat::decode(r).expect("a stat")))),
        Read::GetData { .. } => {
            let data = r.buffer().expect("data").map(String::from_utf8_lossy);
            let data = data.map_or("null".to_owned(), |data| format!("\"{data}\""));
            put(out, format_args!("{data} {}", stat_text(&Stat::decode(r).expect("a stat"))));
        }
        Read::GetAcl { .. } => {
            let acl = r.list(Acl::decode).expect("an ACL");
            put(out, format_args!("[{}] {}", acl_text(&acl), stat_text(&Stat::decode(r).expect("a stat"))));
        }
        Read::GetChildren { .. } | Read::GetChildren2 { .. } | Read::GetEphemerals { .. } => {
            let mut names = r.strings().expect("names");
            names.sort_unstable();
            put(out, format_args!("[{}]", names.join(" ")));
            if let Read::GetChildren2 { .. } = read {
                put(out, format_args!("{}", stat_text(&Stat::decode(r).expect("a stat"))));
            }
        }
        Read::GetAllChildrenNumber { .. } => put(out, format_args!("{}", r.i32().expect("a number"))),
        Read::FilteredList { .. } => {
            let mut names = r.strings().expect("names");
            names.sort_unstable();
            put(out, format_args!("[{}]", names.join(" ")));
            put(out, format_args!("{}", stat_text(&Stat::decode(r).expect("a stat"))));
        }
        Read::FilteredListWithStatsAndData { .. } => put_contents(r, out),
        Read::ListRecursive { .. } => {
            let paths = r.strings().expect("paths");
            let depth = |path: &&str| path.matches('/').count();
            assert!(paths.is_sorted_by_key(depth), "the nearest come first: {paths:?}");
            let mut paths = paths;
            paths.sort_unstable_by_key(|path| (depth(path), *path));
            put(out, format_args!("[{}]", paths.join(" ")));
        }
        Read::MultiRead(reads) => put_multi_reply(reads, r, out),
    }
}

/// The children in order, each with what is told of it.
fn put_contents(r: &mut Reader<'_>, out: &mut String) {
    let names = r.strings().expect("names");
    put(out, format_args!("{}", stat_text(&Stat::decode(r).expect("a stat"))));
    let stats = r.list(Stat::decode).expect("stats");
    let data = r.list(Reader::buffer).expect("data");
    assert!(stats.is_empty() || stats.len() == names.len(), "all stats or none");
    assert!(data.is_empty() || data.len() == names.len(), "all data or none");
    let mut lines: Vec<String> = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let stat = stats.get(n).map_or(String::new(), |stat| format!(" {}", stat_text(stat)));
        let text = |data: &Option<&[u8]>| match data {
            Some(data) => format!(" \"{}\"", String::from_utf8_lossy(data)),
            None => " null".to_owned(),
        };
        lines.push(format!("  {name}{}{stat}", data.get(n).map_or(String::new(), text)));
    }
    lines.sort();
    lines.iter().for_each(|line| put(out, format_args!("{line}")));
}

fn put_multi_reply(reads: &[Read<'_>], r: &mut Reader<'_>, out: &mut String) {
    for read in reads {
        let (op, error) = multi_header(r).expect("as many results as reads");
        if op == -1 {
            assert_eq!(r.i32(), Ok(error), "an error is said twice");
            put(out, format_args!("error {}", error_text(ErrorCode::from_code(error))));
        } else {
            put_reply(read, r, out);
        }
    }
    assert_eq!(multi_header(r), None, "nothing after the last result");
}

/// Type and error; nothing at the end.
fn multi_header(r: &mut Reader<'_>) -> Option<(i32, i32)> {
    let (op, is_end, error) =
        (r.i32().expect("a type"), r.bool().expect("an end"), r.i32().expect("an error"));
    (!is_end).then_some((op, error))
}
