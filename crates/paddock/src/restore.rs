//! `paddock restore`: a data directory of a new member, from a backup, as of its end or of a moment before.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use paddock_member::{EntryStreamReader, make_directory, read_whole_snapshot};
use paddock_proto::{MEMBER_NUMBER_MAX, MemberNumber};
use paddock_replica::apply_while;
use paddock_shell::time_text;
use paddock_storage::{Disk, OsDisk};
use paddock_tree::Tree;

use crate::backup::failure::BackupFailure;
use crate::backup::manifest::{self, Manifest, SnapshotPart};
use crate::backup::place::{BackupPlace, Workshop};
use crate::backup::{archive, bucket_of, collect};
use crate::moving::{self, MovingFailure, ProgressLine};
use crate::tail::parse_zxid;

/// Begin of a snapshot file.
const SNAPSHOT_MAGIC: &[u8; 8] = b"PADKSNAP";

const EXAMPLES: &str = "\
Examples:
  paddock restore --from backups/ --data-dir /var/lib/paddock                      the newest backup in a directory
  paddock restore --from backups/ --list                                           what there is
  paddock restore --from backups/ --data-dir /var/lib/paddock --to-zxid 0x1f42     the state after a transaction
  paddock restore --from backups/ --data-dir /var/lib/paddock --to-time 2026-11-27T10:30:00Z
  paddock restore --from today.paddock --data-dir /var/lib/paddock --member 2
  paddock restore --from snapshot-00000000000004d2 --data-dir /var/lib/paddock     a snapshot file alone
  age -d -i KEY today.age | paddock restore --from - --data-dir /var/lib/paddock
  paddock restore --from s3://bucket/paddock --data-dir /var/lib/paddock

Nothing is written over: the data directory must be empty, or not be there. The restored member is an ensemble of its own. For an ensemble,
start it with settings that name all members, and the others with empty directories: they join, and are sent everything.";

/// Make a data directory from a backup, as of its end or of any moment that its log has
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("wish").args(["data_dir", "list"]).required(true))]
#[command(group = clap::ArgGroup::new("moment").args(["to_zxid", "to_time"]))]
pub(crate) struct RestoreArgs {
    /// Place of the backup: a directory with several or with one, a file, - for standard input, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Name of the backup in the place [default: the newest that begins before the moment that is wanted]
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    /// New data directory
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print the backups in the place, and restore nothing
    #[arg(long)]
    list: bool,
    /// Number of the member that starts from the new directory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(MemberNumber).range(0..=i64::from(MEMBER_NUMBER_MAX)))]
    member: MemberNumber,
    /// Restore the state after this transaction, as 0x1f or 31
    #[arg(long, value_name = "ZXID", value_parser = parse_zxid)]
    to_zxid: Option<i64>,
    /// Restore the state after what was written until this time, such as 2026-11-27T10:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to_time: Option<i64>,
}

fn parse_time(text: &str) -> Result<i64, String> {
    let wrong = || "expected a time of UTC, as 2026-11-27T10:30:00Z".to_owned();
    let time = humantime::parse_rfc3339_weak(text).map_err(|_| wrong())?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
    i64::try_from(since.as_millis()).map_err(|_| wrong())
}

/// Moment whose state is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    End,
    Zxid(i64),
    Time(i64),
}

impl Moment {
    /// True if a backup begins with this moment, or before.
    fn is_behind(self, snapshot: &SnapshotPart) -> bool {
        match self {
            Moment::End => true,
            Moment::Zxid(zxid) => snapshot.zxid <= zxid,
            Moment::Time(time_ms) => snapshot.time_ms <= time_ms,
        }
    }

    fn shown(self) -> String {
        match self {
            Moment::End => "its end".to_owned(),
            Moment::Zxid(zxid) => format!("zxid 0x{zxid:x}"),
            Moment::Time(time_ms) => time_text(time_ms),
        }
    }

    /// Fails unless a backup at `place` has the moment.
    fn check(self, manifest: &Manifest, place: &str) -> Result<(), BackupFailure> {
        let (snapshot, end) = (&manifest.snapshot, manifest.end());
        let (from, to) = match self {
            Moment::End => return Ok(()),
            Moment::Zxid(zxid) if (snapshot.zxid..=end.zxid).contains(&zxid) => return Ok(()),
            Moment::Time(time_ms) if (snapshot.time_ms..=end.time_ms).contains(&time_ms) => return Ok(()),
            Moment::Zxid(_) => (Moment::Zxid(snapshot.zxid), Moment::Zxid(end.zxid)),
            Moment::Time(_) => (Moment::Time(snapshot.time_ms), Moment::Time(end.time_ms)),
        };
        let why = format!(
            "{place} has no state of {}: it goes from {} to {}",
            self.shown(),
            from.shown(),
            to.shown()
        );
        Err(BackupFailure::Wish(why))
    }
}

pub(crate) fn run(args: &RestoreArgs) -> Result<(), MovingFailure> {
    let moment = match (args.to_zxid, args.to_time) {
        (Some(zxid), _) => Moment::Zxid(zxid),
        (_, Some(time_ms)) => Moment::Time(time_ms),
        _ => Moment::End,
    };
    let Some(data_dir) = &args.data_dir else { return Ok(list(&args.from)?) };
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    paddock_member::check_free(disk.as_ref(), data_dir)?;
    let mut line = ProgressLine::start();
    let restored = restore(args, moment, data_dir, &mut line);
    line.end();
    let (mut tree, place) = restored?;
    tree.leave_ensemble();
    make_directory(&disk, data_dir, args.member, &mut tree)?;
    let mut out = io::stdout().lock();
    // The work is done, whether or not its report is read.
    let _ = moving::print_state(&tree, &mut out)
        .and_then(|()| writeln!(out, "backup    {place}"))
        .and_then(|()| moving::print_written(Some(data_dir), &mut out));
    Ok(())
}

/// The place of several backups, and the name of the one that is meant if it is one.
fn place_of(from: &str) -> Result<(BackupPlace, Option<String>), BackupFailure> {
    if let Some(place) = bucket_of(from)? {
        return Ok((place, None));
    }
    let path = Path::new(from);
    let metadata = path.metadata().map_err(BackupFailure::io("open", from))?;
    if !metadata.is_dir() {
        return Err(BackupFailure::Wish(format!("{from} is one backup: there is nothing to choose from")));
    }
    if !path.join(manifest::NAME).exists() {
        return Ok((BackupPlace::Directory(path.to_owned()), None));
    }
    let path = path.canonicalize().map_err(BackupFailure::io("open", from))?;
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(dir), Some(name)) => Ok((BackupPlace::Directory(dir.to_owned()), Some(name.to_owned()))),
        _ => Err(BackupFailure::NoBackup { place: from.to_owned() }),
    }
}

fn list(from: &str) -> Result<(), BackupFailure> {
    let (place, only) = place_of(from)?;
    let mut out = io::stdout().lock();
    for name in place.names()?.into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)) {
        let line = match place.manifest(&name) {
            Err(failure) => format!("{name}  {}", paddock_tls::with_causes(&failure)),
            Ok(manifest) => {
                let (snapshot, end) = (&manifest.snapshot, manifest.end());
                let (from, to) = (time_text(snapshot.time_ms), time_text(end.time_ms));
                let bytes: u64 = manifest.parts().map(|part| part.bytes).sum();
                format!(
                    "{name}  {from} to {to}  zxid 0x{:x} to 0x{:x}  {bytes} bytes",
                    snapshot.zxid, end.zxid
                )
            }
        };
        if writeln!(out, "{line}").is_err() {
            // A reader that has seen enough is no failure.
            return Ok(());
        }
    }
    Ok(())
}

/// The state that is wanted, and the backup that it is from.
fn restore(
    args: &RestoreArgs,
    moment: Moment,
    data_dir: &Path,
    line: &mut ProgressLine,
) -> Result<(Tree, String), MovingFailure> {
    // Copies of parts lie beside the new directory, where there is room for it.
    let within = data_dir.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(within).map_err(BackupFailure::io("create directory", within.display()))?;
    let workshop = Workshop::new(within)?;
    if is_snapshot(&args.from) {
        if moment != Moment::End {
            return Err(
                BackupFailure::Wish(format!("{} is a snapshot alone: it has one state", args.from)).into()
            );
        }
        return Ok((read_whole_snapshot(&OsDisk, Path::new(&args.from))?, args.from.clone()));
    }
    if args.from == "-" || Path::new(&args.from).is_file() {
        let manifest = if args.from == "-" {
            archive::read(&mut io::stdin().lock(), "standard input", workshop.path())?
        } else {
            let file = File::open(&args.from).map_err(BackupFailure::io("open", &args.from))?;
            archive::read(&mut BufReader::new(file), &args.from, workshop.path())?
        };
        moment.check(&manifest, &args.from)?;
        let path = |file: &str| Ok(workshop.path().join(file));
        return Ok((read(&manifest, moment, &path, line)?, args.from.clone()));
    }
    let (place, only) = place_of(&args.from)?;
    let (name, manifest) = choose(&place, args.backup.clone().or(only), moment)?;
    let shown = place.shown(&name);
    moment.check(&manifest, &shown)?;
    let path = |file: &str| place.fetch(&name, file, &workshop);
    Ok((read(&manifest, moment, &path, line)?, shown))
}

/// True for a file that begins as a snapshot does.
fn is_snapshot(from: &str) -> bool {
    let mut magic = [0; SNAPSHOT_MAGIC.len()];
    let is_read = File::open(from).and_then(|mut file| file.read_exact(&mut magic)).is_ok();
    is_read && magic == *SNAPSHOT_MAGIC
}

/// The backup that is named, or else the newest one that begins before the moment.
fn choose(
    place: &BackupPlace,
    named: Option<String>,
    moment: Moment,
) -> Result<(String, Manifest), BackupFailure> {
    if let Some(name) = named {
        let manifest = place.manifest(&name)?;
        return Ok((name, manifest));
    }
    let mut oldest = None;
    for name in place.names()?.into_iter().rev() {
        let manifest = place.manifest(&name)?;
        if moment.is_behind(&manifest.snapshot) {
            return Ok((name, manifest));
        }
        oldest = Some((name, manifest));
    }
    oldest.ok_or_else(|| BackupFailure::NoBackup { place: place.shown("") })
}

/// Reads a backup whose files `path` gives, up to a moment. Every file is verified as a whole.
fn read(
    manifest: &Manifest,
    moment: Moment,
    path: &dyn Fn(&str) -> Result<PathBuf, BackupFailure>,
    line: &mut ProgressLine,
) -> Result<Tree, MovingFailure> {
    let snapshot = &manifest.snapshot;
    let file = path(&snapshot.part.file)?;
    snapshot.part.verify(&file)?;
    let meta = collect::verified_snapshot(&file)?;
    if (meta.index.0, meta.term.0, meta.zxid) != (snapshot.index, snapshot.term, snapshot.zxid) {
        return Err(BackupFailure::OtherSnapshot { place: file.display().to_string() }.into());
    }
    let mut tree = read_whole_snapshot(&OsDisk, &file)?;
    let (mut last, mut goes_on) = (snapshot.index, true);
    for log in &manifest.logs {
        let file = path(&log.part.file)?;
        log.part.verify(&file)?;
        let place = file.display().to_string();
        let wrong = |error| BackupFailure::Log { place: place.clone(), error };
        let input = File::open(&file).map_err(BackupFailure::io("open", &place))?;
        let mut reader = EntryStreamReader::open(BufReader::new(input)).map_err(wrong)?;
        while let Some(entry) = reader.next_entry().map_err(wrong)?.filter(|_| goes_on) {
            if entry.index <= last {
                continue;
            }
            if entry.index != last + 1 {
                let why = format!("entry {} follows entry {last}: a part of the log is missing", entry.index);
                return Err(BackupFailure::Manifest { place: place.clone(), why }.into());
            }
            last = entry.index;
            goes_on = apply_while(&mut tree, &entry, &mut |tree, command| match moment {
                Moment::End => true,
                Moment::Zxid(zxid) => tree.zxid().0 < zxid,
                Moment::Time(time_ms) => command.time_ms <= time_ms,
            });
            line.show_text(|| format!("{place}: entry {last}"));
        }
        if goes_on && tree.zxid().0 != log.zxid {
            let why =
                format!("it leads to zxid 0x{:x}, and the manifest says 0x{:x}", tree.zxid().0, log.zxid);
            return Err(BackupFailure::Manifest { place, why }.into());
        }
    }
    if tree.has_all_znodes() {
        return Ok(tree);
    }
    let why =
        format!("at {} a part of the znodes lay in other Raft groups, whose logs it has not", moment.shown());
    Err(BackupFailure::Wish(why).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_one_of_utc() {
        assert_eq!(parse_time("2026-11-27T10:30:00Z"), Ok(1_795_775_400_000));
        assert_eq!(parse_time("2026-11-27 10:30:00.5"), Ok(1_795_775_400_500));
        for wrong in ["", "yesterday", "1960-01-01T00:00:00Z", "2026-11-27"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
