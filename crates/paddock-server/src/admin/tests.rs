//! All routes of the table, asked as a page elsewhere would have a browser ask, and with a superuser's certificate, which a browser
//! shows by itself.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;

use hyper::Method;
use paddock_http::testing::TestSite;
use paddock_proto::Id;
use paddock_tree::FeatureLevel;

use super::*;
use crate::reports::four_letter_words;
use crate::reports::status;
use crate::{Config, MemberSettings, Server};

const HOST: &str = "Host: 127.0.0.1:8080\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

/// A member without ports for HTTP, whose routes are asked.
struct AdminStage {
    server: Server,
    site: TestSite<Admin>,
    _directory: tempfile::TempDir,
    _client: TcpStream,
}

/// Everything of a member that a request might change.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint {
    zxid: i64,
    digest: u64,
    trace_mask: i64,
    received: u64,
    received_of_connections: u64,
    snapshots: u64,
}

/// Numbers that an order to reset something would change.
const RECEIVED: u64 = 77;

impl AdminStage {
    async fn start() -> AdminStage {
        let directory = tempfile::tempdir().unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let admin = crate::AdminSettings { rate_limit_ms: 0, ..crate::AdminSettings::default() };
        let member_settings = MemberSettings { segment_bytes: 1 << 20, ..MemberSettings::default() };
        let config = Config { listen, member_settings, admin, ..Config::new(directory.path()) };
        let server = Server::start(config).unwrap();
        let client = TcpStream::connect(server.address()).unwrap();
        let site = TestSite::new(ROUTES, server.admin());
        let stats = &site.context().shared.statistics.clients;
        while stats.conns().is_empty() {
            tokio::task::yield_now().await;
        }
        // A moment after its first start a member raises its feature level, which changes the digest.
        let level = || site.context().shared.state.read().tree().feature_level();
        while level() < FeatureLevel::KNOWN {
            tokio::task::yield_now().await;
        }
        (0..RECEIVED).for_each(|_| stats.traffic(0).received());
        stats.conns().iter().for_each(|(_, conn)| conn.received.store(RECEIVED, Relaxed));
        AdminStage { server, site, _directory: directory, _client: client }
    }

    /// Status of the answer to a superuser's certificate, or to none.
    async fn ask(&self, is_superuser: bool, method: &str, path: &str, headers: &str) -> u16 {
        let certified = if is_superuser { vec![Id::new("super", "")] } else { Vec::new() };
        let request =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n");
        let peer = SocketAddr::from(([127, 0, 0, 1], 50_000));
        self.site.ask(peer, &certified, &request).await.0
    }

    fn fingerprint(&self) -> Fingerprint {
        let shared = &self.site.context().shared;
        let (zxid, digest) = status::digest(shared);
        let conns = shared.statistics.clients.conns();
        Fingerprint {
            zxid: zxid.0,
            digest,
            trace_mask: shared.statistics.clients.trace_mask.load(Relaxed),
            received: shared.statistics.clients.received(),
            received_of_connections: conns.iter().map(|(_, conn)| conn.received.load(Relaxed)).sum(),
            snapshots: shared.statistics.snapshots.next(),
        }
    }
}

/// A path with its query, for each thing that can be asked for by a route; and true if it is an order, for the routes that find that out.
fn paths(route: &Route<Admin>) -> Vec<(String, bool)> {
    let plain = |path: &str| vec![(path.to_owned(), false)];
    match route.path {
        "/commands/*" => {
            let orders = [
                "connection_stat_reset",
                "crst",
                "observer_connection_stat_reset",
                "orst",
                "set_trace_mask",
                "stmk",
                "stat_reset",
                "srst",
            ];
            let all = commands::names();
            all.map(|name| (format!("/commands/{name}?traceMask=5"), orders.contains(&name))).collect()
        }
        "/api/v1/commands" => {
            let orders = keeper::ORDERS.iter().copied();
            let is_order = |text: &str| {
                orders.clone().any(|order| order == text)
                    || ["create", "touch", "set", "rm"].contains(&text.split(' ').next().unwrap())
            };
            let all = four_letter_words::names().map(str::to_owned).chain(keeper_client::examples());
            let query = |text: &str| format!("/api/v1/commands?command={}", text.replace(' ', "+"));
            all.map(|text| (query(&text), is_order(&text))).collect()
        }
        "/api/v1/commands/*" => ["srst", "rm?command=rm+/a", "ls?command=ls"]
            .map(|rest| (rest, rest != "ls?command=ls"))
            .map(|(rest, is_order)| (format!("/api/v1/commands/{rest}"), is_order))
            .to_vec(),
        "/api/v1/storage/*" => plain("/api/v1/storage/a?version=-1"),
        path => {
            assert!(!path.contains('*'), "{route:?} needs examples of what can be asked for");
            plain(&format!("{path}?path=/&id=0x1"))
        }
    }
}

/// Headers of requests that a page elsewhere has a browser send.
const FOREIGN: [&str; 6] = [
    "Origin: https://evil.example\r\n",
    "Origin: null\r\n",
    "Origin: http://127.0.0.1:3000\r\n",
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n",
    "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n",
    // A form, which leads away from the page.
    "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
];

#[tokio::test]
async fn no_route_answers_a_page_of_somebody_else() {
    let stage = AdminStage::start().await;
    let before = stage.fingerprint();
    for route in ROUTES {
        for (path, _) in paths(route) {
            let request = format!("{} {path}", route.method);
            let host = format!("Host: evil.example:8080\r\n{JSON}");
            assert_eq!(stage.ask(true, route.method, &path, &host).await, 421, "{request}");
            for foreign in FOREIGN {
                // JSON, so that the origin alone decides.
                let headers = format!("{HOST}{JSON}{foreign}");
                assert_eq!(stage.ask(true, route.method, &path, &headers).await, 403, "{request} {foreign}");
            }
        }
        // A link.
        let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
        let expected = if ["/", "/dashboard"].contains(&route.path) { 200 } else { 403 };
        let path = &paths(route)[0].0;
        let answered = stage.ask(true, route.method, path, &format!("{HOST}{link}")).await;
        assert_eq!(answered, expected, "a link to {route:?}");
    }
    assert_eq!(stage.ask(true, "GET", "/nothing", "Host: evil.example\r\n").await, 421);
    assert_eq!(stage.fingerprint(), before);
    stage.server.shutdown().unwrap();
}

#[tokio::test]
async fn no_get_changes_anything() {
    let stage = AdminStage::start().await;
    for route in ROUTES.iter().filter(|route| route.method == "GET") {
        for (path, is_order) in paths(route) {
            for method in ["GET", "HEAD"] {
                let before = stage.fingerprint();
                let answered = stage.ask(true, method, &path, HOST).await;
                assert_eq!(answered == 405, is_order, "{method} {path}: {answered}");
                let mut after = stage.fingerprint();
                // ZooKeeper's way to fetch a snapshot: it has to be taken, and tells nothing that it changes.
                if ["/commands/snapshot", "/commands/snap", "/api/v1/snapshot"]
                    .contains(&path.split('?').next().unwrap())
                {
                    assert_eq!(answered, 200, "{method} {path}");
                    after.snapshots = before.snapshots;
                }
                assert_eq!(after, before, "{method} {path}");
            }
        }
    }
    assert_eq!(stage.fingerprint().received, RECEIVED);
    stage.server.shutdown().unwrap();
}

#[tokio::test]
async fn an_order_brings_what_no_page_can_have_a_browser_send() {
    let stage = AdminStage::start().await;
    let before = stage.fingerprint();
    let plain = [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: text/plain; application/json\r\n",
        "Content-Type: multipart/form-data; boundary=application/json\r\n",
    ];
    let orders = || ROUTES.iter().filter(|route| route.method != "GET");
    for route in orders() {
        for (path, is_order) in paths(route) {
            for plain in plain {
                let answered = stage.ask(true, route.method, &path, &format!("{HOST}{plain}")).await;
                let is_restore = route.path.starts_with("/commands/rest");
                let tells = path.starts_with("/api/v1/commands") && !is_order;
                let is_expected = match answered {
                    403 => !tells,
                    501 => is_restore,
                    _ => tells,
                };
                assert!(is_expected, "{route:?} {path} {plain}: {answered}");
            }
            // An unknown requester gives no orders.
            let answered = stage.ask(false, route.method, &path, &format!("{HOST}{JSON}")).await;
            let tells = path.starts_with("/api/v1/commands") && !is_order;
            assert!(tells || [401, 501].contains(&answered), "{route:?} {path}: {answered}");
        }
    }
    assert_eq!(stage.fingerprint(), before);
    // What the member's own page and scripts send.
    for route in orders() {
        for (path, _) in paths(route) {
            let own =
                "Origin: http://127.0.0.1:8080\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n";
            for headers in [
                format!("{HOST}{JSON}{own}"),
                format!("{HOST}Paddock-Request: 1\r\n"),
                format!("{HOST}Content-Type: Application/JSON; charset=utf-8\r\n"),
                format!("{JSON}Host: [::1]:8080\r\nOrigin: http://[::1]:8080\r\n"),
            ] {
                let answered = stage.ask(true, route.method, &path, &headers).await;
                assert!(![401, 403, 405, 421].contains(&answered), "{route:?} {path} {headers}: {answered}");
            }
        }
    }
    assert_ne!(stage.fingerprint(), before);
    stage.server.shutdown().unwrap();
}

/// Every method but `GET` is an order, or says of itself that it finds that out.
#[test]
fn methods_are_those_that_are_judged() {
    for route in ROUTES {
        let method: Method = route.method.parse().unwrap();
        assert!([Method::GET, Method::POST, Method::PUT, Method::DELETE].contains(&method), "{route:?}");
    }
}
