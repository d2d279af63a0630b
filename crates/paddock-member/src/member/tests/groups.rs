//! Several groups of a member alone: they are there again whatever fails, and hold no more of the log than they need.

use paddock_replica::GroupStanding;
use paddock_tree::{FeatureLevel, SplitPaths};

use super::first_disk::{Voter, live_together};
use super::*;

const GROUPS: u32 = 4;

fn with_groups(count: u32) -> Config {
    let config = Config::small_with(|settings| settings.group_count = count);
    Config { known_level: FeatureLevel::KNOWN, ..config }
}

fn start(disk: &MemDisk, count: u32) -> Result<Stage, MemberError> {
    Stage::start_as(disk, with_groups(count))
}

impl Stage {
    /// Creates a znode in a group, in a session of that group.
    fn create_in(&mut self, group: u32, number: usize) -> Result<(), MemberError> {
        let session = SessionId(9);
        let (mut begin, mut create, mut body) = (Vec::new(), Vec::new(), Vec::new());
        Command::encode(
            session,
            0,
            IdList::NONE,
            OpCode::CreateSession,
            &10_000_i32.to_be_bytes(),
            &mut begin,
        );
        body.put_string(&path(number));
        body.put_string("in a group");
        body.extend_from_slice(AclList::OPEN.wire());
        body.put_i32(0);
        Command::encode(session, 0, IdList::NONE, OpCode::Create, &body, &mut create);
        self.member.submit_to_group(group, &begin);
        self.member.submit_to_group(group, &create);
        self.settle()
    }

    fn has_in(&self, group: u32, number: usize) -> bool {
        let has = |state: &Replicated| state.tree().stat(&path(number)).is_some();
        self.member.look_at_group(group, has).unwrap_or_default()
    }

    fn standings(&self) -> Vec<GroupStanding> {
        self.member.group_standings().collect()
    }
}

#[test]
fn a_round_of_work_looks_at_the_groups_that_have_something_to_do() {
    let mut stage = start(&MemDisk::new(1), GROUPS).unwrap();
    for _ in 0..3 {
        stage.pass_time().unwrap();
    }
    let looked_at = |stage: &Stage| -> Vec<usize> {
        (1..stage.member.group_count()).filter(|at| stage.member.is_stirred(*at)).collect()
    };
    assert_eq!(looked_at(&stage), []);
    let (mut begin, timeout) = (Vec::new(), 10_000_i32.to_be_bytes());
    Command::encode(SessionId(9), 0, IdList::NONE, OpCode::CreateSession, &timeout, &mut begin);
    stage.member.submit_to_group(2, &begin);
    assert_eq!(looked_at(&stage), [2]);
    stage.settle().unwrap();
    assert_eq!(looked_at(&stage), []);
    stage.member.tick(&mut stage.shell).unwrap();
    assert_eq!(looked_at(&stage), [1, 2, 3]);
}

#[test]
fn a_member_alone_founds_its_groups_once_and_leads_them_all() {
    let disk = MemDisk::new(1);
    let mut stage = start(&disk, GROUPS).unwrap();
    assert_eq!(stage.member.group_count(), 1, "the level is raised with a tick");
    for _ in 0..3 {
        stage.pass_time().unwrap();
    }
    assert_eq!(stage.member.group_count(), GROUPS as usize);
    assert!(stage.standings().iter().all(|group| group.leads && !group.is_silent), "{:?}", stage.standings());
    stage.create_in(2, 5).unwrap();
    assert_eq!((1..GROUPS).filter(|group| stage.has_in(*group, 5)).collect::<Vec<_>>(), [2]);
    assert!(!stage.has(5), "the home group has another state");
    drop(stage);
    disk.crash();

    // A setting that asks for fewer changes nothing.
    let mut again = start(&disk, 1).unwrap();
    assert_eq!(again.member.group_count(), GROUPS as usize);
    assert!(again.has_in(2, 5));
    let terms = |stage: &Stage| stage.standings().iter().map(|group| group.term).collect::<Vec<_>>();
    assert_eq!(terms(&again), [3, 3, 3, 3], "each start begins a term, and none begins anew");
    again.pass_time().unwrap();
    drop(again);
    disk.crash();
    let mut more = start(&disk, GROUPS + 2).unwrap();
    for _ in 0..3 {
        more.pass_time().unwrap();
    }
    assert_eq!(more.member.group_count(), GROUPS as usize + 2);
    assert!(more.has_in(2, 5));
}

#[test]
fn without_the_feature_level_there_is_one_group() {
    let disk = MemDisk::new(1);
    let config = Config { known_level: FeatureLevel::WIDE_MEMBER_NUMBERS, ..with_groups(GROUPS) };
    let mut stage = Stage::start_as(&disk, config).unwrap();
    stage.live(5).unwrap();
    assert_eq!(stage.member.group_count(), 1);
}

#[test]
fn whatever_fails_what_groups_have_is_there_again() {
    const CREATES: usize = 30;
    for fault in [DiskFault::Write, DiskFault::Sync, DiskFault::SyncDir, DiskFault::Rename] {
        let mut faults = 0;
        loop {
            let disk = MemDisk::new(faults);
            let mut stage = start(&disk, GROUPS).unwrap();
            disk.fail_after(fault, faults);
            let (mut done, mut result) = (Vec::new(), Ok(()));
            for number in 0..CREATES {
                let group = 1 + number as u32 % (GROUPS - 1);
                result = stage.live(1).and_then(|()| stage.create_in(group, number));
                if result.is_err() {
                    break;
                }
                done.extend(stage.has_in(group, number).then_some((group, number)));
            }
            disk.clear_faults();
            drop(stage);
            disk.crash();
            let mut again =
                start(&disk, GROUPS).unwrap_or_else(|error| panic!("{fault:?} after {faults}: {error}"));
            let lost: Vec<_> = done.iter().filter(|(group, number)| !again.has_in(*group, *number)).collect();
            assert!(lost.is_empty(), "{fault:?} after {faults}: {lost:?}");
            for _ in 0..3 {
                again.pass_time().unwrap();
            }
            assert!(again.standings().iter().all(|group| group.leads), "{fault:?} after {faults}");
            assert_eq!(again.member.group_count(), GROUPS as usize, "{fault:?} after {faults}");
            faults += 1;
            if result.is_ok() && faults > 60 {
                assert!(done.len() > CREATES / 2, "groups are there early: {done:?}");
                break;
            }
        }
    }
}

/// The most files that the log of a member with `count` groups has at a time, of 4 KiB each: in its first life and in its second one. The groups
/// beside the home group are idle but for a write in the beginning.
fn longest_logs(count: u32) -> [usize; 2] {
    let longest = |stage: &mut Stage| {
        let lived = (0..10).map(|_| {
            stage.live(50).unwrap();
            stage.member.log.segments()
        });
        lived.max().unwrap()
    };
    let mut config = with_groups(count);
    config.settings.snapshot_log_bytes = 16 << 10;
    let disk = MemDisk::new(1);
    let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
    stage.live(5).unwrap();
    stage.create_in(1, 3).unwrap();
    let first = longest(&mut stage);
    drop(stage);
    disk.crash();
    let mut again = Stage::start_as(&disk, config).unwrap();
    assert_eq!(again.has_in(1, 3), count > 1);
    assert!((0..500).all(|number| again.has(number)));
    again.created = 2000;
    [first, longest(&mut again)]
}

#[test]
fn groups_that_are_idle_hold_no_old_files_of_the_log() {
    let (of_one, of_several) = (longest_logs(1), longest_logs(GROUPS));
    for (one, several) in of_one.into_iter().zip(of_several) {
        assert!(several < one + 4, "{of_several:?}, and {of_one:?} with one group");
    }
}

#[test]
fn a_group_is_written_to_while_its_snapshot_is_taken() {
    const BEFORE: usize = 40;
    let disk = MemDisk::new(1);
    let mut config = Config { znodes_per_slice: 2, ..with_groups(GROUPS) };
    config.settings.snapshot_writes = 1_000;
    let mut stage = Stage::start_as(&disk, config.clone()).unwrap();
    for _ in 0..3 {
        stage.pass_time().unwrap();
    }
    (0..BEFORE).for_each(|number| stage.create_in(1, number).unwrap());
    stage.shell.keeps_orders = true;
    stage.member.want_snapshot();
    let mut created = BEFORE;
    // Of each group one is taken, one behind the other.
    for taken in 0..GROUPS {
        while stage.shell.order.is_none() {
            stage.pass_time().unwrap();
        }
        let mut steps = 0;
        while stage.shell.order.is_some() || stage.shell.walk.is_some() {
            stage.shell.walk();
            stage.create_in(1, created).unwrap();
            (created, steps) = (created + 1, steps + 1);
            assert!(stage.has_in(1, created - 1), "it is answered beside the snapshot of group {taken}");
        }
        assert!(taken != 1 || steps > BEFORE / 2, "the walk of group 1 is over after {steps} slices");
    }
    let dir = config.snapshot_dir(GroupNumber(1));
    let (_, meta) = paddock_storage::snapshot::newest_valid(&disk, &dir).unwrap().found.unwrap();
    assert_eq!(meta.group, GroupNumber(1));
    stage.pass_time().unwrap();
    drop(stage);
    disk.crash();
    let again = Stage::start_as(&disk, config).unwrap();
    let lost: Vec<usize> = (0..created).filter(|number| !again.has_in(1, *number)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_survivor_does_not_begin_anew_with_several_groups() {
    let disk = MemDisk::new(1);
    let mut stage = start(&disk, GROUPS).unwrap();
    stage.live(5).unwrap();
    drop(stage);
    disk.crash();
    let refounding = Some("server.1=a:1:2:participant\n".to_owned());
    let refused = Stage::start_as(&disk, Config { refounding, ..with_groups(GROUPS) }).map(drop).unwrap_err();
    let MemberError::Recovery(RecoveryError::SeveralGroups { groups: GROUPS, .. }) = &refused else {
        panic!("{refused}");
    };
}

/// A member's new process acknowledges more than its disk had at its start: that was not acknowledged by the process before.
#[test]
fn a_member_that_was_started_again_is_admitted_to_all_groups() {
    let disks = [MemDisk::new(1), MemDisk::new(2)];
    let start = |place: usize, seed: u64| {
        Voter::start_as(&disks[place], place as MemberNumber + 1, seed, with_groups(GROUPS)).unwrap()
    };
    let mut voters = [start(0, 1), start(1, 2)];
    live_together(&mut voters);
    assert!(voters.iter().all(|voter| voter.member.group_count() == GROUPS as usize), "both have the groups");
    let place = voters.iter().position(|voter| voter.member.role() == Role::Leader).unwrap();
    if place == 1 {
        voters.reverse();
    }
    let [mut leader, follower] = voters;
    let other = 1 - place;
    let now_ms = follower.shell.now.monotonic_ms;
    drop(follower);
    disks[other].crash();
    leader.member.take(&leader.shell, [Input::LinkLost { peer: other as u64 + 1 }]);
    let (conn, ids) = (conn(), ProvenIds::default());
    let connect = ClientInput::Connect { conn, timeout_ms: 60_000, may_only_read: false, ids };
    leader.member.take(&leader.shell, [Input::Client(connect)]);
    let sent = leader.work();
    assert!(!sent.is_empty(), "the entry goes to the follower");
    let mut again = start(other, 3);
    again.shell.now.monotonic_ms = now_ms;
    let answers = again.hear(sent);
    assert!(!answers.is_empty(), "it has the entry, and was not heard otherwise");
    leader.hear(answers);
    let mut voters = [leader, again];
    if place == 1 {
        voters.reverse();
    }
    live_together(&mut voters);
    for voter in &voters {
        assert!(voter.member.group_standings().all(|group| !group.is_silent && group.leader.is_some()));
    }
}

#[test]
fn groups_know_the_split_points_and_zxids_are_stamps() {
    const WALL_MS: i64 = 1_000_000;
    let disk = MemDisk::new(1);
    let mut config = with_groups(GROUPS);
    config.settings.split_points = SplitPaths::of([path(12).as_str()]).unwrap();
    let mut stage = Stage::start_as(&disk, config).unwrap();
    let zxid = |stage: &Stage| stage.shell.state.0.borrow().tree().zxid().0;
    assert!(zxid(&stage) < 100, "they are counted while there is one group");
    stage.shell.now.wall_ms = WALL_MS;
    stage.live(10).unwrap();
    // The wall clock stands still here, and that of stamps goes on for a tick.
    let tick_ms = Member::TICK_MS as i64;
    assert!((WALL_MS..=WALL_MS + tick_ms).contains(&(zxid(&stage) >> 21)), "{}", zxid(&stage));
    assert!((1..GROUPS).all(|group| !stage.has_in(group, 12)), "the znode is not there yet");
    // A clock that goes back.
    stage.shell.now.wall_ms = 1;
    let before = zxid(&stage);
    stage.live(5).unwrap();
    assert!(zxid(&stage) > before);
    let check = |stage: &Stage| {
        assert!((1..GROUPS).all(|group| stage.has_in(group, 12) && !stage.has_in(group, 13)));
        let state = stage.shell.state.0.borrow();
        let streams = state.tree().streams();
        let acknowledged =
            streams.iter().map(|(group, stream)| (group, stream.acknowledged(), stream.last()));
        assert_eq!(acknowledged.collect::<Vec<_>>(), [(1, 1, 1), (2, 1, 1), (3, 1, 1)]);
    };
    check(&stage);
    stage.live(30).unwrap();
    drop(stage);
    disk.crash();

    // A setting without it changes nothing.
    let mut again = start(&disk, GROUPS).unwrap();
    again.pass_time().unwrap();
    check(&again);
}

#[test]
fn with_one_group_there_are_no_split_points() {
    let disk = MemDisk::new(1);
    let mut config = with_groups(1);
    config.settings.split_points = SplitPaths::of([path(2).as_str()]).unwrap();
    let mut stage = Stage::start_as(&disk, config).unwrap();
    stage.live(10).unwrap();
    let state = stage.shell.state.0.borrow();
    assert_eq!(state.tree().feature_level(), FeatureLevel::KNOWN);
    assert!(state.tree().split_points().is_empty() && state.tree().zxid().0 < 100);
}
