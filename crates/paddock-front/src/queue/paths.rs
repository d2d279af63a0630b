//! Paths of requests that wait, one behind the other: each by itself would be an allocation for each write.

/// Paths in the order of their requests. Without memory until there is one.
#[derive(Debug, Default)]
pub(super) struct Paths(Option<Box<Line>>);

#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// Bytes at the front that were taken.
    taken: usize,
}

impl Paths {
    /// Bytes at the front that were taken, above which those behind are moved there, unless these are more.
    const TAKEN_BYTES: usize = 4096;
    /// Memory that a connection keeps when nothing of it waits, in bytes.
    const BYTES_KEPT: usize = 128;

    #[inline]
    pub(super) fn push(&mut self, path: &[u8]) {
        let Line { bytes, taken } = &mut **self.0.get_or_insert_default();
        if *taken == bytes.len() {
            bytes.clear();
            *taken = 0;
        } else if *taken > Paths::TAKEN_BYTES.max(bytes.len() / 2) {
            bytes.drain(..*taken);
            *taken = 0;
        }
        bytes.extend_from_slice(path);
    }

    /// Takes the oldest path, which has this many bytes.
    #[inline]
    pub(super) fn pop(&mut self, len: usize) -> &[u8] {
        let Some(line) = &mut self.0 else { return &[] };
        let at = line.taken;
        line.taken += len;
        &line.bytes[at..line.taken]
    }

    /// All were taken: little memory is kept for the next ones.
    #[inline]
    pub(super) fn rest(&mut self) {
        if self.0.as_ref().is_some_and(|line| line.bytes.capacity() > Paths::BYTES_KEPT) {
            self.0 = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: usize) -> Vec<u8> {
        vec![b'x'; number * 37 % 300]
    }

    fn held(paths: &Paths) -> usize {
        paths.0.as_ref().map_or(0, |line| line.bytes.capacity())
    }

    #[test]
    fn paths_come_back_in_their_order_and_those_of_before_take_no_memory() {
        let mut paths = Paths::default();
        assert_eq!(held(&paths), 0);
        (0..20).for_each(|number| paths.push(&path(number)));
        for number in 0..10_000 {
            assert_eq!(paths.pop(path(number).len()), path(number));
            paths.push(&path(number + 20));
        }
        assert!(held(&paths) < 32 << 10, "{} bytes", held(&paths));
        (10_000..10_020).for_each(|number| assert_eq!(paths.pop(path(number).len()), path(number)));
        paths.rest();
        assert_eq!(held(&paths), 0);
    }

    #[test]
    fn one_short_path_after_the_other_needs_one_allocation() {
        let mut paths = Paths::default();
        paths.push(b"/first/of/them");
        let place = paths.pop(14).as_ptr();
        for _ in 0..100 {
            paths.rest();
            paths.push(b"/another");
            let path = paths.pop(8);
            assert_eq!((path, path.as_ptr()), (&b"/another"[..], place));
        }
        paths.clear();
        assert_eq!((held(&paths), paths.pop(0)), (0, &[][..]));
    }
}
