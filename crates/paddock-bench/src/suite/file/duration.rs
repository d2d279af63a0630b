//! Times in a suite's file, such as `"500ms"`.

use std::time::Duration;

use serde::Deserialize;

pub(super) fn duration<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = humantime::parse_duration(&text);
    time.map(Some).map_err(|error| {
        serde::de::Error::custom(format!("{text:?} is no time such as \"500ms\", \"10s\" or \"2m\": {error}"))
    })
}
