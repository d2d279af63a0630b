//! Settings of a server, as files and variables say them: the command line counts before the file, the file before the environment,
//! the environment before the defaults.
//!
//! The three file formats fill the same `Draft`; the environment does it by way of one of them. Nothing is logged here:
//! what the operator should know comes back as remarks, and a configuration that cannot be used is one `ConfigError`, which
//! prints as one line.

mod backup;
#[cfg(test)]
mod case;
mod draft;
mod ensemble;
mod environment;
mod etcd;
mod jaas;
mod jvm_flags;
mod keeper;
#[cfg(test)]
mod key_tables;
mod known_keys;
mod log_filter;
mod opentelemetry;
mod origins;
mod overrides;
mod paddock_toml;
mod properties;
mod remark;
mod rows;
mod sasl;
mod secret_files;
#[cfg(test)]
mod settings_page;
mod shown;
mod source;
mod text_file;
mod value;
mod zoo_admin;
mod zoo_cfg;
mod zoo_client_tls;
mod zoo_keys;
mod zoo_limits;
mod zoo_metrics;
mod zoo_quorum;
mod zoo_servers;
mod zoo_tls;
mod zoo_values;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use paddock_server::{Config, LateNames, PeerTls};

pub use backup::BackupSettings;
use draft::Draft;
pub use environment::Environment;
pub use etcd::{EngineName, EtcdDraft, parse_endpoints};
pub use log_filter::parse_log_filter;
pub use origins::Origins;
pub use overrides::Overrides;
pub use remark::{ConfigError, Remark, printable};
use remark::{Location, Remarks};
pub use secret_files::SecretFiles;
pub use shown::shown_with_origins;
use source::Source;

/// A configuration that can be used.
#[derive(Debug)]
pub struct Loaded {
    /// The settings of the server.
    pub config: Config,
    /// Facts that its operator should know.
    pub remarks: Vec<Remark>,
    /// The place of each setting.
    pub origins: Origins,
    /// The filter of the log, as `--log` takes it.
    pub log: Option<String>,
    /// Backups that the server makes by itself.
    pub backup: Option<BackupSettings>,
    /// Files of the configuration in which passwords stand.
    pub secret_files: SecretFiles,
}

/// Reads `file`, or what stands in for it: a file that the environment names, or its variables.
pub fn load(
    file: Option<&Path>,
    overrides: &Overrides,
    environment: &Environment,
) -> Result<Loaded, ConfigError> {
    let mut remarks = Remarks::default();
    let loaded = load_with(file, overrides, environment, &mut remarks);
    let Read { config, log, backup, secret_files } = remarks.settle(loaded)?;
    let Remarks { list, mut origins, .. } = remarks;
    overrides.note(&mut origins);
    Ok(Loaded { config, remarks: list, origins, log, backup, secret_files })
}

/// A file with those that are merged into it.
pub fn files_of(file: &Path) -> Vec<PathBuf> {
    let merged = if keeper::is_keeper_file(file) { keeper::merged_files(file) } else { Vec::new() };
    std::iter::once(file.to_owned()).chain(merged).collect()
}

/// A file as it was read.
struct Read {
    config: Config,
    log: Option<String>,
    backup: Option<BackupSettings>,
    secret_files: SecretFiles,
}

fn load_with(
    file: Option<&Path>,
    overrides: &Overrides,
    environment: &Environment,
    remarks: &mut Remarks,
) -> Result<Read, ConfigError> {
    let found = environment.file();
    let file = file.or(found.as_deref());
    environment.remark(file, remarks);
    let variables = if file.is_some() { None } else { environment.zoo_cfg()? };
    let (place, mut draft) = match (file, variables) {
        (Some(file), _) if file.extension().is_some_and(|extension| extension == "toml") => {
            jvm_flags::remark_on_unused(environment, file, remarks);
            (Location::new(file), paddock_toml::load(file, environment, remarks)?)
        }
        (Some(file), _) if keeper::is_keeper_file(file) => {
            jvm_flags::remark_on_unused(environment, file, remarks);
            (Location::new(file), keeper::load(file, overrides, environment, remarks)?)
        }
        (Some(file), _) => {
            let source = Source::open(file)?;
            (source.whole(), zoo_cfg::load(&source, overrides, environment, remarks)?)
        }
        (None, Some(source)) => (source.whole(), zoo_cfg::load(&source, overrides, environment, remarks)?),
        (None, None) => {
            let place = Path::new("command line");
            jvm_flags::remark_on_unused(environment, place, remarks);
            (Location::new(place), Draft::default())
        }
    };
    let mut secret_files = SecretFiles::of_draft(&draft, overrides);
    std::mem::take(&mut draft.sasl).settle(&place, &mut draft.config, remarks)?;
    draft.config.tracing = opentelemetry::settle(draft.tracing.take(), environment, remarks);
    let (log, backup) = (draft.log.take(), std::mem::take(&mut draft.backup));
    for name in draft.config.late_names.names() {
        let what = format!(
            "{name} cannot be looked up: the ports at this name are tried again (bind_tries, electionPortBindRetry)"
        );
        remarks.push(place.clone().warning(what));
    }
    let config =
        draft.finish(overrides).and_then(refuse_foreign_data).map_err(|what| place.clone().fault(what))?;
    let backup = backup.settle(config.etcd.is_none()).map_err(|what| place.fault(what))?;
    secret_files.settle(file, &config);
    Ok(Read { config, log, backup, secret_files })
}

/// Settings of TLS between members, as a `zoo.cfg` says them; all else in it is passed over.
pub fn quorum_tls(file: &Path) -> Result<PeerTls, ConfigError> {
    let source = Source::open(file)?;
    let mut keys = zoo_tls::ZooTls::default();
    for line in source.lines()? {
        keys.take(&line);
    }
    let settings = keys.settle(&mut Remarks::default())?;
    settings.ok_or_else(|| source.whole().fault("TLS between members is not on: sslQuorum=true is missing"))
}

/// Another server's data is not read. To serve an empty tree in its place would look to clients as if all was lost.
fn refuse_foreign_data(config: Config) -> Result<Config, String> {
    if let Some(file) = data_of_clickhouse_keeper(&config) {
        return Err(format!(
            "{} is ClickHouse Keeper's data, which this version does not read; name an empty directory",
            file.display()
        ));
    }
    if config.etcd.is_some() || !config.data_dir.join("version-2").is_dir() {
        return Ok(config);
    }
    Err(format!(
        "{0} holds ZooKeeper's data (version-2): name an empty directory, or one that was made by: paddock import zookeeper \
         --data-dir {0} --to NEW",
        config.data_dir.display()
    ))
}

fn data_of_clickhouse_keeper(config: &Config) -> Option<PathBuf> {
    let data_dir = &config.data_dir;
    let places = [data_dir.join("log"), data_dir.join("logs"), data_dir.join("snapshots"), data_dir.clone()];
    let files = places.into_iter().chain(config.log_dir.clone()).filter_map(|place| place.read_dir().ok());
    files.flatten().flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".bin") && (name.starts_with("changelog_") || name.starts_with("snapshot_"))
    })
}

/// `ADDR:PORT`, where `ADDR` may be a name.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let mut late = LateNames::default();
    let address = value::address(&value::Text(text), &mut late)?;
    // An operator who types a name is told at once.
    late.names().try_for_each(|name| value::known_address(name).map(drop))?;
    Ok(address)
}

/// Reads `HOST:PORT`.
pub fn parse_host_and_port(text: &str) -> Result<String, String> {
    value::host_and_port(&value::Text(text))
}
