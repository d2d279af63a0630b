//! The order itself: places of all commands, and the tree before and after each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use paddock_model::{Call, Model, Wish};
use paddock_proto::{
    CreateMode, ErrorCode, EventKind, GroupsCommand, Id, MultiResult, SessionId, Write, WriteReply, Zxid,
    is_at_or_below,
};
use paddock_tree::{Change, MISPLACED};

use super::super::watching::{Stamps, WatchedHistory};
use super::super::{Checked, ensure};
use super::answers::agree;
use super::counted_names::ChildCounts;
use super::multi_results::{PlacedResult, read_results};

const CHECKER: &str = "one order";

/// A command in a group's log that counted, or a transaction of one that goes on in another.
#[derive(Clone, Debug)]
pub(crate) struct LoggedWrite {
    /// Zxid that it took in its group; of one that takes none, that of the command before.
    pub(crate) stamp: Zxid,
    pub(crate) call: Call,
    pub(crate) result: Result<WriteReply<'static>, ErrorCode>,
    /// Znodes that the transaction removes, if the command goes on in another one.
    pub(crate) portion: Option<Vec<String>>,
    /// Feature level of the ensemble when it was carried out.
    pub(crate) level: u16,
    /// Parts of a multi that was carried out in several groups; its result says nothing then.
    pub(crate) parts: Option<MultiParts>,
    /// In the home group: the zxid at which it has decided on a multi over several groups, whose own zxid is the next. Another group may have that by chance, and what it changes
    /// there comes behind the multi.
    pub(crate) decided: Option<Zxid>,
    /// Counters by which the home group has given names.
    pub(crate) counts: ChildCounts,
}

/// A multi over several groups.
#[derive(Clone, Debug)]
pub(crate) struct MultiParts {
    /// Number of the multi.
    pub(crate) multi: i64,
    /// Group of each operation.
    pub(crate) groups: Vec<u32>,
    /// Results of the home group's operations.
    pub(crate) own: Vec<PlacedResult>,
}

/// Facts of a log, in its order.
#[derive(Clone, Debug)]
pub(crate) enum Logged {
    Write(Box<LoggedWrite>),
    /// In the home group: the stream to a group has come to this number with what stands before.
    Appends {
        group: u32,
        last: u64,
    },
    /// In another group: the item with this number is applied. One that changes no znodes pulls nothing in front of its decision.
    Item {
        number: u64,
        decided: Zxid,
        changes_znodes: bool,
        /// Zxid of its changes in the group.
        zxid: Zxid,
    },
    /// In another group: a write is carried out that the home group has relayed with this item.
    Relayed {
        number: u64,
        decided: Zxid,
        write: Box<LoggedWrite>,
    },
    /// In another group: its part of a multi is carried out, with this zxid.
    Settled {
        multi: i64,
        zxid: Zxid,
        /// Results of the group's operations.
        own: Vec<PlacedResult>,
    },
}

impl Logged {
    /// Zxid of what it has changed.
    pub(super) fn zxid(&self) -> Option<Zxid> {
        match self {
            Logged::Write(write) | Logged::Relayed { write, .. } => Some(write.stamp),
            Logged::Item { zxid, .. } | Logged::Settled { zxid, .. } => Some(*zxid),
            Logged::Appends { .. } => None,
        }
    }
}

/// A command at its place in the order.
#[derive(Debug)]
pub(crate) struct PlacedWrite {
    pub(crate) group: u32,
    /// Its zxid, or that of the first decision whose item stands behind it in its group's log, if that is smaller.
    pub(crate) place: Zxid,
    pub(crate) write: LoggedWrite,
    changes: Vec<Change<'static>>,
    /// Zxids that its changes have in the groups.
    zxids: Vec<Zxid>,
}

impl fmt::Display for PlacedWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlacedWrite { group, place, write, .. } = self;
        let LoggedWrite { stamp, call, result, .. } = write;
        let (session, wish) = (call.session, &call.wish);
        write!(
            f,
            "zxid {stamp}, place {place}, group {group}, session {session}: {wish:?} comes to {result:?}"
        )
    }
}

/// All commands that were carried out, in one order. A position is the number of commands that stand before a moment.
#[derive(Debug)]
pub(crate) struct OneOrder {
    writes: Vec<PlacedWrite>,
    /// The tree at each position.
    states: Vec<Model>,
    /// Positions with which a znode became another, or its list of children.
    touched: BTreeMap<Rc<str>, Vec<usize>>,
    /// Positions behind the commands of a session.
    by_session: BTreeMap<SessionId, Vec<usize>>,
    /// Positions behind the commands with a zxid, and behind those of which a part has it.
    by_zxid: BTreeMap<Zxid, Vec<usize>>,
    split_points: Vec<String>,
    /// Zxids and results of the parts of multis, by group and multi.
    settled: BTreeMap<(u32, i64), (Zxid, Vec<PlacedResult>)>,
    /// Moments of the history at which zxids were first applied by any member, as far as they are known.
    applied_at: BTreeMap<Zxid, usize>,
}

/// The zxid of the place; 0 for writes of other groups that have it as their own zxid, which come first; the decision that a write is pulled in front of, doubled; the
/// write's own zxid, and its group.
type Key = (Zxid, u8, usize, Zxid, u32);

impl OneOrder {
    /// Puts logs into one order, and carries them out in it.
    pub(crate) fn new(logs: &BTreeMap<u32, &[Logged]>, split_points: &[&str]) -> Checked<OneOrder> {
        let mut keyed: Vec<(Key, &LoggedWrite)> = Vec::new();
        let decisions = key_home(logs.get(&0).copied().unwrap_or_default(), &mut keyed)?;
        let (mut settled, mut items) = (BTreeMap::new(), Items::default());
        for (group, log) in logs.iter().filter(|(group, _)| **group > 0) {
            key_other(*group, log, &decisions, (&mut keyed, &mut items))?;
            settled.extend(log.iter().filter_map(|logged| match logged {
                Logged::Settled { multi, zxid, own } => Some(((*group, *multi), (*zxid, own.clone()))),
                _ => None,
            }));
        }
        for (key, _) in keyed.iter_mut().filter(|(key, _)| key.4 == 0) {
            // Home's own part of a decision has a later zxid, and the place of the decision.
            key.0 = items.decided.get(&(key.2 / 2)).map_or(key.0, |decided| key.0.min(*decided));
        }
        // Commands of one key are of one log.
        keyed.sort_by_key(|(key, _)| *key);
        let mut order = OneOrder {
            writes: Vec::new(),
            states: vec![Model::new()],
            touched: BTreeMap::new(),
            by_session: BTreeMap::new(),
            by_zxid: BTreeMap::new(),
            split_points: split_points.iter().map(|path| (*path).to_owned()).collect(),
            settled,
            applied_at: BTreeMap::new(),
        };
        for (key @ (_, _, place, _, group), write) in keyed {
            let of_items = items.zxids.get(&(place / 2)).filter(|_| group == 0);
            order.carry_out(key, write, of_items.cloned().unwrap_or_default())?;
        }
        Ok(order)
    }

    /// The order with the moments at which zxids were first applied.
    pub(super) fn applied_at(self, applied_at: BTreeMap<Zxid, usize>) -> OneOrder {
        OneOrder { applied_at, ..self }
    }

    /// The next command, after all before it. The items that tell groups of it have these zxids there.
    fn carry_out(&mut self, key: Key, write: &LoggedWrite, of_items: Vec<Zxid>) -> Checked {
        let (place, _, _, _, group) = key;
        let LoggedWrite { stamp, call, result, portion, level, parts, counts, .. } = write;
        let mut model = self.state(self.len()).clone();
        model.raise_level(*level);
        let mut write = write.clone();
        let changes = match (portion, parts) {
            (Some(paths), _) => paths.iter().flat_map(|path| remove(&mut model, path, *stamp)).collect(),
            (None, Some(parts)) => {
                let (reply, changes) = self.carry_out_parts(&mut model, &write, parts)?;
                write.result = Ok(reply);
                changes
            }
            (None, None) if joins_groups(call) || self.is_refused_as_spread(call, result) => Vec::new(),
            (None, None) => {
                let takes_none = matches!(
                    call.wish,
                    Wish::ResumeSession { .. } | Wish::BindSession | Wish::SetSecret { .. }
                );
                if !takes_none {
                    model.take_next(*stamp);
                }
                let mut call = counts.clone().named(call, &self.split_points).into_owned();
                if let Some(owner) = model.owner(call.session).filter(|_| group > 0) {
                    // Groups hear of a new owner one after the other.
                    call.member = owner;
                }
                let outcome = model.apply(&call);
                ensure!(
                    agree(&call.wish, result, &outcome.result, &self.split_points),
                    CHECKER,
                    "{:?} of session {} came to {result:?} in group {group}, at {stamp}; at its place {place} in one order it comes to {:?}",
                    call.wish,
                    call.session,
                    outcome.result
                );
                outcome.changes.into_iter().collect()
            }
        };
        let session = call.session;
        let parts = parts.iter().flat_map(|parts| parts.groups.iter().map(|group| (*group, parts.multi)));
        let mut zxids: Vec<Zxid> =
            parts.filter_map(|part| self.settled.get(&part).map(|(zxid, _)| *zxid)).collect();
        zxids.push(*stamp);
        zxids.dedup();
        let all = zxids.iter().copied().chain(of_items).collect();
        self.writes.push(PlacedWrite { group, place, write, changes, zxids: all });
        let position = self.len();
        for path in model.changed_since(self.state(position - 1)) {
            self.touched.entry(path).or_default().push(position);
        }
        self.states.push(model);
        self.by_session.entry(session).or_default().push(position);
        for zxid in zxids {
            self.by_zxid.entry(zxid).or_default().push(position);
        }
        Ok(())
    }

    /// The parts of a multi, each with the zxid that it has in its group.
    fn carry_out_parts(
        &self,
        model: &mut Model,
        write: &LoggedWrite,
        parts: &MultiParts,
    ) -> Checked<(WriteReply<'static>, Vec<Change<'static>>)> {
        let Wish::Multi(wishes) = &write.call.wish else { unreachable!("only a multi has parts") };
        let (mut expected, mut changes, mut counts) = (Vec::new(), Vec::new(), write.counts.clone());
        let mut found = parts.own.clone();
        for group in parts.groups.iter().filter(|group| **group > 0).collect::<BTreeSet<_>>() {
            let settled = self.settled.get(&(*group, parts.multi));
            ensure!(
                settled.is_some(),
                CHECKER,
                "group {group} has not settled its part of {:?}",
                write.call.wish
            );
            found.extend(settled.iter().flat_map(|(_, own)| own.clone()));
        }
        for (wish, group) in wishes.iter().zip(&parts.groups) {
            let settled = self.settled.get(&(*group, parts.multi)).map(|(zxid, _)| *zxid);
            model.take_next(settled.unwrap_or(write.stamp));
            let wish = match group {
                0 => counts.named_step(wish, &self.split_points),
                _ => wish.clone(),
            };
            let mut call = Call { wish: Wish::Multi(vec![wish]), ..write.call.clone() };
            call.member = model.owner(call.session).unwrap_or(call.member);
            let outcome = model.apply(&call);
            let done = match outcome.result {
                Ok(WriteReply::Multi(results)) => {
                    results.into_iter().find(|one| matches!(one, MultiResult::Done(..)))
                }
                _ => None,
            };
            ensure!(
                done.is_some(),
                CHECKER,
                "{:?}, a part of {:?} at {}, was carried out in group {group}; at its place in one order it cannot be",
                call.wish,
                write.call.wish,
                write.stamp
            );
            expected.extend(done);
            changes.extend(outcome.changes);
        }
        let results = read_results(found, &expected);
        let expected = Ok(WriteReply::Multi(expected));
        let found = results.map(WriteReply::Multi).ok_or(ErrorCode::MarshallingError);
        ensure!(
            agree(&write.call.wish, &found, &expected, &self.split_points),
            CHECKER,
            "{:?} came to {found:?} in its groups, at {}; in one order it comes to {expected:?}",
            write.call.wish,
            write.stamp
        );
        Ok((found.expect("that agrees with a result"), changes))
    }

    /// A split point with slots elsewhere cannot be removed, whether or not it has children, and is no ephemeral znode.
    fn is_refused_as_spread(&self, call: &Call, result: &Result<WriteReply<'static>, ErrorCode>) -> bool {
        let Err(error) = *result else { return false };
        let refuses = |wish: &Wish| match wish {
            Wish::Delete { path, .. }
            | Wish::RemoveRecursive { path, .. }
            | Wish::TryRemove { path, .. }
            | Wish::DeleteContainer { path } => {
                error == ErrorCode::NotEmpty
                    && self.split_points.iter().any(|point| is_at_or_below(point, path))
            }
            Wish::Create { path, flags, .. } => {
                let is_ephemeral = CreateMode::from_flags(*flags).is_some_and(CreateMode::is_ephemeral);
                error == ErrorCode::BadArguments && is_ephemeral && self.split_points.contains(path)
            }
            _ => false,
        };
        match &call.wish {
            Wish::Multi(wishes) => wishes.iter().any(refuses),
            wish => refuses(wish),
        }
    }

    /// Number of commands: the last position.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// The tree at a position.
    pub(crate) fn state(&self, position: usize) -> &Model {
        &self.states[position]
    }

    pub(crate) fn split_points(&self) -> &[String] {
        &self.split_points
    }

    /// The command with which a position begins.
    pub(crate) fn write_at(&self, position: usize) -> Option<&PlacedWrite> {
        self.writes.get(position.checked_sub(1)?)
    }

    /// All commands, in order.
    pub(crate) fn writes(&self) -> impl Iterator<Item = &PlacedWrite> {
        self.writes.iter()
    }

    /// Position behind all commands with a place before this zxid.
    pub(crate) fn before(&self, zxid: Zxid) -> usize {
        self.writes.partition_point(|placed| placed.place < zxid)
    }

    /// Positions behind the commands of a session, in order.
    pub(crate) fn of_session(&self, session: SessionId) -> impl Iterator<Item = usize> {
        self.by_session.get(&session).into_iter().flatten().copied()
    }

    /// The first change that a group made with this zxid, or that has it for its place, of those that were not told. A multi may change a znode several times:
    /// `is_told` is given the position and how often.
    pub(crate) fn changed_with(
        &self,
        zxid: Zxid,
        (kind, path): (EventKind, &str),
        is_told: impl Fn(usize, usize) -> bool,
    ) -> Option<Zxid> {
        let at_place = (self.before(zxid)..self.before(zxid.next())).map(|before| before + 1);
        let mut positions = at_place.chain(self.by_zxid.get(&zxid).into_iter().flatten().copied());
        let is_it = |change: &Change<'_>| change.kind == kind && *change.path == *path;
        let times = |position: &usize| {
            self.writes[position - 1].changes.iter().filter(|change| is_it(change)).count()
        };
        let is_new = |position: &usize| times(position) > 0 && !is_told(*position, times(position));
        let found = positions.clone().find(is_new);
        found.or_else(|| positions.find(|at| times(at) > 0)).map(|position| Zxid(position as i64))
    }

    /// The last position, up to this one, with which one of these znodes became another, if that was applied in all its groups before a moment of the history; 0 for
    /// none. Groups come to their zxids each by itself: what stands in front of a write of another group may not have been asked for when that was done.
    pub(crate) fn last_touching(&self, paths: &[&str], up_to: usize, moment: usize) -> usize {
        let lists = paths.iter().filter_map(|path| self.touched.get(*path));
        let last = lists.filter_map(|list| {
            let behind = list.partition_point(|position| *position <= up_to);
            list[..behind].iter().rev().find(|position| self.is_applied_before(**position, moment))
        });
        last.max().copied().unwrap_or_default()
    }

    fn is_applied_before(&self, position: usize, moment: usize) -> bool {
        let zxids = self.write_at(position).map_or(&[][..], |placed| &placed.zxids);
        zxids.iter().all(|zxid| self.applied_at.get(zxid).is_none_or(|at| *at < moment))
    }

    /// Positions behind this one with which one of these znodes became another.
    pub(crate) fn touching(&self, paths: &[&str], behind: usize) -> Vec<usize> {
        let lists = paths.iter().filter_map(|path| self.touched.get(*path));
        let mut positions: Vec<usize> = lists
            .flat_map(|list| &list[list.partition_point(|position| *position <= behind)..])
            .copied()
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

/// Items of all groups, by the number of home's commands up to the one that decided them.
#[derive(Default)]
struct Items {
    /// Their zxids in their groups.
    zxids: BTreeMap<usize, Vec<Zxid>>,
    /// Zxids of the decisions that change znodes.
    decided: BTreeMap<usize, Zxid>,
}

/// Decisions of the home group.
#[derive(Debug, Default)]
struct Decisions {
    /// Number of home's commands up to the one with which an item was appended.
    appended: BTreeMap<(u32, u64), usize>,
    /// Zxids of home's commands.
    zxids: Vec<Zxid>,
}

impl Decisions {
    /// Number of home's commands up to the decision of an item; `None` if none has appended it.
    fn find(&self, group: u32, number: u64, decided: Zxid) -> Option<usize> {
        let last = *self.appended.get(&(group, number))?;
        // An entry's changes of split points are told when it is over.
        let is_last = last.checked_sub(1).is_some_and(|at| self.zxids[at] == decided);
        Some(if is_last { last } else { (self.zxids.partition_point(|zxid| *zxid < decided) + 1).min(last) })
    }
}

/// Home's own commands have the place of their zxids, but for what they decide.
fn key_home<'l>(log: &'l [Logged], keyed: &mut Vec<(Key, &'l LoggedWrite)>) -> Checked<Decisions> {
    let (mut decisions, mut lasts, mut count) = (Decisions::default(), BTreeMap::new(), 0);
    let mut stamp = Zxid(0);
    for logged in log {
        match logged {
            Logged::Write(write) => {
                ensure!(write.stamp >= stamp, CHECKER, "zxids fall in the home group at {:?}", write);
                (stamp, count) = (write.stamp, count + 1);
                decisions.zxids.push(stamp);
                if write.result != Err(MISPLACED) {
                    let place = write.decided.unwrap_or(stamp);
                    keyed.push(((place, 1, 2 * count, stamp, 0), &**write));
                }
            }
            Logged::Appends { group, last } => {
                let former = lasts.insert(*group, *last).unwrap_or_default();
                decisions.appended.extend((former + 1..=*last).map(|number| ((*group, number), count)));
            }
            Logged::Item { .. } | Logged::Relayed { .. } | Logged::Settled { .. } => {
                unreachable!("the home group has no stream to itself")
            }
        }
    }
    Ok(decisions)
}

/// A command of another group has the place of its zxid, or stands in front of the first decision whose item comes behind it.
fn key_other<'l>(
    group: u32,
    log: &'l [Logged],
    decisions: &Decisions,
    (keyed, items): (&mut Vec<(Key, &'l LoggedWrite)>, &mut Items),
) -> Checked {
    let (mut decided_before, mut stamp) = (Zxid(0), Zxid(0));
    for logged in log {
        match logged {
            Logged::Item { decided, .. } => decided_before = decided_before.max(*decided),
            Logged::Settled { zxid, .. } => stamp = stamp.max(*zxid),
            Logged::Write(write) | Logged::Relayed { write, .. } => {
                ensure!(
                    write.stamp > stamp && write.stamp > decided_before,
                    CHECKER,
                    "{:?} has the zxid {} in group {group}, behind {stamp} and an item that was decided at {decided_before}",
                    write.call.wish,
                    write.stamp
                );
                stamp = write.stamp;
            }
            Logged::Appends { .. } => unreachable!("only the home group has streams"),
        }
    }
    let mut ahead: Option<(Zxid, usize)> = None;
    for logged in log.iter().rev() {
        match logged {
            Logged::Item { number, decided, changes_znodes, zxid } => {
                let decision = decisions.find(group, *number, *decided);
                ensure!(decision.is_some(), CHECKER, "item {number} of group {group} was never decided");
                items.zxids.entry(decision.unwrap_or_default()).or_default().push(*zxid);
                let decision = decision.map(|decision| (*decided, decision)).filter(|_| *changes_znodes);
                items.decided.extend(decision.map(|(decided, decision)| (decision, decided)));
                ahead = [ahead, decision].into_iter().flatten().min();
            }
            Logged::Write(write) if !is_without_effect(write) => {
                let stamp = write.stamp;
                let key = match ahead {
                    Some((decided, decision)) if decided < stamp => {
                        (decided, 1, (2 * decision).saturating_sub(1), stamp, group)
                    }
                    _ => (stamp, 0, 0, stamp, group),
                };
                keyed.push((key, &**write));
            }
            Logged::Relayed { number, decided, write } => {
                let decision = decisions.find(group, *number, *decided);
                ensure!(decision.is_some(), CHECKER, "item {number} of group {group} was never decided");
                let key = (*decided, 1, 2 * decision.unwrap_or_default(), write.stamp, group);
                keyed.push((key, &**write));
            }
            Logged::Write(_) | Logged::Appends { .. } | Logged::Settled { .. } => {}
        }
    }
    Ok(())
}

/// A command in another group that it refuses to a session whose command it may not be, or that is to be sent again: home may know of another owner.
fn is_without_effect(write: &LoggedWrite) -> bool {
    matches!(write.result, Err(error) if error == MISPLACED)
        || matches!(write.result, Err(ErrorCode::SessionMoved | ErrorCode::SessionExpired))
}

/// True if the command joins groups, and is nothing that clients see.
pub(super) fn joins_groups(call: &Call) -> bool {
    matches!(call.wish, Wish::BetweenGroups { .. })
}

/// True if the command makes a split point a znode like others.
fn joins(call: &Call, point: &str) -> bool {
    let Wish::BetweenGroups { body } = &call.wish else { return false };
    let write = Write::decode(GroupsCommand::OP, body);
    matches!(write, Ok(Write::BetweenGroups(GroupsCommand::Join { path })) if path == point)
}

/// A znode goes with others in a transaction of the service.
fn remove(model: &mut Model, path: &str, zxid: Zxid) -> Vec<Change<'static>> {
    model.take_next(zxid);
    let wish = Wish::Delete { path: path.to_owned(), version: -1 };
    let call = Call { wish, ids: vec![Id::new("super", "")], ..Call::plain_create("/") };
    model.apply(&call).changes.into_iter().collect()
}

/// Watches are judged by positions, which stand where zxids do in a history with one group.
impl WatchedHistory for OneOrder {
    /// Changes of one decision in several groups are told in any order.
    const IS_ORDERED: bool = false;
    /// A reply's zxid is what was shown, and its state may be a later one.
    const HAS_MOMENTS: bool = false;

    fn changes_at(&self, position: Zxid) -> Option<&[Change<'_>]> {
        self.write_at(position.0 as usize).map(|placed| &placed.changes[..])
    }

    fn changes_behind(&self, position: Zxid) -> Option<(Zxid, &[Change<'_>])> {
        let next = Zxid(position.0 + 1);
        self.changes_at(next).map(|changes| (next, changes))
    }

    /// The zxids are those of the groups.
    fn stamps_at(&self, position: Zxid, path: &str) -> Option<Stamps> {
        let stat = self.states.get(position.0 as usize)?.stat(path)?;
        Some(Stamps { mzxid: stat.mzxid, pzxid: stat.pzxid })
    }

    /// The zxid of a list is the newest one of its groups' parts: also of a change that the client knows, if its zxid in the group is newer. A split point that is joined has a new
    /// one.
    fn tells_list_again(&self, path: &str, since: Zxid, up_to: Zxid) -> bool {
        let is_it =
            |change: &Change<'_>| change.kind == EventKind::NodeChildrenChanged && *change.path == *path;
        let mut writes = self.writes.iter().take(up_to.0 as usize);
        writes.any(|placed| {
            let is_newer = placed.zxids.iter().any(|zxid| *zxid > since);
            is_newer && (placed.changes.iter().any(is_it) || joins(&placed.write.call, path))
        })
    }

    fn may_read_at(&self, position: Zxid, path: &str, ids: &[Id]) -> bool {
        self.states.get(position.0 as usize).is_some_and(|model| model.may_read(path, ids))
    }
}
