//! `[tracing]`.

use toml::Spanned;
use toml::de::DeValue;

use super::super::opentelemetry::{TracingDraft, endpoint, service_name};
use super::super::remark::{ConfigError, Location, Remarks};
use super::file::{File, each_key, table};

const TRACING: &str = "tracing";
const KEYS: &[&str] = &["endpoint", "service_name"];

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    remarks: &mut Remarks,
) -> Result<TracingDraft, ConfigError> {
    let fault = |what: &str| place.clone().fault(format!("{TRACING}: {what}"));
    let table = table(value, place, TRACING)?;
    let (mut found, mut name) = (None, None);
    each_key(file, table, (TRACING, KEYS), remarks, |setting, _| {
        let named = |what: String| setting.fault(what);
        match setting.key {
            "endpoint" => found = Some(endpoint(&setting.item).map_err(named)?),
            "service_name" => name = Some(service_name(&setting.item).map_err(named)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let endpoint = found.ok_or_else(|| fault("endpoint is missing"))?;
    Ok(TracingDraft { endpoint, service_name: name })
}
