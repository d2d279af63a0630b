//! Functions that the fuzzers run, from any bytes to nothing, that panic when a promise is broken. The fuzzers
//! themselves are in `fuzz/` at the root of the repository; the tests replay what they have found.

mod log;
mod snapshot;

pub use log::log_recovery;
pub use snapshot::snapshot_file;

/// Takes choices from the bytes of a fuzzer. When they are used up every choice is 0.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u64 {
        self.bytes(3).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn are_left(&self) -> bool {
        !self.0.is_empty()
    }
}
