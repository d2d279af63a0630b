use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::disk::{Access, Disk, OsDisk};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A file of zeros, as a new segment is, and where it is.
fn segment(len: u64) -> (TempDir, PathBuf, File) {
    let temp = tempfile::tempdir().expect("temporary directory");
    let path = temp.path().join("segment");
    fs::write(&path, vec![0; len as usize]).expect("write");
    let file = File::options().read(true).write(true).open(&path).expect("open");
    file.sync_all().expect("sync");
    (temp, path, file)
}

/// True if a test can have direct writes where it keeps its files. Asked in another way than `open` does.
#[cfg(target_os = "linux")]
fn is_possible(path: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path, OFlags::WRONLY | OFlags::DIRECT, Mode::empty()).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_possible(_path: &Path) -> bool {
    false
}

#[test]
fn the_file_system_is_asked_once_and_batches_go_past_the_page_cache() {
    let (_temp, path, file) = segment(8 * BLOCK);
    let mut direct = Direct::Untried;
    assert_eq!(direct.write(&file, b"one", 0).expect("write"), is_possible(&path));
    assert_eq!(matches!(direct, Direct::Never), !is_possible(&path));
}

#[test]
fn what_is_not_for_direct_writes_is_left_alone() {
    let (_temp, path, file) = segment(2 * BLOCK + 8);
    let mut direct = Direct::Untried;
    let end = 2 * BLOCK;
    assert!(!direct.write(&file, b"the end", end).expect("the block is not whole"));
    assert!(!direct.write(&file, &[1; 9], end - 8).expect("one byte is in that block"));
    assert!(!direct.write(&file, &[1; BUFFER_BYTES + 1], 0).expect("more than the buffer takes"));
    assert_eq!(fs::read(&path).expect("read"), vec![0; 2 * BLOCK_BYTES + 8]);
    assert_eq!(direct.write(&file, &[1; 8], end - 8).expect("write"), is_possible(&path));
    assert_eq!(file.metadata().expect("metadata").len(), 2 * BLOCK + 8);
}

#[cfg(target_os = "linux")]
#[test]
fn a_refusal_is_final() {
    let (_temp, _path, file) = segment(BLOCK);
    // Files of this file system are not opened for direct writes.
    let refused = File::open("/proc/self/comm").expect("open");
    let mut direct = Direct::Untried;
    assert!(!direct.write(&refused, b"one", 0).expect("no failure"));
    assert!(matches!(direct, Direct::Never));

    // And this one opens, but does not know such writes.
    let unwritable = File::options().write(true).open("/proc/self/coredump_filter").expect("open");
    let mut direct = Direct::Ready(DirectWriter::new(unwritable, BLOCK));
    assert!(!direct.write(&file, b"one", 0).expect("no failure"));
    assert!(matches!(direct, Direct::Never));
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_that_fails_has_not_refused() {
    use rustix::io::Errno;

    for refusal in [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM] {
        assert!(is_refusal(&refusal.into()), "{refusal}");
    }
    for failure in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::STALE, Errno::NODEV] {
        assert!(!is_refusal(&failure.into()), "{failure}");
    }
}

#[test]
fn a_failure_is_told() {
    let (_temp, path, file) = segment(BLOCK);
    let read_only = File::open(&path).expect("open");
    let mut direct = Direct::Ready(DirectWriter::new(read_only, BLOCK));
    for _ in 0..2 {
        direct.write(&file, b"one", 0).expect_err("it is not open for writing");
    }
}

#[test]
fn what_is_open_for_reading_is_not_written() {
    let (_temp, path, _file) = segment(BLOCK);
    let file = OsDisk.open(&path, Access::Read).expect("open");
    file.write_synced(b"one", 0).expect_err("it is not open for writing");
    assert_eq!(fs::read(&path).expect("read"), vec![0; BLOCK_BYTES]);
}

/// Step in the life of a segment that is filled from front to back.
#[derive(Clone, Debug)]
enum DiskStep {
    /// The next batch.
    Batch(usize),
    /// Up to this many of the last bytes are written again, otherwise, as repair does.
    Rewrite(usize),
    /// Another process goes on.
    Reopen,
}

fn step() -> impl Strategy<Value = DiskStep> {
    prop_oneof![
        6 => (0..300_usize).prop_map(DiskStep::Batch),
        3 => (0..20_000_usize).prop_map(DiskStep::Batch),
        2 => (0..4_usize, -9..9_isize).prop_map(|(blocks, more)| {
            DiskStep::Batch((blocks * BLOCK_BYTES).saturating_add_signed(more))
        }),
        1 => (BUFFER_BYTES - 5000..BUFFER_BYTES + 5000).prop_map(DiskStep::Batch),
        2 => (0..6000_usize).prop_map(DiskStep::Rewrite),
        1 => Just(DiskStep::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_is_as_if_written_through_the_page_cache(
        len in (1..3_000_000_u64),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (_temp, path, _file) = segment(len);
        let mut expected = vec![0; len as usize];
        let mut end = 0;
        let mut file = OsDisk.open(&path, Access::ReadWrite).expect("open");
        for (number, step) in steps.into_iter().enumerate() {
            let byte = number as u8 + 1;
            match step {
                DiskStep::Batch(bytes) => {
                    let batch = vec![byte; bytes.min(expected.len() - end)];
                    file.write_synced(&batch, end as u64).expect("write and sync");
                    expected[end..end + batch.len()].copy_from_slice(&batch);
                    end += batch.len();
                }
                DiskStep::Rewrite(bytes) => {
                    let start = end.saturating_sub(bytes);
                    expected[start..end].fill(byte);
                    file.write_at(&expected[start..end], start as u64).expect("write");
                    file.sync_data().expect("sync");
                }
                DiskStep::Reopen => file = OsDisk.open(&path, Access::ReadWrite).expect("open"),
            }
            prop_assert!(fs::read(&path).expect("read") == expected, "differs after step {number}");
        }
    }
}
