//! `[admin]`: the HTTP interface for administrators.

use paddock_server::{AdminSettings, PortProtocol};
use toml::Spanned;
use toml::de::DeValue;

use super::super::remark::{ConfigError, Location, Remark};
use super::super::value::{self, Value};
use super::super::zoo_admin::url;
use super::file::{File, Item, boolean, in_order, named, texts};

const ADMIN: &str = "admin";

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    remarks: &mut Vec<Remark>,
) -> Result<AdminSettings, ConfigError> {
    let fault = |what: &str| place.clone().fault(format!("{ADMIN}: {what}"));
    let table = value.get_ref().as_table().ok_or_else(|| fault("expected a table [admin]"))?;
    let mut settings = AdminSettings::default();
    for (key, value) in in_order(table) {
        let place = file.place(key.span().start);
        let name = format!("{ADMIN}.{}", key.get_ref());
        if !set(&mut settings, key.get_ref(), &file.item(value)).map_err(named(&place, &name))? {
            let what = format!("{name} is not a setting that Paddock knows; it is ignored");
            remarks.push(place.warning(what));
        }
    }
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
