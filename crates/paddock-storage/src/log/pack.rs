//! Payloads of entries, compressed: those of one segment are one stream, so that each is told by what it has in common
//! with those before it.
//!
//! A packed payload is its length (u32, little-endian), then what the stream grew by. A stream begins anew with every segment
//! and every start of the process.

use zstd::stream::raw::{CParameter, Decoder, Encoder, Operation};

use super::record::PAYLOAD_BYTES_MAX;

const LEVEL: i32 = 1;
/// Distance to which a payload may refer back, in bits: 128 KiB. That much memory is needed to write, and to read.
const WINDOW_BITS: u32 = 17;
const LENGTH_BYTES: usize = 4;
const STEP_BYTES: usize = 16 << 10;

/// Packs payloads in the order in which they are appended.
pub(super) struct Packer {
    encoder: Encoder<'static>,
    /// The segment whose stream this is; `None` before the first payload.
    segment: Option<u64>,
    packed: Vec<u8>,
    is_first: bool,
}

impl Packer {
    pub(super) fn new() -> Packer {
        let mut encoder = Encoder::new(LEVEL).expect("the level is a valid one");
        encoder.set_parameter(CParameter::WindowLog(WINDOW_BITS)).expect("the window is a valid one");
        Packer { encoder, segment: None, packed: Vec::new(), is_first: true }
    }

    /// Packs a payload for a segment.
    pub(super) fn pack(&mut self, segment: u64, payload: &[u8]) -> Packed<'_> {
        if self.segment != Some(segment) {
            self.begin(segment);
        }
        let len = u32::try_from(payload.len()).expect("a payload is limited");
        self.packed.clear();
        self.packed.extend_from_slice(&len.to_le_bytes());
        self.compress(payload).expect("compressing in memory cannot fail");
        Packed { is_first: std::mem::replace(&mut self.is_first, false), bytes: &self.packed }
    }

    /// The payload that was packed last came into this segment. If that is not the one it was packed for, a stream begins again.
    pub(super) fn came_into(&mut self, segment: u64) {
        self.segment = self.segment.filter(|meant| *meant == segment);
    }

    fn begin(&mut self, segment: u64) {
        self.encoder.reinit().expect("a stream may begin at any time");
        (self.segment, self.is_first) = (Some(segment), true);
    }

    fn compress(&mut self, mut payload: &[u8]) -> std::io::Result<()> {
        let mut step = [0; STEP_BYTES];
        while !payload.is_empty() {
            let status = self.encoder.run_on_buffers(payload, &mut step)?;
            self.packed.extend_from_slice(&step[..status.bytes_written]);
            payload = &payload[status.bytes_read..];
        }
        loop {
            let mut out = zstd::stream::raw::OutBuffer::around(&mut step[..]);
            let left = self.encoder.flush(&mut out)?;
            let written = out.pos();
            self.packed.extend_from_slice(&step[..written]);
            if left == 0 {
                return Ok(());
            }
        }
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("segment", &self.segment).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    /// True if a stream begins with it.
    pub(super) is_first: bool,
    pub(super) bytes: &'a [u8],
}

/// Unpacks the payloads of a segment, in their order.
#[derive(Default)]
pub(super) struct Unpacker {
    decoder: Option<Decoder<'static>>,
    payload: Vec<u8>,
}

impl Unpacker {
    /// `None` for bytes that no packer made.
    pub(super) fn unpack(&mut self, packed: Packed<'_>) -> Option<&[u8]> {
        if packed.is_first {
            self.decoder = Some(Decoder::new().ok()?);
        }
        let decoder = self.decoder.as_mut()?;
        let (len, mut stream) = packed.bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let len = u32::from_le_bytes(*len) as usize;
        if len > PAYLOAD_BYTES_MAX {
            return None;
        }
        self.payload.clear();
        let mut step = [0; STEP_BYTES];
        while !stream.is_empty() || self.payload.len() < len {
            let status = decoder.run_on_buffers(stream, &mut step).ok()?;
            self.payload.extend_from_slice(&step[..status.bytes_written]);
            stream = &stream[status.bytes_read..];
            let stands_still = status.bytes_read == 0 && status.bytes_written == 0;
            if stands_still || self.payload.len() > len {
                return None;
            }
        }
        Some(&self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads() -> Vec<Vec<u8>> {
        let text = |number: u32| format!("set /queue/item-{number:010} to the value {number}").into_bytes();
        let noise = |number: u32| {
            (0..number * 100)
                .flat_map(|at| crc32c::crc32c(&(at ^ number).to_le_bytes()).to_le_bytes())
                .collect()
        };
        let mut payloads: Vec<Vec<u8>> = (0..50).map(text).collect();
        payloads.extend([Vec::new(), noise(3), vec![7; 300_000], noise(2000), Vec::new(), text(50)]);
        payloads
    }

    #[test]
    fn payloads_come_back_in_their_order() {
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::default());
        for (number, payload) in payloads().iter().enumerate() {
            let packed = packer.pack(1, payload);
            assert_eq!(packed.is_first, number == 0);
            assert_eq!(unpacker.unpack(packed), Some(&payload[..]), "payload {number}");
        }
    }

    #[test]
    fn what_is_alike_takes_little() {
        let mut packer = Packer::new();
        let sizes: Vec<usize> =
            payloads()[..50].iter().map(|payload| packer.pack(1, payload).bytes.len()).collect();
        assert!(sizes[49] < 30, "{sizes:?}");
    }

    #[test]
    fn each_segment_can_be_read_without_those_before() {
        let mut packer = Packer::new();
        packer.pack(1, b"before");
        let packed = packer.pack(2, b"first");
        assert!(packed.is_first);
        let mut unpacker = Unpacker::default();
        assert_eq!(unpacker.unpack(packed), Some(&b"first"[..]));
        packer.came_into(2);
        assert!(!packer.pack(2, b"second").is_first);
        packer.came_into(1);
        assert!(packer.pack(2, b"third").is_first);
    }

    #[test]
    fn bytes_that_no_packer_made_are_refused() {
        let payloads = payloads();
        let mut packer = Packer::new();
        let packed = packer.pack(1, &payloads[3]).bytes.to_vec();
        let unpack =
            |bytes: &[u8]| Unpacker::default().unpack(Packed { is_first: true, bytes }).map(<[u8]>::to_vec);
        assert!(unpack(&packed).is_some());
        for end in 0..packed.len() {
            assert_eq!(unpack(&packed[..end]), None, "cut at {end}");
        }
        let mut longer = packed.clone();
        longer[0] += 1;
        assert_eq!(unpack(&longer), None);
        assert!(Unpacker::default().unpack(Packed { is_first: false, bytes: &packed }).is_none());
    }
}
