//! A Zstandard stream whose damages look like those of the other compressions.

use std::io::{self, BufReader, Read};

use zstd::stream::read::Decoder;

pub(super) struct ZstdReader<R: Read>(Decoder<'static, BufReader<R>>);

impl<R: Read> ZstdReader<R> {
    pub(super) fn new(input: R) -> io::Result<ZstdReader<R>> {
        Decoder::new(input).map(ZstdReader)
    }
}

impl<R: Read> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Other => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })
    }
}
