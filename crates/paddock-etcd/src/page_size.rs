//! Number of keys to ask for in a page of a range. etcd bounds a page only by that, and an answer has to come in time.

/// Keys that the next page may have, by the bytes of those before it.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    keys: i64,
}

impl Default for PageSize {
    fn default() -> PageSize {
        PageSize { keys: PageSize::KEYS_FIRST }
    }
}

impl PageSize {
    const KEYS_FIRST: i64 = 16;
    const KEYS_MAX: i64 = 512;
    /// Bytes that a page should have.
    const BYTES: usize = 4 << 20;
    /// Growth from one page to the next, at most.
    const GROWTH: i64 = 4;

    /// Keys to ask for.
    pub fn keys(self) -> i64 {
        self.keys
    }

    /// Notes that a page of `keys` keys and `bytes` bytes has come.
    pub fn came(&mut self, keys: usize, bytes: usize) {
        let bytes_of_one = (bytes / keys.max(1)).max(1);
        let fitting = (PageSize::BYTES / bytes_of_one).try_into().unwrap_or(PageSize::KEYS_MAX);
        self.keys = (self.keys * PageSize::GROWTH).min(fitting).clamp(1, PageSize::KEYS_MAX);
    }

    /// Notes that a page has not come, perhaps because it is too large for the time that it may take.
    pub fn was_lost(&mut self) {
        self.keys = (self.keys / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_while_values_are_small_and_shrink_when_they_are_large_or_lost() {
        let mut size = PageSize::default();
        let mut told = vec![size.keys()];
        for _ in 0..4 {
            size.came(size.keys() as usize, 100 * size.keys() as usize);
            told.push(size.keys());
        }
        assert_eq!(told, [16, 64, 256, 512, 512]);
        // Values of 1 MiB: four make a page.
        size.came(512, 512 << 20);
        assert_eq!(size.keys(), 4);
        (0..4).for_each(|_| size.was_lost());
        assert_eq!(size.keys(), 1);
        size.came(1, 16 << 20);
        assert_eq!(size.keys(), 1);
        size.came(0, 0);
        assert_eq!(size.keys(), 4);
    }
}
