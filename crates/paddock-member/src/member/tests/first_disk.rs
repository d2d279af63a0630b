//! A member that begins on a disk which is full already.

use paddock_replica::Membership;

use super::*;

const MEMBERS: &str = "server.1=one:2888:3888:participant;2181\nserver.2=other:2888:3888:participant;2181";

/// One of two voters, on its own disk.
pub(super) struct Voter {
    number: MemberNumber,
    pub(super) member: Member,
    pub(super) shell: TestShell,
}

impl Voter {
    fn start(disk: &MemDisk, number: MemberNumber, seed: u64) -> Result<Voter, RecoveryError> {
        Voter::start_as(disk, number, seed, Config::small())
    }

    pub(super) fn start_as(
        disk: &MemDisk,
        number: MemberNumber,
        seed: u64,
        config: Config,
    ) -> Result<Voter, RecoveryError> {
        let mut config = Config { member: number, seed, ..config };
        config.founding.membership = Membership::new(vec![1, 2], vec![]);
        config.founding.members = MEMBERS.to_owned();
        let now = Now { monotonic_ms: 1, wall_ms: seed as i64 * 1_000_000 };
        let (member, state) = Member::recover(Arc::new(disk.clone()), config, &now)?;
        let shell = TestShell { has_others: true, ..TestShell::new(state, now) };
        Ok(Voter { number, member, shell })
    }

    /// A tick passes. Returns the messages for the other one.
    fn pass_time(&mut self) -> Vec<Vec<u8>> {
        self.shell.now.monotonic_ms += Member::TICK_MS;
        self.member.tick(&mut self.shell).unwrap();
        self.work()
    }

    pub(super) fn work(&mut self) -> Vec<Vec<u8>> {
        while !matches!(self.member.work(&mut self.shell).unwrap(), Work::Nothing | Work::Shortage) {}
        self.shell.sent.drain(..).map(|(_, message)| message).collect()
    }

    pub(super) fn hear(&mut self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let from = u64::from(3 - self.number);
        let inputs: Vec<Input> = messages.into_iter().map(|bytes| Input::Peer { from, bytes }).collect();
        self.member.take(&self.shell, inputs);
        self.work()
    }
}

/// Ten seconds of two voters.
pub(super) fn live_together(voters: &mut [Voter; 2]) {
    for _ in 0..10_000 / Member::TICK_MS {
        let [one, other] = voters;
        let (mut to_other, mut to_one) = (one.pass_time(), other.pass_time());
        while !to_other.is_empty() || !to_one.is_empty() {
            (to_one, to_other) = (other.hear(to_other), one.hear(to_one));
        }
    }
}

/// The other voter names the ensemble to this one, whose disk has room for the identity, and none for the log. The identity would tell of a
/// log that is lost.
#[test]
fn an_identity_is_not_written_before_the_log_has_begun() {
    for room in (0..6000).step_by(100) {
        let disks = [MemDisk::new(1), MemDisk::new(2)];
        disks[1].set_capacity(Some(room));
        let mut voters = [(&disks[0], 1), (&disks[1], 2)]
            .map(|(disk, number)| Voter::start(disk, number, number.into()).unwrap());
        live_together(&mut voters);
        drop(voters);
        disks[1].crash();
        disks[1].set_capacity(None);
        Voter::start(&disks[1], 2, 3).unwrap_or_else(|error| panic!("{room} bytes: {error}"));
    }
}
