//! One walk over both trees, which makes the target equal to the source.

use std::io::{self, Write};
use std::ops::AddAssign;

use super::failure::LiveFailure;
use super::kept::{Kind, Unequal, kind_of};
use super::pair::{LivePair, Places};
use super::writes::Writes;
use crate::diff::seen::{Seen, has_hidden_acl, order_of};
use crate::diff::server::ServerWalk;
use crate::moving::ProgressLine;

/// Changes that were made to the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    pub(super) created: u64,
    pub(super) changed: u64,
    pub(super) deleted: u64,
    /// Znodes whose counters were raised.
    pub(super) raised: u64,
    /// Writes that did not fit what the target holds.
    pub(super) missed: u64,
}

impl Repairs {
    pub(super) fn is_none(self) -> bool {
        self == Repairs::default()
    }
}

impl AddAssign for Repairs {
    fn add_assign(&mut self, other: Repairs) {
        self.created += other.created;
        self.changed += other.changed;
        self.deleted += other.deleted;
        self.raised += other.raised;
        self.missed += other.missed;
    }
}

/// Znodes that a walk over the source met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) kept: u64,
    pub(super) ephemeral: u64,
    /// Containers and znodes with a TTL whose copies are plain.
    pub(super) passing: u64,
}

/// A step of both walks: the znode that comes first, or both if they have the same path.
enum WalkStep {
    Source(Seen),
    Target(Seen),
    Both(Seen, Seen),
}

/// Both trees without their ephemerals, side by side.
struct Walks<'a> {
    source: ServerWalk<'a>,
    target: ServerWalk<'a>,
    next_source: Option<Seen>,
    next_target: Option<Seen>,
    met: Met,
}

impl<'a> Walks<'a> {
    async fn begin(pair: &'a LivePair, places: &'a Places) -> Result<Walks<'a>, LiveFailure> {
        let mut source = ServerWalk::over(pair.source.clone(), &places.from, &pair.exclude).await?;
        let mut target = ServerWalk::over(pair.target.clone(), &places.to, &pair.exclude).await?;
        let mut met = Met::default();
        let next_source = next_kept(&mut source, &mut met).await?;
        let next_target = next_kept(&mut target, &mut Met::default()).await?;
        Ok(Walks { source, target, next_source, next_target, met })
    }

    async fn next(&mut self) -> Result<Option<WalkStep>, LiveFailure> {
        let order = order_of(self.next_source.as_ref(), self.next_target.as_ref());
        let source = if order.is_le() { self.advance_source().await? } else { None };
        let target = if order.is_ge() { self.advance_target().await? } else { None };
        Ok(match (source, target) {
            (None, None) => None,
            (Some(source), None) => Some(WalkStep::Source(source)),
            (None, Some(target)) => Some(WalkStep::Target(target)),
            (Some(source), Some(target)) => Some(WalkStep::Both(source, target)),
        })
    }

    async fn advance_source(&mut self) -> Result<Option<Seen>, LiveFailure> {
        let next = match self.next_source {
            Some(_) => next_kept(&mut self.source, &mut self.met).await?,
            None => None,
        };
        Ok(std::mem::replace(&mut self.next_source, next))
    }

    async fn advance_target(&mut self) -> Result<Option<Seen>, LiveFailure> {
        let next = match self.next_target {
            Some(_) => next_kept(&mut self.target, &mut Met::default()).await?,
            None => None,
        };
        Ok(std::mem::replace(&mut self.next_target, next))
    }
}

/// The next znode that is no ephemeral.
async fn next_kept(walk: &mut ServerWalk<'_>, met: &mut Met) -> Result<Option<Seen>, LiveFailure> {
    while let Some(znode) = walk.next().await? {
        match kind_of(&znode) {
            Kind::Ephemeral => {
                met.ephemeral += 1;
                continue;
            }
            Kind::Passing => met.passing += 1,
            Kind::Persistent => {}
        }
        met.kept += 1;
        return Ok(Some(znode));
    }
    Ok(None)
}

pub(super) async fn repair(
    pair: &LivePair,
    places: &Places,
    line: &mut ProgressLine,
) -> Result<(Repairs, Met), LiveFailure> {
    let mut walks = Walks::begin(pair, places).await?;
    let mut writes = Writes::new(&pair.target, &places.to);
    let mut repairs = Repairs::default();
    let mut gone = Vec::new();
    let mut behind = Vec::new();
    while let Some(step) = walks.next().await? {
        match step {
            WalkStep::Source(znode) => {
                create(&znode, places, &mut writes).await?;
                repairs.created += 1;
            }
            WalkStep::Target(znode) => gone.push(znode.path),
            WalkStep::Both(source, target) => {
                let unequal = Unequal::between(&source, &target);
                repairs.changed += u64::from(change(&source, unequal, places, &mut writes).await?);
                if unequal.behind > 0 {
                    behind.push((source.path, unequal.behind));
                }
            }
        }
        line.show_text(|| progress(walks.met, repairs));
    }
    repairs.deleted = gone.len() as u64;
    for path in gone.iter().rev() {
        writes.delete(path).await?;
    }
    // Each create raises a counter by itself: it is compared once all of them are there.
    if repairs.created == 0 && repairs.deleted == 0 {
        repairs.raised = raise(&behind, &mut writes, line).await?;
    }
    repairs.missed = writes.finish().await?;
    Ok((repairs, walks.met))
}

fn progress(met: Met, repairs: Repairs) -> String {
    let Repairs { created, changed, .. } = repairs;
    format!("{} znodes read, {created} created, {changed} changed", met.kept)
}

pub(super) async fn create(
    znode: &Seen,
    places: &Places,
    writes: &mut Writes<'_>,
) -> Result<(), LiveFailure> {
    check_acl(znode, places)?;
    writes.create(znode).await
}

/// Writes what differs; true if something does.
pub(super) async fn change(
    source: &Seen,
    unequal: Unequal,
    places: &Places,
    writes: &mut Writes<'_>,
) -> Result<bool, LiveFailure> {
    check_acl(source, places)?;
    if unequal.data {
        writes.set_data(source).await?;
    }
    if unequal.acl {
        writes.set_acl(source).await?;
    }
    Ok(unequal.data || unequal.acl)
}

fn check_acl(znode: &Seen, places: &Places) -> Result<(), LiveFailure> {
    if !has_hidden_acl(znode) {
        return Ok(());
    }
    Err(LiveFailure::HiddenAcl { server: places.from.clone(), path: znode.path.clone() })
}

async fn raise(
    behind: &[(String, i64)],
    writes: &mut Writes<'_>,
    line: &mut ProgressLine,
) -> Result<u64, LiveFailure> {
    for (number, (path, by)) in behind.iter().enumerate() {
        line.show_text(|| format!("raising the counter of {path} by {by}, {number} of {}", behind.len()));
        writes.raise(path, *by).await?;
    }
    Ok(behind.len() as u64)
}

/// Prints the differences, as many as `limit`; returns the number of all.
pub(super) async fn compare(
    pair: &LivePair,
    places: &Places,
    limit: u64,
    out: &mut dyn Write,
) -> Result<u64, LiveFailure> {
    let mut walks = Walks::begin(pair, places).await?;
    let mut differences = 0;
    while let Some(step) = walks.next().await? {
        let Some(difference) = difference(&step) else { continue };
        differences += 1;
        if differences <= limit {
            // The number of differences is told in any case.
            let _: io::Result<()> = writeln!(out, "{difference}");
        }
    }
    Ok(differences)
}

fn difference(step: &WalkStep) -> Option<String> {
    match step {
        WalkStep::Source(znode) => Some(format!("only in the source  {}", znode.path)),
        WalkStep::Target(znode) => Some(format!("only in the target  {}", znode.path)),
        WalkStep::Both(source, target) => {
            let unequal = Unequal::between(source, target);
            (!unequal.is_none()).then(|| format!("different  {}: {}", source.path, unequal.names()))
        }
    }
}
