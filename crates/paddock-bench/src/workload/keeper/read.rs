//! A whole file: its settings, connections and output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use paddock_proto::Extensions;

use super::fields::{Field, KeeperFields, Keys};
use super::{KeeperConnection, KeeperFile, Output, OutputFile, check, requests, setup};
use crate::BenchError;

/// With the spellings of older files, which newer versions of keeper-bench overlook.
const FILE_KEYS: Keys = Keys {
    once: &[
        "concurrency",
        "iterations",
        "report_delay",
        "delay",
        "timelimit",
        "time_limit",
        "continue_on_error",
        "continue_on_errors",
        "pipeline_depth",
        "warmup_seconds",
        "enable_tracing",
        "use_remove_recursive",
        "connections",
        "setup",
        "generator",
        "output",
    ],
    many: &[],
};
const GENERATOR_KEYS: Keys = Keys { once: &["setup", "requests", "seed"], many: &[] };
const CONNECTIONS_KEYS: Keys = Keys {
    once: &[
        "secure",
        "session_timeout_ms",
        "operation_timeout_ms",
        "connection_timeout_ms",
        "use_compression",
        "use_xid_64",
    ],
    many: &["host", "connection"],
};
const CONNECTION_KEYS: Keys = Keys {
    once: &[
        "host",
        "sessions",
        "secure",
        "session_timeout_ms",
        "operation_timeout_ms",
        "connection_timeout_ms",
        "use_compression",
        "use_xid_64",
    ],
    many: &[],
};
const OUTPUT_KEYS: Keys = Keys { once: &["file", "stdout"], many: &[] };
const OUTPUT_FILE_KEYS: Keys = Keys { once: &["path", "with_timestamp"], many: &[] };

pub(super) fn file(path: &Path, text: &str) -> Result<KeeperFile, BenchError> {
    let root = paddock_yaml::parse(text).map_err(|error| BenchError::InFile {
        file: path.to_owned(),
        line: error.line,
        message: error.to_string(),
    })?;
    let fields = KeeperFields::of_file(path, &root, &FILE_KEYS)?;
    let generator = fields.needed("generator")?.fields(&GENERATOR_KEYS)?;
    let nodes = match either(fields.one("setup"), generator.one("setup"))? {
        Some(setup) => setup::read(setup)?,
        None => Vec::new(),
    };
    let asked = generator.needed("requests")?;
    let requests = requests::read(asked)?;
    check::check(path, asked.line, &nodes, &requests)?;
    Ok(KeeperFile {
        path: path.to_path_buf(),
        concurrency: at_least_one(&fields, "concurrency")?,
        pipeline_depth: at_least_one(&fields, "pipeline_depth")?,
        iterations: fields.one("iterations").map_or(Ok(0), |iterations| iterations.count())?,
        report_delay: either(fields.one("report_delay"), fields.one("delay"))?
            .map_or(Ok(Duration::from_secs(1)), |delay| delay.seconds())?,
        time_limit: either(fields.one("timelimit"), fields.one("time_limit"))?
            .map_or(Ok(Duration::ZERO), |limit| limit.seconds())?,
        warm_up: fields.one("warmup_seconds").map_or(Ok(Duration::ZERO), |warm_up| warm_up.seconds())?,
        continue_on_error: either(fields.one("continue_on_error"), fields.one("continue_on_errors"))?
            .map_or(Ok(false), |go_on| go_on.flag())?,
        seed: generator.one("seed").map(|seed| seed.count()).transpose()?,
        extensions: extensions(&fields)?,
        connections: fields.one("connections").map_or(Ok(Vec::new()), connections)?,
        setup: nodes,
        requests,
        output: fields.one("output").map_or(Ok(Output::default()), output)?,
    })
}

/// One of two spellings or places; an error if both are used.
fn either<'a>(one: Option<Field<'a>>, other: Option<Field<'a>>) -> Result<Option<Field<'a>>, BenchError> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Err(other.error(format!("this is given in line {} already; leave one of them out", one.line)))
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn at_least_one(fields: &KeeperFields<'_>, key: &str) -> Result<usize, BenchError> {
    let Some(field) = fields.one(key) else { return Ok(1) };
    match field.size()? {
        0 => Err(field.error(format!("`{key}` must be at least 1"))),
        size => Ok(size),
    }
}

/// Refuses settings that no other setting can make up for, rather than overlooking them.
fn refuse_if_set(fields: &KeeperFields<'_>, keys: &[&str]) -> Result<(), BenchError> {
    for field in keys.iter().filter_map(|key| fields.one(key)) {
        if field.flag()? {
            return Err(
                field.error(format!("`{}` is not supported; leave it out or set it to false", field.key()))
            );
        }
    }
    Ok(())
}

const UNSUPPORTED: &str = "secure";
/// All connections are alike in these.
const USE_COMPRESSION: &str = "use_compression";
const USE_XID_64: &str = "use_xid_64";

fn connections(field: Field<'_>) -> Result<Vec<KeeperConnection>, BenchError> {
    let fields = field.fields(&CONNECTIONS_KEYS)?;
    refuse_if_set(&fields, &[UNSUPPORTED])?;
    let defaults = timeouts(&fields, String::new())?;
    let each = |&(kind, field): &(&str, Field<'_>)| match kind {
        "host" => Ok(KeeperConnection { host: host(field)?, ..defaults.clone() }),
        _ => connection(field, &defaults),
    };
    fields.many().iter().map(each).collect()
}

fn extensions(file: &KeeperFields<'_>) -> Result<Extensions, BenchError> {
    let flag = |fields: &KeeperFields<'_>, key| fields.one(key).map_or(Ok(false), |field| field.flag());
    let tracing = flag(file, "enable_tracing")?;
    let Some(connections) = file.one("connections") else {
        return Ok(Extensions { tracing, ..Extensions::default() });
    };
    let fields = connections.fields(&CONNECTIONS_KEYS)?;
    let (compression, wide_xids) = (flag(&fields, USE_COMPRESSION)?, flag(&fields, USE_XID_64)?);
    Ok(Extensions { wide_xids, compression, tracing })
}

fn connection(field: Field<'_>, defaults: &KeeperConnection) -> Result<KeeperConnection, BenchError> {
    let fields = field.fields(&CONNECTION_KEYS)?;
    refuse_if_set(&fields, &[UNSUPPORTED, USE_COMPRESSION, USE_XID_64])?;
    let own = timeouts(&fields, host(fields.needed("host")?)?)?;
    Ok(KeeperConnection {
        session_timeout: own.session_timeout.or(defaults.session_timeout),
        connection_timeout: own.connection_timeout.or(defaults.connection_timeout),
        operation_timeout: own.operation_timeout.or(defaults.operation_timeout),
        ..own
    })
}

fn timeouts(fields: &KeeperFields<'_>, host: String) -> Result<KeeperConnection, BenchError> {
    let timeout = |key| fields.one(key).map(|field| field.count().map(Duration::from_millis)).transpose();
    Ok(KeeperConnection {
        host,
        sessions: at_least_one(fields, "sessions")?,
        session_timeout: timeout("session_timeout_ms")?,
        connection_timeout: timeout("connection_timeout_ms")?,
        operation_timeout: timeout("operation_timeout_ms")?,
    })
}

fn host(field: Field<'_>) -> Result<String, BenchError> {
    let host = field.text()?;
    let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) if !host.contains('/') => Ok(host.to_string()),
        _ => Err(field.error(format!("`{host}` must be host:port"))),
    }
}

fn output(field: Field<'_>) -> Result<Output, BenchError> {
    let fields = field.fields(&OUTPUT_KEYS)?;
    Ok(Output {
        file: fields.one("file").map(output_file).transpose()?,
        stdout: fields.one("stdout").map_or(Ok(false), |stdout| stdout.flag())?,
    })
}

fn output_file(field: Field<'_>) -> Result<OutputFile, BenchError> {
    if !field.is_mapping() {
        return Ok(OutputFile { path: PathBuf::from(field.text()?), with_timestamp: false });
    }
    let fields = field.fields(&OUTPUT_FILE_KEYS)?;
    Ok(OutputFile {
        path: PathBuf::from(fields.needed("path")?.text()?),
        with_timestamp: fields.one("with_timestamp").map_or(Ok(false), |with| with.flag())?,
    })
}
