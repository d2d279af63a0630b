//! The home group's numbered streams: one to each other group, of what was decided for it.
//!
//! An entry of the home group appends items; they stay until the group has acknowledged them. The group counts the items that it has applied, and passes over
//! one that is not the next: so each is applied once and in order, whichever member leads and however often an item is sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, SessionId, StreamItem, Zxid};

/// A stream to a group. Items are numbered from 1 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemStream {
    acknowledged: u64,
    /// Items behind the last one that was acknowledged.
    pending: VecDeque<PendingItem>,
    /// Bytes of these.
    pending_bytes: usize,
}

/// An item that was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingItem {
    /// Place of the home group's decision: what happens at a larger zxid comes behind it. Within an entry of the home group it may fall along a stream.
    pub decided: Zxid,
    /// The item, encoded.
    pub bytes: Arc<[u8]>,
}

impl ItemStream {
    /// Number of the last item that the group has acknowledged; 0 for none.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Number of the last item; 0 for none.
    pub fn last(&self) -> u64 {
        self.acknowledged + self.pending.len() as u64
    }

    /// Items with a higher number than this one that were not acknowledged, with their numbers.
    pub fn behind(&self, number: u64) -> impl Iterator<Item = (u64, &PendingItem)> {
        let skipped = number.saturating_sub(self.acknowledged);
        let first = self.acknowledged + skipped + 1;
        let items = self.pending.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX));
        (first..).zip(items)
    }

    /// Zxid with which the end of a session was decided of which the group has not said yet that it knows.
    pub(crate) fn decided_end(&self, session: SessionId) -> Option<Zxid> {
        let is_end = |item: &&PendingItem| {
            let item = StreamItem::decode(&mut Reader::new(&item.bytes));
            item == Ok(StreamItem::End { session })
        };
        self.pending.iter().find(is_end).map(|item| item.decided)
    }

    /// Bytes of the items that were not acknowledged.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    fn push(&mut self, item: PendingItem) {
        self.pending_bytes += item.bytes.len();
        self.pending.push_back(item);
    }

    /// The group has applied the items up to this number. One that is not there, or was acknowledged before, changes nothing.
    fn acknowledge(&mut self, number: u64) {
        if (self.acknowledged..=self.last()).contains(&number) {
            let gone = self.pending.drain(..(number - self.acknowledged) as usize);
            self.pending_bytes -= gone.map(|item| item.bytes.len()).sum::<usize>();
            self.acknowledged = number;
        }
    }
}

impl PendingItem {
    /// True if the decision has changed what clients see, or where it is: who looks has to have the item.
    pub fn changes_znodes(&self) -> bool {
        let item = StreamItem::decode(&mut Reader::new(&self.bytes));
        item.is_ok_and(|item| item.changes_znodes())
    }
}

/// Streams by the numbers of the groups to which they go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    by_group: BTreeMap<u32, ItemStream>,
    /// Numbers of the last items and of the last acknowledged ones, added up over all streams. It only rises.
    progress: u64,
}

impl Streams {
    /// The streams that have had an item.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &ItemStream)> {
        self.by_group.iter().map(|(group, stream)| (*group, stream))
    }

    /// A number that is another one whenever a stream has changed, in all states of an ensemble.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// The stream to a group, if it has had an item.
    pub fn to_group(&self, group: u32) -> Option<&ItemStream> {
        self.by_group.get(&group)
    }

    pub(crate) fn push(&mut self, group: u32, decided: Zxid, item: &StreamItem<'_>) {
        let mut bytes = Vec::with_capacity(item.encoded_len_about());
        item.encode(&mut bytes);
        self.by_group.entry(group).or_default().push(PendingItem { decided, bytes: bytes.into() });
        self.progress += 1;
    }

    pub(crate) fn acknowledge(&mut self, group: u32, number: u64) {
        if let Some(stream) = self.by_group.get_mut(&group) {
            let before = stream.acknowledged;
            stream.acknowledge(number);
            self.progress += stream.acknowledged - before;
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_count(self.by_group.len());
        for (group, ItemStream { acknowledged, pending, .. }) in &self.by_group {
            out.put_i32(*group as i32);
            out.put_i64(*acknowledged as i64);
            out.put_count(pending.len());
            for PendingItem { decided, bytes } in pending {
                out.put_i64(decided.0);
                out.put_buffer(Some(bytes));
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Streams, DecodeError> {
        let mut streams = Streams::default();
        for _ in 0..r.count()? {
            let group = r.i32()?;
            let mut stream = ItemStream { acknowledged: read_number(r)?, ..ItemStream::default() };
            for _ in 0..r.count()? {
                let decided = Zxid(r.i64()?);
                let item = r.buffer()?.ok_or(DecodeError::UnexpectedNull)?;
                StreamItem::decode(&mut Reader::new(item))?;
                stream.push(PendingItem { decided, bytes: item.into() });
            }
            streams.progress += stream.acknowledged + stream.last();
            let known = streams.by_group.insert(group as u32, stream);
            if known.is_some() {
                return Err(DecodeError::UnknownValue { field: "group of a stream", value: group });
            }
        }
        Ok(streams)
    }
}

/// Reads the number of an item.
pub(crate) fn read_number(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let number = r.i64()?;
    let unknown = DecodeError::UnknownValue { field: "number of an item", value: number as i32 };
    u64::try_from(number).map_err(|_| unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(streams: &Streams, group: u32, behind: u64) -> Vec<u64> {
        let stream = streams.to_group(group).unwrap();
        stream.behind(behind).map(|(number, _)| number).collect()
    }

    #[test]
    fn items_stay_until_they_are_acknowledged() {
        let mut streams = Streams::default();
        let item = |path| StreamItem::SplitPoint { path, acl: None };
        for path in ["/a", "/b", "/c", "/d"] {
            streams.push(2, Zxid(5), &item(path));
        }
        streams.push(1, Zxid(6), &item("/a"));
        assert_eq!((numbers(&streams, 2, 0), numbers(&streams, 1, 0)), (vec![1, 2, 3, 4], vec![1]));
        streams.acknowledge(2, 2);
        for nothing in [1, 2, 0, 5, u64::MAX] {
            streams.acknowledge(2, nothing);
            assert_eq!(numbers(&streams, 2, 0), [3, 4], "{nothing}");
        }
        streams.acknowledge(9, 1);
        assert_eq!((numbers(&streams, 2, 3), numbers(&streams, 2, 4)), (vec![4], vec![]));
        let (_, third) = streams.to_group(2).unwrap().behind(0).next().unwrap();
        assert_eq!(third.decided, Zxid(5));
        assert_eq!(StreamItem::decode(&mut Reader::new(&third.bytes)), Ok(item("/c")));
        let mut bytes = Vec::new();
        streams.encode(&mut bytes);
        assert_eq!(Streams::decode(&mut Reader::new(&bytes)).as_ref(), Ok(&streams));
        assert_eq!(streams.progress(), 4 + 1 + 2, "of five items two are acknowledged");
        streams.acknowledge(2, 4);
        streams.push(2, Zxid(7), &item("/e"));
        assert_eq!((numbers(&streams, 2, 0), streams.progress()), (vec![5], 4 + 1 + 4 + 1));
    }

    #[test]
    fn items_that_cannot_be_read_are_not_taken_from_bytes() {
        let mut bytes = Vec::new();
        bytes.put_count(1);
        bytes.put_i32(1);
        bytes.put_i64(0);
        bytes.put_count(1);
        bytes.put_i64(0);
        bytes.put_buffer(Some(&[77]));
        assert!(Streams::decode(&mut Reader::new(&bytes)).is_err());
    }
}
