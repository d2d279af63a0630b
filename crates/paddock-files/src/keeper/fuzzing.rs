//! Files of any bytes, for the fuzzer.

use std::io::Cursor;
use std::path::Path;

use paddock_tree::Draft;

use super::changelog::{ChangelogReader, NextRecord};
use super::entry::ChangelogEntry;
use super::snapshot;
use super::state::KeeperState;

/// Bytes are compressed, or the content of a snapshot.
pub(crate) fn snapshot(is_compressed: bool, bytes: &[u8]) -> Option<Draft> {
    let read = if is_compressed {
        snapshot::read_from(bytes, None, &mut |_| {})
    } else {
        snapshot::read_content(bytes)
    };
    let mut state = read.ok()?.state;
    state.add_keeper();
    state.raise_counters().ok()?;
    Some(state.draft)
}

pub(crate) fn log(bytes: &[u8]) -> Draft {
    let mut state = begun();
    let mut reader = ChangelogReader::new(Path::new("log"), Box::new(Cursor::new(bytes)));
    while let Ok(NextRecord::Record(record)) = reader.next() {
        let index = record.index;
        let Some(request) = record.request else { continue };
        if !carried_out(&mut state, request, index) {
            break;
        }
    }
    state.draft
}

/// Each request stands behind its length, two bytes.
pub(crate) fn requests(mut bytes: &[u8]) -> Draft {
    let mut state = begun();
    let mut index = 1;
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let (request, rest) = rest.split_at(len);
        if !carried_out(&mut state, request, index) {
            break;
        }
        (bytes, index) = (rest, index + 1);
    }
    state.draft
}

fn begun() -> KeeperState {
    let mut state = KeeperState::new();
    state.add_keeper();
    // From now on it is kept up to date.
    state.digest(DIGEST_VERSION);
    state
}

const DIGEST_VERSION: u8 = 5;

/// Carries a request out; the digest is then that of all znodes, whatever was asked.
fn carried_out(state: &mut KeeperState, request: &[u8], index: u64) -> bool {
    let done = ChangelogEntry::decode(request).and_then(|entry| state.apply(&entry, index));
    if done.is_ok() {
        let kept = state.digest(DIGEST_VERSION);
        state.forget_digest();
        assert_eq!(state.digest(DIGEST_VERSION), kept, "the digest went wrong at index {index}");
    }
    done.is_ok()
}
