//! Every metric of a real ZooKeeper is here, or stands in the table of those that are not, with the reason.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::server::{Server, ServerKind, free_port};
use paddock_tests::zookeeper_metrics::{MetricRow, names, row, rows};

const PROVIDER: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

/// Lines of `mntr` that are no metrics.
const FACTS: [&str; 3] = ["version", "server_state", "peer_state"];

#[tokio::test]
async fn every_metric_of_zookeeper_is_here_or_in_the_table() {
    let rows = rows();
    let mut seen = BTreeSet::new();
    let zookeeper = Server::start(ServerKind::ZooKeeper);
    let paddock = Server::start(ServerKind::Paddock);
    for server in [&zookeeper, &paddock] {
        work(&server.address().to_string()).await;
    }
    compare("alone", &rows, &mntr(&zookeeper), &mntr(&paddock), &mut seen);

    let mut zookeeper = Ensemble::start_kind(ServerKind::ZooKeeper, 3, &[]);
    let metrics_ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut paddock = Ensemble::start_each(3, &server_lines(3), |id| {
        let settings = [
            ("metricsProvider.className", PROVIDER.to_owned()),
            ("metricsProvider.httpHost", "127.0.0.1".to_owned()),
            ("metricsProvider.httpPort", metrics_ports[id - 1].to_string()),
        ];
        settings.map(|(key, value)| (key.to_owned(), value)).to_vec()
    });
    for ensemble in [&mut zookeeper, &mut paddock] {
        work(&ensemble.hosts()).await;
        ensemble.settle();
    }
    let (leader, own_leader) = (zookeeper.leader(), paddock.leader());
    compare("leader", &rows, &mntr(zookeeper.member(leader)), &mntr(paddock.member(own_leader)), &mut seen);
    let (follower, own_follower) = ((leader + 1) % 3, (own_leader + 1) % 3);
    let (theirs, ours) = (mntr(zookeeper.member(follower)), mntr(paddock.member(own_follower)));
    compare("follower", &rows, &theirs, &ours, &mut seen);

    let is_quota = |name: &str| name.starts_with("quota_");
    let unseen: Vec<&str> = rows
        .iter()
        .map(|row| row.name.as_str())
        .filter(|name| !seen.contains(*name) && !is_quota(name))
        .collect();
    assert!(unseen.is_empty(), "ZooKeeper has no such metrics: {unseen:?}");
    check_types(&rows, metrics_ports[own_leader]);
}

/// Something of each kind that clients do, so that metrics that appear with their first value do so.
async fn work(hosts: &str) {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    client.create("/a", b"12345", CreateMode::Persistent).await.expect("create");
    client.watch_data("/a").await.expect("watch");
    client.set_data("/a", b"54321", None).await.expect("write");
    client.get_data("/a").await.expect("read");
    client.close().await.expect("close");
}

fn mntr(server: &Server) -> BTreeSet<String> {
    names(&server.four_letter_word("mntr").expect("mntr is answered"))
}

/// Every name of ZooKeeper's answer has a row; those of the first table are in Paddock's answer, and those of the second are not.
fn compare(
    role: &str,
    rows: &[MetricRow],
    zookeeper: &BTreeSet<String>,
    paddock: &BTreeSet<String>,
    seen: &mut BTreeSet<String>,
) {
    let mut wrong = Vec::new();
    for name in zookeeper.iter().filter(|name| !FACTS.contains(&name.as_str())) {
        match row(rows, name) {
            None => wrong.push(format!("{name} is in no table")),
            Some(row) => {
                seen.insert(row.name.clone());
                if row.is_here != paddock.contains(name) {
                    wrong.push(format!(
                        "{name} is here: the table says {}, the answer {}",
                        row.is_here, !row.is_here
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{role}:\n{}", wrong.join("\n"));
}

/// Types for Prometheus are those of the table.
fn check_types(rows: &[MetricRow], port: u16) {
    let mut stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).expect("connect");
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("ask for metrics");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("metrics are answered");
    for row in rows.iter().filter(|row| row.is_here && !row.name.ends_with("_per_namespace")) {
        let kind = row.kind.split(' ').next().expect("a type has a name");
        let line = format!("# TYPE {} {kind}", row.name);
        assert!(page.lines().any(|printed| printed == line), "{line} is missing");
    }
}
