//! Jute, ZooKeeper's serialisation: big-endian numbers, strings and buffers with an i32 length (-1 is null).
//!
//! A `Reader` never allocates and never trusts a length: whatever the bytes say, it hands out slices of what is
//! really there. Strings must be UTF-8; ZooKeeper would replace bad bytes by U+FFFD and then refuse such a path.

/// Errors of bytes that are not the record they should be. The client gets `MarshallingError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("record ends before its last field")]
    Truncated,
    #[error("unreasonable length {0}")]
    UnreasonableLength(i32),
    #[error("string is not UTF-8")]
    NotUtf8,
    #[error("field must not be null")]
    UnexpectedNull,
    #[error("{field} cannot be {value}")]
    UnknownValue { field: &'static str, value: i32 },
}

/// Reads jute values from the front of a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes that have not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Any non-zero byte is true, as in Java's `readBoolean`.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// The length of a buffer or a count: `None` for null (-1).
    fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        match self.i32()? {
            -1 => Ok(None),
            len => usize::try_from(len).map(Some).map_err(|_| DecodeError::UnreasonableLength(len)),
        }
    }

    pub fn buffer(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.length()? {
            None => Ok(None),
            Some(len) => self.bytes(len).map(Some),
        }
    }

    pub fn nullable_string(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let Some(bytes) = self.buffer()? else { return Ok(None) };
        std::str::from_utf8(bytes).map(Some).map_err(|_| DecodeError::NotUtf8)
    }

    pub fn string(&mut self) -> Result<&'a str, DecodeError> {
        self.nullable_string()?.ok_or(DecodeError::UnexpectedNull)
    }

    /// The number of items of a vector; null counts as empty. The items are still to be read, so a caller must not
    /// reserve memory for a count that the remaining bytes cannot hold (`Reader::list` does not).
    pub fn count(&mut self) -> Result<usize, DecodeError> {
        Ok(self.length()?.unwrap_or(0))
    }

    /// A vector whose items `item` reads.
    pub fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count()?;
        // Every item takes at least one byte, so a false count cannot make us reserve more than the frame's size.
        let mut items = Vec::with_capacity(count.min(self.rest.len()));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn strings(&mut self) -> Result<Vec<&'a str>, DecodeError> {
        self.list(Reader::string)
    }
}

/// Appends jute values to a byte vector.
pub trait Writer {
    fn put_bool(&mut self, value: bool);
    fn put_i32(&mut self, value: i32);
    fn put_i64(&mut self, value: i64);
    fn put_buffer(&mut self, value: Option<&[u8]>);
    fn put_string(&mut self, value: &str);
    /// The count in front of a vector's items.
    fn put_count(&mut self, count: usize);
}

impl Writer for Vec<u8> {
    fn put_bool(&mut self, value: bool) {
        self.push(u8::from(value));
    }

    fn put_i32(&mut self, value: i32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_buffer(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.put_i32(-1),
            Some(bytes) => {
                self.put_count(bytes.len());
                self.extend_from_slice(bytes);
            }
        }
    }

    fn put_string(&mut self, value: &str) {
        self.put_buffer(Some(value.as_bytes()));
    }

    fn put_count(&mut self, count: usize) {
        self.put_i32(i32::try_from(count).expect("a jute vector has fewer than 2^31 items"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_written() {
        let mut bytes = Vec::new();
        bytes.put_bool(true);
        bytes.put_i32(-7);
        bytes.put_i64(1 << 40);
        bytes.put_buffer(None);
        bytes.put_buffer(Some(b""));
        bytes.put_string("/a");

        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.bool(), Ok(true));
        assert_eq!(reader.i32(), Ok(-7));
        assert_eq!(reader.i64(), Ok(1 << 40));
        assert_eq!(reader.buffer(), Ok(None));
        assert_eq!(reader.buffer(), Ok(Some(&b""[..])));
        assert_eq!(reader.string(), Ok("/a"));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_length_is_never_trusted() {
        fn refusal(bytes: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
            Reader::new(bytes).buffer()
        }
        assert_eq!(refusal(&[0, 0, 0]), Err(DecodeError::Truncated));
        assert_eq!(refusal(&[0, 0, 0, 2, 1]), Err(DecodeError::Truncated));
        assert_eq!(refusal(&[0x7f, 0xff, 0xff, 0xff]), Err(DecodeError::Truncated));
        assert_eq!(refusal(&[0xff, 0xff, 0xff, 0xfe]), Err(DecodeError::UnreasonableLength(-2)));
        assert_eq!(Reader::new(&[0x7f, 0xff, 0xff, 0xff, 0]).strings(), Err(DecodeError::Truncated));
    }

    #[test]
    fn a_string_must_be_utf8_and_present() {
        assert_eq!(Reader::new(&[0, 0, 0, 1, 0xff]).string(), Err(DecodeError::NotUtf8));
        assert_eq!(Reader::new(&[0xff; 4]).string(), Err(DecodeError::UnexpectedNull));
    }
}
