//! Replays what the fuzzer has collected, on every ordinary test run.

use std::fs;
use std::path::Path;

#[test]
fn conversation() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/conversation");
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("read {}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.expect("list the corpus").path();
        // The name shows in the output if the next line panics.
        println!("{}", path.display());
        paddock_server::fuzzing::conversation(&fs::read(&path).expect("read a file of the corpus"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", corpus.display());
}
