//! Paddock's own configuration file. Its keys are the fields of `paddock_server::Config`.

mod admin;
mod client_tls;
mod ensemble;
mod etcd;
mod file;
mod known;
mod sasl;
mod tls;
mod tracing;

use std::path::Path;

use paddock_server::{Config, WordList};
use toml::de::DeTable;

use super::draft::Draft;
use super::ensemble::{Named, OwnNumber};
use super::environment::Environment;
use super::etcd::EngineName;
use super::remark::{ConfigError, Remarks};
use super::text_file;
use super::value::{self, Value};
use super::zoo_values;
use file::{File, Item, boolean, each_key, texts};
use known::KEYS;

/// Numbers of things in memory.
const COUNT_MAX: i64 = i32::MAX as i64;
/// With less than 1 MiB clients that ask for nothing special would wait for each other.
const CLIENT_BUFFERS_LEAST: i64 = 1 << 20;

pub(super) fn load(
    path: &Path,
    environment: &Environment,
    remarks: &mut Remarks,
) -> Result<Draft, ConfigError> {
    let text = text_file::read(path)?;
    let file = File { path, text: &text };
    let table = DeTable::parse(&text).map_err(|error| {
        file.place(error.span().map_or(0, |span| span.start)).fault(error.message().replace('\n', ", "))
    })?;
    let mut draft = Draft::default();
    let (mut own, mut ensemble) = (environment.own_number()?, None);
    let outcome = each_key(&file, table.get_ref(), ("", KEYS), remarks, |setting, remarks| {
        let (place, value) = (&setting.place, setting.value);
        match setting.key {
            "member" => {
                let number = value::number(&setting.item, value::MEMBER, value::A_MEMBER)
                    .map_err(|what| setting.fault(what))?;
                own = Some(OwnNumber { place: place.clone(), number });
            }
            "ensemble" => {
                ensemble = Some(ensemble::Table::read(&file, place.clone(), value, remarks)?);
            }
            "admin" => draft.config.admin = admin::read(&file, place, value, remarks)?,
            "etcd" => etcd::read(&file, place, value, &mut draft.etcd, remarks)?,
            "sasl" => sasl::read(&file, place, value, &mut draft.sasl, remarks)?,
            "tls" => {
                let late = &mut draft.config.late_names;
                draft.config.tls = Some(client_tls::read(&file, place, value, late, remarks)?);
            }
            "tracing" => draft.tracing = Some(tracing::read(&file, place, value, remarks)?),
            key => return set(&mut draft, key, &setting.item).map_err(|what| setting.fault(what)),
        }
        Ok(true)
    });
    remarks.note(outcome);
    remarks.settle(Ok(()))?;
    if let Some(own) = &own {
        remarks.origins.note("member", &own.place);
    }
    draft.member = own.as_ref().map(|own| own.number);
    if let Some(ensemble) = ensemble {
        let (ensemble, own) = ensemble.settle(own.as_ref(), remarks)?;
        draft.config.ensemble = Some(ensemble);
        listen_as_the_ensemble_is_told(&mut draft, &own)?;
    }
    Ok(draft)
}

/// Unless `listen` says otherwise, clients connect where the ensemble is told that they do.
fn listen_as_the_ensemble_is_told(draft: &mut Draft, own: &Named) -> Result<(), ConfigError> {
    if let (None, Some(client)) = (draft.listen, &own.member.client) {
        let listen =
            super::ensemble::listen(client, zoo_values::all_addresses(), &mut draft.config.late_names);
        draft.listen = Some(listen.map_err(|what| own.fault(what))?);
    }
    Ok(())
}

/// Takes a setting, unless its key is not known.
fn set(draft: &mut Draft, key: &str, value: &Item<'_>) -> Result<bool, String> {
    let config = &mut draft.config;
    match key {
        "engine" => draft.etcd.engine = Some(engine(value)?),
        "listen" => draft.listen = Some(value::address(value, &mut config.late_names)?),
        "data_dir" => draft.data_dir = Some(value::path(value)?),
        "log_dir" => config.log_dir = Some(value::path(value)?),
        "log" => draft.log = Some(value::log_filter(value)?),
        "tick_ms" => config.tick_ms = value::milliseconds(value)?,
        "session_timeout_ms_min" => draft.session_timeout_ms_min = Some(value::milliseconds(value)?),
        "session_timeout_ms_max" => draft.session_timeout_ms_max = Some(value::milliseconds(value)?),
        "bind_tries" => config.bind_tries = value::amount(value, 0..=COUNT_MAX, "tries")?,
        "connections_per_address_max" => {
            config.connections_per_address_max = value::amount(value, 0..=COUNT_MAX, "connections")?;
        }
        "connections_max" => config.connections_max = value::amount(value, 0..=COUNT_MAX, "connections")?,
        "frame_bytes_max" => config.frame_bytes_max = value::amount(value, 1..=i32::MAX.into(), "bytes")?,
        "client_buffers_max" => {
            config.client_buffers_max =
                value::number(value, CLIENT_BUFFERS_LEAST..=i64::MAX, "a number of bytes, at least 1048576")?;
        }
        "memory_max" => config.memory_max = value::memory(value)?,
        "dialect" => config.dialect = value::dialect(value)?,
        "availability_zone" => config.availability_zone = Some(value::availability_zone(value)?),
        "metrics_listen" => config.metrics_listen = Some(value::address(value, &mut config.late_names)?),
        "admin_listen" => config.admin_listen = Some(value::address(value, &mut config.late_names)?),
        "words" => config.words = words(value)?,
        "digest_algorithm" => config.digest_algorithm = value::digest_algorithm(value)?,
        "super_digest" => config.super_digest = Some(value::super_digest(value)?),
        "cross_check" => config.cross_check = Some(value::host_and_port(value)?),
        "audit_log" => config.audit_log = Some(value::audit_log(value)?),
        "enforce_quota" => config.enforce_quota = boolean(value)?,
        "garbage_interval_ms" => config.garbage_interval_ms = value::milliseconds(value)?,
        "garbage_max" => config.garbage_max = value::amount(value, 1..=COUNT_MAX, "znodes")?,
        "snapshot_writes" => config.snapshot_writes = value::amount(value, 1..=i64::MAX, "writes")?,
        "snapshot_log_bytes" => config.snapshot_log_bytes = value::amount(value, 1..=i64::MAX, "bytes")?,
        "snapshots_kept" => config.snapshots_kept = value::amount(value, 1..=COUNT_MAX, "snapshots")?,
        "segment_bytes" => config.segment_bytes = segment_bytes(value)?,
        "log_compression" => config.log_compression = boolean(value)?,
        "required_schemes" => {
            draft.sasl.schemes = texts(value, "a list of schemes, such as [\"sasl\"]")?;
            draft.sasl.is_enforced = !draft.sasl.schemes.is_empty();
        }
        "workers" => config.workers = value::amount(value, 0..=1024, "threads")?,
        _ => return set_limit(config, key, value),
    }
    Ok(true)
}

/// Takes a limit of all clients, unless its key is not known.
fn set_limit(config: &mut Config, key: &str, value: &Item<'_>) -> Result<bool, String> {
    let limits = &mut config.client_limits;
    let rate = &mut limits.connect_rate;
    let (setting, unit) = match key {
        "accepts_per_second_max" => (&mut limits.accepts_per_second_max, "connections"),
        "handshakes_max" => (&mut limits.handshakes_max, "handshakes"),
        "connect_tokens_max" => (&mut rate.tokens_max, "tokens"),
        "connect_token_fill_ms" => {
            rate.fill_interval_ms = value::milliseconds(value)?;
            return Ok(true);
        }
        "connect_token_fill_count" => (&mut rate.fill_tokens, "tokens"),
        "connect_tokens_of_new_session" => (&mut rate.new_session_tokens, "tokens"),
        "connect_tokens_of_resumed_session" => (&mut rate.resumed_session_tokens, "tokens"),
        "sessions_max" => (&mut limits.sessions_max, "sessions"),
        "watches_per_session_max" => (&mut limits.watches_per_session_max, "watches"),
        "watches_max" => (&mut limits.watches_max, "watches"),
        "outstanding_max" => (&mut limits.outstanding_max, "requests"),
        _ => return Ok(false),
    };
    *setting = value::amount(value, 0..=COUNT_MAX, unit)?;
    Ok(true)
}

fn engine(value: &Item<'_>) -> Result<EngineName, String> {
    match value.text() {
        Some("log") => Ok(EngineName::Log),
        Some("etcd") => Ok(EngineName::Etcd),
        _ => Err(value::wrong("\"log\" or \"etcd\"", value)),
    }
}

fn segment_bytes(value: &Item<'_>) -> Result<u64, String> {
    let (min, max) = value::SEGMENT_BYTES.into_inner();
    let expected = format!("a multiple of 4096 from {min} to {max}");
    let bytes: u64 = value::number(value, min..=max, &expected)?;
    if bytes.is_multiple_of(4096) { Ok(bytes) } else { Err(value::wrong(&expected, value)) }
}

/// A list of words; `["*"]` stands for all.
fn words(value: &Item<'_>) -> Result<WordList, String> {
    let words = texts(value, "a list of words, such as [\"srvr\", \"ruok\"] or [\"*\"]")?;
    if words.iter().any(|word| word == "*") { Ok(WordList::All) } else { Ok(WordList::Only(words)) }
}

#[cfg(test)]
mod tests;
