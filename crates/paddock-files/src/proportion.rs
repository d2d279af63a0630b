//! Decompression that stays in proportion: a small file must not become more than the machine has memory for.
//!
//! A few bytes of gzip stand for a thousand each, and those of Zstandard for any number. What a server has written is far from that:
//! its znodes differ at least in their names and times. The two ends of a decompressor are counted, and one that makes too much of what it
//! was given is stopped. An operator who has such data decompresses them first: a plain file is as large as it is.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

/// Largest number of bytes that a compressed byte may stand for.
const EXPANSION_MAX: u64 = 200;
/// Bytes that may come of any input, however small it is.
const ALWAYS_BYTES: u64 = 16 << 20;

/// A decompressor whose output is compared with its input.
pub(crate) struct Proportionate<D> {
    decompressor: D,
    made: u64,
    taken: Rc<Cell<u64>>,
}

/// Input of a decompressor. Bytes count once it has consumed them.
pub(crate) struct Counted<R> {
    input: BufReader<R>,
    taken: Rc<Cell<u64>>,
}

impl<D> Proportionate<D> {
    /// The decompressor that `make` makes of the input.
    pub(crate) fn new<R: Read>(input: R, make: impl FnOnce(Counted<R>) -> D) -> Proportionate<D> {
        let (input, taken) = counted(input);
        Proportionate { decompressor: make(input), made: 0, taken }
    }

    /// A decompressor that may not be made.
    pub(crate) fn try_new<R: Read>(
        input: R,
        make: impl FnOnce(Counted<R>) -> io::Result<D>,
    ) -> io::Result<Proportionate<D>> {
        let (input, taken) = counted(input);
        Ok(Proportionate { decompressor: make(input)?, made: 0, taken })
    }

    /// Bytes that may come of what was taken so far.
    fn allowed(&self) -> u64 {
        self.taken.get().saturating_mul(EXPANSION_MAX).saturating_add(ALWAYS_BYTES)
    }
}

fn counted<R: Read>(input: R) -> (Counted<R>, Rc<Cell<u64>>) {
    let taken = Rc::new(Cell::new(0));
    (Counted { input: BufReader::new(input), taken: taken.clone() }, taken)
}

impl<D: Read> Read for Proportionate<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decompressor.read(buffer)?;
        self.made += count as u64;
        if self.made <= self.allowed() {
            return Ok(count);
        }
        let why = format!(
            "its first {} bytes make more than {EXPANSION_MAX} times as many; if that is meant, decompress the file first",
            self.taken.get()
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}

impl<R: Read> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.taken.set(self.taken.get() + count as u64);
        self.input.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::error::Problem;
    use crate::snapshot;

    const MIB: usize = 1 << 20;

    fn gzip(pieces: &[&[u8]]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        pieces.iter().for_each(|piece| encoder.write_all(piece).unwrap());
        encoder.finish().unwrap()
    }

    /// Bytes that came of it before it was stopped.
    #[track_caller]
    fn check_stopped(mut content: impl Read, bytes_max: usize) {
        let (mut buffer, mut count) = (vec![0; 64 << 10], 0);
        let error = loop {
            match content.read(&mut buffer) {
                Ok(0) => panic!("all {count} bytes were decompressed"),
                Ok(read) => count += read,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("decompress the file first"), "{error}");
        assert!(count <= bytes_max, "{count} bytes");
    }

    #[test]
    fn what_makes_too_much_is_stopped() {
        let zeros = vec![0; 64 * MIB];
        let bytes = gzip(&[&zeros]);
        check_stopped(snapshot::gzip(&bytes[..]), 30 * MIB);
        let bytes = zstd::encode_all(&zeros[..], 3).unwrap();
        check_stopped(crate::keeper::zstd(&bytes[..]).unwrap(), 18 * MIB);
        let mut block = Vec::new();
        paddock_proto::blocks::pack(&zeros[..MIB], &mut block);
        let bytes = block.repeat(1000);
        check_stopped(crate::keeper::blocks(&bytes[..]), 400 * MIB);
    }

    #[test]
    fn what_stays_in_proportion_comes_out_whole() {
        let mut content = Vec::new();
        for number in 0..300_000u32 {
            write!(content, "/locks/lock-{number:010}").unwrap();
            content.extend_from_slice(&[0; 60]);
        }
        for mut reader in [
            Box::new(snapshot::gzip(&gzip(&[&content])[..])) as Box<dyn Read>,
            crate::keeper::zstd(&zstd::encode_all(&content[..], 3).unwrap()[..]).unwrap(),
        ] {
            let mut again = Vec::new();
            reader.read_to_end(&mut again).unwrap();
            assert!(again == content);
        }
    }

    /// The znode's data would be 1 GiB, of a file of 1 MB.
    #[test]
    fn a_snapshot_that_makes_too_much_is_refused() {
        let mut head = Vec::new();
        head.extend_from_slice(b"ZKSN\0\0\0\x02\0\0\0\0\0\0\0\0");
        let (no_sessions, no_acls, root) = ([0; 4], [0; 4], [0; 4]);
        let claimed = (1_i32 << 30).to_be_bytes();
        for part in [no_sessions, no_acls, root, claimed] {
            head.extend_from_slice(&part);
        }
        let bytes = gzip(&[&head, &vec![0; 64 * MIB]]);
        let (offset, problem) = snapshot::read_from(snapshot::gzip(&bytes[..]), &mut |_| {}).unwrap_err();
        assert!(matches!(problem, Problem::Compression(_)), "{problem}");
        assert!(offset < 32 << 20, "{offset} bytes were read");
    }
}
