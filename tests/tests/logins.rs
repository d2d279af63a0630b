//! SASL of the client library and of every command that connects as a client, against Paddock and against Apache ZooKeeper.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use paddock_client::{
    Acl, Client, ClientOptions, CreateMode, Error, ErrorCode, Id, Login, LoginError, Perms,
};
use paddock_tests::server::{Server, ServerKind, environment};

const USER: &str = "bob";
const PASSWORD: &str = "bob's own";
const KINDS: [ServerKind; 2] = [ServerKind::Paddock, ServerKind::ZooKeeper];

/// The JAAS file of a server, and files with a right and a wrong password.
struct Files {
    directory: tempfile::TempDir,
    jaas: String,
}

impl Files {
    fn write() -> Files {
        let directory = tempfile::tempdir().expect("make a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("write a file");
            path.display().to_string()
        };
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
        let jaas = file("jaas.conf", &format!("Server {{\n{module}\nuser_{USER}=\"{PASSWORD}\";\n}};\n"));
        file("password", &format!("{PASSWORD}\n"));
        file("guess", "a guess\n");
        Files { directory, jaas }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The argument of `--sasl`.
    fn login(&self, password: &str) -> String {
        format!("{USER}:{}", self.path(password).display())
    }

    /// A server that refuses everything to a client that has not logged in.
    fn server(&self, kind: ServerKind) -> Server {
        let settings = [
            ("java.security.auth.login.config", &self.jaas[..]),
            ("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
            ("sessionRequireClientSASLAuth", "true"),
        ];
        Server::start_with(kind, &settings)
    }
}

fn options(password: &str) -> ClientOptions {
    let login = Login { user: USER.to_owned(), password: password.to_owned() };
    ClientOptions { sasl: Some(login), ..ClientOptions::default() }
}

async fn connect(server: &Server, options: ClientOptions) -> Result<Client, Error> {
    Client::connect(&server.address().to_string(), options).await
}

fn of_the_user() -> Acl {
    Acl { perms: Perms::ALL, id: Id::new("sasl", USER) }
}

/// A znode that only the user may read.
async fn make_secret(server: &Server) -> Client {
    let client = connect(server, options(PASSWORD)).await.expect("log in");
    let made = client.create2("/secret", b"s", &[of_the_user()], CreateMode::Persistent).await;
    made.expect("make a znode");
    client
}

fn paddock(arguments: &[&str]) -> Output {
    Command::new(environment("PADDOCK_BIN")).args(arguments).output().expect("run paddock")
}

/// The last line that a command has to say.
fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().last().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_user_logs_in_and_again_after_a_lost_connection() {
    let files = Files::write();
    for kind in KINDS {
        let mut server = files.server(kind);
        let client = make_secret(&server).await;
        let session = client.session();
        server.kill();
        server.restart();
        // The first answer on the new connection may be that the old one was lost.
        while let Err(error) = client.get_data("/secret").await {
            assert!(matches!(error, Error::ConnectionLost), "{kind:?}: {error:?}");
        }
        assert_eq!(client.session(), session);
        let strangers = connect(&server, ClientOptions::default()).await.expect("connect");
        let refused = strangers.get_data("/secret").await.expect_err("nobody may read it");
        assert_eq!(refused.code(), Some(ErrorCode::SessionClosedRequireSaslAuth), "{kind:?}: {refused:?}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_at_once() {
    let files = Files::write();
    for kind in KINDS {
        let server = files.server(kind);
        let refused = connect(&server, options("a guess")).await.expect_err("the password is wrong");
        assert!(matches!(refused, Error::Login(LoginError::Refused { .. })), "{kind:?}: {refused:?}");
    }
}

#[tokio::test]
async fn a_server_without_users_is_told_apart() {
    for kind in KINDS {
        let server = Server::start(kind);
        let refused = connect(&server, options(PASSWORD)).await.expect_err("there are no users");
        assert!(matches!(refused, Error::Login(LoginError::NotOffered)), "{kind:?}: {refused:?}");
    }
}

fn equal(files: &Files, from: &Path, server: &Server) {
    let address = server.address().to_string();
    let from = from.to_str().expect("paths of tests are text");
    let login = files.login("password");
    let compared = paddock(&["diff", "--sasl", &login, "--exclude", "/zookeeper", from, &address]);
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

#[tokio::test]
async fn every_command_logs_in() {
    let files = Files::write();
    let (source, target) = (files.server(ServerKind::ZooKeeper), files.server(ServerKind::Paddock));
    make_secret(&source).await.close().await.expect("close the session");
    let (from, to) = (source.address().to_string(), target.address().to_string());
    let (login, guess) = (files.login("password"), files.login("guess"));

    let copy = ["import", "live", "--once", "--from", &from, "--to", &to, "--from-sasl", &login];
    let copied = paddock(&[&copy[..], &["--to-sasl", &guess]].concat());
    assert_eq!(copied.status.code(), Some(1));
    assert!(last_line(&copied).contains("does not let bob in by SASL"), "{}", last_line(&copied));
    let copied = paddock(&[&copy[..], &["--to-sasl", &login]].concat());
    assert!(copied.status.success(), "{}", last_line(&copied));

    let compared = paddock(&["diff", "--sasl", &guess, &from, &to]);
    assert_eq!(compared.status.code(), Some(2));
    assert!(last_line(&compared).contains("does not let bob in by SASL"), "{}", last_line(&compared));
    equal(&files, &source.data_directory(), &source);

    for server in [&from, &to] {
        let run = ["bench", "run", "create", "--hosts", server, "--sessions", "3", "--requests", "300"];
        let measured = paddock(&[&run[..], &["--sasl", &login, "--quiet"]].concat());
        assert!(measured.status.success(), "{}", last_line(&measured));
        let refused = paddock(&[&run[..], &["--sasl", &guess, "--quiet"]].concat());
        assert!(!refused.status.success());
        assert!(last_line(&refused).contains("does not let bob in by SASL"), "{}", last_line(&refused));
    }
}
