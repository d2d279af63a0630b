//! Frames: an i32 length, then that many bytes.

/// A client may not send this: the connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame of {len} bytes is outside 0..={max}")]
pub struct BadFrameLength {
    pub len: i32,
    pub max: i32,
}

/// The first frame of `bytes` and the number of bytes it takes with its length, or `None` while it is incomplete.
/// A length below zero or above `max` is refused before its bytes have come.
pub fn split(bytes: &[u8], max: i32) -> Result<Option<(&[u8], usize)>, BadFrameLength> {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let len = i32::from_be_bytes(*head);
    if len < 0 || len > max {
        return Err(BadFrameLength { len, max });
    }
    let len = len as usize;
    Ok(rest.get(..len).map(|body| (body, 4 + len)))
}

/// Writes a frame: `body` appends its bytes, the length in front is filled in after.
pub fn write(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let len = i32::try_from(out.len() - start - 4).expect("a frame is shorter than 2 GiB");
    out[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_split_off_once_it_is_whole() {
        let mut bytes = Vec::new();
        write(&mut bytes, |out| out.extend_from_slice(b"abc"));
        write(&mut bytes, |_| {});
        for cut in 0..7 {
            assert_eq!(split(&bytes[..cut], 10), Ok(None));
        }
        assert_eq!(split(&bytes, 10), Ok(Some((&b"abc"[..], 7))));
        assert_eq!(split(&bytes[7..], 10), Ok(Some((&b""[..], 4))));
    }

    #[test]
    fn a_length_out_of_range_is_refused_at_once() {
        assert_eq!(split(&(-1i32).to_be_bytes(), 10), Err(BadFrameLength { len: -1, max: 10 }));
        assert_eq!(split(&11i32.to_be_bytes(), 10), Err(BadFrameLength { len: 11, max: 10 }));
    }
}
