//! Times that the system takes for members' sockets and disks, and their sums.

use std::ops::AddAssign;

/// In nanoseconds of a member's core. They are chosen so that ensembles of six members take what `cargo xtask compare --groups` has measured for
/// theirs (docs/performance/groups.md), and have the proportions of such calls over loopback and on a local disk.
pub(crate) struct Costs;

impl Costs {
    /// A wake-up of one of its threads, with the packets that it finds.
    pub(crate) const WAKE_NS: u64 = 12_000;
    /// A packet to another member: all that leaves for that one in a round of work.
    pub(crate) const SEND_NS: u64 = 15_000;
    /// A read from another member's link, with all that has come.
    pub(crate) const RECEIVE_NS: u64 = 8_000;
    /// A read from a client's connection, with all that has come.
    pub(crate) const CLIENT_READ_NS: u64 = 5_000;
    /// Replies to a client that leave together.
    pub(crate) const CLIENT_WRITE_NS: u64 = 15_000;
    /// The system's part of a sync, without the time for which it only waits.
    pub(crate) const SYNC_NS: u64 = 40_000;
}

/// Time of one member's core, and what it was for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    /// Requests read, replies written: the workers.
    pub(crate) front_ns: u64,
    /// Order, log, state: the engine.
    pub(crate) engine_ns: u64,
    /// By [`Costs`].
    pub(crate) system_ns: u64,
    pub(crate) syncs: u64,
    /// To other members.
    pub(crate) packets: u64,
    pub(crate) letters: u64,
    pub(crate) letter_bytes: u64,
    /// Entries that it has applied in its home group.
    pub(crate) home_entries: u64,
    /// Entries that it has applied in other groups.
    pub(crate) group_entries: u64,
}

impl Spent {
    pub(crate) fn total_ns(&self) -> u64 {
        self.front_ns + self.engine_ns + self.system_ns
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.front_ns += other.front_ns;
        self.engine_ns += other.engine_ns;
        self.system_ns += other.system_ns;
        self.syncs += other.syncs;
        self.packets += other.packets;
        self.letters += other.letters;
        self.letter_bytes += other.letter_bytes;
        self.home_entries += other.home_entries;
        self.group_entries += other.group_entries;
    }
}
