//! `[tracing]`.

use toml::Spanned;
use toml::de::DeValue;

use super::super::opentelemetry::{TracingDraft, endpoint, service_name};
use super::super::remark::{ConfigError, Location, Remark};
use super::file::{File, in_order, named};

const TRACING: &str = "tracing";

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    remarks: &mut Vec<Remark>,
) -> Result<TracingDraft, ConfigError> {
    let fault = |what: &str| place.clone().fault(format!("{TRACING}: {what}"));
    let table = value.get_ref().as_table().ok_or_else(|| fault("expected a table [tracing]"))?;
    let (mut found, mut name) = (None, None);
    for (key, value) in in_order(table) {
        let place = file.place(key.span().start);
        let key = format!("{TRACING}.{}", key.get_ref());
        let item = file.item(value);
        match key.as_str() {
            "tracing.endpoint" => found = Some(endpoint(&item).map_err(named(&place, &key))?),
            "tracing.service_name" => name = Some(service_name(&item).map_err(named(&place, &key))?),
            _ => {
                let what = format!("{key} is not a setting that Paddock knows; it is ignored");
                remarks.push(place.warning(what));
            }
        }
    }
    let endpoint = found.ok_or_else(|| fault("endpoint is missing"))?;
    Ok(TracingDraft { endpoint, service_name: name })
}
