//! Files of any bytes. For the fuzzer, and for replaying what it found.

use std::io::{self, Read, Write};
use std::path::Path;

use paddock_proto::Zxid;
use paddock_tree::Draft;

use crate::export::Content;
use crate::keeper;
use crate::learner::{Event, LearnerStream};
use crate::snappy::SnappyReader;
use crate::transaction::Transaction;
use crate::transaction_log::{LogReader, NextTransaction};
use crate::{export, replay, snapshot};

/// Takes `data` as a snapshot: plain, gzip or Snappy by its first byte. One that is accepted is written and read again, and then
/// written the same.
pub fn zookeeper_snapshot(data: &[u8]) {
    let Some((form, bytes)) = data.split_first() else { return };
    let read = match form % 3 {
        0 => snapshot::read_from(bytes, &mut |_| {}),
        1 => snapshot::read_from(snapshot::gzip(bytes), &mut |_| {}),
        _ => snapshot::read_from(SnappyReader::new(bytes), &mut |_| {}),
    };
    let Ok(read) = read else { return };
    let once = written(read.draft);
    let again = snapshot::read_from(&once[..], &mut |_| {}).expect("what is written can be read");
    assert!(written(again.draft) == once, "a snapshot changed by being read and written again");
}

fn written(draft: Draft) -> Vec<u8> {
    let (tree, _) = draft.finish(Zxid(1 << 33), 1);
    let mut bytes = Vec::new();
    export::write_snapshot(Content::of_tree(&tree), &mut bytes).expect("a vector takes everything");
    bytes
}

/// Takes `data` as a transaction log and replays it on an empty tree.
pub fn zookeeper_log(data: &[u8]) {
    let mut reader = LogReader::new(Path::new("log"), data);
    let mut draft = Draft::new();
    while let Ok(NextTransaction::Entry { entry, .. }) = reader.next() {
        if Transaction::decode(entry)
            .is_ok_and(|transaction| replay::apply(&mut draft, &transaction, &mut |_, _| {}).is_err())
        {
            return;
        }
    }
    written(draft);
}

/// Takes `data` as all that a leader says, to an observer that has nothing or has the first transactions of an epoch. Transactions that
/// are accepted follow each other.
pub fn zookeeper_learner(data: &[u8]) {
    let Some((form, said)) = data.split_first() else { return };
    let mut last = if form % 2 == 0 { Zxid(0) } else { Zxid((1 << 32) + 2) };
    let Ok(mut stream) = LearnerStream::greet(Said(said), None, 1, last) else { return };
    let mut draft = Draft::new();
    while let Ok(event) = stream.next(&mut |_| {}) {
        match event {
            Event::Snapshot { zxid, snapshot } => (draft, last) = (snapshot.0.draft, zxid),
            Event::Transaction(entry) => {
                let Ok(transaction) = Transaction::decode(&entry) else { return };
                assert!(transaction.zxid > last, "a transaction came twice");
                last = transaction.zxid;
                if replay::apply(&mut draft, &transaction, &mut |_, _| {}).is_err() {
                    return;
                }
            }
            Event::Epoch(_)
            | Event::Difference
            | Event::RolledBack(_)
            | Event::Members(_)
            | Event::Synced
            | Event::Proposed(_)
            | Event::Caught
            | Event::Revalidated(..)
            | Event::Nothing => {}
        }
    }
    written(draft);
}

/// Takes `data` as a snapshot of a ClickHouse Keeper: compressed as it is, or the content of one. One that is accepted becomes a tree.
pub fn keeper_snapshot(data: &[u8]) {
    let Some((form, bytes)) = data.split_first() else { return };
    if let Some(draft) = keeper::fuzzing::snapshot(form % 2 == 0, bytes) {
        written(draft);
    }
}

/// Takes `data` as a changelog of a ClickHouse Keeper, or as requests without the records around them, on an empty state.
pub fn keeper_log(data: &[u8]) {
    let Some((form, bytes)) = data.split_first() else { return };
    let draft = if form % 2 == 0 { keeper::fuzzing::log(bytes) } else { keeper::fuzzing::requests(bytes) };
    written(draft);
}

/// A leader that has said all it says and does not listen.
struct Said<'d>(&'d [u8]);

impl Read for Said<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Said<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
