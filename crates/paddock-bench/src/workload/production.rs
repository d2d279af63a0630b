//! The tree of a production: directories, names and values as those of the ClickHouse Keeper whose figures were published.
//!
//! ClickHouse's pull request 106270 tells of 111.4 million znodes: 63.2 million have data, up to 254 kB; the mean over all is 46.5 bytes. Names have
//! 23.7 bytes in the mean, whole paths 115.1. One directory has 11.75 million children. Here the same shares hold for any number of znodes. What stands
//! in a znode, and where, follows from its number alone. Left out are ephemerals, one of 1,375 there: they would go with the session that fills the server.

use serde::Serialize;

/// The tree of a production, with as many znodes beside its directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Production {
    pub znodes: usize,
}

const ROOT: &str = "/clickhouse";
/// The directory with the most children.
const LARGE: &str =
    "/clickhouse/s3queue/0b1946ac-92ad-4c1e-8f35-7a5d86e3b0c2/processed-files-of-the-ingestion-queue/archive";
/// Share of the znodes that are in the large directory: the first of the second.
const LARGE_SHARE: (usize, usize) = (1055, 10_000);
/// Znodes of one table; their numbers follow each other.
const TABLE_ZNODES: usize = 1000;
/// Znodes of a thousand that have data.
const WITH_DATA: u64 = 568;
/// One znode in this many has a large value.
const LARGE_VALUES: u64 = 100_000;
/// Bytes of the largest value.
const VALUE_BYTES_MAX: u64 = 254_000;

impl Production {
    /// Paths of all directories, parents first.
    pub(super) fn directories(&self) -> impl Iterator<Item = String> {
        let mut large = above(LARGE);
        large.push(LARGE.to_owned());
        let tables = format!("{ROOT}/tables");
        let of_table = |number| {
            let parts = parts_of_table(number);
            // The first two are above all tables, and there by then.
            above(&parts).into_iter().skip(2).chain([parts]).collect::<Vec<_>>()
        };
        let tables_of = (0..self.znodes.div_ceil(TABLE_ZNODES)).flat_map(of_table);
        large.into_iter().chain([tables]).chain(tables_of)
    }

    pub(super) fn path(&self, number: usize) -> String {
        let name = format!("part-{number:0width$}", width = name_bytes(number) - "part-".len());
        if is_in_large(number) {
            return format!("{LARGE}/{name}");
        }
        format!("{}/{name}", parts_of_table(number / TABLE_ZNODES))
    }

    /// Length of the znode's value in bytes.
    pub(super) fn value_bytes(&self, number: usize) -> usize {
        let chance = mixed(number);
        let bytes = if (number as u64).is_multiple_of(LARGE_VALUES) {
            mixed(number + 1) % VALUE_BYTES_MAX + 1
        } else if chance % 1000 < WITH_DATA {
            40 + mixed(number + 1) % 80
        } else {
            0
        };
        bytes as usize
    }

    pub(super) fn content_bytes(&self) -> u64 {
        (0..self.znodes).map(|number| (name_bytes(number) + self.value_bytes(number)) as u64).sum()
    }
}

/// Paths of the directories above one, from the root down.
fn above(path: &str) -> Vec<String> {
    let ends = path.char_indices().skip(1).filter(|(_, char)| *char == '/').map(|(end, _)| end);
    ends.map(|end| path[..end].to_owned()).collect()
}

fn is_in_large(number: usize) -> bool {
    let (share, of) = LARGE_SHARE;
    number % of < share
}

fn name_bytes(number: usize) -> usize {
    20 + number % 8 + usize::from(number.is_multiple_of(5))
}

fn parts_of_table(number: usize) -> String {
    let id = mixed(number);
    let uuid =
        format!("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", id as u32, id >> 48, id & 0xFFF, id >> 52, number);
    format!("{ROOT}/tables/{uuid}/01/replicas/host-{:04}.example/parts", number % 10_000)
}

/// A number that looks like chance and is the same for the same znode.
fn mixed(number: usize) -> u64 {
    fastrand::Rng::with_seed(number as u64).u64(..)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn shares_and_means_are_those_that_were_published() {
        let production = Production { znodes: 300_000 };
        let all = || 0..production.znodes;
        let mean =
            |of: &dyn Fn(usize) -> usize| all().map(of).sum::<usize>() as f64 / production.znodes as f64;
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 0.02, "{found} instead of {expected}");
        };
        near(mean(&|number| production.path(number).rsplit('/').next().map_or(0, str::len)), 23.7);
        near(mean(&|number| production.path(number).len()), 115.1);
        // One large value is as much as those of thousands of znodes, so their mean shows in millions only.
        let (small, large): (Vec<usize>, Vec<usize>) =
            all().map(|number| production.value_bytes(number)).partition(|bytes| *bytes < 1000);
        let large_mean = VALUE_BYTES_MAX as f64 / 2.0 / LARGE_VALUES as f64;
        near(small.iter().sum::<usize>() as f64 / small.len() as f64 + large_mean, 46.5);
        assert_eq!(large.len(), 3);
        near(mean(&|number| usize::from(production.value_bytes(number) > 0)), 63.2 / 111.4);
        near(mean(&|number| usize::from(is_in_large(number))), 11.75 / 111.4);
        let content = mean(&|number| name_bytes(number) + production.value_bytes(number));
        near(production.content_bytes() as f64 / production.znodes as f64, content);
        assert!(all().all(|number| production.value_bytes(number) <= VALUE_BYTES_MAX as usize));
    }

    #[test]
    fn every_znode_has_a_name_of_its_own_in_a_directory_that_comes_before_it() {
        let production = Production { znodes: 12_345 };
        let mut made = HashSet::from([String::new()]);
        let paths =
            production.directories().chain((0..production.znodes).map(|number| production.path(number)));
        for path in paths {
            let parent = &path[..path.rfind('/').expect("a path begins with a slash")];
            assert!(made.contains(parent), "{path} has no parent");
            assert!(made.insert(path.clone()), "{path} is made twice");
        }
    }
}
