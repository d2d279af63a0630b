//! Parts of an answer that several groups give together. Each group is asked for its own, here or at its host.

use std::collections::{BTreeMap, BTreeSet};

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{AddWatchMode, DecodeError, ErrorCode, Perms, Read, Stat, Zxid};
use paddock_state::{Client, ZnodeMarks};
use paddock_tree::{Asker, ChildrenAsOf, Guess, SplitPoint, SplitPoints, Tree, ZnodeKind, allows};

/// A question to one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartQuery {
    /// Children of a split point whose slots lie where they do since the home group's transaction `map`; `is_exact` if what they hold is shown, too.
    Children {
        path: String,
        map: Zxid,
        is_exact: bool,
        watch: bool,
    },
    Data {
        path: String,
    },
    Names {
        path: String,
    },
    /// Ephemerals of the client whose paths begin with this one.
    Ephemerals {
        path: String,
    },
    /// Number of znodes below a path.
    Descendants {
        path: String,
    },
    /// Paths at or below a path, at most `nodes_max`.
    Recursive {
        path: String,
        nodes_max: u32,
    },
    /// Zxids that say whether a watch was missed.
    Marks {
        path: String,
    },
    /// The client is to be told of all that happens to a znode and its children, or to everything at and below it.
    Watch {
        path: String,
        is_recursive: bool,
    },
    /// Share of the group in the quota whose statistics are this znode.
    Counted {
        path: String,
    },
}

/// The answer of one group to a [`PartQuery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupPart {
    Children(ChildrenPart),
    /// The answer to a read of one znode, with the largest stamp that it shows; `None` if it is not this group's.
    Znode(Option<ZnodePart>),
    Paths {
        found: Result<Vec<String>, ErrorCode>,
        zxid: Zxid,
    },
    Number {
        found: Result<i32, ErrorCode>,
        zxid: Zxid,
    },
    /// `None` if it is not this group's.
    Marks(Option<Option<ZnodeMarks>>),
    /// The watch is set.
    Watched,
    /// Znodes, and bytes; `None` if the group knows of no such quota.
    Counted {
        found: Option<(i64, i64)>,
        zxid: Zxid,
    },
}

/// Children of a split point in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildrenPart {
    /// `None` if the group does not know any more how they were.
    pub(crate) children: Option<ChildrenAsOf>,
    /// The last change of children.
    pub(crate) newest: Zxid,
    /// The group has other slots than the map says.
    pub(crate) has_left: bool,
    /// The znodes, if they are shown.
    pub(crate) znodes: BTreeMap<String, ShownChild>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownChild {
    pub(crate) stat: Stat,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) is_ephemeral: bool,
    pub(crate) may_read: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZnodePart {
    pub(crate) shown: Zxid,
    /// Body of the answer.
    pub(crate) answer: Result<Vec<u8>, ErrorCode>,
}

impl PartQuery {
    /// The part of a group with this state. `points` is the map of the home group's replica beside it.
    pub(crate) fn answer(
        &self,
        (group, tree): (u32, &Tree),
        points: &SplitPoints,
        client: &Client,
        as_of: Zxid,
    ) -> GroupPart {
        let asker =
            Asker { session: client.session, ids: client.ids(), dialect: client.dialect, guess: Guess::NONE };
        match self {
            PartQuery::Children { path, map, is_exact, .. } => {
                let point =
                    points.get(path).filter(|point| point.version() == map.0 && point.leaving().is_none());
                let has_slots = point.is_some_and(|point| has_own_slots(group, tree, path, point));
                GroupPart::Children(children(tree, path, (as_of, *is_exact, !has_slots), client))
            }
            PartQuery::Data { path } => {
                GroupPart::Znode(znode(tree, points, path, &Read::GetData { path, watch: false }, &asker))
            }
            PartQuery::Names { path } => {
                GroupPart::Znode(znode(tree, points, path, &Read::GetChildren { path, watch: false }, &asker))
            }
            PartQuery::Ephemerals { path } => {
                let mut body = Vec::new();
                let result = tree.read(&Read::GetEphemerals { prefix: Some(path) }, &asker, &mut body);
                GroupPart::Paths { found: result.map(|()| paths_in(&body)), zxid: tree.zxid() }
            }
            PartQuery::Descendants { path } => {
                let mut body = Vec::new();
                let result = tree.read(&Read::GetAllChildrenNumber { path }, &asker, &mut body);
                let found = result.map(|()| Reader::new(&body).i32().unwrap_or_default());
                GroupPart::Number { found, zxid: tree.zxid() }
            }
            PartQuery::Recursive { path, nodes_max } => {
                let (read, mut body) = (Read::ListRecursive { path, nodes_max: *nodes_max }, Vec::new());
                let result = tree.read(&read, &asker, &mut body);
                GroupPart::Paths { found: result.map(|()| paths_in(&body)), zxid: tree.zxid() }
            }
            PartQuery::Marks { path } => {
                let is_here = points.get(path).is_some() || tree.has_place_of(path);
                GroupPart::Marks(is_here.then(|| ZnodeMarks::of(tree, path, client)))
            }
            PartQuery::Watch { .. } => GroupPart::Watched,
            PartQuery::Counted { path } => {
                GroupPart::Counted { found: tree.counted_for(path), zxid: tree.zxid() }
            }
        }
    }

    pub(crate) fn path(&self) -> &str {
        match self {
            PartQuery::Children { path, .. }
            | PartQuery::Data { path }
            | PartQuery::Names { path }
            | PartQuery::Ephemerals { path }
            | PartQuery::Descendants { path }
            | PartQuery::Recursive { path, .. }
            | PartQuery::Marks { path }
            | PartQuery::Counted { path }
            | PartQuery::Watch { path, .. } => path,
        }
    }

    /// The path that a host is to watch in the group, and the mode in which it does: all that can wake a watch of the client is to come from there.
    pub(crate) fn watched(&self) -> Option<(&str, AddWatchMode)> {
        match self {
            PartQuery::Children { path, watch: true, .. }
            | PartQuery::Marks { path }
            | PartQuery::Watch { path, is_recursive: false } => Some((path, AddWatchMode::Persistent)),
            PartQuery::Watch { path, is_recursive: true } => Some((path, AddWatchMode::PersistentRecursive)),
            _ => None,
        }
    }
}

fn children(
    tree: &Tree,
    path: &str,
    (as_of, is_exact, has_left): (Zxid, bool, bool),
    client: &Client,
) -> ChildrenPart {
    let newest = tree.stat(path).map_or(Zxid(0), |stat| stat.pzxid);
    // Znodes are shown as they are now, so their names have to be, too.
    let children = tree.children_as_of(path, as_of).filter(|one| !is_exact || one.next_change.is_none());
    let shown = children.iter().filter(|_| is_exact).flat_map(|one| &one.names);
    let znodes = shown.filter_map(|name| {
        let path = format!("{path}/{name}");
        let (znode, stat) = (tree.znode(&path)?, tree.stat(&path)?);
        let may_read = allows(&znode.acl, Perms::READ, client.ids());
        let is_ephemeral = matches!(znode.kind, ZnodeKind::Ephemeral(_));
        Some((name.clone(), ShownChild { stat, data: znode.data, is_ephemeral, may_read }))
    });
    let znodes = znodes.collect();
    ChildrenPart { children, newest, has_left, znodes }
}

fn znode(
    tree: &Tree,
    points: &SplitPoints,
    path: &str,
    read: &Read<'_>,
    asker: &Asker<'_>,
) -> Option<ZnodePart> {
    if points.is_leaving(path) || !tree.has_places_of(read) {
        return None;
    }
    let mut body = Vec::new();
    let answer = tree.read(read, asker, &mut body).map(|()| body);
    Some(ZnodePart { shown: tree.shown_by(read), answer })
}

/// True if a group's state has the slots of a split point that are the group's by the map, and no others.
pub(crate) fn has_own_slots(group: u32, tree: &Tree, path: &str, point: &SplitPoint) -> bool {
    let own = |run: &(u16, u16, u32)| run.2 == group;
    group == 0
        || tree.slot_count(path) == point.slots().count(group)
            && point.slots().runs().filter(own).all(|(first, last, _)| tree.has_slots(path, first..=last))
}

fn paths_in(body: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(body);
    let count = reader.count().unwrap_or_default();
    (0..count).map_while(|_| reader.string().ok().map(str::to_owned)).collect()
}

impl PartQuery {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            PartQuery::Children { path, map, is_exact, watch } => {
                out.push(0);
                out.put_string(path);
                out.put_i64(map.0);
                out.put_bool(*is_exact);
                out.put_bool(*watch);
            }
            PartQuery::Data { path } => put_tagged(out, 1, path),
            PartQuery::Names { path } => put_tagged(out, 2, path),
            PartQuery::Ephemerals { path } => put_tagged(out, 3, path),
            PartQuery::Descendants { path } => put_tagged(out, 4, path),
            PartQuery::Recursive { path, nodes_max } => {
                put_tagged(out, 5, path);
                out.put_i32(*nodes_max as i32);
            }
            PartQuery::Marks { path } => put_tagged(out, 6, path),
            PartQuery::Watch { path, is_recursive } => {
                put_tagged(out, 7, path);
                out.put_bool(*is_recursive);
            }
            PartQuery::Counted { path } => put_tagged(out, 8, path),
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<PartQuery, DecodeError> {
        let tag = reader.u8()?;
        let path = reader.string()?.to_owned();
        Ok(match tag {
            0 => {
                let (map, is_exact, watch) = (Zxid(reader.i64()?), reader.bool()?, reader.bool()?);
                PartQuery::Children { path, map, is_exact, watch }
            }
            1 => PartQuery::Data { path },
            2 => PartQuery::Names { path },
            3 => PartQuery::Ephemerals { path },
            4 => PartQuery::Descendants { path },
            5 => PartQuery::Recursive { path, nodes_max: reader.i32()? as u32 },
            6 => PartQuery::Marks { path },
            7 => PartQuery::Watch { path, is_recursive: reader.bool()? },
            8 => PartQuery::Counted { path },
            other => return Err(unknown("question to a group", other)),
        })
    }
}

impl GroupPart {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            GroupPart::Children(part) => {
                out.push(0);
                part.encode(out);
            }
            GroupPart::Znode(part) => {
                out.push(1);
                out.put_bool(part.is_some());
                if let Some(ZnodePart { shown, answer }) = part {
                    out.put_i64(shown.0);
                    put_result(out, answer, |out, body| out.put_buffer(Some(body)));
                }
            }
            GroupPart::Paths { found, zxid } => {
                out.push(2);
                out.put_i64(zxid.0);
                put_result(out, found, |out, paths| put_names(out, paths.iter()));
            }
            GroupPart::Number { found, zxid } => {
                out.push(3);
                out.put_i64(zxid.0);
                put_result(out, found, |out, number| out.put_i32(*number));
            }
            GroupPart::Marks(marks) => {
                out.push(4);
                out.put_bool(marks.is_some());
                let marks = marks.flatten();
                out.put_bool(marks.is_some());
                if let Some(ZnodeMarks { mzxid, pzxid, may_read }) = marks {
                    out.put_i64(mzxid.0);
                    out.put_i64(pzxid.0);
                    out.put_bool(may_read);
                }
            }
            GroupPart::Watched => out.push(5),
            GroupPart::Counted { found, zxid } => {
                out.push(6);
                out.put_i64(zxid.0);
                out.put_bool(found.is_some());
                if let Some((count, bytes)) = found {
                    out.put_i64(*count);
                    out.put_i64(*bytes);
                }
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<GroupPart, DecodeError> {
        Ok(match reader.u8()? {
            0 => GroupPart::Children(ChildrenPart::decode(reader)?),
            1 if !reader.bool()? => GroupPart::Znode(None),
            1 => {
                let shown = Zxid(reader.i64()?);
                GroupPart::Znode(Some(ZnodePart { shown, answer: result(reader, buffer)? }))
            }
            2 => {
                let zxid = Zxid(reader.i64()?);
                GroupPart::Paths { found: result(reader, names)?, zxid }
            }
            3 => {
                let zxid = Zxid(reader.i64()?);
                GroupPart::Number { found: result(reader, Reader::i32)?, zxid }
            }
            4 => {
                let (is_here, is_there) = (reader.bool()?, reader.bool()?);
                let marks = if is_there { Some(marks(reader)?) } else { None };
                GroupPart::Marks(is_here.then_some(marks))
            }
            5 => GroupPart::Watched,
            6 => {
                let (zxid, is_found) = (Zxid(reader.i64()?), reader.bool()?);
                let found = if is_found { Some((reader.i64()?, reader.i64()?)) } else { None };
                GroupPart::Counted { found, zxid }
            }
            other => return Err(unknown("answer of a group", other)),
        })
    }
}

impl ChildrenPart {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_i64(self.newest.0);
        out.put_bool(self.has_left);
        out.put_bool(self.children.is_some());
        if let Some(ChildrenAsOf { names, created, pzxid, next_change }) = &self.children {
            put_names(out, names.iter());
            out.put_i32(*created);
            out.put_i64(pzxid.0);
            out.put_i64(next_change.unwrap_or_default().0);
        }
        out.put_count(self.znodes.len());
        for (name, child) in &self.znodes {
            out.put_string(name);
            child.stat.encode(out);
            out.put_buffer(child.data.as_deref());
            out.put_bool(child.is_ephemeral);
            out.put_bool(child.may_read);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<ChildrenPart, DecodeError> {
        let (newest, has_left) = (Zxid(reader.i64()?), reader.bool()?);
        let children = if reader.bool()? {
            let names = BTreeSet::from_iter(names(reader)?);
            let (created, pzxid, next) = (reader.i32()?, Zxid(reader.i64()?), Zxid(reader.i64()?));
            let next_change = (next > Zxid(0)).then_some(next);
            Some(ChildrenAsOf { names, created, pzxid, next_change })
        } else {
            None
        };
        let znodes = reader.list(|reader| {
            let (name, stat) = (reader.string()?.to_owned(), Stat::decode(reader)?);
            let data = reader.buffer()?.map(<[u8]>::to_vec);
            let (is_ephemeral, may_read) = (reader.bool()?, reader.bool()?);
            Ok((name, ShownChild { stat, data, is_ephemeral, may_read }))
        })?;
        Ok(ChildrenPart { children, newest, has_left, znodes: znodes.into_iter().collect() })
    }
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, path: &str) {
    out.push(tag);
    out.put_string(path);
}

/// Appends a list of strings.
pub(crate) fn put_names<'n>(out: &mut Vec<u8>, names: impl Iterator<Item = &'n String>) {
    let names: Vec<&String> = names.collect();
    out.put_count(names.len());
    names.iter().for_each(|name| out.put_string(name));
}

fn names(reader: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    reader.list(|reader| Ok(reader.string()?.to_owned()))
}

pub(crate) fn buffer(reader: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(reader.buffer()?.ok_or(DecodeError::UnexpectedNull)?.to_vec())
}

fn marks(reader: &mut Reader<'_>) -> Result<ZnodeMarks, DecodeError> {
    let (mzxid, pzxid, may_read) = (Zxid(reader.i64()?), Zxid(reader.i64()?), reader.bool()?);
    Ok(ZnodeMarks { mzxid, pzxid, may_read })
}

/// Appends the code of an error, or 0 and what was found.
pub(crate) fn put_result<T>(
    out: &mut Vec<u8>,
    result: &Result<T, ErrorCode>,
    put: impl FnOnce(&mut Vec<u8>, &T),
) {
    out.put_i32(result.as_ref().err().map_or(0, |error| error.code()));
    if let Ok(found) = result {
        put(out, found);
    }
}

pub(crate) fn result<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Result<T, ErrorCode>, DecodeError> {
    match reader.i32()? {
        0 => read(reader).map(Ok),
        code => {
            let unknown = DecodeError::UnknownValue { field: "error code", value: code };
            Ok(Err(ErrorCode::from_code(code).ok_or(unknown)?))
        }
    }
}

pub(crate) fn unknown(field: &'static str, value: u8) -> DecodeError {
    DecodeError::UnknownValue { field, value: value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(part: &GroupPart) {
        let mut bytes = Vec::new();
        part.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!((GroupPart::decode(&mut reader).as_ref(), reader.is_empty()), (Ok(part), true));
        for length in 0..bytes.len() {
            assert!(
                GroupPart::decode(&mut Reader::new(&bytes[..length])).is_err(),
                "{part:?} cut at {length}"
            );
        }
    }

    #[test]
    fn parts_come_as_they_were_sent() {
        let stat = Stat { czxid: Zxid(3), pzxid: Zxid(4), num_children: 2, ..Stat::default() };
        let child = ShownChild { stat, data: Some(b"data".to_vec()), is_ephemeral: true, may_read: false };
        let children = ChildrenAsOf {
            names: BTreeSet::from(["a".to_owned(), "b".to_owned()]),
            created: 5,
            pzxid: Zxid(6),
            next_change: Some(Zxid(7)),
        };
        let marks = ZnodeMarks { mzxid: Zxid(8), pzxid: Zxid(9), may_read: true };
        let znodes = BTreeMap::from([("a".to_owned(), child)]);
        let parts = [
            GroupPart::Children(ChildrenPart {
                children: Some(children),
                newest: Zxid(9),
                has_left: false,
                znodes,
            }),
            GroupPart::Children(ChildrenPart { has_left: true, ..ChildrenPart::default() }),
            GroupPart::Znode(None),
            GroupPart::Znode(Some(ZnodePart { shown: Zxid(1), answer: Ok(b"body".to_vec()) })),
            GroupPart::Znode(Some(ZnodePart { shown: Zxid(1), answer: Err(ErrorCode::NoNode) })),
            GroupPart::Paths { found: Ok(vec!["/a".to_owned()]), zxid: Zxid(2) },
            GroupPart::Number { found: Err(ErrorCode::NoAuth), zxid: Zxid(2) },
            GroupPart::Marks(None),
            GroupPart::Marks(Some(None)),
            GroupPart::Marks(Some(Some(marks))),
            GroupPart::Counted { found: None, zxid: Zxid(3) },
            GroupPart::Counted { found: Some((2, 300)), zxid: Zxid(3) },
        ];
        parts.iter().for_each(check);
    }

    #[test]
    fn questions_come_as_they_were_sent() {
        let path = || "/p".to_owned();
        let queries = [
            PartQuery::Children { path: path(), map: Zxid(3), is_exact: true, watch: false },
            PartQuery::Data { path: path() },
            PartQuery::Names { path: path() },
            PartQuery::Ephemerals { path: path() },
            PartQuery::Descendants { path: path() },
            PartQuery::Recursive { path: path(), nodes_max: 7 },
            PartQuery::Marks { path: path() },
            PartQuery::Counted { path: path() },
        ];
        for query in queries {
            let mut bytes = Vec::new();
            query.encode(&mut bytes);
            assert_eq!(PartQuery::decode(&mut Reader::new(&bytes)).as_ref(), Ok(&query));
            assert!(PartQuery::decode(&mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
        }
        assert!(PartQuery::decode(&mut Reader::new(&[9, 0, 0, 0, 0])).is_err());
    }
}
