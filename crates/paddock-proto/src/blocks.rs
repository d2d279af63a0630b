//! ClickHouse's compressed blocks: a checksum, a header, and LZ4.
//!
//! The other side decides what is in them, so nothing they claim is believed: no memory is reserved that the bytes at hand
//! could not fill.

/// CityHash128 of version 1.0.2 over all that follows: the low half, then the high half, little-endian.
const CHECKSUM_BYTES: usize = 16;
/// Method, compressed size with this header, uncompressed size.
const HEADER_BYTES: usize = 9;
const LZ4: u8 = 0x82;
/// ClickHouse's buffers, and so its blocks, have 1 MiB. This leaves room for other buffers.
const CONTENT_BYTES_MAX: usize = 16 << 20;
const BLOCK_BYTES_MAX: usize = CONTENT_BYTES_MAX + CONTENT_BYTES_MAX / 128;
/// Bytes of content in a block of ours.
const CONTENT_BYTES: usize = 1 << 20;
/// Largest number of bytes that a byte of LZ4 stands for.
const EXPANSION_MAX: usize = 255;

/// Errors of bytes that are no block. Their connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBlock {
    #[error("compression method 0x{0:02x} is not LZ4 (0x82)")]
    Method(u8),
    #[error("compressed block claims {compressed} bytes that make {content}")]
    Size { compressed: usize, content: usize },
    #[error("checksum of a compressed block is wrong")]
    Checksum,
    #[error("compressed block is not LZ4 of the size it claims")]
    Malformed,
}

/// A block whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Code of the compression: LZ4 between clients and servers; files know others.
    pub method: u8,
    /// Bytes that the compressed ones make, as the block claims.
    pub content_bytes: usize,
    pub compressed: &'a [u8],
    /// Size of the block in bytes.
    pub bytes: usize,
}

impl<'a> Block<'a> {
    /// The first block of `bytes`; `None` while it is incomplete.
    pub fn first(bytes: &'a [u8]) -> Result<Option<Block<'a>>, BadBlock> {
        let Some((checksum, rest)) = bytes.split_first_chunk::<CHECKSUM_BYTES>() else { return Ok(None) };
        let Some(&[method, c0, c1, c2, c3, u0, u1, u2, u3]) = rest.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let compressed = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
        let content_bytes = u32::from_le_bytes([u0, u1, u2, u3]) as usize;
        if !(HEADER_BYTES..=BLOCK_BYTES_MAX).contains(&compressed) || content_bytes > CONTENT_BYTES_MAX {
            return Err(BadBlock::Size { compressed, content: content_bytes });
        }
        let Some(block) = rest.get(..compressed) else { return Ok(None) };
        if *checksum != checksum_of(block) {
            return Err(BadBlock::Checksum);
        }
        let bytes = CHECKSUM_BYTES + compressed;
        Ok(Some(Block { method, content_bytes, compressed: &block[HEADER_BYTES..], bytes }))
    }

    /// Appends what it holds to `content`.
    pub fn unpack(&self, content: &mut Vec<u8>) -> Result<(), BadBlock> {
        if self.method != LZ4 {
            return Err(BadBlock::Method(self.method));
        }
        let compressed = HEADER_BYTES + self.compressed.len();
        if self.content_bytes > compressed * EXPANSION_MAX {
            return Err(BadBlock::Size { compressed, content: self.content_bytes });
        }
        let start = content.len();
        content.resize(start + self.content_bytes, 0);
        match lz4_flex::block::decompress_into(self.compressed, &mut content[start..]) {
            Ok(written) if written == self.content_bytes => Ok(()),
            _ => {
                content.truncate(start);
                Err(BadBlock::Malformed)
            }
        }
    }
}

/// Appends what the first block of `bytes` holds to `content` and returns the size of the block; `None` while it is
/// incomplete.
pub fn unpack(bytes: &[u8], content: &mut Vec<u8>) -> Result<Option<usize>, BadBlock> {
    // A client that compresses in another way is not waited for.
    if let Some(&method) = bytes.get(CHECKSUM_BYTES).filter(|method| **method != LZ4) {
        return Err(BadBlock::Method(method));
    }
    let Some(block) = Block::first(bytes)? else { return Ok(None) };
    block.unpack(content)?;
    Ok(Some(block.bytes))
}

/// Appends `content` as blocks.
pub fn pack(content: &[u8], out: &mut Vec<u8>) {
    for content in content.chunks(CONTENT_BYTES) {
        let start = out.len();
        let room = lz4_flex::block::get_maximum_output_size(content.len());
        out.resize(start + CHECKSUM_BYTES + HEADER_BYTES + room, 0);
        let (checksum, block) = out[start..].split_at_mut(CHECKSUM_BYTES);
        let (header, body) = block.split_at_mut(HEADER_BYTES);
        let written = lz4_flex::block::compress_into(content, body)
            .expect("there is room for what cannot be compressed");
        let compressed = HEADER_BYTES + written;
        header[0] = LZ4;
        header[1..5].copy_from_slice(&(compressed as u32).to_le_bytes());
        header[5..].copy_from_slice(&(content.len() as u32).to_le_bytes());
        checksum.copy_from_slice(&checksum_of(&block[..compressed]));
        out.truncate(start + CHECKSUM_BYTES + compressed);
    }
}

/// The crate has the first half of the hash in the upper bits.
fn checksum_of(block: &[u8]) -> [u8; CHECKSUM_BYTES] {
    cityhash_rs::cityhash_102_128(block).rotate_left(64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        pack(content, &mut out);
        out
    }

    /// With a right checksum, whatever else is wrong.
    fn block(method: u8, compressed: u32, content: u32, body: &[u8]) -> Vec<u8> {
        let mut rest = vec![method];
        rest.extend_from_slice(&compressed.to_le_bytes());
        rest.extend_from_slice(&content.to_le_bytes());
        rest.extend_from_slice(body);
        [&checksum_of(&rest)[..], &rest].concat()
    }

    #[test]
    fn blocks_come_back_as_packed() {
        let noise: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for content in [&b"a"[..], &[0; 5000], &noise] {
            let bytes = packed(content);
            let (mut taken, mut again) = (0, Vec::new());
            while taken < bytes.len() {
                taken += unpack(&bytes[taken..], &mut again).unwrap().expect("a whole block");
            }
            assert!(again == content);
        }
        assert!(packed(b"").is_empty());
    }

    #[test]
    fn a_part_of_a_block_has_to_wait() {
        let bytes = packed(b"some content, some content, some content");
        for end in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..end], &mut Vec::new()), Ok(None), "cut at {end}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_and_reserves_nothing() {
        let mut content = Vec::new();
        let mut refusal = |bytes: &[u8]| {
            let refusal = unpack(bytes, &mut content).unwrap_err();
            assert_eq!(content.capacity(), 0, "{refusal}");
            refusal
        };
        let gigabytes = 2_000_000_000;
        assert_eq!(refusal(&block(0x02, 10, 1, b"a")), BadBlock::Method(0x02));
        for (compressed, content) in
            [(10, gigabytes), (gigabytes, 10), (0, 0), (8, 0), (10, 2551), (u32::MAX, u32::MAX)]
        {
            let refused = BadBlock::Size { compressed: compressed as usize, content: content as usize };
            assert_eq!(refusal(&block(LZ4, compressed, content, b"a")), refused);
        }
        let mut bytes = packed(b"content");
        for at in 0..CHECKSUM_BYTES {
            bytes[at] ^= 1;
            assert_eq!(refusal(&bytes), BadBlock::Checksum, "byte {at}");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn what_does_not_make_what_it_claims_is_refused() {
        let body = packed(b"content")[CHECKSUM_BYTES + HEADER_BYTES..].to_vec();
        let compressed = (HEADER_BYTES + body.len()) as u32;
        assert_eq!(
            unpack(&block(LZ4, compressed, 7, &body), &mut Vec::new()).map(|len| len.is_some()),
            Ok(true)
        );
        for claimed in [0, 6, 8] {
            let mut content = b"before".to_vec();
            assert_eq!(
                unpack(&block(LZ4, compressed, claimed, &body), &mut content),
                Err(BadBlock::Malformed)
            );
            assert_eq!(content, b"before");
        }
        // A match that begins before the content.
        assert_eq!(
            unpack(&block(LZ4, 12, 8, &[0x04, 0xff, 0xff]), &mut Vec::new()),
            Err(BadBlock::Malformed)
        );
    }

    /// Known from the sources of ClickHouse: the checksum is of version 1.0.2, which later ones differ from.
    #[test]
    fn the_checksum_is_clickhouses() {
        let empty = cityhash_rs::cityhash_102_128(b"");
        assert_eq!(empty, 0x3df0_9dfc_64c0_9a2b_3cb5_40c3_92e5_1e29);
    }
}
