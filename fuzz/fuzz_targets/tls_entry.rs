#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use paddock_server::fuzzing::TlsEntry;

static ENTRY: LazyLock<TlsEntry> = LazyLock::new(|| {
    TlsEntry::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/paddock-tls/src/store/fixtures"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| ENTRY.take(data));
