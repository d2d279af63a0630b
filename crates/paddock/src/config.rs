//! Settings of a member: the command line counts before the file, the file before the environment, the environment
//! before the defaults.
//!
//! The three file formats fill the same `Draft`; the environment does it by way of one of them. Nothing is logged here:
//! what the operator should know comes back as remarks, and a configuration that cannot be used is one `Fault`, which
//! prints as one line.

#[cfg(test)]
mod case;
mod draft;
mod ensemble;
mod environment;
mod keeper;
mod known_keys;
mod opentelemetry;
mod paddock_toml;
mod properties;
mod source;
mod value;
mod zoo_cfg;
mod zoo_keys;
mod zoo_quorum;
mod zoo_servers;
mod zoo_tls;
mod zoo_values;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use paddock_server::Config;

use draft::Draft;
pub(crate) use environment::Environment;
use source::Source;

/// Where the data is kept unless someone says otherwise.
pub(crate) const DEFAULT_DATA_DIR: &str = "paddock-data";

/// Settings of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) remarks: Vec<Remark>,
}

/// Reads `file`, or what stands in for it: a file that the environment names, or its variables.
pub(crate) fn load(
    file: Option<&Path>,
    overrides: &Overrides,
    environment: &Environment,
) -> Result<Loaded, Fault> {
    let mut remarks = Vec::new();
    let found = environment.file();
    let file = file.or(found.as_deref());
    environment.remark(file, &mut remarks);
    let (place, mut draft) = match (file, environment.zoo_cfg()) {
        (Some(file), _) if file.extension().is_some_and(|extension| extension == "toml") => {
            (Place::new(file), paddock_toml::load(file, environment, &mut remarks)?)
        }
        (Some(file), _) if keeper::is_keeper_file(file) => {
            (Place::new(file), keeper::load(file, overrides, environment, &mut remarks)?)
        }
        (Some(file), _) => {
            let source = Source::open(file)?;
            (source.whole(), zoo_cfg::load(&source, overrides, environment, &mut remarks)?)
        }
        (None, Some(source)) => {
            (source.whole(), zoo_cfg::load(&source, overrides, environment, &mut remarks)?)
        }
        (None, None) => (Place::new(Path::new("command line")), Draft::default()),
    };
    draft.config.tracing = opentelemetry::settle(draft.tracing.take(), environment, &mut remarks);
    let config = draft.finish(overrides).and_then(refuse_foreign_data).map_err(|what| place.fault(what))?;
    Ok(Loaded { config, remarks })
}

/// Another server's data is not read. To serve an empty tree in its place would look to clients as if all was lost.
fn refuse_foreign_data(config: Config) -> Result<Config, String> {
    if let Some(file) = data_of_clickhouse_keeper(&config) {
        return Err(format!(
            "{} is ClickHouse Keeper's data, which this version does not read; name an empty directory",
            file.display()
        ));
    }
    if !config.data_dir.join("version-2").is_dir() {
        return Ok(config);
    }
    Err(format!(
        "{} holds ZooKeeper's data (version-2), which this version does not read; name an empty directory",
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
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    value::address(&value::Text(text))
}

/// A file, and a line of it if one is meant; or the name of what stands in for a file, such as a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    file: PathBuf,
    line: Option<usize>,
}

impl Place {
    fn new(file: &Path) -> Place {
        Place { file: file.to_owned(), line: None }
    }

    fn at(file: &Path, line: usize) -> Place {
        Place { file: file.to_owned(), line: Some(line) }
    }

    /// Without the line.
    fn whole(&self) -> Place {
        Place::new(&self.file)
    }

    /// The file, or what stands in its place.
    fn source(&self) -> std::path::Display<'_> {
        self.file.display()
    }

    fn fault(self, what: impl Into<String>) -> Fault {
        Fault { place: self, what: what.into() }
    }

    fn warning(self, what: impl Into<String>) -> Remark {
        Remark { weight: Weight::Warning, place: self, what: what.into() }
    }

    fn detail(self, what: impl Into<String>) -> Remark {
        Remark { weight: Weight::Detail, place: self, what: what.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub(crate) struct Fault {
    place: Place,
    what: String,
}

/// A fact that the operator should know about a configuration that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    weight: Weight,
    place: Place,
    what: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Weight {
    Warning,
    Detail,
}

impl Remark {
    pub(crate) fn log(&self) {
        match self.weight {
            Weight::Warning => tracing::warn!("{self}"),
            Weight::Detail => tracing::debug!("{self}"),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

fn cannot_read(file: &Path, error: &io::Error) -> Fault {
    Place::new(file).fault(format!("cannot be read: {error}"))
}
