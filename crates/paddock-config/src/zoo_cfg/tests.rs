use std::fs;

use paddock_server::{
    AdminTls, AuditTarget, Config, ConnectRate, DigestAlgorithm, PortProtocol, SplitPaths, WordList,
};

use super::super::case::{Case, environment};
use super::super::remark::Weight;
use super::super::{Loaded, load as load_config};
use super::*;

const BASE: &str = "dataDir=data\nclientPort=2181\nclientPortAddress=127.0.0.1\n";

/// The settings after `BASE` and `lines`; there must be no warning.
#[track_caller]
fn config(lines: &str) -> Config {
    let loaded = Case::new().load(format!("{BASE}{lines}")).unwrap();
    let warnings: Vec<_> = loaded.remarks.iter().filter(|remark| remark.weight == Weight::Warning).collect();
    assert!(warnings.is_empty(), "{lines}: {warnings:?}");
    loaded.config
}

/// The line that one of `lines`, which follow the three of `BASE`, is refused with.
#[track_caller]
fn check_refused(lines: &str, expected: &str) {
    assert_eq!(Case::new().load(format!("{BASE}{lines}")).unwrap_err(), expected, "{lines}");
}

#[track_caller]
fn check_warned(lines: &str, expected: &str) {
    let case = Case::new();
    let loaded = case.load(format!("{BASE}{lines}")).unwrap();
    let warnings: Vec<String> = loaded
        .remarks
        .iter()
        .filter(|remark| remark.weight == Weight::Warning)
        .map(|remark| case.local(remark))
        .collect();
    assert_eq!(warnings, [expected], "{lines}");
}

#[test]
fn what_is_not_said_is_as_in_zookeeper_or_by_default() {
    let expected = Config {
        listen: "127.0.0.1:2181".parse().unwrap(),
        tick_ms: 3000,
        session_timeout_ms_min: 6000,
        session_timeout_ms_max: 60_000,
        ..Config::new("data")
    };
    assert_eq!(config(""), expected);
}

#[test]
fn quotas_and_the_audit_log() {
    assert!(!config("enforceQuota=false\n").enforce_quota);
    assert!(config("enforceQuota=true\n").enforce_quota);
    check_refused("enforceQuota=2", "zoo.cfg:4: enforceQuota: expected true or false, found \"2\"");

    assert_eq!(config("audit.enable=true\n").audit_log, Some(AuditTarget::Log));
    let file = Some(AuditTarget::File("audit.log".into()));
    assert_eq!(config("audit.file=audit.log\naudit.enable=true\n").audit_log, file);
    assert_eq!(config("audit.file=audit.log\n").audit_log, None);
}

#[test]
fn directories() {
    let config = config("dataLogDir = /fast disk/log \n");
    assert_eq!(config.data_dir, Path::new("data"));
    assert_eq!(config.log_dir.as_deref(), Some(Path::new("/fast disk/log")));
    check_refused("dataLogDir=\n", "zoo.cfg:4: dataLogDir: expected a path, found \"\"");
}

#[test]
fn without_an_address_all_addresses_are_served() {
    let loaded = Case::new().load("dataDir=data\nclientPort=2182").unwrap();
    assert!(loaded.config.listen.ip().is_unspecified(), "{}", loaded.config.listen);
    assert_eq!(loaded.config.listen.port(), 2182);
}

#[test]
fn an_address_can_be_a_name_or_of_ipv6() {
    for (text, listen) in [
        ("localhost", "127.0.0.1:2181"),
        ("::1", "[::1]:2181"),
        ("[::1]", "[::1]:2181"),
        ("0.0.0.0", "0.0.0.0:2181"),
    ] {
        assert_eq!(config(&format!("clientPortAddress={text}\n")).listen, listen.parse().unwrap(), "{text}");
    }
    let line = Case::new().load("clientPortAddress=no such host").unwrap_err();
    let expected = "zoo.cfg:1: clientPortAddress: expected an address or a name that can be resolved, found \"no such host\"";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn a_port_and_a_directory_must_be_said_somewhere() {
    assert_eq!(Case::new().load("dataDir=data").unwrap_err(), "zoo.cfg: clientPort is missing");
    assert_eq!(Case::new().load("dataDir=data\nclientPort=0").unwrap_err(), "zoo.cfg: clientPort is missing");
    assert_eq!(Case::new().load("clientPort=2181").unwrap_err(), "zoo.cfg: dataDir is missing");
    check_refused(
        "clientPort=65536\n",
        "zoo.cfg:4: clientPort: expected a port from 1 to 65535, found \"65536\"",
    );
}

#[test]
fn the_command_line_counts_before_the_file() {
    let mut case = Case::new();
    let data_dir = case.path().join("other");
    let listen = "127.0.0.1:0".parse().unwrap();
    case.overrides =
        Overrides { listen: Some(listen), data_dir: Some(data_dir.clone()), ..Overrides::default() };
    for text in [BASE, ""] {
        let config = case.load(text).unwrap().config;
        assert_eq!((config.listen, &config.data_dir), (listen, &data_dir), "{text:?}");
    }
}

#[test]
fn session_timeouts_follow_the_tick_unless_they_are_said() {
    for (lines, tick, min, max) in [
        ("tickTime=2000", 2000, 4000, 40_000),
        ("tickTime=2000\nminSessionTimeout=-1\nmaxSessionTimeout=-1", 2000, 4000, 40_000),
        ("minSessionTimeout=1\nmaxSessionTimeout=90000\ntickTime=100", 100, 1, 90_000),
        ("tickTime=2147483647", i32::MAX as u32, i32::MAX as u32, i32::MAX as u32),
    ] {
        let config = config(lines);
        let found = (config.tick_ms, config.session_timeout_ms_min, config.session_timeout_ms_max);
        assert_eq!(found, (tick, min, max), "{lines}");
    }
    check_refused(
        "maxSessionTimeout=5999",
        "zoo.cfg: the shortest session timeout, 6000 ms, is longer than the longest, 5999 ms",
    );
    for (line, found) in [("tickTime=2s", "2s"), ("tickTime=0", "0"), ("tickTime=", "")] {
        let expected =
            format!("zoo.cfg:4: tickTime: expected a positive number of milliseconds, found {found:?}");
        check_refused(line, &expected);
    }
    for key in ["minSessionTimeout", "maxSessionTimeout"] {
        let expected = format!("zoo.cfg:4: {key}: expected a positive number of milliseconds, found \"-2\"");
        check_refused(&format!("{key}=-2"), &expected);
    }
}

#[test]
fn a_limit_of_connections_below_one_is_none() {
    let limits = |text| {
        let config = config(text);
        (config.connections_per_address_max, config.connections_max)
    };
    assert_eq!(limits(""), (60, 0));
    assert_eq!(limits("maxClientCnxns=5\nmaxCnxns=7"), (5, 7));
    assert_eq!(limits("maxClientCnxns=0\nmaxCnxns=-1"), (0, 0));
    assert_eq!(limits("maxClientCnxns=-1"), (0, 0));
    check_refused("maxCnxns=all", "zoo.cfg:4: maxCnxns: expected a number of connections, found \"all\"");
}

#[test]
fn rates_of_tenants_stand_in_one_line() {
    let limits = |text| config(text).client_limits;
    let rules = "path:requests=3;user=ann:bytes=4";
    let line = format!("paddock.rate_limits={rules}");
    assert_eq!(limits(&line).rate_limits, rules.parse().unwrap());
    assert_eq!(limits("paddock.rate_wait_ms_max=0").rate_wait_ms_max, 0);
    check_refused(
        "paddock.rate_limits=path:requests",
        "zoo.cfg:4: paddock.rate_limits: expected a rule such as \"path=/app:requests=1000\", \"user:bytes=1000000\" or \
         \"address:requests_soft=100,requests=200\", found \"path:requests\"",
    );
}

#[test]
fn split_points_stand_in_one_line() {
    let points = |text| config(text).member_settings.split_points;
    assert_eq!(points("paddock.split_points=/a/b, /c"), SplitPaths::of(["/a/b", "/c"]).unwrap());
    assert!(points("paddock.split_points=").is_empty());
    check_refused(
        "paddock.split_points=/a,/a/b",
        "zoo.cfg:4: paddock.split_points: /a/b is there twice, or lies below /a: split points are not nested",
    );
}

#[test]
fn the_lower_limit_of_requests_counts_and_weights_count_if_they_are_switched_on() {
    let limits = |text| config(text).client_limits;
    assert_eq!(limits("globalOutstandingLimit=1000").outstanding_max, 1000);
    assert_eq!(limits("requestThrottleLimit=9\nglobalOutstandingLimit=1000").outstanding_max, 9);
    assert_eq!(limits("globalOutstandingLimit=1000\nrequestThrottleLimit=0").outstanding_max, 1000);
    assert_eq!(limits("netty.server.outstandingHandshake.limit=-1").handshakes_max, 0);
    assert_eq!(limits("netty.server.outstandingHandshake.limit=20").handshakes_max, 20);
    let bucket = "connectionMaxTokens=50\nconnectionTokenFillTime=10\nconnectionTokenFillCount=5\n\
                  connection_throttle_global_session_weight=4";
    let rate = ConnectRate { tokens_max: 50, fill_interval_ms: 10, fill_tokens: 5, ..ConnectRate::default() };
    assert_eq!(limits(bucket).connect_rate, rate);
    let weighted = format!("{bucket}\nconnection_throttle_weight_enabled=true");
    let expected = ConnectRate { new_session_tokens: 4, resumed_session_tokens: 2, ..rate };
    assert_eq!(config(&weighted).client_limits.connect_rate, expected);
}

#[test]
fn srvr_is_always_among_the_words() {
    let words = |list: &str| config(&format!("4lw.commands.whitelist={list}")).words;
    let only = |words: &[&str]| WordList::Only(words.iter().map(|word| (*word).to_owned()).collect());
    assert_eq!(config("").words, only(&["srvr"]));
    assert_eq!(words("ruok, mntr ,, stat"), only(&["ruok", "mntr", "stat", "srvr"]));
    assert_eq!(words("srvr,ruok"), only(&["srvr", "ruok"]));
    assert_eq!(words(""), only(&["srvr"]));
    assert_eq!(words("*"), WordList::All);
    assert_eq!(words("ruok, *"), WordList::All);
}

#[test]
fn the_frame_limit_is_read_as_java_reads_it() {
    assert_eq!(config("").frame_bytes_max, i32::MAX);
    for (text, bytes) in [("4194304", 4_194_304), ("0xfffff", 0xfffff), ("0X10", 16), ("#10", 16), ("010", 8)]
    {
        assert_eq!(config(&format!("jute.maxbuffer={text}")).frame_bytes_max, bytes, "{text}");
    }
    for text in ["0", "-1", "4m", "0x", "08", "0x+1", "2147483648"] {
        let expected = format!(
            "zoo.cfg:4: jute.maxbuffer: expected a positive number of bytes up to 0x7fffffff, found {text:?}"
        );
        check_refused(&format!("jute.maxbuffer={text}"), &expected);
    }
}

#[test]
fn snapshots_and_log() {
    let config_of = |lines: &str| config(lines);
    assert_eq!(config_of("snapCount=5000").member_settings.snapshot_writes, 5000);
    check_refused("snapCount=0", "zoo.cfg:4: snapCount: expected a positive number of writes, found \"0\"");
    assert_eq!(config_of("snapSizeLimitInKb=1024").member_settings.snapshot_log_bytes, 1 << 20);
    assert_eq!(config_of("snapSizeLimitInKb=-1").member_settings.snapshot_log_bytes, u64::MAX);
    assert_eq!(config_of("autopurge.snapRetainCount=5").member_settings.snapshots_kept, 5);
    check_warned(
        "autopurge.snapRetainCount=1",
        "zoo.cfg:4: autopurge.snapRetainCount: 3 snapshots are kept, as in ZooKeeper",
    );
    for (kib, bytes) in [("16384", 16 << 20), ("0", 64 << 10), ("-1", 64 << 10), ("9999999999", 1 << 30)] {
        assert_eq!(config_of(&format!("preAllocSize={kib}")).member_settings.segment_bytes, bytes, "{kib}");
    }
    check_refused("preAllocSize=64M", "zoo.cfg:4: preAllocSize: expected a number of KiB, found \"64M\"");
}

#[test]
fn the_super_digest_has_two_names() {
    const DIGEST: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    for prefix in ["", "zookeeper."] {
        let lines = format!("{prefix}DigestAuthenticationProvider.superDigest={DIGEST}");
        assert_eq!(config(&lines).super_digest.as_deref(), Some(DIGEST));
    }
    let line = Case::new().load("DigestAuthenticationProvider.superDigest=super:secret").unwrap_err();
    assert!(!line.contains("secret"), "{line}");
}

#[test]
fn passwords_are_hashed_as_was_said() {
    const ALGORITHM: &str = "DigestAuthenticationProvider.digestAlg";
    for (name, expected) in [
        ("SHA-1", DigestAlgorithm::Sha1),
        ("SHA-256", DigestAlgorithm::Sha256),
        ("sha-512", DigestAlgorithm::Sha512),
    ] {
        assert_eq!(config(&format!("{ALGORITHM}={name}")).digest_algorithm, expected, "{name}");
    }
    let load = |lines: &str| Case::with_myid("1").load(format!("clientPort=1\n{lines}")).unwrap_err();
    let line = load(&format!("{ALGORITHM}=MD5"));
    assert!(line.ends_with("expected SHA1, SHA-256 or SHA-512, found \"MD5\""), "{line}");
    // A super user who could never come in would be missed when it is needed.
    let digest = "DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    let line = load(&format!("{ALGORITHM}=SHA-256\n{digest}"));
    assert!(line.contains("the super digest was made with another algorithm"), "{line}");
}

#[test]
fn containers_are_removed_at_the_rate_that_was_said() {
    let garbage = |lines: &str| {
        let config = config(lines);
        (config.member_settings.garbage_interval_ms, config.member_settings.garbage_max)
    };
    assert_eq!(garbage("znode.container.checkIntervalMs=30000"), (30_000, 10_000));
    assert_eq!(garbage("znode.container.maxPerMinute=500"), (60_000, 500));
    let both = "znode.container.maxPerMinute=600\nznode.container.checkIntervalMs=1000";
    assert_eq!(garbage(both), (1000, 10));
    assert_eq!(garbage(&both.replace("600", "1")), (1000, 1));
}

#[test]
fn one_server_line_is_this_member() {
    let line = "server.3=zoo3:2888:3888:participant";
    assert_eq!(config("").member, 1);
    assert_eq!(config(line).member, 3);
    assert_eq!(config(&format!("{line}\nstandaloneEnabled=false")).member, 3);
    for number in ["0", "1001", "2147483647"] {
        let line = format!("server.{number}=zoo3:2888:3888");
        assert_eq!(config(&line).member.to_string(), number);
    }
    assert_eq!(config(&format!("{line};2183")).listen, "127.0.0.1:2183".parse().unwrap());
    assert_eq!(config(&format!("{line};127.0.0.2:2183")).listen, "127.0.0.2:2183".parse().unwrap());
    check_refused(
        "server.x=a:2888:3888",
        "zoo.cfg:4: server.x: expected a number from 0 to 2147483647, found \"x\" after server.",
    );
    check_refused(
        "server.1=a:2888:3888;port",
        "zoo.cfg:4: server.1: expected a port from 1 to 65535, found \"port\"",
    );
}

#[test]
fn myid_says_which_member_this_is() {
    for (text, member) in [("7", 7), ("7\n", 7), (" 255 \nrest", 255)] {
        assert_eq!(Case::with_myid(text).load(BASE).unwrap().config.member, member, "{text:?}");
    }
    for (text, found) in [("one\n", "one"), ("", "")] {
        let expected = format!("myid:1: expected a number from 0 to 2147483647, found {found:?}");
        assert_eq!(Case::with_myid(text).load(BASE).unwrap_err(), expected);
    }
}

/// ZooKeeper reads no `myid` there.
#[test]
fn a_member_alone_needs_no_number() {
    for text in ["0", "256", "-1\n"] {
        let case = Case::with_myid(text);
        let loaded = case.load(BASE).unwrap();
        let what = format!("myid:1: {} is not used: a member alone needs no number", text.trim());
        assert!(loaded.remarks.iter().any(|remark| case.local(remark) == what));
        assert_eq!(loaded.config.member, 1);
    }
}

#[test]
fn myid_of_an_ensemble_is_any_number_that_one_of_zookeeper_is() {
    let ensemble = |number: &str| format!("{BASE}server.{number}=a:2888:3888\nserver.2=b:2888:3888\n");
    for number in ["0", "1", "255", "256", "1001", "2147483647"] {
        let config = Case::with_myid(&format!("{number}\n")).load(ensemble(number)).unwrap().config;
        assert_eq!(config.member.to_string(), number);
        let members = config.ensemble.unwrap().members;
        assert!(members.iter().any(|member| member.id == config.member), "{members:?}");
    }
    for number in ["-1", "2147483648", "one"] {
        let expected = format!("myid:1: expected a number from 0 to 2147483647, found {number:?}");
        assert_eq!(Case::with_myid(number).load(ensemble("1")).unwrap_err(), expected);
    }
}

#[test]
fn myid_counts_before_the_server_line() {
    let case = Case::with_myid("7");
    let loaded = case.load(format!("{BASE}server.3=zoo3:2888:3888")).unwrap();
    assert_eq!(loaded.config.member, 7);
    assert_eq!(
        loaded.remarks.iter().map(|remark| case.local(remark)).collect::<Vec<_>>(),
        ["zoo.cfg:4: server.3: myid says 7, which counts"]
    );
}

#[test]
fn server_lines_can_stand_in_a_file_of_their_own() {
    let case = Case::new();
    let dynamic = case.path().join("zoo.cfg.dynamic");
    let text = format!("dataDir=data\ndynamicConfigFile={}\n", dynamic.display());
    assert_eq!(
        case.load(&text).unwrap_err(),
        "zoo.cfg.dynamic: cannot be read: No such file or directory (os error 2)"
    );
    fs::write(&dynamic, "server.4=zoo4:2888:3888:participant;127.0.0.1:2184\nversion=100000000\n").unwrap();
    let config = case.load(&text).unwrap().config;
    assert_eq!((config.member, config.listen), (4, "127.0.0.1:2184".parse().unwrap()));
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    check_warned(
        "\n# comment\nauthHelper.1=com.acme.Helper",
        "zoo.cfg:6: authHelper.1 is not a setting that Paddock knows; it is ignored",
    );
}

#[test]
fn a_key_without_effect_here_is_silent_and_one_that_is_missed_is_not() {
    for (key, _) in zoo_keys::MEANINGLESS {
        config(&format!("{}=x", key.replace('*', "any")));
    }
    for fixed in zoo_keys::FIXED.iter().chain(zoo_keys::BETWEEN_MEMBERS) {
        for value in fixed.values {
            config(&format!("{}={value}", fixed.key));
        }
    }
    check_warned(
        "forceSync=no",
        "zoo.cfg:4: forceSync: \"no\" has no effect: every acknowledged write is on disk before its answer leaves",
    );
    check_warned(
        "zookeeper.extendedTypesEnabled=false",
        "zoo.cfg:4: extendedTypesEnabled: \"false\" has no effect: znodes with a time to live are always on",
    );
}

const JAAS: &str =
    "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\"secret\"; };";

#[test]
fn users_of_sasl_stand_in_the_file_that_the_flags_of_the_jvm_name() {
    for variable in ["JVMFLAGS", "SERVER_JVMFLAGS"] {
        let mut case = Case::with_myid("1");
        case.write("jaas.conf", JAAS);
        let file = case.path().join("jaas.conf");
        let flags =
            format!("-Xmx1g -Djava.security.auth.login.config={} -Dzookeeper.superUser=root", file.display());
        case.environment = environment(&[(variable, &flags)]);
        let lines = "clientPort=2181\nauthProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
                     sessionRequireClientSASLAuth=true\nsuperUser.2=bob";
        let (config, warnings) = case.warned(case.load(lines).unwrap());
        assert_eq!(warnings, [""; 0]);
        let sasl = config.sasl.expect("there are users");
        assert_eq!(sasl.passwords, [("bob".to_owned(), "secret".to_owned())].into());
        assert_eq!(sasl.super_users, ["root", "bob"]);
        assert_eq!(config.required_schemes, ["sasl"]);
    }
}

fn load_with_flags(flags: &[(&str, &str)], lines: &str) -> (Case, Result<Loaded, String>) {
    let mut case = Case::with_myid("1");
    case.environment = environment(flags);
    let loaded = case.load(format!("clientPort=2181\n{lines}"));
    (case, loaded)
}

#[test]
fn properties_of_the_jvm_are_settings() {
    let flags = "-Xmx1g -Dzookeeper.snapCount=5000 -Dzookeeper.4lw.commands.whitelist=* -Djute.maxbuffer=0x500000 \
                 -Dzookeeper.admin.serverPort=9090 -Dzookeeper.maxCnxns=7 -Djava.awt.headless=true -Dzookeeper.skipACL=yes \
                 -Dzookeeper.log.dir=/logs -Dzookeeper.server.principal=zk/host -Dsnapsize=1 \
                 -Dznode.container.checkIntervalMs=9 -Dzookeeper.authProvider.1=com.acme.P -Dzookeeper.tickTim=1";
    for variable in ["JVMFLAGS", "SERVER_JVMFLAGS", "KAFKA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"] {
        let (case, loaded) = load_with_flags(&[(variable, flags)], "");
        let (config, warnings) = case.warned(loaded.unwrap());
        assert_eq!((config.member_settings.snapshot_writes, config.connections_max), (5000, 7));
        assert_eq!((config.words, config.frame_bytes_max), (WordList::All, 0x50_0000));
        assert_eq!(config.admin_listen.unwrap().port(), 9090);
        assert_eq!(config.member_settings.garbage_interval_ms, 9);
        let expected = [
            "skipACL: \"yes\" has no effect: ACLs are always checked",
            "authProvider.1: com.acme.P is not offered; its scheme is unknown here",
            "tickTim is not a setting that Paddock knows; it is ignored",
        ];
        assert_eq!(warnings, expected.map(|line| format!("{variable}: {line}")));
    }
}

#[test]
fn a_key_of_the_file_counts_before_a_property_and_the_last_property_before_others() {
    let flags = [
        ("JVMFLAGS", "-Dzookeeper.snapCount=5000 -Dzookeeper.snapCount=6000 -Dzookeeper.ssl.ocsp=true"),
        ("SERVER_JVMFLAGS", "-Dzookeeper.snapCount=7000 -Dzookeeper.maxCnxns=7"),
    ];
    let (case, loaded) = load_with_flags(&flags, "maxCnxns=8\nssl.ocsp=false\n");
    let loaded = loaded.unwrap();
    let told: Vec<String> = loaded.remarks.iter().map(|remark| case.local(remark)).collect();
    for (variable, key, line) in [("SERVER_JVMFLAGS", "maxCnxns", 2), ("JVMFLAGS", "ssl.ocsp", 3)] {
        let expected = format!("{variable}: {key} changes nothing: zoo.cfg:{line} says it too, and counts");
        assert!(told.contains(&expected), "{told:?}");
    }
    assert_eq!((loaded.config.member_settings.snapshot_writes, loaded.config.connections_max), (6000, 8));
}

#[test]
fn a_property_stops_a_start_that_the_same_key_stops() {
    const TLS: &str = "secureClientPort=2281\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/t.pem\nserver.1=a:1:2\n\
                       server.2=b:1:2\nserver.3=c:1:2\nsslQuorum=true\nssl.quorum.keyStore.location=/k.pem\n\
                       ssl.quorum.trustStore.location=/t.pem\n";
    for (flag, key) in [
        ("-Dzookeeper.ssl.ocsp=true", "ssl.ocsp"),
        ("-Dzookeeper.ssl.quorum.crl=true", "ssl.quorum.crl"),
        ("-Dzookeeper.ssl.quorum.ocsp=true", "ssl.quorum.ocsp"),
        ("-Dzookeeper.quorum.auth.enableSasl=true", "quorum.auth.enableSasl"),
        ("-Dquorum.auth.enableSasl=true", "quorum.auth.enableSasl"),
        ("-Dzookeeper.ssl.keyStore.type=BCFKS", "ssl.keyStore.type"),
        ("-Dzookeeper.snapCount=many", "snapCount"),
    ] {
        let line = load_with_flags(&[("JVMFLAGS", flag)], TLS).1.unwrap_err();
        assert!(line.starts_with(&format!("JVMFLAGS: {key}: ")), "{line}");
        let (_, value) = flag.split_once('=').unwrap();
        let said = load_with_flags(&[], &format!("{TLS}{key}={value}\n")).1.unwrap_err();
        assert_eq!(said, line.replace("JVMFLAGS", "zoo.cfg:11"), "as in a file");
    }
}

#[test]
fn flags_of_the_jvm_say_nothing_beside_a_file_of_another_kind() {
    let case = Case::with_environment(&[("JVMFLAGS", "-Dzookeeper.snapCount=5"), ("KAFKA_OPTS", "-Xmx1g")]);
    let loaded = case.load_as("paddock.toml", "").unwrap();
    let told: Vec<String> = loaded.remarks.iter().map(|remark| case.local(remark)).collect();
    assert_eq!(told, ["JVMFLAGS: it changes nothing: paddock.toml counts"]);
    let loaded = case.load_environment().unwrap();
    let told: Vec<String> = loaded.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["JVMFLAGS: it changes nothing: command line counts"]);
    let case = Case::with_environment(&[("JVMFLAGS", "-Dzookeeper.snapCount=5"), ("ZOO_MY_ID", "1")]);
    assert_eq!(
        case.load_environment().unwrap().config.member_settings.snapshot_writes,
        5,
        "there would be a zoo.cfg"
    );
}

#[test]
fn every_error_of_a_zoo_cfg_is_told_and_none_that_only_follows() {
    let lines = |text: &str| {
        let case = Case::new();
        case.write("zoo.cfg", text);
        let error =
            load_config(Some(&case.path().join("zoo.cfg")), &case.overrides, &case.environment).unwrap_err();
        error.lines().map(|line| case.local(&line)).collect::<Vec<_>>()
    };
    let told = lines("tickTime=2s\nclientPort=x\nforceSync=yes\nsnapCount=y\nserver.0x=a\n");
    let places: Vec<&str> = told.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["zoo.cfg:1", "zoo.cfg:2", "zoo.cfg:4", "zoo.cfg:5"], "{told:?}");
    assert_eq!(lines("tickTime=2s\n").last().unwrap(), "zoo.cfg: dataDir is missing");
}

#[test]
fn a_file_that_is_no_text_is_one_line() {
    let case = Case::new();
    let expected = "this is not a text file (byte 0x00 at offset 4): a configuration is a zoo.cfg, or by its name .toml, .xml, .yaml or \
                    .yml, in UTF-8";
    for name in ["zoo.cfg", "paddock.toml", "keeper_config.xml", "keeper_config.yml"] {
        assert_eq!(
            case.load_as(name, b"\x7fELF\0\x1b[2J").unwrap_err(),
            format!(
                "{name}: this is not a text file (byte 0x7f at offset 0): a configuration is a zoo.cfg, or by its name .toml, .xml, .yaml or .yml, in UTF-8"
            )
        );
        assert_eq!(case.load_as(name, b"text\0").unwrap_err(), format!("{name}: {expected}"));
    }
    let line = case
        .load(format!("{BASE}forceSync=\\u0007\nx\\u001by=1\n").as_bytes())
        .map(|loaded| loaded.remarks.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    let line = line.unwrap();
    assert!(!line.contains(['\u{7}', '\u{1b}']) && line.contains("x\\u{1b}y"), "{line}");
}

#[test]
fn a_mark_of_an_editor_before_myid_is_no_part_of_it() {
    let case = Case::with_myid("\u{feff}7\r\n");
    assert_eq!(case.load("\u{feff}clientPort=2181\n").unwrap().config.member, 7);
}

#[test]
fn clients_are_not_asked_for_what_nobody_can_show() {
    check_refused(
        "sessionRequireClientSASLAuth=true",
        "zoo.cfg: clients are to show who they are by SASL, and there are neither users nor Kerberos",
    );
    check_refused("enforce.auth.enabled=true", "zoo.cfg: enforce.auth.enabled needs enforce.auth.schemes");
    check_refused(
        "enforce.auth.enabled=true\nenforce.auth.schemes=digest,acme",
        "zoo.cfg: no scheme acme for clients to show who they are; there are digest, ip, sasl, x509",
    );
    let digest = config("enforce.auth.enabled=true\nenforce.auth.schemes=digest");
    assert_eq!(digest.required_schemes, ["digest"]);
    assert!(config("enforce.auth.schemes=digest").required_schemes.is_empty());
    check_warned(
        "authProvider.acme=com.acme.Provider",
        "zoo.cfg:4: authProvider.acme: com.acme.Provider is not offered; its scheme is unknown here",
    );
}

#[test]
fn of_a_key_given_twice_only_the_last_value_is_looked_at() {
    assert_eq!(config("tickTime=soon\ntickTime=1000").tick_ms, 1000);
}

#[test]
fn a_malformed_escape_is_named_with_its_line() {
    check_refused("x=\\u12", "zoo.cfg:4: expected four hexadecimal digits after \\u");
}

#[test]
fn a_file_in_latin_1_can_be_read() {
    let text = [BASE.as_bytes(), b"# gr\xfc\xdfe\ndataDir=/d\xe4ta\n"].concat();
    assert_eq!(Case::new().load(text).unwrap().config.data_dir, Path::new("/däta"));
}

#[test]
fn the_data_of_zookeeper_is_not_passed_over() {
    let case = Case::with_myid("1");
    fs::create_dir(case.path().join("version-2")).unwrap();
    let expected = format!(
        "zoo.cfg: {0} holds ZooKeeper's data (version-2): name an empty directory, or one that was made by: paddock import \
         zookeeper --data-dir {0} --to NEW",
        case.path().display()
    );
    assert_eq!(case.load(BASE).unwrap_err(), expected);
}

#[test]
fn metrics_are_served_where_the_prometheus_provider_listens() {
    const PROVIDER: &str =
        "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
    let listen = |lines: &str| config(lines).metrics_listen.map(|listen| listen.to_string());
    assert_eq!(
        listen(&format!("{PROVIDER}metricsProvider.httpHost=127.0.0.1")).as_deref(),
        Some("127.0.0.1:7000")
    );
    assert_eq!(
        config(&format!("{PROVIDER}metricsProvider.httpPort=7001")).metrics_listen.unwrap().port(),
        7001
    );
    assert_eq!(listen("metricsProvider.httpPort=7001"), None);
    assert_eq!(
        listen("metricsProvider.className=org.apache.zookeeper.metrics.impl.DefaultMetricsProvider"),
        None
    );
    check_warned(
        "metricsProvider.className=com.acme.Provider",
        "zoo.cfg:4: metricsProvider.className: com.acme.Provider is not offered; metrics are served by \
         PrometheusMetricsProvider only",
    );
}

#[test]
fn the_http_interface_has_names_that_the_file_gives_it() {
    let lines = "admin.serverPort=8080\nadmin.hosts=zk1.example.org, ops.example.org\n";
    assert_eq!(config(lines).admin.hosts, ["zk1.example.org", "ops.example.org"]);
    check_refused(
        "admin.hosts=a,,b\n",
        "zoo.cfg:4: admin.hosts: expected names such as zk1.example.org,ops.example.org, found \"a,,b\"",
    );
}

#[test]
fn the_http_interface_speaks_tls_with_keys_that_are_there() {
    let tls = "secureClientPort=2281\nssl.keyStore.location=/tls/a.pem\nssl.trustStore.location=/tls/ca.pem\nadmin.serverPort=8080\n";
    for (lines, protocol, needs_certificate) in [
        ("", PortProtocol::Plaintext, false),
        ("admin.portUnification=true\n", PortProtocol::Either, false),
        ("admin.forceHttps=true\nadmin.portUnification=true\n", PortProtocol::Tls, false),
        ("admin.forceHttps=true\nadmin.needClientAuth=true\n", PortProtocol::Tls, true),
    ] {
        let admin = config(&format!("{tls}{lines}")).admin;
        assert_eq!(admin.tls, AdminTls { protocol, needs_certificate }, "{lines}");
    }
    check_refused(
        "admin.serverPort=8080\nadmin.forceHttps=true\n",
        "zoo.cfg: the HTTP interface speaks TLS with the keys and certificates of clients' ports, or else with those between \
         members: set one of them, or no TLS for it",
    );
}

/// Under Kubernetes a name is known only a while after the process has begun.
#[test]
fn a_name_that_nobody_knows_yet_does_not_end_the_start() {
    const OWN: &str = "late.invalid";
    let shown = |case: &Case, name: &str, text: &str| {
        let (config, warnings) = case.warned(case.load_as(name, text).unwrap());
        let expected = format!(
            "{name}: {OWN} cannot be looked up: the ports at this name are tried again (bind_tries, electionPortBindRetry)"
        );
        assert_eq!(warnings, [expected], "{text}");
        let names = config.late_names.clone();
        let secure = config.tls.as_ref().and_then(|tls| tls.listen);
        let ports = [Some(config.listen), secure, config.admin_listen, config.metrics_listen];
        ports.map(|port| port.map(|port| names.shown(port)).unwrap_or_default().replace(OWN, "LATE"))
    };
    let case = Case::with_myid("1");
    let tls = format!(
        "secureClientPort=2281\nsecureClientPortAddress={OWN}\nssl.keyStore.location=k\nssl.trustStore.location=t\n"
    );
    let http = format!(
        "admin.serverAddress={OWN}\nmetricsProvider.className=x.PrometheusMetricsProvider\nmetricsProvider.httpHost={OWN}\n"
    );
    let text = format!("clientPort=2181\nclientPortAddress={OWN}\n{tls}{http}");
    assert_eq!(shown(&case, "zoo.cfg", &text), ["LATE:2181", "LATE:2281", "LATE:8080", "LATE:7000"]);
    let servers = format!("server.1=a:1:2;{OWN}:2182\nserver.2=b:1:2;2182\nserver.3=c:1:2;2182\n");
    assert_eq!(shown(&case, "zoo.cfg", &servers)[0], "LATE:2182");
    let twice = format!("{servers}clientPort=2182\nclientPortAddress={OWN}\n");
    assert_eq!(shown(&case, "zoo.cfg", &twice)[0], "LATE:2182", "it is the same name");
    let toml = format!("listen = '{OWN}:1'\nadmin_listen = '{OWN}:2'\nmetrics_listen = '{OWN}:3'\n");
    assert_eq!(shown(&case, "paddock.toml", &toml), ["LATE:1", "", "LATE:2", "LATE:3"]);
    let keeper = format!("listen_host: {OWN}\nkeeper_server:\n  tcp_port: 1\n  storage_path: d\n");
    assert_eq!(shown(&case, "keeper.yaml", &keeper)[0], "LATE:1");
}
