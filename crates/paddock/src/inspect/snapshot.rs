//! `paddock inspect snapshot`: where snapshots stand, and that they are whole.

use std::path::PathBuf;

use paddock_member::{InspectedSnapshot, inspect_snapshot, inspect_snapshots};
use paddock_replica::Membership;
use paddock_storage::OsDisk;
use serde_json::{Value, json};

use super::common::{InspectFailure, listed, lock, members, print, unknown};
use super::foreign;
use crate::moving::MovingFailure;

/// Look into snapshots
///
/// Each file is read to its end, with all its checksums, and every block is decompressed.
#[derive(Debug, clap::Args)]
pub(super) struct SnapshotArgs {
    /// A snapshot file, of Paddock or ZooKeeper, or a data directory, of ClickHouse Keeper too
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Print JSON, one file a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &SnapshotArgs) -> Result<(), MovingFailure> {
    if args.path.is_dir() {
        if !paddock_member::is_data_dir(&OsDisk, &args.path) {
            let found = foreign::read(&args.path, None)?.ok_or_else(|| unknown(&args.path))?;
            return Ok(found.print_files(args.json)?);
        }
        let _lock = lock(&args.path)?;
        return show(args, inspect_snapshots(&OsDisk, &args.path)?);
    }
    if let Some(found) = foreign::read_snapshot(&args.path)? {
        return Ok(found.print_files(args.json)?);
    }
    show(args, vec![inspect_snapshot(&OsDisk, &args.path)])
}

fn show(args: &SnapshotArgs, files: Vec<InspectedSnapshot>) -> Result<(), MovingFailure> {
    for InspectedSnapshot { path, content } in &files {
        let path = path.display().to_string();
        let (value, text) = match content {
            Err(error) => {
                let reason = paddock_tls::with_causes(error);
                (
                    json!({ "path": path, "is_whole": false, "reason": reason }),
                    format!("{path}\n  damaged   {reason}"),
                )
            }
            Ok(content) => {
                let (meta, totals) = (&content.meta, content.totals);
                let (index, term, zxid) = (meta.index.0, meta.term.0, meta.zxid);
                let text = format!(
                    "{path}\n  whole     {} bytes, {} unpacked, in {} blocks\n  entry     {index} of term {term}, zxid 0x{zxid:x}\n  \
                     znodes    {}\n  members   {}",
                    content.bytes,
                    totals.raw_bytes,
                    totals.blocks,
                    totals.items,
                    content.membership.as_ref().map_or_else(|| "unknown".to_owned(), in_words)
                );
                let value = json!({
                    "path": path, "is_whole": true, "bytes": content.bytes, "bytes_unpacked": totals.raw_bytes,
                    "index": index, "term": term, "zxid": zxid, "znodes": totals.items,
                    "members": content.membership.as_ref().map(in_json),
                });
                (value, text)
            }
        };
        print(&if args.json { value.to_string() } else { text })?;
    }
    if files.is_empty() && !args.json {
        print("no snapshots: the log has everything")?;
    }
    match files.iter().filter(|file| file.content.is_err()).count() {
        0 => Ok(()),
        damaged if files.len() == 1 && damaged == 1 => {
            let error = files.into_iter().find_map(|file| file.content.err()).expect("it was counted");
            Err(paddock_member::OfflineError::from(error).into())
        }
        damaged => Err(InspectFailure::DamagedSnapshots { damaged, count: files.len() }.into()),
    }
}

pub(super) fn in_json(membership: &Membership) -> Value {
    json!({
        "voters": members(&membership.voters), "learners": members(&membership.learners),
        "voters_outgoing": members(&membership.voters_outgoing), "learners_next": members(&membership.learners_next),
    })
}

pub(super) fn in_words(membership: &Membership) -> String {
    let parts = [
        ("voters", &membership.voters),
        ("observers", &membership.learners),
        ("voters before the change under way", &membership.voters_outgoing),
        ("observers after it", &membership.learners_next),
    ];
    let parts = parts.into_iter().filter(|(_, ids)| !ids.is_empty());
    let text =
        parts.map(|(name, ids)| format!("{name} {}", listed(&members(ids)))).collect::<Vec<_>>().join("; ");
    if text.is_empty() { "none".to_owned() } else { text }
}
