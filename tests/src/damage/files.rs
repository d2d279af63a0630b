//! Copies of a data directory, and harm done to them.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A data directory of its own; it is gone when this is dropped.
#[derive(Debug)]
pub struct DataDir {
    directory: tempfile::TempDir,
}

/// Place of a record of the log in its segment. The format is in `paddock-storage/src/log/record.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordAt {
    pub start: u64,
    pub end: u64,
    pub is_entry: bool,
}

impl DataDir {
    pub fn copy_of(original: &Path) -> DataDir {
        let directory = tempfile::tempdir().expect("make a directory");
        copy_all(original, &directory.path().join("data"));
        DataDir { directory }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The segments of the log, the oldest first.
    pub fn segments(&self) -> Vec<PathBuf> {
        files(&self.path().join("log"), "log-")
    }

    pub fn last_segment(&self) -> PathBuf {
        self.segments().pop().expect("a log has segments")
    }

    /// The snapshots, the oldest first.
    pub fn snapshots(&self) -> Vec<PathBuf> {
        files(&self.path().join("snapshots"), "snapshot-")
    }

    /// Every file below the directory with its content.
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut contents = BTreeMap::new();
        collect(&self.path(), &mut contents);
        contents
    }
}

/// The files of a directory whose names start with `prefix`, sorted.
pub fn files(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("list a directory").path()).collect();
    files.retain(|path| {
        let name = path.file_name().expect("a file has a name").to_string_lossy();
        name.starts_with(prefix) && !name.contains('.')
    });
    files.sort();
    files
}

/// The records of a segment, up to the zeros behind them.
pub fn records(segment: &Path) -> Vec<RecordAt> {
    const SEGMENT_HEADER_BYTES: usize = 48;
    const KIND_AT: usize = 32;
    const ENTRY: u8 = 1;
    /// In the lowest bits of the length: an entry with a short header.
    const SHORT_ENTRY: usize = 3;
    let bytes = fs::read(segment).expect("read a segment");
    let mut records = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        if length == 0 {
            break;
        }
        let (length, form) = (length / 8 * 8, length % 8);
        let is_entry = form == SHORT_ENTRY || bytes[at + KIND_AT] == ENTRY;
        records.push(RecordAt { start: at as u64, end: (at + length) as u64, is_entry });
        at += length;
    }
    records
}

/// Replaces bytes in the payload of one entry of a log, and makes its checksums right again: what memory that went bad before the
/// write leaves behind. The texts have one length; the first one stands in one entry.
pub fn falsify(log: &Path, text: &[u8], other: &[u8]) {
    assert_eq!(text.len(), other.len(), "the length of a record stays");
    let find = |segment: &PathBuf| {
        let bytes = fs::read(segment).expect("read a segment");
        let contains = |record: &RecordAt| {
            let record = &bytes[record.start as usize..record.end as usize];
            record.windows(text.len()).position(|window| window == text)
        };
        let (record, at) =
            records(segment).into_iter().find_map(|record| Some((record, contains(&record)?)))?;
        Some((segment.clone(), record, bytes[record.start as usize..record.end as usize].to_vec(), at))
    };
    let found = files(log, "log-").iter().find_map(find);
    let (segment, place, mut record, at) = found.expect("an entry of the log has the text");
    record[at..at + text.len()].copy_from_slice(other);
    let name = name(&segment);
    let number = u64::from_str_radix(name.trim_start_matches("log-"), 16).expect("a segment has a number");
    seal(&mut record, number);
    write_at(&segment, place.start, &record);
}

/// Computes the checksums of a record anew, for the segment with this number.
fn seal(record: &mut [u8], segment: u64) {
    let is_short = !u32::from_le_bytes(record[..4].try_into().expect("four bytes")).is_multiple_of(8);
    let (body_at, body_crc_at, header_crc_at) = if is_short { (16, 8, 12) } else { (40, 28, 36) };
    let body_crc = crc32c::crc32c(&record[body_at..]);
    record[body_crc_at..body_crc_at + 4].copy_from_slice(&body_crc.to_le_bytes());
    let key = crc32c::crc32c_append(crc32c::crc32c(b"paddock record"), &segment.to_le_bytes());
    let header_crc = crc32c::crc32c_append(key, &record[..header_crc_at]).max(u32::from(is_short));
    record[header_crc_at..header_crc_at + 4].copy_from_slice(&header_crc.to_le_bytes());
}

pub fn flip(file: &Path, offset: u64) {
    let mut byte = [0];
    let opened = OpenOptions::new().read(true).write(true).open(file).expect("open a file to damage");
    opened.read_exact_at(&mut byte, offset).expect("read the byte to damage");
    byte[0] ^= 1 << (offset % 8);
    opened.write_all_at(&byte, offset).expect("damage a byte");
}

pub fn write_at(file: &Path, offset: u64, bytes: &[u8]) {
    let opened = OpenOptions::new().write(true).open(file).expect("open a file to damage");
    opened.write_all_at(bytes, offset).expect("write garbage");
}

pub fn truncate(file: &Path, length: u64) {
    let opened = OpenOptions::new().write(true).open(file).expect("open a file to damage");
    opened.set_len(length).expect("truncate a file");
}

pub fn length(file: &Path) -> u64 {
    fs::metadata(file).expect("read the length of a file").len()
}

/// The last part of a path.
pub fn name(file: &Path) -> String {
    file.file_name().expect("a file has a name").to_string_lossy().into_owned()
}

/// Copies a directory with all that is in it.
pub fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make a directory");
    let permissions = fs::metadata(from).expect("look at a directory").permissions();
    fs::set_permissions(to, permissions).expect("let the same users enter it");
    for entry in fs::read_dir(from).expect("list a directory") {
        let entry = entry.expect("list a directory");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("ask for a file's type").is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copy a file");
        }
    }
}

fn collect(directory: &Path, contents: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("list a directory") {
        let path = entry.expect("list a directory").path();
        if path.is_dir() {
            collect(&path, contents);
        } else {
            contents.insert(path.clone(), fs::read(path).expect("read a file"));
        }
    }
}
