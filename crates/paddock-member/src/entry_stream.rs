//! Entries of a log as one stream of bytes: what a member sends of its log, and what stands beside a snapshot in a backup.
//!
//! Little-endian:
//! ```text
//!  0 8 bytes magic
//!  8 u32 version
//! 12 u32 zero
//! 16 u64 cluster     id of the ensemble, 0 for a member alone
//! 24 u64 first       index of the first entry
//! 32 u32 crc         CRC-32C of the bytes above
//! ```
//! An entry:
//! ```text
//!  0 u32 length      of the payload
//!  4 u32 crc         CRC-32C of all behind it: index, term, payload
//!  8 u64 index
//! 16 u64 term
//! 24     payload
//! ```
//! At the end the same with the length `0xffffffff`, index and term of the last entry, and as payload an i64, the zxid of the state behind it. A
//! stream without that end was cut off.

use std::io::{self, ErrorKind, Read, Write};

use bytes::Bytes;
use paddock_replica::LogEntry;

const MAGIC: &[u8; 8] = b"PADKENT\0";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 36;
const ENTRY_HEAD_BYTES: usize = 24;
const END: u32 = u32::MAX;

/// Content of the head of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHead {
    /// Id of the ensemble; 0 for a member alone.
    pub cluster: u64,
    /// Index of the first entry.
    pub first: u64,
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEnd {
    /// Index of the last entry.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// Zxid of the state behind it.
    pub zxid: i64,
}

/// Reason for which a stream is not what a member sent.
#[derive(Debug, thiserror::Error)]
pub enum EntryStreamError {
    #[error("it is no stream of log entries")]
    Foreign,
    #[error(
        "it has version {0}, which this build cannot read: use the release that wrote it, or a later one"
    )]
    UnknownVersion(u32),
    #[error("it is damaged at offset {offset}: {what}")]
    Damaged { offset: u64, what: &'static str },
    #[error("it is cut off at offset {offset}, behind entry {last}")]
    CutOff { offset: u64, last: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a stream.
#[derive(Debug)]
pub struct EntryStreamWriter<W> {
    out: W,
    last: (u64, u64),
}

impl<W: Write> EntryStreamWriter<W> {
    /// Begins a stream.
    pub fn begin(mut out: W, head: StreamHead) -> io::Result<EntryStreamWriter<W>> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&head.cluster.to_le_bytes());
        bytes.extend_from_slice(&head.first.to_le_bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        out.write_all(&bytes)?;
        Ok(EntryStreamWriter { out, last: (head.first - 1, 0) })
    }

    /// Writes the next entry.
    pub fn entry(&mut self, index: u64, term: u64, payload: &[u8]) -> io::Result<()> {
        assert!(index == self.last.0 + 1, "entry {index} follows entry {}", self.last.0);
        self.last = (index, term);
        let length = u32::try_from(payload.len()).expect("a payload is limited");
        self.record(length, payload)
    }

    fn record(&mut self, length: u32, payload: &[u8]) -> io::Result<()> {
        let mut head = [0; ENTRY_HEAD_BYTES];
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[8..16].copy_from_slice(&self.last.0.to_le_bytes());
        head[16..].copy_from_slice(&self.last.1.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head[8..]), payload);
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(payload)
    }

    /// Ends the stream behind its last entry, with the zxid of the state there.
    pub fn finish(mut self, zxid: i64) -> io::Result<W> {
        self.record(END, &zxid.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads a stream, and checks all of it.
#[derive(Debug)]
pub struct EntryStreamReader<R> {
    input: R,
    head: StreamHead,
    offset: u64,
    last: (u64, u64),
    end: Option<StreamEnd>,
}

impl<R: Read> EntryStreamReader<R> {
    /// Reads the head of a stream.
    pub fn open(mut input: R) -> Result<EntryStreamReader<R>, EntryStreamError> {
        let mut bytes = [0; HEAD_BYTES];
        input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => EntryStreamError::Foreign,
            _ => error.into(),
        })?;
        if &bytes[..8] != MAGIC {
            return Err(EntryStreamError::Foreign);
        }
        if crc32c::crc32c(&bytes[..32]) != u32_at(&bytes, 32) {
            return Err(EntryStreamError::Damaged { offset: 0, what: "the checksum of its head is wrong" });
        }
        match u32_at(&bytes, 8) {
            VERSION => {}
            version => return Err(EntryStreamError::UnknownVersion(version)),
        }
        let head = StreamHead { cluster: u64_at(&bytes, 16), first: u64_at(&bytes, 24) };
        let last = (head.first.saturating_sub(1), 0);
        Ok(EntryStreamReader { input, head, offset: HEAD_BYTES as u64, last, end: None })
    }

    /// The head.
    pub fn head(&self) -> StreamHead {
        self.head
    }

    /// The end, once it was read.
    pub fn end(&self) -> Option<StreamEnd> {
        self.end
    }

    /// The next entry; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>, EntryStreamError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let mut head = [0; ENTRY_HEAD_BYTES];
        self.fill(&mut head)?;
        let (length, crc, index, term) =
            (u32_at(&head, 0), u32_at(&head, 4), u64_at(&head, 8), u64_at(&head, 16));
        let is_end = length == END;
        let length = if is_end { 8 } else { length as usize };
        if length > LogEntry::PAYLOAD_BYTES_MAX {
            return Err(self.damaged("an entry is longer than any can be"));
        }
        let payload = self.payload(length)?;
        if crc32c::crc32c_append(crc32c::crc32c(&head[8..]), &payload) != crc {
            return Err(self.damaged("the checksum of an entry is wrong"));
        }
        let follows =
            if is_end { (index, term) == self.last } else { Some(index) == self.last.0.checked_add(1) };
        if !follows || term < self.last.1 {
            return Err(self.damaged("an entry does not follow the one before it"));
        }
        self.offset += (ENTRY_HEAD_BYTES + length) as u64;
        self.last = (index, term);
        if is_end {
            let zxid = i64::from_le_bytes(payload[..].try_into().expect("eight bytes"));
            self.end = Some(StreamEnd { index, term, zxid });
            let mut more = [0];
            return match self.input.read(&mut more)? {
                0 => Ok(None),
                _ => Err(self.damaged("bytes follow the end")),
            };
        }
        Ok(Some(LogEntry { index, term, payload: Bytes::from(payload) }))
    }

    /// A length reserves no memory that its bytes do not fill.
    fn payload(&mut self, length: usize) -> Result<Vec<u8>, EntryStreamError> {
        let mut payload = Vec::new();
        let read = (&mut self.input).take(length as u64).read_to_end(&mut payload)?;
        if read == length { Ok(payload) } else { Err(self.cut_off()) }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntryStreamError> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.cut_off(),
            _ => error.into(),
        })
    }

    fn cut_off(&self) -> EntryStreamError {
        EntryStreamError::CutOff { offset: self.offset, last: self.last.0 }
    }

    fn damaged(&self, what: &'static str) -> EntryStreamError {
        EntryStreamError::Damaged { offset: self.offset, what }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: StreamHead = StreamHead { cluster: 0xabc, first: 5 };

    fn entries() -> Vec<LogEntry> {
        let payload = |index: u64| Bytes::from(vec![index as u8; index as usize * 7]);
        (5..=9).map(|index| LogEntry { index, term: index / 4, payload: payload(index) }).collect()
    }

    fn stream() -> Vec<u8> {
        let mut writer = EntryStreamWriter::begin(Vec::new(), HEAD).expect("write");
        for LogEntry { index, term, payload } in entries() {
            writer.entry(index, term, &payload).expect("write");
        }
        writer.finish(77).expect("write")
    }

    fn read(bytes: &[u8]) -> Result<(StreamHead, Vec<LogEntry>, StreamEnd), EntryStreamError> {
        let mut reader = EntryStreamReader::open(bytes)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            entries.push(entry);
        }
        Ok((reader.head(), entries, reader.end().expect("it was read to its end")))
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let end = StreamEnd { index: 9, term: 2, zxid: 77 };
        assert_eq!(read(&stream()).expect("it is whole"), (HEAD, entries(), end));
    }

    #[test]
    fn a_stream_that_is_not_whole_is_refused() {
        let whole = stream();
        for end in 0..whole.len() {
            let refused = read(&whole[..end]).expect_err("it is cut");
            let is_told = match end {
                ..HEAD_BYTES => matches!(refused, EntryStreamError::Foreign),
                _ => matches!(refused, EntryStreamError::CutOff { .. }),
            };
            assert!(is_told, "cut at {end}: {refused}");
        }
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            read(&bytes).expect_err("a bit is wrong");
        }
        let refused = read(&[&whole[..], &[0]].concat()).expect_err("there is more").to_string();
        assert!(refused.ends_with("bytes follow the end"), "{refused}");
    }

    #[test]
    fn entries_of_another_place_are_refused() {
        let whole = stream();
        let second = HEAD_BYTES + ENTRY_HEAD_BYTES + 35;
        let third = second + ENTRY_HEAD_BYTES + 42;
        let refused = read(&[&whole[..second], &whole[third..]].concat()).expect_err("one is missing");
        let EntryStreamError::Damaged { offset, what } = refused else { panic!("{refused}") };
        assert_eq!((offset, what), (second as u64, "an entry does not follow the one before it"));
    }
}
