//! The dump that is loaded: a file, or standard input, which has to be read more than once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::failure::LoadFailure;
use super::target::parent;
use crate::diff::seen::walk_order;
use crate::dump::line::{DumpHead, DumpLine};

pub(super) struct DumpInput {
    place: String,
    content: DumpContent,
}

enum DumpContent {
    File(PathBuf),
    Memory(Vec<u8>),
}

impl DumpInput {
    pub(super) fn open(from: &Path) -> Result<DumpInput, LoadFailure> {
        if from.as_os_str() != "-" {
            let place = from.display().to_string();
            return Ok(DumpInput { place, content: DumpContent::File(from.to_owned()) });
        }
        let place = "standard input".to_owned();
        let mut bytes = Vec::new();
        match io::stdin().lock().read_to_end(&mut bytes) {
            Ok(_) => Ok(DumpInput { place, content: DumpContent::Memory(bytes) }),
            Err(source) => Err(LoadFailure::Read { place, source }),
        }
    }

    pub(super) fn head(&self) -> Result<DumpHead, LoadFailure> {
        let mut first = String::new();
        self.reader()?.read_line(&mut first).map_err(|source| self.unreadable(source))?;
        DumpHead::parse(first.trim_end()).map_err(|what| self.bad_line(1, what))
    }

    /// All znodes with the numbers of their lines. A line that cannot be used ends it with an error.
    pub(super) fn lines(&self) -> Result<DumpLines<'_>, LoadFailure> {
        self.head()?;
        Ok(DumpLines { input: self, lines: self.reader()?.lines(), number: 0, order: LineOrder::default() })
    }

    fn reader(&self) -> Result<Box<dyn BufRead + '_>, LoadFailure> {
        Ok(match &self.content {
            DumpContent::File(path) => {
                Box::new(BufReader::new(File::open(path).map_err(|source| self.unreadable(source))?))
            }
            DumpContent::Memory(bytes) => Box::new(bytes.as_slice()),
        })
    }

    fn unreadable(&self, source: io::Error) -> LoadFailure {
        LoadFailure::Read { place: self.place.clone(), source }
    }

    fn bad_line(&self, line: u64, what: String) -> LoadFailure {
        LoadFailure::BadLine { line, place: self.place.clone(), what }
    }
}

pub(super) struct DumpLines<'a> {
    input: &'a DumpInput,
    lines: io::Lines<Box<dyn BufRead + 'a>>,
    number: u64,
    order: LineOrder,
}

impl Iterator for DumpLines<'_> {
    type Item = Result<(u64, DumpLine), LoadFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(source) => return Some(Err(self.input.unreadable(source))),
            };
            self.number += 1;
            // The first line is the head, and an editor may leave empty ones.
            if self.number == 1 || line.trim().is_empty() {
                continue;
            }
            let parsed = DumpLine::parse(&line).and_then(|line| {
                self.order.check(&line.path)?;
                Ok((self.number, line))
            });
            return Some(parsed.map_err(|what| self.input.bad_line(self.number, what)));
        }
    }
}

/// Lines are sorted, and each znode stands behind its parent.
#[derive(Default)]
struct LineOrder {
    /// The last path with those above it, the root first.
    above: Vec<String>,
}

impl LineOrder {
    fn check(&mut self, path: &str) -> Result<(), String> {
        match self.above.last() {
            None if path != "/" => return Err(format!("{path} comes before the line of /")),
            Some(last) if *last == path => return Err(format!("{path} is there twice")),
            Some(last) if walk_order(last, path).is_gt() => {
                return Err(format!(
                    "{path} stands behind {last}: sort the lines, a parent before its children"
                ));
            }
            _ => {}
        }
        if path != "/" {
            let parent = parent(path).expect("it is not the root");
            while self.above.last().is_some_and(|above| above != parent) {
                self.above.pop();
            }
            if self.above.is_empty() {
                self.above.push(path.to_owned());
                return Err(format!("there is no line of {parent}, which {path} is in"));
            }
        }
        self.above.push(path.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, String)>, String> {
        let input =
            DumpInput { place: "dump".to_owned(), content: DumpContent::Memory(text.as_bytes().to_vec()) };
        let lines = input.lines().map_err(|error| error.to_string())?;
        lines
            .map(|line| line.map(|(number, line)| (number, line.path)).map_err(|error| error.to_string()))
            .collect()
    }

    fn dump(paths: &[&str]) -> String {
        let lines: String = paths.iter().map(|path| format!("{{\"path\":\"{path}\"}}\n")).collect();
        format!("{{\"paddock_dump\":1,\"path\":\"/a\"}}\n{lines}")
    }

    #[test]
    fn lines_are_read_with_their_numbers() {
        let text = dump(&["/", "/a", "/a/x", "/a-b"]) + "\n{\"path\":\"/b\"}";
        let read = read(&text).unwrap();
        let expected = [(2, "/"), (3, "/a"), (4, "/a/x"), (5, "/a-b"), (7, "/b")];
        assert_eq!(read, expected.map(|(number, path)| (number, path.to_owned())));
    }

    #[test]
    fn a_dump_that_is_not_whole_is_refused_with_the_line() {
        for (paths, told) in [
            (&["/a"][..], "line 2 of dump: /a comes before the line of /"),
            (&["/", "/b", "/a"], "line 4 of dump: /a stands behind /b"),
            (&["/", "/a", "/a"], "line 4 of dump: /a is there twice"),
            (&["/", "/a/x"], "line 3 of dump: there is no line of /a, which /a/x is in"),
            (&["/", "/a", "/a/x", "/b/x"], "line 5 of dump: there is no line of /b"),
            (&["/", "x"], "line 3 of dump: \"x\" is no path"),
        ] {
            let error = read(&dump(paths)).expect_err(told);
            assert!(error.starts_with(told), "{error}");
        }
        assert!(read("").unwrap_err().starts_with("line 1 of dump: this is no dump"));
        assert!(read("{}\n").unwrap_err().starts_with("line 1 of dump: this is no dump"));
    }
}
