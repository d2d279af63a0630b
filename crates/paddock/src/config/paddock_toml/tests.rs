use std::fs;

use paddock_server::{Config, WordList};

use super::super::{Loaded, Overrides, load};

fn load_text(text: &str) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("paddock.toml");
    fs::write(&file, text).unwrap();
    load(Some(&file), &Overrides::default())
        .map_err(|fault| fault.to_string().replace(&format!("{}/", dir.path().display()), ""))
}

#[track_caller]
fn check(text: &str, expected: Config) {
    let loaded = load_text(text).unwrap();
    assert_eq!(loaded.config, expected, "{text}");
    assert_eq!(loaded.remarks, [], "{text}");
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(load_text(text).unwrap_err(), expected, "{text}");
}

fn defaults() -> Config {
    Config::new("paddock-data")
}

#[test]
fn an_empty_file_says_nothing() {
    check("", defaults());
    check("# comment\n", defaults());
}

#[test]
fn every_key_sets_its_field() {
    const DIGEST: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    for (text, expected) in [
        ("listen = 'localhost:2182'", Config { listen: "127.0.0.1:2182".parse().unwrap(), ..defaults() }),
        ("data_dir = '/d'", Config::new("/d")),
        ("log_dir = '/l'", Config { log_dir: Some("/l".into()), ..defaults() }),
        ("member = 255", Config { member: 255, ..defaults() }),
        ("session_timeout_ms_min = 5", Config { session_timeout_ms_min: 5, ..defaults() }),
        ("session_timeout_ms_max = 90_000", Config { session_timeout_ms_max: 90_000, ..defaults() }),
        ("connections_per_address_max = 0", Config { connections_per_address_max: 0, ..defaults() }),
        ("connections_max = 9", Config { connections_max: 9, ..defaults() }),
        ("frame_bytes_max = 0xfffff", Config { frame_bytes_max: 0xfffff, ..defaults() }),
        ("words = ['ruok']", Config { words: WordList::Only(vec!["ruok".into()]), ..defaults() }),
        ("words = []", Config { words: WordList::Only(vec![]), ..defaults() }),
        ("words = ['*']", Config { words: WordList::All, ..defaults() }),
        (&format!("super_digest = '{DIGEST}'"), Config { super_digest: Some(DIGEST.into()), ..defaults() }),
        ("garbage_interval_ms = 100", Config { garbage_interval_ms: 100, ..defaults() }),
        ("garbage_max = 5", Config { garbage_max: 5, ..defaults() }),
        ("snapshot_writes = 7", Config { snapshot_writes: 7, ..defaults() }),
        ("snapshot_log_bytes = 8", Config { snapshot_log_bytes: 8, ..defaults() }),
        ("snapshots_kept = 1", Config { snapshots_kept: 1, ..defaults() }),
        ("segment_bytes = 65536", Config { segment_bytes: 65536, ..defaults() }),
        ("workers = 4", Config { workers: 4, ..defaults() }),
    ] {
        check(text, expected);
    }
}

#[test]
fn session_timeouts_follow_the_tick_unless_they_are_said() {
    let timeouts =
        Config { tick_ms: 500, session_timeout_ms_min: 1000, session_timeout_ms_max: 10_000, ..defaults() };
    check("tick_ms = 500", timeouts.clone());
    check("session_timeout_ms_min = 1\ntick_ms = 500", Config { session_timeout_ms_min: 1, ..timeouts });
    check_refused(
        "session_timeout_ms_max = 3999",
        "paddock.toml: the shortest session timeout, 4000 ms, is longer than the longest, 3999 ms",
    );
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    for (text, expected) in [
        (
            "\n\ntick_ms = '2s'",
            "paddock.toml:3: tick_ms: expected a positive number of milliseconds, found '2s'",
        ),
        ("tick_ms = 0", "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found 0"),
        ("tick_ms = '5'", "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found '5'"),
        ("tick_ms = 2.5", "paddock.toml:1: tick_ms: expected a positive number of milliseconds, found 2.5"),
        ("member = 256", "paddock.toml:1: member: expected a number from 1 to 255, found 256"),
        (
            "listen = 2181",
            "paddock.toml:1: listen: expected ADDRESS:PORT, such as 127.0.0.1:2181, found 2181",
        ),
        ("data_dir = ''", "paddock.toml:1: data_dir: expected a path, found ''"),
        (
            "words = [\n  'ruok',\n  4,\n]",
            "paddock.toml:1: words: expected a list of words, such as [\"srvr\", \"ruok\"] or [\"*\"], \
             found [ 'ruok', 4, ]",
        ),
        (
            "segment_bytes = 65537",
            "paddock.toml:1: segment_bytes: expected a multiple of 4096 from 65536 to 1073741824, found 65537",
        ),
        ("workers = 1025", "paddock.toml:1: workers: expected a number of threads up to 1024, found 1025"),
    ] {
        check_refused(text, expected);
    }
}

#[test]
fn a_file_that_is_no_toml_is_one_line() {
    for text in ["listen = \n", "x = 1\ntickTime 2000\n", "a = 1\na = 2\n", "words = ["] {
        let line = load_text(text).unwrap_err();
        assert!(line.starts_with("paddock.toml:"), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn unknown_keys_are_named_with_their_lines() {
    let loaded = load_text("tickTime = 2000\n\n[server]\nmember = 3\n").unwrap();
    assert_eq!(loaded.config, defaults());
    let remarks: Vec<String> = loaded.remarks.iter().map(ToString::to_string).collect();
    for (remark, (line, key)) in remarks.iter().zip([(1, "tickTime"), (3, "server")]) {
        let expected =
            format!("paddock.toml:{line}: {key} is not a setting that Paddock knows; it is ignored");
        assert!(remark.ends_with(&expected), "{remark}");
    }
    assert_eq!(remarks.len(), 2);
}

#[test]
fn the_example_says_every_key_and_its_default() {
    let example = include_str!("../../../../../docs/examples/paddock.toml");
    check(example, defaults());
    // What has no default stands there as a comment.
    check(
        &example.replace("# log_dir", "log_dir"),
        Config { log_dir: Some("/fast-disk/paddock".into()), ..defaults() },
    );
    let page = include_str!("../../../../../docs/configuration.md");
    for line in example.lines() {
        let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ") else { continue };
        assert!(page.contains(&format!("| `{key}` |")), "{key} is missing in docs/configuration.md");
    }
}
