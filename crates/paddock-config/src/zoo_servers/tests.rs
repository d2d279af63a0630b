use paddock_proto::MemberNumber;
use paddock_server::{ClientAddress, Config, EnsembleMember};

use super::super::Environment;
use super::super::case::{Case, environment};
use super::*;

const BASE: &str = "dataDir=data\nclientPort=2181\nclientPortAddress=127.0.0.1\n";
/// The lines 4 to 6 behind `BASE`.
const THREE: &str = "server.1=zoo1:2888:3888\nserver.2=zoo2:2888:3888\nserver.3=zoo3:2888:3888\n";

fn member(id: MemberNumber, host: &str) -> EnsembleMember {
    EnsembleMember {
        id,
        host: host.into(),
        quorum_port: 2888,
        election_port: 3888,
        role: Role::Participant,
        client: None,
    }
}

fn three() -> Ensemble {
    Ensemble { members: vec![member(1, "zoo1"), member(2, "zoo2"), member(3, "zoo3")], ..Ensemble::default() }
}

fn load(lines: &str) -> (Config, Vec<String>) {
    let case = Case::with_myid("2");
    let loaded = case.load(format!("{BASE}{lines}")).unwrap();
    case.warned(loaded)
}

/// Checks the ensemble that member 2 makes of `lines`, which follow the three of `BASE`; there must be no warning.
#[track_caller]
fn check(lines: &str, expected: Ensemble) {
    let (config, warnings) = load(lines);
    assert_eq!(config.ensemble, Some(expected), "{lines}");
    assert!(warnings.is_empty(), "{lines}: {warnings:?}");
}

#[track_caller]
fn check_warned(lines: &str, expected: &[&str]) {
    assert_eq!(load(lines).1, expected, "{lines}");
}

#[track_caller]
fn check_refused(lines: &str, expected: &str) {
    assert_eq!(Case::with_myid("2").load(format!("{BASE}{lines}")).unwrap_err(), expected, "{lines}");
}

#[test]
fn server_lines_name_the_members() {
    let (config, _) = load(THREE);
    assert_eq!(config.member, 2);
    assert_eq!(config.listen, "127.0.0.1:2181".parse().unwrap());
    check(THREE, three());
    let backwards: Vec<&str> = THREE.lines().rev().collect();
    check(&backwards.join("\n"), three());
}

#[test]
fn an_observer_is_a_member_too() {
    let observer = EnsembleMember { role: Role::Observer, ..member(9, "zoo9") };
    let mut expected = three();
    expected.members.push(observer);
    check(&format!("{THREE}server.9=zoo9:2888:3888:observer"), expected);
}

#[test]
fn keys_of_the_ensemble() {
    check(&format!("{THREE}reconfigEnabled=TRUE"), Ensemble { reconfig_enabled: true, ..three() });
    check(
        &format!("{THREE}quorumListenOnAllIPs=true"),
        Ensemble { listen_on_all_addresses: true, ..three() },
    );
    check(&format!("{THREE}standaloneEnabled=false\ninitLimit=10\nsyncLimit=5\nelectionAlg=3"), three());
    for key in ["reconfigEnabled", "quorumListenOnAllIPs", "standaloneEnabled"] {
        let expected = format!("zoo.cfg:7: {key}: expected true or false, found \"1\"");
        check_refused(&format!("{THREE}{key}=1"), &expected);
    }
}

#[test]
fn a_member_listens_where_its_own_line_says() {
    let listen = |base: &str, own: &str, other: &str| {
        let lines = format!(
            "{base}server.1=zoo1:1:2;{other}\nserver.2=zoo2:1:2;{own}\nserver.3=zoo3:1:2\ndataDir=d\n"
        );
        Case::with_myid("2").load(lines).map(|loaded| loaded.config.listen.to_string())
    };
    // The names of other members are not resolved.
    assert_eq!(listen("", "127.0.0.1:2182", "no-such-host:2181").unwrap(), "127.0.0.1:2182");
    assert_eq!(listen("", "[::1]:2182", "2181").unwrap(), "[::1]:2182");
    let all = listen("", "2182", "2181").unwrap();
    assert!(["[::]:2182", "0.0.0.0:2182"].contains(&all.as_str()), "{all}");
    assert_eq!(listen("clientPort=2182\n", "127.0.0.1:2182", "2181").unwrap(), "127.0.0.1:2182");
    let unresolved = listen("", "no such host:2182", "2181").unwrap_err();
    assert!(unresolved.starts_with("zoo.cfg:2: server.2: "), "{unresolved}");
}

#[test]
fn a_client_address_is_kept_as_it_was_written() {
    let lines = THREE.replace("zoo1:2888:3888", "zoo1:2888:3888;[::]:2181");
    let mut expected = three();
    expected.members[0].client = Some(ClientAddress { address: Some("::".into()), port: 2181 });
    check(&lines, expected);
}

#[test]
fn two_addresses_for_clients_must_agree() {
    let own = |client: &str| THREE.replace("zoo2:2888:3888", &format!("zoo2:2888:3888;{client}"));
    load(&own("127.0.0.1:2181"));
    for (client, shown) in [("127.0.0.1:2182", "127.0.0.1:2182"), ("127.0.0.2:2181", "127.0.0.2:2181")] {
        let expected = format!(
            "zoo.cfg:5: server.2: clients connect to {shown} here, but to 127.0.0.1:2181 by clientPort; say it once"
        );
        check_refused(&own(client), &expected);
    }
    let mut case = Case::with_myid("2");
    case.overrides.listen = Some("127.0.0.1:0".parse().unwrap());
    let loaded = case.load(format!("{BASE}{}", own("127.0.0.1:2182"))).unwrap();
    assert_eq!(Some(loaded.config.listen), case.overrides.listen);
}

#[test]
fn clients_need_a_port() {
    let line = Case::with_myid("2").load(THREE).unwrap_err();
    assert_eq!(
        line,
        "zoo.cfg:2: server.2: clients have no port; add one behind a semicolon, or set clientPort"
    );
}

#[test]
fn a_member_must_know_which_one_it_is() {
    let load = |case: &Case| {
        let data_dir = case.path().join("data");
        let text = format!("clientPort=2181\ndataDir={}\n{THREE}", data_dir.display());
        case.load(text).map(|loaded| loaded.config.member)
    };
    let mut case = Case::new();
    assert_eq!(
        load(&case).unwrap_err(),
        "data/myid: missing; write into it which of the members 1, 2 and 3 this is, or set ZOO_MY_ID"
    );
    case.environment = environment(&[("ZOO_MY_ID", "3")]);
    assert_eq!(load(&case), Ok(3));
    case.environment = environment(&[("ZOO_MY_ID", "4")]);
    assert_eq!(
        load(&case).unwrap_err(),
        "ZOO_MY_ID: this is member 4, but the members are 1, 2 and 3; \
         correct this number, or name member 4 among them"
    );
    std::fs::create_dir(case.path().join("data")).unwrap();
    case.write("data/myid", "7\n");
    case.environment = Environment::default();
    assert_eq!(
        load(&case).unwrap_err(),
        "data/myid:1: this is member 7, but the members are 1, 2 and 3; \
         correct this number, or name member 7 among them"
    );
}

#[test]
fn one_line_is_an_ensemble_only_if_it_is_not_to_stand_alone() {
    let line = "server.2=zoo2:2888:3888\n";
    assert_eq!(load(line).0.ensemble, None);
    let one = Ensemble { members: vec![member(2, "zoo2")], ..three() };
    check(&format!("{line}standaloneEnabled=false"), one);
    assert_eq!(load("standaloneEnabled=false").0.ensemble, None);
    check_refused(
        "server.3=zoo3:2888:3888\nstandaloneEnabled=false",
        "myid:1: this is member 2, but the members are 3; correct this number, or name member 2 among them",
    );
}

#[test]
fn observers_need_participants() {
    check_refused(
        "server.2=zoo2:2888:3888:observer",
        "zoo.cfg:4: server.2: there is no participant; observers alone have no votes",
    );
    let lines = "server.1=zoo1:2888:3888\nserver.2=zoo2:2888:3888:observer\n";
    check_refused(
        lines,
        "zoo.cfg:5: server.2: one participant is a member alone and has no observers; \
         set standaloneEnabled=false",
    );
    let mut expected = Ensemble { members: vec![member(1, "zoo1"), member(2, "zoo2")], ..three() };
    expected.members[1].role = Role::Observer;
    check(&format!("{lines}standaloneEnabled=false"), expected);
}

#[test]
fn an_even_number_of_participants_is_remarked() {
    check_warned(
        "server.1=zoo1:2888:3888\nserver.2=zoo2:2888:3888",
        &["zoo.cfg: two participants serve only while both are up; a third lets one of them fail"],
    );
    check_warned(
        &format!("{THREE}server.4=zoo4:2888:3888"),
        &["zoo.cfg: 4 participants bear no more failures than 3; have an odd number"],
    );
}

#[test]
fn a_number_is_given_once() {
    check_refused(
        &format!("{THREE}server.02=zoo4:2888:3888"),
        "zoo.cfg:7: server.02: member 2 is server.2 at zoo.cfg:5 already; give each its own number",
    );
    check_warned(
        &format!("server.3=other:2888:3888\n{THREE}"),
        &["zoo.cfg:7: server.3: it was given at zoo.cfg:4 too; the last one counts, as in ZooKeeper"],
    );
    for number in ["2147483648", "-1", "x", ""] {
        let expected = format!(
            "zoo.cfg:4: server.{number}: expected a number from 0 to 2147483647, found {number:?} after server."
        );
        check_refused(&format!("server.{number}=zoo1:2888:3888"), &expected);
    }
}

#[test]
fn an_address_is_given_once() {
    for (fourth, expected) in [
        ("zoo1:2888:3889", "its quorum address zoo1:2888 is the quorum address zoo1:2888 of member 1"),
        ("ZOO1:2889:3888", "its election address ZOO1:3888 is the election address zoo1:3888 of member 1"),
        ("zoo1:2889:2888", "its election address zoo1:2888 is the quorum address zoo1:2888 of member 1"),
        ("[::1]:2888:2888", "its election address [::1]:2888 is the quorum address [::1]:2888 of member 4"),
        (
            "zoo4:2888:3888;zoo1:2888",
            "its client address zoo1:2888 is the quorum address zoo1:2888 of member 1",
        ),
    ] {
        check_refused(&format!("{THREE}server.4={fourth}"), &format!("zoo.cfg:7: server.4: {expected}"));
    }
    // ZooKeeper writes all addresses into every line, and each machine has a loopback address.
    for address in ["0.0.0.0", "127.0.0.1", "localhost", "[::]"] {
        load(
            &THREE
                .replace("3888", &format!("3888;{address}:2181"))
                .replace(&format!("zoo2:2888:3888;{address}:2181"), "zoo2:2888:3888"),
        );
    }
}

#[test]
fn another_member_is_not_at_all_addresses() {
    check(&THREE.replace("zoo2", "0.0.0.0"), {
        let mut expected = three();
        expected.members[1].host = "0.0.0.0".into();
        expected
    });
    check_warned(
        &THREE.replace("zoo3", "0.0.0.0"),
        &["zoo.cfg:6: server.3: 0.0.0.0 is not an address at which another member can be reached"],
    );
}

#[test]
fn of_several_addresses_the_first_one_is_used() {
    check_warned(
        &THREE.replace("zoo1:2888:3888", "zoo1:2888:3888|zoo1b:2888:3888"),
        &["zoo.cfg:4: server.1: of its addresses only the first, zoo1, is used"],
    );
}

#[test]
fn the_server_line_counts_before_the_peer_type() {
    for lines in ["", "peerType=participant\n"] {
        check(&format!("{lines}{THREE}"), three());
    }
    check_warned(
        &format!("{THREE}peerType=observer"),
        &["zoo.cfg:7: peerType: server.2 at zoo.cfg:5 says otherwise, which counts"],
    );
    check_refused("peerType=x", "zoo.cfg:4: peerType: expected participant or observer, found \"x\"");
}

#[test]
fn a_quorum_is_more_than_half_of_the_participants() {
    for lines in
        ["group.1=1:2:3", "weight.1=1\nweight.2=1", "group.1=1:2:3\nweight.1=4\nweight.2=4\nweight.3=4"]
    {
        check(&format!("{THREE}{lines}"), three());
    }
    for (lines, expected) in [
        (
            "group.1=1:2\ngroup.2=3",
            "8: group.2: hierarchical quorums are not offered; remove group.N and weight.N",
        ),
        ("group.1=1:2", "7: group.1: member 3 is in no group; remove group.N and weight.N"),
        ("group.1=1,2,3", "7: group.1: expected a number from 0 to 2147483647, found \"1,2,3\""),
        ("weight.1=2", "7: weight.1: every participant has one vote; remove group.N and weight.N"),
        (
            "weight.1=0\nweight.2=0\nweight.3=0",
            "9: weight.3: every participant has one vote; remove group.N and weight.N",
        ),
        ("weight.1=heavy", "7: weight.1: expected a weight, found \"heavy\""),
        ("weight.x=1", "7: weight.x: expected a number from 0 to 2147483647, found \"x\" after weight."),
    ] {
        check_refused(&format!("{THREE}{lines}"), &format!("zoo.cfg:{expected}"));
    }
}

#[test]
fn what_makes_links_safe_is_not_passed_over() {
    check(&format!("{THREE}sslQuorum=false\nssl.quorum.keyStore.location=/k\nleaderServes=yes"), three());
    check_refused(
        &format!("{THREE}quorum.auth.enableSasl=true"),
        "zoo.cfg:7: quorum.auth.enableSasl: \"true\" is not offered: \
         members prove to each other who they are by TLS, and not by SASL; set sslQuorum=true",
    );
    check_warned(
        &format!("{THREE}leaderServes=no"),
        &["zoo.cfg:7: leaderServes: \"no\" has no effect: a leader serves clients too"],
    );
}

#[test]
fn a_member_alone_passes_over_what_is_between_members() {
    let lines = "leaderServes=no\nsslQuorum=true\nssl.quorum.crl=true\npeerType=observer\ngroup.1=1:2:3\nweight.1=x\n";
    for server in ["", "server.2=zoo2:2888:3888\n"] {
        let (config, warnings) = load(&format!("{lines}{server}"));
        assert_eq!(config.ensemble, None);
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[test]
fn a_dynamic_file_only_names_the_members() {
    let load = |stat: &str, dynamic: &str| {
        let case = Case::with_myid("2");
        case.write("zoo.cfg.dynamic", dynamic);
        let dynamic = case.path().join("zoo.cfg.dynamic");
        let loaded = case.load(format!("{BASE}dynamicConfigFile={}\n{stat}", dynamic.display()))?;
        Ok::<_, String>(case.warned(loaded))
    };
    let (config, warnings) = load("reconfigEnabled=true", &format!("{THREE}version=100000000\n")).unwrap();
    assert_eq!(config.ensemble, Some(Ensemble { reconfig_enabled: true, ..three() }));
    assert_eq!(warnings, [""; 0]);
    load("", &format!("{THREE}group.1=1:2:3\nweight.1=1\n")).unwrap();
    assert_eq!(
        load("server.1=zoo1:2888:3888", THREE).unwrap_err(),
        "zoo.cfg:5: server.1: dynamicConfigFile says that the members are named in zoo.cfg.dynamic; move it"
    );
    assert_eq!(
        load("", &format!("{THREE}tickTime=5")).unwrap_err(),
        "zoo.cfg.dynamic:4: tickTime: a dynamic configuration only names the members; move it to zoo.cfg"
    );
    assert_eq!(
        load("", "server.2=zoo2").unwrap_err(),
        "zoo.cfg.dynamic:1: server.2: expected HOST:PORT:PORT[:participant|observer][;[ADDRESS:]PORT], \
         found \"zoo2\""
    );
}

#[test]
fn the_example_of_an_ensemble_is_three_members() {
    let example = include_str!("../../../../docs/examples/ensemble/zoo.cfg");
    for number in 1..=3 {
        let case = Case::with_myid(&number.to_string());
        let (config, warnings) = case.warned(case.load(example).unwrap());
        assert_eq!(warnings, [""; 0]);
        assert_eq!(config.member, number);
        let members = config.ensemble.expect("an ensemble").members;
        let hosts: Vec<&str> = members.iter().map(|member| member.host.as_str()).collect();
        assert_eq!(hosts, ["zoo1.example.org", "zoo2.example.org", "zoo3.example.org"]);
    }
}
