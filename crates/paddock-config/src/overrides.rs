//! Settings of the command line, which count before all others.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::etcd::EtcdDraft;
use super::origins::Origins;

/// Directory of the data unless someone says otherwise.
pub(crate) const DEFAULT_DATA_DIR: &str = "paddock-data";

/// Settings of the command line.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Address where clients connect.
    pub listen: Option<SocketAddr>,
    /// Address of the HTTP interface for administrators.
    pub admin_listen: Option<SocketAddr>,
    /// Directory of the data.
    pub data_dir: Option<PathBuf>,
    /// The engine, and etcd's settings.
    pub etcd: EtcdDraft,
    /// Host and port of a server that the requests of clients also go to.
    pub cross_check: Option<String>,
}

impl Overrides {
    /// Notes which settings come from the command line.
    pub(super) fn note(&self, origins: &mut Origins) {
        let options = [
            ("listen", "--listen", self.listen.is_some()),
            ("admin_listen", "--admin-listen", self.admin_listen.is_some()),
            ("data_dir", "--data-dir", self.data_dir.is_some()),
            ("cross_check", "--cross-check", self.cross_check.is_some()),
            ("engine", "--engine", self.etcd.engine.is_some()),
            ("etcd.endpoints", "--etcd-endpoints", self.etcd.endpoints.is_some()),
            ("etcd.prefix", "--etcd-prefix", self.etcd.prefix.is_some()),
            ("etcd.ca", "--etcd-ca", self.etcd.ca.is_some()),
            ("etcd.cert", "--etcd-cert", self.etcd.cert.is_some()),
            ("etcd.key", "--etcd-key", self.etcd.key.is_some()),
            ("etcd.txn_operations_max", "--etcd-txn-operations-max", self.etcd.txn_operations_max.is_some()),
            ("etcd.separate_writes", "--etcd-separate-writes", self.etcd.separate_writes.is_some()),
        ];
        for (setting, option, _) in options.iter().filter(|(_, _, is_given)| *is_given) {
            origins.note(setting, option);
        }
    }
}
