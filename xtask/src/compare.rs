//! `cargo xtask compare`: a suite of Paddock and Apache ZooKeeper, and the page that tells of it.
//!
//! The suites are files in tests/compare, and `paddock bench suite` plays them; here is only what they need and what is
//! said about the machine. Everything is written below <target>/compare, and into the one page.

mod before;
mod floor;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::layout::Layout;
use crate::page::Section;
use crate::process::{Error, Program};
use crate::{install, machine, stages};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask compare                about 20 minutes; writes a table below docs/performance
  cargo xtask compare --quick        about a minute, to see that it works; writes no page
  cargo xtask compare --long         the memory and CPU that 6.4 million requests take; about 6 minutes
  cargo xtask compare --nodes 3      ensembles of three members; about 7 minutes
  cargo xtask compare --size         idle sessions, snapshots, disk, and load on much; about 20 minutes
  cargo xtask compare --size --long  the same of Paddock alone, with 10 million znodes; needs 10 GiB of memory and of disk
  cargo xtask compare --reads        reads only, with one worker and with two; about 3 minutes
  cargo xtask compare --etcd         Paddock on etcd beside etcd alone; about 20 minutes
  cargo xtask compare --log          Paddock with and without a compressed log; about 4 minutes
  cargo xtask compare --tls          clients that speak TLS, beside plaintext; about 10 minutes
  cargo xtask compare --compression  Paddock with and without ClickHouse's compression; about 4 minutes
  cargo xtask compare --production   a twentieth of a production's tree, 5.6 million znodes; about 25 minutes
  cargo xtask compare --production --long  the whole, 111 million, of Paddock alone; about 30 minutes, 35 GB of disk
  cargo xtask compare --stress       the ten shapes of ClickHouse Keeper's stress suite, three members; about 13 minutes
  cargo xtask compare --faults       three members whose links are slow, irregular or lossy; about 10 minutes
  cargo xtask compare --groups       several Raft groups on members with a fifth of a core each; about 20 minutes; needs CPU cgroups
  cargo xtask compare --before a2a8d29  the build of another commit beside this one; 13 minutes, and its build
  cargo xtask compare --before a2a8d29 --nodes 3  the same, ensembles of three members; about 9 minutes

A comparison that was interrupted goes on with the same command. Its results are in compare/ in the target directory.
--before writes no page; it prints medians, their ratios and the CPU time per request, which is what to read on a busy machine.
Needed beforehand: a JDK with Maven, but for --before, --compression, --groups, --size --long and --production --long.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Members of each server
    #[arg(long, value_name = "1|3", default_value = "1", value_parser = ["1", "3"])]
    nodes: String,
    /// Measure what holding much costs, instead of how much is done
    #[arg(long, conflicts_with_all = ["nodes", "reads"])]
    size: bool,
    /// Reads only, by the number of Paddock's workers
    #[arg(long, conflicts_with_all = ["nodes", "long"])]
    reads: bool,
    /// Only see that it works; no page is written
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Measure what takes long
    #[arg(long)]
    long: bool,
    /// Paddock as a front end on etcd, beside etcd alone, the keys of zetcd, and Apache ZooKeeper
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "long", "log", "tls"])]
    etcd: bool,
    /// The price of a compressed log
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "long"])]
    log: bool,
    /// Clients that speak TLS beside those that do not, on both servers
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "log", "long"])]
    tls: bool,
    /// ClickHouse's workload with and without its compression, on Paddock alone
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "log", "tls", "quick", "long"])]
    compression: bool,
    /// The ten shapes of ClickHouse Keeper's stress suite, on ensembles of three members
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "log", "tls", "long", "etcd", "compression"])]
    stress: bool,
    /// Ensembles of three members with links that are slow, irregular or lossy
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "log", "tls", "long", "etcd", "compression", "stress"])]
    faults: bool,
    /// Six members with a fifth of a core each: one Raft group, six on all members, and six on three members each
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "log", "tls", "long", "etcd", "compression", "stress", "faults"])]
    groups: bool,
    /// The tree of a production: names, values and directories as ClickHouse has published them
    #[arg(long, conflicts_with_all = ["nodes", "size", "reads", "log", "tls", "etcd", "compression", "stress", "faults", "groups"])]
    production: bool,
    /// The build of another commit and this one, in turns
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["size", "reads", "long", "etcd", "log", "tls", "compression", "stress", "faults", "groups", "production"])]
    before: Option<String>,
}

/// A comparison, with what must be told of it.
#[derive(Clone, Copy)]
struct Comparison {
    /// The suite of tests/compare that is played.
    suite: &'static str,
    /// The options that the command line needs for this comparison.
    options: &'static str,
    /// The page below docs/performance that it writes a table into.
    page: &'static str,
    /// The table that it writes, by the name in the lines around it.
    table: &'static str,
    has_zookeeper: bool,
}

impl Comparison {
    const ONE: Comparison = Comparison {
        suite: "default",
        page: "one-member",
        options: "",
        table: "compare",
        has_zookeeper: true,
    };
    const ONE_LONG: Comparison = Comparison {
        suite: "long",
        page: "one-member",
        options: " --long",
        table: "compare long",
        has_zookeeper: true,
    };
    const THREE: Comparison = Comparison {
        suite: "three",
        page: "three-members",
        options: " --nodes 3",
        table: "compare three",
        has_zookeeper: true,
    };
    const SIZE: Comparison = Comparison {
        suite: "size",
        page: "size",
        options: " --size",
        table: "compare size",
        has_zookeeper: true,
    };
    const SIZE_LONG: Comparison = Comparison {
        suite: "size-long",
        page: "size",
        options: " --size --long",
        table: "compare size long",
        has_zookeeper: false,
    };
    const READS: Comparison = Comparison {
        suite: "reads",
        page: "reads",
        options: " --reads",
        table: "compare reads",
        has_zookeeper: true,
    };
    const LOG: Comparison = Comparison {
        suite: "log",
        page: "compression",
        options: " --log",
        table: "compare log",
        has_zookeeper: true,
    };
    const TLS: Comparison = Comparison {
        suite: "tls",
        page: "tls",
        options: " --tls",
        table: "compare tls",
        has_zookeeper: true,
    };
    const ETCD: Comparison = Comparison {
        suite: "etcd",
        page: "etcd",
        options: " --etcd",
        table: "compare etcd",
        has_zookeeper: true,
    };
    const FAULTS: Comparison = Comparison {
        suite: "faults",
        page: "stress",
        options: " --faults",
        table: "compare faults",
        has_zookeeper: true,
    };
    const STRESS: Comparison = Comparison {
        suite: "stress",
        page: "stress",
        options: " --stress",
        table: "compare stress",
        has_zookeeper: true,
    };
    const GROUPS: Comparison = Comparison {
        suite: "groups",
        page: "groups",
        options: " --groups",
        table: "compare groups",
        has_zookeeper: false,
    };
    const PRODUCTION: Comparison = Comparison {
        suite: "production",
        page: "size",
        options: " --production",
        table: "compare production",
        has_zookeeper: true,
    };
    const PRODUCTION_LONG: Comparison = Comparison {
        suite: "production-long",
        page: "size",
        options: " --production --long",
        table: "compare production long",
        has_zookeeper: false,
    };
    const COMPRESSION: Comparison = Comparison {
        suite: "compression",
        page: "compression",
        options: " --compression",
        table: "compare compression",
        has_zookeeper: false,
    };
}

impl Options {
    fn comparison(&self) -> Result<Comparison, Error> {
        match (self.nodes.as_str(), self.size, self.reads, self.long) {
            ("3", _, _, true) => {
                Err(Error::new("there is no long comparison of three members: leave --long out"))
            }
            ("3", ..) => Ok(Comparison::THREE),
            _ if self.log => Ok(Comparison::LOG),
            _ if self.tls => Ok(Comparison::TLS),
            _ if self.etcd => Ok(Comparison::ETCD),
            _ if self.production && self.long => Ok(Comparison::PRODUCTION_LONG),
            _ if self.production => Ok(Comparison::PRODUCTION),
            _ if self.stress => Ok(Comparison::STRESS),
            _ if self.faults => Ok(Comparison::FAULTS),
            _ if self.groups => Ok(Comparison::GROUPS),
            _ if self.compression => Ok(Comparison::COMPRESSION),
            (_, true, _, true) => Ok(Comparison::SIZE_LONG),
            (_, true, ..) => Ok(Comparison::SIZE),
            (_, _, true, _) => Ok(Comparison::READS),
            (.., true) => Ok(Comparison::ONE_LONG),
            _ => Ok(Comparison::ONE),
        }
    }

    /// Installs what only this comparison needs; the variables that tell the suite where it is.
    fn variables(&self, layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
        if self.etcd {
            let bare = stages::bare_etcd(layout, "compare")?;
            return Ok(vec![("ETCD_BIN", install::etcd(layout)?.into()), ("BARE_ETCD_BIN", bare.into())]);
        }
        if self.tls {
            let certificates = layout.environment("compare-tls");
            install::certificate(layout, &certificates)?;
            return Ok(vec![("CERTIFICATES", certificates.into())]);
        }
        if self.groups {
            return Ok(vec![("COMPARE", layout.tests("compare").into())]);
        }
        Ok(Vec::new())
    }

    /// The suite as it is played: the same, but short, to see that it works.
    fn suite(&self, comparison: Comparison) -> String {
        match (self.quick, comparison.suite) {
            (true, "default") => "quick".to_owned(),
            (true, suite) => format!("{suite}-quick"),
            (false, suite) => suite.to_owned(),
        }
    }
}

/// Measures and writes the page; true if all was measured without an error.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    if let Some(revision) = &options.before {
        return before::run(layout, revision, &options.nodes, options.quick);
    }
    let comparison = options.comparison()?;
    let name = &options.suite(comparison);
    if comparison.has_zookeeper {
        install::jars(layout)?;
    }
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    layout.cargo().args(["build", "--release", "--package", "paddock-server", "--example", "bare"]).run()?;
    let results = layout.comparison(name);
    forget_finished(&results, options.quick)?;
    let variables = options.variables(layout)?;
    if !play(layout, name, &results, variables)? {
        return Ok(false);
    }
    if !options.quick {
        let text = describe(layout, comparison, &results)?;
        let page = layout.document(&format!("performance/{}.md", comparison.page));
        Section::new(comparison.table).write(&page, &text)?;
    }
    Ok(true)
}

/// A comparison that is complete is not continued but made anew.
fn forget_finished(results: &Path, always: bool) -> Result<(), Error> {
    if results.exists() && (always || results.join("summary.json").exists()) {
        fs::remove_dir_all(results).map_err(Error::io("remove", results))?;
    }
    Ok(())
}

fn play(
    layout: &Layout,
    name: &str,
    results: &Path,
    variables: Vec<(&str, OsString)>,
) -> Result<bool, Error> {
    let suite = layout.tests("compare").join(format!("{name}.toml"));
    let bench = Program::new(layout.paddock()).args(["bench", "suite"]).arg(suite).arg("--out").arg(results);
    let bench = bench.env("PADDOCK_BIN", layout.paddock()).env("ZOOKEEPER_CLASSPATH", layout.class_path());
    let mut bench = bench.env("BARE_BIN", layout.bare_server());
    for (variable, value) in variables {
        bench = bench.env(variable, value);
    }
    bench.status().map(|status| status.success())
}

/// The part of the page that a comparison writes.
fn describe(layout: &Layout, comparison: Comparison, results: &Path) -> Result<String, Error> {
    let table = results.join("summary.md");
    let table = fs::read_to_string(&table).map_err(Error::io("read", &table))?;
    let facts = machine::facts(layout, results, comparison.has_zookeeper)? + &floor::describe(results)?;
    let date = Program::new("date").args(["-u", "+%F"]).output()?;
    let options = comparison.options;
    Ok(format!("`cargo xtask compare{options}`, {date}.\n\n{facts}\n{table}"))
}
