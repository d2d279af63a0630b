//! A Paddock member as a library: sockets, threads, files and the clock around `paddock-member`.
//!
//! [`Server`] is a member, alone or of an ensemble, or a front end on etcd; [`Config`] has its settings, [`ServerError`] the reasons for which it does
//! not start or has stopped. `docs/embedding.md` tells of threads, memory, the end, and of what stays as it is until 1.0. [`Mirror`] and [`EtcdClient`]
//! are for programs that move data, as `paddock import` does: they speak in types of inner crates, and change with them. What is hidden from this
//! documentation is for the project's own programs, and changes without notice.
//!
//! ```no_run
//! use paddock_server::{Config, Server};
//!
//! let config = Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::new("paddock-data") };
//! let server = Server::start(config).unwrap();
//! println!("clients connect to {}", server.address());
//! server.shutdown().unwrap();
//! ```

#![warn(missing_docs)]

mod admin;
mod audit;
mod backup_source;
mod change_signal;
mod clients;
mod clock;
mod config;
mod copy_exchange;
mod engine;
mod engine_report;
mod engines;
mod error;
mod etcd;
mod etcd_metrics;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod kerberos;
mod lifecycle;
mod live;
mod mailboxes;
mod memory_watch;
mod mirror;
mod operator;
mod own_log;
mod permissions;
mod quiet_pace;
mod reports;
mod server;
mod server_limit;
mod shared;
mod statistics;
mod timed_disk;
mod version;
mod whole_copy;

#[doc(hidden)]
pub use backup_source::{BackupSource, BackupSourceError, OwnSnapshot};
pub use config::{
    AdminSettings, AdminTls, AuditTarget, CallerIdentity, CipherSuite, ClientAddress, ClientAuth,
    ClientLimits, ClientTls, Config, ConfigChanges, ConnectRate, Dialect, DigestAlgorithm, EndpointError,
    Ensemble, EnsembleMember, EtcdEndpoint, EtcdSettings, EtcdTls, EtcdUser, KerberosSettings, LateNames,
    MemberSettings, MemoryMax, OneSidedStores, Password, PeerTls, PortProtocol, PrincipalNames, Role,
    SaslUsers, Secret, SplitPathError, SplitPaths, Store, TlsMode, TlsVersions, TracesEndpoint, Tracing,
    WordList,
};
pub use error::ServerError;
pub use etcd::EtcdClient;
pub use mirror::{Mirror, SourceLink};
#[doc(hidden)]
pub use own_log::OwnLogError;
pub use paddock_etcd::CallError;
pub use paddock_forward::{Held, MirrorMode, SourceRequest};
pub use paddock_front::{RateRule, RateRuleError, RateRules, Rates, TenantKind};
#[doc(hidden)]
pub use paddock_links::LINK_VERSION;
pub use paddock_member::{IdentityError, IncomingError, MemberError, RecoveryError};
pub use paddock_os::binding::BindError;
pub use paddock_os::descriptors::raise_descriptor_limit;
pub use paddock_proto::{MemberNumber, SessionId};
#[doc(hidden)]
pub use paddock_statistics::backup_board::{BackupReached, BackupStanding};
#[doc(hidden)]
pub use paddock_statistics::log_lines::count_lost_log_lines;
pub use paddock_storage::LogError;
#[doc(hidden)]
pub use paddock_tls::{QuorumTls, TlsSocket, TlsWriter, warn_of_readable_file};
pub use paddock_tls::{StoreError, TlsError};
pub use server::Server;
#[doc(hidden)]
pub use whole_copy::WholeSnapshotError;
