//! Differences between what Apache ZooKeeper and Paddock tell those who operate them.

use std::fmt;

/// A difference in one field of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// ZooKeeper's value, and Paddock's.
    Values(String, String),
    ZooKeeperOnly(String),
    PaddockOnly(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Values(zookeeper, paddock) => write!(f, "ZooKeeper {zookeeper:?}, Paddock {paddock:?}"),
            Found::ZooKeeperOnly(value) => write!(f, "only ZooKeeper has it: {value:?}"),
            Found::PaddockOnly(value) => write!(f, "only Paddock has it: {value:?}"),
        }
    }
}

/// Kind of a difference that is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// Both have the field, with other values.
    Values,
    /// Both have it, with values that are equal by chance only.
    Chance,
    ZooKeeperOnly,
    PaddockOnly,
}

/// Fields that are meant to differ. A `*` in a field stands for any text.
#[derive(Clone, Debug)]
pub struct Difference {
    pub field: String,
    pub meant: Meant,
    pub reason: &'static str,
}

impl Difference {
    /// True if this is the difference that was found in `field`.
    pub fn covers(&self, field: &str, found: &Found) -> bool {
        let is_kind = matches!(
            (self.meant, found),
            (Meant::Values | Meant::Chance, Found::Values(..))
                | (Meant::ZooKeeperOnly, Found::ZooKeeperOnly(_))
                | (Meant::PaddockOnly, Found::PaddockOnly(_))
        );
        let is_field = match self.field.split_once('*') {
            Some((beginning, end)) => {
                field.len() >= beginning.len() + end.len()
                    && field.starts_with(beginning)
                    && field.ends_with(end)
            }
            None => field == self.field,
        };
        is_kind && is_field
    }

    /// True if it has to be found each time.
    pub fn is_steady(&self) -> bool {
        self.meant != Meant::Chance
    }
}

/// All differences that are meant to be.
pub fn differences() -> Vec<Difference> {
    let difference = |field: &str, meant, reason| Difference { field: field.to_owned(), meant, reason };
    let of_words = FIELDS.iter().map(|(field, meant, reason)| difference(field, *meant, reason));
    let metrics = METRICS.iter().flat_map(|metrics| {
        let counters = metrics.counters.iter().map(|name| (*name).to_owned());
        let names: Vec<String> =
            counters.chain(metrics.summaries.iter().map(|name| format!("*_{name}"))).collect();
        let fields =
            names.into_iter().flat_map(|name| [format!("mntr zk_{name}"), format!("/monitor {name}")]);
        fields.map(|field| Difference { field, meant: Meant::ZooKeeperOnly, reason: metrics.reason })
    });
    of_words.chain(metrics).collect()
}

/// Metrics that ZooKeeper has alone, for one reason.
struct Metrics {
    reason: &'static str,
    counters: &'static [&'static str],
    /// Those with averages, sums and the like.
    summaries: &'static [&'static str],
}

const METRICS: [Metrics; 4] = [
    Metrics {
        reason: "members speak to each other in a protocol of their own, whose metrics are paddock_member_*",
        counters: &[
            "commit_count",
            "connection_revalidate_count",
            "diff_count",
            "ensemble_auth_fail",
            "ensemble_auth_skip",
            "ensemble_auth_success",
            "learner_commit_received_count",
            "learner_proposal_received_count",
            "proposal_count",
            "quit_leading_due_to_disloyal_voter",
            "revalidate_count",
            "skip_learner_request_to_next_processor_count",
            "snap_count",
        ],
        summaries: &[
            "commit_process_time",
            "commit_propagation_latency",
            "follower_sync_time",
            "inflight_diff_count",
            "inflight_snap_count",
            "leader_unavailable_time",
            "learner_request_processor_queue_size",
            "observer_sync_time",
            "om_commit_process_time_ms",
            "om_proposal_process_time_ms",
            "proposal_ack_creation_latency",
            "proposal_latency",
            "quorum_ack_latency",
        ],
    },
    Metrics {
        reason: "it is about a stage of ZooKeeper's request pipeline; paddock_stage_seconds is about Paddock's",
        counters: &[
            "outstanding_changes_queued",
            "outstanding_changes_removed",
            "prep_processor_request_queued",
            "request_commit_queued",
            "requests_not_forwarded_to_commit_processor",
            "sync_processor_request_queued",
        ],
        summaries: &[
            "close_session_prep_time",
            "commit_commit_proc_req_queued",
            "concurrent_request_processing_in_commit_processor",
            "local_write_committed_time_ms",
            "pending_session_queue_size",
            "prep_process_time",
            "prep_processor_queue_size",
            "prep_processor_queue_time_ms",
            "propagation_latency",
            "proposal_process_time",
            "read_commit_proc_issued",
            "read_commit_proc_req_queued",
            "read_commitproc_time_ms",
            "read_final_proc_time_ms",
            "reads_after_write_in_session_queue",
            "reads_issued_from_session_queue",
            "request_throttle_queue_time_ms",
            "requests_in_session_queue",
            "server_write_committed_time_ms",
            "session_queues_drained",
            "sync_process_time",
            "sync_processor_batch_size",
            "sync_processor_queue_and_flush_time_ms",
            "sync_processor_queue_flush_time_ms",
            "sync_processor_queue_size",
            "sync_processor_queue_time_ms",
            "time_waiting_empty_pool_in_commit_processor_read_ms",
            "write_batch_time_in_commit_processor",
            "write_commit_proc_issued",
            "write_commit_proc_req_queued",
            "write_commitproc_time_ms",
            "write_final_proc_time_ms",
        ],
    },
    Metrics {
        reason: "there is no such part here: no Java process, no cache of replies, no cleaner of dead watchers, no stale requests",
        counters: &[
            "add_dead_watcher_stall_time",
            "cnxn_closed_without_zk_server_running",
            "dead_watchers_cleared",
            "dead_watchers_queued",
            "response_packet_cache_hits",
            "response_packet_cache_misses",
            "response_packet_get_children_cache_hits",
            "response_packet_get_children_cache_misses",
            "restore_error_count",
            "restore_rate_limited_count",
            "stale_replies",
            "stale_requests",
            "stale_requests_dropped",
            "stale_sessions_expired",
        ],
        summaries: &[
            "dead_watchers_cleaner_latency",
            "jvm_pause_time_ms",
            "netty_queued_buffer_capacity",
            "restore_time",
        ],
    },
    Metrics {
        reason: "it is not counted under this name; times of requests and syncs are histograms in paddock_request_seconds and paddock_stage_seconds",
        counters: &[
            "bytes_received_count",
            "connection_drop_count",
            "connection_request_count",
            "insecure_admin_count",
            "large_requests_rejected",
            "looking_count",
            "response_bytes",
            "sessionless_connections_expired",
            "snapshot_rate_limited_count",
            "unrecoverable_error_count",
            "watch_bytes",
        ],
        summaries: &[
            "a_read_per_namespace",
            "a_write_per_namespace",
            "connection_token_deficit",
            "dbinittime",
            "election_time",
            "node_changed_watch_count",
            "node_children_watch_count",
            "node_created_watch_count",
            "node_deleted_watch_count",
            "readlatency",
            "socket_closing_time",
            "startup_snap_load_time",
            "startup_txns_load_time",
            "startup_txns_loaded",
            "unavailable_time",
            "updatelatency",
        ],
    },
];

use Meant::{Chance, PaddockOnly, Values, ZooKeeperOnly};

const PLACE: &str = "each server has directories, ports and a number of its own";
const BUILD: &str = "each has its version and the date of its build";
const SIZE: &str = "each has files of its own";
const TIME: &str = "it is a time, or taken from one";
const JAVA: &str = "it is a property of Java";
const OWN_CONNECTION: &str =
    "ZooKeeper counts the connection of a four-letter word as one of a client, with a packet each way";
const OWN_LIMITS: &str = "it is about a limit that ZooKeeper does not have";
const MACHINE: &str = "the name is that of the machine, and not what its address leads to";

const MACHINE_FILES: &str = "a process in Java has other files open";
const SUMMARY: &str = "only their number is told; paddock_stage_seconds has their times";
const NOT_SYNCED: &str = "ZooKeeper was told not to wait for its disk, which Paddock always does";
const FIRST_SNAPSHOT: &str =
    "ZooKeeper takes a snapshot when it starts, Paddock when there is something to keep";
const ALONE: &str = "a member alone is a quorum of one; ZooKeeper tells it of ensembles only";
const DIGEST: &str = "ZooKeeper tells a digest after every 128 transactions, Paddock that of now";
const ENVIRONMENT: &str = "Paddock has no properties but what the environment is told by";

/// Fields of words and commands, without metrics that ZooKeeper has alone.
const FIELDS: &[(&str, Meant, &str)] = &[
    // Words.
    ("conf clientPort", Values, PLACE),
    ("conf dataDir", Values, PLACE),
    ("conf dataLogDir", Values, PLACE),
    ("conf serverId", Values, PLACE),
    ("conf data*Size", Values, SIZE),
    ("envi java.*", ZooKeeperOnly, JAVA),
    ("envi os.memory.*", ZooKeeperOnly, JAVA),
    ("envi host.name", Chance, MACHINE),
    ("envi user.dir", Values, PLACE),
    ("envi zookeeper.version", Values, BUILD),
    ("dirs *", Values, SIZE),
    ("srvr Latency min/avg/max", Chance, TIME),
    ("srvr Received", Values, OWN_CONNECTION),
    ("srvr Sent", Values, OWN_CONNECTION),
    ("srvr Zookeeper version", Values, BUILD),
    ("stat Latency min/avg/max", Chance, TIME),
    ("stat Received", Values, OWN_CONNECTION),
    ("stat Sent", Values, OWN_CONNECTION),
    ("stat connection.recved", Values, OWN_CONNECTION),
    ("stat Zookeeper version", Values, BUILD),
    ("mntr zk_*_latency", Chance, TIME),
    ("mntr zk_uptime", Chance, TIME),
    ("mntr zk_packets_*", Values, OWN_CONNECTION),
    ("mntr zk_version", Values, BUILD),
    ("mntr zk_open_file_descriptor_count", Chance, MACHINE_FILES),
    ("mntr zk_*_fsynctime", ZooKeeperOnly, SUMMARY),
    ("mntr zk_*_snapshottime", ZooKeeperOnly, SUMMARY),
    ("mntr zk_cnt_fsynctime", Values, NOT_SYNCED),
    ("mntr zk_cnt_snapshottime", Values, FIRST_SNAPSHOT),
    ("mntr zk_client_buffer_*", PaddockOnly, OWN_LIMITS),
    ("mntr zk_memory_limit_exceeded", PaddockOnly, OWN_LIMITS),
    ("mntr zk_quorum_size", PaddockOnly, ALONE),
    ("cons connection.*lat", Chance, TIME),
    ("cons connection.est", Values, TIME),
    (
        "cons connection.lresp",
        Values,
        "ZooKeeper tells a time since the machine was started, Paddock one of the calendar",
    ),
    ("cons connection.recved", Values, OWN_CONNECTION),
    ("hash #", PaddockOnly, DIGEST),
    // Commands.
    ("/configuration client_port", Values, PLACE),
    ("/configuration data_*", Values, PLACE),
    ("/configuration server_id", Values, PLACE),
    ("/connections connections.#.established", Values, TIME),
    ("/connections connections.#.last_response_time", Chance, TIME),
    ("/connections connections.#.*_latency", Chance, TIME),
    ("/connections connections.#.remote_socket_address", Values, PLACE),
    ("/dirs *", Values, SIZE),
    ("/environment java.*", ZooKeeperOnly, JAVA),
    ("/environment os.memory.*", ZooKeeperOnly, JAVA),
    ("/environment host.name", Chance, MACHINE),
    ("/environment user.dir", Values, PLACE),
    ("/environment zookeeper.version", Values, BUILD),
    ("/hash digests", Values, DIGEST),
    ("/hash digests.#.*", PaddockOnly, DIGEST),
    (
        "/initial_configuration initial_configuration",
        Values,
        "Paddock tells the settings that count, whatever file says them",
    ),
    ("/last_snapshot *", Values, FIRST_SNAPSHOT),
    ("/monitor *_fsynctime", ZooKeeperOnly, SUMMARY),
    ("/monitor *_snapshottime", ZooKeeperOnly, SUMMARY),
    ("/monitor cnt_fsynctime", Values, NOT_SYNCED),
    ("/monitor client_buffer_*", PaddockOnly, OWN_LIMITS),
    ("/monitor memory_limit_exceeded", PaddockOnly, OWN_LIMITS),
    ("/monitor quorum_size", PaddockOnly, ALONE),
    ("/monitor open_file_descriptor_count", Chance, MACHINE_FILES),
    ("/monitor packets_sent", Values, OWN_CONNECTION),
    ("/monitor uptime", Chance, TIME),
    ("/monitor version", Values, BUILD),
    ("/server_stats server_stats.*_dir_size", Values, SIZE),
    ("/server_stats server_stats.packets_sent", Values, OWN_CONNECTION),
    ("/server_stats server_stats.uptime", Chance, TIME),
    ("/server_stats version", Values, BUILD),
    ("/stats connections.#.remote_socket_address", Values, PLACE),
    ("/stats server_stats.*_dir_size", Values, SIZE),
    ("/stats server_stats.packets_sent", Values, OWN_CONNECTION),
    ("/stats server_stats.uptime", Chance, TIME),
    ("/stats version", Values, BUILD),
    ("/system_properties *", ZooKeeperOnly, JAVA),
    ("/system_properties host.name", PaddockOnly, ENVIRONMENT),
    ("/system_properties zookeeper.version", PaddockOnly, ENVIRONMENT),
    ("/system_properties os.*", Chance, MACHINE),
    ("/system_properties user.*", Chance, PLACE),
];
