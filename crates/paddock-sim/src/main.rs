//! `cargo run -p paddock-sim`: see the crate's documentation, and `--help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    paddock_sim::main()
}
