//! Setup of the members of a simulated ensemble: the one place that knows their settings.

use std::sync::Arc;

use paddock_chance::Chance;
use paddock_front::{ClientBuffers, Counters, DigestAlgorithm, Limits};
use paddock_member::{Config, MemberSettings};
use paddock_proto::{MemberNumber, MemberRole, SessionSecret};
use paddock_replica::{Founding, Membership, WORK_AT_ONCE, raft_id};
use paddock_tree::{FeatureLevel, SplitPaths, Tree};

use crate::answer_limits::AnswerLimits;
use crate::machine::DATA_DIR;
use crate::names;
use crate::numbering::Numbering;

/// Settings that all members share. Small numbers: so a minute of simulated life has what takes days elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Machines of the ensemble, as its configuration calls them.
    pub(crate) hosts: &'static str,
    pub(crate) members: u8,
    pub(crate) numbering: Numbering,
    /// Raft groups that there are to be, with the home group.
    pub(crate) groups: u32,
    /// Replicas of each group beside the home group; 0 for one on each member.
    pub(crate) replicas: u32,
    /// Slots of split points move to other groups than the home group.
    pub(crate) moves_slots: bool,
    /// Number of members, the last ones, that found it without a vote.
    pub(crate) observers: u8,
    /// Machines that are not among those who found the ensemble, and may join it.
    pub(crate) spares: u8,
    /// Most of the voters without data are enough to found it.
    pub(crate) founds_by_majority: bool,
    /// Members follow their configurations, which name those who found it, and for a spare also itself.
    pub(crate) files_change_members: bool,
    /// The unit of session expiry, in milliseconds.
    pub(crate) tick_ms: u64,
    /// Threads that serve connections.
    pub(crate) workers: usize,
    pub(crate) garbage_interval_ms: u64,
    /// Commands and changes that are applied before others may have the state.
    pub(crate) work_at_once: usize,
    /// Children of a znode above which its list is copied in portions.
    pub(crate) long_list: u32,
    pub(crate) snapshot_writes: u64,
    pub(crate) snapshot_log_bytes: u64,
    pub(crate) snapshots_kept: usize,
    pub(crate) znodes_per_slice: usize,
    pub(crate) piece_bytes: u64,
    pub(crate) segment_bytes: u64,
    /// Starts of a thousand whose terms as a leader have stamps for zxids.
    pub(crate) stamping: u64,
    /// Starts of a thousand that compress the log from then on.
    pub(crate) compressing: u64,
    pub(crate) entry_bytes_kept: usize,
    pub(crate) linearizable_reads: bool,
    pub(crate) lease_clock_bound_ms: Option<u64>,
    /// Founders begin with a build that knows of no feature levels, and are upgraded.
    pub(crate) upgrades: Option<Upgrades>,
    pub(crate) limits: Limits,
    /// Bytes that the clients of a member may hold together.
    pub(crate) client_buffers_max: usize,
}

/// Upgrades of the machines that found an ensemble, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upgrades {
    /// All are upgraded in the end; otherwise one of them never is.
    pub(crate) completes: bool,
}

impl Settings {
    /// More than the clocks drift apart, if leases are used: one may run that much faster than another.
    pub(crate) const LEASE_CLOCK_BOUND_MS: u64 = 150;

    /// Znodes that a transaction removes at most where a command removes more.
    pub(crate) const REMOVED_AT_ONCE: usize = 2;

    pub(crate) fn throw(members: u8, spares: u8, chance: &mut Chance) -> Settings {
        Settings {
            hosts: names::OWN_HOSTS,
            members,
            numbering: Numbering::Machines,
            groups: 1,
            replicas: 0,
            moves_slots: false,
            observers: 0,
            spares,
            founds_by_majority: false,
            files_change_members: false,
            tick_ms: *chance.pick(&[250, 500, 1000, 2000]),
            workers: chance.between(1, 3) as usize,
            garbage_interval_ms: chance.between(500, 10_000),
            work_at_once: WORK_AT_ONCE,
            long_list: Tree::LONG_LIST,
            snapshot_writes: *chance.pick(&[20, 50, 100, 300, 1000]),
            snapshot_log_bytes: *chance.pick(&[8 << 10, 64 << 10, 1 << 20]),
            snapshots_kept: chance.between(1, 3) as usize,
            znodes_per_slice: chance.between(1, 20) as usize,
            piece_bytes: chance.between(50, 5000),
            segment_bytes: *chance.pick(&[1 << 10, 4 << 10, 16 << 10, 64 << 10]),
            entry_bytes_kept: *chance.pick(&[0, 500, 5000, 50_000]),
            linearizable_reads: chance.one_in(4),
            lease_clock_bound_ms: chance.one_in(4).then_some(Settings::LEASE_CLOCK_BOUND_MS),
            compressing: *chance.pick(&[0, 0, 500, 1000]),
            stamping: 0,
            upgrades: None,
            limits: Limits::default(),
            client_buffers_max: ClientBuffers::MAX_BY_DEFAULT,
        }
    }

    /// In half of the runs, connections that ask for much are not read from for a while.
    pub(crate) fn throw_limits(&mut self, chance: &mut Chance) {
        if chance.one_in(2) {
            self.limits.waiting_max = *chance.pick(&[1, 2, 5, 20]);
            self.limits.unsent_bytes_max = *chance.pick(&[100, 1000, 10_000]);
            self.limits.first_reply_bytes = *chance.pick(&[1, 100, 1000]);
            self.limits.reads_per_lock = *chance.pick(&[1, 2, 5, 256]);
            self.limits.watches_per_turn = *chance.pick(&[1, 2, 1000]);
            self.limits.turn_bytes_max = *chance.pick(&[1, 100, 1000, 128 << 10]);
            self.limits.little_bytes = *chance.pick(&[100, 1000, 16 << 10]);
            self.client_buffers_max = *chance.pick(&[1000, 10_000, 100_000]);
        }
    }

    /// True if a few requests of clients fill the buffers of all connections.
    pub(crate) fn has_small_buffers(&self) -> bool {
        self.client_buffers_max < ClientBuffers::MAX_BY_DEFAULT
    }

    /// Most members do little at once: others have the state between two commands, and lists of few children are long.
    pub(crate) fn throw_portions(&mut self, chance: &mut Chance) {
        self.work_at_once = *chance.pick(&[1, 1, 1, 3, 10, WORK_AT_ONCE]);
        if !chance.one_in(4) {
            self.long_list = *chance.pick(&[1, 2, 3, 5]);
            self.limits.children_per_turn = *chance.pick(&[1, 1, 2, 3]);
        }
        self.founds_by_majority = chance.one_in(2);
        self.files_change_members = chance.one_in(4);
    }

    /// Limits of its members that their answers show.
    pub(crate) fn answer_limits(&self) -> AnswerLimits {
        let (watches_per_turn, list_bytes_max) = (self.limits.watches_per_turn, self.client_buffers_max);
        AnswerLimits { watches_per_turn, list_bytes_max }
    }

    pub(crate) fn machines(&self) -> u8 {
        self.members + self.spares
    }

    /// Numbers of all members that there may be.
    pub(crate) fn all_numbers(&self) -> Vec<MemberNumber> {
        (1..=self.members + self.spares).map(|machine| self.numbering.number(machine)).collect()
    }

    pub(crate) fn is_spare(&self, member: u8) -> bool {
        member > self.members
    }

    pub(crate) fn is_observer(&self, member: u8) -> bool {
        (self.members - self.observers + 1..=self.members).contains(&member)
    }

    /// Split points that there are to be where there are several groups: znodes that clients create, delete and give other ACLs.
    pub(crate) fn split_points(&self) -> SplitPaths {
        SplitPaths::of(names::SPLIT_POINTS).expect("none lies below another")
    }

    /// Feature level that the build knows with which a machine begins.
    pub(crate) fn first_build(&self, member: u8) -> FeatureLevel {
        let is_old = self.upgrades.is_some() && !self.is_spare(member);
        if is_old { FeatureLevel::NONE } else { FeatureLevel::KNOWN }
    }

    /// The configuration of a member that is started with dice of its own, and a build that knows these feature levels.
    pub(crate) fn config(&self, member: u8, seed: u64, known_level: FeatureLevel) -> Config {
        let mut secret = Chance::of(seed, "secret");
        Config {
            data_dir: DATA_DIR.into(),
            log_dir: None,
            member: self.numbering.number(member),
            founding: self.founding(member),
            refounding: None,
            tick_ms: self.tick_ms,
            settings: MemberSettings {
                garbage_interval_ms: self.garbage_interval_ms,
                garbage_max: 5,
                snapshot_writes: self.snapshot_writes,
                snapshot_log_bytes: self.snapshot_log_bytes,
                snapshots_kept: self.snapshots_kept,
                segment_bytes: self.segment_bytes,
                log_compression: Chance::of(seed, "compression").permille(self.compressing),
                entry_bytes_kept: self.entry_bytes_kept,
                change_bytes_kept: self.entry_bytes_kept,
                feature_level_max: FeatureLevel::KNOWN.0.into(),
                group_count: self.groups,
                group_replicas: self.replicas,
                split_points: self.split_points(),
            },
            removed_at_once: Settings::REMOVED_AT_ONCE,
            work_at_once: self.work_at_once,
            long_list: self.long_list,
            znodes_per_slice: self.znodes_per_slice,
            piece_bytes: self.piece_bytes,
            log_bytes_held: *Chance::of(seed, "held log").pick(&[0, 1000, 20_000]),
            linearizable_reads: self.linearizable_reads,
            known_level,
            stamps: Chance::of(seed, "stamps").permille(self.stamping),
            lease_clock_bound_ms: self.lease_clock_bound_ms,
            secret: SessionSecret(std::array::from_fn(|at| secret.below(256) as u8 ^ at as u8)),
            seed,
        }
    }

    /// The settings of a member's front.
    pub(crate) fn front(&self) -> paddock_front::Settings {
        paddock_front::Settings {
            frame_bytes_max: 1 << 20,
            command_bytes_max: 1 << 20,
            dialect: None,
            session_timeout_ms_min: 2 * self.tick_ms as u32,
            session_timeout_ms_max: 20 * self.tick_ms as u32,
            digest_algorithm: DigestAlgorithm::Sha1,
            super_digest: names::identities(names::SUPER).first().map(|digest| digest.id.clone()),
            sasl: None,
            kerberos: None,
            has_certificates: false,
            required_schemes: Vec::new(),
            linearizable_reads: self.linearizable_reads,
            enforces_quotas: true,
            audit: None,
            may_reconfig: true,
            // What clients hold is a matter of one process.
            limits: Limits {
                counters: Counters {
                    buffers: Arc::new(ClientBuffers::new(self.client_buffers_max)),
                    ..Counters::default()
                },
                identities_max: names::IDENTITIES_MAX,
                ..self.limits.clone()
            },
        }
    }

    /// Founding of a member. One that joins later has its own line in its configuration, too. One alone is no ensemble.
    fn founding(&self, member: u8) -> Founding {
        let all: Vec<u8> =
            (1..=self.members).chain(Some(member).filter(|member| self.is_spare(*member))).collect();
        let role = |id: u8| if self.is_observer(id) { MemberRole::Observer } else { MemberRole::Participant };
        let lines =
            all.iter().map(|id| names::member_at(self.hosts, self.numbering.number(*id), role(*id)) + "\n");
        let members = if self.members == 1 { String::new() } else { lines.collect() };
        let (learners, voters) = all.iter().partition(|id| self.is_observer(**id));
        let ids = |some: Vec<&u8>| some.into_iter().map(|id| raft_id(self.numbering.number(*id))).collect();
        let membership = Membership::new(ids(voters), ids(learners));
        Founding {
            membership,
            members,
            by_majority: self.founds_by_majority,
            files_change_members: self.files_change_members,
        }
    }
}
