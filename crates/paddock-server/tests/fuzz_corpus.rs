//! Replays what the fuzzer has collected, on every ordinary test run.

use std::fs;
use std::path::Path;

use paddock_server::fuzzing;

/// Gives each file of a target's corpus to it.
fn replay(target: &str, take: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("read {}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.expect("list the corpus").path();
        // The name shows in the output if the next line panics.
        println!("{}", path.display());
        take(&fs::read(&path).expect("read a file of the corpus"));
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", corpus.display());
}

#[test]
fn conversation() {
    replay("conversation", fuzzing::conversation);
}

#[test]
fn sasl_tokens() {
    replay("sasl_tokens", fuzzing::sasl_tokens);
}

#[test]
fn tls_entry() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../paddock-tls/src/store/fixtures");
    let entry = fuzzing::TlsEntry::new(&fixtures);
    replay("tls_entry", |data| entry.take(data));
}
