//! The pages that list the settings of Paddock's own file are what the rows say.
//!
//! `UPDATE_SCRIPTS=1 cargo test -p paddock-config settings_page` writes them.

use std::fs;

use paddock_server::Config;
use paddock_settings::{SettingForm, SettingRow};

use super::origins::OF_ZOO_CFG;
use super::rows;
use super::shown::shown;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/paddock.toml");
/// First lines of the table of settings.
const HEAD: &str = "| key | unit | default | in `zoo.cfg` | what it is |\n|---|---|---|---|---|\n";
/// Begins the part of the example that is about tables.
const TABLES: &str = "\n# [sasl]\n";
/// A number above which the end of a range is too far off to matter.
const FAR: i64 = i32::MAX as i64;

/// Values that a setting may have, for the column `unit`.
fn unit(form: SettingForm) -> String {
    match form {
        SettingForm::Flag => "true or false".to_owned(),
        SettingForm::Other(form) => form.to_owned(),
        SettingForm::Number { unit, min, max, multiple_of: 1 } => match (min, max) {
            (0 | 1, FAR..) => unit.to_owned(),
            (_, FAR..) => format!("{unit}, at least {min}"),
            (min, max) => format!("{unit}, {min} to {max}"),
        },
        SettingForm::Number { unit, min, max, multiple_of } => {
            format!("{unit}, a multiple of {multiple_of} from {min} to {max}")
        }
    }
}

/// Names of a setting in a `zoo.cfg`, with commas between them.
fn zoo_names(key: &str) -> String {
    if key == "member" {
        return "`myid` in `dataDir`".to_owned();
    }
    let names = OF_ZOO_CFG.iter().filter(|(_, setting)| *setting == key).map(|(name, _)| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

fn line(row: &SettingRow) -> String {
    let star = if row.is_taken_while_running { " *" } else { "" };
    let about = row.about.strip_suffix('.').unwrap_or(row.about);
    format!(
        "| `{}`{star} | {} | {} | {} | {about} |\n",
        row.key,
        unit(row.form),
        row.default,
        zoo_names(row.key)
    )
}

/// A file, unless it says what it should; then the file is written if that is asked for.
#[track_caller]
fn check(path: &str, expected: &str) {
    let found = fs::read_to_string(path).unwrap();
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        fs::write(path, expected).unwrap();
        return;
    }
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "the second line is what the rows say: see the head of this file");
    }
    assert_eq!(found.len(), expected.len(), "{path} has other lines than the rows");
}

#[test]
fn the_table_of_settings_is_what_the_rows_say() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(HEAD).expect("the page has the table");
    let end = rest.find("\n\n").expect("text follows the table") + 1;
    let lines: String = rows::all().iter().map(line).collect();
    check(PAGE, &format!("{before}{HEAD}{lines}{}", &rest[end..]));
}

/// Settings that the example does not have yet are added behind the others.
#[test]
fn the_example_has_every_setting() {
    let example = fs::read_to_string(EXAMPLE).unwrap();
    let (settings, tables) = example.split_once(TABLES).expect("the example has tables behind the settings");
    let defaults = shown(&Config::default(), None);
    let mut expected = settings.to_owned();
    for row in rows::all() {
        let begins = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{} = ", row.key));
        if settings.lines().any(begins) {
            continue;
        }
        let default = defaults.lines().find(|line| begins(line));
        expected += default.unwrap_or_else(|| panic!("{} has no default: add an example by hand", row.key));
        expected.push('\n');
    }
    check(EXAMPLE, &format!("{expected}{TABLES}{tables}"));
}
