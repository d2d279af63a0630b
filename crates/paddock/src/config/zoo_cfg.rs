//! ZooKeeper's `zoo.cfg`, its dynamic configuration file and its `myid`, read as ZooKeeper 3.9 reads them.
//!
//! Always true: a key of any such file is taken, known to change nothing, or named in a remark.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::properties::{self, Property};
use super::value::{self, Text};
use super::zoo_keys::{self, Otherwise};
use super::zoo_values;
use super::{Fault, Overrides, Place, Remark, cannot_read};

/// The tick of a `zoo.cfg` that does not say.
const TICK_MS: u32 = 3000;
/// ZooKeeper keeps no fewer.
const SNAPSHOTS_KEPT_MIN: usize = 3;
const MEMBER: &str = "a number from 1 to 255";

pub(super) fn load(file: &Path, overrides: &Overrides, remarks: &mut Vec<Remark>) -> Result<Draft, Fault> {
    let mut zoo = ZooCfg::default();
    zoo.read(file, remarks)?;
    if let Some(dynamic) = zoo.dynamic_file.take() {
        zoo.read(&dynamic, remarks)?;
    }
    zoo.finish(file, overrides, remarks)
}

/// What the files say. Keys that depend on others wait outside `draft`.
#[derive(Default)]
struct ZooCfg {
    draft: Draft,
    tick_ms: Option<u32>,
    client_port: Option<u16>,
    client_address: Option<IpAddr>,
    garbage_per_minute: Option<u64>,
    dynamic_file: Option<PathBuf>,
    server: Option<ServerLine>,
}

/// `server.N`
struct ServerLine {
    place: Place,
    number: u8,
    client_port: Option<u16>,
    client_address: Option<IpAddr>,
}

impl ZooCfg {
    fn read(&mut self, file: &Path, remarks: &mut Vec<Remark>) -> Result<(), Fault> {
        let text = properties::decode(fs::read(file).map_err(|error| cannot_read(file, &error))?);
        let properties = properties::parse(&text)
            .map_err(|malformed| Place::at(file, malformed.line).fault(malformed.what))?;
        for property in &properties {
            self.take(file, property, remarks)?;
        }
        Ok(())
    }

    fn take(&mut self, file: &Path, property: &Property, remarks: &mut Vec<Remark>) -> Result<(), Fault> {
        let place = Place::at(file, property.line);
        // Both are ways to one system property of ZooKeeper.
        let key = property.key.trim();
        let key = key.strip_prefix("zookeeper.").unwrap_or(key);
        let value = property.value.trim();
        if let Some(number) = key.strip_prefix("server.") {
            return self.take_server(place, key, number, value);
        }
        match self.set(key, &Text(value)) {
            Err(what) => return Err(place.fault(format!("{key}: {what}"))),
            Ok(Known::Yes) => {}
            Ok(Known::Adjusted(what)) => remarks.push(place.warning(format!("{key}: {what}"))),
            Ok(Known::No) => remarks.extend(remark_on(place, key, value)?),
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &Text<'_>) -> Result<Known, String> {
        let draft = &mut self.draft;
        let config = &mut draft.config;
        match key {
            "dataDir" => draft.data_dir = Some(value::path(value)?),
            "dataLogDir" => config.log_dir = Some(value::path(value)?),
            "clientPort" => self.client_port = zoo_values::port(value)?,
            "clientPortAddress" => self.client_address = Some(value::host_address(value.0)?),
            "dynamicConfigFile" => self.dynamic_file = Some(value::path(value)?),
            "tickTime" => self.tick_ms = Some(value::milliseconds(value)?),
            "minSessionTimeout" => draft.session_timeout_ms_min = zoo_values::timeout(value)?,
            "maxSessionTimeout" => draft.session_timeout_ms_max = zoo_values::timeout(value)?,
            "maxClientCnxns" => config.connections_per_address_max = zoo_values::connections(value)?,
            "maxCnxns" => config.connections_max = zoo_values::connections(value)?,
            "4lw.commands.whitelist" => config.words = zoo_values::words(value.0),
            "jute.maxbuffer" => config.frame_bytes_max = zoo_values::frame_bytes(value)?,
            "snapCount" => config.snapshot_writes = value::amount(value, 1..=i64::MAX, "writes")?,
            "snapSizeLimitInKb" => config.snapshot_log_bytes = zoo_values::snapshot_log_bytes(value)?,
            "autopurge.snapRetainCount" => return self.set_snapshots_kept(value),
            "preAllocSize" => config.segment_bytes = zoo_values::segment_bytes(value)?,
            "DigestAuthenticationProvider.superDigest" => {
                config.super_digest = Some(value::super_digest(value)?);
            }
            "znode.container.checkIntervalMs" => config.garbage_interval_ms = value::milliseconds(value)?,
            "znode.container.maxPerMinute" => {
                self.garbage_per_minute = Some(value::amount(value, 1..=i32::MAX.into(), "znodes")?);
            }
            _ => return Ok(Known::No),
        }
        Ok(Known::Yes)
    }

    fn set_snapshots_kept(&mut self, value: &Text<'_>) -> Result<Known, String> {
        let asked: i32 = value::number(value, i32::MIN.into()..=i32::MAX.into(), "a number of snapshots")?;
        let asked = usize::try_from(asked).unwrap_or(0);
        self.draft.config.snapshots_kept = asked.max(SNAPSHOTS_KEPT_MIN);
        if asked < SNAPSHOTS_KEPT_MIN {
            return Ok(Known::Adjusted(format!("{SNAPSHOTS_KEPT_MIN} snapshots are kept, as in ZooKeeper")));
        }
        Ok(Known::Yes)
    }

    fn take_server(&mut self, place: Place, key: &str, number: &str, value: &str) -> Result<(), Fault> {
        let number = value::number(&Text(number), 1..=255, MEMBER)
            .map_err(|what| place.clone().fault(format!("{key}: {what} after server.")))?;
        if let Some(other) = self.server.as_ref().filter(|other| other.number != number) {
            return Err(place.fault(format!(
                "{key}: this version serves a single member, and server.{} is one already",
                other.number
            )));
        }
        let (client_address, client_port) =
            zoo_values::client_part(value).map_err(|what| place.clone().fault(format!("{key}: {what}")))?;
        self.server = Some(ServerLine { place, number, client_port, client_address });
        Ok(())
    }

    fn finish(
        mut self,
        file: &Path,
        overrides: &Overrides,
        remarks: &mut Vec<Remark>,
    ) -> Result<Draft, Fault> {
        let config = &mut self.draft.config;
        config.tick_ms = self.tick_ms.unwrap_or(TICK_MS);
        if let Some(per_minute) = self.garbage_per_minute {
            let each_time = per_minute.saturating_mul(config.garbage_interval_ms) / 60_000;
            config.garbage_max = usize::try_from(each_time).unwrap_or(usize::MAX).max(1);
        }
        self.draft.listen = self.listen();
        if overrides.listen.is_none() && self.draft.listen.is_none() {
            return Err(Place::new(file).fault("clientPort is missing"));
        }
        let Some(data_dir) = overrides.data_dir.as_deref().or(self.draft.data_dir.as_deref()) else {
            return Err(Place::new(file).fault("dataDir is missing"));
        };
        self.draft.config.member = member(data_dir, self.server.as_ref(), remarks)?;
        Ok(self.draft)
    }

    /// What a server line says counts before `clientPort` and `clientPortAddress`, as in ZooKeeper.
    fn listen(&self) -> Option<SocketAddr> {
        let server = self.server.as_ref();
        let port = server.and_then(|server| server.client_port).or(self.client_port)?;
        let address = server.and_then(|server| server.client_address).or(self.client_address);
        Some(SocketAddr::new(address.unwrap_or_else(zoo_values::all_addresses), port))
    }
}

enum Known {
    Yes,
    No,
    /// It is known, but this value is not taken as it is.
    Adjusted(String),
}

/// What there is to say of a key that sets nothing.
fn remark_on(place: Place, key: &str, value: &str) -> Result<Option<Remark>, Fault> {
    if let Some(reason) = zoo_keys::meaningless(key) {
        return Ok(Some(place.detail(format!("{key} changes nothing: {reason}"))));
    }
    let Some(fixed) = zoo_keys::fixed(key) else {
        return Ok(Some(place.warning(format!("{key} is not a setting that Paddock knows; it is ignored"))));
    };
    if fixed.values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
        return Ok(None);
    }
    match fixed.otherwise {
        Otherwise::Warn(reason) => {
            Ok(Some(place.warning(format!("{key}: {value:?} has no effect: {reason}"))))
        }
        Otherwise::Refuse(reason) => Err(place.fault(format!("{key}: {value:?} is not offered: {reason}"))),
    }
}

/// This member's number, from `myid` or from the server line.
fn member(data_dir: &Path, server: Option<&ServerLine>, remarks: &mut Vec<Remark>) -> Result<u8, Fault> {
    let file = data_dir.join("myid");
    let text = match fs::read(&file) {
        Ok(bytes) => properties::decode(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(server.map_or(1, |server| server.number));
        }
        Err(error) => return Err(cannot_read(&file, &error)),
    };
    let first = text.lines().next().unwrap_or("").trim();
    let number =
        value::number(&Text(first), 1..=255, MEMBER).map_err(|what| Place::at(&file, 1).fault(what))?;
    if let Some(server) = server.filter(|server| server.number != number) {
        let what = format!("server.{}: {} says {number}, which counts", server.number, file.display());
        remarks.push(server.place.clone().warning(what));
    }
    Ok(number)
}

#[cfg(test)]
mod tests;
