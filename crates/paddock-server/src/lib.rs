//! A Paddock member as a library: sockets, threads, files and the clock around `paddock-member`.
//!
//! ```no_run
//! use paddock_server::{Config, Server};
//!
//! let config = Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::new("paddock-data") };
//! let server = Server::start(config).unwrap();
//! println!("clients connect to {}", server.address());
//! server.shutdown().unwrap();
//! ```

mod ahead;
mod auth;
mod clickhouse;
mod clock;
mod config;
mod connection;
mod engine;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod helpers;
mod listener;
mod members;
mod outgoing;
#[cfg_attr(not(test), expect(dead_code, reason = "the state of the links is not shown anywhere yet"))]
mod peers;
mod room;
mod server;
mod shared;
mod shell;
mod socket;
mod spans;
mod stats;
mod status;
mod tls;
mod turn;
mod version;
mod wire;
mod words;
mod worker;

pub use config::{
    CipherSuite, ClientAddress, Config, Dialect, EndpointError, Ensemble, EnsembleMember, Password, PeerTls,
    Role, Secret, Store, TlsMode, TlsVersions, TracesEndpoint, Tracing, WordList,
};
pub use paddock_member::{IdentityError, IncomingError, MemberError, RecoveryError};
pub use peers::LinkError;
pub use server::{Server, ServerError};
pub use tls::{StoreError, TlsError};
