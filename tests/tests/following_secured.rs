//! Ensembles of Apache ZooKeeper whose quorum ports want TLS, SASL or both are followed, by those who may.

use std::fs;
use std::path::{Path, PathBuf};

use paddock_tests::following::{Follower, Story};
use paddock_tests::pem_stores::pem_stores;
use paddock_tests::server::ServerKind;

const PASSWORD: &str = "of the \"learner\"";

/// Lines for `zoo.cfg`, and files that they name.
struct Settings {
    directory: tempfile::TempDir,
    lines: Vec<(&'static str, String)>,
}

impl Settings {
    fn new() -> Settings {
        Settings { directory: tempfile::tempdir().expect("make a directory"), lines: Vec::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.file(name);
        fs::write(&file, text).expect("write a file");
        file
    }

    /// The host is the same for all members, so that one certificate is enough.
    fn with_tls(mut self) -> Settings {
        pem_stores(self.directory.path(), "an authority", 1);
        let path = |name: &str| self.file(name).display().to_string();
        let lines = [
            ("sslQuorum", "true".to_owned()),
            ("ssl.quorum.keyStore.location", path("1.pem")),
            ("ssl.quorum.trustStore.location", path("trust.pem")),
        ];
        self.lines.extend(lines);
        self
    }

    /// Every member has to log in to every other one.
    fn with_sasl(mut self) -> Settings {
        let password = PASSWORD.replace('"', "\\\"");
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
        let jaas = format!(
            "QuorumServer {{\n{module}\nuser_member=\"m\"\nuser_learner=\"{password}\";\n}};\n\
             QuorumLearner {{\n{module}\nusername=\"member\"\npassword=\"m\";\n}};\n"
        );
        let jaas = self.write("jaas.conf", &jaas).display().to_string();
        let is_true = |key| (key, "true".to_owned());
        self.lines.extend([
            ("java.security.auth.login.config", jaas),
            // With FIPS mode, which is the default, ZooKeeper 3.9 knows no DIGEST-MD5.
            ("fips-mode", "false".to_owned()),
            is_true("quorum.auth.enableSasl"),
            is_true("quorum.auth.learnerRequireSasl"),
            is_true("quorum.auth.serverRequireSasl"),
        ]);
        self
    }

    /// The argument of `--sasl` with this password.
    fn login(&self, password: &str) -> String {
        format!("learner:{}", self.write("password", &format!("{password}\n")).display())
    }

    /// The argument of `--tls`.
    fn zoo_cfg(&self) -> String {
        let lines = self.lines.iter().map(|(key, value)| format!("{key}={value}\n"));
        self.write("zoo.cfg", &lines.collect::<String>()).display().to_string()
    }

    fn story(&self) -> Story {
        let lines: Vec<(&str, &str)> = self.lines.iter().map(|(key, value)| (*key, &value[..])).collect();
        Story::begin_with(ServerKind::ZooKeeper, &lines)
    }
}

/// The only line that a follower leaves which is not let in; it makes nothing.
fn refused(from: &str, to: &Path, arguments: &[&str]) -> String {
    let mut follower = Follower::start(from, to, arguments);
    assert_eq!(follower.ended().code(), Some(1), "{}", follower.log());
    assert!(!to.exists(), "nothing is made of it");
    let log = follower.log();
    log.lines().last().expect("it says why").strip_prefix("error: ").expect("it is an error").to_owned()
}

#[tokio::test]
async fn a_quorum_port_with_tls_is_called_with_tls() {
    let settings = Settings::new().with_tls();
    let mut story = settings.story();
    let plain = refused(&story.from, &story.to().with_extension("plain"), &[]);
    assert!(plain.ends_with("TLS (sslQuorum) needs --tls, SASL (quorum.auth) needs --sasl"), "{plain}");

    let tls = settings.zoo_cfg();
    // A leader that knows nothing of SASL takes it for nonsense.
    let login = ["--tls", &tls, "--sasl", &settings.login(PASSWORD)];
    let in_vain = refused(&story.from, &story.to().with_extension("login"), &login);
    assert!(in_vain.ends_with("without quorum.auth.enableSasl=true leave --sasl out"), "{in_vain}");

    let mut follower = Follower::start(&story.from, &story.to(), &["--tls", &tls]);
    follower.says(1, "following ").await;
    story.go_on(100).await;
    story.compare().await;
    story.end_of_load().await;
}

#[tokio::test]
async fn an_observer_logs_in_where_members_do() {
    let settings = Settings::new().with_sasl();
    let mut story = settings.story();
    let other = story.to().with_extension("other");
    let anonymous = refused(&story.from, &other, &[]);
    assert!(anonymous.ends_with("SASL (quorum.auth) needs --sasl"), "{anonymous}");
    let wrong = refused(&story.from, &other, &["--sasl", &settings.login("a guess")]);
    assert!(
        wrong.ends_with("does not let learner in by SASL: the password is wrong, or it has no such user"),
        "{wrong}"
    );
    let missing = refused(&story.from, &other, &["--sasl", "learner:/nowhere"]);
    assert!(missing.starts_with("read the password in /nowhere: "), "{missing}");

    let mut follower = Follower::start(&story.from, &story.to(), &["--sasl", &settings.login(PASSWORD)]);
    follower.says(1, "following ").await;
    story.go_on(100).await;
    let leader = story.zookeeper.leader();
    story.zookeeper.member(leader).kill();
    follower.says(2, "following ").await;
    story.zookeeper.member(leader).restart();
    story.go_on(50).await;
    story.compare().await;
    story.end_of_load().await;
}

#[tokio::test]
async fn sasl_goes_inside_tls() {
    let settings = Settings::new().with_tls().with_sasl();
    let mut story = settings.story();
    let config = story.paddock.config_path();
    let config = config.to_str().expect("paths of tests are text");
    let (tls, login) = (settings.zoo_cfg(), settings.login(PASSWORD));
    let arguments = ["--tls", &tls, "--sasl", &login, "--cutover", "--config", config];
    let mut follower = Follower::start(&story.from, &story.to(), &arguments);
    follower.says(1, "ready for the cut-over").await;
    story.go_on(100).await;
    story.compare().await;
    story.stop_zookeeper().await;
    follower.says(1, "took over in ").await;
    story.go_on(50).await;
    story.end_of_load().await;
}
