//! Znodes that a server is filled with: many that are alike, or those of a production; their names, and their values.

use serde::{Deserialize, Serialize};

use super::production::Production;

/// Znodes that a server is filled with, known by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filling {
    Alike { znodes: Znodes, values: Values },
    Production(Production),
}

impl Filling {
    /// Number of znodes, without the directories that they stand in.
    pub(crate) fn count(&self) -> usize {
        match self {
            Filling::Alike { znodes, .. } => znodes.znodes,
            Filling::Production(production) => production.znodes,
        }
    }

    /// Paths of all directories, parents first.
    pub(crate) fn directories(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Filling::Alike { znodes, .. } => {
                Box::new((0..znodes.parents).map(|number| znodes.parent(number)))
            }
            Filling::Production(production) => Box::new(production.directories()),
        }
    }

    pub(crate) fn path(&self, number: usize) -> String {
        match self {
            Filling::Alike { znodes, .. } => znodes.path(number),
            Filling::Production(production) => production.path(number),
        }
    }

    /// A value that the znode of this number could have. It begins with the one for which `version` is that number, too, the same whenever it is asked for.
    pub(crate) fn value(&self, number: usize, version: usize) -> Vec<u8> {
        match self {
            Filling::Alike { znodes, values } => values.of(version, znodes.value_bytes),
            Filling::Production(production) => Values::Text.of(version, production.value_bytes(number)),
        }
    }

    /// Bytes of the names and values of all znodes, without their directories.
    pub(crate) fn content_bytes(&self) -> u64 {
        match self {
            Filling::Alike { znodes, .. } => {
                (znodes.znodes * (znodes.name_bytes + znodes.value_bytes)) as u64
            }
            Filling::Production(production) => production.content_bytes(),
        }
    }
}

/// Znodes of one size, spread evenly over parents that stand below the root, or another znode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Znodes {
    pub znodes: usize,
    pub value_bytes: usize,
    pub name_bytes: usize,
    /// They are there before the first look.
    pub parents: usize,
    /// Path of the znode that the parents stand below; empty for the root.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub below: String,
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
        format!("{}/memory-{}", self.below, number % self.parents)
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
        let znodes =
            Znodes { znodes: 1000, value_bytes: 100, name_bytes: 13, parents: 10, below: String::new() };
        assert_eq!(znodes.path(123), "/memory-3/0000000000123");
        let elsewhere = Znodes { below: "/a".to_owned(), ..znodes };
        assert_eq!(elsewhere.path(123), "/a/memory-3/0000000000123");
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
