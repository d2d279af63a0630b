//! `cargo run --release -p paddock-groups-model`: see `docs/groups-model.md`, and `--help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    paddock_groups_model::main()
}
