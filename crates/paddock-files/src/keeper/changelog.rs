//! A changelog of ClickHouse Keeper: records one behind the other, each with its checksum.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::names::LogFile;
use super::sip_hash::SipHash;
use super::stream::ByteStream;
use super::zstd_reader::zstd;
use crate::error::{FileError, Problem, failed};
use crate::load::LogRead;

/// Newest version of a record that is known.
const VERSION_MAX: u8 = 2;
/// Kinds of entries that Raft knows: a request, and a list of members.
const REQUEST: i32 = 1;
const MEMBERS: i32 = 2;

/// A record whose checksum is right.
#[derive(Debug)]
pub(super) struct ChangelogRecord<'a> {
    pub(super) index: u64,
    pub(super) offset: u64,
    /// `None` for one that is no request.
    pub(super) request: Option<&'a [u8]>,
}

#[derive(Debug)]
pub(super) enum NextRecord<'a> {
    Record(ChangelogRecord<'a>),
    End,
    /// The file ends in a record that was never finished.
    Torn {
        offset: u64,
    },
}

pub(super) struct ChangelogReader<'i> {
    path: PathBuf,
    stream: ByteStream<Box<dyn Read + 'i>>,
    blob: Vec<u8>,
}

impl<'i> ChangelogReader<'i> {
    pub(super) fn open(path: &Path) -> Result<ChangelogReader<'i>, FileError> {
        let file = File::open(path).map_err(failed("open", path))?;
        let is_compressed = path.extension().is_some_and(|extension| extension == "zstd");
        let input: Box<dyn Read> =
            if is_compressed { zstd(file).map_err(failed("read", path))? } else { Box::new(file) };
        Ok(ChangelogReader::new(path, input))
    }

    pub(super) fn new(path: &Path, input: Box<dyn Read + 'i>) -> ChangelogReader<'i> {
        ChangelogReader { path: path.to_owned(), stream: ByteStream::new(input), blob: Vec::new() }
    }

    pub(super) fn next(&mut self) -> Result<NextRecord<'_>, FileError> {
        let offset = self.stream.offset();
        match self.advance() {
            Ok(None) => Ok(NextRecord::End),
            Ok(Some((index, kind))) => {
                let request = (kind == REQUEST).then_some(&self.blob[..]);
                Ok(NextRecord::Record(ChangelogRecord { index, offset, request }))
            }
            Err(Problem::Truncated) if self.stream.offset() == offset => Ok(NextRecord::End),
            Err(Problem::Truncated) => Ok(NextRecord::Torn { offset }),
            Err(Problem::Io(source)) => Err(failed("read", &self.path)(source)),
            Err(problem) => Err(FileError::Damaged { path: self.path.clone(), offset, problem }),
        }
    }

    /// Reads the next record and returns its index and kind; `None` at the end.
    fn advance(&mut self) -> Result<Option<(u64, i32)>, Problem> {
        let stream = &mut self.stream;
        if stream.is_at_end()? {
            return Ok(None);
        }
        let expected = stream.u64()?;
        let (version, index, term) = (stream.u8()?, stream.u64()?, stream.u64()?);
        let (kind, len) = (stream.i32()?, stream.u64()?);
        if version > VERSION_MAX {
            return Err(Problem::ChangelogVersion(version));
        }
        stream.fill(&mut self.blob, len)?;
        let mut hash = SipHash::new();
        hash.update(&[version]);
        hash.update(&index.to_le_bytes());
        hash.update(&term.to_le_bytes());
        hash.update(&kind.to_le_bytes());
        hash.update(&len.to_le_bytes());
        hash.update(&self.blob);
        let found = hash.value();
        if found != expected {
            return Err(Problem::Checksum { found: found as i64, expected: expected as i64 });
        }
        if !matches!(kind, REQUEST | MEMBERS) {
            return Err(Problem::EntryKind(kind));
        }
        Ok(Some((index, kind)))
    }
}

/// Reads files of a log one behind the other. `take` is told the file and a record, and whether a later record replaces it, and returns how many
/// requests it took. The files may not change meanwhile.
pub(super) fn read_files(
    files: &[LogFile],
    take: &mut dyn FnMut(&Path, &ChangelogRecord<'_>, bool) -> Result<u64, FileError>,
) -> Result<Vec<LogRead>, FileError> {
    let rewrites = Rewrites::find(files)?;
    let (mut number, mut all) = (0, Vec::new());
    for file in files {
        let path = &file.path;
        let mut reader = ChangelogReader::open(path)?;
        let mut read = LogRead { path: path.clone(), transactions: 0, torn: None };
        loop {
            let record = match reader.next()? {
                NextRecord::Record(record) => record,
                NextRecord::End => break,
                NextRecord::Torn { offset } => {
                    read.torn = Some(offset);
                    break;
                }
            };
            let is_replaced = rewrites.is_replaced(number, record.index);
            number += 1;
            read.transactions += take(path, &record, is_replaced)?;
        }
        all.push(read);
    }
    if number != rewrites.records {
        let path = files.last().map(|file| file.path.clone()).unwrap_or_default();
        return Err(FileError::Changed { path });
    }
    Ok(all)
}

/// Places at which the log was written anew: a new leader had other entries than this member.
#[derive(Debug, Default)]
struct Rewrites {
    /// Number of a record, counted over all files, and the smallest index at which it or a later one begins anew.
    cuts: Vec<(u64, u64)>,
    records: u64,
}

impl Rewrites {
    /// Goes through all files once.
    fn find(files: &[LogFile]) -> Result<Rewrites, FileError> {
        let mut rewrites = Rewrites::default();
        let mut last = None;
        for file in files {
            let mut reader = ChangelogReader::open(&file.path)?;
            while let NextRecord::Record(record) = reader.next()? {
                rewrites.note(record.index, &mut last);
            }
        }
        rewrites.close();
        Ok(rewrites)
    }

    fn note(&mut self, index: u64, last: &mut Option<u64>) {
        if last.is_some_and(|last| index <= last) {
            self.cuts.push((self.records, index));
        }
        *last = Some(index);
        self.records += 1;
    }

    fn close(&mut self) {
        let mut smallest = u64::MAX;
        for (_, index) in self.cuts.iter_mut().rev() {
            smallest = smallest.min(*index);
            *index = smallest;
        }
    }

    /// True for a record that a later one replaces.
    fn is_replaced(&self, record: u64, index: u64) -> bool {
        let later = self.cuts.partition_point(|(cut, _)| *cut <= record);
        self.cuts.get(later).is_some_and(|(_, begin)| *begin <= index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_were_written_anew_are_passed_over() {
        let mut rewrites = Rewrites::default();
        let mut last = None;
        let indexes = [5, 6, 7, 8, 7, 8, 9, 6, 7];
        indexes.iter().for_each(|index| rewrites.note(*index, &mut last));
        rewrites.close();
        let kept: Vec<u64> = (0..)
            .zip(indexes)
            .filter(|(n, index)| !rewrites.is_replaced(*n, *index))
            .map(|(n, _)| n)
            .collect();
        assert_eq!(kept, [0, 7, 8]);
    }
}
