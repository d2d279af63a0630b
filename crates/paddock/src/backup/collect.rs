//! Parts of a backup, as a running member gives them over its HTTP interface, or within its own process: its snapshot, and its log from an entry on.
//! Everything is verified before it counts.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use paddock_member::{EntryStreamReader, StreamEnd, inspect_snapshot};
use paddock_server::BackupSource;
use paddock_storage::OsDisk;
use paddock_tls::with_causes;

use super::failure::BackupFailure;
use super::manifest::{BackupEnd, LogPart, Manifest, Part, SnapshotPart};
use crate::admin_client::{AdminError, AdminInterface, next_data};
use crate::export::download::{SnapshotFacts, download_snapshot};
use crate::moving::ProgressLine;

const WHAT: &str = "log entries";
const MEBIBYTE: u64 = 1 << 20;

/// A member that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BackupMember<'a> {
    /// Another process, by its HTTP interface.
    Other(&'a AdminInterface),
    /// The member of this process.
    Own(&'a BackupSource),
}

impl BackupMember<'_> {
    /// The member as a person says it.
    fn name(&self) -> String {
        match self {
            BackupMember::Other(interface) => interface.address.clone(),
            BackupMember::Own(source) => format!("member {}", source.member()),
        }
    }
}

/// Collects the parts of a member.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    pub(crate) member: BackupMember<'a>,
    /// Directory of the parts.
    pub(crate) dir: &'a Path,
}

/// A part of the log as it was received.
#[derive(Debug)]
struct Received {
    log: LogPart,
    cluster: u64,
    /// Term of its first entry and CRC-32C of that one's payload; `None` if it has no entry.
    first: Option<(u64, u32)>,
}

impl Collector<'_> {
    /// Takes a snapshot: the beginning of a backup.
    pub(crate) async fn snapshot(&self, line: &mut ProgressLine) -> Result<Manifest, BackupFailure> {
        let path = self.dir.join("snapshot");
        let SnapshotFacts { cluster, taken } = match self.member {
            BackupMember::Other(interface) => download_snapshot(interface, &path, line).await?,
            BackupMember::Own(source) => own_snapshot(source, &path)?,
        };
        let meta = verified_snapshot(&path)?;
        sync(&path)?;
        let part = Part::of(&path).map_err(BackupFailure::io("read", path.display()))?;
        let time_ms = milliseconds(taken);
        let snapshot =
            SnapshotPart { part, index: meta.index.0, term: meta.term.0, zxid: meta.zxid, time_ms };
        Ok(Manifest::new(self.member.name(), cluster, snapshot))
    }

    /// Takes the log behind what a backup has, and adds it to the manifest. Returns the name of the new file, or `None` if nothing was written
    /// since.
    pub(crate) async fn log(
        &self,
        manifest: &mut Manifest,
        line: &mut ProgressLine,
    ) -> Result<Option<String>, BackupFailure> {
        if manifest.is_of_groups() {
            return Err(BackupFailure::OfGroups { made_ms: manifest.snapshot.time_ms });
        }
        let end = manifest.end();
        if let BackupMember::Own(source) = self.member {
            // A log that no longer has the entry could not show whose it is.
            self.check_ensemble(manifest, source.cluster())?;
        }
        let received = match self.receive(end.index, line).await {
            // The snapshot may be all that the member has of its last entry.
            Err(failure) if failure.is_log_gone() && end.crc.is_none() => {
                self.receive(end.index + 1, line).await?
            }
            received => received?,
        };
        self.check_goes_on(manifest, end, &received)?;
        if received.log.last <= end.index {
            return Ok(None);
        }
        let file = format!("log-{:016x}-{:016x}", received.log.first, received.log.last);
        let (from, to) = (self.dir.join(&received.log.part.file), self.dir.join(&file));
        std::fs::rename(&from, &to).map_err(BackupFailure::io("name", to.display()))?;
        let mut log = received.log;
        log.part.file.clone_from(&file);
        manifest.logs.push(log);
        Ok(Some(file))
    }

    /// Receives the log from an entry on.
    async fn receive(&self, first: u64, line: &mut ProgressLine) -> Result<Received, BackupFailure> {
        let time_ms = milliseconds(SystemTime::now());
        let path = self.dir.join("log");
        match self.member {
            BackupMember::Other(interface) => download_log(interface, first, &path, line).await?,
            BackupMember::Own(source) => own_log(source, first, &path)?,
        }
        let (cluster, first_entry, last_crc, end) = verified_log(&path)?;
        let part = Part::of(&path).map_err(BackupFailure::io("read", path.display()))?;
        let StreamEnd { index: last, term, zxid } = end;
        let log = LogPart { part, first, last, term, last_crc, zxid, time_ms };
        Ok(Received { log, cluster, first: first_entry })
    }

    /// Makes sure that a member of this ensemble, if it is of one, is one of that from which the backup is.
    fn check_ensemble(&self, manifest: &Manifest, cluster: Option<u64>) -> Result<(), BackupFailure> {
        let cluster = cluster.map(|cluster| format!("{cluster:016x}"));
        if cluster == manifest.cluster {
            return Ok(());
        }
        let shown = |cluster: &Option<String>| cluster.clone().unwrap_or_else(|| "none".to_owned());
        let why = format!(
            "its ensemble is {}, and that of the backup {}: make a new backup",
            shown(&cluster),
            shown(&manifest.cluster)
        );
        Err(BackupFailure::Foreign { place: self.member.name(), why })
    }

    /// Makes sure that the log is that of the member from which the backup is, or of another one of its ensemble.
    fn check_goes_on(
        &self,
        manifest: &Manifest,
        end: BackupEnd,
        received: &Received,
    ) -> Result<(), BackupFailure> {
        let foreign = |why: String| Err(BackupFailure::Foreign { place: self.member.name(), why });
        self.check_ensemble(manifest, Some(received.cluster).filter(|cluster| *cluster != 0))?;
        match received.first {
            _ if received.log.first > end.index => Ok(()),
            Some((term, crc)) if term == end.term && end.crc.is_none_or(|known| known == crc) => Ok(()),
            _ => foreign(format!(
                "its entry {} is not the one that the backup ends with: make a new backup",
                end.index
            )),
        }
    }
}

/// Receives the log of another process from an entry on.
async fn download_log(
    interface: &AdminInterface,
    first: u64,
    path: &Path,
    line: &mut ProgressLine,
) -> Result<(), BackupFailure> {
    let address = &interface.address;
    let written = |source| BackupFailure::Io { action: "write", place: path.display().to_string(), source };
    let mut response = interface.get(&format!("/api/v1/log?from={first}"), WHAT).await?;
    let mut file = File::create(path).map_err(written)?;
    let http = |source| AdminError::Http { address: address.clone(), what: WHAT, source };
    let mut received = 0;
    while let Some(data) = next_data(response.body_mut()).await.map_err(http)? {
        file.write_all(&data).map_err(written)?;
        received += data.len() as u64;
        line.show_text(|| format!("{address}: {} MiB of the log", received / MEBIBYTE));
    }
    file.sync_all().map_err(written)
}

/// Copies a snapshot of this process into a new file.
fn own_snapshot(source: &BackupSource, path: &Path) -> Result<SnapshotFacts, BackupFailure> {
    let mut snapshot = source.snapshot()?;
    let taken = SystemTime::now();
    let copied = File::create_new(path).and_then(|mut file| io::copy(&mut snapshot.file, &mut file));
    copied.map_err(BackupFailure::io("write", path.display()))?;
    Ok(SnapshotFacts { cluster: snapshot.cluster, taken })
}

/// Writes the log of this process from an entry on.
fn own_log(source: &BackupSource, first: u64, path: &Path) -> Result<(), BackupFailure> {
    let written = |source| BackupFailure::Io { action: "write", place: path.display().to_string(), source };
    let mut out = BufWriter::new(File::create(path).map_err(written)?);
    source.log(first, &mut out)?;
    let file = out.into_inner().map_err(|error| written(error.into_error()))?;
    file.sync_all().map_err(written)
}

/// Place of a snapshot file, once it was read to its end.
pub(crate) fn verified_snapshot(path: &Path) -> Result<paddock_storage::SnapshotMeta, BackupFailure> {
    let content = inspect_snapshot(&OsDisk, path).content;
    let wrong =
        |error| BackupFailure::Snapshot { place: path.display().to_string(), error: with_causes(&error) };
    Ok(content.map_err(wrong)?.meta)
}

/// Id of the ensemble, term and checksum of the first entry, checksum of the last one, and the end of a stream, once it was read to its end.
type VerifiedLog = (u64, Option<(u64, u32)>, u32, StreamEnd);

fn verified_log(path: &Path) -> Result<VerifiedLog, BackupFailure> {
    let wrong = |error| BackupFailure::Log { place: path.display().to_string(), error };
    let file = File::open(path).map_err(BackupFailure::io("open", path.display()))?;
    let mut reader = EntryStreamReader::open(BufReader::new(file)).map_err(wrong)?;
    let (mut first, mut last_crc) = (None, 0);
    while let Some(entry) = reader.next_entry().map_err(wrong)? {
        last_crc = crc32c::crc32c(&entry.payload);
        first = first.or(Some((entry.term, last_crc)));
    }
    Ok((reader.head().cluster, first, last_crc, reader.end().expect("it was read to its end")))
}

fn sync(path: &Path) -> Result<(), BackupFailure> {
    File::open(path).and_then(|file| file.sync_all()).map_err(BackupFailure::io("sync", path.display()))
}

fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
