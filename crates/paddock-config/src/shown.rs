//! A configuration as Paddock's own file says it, for `paddock server --check`. Passwords are not shown.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use paddock_server::{
    AdminSettings, CipherSuite, ClientAuth, ClientTls, Config, Ensemble, EnsembleMember, EtcdSettings,
    EtcdTls, KerberosSettings, LateNames, OneSidedStores, Password, PeerTls, PortProtocol, Role, SaslUsers,
    Store, TlsMode, TlsVersions, Tracing,
};
use paddock_settings::{PlainValue, SettingRows};
use toml::Value;

use super::backup::BackupSettings;
use super::origins::Origins;
use super::paddock_toml::own_forms::{self, ShownValue};
use super::rows;

/// The settings as a TOML file. A line that would show a password is a comment.
pub(super) fn shown(config: &Config, backup: Option<&BackupSettings>) -> String {
    let Config { admin, tls, etcd, sasl, kerberos, tracing, ensemble, late_names, .. } = config;
    let mut page = Page::default();
    for key in rows::all().iter().map(|row| row.key) {
        match (config.plain(key), own_forms::find(key)) {
            (Some(PlainValue::Number(number)), _) => page.set(key, number),
            (Some(PlainValue::Flag(flag)), _) => page.set(key, flag),
            (None, Some(form)) => page.set_shown(key, (form.show)(config)),
            (None, None) => unreachable!("{key} is neither number nor flag and has no form of its own"),
        }
    }
    page.add((*admin != AdminSettings::default()).then_some(admin), add_admin);
    page.add(backup, add_backup);
    page.add(tls.as_ref(), |page, tls| add_client_tls(page, tls, late_names));
    page.add(etcd.as_ref(), add_etcd);
    page.add(sasl.as_ref(), add_sasl);
    page.add(kerberos.as_ref(), add_kerberos);
    page.add(tracing.as_ref(), add_tracing);
    page.add(ensemble.as_ref(), add_ensemble);
    page.0
}

/// The settings, with the place behind each value that does not have its default.
pub fn shown_with_origins(config: &Config, backup: Option<&BackupSettings>, origins: &Origins) -> String {
    origins.annotate(&shown(config, backup))
}

fn add_backup(page: &mut Page, settings: &BackupSettings) {
    let BackupSettings { to, full_interval, log_interval, keep } = settings;
    page.begin("[backup]");
    page.set("to", to.as_str());
    page.set("full_interval_ms", milliseconds(*full_interval));
    page.set("log_interval_ms", milliseconds(*log_interval));
    page.set("keep", number(keep.get()));
}

fn milliseconds(time: Duration) -> i64 {
    number(time.as_millis())
}

fn add_admin(page: &mut Page, admin: &AdminSettings) {
    let AdminSettings {
        command_url,
        ready_path,
        metrics_path,
        has_keeper_names,
        idle_timeout_ms,
        has_snapshots,
        rate_limit_ms,
        hosts,
        tls,
    } = admin;
    page.begin("[admin]");
    page.set("command_url", command_url.as_str());
    page.set("ready_path", ready_path.as_str());
    page.set("metrics_path", metrics_path.as_str());
    page.set("metrics_names", if *has_keeper_names { "clickhouse" } else { "zookeeper" });
    page.set("idle_timeout_ms", number(*idle_timeout_ms));
    page.set("snapshots", *has_snapshots);
    page.set("rate_limit_ms", number(*rate_limit_ms));
    page.set("hosts", hosts.clone());
    let protocol = match tls.protocol {
        PortProtocol::Plaintext => "off",
        PortProtocol::Either => "optional",
        PortProtocol::Tls => "required",
    };
    page.set("tls", protocol);
    page.set("needs_certificate", tls.needs_certificate);
}

fn add_etcd(page: &mut Page, etcd: &EtcdSettings) {
    let EtcdSettings {
        endpoints,
        prefix,
        tls,
        user,
        txn_operations_max,
        request_bytes_max,
        write_timeout_ms,
        stale_reads,
        separate_writes,
    } = etcd;
    page.begin("[etcd]");
    page.set("endpoints", endpoints.iter().map(|endpoint| endpoint.url()).collect::<Vec<_>>());
    page.set("prefix", prefix.as_str());
    if let Some(EtcdTls { authorities, identity }) = tls {
        page.set("ca", path(&authorities.path));
        if let Some(identity) = identity {
            page.set("key", path(&identity.key.path));
            page.set_some("cert", identity.certificates.as_deref().map(path));
            if let Some(Password::File(file)) = &identity.key.password {
                page.set("key_password_file", path(file));
            }
        }
    }
    if let Some(user) = user {
        // Without its password the file could not be read again.
        page.hide(&format!("user {} and its password", user.name), true);
    }
    page.set("txn_operations_max", number(*txn_operations_max));
    page.set("request_bytes_max", number(*request_bytes_max));
    page.set("write_timeout_ms", number(*write_timeout_ms));
    page.set("stale_reads", *stale_reads);
    page.set("separate_writes", *separate_writes);
}

fn add_sasl(page: &mut Page, sasl: &SaslUsers) {
    page.begin("[sasl]");
    page.set("super_users", sasl.super_users.clone());
    page.set("keep_failed_clients", sasl.keeps_failed_clients);
    for user in sasl.passwords.keys() {
        page.hide(&format!("users.{}", Value::from(user.as_str())), true);
    }
}

fn add_kerberos(page: &mut Page, KerberosSettings { principal, keytab, names }: &KerberosSettings) {
    page.begin("[sasl.kerberos]");
    page.set("principal", principal.as_str());
    page.set_some("keytab", keytab.as_deref().map(path));
    page.set("remove_host", names.removes_host());
    page.set("remove_realm", names.removes_realm());
    page.set("auth_to_local", names.rules());
}

fn add_tracing(page: &mut Page, Tracing { endpoint, service_name }: &Tracing) {
    page.begin("[tracing]");
    // The place for traces below it is added when the file is read.
    page.set("endpoint", endpoint.url().trim_end_matches("/v1/traces"));
    page.set("service_name", service_name.as_str());
}

fn add_ensemble(page: &mut Page, ensemble: &Ensemble) {
    let Ensemble {
        members,
        listen_on_all_addresses,
        reconfig_enabled,
        linearizable_reads,
        lease_clock_bound_ms,
        tls,
    } = ensemble;
    page.begin("[ensemble]");
    page.set("listen_on_all_addresses", *listen_on_all_addresses);
    page.set("reconfig_enabled", *reconfig_enabled);
    page.set("linearizable_reads", *linearizable_reads);
    page.set_some("lease_clock_bound_ms", lease_clock_bound_ms.map(number));
    page.add(tls.as_ref(), add_tls);
    for EnsembleMember { id, host, quorum_port, election_port, role, client } in members {
        page.begin("[[ensemble.member]]");
        page.set("id", i64::from(*id));
        page.set("host", host.as_str());
        page.set("quorum_port", i64::from(*quorum_port));
        page.set("election_port", i64::from(*election_port));
        page.set("role", if *role == Role::Observer { "observer" } else { "participant" });
        if let Some(client) = client {
            page.set_some("client_address", client.address.clone());
            page.set("client_port", i64::from(client.port));
        }
    }
}

fn add_client_tls(page: &mut Page, tls: &ClientTls, late_names: &LateNames) {
    let ClientTls {
        listen,
        at_listen,
        key_store,
        certificates,
        trust_store,
        client_auth,
        verify_addresses,
        revocations,
        versions,
        cipher_suites,
        detection_timeout_ms,
        superuser,
    } = tls;
    page.begin("[tls]");
    page.set_some("listen", listen.map(|listen| late_names.shown(listen)));
    let mode = match at_listen {
        PortProtocol::Plaintext => "separate",
        PortProtocol::Either => "unified",
        PortProtocol::Tls => "required",
    };
    page.set("mode", mode);
    page.set_store("key_store", key_store);
    page.set_some("certificates", certificates.as_deref().map(path));
    page.add(trust_store.as_ref(), |page, store| page.set_store("trust_store", store));
    let client_auth = match client_auth {
        ClientAuth::None => "none",
        ClientAuth::Want => "want",
        ClientAuth::Need => "need",
    };
    page.set("client_auth", client_auth);
    page.set("verify_addresses", *verify_addresses);
    page.set_some("revocations", revocations.as_deref().map(path));
    page.set("versions", version_names(*versions));
    page.set_some("cipher_suites", cipher_suites.as_deref().map(suite_names));
    page.set("detection_timeout_ms", number(*detection_timeout_ms));
    page.set_some("superuser", superuser.clone());
}

fn add_tls(page: &mut Page, tls: &PeerTls) {
    let PeerTls {
        mode,
        key_store,
        certificates,
        trust_store,
        one_sided: OneSidedStores { calling_key_store, calling_certificates, callers_trust_store },
        verify_called,
        verify_callers,
        versions,
        cipher_suites,
    } = tls;
    page.begin("[ensemble.tls]");
    let mode = match mode {
        TlsMode::Accepted => "accepted",
        TlsMode::Preferred => "preferred",
        TlsMode::Required => "required",
    };
    page.set("mode", mode);
    page.set_store("key_store", key_store);
    page.set_some("certificates", certificates.as_deref().map(path));
    page.set_store("trust_store", trust_store);
    page.add(calling_key_store.as_ref(), |page, store| page.set_store("calling_key_store", store));
    page.set_some("calling_certificates", calling_certificates.as_deref().map(path));
    page.add(callers_trust_store.as_ref(), |page, store| page.set_store("callers_trust_store", store));
    page.set("verify_called", *verify_called);
    page.set("verify_callers", *verify_callers);
    page.set("versions", version_names(*versions));
    page.set_some("cipher_suites", cipher_suites.as_deref().map(suite_names));
}

fn version_names(versions: TlsVersions) -> Vec<&'static str> {
    match versions {
        TlsVersions::Both => vec!["1.2", "1.3"],
        TlsVersions::Only12 => vec!["1.2"],
        TlsVersions::Only13 => vec!["1.3"],
    }
}

fn suite_names(suites: &[CipherSuite]) -> Vec<&'static str> {
    suites.iter().map(|suite| suite.name()).collect()
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A number of a file is at most what 64 bits with a sign hold.
fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn begin(&mut self, table: &str) {
        self.line(format_args!("\n{table}"));
    }

    fn add<T>(&mut self, part: Option<&T>, add: impl FnOnce(&mut Page, &T)) {
        if let Some(part) = part {
            add(self, part);
        }
    }

    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.line(format_args!("{key} = {}", value.into()));
    }

    fn set_some<T: Into<Value>>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    fn set_shown(&mut self, key: &str, value: ShownValue) {
        match value {
            ShownValue::Value(value) => self.set(key, value),
            ShownValue::Hidden => self.hide(key, true),
            ShownValue::Unset => {}
        }
    }

    fn set_store(&mut self, name: &str, store: &Store) {
        self.set(name, path(&store.path));
        match &store.password {
            Some(Password::File(file)) => self.set(&format!("{name}_password_file"), path(file)),
            Some(Password::Text(_)) => self.hide(&format!("{name}_password"), true),
            None => {}
        }
    }

    fn hide(&mut self, key: &str, is_set: bool) {
        if is_set {
            self.line(format_args!("# {key} is set, and not shown"));
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Remark;
    use crate::case::Case;

    /// The file that is shown says the same.
    fn check(name: &str, text: &str) {
        let case = Case::with_myid("2");
        let loaded = case.load_as(name, text).unwrap();
        let page = shown(&loaded.config, None);
        let again = case.load_as("shown.toml", &page).unwrap();
        assert_eq!(again.config, loaded.config, "{page}");
        let is_unknown = |remark: &Remark| remark.to_string().contains("not a setting");
        assert!(!again.remarks.iter().any(is_unknown), "{:?}", again.remarks);
    }

    #[test]
    fn the_file_that_is_shown_says_the_same() {
        check("paddock.toml", "member = 2");
        check(
            "paddock.toml",
            "engine = 'etcd'\n[etcd]\nendpoints = ['http://one:2379', 'two']\nprefix = '/zk'\nstale_reads = true\nseparate_writes = true\n",
        );
        check(
            "paddock.toml",
            "member = 2\nmetrics_listen = '127.0.0.1:7000'\nadmin_listen = '127.0.0.1:8080'\nlog_dir = 'a b'\ndigest_algorithm = 'SHA-512'\ndialect = 'clickhouse'\navailability_zone = \"x\\\"y\"\nwords = ['*']\n\
             required_schemes = ['digest']\nlog_compression = true\n[admin]\ncommand_url = '/zk'\nidle_timeout_ms = 5\n[tracing]\nendpoint = 'http://127.0.0.1:4318'\n",
        );
        check(
            "zoo.cfg",
            "clientPort=2181\nsecureClientPort=2281\nssl.keyStore.location=/k.p12\nssl.trustStore.location=/t.p12\n\
             ssl.clientAuth=want\nX509AuthenticationProvider.superUser=CN=root\n",
        );
        check(
            "zoo.cfg",
            "clientPort=2181\nmaxCnxns=7\nsnapSizeLimitInKb=1024\nreconfigEnabled=true\nserver.1=one:2888:3888\n\
             server.2=two:2888:3888;127.0.0.1:2181\nserver.3=three:2888:3888:observer\nsslQuorum=true\n\
             ssl.quorum.keyStore.location=/k.p12\nssl.quorum.trustStore.location=/t.p12\n\
             ssl.quorum.client.keyStore.location=/c.p12\nssl.quorum.server.trustStore.location=/s.p12\n\
             ssl.quorum.trustStore.passwordPath=/p\nssl.quorum.protocol=TLSv1.2\n\
             ssl.quorum.ciphersuites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n",
        );
    }

    #[test]
    fn nothing_secret_is_shown() {
        let text = "super_digest = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU='\n[sasl]\nusers = { bob = 'hush' }\n";
        let page = shown(&Case::new().load_as("paddock.toml", text).unwrap().config, None);
        assert!(!page.contains("D/InIH") && !page.contains("hush"), "{page}");
        assert!(page.contains("# super_digest is set, and not shown\n"), "{page}");
        assert!(page.contains("# users.\"bob\" is set, and not shown\n"), "{page}");
    }
}
