//! The command line of Paddock.
//!
//! Exit codes: 0 after an orderly end, 1 when the world misbehaved, 2 when what the operator said cannot be done, 130
//! when a second signal cut the orderly end short. Those of `diff` are as diff(1) has them.

mod access;
mod admin_client;
mod backup;
mod bench;
mod diff;
mod doctor;
mod documents;
mod dump;
mod etcd_access;
mod export;
mod groups;
mod http_client;
mod identity_source;
mod import;
mod inspect;
mod load;
mod logs;
mod members;
mod moving;
mod profiles;
mod restore;
mod server;
mod shell;
mod signals;
mod tail;
mod top;
mod version;

use std::panic;
use std::process::{self, ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  paddock server
  paddock server --config zoo.cfg
  paddock bench run create --hosts 127.0.0.1:2181
  paddock import zookeeper --data-dir /var/lib/zookeeper --to /var/lib/paddock
  paddock diff zk1:2181 paddock1:2181
  paddock shell zk1:2181 -- ls /
  paddock server --help";

/// A coordination service that speaks ZooKeeper's protocol.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Server(server::Args),
    Bench(Box<bench::Args>),
    Import(import::Args),
    Export(export::Args),
    Diff(diff::Args),
    Version(version::VersionArgs),
    Completions(documents::CompletionArgs),
    #[command(name = "man", hide = true)]
    Manual(documents::ManualArgs),
    Shell(Box<shell::ShellArgs>),
    Members(Box<members::MembersArgs>),
    Groups(Box<groups::GroupsArgs>),
    Inspect(inspect::InspectArgs),
    Doctor(Box<doctor::DoctorArgs>),
    Tail(tail::TailArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Dump(Box<dump::DumpArgs>),
    Load(Box<load::LoadArgs>),
    Top(Box<top::TopArgs>),
}

fn main() -> ExitCode {
    end_at_panics();
    let code = run(Cli::parse().command);
    logs::end();
    code
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Server(args) => match server::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                failure.lines().iter().for_each(|line| logs::report(args.log_format, line));
                ExitCode::from(failure.exit_code())
            }
        },
        Command::Bench(args) => bench::run(*args),
        Command::Import(args) => moving::ended(import::run(&args)),
        Command::Export(args) => moving::ended(export::run(&args)),
        Command::Diff(args) => diff::run(&args),
        Command::Version(args) => version::run(&args),
        Command::Completions(args) => documents::complete(&args, Cli::command()),
        Command::Manual(args) => documents::write_manual(&args, Cli::command()),
        Command::Shell(args) => shell::run(&args),
        Command::Members(args) => members::run(&args),
        Command::Groups(args) => groups::run(&args),
        Command::Inspect(args) => moving::ended(inspect::run(&args)),
        Command::Doctor(args) => doctor::run(&args),
        Command::Backup(args) => moving::ended(backup::run(&args)),
        Command::Restore(args) => moving::ended(restore::run(&args)),
        Command::Tail(args) => moving::ended(tail::run(&args)),
        Command::Dump(args) => moving::ended(dump::run(&args)),
        Command::Load(args) => moving::ended(load::run(&args)),
        Command::Top(args) => top::run(&args),
    }
}

/// A broken invariant stops the member, whichever thread finds it. What is released aborts at a panic in any case; what is compiled
/// for tests would lose a thread and go on.
fn end_at_panics() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |broken| {
        if !logs::report_panic(broken) {
            tell(broken);
        }
        process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;
    use std::{env, thread};

    use super::*;

    const IS_INNER: &str = "PADDOCK_TEST_PANICS";
    /// The number of the signal on all platforms.
    const SIGABRT: i32 = 6;

    #[test]
    fn a_panic_of_any_thread_ends_the_process() {
        if env::var_os(IS_INNER).is_some() {
            end_at_panics();
            let _ = thread::spawn(|| panic!("an invariant is broken")).join();
            return;
        }
        let this = env::current_exe().expect("a test is a program");
        let inner = ["--exact", "tests::a_panic_of_any_thread_ends_the_process", "--nocapture"];
        let output = Command::new(this).args(inner).env(IS_INNER, "1").output().expect("it runs again");
        assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("an invariant is broken"), "{told}");
    }
}
