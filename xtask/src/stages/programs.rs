//! Programs of tests. One Cargo command compiles those of all packages; a stage runs its own.
//!
//! `cargo test --package` would give dependencies only the features that this package and those below it ask for, and compile
//! them, and all that stands on them, once more.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use super::network;
use crate::layout::Layout;
use crate::process::{self, Error, Program};

/// A compiled program of a package.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Compiled {
    /// The package's directory, in which its tests run.
    pub(super) directory: PathBuf,
    pub(super) name: String,
    /// As Cargo calls it: `test`, `example`, and `lib` or `bin` for the tests beside the code.
    kind: String,
    program: PathBuf,
}

/// Niceness of Cargo beside stages that run already, and wait a lot.
const COMPILER_NICENESS: u32 = 10;

/// Compiles what the options of `cargo test` name, or everything if there are none; with all features of all packages.
pub(super) fn compile(layout: &Layout, stage: &str, options: &[&str]) -> Result<Vec<Compiled>, Error> {
    let cargo = layout.nice_cargo(COMPILER_NICENESS);
    let cargo = cargo.args(["test", "--no-run", "--workspace", "--all-features"]);
    let cargo = cargo.arg("--message-format=json-render-diagnostics").args(options);
    let told = cargo.output_beside_log(&layout.log(stage))?;
    let mut compiled: Vec<Compiled> = told.lines().filter_map(Compiled::parse).collect();
    compiled.sort();
    Ok(compiled)
}

impl Compiled {
    /// Out of what Cargo says of something that it has compiled; `None` if that is no program to run.
    fn parse(json: &str) -> Option<Compiled> {
        let told: Value = serde_json::from_str(json).ok()?;
        let is_test = told.pointer("/profile/test")?.as_bool()?;
        let kind = told.pointer("/target/kind/0")?.as_str()?;
        // An example that is named to Cargo is compiled as a test of itself, too.
        let program = told["executable"].as_str().filter(|_| is_test != (kind == "example"))?;
        Some(Compiled {
            directory: Path::new(told["manifest_path"].as_str()?).parent()?.to_owned(),
            name: told.pointer("/target/name")?.as_str()?.to_owned(),
            kind: kind.to_owned(),
            program: program.into(),
        })
    }

    pub(super) fn is_example(&self) -> bool {
        self.kind == "example"
    }

    /// False also for the tests beside the code.
    pub(super) fn is_integration_test(&self) -> bool {
        self.kind == "test"
    }

    fn heading(&self) -> String {
        format!("     Running {} of {}", self.name, self.directory.display())
    }

    /// The program, to be run where Cargo would run it.
    pub(super) fn program(&self) -> Program {
        network::program(&self.program)
            .current_dir(&self.directory)
            // Else it is the one of this program.
            .env("CARGO_MANIFEST_DIR", &self.directory)
    }
}

/// Runs programs one after another; true if all of them succeed. Their output goes to the log of the stage.
pub(super) fn run(
    layout: &Layout,
    stage: &str,
    programs: &[Compiled],
    arguments: &[&str],
    variables: &[(&'static str, OsString)],
) -> Result<bool, Error> {
    let log = layout.log(stage);
    let mut success = true;
    for compiled in programs {
        process::note(&log, &compiled.heading())?;
        let mut program = compiled.program().args(arguments);
        for (name, value) in variables {
            program = program.env(name, value);
        }
        success &= program.log_to(&log).status()?.success();
    }
    Ok(success)
}

/// Runs as many programs at a time as there are `lanes`, and begins them in their order; true if all of them succeed. The log of the stage gets the output of
/// each when it has ended.
pub(super) fn run_side_by_side(
    layout: &Layout,
    stage: &str,
    programs: &[Compiled],
    arguments: &[&str],
    lanes: usize,
) -> Result<bool, Error> {
    let log = layout.log(stage);
    let waiting = Mutex::new(programs.iter());
    let lane = || {
        let mut success = true;
        loop {
            // The lock is let go before the program runs.
            let next = waiting.lock().expect("no lane panics while it holds the lock").next();
            let Some(compiled) = next else { return Ok(success) };
            let (status, output) = compiled.program().args(arguments).ended_with_output()?;
            process::note(&log, &format!("{}\n{output}", compiled.heading()))?;
            success &= status.success();
        }
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let ended = lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic"));
        let ended: Vec<Result<bool, Error>> = ended.collect();
        ended.into_iter().try_fold(true, |success, lane| Ok(success & lane?))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn told(kind: &str, test: bool, executable: &str) -> String {
        let target = format!(r#""target":{{"kind":["{kind}"],"name":"n"}},"profile":{{"test":{test}}}"#);
        format!(r#"{{"manifest_path":"/p/crates/x/Cargo.toml",{target},"executable":{executable}}}"#)
    }

    #[test]
    fn programs_of_tests_and_examples_are_found() {
        let expected = |kind: &str| Compiled {
            directory: "/p/crates/x".into(),
            name: "n".to_owned(),
            kind: kind.to_owned(),
            program: "/t/n".into(),
        };
        for (kind, test) in [("test", true), ("lib", true), ("example", false)] {
            assert_eq!(Compiled::parse(&told(kind, test, r#""/t/n""#)), Some(expected(kind)));
        }
        let test_of_example = told("example", true, r#""/t/n""#);
        let no_tests = [told("lib", false, "null"), told("bin", false, r#""/t/n""#), test_of_example];
        for other in no_tests.iter().map(String::as_str).chain(["{}", "no json"]) {
            assert_eq!(Compiled::parse(other), None, "{other}");
        }
    }

    #[test]
    fn programs_side_by_side_succeed_if_all_of_them_do() {
        let stage = "test-of-side-by-side";
        let layout = Layout::find();
        let log = layout.log(stage);
        let _ = fs::remove_file(&log);
        let compiled = |name: &str| Compiled {
            directory: "/".into(),
            name: name.to_owned(),
            kind: "test".to_owned(),
            program: name.into(),
        };
        for (names, expected) in [(&["true", "true", "true"], true), (&["true", "false", "true"], false)] {
            let programs = names.map(compiled);
            assert_eq!(
                run_side_by_side(&layout, stage, &programs, &[], 2).expect("they are there"),
                expected
            );
        }
        let text = fs::read_to_string(&log).expect("it is written");
        assert_eq!(text.matches("Running true of /").count(), 5, "{text}");
        fs::remove_file(&log).expect("it was read");
    }
}
