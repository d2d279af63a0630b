//! Differences between two configurations: settings that change while a member runs, and settings that need a restart. Rows say that of most
//! settings; the ports of names, HTTP, TLS and the members of the ensemble are compared by hand.

use std::net::SocketAddr;

use paddock_proto::MemberNumber;
use paddock_settings::{ConfigChanges, SettingRows};

use super::{AdminSettings, ClientTls, Config, Ensemble, LateNames};

impl Config {
    /// Takes over those settings of `wanted` that can change while the member runs.
    pub(crate) fn take_changes(&mut self, wanted: &Config) -> ConfigChanges {
        let mut changes = ConfigChanges::default();
        let wanted = &self.with_ports_of_names(wanted);
        SettingRows::take_over(self, wanted, &mut changes);
        take_admin(&mut changes, &mut self.admin, &wanted.admin);
        take_tls(&mut changes, &mut self.tls, wanted.tls.as_ref());
        take_ensemble(&mut changes, self.member, &mut self.ensemble, wanted.ensemble.as_ref());
        changes
    }

    /// These settings, with the addresses of now for ports at a name that could be looked up at one of the two times only.
    fn with_ports_of_names(&self, wanted: &Config) -> Config {
        let is_late = |names: &LateNames, address: SocketAddr| names.name_of(address.ip()).is_some();
        let same = |now: SocketAddr, wanted_address: SocketAddr| {
            let is_name = is_late(&self.late_names, now) || is_late(&wanted.late_names, wanted_address);
            if is_name && now.port() == wanted_address.port() { now } else { wanted_address }
        };
        let same_of_some = |now: Option<SocketAddr>, wanted: Option<SocketAddr>| match (now, wanted) {
            (Some(now), Some(wanted)) => Some(same(now, wanted)),
            _ => wanted,
        };
        let mut meant = wanted.clone();
        meant.listen = same(self.listen, wanted.listen);
        meant.metrics_listen = same_of_some(self.metrics_listen, wanted.metrics_listen);
        meant.admin_listen = same_of_some(self.admin_listen, wanted.admin_listen);
        if let (Some(now), Some(tls)) = (&self.tls, &mut meant.tls) {
            tls.listen = same_of_some(now.listen, tls.listen);
        }
        meant
    }
}

/// The protocol of its port stays.
fn take_admin(changes: &mut ConfigChanges, now: &mut AdminSettings, wanted: &AdminSettings) {
    let rest = AdminSettings { tls: now.tls, ..wanted.clone() };
    if *now != rest {
        *now = rest;
        changes.taken.push("admin");
    }
    if now.tls != wanted.tls {
        changes.need_restart.push("admin.tls");
    }
}

/// Ports stay, and a member without TLS has no port for it.
fn take_tls(changes: &mut ConfigChanges, now: &mut Option<ClientTls>, wanted: Option<&ClientTls>) {
    let (now, wanted) = match (now, wanted) {
        (None, None) => return,
        (Some(now), Some(wanted)) => (now, wanted),
        (None, Some(_)) | (Some(_), None) => return changes.need_restart.push("tls"),
    };
    let rest = ClientTls { listen: now.listen, at_listen: now.at_listen, ..wanted.clone() };
    if *now != rest {
        *now = rest;
        changes.taken.push("tls");
    }
    if now.listen != wanted.listen {
        changes.need_restart.push("tls.listen");
    }
    if now.at_listen != wanted.at_listen {
        changes.need_restart.push("tls.mode");
    }
}

/// The list of members counts at once, but for the line of the member itself, which has its own ports open.
fn take_ensemble(
    changes: &mut ConfigChanges,
    own: MemberNumber,
    now: &mut Option<Ensemble>,
    wanted: Option<&Ensemble>,
) {
    let (now, wanted) = match (now, wanted) {
        (None, None) => return,
        (Some(now), Some(wanted)) => (now, wanted),
        (None, Some(_)) | (Some(_), None) => return changes.need_restart.push("ensemble"),
    };
    let own_line = |ensemble: &Ensemble| ensemble.members.iter().find(|member| member.id == own).cloned();
    if own_line(now) != own_line(wanted) {
        changes.need_restart.push("ensemble.member");
    } else if now.members != wanted.members {
        now.members.clone_from(&wanted.members);
        changes.taken.push("ensemble.member");
    }
    if *now != (Ensemble { members: now.members.clone(), ..wanted.clone() }) {
        changes.need_restart.push("ensemble");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ConnectRate, EnsembleMember, PortProtocol, Role, Store, TlsVersions, WordList};
    use super::*;
    use crate::config::ClientAuth;

    fn tls(key: &str, listen: u16) -> ClientTls {
        ClientTls {
            listen: Some(([127, 0, 0, 1], listen).into()),
            at_listen: PortProtocol::Plaintext,
            key_store: Store { path: key.into(), password: None },
            certificates: None,
            trust_store: None,
            client_auth: ClientAuth::None,
            verify_addresses: false,
            revocations: None,
            versions: TlsVersions::Both,
            cipher_suites: None,
            detection_timeout_ms: ClientTls::DETECTION_TIMEOUT_MS,
            superuser: None,
        }
    }

    /// Names of all settings that differ between `Config::new` and `change` of it, taken and not.
    fn changes(change: impl FnOnce(&mut Config)) -> (Config, ConfigChanges) {
        let mut now = Config::new("data");
        let mut wanted = now.clone();
        change(&mut wanted);
        let changes = now.take_changes(&wanted);
        (now, changes)
    }

    #[test]
    fn the_list_of_members_is_taken_but_not_the_own_line() {
        let member = |id: MemberNumber, host: &str| EnsembleMember {
            id,
            host: host.to_owned(),
            quorum_port: 2888,
            election_port: 3888,
            role: Role::Participant,
            client: None,
        };
        let ensemble = |members: Vec<EnsembleMember>| Some(Ensemble { members, ..Ensemble::default() });
        let check = |wanted: Option<Ensemble>, taken: &[&str], need_restart: &[&str]| {
            let mut now =
                Config { member: 1, ensemble: ensemble(vec![member(1, "a")]), ..Config::new("data") };
            let changes = now.take_changes(&Config { ensemble: wanted.clone(), ..now.clone() });
            assert_eq!((changes.taken.as_slice(), changes.need_restart.as_slice()), (taken, need_restart));
            assert_eq!(now.ensemble == wanted, need_restart.is_empty());
        };
        let two = ensemble(vec![member(1, "a"), member(2, "b")]);
        check(two.clone(), &["ensemble.member"], &[]);
        check(ensemble(vec![member(1, "other"), member(2, "b")]), &[], &["ensemble.member"]);
        let leases = |ensemble| Ensemble { lease_clock_bound_ms: Some(1), ..ensemble };
        check(two.map(leases), &["ensemble.member"], &["ensemble"]);
        check(None, &[], &["ensemble"]);
    }

    #[test]
    fn limits_are_taken_and_the_rest_needs_a_restart() {
        let (now, changes) = changes(|wanted| {
            wanted.connections_max = 7;
            wanted.client_limits.watches_max = 8;
            wanted.client_limits.connect_rate = ConnectRate { tokens_max: 9, ..ConnectRate::default() };
            wanted.words = WordList::All;
            wanted.data_dir = "elsewhere".into();
            wanted.member_settings.snapshot_writes = 5;
        });
        assert_eq!(changes.taken, ["connections_max", "words", "connect_tokens_max", "watches_max"]);
        assert_eq!(changes.need_restart, ["data_dir", "snapshot_writes"]);
        assert_eq!((now.connections_max, now.client_limits.watches_max), (7, 8));
        assert_eq!(now.data_dir, std::path::Path::new("data"), "what needs a restart is not taken");
    }

    #[test]
    fn keys_of_tls_are_taken_and_ports_stay() {
        let mut now = Config { tls: Some(tls("old", 1)), ..Config::new("data") };
        let wanted = Config { tls: Some(tls("new", 2)), ..now.clone() };
        let changes = now.take_changes(&wanted);
        assert_eq!((changes.taken, changes.need_restart), (vec!["tls"], vec!["tls.listen"]));
        assert_eq!(now.tls, Some(tls("new", 1)));
        let changes = now.take_changes(&Config { tls: None, ..now.clone() });
        assert_eq!((changes.taken, changes.need_restart), (vec![], vec!["tls"]));
    }

    #[test]
    fn recovery_is_said_once_and_is_no_difference() {
        let (_, changes) = changes(|wanted| wanted.recover = true);
        assert_eq!(changes, ConfigChanges::default());
    }

    #[test]
    fn a_name_that_can_be_looked_up_now_is_no_change() {
        let late = |port: u16| {
            let mut config = Config::new("data");
            config.listen = SocketAddr::new(config.late_names.stand_in("zoo1"), port);
            config.admin_listen = Some(config.listen);
            config
        };
        let known = |port: u16| {
            let listen = SocketAddr::from(([10, 0, 0, 1], port));
            Config { listen, admin_listen: Some(listen), ..Config::new("data") }
        };
        for (mut now, wanted) in [(late(7), known(7)), (known(7), late(7)), (late(7), late(7))] {
            assert_eq!(now.take_changes(&wanted), ConfigChanges::default());
        }
        for (mut now, wanted) in [(late(7), known(8)), (known(7), late(8)), (late(7), late(8))] {
            assert_eq!(now.take_changes(&wanted).need_restart, ["listen", "admin_listen"]);
        }
    }
}
