//! Results of multis over several groups, of which each has those of its own operations.

use paddock_proto::jute::Reader;
use paddock_proto::{MultiResult, Stat, WriteReply};

/// The encoded result of an operation, at its place.
pub(super) type PlacedResult = (u32, Vec<u8>);

/// The results in order, read as results of the same kinds as those in one order; `None` if they are others.
pub(super) fn read_results(
    mut found: Vec<PlacedResult>,
    expected: &[MultiResult<'static>],
) -> Option<Vec<MultiResult<'static>>> {
    found.sort_by_key(|(place, _)| *place);
    let is_complete = found.iter().map(|(place, _)| *place).eq(0..expected.len() as u32);
    let pairs = found.iter().zip(expected).filter(|_| is_complete);
    let results: Vec<_> = pairs.filter_map(|((_, bytes), like)| read_result(bytes, like)).collect();
    (results.len() == expected.len()).then_some(results)
}

fn read_result(bytes: &[u8], like: &MultiResult<'static>) -> Option<MultiResult<'static>> {
    const HEADER_BYTES: usize = 9;
    let MultiResult::Done(op, reply) = like else { return None };
    let mut expected = Vec::new();
    like.encode(&mut expected);
    let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let reader = &mut Reader::new(body);
    let path = |reader: &mut Reader<'_>| reader.string().ok().map(|path| path.to_owned().into());
    let reply = match reply {
        WriteReply::Done => WriteReply::Done,
        WriteReply::Created { .. } => WriteReply::Created { path: path(reader)? },
        WriteReply::CreatedWithStat { .. } => {
            WriteReply::CreatedWithStat { path: path(reader)?, stat: Stat::decode(reader).ok()? }
        }
        WriteReply::Changed { .. } => WriteReply::Changed { stat: Stat::decode(reader).ok()? },
        WriteReply::Multi(_) => return None,
    };
    let result = MultiResult::Done(*op, reply);
    let mut encoded = Vec::new();
    result.encode(&mut encoded);
    (header == &expected[..HEADER_BYTES] && encoded == bytes).then_some(result)
}
