//! Messages for what imports ask of etcd: keys with all that etcd keeps of them, and the times of leases.

use super::fields::{Field, ProtobufError, WireMessage, fields};
use super::header_revision;
use crate::zetcd::Pair;

pub const TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";

/// Answer to `Call::Read`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairsPage {
    /// etcd's newest revision.
    pub revision: i64,
    pub pairs: Vec<Pair>,
    pub is_last: bool,
}

pub fn decode_pairs(bytes: &[u8]) -> Result<PairsPage, ProtobufError> {
    let mut page = PairsPage { is_last: true, ..PairsPage::default() };
    for field in fields(bytes) {
        match field? {
            (1, Field::Bytes(header)) => page.revision = header_revision(header)?,
            (2, Field::Bytes(pair)) => page.pairs.push(decode_pair(pair)?),
            (3, Field::Number(has_more)) => page.is_last = has_more == 0,
            _ => {}
        }
    }
    Ok(page)
}

fn decode_pair(bytes: &[u8]) -> Result<Pair, ProtobufError> {
    let mut pair = Pair::default();
    for field in fields(bytes) {
        match field? {
            (1, Field::Bytes(key)) => pair.key = key.to_vec(),
            (3, Field::Number(number)) => pair.mod_revision = number as i64,
            (4, Field::Number(number)) => pair.version = number as i64,
            (5, Field::Bytes(value)) => pair.value = value.to_vec(),
            (6, Field::Number(number)) => pair.lease = number as i64,
            _ => {}
        }
    }
    Ok(pair)
}

pub fn encode_time_to_live(lease: i64) -> Vec<u8> {
    WireMessage::default().number(1, lease).take()
}

/// The time to live in seconds that a lease was granted; `None` if it has ended.
pub fn decode_time_to_live(bytes: &[u8]) -> Result<Option<i64>, ProtobufError> {
    let (mut left_s, mut granted_s) = (0, 0);
    for field in fields(bytes) {
        match field? {
            (3, Field::Number(number)) => left_s = number as i64,
            (4, Field::Number(number)) => granted_s = number as i64,
            _ => {}
        }
    }
    Ok((left_s >= 0 && granted_s > 0).then_some(granted_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_all_that_etcd_keeps_of_a_key() {
        let header = WireMessage::default().number(1, 77).number(3, 9).take();
        let mut pair = WireMessage::default();
        pair.bytes(1, b"k").number(2, 3).number(3, 8).number(4, 5).bytes(5, b"v").number(6, 300);
        let bytes =
            WireMessage::default().bytes(1, &header).bytes(2, &pair.take()).number(3, 1).number(4, 2).take();
        let read = Pair { key: b"k".into(), value: b"v".into(), version: 5, mod_revision: 8, lease: 300 };
        assert_eq!(decode_pairs(&bytes), Ok(PairsPage { revision: 9, pairs: vec![read], is_last: false }));
        assert!((1..bytes.len()).any(|end| decode_pairs(&bytes[..end]).is_err()));
    }

    #[test]
    fn a_lease_that_has_ended_has_no_time() {
        let alive = WireMessage::default().number(2, 300).number(3, 4).number(4, 10).take();
        assert_eq!(decode_time_to_live(&alive), Ok(Some(10)));
        let ended = WireMessage::default().number(2, 300).number(3, -1).take();
        assert_eq!(decode_time_to_live(&ended), Ok(None));
    }
}
