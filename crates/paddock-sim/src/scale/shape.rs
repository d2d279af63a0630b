//! The ensemble that is measured, and its clients, as the command line has them.

use clap::{Parser, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  paddock-scale --members 6 --groups 7 --replicas 3 --sessions 72 --in-flight 100
  paddock-scale --members 30 --groups 101 --replicas 3 --sessions 1200 --in-flight 100
  paddock-scale --members 30 --groups 101 --replicas 3 --sessions 1200 --load sessions

Let nothing else run meanwhile: a member is as fast as the machine lets it be.";

/// Measures how fast an ensemble with several Raft groups would be whose members have a core each
#[derive(Clone, Debug, Parser)]
#[command(name = "paddock-scale", after_help = EXAMPLES)]
pub(crate) struct Shape {
    /// Members
    #[arg(long, default_value = "6", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) members: u8,
    /// Raft groups, with the home group
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) groups: u32,
    /// Replicas of each group beside the home group; 0 for one on each member
    #[arg(long, default_value = "0")]
    pub(crate) replicas: u32,
    /// Clients, spread over members and groups
    #[arg(long, default_value = "72", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sessions: u32,
    /// Requests that each client has under way
    #[arg(long, default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) in_flight: u32,
    /// Requests of the clients
    #[arg(long, value_enum, default_value = "create")]
    pub(crate) load: LoadKind,
    /// Part of a core that each member has
    #[arg(long, default_value = "1.0", value_parser = parse_core)]
    pub(crate) core: f64,
    /// Milliseconds of virtual time that are measured, behind half as many that are not
    #[arg(long, default_value = "500", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) millis: u64,
}

fn parse_core(text: &str) -> Result<f64, String> {
    let core = text.parse().ok().filter(|core: &f64| core.is_finite() && *core > 0.0);
    core.ok_or_else(|| "write it as 0.2: more than none".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadKind {
    /// Each session creates znodes in one group
    Create,
    /// Each session creates znodes in all groups, one after the other
    Everywhere,
    /// Each client opens a session, creates a znode in one group, closes the session, and begins again
    Sessions,
}

impl Shape {
    /// Groups in which clients write.
    pub(super) fn loaded_groups(&self) -> u32 {
        (self.groups - 1).max(1)
    }
}
