//! `cargo xtask cluster`: an ensemble on loopback to try things on.
//!
//! Starts the members, tells which one leads and who has died, and stops them with Ctrl-C. Their data stays for the next
//! time. Members have process groups of their own: a terminal's Ctrl-C would reach them a second time otherwise, which
//! ends a member at once.

mod member;
mod watch;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::layout::Layout;
use crate::process::Error;
use member::{ClusterMember, Plan};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask cluster                           three members; clients connect to 127.0.0.1:2181, 2182 and 2183
  cargo xtask cluster --members 5 --port 12181  five, at 12181 to 12185
  cargo xtask cluster --fresh                   without the data of the last time
  cargo xtask cluster --data-dir ~/try          the data, and a log for each member, is kept there

Then, in another terminal:
  zkCli.sh -server 127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183
  cargo run --release -- bench run mixed --hosts 127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183
  kill -9 PID                                   of any member: the others go on, and you are told what happened

Members talk to each other at the clients' ports + 707, which is 2888 and so on. Each has its page for administrators at the
clients' port + 6000, which is http://127.0.0.1:8181/ and so on.
Ctrl-C stops all members in good order, a second one at once.";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of members: 1, 3 or 5
    #[arg(long, value_name = "N", default_value = "3", value_parser = ["1", "3", "5"])]
    members: String,
    /// Port of the first member for clients; the others have the ports behind it
    #[arg(long, value_name = "PORT", default_value_t = 2181, value_parser = clap::value_parser!(u16).range(1..=59_000))]
    port: u16,
    /// Directory of data and logs [default: cluster/N in the target directory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Begin without the data of the last time
    #[arg(long)]
    fresh: bool,
}

/// Runs the members until Ctrl-C; true if all ended well.
pub(crate) fn run(layout: &Layout, options: &Options) -> Result<bool, Error> {
    let count: u16 = options.members.parse().expect("clap takes these numbers only");
    let directory = options.data_dir.clone().unwrap_or_else(|| layout.cluster(&options.members));
    let directory = std::path::absolute(&directory).map_err(Error::io("find", &directory))?;
    let plans = Plan::all(count, options.port);
    plans.iter().try_for_each(Plan::check_ports)?;
    layout.cargo().args(["build", "--release", "--package", "paddock"]).run()?;
    if options.fresh {
        forget(&directory)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(format!("can't wait for the members: {error}")))?;
    runtime.block_on(async {
        println!("{count} member{} below {}", if count == 1 { "" } else { "s" }, directory.display());
        let mut members = Vec::new();
        for plan in &plans {
            let member = ClusterMember::start(layout, plan, &plans, &directory)?;
            println!(
                "  member {}  {}  http://{}/  pid {}  {}",
                plan.number,
                plan.client(),
                plan.page(),
                member.pid(),
                member.log().display()
            );
            members.push(member);
        }
        watch::until_stopped(members, &hosts(&plans)).await
    })
}

/// Removes what members of an earlier run have left, and nothing else that may be there.
fn forget(directory: &Path) -> Result<(), Error> {
    for number in 1..=5 {
        let member = member::directory(directory, number);
        if member.join(member::CONFIG).is_file() {
            fs::remove_dir_all(&member).map_err(Error::io("remove", &member))?;
        }
    }
    Ok(())
}

/// For a client's command line.
fn hosts(plans: &[Plan]) -> String {
    let hosts: Vec<String> = plans.iter().map(|plan| plan.client().to_string()).collect();
    hosts.join(",")
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
