//! Entries of an earlier build, which are larger than any that is made now.

use paddock_proto::Id;

use super::*;

/// More than a message between members could have when there was no limit of what lay in a log.
const BYTES: usize = (64 << 20) + 1;

#[test]
fn a_write_with_megabytes_of_identities_is_read_from_the_log() {
    let disk = MemDisk::new(1);
    let mut stage = Stage::start(&disk).unwrap();
    stage.create();
    let ids = IdList::encode(&[Id::new("digest", "u".repeat(BYTES))]);
    stage.create_for(IdList::decode(&mut Reader::new(&ids)).unwrap());
    stage.create();
    stage.settle().unwrap();
    assert_eq!(stage.shell.replies, 3);
    drop(stage);
    disk.crash();
    let again = Stage::start(&disk).unwrap();
    assert!((0..3).all(|number| again.has(number)));
}
