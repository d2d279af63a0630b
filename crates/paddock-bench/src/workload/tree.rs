//! Many znodes that are alike: how they are named, and what stands in them.

use serde::{Deserialize, Serialize};

/// Znodes of one size, spread evenly over parents that stand below the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Znodes {
    pub znodes: usize,
    pub value_bytes: usize,
    pub name_bytes: usize,
    /// They are there before the first look.
    pub parents: usize,
}

/// The kind of data in znodes. It matters where a server compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// One byte again and again.
    Same,
    /// Data as services keep it: a few fields with hosts and numbers, different in each znode.
    Text,
    /// Data that cannot be compressed.
    Random,
}

impl Znodes {
    pub(crate) fn parent(&self, number: usize) -> String {
        format!("/memory-{}", number % self.parents)
    }

    pub(crate) fn path(&self, number: usize) -> String {
        format!("{}/{number:0width$}", self.parent(number), width = self.name_bytes)
    }
}

impl Values {
    /// The value that the znode of this number begins with, the same whenever it is asked for.
    pub(crate) fn of(self, number: usize, bytes: usize) -> Vec<u8> {
        let mut chance = fastrand::Rng::with_seed(number as u64);
        match self {
            Values::Same => vec![b'x'; bytes],
            Values::Text => text(&mut chance, bytes),
            Values::Random => std::iter::repeat_with(|| chance.u8(..)).take(bytes).collect(),
        }
    }
}

fn text(chance: &mut fastrand::Rng, bytes: usize) -> Vec<u8> {
    let mut text = String::new();
    while text.len() < bytes {
        text += &format!(
            "host: node-{}.example.org\nport: {}\nblock: {}\nchecksum: {:016x}\nrows: {}\n",
            chance.u32(0..1000),
            chance.u16(1024..),
            chance.u32(0..1_000_000),
            chance.u64(..),
            chance.u32(0..100_000),
        );
    }
    text.truncate(bytes);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Values, Znodes};

    #[test]
    fn names_have_the_length_that_was_asked_for() {
        let znodes = Znodes { znodes: 1000, value_bytes: 100, name_bytes: 13, parents: 10 };
        assert_eq!(znodes.path(123), "/memory-3/0000000000123");
    }

    #[test]
    fn values_have_the_length_that_was_asked_for() {
        for values in [Values::Same, Values::Text, Values::Random] {
            for bytes in [0, 1, 100, 1000] {
                assert_eq!(values.of(7, bytes).len(), bytes);
                assert_eq!(values.of(7, bytes), values.of(7, bytes));
            }
        }
        assert_ne!(Values::Text.of(1, 100), Values::Text.of(2, 100));
        assert_ne!(Values::Random.of(1, 100), Values::Random.of(2, 100));
    }
}
