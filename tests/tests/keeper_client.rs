//! The commands of `clickhouse-keeper-client` in `paddock shell`, by the list of ClickHouse's documentation, on a listener that speaks
//! ClickHouse Keeper's dialect. No program of ClickHouse's is at hand to be run beside it, so the answers are written down here.

use std::collections::HashMap;

use paddock_tests::ensemble::{Ensemble, MemberPlace};
use paddock_tests::server::{Server, ServerKind};
use paddock_tests::shells::{command_name, in_paddocks_shell};

/// The whole list. Four-letter words without `flwc` are another test.
const COMMANDS: &[&str] = &[
    "ls",
    "cd",
    "set",
    "create",
    "touch",
    "get",
    "exists",
    "get_stat",
    "find_super_nodes",
    "delete_stale_backups",
    "find_big_family",
    "rm",
    "rmr",
    "reconfig",
    "sync",
    "help",
    "flwc",
    "get_direct_children_number",
    "get_all_children_number",
    "cp",
    "cpr",
    "mv",
    "mvr",
    "get_acl",
    "quit",
    "exit",
];

/// Lines with their whole answers; a failure is the part of its message that names the reason.
const CASES: &[(&str, &str)] = &[
    ("create /a value", "/a\n"),
    ("create '/two words' \"some value\"", "/two words\n"),
    ("get '/two words'", "some value\n"),
    ("rm '/two words'", ""),
    ("create /a/p value PERSISTENT", "/a/p\n"),
    ("create /a/ps- value PERSISTENT SEQUENTIAL", "/a/ps-0000000001\n"),
    ("create /a/e value EPHEMERAL", "/a/e\n"),
    ("create /a/es- value EPHEMERAL SEQUENTIAL", "/a/es-0000000003\n"),
    ("create /a/lower value ephemeral sequential", "/a/lower0000000004\n"),
    ("create /a/q- value 'PERSISTENT SEQUENTIAL'", "/a/q-0000000005\n"),
    ("create /a/acl value PERSISTENT world:anyone:cdra", "/a/acl\n"),
    ("create -e /a/both value PERSISTENT SEQUENTIAL", "by flags or by words"),
    ("create /a/none value SOMETIMES", "is no entry of an ACL"),
    ("create /a/many value EPHEMERAL world:anyone:r more", "is too much"),
    ("getEphemerals /a", "/a/e\n/a/es-0000000003\n/a/lower0000000004\n"),
    ("get_acl /a/acl", "world:anyone:cdra\n"),
    ("get_acl /a/p", "world:anyone:cdrwa\n"),
    ("ls /", "a\nzookeeper\n"),
    ("exists /keeper/api_version", "1\n"),
    ("cd a", ""),
    ("ls", "acl\ne\nes-0000000003\nlower0000000004\np\nps-0000000001\nq-0000000005\n"),
    ("get p", "value\n"),
    ("exists p", "1\n"),
    ("exists ../nothing", "0\n"),
    ("cd /nothing", "no such znode"),
    ("get_direct_children_number", "7\n"),
    ("cd /", ""),
    ("set /a/p second", ""),
    ("set /a/p third 1", ""),
    ("set /a/p late 1", "the version is another one"),
    ("get /a/p", "third\n"),
    ("touch /touched", ""),
    ("get /touched", "\n"),
    ("set /touched data", ""),
    ("touch /touched", ""),
    ("get /touched", "data\n"),
    ("rm /touched 7", "the version is another one"),
    ("rm /touched 1", ""),
    ("rm /a", "the znode has children"),
    ("create /fam x", "/fam\n"),
    ("create /fam/big x", "/fam/big\n"),
    ("create /fam/big/1 x", "/fam/big/1\n"),
    ("create /fam/big/2 x", "/fam/big/2\n"),
    ("create /fam/big/3 x", "/fam/big/3\n"),
    ("create /fam/small x", "/fam/small\n"),
    ("find_super_nodes 3 /fam", "/fam/big\t3\n"),
    ("find_super_nodes 4 /fam", ""),
    ("find_big_family /fam 2", "/fam\t5\n/fam/big\t3\n"),
    (
        "find_big_family /fam",
        "/fam\t5\n/fam/big\t3\n/fam/big/1\t0\n/fam/big/2\t0\n/fam/big/3\t0\n/fam/small\t0\n",
    ),
    ("get_direct_children_number /fam", "2\n"),
    ("get_all_children_number /fam", "5\n"),
    ("cp /fam/big /one", ""),
    ("ls /one", ""),
    ("cpr /fam/big /all", ""),
    ("ls /all", "1\n2\n3\n"),
    ("mv /all/1 /all/4", ""),
    ("mvr /all /moved", ""),
    ("ls /moved", "2\n3\n4\n"),
    ("exists /all", "0\n"),
    ("cp /fam/big /one", "exists already"),
    ("rmr /moved 3", "/moved is 4 znodes, more than 3: nothing was removed"),
    ("rmr /moved 4", ""),
    ("exists /moved", "0\n"),
    ("rmr /one", ""),
    ("create /clickhouse x", "/clickhouse\n"),
    ("create /clickhouse/backups x", "/clickhouse/backups\n"),
    ("create /clickhouse/backups/runs x", "/clickhouse/backups/runs\n"),
    ("create /clickhouse/backups/runs/stage x", "/clickhouse/backups/runs/stage\n"),
    (
        "create /clickhouse/backups/runs/stage/alive|host x EPHEMERAL",
        "/clickhouse/backups/runs/stage/alive|host\n",
    ),
    ("create /clickhouse/backups/died x", "/clickhouse/backups/died\n"),
    ("create /clickhouse/backups/died/stage x", "/clickhouse/backups/died/stage\n"),
    ("create /clickhouse/backups/died/stage/started|host x", "/clickhouse/backups/died/stage/started|host\n"),
    ("create /clickhouse/backups/begins x", "/clickhouse/backups/begins\n"),
    (
        "delete_stale_backups",
        "/clickhouse/backups/begins\twithout a stage, left\n/clickhouse/backups/died\tstale, removed\n\
         /clickhouse/backups/runs\tactive, left\n",
    ),
    ("ls /clickhouse/backups", "begins\nruns\n"),
    ("sync /", ""),
    ("flwc ruok", "imok\n"),
    ("help rmr", "rmr [-f] path [limit]\n"),
    ("exit", ""),
];

#[test]
fn every_command_of_the_list_does_what_it_says() {
    let server = clickhouse_listener();
    let lines: Vec<&str> = CASES.iter().map(|(line, _)| *line).collect();
    let answers = in_paddocks_shell(&server.address().to_string(), &[], &lines);
    for ((line, expected), answer) in CASES.iter().zip(&answers.texts) {
        let is_failure = answer.starts_with("error: ");
        let is_told = if is_failure || command_name(line) == "help" {
            !expected.is_empty() && answer.contains(expected)
        } else {
            answer == expected
        };
        assert!(is_told, "{line}: {answer:?}, not {expected:?}");
        assert_eq!(is_failure, answer.contains("error: "), "{line}");
    }
    let stat = ["create /s x", "get_stat /s"];
    let answers = in_paddocks_shell(&server.address().to_string(), &[], &stat);
    let names: Vec<&str> = answers.texts[1].lines().filter_map(|line| line.split(" = ").next()).collect();
    let expected =
        "cZxid ctime mZxid mtime pZxid cversion dataVersion aclVersion ephemeralOwner dataLength numChildren";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn a_subtree_of_more_than_a_hundred_znodes_wants_a_limit_of_its_own() {
    let server = clickhouse_listener();
    let many: Vec<String> = (0..100).map(|number| format!("create /m/{number} x")).collect();
    let mut lines = vec!["create /m x"];
    lines.extend(many.iter().map(String::as_str));
    lines.extend(["rmr /m", "get_all_children_number /m", "rmr /m 101", "exists /m"]);
    let texts = in_paddocks_shell(&server.address().to_string(), &[], &lines).texts;
    let [refused, left, removed, exists] = texts.last_chunk().expect("there are four");
    assert!(refused.contains("/m is 101 znodes, more than 100: nothing was removed"), "{refused}");
    assert_eq!([left.as_str(), removed, exists], ["100\n", "", "0\n"]);
}

/// `stat` alone is a command of zkCli.sh, and `rcfg` wants an argument.
#[test]
fn four_letter_words_need_nothing_before_them() {
    let server = clickhouse_listener();
    let words = "conf cons crst envi ruok srst srvr wchs dirs mntr isro rcvr apiv csnp lgif rqld rclc clrs ftfl ydld pfev lgrq \
                 wchc wchp dump jmst jmfp jmep jmdp";
    let words: Vec<&str> = words.split_whitespace().collect();
    let bare = in_paddocks_shell(&server.address().to_string(), &[], &words).texts;
    for (word, answer) in words.iter().zip(&bare) {
        // A server that does not know the word, or does not allow it, is named.
        assert!(!answer.contains("there is no command"), "{word}: {answer}");
        assert!(!answer.is_empty(), "{word}");
    }
    let answers: HashMap<&str, &String> = words.iter().copied().zip(&bare).collect();
    assert_eq!(answers["ruok"], "imok\n");
    assert!(answers["mntr"].contains("zk_server_state\tstandalone"), "{}", answers["mntr"]);
    assert!(answers["lgif"].contains("last_log_idx"), "{}", answers["lgif"]);
    let explicit = in_paddocks_shell(&server.address().to_string(), &[], &["flwc stat", "flwc isro"]).texts;
    assert!(explicit[0].contains("Mode: "), "{}", explicit[0]);
    assert_eq!(explicit[1], *answers["isro"]);
}

#[test]
fn members_are_changed_by_words() {
    let places: Vec<MemberPlace> = (0..3).map(|_| MemberPlace::on_loopback_with_clients()).collect();
    // The hash of `super:secret`.
    let settings = [
        ("reconfigEnabled", "true"),
        ("standaloneEnabled", "false"),
        ("DigestAuthenticationProvider.superDigest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4="),
    ];
    let mut ensemble = Ensemble::start_at(ServerKind::Paddock, &places, &settings);
    let leader = ensemble.leader();
    let members: Vec<String> =
        (1..).zip(&places).map(|(id, place)| format!("server.{id}={}", place.peers)).collect();
    let other = (leader + 1) % 3;
    let lines = [
        "addauth digest super:secret".to_owned(),
        format!("reconfig remove \"{}\"", other + 1),
        format!("reconfig add \"{}\"", members[other]),
        format!("reconfig add \"{}\" 1", members[other]),
        format!("reconfig remove \"{}\"", other + 1),
        format!("reconfig set \"{}\"", members.join(",")),
        "reconfig replace x".to_owned(),
        "reconfig add".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let hosts = ensemble.at(leader).address().to_string();
    let texts = in_paddocks_shell(&hosts, &[], &lines).texts;
    let named = |text: &str| -> Vec<usize> {
        (1..=3).filter(|id| text.lines().any(|line| line == members[id - 1])).collect()
    };
    let rest: Vec<usize> = (1..=3).filter(|id| *id != other + 1).collect();
    let all = vec![1, 2, 3];
    assert_eq!(
        [1, 2, 4, 5].map(|place| named(&texts[place])),
        [rest.clone(), all.clone(), rest, all],
        "{texts:?}"
    );
    assert!(texts[3].contains("the version is another one"), "{}", texts[3]);
    for wrong in &texts[6..] {
        assert!(wrong.contains("or one of add, remove and set"), "{wrong}");
    }
}

#[test]
fn every_command_has_a_case() {
    for command in COMMANDS {
        let elsewhere = ["get_stat", "reconfig", "quit", "exit"].contains(command);
        let has_case = CASES.iter().any(|(line, _)| command_name(line) == *command);
        assert!(elsewhere || has_case, "{command}");
    }
}

/// A server all of whose clients speak ClickHouse Keeper's dialect.
fn clickhouse_listener() -> Server {
    let mut server = Server::prepare(ServerKind::Paddock, &[]);
    server.use_toml("dialect = \"clickhouse\"\nwords = [\"*\"]\n");
    server.restart();
    server
}
