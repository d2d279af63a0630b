//! `paddock diff`: two trees compared, wherever they are.
//!
//! Exit codes: 0 if they are equal, 1 if they differ, 2 if they could not be compared.

mod comparison;
pub(crate) mod failure;
pub(crate) mod seen;
pub(crate) mod server;
pub(crate) mod side;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::access::AccessArgs;
use crate::moving::ProgressLine;
use comparison::{Comparison, Totals};
use failure::DiffFailure;
use side::{DiffSource, Side};

const EXAMPLES: &str = "\
Examples:
  paddock diff zk1:2181 paddock1:2181
      two servers that run
  paddock diff --auth @identity zk1:2181 /var/lib/paddock
      a server, and the data directory of a member that is stopped; the only line of the file is digest:USER:PASSWORD
  paddock diff --tls-ca ca.pem zk1:2281 paddock1:2281
      two servers, over TLS
  paddock diff --sasl admin:/etc/paddock/password zk1:2181 paddock1:2181
      two servers that know the same user of SASL
  paddock diff /var/lib/zookeeper /backup/snapshot.1f00000042
      the data directory of a ZooKeeper, and one snapshot of it
  paddock diff /data,/datalog zk1:2181
      a dataDir whose dataLogDir is another directory, and a server
  paddock diff --exclude /zookeeper/config zk1:2181,zk2:2181,zk3:2181 paddock1:2181

Exit code 0: equal; 1: different; 2: not compared.
Compare servers while nobody writes: a znode that changes meanwhile is a difference. An ACL that the identity may not administer is
shown with its passwords hidden, and so differs: give --auth for it.";

/// Compare two trees, znode by znode: data, ACL and every number of the Stat
///
/// A and B are servers (host:port, with commas between several of one ensemble), data directories of Paddock or ZooKeeper (with a
/// comma and the directory of its transaction log, if that is another one), or snapshot files
/// of either: those of Paddock are called snapshot-….
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// First tree
    #[arg(value_name = "A")]
    a: String,
    /// Second tree
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    access: AccessArgs,
    /// Znode to leave out, with all below it
    #[arg(long, value_name = "PATH", value_parser = seen::parse_path)]
    exclude: Vec<String>,
    /// Differences to print; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match compare(args) {
        Ok(totals) if totals.differences() == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("error: {}", paddock_tls::with_causes(&failure));
            ExitCode::from(2)
        }
    }
}

fn compare(args: &Args) -> Result<Totals, DiffFailure> {
    let access = args.access.read()?;
    // Trees are read before sessions are opened, which would have to be kept alive meanwhile.
    let mut line = ProgressLine::start();
    let sources = [DiffSource::open(&args.a, &mut line)?, DiffSource::open(&args.b, &mut line)?];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = io::stdout().lock();
    let totals = runtime.block_on(async {
        let [a, b] = &sources;
        let a = Side::begin(a, &access, &args.exclude).await?;
        let b = Side::begin(b, &access, &args.exclude).await?;
        let mut comparison = Comparison::new(a, b, args.limit);
        let compared = comparison.run(&mut line, &mut out).await;
        comparison.close().await;
        compared
    })?;
    line.end();
    let Totals { equal, only_a, only_b, changed } = totals;
    writeln!(out, "{equal} znodes equal, {changed} different, {only_a} only in A, {only_b} only in B")?;
    Ok(totals)
}
