use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::disk::{Disk, DiskFault, MemDisk, OsDisk};

const DIR: &str = "/data";

fn meta(index: u64) -> SnapshotMeta {
    let app = b"members: 1, 2, 3".to_vec();
    SnapshotMeta { group: GroupNumber(7), term: Term(3), index: Index(index), zxid: -5, app }
}

fn blocks(index: u64) -> Vec<Vec<u8>> {
    let block = |seed: u64| (0..200 + seed).map(|at| (at * at + seed + index) as u8).collect();
    vec![block(1), vec![0; 5000], block(2), vec![9]]
}

fn write_on(disk: Arc<dyn Disk>, dir: &Path, index: u64) -> Result<SnapshotFile, SnapshotError> {
    let mut writer = SnapshotWriter::create(disk, dir, meta(index))?;
    for block in blocks(index) {
        writer.block(&block)?;
    }
    writer.finish(42)
}

fn write(disk: &MemDisk, index: u64) -> Result<SnapshotFile, SnapshotError> {
    write_on(Arc::new(disk.clone()), Path::new(DIR), index)
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<Vec<u8>>, SnapshotError> {
    let mut reader = SnapshotReader::open(disk, path)?;
    let mut found = Vec::new();
    while let Some(block) = reader.next_block()? {
        found.push(block);
    }
    Ok(found)
}

fn names(disk: &MemDisk) -> Vec<String> {
    disk.list(Path::new(DIR)).expect("list")
}

fn path(index: u64) -> PathBuf {
    snapshot_path(Path::new(DIR), Index(index))
}

fn check_write_and_read(disk: Arc<dyn Disk>, dir: &Path) {
    let file = write_on(disk.clone(), dir, 0x1a).expect("write");
    assert_eq!(file.path, dir.join("snapshot-000000000000001a"));
    assert_eq!(disk.list(dir).expect("list"), ["snapshot-000000000000001a"]);
    let reader = SnapshotReader::open(disk.as_ref(), &file.path).expect("open");
    assert_eq!(*reader.meta(), meta(0x1a));
    assert_eq!(reader.totals(), SnapshotTotals { blocks: 4, raw_bytes: 201 + 5000 + 202 + 1, items: 42 });
    assert_eq!(read(disk.as_ref(), &file.path).expect("read"), blocks(0x1a));
    assert_eq!(verify(disk.as_ref(), &file.path).expect("verify"), meta(0x1a));
}

#[test]
fn a_snapshot_comes_back_from_both_disks() {
    check_write_and_read(Arc::new(MemDisk::new(1)), Path::new(DIR));
    let temp = tempfile::tempdir().expect("temporary directory");
    check_write_and_read(Arc::new(OsDisk), &temp.path().join("snapshots"));
}

#[test]
fn a_snapshot_may_have_no_blocks_and_no_app_bytes() {
    let disk = MemDisk::new(1);
    let meta = SnapshotMeta::default();
    let writer = SnapshotWriter::create(Arc::new(disk.clone()), Path::new(DIR), meta).expect("create");
    let file = writer.finish(0).expect("finish");
    assert!(read(&disk, &file.path).expect("read").is_empty());
}

#[test]
fn blocks_can_be_decompressed_elsewhere() {
    let disk = MemDisk::new(1);
    let file = write(&disk, 5).expect("write");
    let mut reader = SnapshotReader::open(&disk, &file.path).expect("open");
    let mut compressed = Vec::new();
    while let Some(block) = reader.next_compressed().expect("read") {
        compressed.push(block);
    }
    let found = std::thread::spawn(move || -> Vec<Vec<u8>> {
        let blocks = compressed.iter().enumerate().map(|(number, block)| {
            let raw = block.decompress().expect("it was checked");
            assert_eq!((block.number(), block.raw_bytes()), (number as u64, raw.len()));
            raw
        });
        blocks.collect()
    });
    assert_eq!(found.join().expect("the thread ends"), blocks(5));
}

#[test]
fn every_flipped_byte_is_refused() {
    let disk = MemDisk::new(1);
    let file = write(&disk, 5).expect("write");
    let good = disk.contents(&file.path).expect("it exists");
    for offset in 0..good.len() {
        for bit in [offset % 8, (offset + 3) % 8] {
            disk.flip(&file.path, offset as u64, bit as u8);
            let error = verify(&disk, &file.path).expect_err("damaged");
            let version_byte = (8..12).contains(&offset);
            assert!(
                matches!(error, SnapshotError::Damaged { .. })
                    || version_byte && matches!(error, SnapshotError::UnknownVersion { .. }),
                "{error} at {offset}"
            );
            read(&disk, &file.path).expect_err("damaged");
            disk.flip(&file.path, offset as u64, bit as u8);
        }
    }
    verify(&disk, &file.path).expect("it is as it was");
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let disk = MemDisk::new(1);
    let file = write(&disk, 5).expect("write");
    let good = disk.contents(&file.path).expect("it exists");
    for length in 0..good.len() {
        disk.put(&file.path, &good[..length]);
        let error = verify(&disk, &file.path).expect_err("cut short");
        assert!(matches!(error, SnapshotError::Damaged { .. }), "{error}");
    }
    disk.put(&file.path, &[good.as_slice(), &[0]].concat());
    verify(&disk, &file.path).expect_err("too long");
}

#[test]
fn blocks_that_are_swapped_or_missing_are_noticed() {
    let disk = MemDisk::new(1);
    let file = write(&disk, 5).expect("write");
    let good = disk.contents(&file.path).expect("it exists");
    let start = format::HEADER_BYTES + meta(5).app.len();
    let length = |at: usize| 12 + u32::from_le_bytes(good[at + 4..at + 8].try_into().expect("four")) as usize;
    let second = start + length(start);
    let third = second + length(second);

    let swapped = [&good[..start], &good[second..third], &good[start..second], &good[third..]].concat();
    disk.put(&file.path, &swapped);
    verify(&disk, &file.path).expect_err("swapped");
    disk.put(&file.path, &[&good[..start], &good[second..]].concat());
    verify(&disk, &file.path).expect_err("missing");
}

#[test]
fn a_file_under_another_name_is_refused() {
    let disk = MemDisk::new(1);
    let file = write(&disk, 5).expect("write");
    disk.rename(&file.path, &path(6)).expect("rename");
    let error = verify(&disk, &path(6)).expect_err("it is of index 5");
    assert!(matches!(error, SnapshotError::Damaged { what: SnapshotDamage::WrongIndex, .. }), "{error}");
}

#[test]
fn a_damaged_newest_is_passed_over_and_named() {
    let disk = MemDisk::new(1);
    disk.create_dir(Path::new(DIR)).expect("create");
    assert!(newest_valid(&disk, Path::new(DIR)).expect("list").found.is_none());
    for index in [5, 16, 255] {
        write(&disk, index).expect("write");
    }
    let newest = newest_valid(&disk, Path::new(DIR)).expect("list");
    assert_eq!(newest.found.expect("there is one").1, meta(255));
    assert!(newest.skipped.is_empty());

    disk.flip(&path(255), 100, 0);
    let newest = newest_valid(&disk, Path::new(DIR)).expect("list");
    assert_eq!(newest.found.expect("there is one").1, meta(16));
    assert_eq!(newest.skipped.len(), 1);
    assert_eq!(newest.skipped[0].file, SnapshotFile { index: Index(255), path: path(255) });
    assert!(newest.skipped[0].error.to_string().contains("snapshot-00000000000000ff"));
}

#[test]
fn retaining_never_removes_the_last_whole_one() {
    let disk = MemDisk::new(1);
    for index in 1..=4 {
        write(&disk, index).expect("write");
    }
    let left = retain(&disk, Path::new(DIR), 3).expect("retain");
    assert_eq!(left.iter().map(|file| file.index.0).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(list(&disk, Path::new(DIR)).expect("list"), left);

    disk.flip(&path(3), 60, 0);
    disk.flip(&path(4), 60, 0);
    let left = retain(&disk, Path::new(DIR), 1).expect("retain");
    assert_eq!(left.iter().map(|file| file.index.0).collect::<Vec<_>>(), [2, 4]);
    disk.crash();
    assert_eq!(list(&disk, Path::new(DIR)).expect("list"), left);
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let whole = MemDisk::new(1);
    write(&whole, 5).expect("write");
    for room in [0, 20, 100, 300, whole.used_bytes() - 1] {
        let disk = MemDisk::new(1);
        write(&disk, 4).expect("write");
        disk.set_capacity(Some(disk.used_bytes() + room));
        let error = write(&disk, 5).expect_err("there is no room");
        assert!(matches!(error, SnapshotError::DiskFull { .. }), "{error}");
        assert_eq!(names(&disk), ["snapshot-0000000000000004"], "with room for {room}");
        disk.set_capacity(None);
        write(&disk, 5).expect("there is room again");
    }
}

#[test]
fn little_waits_for_the_disk_at_a_time() {
    let disk = MemDisk::new(1);
    let mut writer = SnapshotWriter::create(Arc::new(disk.clone()), Path::new(DIR), meta(1)).expect("create");
    // Its own checksums are noise enough not to be compressed.
    let noise: Vec<u8> =
        (0..300_000u32).flat_map(|at| crc32c::crc32c(&at.to_le_bytes()).to_le_bytes()).collect();
    disk.fail_after(DiskFault::Sync, 2);
    let written = (0..10).take_while(|_| writer.block(&noise).is_ok()).count();
    assert_eq!(written, 2, "each of them is synced");
    assert_eq!(names(&disk), [""; 0]);
}

#[test]
fn a_snapshot_that_reads_back_wrong_gets_no_name() {
    let disk = MemDisk::new(1);
    let mut writer = SnapshotWriter::create(Arc::new(disk.clone()), Path::new(DIR), meta(5)).expect("create");
    writer.block(&[1; 100]).expect("write");
    let unfinished = Path::new(DIR).join("snapshot-0000000000000005.tmp");
    assert!(disk.flip(&unfinished, 80, 0));
    assert!(matches!(writer.finish(1), Err(SnapshotError::Damaged { .. })));
    assert!(names(&disk).is_empty());
}

/// Whatever fails and whenever the power goes, a file with a snapshot's name is whole, and one that was finished is there.
#[test]
fn a_name_is_given_to_whole_files_only() {
    for seed in 0..300 {
        let disk = MemDisk::new(seed);
        write(&disk, 1).expect("write");
        let fault =
            [DiskFault::Write, DiskFault::Sync, DiskFault::Rename, DiskFault::SyncDir, DiskFault::Read]
                [seed as usize % 5];
        disk.fail_after(fault, seed / 5 % 8);
        let finished = write(&disk, 2);
        disk.clear_faults();
        disk.crash();

        remove_unfinished(&disk, Path::new(DIR)).expect("clean up");
        let files = list(&disk, Path::new(DIR)).expect("list");
        assert_eq!(files.len(), names(&disk).len(), "nothing unfinished is left");
        for file in &files {
            assert_eq!(read(&disk, &file.path).expect("it has a name"), blocks(file.index.0));
        }
        let expected = if finished.is_ok() { 2 } else { 1 };
        assert!(files.len() >= expected, "a finished snapshot is lost, seed {seed}");
    }
}

#[test]
fn what_a_crash_left_unfinished_is_removed_and_nothing_else() {
    let disk = MemDisk::new(1);
    write(&disk, 4).expect("write");
    drop(SnapshotWriter::create(Arc::new(disk.clone()), Path::new(DIR), meta(5)).expect("create"));
    disk.put(&Path::new(DIR).join("notes.tmp"), b"mine");
    remove_unfinished(&disk, Path::new(DIR)).expect("clean up");
    assert_eq!(names(&disk), ["notes.tmp", "snapshot-0000000000000004"]);
}

#[test]
fn an_abandoned_snapshot_is_gone() {
    let disk = MemDisk::new(1);
    let writer = SnapshotWriter::create(Arc::new(disk.clone()), Path::new(DIR), meta(5)).expect("create");
    writer.abandon().expect("remove");
    assert!(names(&disk).is_empty());
}

/// A block whose checksum is right and whose contents are no valid frame, or one of another length.
#[test]
fn lengths_in_a_file_are_no_reason_to_allocate() {
    let compressed = zstd::bulk::compress(&[7; 1000], 1).expect("compress");
    for (raw_bytes, bytes) in [(999, &compressed[..]), (1001, &compressed[..]), (1000, b"rubbish")] {
        let meta = meta(5);
        let mut file = format::encode_header(&meta);
        file.extend_from_slice(&format::BlockHeader::new(0, raw_bytes, bytes).encode());
        file.extend_from_slice(bytes);
        let totals = SnapshotTotals { blocks: 1, raw_bytes: raw_bytes as u64, items: 0 };
        let file_crc = crc32c::crc32c(&file);
        file.extend_from_slice(&format::Footer { totals, file_crc }.encode());
        let disk = MemDisk::new(1);
        disk.put(&path(5), &file);
        let error = read(&disk, &path(5)).expect_err("the block is wrong");
        assert!(matches!(error, SnapshotError::Damaged { what: SnapshotDamage::Block, .. }), "{error}");
    }
    let huge = [u32::MAX.to_le_bytes(), u32::MAX.to_le_bytes(), [0; 4]].concat();
    assert_eq!(format::BlockHeader::decode(&huge.try_into().expect("twelve bytes")), None);
}

#[test]
#[should_panic(expected = "a block of 0 bytes")]
fn an_empty_block_is_our_own_mistake() {
    let mut writer =
        SnapshotWriter::create(Arc::new(MemDisk::new(1)), Path::new(DIR), meta(5)).expect("create");
    writer.block(&[]).expect("write");
}
