//! The dashboard and the alert rules of `docs/monitoring`, in a real Prometheus. Each rule fires when its cause happens, and is
//! silent when that is over.
//!
//! `PROMETHEUS_BIN` names the directory of Prometheus and promtool, `STRACE_BIN` a strace, `LIBFAKETIME` the library of libfaketime
//! for programs with threads.

mod ages;
mod limits;
mod members;
mod prometheus;
mod troubles;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::server::{Server, free_port};
use serde_json::Value;
use tokio::time::sleep;

use members::{ensemble, hosts};
use prometheus::Prometheus;

/// Prometheus takes a few rounds to have rates, and an election takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);

fn monitoring() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring")
}

async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        sleep(POLL).await;
    }
}

async fn wait_for(prometheus: &Prometheus, alerts: &[&str]) {
    for alert in alerts {
        wait_until(alert, || prometheus.is_firing(alert)).await;
    }
}

async fn wait_for_silence(prometheus: &Prometheus, alerts: &[&str]) {
    for alert in alerts {
        wait_until(&format!("{alert} is silent"), || !prometheus.is_firing(alert)).await;
    }
}

async fn connect(hosts: &str) -> Client {
    Client::connect(hosts, ClientOptions::default()).await.expect("connect")
}

#[tokio::test]
async fn dashboard_and_alerts_have_their_data() {
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut members = ensemble(&ports);
    let prometheus = Prometheus::start(&ports);
    let client = connect(&hosts(&members)).await;
    let load = tokio::spawn(async move {
        client.create("/load", b"", CreateMode::Persistent).await.expect("create");
        while client.set_data("/load", b"more", None).await.is_ok() && client.get_data("/load").await.is_ok()
        {
            sleep(Duration::from_millis(2)).await;
        }
    });
    check_dashboard(&prometheus).await;
    wait_until("every rule is evaluated", || {
        let rules = prometheus.rules();
        rules.len() > 9 && rules.iter().all(|rule| rule["health"] == "ok")
    })
    .await;
    assert!(!prometheus.is_firing("PaddockMemberDown") && !prometheus.is_firing("PaddockNoLeader"));
    check_alerts(&prometheus, &mut members).await;
    load.abort();
}

/// Every query of the dashboard, with its variables set.
async fn check_dashboard(prometheus: &Prometheus) {
    let text = fs::read_to_string(monitoring().join("grafana.json")).expect("read the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let queries = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("a panel has queries"));
    let queries: Vec<String> = queries
        .map(|target| target["expr"].as_str().expect("a query has an expression"))
        .map(|query| query.replace("$__rate_interval", "10s").replace("$job", "paddock"))
        .collect();
    assert!(queries.len() >= 20, "{} queries", queries.len());
    for query in &queries {
        wait_until(&format!("data for {query}"), || prometheus.has_data(query)).await;
    }
}

/// One member that dies is told of; two are no quorum; and all is silent when they are back.
async fn check_alerts(prometheus: &Prometheus, members: &mut [Server]) {
    const ONE: [&str; 2] = ["PaddockMemberDown", "PaddockMemberNotHeard"];
    const TWO: [&str; 2] = ["PaddockNoQuorum", "PaddockNoLeader"];
    members[0].kill();
    wait_for(prometheus, &ONE).await;
    members[1].kill();
    wait_for(prometheus, &TWO).await;
    // Both begin before either is awaited: one alone has no quorum to serve with.
    members[0].spawn();
    members[1].restart();
    wait_for_silence(prometheus, &[ONE, TWO].concat()).await;
}
