//! Directories of a ClickHouse Keeper, for tests that read its files: no Keeper can be installed for them.

use std::fs;
use std::path::{Path, PathBuf};

/// Makes `snapshots` and `logs` below a directory. The files are seeds of the fuzzer's, behind their first byte.
pub fn keeper_directories(root: &Path) -> [PathBuf; 2] {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    [
        ("snapshots", "keeper_snapshot/zstd", "snapshot_60.bin.zstd"),
        ("logs", "keeper_log/records", "changelog_61_160.bin"),
    ]
    .map(|(directory, seed, name)| {
        let directory = root.join(directory);
        fs::create_dir(&directory).expect("make a directory");
        let bytes = fs::read(corpus.join(seed)).expect("read a seed");
        fs::write(directory.join(name), &bytes[1..]).expect("write a file");
        directory
    })
}
