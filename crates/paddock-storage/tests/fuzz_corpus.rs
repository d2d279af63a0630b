//! Replays what the fuzzers have collected, on every ordinary test run.

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("read {}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.expect("list the corpus").path();
        // The name shows in the output if the next line panics.
        println!("{}", path.display());
        run(&fs::read(&path).expect("read a file of the corpus"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", corpus.display());
}

#[test]
fn log_recovery() {
    replay("log_recovery", paddock_storage::fuzzing::log_recovery);
}

#[test]
fn snapshot_file() {
    replay("snapshot_file", paddock_storage::fuzzing::snapshot_file);
}
