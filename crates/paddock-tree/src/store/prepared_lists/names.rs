//! One prepared list: names as they go over the wire, and the changes that are not in them yet.

use std::sync::Arc;

use paddock_proto::jute::Writer;

/// Bytes of changes that are noted of a list however short it is.
const PENDING_BYTES_MIN: usize = 1 << 10;
/// Bytes of changes that are noted of the longest list: who asks next takes them all up.
const PENDING_BYTES_MAX: usize = 8 << 10;
/// Times the bytes of a list that may be looked through for names that went: to make it anew takes no longer.
const SEARCH_TIMES_MAX: usize = 32;
/// Bytes that may be looked through for names that went, however long the list is: about ten milliseconds.
const SEARCH_BYTES_MAX: usize = 16 << 20;
/// Size of a bucket, in bytes, up to which all names lie in one.
const BUCKET_BYTES: usize = 64 << 10;
/// Mean size of buckets, in bytes, above which a list has outgrown them.
const BUCKET_BYTES_MAX: usize = 4 * BUCKET_BYTES;
/// Bytes that are counted for a bucket beside its names.
const BUCKET_OVERHEAD: usize = 64;

/// A name that came or went, in front of it in `pending`.
const CAME: u8 = 1;
const WENT: u8 = 0;

/// Names of children, each behind its length, in buckets by their hashes: a name is looked for in one of them.
///
/// The order is no particular one. A list that clients are being sent is not changed: a bucket that they share is copied first.
#[derive(Clone, Debug)]
pub(crate) struct ListNames {
    /// A power of two.
    buckets: Vec<Arc<Vec<u8>>>,
    /// Bytes for which a bucket has room at first.
    bucket_bytes: usize,
    /// Bytes of the names in all buckets, with their lengths.
    bytes: usize,
    /// Changes since, in their order: a byte, and the name behind its length.
    pending: Vec<u8>,
    /// Names among the changes that went.
    gone: usize,
}

impl ListNames {
    /// An empty list for names of about `bytes` bytes, lengths included.
    pub(crate) fn for_bytes(bytes: usize) -> ListNames {
        let buckets =
            if bytes <= BUCKET_BYTES { 1 } else { (bytes.div_ceil(BUCKET_BYTES)).next_power_of_two() };
        // Hashes fill them evenly, or nearly so.
        let bucket_bytes = if buckets == 1 { bytes } else { bytes / buckets * 9 / 8 };
        ListNames {
            buckets: vec![Arc::default(); buckets],
            bucket_bytes,
            bytes: 0,
            pending: Vec::new(),
            gone: 0,
        }
    }

    /// A list of names that lie behind each other, each behind its length.
    pub(super) fn of_encoded(encoded: &[u8], hash: impl Fn(&[u8]) -> u64) -> ListNames {
        let mut names = ListNames::for_bytes(encoded.len());
        if let [only] = &mut names.buckets[..] {
            *only = Arc::new(encoded.to_vec());
            names.bytes = encoded.len();
            return names;
        }
        let mut rest = encoded;
        while !rest.is_empty() {
            let (record, behind) = rest.split_at(record_len(rest));
            names.insert(record, &hash);
            rest = behind;
        }
        names
    }

    /// Adds a name to the bucket of its hash.
    pub(crate) fn push(&mut self, name: &[u8], hash: u64) {
        let bucket_bytes = self.bucket_bytes;
        let bucket = self.bucket(hash);
        if bucket.capacity() == 0 {
            bucket.reserve_exact(bucket_bytes);
        }
        bucket.put_buffer(Some(name));
        self.bytes += 4 + name.len();
    }

    /// Bytes of the names, with their lengths.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The names, if no change is pending.
    pub(crate) fn into_buckets(self) -> Vec<Arc<Vec<u8>>> {
        assert!(self.pending.is_empty(), "changes are settled before a list is sent");
        self.buckets
    }

    pub(super) fn buckets(&self) -> &[Arc<Vec<u8>>] {
        assert!(self.pending.is_empty(), "changes are settled before a list is sent");
        &self.buckets
    }

    /// Bytes of memory that are counted for it.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes + self.pending.len() + self.buckets.len() * BUCKET_OVERHEAD
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes of the changes that are not taken up.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Notes that a child has come or gone. Returns false if taking up the changes would be worth no more than a new list.
    pub(crate) fn note(&mut self, name: &[u8], has_come: bool) -> bool {
        self.pending.push(if has_come { CAME } else { WENT });
        self.pending.put_buffer(Some(name));
        self.gone += usize::from(!has_come);
        // Each that went is looked for in one bucket.
        let search_max = (SEARCH_TIMES_MAX * self.bytes).min(SEARCH_BYTES_MAX);
        self.pending.len() <= (self.bytes / 8).clamp(PENDING_BYTES_MIN, PENDING_BYTES_MAX)
            && self.gone * self.bytes <= search_max * self.buckets.len()
    }

    /// Takes up the changes. Returns false if the list has outgrown its buckets.
    pub(super) fn settle(&mut self, hash: impl Fn(&[u8]) -> u64) -> bool {
        let removed = self.settle_some(usize::MAX, hash);
        assert!(removed, "a list has the names of all children that were there");
        self.bytes <= self.buckets.len() * BUCKET_BYTES_MAX
    }

    /// Takes up at most `max` changes. Returns false if a name that went was not there: of a list that is not whole yet.
    pub(crate) fn settle_some(&mut self, max: usize, hash: impl Fn(&[u8]) -> u64) -> bool {
        let pending = std::mem::take(&mut self.pending);
        let (mut rest, mut were_there) = (&pending[..], true);
        for _ in 0..max {
            let Some((&change, from_record)) = rest.split_first() else { break };
            let (record, behind) = from_record.split_at(record_len(from_record));
            match change {
                CAME => self.insert(record, &hash),
                _ => {
                    self.gone -= 1;
                    were_there &= self.remove(record, &hash);
                }
            }
            rest = behind;
        }
        self.pending = rest.to_vec();
        were_there
    }

    fn insert(&mut self, record: &[u8], hash: impl Fn(&[u8]) -> u64) {
        let hash = if self.buckets.len() == 1 { 0 } else { hash(&record[4..]) };
        self.bucket(hash).extend_from_slice(record);
        self.bytes += record.len();
    }

    /// Returns false if the name is not there.
    fn remove(&mut self, record: &[u8], hash: impl Fn(&[u8]) -> u64) -> bool {
        let hash = if self.buckets.len() == 1 { 0 } else { hash(&record[4..]) };
        let bucket = self.bucket(hash);
        let Some(at) = position(bucket, record) else { return false };
        bucket.drain(at..at + record.len());
        self.bytes -= record.len();
        true
    }

    fn bucket(&mut self, hash: u64) -> &mut Vec<u8> {
        let place = hash as usize & (self.buckets.len() - 1);
        Arc::make_mut(&mut self.buckets[place])
    }
}

/// Length of the record at the front: a name behind its length.
fn record_len(records: &[u8]) -> usize {
    let length = records.first_chunk().expect("a name stands behind its length");
    4 + u32::from_be_bytes(*length) as usize
}

/// Place of a record among others.
fn position(records: &[u8], record: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < records.len() {
        let rest = &records[at..];
        if rest.starts_with(record) {
            return Some(at);
        }
        at += record_len(rest);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash that puts names of equal length into one bucket.
    fn hash(name: &[u8]) -> u64 {
        name.len() as u64
    }

    fn sorted(names: &ListNames) -> Vec<Vec<u8>> {
        let mut sorted = Vec::new();
        for bucket in names.buckets() {
            let mut rest = &bucket[..];
            while !rest.is_empty() {
                let (record, behind) = rest.split_at(record_len(rest));
                sorted.push(record[4..].to_vec());
                rest = behind;
            }
        }
        sorted.sort();
        sorted
    }

    fn encoded(names: &[&str]) -> Vec<u8> {
        let mut encoded = Vec::new();
        names.iter().for_each(|name| encoded.put_string(name));
        encoded
    }

    #[test]
    fn changes_are_taken_up_in_their_order() {
        let mut names = ListNames::of_encoded(&encoded(&["b", "a", "ab"]), hash);
        for (name, has_come) in [("a", false), ("c", true), ("a", true), ("c", false), ("ab", false)] {
            assert!(names.note(name.as_bytes(), has_come));
        }
        assert!(names.settle(hash));
        assert_eq!(sorted(&names), [b"a", b"b"]);
        assert_eq!(names.bytes(), 10);
    }

    #[test]
    fn a_list_that_is_being_sent_stays_as_it_is() {
        let mut names = ListNames::of_encoded(&encoded(&["a"]), hash);
        let sent = names.buckets().to_vec();
        assert!(names.note(b"b", true) && names.settle(hash));
        assert_eq!(*sent[0], encoded(&["a"]));
        assert_eq!(*names.buckets()[0], encoded(&["a", "b"]));
    }

    #[test]
    fn a_list_of_much_has_buckets_until_it_outgrows_them() {
        let long: Vec<String> = (1..1200).map(|length| "x".repeat(length)).collect();
        let all = encoded(&long.iter().map(String::as_str).collect::<Vec<_>>());
        let mut names = ListNames::of_encoded(&all, hash);
        assert_eq!(names.buckets.len(), 16);
        assert!(names.note(long[700].as_bytes(), false) && names.settle(hash));
        assert_eq!(sorted(&names).len(), 1198);
        names.bytes = 16 * BUCKET_BYTES_MAX;
        assert!(names.note(b"one too many", true) && !names.settle(hash));
    }

    #[test]
    fn too_many_changes_are_not_kept() {
        let mut names = ListNames::of_encoded(&encoded(&["a"]), hash);
        let noted = (0..1000).take_while(|_| names.note(b"0123456789", true)).count();
        assert_eq!(noted, PENDING_BYTES_MIN / 15);
    }

    /// A hash that fills buckets evenly with numbered names.
    fn by_last_digits(name: &[u8]) -> u64 {
        name[3..].iter().fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0'))
    }

    fn numbered(children: usize) -> Vec<String> {
        (0..children).map(|number| format!("{number:06}")).collect()
    }

    fn list_of(children: &[String]) -> ListNames {
        let children: Vec<&str> = children.iter().map(String::as_str).collect();
        ListNames::of_encoded(&encoded(&children), by_last_digits)
    }

    fn noted_until_too_many(names: &mut ListNames, changes: &[String], has_come: bool) -> usize {
        changes.iter().take_while(|name| names.note(name.as_bytes(), has_come)).count()
    }

    /// The next reader takes the changes up, under the lock of all prepared lists.
    #[test]
    fn changes_are_not_kept_that_would_take_long_to_take_up() {
        let children = numbered(100_000);
        let one_bucket = &children[..6000];
        assert_eq!(list_of(one_bucket).buckets.len(), 1);
        assert_eq!(noted_until_too_many(&mut list_of(one_bucket), one_bucket, false), 32);
        assert_eq!(noted_until_too_many(&mut list_of(one_bucket), one_bucket, true), 60_000 / 8 / 11);
        // A list in two buckets: each is looked for in one of them.
        let two_buckets = &children[..7000];
        assert_eq!(noted_until_too_many(&mut list_of(two_buckets), two_buckets, false), 64);
        let mut long = list_of(&children);
        assert_eq!(noted_until_too_many(&mut long, &children, true), (8 << 10) / 11);
        let mut long = list_of(&children);
        assert_eq!(long.buckets.len(), 16);
        assert_eq!(noted_until_too_many(&mut long, &children, false), (16 << 20) / (1_000_000 / 16));
        // What was taken up does not count any more.
        assert!(long.settle(by_last_digits) && long.note(children[99_999].as_bytes(), false));
    }
}
