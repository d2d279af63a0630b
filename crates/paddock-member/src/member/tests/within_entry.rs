//! Moments within an entry in which others have the state, and commands that are several transactions.

use std::path::Path;

use paddock_proto::{CreateMode, encode};
use paddock_tree::REMOVED_AT_ONCE;

use super::*;
use crate::offline::read_directory;

impl Stage {
    fn ask(&mut self, op: OpCode, body: impl FnOnce(&mut Vec<u8>)) {
        let (mut bytes, mut command) = (Vec::new(), Vec::new());
        body(&mut bytes);
        let session = self.shell.session.expect("connected at the start");
        Command::encode(session, 0, IdList::NONE, op, &bytes, &mut command);
        let write = ClientInput::Write {
            conn: conn(),
            request: RequestId::first(Xid(1)),
            op,
            command: command.into(),
        };
        self.member.take(&self.shell, [Input::Client(write)]);
    }

    fn ask_for(&mut self, path: &str, mode: CreateMode) {
        self.ask(OpCode::Create, |out| encode::create_open(out, path, None, mode));
    }

    fn remove_recursively(&mut self, path: &str, nodes_max: i32) {
        self.ask(OpCode::RemoveRecursive, |out| encode::path_and_version(out, path, nodes_max));
    }

    fn zxid_and_digest(&self) -> (i64, u64) {
        let state = self.shell.state.0.borrow();
        (state.tree().zxid().0, state.tree().digest())
    }
}

#[test]
fn a_snapshot_that_is_to_begin_within_an_entry_begins_behind_it() {
    let config = Config::small_with(|settings| settings.snapshot_writes = u64::MAX);
    let config = Config { work_at_once: 1, ..config };
    let disk = MemDisk::new(1);
    let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
    stage.shell.keeps_orders = true;
    stage.member.want_snapshot();
    stage.pass_time().unwrap();
    let before = stage.zxid_and_digest().0;
    (0..20).for_each(|_| stage.create());
    stage.settle().unwrap();
    assert_eq!(stage.shell.refused_orders, 20, "others had the state behind each command");
    while stage.shell.order.is_some() || stage.shell.walk.is_some() {
        stage.shell.walk();
    }
    let taken = stage.shell.finished.as_ref().expect("the walk has ended").as_ref().unwrap();
    assert_eq!(taken.zxid, before + 20);
    let expected = stage.zxid_and_digest();
    drop(stage);
    disk.crash();
    let mut again = Stage::start_as(&disk, config).unwrap();
    again.remove_recursively("/none", 1);
    again.settle().unwrap();
    assert!((0..20).all(|number| again.has(number)));
    assert_eq!(again.zxid_and_digest().0, expected.0 + 2, "another session, and what was refused");
}

/// The log says what the commands were, and not how many transactions each is.
#[test]
fn whoever_reads_a_directory_makes_the_portions_that_the_member_has_made() {
    let config = Config::small_with(|settings| {
        (settings.snapshot_writes, settings.snapshot_log_bytes) = (u64::MAX, u64::MAX);
    });
    let many = 2 * REMOVED_AT_ONCE + 7;
    let disk = MemDisk::new(1);
    let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
    for top in ["/kept", "/gone"] {
        stage.ask_for(top, CreateMode::Persistent);
        (0..many).for_each(|number| stage.ask_for(&format!("{top}/{number}"), CreateMode::Persistent));
    }
    (0..many).for_each(|number| stage.ask_for(&format!("/ephemeral-{number}"), CreateMode::Ephemeral));
    stage.settle().unwrap();
    let created = stage.zxid_and_digest().0;
    stage.remove_recursively("/kept", REMOVED_AT_ONCE as i32 + 1);
    stage.remove_recursively("/gone", i32::MAX);
    stage.ask(OpCode::CloseSession, |_| {});
    stage.settle().unwrap();
    let expected = stage.zxid_and_digest();
    assert_eq!(expected.0, created + 1 + 3 + 3, "one is refused, the others are three transactions each");
    drop(stage);
    disk.kill();
    let tree = read_directory(&disk, Path::new(&config.data_dir), None).unwrap().tree;
    assert_eq!((tree.zxid().0, tree.digest()), expected);
}
