//! Mishaps of members, their links and their disks.

use paddock_chance::Chance;
use paddock_proto::jute::Writer;
use paddock_proto::{IdList, OpCode, SessionId};
use paddock_replica::Input;
use paddock_tree::Command;

use super::{Disk, Stage};

impl Stage {
    /// A member with an empty disk, whether it is new or has lost what it had.
    pub(crate) fn start_empty(&mut self, member: u64) {
        self.stop(member);
        self.disks.insert(member, Disk::default());
        self.start(member);
    }

    /// A copy of what is on the member's disk.
    pub(crate) fn copy_disk(&self, member: u64) -> Disk {
        self.disks[&member].clone()
    }

    /// Starts the member with another disk.
    pub(crate) fn start_with(&mut self, member: u64, disk: Disk) {
        self.stop(member);
        self.disks.insert(member, disk);
        self.start(member);
    }

    /// The member's process is gone; what it had synced is there.
    pub(crate) fn stop(&mut self, member: u64) {
        self.members.insert(member, None);
        self.messages.retain(|(from, to, _)| *from != member && *to != member);
    }

    /// A member's link to another one ends, and there is no other for now.
    pub(crate) fn lose_link(&mut self, member: u64, peer: u64) {
        self.step(member, Input::LinkLost { peer });
        self.settle();
    }

    /// Nothing goes in or out.
    pub(crate) fn cut(&mut self, member: u64) {
        self.cut.insert(member);
    }

    pub(crate) fn mend(&mut self, member: u64) {
        self.cut.remove(&member);
    }

    /// From now on these members reach each other, and no others.
    pub(crate) fn set_apart(&mut self, members: &[u64]) {
        self.apart = members.iter().copied().collect();
    }

    pub(crate) fn sleep(&mut self, member: u64) {
        self.asleep.insert(member);
        self.cut(member);
    }

    pub(crate) fn wake(&mut self, member: u64) {
        self.asleep.remove(&member);
        self.mend(member);
    }

    /// Keeps messages for this member until `tell` is called.
    pub(crate) fn deafen(&mut self, member: u64) {
        self.deaf.insert(member, Vec::new());
    }

    pub(crate) fn tell(&mut self, member: u64) {
        self.tell_last(member, member);
    }

    /// Delivers messages, with the messages of one member behind those of all others.
    pub(crate) fn tell_last(&mut self, member: u64, last: u64) {
        let mut kept = self.deaf.remove(&member).expect("it was deaf");
        kept.sort_by_key(|(from, _)| *from == last);
        for (from, bytes) in kept {
            self.step(member, Input::Peer { from, bytes });
        }
        self.settle();
    }

    /// The member's disk is full, or has room again.
    pub(crate) fn disk_full(&mut self, member: u64, is_full: bool) {
        self.step(member, Input::DiskFull(is_full));
        self.settle();
    }

    /// The snapshot on a member's disk loses its last byte.
    pub(crate) fn damage_snapshot(&mut self, member: u64) {
        let snapshot = self.disks.get_mut(&member).and_then(|disk| disk.snapshot.as_mut());
        snapshot.expect("it has taken one").2.pop();
    }

    /// Changes a member's state behind its back.
    pub(crate) fn corrupt(&mut self, member: u64, path: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string("corrupt");
        body.put_i32(-1);
        let mut command = Vec::new();
        Command::encode(SessionId::NONE, 0, IdList::NONE, OpCode::SetData, &body, &mut command);
        let member = self.members.get_mut(&member).and_then(Option::as_mut).expect("the member runs");
        let command = Command::decode(&command).expect("it was just encoded");
        assert!(member.state.tree_mut().apply(&command).result.is_ok());
    }

    /// The clocks of all members are set.
    pub(crate) fn set_wall_clock(&mut self, wall_ms: i64) {
        self.now.wall_ms = wall_ms;
    }

    /// Time in which no member does anything.
    pub(crate) fn pass_time(&mut self, ms: u64) {
        self.now.monotonic_ms += ms;
    }

    /// Stops, starts, cuts or mends some member, or loses some messages, but leaves a majority of disks in peace.
    pub(crate) fn disturb(&mut self, chance: &mut Chance) {
        let count = self.members.len() as u64;
        let member = 1 + chance.below(count);
        match chance.below(10) {
            0 => self.stop(member),
            1 | 2 => {
                let stopped: Vec<u64> =
                    self.members.iter().filter(|(_, m)| m.is_none()).map(|(id, _)| *id).collect();
                stopped.into_iter().for_each(|member| self.start(member));
            }
            3 => self.cut(member),
            4 | 5 => self.cut.clear(),
            6 => self.messages.truncate(self.messages.len() / 2),
            _ => {}
        }
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
        let stopped: Vec<u64> = self.members.iter().filter(|(_, m)| m.is_none()).map(|(id, _)| *id).collect();
        stopped.into_iter().for_each(|member| self.start(member));
    }
}
