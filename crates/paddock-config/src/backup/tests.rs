use std::num::NonZeroUsize;
use std::time::Duration;

use super::super::case::Case;
use super::super::shown::shown_with_origins;
use super::BackupSettings;

const KEEPER: &str = "<clickhouse><keeper_server><server_id>1</server_id><tcp_port>9181</tcp_port>\
                      <storage_path>data</storage_path><backup>";
const KEEPER_END: &str = "</backup></keeper_server></clickhouse>";

fn load(name: &str, text: &str) -> Result<Option<BackupSettings>, String> {
    let mut case = Case::new();
    case.overrides.data_dir = Some(case.path().join("data"));
    case.load_as(name, text).map(|loaded| loaded.backup)
}

fn settings(to: &str, full_ms: u64, log_ms: u64, keep: usize) -> Option<BackupSettings> {
    Some(BackupSettings {
        to: to.to_owned(),
        full_interval: Duration::from_millis(full_ms),
        log_interval: Duration::from_millis(log_ms),
        keep: NonZeroUsize::new(keep).unwrap(),
    })
}

#[test]
fn every_form_of_file_says_where_backups_go() {
    let expected = settings("s3://bucket/paddock", 3_600_000, 60_000, 3);
    let toml = "[backup]\nto = 's3://bucket/paddock'\nfull_interval_ms = 3_600_000\nlog_interval_ms = 60000\nkeep = 3\n";
    assert_eq!(load("paddock.toml", toml), Ok(expected.clone()));
    let zoo_cfg = "dataDir=data\nclientPort=2181\npaddock.backup.to=s3://bucket/paddock\npaddock.backup.full_interval_ms=3600000\n\
                   paddock.backup.log_interval_ms=60000\npaddock.backup.keep=3\n";
    assert_eq!(load("zoo.cfg", zoo_cfg), Ok(expected.clone()));
    let keeper = format!(
        "{KEEPER}<to>s3://bucket/paddock</to><full_interval_ms>3600000</full_interval_ms>\
         <log_interval_ms>60000</log_interval_ms><keep>3</keep>{KEEPER_END}"
    );
    assert_eq!(load("keeper_config.xml", &keeper), Ok(expected));
}

#[test]
fn a_place_alone_is_enough() {
    assert_eq!(load("paddock.toml", ""), Ok(None));
    let defaults = settings("/backups", 24 * 3_600_000, 300_000, 7);
    assert_eq!(load("paddock.toml", "[backup]\nto = '/backups'\n"), Ok(defaults));
}

#[test]
fn what_cannot_be_is_refused_with_what_is_expected() {
    for (text, expected) in [
        (
            "[backup]\nkeep = 3\n",
            "paddock.toml: backup: to is missing, the place of the backups: a directory, or s3://BUCKET/PREFIX",
        ),
        (
            "[backup]\nto = 'http://bucket'\n",
            "paddock.toml:2: backup.to: expected a directory, or s3://BUCKET/PREFIX, found 'http://bucket'",
        ),
        (
            "[backup]\nto = 's3://'\n",
            "paddock.toml:2: backup.to: expected a directory, or s3://BUCKET/PREFIX, found 's3://'",
        ),
        (
            "[backup]\nto = 'x'\nlog_interval_ms = 5\n",
            "paddock.toml:3: backup.log_interval_ms: expected a number of milliseconds, at least 1000, found 5",
        ),
        (
            "[backup]\nto = 'x'\nkeep = 0\n",
            "paddock.toml:3: backup.keep: expected a positive number of backups, found 0",
        ),
        ("[backup]\ninto = 'x'\n", "paddock.toml:2: backup.into is not a setting that Paddock knows"),
        (
            "engine = 'etcd'\n[etcd]\nendpoints = ['http://127.0.0.1:1']\n[backup]\nto = 'x'\n",
            "paddock.toml: backup: the engine etcd keeps nothing here that could be backed up: back etcd up, or leave backup out",
        ),
    ] {
        assert_eq!(load("paddock.toml", text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn it_is_shown_as_it_would_be_written() {
    let case = Case::new();
    let loaded = case.load_as("paddock.toml", "[backup]\nto = '/backups'\nkeep = 3\n").unwrap();
    let page = shown_with_origins(&loaded.config, loaded.backup.as_ref(), &loaded.origins);
    let (_, table) = page.split_once("[backup]\n").unwrap();
    let expected = "to = \"/backups\"  # paddock.toml:2\nfull_interval_ms = 86400000\nlog_interval_ms = 300000\nkeep = 3  # paddock.toml:3\n";
    assert!(case.local(&table.to_owned()).starts_with(expected), "{table}");
}
