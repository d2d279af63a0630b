//! Settings with a form of their own, neither number nor flag: each with the way from Paddock's own file and the way back.

use std::net::SocketAddr;
use std::path::Path;

use paddock_server::{
    AuditTarget, Config, Dialect, DigestAlgorithm, MemoryMax, RateRule, RateRules, SplitPaths, WordList,
};
use toml::Value as TomlValue;

use super::super::draft::Draft;
use super::super::etcd::EngineName;
use super::super::value::{self, Value};
use super::file::{Item, texts};

/// A value for the file that is shown.
pub(in super::super) enum ShownValue {
    Value(TomlValue),
    /// A secret is set.
    Hidden,
    /// No value is set, and none of the file says so.
    Unset,
}

/// The two ways of a setting, by its key.
pub(in super::super) struct OwnForm {
    pub(in super::super) key: &'static str,
    pub(super) read: fn(&mut Draft, &Item<'_>) -> Result<(), String>,
    pub(in super::super) show: fn(&Config) -> ShownValue,
}

/// The form of the setting with this key, if it has one of its own.
pub(in super::super) fn find(key: &str) -> Option<&'static OwnForm> {
    OWN_FORMS.iter().find(|form| form.key == key)
}

const fn form(
    key: &'static str,
    read: fn(&mut Draft, &Item<'_>) -> Result<(), String>,
    show: fn(&Config) -> ShownValue,
) -> OwnForm {
    OwnForm { key, read, show }
}

const OWN_FORMS: &[OwnForm] = &[
    form(
        "engine",
        |draft, item| set(&mut draft.etcd.engine, engine(item).map(Some)),
        |config| shown(if config.etcd.is_some() { "etcd" } else { "log" }),
    ),
    form(
        "listen",
        |draft, item| set(&mut draft.listen, value::address(item, &mut draft.config.late_names).map(Some)),
        |config| address(config, Some(config.listen)),
    ),
    form(
        "data_dir",
        |draft, item| set(&mut draft.data_dir, value::path(item).map(Some)),
        |config| shown(path(&config.data_dir)),
    ),
    form(
        "log_dir",
        |draft, item| set(&mut draft.config.log_dir, value::path(item).map(Some)),
        |config| shown_some(config.log_dir.as_deref().map(path)),
    ),
    form("log", |draft, item| set(&mut draft.log, value::log_filter(item).map(Some)), |_| ShownValue::Unset),
    form(
        "member",
        |draft, item| set(&mut draft.member, value::number(item, value::MEMBER, value::A_MEMBER).map(Some)),
        |config| shown(i64::from(config.member)),
    ),
    form(
        "memory_max",
        |draft, item| set(&mut draft.config.memory_max, value::memory(item)),
        |config| shown(memory(config.memory_max)),
    ),
    form(
        "dialect",
        |draft, item| set(&mut draft.config.dialect, value::dialect(item)),
        |config| shown(dialect_name(config.dialect)),
    ),
    form(
        "availability_zone",
        |draft, item| set(&mut draft.config.availability_zone, value::availability_zone(item).map(Some)),
        |config| shown_some(config.availability_zone.clone()),
    ),
    form(
        "metrics_listen",
        |draft, item| {
            let config = &mut draft.config;
            set(&mut config.metrics_listen, value::address(item, &mut config.late_names).map(Some))
        },
        |config| address(config, config.metrics_listen),
    ),
    form(
        "admin_listen",
        |draft, item| {
            let config = &mut draft.config;
            set(&mut config.admin_listen, value::address(item, &mut config.late_names).map(Some))
        },
        |config| address(config, config.admin_listen),
    ),
    form(
        "words",
        |draft, item| set(&mut draft.config.words, words(item)),
        |config| shown(word_list(&config.words)),
    ),
    form(
        "digest_algorithm",
        |draft, item| set(&mut draft.config.digest_algorithm, value::digest_algorithm(item)),
        |config| shown(digest_algorithm_name(config.digest_algorithm)),
    ),
    form(
        "super_digest",
        |draft, item| set(&mut draft.config.super_digest, value::super_digest(item).map(Some)),
        |config| if config.super_digest.is_some() { ShownValue::Hidden } else { ShownValue::Unset },
    ),
    form(
        "required_schemes",
        |draft, item| {
            set(&mut draft.sasl.schemes, texts(item, "a list of schemes, such as [\"sasl\"]"))?;
            draft.sasl.is_enforced = !draft.sasl.schemes.is_empty();
            Ok(())
        },
        |config| shown(config.required_schemes.clone()),
    ),
    form(
        "rate_limits",
        |draft, item| {
            let texts = texts(item, "a list of rules, such as [\"path:requests=1000\"]")?;
            let rules = RateRules::parse(texts.iter().map(String::as_str));
            set(&mut draft.config.client_limits.rate_limits, rules.map_err(|error| error.to_string()))
        },
        |config| {
            let rules = config.client_limits.rate_limits.iter().map(RateRule::to_string);
            shown(rules.collect::<Vec<String>>())
        },
    ),
    form(
        "split_points",
        |draft, item| {
            let paths = texts(item, "a list of paths, such as [\"/app\"]")?;
            let paths = SplitPaths::of(paths.iter().map(String::as_str));
            set(&mut draft.config.member_settings.split_points, paths.map_err(|error| error.to_string()))
        },
        |config| {
            shown(config.member_settings.split_points.iter().map(str::to_owned).collect::<Vec<String>>())
        },
    ),
    form(
        "audit_log",
        |draft, item| set(&mut draft.config.audit_log, value::audit_log(item).map(Some)),
        |config| shown_some(config.audit_log.as_ref().map(audit_target)),
    ),
    form(
        "cross_check",
        |draft, item| set(&mut draft.config.cross_check, value::host_and_port(item).map(Some)),
        |config| shown_some(config.cross_check.clone()),
    ),
];

fn set<T>(setting: &mut T, value: Result<T, String>) -> Result<(), String> {
    *setting = value?;
    Ok(())
}

fn shown(value: impl Into<TomlValue>) -> ShownValue {
    ShownValue::Value(value.into())
}

fn shown_some(value: Option<impl Into<TomlValue>>) -> ShownValue {
    value.map_or(ShownValue::Unset, shown)
}

fn address(config: &Config, address: Option<SocketAddr>) -> ShownValue {
    shown_some(address.map(|address| config.late_names.shown(address)))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn engine(value: &Item<'_>) -> Result<EngineName, String> {
    match value.text() {
        Some("log") => Ok(EngineName::Log),
        Some("etcd") => Ok(EngineName::Etcd),
        _ => Err(value::wrong("\"log\" or \"etcd\"", value)),
    }
}

/// A list of words; `["*"]` stands for all.
fn words(value: &Item<'_>) -> Result<WordList, String> {
    let words = texts(value, "a list of words, such as [\"srvr\", \"ruok\"] or [\"*\"]")?;
    if words.iter().any(|word| word == "*") { Ok(WordList::All) } else { Ok(WordList::Only(words)) }
}

fn word_list(words: &WordList) -> Vec<String> {
    match words {
        WordList::All => vec!["*".to_owned()],
        WordList::Only(words) => words.clone(),
    }
}

fn memory(max: MemoryMax) -> TomlValue {
    match max {
        MemoryMax::Percent(percent) => format!("{percent}%").into(),
        MemoryMax::Bytes(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX).into(),
        MemoryMax::None => "unlimited".into(),
    }
}

fn audit_target(target: &AuditTarget) -> String {
    match target {
        AuditTarget::Log => "log".to_owned(),
        AuditTarget::File(file) => path(file),
    }
}

fn digest_algorithm_name(algorithm: DigestAlgorithm) -> &'static str {
    match algorithm {
        DigestAlgorithm::Sha1 => "SHA1",
        DigestAlgorithm::Sha256 => "SHA-256",
        DigestAlgorithm::Sha512 => "SHA-512",
    }
}

fn dialect_name(dialect: Option<Dialect>) -> &'static str {
    match dialect {
        None => "each",
        Some(Dialect::ZooKeeper) => "zookeeper",
        Some(Dialect::ClickHouse) => "clickhouse",
    }
}

#[cfg(test)]
mod tests {
    use paddock_settings::SettingForm;

    use super::super::super::rows;
    use super::*;

    #[test]
    fn each_row_that_is_neither_number_nor_flag_has_a_form() {
        let rows = rows::all();
        let own = rows.iter().filter(|row| matches!(row.form, SettingForm::Other(_))).map(|row| row.key);
        let mut own: Vec<&str> = own.collect();
        let mut forms: Vec<&str> = OWN_FORMS.iter().map(|form| form.key).collect();
        own.sort_unstable();
        forms.sort_unstable();
        assert_eq!(own, forms);
    }
}
