//! `cargo xtask site`: the pages as a site with search, by mdBook.
//!
//! Pages lie in the book as in the repository, so that their links lead somewhere; what they link to comes along, page or file.
//! A page that docs/SUMMARY.md does not name, such as a decision, stands behind those that it does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::install;
use crate::layout::Layout;
use crate::process::{Error, Program};
use crate::structure::{links, prose};

pub(crate) const HELP: &str = "\
Installs mdBook below the target directory, compiled from its source, which takes some minutes the first time; then writes
site/book/index.html there. A link that leads to no file of the site is an error.";

const SUMMARY: &str = "docs/SUMMARY.md";

pub(crate) fn run(layout: &Layout) -> Result<bool, Error> {
    let mdbook = install::mdbook(layout)?;
    let site = layout.site();
    if site.exists() {
        fs::remove_dir_all(&site).map_err(Error::io("remove", &site))?;
    }
    let files = reached(layout, &[SUMMARY.into(), "LICENSE".into()])?;
    for file in files.iter().filter(|file| file.as_path() != Path::new(SUMMARY)) {
        copy(&layout.source(file), &site.join("src").join(file))?;
    }
    let contents = contents(&read(&layout.source(SUMMARY))?, &files, &|page| title(&layout.source(page)))?;
    let summary = site.join("src/SUMMARY.md");
    fs::write(&summary, contents).map_err(Error::io("write", &summary))?;
    copy(&layout.source("book.toml"), &site.join("book.toml"))?;
    Program::new(mdbook).arg("build").current_dir(&site).log_to(&layout.log("site")).run()?;
    let index = site.join("book/index.html");
    let mut astray = Vec::new();
    look_at_links(&site.join("book"), &mut astray)?;
    astray.iter().for_each(|complaint| println!("{complaint}"));
    println!("{} files in {}", files.len(), index.display());
    Ok(astray.is_empty() && index.is_file())
}

/// Complaints about links of a directory's pages that lead to no file of the site.
fn look_at_links(directory: &Path, astray: &mut Vec<String>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let file = entry.map_err(Error::io("list", directory))?.path();
        if file.is_dir() {
            look_at_links(&file, astray)?;
        } else if file.extension().is_some_and(|extension| extension == "html") && !is_of_mdbook(&file) {
            let text = read(&file)?;
            let lost = targets(&text).filter(|target| !directory.join(target).exists());
            astray.extend(lost.map(|target| format!("{}: nothing at {target}", file.display())));
        }
    }
    Ok(())
}

/// Pages that mdBook puts together of others, or that stand for any place.
fn is_of_mdbook(file: &Path) -> bool {
    ["print.html", "404.html", "toc.html"].iter().any(|name| file.ends_with(name))
}

/// Places in the site to which a page of it leads.
fn targets(html: &str) -> impl Iterator<Item = &str> {
    let targets = html.split("href=\"").skip(1).filter_map(|rest| rest.split(['"', '#', '?']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// All files to which pages lead from some of them on, these included, by their places in the repository.
fn reached(layout: &Layout, from: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    let (mut found, mut open) = (BTreeSet::new(), from.to_vec());
    while let Some(file) = open.pop() {
        let source = layout.source(&file);
        if !source.is_file() || !found.insert(file.clone()) || !is_page(&file) {
            continue;
        }
        let text = read(&source)?;
        let directory = file.parent().unwrap_or(Path::new(""));
        for (_, line) in prose(&text) {
            let targets = links(line).map(|link| link.split_once('#').map_or(link, |(path, _)| path));
            open.extend(targets.filter(|path| !path.is_empty()).map(|path| plain(&directory.join(path))));
        }
    }
    Ok(found)
}

/// The table of contents as mdBook takes it: links from the top of the repository, and behind them all pages that it does not name.
fn contents(
    summary: &str,
    files: &BTreeSet<PathBuf>,
    title: &dyn Fn(&Path) -> Result<String, Error>,
) -> Result<String, Error> {
    let mut named = BTreeSet::new();
    let mut lines: Vec<String> = Vec::new();
    for line in summary.lines() {
        let link = links(line).next().map(str::to_owned);
        lines.push(match link {
            Some(link) => {
                let place = plain(&Path::new("docs").join(&link));
                let line = line.replace(&format!("]({link})"), &format!("]({})", place.display()));
                named.insert(place);
                line
            }
            None => line.to_owned(),
        });
    }
    lines.extend(["".into(), "# Further pages".into(), "".into()]);
    let is_left =
        |page: &&PathBuf| is_page(page) && !named.contains(*page) && page.as_path() != Path::new(SUMMARY);
    for page in files.iter().filter(is_left) {
        lines.push(format!("- [{}]({})", title(page)?, page.display()));
    }
    Ok(lines.join("\n") + "\n")
}

/// The first heading of a page, without what a link's text cannot hold.
fn title(page: &Path) -> Result<String, Error> {
    let text = read(page)?;
    let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("page");
    Ok(heading.replace(['[', ']', '`'], ""))
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

/// A path without `..` and `.`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            _ => plain.push(part),
        }
    }
    plain
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let directory = to.parent().expect("a file is in a directory");
    fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    fs::copy(from, to).map_err(Error::io("copy", from)).map(drop)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_nobody_lists_stand_behind_those_that_are() {
        let files = ["README.md", "docs/a.md", "docs/decisions/b.md", "docs/c.yml"].map(PathBuf::from);
        let summary = "[P](../README.md)\n\n- [A](a.md)";
        let found = contents(summary, &files.into(), &|_| Ok("B".into())).unwrap();
        assert_eq!(
            found,
            "[P](README.md)\n\n- [A](docs/a.md)\n\n# Further pages\n\n- [B](docs/decisions/b.md)\n"
        );
    }

    #[test]
    fn links_out_of_the_site_are_not_looked_at() {
        let html = r##"<a href="a.html#b"><a href="#c"><a href="https://e/f"><link href="g.css">"##;
        assert_eq!(targets(html).collect::<Vec<_>>(), ["a.html", "g.css"]);
    }

    #[test]
    fn a_path_is_one_way_to_a_file() {
        assert_eq!(plain(Path::new("docs/decisions/../../tests/README.md")), Path::new("tests/README.md"));
    }
}
