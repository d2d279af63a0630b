//! Settings of the command line, which count before all others.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::etcd::EtcdDraft;

/// Directory of the data unless someone says otherwise.
pub(crate) const DEFAULT_DATA_DIR: &str = "paddock-data";

/// Settings of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) etcd: EtcdDraft,
    pub(crate) cross_check: Option<String>,
}
