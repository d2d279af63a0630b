//! Snapshots of a member alone: what they say, and what of the log stays behind them.

use paddock_proto::Id;
use paddock_replica::Membership;
use paddock_storage::snapshot;

use super::*;

/// A member alone that is an ensemble, and may grow.
fn ensemble_of_one() -> Config {
    let mut config = Config::small();
    config.founding.members = "server.1=host1:2888:3888:participant;2181\n".to_owned();
    config
}

/// Asks for another member, which has no vote.
fn add_observer(stage: &mut Stage) {
    let ids = IdList::encode(&[Id::new("super", "")]);
    let ids = IdList::decode(&mut Reader::new(&ids)).expect("it was just encoded");
    let (mut body, mut command) = (Vec::new(), Vec::new());
    body.put_string("server.2=host2:2888:3888:observer;2181");
    body.put_string("");
    body.put_i32(-1);
    body.put_i64(-1);
    let session = stage.shell.session.expect("connected at the start");
    let op = OpCode::Reconfig;
    Command::encode(session, 0, ids, op, &body, &mut command);
    stage.shell.has_others = true;
    stage.member.take(
        &stage.shell,
        [Input::Client(ClientInput::Write {
            conn: conn(),
            request: RequestId::first(Xid(1)),
            op,
            command: command.into(),
        })],
    );
}

#[test]
fn a_snapshot_says_who_took_part_when_it_was_begun() {
    let (disk, config) = (MemDisk::new(1), ensemble_of_one());
    let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
    while stage.shell.walk.is_none() {
        stage.live(1).unwrap();
    }
    let learners = |stage: &Stage| stage.shell.state.0.borrow().membership().learners.clone();
    add_observer(&mut stage);
    for _ in 0..50 {
        stage.settle().unwrap();
        stage.shell.now.monotonic_ms += Member::TICK_MS;
        stage.member.tick(&mut stage.shell).unwrap();
    }
    assert_eq!(learners(&stage), [2], "it takes part before the walk ends");
    while stage.shell.walk.is_some() {
        stage.shell.walk();
    }
    let alone = Membership::new(vec![1], vec![]);
    let taken = stage.shell.finished.take().expect("the walk has ended").unwrap();
    assert_eq!(taken.membership, alone, "what is offered to others");
    let (file, meta) = snapshot::newest_valid(&disk, &config.snapshot_dir(HOME)).unwrap().found.unwrap();
    assert_eq!(file.index.0, taken.index);
    assert_eq!(Membership::decode(&meta.app), Some(alone), "what a restart finds");
}

#[test]
fn behind_a_damaged_snapshot_there_is_another_one_and_the_log() {
    for kept in 1..=3 {
        let (disk, config) = (MemDisk::new(1), Config::small_with(|settings| settings.snapshots_kept = kept));
        let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
        stage.live(200).unwrap();
        let Stage { member, mut shell, .. } = stage;
        member.end(&mut shell).unwrap();
        let files = snapshot::list(&disk, &config.snapshot_dir(HOME)).unwrap();
        assert_eq!(files.len(), kept);
        for damaged in files.iter().rev().take(kept - 1) {
            assert!(disk.flip(&damaged.path, 100, 1));
        }
        let again = Stage::start_as(&disk, config).unwrap();
        assert!((0..200).all(|number| again.has(number)), "with {kept} snapshots kept");
    }
}

#[test]
fn the_very_first_snapshot_lets_nothing_go() {
    // The snapshot comes when there are several files of the log.
    let (disk, config) = (MemDisk::new(1), Config::small_with(|settings| settings.snapshot_writes = 150));
    let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
    let files = || snapshot::list(&disk, &config.snapshot_dir(HOME)).unwrap();
    while files().is_empty() {
        stage.live(1).unwrap();
    }
    // The member learns of it, and could let go of the log.
    stage.live(3).unwrap();
    let (created, only) = (stage.created, files());
    assert_eq!(only.len(), 1);
    drop(stage);
    disk.kill();
    assert!(disk.flip(&only[0].path, 100, 1));
    let again = Stage::start_as(&disk, config).unwrap();
    assert!((0..created).all(|number| again.has(number)));
}

#[test]
fn a_log_that_ends_before_the_snapshot_is_refused() {
    let (disk, config) = (MemDisk::new(1), Config::small());
    let mut stage = Stage::start(&disk).unwrap();
    stage.live(30).unwrap();
    drop(stage);
    disk.kill();
    let log_dir = config.log_dir();
    for name in disk.list(&log_dir).unwrap() {
        disk.remove(&log_dir.join(name)).unwrap();
    }
    let refused = Stage::start(&disk).err().expect("its end is lost").to_string();
    assert!(refused.contains("its end is lost"), "{refused}");
}
