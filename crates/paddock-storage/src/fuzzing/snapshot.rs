//! Reading a snapshot file whatever is in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Choices;
use crate::snapshot::{SnapshotMeta, snapshot_path, verify};
use crate::{Index, MemDisk, SnapshotError, SnapshotReader, SnapshotWriter};

const DIR: &str = "/snapshots";
const INDEX: Index = Index(1);

/// Reads a snapshot made of the given bytes: either a good one with one damage, or a file with any contents.
pub fn snapshot_file(data: &[u8]) {
    let mut choices = Choices(data);
    match choices.byte() % 2 {
        0 => damaged_snapshot(choices),
        _ => arbitrary_file(choices),
    }
}

/// Damages a snapshot. All that was written comes back; after any flip it does not pass for whole.
fn damaged_snapshot(mut choices: Choices<'_>) {
    let (offset, bit, app_bytes) = (choices.number(), choices.byte() % 8, usize::from(choices.byte()));
    let meta =
        SnapshotMeta { index: INDEX, app: choices.bytes(app_bytes).to_vec(), ..SnapshotMeta::default() };
    let disk = MemDisk::new(1);
    let writer = SnapshotWriter::create(Arc::new(disk.clone()), Path::new(DIR), meta.clone());
    let mut writer = writer.expect("the disk is good");
    let mut written = Vec::new();
    while choices.are_left() && written.len() < 20 {
        let size = usize::from(choices.byte()).max(1);
        let mut block = choices.bytes(size).to_vec();
        block.resize(size * 3, 7);
        writer.block(&block).expect("the disk is good");
        written.push(block);
    }
    writer.finish(written.len() as u64).expect("the disk is good");
    assert_eq!(read(&disk).expect("it was just written"), (meta, written));

    let length = disk.contents(&path()).expect("it was just written").len() as u64;
    disk.flip(&path(), offset % length, bit);
    assert!(verify(&disk, &path()).is_err(), "a flip at {} of {length} was not noticed", offset % length);
}

/// Nothing but an error or blocks of their stated lengths comes of it.
fn arbitrary_file(mut choices: Choices<'_>) {
    let seal = choices.byte();
    let disk = MemDisk::new(1);
    disk.put(&path(), &sealed(choices.0.to_vec(), seal));
    let verified = verify(&disk, &path());
    match read(&disk) {
        Ok((meta, _)) => assert_eq!(verified.expect("its blocks can be read"), meta),
        Err(SnapshotError::DiskFull { .. } | SnapshotError::Io { .. }) => panic!("the disk is good"),
        Err(_) => {}
    }
}

/// Makes checksums right, so that the fuzzer comes behind them: of the header, the blocks as far as their lengths lead, and
/// the footer.
fn sealed(mut bytes: Vec<u8>, seal: u8) -> Vec<u8> {
    let Some(footer) = bytes.len().checked_sub(36).filter(|footer| *footer >= 48) else { return bytes };
    if seal & 1 != 0 {
        bytes[..12].copy_from_slice(b"PADKSNAP\x01\0\0\0");
        bytes[24..32].copy_from_slice(&INDEX.0.to_le_bytes());
        let app_bytes = u32_at(&bytes, 40).min(footer - 48);
        bytes[40..44].copy_from_slice(&(app_bytes as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..44]), &bytes[48..48 + app_bytes]);
        bytes[44..48].copy_from_slice(&crc.to_le_bytes());
    }
    if seal & 2 != 0 {
        seal_blocks(&mut bytes, footer);
    }
    if seal & 4 != 0 {
        bytes[footer..footer + 4].fill(0);
        let crc = crc32c::crc32c(&bytes[..footer]);
        bytes[footer + 28..footer + 32].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[footer..footer + 32]);
        bytes[footer + 32..].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

fn seal_blocks(bytes: &mut [u8], footer: usize) {
    let mut at = 48 + u32_at(bytes, 40);
    let mut number = 0_u64;
    while at.saturating_add(12) <= footer {
        let end = (at + 12).saturating_add(u32_at(bytes, at + 4)).min(footer);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &bytes[at..at + 8]);
        let crc = crc32c::crc32c_append(crc, &bytes[at + 12..end]);
        bytes[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
        (at, number) = (end, number + 1);
    }
}

fn read(disk: &MemDisk) -> Result<(SnapshotMeta, Vec<Vec<u8>>), SnapshotError> {
    let mut reader = SnapshotReader::open(disk, &path())?;
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block()? {
        blocks.push(block);
    }
    Ok((reader.meta().clone(), blocks))
}

fn path() -> PathBuf {
    snapshot_path(Path::new(DIR), INDEX)
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
}
