//! Ensembles that form, grow and are started again in network namespaces: on IPv4 and on IPv6, from every kind of settings, where names come
//! late, where a member only knows "all addresses" of itself, and where addresses change.

mod ensemble;
mod settings;

use ensemble::{NamedEnsemble, OwnHost};
use paddock_tests::named_network::Family;
use settings::Source;

/// Without root there are no namespaces.
fn ensemble(family: Family, source: Source, own_host: OwnHost) -> Option<NamedEnsemble> {
    let made = NamedEnsemble::new(family, source, own_host);
    made.inspect_err(|reason| println!("skipped: {source:?} on {family:?}: {reason}")).ok()
}

/// The name of a member is not known, not even to itself, when it starts.
#[track_caller]
fn check_late_names(family: Family, source: Source) {
    let Some(mut ensemble) = ensemble(family, source, OwnHost::Named) else { return };
    ensemble.network.forget(3);
    (1..=3).for_each(|id| ensemble.start(id));
    ensemble.wait_for_missing_name(3);
    ensemble.network.know(3);
    ensemble.check_serves(3, "formed");

    ensemble.network.forget(4);
    ensemble.grow();
    ensemble.wait_for_missing_name(4);
    ensemble.network.know(4);
    ensemble.check_serves(4, "grown");

    ensemble.stop(3);
    ensemble.network.forget(3);
    ensemble.start(3);
    ensemble.wait_for_missing_name(3);
    ensemble.network.know(3);
    ensemble.check_serves(4, "started again");
}

/// A member has no name for itself in its settings.
#[track_caller]
fn check_wildcard(family: Family, source: Source) {
    let Some(mut ensemble) = ensemble(family, source, OwnHost::Unspecified) else { return };
    (1..=3).for_each(|id| ensemble.start(id));
    ensemble.check_serves(3, "formed");
    ensemble.grow();
    ensemble.check_serves(4, "grown");
    (1..=4).for_each(|id| ensemble.stop(id));
    (1..=4).for_each(|id| ensemble.start(id));
    ensemble.check_serves(4, "started again");
}

/// A container comes back with its name, and another address.
#[track_caller]
fn check_changed_addresses(family: Family, source: Source) {
    let Some(mut ensemble) = ensemble(family, source, OwnHost::Named) else { return };
    (1..=3).for_each(|id| ensemble.start(id));
    ensemble.check_serves(3, "formed");
    ensemble.stop(3);
    ensemble.network.move_member(3);
    // The others go on with the former address for a while.
    ensemble.start(3);
    ensemble.network.know(3);
    ensemble.check_serves(3, "one has moved");
    ensemble.grow();
    ensemble.check_serves(4, "grown");

    for id in [1, 2, 4] {
        ensemble.stop(id);
        ensemble.network.move_member(id);
        ensemble.network.know(id);
        ensemble.start(id);
        ensemble.check_serves(4, &format!("member {id} has moved"));
    }
    (1..=4).for_each(|id| ensemble.stop(id));
    (1..=4).for_each(|id| ensemble.start(id));
    ensemble.check_serves(4, "started again");
}

/// Others find a wrong address for member 1, which finds them.
#[track_caller]
fn check_one_direction(family: Family, source: Source) {
    let Some(mut ensemble) = ensemble(family, source, OwnHost::Named) else { return };
    ensemble.network.mislead(&[2, 3]);
    (1..=3).for_each(|id| ensemble.start(id));
    ensemble.check_serves(3, "formed");
    // The two have no quorum unless they are linked.
    ensemble.stop(3);
    ensemble.check_serves(2, "without member 3");
    ensemble.stop(1);
    ensemble.start(1);
    ensemble.check_serves(2, "member 1 was started again");
    ensemble.start(3);
    ensemble.check_serves(3, "all are there");
}

macro_rules! tests {
    ($($name:ident: $check:ident($family:ident, $source:ident);)*) => {
        $(#[test]
        fn $name() {
            $check(Family::$family, Source::$source);
        })*
    };
}

tests! {
    names_are_late_in_zoo_cfg_on_ipv4: check_late_names(V4, ZooCfg);
    names_are_late_in_zoo_cfg_on_ipv6: check_late_names(V6, ZooCfg);
    names_are_late_in_toml_on_ipv4: check_late_names(V4, Toml);
    names_are_late_in_toml_on_ipv6: check_late_names(V6, Toml);
    names_are_late_in_xml_on_ipv4: check_late_names(V4, Xml);
    names_are_late_in_xml_on_ipv6: check_late_names(V6, Xml);
    names_are_late_in_the_environment_on_ipv4: check_late_names(V4, Environment);
    names_are_late_in_the_environment_on_ipv6: check_late_names(V6, Environment);
    all_addresses_in_zoo_cfg_on_ipv4: check_wildcard(V4, ZooCfg);
    all_addresses_in_zoo_cfg_on_ipv6: check_wildcard(V6, ZooCfg);
    all_addresses_in_toml_on_ipv4: check_wildcard(V4, Toml);
    all_addresses_in_toml_on_ipv6: check_wildcard(V6, Toml);
    all_addresses_in_xml_on_ipv4: check_wildcard(V4, Xml);
    all_addresses_in_xml_on_ipv6: check_wildcard(V6, Xml);
    all_addresses_in_the_environment_on_ipv4: check_wildcard(V4, Environment);
    all_addresses_in_the_environment_on_ipv6: check_wildcard(V6, Environment);
    addresses_change_in_zoo_cfg_on_ipv4: check_changed_addresses(V4, ZooCfg);
    addresses_change_in_zoo_cfg_on_ipv6: check_changed_addresses(V6, ZooCfg);
    addresses_change_in_toml_on_ipv4: check_changed_addresses(V4, Toml);
    addresses_change_in_toml_on_ipv6: check_changed_addresses(V6, Toml);
    addresses_change_in_xml_on_ipv4: check_changed_addresses(V4, Xml);
    addresses_change_in_xml_on_ipv6: check_changed_addresses(V6, Xml);
    addresses_change_in_the_environment_on_ipv4: check_changed_addresses(V4, Environment);
    addresses_change_in_the_environment_on_ipv6: check_changed_addresses(V6, Environment);
    one_direction_is_enough_on_ipv4: check_one_direction(V4, ZooCfg);
    one_direction_is_enough_on_ipv6: check_one_direction(V6, Xml);
}
