//! Parts of a backup, as a running member gives them: its snapshot, and its log from an entry on. Everything is verified before it counts.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use paddock_member::{EntryStreamReader, StreamEnd, inspect_snapshot};
use paddock_storage::OsDisk;
use paddock_tls::with_causes;

use super::failure::BackupFailure;
use super::manifest::{BackupEnd, LogPart, Manifest, Part, SnapshotPart};
use crate::admin_client::{AdminError, AdminInterface, next_data};
use crate::export::download::{SnapshotFacts, download_snapshot};
use crate::moving::ProgressLine;

const WHAT: &str = "log entries";
const MEBIBYTE: u64 = 1 << 20;

/// A member that runs, and where its parts go.
#[derive(Debug)]
pub(crate) struct BackupSource<'a> {
    pub(crate) interface: &'a AdminInterface,
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

impl BackupSource<'_> {
    /// Takes a snapshot: the beginning of a backup.
    pub(crate) async fn snapshot(&self, line: &mut ProgressLine) -> Result<Manifest, BackupFailure> {
        let path = self.dir.join("snapshot");
        let SnapshotFacts { cluster, taken } = download_snapshot(self.interface, &path, line).await?;
        let meta = verified_snapshot(&path)?;
        sync(&path)?;
        let part = Part::of(&path).map_err(BackupFailure::io("read", path.display()))?;
        let time_ms = milliseconds(taken);
        let snapshot =
            SnapshotPart { part, index: meta.index.0, term: meta.term.0, zxid: meta.zxid, time_ms };
        Ok(Manifest::new(self.interface.address.clone(), cluster, snapshot))
    }

    /// Takes the log behind what a backup has, and adds it to the manifest. Returns the name of the new file, or `None` if nothing was written
    /// since.
    pub(crate) async fn log(
        &self,
        manifest: &mut Manifest,
        line: &mut ProgressLine,
    ) -> Result<Option<String>, BackupFailure> {
        let end = manifest.end();
        let received = match self.receive(end.index, line).await {
            // The snapshot may be all that the member has of its last entry.
            Err(BackupFailure::Admin(AdminError::Gone { .. })) if end.crc.is_none() => {
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
        let (address, time_ms) = (&self.interface.address, milliseconds(SystemTime::now()));
        let path = self.dir.join("log");
        let written =
            |source| BackupFailure::Io { action: "write", place: path.display().to_string(), source };
        let mut response = self.interface.get(&format!("/api/v1/log?from={first}"), WHAT).await?;
        let mut file = File::create(&path).map_err(written)?;
        let http = |source| AdminError::Http { address: address.clone(), what: WHAT, source };
        let mut received = 0;
        while let Some(data) = next_data(response.body_mut()).await.map_err(http)? {
            file.write_all(&data).map_err(written)?;
            received += data.len() as u64;
            line.show_text(|| format!("{address}: {} MiB of the log", received / MEBIBYTE));
        }
        file.sync_all().map_err(written)?;
        let (cluster, first_entry, last_crc, end) = verified_log(&path)?;
        let part = Part::of(&path).map_err(BackupFailure::io("read", path.display()))?;
        let StreamEnd { index: last, term, zxid } = end;
        let log = LogPart { part, first, last, term, last_crc, zxid, time_ms };
        Ok(Received { log, cluster, first: first_entry })
    }

    /// Makes sure that the log is that of the member from which the backup is, or of another one of its ensemble.
    fn check_goes_on(
        &self,
        manifest: &Manifest,
        end: BackupEnd,
        received: &Received,
    ) -> Result<(), BackupFailure> {
        let foreign =
            |why: String| Err(BackupFailure::Foreign { place: self.interface.address.clone(), why });
        let cluster = (received.cluster != 0).then(|| format!("{:016x}", received.cluster));
        if cluster != manifest.cluster {
            let shown = |cluster: &Option<String>| cluster.clone().unwrap_or_else(|| "none".to_owned());
            return foreign(format!(
                "its ensemble is {}, and that of the backup {}: make a new backup",
                shown(&cluster),
                shown(&manifest.cluster)
            ));
        }
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
