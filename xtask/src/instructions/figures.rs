//! Instructions of benchmarks: as they are stored, and how new ones compare with stored ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Percent above the stored number that are no failure. Another C library counts up to this much differently, above all for
/// `malloc` and `memcpy`; so does code that the compiler inlines otherwise because something beside it has changed.
const MARGIN_PERCENT: u64 = 10;
/// Percent by which two counts of the same code differ at most: seeds of hash tables are random. Such a difference is not stored
/// anew, so that a difference of the file shows what has changed.
const NOISE_PERCENT: u64 = 1;

const HEAD: &str = "\
# Instructions of each benchmark, and what compiled it. Written by `cargo xtask instructions --update`; tests/README.md says more.";

/// Instructions by benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    /// As rustc calls itself.
    pub(super) compiler: String,
    pub(super) benchmarks: BTreeMap<String, u64>,
}

impl Figures {
    /// Reads what `Display` writes.
    pub(super) fn parse(text: &str) -> Result<Figures, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let compiler = lines.next().ok_or("the compiler is not there")?.to_owned();
        let benchmark = |line: &str| {
            let (name, instructions) = line.split_once(' ')?;
            Some((name.to_owned(), instructions.trim().parse().ok()?))
        };
        let complaint = |line| format!("{line:?} is no benchmark with its instructions");
        let benchmarks = lines.map(|line| benchmark(line).ok_or_else(|| complaint(line)));
        Ok(Figures { compiler, benchmarks: benchmarks.collect::<Result<_, _>>()? })
    }

    /// With the old figure of what has hardly changed.
    pub(super) fn but_for_noise(mut self, old: &Figures) -> Figures {
        for (name, instructions) in &mut self.benchmarks {
            let old = old.benchmarks.get(name).copied();
            *instructions = old.filter(|old| is_near(*instructions, *old)).unwrap_or(*instructions);
        }
        self
    }
}

fn is_near(instructions: u64, old: u64) -> bool {
    instructions.abs_diff(old) * 100 < old * NOISE_PERCENT
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{HEAD}\n{}", self.compiler)?;
        let mut benchmarks = self.benchmarks.iter();
        benchmarks.try_for_each(|(name, instructions)| writeln!(formatter, "{name:<36}{instructions:>9}"))
    }
}

/// A benchmark that was counted, is stored, or both.
#[derive(Debug)]
pub(super) struct Row<'a> {
    name: &'a str,
    counted: Option<u64>,
    stored: Option<u64>,
}

pub(super) fn compare<'a>(counted: &'a Figures, stored: &'a Figures) -> Vec<Row<'a>> {
    let (counted, stored) = (&counted.benchmarks, &stored.benchmarks);
    let names: BTreeSet<&String> = counted.keys().chain(stored.keys()).collect();
    let row = |name: &'a String| Row {
        name,
        counted: counted.get(name).copied(),
        stored: stored.get(name).copied(),
    };
    names.into_iter().map(row).collect()
}

impl Row<'_> {
    /// The message about a number that is too large or not stored, if it is.
    pub(super) fn complaint(&self) -> Option<String> {
        let name = self.name;
        match (self.counted, self.stored) {
            (Some(counted), Some(stored)) if counted * 100 <= stored * (100 + MARGIN_PERCENT) => None,
            (Some(counted), Some(stored)) => {
                let percent = (counted - stored) as f64 * 100.0 / stored as f64;
                let more = format!("{percent:.1} % more than the {stored} that are stored");
                Some(format!("{name} takes {counted} instructions, {more}; {MARGIN_PERCENT} % are allowed"))
            }
            (Some(_), None) => Some(format!("{name} is not stored")),
            (None, _) => Some(format!("{name} is stored and was not counted")),
        }
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |figure: Option<u64>| figure.map_or("-".to_owned(), |figure| figure.to_string());
        let ratio = self.counted.zip(self.stored).map(|(counted, stored)| counted as f64 / stored as f64);
        let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        let (counted, stored) = (figure(self.counted), figure(self.stored));
        write!(formatter, "{:<36}{counted:>14}{stored:>14}{ratio:>8}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(benchmarks: &[(&str, u64)]) -> Figures {
        let benchmarks = benchmarks.iter().map(|(name, instructions)| ((*name).to_owned(), *instructions));
        Figures { compiler: "rustc 1.95.0".to_owned(), benchmarks: benchmarks.collect() }
    }

    fn complaints(counted: &[(&str, u64)], stored: &[(&str, u64)]) -> Vec<String> {
        compare(&figures(counted), &figures(stored)).iter().filter_map(Row::complaint).collect()
    }

    #[test]
    fn more_than_the_margin_is_a_failure_that_names_the_benchmark() {
        let stored = [("tree::create", 1000), ("tree::list", 1000)];
        assert_eq!(complaints(&[("tree::create", 1100), ("tree::list", 1)], &stored), [""; 0]);
        assert_eq!(
            complaints(&[("tree::create", 1101), ("tree::list", 1000)], &stored),
            [
                "tree::create takes 1101 instructions, 10.1 % more than the 1000 that are stored; 10 % are allowed"
            ]
        );
    }

    #[test]
    fn a_benchmark_that_is_new_or_gone_is_a_failure() {
        let complaints = complaints(&[("tree::new", 7)], &[("tree::gone", 7)]);
        assert_eq!(complaints, ["tree::gone is stored and was not counted", "tree::new is not stored"]);
    }

    #[test]
    fn what_is_stored_is_read_again_and_anything_else_is_refused() {
        let stored = figures(&[("proto::decode::create", 43_807), ("tree::list", 7)]);
        assert_eq!(Figures::parse(&stored.to_string()), Ok(stored));
        for bad in ["", "# only a comment", "rustc 1.95.0\ntree::list", "rustc 1.95.0\ntree::list many"] {
            assert!(Figures::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn noise_is_not_stored() {
        let (new, old) =
            (figures(&[("a", 1009), ("b", 1010), ("c", 5)]), figures(&[("a", 1000), ("b", 1000)]));
        assert_eq!(new.but_for_noise(&old), figures(&[("a", 1000), ("b", 1010), ("c", 5)]));
    }
}
