//! Test of `docs/configuration-keys.md`: each row of its tables is fed to the parser, and says what the parser does.
//!
//! `UPDATE_SCRIPTS=1` writes anew what the code says; review the difference.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::case::Case;
use super::origins::{OF_KEEPER, OF_ZOO_CFG};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration-keys.md");
/// Heading of the second table.
const KEEPER: &str = "## ClickHouse Keeper's";
const HONOURED: &str = "honoured";

/// A file of an ensemble with TLS for clients and between members, so that every key counts.
const ZOO_CFG: &[(&str, &str)] = &[
    ("dataDir", "data"),
    ("clientPortAddress", "127.0.0.1"),
    ("clientPort", "2181"),
    ("server.1", "zoo1:2888:3888"),
    ("server.2", "zoo2:2888:3888"),
    ("server.3", "zoo3:2888:3888"),
    ("secureClientPort", "2281"),
    ("ssl.keyStore.location", "/tls/member.pem"),
    ("ssl.trustStore.location", "/tls/ca.pem"),
    ("sslQuorum", "true"),
    ("ssl.quorum.keyStore.location", "/tls/member.pem"),
    ("ssl.quorum.trustStore.location", "/tls/ca.pem"),
];

/// The keys of ClickHouse Keeper. Elements with the same name are told apart by what follows `#`.
const KEEPER_CONFIG: &[(&str, &str)] = &[
    ("keeper_server.server_id", "1"),
    ("keeper_server.tcp_port", "9181"),
    ("keeper_server.tcp_port_secure", "9281"),
    ("keeper_server.storage_path", "data"),
    ("keeper_server.raft_configuration.secure", "true"),
    ("keeper_server.raft_configuration.server.id", "1"),
    ("keeper_server.raft_configuration.server.hostname", "keeper1"),
    ("keeper_server.raft_configuration.server.port", "9234"),
    ("keeper_server.raft_configuration.server#2.id", "2"),
    ("keeper_server.raft_configuration.server#2.hostname", "keeper2"),
    ("keeper_server.raft_configuration.server#2.port", "9234"),
    ("openSSL.server.certificateFile", "/tls/cert.pem"),
    ("openSSL.server.privateKeyFile", "/tls/key.pem"),
    ("openSSL.server.caConfig", "/tls/ca.pem"),
    ("openSSL.client.certificateFile", "/tls/cert.pem"),
    ("openSSL.client.privateKeyFile", "/tls/key.pem"),
    ("openSSL.client.caConfig", "/tls/ca.pem"),
];

#[test]
fn every_key_of_other_servers_is_in_a_table_that_is_true() {
    let page = fs::read_to_string(PAGE).unwrap();
    let mut loads: fn(&str, &str) -> Verdict = of_zoo_cfg;
    let (mut said, mut rows) = (String::new(), 0);
    for line in page.lines() {
        if line.starts_with(KEEPER) {
            loads = of_keeper_config;
        }
        let row = Row::parse(line);
        rows += usize::from(row.is_some());
        let line = row.map_or(line.to_owned(), |row| row.with(loads(row.key, row.value)));
        writeln!(said, "{line}").unwrap();
    }
    assert!(rows > 300, "{rows} rows");
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        fs::write(PAGE, &said).unwrap();
    }
    assert!(!said.contains("not a setting that Paddock knows"), "a key of the tables is not known:\n{said}");
    for (written, said) in page.lines().zip(said.lines()) {
        assert_eq!(written, said, "the second line is what the code says");
    }
}

#[derive(Clone, Copy)]
struct Row<'a> {
    key: &'a str,
    value: &'a str,
    why: &'a str,
}

impl<'a> Row<'a> {
    /// A row of a key; `None` for any other line.
    fn parse(line: &'a str) -> Option<Row<'a>> {
        let rest = line.strip_prefix("| `")?;
        let (key, rest) = rest.split_once("` | `")?;
        let (value, rest) = rest.split_once("` | ")?;
        let (_, why) = rest.split_once(" | ")?;
        Some(Row { key, value, why: why.strip_suffix('|')?.trim() })
    }

    /// The row as it has to be.
    fn with(self, verdict: Verdict) -> String {
        let Row { key, value, why } = self;
        let (here, why) = match verdict {
            Verdict { here: HONOURED, .. } => (HONOURED, why),
            Verdict { here, ref why } => (here, why.as_str()),
        };
        let why = if why.is_empty() { "?" } else { why };
        format!("| `{key}` | `{value}` | {here} | {why} |")
    }
}

/// The parser's word on a key with a value.
struct Verdict {
    here: &'static str,
    why: String,
}

/// Loads a file in which `key` stands on the line `number`.
fn verdict(name: &str, text: &str, number: usize, key: &str) -> Verdict {
    let mut case = Case::with_environment(&[("ZOO_MY_ID", "1")]);
    if key.ends_with("dataDir") || key.ends_with("storage_path") {
        // The data itself need not be there.
        case.overrides.data_dir = Some(case.path().join("data"));
    }
    case.write("zoo.cfg.dynamic", "server.1=zoo1:2888:3888\nserver.2=zoo2:2888:3888\n");
    let text = text.replace("zoo.cfg.dynamic", &case.path().join("zoo.cfg.dynamic").display().to_string());
    let place = format!("{name}:{number}: ");
    let bare = |text: &str| {
        let text = text.strip_prefix(&place).unwrap_or(text);
        let text = text.strip_prefix(&format!("{key} changes nothing: ")).unwrap_or(text);
        let text = text.strip_prefix(&format!("{key}: ")).unwrap_or(text);
        text.strip_prefix(&format!("{name}: ")).unwrap_or(text).replace('|', "\\|")
    };
    let loaded = match case.load_as(name, text) {
        Ok(loaded) => loaded,
        Err(fault) => return Verdict { here: "refused", why: bare(&fault) },
    };
    let remark = loaded.remarks.iter().find(|remark| case.local(*remark).starts_with(&place));
    match remark {
        None => Verdict { here: HONOURED, why: String::new() },
        Some(remark) => {
            let text = case.local(remark);
            let here = if text.contains("changes nothing") { "no effect" } else { "warned" };
            Verdict { here, why: bare(&text) }
        }
    }
}

fn of_zoo_cfg(key: &str, value: &str) -> Verdict {
    let names_members = |other: &str| other.starts_with("server.") && key == "dynamicConfigFile";
    let others = ZOO_CFG.iter().filter(|(other, _)| *other != key && !names_members(other));
    let mut lines: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
    lines.push(format!("{key}={value}"));
    verdict("zoo.cfg", &lines.join("\n"), lines.len(), key)
}

fn of_keeper_config(key: &str, value: &str) -> Verdict {
    let mut settings = KEEPER_CONFIG.to_vec();
    match settings.iter().position(|(other, _)| *other == key) {
        Some(at) => settings[at].1 = value,
        None => {
            let shared = |other: &str| {
                other.split('.').zip(key.split('.')).take_while(|(ours, theirs)| ours == theirs).count()
            };
            let most = settings.iter().map(|(other, _)| shared(other)).max().unwrap_or(0);
            let last = settings.iter().rposition(|(other, _)| shared(other) == most);
            settings.insert(last.filter(|_| most > 0).map_or(settings.len(), |last| last + 1), (key, value));
        }
    }
    let (text, number) = xml(&settings, key);
    verdict("keeper_config.xml", &text, number, key)
}

/// Settings as XML, each on a line of its own, and the line of `key`.
fn xml(settings: &[(&str, &str)], key: &str) -> (String, usize) {
    let name = |segment: &str| segment.split('#').next().unwrap_or_default().to_owned();
    let mut text = "<clickhouse>".to_owned();
    let (mut open, mut number): (Vec<&str>, usize) = (Vec::new(), 0);
    for (index, (path, value)) in settings.iter().enumerate() {
        let segments: Vec<&str> = path.split('.').collect();
        let (leaf, sections) = segments.split_last().unwrap();
        let shared = open.iter().zip(sections).take_while(|(a, b)| a == b).count();
        while open.len() > shared {
            write!(text, "</{}>", name(open.pop().unwrap())).unwrap();
        }
        for section in &sections[shared..] {
            write!(text, "<{}>", name(section)).unwrap();
            open.push(section);
        }
        write!(text, "\n<{0}>{value}</{0}>", name(leaf)).unwrap();
        if *path == key {
            number = index + 2;
        }
    }
    while let Some(section) = open.pop() {
        write!(text, "</{}>", name(section)).unwrap();
    }
    (text + "</clickhouse>\n", number)
}

/// A setting whose place is told is that of the table.
#[test]
fn the_tables_name_the_settings_that_places_are_told_of() {
    let page = fs::read_to_string(Path::new(PAGE)).unwrap();
    let (mut keys, mut compared) = (OF_ZOO_CFG, 0);
    for line in page.lines() {
        if line.starts_with(KEEPER) {
            keys = OF_KEEPER;
        }
        let Some(row) = Row::parse(line).filter(|_| line.contains("| honoured |")) else { continue };
        // Members and stores of TLS have places of their own.
        let is_own = ["raft_configuration", "openSSL"].iter().any(|own| row.key.contains(own));
        let said = row.why.strip_prefix('`').and_then(|why| why.split_once('`')).filter(|_| !is_own);
        let Some((setting, _)) = said else { continue };
        let known = keys.iter().find(|(key, _)| *key == row.key).map(|(_, setting)| *setting);
        assert_eq!(known, Some(setting), "{}", row.key);
        compared += 1;
    }
    assert!(compared > 100, "{compared} rows");
}

/// The two tables are complete as to what the code itself lists.
#[test]
fn the_tables_have_every_key_that_the_code_lists() {
    let page = fs::read_to_string(Path::new(PAGE)).unwrap();
    let lists = super::zoo_keys::MEANINGLESS.iter().map(|(key, _)| *key);
    let fixed = super::zoo_keys::FIXED.iter().chain(super::zoo_keys::BETWEEN_MEMBERS).map(|fixed| fixed.key);
    for key in lists.chain(fixed).filter(|key| *key != "version") {
        let row = format!("\n| `{}", key.trim_end_matches('*'));
        assert!(page.contains(&row), "{key} is missing in docs/configuration-keys.md");
    }
}
