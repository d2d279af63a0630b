//! `paddock backup`: the state of a running member, and its log, into a file, a directory or a bucket.

pub(crate) mod archive;
#[cfg(feature = "s3")]
pub(crate) mod bucket;
pub(crate) mod collect;
pub(crate) mod failure;
pub(crate) mod making;
pub(crate) mod manifest;
pub(crate) mod place;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paddock_shell::time_text;

use crate::admin_client::AdminArgs;
use crate::moving::{MovingFailure, ProgressLine};
use collect::BackupMember;
use failure::BackupFailure;
use making::Maker;
use manifest::Manifest;
use place::{BackupPlace, Workshop};

const EXAMPLES: &str = "\
Examples:
  paddock backup paddock1:8080 --auth @identity --to backups/                a new backup in a directory, with a name of its own
  paddock backup paddock1:8080 --auth @identity --to backups/ --incremental  the log since the newest one there
  paddock backup paddock1:8080 --auth @identity --to backups/ --keep 7       and the oldest go, so that seven are left
  paddock backup paddock1:8080 --auth @identity --to today.paddock           one file
  paddock backup paddock1:8080 --auth @identity --to - | age -r KEY > today.age
  paddock backup paddock1:8080 --auth @identity --to s3://bucket/paddock     credentials: the variables AWS_*

The only line of the file is digest:USER:PASSWORD, an identity that the ACL of / names with every permission. A member gives a snapshot
once in five minutes, unless its setting rate_limit_ms says otherwise. Restore: paddock restore --help";

/// Back up a running member: a snapshot as of one moment, and the log since
///
/// Znodes are as they are, with Stats, ACLs, TTLs and the counters of sequential children. With the log, any moment between can be restored.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// HTTP interface of a member (admin_listen); any member will do
    #[arg(value_name = "HOST:ADMINPORT")]
    host: String,
    /// Place of the backup: a directory for several (it exists, or ends with /), a new file, - for standard output, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Take the log along that was written while the snapshot was
    #[arg(long, conflicts_with = "incremental")]
    with_log: bool,
    /// Add the log since the newest backup in the place to that backup; make a new one only if there is none
    #[arg(long)]
    incremental: bool,
    /// Remove the oldest backups in the place, so that as many are left
    #[arg(long, value_name = "COUNT")]
    keep: Option<NonZeroUsize>,
    /// Print what was made as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AdminArgs,
}

/// Place that the options name.
enum BackupTarget {
    Place(BackupPlace),
    File(PathBuf),
    Output,
}

impl BackupTarget {
    fn of(text: &str) -> Result<BackupTarget, BackupFailure> {
        if text == "-" {
            return Ok(BackupTarget::Output);
        }
        if let Some(place) = bucket_of(text)? {
            return Ok(BackupTarget::Place(place));
        }
        let path = Path::new(text);
        if path.is_dir() || text.ends_with('/') {
            return Ok(BackupTarget::Place(BackupPlace::Directory(path.to_owned())));
        }
        if path.exists() {
            return Err(BackupFailure::Wish(format!("{text} is there already: nothing is written over")));
        }
        Ok(BackupTarget::File(path.to_owned()))
    }
}

/// The bucket that a text names, if it names one.
pub(crate) fn bucket_of(text: &str) -> Result<Option<BackupPlace>, BackupFailure> {
    if !text.starts_with("s3://") {
        return Ok(None);
    }
    open_bucket(text).map(Some)
}

#[cfg(feature = "s3")]
fn open_bucket(url: &str) -> Result<BackupPlace, BackupFailure> {
    bucket::Bucket::open(url).map(BackupPlace::Bucket)
}

#[cfg(not(feature = "s3"))]
fn open_bucket(url: &str) -> Result<BackupPlace, BackupFailure> {
    Err(BackupFailure::Wish(format!(
        "{url}: this program was built without S3; build it with the feature s3"
    )))
}

pub(crate) fn run(args: &BackupArgs) -> Result<(), MovingFailure> {
    let interface = args.access.interface(&args.host)?;
    let target = BackupTarget::of(&args.to)?;
    if !matches!(target, BackupTarget::Place(_)) && (args.incremental || args.keep.is_some()) {
        let why =
            "--incremental and --keep are for a place of several backups: a directory, or s3://BUCKET/PREFIX";
        return Err(BackupFailure::Wish(why.to_owned()).into());
    }
    let maker = Maker::new(BackupMember::Other(&interface), ProgressLine::start())?;
    let mut work = Work { args, maker };
    let made = match &target {
        BackupTarget::Place(place) => work.make_in_place(place),
        BackupTarget::File(file) => work.make_file(file),
        BackupTarget::Output => work.make_output(),
    };
    work.maker.end();
    let (name, manifest) = made?;
    report(args, &target, &name, &manifest);
    Ok(())
}

/// The work of one call.
struct Work<'a> {
    args: &'a BackupArgs,
    maker: Maker<'a>,
}

impl Work<'_> {
    /// Returns the name of the backup there, and its manifest.
    fn make_in_place(&mut self, place: &BackupPlace) -> Result<(String, Manifest), BackupFailure> {
        let newest = if self.args.incremental { place.names()?.pop() } else { None };
        let done = match newest {
            Some(name) => {
                let (manifest, _) = self.maker.add(place, &name)?;
                (name, manifest)
            }
            None => self.maker.make_in(place, self.args.with_log)?,
        };
        if let Some(keep) = self.args.keep {
            making::prune(place, keep)?;
        }
        Ok(done)
    }

    fn make_file(&mut self, file: &Path) -> Result<(String, Manifest), BackupFailure> {
        let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let workshop = Workshop::new(dir)?;
        let manifest = self.maker.make(&workshop, self.args.with_log)?;
        let unnamed = workshop.path().join("archive");
        let written = File::create_new(&unnamed).and_then(|out| {
            let mut out = BufWriter::new(out);
            archive::write(workshop.path(), &manifest, &mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        });
        written.map_err(BackupFailure::io("write", unnamed.display()))?;
        // A link takes no name that another file has got meanwhile.
        fs::hard_link(&unnamed, file).map_err(BackupFailure::io("name", file.display()))?;
        place::sync_directory(dir)?;
        Ok((file.display().to_string(), manifest))
    }

    fn make_output(&mut self) -> Result<(String, Manifest), BackupFailure> {
        let workshop = Workshop::new(&std::env::temp_dir())?;
        let manifest = self.maker.make(&workshop, self.args.with_log)?;
        let written = archive::write(workshop.path(), &manifest, &mut BufWriter::new(io::stdout().lock()));
        written.map_err(BackupFailure::io("write", "standard output"))?;
        Ok(("-".to_owned(), manifest))
    }
}

/// Says what was made: on standard error if the backup goes to standard output.
fn report(args: &BackupArgs, target: &BackupTarget, name: &str, manifest: &Manifest) {
    let end = manifest.end();
    let bytes: u64 = manifest.parts().map(|part| part.bytes).sum();
    let text = if args.json {
        serde_json::json!({
            "backup": name, "cluster": manifest.cluster, "snapshot_zxid": format!("0x{:x}", manifest.snapshot.zxid),
            "zxid": format!("0x{:x}", end.zxid), "time_ms": end.time_ms, "bytes": bytes, "logs": manifest.logs.len(),
        })
        .to_string()
    } else {
        format!(
            "backup    {name}\nsnapshot  zxid 0x{:x}, {}\nlog       {} parts, to zxid 0x{:x}, {}\nbytes     {bytes}",
            manifest.snapshot.zxid,
            time_text(manifest.snapshot.time_ms),
            manifest.logs.len(),
            end.zxid,
            time_text(end.time_ms),
        )
    };
    // The work is done, whether or not its report is read.
    let _ = match target {
        BackupTarget::Output => writeln!(io::stderr(), "{text}"),
        _ => writeln!(io::stdout(), "{text}"),
    };
}
