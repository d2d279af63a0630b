//! What the tests of whole processes share: servers under control, a small source of chance, and the oracle.
//!
//! The environment says where the servers are:
//!
//! - `PADDOCK_BIN`: the `paddock` binary.
//! - `ZOOKEEPER_CLASSPATH`: a class path for `java -cp` with Apache ZooKeeper's server.
//!
//! `cargo xtask test` sets both.

pub mod chance;
pub mod damage;
pub mod oracle;
pub mod server;
