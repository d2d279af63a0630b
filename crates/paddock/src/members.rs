//! `paddock members`: the members of an ensemble, and a wait until a change of them has come about.
//!
//! A change of members by files has no answer: the ensemble's own list tells that it is over. A chart takes machines away when their members have left,
//! and not before.
//!
//! Exit codes: 0 when it is as wanted, 1 when it has not become so in time, 2 when what the user said cannot be done.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paddock_bench::report::units::one_line;
use paddock_client::{Client, ClientOptions, Error};
use paddock_proto::{EnsembleMember, MemberNumber};
use paddock_tree::parse_members;

use crate::access::{AccessArgs, AccessError};

/// Path of the list of members.
const CONFIG: &str = "/zookeeper/config";
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  paddock members zk1:2181,zk2:2181                        the members, one a line
  paddock members zk1:2181 --none-but 1,2,3 --within 5m    wait until nobody else is a member
  paddock members zk1:2181 --all-of 1,2,3,4,5 --within 5m  wait until these are

Exit code 0: it is as wanted; 1: it has not become so in time; 2: it could not begin.";

/// List the members of an ensemble, or wait until they are others
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MembersArgs {
    /// Servers, host:port with commas between several [default: the variable PADDOCK_HOSTS, else those of the profile,
    /// else localhost:2181]
    #[arg(value_name = "HOSTS")]
    hosts: Option<String>,
    /// Wait until no member has another number than these
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    none_but: Vec<MemberNumber>,
    /// Wait until there is a member with each of these numbers
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    all_of: Vec<MemberNumber>,
    /// Time after which waiting is given up
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    within: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, thiserror::Error)]
enum StartFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("start the runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

pub(crate) fn run(args: &MembersArgs) -> ExitCode {
    match wait(args) {
        Ok(Ok(members)) => {
            print!("{}", paddock_tree::member_lines(&members));
            ExitCode::SUCCESS
        }
        Ok(Err(last)) => {
            // What a server has said stands in it, and this may be a terminal.
            eprintln!("error: after {}: {}", humantime::format_duration(args.within), one_line(&last));
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("error: {}", paddock_tls::with_causes(&failure));
            ExitCode::from(2)
        }
    }
}

/// The members when they are as wanted, or what they were at the last look.
fn wait(args: &MembersArgs) -> Result<Result<Vec<EnsembleMember>, String>, StartFailure> {
    let (hosts, access) = args.access.servers(args.hosts.as_deref())?;
    let identities: Vec<(String, Vec<u8>)> =
        access.identities.into_iter().map(|shown| (shown.scheme, shown.auth.into_bytes())).collect();
    let deadline = Instant::now() + args.within;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        loop {
            let options = ClientOptions {
                connect_timeout: deadline.saturating_duration_since(Instant::now()).max(POLL),
                tls: access.tls.clone(),
                sasl: access.login.clone(),
                ..ClientOptions::default()
            };
            let last = match look(&hosts, options, &identities).await {
                Ok(members) => match complaint(args, &members) {
                    None => return Ok(members),
                    Some(complaint) => complaint,
                },
                Err(error) => paddock_tls::with_causes(&error),
            };
            if Instant::now() >= deadline {
                return Err(last);
            }
            tokio::time::sleep(POLL).await;
        }
    }))
}

async fn look(
    hosts: &str,
    options: ClientOptions,
    identities: &[(String, Vec<u8>)],
) -> Result<Vec<EnsembleMember>, Error> {
    let client = Client::connect(hosts, options).await?;
    for (scheme, auth) in identities {
        client.add_auth(scheme, auth).await?;
    }
    // A member that lags has an old list.
    client.sync(CONFIG).await?;
    let config = client.get_data(CONFIG).await?;
    client.close().await?;
    let lines = String::from_utf8_lossy(config.bytes.as_deref().unwrap_or_default()).into_owned();
    // ZooKeeper ends the list with its version.
    let lines: String =
        lines.lines().filter(|line| line.starts_with("server.")).map(|line| format!("{line}\n")).collect();
    Ok(parse_members(&lines).unwrap_or_default())
}

/// The difference to what is wanted.
fn complaint(args: &MembersArgs, members: &[EnsembleMember]) -> Option<String> {
    let present: BTreeSet<MemberNumber> = members.iter().map(|member| member.id).collect();
    let others: Vec<_> = present.iter().filter(|id| !args.none_but.contains(id)).collect();
    let missing: Vec<_> = args.all_of.iter().filter(|id| !present.contains(id)).collect();
    if !args.none_but.is_empty() && !others.is_empty() {
        Some(format!("members {others:?} have not left; there are {present:?}"))
    } else if !missing.is_empty() {
        Some(format!("{missing:?} are no members; there are {present:?}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: MembersArgs,
    }

    #[track_caller]
    fn check(arguments: &[&str], expected: Option<&str>) {
        let cli = Cli::try_parse_from(["members"].iter().chain(arguments)).expect("a command line");
        let lines = "server.1=a:1:2:participant;3\nserver.2=b:1:2:participant;3\nserver.4=c:1:2:observer;3\n";
        let members = parse_members(lines).expect("lines");
        assert_eq!(complaint(&cli.args, &members).as_deref(), expected);
    }

    #[test]
    fn members_are_compared_with_those_that_are_wanted() {
        check(&[], None);
        check(&["--none-but", "1,2,3,4"], None);
        check(&["--none-but", "1,2,3"], Some("members [4] have not left; there are {1, 2, 4}"));
        check(&["--all-of", "4,1"], None);
        check(&["--all-of", "4,1,3"], Some("[3] are no members; there are {1, 2, 4}"));
        check(
            &["--all-of", "1,2", "--none-but", "1,2"],
            Some("members [4] have not left; there are {1, 2, 4}"),
        );
    }
}
