//! Options of commands that concern an etcd: the engine, TLS, and a user.

use std::path::PathBuf;

use paddock_config::{EngineName, EtcdDraft};

/// Engines that order writes and keep the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EngineArg {
    /// A log of this member's own, replicated if it has an ensemble
    Log,
    /// An etcd cluster
    Etcd,
}

impl EngineArg {
    pub(crate) fn name(self) -> EngineName {
        match self {
            EngineArg::Log => EngineName::Log,
            EngineArg::Etcd => EngineName::Etcd,
        }
    }
}

/// The options, for a command's own to be followed by.
#[derive(Debug, clap::Args)]
pub(crate) struct EtcdAccessArgs {
    /// Certificates of who signs etcd's, for endpoints of https://
    #[arg(long, value_name = "FILE")]
    etcd_ca: Option<PathBuf>,
    /// Certificate to show to etcd
    #[arg(long, value_name = "FILE")]
    etcd_cert: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE")]
    etcd_key: Option<PathBuf>,
    /// Name of a user of etcd
    #[arg(long, value_name = "NAME")]
    etcd_user: Option<String>,
    /// File with the password of that user
    #[arg(long, value_name = "FILE")]
    etcd_password_file: Option<PathBuf>,
}

impl EtcdAccessArgs {
    /// Settings of etcd of which these options are all that is known.
    pub(crate) fn draft(&self) -> EtcdDraft {
        EtcdDraft {
            ca: self.etcd_ca.clone(),
            cert: self.etcd_cert.clone(),
            key: self.etcd_key.clone(),
            user: self.etcd_user.clone(),
            password_file: self.etcd_password_file.clone(),
            ..EtcdDraft::default()
        }
    }
}
