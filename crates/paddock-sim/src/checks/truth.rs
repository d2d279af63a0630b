//! The log as it was first applied by any member, played to the model: what every later answer and state is compared with.
//!
//! Committed entries never change: a member that applies one later must have the same. A batch counts once, and only when it is
//! the next one of its member; whether that loses or repeats what a client asked for is for others to judge.

use crate::numbering::machine_of;
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use paddock_model::{Call, Model, Wish};
use paddock_proto::{Id, SessionId, Zxid};
use paddock_replica::{Batch, LogEntry};
use paddock_tree::{Change, Changes, Command, Origin, Outcome};

use super::happened::Happened;
use super::one_order::Spread;
use super::one_order::order::LoggedWrite;
use super::watching::{Stamps, WatchedHistory};
use super::{Checked, ensure};

const CHECKER: &str = "committed entries";

#[derive(Debug)]
struct Settled {
    term: u64,
    payload: Bytes,
    /// As it is after this entry.
    model: Model,
    /// Sessions that it created or brought back.
    begun: Vec<SessionId>,
    /// Zxid of the home group's state after it.
    zxid: Zxid,
    /// Digest of the state of the first member that stopped here.
    digest: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Truth {
    entries: Vec<Settled>,
    model: Model,
    /// Commands that took each zxid.
    told: BTreeMap<Zxid, Rc<Happened>>,
    /// Models of the tree at each of these.
    models: BTreeMap<Zxid, Model>,
    /// Model of the tree before anything was told.
    beginning: Model,
    /// Znodes that a transaction removes at most where a command removes more.
    removed_at_once: usize,
    /// Znodes are spread over groups: the model has them all, about as they are, and no member's state is the model's.
    stands_aside: bool,
    zxid: Zxid,
    /// The incarnation of each member that counts, and the number of its last batch.
    origins: BTreeMap<u8, (u64, u64)>,
}

impl Truth {
    pub(crate) fn new(removed_at_once: usize) -> Truth {
        Truth { removed_at_once, ..Truth::default() }
    }

    /// Znodes are spread over groups.
    pub(super) fn stand_aside(&mut self) {
        self.stands_aside = true;
    }

    /// True if states of members are the model's.
    pub(crate) fn has_states(&self) -> bool {
        !self.stands_aside
    }

    /// A member applies an entry. Answers with what happened, if no member has applied it before. Where znodes are spread, `spread` knows it.
    pub(crate) fn observe(
        &mut self,
        member: u8,
        entry: &LogEntry,
        spread: Option<&mut Spread>,
    ) -> Checked<Vec<Rc<Happened>>> {
        let LogEntry { index, term, payload, .. } = entry;
        ensure!(
            *index <= self.last_index() + 1,
            CHECKER,
            "member {member} applies entry {index}, but {} is the last that anybody has applied",
            self.last_index()
        );
        if let Some(settled) = self.entries.get(*index as usize - 1) {
            ensure!(
                (settled.term, &settled.payload) == (*term, payload),
                CHECKER,
                "member {member} applies another entry {index}, of term {term}, than was applied before, of term {}",
                settled.term
            );
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        self.model.begin_entry(entry.floor());
        if let Some(raised) = entry.raised_level() {
            self.model.raise_level(raised.level.0);
        }
        let carried_out = spread.map(|spread| {
            let writes = spread.committed(0, entry);
            self.zxid = spread.zxid_after(0, *index).unwrap_or_default();
            writes
        });
        for batch in entry.batches() {
            let counts = batch.number == Batch::UNNUMBERED || self.admit(batch.origin, batch.number);
            if counts && carried_out.is_none() {
                all.extend(batch.commands().flat_map(|command| self.apply(entry, &command)));
            }
        }
        for write in carried_out.into_iter().flatten() {
            all.push(self.follow(entry, write));
        }
        let began = |happened: &&Rc<Happened>| {
            let is_begin = matches!(
                happened.call.wish,
                Wish::CreateSession { .. } | Wish::ResumeSession { is_asking: false, .. }
            );
            is_begin && happened.outcome.result.is_ok()
        };
        let begun = all.iter().filter(began).map(|happened| happened.call.session).collect();
        if !self.stands_aside {
            self.zxid = self.model.zxid();
        }
        let (term, payload, model, zxid) = (*term, payload.clone(), self.model.clone(), self.zxid);
        self.entries.push(Settled { term, payload, model, begun, zxid, digest: None });
        Ok(all)
    }

    /// Number of the last start of a member that has written something; 0 for none.
    pub(crate) fn last_start(&self, member: u8) -> u64 {
        self.origins.get(&member).map_or(0, |(start, _)| *start)
    }

    fn admit(&mut self, origin: Origin, number: u64) -> bool {
        let (member, incarnation) = (machine_of(origin.member), origin.incarnation);
        let (current, last) = self.origins.get(&member).copied().unwrap_or_default();
        let expected = if incarnation == current { last + 1 } else { 1 };
        let counts = incarnation >= current && number == expected;
        if counts {
            self.origins.insert(member, (incarnation, number));
        }
        counts
    }

    fn apply(&mut self, entry: &LogEntry, command: &Command<'_>) -> Vec<Rc<Happened>> {
        let ids = command.ids.iter().map(|(scheme, id)| paddock_proto::Id::new(scheme, id)).collect();
        let call = Call {
            session: command.session,
            member: command.member,
            time_ms: command.time_ms,
            ids,
            enforces_quotas: command.enforces_quotas,
            wish: Wish::of(&command.write),
        };
        let mut all = Vec::new();
        while let Some(outcome) = self.model.remove_portion(&call, self.removed_at_once) {
            all.push(self.note(Happened { goes_on: true, ..Happened::new(entry, call.clone(), outcome) }));
        }
        let outcome = self.model.apply(&call);
        all.push(self.note(Happened::new(entry, call, outcome)));
        all
    }

    /// A command of the home group came to this, where znodes are spread.
    fn follow(&mut self, entry: &LogEntry, write: LoggedWrite) -> Rc<Happened> {
        self.follow_elsewhere(&write);
        let LoggedWrite { stamp, call, result, portion, .. } = write;
        let outcome = Outcome { zxid: stamp, result, changes: Changes::new() };
        Rc::new(Happened { goes_on: portion.is_some(), ..Happened::new(entry, call, outcome) })
    }

    /// A command of any group came to this: the model follows it, about.
    pub(crate) fn follow_elsewhere(&mut self, write: &LoggedWrite) {
        if write.result.is_ok() && write.portion.is_none() {
            self.model.apply(&write.call);
        }
    }

    /// The model is as it was made by what happened last.
    fn note(&mut self, happened: Happened) -> Rc<Happened> {
        let happened = Rc::new(happened);
        let zxid = self.model.zxid();
        if zxid > Zxid(0) && !self.told.contains_key(&zxid) {
            self.told.insert(zxid, happened.clone());
            self.models.insert(zxid, self.model.clone());
        }
        happened
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(crate) fn last_zxid(&self) -> Zxid {
        if self.stands_aside { self.zxid } else { self.model.zxid() }
    }

    /// As it is now.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// As it was after an entry; 0 is before the first.
    pub(crate) fn model_after(&self, index: u64) -> Option<Model> {
        match index.checked_sub(1) {
            None => Some(Model::new()),
            Some(position) => self.entries.get(position as usize).map(|settled| settled.model.clone()),
        }
    }

    pub(crate) fn zxid_after(&self, index: u64) -> Option<Zxid> {
        match index.checked_sub(1) {
            None => Some(Zxid(0)),
            Some(position) => self.entries.get(position as usize).map(|settled| settled.zxid),
        }
    }

    /// The digest of a state after an entry, if it is not the first one: that of the first.
    pub(crate) fn first_digest(&mut self, index: u64, digest: u64) -> u64 {
        match index.checked_sub(1).and_then(|position| self.entries.get_mut(position as usize)) {
            Some(settled) => *settled.digest.get_or_insert(digest),
            None => digest,
        }
    }

    /// The sessions that an entry created or brought back.
    pub(crate) fn begun_at(&self, index: u64) -> Vec<SessionId> {
        self.entries.get(index as usize - 1).map(|settled| settled.begun.clone()).unwrap_or_default()
    }

    /// Model of the tree at a zxid.
    pub(crate) fn model_at(&self, zxid: Zxid) -> Option<&Model> {
        match zxid {
            Zxid(0) => Some(&self.beginning),
            zxid => self.models.get(&zxid),
        }
    }

    /// The last change of members that was begun before a zxid.
    pub(crate) fn change_of_members_before(&self, zxid: Zxid) -> Option<&Happened> {
        let begins = |happened: &&Rc<Happened>| {
            matches!(happened.call.wish, Wish::Reconfig { .. }) && happened.outcome.result.is_ok()
        };
        self.told.range(..zxid).map(|(_, happened)| happened).rev().find(begins).map(Rc::as_ref)
    }

    /// Command that took a zxid.
    pub(crate) fn at(&self, zxid: Zxid) -> Option<&Rc<Happened>> {
        self.told.get(&zxid)
    }
}

impl WatchedHistory for Truth {
    const IS_ORDERED: bool = true;

    fn changes_at(&self, zxid: Zxid) -> Option<&[Change<'_>]> {
        self.at(zxid).map(|happened| &happened.outcome.changes[..])
    }

    fn changes_behind(&self, zxid: Zxid) -> Option<(Zxid, &[Change<'_>])> {
        let (next, happened) = self.told.range(zxid.next()..).next()?;
        Some((*next, &happened.outcome.changes[..]))
    }

    fn stamps_at(&self, zxid: Zxid, path: &str) -> Option<Stamps> {
        let stat = self.model_at(zxid)?.stat(path)?;
        Some(Stamps { mzxid: stat.mzxid, pzxid: stat.pzxid })
    }

    fn may_read_at(&self, zxid: Zxid, path: &str, ids: &[Id]) -> bool {
        self.model_at(zxid).is_some_and(|model| model.may_read(path, ids))
    }
}
