//! Settings of a front: what clients may ask for, and how much of it at once.

use std::sync::Arc;

use paddock_proto::{Dialect, ErrorCode};

use crate::output::BUFFER_BYTES_KEPT;
use crate::{
    AuditLog, ClientBuffers, ConnectThrottle, DigestAlgorithm, Kerberos, LimitHit, LimitHits, MemoryLimit,
    OutstandingLimit, RateLimits, SaslUsers,
};

/// Settings that all connections of a member share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest request, in bytes. A larger one closes its connection.
    pub frame_bytes_max: i32,
    /// The largest command, in bytes: a write as it lies in the log, with the identities of its client. A larger one is refused.
    pub command_bytes_max: usize,
    /// The dialect that clients speak. `None` lets each connection show its own.
    pub dialect: Option<Dialect>,
    /// A client that asks for a shorter session timeout gets this one, in milliseconds.
    pub session_timeout_ms_min: u32,
    /// A client that asks for a longer session timeout gets this one, in milliseconds.
    pub session_timeout_ms_max: u32,
    pub digest_algorithm: DigestAlgorithm,
    /// `super:` and the Base64 of the hash of `super:password`: a client with that password may do everything.
    pub super_digest: Option<String>,
    /// Users who may prove themselves by SASL. `None` is a member without SASL.
    pub sasl: Option<Arc<SaslUsers>>,
    /// Kerberos, for clients that prove themselves by SASL's GSSAPI. It counts with `sasl` only.
    pub kerberos: Option<Kerberos>,
    /// Clients may show certificates, and so ACLs may name their subjects.
    pub has_certificates: bool,
    /// Schemes of which a client has to show an identity before it asks for anything; empty if none has to.
    pub required_schemes: Vec<String>,
    /// Every read sees what was written anywhere before it was asked, and not only what its own session wrote.
    pub linearizable_reads: bool,
    /// Limits of quotas count for the writes of this member's clients.
    pub enforces_quotas: bool,
    /// Takes a line for each write of a client; `None` if there is no audit log.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// Clients may change the ensemble's members.
    pub may_reconfig: bool,
    pub limits: Limits,
}

/// Limits of one connection. Beyond them it is not read from, or closed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A connection with this many unanswered requests is not read from until there are fewer.
    pub waiting_max: usize,
    /// A connection with this many bytes of replies unsent, and of requests unanswered, is not read from until there are fewer.
    pub unsent_bytes_max: usize,
    /// A connection that holds no more bytes than this holds little: it is not counted among what clients hold together, and not
    /// kept from asking for as little.
    pub little_bytes: usize,
    /// With this many sessions in the ensemble, no client gets a new one.
    pub sessions_max: usize,
    /// Identities that a connection may show, those of its address and its certificate included.
    pub identities_max: usize,
    /// Their size on the wire together, in bytes.
    pub identity_bytes_max: usize,
    /// Estimated size of a reply, in bytes, before a connection has been sent one: so a connection begins with few requests
    /// under way, and an unknown client cannot make the member hold gigabytes for it.
    pub first_reply_bytes: usize,
    /// A connection with this many bytes unsent is closed at the next watch event: events come whether it reads or not.
    pub event_bytes_max: usize,
    /// Bytes of replies in one turn of a connection: behind them, others get their turn.
    pub turn_bytes_max: usize,
    /// Watches of a setWatches that are set in one turn of a connection, and under one lock of the state, at most.
    pub watches_per_turn: usize,
    /// Children of a long list that are copied in one turn of a connection, and under one lock of the state. If children come or go meanwhile, it
    /// is copied again, in longer portions.
    pub children_per_turn: usize,
    /// A multi of more bytes is long: each is one step of the state, and takes milliseconds.
    pub long_multi_bytes: usize,
    /// Bytes of long multis of a worker's connections that are under way together, unless there is one only. Others have to wait.
    pub long_multis_max: usize,
    /// Reads that are answered under one lock of the state, at most.
    pub reads_per_lock: usize,
    pub counters: Counters,
}

/// Counters of what all connections of a member use together, each with its limit.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Memory that the connections hold.
    pub buffers: Arc<ClientBuffers>,
    /// Requests that the engine has to answer.
    pub outstanding: Arc<OutstandingLimit>,
    /// The rate at which clients connect.
    pub connects: Arc<ConnectThrottle>,
    /// Requests and bytes in a second, of each tenant.
    pub rates: Arc<RateLimits>,
    /// Memory of the member.
    pub memory: Arc<MemoryLimit>,
    /// Hits of a front's limits.
    pub hits: Arc<LimitHits<LimitHit>>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            waiting_max: 16 << 10,
            unsent_bytes_max: 16 << 20,
            little_bytes: BUFFER_BYTES_KEPT,
            sessions_max: usize::MAX,
            identities_max: 64,
            identity_bytes_max: 16 << 10,
            first_reply_bytes: 1 << 20,
            event_bytes_max: 64 << 20,
            turn_bytes_max: 128 << 10,
            watches_per_turn: 1000,
            children_per_turn: 2000,
            long_multi_bytes: 32 << 10,
            long_multis_max: 256 << 10,
            reads_per_lock: 256,
            counters: Counters::default(),
        }
    }
}

impl Settings {
    /// Settings as ZooKeeper has them, with tick times of 2 s.
    pub fn of_zookeeper() -> Settings {
        Settings {
            frame_bytes_max: 1 << 20,
            command_bytes_max: 1 << 20,
            dialect: None,
            session_timeout_ms_min: 4000,
            session_timeout_ms_max: 40_000,
            digest_algorithm: DigestAlgorithm::Sha1,
            super_digest: None,
            sasl: None,
            kerberos: None,
            has_certificates: false,
            required_schemes: Vec::new(),
            linearizable_reads: false,
            enforces_quotas: false,
            audit: None,
            may_reconfig: false,
            limits: Limits::default(),
        }
    }

    /// The error of a client that has not proved who it is.
    pub(crate) fn failed_auth_error(&self) -> ErrorCode {
        let is_sasl_required = self.required_schemes.iter().any(|scheme| scheme == "sasl");
        if is_sasl_required { ErrorCode::SessionClosedRequireSaslAuth } else { ErrorCode::AuthFailed }
    }

    /// The session timeout in milliseconds for a client that asked for `asked_ms`.
    pub(crate) fn negotiate_timeout_ms(&self, asked_ms: i32) -> i32 {
        let asked = u32::try_from(asked_ms).unwrap_or(0);
        let agreed = asked.min(self.session_timeout_ms_max).max(self.session_timeout_ms_min);
        i32::try_from(agreed).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_timeout_is_kept_between_the_bounds() {
        let settings = Settings::of_zookeeper();
        for (asked, agreed) in [(-1, 4000), (0, 4000), (5000, 5000), (i32::MAX, 40_000)] {
            assert_eq!(settings.negotiate_timeout_ms(asked), agreed, "{asked}");
        }
    }
}
