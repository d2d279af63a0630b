//! A long setWatches, whose watches are set in portions: other clients wait for one portion, and not for all of them.

use std::collections::VecDeque;

use paddock_proto::{Dialect, OpCode, Request, WatchRequest, Xid, encode};

/// A path on the wire is its length and a slash at least.
const PATH_BYTES_MIN: usize = 5;

/// Watches of a setWatches that are still to be set.
#[derive(Debug)]
pub(crate) struct WatchesToSet<Span> {
    pub(crate) xid: Xid,
    /// Present if the request is traced.
    pub(crate) span: Option<Span>,
    portions: VecDeque<Portion>,
}

/// A part of a setWatches, as a request of its own.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) op: OpCode,
    pub(crate) body: Vec<u8>,
}

impl<Span> WatchesToSet<Span> {
    pub(crate) fn new(xid: Xid, portions: VecDeque<Portion>, span: Option<Span>) -> WatchesToSet<Span> {
        WatchesToSet { xid, span, portions }
    }

    /// The next portion. The last one is to be answered.
    pub(crate) fn next(&mut self) -> Option<Portion> {
        self.portions.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.portions.is_empty()
    }

    /// Size of what is left, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.portions.iter().map(|portion| portion.body.capacity()).sum()
    }
}

/// The portions of a setWatches, each of at most `watches_max` watches. `None` for another request, for one that is short, and for one
/// that cannot be read.
pub(crate) fn portions(
    op: OpCode,
    body: &[u8],
    dialect: Dialect,
    watches_max: usize,
) -> Option<VecDeque<Portion>> {
    let is_long = body.len() > watches_max.saturating_mul(PATH_BYTES_MIN);
    if !is_long || !matches!(op, OpCode::SetWatches | OpCode::SetWatches2) {
        return None;
    }
    let Ok(Request::Watch(WatchRequest::Set(watches))) = Request::decode(op, body, dialect) else {
        return None;
    };
    let portions = watches.portions(watches_max);
    let encoded = portions.iter().map(|portion| {
        let mut body = Vec::new();
        encode::set_watches(&mut body, portion);
        let is_newer = encode::needs_set_watches2(portion);
        Portion { op: if is_newer { OpCode::SetWatches2 } else { OpCode::SetWatches }, body }
    });
    (portions.len() > 1).then(|| encoded.collect())
}

#[cfg(test)]
mod tests {
    use paddock_proto::{SetWatches, Zxid};

    use super::*;

    fn decoded(portion: &Portion) -> SetWatches<'_> {
        match Request::decode(portion.op, &portion.body, Dialect::default()) {
            Ok(Request::Watch(WatchRequest::Set(watches))) => watches,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_watch_is_in_one_portion() {
        let watches = SetWatches {
            relative_zxid: Zxid(7),
            data: vec!["/a", "/b"],
            exist: vec!["/c"],
            child: vec![],
            persistent: vec!["/d", "/e", "/f"],
            persistent_recursive: vec!["/g"],
        };
        let mut body = Vec::new();
        encode::set_watches(&mut body, &watches);
        let portions = portions(OpCode::SetWatches2, &body, Dialect::default(), 2).expect("it is long");
        let of = |portion: SetWatches<'static>| SetWatches { relative_zxid: Zxid(7), ..portion };
        let expected = [
            of(SetWatches { data: vec!["/a", "/b"], ..SetWatches::default() }),
            of(SetWatches { exist: vec!["/c"], persistent: vec!["/d"], ..SetWatches::default() }),
            of(SetWatches { persistent: vec!["/e", "/f"], ..SetWatches::default() }),
            of(SetWatches { persistent_recursive: vec!["/g"], ..SetWatches::default() }),
        ];
        assert_eq!(portions.iter().map(decoded).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_short_request_and_another_one_stay_whole() {
        let mut body = Vec::new();
        encode::set_watches(&mut body, &SetWatches { data: vec!["/a"; 10], ..SetWatches::default() });
        assert!(portions(OpCode::SetWatches, &body, Dialect::default(), 1000).is_none(), "short");
        assert!(portions(OpCode::SetWatches, &body, Dialect::default(), 10).is_none(), "one portion");
        assert!(portions(OpCode::GetData, &body, Dialect::default(), 1).is_none());
        assert!(portions(OpCode::SetWatches, &body[..20], Dialect::default(), 1).is_none(), "cut off");
    }
}
