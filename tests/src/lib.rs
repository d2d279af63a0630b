//! Parts that the tests of whole processes share: servers under control, histories and their judge, and the oracle.
//!
//! The environment says where the servers are:
//!
//! - `PADDOCK_BIN`: the `paddock` binary.
//! - `ZOOKEEPER_CLASSPATH`: a class path for `java -cp` with Apache ZooKeeper's server.
//!
//! The tests of ensembles under faults, behind the feature `faults`, want more:
//!
//! - `PYTHON_BIN`: a Python with kazoo.
//! - `JAVA_CLASSES`: the compiled classes of tests/java.
//! - `PORCUPINE_BIN`: the program of tests/porcupine.
//! - `HISTORIES`: a directory for what clients saw.
//!
//! Tests of front ends on etcd, behind the feature `etcd`, want `PORCUPINE_BIN`, `HISTORIES` and:
//!
//! - `ETCD_BIN`: an etcd.
//!
//! The tests in a browser, behind the feature `browser`, want others:
//!
//! - `CHROMIUM_BIN`: a Chromium.
//! - `REPORT_PAGES`: a directory with the pages to open.
//! - `SCREENSHOTS`: a directory for what they looked like, and for the browser's log.
//!
//! The tests at a terminal, behind the feature `terminal`, want others:
//!
//! - `TMUX_BIN`: a tmux.
//! - `SCREENS`: a directory for what the terminal showed.
//!
//! `cargo xtask test` sets them all.

pub mod administered;
#[cfg(feature = "browser")]
pub mod browser;
pub mod bursts;
pub mod damage;
pub mod deaf;
pub mod ensemble;
pub mod etcd;
pub mod filesystem;
pub mod following;
pub mod history;
pub mod judge;
pub mod keeper_directories;
pub mod library;
pub mod load;
pub mod lock;
mod log_lines;
pub mod named_network;
pub mod network;
pub mod operating;
pub mod oracle;
pub mod pem_stores;
pub mod rolling;
#[cfg(feature = "terminal")]
pub mod screen;
pub mod server;
pub mod shells;
pub mod teller;
pub mod torture;
pub mod unread_pipe;
pub mod waiting;
pub mod zookeeper_metrics;

/// Number of rounds: the environment's, or this default.
pub fn rounds(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text:?} is not a number")),
        Err(_) => default,
    }
}
