//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::table;
use crate::world::{ModelRun, ModelWorld, Size};
use crate::worlds;

#[derive(Debug, Parser)]
#[command(name = "paddock-groups-model", about = "Models of several Raft groups under one tree")]
struct ModelArguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the worlds
    List,
    /// Run the worlds of a name, with those whose names begin with it and a slash
    Run {
        /// Name of a world: multi, or multi/no-vote
        name: String,
        #[command(flatten)]
        options: RunOptions,
    },
    /// Run all worlds; the last line counts them
    All {
        #[command(flatten)]
        options: RunOptions,
    },
}

#[derive(Debug, clap::Args)]
struct RunOptions {
    /// States after which a run is cut off, those that were met before included
    #[arg(long, value_name = "N", default_value_t = 60_000_000)]
    max_states: usize,
    /// Print the steps to each broken property, one a line
    #[arg(long)]
    steps: bool,
}

/// Runs the program of the command line.
pub fn main() -> ExitCode {
    let is_well = match ModelArguments::parse().task {
        Task::List => {
            list();
            true
        }
        Task::Run { name, options } => {
            let below = format!("{name}/");
            let is_named = |world: &ModelWorld| world.name == name || world.name.starts_with(&below);
            let chosen: Vec<ModelWorld> = worlds::all().into_iter().filter(is_named).collect();
            if chosen.is_empty() {
                eprintln!("there is no world {name:?}; `list` names them");
            }
            !chosen.is_empty() && run(&chosen, &options)
        }
        Task::All { options } => run(&worlds::all(), &options),
    };
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn list() {
    for world in worlds::all() {
        let size = if world.size == Size::Large { " (large)" } else { "" };
        println!("{:<44} {}{size}", world.name, world.about);
    }
}

/// Runs worlds one after the other; true if each ended as expected.
fn run(worlds: &[ModelWorld], options: &RunOptions) -> bool {
    let mut failed = 0;
    for world in worlds {
        let verdict = world.run(options.max_states);
        println!(
            "{} {:.1} s, depth {}",
            table::row(world, &verdict),
            verdict.time.as_secs_f64(),
            verdict.depth
        );
        let is_well = verdict.is(world.expected);
        if !is_well || options.steps {
            print_steps(world, &verdict, options.max_states);
        }
        failed += usize::from(!is_well);
    }
    println!("{} worlds passed, {failed} failed", worlds.len() - failed);
    failed == 0
}

/// Prints the shortest way to each broken property.
fn print_steps(world: &ModelWorld, verdict: &ModelRun, max_states: usize) {
    for broken in &verdict.broken {
        let shortest = world.shortest_way(broken.property, max_states);
        println!("   {}:", broken.property);
        shortest.as_ref().unwrap_or(broken).steps.iter().for_each(|step| println!("      {step}"));
    }
}
