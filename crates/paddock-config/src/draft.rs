//! Settings while they are collected.

use std::net::SocketAddr;
use std::path::PathBuf;

use paddock_proto::MemberNumber;
use paddock_server::Config;

use super::backup::BackupDraft;
use super::etcd::EtcdDraft;
use super::opentelemetry::TracingDraft;
use super::overrides::{DEFAULT_DATA_DIR, Overrides};
use super::sasl::SaslDraft;

/// Session timeouts are told to clients as 32 bits with a sign.
const TIMEOUT_MS_MAX: u32 = i32::MAX as u32;

/// Settings of a file. Those that depend on others or on the command line wait outside `config`.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) config: Config,
    pub(super) listen: Option<SocketAddr>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) member: Option<MemberNumber>,
    pub(super) tracing: Option<TracingDraft>,
    pub(super) sasl: SaslDraft,
    pub(super) etcd: EtcdDraft,
    pub(super) backup: BackupDraft,
    /// The filter of the log.
    pub(super) log: Option<String>,
    pub(super) session_timeout_ms_min: Option<u32>,
    pub(super) session_timeout_ms_max: Option<u32>,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            config: Config::new(DEFAULT_DATA_DIR),
            listen: None,
            data_dir: None,
            member: None,
            tracing: None,
            sasl: SaslDraft::default(),
            etcd: EtcdDraft::default(),
            backup: BackupDraft::default(),
            log: None,
            session_timeout_ms_min: None,
            session_timeout_ms_max: None,
        }
    }
}

impl Draft {
    /// The settings of a member, or what is wrong with them as a whole.
    pub(super) fn finish(self, overrides: &Overrides) -> Result<Config, String> {
        let mut config = self.config;
        let ticks = |count: u32| config.tick_ms.saturating_mul(count).min(TIMEOUT_MS_MAX);
        let min = self.session_timeout_ms_min.unwrap_or_else(|| ticks(2));
        let max = self.session_timeout_ms_max.unwrap_or_else(|| ticks(20));
        if min > max {
            return Err(format!(
                "the shortest session timeout, {min} ms, is longer than the longest, {max} ms"
            ));
        }
        (config.session_timeout_ms_min, config.session_timeout_ms_max) = (min, max);
        config.listen = overrides.listen.or(self.listen).unwrap_or(config.listen);
        config.admin_listen = overrides.admin_listen.or(config.admin_listen);
        config.data_dir = overrides.data_dir.clone().or(self.data_dir).unwrap_or(config.data_dir);
        config.member = self.member.unwrap_or(config.member);
        config.cross_check = overrides.cross_check.clone().or(config.cross_check);
        config.etcd = overrides.etcd.clone().or(self.etcd).settle()?;
        if config.etcd.is_some() && config.ensemble.is_some() {
            return Err("an ensemble has a log of its own: the engine etcd serves without one".to_owned());
        }
        check_super_digest(&config)?;
        if config.lacks_admin_keys() {
            return Err("the HTTP interface speaks TLS with the keys and certificates of clients' ports, or else with those between \
                        members: set one of them, or no TLS for it"
                .to_owned());
        }
        Ok(config)
    }
}

/// Refuses a digest that no password could have.
fn check_super_digest(config: &Config) -> Result<(), String> {
    let hash = config.super_digest.as_deref().and_then(|digest| digest.split_once(':'));
    match hash {
        Some((_, hash)) if hash.len() != config.digest_algorithm.encoded_len() => {
            Err("the super digest was made with another algorithm than the one for digests; make it anew"
                .to_owned())
        }
        _ => Ok(()),
    }
}
