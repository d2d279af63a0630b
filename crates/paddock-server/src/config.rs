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
pub use client_limits::{ClientLimits, MemoryMax};
pub use etcd::{EtcdEndpoint, EtcdSettings, EtcdTls, EtcdUser};
pub use kerberos::KerberosSettings;
use paddock_front::{
    AuditLog, ClientBuffers, ConnectThrottle, Counters, Kerberos, Limits, MemoryLimit, OutstandingLimit,
    RateLimits, Settings,
};
pub use paddock_front::{ConnectRate, DigestAlgorithm, PrincipalNames, SaslUsers};
pub use paddock_member::MemberSettings;
pub use paddock_os::LateNames;
pub use paddock_proto::{ClientAddress, Dialect, EnsembleMember, MemberRole as Role};
use paddock_proto::{MemberNumber, SessionSecret};
use paddock_replica::{Founding, Membership, WORK_AT_ONCE, raft_id};
pub use paddock_settings::ConfigChanges;
use paddock_settings::{COUNT_MAX, MILLISECONDS_MAX, settings};
pub use paddock_spans::{EndpointError, TracesEndpoint, Tracing};
use paddock_state::{MemberFacts, WatchLimits};
pub use paddock_tls::{
    CallerIdentity, CipherSuite, ClientAuth, ClientTls, OneSidedStores, Password, PeerTls, PortProtocol,
    Secret, Store, TlsMode, TlsVersions,
};
use paddock_tree::{FeatureLevel, REMOVED_AT_ONCE, Tree, member_lines};
pub use paddock_tree::{SplitPathError, SplitPaths};

use paddock_tls::random_bytes;

/// The unit of session expiry by default, in milliseconds.
const TICK_MS: u32 = 2000;
/// A slice of a snapshot takes some 100 microseconds.
const ZNODES_PER_SLICE: usize = 1024;
/// Bytes of a snapshot in one message.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;
/// Memory in bytes for the end of the log when a member starts.
const LOG_BYTES_HELD: usize = 64 << 20;

settings! {
    /// The settings of one server. [`Config::new`] has sensible ones; change what you need. They are taken as they are: the
    /// ranges that `docs/configuration.md` tells are checked where files are read. Links in the texts of fields lead into that page.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Address where clients connect. Port 0 takes any free port.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 2181)), form("address:port", "`127.0.0.1:2181`"), at_restart;
        /// Directory of the snapshots, and of the transaction log unless `log_dir` is set.
        data_dir: PathBuf = PathBuf::from("paddock-data"), form("path", "`paddock-data`"), at_restart;
        /// Directory of the transaction log, if it has a disk of its own.
        log_dir: Option<PathBuf> = None, form("path", "`data_dir`"), at_restart;
        /// This member's number in the ensemble; data belongs to the number that wrote it.
        member: MemberNumber = 1, form("0 to 2147483647", "`ZOO_MY_ID`, or 1"), at_restart;
        /// The unit of session expiry.
        tick_ms: u32 = TICK_MS, number("milliseconds", 1..=MILLISECONDS_MAX), at_restart;
        /// Shortest session timeout: a client that asks for less gets this one. With short timeouts clients are disconnected sooner when
        /// their member [loses contact](protocol.md#without-contact-to-a-quorum).
        session_timeout_ms_min: u32 = 2 * TICK_MS,
            number("milliseconds", 1..=MILLISECONDS_MAX, default "2 × `tick_ms`"), while_running;
        /// Longest session timeout: a client that asks for more gets this one.
        session_timeout_ms_max: u32 = 20 * TICK_MS,
            number("milliseconds", 1..=MILLISECONDS_MAX, default "20 × `tick_ms`"), while_running;
        /// Tries to listen at a name that cannot be looked up, or an address that this machine does not have, at each port: for other
        /// members, clients, metrics and the HTTP interface; a second apart, while all else goes on. 0 is for ever, as under Kubernetes.
        /// A name on the command line has to be known at the start.
        bind_tries: u32 = 3, number("tries", 0..=COUNT_MAX), at_restart;
        /// Connections from one address; 0 is no limit.
        connections_per_address_max: u32 = 60, number("connections", 0..=COUNT_MAX), while_running;
        /// Connections in all; 0 is no limit.
        connections_max: u32 = 0, number("connections", 0..=COUNT_MAX), while_running;
        /// The largest request; a larger one closes its connection. 512 MiB is the most, and 48 MiB in an ensemble, whatever this says.
        frame_bytes_max: i32 = i32::MAX, number("bytes", 1..=i32::MAX as i64), while_running;
        /// Bytes that clients may hold together: requests that are not answered, and replies and watch events that they have not read;
        /// [clients that do not read](#clients-that-do-not-read). One request may be larger.
        client_buffers_max: u64 = ClientBuffers::MAX_BY_DEFAULT as u64, number("bytes", 1 << 20..=i64::MAX), while_running;
        /// Resident memory [above which nothing may grow](#a-member-without-memory); a share is one of the control group's limit, or of
        /// the machine.
        memory_max: MemoryMax = MemoryMax::BY_DEFAULT, form("bytes, `\"N%\"` or `\"unlimited\"`", "`\"90%\"`"), while_running;
        /// Protocol that clients speak ([protocol.md](protocol.md)): by default each connection shows it, otherwise all have the same.
        dialect: Option<Dialect> = None,
            form("`\"each\"`, `\"zookeeper\"` or `\"clickhouse\"`", "`\"each\"`"), at_restart;
        /// Place of this member, for ClickHouse's `prefer_local_availability_zone`: the answer of `/keeper/availability_zone`.
        availability_zone: Option<String> = None, form("text", "none"), while_running;
        /// Address where [metrics](#metrics) are served over HTTP.
        metrics_listen: Option<SocketAddr> = None, form("address:port", "none"), at_restart;
        /// Address where the [HTTP interface](#the-http-interface) for administrators is served: commands, metrics, health.
        admin_listen: Option<SocketAddr> = None, form("address:port", "none"), at_restart;
        /// The four-letter words that are answered; `["*"]` is all.
        words: WordList = WordList::Only(vec!["srvr".into()]), form("list of words", "`[\"srvr\"]`"), while_running;
        /// Hash of passwords in ids of the scheme `digest`; the same at all members. ACLs that are there keep their hashes.
        digest_algorithm: DigestAlgorithm = DigestAlgorithm::Sha1,
            form("`\"SHA1\"`, `\"SHA-256\"` or `\"SHA-512\"`", "`\"SHA1\"`"), at_restart;
        /// Hash of `super:PASSWORD`: who authenticates so may do everything.
        super_digest: Option<String> = None, form("`super:` and Base64", "none"), while_running;
        /// Schemes of which a client has to show an identity before it asks for anything; `[]` asks for none.
        required_schemes: Vec<String> = Vec::new(),
            form("list of `\"digest\"`, `\"ip\"`, `\"sasl\"`, `\"x509\"`", "`[]`"), while_running;
        /// Destination of a line for each write of a client: [the audit log](#the-audit-log).
        audit_log: Option<AuditTarget> = None, form("path, or `\"log\"`", "none"), at_restart;
        /// Host and port of a server that the requests of clients also go to, to [compare its answers](#cross-check).
        cross_check: Option<String> = None, form("host:port", "none"), at_restart;
        /// True if limits of [quotas](protocol.md#quotas) count for the writes of this member's clients; the same at all members.
        enforce_quota: bool = false, flag, while_running;
        /// Threads that serve connections; 0 chooses by the number of cores.
        workers: usize = 0, number("threads", 0..=1024), at_restart;
        /// Limits of all clients together.
        client_limits: ClientLimits = ClientLimits::default(), part, elsewhere;
        /// Settings of the member, as it takes them.
        member_settings: MemberSettings = MemberSettings::default(), part, elsewhere;

        /// Members of the ensemble. `None` is a member alone: it has no address for peers.
        ensemble: Option<Ensemble> = None, section, elsewhere;
        /// The etcd cluster that holds the data. `None` keeps it in `data_dir`.
        etcd: Option<EtcdSettings> = None, section, at_restart;
        /// TLS for clients. `None` is plaintext only.
        tls: Option<ClientTls> = None, section, elsewhere;
        /// The HTTP interface for administrators.
        admin: AdminSettings = AdminSettings::default(), section, elsewhere;
        /// Users who may prove themselves by SASL. `None` is a member without SASL.
        sasl: Option<SaslUsers> = None, section, while_running;
        /// Kerberos, for clients that prove themselves by SASL with a ticket; it needs `sasl`.
        kerberos: Option<KerberosSettings> = None, section, at_restart;
        /// Endpoint to which spans of requests with a tracing context are exported. `None` makes none.
        tracing: Option<Tracing> = None, section, at_restart;
        /// Names for which some of the addresses at which to listen stand in.
        late_names: LateNames = LateNames::default(), section, elsewhere;
        /// Makes this member, with the data it has, an ensemble of its own: for a quorum that is lost for good. What the
        /// members that are lost had acknowledged and this one never got is lost too. A matter of the command line.
        recover: bool = false, section, elsewhere;
        /// Most voters without data found the ensemble, though the others were never heard. One of those may have the data that all are
        /// looking for. A matter of the command line.
        found_by_majority: bool = false, section, elsewhere;
    }
}

impl Config {
    /// Settings by default, with 127.0.0.1:2181 for clients and the data in `data_dir`, which is made if it is not there.
    pub fn new(data_dir: impl AsRef<Path>) -> Config {
        Config { data_dir: data_dir.as_ref().to_path_buf(), ..Config::default() }
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
        limits.counters.rates.set(&self.client_limits.rate_limits, self.client_limits.rate_wait_ms_max);
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
            rates: Arc::new(RateLimits::new(&limits.rate_limits, limits.rate_wait_ms_max)),
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
        let mut settings = self.member_settings.clone();
        if self.ensemble.is_none() {
            // No follower lags behind a member alone.
            settings.entry_bytes_kept = 0;
        }
        if self.admin_listen.is_none() {
            // Changes are followed over the HTTP interface only.
            settings.change_bytes_kept = 0;
        }
        // As much of the log is there behind a start as before it, for members that lag and for those who follow changes.
        let log_bytes_held = LOG_BYTES_HELD.max(settings.entry_bytes_kept).max(settings.change_bytes_kept);
        paddock_member::Config {
            data_dir: self.data_dir.clone(),
            log_dir: self.log_dir.clone(),
            member: self.member,
            founding: self.founding(),
            refounding: self.refounding(),
            settings,
            tick_ms: u64::from(self.tick_ms),
            removed_at_once: REMOVED_AT_ONCE,
            work_at_once: WORK_AT_ONCE,
            long_list: Tree::LONG_LIST,
            znodes_per_slice: ZNODES_PER_SLICE,
            piece_bytes: PIECE_BYTES,
            log_bytes_held,
            linearizable_reads: self.has_linearizable_reads(),
            // With one group zxids are counted.
            stamps: false,
            known_level: FeatureLevel::KNOWN,
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
    /// Every word there is, also those by which anyone may see addresses and sessions of clients.
    All,
    /// These words, each of four letters, such as `srvr`; none if the list is empty.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_its_settings_as_they_are() {
        let member_settings =
            MemberSettings { entry_bytes_kept: 7, snapshots_kept: 5, ..MemberSettings::default() };
        let alone = Config { member_settings: member_settings.clone(), ..Config::default() };
        let admin_listen = Some(([127, 0, 0, 1], 8080).into());
        let of_ensemble = Config { ensemble: Some(Ensemble::default()), admin_listen, ..alone.clone() };
        assert_eq!(of_ensemble.of_member().settings, member_settings);
        // No follower lags behind a member alone, and its changes are followed over the HTTP interface only.
        let expected = MemberSettings { entry_bytes_kept: 0, change_bytes_kept: 0, ..member_settings };
        assert_eq!(alone.of_member().settings, expected);
    }
}
