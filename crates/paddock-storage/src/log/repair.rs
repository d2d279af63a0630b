//! Repair when a log is opened: all that was found is made durable, and the remains of an unfinished sync are put out of the way.
//!
//! The remains are not overwritten. If a sync of zeros over them failed and the process were killed, the next one would
//! be shown the zeros while the disk still had the remains, and a later crash would bring them back among new records.
//! Therefore a segment with a torn end is never written again: the next record starts a new segment, whose header says where
//! this one ended.

use std::path::PathBuf;

use super::recovery::LastSegment;
use super::segment::{Segment, VERSION};
use super::tail::Tail;
use super::{Log, LogError};
use crate::disk::DiskFile;

impl Log {
    pub(super) fn repair(
        &mut self,
        unborn: Option<PathBuf>,
        last: Option<LastSegment>,
    ) -> Result<(), LogError> {
        // The last process may have failed to. A name that is shown and not durable could come back after its file was reused.
        self.disk.sync_dir(&self.dir).map_err(LogError::io("sync directory", &self.dir))?;
        if let Some(path) = unborn {
            self.housekeeper.retire_unborn(&path)?;
        }
        let Some(last) = last else { return Ok(()) };
        let segment = self.segments.back_mut().expect("the last segment is one of them");
        rewrite_last_batch(last.file.as_ref(), segment, last.batch_start)?;
        // A file that has lost its end would change its length with every record, and one of an earlier version has none of
        // this one's records, so that the earlier version still reads it.
        if last.tail == Tail::Torn || last.file_bytes < segment.capacity || last.version < VERSION {
            segment.capacity = segment.end;
        }
        self.file = Some(last.file);
        match self.mark() {
            // The mark is in the next batch then.
            Err(LogError::DiskFull { .. }) => Ok(()),
            marked => marked,
        }
    }
}

/// Writes the last batch again, as it is, and syncs it. After a failed sync the system may show data that is not on
/// the disk and that it will not write, because it takes it for written; the process that saw the failure is gone.
fn rewrite_last_batch(file: &dyn DiskFile, segment: &Segment, start: u64) -> Result<(), LogError> {
    let mut bytes = vec![0; (segment.end - start) as usize];
    let read = file.read_at(&mut bytes, start).map_err(LogError::io("read log segment", &segment.path))?;
    assert!(read == bytes.len(), "{} became shorter while it was being opened", segment.path.display());
    file.write_at(&bytes, start).map_err(LogError::io("write log segment", &segment.path))?;
    file.sync_data().map_err(LogError::io("sync log segment", &segment.path))
}
