//! Keys of ZooKeeper that change nothing here, each with the reason. `docs/configuration-keys.md` has them with examples.

use super::known_keys::Otherwise::{Refuse, Warn};
use super::known_keys::{Fixed, Meaningless};

/// Reason for which a key that counts between members only changes nothing for a member alone.
pub(super) const NO_PEERS: &str = "a single member has no peers";

const OWN_TIMES: &str = "members watch each other by times of their own, which do not follow the tick";
const OWN_LINKS: &str = "a link between two members has limits of its own";
const RAFT: &str = "the Raft protocol elects the leader";
const FROM_LEADER: &str = "observers listen to the leader";
const CATCHING_UP: &str = "a member that comes back gets what the log still holds, or else a snapshot";
const ONE_ADDRESS: &str = "of a member's addresses the first one is used";
const NO_JAVA: &str = "it tunes the Java process";
const OWN_LIMITS: &str = "Paddock has no such cache or queue, or sets its size itself";
const NO_CHANCE: &str = "whether a client may connect depends on the tokens, and not on chance";
const LARGE: &str = "client_buffers_max bounds what requests take, whatever their size";
const ALWAYS_VERIFIED: &str = "log and snapshots always carry checksums, and are verified on load";

pub(super) const MEANINGLESS: &[Meaningless] = &[
    ("initLimit", OWN_TIMES),
    ("syncLimit", OWN_TIMES),
    ("connectToLearnerMasterLimit", OWN_TIMES),
    ("cnxTimeout", OWN_TIMES),
    ("quorumCnxnTimeoutMs", OWN_TIMES),
    ("maxTimeToWaitForEpoch", OWN_TIMES),
    ("tcpKeepAlive", OWN_TIMES),
    ("electionAlg", RAFT),
    ("fastleader.*", RAFT),
    ("quorum.cnxn.threads.size", OWN_LINKS),
    ("quorum.auth.*", "it counts only with quorum.auth.enableSasl"),
    ("leader.*", OWN_LINKS),
    ("learner.*", OWN_LINKS),
    ("messageTracker.*", OWN_LINKS),
    (
        "fips-mode",
        "the host in a member's certificate is verified unless ssl.quorum.hostnameVerification says no",
    ),
    ("multiAddress.*", ONE_ADDRESS),
    ("observer.*", FROM_LEADER),
    ("observerMasterPort", FROM_LEADER),
    ("commitLogCount", CATCHING_UP),
    ("snapshotSizeFactor", CATCHING_UP),
    ("version", "the log says which version of the ensemble is in force"),
    ("readonlymode.enabled", "a client that asks for it may read when the quorum is lost"),
    ("localSessionsEnabled", "every session is durable"),
    ("localSessionsUpgradingEnabled", "every session is durable"),
    ("enableEagerACLCheck", "the member that takes a request checks it"),
    ("jvm.*", NO_JAVA),
    ("nio.*", NO_JAVA),
    ("netty.*", NO_JAVA),
    ("serverCnxnFactory", NO_JAVA),
    ("commitProcessor.*", NO_JAVA),
    ("watchManagerName", NO_JAVA),
    ("watcherCleanThreadsNum", NO_JAVA),
    ("watcherCleanThreshold", NO_JAVA),
    ("watcherCleanIntervalInSeconds", NO_JAVA),
    ("maxInProcessingDeadWatchers", NO_JAVA),
    ("bitHashCacheSize", NO_JAVA),
    ("clientPortListenBacklog", OWN_LIMITS),
    ("maxResponseCacheSize", OWN_LIMITS),
    ("maxGetChildrenResponseCacheSize", OWN_LIMITS),
    ("requestThrottleStallTime", OWN_LIMITS),
    ("requestThrottleDropStale", "a request of a connection that is gone is not answered"),
    ("requestStale*", "a request of a connection that is gone is not answered"),
    ("request_throttler.*", OWN_LIMITS),
    ("throttledOpWaitTime", "no request waits here for its turn"),
    ("connectionFreezeTime", NO_CHANCE),
    ("connectionDropIncrease", NO_CHANCE),
    ("connectionDropDecrease", NO_CHANCE),
    ("connectionDecreaseRatio", NO_CHANCE),
    ("connection_throttle_freeze_time", NO_CHANCE),
    ("connection_throttle_drop_*", NO_CHANCE),
    ("connection_throttle_decrease_ratio", NO_CHANCE),
    ("connection_throttle_local_session_weight", "every session is durable"),
    ("largeRequestMaxBytes", LARGE),
    ("largeRequestThreshold", LARGE),
    ("flushDelay", OWN_LIMITS),
    ("maxWriteQueuePollTime", OWN_LIMITS),
    ("maxBatchSize", OWN_LIMITS),
    ("jute.maxbuffer.extrasize", "jute.maxbuffer is the only limit"),
    ("clientTcpKeepAlive", "a connection that is silent for the session's timeout is closed"),
    ("txnLogSizeLimitInKb", "a file of the log has the size of preAllocSize"),
    ("autopurge.purgeInterval", "what is no longer needed is removed after each snapshot"),
    (
        "fsync.warningthresholdms",
        "a request that takes more than a second is logged, with the time of its sync",
    ),
    ("snapshot.compression.method", "snapshots are always compressed"),
    ("snapshot.trust.empty", ALWAYS_VERIFIED),
    ("digest.enabled", ALWAYS_VERIFIED),
    ("serializeLastProcessedZxid.enabled", "a snapshot is exact at its zxid"),
    ("closeSessionTxn.enabled", "a closed session always names its ephemeral znodes"),
    ("admin.*", "the HTTP interface has no such choice"),
    ("metricsProvider.*", "only className, httpHost and httpPort say how metrics are served"),
    ("kerberos.canonicalizeHostNames", "it is about the names of servers that a client asks for"),
    ("ensembleAuthName", "it counts only with the ensemble scheme, which is not offered"),
    ("pathStats.*", "the page and /api/activity have the busiest paths"),
];

pub(super) const FIXED: &[Fixed] = &[
    Fixed {
        key: "forceSync",
        values: &["yes"],
        otherwise: Warn("every acknowledged write is on disk before its answer leaves"),
    },
    Fixed {
        key: "extendedTypesEnabled",
        values: &["true"],
        otherwise: Warn("znodes with a time to live are always on"),
    },
    Fixed {
        key: "emulate353TTLNodes",
        values: &["false"],
        otherwise: Warn("the format of ZooKeeper 3.5.3 is not offered"),
    },
    Fixed { key: "skipACL", values: &["no"], otherwise: Warn("ACLs are always checked") },
    Fixed {
        key: "audit.impl.class",
        values: &["org.apache.zookeeper.audit.Slf4jAuditLogger"],
        otherwise: Warn("lines go to the log, or to audit.file"),
    },
    Fixed {
        key: "znode.container.maxNeverUsedIntervalMs",
        values: &["0"],
        otherwise: Warn("a container is removed only when it has had a child"),
    },
    Fixed {
        key: "datadir.autocreate",
        values: &["true"],
        otherwise: Warn("a missing data directory is always created"),
    },
    Fixed {
        key: "db.autocreate",
        values: &["true"],
        otherwise: Warn("an empty data directory is always served as an empty tree"),
    },
    Fixed {
        key: "DigestAuthenticationProvider.enabled",
        values: &["true"],
        otherwise: Warn("the digest scheme is always on"),
    },
];

/// Keys that count between members only.
pub(super) const BETWEEN_MEMBERS: &[Fixed] = &[
    Fixed { key: "leaderServes", values: &["yes"], otherwise: Warn("a leader serves clients too") },
    Fixed {
        key: "syncEnabled",
        values: &["true"],
        otherwise: Warn("an observer keeps its log on disk like every member"),
    },
    Fixed { key: "oraclePath", values: &[], otherwise: Warn("half of the participants are never a quorum") },
    Fixed {
        key: "quorum.auth.enableSasl",
        values: &["false"],
        otherwise: Refuse(
            "members prove to each other who they are by TLS, and not by SASL; set sslQuorum=true",
        ),
    },
];
