//! Fields of protobuf messages: numbers as varints, and bytes with a length.

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct WireMessage(Vec<u8>);

impl WireMessage {
    /// A field of bytes, of text or of another message.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut WireMessage {
        self.varint(u64::from(field) << 3 | u64::from(BYTES));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A number; 0 is the same as no field.
    pub(super) fn number(&mut self, field: u32, number: i64) -> &mut WireMessage {
        if number != 0 {
            self.present(field, number);
        }
        self
    }

    /// A number that is written even if it is 0.
    pub(super) fn present(&mut self, field: u32, number: i64) -> &mut WireMessage {
        self.varint(u64::from(field) << 3 | u64::from(VARINT));
        self.varint(number as u64);
        self
    }

    /// Begins another message in the same memory.
    pub(super) fn restart(&mut self) -> &mut WireMessage {
        self.0.clear();
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

const VARINT: u8 = 0;
const EIGHT_BYTES: u8 = 1;
const BYTES: u8 = 2;
const FOUR_BYTES: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reason why bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error("a message of etcd ends in the middle of a field")]
    Truncated,
    #[error("a message of etcd has a field of the unknown wire type {0}")]
    WireType(u8),
}

/// The fields of a message, with their numbers. Ends after the first error.
pub(super) fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<(u32, Field<'_>), ProtobufError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(&mut rest);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next<'a>(rest: &mut &'a [u8]) -> Result<(u32, Field<'a>), ProtobufError> {
    let tag = varint(rest)?;
    let field = match (tag & 7) as u8 {
        VARINT => Field::Number(varint(rest)?),
        BYTES => {
            let len = varint(rest)?;
            Field::Bytes(split(rest, usize::try_from(len).unwrap_or(usize::MAX))?)
        }
        EIGHT_BYTES => Field::Bytes(split(rest, 8)?),
        FOUR_BYTES => Field::Bytes(split(rest, 4)?),
        other => return Err(ProtobufError::WireType(other)),
    };
    Ok(((tag >> 3) as u32, field))
}

fn split<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], ProtobufError> {
    let (front, back) = rest.split_at_checked(len).ok_or(ProtobufError::Truncated)?;
    *rest = back;
    Ok(front)
}

fn varint(rest: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, back) = rest.split_first().ok_or(ProtobufError::Truncated)?;
        *rest = back;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(ProtobufError::Truncated)
}
