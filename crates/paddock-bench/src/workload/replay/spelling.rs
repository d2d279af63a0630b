//! Spellings of the values in a log's columns: as numbers or by ClickHouse's names.

use std::time::{Duration, SystemTime};

use paddock_proto::ErrorCode;

/// The operation that a row asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Create,
    Remove,
    Exists,
    Get,
    Set,
    GetAcl,
    SimpleList,
    List,
    Sync,
    Check,
    Multi,
    MultiRead,
    /// An operation of the connection rather than of the workload.
    LeftOut,
}

const OPS: [(Op, &[&str]); 13] = [
    (Op::Create, &["Create", "1"]),
    (Op::Remove, &["Remove", "2"]),
    (Op::Exists, &["Exists", "3"]),
    (Op::Get, &["Get", "4"]),
    (Op::Set, &["Set", "5"]),
    (Op::GetAcl, &["GetACL", "6"]),
    (Op::SimpleList, &["SimpleList", "8"]),
    (Op::List, &["List", "12", "FilteredList", "500"]),
    (Op::Sync, &["Sync", "9"]),
    (Op::Check, &["Check", "13"]),
    (Op::Multi, &["Multi", "14"]),
    (Op::MultiRead, &["MultiRead", "22"]),
    (
        Op::LeftOut,
        &[
            "Watch",
            "0",
            "Error",
            "-1",
            "Close",
            "-11",
            "Heartbeat",
            "11",
            "Auth",
            "100",
            "SetWatch",
            "101",
            "SetWatches",
            "SetWatch2",
            "SetWatches2",
            "105",
            "SessionID",
            "997",
        ],
    ),
];

pub(super) fn op(word: &str) -> Result<Op, String> {
    let found = OPS.iter().find(|(_, words)| words.contains(&word));
    found.map(|(op, _)| *op).ok_or_else(|| format!("`{word}` is no operation that can be replayed"))
}

/// Errors that clients make themselves; no server can be expected to send them.
const OF_CLIENTS: [&str; 10] = [
    "SYSTEMERROR",
    "DATAINCONSISTENCY",
    "CONNECTIONLOSS",
    "OPERATIONTIMEOUT",
    "INVALIDSTATE",
    "OUTOFMEMORY",
    "APIERROR",
    "INVALIDCALLBACK",
    "CLOSING",
    "NOTHING",
];

/// The code that a server sends, 0 if all went well, `None` if nothing can be expected.
pub(super) fn error(word: &str) -> Result<Option<i32>, String> {
    if is_null(word) {
        return Ok(None);
    }
    if let Ok(code) = word.parse::<i32>() {
        return Ok(Some(code).filter(|code| *code == 0 || ErrorCode::from_code(*code).is_some()));
    }
    let name = word.to_ascii_uppercase();
    let name = name.strip_prefix('Z').unwrap_or(&name);
    if name == "OK" {
        return Ok(Some(0));
    }
    let known = ErrorCode::ALL.into_iter().find(|code| format!("{code:?}").eq_ignore_ascii_case(name));
    match known {
        Some(code) => Ok(Some(code.code())),
        None if OF_CLIENTS.contains(&name) => Ok(None),
        None => Err(format!("`{word}` is no error of ZooKeeper's")),
    }
}

/// `YYYY-MM-DD hh:mm:ss.ffffff`, or seconds since 1970.
pub(super) fn time(word: &str) -> Result<Option<SystemTime>, String> {
    if is_null(word) {
        return Ok(None);
    }
    let seconds = word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = match seconds {
        Some(seconds) => SystemTime::UNIX_EPOCH.checked_add(seconds),
        None => humantime::parse_rfc3339_weak(word).ok(),
    };
    time.map(Some).ok_or_else(|| format!("`{word}` is no time; write YYYY-MM-DD hh:mm:ss.ffffff or seconds"))
}

pub(super) fn flag(word: &str) -> Result<bool, String> {
    match word {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ if is_null(word) => Ok(false),
        _ => Err(format!("`{word}` is neither 0 nor 1")),
    }
}

pub(super) fn is_null(word: &str) -> bool {
    matches!(word, "" | "\\N" | "NULL" | "null" | "ᴺᵁᴸᴸ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_numbers_or_names() {
        for (word, expected) in
            [("Create", Op::Create), ("5", Op::Set), ("500", Op::List), ("Close", Op::LeftOut)]
        {
            assert_eq!(op(word), Ok(expected));
        }
        assert!(op("CheckNotExists").is_err() && op("SetACL").is_err() && op("").is_err());
    }

    #[test]
    fn errors_are_numbers_or_names_or_nothing() {
        for (word, expected) in [
            ("ZOK", Some(0)),
            ("0", Some(0)),
            ("ZNONODE", Some(-101)),
            ("-110", Some(-110)),
            ("NodeExists", Some(-110)),
            ("ZRUNTIMEINCONSISTENCY", Some(-2)),
            ("ZCONNECTIONLOSS", None),
            ("-4", None),
            ("\\N", None),
            ("", None),
        ] {
            assert_eq!(error(word), Ok(expected), "{word}");
        }
        assert!(error("ZNONSENSE").is_err());
    }

    #[test]
    fn times_are_dates_or_seconds() {
        let at = |micros| Some(SystemTime::UNIX_EPOCH + Duration::from_micros(micros));
        assert_eq!(time("2026-11-20 10:00:00.000250"), Ok(at(1_795_168_800_000_250)));
        assert_eq!(time("2026-11-20 10:00:00"), Ok(at(1_795_168_800_000_000)));
        assert_eq!(time("1795168800.5"), Ok(at(1_795_168_800_500_000)));
        assert_eq!(time(""), Ok(None));
        assert!(time("yesterday").is_err() && time("-1").is_err());
    }
}
