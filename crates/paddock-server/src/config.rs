//! Settings of a member. Files that give them are read by the binary.

mod admin;
mod audit;
mod changes;
mod client_limits;
mod etcd;
mod kerberos;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use admin::{AdminSettings, AdminTls};
pub use audit::AuditTarget;
pub use changes::ConfigChanges;
pub use client_limits::{ClientLimits, MemoryMax};
pub use etcd::{EtcdEndpoint, EtcdSettings, EtcdTls, EtcdUser};
pub use kerberos::KerberosSettings;
use paddock_front::{
    AuditLog, ClientBuffers, ConnectThrottle, Counters, Kerberos, Limits, MemoryLimit, OutstandingLimit,
    Settings,
};
pub use paddock_front::{ConnectRate, DigestAlgorithm, PrincipalNames, SaslUsers};
pub use paddock_os::LateNames;
pub use paddock_proto::{ClientAddress, Dialect, EnsembleMember, MemberRole as Role};
use paddock_proto::{MemberNumber, SessionSecret};
use paddock_replica::{Founding, Membership, WORK_AT_ONCE, raft_id};
pub use paddock_spans::{EndpointError, TracesEndpoint, Tracing};
use paddock_state::{MemberFacts, WatchLimits};
pub use paddock_tls::{
    CallerIdentity, CipherSuite, ClientAuth, ClientTls, OneSidedStores, Password, PeerTls, PortProtocol,
    Secret, Store, TlsMode, TlsVersions,
};
use paddock_tree::{REMOVED_AT_ONCE, Tree, member_lines};

use paddock_tls::random_bytes;

/// Bytes of applied entries that are kept in memory.
const ENTRY_BYTES_KEPT: usize = 8 << 20;
/// A slice of a snapshot takes some 100 microseconds.
const ZNODES_PER_SLICE: usize = 1024;
/// Bytes of a snapshot in one message.
const PIECE_BYTES: u64 = 1 << 20;

/// The settings of one member. `Config::new` has sensible ones; change what you need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Address where clients connect. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// TLS for clients. `None` is plaintext only.
    pub tls: Option<ClientTls>,
    /// Snapshots, and the transaction log unless `log_dir` says otherwise.
    pub data_dir: PathBuf,
    /// The transaction log, if it has a disk of its own.
    pub log_dir: Option<PathBuf>,
    /// This member's number in the ensemble.
    pub member: MemberNumber,
    /// Members of the ensemble. `None` is a member alone: it has no address for peers.
    pub ensemble: Option<Ensemble>,
    /// The etcd cluster that holds the data. `None` keeps it in `data_dir`.
    pub etcd: Option<EtcdSettings>,
    /// Host and port of a server that the requests of clients also go to, and whose answers are compared with this member's.
    pub cross_check: Option<String>,
    /// Makes this member, with the data it has, an ensemble of its own: for a quorum that is lost for good. What the
    /// members that are lost had acknowledged and this one never got is lost too.
    pub recover: bool,
    /// Most voters without data found the ensemble, though the others were never heard. One of those may have the data that all are
    /// looking for.
    pub found_by_majority: bool,
    /// The unit of session expiry, in milliseconds.
    pub tick_ms: u32,
    /// A client that asks for a shorter timeout gets this one, in milliseconds.
    pub session_timeout_ms_min: u32,
    /// A client that asks for a longer timeout gets this one, in milliseconds.
    pub session_timeout_ms_max: u32,
    /// Tries to listen at an address that is not there yet, a second apart; 0 is no limit.
    pub bind_tries: u32,
    /// Names for which some of the addresses at which to listen stand in.
    pub late_names: LateNames,
    /// Connections from one address; 0 is no limit.
    pub connections_per_address_max: u32,
    /// Connections in all; 0 is no limit.
    pub connections_max: u32,
    /// The largest request in bytes. A larger one closes its connection.
    pub frame_bytes_max: i32,
    /// Bytes that clients may hold together: requests that are not answered, and replies and watch events that they have not read.
    /// One request may be larger.
    pub client_buffers_max: u64,
    pub client_limits: ClientLimits,
    /// Memory above which writes that make the state larger are refused.
    pub memory_max: MemoryMax,
    /// Whose protocol clients speak. `None` lets each connection show it.
    pub dialect: Option<Dialect>,
    /// Answer of `/keeper/availability_zone` to ClickHouse.
    pub availability_zone: Option<String>,
    /// Address where metrics are served over HTTP. `None` serves none.
    pub metrics_listen: Option<SocketAddr>,
    /// Address where the HTTP interface for administrators is served: commands, metrics, health. `None` serves none.
    pub admin_listen: Option<SocketAddr>,
    /// The HTTP interface for administrators.
    pub admin: AdminSettings,
    /// Endpoint to which spans of requests with a tracing context are exported. `None` makes none.
    pub tracing: Option<Tracing>,
    /// The four-letter words that are answered.
    pub words: WordList,
    /// Hash of passwords in digests. All members of an ensemble need the same.
    pub digest_algorithm: DigestAlgorithm,
    /// `super:` and the Base64 of the hash of `super:password`: who shows that password may do everything.
    pub super_digest: Option<String>,
    /// Users who may prove themselves by SASL. `None` is a member without SASL.
    pub sasl: Option<SaslUsers>,
    /// Kerberos, for clients that prove themselves by SASL with a ticket; it needs `sasl`.
    pub kerberos: Option<KerberosSettings>,
    /// True if limits of quotas count for the writes of this member's clients.
    pub enforce_quota: bool,
    /// Destination of a line for each write of a client. `None` is no audit log.
    pub audit_log: Option<AuditTarget>,
    /// Schemes of which a client has to show an identity before it asks for anything; empty if none has to.
    pub required_schemes: Vec<String>,
    /// Interval at which empty containers and expired TTL znodes are looked for, in milliseconds.
    pub garbage_interval_ms: u64,
    /// Number of them that are removed each time, at most.
    pub garbage_max: usize,
    /// A snapshot is taken after this many writes,
    pub snapshot_writes: u64,
    /// or after this many bytes of log, whichever comes first.
    pub snapshot_log_bytes: u64,
    /// Number of snapshots that are kept, at least 1.
    pub snapshots_kept: usize,
    /// The size of a file of the transaction log.
    pub segment_bytes: u64,
    /// True if what is written to the log from now on is compressed.
    pub log_compression: bool,
    /// Threads that serve connections; 0 lets the member choose by its cores.
    pub workers: usize,
}

impl Config {
    /// 127.0.0.1:2181 with its data in `data_dir`.
    pub fn new(data_dir: impl AsRef<Path>) -> Config {
        let tick_ms = 2000;
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 2181)),
            tls: None,
            data_dir: data_dir.as_ref().to_path_buf(),
            log_dir: None,
            member: 1,
            ensemble: None,
            etcd: None,
            cross_check: None,
            recover: false,
            found_by_majority: false,
            tick_ms,
            session_timeout_ms_min: 2 * tick_ms,
            session_timeout_ms_max: 20 * tick_ms,
            bind_tries: 3,
            late_names: LateNames::default(),
            connections_per_address_max: 60,
            connections_max: 0,
            frame_bytes_max: i32::MAX,
            client_buffers_max: ClientBuffers::MAX_BY_DEFAULT as u64,
            client_limits: ClientLimits::default(),
            memory_max: MemoryMax::BY_DEFAULT,
            dialect: None,
            availability_zone: None,
            metrics_listen: None,
            admin_listen: None,
            admin: AdminSettings::default(),
            tracing: None,
            words: WordList::Only(vec!["srvr".into()]),
            digest_algorithm: DigestAlgorithm::Sha1,
            super_digest: None,
            sasl: None,
            kerberos: None,
            enforce_quota: false,
            audit_log: None,
            required_schemes: Vec::new(),
            garbage_interval_ms: 60_000,
            garbage_max: 10_000,
            snapshot_writes: 1_000_000,
            snapshot_log_bytes: 256 << 20,
            snapshots_kept: 3,
            segment_bytes: 64 << 20,
            log_compression: false,
            workers: 0,
        }
    }

    /// The largest command of a process without other members, in bytes: a write with the identities of its client. An entry with it has
    /// room in a record of the log, and the reply to a multi of that size, whose results are up to three and a half times as large,
    /// in a frame of the client protocol.
    pub(crate) const COMMAND_BYTES_MAX: usize = 512 << 20;
    /// A command where it travels between members. Heartbeats wait while it is on its way.
    const TRAVELLING_BYTES_MAX: usize = 48 << 20;

    /// The largest command that can be written, and sent to the other members.
    fn command_bytes_max(&self) -> usize {
        if self.ensemble.is_some() { Config::TRAVELLING_BYTES_MAX } else { Config::COMMAND_BYTES_MAX }
    }

    /// The largest request that clients may send.
    pub(crate) fn request_bytes_max(&self) -> i32 {
        self.frame_bytes_max.min(self.command_bytes_max() as i32)
    }

    /// The settings of a front, which answers clients. Limits, Kerberos and the audit log are those of all fronts.
    pub(crate) fn of_front(
        &self,
        limits: &Limits,
        kerberos: Option<Kerberos>,
        audit: Option<Arc<dyn AuditLog>>,
    ) -> Settings {
        Settings {
            frame_bytes_max: self.frame_bytes_max,
            command_bytes_max: self.command_bytes_max(),
            dialect: self.dialect,
            session_timeout_ms_min: self.session_timeout_ms_min,
            session_timeout_ms_max: self.session_timeout_ms_max,
            digest_algorithm: self.digest_algorithm,
            super_digest: self.super_digest.clone(),
            sasl: self.sasl.clone().map(Arc::new),
            kerberos,
            has_certificates: self.tls.is_some(),
            required_schemes: self.required_schemes.clone(),
            linearizable_reads: self.has_linearizable_reads(),
            enforces_quotas: self.enforce_quota,
            audit,
            may_reconfig: self.may_reconfig(),
            limits: Limits { sessions_max: or_none(self.client_limits.sessions_max), ..limits.clone() },
        }
    }

    /// Sets those limits that all fronts share to what they are here.
    pub(crate) fn adjust(&self, limits: &Limits) {
        limits.counters.buffers.set_max(usize::try_from(self.client_buffers_max).unwrap_or(usize::MAX));
        limits.counters.outstanding.set_max(or_none(self.client_limits.outstanding_max));
        limits.counters.connects.set_rate(self.client_limits.connect_rate);
        limits.counters.memory.set_max(self.memory_max.bytes());
    }

    /// The limits of all clients of this member.
    pub(crate) fn limits(&self) -> Limits {
        let limits = &self.client_limits;
        let client_buffers_max = usize::try_from(self.client_buffers_max).unwrap_or(usize::MAX);
        let counters = Counters {
            buffers: Arc::new(ClientBuffers::new(client_buffers_max)),
            outstanding: Arc::new(OutstandingLimit::new(or_none(limits.outstanding_max))),
            connects: Arc::new(ConnectThrottle::new(limits.connect_rate)),
            memory: Arc::new(MemoryLimit::new(self.memory_max.bytes())),
            ..Counters::default()
        };
        Limits { counters, ..Limits::default() }
    }

    /// The watches that clients of this member may set.
    pub(crate) fn watch_limits(&self) -> WatchLimits {
        WatchLimits {
            per_connection_max: self.client_limits.watches_per_session_max as usize,
            max: self.client_limits.watches_max as usize,
        }
    }

    /// Facts of this member that clients may ask for.
    pub(crate) fn facts(&self) -> MemberFacts {
        MemberFacts {
            request_bytes_max: Some(self.frame_bytes_max),
            availability_zone: self.availability_zone.clone(),
        }
    }

    /// The settings of the member, which concern neither clients nor the network.
    pub(crate) fn of_member(&self) -> paddock_member::Config {
        paddock_member::Config {
            data_dir: self.data_dir.clone(),
            log_dir: self.log_dir.clone(),
            member: self.member,
            founding: self.founding(),
            refounding: self.refounding(),
            tick_ms: u64::from(self.tick_ms),
            garbage_interval_ms: self.garbage_interval_ms,
            garbage_max: self.garbage_max,
            removed_at_once: REMOVED_AT_ONCE,
            work_at_once: WORK_AT_ONCE,
            long_list: Tree::LONG_LIST,
            snapshot_writes: self.snapshot_writes,
            snapshot_log_bytes: self.snapshot_log_bytes,
            snapshots_kept: self.snapshots_kept,
            znodes_per_slice: ZNODES_PER_SLICE,
            piece_bytes: PIECE_BYTES,
            segment_bytes: self.segment_bytes,
            log_compression: self.log_compression,
            // No follower lags behind a member alone.
            entry_bytes_kept: if self.ensemble.is_some() { ENTRY_BYTES_KEPT } else { 0 },
            linearizable_reads: self.has_linearizable_reads(),
            // With one group zxids are counted.
            stamps: false,
            lease_clock_bound_ms: self.ensemble.as_ref().and_then(|ensemble| ensemble.lease_clock_bound_ms),
            secret: SessionSecret(random_bytes()),
            // The standard library's hash tables are seeded by the system's chance.
            seed: RandomState::new().hash_one(()),
        }
    }

    pub(crate) fn has_linearizable_reads(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.linearizable_reads)
    }

    pub(crate) fn may_reconfig(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.reconfig_enabled)
    }

    /// With whom an ensemble is begun.
    fn founding(&self) -> Founding {
        let Some(ensemble) = &self.ensemble else {
            let membership = Membership::new(vec![raft_id(self.member)], vec![]);
            return Founding {
                membership,
                members: String::new(),
                by_majority: false,
                files_change_members: false,
            };
        };
        let with = |role| {
            let members = ensemble.members.iter().filter(move |member| member.role == role);
            members.map(|member| raft_id(member.id)).collect()
        };
        Founding {
            membership: Membership::new(with(Role::Participant), with(Role::Observer)),
            members: member_lines(&ensemble.members),
            by_majority: self.found_by_majority,
            files_change_members: !ensemble.reconfig_enabled,
        }
    }

    /// The lines of the ensemble that a survivor begins.
    fn refounding(&self) -> Option<String> {
        let ensemble = self.ensemble.as_ref().filter(|_| self.recover)?;
        let own = ensemble.members.iter().filter(|member| member.id == self.member).cloned();
        let own: Vec<EnsembleMember> =
            own.map(|own| EnsembleMember { role: Role::Participant, ..own }).collect();
        Some(member_lines(&own))
    }

    /// Protocol at `listen`.
    pub(crate) fn protocol_at_listen(&self) -> PortProtocol {
        self.tls.as_ref().map_or(PortProtocol::Plaintext, |tls| tls.at_listen)
    }

    /// The address of a port on which clients speak TLS only.
    pub(crate) fn tls_address(&self) -> Option<SocketAddr> {
        let tls = self.tls.as_ref()?;
        tls.listen.or((tls.at_listen == PortProtocol::Tls).then_some(self.listen))
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.log_dir.clone().unwrap_or_else(|| self.data_dir.clone()).join("log")
    }

    pub(crate) fn worker_count(&self) -> usize {
        match self.workers {
            // One core is for the engine; on few cores fewer threads are faster.
            0 => (std::thread::available_parallelism().map_or(1, |n| n.get()) / 2).clamp(1, 64),
            n => n,
        }
    }
}

/// A limit of which 0 is none.
fn or_none(max: u32) -> usize {
    if max == 0 { usize::MAX } else { max as usize }
}

/// Members of an ensemble when it begins, and the ways in which they reach each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ensemble {
    /// By rising id. Each id stands here once, and `Config::member` is one of them.
    pub members: Vec<EnsembleMember>,
    /// True if peers may connect to any address of this machine, not only to those that this member's `host` names.
    pub listen_on_all_addresses: bool,
    /// True if clients may change who belongs to the ensemble.
    pub reconfig_enabled: bool,
    /// True if every read sees what was written anywhere before it was asked. Otherwise a member answers with what it
    /// knows, and only a sync asks the quorum.
    pub linearizable_reads: bool,
    /// Drift between the members' clocks, in milliseconds in a second at most, if a leader that was confirmed within the
    /// last second may answer syncs and linearizable reads without being confirmed again.
    pub lease_clock_bound_ms: Option<u64>,
    /// Links without TLS if there is none.
    pub tls: Option<PeerTls>,
}

/// The four-letter words that are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordList {
    All,
    Only(Vec<String>),
}

impl WordList {
    pub(crate) fn allows(&self, word: &str) -> bool {
        match self {
            WordList::All => true,
            WordList::Only(words) => words.iter().any(|allowed| allowed == word),
        }
    }
}
