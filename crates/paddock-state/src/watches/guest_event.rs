//! An event for a client of another member. What that client may read is known there, so the ACL that decides it goes with the event.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{Acl, AclList, DecodeError, WatchEvent, encode};

/// The frame of an event, and behind it the ACL of those who may hear of it; `None` if all may.
pub(crate) fn encode(event: WatchEvent<'_>, readers: Option<&[Acl]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    bytes.put_bool(readers.is_some());
    readers.iter().for_each(|acl| encode::put_acl(&mut bytes, acl));
    bytes
}

/// The frame, and the ACL of those who may hear of it.
///
/// # Errors
/// If it is not whole.
pub fn split(bytes: &[u8]) -> Result<(&[u8], Option<Vec<Acl>>), DecodeError> {
    let mut reader = Reader::new(bytes);
    let length = usize::try_from(reader.i32()?).map_err(|_| DecodeError::Truncated)?;
    reader.bytes(length)?;
    let frame = &bytes[..bytes.len() - reader.rest().len()];
    let readers = if reader.bool()? { Some(AclList::decode(&mut reader)?.to_vec()) } else { None };
    Ok((frame, readers))
}

#[cfg(test)]
mod tests {
    use paddock_proto::{EventKind, Zxid};

    use super::*;

    #[test]
    fn an_event_comes_with_those_who_may_hear_of_it() {
        let event = WatchEvent { kind: EventKind::NodeCreated, path: "/a", zxid: Zxid(3) };
        let mut frame = Vec::new();
        event.encode(&mut frame);
        for readers in [None, Some(vec![Acl::open()])] {
            let bytes = super::encode(event, readers.as_deref());
            assert_eq!(split(&bytes), Ok((&frame[..], readers)));
            assert!(split(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
