//! A part of a page that a command writes, between two lines that tell where it begins and ends.

use std::fs;
use std::path::Path;

use crate::process::Error;

/// The part between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
pub(crate) struct Section {
    begin: String,
    end: String,
}

impl Section {
    pub(crate) fn new(name: &str) -> Section {
        let [begin, end] = ["begin", "end"].map(|edge| format!("<!-- {name}: {edge} -->"));
        Section { begin, end }
    }

    /// Puts `text` in the place of what stands there.
    pub(crate) fn write(&self, page: &Path, text: &str) -> Result<(), Error> {
        let old = fs::read_to_string(page).map_err(Error::io("read", page))?;
        let new = self.replace(&old, text).ok_or_else(|| {
            let Section { begin, end } = self;
            Error::new(format!("{} has no lines {begin} and {end} to write between", page.display()))
        })?;
        fs::write(page, new).map_err(Error::io("write", page))
    }

    fn replace(&self, page: &str, text: &str) -> Option<String> {
        let Section { begin, end } = self;
        let (before, rest) = page.split_once(begin)?;
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{begin}\n{}\n{end}{after}", text.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::Section;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n";
        let new = "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n";
        let replace = |page, text| Section::new("x").replace(page, text);
        assert_eq!(replace(page, "new\n").as_deref(), Some(new));
        assert_eq!(replace(new, "new").as_deref(), Some(new));
        assert_eq!(replace("no marks", "new"), None);
        assert_eq!(replace("<!-- x: end --><!-- x: begin -->", "new"), None);
    }
}
