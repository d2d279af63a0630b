//! The making of backups: of parts that a member gives, in a place that takes them.

use std::num::NonZeroUsize;
use std::time::{Duration, UNIX_EPOCH};

use tokio::runtime::Runtime;

use super::collect::{BackupMember, Collector};
use super::failure::BackupFailure;
use super::manifest::Manifest;
use super::place::{BackupPlace, Workshop};
use crate::moving::ProgressLine;

/// Makes backups of a member.
#[derive(Debug)]
pub(crate) struct Maker<'a> {
    member: BackupMember<'a>,
    runtime: Runtime,
    line: ProgressLine,
}

impl Maker<'_> {
    pub(crate) fn new(member: BackupMember<'_>, line: ProgressLine) -> Result<Maker<'_>, BackupFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(BackupFailure::io("start", "the runtime"))?;
        Ok(Maker { member, runtime, line })
    }

    /// Makes a new backup in a workshop.
    pub(crate) fn make(&mut self, workshop: &Workshop, with_log: bool) -> Result<Manifest, BackupFailure> {
        let collector = Collector { member: self.member, dir: workshop.path() };
        let line = &mut self.line;
        self.runtime.block_on(async {
            let mut manifest = collector.snapshot(line).await?;
            // A schedule takes whatever there is.
            let is_all = manifest.is_of_groups() && matches!(self.member, BackupMember::Own(_));
            if with_log && !is_all {
                collector.log(&mut manifest, line).await?;
            }
            Ok(manifest)
        })
    }

    /// Makes a new backup in a place. Returns its name, and its manifest.
    pub(crate) fn make_in(
        &mut self,
        place: &BackupPlace,
        with_log: bool,
    ) -> Result<(String, Manifest), BackupFailure> {
        let workshop = place.workshop()?;
        let manifest = self.make(&workshop, with_log)?;
        let name = name_of(&manifest);
        place.put(&name, workshop, &manifest)?;
        Ok((name, manifest))
    }

    /// Adds the log since to the backup of this name. Returns its manifest, and whether there was anything to add.
    pub(crate) fn add(&mut self, place: &BackupPlace, name: &str) -> Result<(Manifest, bool), BackupFailure> {
        let mut manifest = place.manifest(name)?;
        let workshop = place.workshop()?;
        let collector = Collector { member: self.member, dir: workshop.path() };
        let file = self.runtime.block_on(collector.log(&mut manifest, &mut self.line))?;
        if let Some(file) = &file {
            place.add(name, &workshop, file, &manifest)?;
        }
        Ok((manifest, file.is_some()))
    }

    /// Takes the line of progress away.
    pub(crate) fn end(self) {
        self.line.end();
    }
}

/// Removes the oldest backups of a place, so that as many are left.
pub(crate) fn prune(place: &BackupPlace, keep: NonZeroUsize) -> Result<(), BackupFailure> {
    let names = place.names()?;
    names[..names.len().saturating_sub(keep.get())].iter().try_for_each(|old| place.remove(old))
}

/// Name of a new backup: its time, by which they are ordered, and its zxid.
fn name_of(manifest: &Manifest) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(manifest.snapshot.time_ms.unsigned_abs());
    let time = humantime::format_rfc3339_millis(time).to_string();
    let digits: String = time.chars().filter(|character| !"-:.".contains(*character)).collect();
    format!("{digits}-{:016x}", manifest.snapshot.zxid)
}
