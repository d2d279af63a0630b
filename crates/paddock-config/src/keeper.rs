//! ClickHouse Keeper's `keeper_config.xml` and `keeper_config.yaml`, and the configuration of a ClickHouse server that
//! has a keeper in it.
//!
//! Always true: a key of `keeper_server` is taken, known to change nothing, refused, or named in a remark.

mod client_tls;
mod includes;
mod keys;
mod merge;
mod raft;
mod settings;
mod tls;
mod values;
mod xml;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use paddock_server::{Ensemble, MemoryMax, PortProtocol};
use paddock_yaml::Entry;

use super::draft::Draft;
use super::ensemble::OwnNumber;
use super::environment::Environment;
use super::known_keys;
use super::origins::OF_KEEPER;
use super::overrides::Overrides;
use super::remark::{ConfigError, Location, Remarks};
use super::rows;
use super::source::Line;
use super::value::{self, Text};
use super::zoo_admin;
use super::zoo_values;
pub(super) use merge::files as merged_files;
use raft::Raft;
pub(super) use settings::is_keeper_file;
use settings::{File, entries};
use tls::KeeperTls;

/// Connections at most by ClickHouse Keeper's default, which is not Paddock's.
const CONNECTIONS_MAX: u32 = 1024;
const SESSION_TIMEOUT_MS_MIN: u32 = 10_000;
const SESSION_TIMEOUT_MS_MAX: u32 = 100_000;
const EXPIRY_MS: u32 = 500;
const WORDS: &str = "conf,cons,crst,envi,ruok,srst,srvr,stat,wchs,dirs,mntr,isro,rcvr,apiv,csnp,lgif,rqld,rclc,clrs,\
                     ftfl,ydld,pfev,lgrq";

const SERVER: &str = "keeper_server";
const TCP_PORT: &str = "keeper_server.tcp_port";
const STORAGE_PATH: &str = "keeper_server.storage_path";
const LISTEN_HOST: &str = "listen_host";
/// Other sections of a file that are about the keeper.
const SECTIONS: [&str; 10] = [
    LISTEN_HOST,
    "interserver_listen_host",
    "listen_try",
    "listen_backlog",
    "listen_reuse_port",
    "max_connections",
    "logger",
    "prometheus",
    "placement",
    "include_from",
];

pub(super) fn load(
    path: &Path,
    overrides: &Overrides,
    environment: &Environment,
    remarks: &mut Remarks,
) -> Result<Draft, ConfigError> {
    let (mut file, root) = File::read(path, environment)?;
    let root = includes::resolve(&mut file, root, is_of_keeper, remarks)?;
    for other in file.others() {
        remarks.push(Location::new(other).detail(format!("it counts on top of {}", path.display())));
    }
    let mut keeper = Keeper::new();
    for entry in entries(&root) {
        let outcome = keeper.take_section(&file, entry, remarks);
        remarks.note(outcome);
    }
    keeper.finish(&Location::new(path), overrides, environment, remarks)
}

/// True for a section of a ClickHouse server's file that is the keeper's.
fn is_of_keeper(section: &str) -> bool {
    section == SERVER || section == tls::SECTION || SECTIONS.contains(&section)
}

/// Settings of the file. Keys that depend on others wait outside `draft`.
struct Keeper {
    draft: Draft,
    has_server: bool,
    tcp_port: Option<u16>,
    tcp_port_secure: Option<u16>,
    http_port: Option<u16>,
    https_port: Option<(Line, u16)>,
    prometheus_port: Option<u16>,
    listen_hosts: Vec<(Line, IpAddr)>,
    own: Option<OwnNumber>,
    storage_path: Option<PathBuf>,
    snapshot_path: Option<PathBuf>,
    /// Counts before the share of memory.
    memory_bytes: Option<u64>,
    settings: Ensemble,
    raft: Raft,
    tls: KeeperTls,
    seen: BTreeMap<String, Location>,
}

impl Keeper {
    fn new() -> Keeper {
        let mut draft = Draft::default();
        draft.config.connections_per_address_max = 0;
        draft.config.connections_max = CONNECTIONS_MAX;
        draft.config.tick_ms = EXPIRY_MS;
        draft.config.words = values::words(WORDS);
        draft.session_timeout_ms_min = Some(SESSION_TIMEOUT_MS_MIN);
        draft.session_timeout_ms_max = Some(SESSION_TIMEOUT_MS_MAX);
        Keeper {
            draft,
            has_server: false,
            tcp_port: None,
            tcp_port_secure: None,
            http_port: None,
            prometheus_port: None,
            https_port: None,
            listen_hosts: Vec::new(),
            own: None,
            storage_path: None,
            snapshot_path: None,
            memory_bytes: None,
            // A member of ClickHouse Keeper listens to the others at every address.
            settings: Ensemble { listen_on_all_addresses: true, ..Ensemble::default() },
            raft: Raft::default(),
            tls: KeeperTls::default(),
            seen: BTreeMap::new(),
        }
    }

    fn take_section(
        &mut self,
        file: &File<'_>,
        section: &Entry,
        remarks: &mut Remarks,
    ) -> Result<(), ConfigError> {
        match section.key.as_str() {
            SERVER => {
                self.has_server = true;
                for entry in entries(&section.value) {
                    let outcome = if entry.key == raft::SECTION {
                        self.raft.read(file, entry, remarks)
                    } else {
                        self.take(file, &format!("{SERVER}.{}", entry.key), entry, remarks)
                    };
                    remarks.note(outcome);
                }
                Ok(())
            }
            tls::SECTION => {
                self.tls.take(file.settings(tls::SECTION, section)?);
                Ok(())
            }
            key if SECTIONS.contains(&key) => self.take(file, key, section, remarks),
            key => {
                let what = format!("{key} changes nothing: it is for ClickHouse servers");
                remarks.push(file.place(section.line).detail(what));
                Ok(())
            }
        }
    }

    fn take(
        &mut self,
        file: &File<'_>,
        path: &str,
        entry: &Entry,
        remarks: &mut Remarks,
    ) -> Result<(), ConfigError> {
        for line in file.settings(path, entry)? {
            let earlier = self.seen.insert(line.key.clone(), line.place.clone());
            if let Some(earlier) = earlier.filter(|_| line.key != LISTEN_HOST) {
                return Err(line.fault(format!("it is said at {earlier} already; say it once")));
            }
            let outcome = self.take_line(&line, remarks);
            remarks.note(outcome);
        }
        Ok(())
    }

    fn take_line(&mut self, line: &Line, remarks: &mut Remarks) -> Result<(), ConfigError> {
        remarks.origins.note_key(OF_KEEPER, &line.key, &line.place);
        if !self.set(line, &Text(&line.value)).map_err(|what| line.fault(what))? {
            remarks.extend(known_keys::remark_on(line, keys::MEANINGLESS, keys::FIXED)?);
        }
        Ok(())
    }

    /// Takes a setting, unless its key sets nothing.
    fn set(&mut self, line: &Line, value: &Text<'_>) -> Result<bool, String> {
        let config = &mut self.draft.config;
        match line.key.strip_prefix("keeper_server.").unwrap_or(&line.key) {
            // The key was followed when the file was read.
            "include_from" => {}
            LISTEN_HOST => {
                self.listen_hosts.push((line.clone(), value::host_address(value.0, &mut config.late_names)?))
            }
            "tcp_port" => self.tcp_port = Some(value::number(value, value::PORT, value::A_PORT)?),
            "tcp_port_secure" => {
                self.tcp_port_secure = Some(value::number(value, value::PORT, value::A_PORT)?);
            }
            "http_control.port" => {
                self.http_port = Some(value::number(value, value::PORT, value::A_PORT)?);
            }
            "http_control.secure_port" => {
                self.https_port = Some((line.clone(), value::number(value, value::PORT, value::A_PORT)?));
            }
            "prometheus.port" => {
                self.prometheus_port = Some(value::number(value, value::PORT, value::A_PORT)?);
            }
            "prometheus.endpoint" => config.admin.metrics_path = zoo_admin::url(value)?,
            // A key of Paddock's own.
            "http_control.hosts" => config.admin.hosts = zoo_admin::hosts(value)?,
            "http_control.readiness.endpoint" => config.admin.ready_path = zoo_admin::url(value)?,
            "server_id" => {
                let number = value::number(value, value::MEMBER, value::A_MEMBER)?;
                self.own = Some(OwnNumber { place: line.place.clone(), number });
            }
            "storage_path" => self.storage_path = Some(value::path(value)?),
            "snapshot_storage_path" => self.snapshot_path = Some(value::path(value)?),
            "log_storage_path" => config.log_dir = Some(value::path(value)?),
            "four_letter_word_white_list" | "four_letter_word_allow_list" => {
                config.words = values::words(value.0);
            }
            "max_memory_usage_soft_limit" => {
                let bytes: u64 = value::amount(value, 0..=i64::MAX, "bytes")?;
                self.memory_bytes = Some(bytes).filter(|bytes| *bytes > 0);
            }
            "max_memory_usage_soft_limit_ratio" => {
                config.memory_max = MemoryMax::Percent(values::share(value)?)
            }
            "split_points" => config.member_settings.split_points = value::split_points(value)?,
            "rate_limits" => config.client_limits.rate_limits = value::rate_rules(value)?,
            key if let Some(key) = key.strip_prefix("backup.")
                && self.draft.backup.set(key, value)? => {}
            "logger.level" => self.draft.log = Some(values::log_level(value)?.to_owned()),
            "superdigest" => config.super_digest = Some(value::super_digest(value)?),
            "enable_reconfiguration" => self.settings.reconfig_enabled = values::boolean(value)?,
            "availability_zone.value" | "placement.availability_zone" => {
                config.availability_zone = Some(value::availability_zone(value)?);
            }
            // What was found is not shown.
            key if key.starts_with("client_password") && !value.0.is_empty() => {
                return Err("it is not offered: clients without the password would not be turned away".into());
            }
            key => match key.strip_prefix("coordination_settings.") {
                Some(key) if self.set_coordination(key, value)? => {}
                _ => return self.set_named(&line.key, value),
            },
        }
        Ok(true)
    }

    /// Takes a setting of which the name is all that differs. `max_connections` may also stand in `keeper_server`.
    fn set_named(&mut self, key: &str, value: &Text<'_>) -> Result<bool, String> {
        let names = [key, key.strip_prefix("keeper_server.").unwrap_or(key)];
        let name = names.into_iter().find(|name| OF_KEEPER.iter().any(|(known, _)| known == name));
        let config = &mut self.draft.config;
        name.map_or(Ok(false), |name| rows::set_named(config, OF_KEEPER, name, value, values::boolean))
    }

    fn set_coordination(&mut self, key: &str, value: &Text<'_>) -> Result<bool, String> {
        let draft = &mut self.draft;
        let config = &mut draft.config;
        match key {
            "min_session_timeout_ms" => draft.session_timeout_ms_min = Some(value::milliseconds(value)?),
            "session_timeout_ms" => draft.session_timeout_ms_max = Some(value::milliseconds(value)?),
            "max_log_file_size" => {
                let settings = &mut config.member_settings;
                settings.segment_bytes = values::segment_bytes(value)?.unwrap_or(settings.segment_bytes);
            }
            "max_request_size" => config.frame_bytes_max = values::request_bytes(value)?,
            "quorum_reads" => self.settings.linearizable_reads = values::boolean(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(
        mut self,
        place: &Location,
        overrides: &Overrides,
        environment: &Environment,
        remarks: &mut Remarks,
    ) -> Result<Draft, ConfigError> {
        if !self.has_server {
            return Err(place.clone().fault(format!("{SERVER} is missing")));
        }
        self.draft.data_dir = self.snapshot_path.take().or(self.storage_path.take());
        if overrides.data_dir.is_none() && self.draft.data_dir.is_none() {
            return Err(place.clone().fault(format!("{STORAGE_PATH} is missing")));
        }
        if let Some(bytes) = self.memory_bytes {
            self.draft.config.memory_max = MemoryMax::Bytes(bytes);
        }
        self.settle_ports(place, overrides, remarks)?;
        let own = match self.own.take() {
            Some(own) => Some(own),
            None => environment.own_number()?,
        };
        self.draft.member = own.as_ref().map(|own| own.number);
        if let Some(own) = &own {
            remarks.origins.note("member", &own.place);
        }
        self.settings.tls = if self.raft.has_peers() && self.raft.is_secure() {
            Some(self.tls.settle(place, remarks)?)
        } else {
            if self.tcp_port_secure.is_none() {
                self.tls.remark_on_unused(remarks);
            }
            None
        };
        self.draft.config.ensemble = self.raft.settle(own, place, self.settings, remarks)?;
        Ok(self.draft)
    }

    /// The ports for clients. If there is none for plaintext, the one for TLS is the only one.
    fn settle_ports(
        &mut self,
        place: &Location,
        overrides: &Overrides,
        remarks: &mut Remarks,
    ) -> Result<(), ConfigError> {
        let address = self.listen_address()?;
        let at = |port: u16| SocketAddr::new(address, port);
        if overrides.listen.is_none() {
            let port = self.tcp_port.or(self.tcp_port_secure);
            let port = port.ok_or_else(|| place.clone().fault(format!("{TCP_PORT} is missing")))?;
            self.draft.listen = Some(at(port));
        }
        self.draft.config.metrics_listen = self.prometheus_port.map(at);
        self.draft.config.admin.has_keeper_names = self.prometheus_port.is_some();
        self.draft.config.admin_listen = self.http_port.map(at);
        match (self.https_port.take(), self.http_port) {
            (None, _) => {}
            (Some((line, _)), Some(_)) => {
                remarks.push(
                    line.warning("it has no effect: the HTTP interface has one port, http_control.port"),
                );
            }
            (Some((_, port)), None) => {
                self.draft.config.admin_listen = Some(at(port));
                self.draft.config.admin.tls.protocol = PortProtocol::Tls;
            }
        }
        if let Some(secure) = self.tcp_port_secure {
            let has_plaintext_port = self.tcp_port.is_some() || overrides.listen.is_some();
            let (listen, at_listen) = if has_plaintext_port {
                (Some(at(secure)), PortProtocol::Plaintext)
            } else {
                (None, PortProtocol::Tls)
            };
            self.draft.config.tls = Some(self.tls.settle_clients(place, (listen, at_listen), remarks)?);
        }
        Ok(())
    }

    /// Without an address, this machine only, as in ClickHouse.
    fn listen_address(&self) -> Result<IpAddr, ConfigError> {
        if self.listen_hosts.iter().any(|(_, address)| address.is_unspecified()) {
            return Ok(zoo_values::all_addresses());
        }
        match &self.listen_hosts[..] {
            [] => Ok(Ipv4Addr::LOCALHOST.into()),
            [(_, address)] => Ok(*address),
            [_, (line, _), ..] => {
                Err(line.fault("a member listens at one address or, with 0.0.0.0 or ::, at all; keep one"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
