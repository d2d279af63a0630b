//! A file of the transaction log: records one after the other, then zeros.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use simd_adler32::adler32;

use crate::error::{FileError, Problem, failed};

/// `ZKLG`
const MAGIC: u32 = 0x5a4b_4c47;
const VERSION: i32 = 2;
const HEADER_BYTES: usize = 16;
/// Checksum and length in front of each record.
const RECORD_HEADER_BYTES: usize = 12;
const RECORD_END: u8 = b'B';

/// A log file being read from front to back.
pub(crate) struct LogReader<R> {
    path: PathBuf,
    input: R,
    /// Offset of the next record, in bytes.
    offset: u64,
    entry: Vec<u8>,
}

/// A log file being written.
#[derive(Debug)]
pub(crate) struct LogWriter {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl LogWriter {
    /// Begins a file. One of the same name never held a whole record: else its first transaction would be there.
    pub(crate) fn create(path: &Path) -> Result<LogWriter, FileError> {
        let file = File::create(path).map_err(failed("create", path))?;
        let mut writer = LogWriter { path: path.to_owned(), file: BufWriter::new(file), bytes: 0 };
        let header = [&MAGIC.to_be_bytes()[..], &VERSION.to_be_bytes(), &[0; 8]].concat();
        writer.put(&header)?;
        Ok(writer)
    }

    pub(crate) fn append(&mut self, entry: &[u8]) -> Result<(), FileError> {
        let len = i32::try_from(entry.len()).expect("a packet holds less than 2 GiB");
        self.put(&i64::from(adler32(&entry)).to_be_bytes())?;
        self.put(&len.to_be_bytes())?;
        self.put(entry)?;
        self.put(&[RECORD_END])
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(failed("write", &self.path))
    }

    /// Bytes that were appended so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands everything to the operating system.
    pub(crate) fn flush(&mut self) -> Result<(), FileError> {
        self.file.flush().map_err(failed("write", &self.path))
    }

    pub(crate) fn sync(&mut self) -> Result<(), FileError> {
        self.flush()?;
        self.file.get_ref().sync_data().map_err(failed("sync", &self.path))
    }
}

/// Result of reading on.
#[derive(Debug, PartialEq)]
pub(crate) enum NextTransaction<'a> {
    /// A record whose checksum is right, and where it begins.
    Entry { offset: u64, entry: &'a [u8] },
    /// The log ends here.
    End,
    /// The log ends in a record that was never finished.
    Torn { offset: u64 },
}

impl LogReader<BufReader<File>> {
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).map_err(failed("open", path))?;
        Ok(LogReader::new(path, BufReader::with_capacity(1 << 18, file)))
    }
}

impl<R: Read> LogReader<R> {
    pub(crate) fn new(path: &Path, input: R) -> LogReader<R> {
        LogReader { path: path.to_owned(), input, offset: 0, entry: Vec::new() }
    }

    /// The problem at a place of this file.
    pub(crate) fn damaged(&self, offset: u64, problem: Problem) -> FileError {
        match problem {
            Problem::Io(source) => failed("read", &self.path)(source),
            problem => FileError::Damaged { path: self.path.clone(), offset, problem },
        }
    }

    pub(crate) fn next(&mut self) -> Result<NextTransaction<'_>, FileError> {
        let begin = self.offset;
        match self.advance() {
            Ok(Some(torn_or_entry)) => Ok(match torn_or_entry {
                LogStep::Entry => {
                    NextTransaction::Entry { offset: begin.max(HEADER_BYTES as u64), entry: &self.entry }
                }
                LogStep::Torn => NextTransaction::Torn { offset: begin },
            }),
            Ok(None) => Ok(NextTransaction::End),
            Err(problem) => Err(self.damaged(self.offset, problem)),
        }
    }

    fn advance(&mut self) -> Result<Option<LogStep>, Problem> {
        if self.offset == 0 && !self.header()? {
            return Ok(Some(LogStep::Torn));
        }
        let mut header = [0; RECORD_HEADER_BYTES];
        let have = self.fill(&mut header)?;
        if have < header.len() {
            return Ok(header.iter().any(|byte| *byte != 0).then_some(LogStep::Torn));
        }
        let expected = i64::from_be_bytes(std::array::from_fn(|i| header[i]));
        let len = i32::from_be_bytes(std::array::from_fn(|i| header[8 + i]));
        if len == 0 {
            return Ok(None);
        }
        let len = u64::try_from(len).map_err(|_| Problem::Length(len))?;
        self.entry.clear();
        (&mut self.input).take(len).read_to_end(&mut self.entry)?;
        let mut end = [0];
        if (self.entry.len() as u64) < len || self.fill(&mut end)? == 0 {
            return Ok(Some(LogStep::Torn));
        }
        if end[0] != RECORD_END {
            return if self.rest_is_zero()? { Ok(Some(LogStep::Torn)) } else { Err(Problem::Unfinished) };
        }
        let found = i64::from(adler32(&&self.entry[..]));
        if found != expected {
            return Err(Problem::Checksum { found, expected });
        }
        self.offset += RECORD_HEADER_BYTES as u64 + len + 1;
        Ok(Some(LogStep::Entry))
    }

    /// Reads the header of the file; false if it was never finished.
    fn header(&mut self) -> Result<bool, Problem> {
        let mut header = [0; HEADER_BYTES];
        if self.fill(&mut header)? < HEADER_BYTES {
            return Ok(false);
        }
        let found = u32::from_be_bytes(std::array::from_fn(|i| header[i]));
        // The file was reserved, and nothing was written into it.
        if header == [0; HEADER_BYTES] && self.rest_is_zero()? {
            return Ok(false);
        }
        if found != MAGIC {
            return Err(Problem::Magic { expected: "transaction log", found });
        }
        let version = i32::from_be_bytes(std::array::from_fn(|i| header[4 + i]));
        if version != VERSION {
            return Err(Problem::Version(version));
        }
        self.offset = HEADER_BYTES as u64;
        Ok(true)
    }

    /// Reads until the bytes are full or the file ends; returns how many there were.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut have = 0;
        while have < bytes.len() {
            match self.input.read(&mut bytes[have..]) {
                Ok(0) => break,
                Ok(count) => have += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }

    fn rest_is_zero(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        loop {
            match self.fill(&mut bytes)? {
                0 => return Ok(true),
                count if bytes[..count].iter().any(|byte| *byte != 0) => return Ok(false),
                _ => {}
            }
        }
    }
}

enum LogStep {
    Entry,
    Torn,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Bytes of a log with these entries.
    pub(crate) fn log(entries: &[&[u8]]) -> Vec<u8> {
        let mut bytes = MAGIC.to_be_bytes().to_vec();
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        for entry in entries {
            bytes.extend_from_slice(&i64::from(adler32(entry)).to_be_bytes());
            bytes.extend_from_slice(&(entry.len() as i32).to_be_bytes());
            bytes.extend_from_slice(entry);
            bytes.push(RECORD_END);
        }
        bytes
    }

    /// Entries of a log, and the word for its end.
    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, String) {
        let mut reader = LogReader::new(Path::new("log.1"), bytes);
        let mut entries = Vec::new();
        loop {
            match reader.next() {
                Ok(NextTransaction::Entry { entry, .. }) => entries.push(entry.to_vec()),
                Ok(NextTransaction::End) => return (entries, "end".to_owned()),
                Ok(NextTransaction::Torn { offset }) => return (entries, format!("torn at {offset}")),
                Err(error) => return (entries, error.to_string()),
            }
        }
    }

    #[test]
    fn a_log_may_be_padded_and_torn() {
        let bytes = log(&[b"one", b"two"]);
        assert_eq!(read(&bytes), (vec![b"one".to_vec(), b"two".to_vec()], "end".to_owned()));
        let padded = [&bytes[..], &[0; 5000]].concat();
        assert_eq!(read(&padded).1, "end");
        for cut in 33..bytes.len() {
            // Checksums begin with four zeros, and lengths with three, as padding does.
            let end = if cut < 37 { "end" } else { "torn at 32" };
            assert_eq!(read(&bytes[..cut]), (vec![b"one".to_vec()], end.to_owned()), "cut at {cut}");
            let end = if cut < 44 { "end" } else { "torn at 32" };
            let padded = [&bytes[..cut], &[0; 5000]].concat();
            assert_eq!(read(&padded), (vec![b"one".to_vec()], end.to_owned()), "padded at {cut}");
        }
        assert_eq!(read(&bytes[..9]).1, "torn at 0");
    }

    #[test]
    fn damage_is_named() {
        let bytes = log(&[b"one", b"two"]);
        let mut flipped = bytes.clone();
        flipped[29] ^= 1;
        assert!(
            read(&flipped).1.starts_with("log.1 at offset 16: checksum is wrong"),
            "{}",
            read(&flipped).1
        );
        let mut unended = bytes.clone();
        unended[31] = 0;
        assert_eq!(read(&unended).1, "log.1 at offset 16: a record without its end, and more data behind it");
        let mut negative = bytes;
        negative[24] = 0xff;
        assert!(read(&negative).1.contains("unreasonable length"), "{}", read(&negative).1);
        assert!(read(b"ZKSN567812345678").1.contains("not a ZooKeeper transaction log"));
    }
}
