//! Members of Paddock in a test's own process: servers that speak ZooKeeper's protocol.
//!
//! ```
//! let server = paddock_testing::TestServer::start()?;
//! println!("clients connect to {}", server.hosts());
//! # Ok::<(), paddock_testing::StartError>(())
//! ```
//!
//! They listen on free ports of 127.0.0.1, keep their data in temporary directories, and end when they are dropped. [`Config`] has the settings of a
//! server: [`TestServer::start_with`] and [`TestEnsemble::start_with`] let you change them before the start.

#![warn(missing_docs)]

mod ensemble;
mod error;
mod ports;
mod server;

pub use ensemble::TestEnsemble;
pub use error::StartError;
pub use paddock_server::{Config, WordList};
pub use server::TestServer;
