//! `cargo xtask breaks`: proof that the simulator would notice.
//!
//! Each file in `crates/paddock-sim/breaks` is a mistake that a developer could make, as a patch. It is put into a copy of the
//! sources, and the simulator is built from that and runs seeds until a checker notices. The product's own sources know
//! nothing of it. A mistake that no checker notices fails the task, and so does one that another checker notices than it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::process::{Error, Program};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask breaks                                 every mistake; prints the table of crates/paddock-sim/README.md
  cargo xtask breaks --only vote-forgotten           one of them
  cargo xtask breaks --check                         only whether the patches still fit

A patch begins with what is wrong, the checkers that may notice it, and within how many seeds one of them does; a line more says
that these are runs about one thing, which one in forty-two of all runs is about, one how many Raft groups there are, one on how many of five members each
of these is, and one that they are runs of front ends on etcd, or of a mirror:
  what: a follower promises what is not on its disk yet
  found by: committed entries, recovery
  within: 100
  about: elections
  engine: etcd";

/// Worlds of the simulator beside that of ensembles, by their options.
const ENGINES: [&str; 2] = ["etcd", "mirror"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// One mistake, by the name of its file
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// See whether the patches fit, and build nothing
    #[arg(long, conflicts_with = "only")]
    check: bool,
}

/// A mistake.
#[derive(Debug)]
struct Break {
    name: String,
    patch: PathBuf,
    what: String,
    checkers: Vec<String>,
    within: u64,
    /// The theme of the runs that notice it (`--about`), if it takes such runs.
    about: Option<String>,
    /// The number of Raft groups of the runs (`--groups`), if it is not thrown.
    groups: Option<String>,
    /// The number of replicas of each group, on five members (`--replicas`), if not all members have it.
    replicas: Option<String>,
    /// The mistake is one of front ends on etcd (`etcd`) or of a mirror (`mirror`).
    engine: Option<String>,
}

impl Break {
    fn read(patch: PathBuf) -> Result<Break, Error> {
        let text = fs::read_to_string(&patch).map_err(Error::io("read", &patch))?;
        let find = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        let head = |key: &str| {
            let complaint = || Error::new(format!("{} has no line \"{key}: ...\"", patch.display()));
            find(key).ok_or_else(complaint)
        };
        let within = head("within")?;
        let engine = find("engine").map(str::to_owned);
        if let Some(other) = engine.as_deref().filter(|engine| !ENGINES.contains(engine)) {
            return Err(Error::new(format!("{}: there is no engine {other:?}", patch.display())));
        }
        let no_number = |_| Error::new(format!("{}: {within:?} is no number of seeds", patch.display()));
        Ok(Break {
            name: patch.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            what: head("what")?.to_owned(),
            checkers: head("found by")?.split(", ").map(str::to_owned).collect(),
            within: within.parse().map_err(no_number)?,
            about: find("about").map(str::to_owned),
            groups: find("groups").map(str::to_owned),
            replicas: find("replicas").map(str::to_owned),
            engine,
            patch,
        })
    }
}

/// Runs the simulator with each mistake; true if all were noticed.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    if options.check {
        println!("{} patches fit", check(layout)?);
        return Ok(true);
    }
    let breaks = all(layout, options.only.as_deref())?;
    let copy = Copy::of(layout)?;
    println!("| mistake | noticed by | seeds until then |\n|---|---|---|");
    let mut all_found = true;
    for planted in &breaks {
        copy.renew()?;
        copy.plant(planted)?;
        let found = copy.hunt(planted)?;
        all_found &= found.is_right(planted);
        let about = planted.about.as_ref().map(|about| format!(" about {about}")).unwrap_or_default();
        let groups =
            planted.groups.as_ref().map(|groups| format!(" with {groups} groups")).unwrap_or_default();
        let replicas = planted.replicas.as_ref().map(|replicas| format!(" of {replicas} replicas"));
        let about = format!("{about}{groups}{}", replicas.unwrap_or_default());
        let about = planted.engine.as_ref().map(|engine| format!(" of {engine}")).unwrap_or(about);
        println!("| {} (`{}`) | {} | {}{about} |", planted.what, planted.name, found.checker, found.seeds);
    }
    copy.renew()?;
    Ok(all_found)
}

/// Number of patches, all of which fit the sources; an error if one does not.
pub(crate) fn check(layout: &Layout) -> Result<usize, Error> {
    let breaks = all(layout, None)?;
    let copy = Copy::of(layout)?;
    for planted in &breaks {
        copy.renew()?;
        copy.plant(planted)?;
    }
    copy.renew()?;
    Ok(breaks.len())
}

fn all(layout: &Layout, only: Option<&str>) -> Result<Vec<Break>, Error> {
    let directory = layout.source("crates/paddock-sim/breaks");
    let entries = fs::read_dir(&directory).map_err(Error::io("list", &directory))?;
    let mut patches: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.sort();
    let breaks: Vec<Break> = patches.into_iter().map(Break::read).collect::<Result<_, _>>()?;
    let Some(only) = only else { return Ok(breaks) };
    let names: Vec<String> = breaks.iter().map(|planted| planted.name.clone()).collect();
    let found: Vec<Break> = breaks.into_iter().filter(|planted| planted.name == only).collect();
    if found.is_empty() {
        return Err(Error::new(format!("there is no mistake {only}; there are {}", names.join(", "))));
    }
    Ok(found)
}

/// The simulator's account of a mistake.
#[derive(Debug)]
struct NoticedMistake {
    /// Or that no checker did.
    checker: String,
    seeds: u64,
}

impl NoticedMistake {
    /// Out of `seed N, step N, commit ID: CHECKER: WHAT`.
    fn parse(line: &str) -> Option<NoticedMistake> {
        let seed: u64 = line.strip_prefix("seed ")?.split(',').next()?.parse().ok()?;
        Some(NoticedMistake { checker: line.split(": ").nth(1)?.to_owned(), seeds: seed + 1 })
    }

    fn is_right(&self, planted: &Break) -> bool {
        planted.checkers.contains(&self.checker)
    }
}

/// Files and directories that a build of the simulator needs, below the root of the repository.
const SOURCES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "crates", "tests", "xtask"];

/// The files at a path below `root`, or below it.
fn list(root: &Path, path: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    let place = root.join(path);
    if !place.is_dir() {
        files.insert(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(&place).map_err(Error::io("list", &place))? {
        let name = entry.map_err(Error::io("list", &place))?.file_name();
        list(root, &path.join(name), files)?;
    }
    Ok(())
}

/// The sources, where mistakes may be made.
struct Copy<'a> {
    layout: &'a Layout,
    root: PathBuf,
    files: BTreeSet<PathBuf>,
}

impl<'a> Copy<'a> {
    fn of(layout: &'a Layout) -> Result<Copy<'a>, Error> {
        let mut files = BTreeSet::new();
        for part in SOURCES {
            list(&layout.source(""), Path::new(part), &mut files)?;
        }
        let copy = Copy { layout, root: layout.breaks("sources"), files };
        copy.forget_old_files()?;
        Ok(copy)
    }

    /// Removes the files that the sources do not have any more.
    fn forget_old_files(&self) -> Result<(), Error> {
        let mut old = BTreeSet::new();
        for part in SOURCES.map(Path::new).into_iter().filter(|part| self.root.join(part).exists()) {
            list(&self.root, part, &mut old)?;
        }
        for file in old.difference(&self.files).map(|file| self.root.join(file)) {
            fs::remove_file(&file).map_err(Error::io("remove", &file))?;
        }
        Ok(())
    }

    /// Takes mistakes back. What is as it should be is not touched, so that it is not built again.
    fn renew(&self) -> Result<(), Error> {
        for file in &self.files {
            let (from, to) = (self.layout.source(file), self.root.join(file));
            let right = fs::read(&from).map_err(Error::io("read", &from))?;
            if fs::read(&to).is_ok_and(|there| there == right) {
                continue;
            }
            let directory = to.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
            fs::write(&to, right).map_err(Error::io("write", &to))?;
        }
        Ok(())
    }

    fn plant(&self, planted: &Break) -> Result<(), Error> {
        // The copy lies within a repository whose files it must not be taken for.
        let git = Program::new("git")
            .current_dir(&self.root)
            .env("GIT_CEILING_DIRECTORIES", self.layout.breaks(""));
        git.args(["apply", "--unidiff-zero"]).arg(&planted.patch).run()
    }

    fn hunt(&self, planted: &Break) -> Result<NoticedMistake, Error> {
        let log = self.layout.breaks(&format!("{}.log", planted.name));
        let _ = fs::remove_file(&log);
        let seeds = format!("0..{}", planted.within);
        let target = self.layout.breaks("target");
        // One mistake differs from the next in a few lines.
        let cargo = self.layout.cargo().current_dir(&self.root).env("CARGO_INCREMENTAL", "1");
        let cargo = cargo.env("CARGO_TARGET_DIR", target);
        let cargo = cargo.args(["run", "--quiet", "--profile", "sim", "--package", "paddock-sim", "--"]);
        let about = planted.about.iter().flat_map(|about| ["--about", about.as_str()]);
        let about = about.chain(planted.groups.iter().flat_map(|groups| ["--groups", groups.as_str()]));
        let about = about.chain(
            planted.replicas.iter().flat_map(|replicas| ["--members", "5", "--replicas", replicas.as_str()]),
        );
        let engine = planted.engine.as_ref().map(|engine| format!("--{engine}"));
        cargo.args(["--seeds", &seeds, "--until-failure"]).args(about).args(engine).log_to(&log).status()?;
        let told = fs::read_to_string(&log).map_err(Error::io("read", &log))?;
        // Seeds that began before the first one failed may have failed, too.
        if let Some(found) = told.lines().filter_map(NoticedMistake::parse).min_by_key(|found| found.seeds) {
            return Ok(found);
        }
        if !told.contains(" seeds passed, 0 failed") {
            let log = log.display();
            return Err(Error::new(format!("{} cannot be built or run: {log}", planted.name)));
        }
        Ok(NoticedMistake { checker: "nobody".to_owned(), seeds: planted.within })
    }
}
