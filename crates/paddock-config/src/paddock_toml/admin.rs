//! `[admin]`: the HTTP interface for administrators.

use paddock_server::{AdminSettings, PortProtocol};
use toml::Spanned;
use toml::de::DeValue;

use super::super::remark::{ConfigError, Location, Remarks};
use super::super::value::{self, Value};
use super::super::zoo_admin::url;
use super::file::{File, Item, boolean, each_key, table, texts};

const ADMIN: &str = "admin";
const KEYS: &[&str] = &[
    "command_url",
    "ready_path",
    "metrics_path",
    "metrics_names",
    "idle_timeout_ms",
    "snapshots",
    "rate_limit_ms",
    "hosts",
    "tls",
    "needs_certificate",
];

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    remarks: &mut Remarks,
) -> Result<AdminSettings, ConfigError> {
    let table = table(value, place, ADMIN)?;
    let mut settings = AdminSettings::default();
    each_key(file, table, (ADMIN, KEYS), remarks, |setting, _| {
        set(&mut settings, setting.key, &setting.item).map_err(|what| setting.fault(what))
    })?;
    Ok(settings)
}

/// Takes a setting, unless its key is not known.
fn set(settings: &mut AdminSettings, key: &str, value: &Item<'_>) -> Result<bool, String> {
    match key {
        "command_url" => settings.command_url = url(value)?,
        "ready_path" => settings.ready_path = url(value)?,
        "metrics_path" => settings.metrics_path = url(value)?,
        "metrics_names" => settings.has_keeper_names = has_keeper_names(value)?,
        "idle_timeout_ms" => settings.idle_timeout_ms = value::milliseconds(value)?,
        "snapshots" => settings.has_snapshots = boolean(value)?,
        "rate_limit_ms" => settings.rate_limit_ms = value::milliseconds(value)?,
        "hosts" => settings.hosts = texts(value, "a list of names, such as [\"zk1.example.org\"]")?,
        "tls" => settings.tls.protocol = protocol(value)?,
        "needs_certificate" => settings.tls.needs_certificate = boolean(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn has_keeper_names(value: &Item<'_>) -> Result<bool, String> {
    match value.text() {
        Some("zookeeper") => Ok(false),
        Some("clickhouse") => Ok(true),
        _ => Err(value::wrong("\"zookeeper\" or \"clickhouse\"", value)),
    }
}

fn protocol(value: &Item<'_>) -> Result<PortProtocol, String> {
    match value.text() {
        Some("off") => Ok(PortProtocol::Plaintext),
        Some("optional") => Ok(PortProtocol::Either),
        Some("required") => Ok(PortProtocol::Tls),
        _ => Err(value::wrong("\"off\", \"optional\" or \"required\"", value)),
    }
}
