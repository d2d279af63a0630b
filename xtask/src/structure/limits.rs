//! Counts that may not grow: each has a line `at most COUNT THING` in the list of what is known.
//!
//! A count that has fallen is told of and is no error: several changes under way at the same time may each lower it.

use std::collections::BTreeMap;

use super::{language, names};

/// Files that may define a type of one name without being counted: its crate, its tests, a tool.
const NAMES_MAX: usize = 3;

/// Places of each thing that is counted.
#[derive(Default)]
pub(super) struct LanguageCounts {
    words: BTreeMap<String, Vec<String>>,
    names: BTreeMap<String, Vec<String>>,
}

impl LanguageCounts {
    /// Counts what stands in a file.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        for finding in language::findings(text) {
            let place = format!("{path}:{}: {}", finding.line, finding.text);
            self.words.entry(finding.kind.name().to_owned()).or_default().push(place);
        }
        for name in names::defined(text) {
            self.names.entry(format!("types {name}")).or_default().push(path.to_owned());
        }
    }

    /// A complaint for each count above its limit, with the places where it was found.
    pub(super) fn excesses(&self, known: &str) -> Vec<String> {
        let limits = limits(known);
        let above = |(thing, places): &(&String, &Vec<String>)| {
            places.len() > limits.get(thing.as_str()).copied().unwrap_or_else(|| allowed(thing))
        };
        let things = self.words.iter().chain(&self.names).filter(above);
        things
            .map(|(thing, places)| format!("at most {} {thing}:\n  {}", places.len(), places.join("\n  ")))
            .collect()
    }

    /// Lines that may replace those of the list, where counts have fallen.
    pub(super) fn savings(&self, known: &str) -> Vec<String> {
        let count = |thing: &str| self.words.get(thing).or_else(|| self.names.get(thing)).map_or(0, Vec::len);
        let mut savings = Vec::new();
        for (thing, limit) in limits(known) {
            match count(thing) {
                count if count >= limit => {}
                count if count <= allowed(thing) => savings.push(format!("nothing of {thing}")),
                count => savings.push(format!("at most {count} {thing}")),
            }
        }
        savings
    }
}

/// A thing's limit if the list does not name it.
fn allowed(thing: &str) -> usize {
    if thing.starts_with("types ") { NAMES_MAX } else { 0 }
}

fn limits(known: &str) -> BTreeMap<&str, usize> {
    lines(known).filter_map(parse).map(|(limit, thing)| (thing, limit)).collect()
}

/// Lines of the list that are no comments.
pub(super) fn lines(known: &str) -> impl Iterator<Item = &str> {
    known.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Limit and thing of a line such as `at most 12 persons`.
pub(super) fn parse(line: &str) -> Option<(usize, &str)> {
    let (limit, thing) = line.strip_prefix("at most ")?.split_once(' ')?;
    Some((limit.parse().ok()?, thing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> LanguageCounts {
        let mut counts = LanguageCounts::default();
        for file in ["a.rs", "b.rs", "c.rs", "d.rs"] {
            counts.add(file, "// nobody\nstruct Step;\n");
        }
        counts
    }

    #[test]
    fn a_count_above_its_limit_is_told_with_its_places() {
        let complaints = counted().excesses("# at most 9 persons\nat most 3 persons\n");
        assert_eq!(
            complaints,
            [
                "at most 4 persons:\n  a.rs:1: // nobody\n  b.rs:1: // nobody\n  c.rs:1: // nobody\n  d.rs:1: // nobody",
                "at most 4 types Step:\n  a.rs\n  b.rs\n  c.rs\n  d.rs",
            ]
        );
        assert!(counted().excesses("at most 4 persons\nat most 4 types Step\n").is_empty());
    }

    #[test]
    fn three_types_of_one_name_need_no_line() {
        let mut counts = LanguageCounts::default();
        ["a.rs", "b.rs", "c.rs"].iter().for_each(|file| counts.add(file, "enum Step {}\n"));
        assert!(counts.excesses("").is_empty());
        assert_eq!(counts.savings("at most 4 types Step\n"), ["nothing of types Step"]);
    }

    #[test]
    fn a_count_that_has_fallen_is_told() {
        let known = "at most 5 persons\nat most 4 types Step\nat most 2 numbers\n";
        assert_eq!(counted().savings(known), ["nothing of numbers", "at most 4 persons"]);
        assert!(counted().savings("at most 4 persons\nat most 4 types Step\n").is_empty());
    }
}
