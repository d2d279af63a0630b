//! Pieces of any size in the blocks of a snapshot file, which have a largest size.
//!
//! A piece that the tree gives in one go has to come back to it in one go. So each piece goes out behind its length (u64,
//! little-endian) as one stream of bytes, which is cut into blocks wherever it is convenient.

use paddock_storage::snapshot::BLOCK_BYTES_MAX;

/// Bytes that make a block full. Each block is compressed on its own.
const BLOCK_BYTES: usize = 1 << 20;
const LENGTH_BYTES: usize = 8;

/// Gathers pieces and cuts blocks.
#[derive(Debug, Default)]
pub(crate) struct PieceWriter {
    gathered: Vec<u8>,
}

impl PieceWriter {
    /// Adds the piece that `fill` appends and returns what it returns.
    pub(crate) fn piece<T>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = self.gathered.len();
        self.gathered.extend_from_slice(&[0; LENGTH_BYTES]);
        let result = fill(&mut self.gathered);
        let len = (self.gathered.len() - start - LENGTH_BYTES) as u64;
        self.gathered[start..start + LENGTH_BYTES].copy_from_slice(&len.to_le_bytes());
        result
    }

    /// Gives the blocks that are full to `write`; at the end, all that is left.
    pub(crate) fn blocks<E>(
        &mut self,
        end: bool,
        write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.gathered.len() < BLOCK_BYTES && !end {
            return Ok(());
        }
        self.gathered.chunks(BLOCK_BYTES_MAX).try_for_each(write)?;
        self.gathered.clear();
        Ok(())
    }
}

/// Puts pieces together again.
#[derive(Debug, Default)]
pub(crate) struct PieceReader {
    /// The beginning of a piece whose end has not come.
    begun: Vec<u8>,
}

impl PieceReader {
    /// Gives the pieces that end in `block` to `take`.
    pub(crate) fn block<E>(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.begun.extend_from_slice(block);
        let mut taken = 0;
        while let Some(piece) = first_piece(&self.begun[taken..]) {
            take(piece)?;
            taken += LENGTH_BYTES + piece.len();
        }
        self.begun.drain(..taken);
        Ok(())
    }

    /// True if the last piece is whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.begun.is_empty()
    }
}

fn first_piece(bytes: &[u8]) -> Option<&[u8]> {
    let (len, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn read(blocks: &[Vec<u8>]) -> (Vec<usize>, bool) {
        let (mut reader, mut sizes) = (PieceReader::default(), Vec::new());
        for block in blocks {
            let taken: Result<(), Infallible> = reader.block(block, |piece| {
                assert!(piece.windows(2).all(|two| two[0] == two[1]));
                sizes.push(piece.len());
                Ok(())
            });
            taken.unwrap();
        }
        (sizes, reader.is_whole())
    }

    #[test]
    fn pieces_come_back_whatever_their_size() {
        let sizes = [1, 5, BLOCK_BYTES, 3, BLOCK_BYTES_MAX * 2 + 7, 2, 0];
        let (mut writer, mut blocks) = (PieceWriter::default(), Vec::new());
        for (number, size) in sizes.into_iter().enumerate() {
            writer.piece(|out| out.resize(out.len() + size, number as u8));
            let end = number + 1 == sizes.len();
            let written: Result<(), Infallible> = writer.blocks(end, |block| {
                assert!(!block.is_empty() && block.len() <= BLOCK_BYTES_MAX);
                blocks.push(block.to_vec());
                Ok(())
            });
            written.unwrap();
        }
        assert_eq!(read(&blocks), (sizes.to_vec(), true));
        blocks.last_mut().unwrap().pop();
        assert!(!read(&blocks).1);
    }

    #[test]
    fn a_false_length_reserves_nothing() {
        assert_eq!(read(&[u64::MAX.to_le_bytes().to_vec(), vec![1; 9]]), (vec![], false));
    }
}
