//! A real etcd of one node, spoken to by its JSON gateway.

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paddock_etcd::{KeyEvent, Operation, Transaction};
use serde_json::{Value, json};

use crate::stores::{MirrorStore, Range};

/// Pairs in one page of a read: few, so that there are several pages.
const PAGE: i64 = 3;
const LEASE_TTL_S: i64 = 600;

/// An etcd that lives as long as this.
#[derive(Debug)]
pub(crate) struct Etcd {
    process: Child,
    endpoint: String,
    _directory: tempfile::TempDir,
}

impl Etcd {
    /// Starts `program`, and returns when it serves.
    pub(crate) fn start(program: &str) -> Etcd {
        let directory = tempfile::tempdir().expect("make a directory");
        let [client, peer] = [(); 2].map(|()| format!("http://127.0.0.1:{}", free_port()));
        let mut process = Command::new(program)
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stderr(Stdio::piped())
            .spawn()
            .expect("start etcd");
        let mut log = BufReader::new(process.stderr.take().expect("stderr is piped"));
        let mut line = String::new();
        while !line.contains("client requests") {
            line.clear();
            assert!(log.read_line(&mut line).expect("read etcd's log") > 0, "etcd ended before it served");
        }
        // A full pipe would stop etcd.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Etcd { process, endpoint: client, _directory: directory }
    }

    fn post(&self, path: &str, body: &Value) -> impl Read + use<> {
        let sent = ureq::post(format!("{}/v3/{path}", self.endpoint)).send(body.to_string());
        sent.expect("etcd answers").into_body().into_reader()
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        serde_json::from_reader(self.post(path, body)).expect("etcd answers with JSON")
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let killed = self.process.kill().and_then(|()| self.process.wait());
        drop(killed);
    }
}

impl MirrorStore for Etcd {
    fn revision(&mut self) -> i64 {
        number(&self.ask("kv/range", &json!({"key": text(b"/")}))["header"]["revision"])
    }

    fn read(&mut self, (first, end): &Range) -> (i64, Vec<KeyEvent>) {
        let revision = self.revision();
        let (mut pairs, mut next) = (Vec::new(), first.clone());
        loop {
            let page = json!({
                "key": text(&next), "range_end": text(end), "limit": PAGE, "revision": revision,
            });
            let page = self.ask("kv/range", &page);
            pairs.extend(page["kvs"].as_array().into_iter().flatten().map(|pair| event(pair, false)));
            if page["more"] != true {
                return (revision, pairs);
            }
            next = [&pairs.last().expect("a page with more behind it").key[..], b"\0"].concat();
        }
    }

    fn transact(&mut self, transaction: &Transaction) -> Option<i64> {
        let compares = transaction.compares.iter().map(|compare| {
            json!({"key": text(&compare.key), "target": "MOD", "mod_revision": compare.mod_revision})
        });
        let operations = transaction.operations.iter().map(|operation| match operation {
            Operation::Put { key, value, lease } => {
                let lease = lease.unwrap_or(0);
                json!({"request_put": {"key": text(key), "value": text(value), "lease": lease}})
            }
            Operation::Delete { key } => json!({"request_delete_range": {"key": text(key)}}),
        });
        let compares: Vec<Value> = compares.collect();
        let operations: Vec<Value> = operations.collect();
        let done = self.ask("kv/txn", &json!({"compare": compares, "success": operations}));
        (done["succeeded"] == true).then(|| number(&done["header"]["revision"]))
    }

    /// Every revision of this etcd changes a key of the range, so the stream is read until the last one has come.
    fn events(&mut self, (start, end): &Range, first: i64, last: i64) -> Vec<(i64, Vec<KeyEvent>)> {
        let mut revisions: Vec<(i64, Vec<KeyEvent>)> = Vec::new();
        if first > last {
            return revisions;
        }
        let create = json!({"key": text(start), "range_end": text(end), "start_revision": first});
        let stream = BufReader::new(self.post("watch", &json!({"create_request": create})));
        for line in stream.lines() {
            let message: Value = serde_json::from_str(&line.expect("read the stream")).expect("JSON");
            for told in message["result"]["events"].as_array().into_iter().flatten() {
                let told = event(&told["kv"], told["type"] == "DELETE");
                match revisions.last_mut() {
                    Some((revision, events)) if *revision == told.mod_revision => events.push(told),
                    _ => revisions.push((told.mod_revision, vec![told])),
                }
            }
            if revisions.last().is_some_and(|(revision, _)| *revision >= last) {
                revisions.retain(|(revision, _)| *revision <= last);
                return revisions;
            }
        }
        panic!("the watch stream ended before revision {last}")
    }

    fn grant(&mut self, lease: i64) {
        let granted = self.ask("lease/grant", &json!({"ID": lease, "TTL": LEASE_TTL_S}));
        assert_eq!(number(&granted["ID"]), lease);
    }

    fn revoke(&mut self, lease: i64) {
        self.ask("lease/revoke", &json!({"ID": lease}));
    }
}

fn event(pair: &Value, is_deleted: bool) -> KeyEvent {
    let bytes = |field: &Value| STANDARD.decode(field.as_str().unwrap_or_default()).expect("base64");
    KeyEvent {
        key: bytes(&pair["key"]),
        value: (!is_deleted).then(|| bytes(&pair["value"])),
        mod_revision: number(&pair["mod_revision"]),
    }
}

/// The gateway writes 64-bit numbers as strings.
fn number(field: &Value) -> i64 {
    field.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field} is no number"))
}

fn text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Below the ports that Linux gives to others before etcd listens.
fn free_port() -> u16 {
    paddock_os::free_port(Ipv4Addr::LOCALHOST.into(), 16_000..20_000).expect("a free port")
}
