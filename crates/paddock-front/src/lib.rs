//! The front: everything between the bytes of client connections and an engine that orders writes, without socket, thread,
//! clock or Raft.
//!
//! A [`Front`] has the connections of one worker. It greets clients, checks who they are, speaks their dialects, answers reads
//! from the state and queues what the engine has to answer. Three rules are kept here:
//! - no request of a connection overtakes an earlier one of it, but for pings and auth, which are answered at once;
//! - before the state is read, the events of all that it shows stand in the connections' outputs;
//! - a connection that lets too much wait, or does not read its replies, is not read from.
//!
//! ```text
//! bytes of sockets ──receive──▶ Front ──inputs──▶ engine ──mail──▶ Front ──unsent──▶ bytes for sockets
//! ```

mod acl_schemes;
mod audit;
mod auth;
mod buffers;
mod clickhouse;
mod condition;
mod connect_throttle;
mod connection;
mod digest_algorithm;
mod front;
mod handed_bytes;
mod host;
mod identities;
mod limit_hit;
mod long_multis;
mod long_request;
mod memory_limit;
mod output;
mod outstanding;
mod prefetch;
mod protocol;
mod queue;
mod rates;
mod request_path;
mod sasl;
mod settings;
mod short_lists;
mod watches;

pub use audit::{AuditEvent, AuditLog, AuditResult};
pub use auth::{digest_id, proven_ids};
pub use buffers::ClientBuffers;
pub use clickhouse::is_read_by_clickhouse;
pub use condition::Condition;
pub use connect_throttle::{ConnectRate, ConnectThrottle};
pub use digest_algorithm::DigestAlgorithm;
pub use front::{Front, Reached};
pub use host::{Answered, FrontEvent, Host, Received, Served, TracedRequest, WordAnswer};
pub use limit_hit::{Limit, LimitHit, LimitHits};
pub use memory_limit::MemoryLimit;
pub use outstanding::OutstandingLimit;
pub use rates::{RateLimits, RateRule, RateRuleError, RateRules, Rates, TenantKind, TenantUse};
pub use sasl::{Kerberos, KerberosAcceptor, KerberosContext, KerberosStep, PrincipalNames, SaslUsers};
pub use settings::{Counters, Limits, Settings};
