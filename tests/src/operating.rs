//! Differences between what Apache ZooKeeper and Paddock tell those who operate them.

use std::fmt;

use crate::zookeeper_metrics;

/// A difference in one field of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldDifference {
    /// ZooKeeper's value, and Paddock's.
    Values(String, String),
    ZooKeeperOnly(String),
    PaddockOnly(String),
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldDifference::Values(zookeeper, paddock) => {
                write!(f, "ZooKeeper {zookeeper:?}, Paddock {paddock:?}")
            }
            FieldDifference::ZooKeeperOnly(value) => write!(f, "only ZooKeeper has it: {value:?}"),
            FieldDifference::PaddockOnly(value) => write!(f, "only Paddock has it: {value:?}"),
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
    /// ZooKeeper has it alone, and not in every state.
    ZooKeeperNowAndThen,
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
    pub fn covers(&self, field: &str, found: &FieldDifference) -> bool {
        let is_kind = matches!(
            (self.meant, found),
            (Meant::Values | Meant::Chance, FieldDifference::Values(..))
                | (Meant::ZooKeeperOnly | Meant::ZooKeeperNowAndThen, FieldDifference::ZooKeeperOnly(_))
                | (Meant::PaddockOnly, FieldDifference::PaddockOnly(_))
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
        !matches!(self.meant, Meant::Chance | Meant::ZooKeeperNowAndThen)
    }
}

/// All differences that are meant to be.
pub fn differences() -> Vec<Difference> {
    let difference = |field: &str, meant, reason| Difference { field: field.to_owned(), meant, reason };
    let of_words = FIELDS.iter().map(|(field, meant, reason)| difference(field, *meant, reason));
    let metrics = zookeeper_metrics::rows().into_iter().filter(|row| !row.is_here).flat_map(|row| {
        let part = if row.kind == "counter" { "" } else { "*_" };
        let fields = [format!("mntr zk_{part}{}", row.name), format!("/monitor {part}{}", row.name)];
        let reason = "the table of metrics has the reason";
        fields.map(|field| Difference { field, meant: Meant::ZooKeeperNowAndThen, reason })
    });
    of_words.chain(metrics).collect()
}

/// Differences that only members of ensembles show, beside all others.
pub fn differences_in_ensembles() -> Vec<Difference> {
    IN_ENSEMBLES
        .iter()
        .map(|(field, meant, reason)| Difference { field: (*field).to_owned(), meant: *meant, reason })
        .collect()
}

use Meant::{Chance, PaddockOnly, Values, ZooKeeperOnly};

const PLACE: &str = "each server has directories, ports and a number of its own";
const BUILD: &str = "each has its version and the date of its build";
const SIZE: &str = "each has files of its own";
const TIME: &str = "it is a time, or taken from one";
const JAVA: &str = "it is a property of Java";
const NO_JAVA: &str =
    "there is no Java; its properties are named, since collectors ask for them, and have no value";
const OWN_CONNECTION: &str =
    "ZooKeeper counts the connection of a four-letter word as one of a client, with a packet each way";
const OWN_LIMITS: &str = "it is about a limit that ZooKeeper does not have";
const MACHINE: &str = "the name is that of the machine, and not what its address leads to";

const MACHINE_FILES: &str = "a process in Java has other files open";
const NOT_SYNCED: &str = "ZooKeeper was told not to wait for its disk, which Paddock always does";
const FIRST_SNAPSHOT: &str =
    "ZooKeeper takes a snapshot when it starts, Paddock when there is something to keep";
const NETTY: &str = "ZooKeeper counts such connections only if it works with Netty";
const FOUNDING: &str = "the first start of a member applies the entries with which it begins";
const RESET: &str =
    "srst, which was asked before, resets every metric of ZooKeeper's, and only packets and latencies here";
const UNKNOWN_WORD: &str =
    "a word that there is not is taken for the length of a request, which is too large";
const ALONE: &str = "a member alone is a quorum of one; ZooKeeper tells it of ensembles only";
const LEVELS: &str = "ZooKeeper has no feature levels";
const GROUPS: &str = "an ensemble of ZooKeeper's has one group, and no number of them";
const PREPARED_LISTS: &str = "ZooKeeper keeps no lists as they go over the wire";
const DIGEST: &str = "ZooKeeper tells a digest after every 128 transactions, Paddock that of now";
const BY_POST: &str =
    "any page can have a browser send a GET: what changes something is for administrators here, by POST";
const ENVIRONMENT: &str = "Paddock has no properties but what the environment is told by";

/// Fields of words and commands, without metrics that ZooKeeper has alone.
const FIELDS: &[(&str, Meant, &str)] = &[
    // Words.
    ("conf clientPort", Values, PLACE),
    ("conf dataDir", Values, PLACE),
    ("conf dataLogDir", Values, PLACE),
    ("conf serverId", Values, PLACE),
    ("conf data*Size", Values, SIZE),
    ("envi java.*", Values, NO_JAVA),
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
    ("mntr zk_*time", Chance, TIME),
    ("mntr zk_*latency", Chance, TIME),
    ("mntr zk_cnt_fsynctime", Values, NOT_SYNCED),
    ("mntr zk_cnt_snapshottime", Values, FIRST_SNAPSHOT),
    ("mntr zk_bytes_received_count", Values, OWN_CONNECTION),
    ("mntr zk_non_mtls_local_conn_count", Values, NETTY),
    ("mntr zk_*_startup_txns_loaded", Values, FOUNDING),
    ("mntr zk_large_requests_rejected", Chance, UNKNOWN_WORD),
    ("mntr zk_client_buffer_*", PaddockOnly, OWN_LIMITS),
    ("mntr zk_memory_limit_exceeded", PaddockOnly, OWN_LIMITS),
    ("mntr zk_quorum_size", PaddockOnly, ALONE),
    ("mntr zk_feature_level", PaddockOnly, LEVELS),
    ("mntr zk_clocks_ahead", PaddockOnly, GROUPS),
    ("mntr zk_group_items_pending", PaddockOnly, GROUPS),
    ("mntr zk_groups", PaddockOnly, GROUPS),
    ("mntr zk_groups_led", PaddockOnly, GROUPS),
    ("mntr zk_groups_joining", PaddockOnly, GROUPS),
    ("mntr zk_groups_without_leader", PaddockOnly, GROUPS),
    ("mntr zk_groups_changing", PaddockOnly, GROUPS),
    ("mntr zk_prepared_list_bytes", PaddockOnly, PREPARED_LISTS),
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
    ("/environment java.*", Values, NO_JAVA),
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
    ("/monitor *time", Chance, TIME),
    ("/monitor *latency", Chance, TIME),
    ("/monitor cnt_fsynctime", Values, NOT_SYNCED),
    ("/monitor bytes_received_count", Values, OWN_CONNECTION),
    ("/monitor non_mtls_local_conn_count", Values, NETTY),
    ("/monitor *_startup_txns_loaded", Values, FOUNDING),
    ("/monitor connection_request_count", Chance, RESET),
    ("/monitor response_bytes", Chance, RESET),
    ("/monitor large_requests_rejected", Values, UNKNOWN_WORD),
    ("/monitor client_buffer_*", PaddockOnly, OWN_LIMITS),
    ("/monitor memory_limit_exceeded", PaddockOnly, OWN_LIMITS),
    ("/monitor quorum_size", PaddockOnly, ALONE),
    ("/monitor feature_level", PaddockOnly, LEVELS),
    ("/monitor clocks_ahead", PaddockOnly, GROUPS),
    ("/monitor group_items_pending", PaddockOnly, GROUPS),
    ("/monitor groups", PaddockOnly, GROUPS),
    ("/monitor groups_led", PaddockOnly, GROUPS),
    ("/monitor groups_joining", PaddockOnly, GROUPS),
    ("/monitor groups_without_leader", PaddockOnly, GROUPS),
    ("/monitor groups_changing", PaddockOnly, GROUPS),
    ("/monitor prepared_list_bytes", PaddockOnly, PREPARED_LISTS),
    ("/monitor open_file_descriptor_count", Chance, MACHINE_FILES),
    ("/monitor packets_sent", Values, OWN_CONNECTION),
    ("/monitor uptime", Chance, TIME),
    ("/monitor version", Values, BUILD),
    ("/server_stats server_stats.*_dir_size", Values, SIZE),
    ("/server_stats server_stats.non_mtlslocal_conn_count", Values, NETTY),
    ("/server_stats server_stats.packets_sent", Values, OWN_CONNECTION),
    ("/server_stats server_stats.uptime", Chance, TIME),
    ("/server_stats version", Values, BUILD),
    ("/stats connections.#.remote_socket_address", Values, PLACE),
    ("/stats server_stats.*_dir_size", Values, SIZE),
    ("/stats server_stats.non_mtlslocal_conn_count", Values, NETTY),
    ("/stats server_stats.packets_sent", Values, OWN_CONNECTION),
    ("/stats server_stats.uptime", Chance, TIME),
    ("/stats version", Values, BUILD),
    ("/*_reset status", Values, BY_POST),
    ("/*_reset error", Values, BY_POST),
    ("/set_trace_mask* status", Values, BY_POST),
    ("/set_trace_mask* error", Values, BY_POST),
    ("/set_trace_mask?traceMask=2 tracemask", ZooKeeperOnly, BY_POST),
    ("/system_properties *", ZooKeeperOnly, JAVA),
    ("/system_properties host.name", PaddockOnly, ENVIRONMENT),
    ("/system_properties zookeeper.version", PaddockOnly, ENVIRONMENT),
    ("/system_properties os.*", Chance, MACHINE),
    ("/system_properties user.*", Chance, PLACE),
];

const LIMITS: &str = "members find each other without such limits";
const ENTRIES: &str = "a proposal is an entry of the log, and an ensemble's first entries are about itself";
const FIRST_SYNC: &str =
    "a follower that is late to the first election is sent a snapshot by ZooKeeper's leader";
const EPOCHS: &str = "ZooKeeper's zxids begin anew with each epoch, Paddock's are counted through";
const ALL_SESSIONS: &str = "a follower of ZooKeeper's does not know when sessions expire";

/// Fields that only members of ensembles have, or that differ only there.
const IN_ENSEMBLES: &[(&str, Meant, &str)] = &[
    ("conf initLimit", ZooKeeperOnly, LIMITS),
    ("conf syncLimit", ZooKeeperOnly, LIMITS),
    ("conf electionAlg", ZooKeeperOnly, "there is one way to elect a leader"),
    ("conf electionPort", Values, PLACE),
    ("conf quorumPort", Values, PLACE),
    ("conf server.*", Values, PLACE),
    ("conf version", Values, ENTRIES),
    ("srvr Zxid", Values, EPOCHS),
    ("srvr Proposal sizes last/min/max", Values, ENTRIES),
    ("stat Zxid", Values, EPOCHS),
    ("stat Proposal sizes last/min/max", Values, ENTRIES),
    ("mntr zk_looking_count", Chance, TIME),
    ("mntr zk_commit_count", Chance, ENTRIES),
    ("mntr zk_proposal_count", Chance, ENTRIES),
    ("mntr zk_*_proposal_size", Values, ENTRIES),
    ("mntr zk_learner_*_received_count", Chance, ENTRIES),
    ("mntr zk_snap_count", Chance, FIRST_SYNC),
    ("mntr zk_*_inflight_snap_count", Chance, FIRST_SYNC),
    ("mntr zk_followers", PaddockOnly, "ZooKeeper had it up to 3.5, and exporters ask for it"),
    ("cons connection.lzxid", Values, EPOCHS),
    ("dump Global Sessions(*", ZooKeeperOnly, ALL_SESSIONS),
    ("dump Session Sets", PaddockOnly, ALL_SESSIONS),
    ("/dump expiry_time_to_session_ids.#*", PaddockOnly, ALL_SESSIONS),
    ("/leader leader_id", Chance, PLACE),
    ("/monitor looking_count", Values, RESET),
    ("/monitor commit_count", Values, RESET),
    ("/monitor proposal_count", Values, RESET),
    ("/monitor *_proposal_size", Values, RESET),
    ("/monitor learner_*_received_count", Values, RESET),
    ("/monitor followers", PaddockOnly, "ZooKeeper had it up to 3.5, and exporters ask for it"),
    ("/server_stats server_stats.last_processed_zxid", Values, EPOCHS),
    ("/server_stats proposal_stats.*", Values, RESET),
    ("/stats proposal_stats.*", Values, RESET),
    ("/stats server_stats.last_processed_zxid", Values, EPOCHS),
    ("/voting_view current_config.#.client_address", Chance, PLACE),
    ("/voting_view current_config.#.election_addresses.#", Values, PLACE),
    ("/voting_view current_config.#.server_addresses.#", Values, PLACE),
    ("/zabstate client_address", Values, PLACE),
    ("/zabstate election_address.*", Values, PLACE),
    ("/zabstate last_zxid", Values, EPOCHS),
    ("/zabstate myid", Chance, PLACE),
    ("/zabstate quorum_address.*", Values, PLACE),
    ("/zabstate zab_counter", Chance, EPOCHS),
    ("/zabstate zab_epoch", Values, EPOCHS),
];
