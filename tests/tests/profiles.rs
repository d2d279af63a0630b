//! Profiles: `--profile NAME`, `PADDOCK_PROFILE` and the default of the file, for every command that takes HOSTS.

use std::fs;
use std::process::{Command, Output};

use paddock_tests::oracle::identities::Identities;
use paddock_tests::server::{Server, ServerKind, environment, free_port};

/// A server that takes TLS with certificates and logins, one that takes neither, and a file of profiles for both.
struct ProfileTest {
    configurations: tempfile::TempDir,
    _secured: Server,
    open: Server,
}

impl ProfileTest {
    /// The text goes before the profiles.
    fn start(head: &str) -> ProfileTest {
        let identities = Identities::new();
        let tls_port = free_port();
        let settings = identities.settings(tls_port);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let secured = Server::start_with(ServerKind::Paddock, &settings);
        let open = Server::start(ServerKind::Paddock);
        let configurations = tempfile::tempdir().expect("make a directory for configurations");
        let directory = configurations.path().join("paddock");
        fs::create_dir(&directory).expect("make a directory for profiles");
        // Files are named from the directory of the profiles.
        for name in ["trust.pem", "alice.pem", "carol"] {
            fs::copy(identities.path(name), directory.join(name)).expect("copy a file");
        }
        fs::write(directory.join("ann"), "digest:ann:secret\n").expect("write an identity");
        let profiles = format!(
            "{head}\n[profiles.secured]\nhosts = \"127.0.0.1:{tls_port}\"\ntls_ca = \"trust.pem\"\n\
             tls_cert = \"alice.pem\"\nauth = [\"@ann\", \"env:BEN\"]\n\n\
             [profiles.login]\nhosts = \"{}\"\nsasl = \"carol:carol\"\n\n\
             [profiles.open]\nhosts = \"{}\"\nauth = \"@ann\"\n\n\
             [profiles.secret]\nauth = \"digest:ann:secret\"\n",
            secured.address(),
            open.address(),
        );
        fs::write(directory.join("profiles.toml"), profiles).expect("write profiles.toml");
        ProfileTest { configurations, _secured: secured, open }
    }

    fn run(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = Command::new(environment("PADDOCK_BIN"));
        command
            .args(arguments)
            .env("XDG_CONFIG_HOME", self.configurations.path())
            .env("BEN", "digest:ben:secret");
        command.env_remove("PADDOCK_HOSTS").env_remove("PADDOCK_PROFILE").envs(variables.iter().copied());
        command.output().expect("run paddock")
    }

    /// Identities by which a server knows the shell.
    fn identities(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Vec<String> {
        let output = self.run(variables, &[&["shell"], arguments, &["--", "whoami"]].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(&[], arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.lines().count(), 1, "{told}");
        told
    }
}

const ADDRESS: &str = "ip: 127.0.0.1";

fn sorted(mut identities: Vec<String>) -> Vec<String> {
    identities.sort_unstable();
    identities
}

#[test]
fn a_profile_has_servers_and_the_way_in_to_them() {
    let test = ProfileTest::start("");
    let secured = ["digest: ann", "digest: ben", ADDRESS, "x509: CN=alice"];
    assert_eq!(sorted(test.identities(&[], &["--profile", "secured"])), secured);
    assert_eq!(sorted(test.identities(&[("PADDOCK_PROFILE", "secured")], &[])), secured);
    assert_eq!(sorted(test.identities(&[], &["--profile", "login"])), [ADDRESS, "sasl: carol"]);
    // The option counts before the variable, and each option before what the profile says.
    let open = ["digest: ann", ADDRESS];
    assert_eq!(sorted(test.identities(&[("PADDOCK_PROFILE", "secured")], &["--profile", "open"])), open);
    let with_option = ["--profile", "secured", "--auth", "env:BEN"];
    assert_eq!(sorted(test.identities(&[], &with_option)), ["digest: ben", ADDRESS, "x509: CN=alice"]);
    let elsewhere = test.open.address().to_string();
    assert_eq!(sorted(test.identities(&[], &[&elsewhere, "--profile", "open"])), open);
    // A variable counts before the profile of a variable, and not before one that is named.
    let variables = [("PADDOCK_HOSTS", "127.0.0.1:1"), ("PADDOCK_PROFILE", "open")];
    let lost = test.run(&variables, &["shell", "--connect-timeout", "300ms", "--", "ls"]);
    assert!(String::from_utf8_lossy(&lost.stderr).contains("127.0.0.1:1"), "{lost:?}");
    assert_eq!(sorted(test.identities(&variables[..1], &["--profile", "open"])), open);
}

#[test]
fn the_default_is_for_commands_that_name_no_servers() {
    let test = ProfileTest::start("default = \"open\"");
    assert_eq!(sorted(test.identities(&[], &[])), ["digest: ann", ADDRESS]);
    // Servers that the profile does not name are not shown its identity.
    let address = test.open.address().to_string();
    assert_eq!(test.identities(&[], &[&address]), [ADDRESS]);
    assert_eq!(test.identities(&[("PADDOCK_HOSTS", &address)], &[]), [ADDRESS]);
    assert!(test.identities(&[], &["--profile", "login"]).contains(&"sasl: carol".to_owned()));
}

#[test]
fn every_command_that_takes_hosts_takes_a_profile() {
    let test = ProfileTest::start("");
    let made = test.run(&[], &["shell", "--profile", "open", "--", "create", "/mine", "x", "auth::cdrwa"]);
    assert!(made.status.success(), "{made:?}");
    let members = test.run(&[], &["members", "--profile", "open"]);
    assert!(members.status.success(), "{members:?}");
    let doctor = test.run(&[("PADDOCK_PROFILE", "open")], &["doctor", "--json", "--tree-within", "0s"]);
    let told = String::from_utf8_lossy(&doctor.stdout);
    assert!(told.contains(&test.open.address().to_string()), "{doctor:?}");
    // Only the identity of the profile may read it.
    let file = test.configurations.path().join("dump");
    let file = file.display().to_string();
    let dumped = test.run(&[], &["dump", "--profile", "open", "--path", "/mine", "--to", &file]);
    assert!(dumped.status.success(), "{dumped:?}");
    assert!(fs::read_to_string(&file).expect("read the dump").contains("/mine"));
    let removed = test.run(&[], &["shell", "--profile", "open", "--", "delete", "/mine"]);
    assert!(removed.status.success(), "{removed:?}");
    let loaded = test.run(&[], &["load", "--profile", "open", "--from", &file]);
    assert!(loaded.status.success(), "{loaded:?}");
    let seen = test.run(&[], &["shell", "--profile", "open", "--", "get", "/mine"]);
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "x\n", "{seen:?}");
    // Commands whose servers are named in another way take the rest of a profile.
    let address = test.open.address().to_string();
    let compared = test.run(&[], &["diff", "--profile", "open", &address, &address]);
    assert!(compared.status.success(), "{compared:?}");
}

#[test]
fn a_profile_that_cannot_be_had_is_told_in_one_line() {
    let test = ProfileTest::start("");
    let told = test.refusal(&["shell", "--profile", "close", "--", "ls"]);
    assert!(told.contains("there is no profile \"close\": it has login, open, secret, secured"), "{told}");
    let told = test.refusal(&["shell", "--profile", "secret", "--", "ls"]);
    assert!(told.contains("a profile holds no secrets") && !told.contains("secret\""), "{told}");
    assert!(!told.contains("ann:secret"), "{told}");
    let file = test.configurations.path().join("paddock/profiles.toml");
    fs::write(&file, "[profiles.a]\nhost = \"x\"\n").expect("write profiles.toml");
    let told = test.refusal(&["members", "--profile", "a"]);
    assert!(told.contains("profiles.toml:2: unknown field `host`, expected one of `hosts`"), "{told}");
    fs::remove_file(&file).expect("remove profiles.toml");
    let told = test.refusal(&["doctor", "--profile", "a"]);
    assert!(told.contains("does not exist: write it, with [profiles.a]"), "{told}");
}
