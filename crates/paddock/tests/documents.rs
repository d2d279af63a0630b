//! Completions and manual pages, as packages have them, and the version.

#[path = "shared/process.rs"]
mod process;

use std::fs;

use process::{check_refused, directory, run};

#[test]
fn each_shell_gets_a_script_that_knows_the_commands() {
    let dir = directory();
    for (shell, start) in
        [("bash", "_paddock() {"), ("zsh", "#compdef paddock"), ("fish", "# Print an optspec")]
    {
        let output = run(dir.path(), &["completions", shell]);
        let script = String::from_utf8(output.stdout).expect("it is text");
        assert!(output.status.success() && script.starts_with(start), "{shell}: {script}");
        for word in ["server", "import", "data-dir"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn each_command_has_a_page_and_keeps_the_lines_of_its_examples() {
    let dir = directory();
    assert!(run(dir.path(), &["man", "--to", "."]).status.success());
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).expect("it was written");
    let server = page("paddock-server.1");
    assert!(server.contains("\n.SH EXAMPLES\n.nf\n  paddock server\n"), "{server}");
    assert!(!server.contains("EXTRA"), "{server}");
    for name in ["paddock.1", "paddock-import-zookeeper.1", "paddock-bench-run.1"] {
        assert!(page(name).contains(".SH NAME"), "{name}");
    }
    assert!(!dir.path().join("paddock-man.1").exists(), "it is for packagers");
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let dir = directory();
    let line = "write pages: No such file or directory (os error 2)";
    check_refused(dir.path(), &["man", "--to", "pages"], 1, line);
}

#[test]
fn the_version_is_told_with_the_formats_of_data() {
    let dir = directory();
    let told = |args: &[&str]| String::from_utf8(run(dir.path(), args).stdout).expect("it is text");
    let first = format!("paddock {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(told(&["version"]), first);
    assert_eq!(told(&["--version"]), first);
    let verbose = told(&["version", "--verbose"]);
    assert!(verbose.starts_with(&first), "{verbose}");
    for line in [
        "commit: ",
        "target: ",
        "engines: log, etcd",
        "transaction log: 1 to ",
        "tree in a snapshot: 3 to ",
        "links between members: ",
        "feature level: ",
        "  1: wide member numbers, since 0.9.0",
    ] {
        assert!(verbose.lines().any(|found| found.starts_with(line)), "{line} is missing: {verbose}");
    }
}
