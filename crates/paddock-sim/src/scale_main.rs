//! `cargo run --profile sim -p paddock-sim --bin paddock-scale`: see `--help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    paddock_sim::scale()
}
