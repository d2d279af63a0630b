//! Replays what the fuzzer has collected, on every ordinary test run, and what becomes of it with one byte changed or cut.

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
        let bytes = fs::read(&path).expect("read a file of the corpus");
        run(&bytes);
        for at in (0..bytes.len()).step_by(7) {
            run(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            run(&changed);
        }
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", corpus.display());
}

#[test]
fn zookeeper_snapshot() {
    replay("zookeeper_snapshot", paddock_files::fuzzing::zookeeper_snapshot);
}

#[test]
fn zookeeper_log() {
    replay("zookeeper_log", paddock_files::fuzzing::zookeeper_log);
}

#[test]
fn zookeeper_learner() {
    replay("zookeeper_learner", paddock_files::fuzzing::zookeeper_learner);
}

#[test]
fn keeper_snapshot() {
    replay("keeper_snapshot", paddock_files::fuzzing::keeper_snapshot);
}

#[test]
fn keeper_log() {
    replay("keeper_log", paddock_files::fuzzing::keeper_log);
}
