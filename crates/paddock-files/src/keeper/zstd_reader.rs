//! A Zstandard stream whose damages look like those of the other compressions.

use std::io::{self, BufRead, Read};

use zstd::stream::read::Decoder;

use crate::proportion::Proportionate;

pub(super) struct ZstdReader<R: BufRead>(Decoder<'static, R>);

impl<R: BufRead> ZstdReader<R> {
    pub(super) fn new(input: R) -> io::Result<ZstdReader<R>> {
        Decoder::with_buffer(input).map(ZstdReader)
    }
}

/// Content of a stream that may be of any length.
pub(crate) fn zstd<'i>(input: impl Read + 'i) -> io::Result<Box<dyn Read + 'i>> {
    Ok(Box::new(Proportionate::try_new(input, ZstdReader::new)?))
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Other => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })
    }
}
