//! The proof that a distribution depends on its sources alone: it is made again in another folder, and compared.

use std::fs;
use std::path::Path;
use std::thread;

use super::folders::{Folders, renew};
use super::make::make;
use super::options::DistOptions;
use super::source::DistSource;
use crate::layout::Layout;
use crate::process::{Error, Program};

/// Makes everything in two places side by side, the second of which has a copy of the sources; true if all of it is the same.
pub(super) fn make_twice(
    layout: &Layout,
    source: &DistSource,
    options: &DistOptions,
    first: &Folders,
) -> Result<bool, Error> {
    // The path has another length.
    let base = layout.dist_work("made-again-elsewhere");
    let second = Folders {
        root: base.join("sources"),
        build: base.join("build"),
        work: base.join("files"),
        output: base.join("dist"),
    };
    copy_sources(first, &second)?;
    thread::scope(|scope| {
        let again = scope.spawn(|| make(layout, source, options, &second));
        make(layout, source, options, first)?;
        again.join().expect("the thread does not panic")
    })?;
    compare(first, &second)
}

fn copy_sources(first: &Folders, second: &Folders) -> Result<(), Error> {
    renew(&second.root)?;
    let list = Program::new("git").arg("-C").arg(&first.root);
    let list = list.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    for name in list.output()?.lines() {
        let (from, to) = (first.root.join(name), second.root.join(name));
        // A file that was removed since the last commit is still listed.
        if from.is_file() {
            copy(&from, &to)?;
        }
    }
    Ok(())
}

fn compare(first: &Folders, second: &Folders) -> Result<bool, Error> {
    let mut is_same = true;
    for entry in fs::read_dir(&second.output).map_err(Error::io("list", &second.output))? {
        let again = entry.map_err(Error::io("list", &second.output))?.path();
        let name = again.file_name().unwrap_or_default();
        let before = first.output.join(name);
        let read = |file: &Path| fs::read(file).map_err(Error::io("read", file));
        let same = read(&before)? == read(&again)?;
        is_same &= same;
        println!("{}: {}", name.display(), if same { "the same bytes again" } else { "DIFFERS" });
    }
    Ok(is_same)
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let parent = to.parent().expect("a file is in a directory");
    fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    fs::copy(from, to).map_err(Error::io("copy", from)).map(drop)
}
