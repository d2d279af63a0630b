//! Texts of servers as facts: the answers to four-letter words, and pages of the HTTP interface.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::ServerFacts;

/// The beginning of the answer to `srvr`.
const VERSION: &str = "Zookeeper version: ";
const READ_ONLY: &str = "READ-ONLY";
/// ZooKeeper's answer to a word that it does not allow goes on so.
const NOT_ALLOWED: &str = "is not executed because it is not in the whitelist";
/// ZooKeeper's answer while there is no quorum.
const NOT_SERVING: &str = "not currently serving requests";

/// Names of settings in the command `configuration`, and in the word `conf`.
const SETTINGS: [(&str, &str); 6] = [
    ("client_port", "clientPort"),
    ("data_dir", "dataDir"),
    ("tick_time", "tickTime"),
    ("max_client_cnxns", "maxClientCnxns"),
    ("min_session_timeout", "minSessionTimeout"),
    ("max_session_timeout", "maxSessionTimeout"),
];

/// True for an answer to a word with which the server refuses it, or for none.
pub(super) fn is_refusal(answer: &str) -> bool {
    answer.trim().is_empty() || answer.contains(NOT_ALLOWED)
}

/// True if the server answers that there is no quorum.
pub(super) fn is_not_serving(answer: &str) -> bool {
    answer.contains(NOT_SERVING)
}

/// Takes over the answer to `srvr`.
pub(super) fn server_word(answer: &str, facts: &mut ServerFacts) {
    for line in answer.lines() {
        if let Some(version) = line.strip_prefix(VERSION) {
            facts.version = Some(short_version(version));
        } else if let Some(zxid) = line.strip_prefix("Zxid: 0x") {
            facts.zxid = i64::from_str_radix(zxid.trim(), 16).ok();
        } else if let Some(mode) = line.strip_prefix("Mode: ") {
            facts.mode = Some(mode.trim().to_owned());
        }
    }
    if answer.contains(READ_ONLY) {
        facts.mode = Some("read-only".to_owned());
    }
}

/// The version without the date of its build and the hash behind it.
fn short_version(version: &str) -> String {
    let version = version.split(", built on").next().unwrap_or(version).trim();
    // `3.9.5-6f3ad95d…`: ZooKeeper's own has the hash of its sources.
    match version.split_once('-') {
        Some((number, hash)) if hash.len() >= 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            number.to_owned()
        }
        _ => version.to_owned(),
    }
}

/// Takes over the answer of the command `server_stats`.
pub(super) fn server_command(answer: &Value, facts: &mut ServerFacts) {
    let stats = &answer["server_stats"];
    facts.version = answer["version"].as_str().map(short_version);
    facts.zxid = stats["last_processed_zxid"].as_i64();
    facts.mode = match answer["read_only"].as_bool() {
        Some(true) => Some("read-only".to_owned()),
        _ => stats["server_state"].as_str().map(str::to_owned),
    };
}

/// Takes over the answer to `mntr`.
pub(super) fn monitor_word(answer: &str, metrics: &mut BTreeMap<String, f64>) {
    for line in answer.lines() {
        let Some((name, value)) = line.split_once('\t') else { continue };
        if let (Some(name), Ok(value)) = (name.strip_prefix("zk_"), value.trim().parse()) {
            metrics.insert(name.to_owned(), value);
        }
    }
}

/// Takes over the numbers of the command `monitor`.
pub(super) fn monitor_command(answer: &Value, metrics: &mut BTreeMap<String, f64>) {
    let numbers = answer.as_object().into_iter().flatten();
    metrics.extend(numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))));
}

/// Takes over a page for Prometheus. Quantiles are left out: `mntr` tells of them.
pub(super) fn prometheus(page: &str, metrics: &mut BTreeMap<String, f64>) {
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let (Ok(value), false) = (value.parse(), name.contains("quantile=")) else { continue };
        let name = match name.split_once('{') {
            None => name.to_owned(),
            Some((name, labels)) => {
                // One label, as `{member="2"}`: its value tells enough.
                let label = labels.split('"').nth(1).unwrap_or_default();
                format!("{name}{{{label}}}")
            }
        };
        metrics.insert(name, value);
    }
}

/// Settings in the answer to `conf`, but for the list of members at its end.
pub(super) fn settings_word(answer: &str) -> BTreeMap<String, String> {
    let lines = answer.lines().take_while(|line| !line.starts_with("membership"));
    let settings = lines.filter_map(|line| line.split_once('='));
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Settings in the answer of the command `configuration`, by the names of the word.
pub(super) fn settings_command(answer: &Value) -> BTreeMap<String, String> {
    let setting = |(name, word_name): &(&str, &str)| {
        let value = match &answer[*name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(((*word_name).to_owned(), value))
    };
    SETTINGS.iter().filter_map(setting).collect()
}

/// Connections by the client's address, out of the answer to `cons`.
pub(super) fn connections_word(answer: &str) -> BTreeMap<String, u64> {
    // `/[::1]:4711[1](queued=0`: an address may have brackets of its own.
    counted(answer.lines().filter_map(|line| {
        let (front, _) = line.trim().strip_prefix('/')?.split_once("](")?;
        Some(front.rsplit_once('[')?.0)
    }))
}

/// Connections by the client's address, out of the answer of the command `connections`.
pub(super) fn connections_command(answer: &Value) -> BTreeMap<String, u64> {
    let lists = ["connections", "secure_connections"].map(|name| answer[name].as_array());
    let connections = lists.into_iter().flatten().flatten();
    counted(connections.filter_map(|connection| connection["remote_socket_address"].as_str()))
}

fn counted<'a>(addresses: impl Iterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for address in addresses {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        *counts.entry(host.trim_start_matches('/').to_owned()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_answer_to_srvr_is_read() {
        let answer = "Zookeeper version: 3.9.5-6f3ad95d2c2c3f4b0c4a5d6e7f8091a2b3c4d5e6, built on 2026-01-02 03:04 UTC\n\
                      Latency min/avg/max: 0/0.5/7\nZxid: 0x100000002\nMode: follower\nNode count: 5\n";
        let mut facts = ServerFacts::default();
        server_word(answer, &mut facts);
        assert_eq!(facts.version.as_deref(), Some("3.9.5"));
        assert_eq!((facts.zxid, facts.mode.as_deref()), (Some(0x1_0000_0002), Some("follower")));
        server_word("Zookeeper version: 3.9.5-paddock-0.9.0, built on x\nREAD-ONLY mode; …\n", &mut facts);
        assert_eq!(facts.version.as_deref(), Some("3.9.5-paddock-0.9.0"));
        assert_eq!(facts.mode.as_deref(), Some("read-only"));
        assert!(is_refusal("mntr is not executed because it is not in the whitelist.\n") && is_refusal(""));
        assert!(is_not_serving("This ZooKeeper instance is not currently serving requests\n"));
    }

    #[test]
    fn metrics_are_read_in_each_form() {
        let mut metrics = BTreeMap::new();
        monitor_word("zk_version\t3.9.5\nzk_avg_fsynctime\t2.5\nzk_server_state\tleader\n", &mut metrics);
        monitor_command(&json!({ "max_fsynctime": 7, "version": "3.9.5", "error": null }), &mut metrics);
        let page = "# HELP a A\nprocess_open_fds 12\npaddock_member_is_heard{member=\"2\"} 1\n\
                    fsynctime{quantile=\"0.5\"} 9\n";
        prometheus(page, &mut metrics);
        let expected = [
            ("avg_fsynctime", 2.5),
            ("max_fsynctime", 7.0),
            ("paddock_member_is_heard{2}", 1.0),
            ("process_open_fds", 12.0),
        ];
        assert_eq!(metrics, expected.map(|(name, value)| (name.to_owned(), value)).into());
        let facts = ServerFacts { metrics, ..ServerFacts::default() };
        assert_eq!(facts.labelled("paddock_member_is_heard").collect::<Vec<_>>(), [("2", 1.0)]);
    }

    #[test]
    fn settings_and_connections_are_read() {
        let word = settings_word("clientPort=2181\ntickTime=2000\nmembership: \nserver.1=a:1:2;3\nx=y\n");
        assert_eq!(word.get("tickTime").map(String::as_str), Some("2000"));
        assert_eq!(word.len(), 2);
        let command = settings_command(&json!({ "tick_time": 2000, "client_port": 2181, "server_id": 1 }));
        assert_eq!(command, word);
        let word = " /127.0.0.1:4711[1](queued=0)\n /127.0.0.1:4712[1](queued=0)\n /10.0.0.7:1[0](q)\n\n";
        let expected = BTreeMap::from([("127.0.0.1".to_owned(), 2), ("10.0.0.7".to_owned(), 1)]);
        assert_eq!(connections_word(word), expected);
        let command = json!({
            "connections": [{ "remote_socket_address": "127.0.0.1:1" }, { "remote_socket_address": "/127.0.0.1:2" }],
            "secure_connections": [{ "remote_socket_address": "10.0.0.7:1" }],
        });
        assert_eq!(connections_command(&command), expected);
    }
}
