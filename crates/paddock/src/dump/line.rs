//! Lines of a dump: each is a JSON object, the first one says what the others are.
//!
//! Always true: the lines of the same tree are the same, whatever server they come from, and sorted as a walk meets the znodes: a parent
//! before its children, children by the bytes of their names. Paths are those below the znode that was dumped, which is `/`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use paddock_client::{Acl, Id, Perms, SessionId, Stat};
use paddock_tree::ZnodeKind;
use serde::{Deserialize, Serialize};

use crate::diff::seen::{Seen, creates};

/// Version of this form.
const VERSION: u32 = 1;
/// Letters of permissions, in the order in which they are written.
const PERMISSIONS: [(char, i32); 5] = [('c', 4), ('d', 8), ('r', 1), ('w', 2), ('a', 16)];

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DumpHead {
    paddock_dump: u32,
    /// The znode that was dumped.
    pub(crate) path: String,
}

/// A znode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DumpLine {
    pub(crate) path: String,
    /// Data that are text. Without these and without `base64` they are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Entries as `scheme:id:perms`; without it everybody may do everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    acl: Option<Vec<String>>,
    /// The number that the next sequential child gets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) counter: i64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) container: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_ms: Option<i64>,
    /// Session of an ephemeral znode, which is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ephemeral: Option<String>,
    /// Numbers that a load cannot bring back.
    #[serde(skip_serializing_if = "Option::is_none")]
    stat: Option<DumpedStat>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DumpedStat {
    czxid: String,
    mzxid: String,
    pzxid: String,
    ctime_ms: i64,
    mtime_ms: i64,
    version: i32,
    cversion: i32,
    aversion: i32,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

impl DumpHead {
    pub(crate) fn new(path: &str) -> DumpHead {
        DumpHead { paddock_dump: VERSION, path: path.to_owned() }
    }

    pub(crate) fn parse(line: &str) -> Result<DumpHead, String> {
        let head: DumpHead = serde_json::from_str(line).map_err(|error| {
            format!("this is no dump: expected {{\"paddock_dump\":{VERSION},…}} ({error})")
        })?;
        match head.paddock_dump {
            VERSION => Ok(head),
            newer => Err(format!("a dump of version {newer}; this build reads version {VERSION}")),
        }
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("it has text and numbers alone")
    }
}

impl DumpLine {
    /// The line of a znode in a dump of `root`.
    pub(crate) fn of(znode: &Seen, root: &str, with_stat: bool) -> DumpLine {
        let (text, base64) = match &znode.data {
            None => (None, None),
            Some(data) => match readable(data) {
                Some(text) => (Some(text.to_owned()), None),
                None => (None, Some(STANDARD.encode(data))),
            },
        };
        let owner = znode.stat.ephemeral_owner;
        let is_ephemeral = match znode.kind {
            Some(kind) => matches!(kind, ZnodeKind::Ephemeral(_)),
            None => owner != SessionId::NONE && owner != SessionId(i64::MIN),
        };
        let ttl_ms = match znode.kind {
            Some(ZnodeKind::Ttl { ms }) => Some(ms),
            _ => None,
        };
        DumpLine {
            path: below(&znode.path, root).to_owned(),
            text,
            base64,
            acl: (znode.acl != [Acl::open()]).then(|| znode.acl.iter().map(acl_text).collect()),
            counter: creates(&znode.stat),
            container: matches!(znode.kind, Some(ZnodeKind::Container)),
            ttl_ms,
            ephemeral: is_ephemeral.then(|| format!("{:#x}", owner.0)),
            stat: with_stat.then(|| DumpedStat::of(&znode.stat)),
        }
    }

    pub(crate) fn parse(line: &str) -> Result<DumpLine, String> {
        let parsed: DumpLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let is_path = parsed.path == "/" || parsed.path.starts_with('/') && !parsed.path.ends_with('/');
        if !is_path {
            return Err(format!("{:?} is no path below the znode that was dumped", parsed.path));
        }
        if parsed.text.is_some() && parsed.base64.is_some() {
            return Err("text and base64: only one can be the data".to_owned());
        }
        parsed.data()?;
        parsed.acl()?;
        Ok(parsed)
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("it has text and numbers alone")
    }

    /// The data; `None` for null.
    pub(crate) fn data(&self) -> Result<Option<Vec<u8>>, String> {
        match (&self.text, &self.base64) {
            (Some(text), _) => Ok(Some(text.clone().into_bytes())),
            (None, Some(base64)) => {
                STANDARD.decode(base64).map(Some).map_err(|error| format!("base64: {error}"))
            }
            (None, None) => Ok(None),
        }
    }

    pub(crate) fn acl(&self) -> Result<Vec<Acl>, String> {
        let Some(entries) = &self.acl else { return Ok(vec![Acl::open()]) };
        entries
            .iter()
            .map(|entry| {
                parse_acl(entry).ok_or_else(|| {
                    format!("acl: {entry:?} is none: expected scheme:id:perms, as in world:anyone:cdrwa")
                })
            })
            .collect()
    }

    /// The path of this znode in a load to `root`.
    pub(crate) fn path_in(&self, root: &str) -> String {
        match (root, self.path.as_str()) {
            (root, "/") => root.to_owned(),
            ("/", path) => path.to_owned(),
            (root, path) => format!("{root}{path}"),
        }
    }
}

impl DumpedStat {
    fn of(stat: &Stat) -> DumpedStat {
        let hexadecimal = |zxid: paddock_client::Zxid| format!("{:#x}", zxid.0);
        DumpedStat {
            czxid: hexadecimal(stat.czxid),
            mzxid: hexadecimal(stat.mzxid),
            pzxid: hexadecimal(stat.pzxid),
            ctime_ms: stat.ctime_ms,
            mtime_ms: stat.mtime_ms,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
        }
    }
}

/// Data that are text for people.
fn readable(data: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(data).ok()?;
    let is_strange = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    (!text.contains(is_strange)).then_some(text)
}

/// The path of a znode from the one that is dumped.
fn below<'a>(path: &'a str, root: &str) -> &'a str {
    match path.strip_prefix(root) {
        _ if root == "/" => path,
        Some("") => "/",
        Some(rest) => rest,
        None => path,
    }
}

fn acl_text(acl: &Acl) -> String {
    let letters = PERMISSIONS.iter().filter(|(_, bit)| acl.perms.0 & bit != 0).map(|(letter, _)| letter);
    format!("{}:{}:{}", acl.id.scheme, acl.id.id, letters.collect::<String>())
}

fn parse_acl(entry: &str) -> Option<Acl> {
    let (scheme, rest) = entry.split_once(':')?;
    // An id may have colons.
    let (id, letters) = rest.rsplit_once(':')?;
    let bit = |letter| PERMISSIONS.iter().find(|(known, _)| *known == letter).map(|(_, bit)| *bit);
    let perms = letters.chars().map(bit).try_fold(0, |perms, bit| bit.map(|bit| perms | bit))?;
    Some(Acl { perms: Perms(perms), id: Id::new(scheme, id) })
}

#[cfg(test)]
mod tests {
    use paddock_client::Zxid;

    use super::*;

    fn seen(path: &str, data: Option<&[u8]>) -> Seen {
        let none = Zxid(0);
        let stat = Stat {
            czxid: none,
            mzxid: none,
            ctime_ms: 5,
            mtime_ms: 6,
            version: 1,
            cversion: 7,
            aversion: 0,
            ephemeral_owner: SessionId::NONE,
            data_length: 0,
            num_children: 3,
            pzxid: none,
        };
        Seen {
            path: path.to_owned(),
            data: data.map(<[u8]>::to_vec),
            acl: vec![Acl::open()],
            stat,
            kind: None,
        }
    }

    #[track_caller]
    fn check(znode: &Seen, expected: &str) {
        let line = DumpLine::of(znode, "/a", false);
        assert_eq!(line.to_text(), expected);
        let parsed = DumpLine::parse(expected).expect("what is written can be read");
        assert_eq!(parsed, line);
        assert_eq!((parsed.data().unwrap(), parsed.acl().unwrap()), (znode.data.clone(), znode.acl.clone()));
    }

    #[test]
    fn a_line_is_for_people_and_comes_back_as_it_was() {
        check(&seen("/a/b", Some(b"x\ny")), r#"{"path":"/b","text":"x\ny","counter":5}"#);
        check(&seen("/a", None), r#"{"path":"/","counter":5}"#);
        check(&seen("/a/b", Some(b"")), r#"{"path":"/b","text":"","counter":5}"#);
        check(&seen("/a/b", Some(b"\x00\xff")), r#"{"path":"/b","base64":"AP8=","counter":5}"#);
        check(&seen("/a/b", Some(b"\x1b[2J")), r#"{"path":"/b","base64":"G1sySg==","counter":5}"#);
        let mut secured = seen("/a/b", None);
        secured.acl = vec![Acl { perms: Perms(5), id: Id::new("digest", "ann:x=") }];
        secured.kind = Some(ZnodeKind::Ttl { ms: 60_000 });
        check(&secured, r#"{"path":"/b","acl":["digest:ann:x=:cr"],"counter":5,"ttl_ms":60000}"#);
        let mut passing = seen("/a/b", None);
        passing.kind = Some(ZnodeKind::Container);
        check(&passing, r#"{"path":"/b","counter":5,"container":true}"#);
        let mut ephemeral = seen("/a/b", None);
        ephemeral.stat.ephemeral_owner = SessionId(0x17);
        check(&ephemeral, r#"{"path":"/b","counter":5,"ephemeral":"0x17"}"#);
        assert!(
            DumpLine::of(&ephemeral, "/a", true)
                .to_text()
                .contains(r#""mtime_ms":6,"version":1,"cversion":7"#)
        );
    }

    #[test]
    fn paths_move_with_their_root() {
        let line = |path: &str| DumpLine { path: path.to_owned(), ..DumpLine::default() };
        let loaded = |path: &str, root: &str| line(path).path_in(root);
        assert_eq!(
            [loaded("/", "/b"), loaded("/x", "/b"), loaded("/x", "/"), loaded("/", "/")],
            ["/b", "/b/x", "/x", "/"]
        );
        assert_eq!(DumpLine::of(&seen("/x/y", None), "/", false).path, "/x/y");
    }

    #[test]
    fn what_is_no_line_is_refused_with_the_reason() {
        for (line, told) in [
            (r#"{"path":"b"}"#, "no path"),
            (r#"{"path":"/b/"}"#, "no path"),
            (r#"{"path":"/b","text":"x","base64":"eA=="}"#, "only one"),
            (r#"{"path":"/b","base64":"x"}"#, "base64"),
            (r#"{"path":"/b","acl":["world"]}"#, "scheme:id:perms"),
            (r#"{"path":"/b","data":"x"}"#, "unknown field"),
            ("", "EOF"),
        ] {
            let error = DumpLine::parse(line).expect_err(line);
            assert!(error.contains(told), "{line}: {error}");
        }
        assert_eq!(DumpHead::parse(&DumpHead::new("/a").text()), Ok(DumpHead::new("/a")));
        assert!(DumpHead::parse(r#"{"path":"/b"}"#).unwrap_err().contains("no dump"));
        assert!(DumpHead::parse(r#"{"paddock_dump":2,"path":"/b"}"#).unwrap_err().contains("version 2"));
    }
}
