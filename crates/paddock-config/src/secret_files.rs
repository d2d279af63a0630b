//! Files of a configuration in which passwords stand. Those of private keys are known to who reads them.

use std::path::{Path, PathBuf};

use paddock_server::{Config, Password, Store, warn_of_readable_file};

use super::Overrides;
use super::draft::Draft;

/// Files with passwords, each with the name of what is in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SecretFiles {
    files: Vec<(PathBuf, &'static str)>,
    jaas_file: Option<PathBuf>,
    /// True if the main file has passwords that do not show in the settings that come of it.
    is_in_main_file: bool,
}

impl SecretFiles {
    /// The files that a draft names.
    pub(super) fn of_draft(draft: &Draft, overrides: &Overrides) -> SecretFiles {
        let etcd = overrides.etcd.clone().or(draft.etcd.clone());
        let files = etcd.password_file.map(|file| (file, "the password for etcd"));
        SecretFiles {
            files: files.into_iter().collect(),
            jaas_file: draft.sasl.jaas_file.clone(),
            is_in_main_file: !draft.sasl.users.is_empty() || draft.etcd.password.is_some(),
        }
    }

    /// Adds the main file, if there is one and it has passwords, and the file of SASL's users.
    pub(super) fn settle(&mut self, file: Option<&Path>, config: &Config) {
        let has_users = config.sasl.as_ref().is_some_and(|sasl| !sasl.passwords.is_empty());
        if let Some(file) = self.jaas_file.take().filter(|_| has_users) {
            self.files.push((file, "the passwords of SASL"));
        }
        let has_passwords = config.super_digest.is_some() || stores(config).any(has_text);
        if let Some(file) = file.filter(|_| self.is_in_main_file || has_passwords) {
            self.files.push((file.to_owned(), "the secrets in the configuration"));
        }
    }

    /// Warns of those that others can read.
    pub fn warn(&self) {
        for (file, what) in &self.files {
            warn_of_readable_file(file, what);
        }
    }
}

/// Stores of keys and of certificates.
fn stores(config: &Config) -> impl Iterator<Item = &Store> {
    let clients = config.tls.iter().flat_map(|tls| [Some(&tls.key_store), tls.trust_store.as_ref()]);
    let peers = config.ensemble.iter().filter_map(|ensemble| ensemble.tls.as_ref());
    let peers = peers.flat_map(|tls| {
        let one_sided = [&tls.one_sided.calling_key_store, &tls.one_sided.callers_trust_store];
        [Some(&tls.key_store), Some(&tls.trust_store)].into_iter().chain(one_sided.map(Option::as_ref))
    });
    clients.chain(peers).flatten()
}

fn has_text(store: &Store) -> bool {
    matches!(store.password, Some(Password::Text(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Environment, load};
    use super::*;

    /// The files with passwords of a configuration, without their directory.
    #[track_caller]
    fn check(name: &str, text: &str, expected: &[(&str, &str)]) {
        let directory = tempfile::tempdir().unwrap();
        let text = text.replace("DIR", directory.path().to_str().unwrap());
        fs::write(directory.path().join("etcd-password"), "secret\n").unwrap();
        let jaas = "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\"b\"; };";
        fs::write(directory.path().join("jaas.conf"), jaas).unwrap();
        let file = directory.path().join(name);
        fs::write(&file, text).unwrap();
        let loaded = load(Some(&file), &Overrides::default(), &Environment::default()).unwrap();
        let found = &loaded.secret_files.files;
        let found: Vec<_> =
            found.iter().map(|(file, what)| (file.file_name().unwrap().to_str().unwrap(), *what)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_with_passwords_are_known() {
        const MAIN: &str = "the secrets in the configuration";
        check("none.toml", "data_dir = \"DIR/data\"\n", &[]);
        check("zoo.cfg", "dataDir=DIR/data\nclientPort=2181\n", &[]);
        check("users.toml", "[sasl.users]\nbob = \"b\"\n", &[("users.toml", MAIN)]);
        let jaas = ("jaas.conf", "the passwords of SASL");
        check("jaas.toml", "[sasl]\njaas_file = \"DIR/jaas.conf\"\n", &[jaas]);
        let etcd = "engine = \"etcd\"\n[etcd]\nendpoints = [\"http://127.0.0.1:2379\"]\nuser = \"root\"\n";
        let password = ("etcd-password", "the password for etcd");
        check("etcd.toml", &format!("{etcd}password_file = \"DIR/etcd-password\"\n"), &[password]);
        check("text.toml", &format!("{etcd}password = \"secret\"\n"), &[("text.toml", MAIN)]);
        let tls = "[tls]\nclient_auth = \"none\"\nkey_store = \"DIR/key.p12\"\nkey_store_password = \"p\"\n";
        check("tls.toml", tls, &[("tls.toml", MAIN)]);
        check("tls-file.toml", &tls.replace("password =", "password_file ="), &[]);
    }
}
