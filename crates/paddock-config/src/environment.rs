//! The environment variables of ZooKeeper's official container image, whose entry point makes a `zoo.cfg` of them if
//! there is none. Here they become the same lines, without a file.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use super::ensemble::OwnNumber;
use super::overrides::DEFAULT_DATA_DIR;
use super::remark::{ConfigError, Location, Remarks};
use super::source::Source;
use super::value::{self, Text};

pub(super) const MY_ID: &str = "ZOO_MY_ID";
/// Files of the directory of `ZOO_CONF_DIR`.
const FILES: [&str; 4] = ["zoo.cfg", "paddock.toml", "keeper_config.xml", "keeper_config.yaml"];
const CONF_DIR: &str = "ZOO_CONF_DIR";
const SERVERS: &str = "ZOO_SERVERS";
const CFG_EXTRA: &str = "ZOO_CFG_EXTRA";

/// Variables that are one key each, in the order of the image's lines. A key without a variable has the default, if
/// there is one.
const KEYS: &[(&str, &str, Option<&str>)] = &[
    ("ZOO_DATA_DIR", "dataDir", Some(DEFAULT_DATA_DIR)),
    ("ZOO_DATA_LOG_DIR", "dataLogDir", None),
    ("ZOO_TICK_TIME", "tickTime", Some("2000")),
    ("ZOO_INIT_LIMIT", "initLimit", None),
    ("ZOO_SYNC_LIMIT", "syncLimit", None),
    ("ZOO_AUTOPURGE_SNAPRETAINCOUNT", "autopurge.snapRetainCount", None),
    ("ZOO_AUTOPURGE_PURGEINTERVAL", "autopurge.purgeInterval", None),
    ("ZOO_MAX_CLIENT_CNXNS", "maxClientCnxns", None),
    ("ZOO_STANDALONE_ENABLED", "standaloneEnabled", None),
    ("ZOO_ADMINSERVER_ENABLED", "admin.enableServer", None),
    ("ZOO_4LW_COMMANDS_WHITELIST", "4lw.commands.whitelist", None),
];

/// Variables of the image that are of no use here.
const MEANINGLESS: &[(&str, &str)] = &[
    ("ZOO_LOG_DIR", "logs go to standard error"),
    ("ZOO_LOG4J_PROP", "--log and PADDOCK_LOG say what is logged"),
];

/// The variables that are not empty. An empty one is as good as none.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    pub fn of_process() -> Environment {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Environment::new(env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    pub(super) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Environment {
        Environment(variables.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The file that counts before the variables: the first of these that is in the directory of `ZOO_CONF_DIR`.
    pub fn file(&self) -> Option<PathBuf> {
        let directory = Path::new(self.variable(CONF_DIR)?);
        FILES.into_iter().map(|name| directory.join(name)).find(|file| file.is_file())
    }

    /// This member's number, which counts if nothing else says it.
    pub(super) fn own_number(&self) -> Result<Option<OwnNumber>, ConfigError> {
        let Some(text) = self.variable(MY_ID) else { return Ok(None) };
        let place = Location::new(Path::new(MY_ID));
        let number = value::number(&Text(text.trim()), value::MEMBER, value::A_MEMBER)
            .map_err(|what| place.clone().fault(what))?;
        Ok(Some(OwnNumber { place, number }))
    }

    /// The `zoo.cfg` that the image would make, or `None` if no variable says what would be in it.
    pub(super) fn zoo_cfg(&self) -> Result<Option<Source>, ConfigError> {
        if !self.0.keys().any(|name| is_setting(name)) {
            return Ok(None);
        }
        let mut source = Source::of_environment();
        for (variable, key, default) in KEYS {
            if let Some(value) = self.variable(variable).or(*default) {
                source.add(variable, &format!("{key}={value}"));
            }
        }
        match self.variable(SERVERS) {
            Some(servers) => {
                for server in servers.split_whitespace() {
                    refuse_other_form(server)?;
                    source.add(SERVERS, server);
                }
            }
            // The image names itself a lone server here, with this port for clients.
            None => source.add(SERVERS, "clientPort=2181"),
        }
        for line in self.variable(CFG_EXTRA).unwrap_or_default().split_whitespace() {
            source.add(CFG_EXTRA, line);
        }
        Ok(Some(source))
    }

    /// Names what is not known. `file` is what counts in place of the variables, if there is one.
    pub(super) fn remark(&self, file: Option<&Path>, remarks: &mut Remarks) {
        for name in self.0.keys().filter(|name| name.starts_with("ZOO_")) {
            let place = Location::new(Path::new(name));
            let meaningless = MEANINGLESS.iter().find(|(known, _)| known == name);
            if let Some((_, reason)) = meaningless {
                remarks.push(place.detail(format!("it changes nothing: {reason}")));
            } else if name == CONF_DIR || name == MY_ID {
                continue;
            } else if !is_setting(name) {
                remarks.push(place.warning("it is not a variable that Paddock knows; it is ignored"));
            } else if let Some(file) = file {
                remarks.push(place.detail(format!("it changes nothing: {} counts", file.display())));
            }
        }
    }
}

/// Another image's entries, `zoo1:2888:3888::1,zoo2:2888:3888::2`, would be taken for keys that are not known.
fn refuse_other_form(entry: &str) -> Result<(), ConfigError> {
    if entry.contains('=') {
        return Ok(());
    }
    let what = format!(
        "expected server.N=HOST:PORT:PORT;PORT for each member, with spaces between, found {entry:?}"
    );
    Err(Location::new(Path::new(SERVERS)).fault(what))
}

/// True for a variable that stands for a line of `zoo.cfg` or `myid`.
fn is_setting(name: &str) -> bool {
    [MY_ID, SERVERS, CFG_EXTRA].contains(&name) || KEYS.iter().any(|(variable, ..)| *variable == name)
}

#[cfg(test)]
mod tests;
