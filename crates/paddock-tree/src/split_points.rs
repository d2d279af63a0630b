//! Split points: znodes whose children may be spread over Raft groups, each with everything below it.
//!
//! A child belongs to one of 4,096 slots by a hash of its name, and a slot to a group. A new split point has all its slots in the home group, so
//! that it moves nothing. Names that end in ten digits are the home group's: sequential names below a split point have one counter. Split points are not nested.

use std::collections::BTreeMap;
use std::fmt;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, Zxid, is_at_or_below, parent_and_name, validate_path};
use xxhash_rust::xxh3::xxh3_64;

/// Slots of a split point.
pub const SLOTS: u16 = 4096;
/// Digits that ZooKeeper puts behind a sequential name.
const SEQUENCE_DIGITS: usize = 10;
/// Below this path nothing is spread.
const SYSTEM: &str = "/zookeeper";

/// Slot of a name below a split point; `None` if it ends as a sequential name does, and is the home group's.
pub fn slot_of(name: &str) -> Option<u16> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    (digits < SEQUENCE_DIGITS).then(|| (xxh3_64(name.as_bytes()) % u64::from(SLOTS)) as u16)
}

/// Group of each slot of a split point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMap {
    /// Number behind the last slot of a run, by rising number, and the group of the run.
    runs: Vec<(u16, u32)>,
}

impl SlotMap {
    /// All slots in the home group.
    pub(crate) fn home() -> SlotMap {
        SlotMap { runs: vec![(SLOTS, 0)] }
    }

    /// Gives the slots from `first` to `last` to a group.
    pub(crate) fn assign(&mut self, first: u16, last: u16, group: u32) {
        let mut groups: Vec<u32> = (0..SLOTS).map(|slot| self.group(slot)).collect();
        groups[usize::from(first)..=usize::from(last)].fill(group);
        self.runs.clear();
        for (end, group) in (1..).zip(groups) {
            match self.runs.last_mut() {
                Some(run) if run.1 == group => run.0 = end,
                _ => self.runs.push((end, group)),
            }
        }
    }

    /// Runs of slots that follow each other in one group: the first slot, the last one, and the group.
    pub fn runs(&self) -> impl Iterator<Item = (u16, u16, u32)> {
        let mut first = 0;
        self.runs.iter().map(move |(end, group)| {
            let run = (first, end - 1, *group);
            first = *end;
            run
        })
    }

    /// Number of slots of a group.
    pub fn count(&self, group: u32) -> usize {
        let own = self.runs().filter(|(_, _, of)| *of == group);
        own.map(|(first, last, _)| usize::from(last - first) + 1).sum()
    }

    /// True if all slots are in the home group.
    pub fn is_home(&self) -> bool {
        self.runs.iter().all(|(_, group)| *group == 0)
    }

    /// Group of a slot.
    pub fn group(&self, slot: u16) -> u32 {
        let at = self.runs.partition_point(|(end, _)| *end <= slot);
        self.runs.get(at).map_or(0, |(_, group)| *group)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.runs.len());
        for (end, group) in &self.runs {
            out.put_i32((*end).into());
            out.put_i32(*group as i32);
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<SlotMap, DecodeError> {
        let (mut runs, mut last) = (Vec::new(), 0);
        for _ in 0..r.count()? {
            let (end, group) = (r.i32()?, r.i32()? as u32);
            let unknown = DecodeError::UnknownValue { field: "end of a run of slots", value: end };
            let is_next = |end: &u16| *end > last && *end <= SLOTS;
            last = u16::try_from(end).ok().filter(is_next).ok_or(unknown)?;
            runs.push((last, group));
        }
        let unknown = DecodeError::UnknownValue { field: "number of slots", value: last.into() };
        if last == SLOTS { Ok(SlotMap { runs }) } else { Err(unknown) }
    }
}

/// A split point in the home group's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPoint {
    /// Zxid with which its map became what it is.
    version: i64,
    slots: SlotMap,
    /// The znode as the other groups have been told of it.
    told: Option<ToldZnode>,
    /// Slots that are on their way from one group to another.
    leaving: Option<LeavingSlots>,
}

/// Slots that leave a group, and what came of their znodes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingSlots {
    pub first: u16,
    pub last: u16,
    pub from: u32,
    pub to: u32,
    /// Portions of znodes, encoded, that are here.
    pub(crate) portions: Vec<Vec<u8>>,
}

impl LeavingSlots {
    /// Number of portions that are here: the next one has this number.
    pub fn portions(&self) -> u32 {
        self.portions.len() as u32
    }
}

/// Marks by which a znode is told from what it was: its czxid, and the version of its ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToldZnode {
    pub(crate) czxid: i64,
    pub(crate) aversion: i32,
}

impl SplitPoint {
    /// Zxid of the home group's transaction with which its map became what it is.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Slots that are on their way from one group to another: requests about them wait.
    pub fn leaving(&self) -> Option<&LeavingSlots> {
        self.leaving.as_ref()
    }

    /// True if this child is on its way from one group to another.
    fn is_leaving(&self, name: &str) -> bool {
        let slot = slot_of(name);
        self.leaving
            .as_ref()
            .is_some_and(|leaving| slot.is_some_and(|slot| (leaving.first..=leaving.last).contains(&slot)))
    }

    /// Groups of its slots.
    pub fn slots(&self) -> &SlotMap {
        &self.slots
    }

    /// True if the other groups have been told that the znode is there.
    pub fn is_there(&self) -> bool {
        self.told.is_some()
    }
}

/// The value that a map has for the nearest znode above a path, and the name of the child there that leads to the path.
pub(crate) fn ancestor_in<'m, 'p, T>(
    by_path: &'m BTreeMap<String, T>,
    path: &'p str,
) -> Option<(&'m T, &'p str)> {
    let mut below = path;
    while let Some((parent, name)) = parent_and_name(below) {
        if let Some(found) = by_path.get(parent) {
            return Some((found, name));
        }
        below = parent;
    }
    None
}

/// Split points of an ensemble, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPoints {
    by_path: BTreeMap<String, SplitPoint>,
}

/// Groups of the slots of all split points, as they were at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotMaps {
    by_path: BTreeMap<String, SlotMap>,
}

impl SlotMaps {
    /// Group that a znode belonged to.
    pub fn group_of(&self, path: &str) -> u32 {
        let place = ancestor_in(&self.by_path, path);
        place.and_then(|(slots, name)| Some(slots.group(slot_of(name)?))).unwrap_or(0)
    }

    /// True if a split point had slots outside the home group.
    pub fn is_spread(&self, point: &str) -> bool {
        self.by_path.get(point).is_some_and(|slots| !slots.is_home())
    }
}

impl SplitPoints {
    /// Groups of the slots of all of them, as they are now.
    pub fn slot_maps(&self) -> SlotMaps {
        let by_path = self.by_path.iter().map(|(path, point)| (path.clone(), point.slots.clone()));
        SlotMaps { by_path: by_path.collect() }
    }

    /// All of them with their paths, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SplitPoint)> {
        self.by_path.iter().map(|(path, point)| (path.as_str(), point))
    }

    /// True if slots of one of them lie outside the home group.
    pub fn are_spread(&self) -> bool {
        self.by_path.values().any(|point| !point.slots.is_home())
    }

    /// True if a path is at or above a split point.
    pub(crate) fn has_any_below(&self, path: &str) -> bool {
        self.by_path.keys().any(|point| is_at_or_below(point, path))
    }

    /// True if a path is at or above a split point with slots outside the home group.
    pub fn are_spread_below(&self, path: &str) -> bool {
        let mut spread = self.by_path.iter().filter(|(_, point)| !point.slots.is_home());
        spread.any(|(point, _)| is_at_or_below(point, path))
    }

    /// Begins to move slots, which are all of one group, to another one. Returns the group that they are of; `None` if they cannot move.
    pub(crate) fn begin_move(&mut self, path: &str, (first, last): (u16, u16), to: u32) -> Option<u32> {
        let point = self.by_path.get_mut(path).filter(|point| point.is_there())?;
        if first > last || last >= SLOTS || point.leaving.is_some() {
            return None;
        }
        let from = point.slots.group(first);
        if from == to || (first..=last).any(|slot| point.slots.group(slot) != from) {
            return None;
        }
        if from != 0 {
            point.leaving = Some(LeavingSlots { first, last, from, to, portions: Vec::new() });
        }
        Some(from)
    }

    /// Slots are a group's from now on.
    pub(crate) fn assign(&mut self, path: &str, (first, last): (u16, u16), group: u32, version: i64) {
        if let Some(point) = self.by_path.get_mut(path) {
            point.slots.assign(first, last, group);
            (point.version, point.leaving) = (version, None);
        }
    }

    /// Slots that are on their way, with the paths of their split points.
    pub fn leaving(&self) -> impl Iterator<Item = (&str, &LeavingSlots)> {
        self.by_path.iter().filter_map(|(path, point)| Some((path.as_str(), point.leaving.as_ref()?)))
    }

    pub(crate) fn leaving_mut(&mut self) -> impl Iterator<Item = &mut LeavingSlots> {
        self.by_path.values_mut().filter_map(|point| point.leaving.as_mut())
    }

    /// Slots of a split point that are on their way, and the zxid with which its map became what it is.
    pub(crate) fn leaving_of(&mut self, path: &str) -> Option<(i64, &mut LeavingSlots)> {
        let point = self.by_path.get_mut(path)?;
        Some((point.version, point.leaving.as_mut()?))
    }

    /// True if a znode is on its way from one group to another.
    pub fn is_leaving(&self, path: &str) -> bool {
        ancestor_in(&self.by_path, path).is_some_and(|(point, name)| point.is_leaving(name))
    }

    /// True if there is none, as in the state of another group than the home group.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Group that a znode belongs to.
    pub fn group_of(&self, path: &str) -> u32 {
        self.place_of(path).0
    }

    /// Group that a znode belongs to, and the zxid with which the map that says so became what it is; 0 of a znode that lies below no split
    /// point.
    pub fn place_of(&self, path: &str) -> (u32, Zxid) {
        match ancestor_in(&self.by_path, path) {
            Some((point, name)) => {
                (slot_of(name).map_or(0, |slot| point.slots.group(slot)), Zxid(point.version))
            }
            None => (0, Zxid(0)),
        }
    }

    /// The split point with this path.
    pub fn get(&self, path: &str) -> Option<&SplitPoint> {
        self.by_path.get(path)
    }

    /// Checks that a path can be one more split point.
    ///
    /// # Errors
    /// If it cannot be one beside those that there are, or is one.
    pub fn check(&self, path: &str) -> Result<(), SplitPathError> {
        SplitPaths::of(self.by_path.keys().map(String::as_str).chain([path])).map(drop)
    }

    /// Adds a split point, all of whose slots are in the home group. False if it cannot be one, or is one.
    pub(crate) fn add(&mut self, path: &str, version: i64) -> bool {
        if self.check(path).is_err() {
            return false;
        }
        let point = SplitPoint { version, slots: SlotMap::home(), told: None, leaving: None };
        self.by_path.insert(path.to_owned(), point);
        true
    }

    /// Removes a split point, all of whose slots are in the home group. False if there is none.
    pub(crate) fn remove(&mut self, path: &str) -> bool {
        let is_home = self.by_path.get(path).is_some_and(|point| point.slots.is_home());
        is_home && self.by_path.remove(path).is_some()
    }

    /// Notes for each split point its `znode`, which the other groups are told of; returns the paths of those of which they know another one.
    pub(crate) fn tell(&mut self, znode: impl Fn(&str) -> Option<ToldZnode>) -> Vec<String> {
        let mut changed = Vec::new();
        for (path, point) in &mut self.by_path {
            let told = znode(path);
            if point.told != told {
                point.told = told;
                changed.push(path.clone());
            }
        }
        changed
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.by_path.len());
        for (path, SplitPoint { version, slots, told, leaving }) in &self.by_path {
            out.put_string(path);
            out.put_i64(*version);
            slots.encode(out);
            out.put_bool(told.is_some());
            if let Some(ToldZnode { czxid, aversion }) = told {
                out.put_i64(*czxid);
                out.put_i32(*aversion);
            }
            out.put_bool(leaving.is_some());
            if let Some(LeavingSlots { first, last, from, to, portions }) = leaving {
                for number in [(*first).into(), (*last).into(), *from as i32, *to as i32] {
                    out.put_i32(number);
                }
                out.put_count(portions.len());
                portions.iter().for_each(|portion| out.put_buffer(Some(portion)));
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<SplitPoints, DecodeError> {
        let mut points = SplitPoints::default();
        for place in 0..r.count()? {
            let unknown = DecodeError::UnknownValue { field: "split point", value: place as i32 };
            let path = r.string()?;
            if !points.add(path, r.i64()?) {
                return Err(unknown);
            }
            let slots = SlotMap::decode(r)?;
            let told = if r.bool()? { Some(ToldZnode { czxid: r.i64()?, aversion: r.i32()? }) } else { None };
            let leaving = if r.bool()? { Some(read_leaving(r)?) } else { None };
            if let Some(point) = points.by_path.get_mut(path) {
                (point.slots, point.told, point.leaving) = (slots, told, leaving);
            }
        }
        Ok(points)
    }
}

fn read_leaving(r: &mut Reader<'_>) -> Result<LeavingSlots, DecodeError> {
    let mut slot = || {
        let value = r.i32()?;
        u16::try_from(value).map_err(|_| DecodeError::UnknownValue { field: "slot", value })
    };
    let (first, last) = (slot()?, slot()?);
    let (from, to) = (r.i32()? as u32, r.i32()? as u32);
    let mut portions = Vec::new();
    for _ in 0..r.count()? {
        portions.push(r.buffer()?.ok_or(DecodeError::UnexpectedNull)?.to_vec());
    }
    Ok(LeavingSlots { first, last, from, to, portions })
}

/// Paths of the split points that an ensemble is to have: each may be one, and none lies below another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPaths(Vec<String>);

/// A path that cannot be a split point, beside the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitPathError {
    #[error("{0:?} is no path of a znode")]
    NoPath(String),
    #[error("{0} cannot be a split point: what is in / and below /zookeeper stays together")]
    System(String),
    #[error("{0} is there twice, or lies below {1}: split points are not nested")]
    Nested(String, String),
}

impl SplitPaths {
    /// Checks paths.
    ///
    /// # Errors
    /// For the first one that cannot be a split point, alone or beside those before it.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<SplitPaths, SplitPathError> {
        let mut known: Vec<String> = Vec::new();
        for path in paths {
            check_path(path)?;
            for other in &known {
                if is_at_or_below(path, other) {
                    return Err(SplitPathError::Nested(path.to_owned(), other.clone()));
                }
                if is_at_or_below(other, path) {
                    return Err(SplitPathError::Nested(other.clone(), path.to_owned()));
                }
            }
            known.push(path.to_owned());
        }
        Ok(SplitPaths(known))
    }

    /// The paths, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Paths as they stand in one line, with commas between them.
impl fmt::Display for SplitPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

fn check_path(path: &str) -> Result<(), SplitPathError> {
    if validate_path(path).is_err() {
        return Err(SplitPathError::NoPath(path.to_owned()));
    }
    if path == "/" || is_at_or_below(path, SYSTEM) {
        return Err(SplitPathError::System(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_have_slots_but_those_that_look_sequential() {
        for name in ["a", "é", "7", "query-000000001", "0000000001-a"] {
            assert!(slot_of(name).is_some_and(|slot| slot < SLOTS), "{name}");
        }
        // A time in seconds looks the same.
        for name in ["lock-0000000007", "0123456789", "at-1700000000", "x-00000000011"] {
            assert_eq!(slot_of(name), None, "{name}");
        }
    }

    #[test]
    fn names_are_spread_over_slots() {
        let names = (0..10_000).map(|number| format!("replica-{number}"));
        let used: BTreeSet<Option<u16>> = names.map(|name| slot_of(&name)).collect();
        // About 3,740 of 4,096 are used when 10,000 names are drawn by chance.
        assert!((3650..3850).contains(&used.len()), "{}", used.len());
    }

    /// Slots of the split point `/b`, as bytes say them.
    fn with_runs(runs: &[(i32, i32)]) -> Result<SplitPoints, DecodeError> {
        let mut bytes = Vec::new();
        bytes.put_count(1);
        bytes.put_string("/b");
        bytes.put_i64(7);
        bytes.put_count(runs.len());
        for (end, group) in runs {
            bytes.put_i32(*end);
            bytes.put_i32(*group);
        }
        bytes.put_bool(false);
        bytes.put_bool(false);
        let mut reader = Reader::new(&bytes);
        let points = SplitPoints::decode(&mut reader)?;
        assert!(reader.is_empty());
        let mut again = Vec::new();
        points.encode(&mut again);
        assert_eq!(again, bytes);
        Ok(points)
    }

    #[test]
    fn a_znode_belongs_to_the_group_of_its_slot() {
        let slot = i32::from(slot_of("x").unwrap());
        let points = with_runs(&[(slot, 1), (slot + 1, 5), (4096, 2)]).unwrap();
        for path in ["/b/x", "/b/x/y", "/b/x/y/z-0000000001"] {
            assert_eq!(points.group_of(path), 5, "{path}");
        }
        for path in ["/", "/b", "/bx/x", "/a/b/x", "/b/z-0000000001", "/b/z-0000000001/x"] {
            assert_eq!(points.group_of(path), 0, "{path}");
        }
        let point = points.get("/b").unwrap();
        assert!(!points.clone().remove("/b"), "its slots are elsewhere");
        let slot = slot as u16;
        let expected = [(0, slot - 1, 1), (slot, slot, 5), (slot + 1, 4095, 2)];
        assert_eq!(point.slots().runs().collect::<Vec<_>>(), expected);
        let count = |group: u32| (0..SLOTS).filter(|slot| point.slots().group(*slot) == group).count();
        assert_eq!([count(1), count(5), count(2)], [usize::from(slot), 1, usize::from(SLOTS - slot - 1)]);
    }

    #[test]
    fn slots_that_are_no_map_are_not_read() {
        let no_maps: [&[(i32, i32)]; 6] =
            [&[], &[(4095, 1)], &[(4097, 1)], &[(5, 1), (5, 2), (4096, 0)], &[(0, 1), (4096, 0)], &[(-1, 0)]];
        for runs in no_maps {
            assert!(with_runs(runs).is_err(), "{runs:?}");
        }
    }

    #[test]
    fn split_points_are_not_nested_and_come_back_from_bytes() {
        let mut points = SplitPoints::default();
        assert!(points.add("/a/b", 5) && points.add("/a/c", 6));
        for path in ["/a/b", "/a", "/a/b/c", "/", "/zookeeper", "/zookeeper/quota", "a", "/d/", ""] {
            assert!(!points.add(path, 9), "{path}");
        }
        assert_eq!(points.group_of("/a/b/x"), 0, "all slots are in the home group at first");
        let told = Some(ToldZnode { czxid: 9, aversion: 1 });
        assert!(points.remove("/a/c") && !points.remove("/a/c") && points.add("/a/c", 7));
        assert!(points.get("/a/c").is_some_and(|point| point.version() == 7));
        let znode = |path: &str| told.filter(|_| ["/a/b", "/x"].contains(&path));
        assert_eq!(points.tell(znode), ["/a/b"]);
        assert_eq!(points.tell(znode), [""; 0], "they know it, and /x is no split point");
        let mut bytes = Vec::new();
        points.encode(&mut bytes);
        assert_eq!(SplitPoints::decode(&mut Reader::new(&bytes)), Ok(points));
    }

    #[test]
    fn paths_of_a_setting_are_checked() {
        let check = |paths: &[&str]| SplitPaths::of(paths.iter().copied()).map(|paths| paths.to_string());
        assert_eq!(check(&["/b", "/a/c"]).as_deref(), Ok("/b,/a/c"));
        assert_eq!(check(&[]).as_deref(), Ok(""));
        for (paths, expected) in [
            (&["a"][..], "\"a\" is no path of a znode"),
            (&["/"], "/ cannot be a split point: what is in / and below /zookeeper stays together"),
            (
                &["/zookeeper/x"],
                "/zookeeper/x cannot be a split point: what is in / and below /zookeeper stays together",
            ),
            (&["/a/b", "/a"], "/a/b is there twice, or lies below /a: split points are not nested"),
            (&["/a", "/a"], "/a is there twice, or lies below /a: split points are not nested"),
        ] {
            assert_eq!(check(paths).unwrap_err().to_string(), expected);
        }
    }
}
