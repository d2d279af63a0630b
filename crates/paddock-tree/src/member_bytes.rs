//! A member's number as snapshots and digests have it.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, MemberNumber, narrow_member_number};

/// One byte for members from 1 to 255; for others a zero and four bytes.
pub(crate) fn put_member(member: MemberNumber, out: &mut Vec<u8>) {
    let narrow = narrow_member_number(member);
    out.push(narrow);
    if narrow == 0 {
        out.put_i32(member as i32);
    }
}

/// The number that `put_member` wrote. In snapshots of `FORMAT_OF_NARROW_NUMBERS` and before it is a byte, whatever that is.
pub(crate) fn read_member(r: &mut Reader<'_>, may_be_wide: bool) -> Result<MemberNumber, DecodeError> {
    match r.u8()? {
        0 if may_be_wide => {
            let wide = r.i32()?;
            let unknown = DecodeError::UnknownValue { field: "member", value: wide };
            MemberNumber::try_from(wide).map_err(|_| unknown)
        }
        narrow => Ok(narrow.into()),
    }
}
