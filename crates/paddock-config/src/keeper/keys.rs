//! Keys of ClickHouse Keeper that set nothing here, each with the reason. `docs/configuration-keys.md` has them with examples.
//!
//! A `*` at the end of a key stands for all keys that begin so.

use super::super::known_keys::Otherwise::{Refuse, Warn};
use super::super::known_keys::{Fixed, Meaningless};

const OWN_TIMES: &str = "members watch each other by times of their own";
const OWN_LIMITS: &str = "Paddock has no such cache or queue, or sets its size itself";
const OWN_LOG: &str = "files of the log are reserved in full";
const OWN_RAFT: &str = "Paddock's Raft has no such choice";
const SILENCE: &str = "a connection that is silent for the session's timeout is closed";
const NO_S3: &str = "it counts only with s3_snapshot.endpoint";
const OWN_HTTP: &str = "the HTTP server has limits and routes of its own";
const FEATURES: &str = "ClickHouse is told of every feature that Paddock has, and of all that it has";
const NO_DISKS: &str = "data is kept in directories only; name them by storage_path";

pub(super) const MEANINGLESS: &[Meaningless] = &[
    ("logger.*", "logs go to standard error, in the form of --log-format"),
    ("prometheus.*", "all metrics that there are are served together"),
    ("listen_try", "the member must be able to listen where it is told to"),
    ("listen_backlog", OWN_LIMITS),
    ("listen_reuse_port", OWN_LIMITS),
    ("interserver_listen_host", "members listen to each other at every address"),
    ("keeper_server.enable_ipv6", "listen_host says at which addresses the member listens"),
    ("keeper_server.socket_receive_timeout_sec", SILENCE),
    ("keeper_server.socket_send_timeout_sec", SILENCE),
    ("keeper_server.tcp_nodelay", "answers always leave at once"),
    ("keeper_server.digest_enabled", "log and snapshots always carry checksums, and are verified on load"),
    (
        "keeper_server.digest_enabled_on_commit",
        "log and snapshots always carry checksums, and are verified on load",
    ),
    ("keeper_server.create_snapshot_on_exit", "a member starts from its log as well"),
    ("keeper_server.upload_snapshot_on_exit", NO_S3),
    ("keeper_server.ignore_system_path_on_startup", "/keeper is computed"),
    ("keeper_server.hostname_checks_enabled", "hosts are always looked at"),
    ("keeper_server.cgroups_memory_observer_wait_time", "memory is looked at ten times a second"),
    ("keeper_server.client_password*", "it is empty"),
    ("keeper_server.http_control.*", OWN_HTTP),
    ("keeper_server.http_*", OWN_HTTP),
    ("keeper_server.s3_snapshot.*", NO_S3),
    ("keeper_server.coordination_settings.operation_timeout_ms", OWN_TIMES),
    ("keeper_server.coordination_settings.heart_beat_interval_ms", OWN_TIMES),
    ("keeper_server.coordination_settings.election_timeout_*", OWN_TIMES),
    ("keeper_server.coordination_settings.leadership_expiry_ms", OWN_TIMES),
    ("keeper_server.coordination_settings.sleep_before_leader_change_ms", OWN_TIMES),
    ("keeper_server.coordination_settings.startup_timeout", OWN_TIMES),
    ("keeper_server.coordination_settings.shutdown_timeout", OWN_TIMES),
    ("keeper_server.coordination_settings.session_shutdown_timeout", OWN_TIMES),
    (
        "keeper_server.coordination_settings.ttl_gc_*",
        "expired TTL znodes are looked for with empty containers",
    ),
    (
        "keeper_server.coordination_settings.reserved_log_items",
        "what is no longer needed is removed after each snapshot",
    ),
    ("keeper_server.coordination_settings.auto_forwarding", "a member always passes writes on to the leader"),
    ("keeper_server.coordination_settings.raft_logs_level", "--log and PADDOCK_LOG say what is logged"),
    (
        "keeper_server.coordination_settings.rotate_log_storage_interval",
        "a file of the log has the size of max_log_file_size",
    ),
    ("keeper_server.coordination_settings.log_file_overallocate_size", OWN_LOG),
    (
        "keeper_server.coordination_settings.compress_snapshots_with_zstd_format",
        "snapshots are always compressed",
    ),
    ("keeper_server.coordination_settings.stale_log_gap", OWN_RAFT),
    ("keeper_server.coordination_settings.fresh_log_gap", OWN_RAFT),
    ("keeper_server.coordination_settings.configuration_change_tries_count", OWN_RAFT),
    ("keeper_server.coordination_settings.async_replication", OWN_RAFT),
    ("keeper_server.coordination_settings.raft_limits_*", OWN_RAFT),
    ("keeper_server.coordination_settings.nuraft_*", OWN_RAFT),
    ("keeper_server.coordination_settings.stream_*", OWN_RAFT),
    ("keeper_server.coordination_settings.max_requests_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.max_request_queue_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.max_response_queue_bytes_size", OWN_LIMITS),
    ("keeper_server.coordination_settings.max_read_batch_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.max_flush_batch_size", OWN_LIMITS),
    ("keeper_server.coordination_settings.max_in_flight_request_batches", OWN_LIMITS),
    ("keeper_server.coordination_settings.parallel_read_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.min_request_size_for_cache", OWN_LIMITS),
    ("keeper_server.coordination_settings.latest_logs_cache_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.commit_logs_cache_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.log_readahead*", OWN_LIMITS),
    ("keeper_server.coordination_settings.log_startup_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.dispatch_*", OWN_LIMITS),
    ("keeper_server.coordination_settings.use_new_dispatcher", OWN_LIMITS),
    ("keeper_server.coordination_settings.optimize_read_order", OWN_LIMITS),
    ("keeper_server.coordination_settings.snapshot_transfer_chunk_size", OWN_LIMITS),
    ("keeper_server.coordination_settings.disk_move_*", NO_DISKS),
    ("keeper_server.coordination_settings.log_slow_*", "a request that takes more than a second is logged"),
    ("keeper_server.coordination_settings.storage_memory_only", "the tree is in memory"),
    ("keeper_server.coordination_settings.commit_profiler_*", "requests are not profiled"),
    ("keeper_server.coordination_settings.use_xid_64", "a client that asks for wide xids has them"),
    ("keeper_server.coordination_settings.write_snapshot_version", "a snapshot has Paddock's own format"),
];

pub(super) const FIXED: &[Fixed] = &[
    Fixed {
        key: "keeper_server.force_recovery",
        values: NO,
        otherwise: Refuse("start the member once with --recover instead"),
    },
    Fixed {
        key: "keeper_server.s3_snapshot.endpoint",
        values: &[""],
        otherwise: Refuse("name the bucket by keeper_server.backup.to, and its keys by the variables AWS_*"),
    },
    Fixed { key: "keeper_server.log_storage_disk", values: &[], otherwise: Refuse(NO_DISKS) },
    Fixed { key: "keeper_server.latest_*", values: &[], otherwise: Refuse(NO_DISKS) },
    Fixed { key: "keeper_server.old_*", values: &[], otherwise: Refuse(NO_DISKS) },
    Fixed { key: "keeper_server.snapshot_storage_disk", values: &[], otherwise: Refuse(NO_DISKS) },
    Fixed { key: "keeper_server.state_storage_disk", values: &[], otherwise: Refuse(NO_DISKS) },
    Fixed { key: "keeper_server.data_storage_*", values: &[], otherwise: Refuse(NO_DISKS) },
    Fixed {
        key: "keeper_server.cleanup_old_and_ignore_new_acl",
        values: NO,
        otherwise: Warn("ACLs are always checked"),
    },
    Fixed { key: "keeper_server.feature_flags.*", values: YES, otherwise: Warn(FEATURES) },
    Fixed {
        key: "keeper_server.coordination_settings.force_sync",
        values: YES,
        otherwise: Warn("every acknowledged write is on disk before its answer leaves"),
    },
    Fixed {
        key: "keeper_server.coordination_settings.check_node_acl_on_remove",
        values: NO,
        otherwise: Refuse("a delete asks for the right to it on the parent only"),
    },
    Fixed {
        key: "keeper_server.coordination_settings.use_new_storage",
        values: NO,
        otherwise: Warn("the tree is in memory"),
    },
    Fixed {
        key: "keeper_server.coordination_settings.experimental_use_rocksdb",
        values: NO,
        otherwise: Warn("the tree is in memory"),
    },
    Fixed {
        key: "placement.use_imds",
        values: NO,
        otherwise: Warn("nobody is asked where the machine stands; set placement.availability_zone"),
    },
    Fixed {
        key: "keeper_server.availability_zone.enable_auto_detection_on_cloud",
        values: NO,
        otherwise: Warn("nobody is asked where the machine stands; set placement.availability_zone"),
    },
];

const YES: &[&str] = &["1", "true", "yes", "on"];
const NO: &[&str] = &["0", "false", "no", "off"];
