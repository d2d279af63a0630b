//! Three members as processes that speak TLS with each other, told so by their `zoo.cfg`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use paddock_client::{Client, ClientOptions, CreateMode};
use paddock_tests::ensemble::{Ensemble, server_lines};
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::Server;

const LOGGED_WITHIN: Duration = Duration::from_secs(30);

/// The lines of member `id` that turn TLS on.
fn tls_lines(dir: &Path, id: usize) -> Vec<(String, String)> {
    let line = |key: &str, value: String| (key.to_owned(), value);
    vec![
        line("sslQuorum", "true".to_owned()),
        line("ssl.quorum.keyStore.location", dir.join(format!("{id}.pem")).display().to_string()),
        line("ssl.quorum.trustStore.location", dir.join("trust.pem").display().to_string()),
    ]
}

async fn connect(hosts: &str) -> Client {
    let options = ClientOptions { session_timeout: Duration::from_secs(30), ..ClientOptions::default() };
    Client::connect(hosts, options).await.expect("connect to the ensemble")
}

async fn create(client: &Client, path: &str) {
    client.create(path, b"x", CreateMode::Persistent).await.unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Waits until a member has logged a line in which all of `parts` stand.
#[track_caller]
fn expect_logged(member: &Server, parts: &[&str]) {
    let deadline = Instant::now() + LOGGED_WITHIN;
    while !member.log().lines().any(|line| parts.iter().all(|part| line.contains(part))) {
        assert!(Instant::now() < deadline, "no line with {parts:?} in\n{}", member.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn members_with_certificates_serve_and_survive_their_leader() {
    let stores = tempfile::tempdir().expect("make a directory");
    pem_stores(stores.path(), "ours", 3);
    let mut ensemble = Ensemble::start_each(3, &server_lines(3), |id| tls_lines(stores.path(), id));
    let leader = ensemble.leader();
    let client = connect(&ensemble.member((leader + 1) % 3).address().to_string()).await;
    create(&client, "/before").await;
    expect_logged(ensemble.member(leader), &["links between members use TLS", "valid until"]);
    expect_logged(ensemble.member(leader), &["link up", "tls=\"1.3\""]);
    ensemble.member(leader).kill();
    create(&client, "/without").await;
    ensemble.member(leader).spawn();
    ensemble.leader();
    create(&client, "/after").await;
    ensemble.settle();
    for number in 0..3 {
        let one = connect(&ensemble.member(number).address().to_string()).await;
        one.sync("/").await.expect("sync");
        for path in ["/before", "/without", "/after"] {
            one.get_data(path).await.unwrap_or_else(|error| panic!("{path} at {number}: {error}"));
        }
        one.close().await.expect("close");
    }
    client.close().await.expect("close");
}

/// A member without a certificate of the authority does not get in, whatever it says that it is; and both sides say why.
#[tokio::test]
async fn a_member_without_a_good_certificate_gets_nothing() {
    let stores = tempfile::tempdir().expect("make a directory");
    pem_stores(stores.path(), "ours", 3);
    pem_stores(&stores.path().join("theirs"), "theirs", 3);
    let servers = server_lines(3);
    let lines = |own: Vec<(String, String)>| servers.iter().cloned().chain(own).collect::<Vec<_>>();
    let rewrite = |member: &Server, own: Vec<(String, String)>| {
        let lines = lines(own);
        let lines: Vec<(&str, &str)> = lines.iter().map(|(key, value)| (&**key, &**value)).collect();
        member.write_config(&lines);
    };
    let mut ensemble = Ensemble::start_each(3, &servers, |id| tls_lines(stores.path(), id));
    let client = connect(&ensemble.member(0).address().to_string()).await;
    create(&client, "/before").await;
    ensemble.settle();

    // The third calls the others.
    ensemble.member(2).stop();
    rewrite(ensemble.member(2), Vec::new());
    ensemble.member(2).spawn();
    expect_logged(
        ensemble.member(2),
        &["no link", "takes calls with TLS only: turn TLS on at the calling one"],
    );
    expect_logged(
        ensemble.member(2),
        &["rejected a connection on the quorum port", "speaks TLS, which this member does not"],
    );
    expect_logged(ensemble.member(0), &["member refused", "takes calls with TLS only"]);
    expect_logged(ensemble.member(0), &["no link", "turn TLS on at both members, or at none"]);
    create(&client, "/without-the-third").await;

    ensemble.member(2).stop();
    rewrite(ensemble.member(2), tls_lines(&stores.path().join("theirs"), 3));
    ensemble.member(2).spawn();
    let put = "put the certificate of who signed it into the trust store";
    expect_logged(ensemble.member(2), &["no link", put]);
    expect_logged(ensemble.member(0), &["no link", put]);
    expect_logged(
        ensemble.member(0),
        &[
            "rejected a connection on the quorum port",
            "who signed this member's certificate is not in its trust store",
        ],
    );
    assert!(mode(ensemble.member(2)).is_none_or(|mode| !["leader", "follower"].contains(&&*mode)));
    create(&client, "/still-without-the-third").await;
    client.close().await.expect("close");

    ensemble.member(2).stop();
    rewrite(ensemble.member(2), tls_lines(stores.path(), 3));
    ensemble.member(2).spawn();
    ensemble.leader();
    ensemble.settle();
}

fn mode(member: &Server) -> Option<String> {
    let answer = member.four_letter_word("srvr").ok()?;
    answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
}

/// The commands and the lines of ZooKeeper's own guide, with its password: each member signs for itself, the trust
/// store holds all certificates, and the host is the common name.
#[tokio::test]
async fn stores_of_zookeepers_guide_work_as_they_are() {
    for store_type in ["JKS", "PKCS12"] {
        let stores = tempfile::tempdir().expect("make a directory");
        let keytool = |args: &str| {
            let mut command = Command::new("keytool");
            command.current_dir(stores.path()).args(args.split_whitespace());
            command.args(["-storepass", "password", "-storetype", store_type]);
            let output = command.output().expect("start keytool, which comes with Java");
            assert!(output.status.success(), "keytool {args}: {output:?}");
        };
        for id in 1..=3 {
            keytool(&format!(
                "-genkeypair -alias host{id} -keyalg RSA -keysize 2048 -dname cn=127.0.0.1 -keypass password \
                 -keystore {id}.jks"
            ));
            keytool(&format!("-exportcert -alias host{id} -keystore {id}.jks -file {id}.cer -rfc"));
            keytool(&format!(
                "-importcert -noprompt -alias host{id} -file {id}.cer -keystore truststore.jks"
            ));
        }
        let line = |key: &str, value: String| (key.to_owned(), value);
        let settings = |id: usize| {
            vec![
                line("sslQuorum", "true".to_owned()),
                line("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned()),
                line(
                    "ssl.quorum.keyStore.location",
                    stores.path().join(format!("{id}.jks")).display().to_string(),
                ),
                line("ssl.quorum.keyStore.password", "password".to_owned()),
                line(
                    "ssl.quorum.trustStore.location",
                    stores.path().join("truststore.jks").display().to_string(),
                ),
                line("ssl.quorum.trustStore.password", "password".to_owned()),
            ]
        };
        let mut ensemble = Ensemble::start_each(3, &server_lines(3), settings);
        let client = connect(&ensemble.hosts()).await;
        create(&client, "/x").await;
        client.close().await.expect("close");
        for number in 0..3 {
            let log = ensemble.member(number).log();
            assert!(!log.contains("password") && !log.contains("would not take"), "{log}");
        }
    }
}
