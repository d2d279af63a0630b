//! Numbers of tests that passed and failed, read from what the test runners report.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl TestCounts {
    /// Adds up the `test result:` lines of `cargo test`, one for each test program.
    pub(crate) fn from_cargo(output: &str) -> Self {
        let mut sum = Self::default();
        for line in output.lines().filter(|line| line.starts_with("test result:")) {
            sum += Self {
                passed: number_before(line, " passed"),
                failed: number_before(line, " failed"),
                skipped: number_before(line, " ignored"),
            };
        }
        sum
    }

    /// Reads the simulator's last line, which counts its seeds.
    pub(crate) fn from_simulator(output: &str) -> Self {
        let line = output.lines().rfind(|line| line.contains(" seeds passed, ")).unwrap_or_default();
        Self {
            passed: number_before(line, " seeds passed"),
            failed: number_before(line, " failed"),
            skipped: 0,
        }
    }

    /// Reads the last line of the models of groups, which counts their worlds.
    pub(crate) fn from_models(output: &str) -> Self {
        let line = output.lines().rfind(|line| line.contains(" worlds passed, ")).unwrap_or_default();
        Self {
            passed: number_before(line, " worlds passed"),
            failed: number_before(line, " failed"),
            skipped: 0,
        }
    }

    /// Counts tests that found that they cannot run here and said so: `skipped: REASON`. To their runner they passed.
    pub(crate) fn with_skipped(self, output: &str) -> Self {
        let skipped = output.lines().filter(|line| line.contains(" skipped: ")).count() as u64;
        Self { passed: self.passed.saturating_sub(skipped), skipped: self.skipped + skipped, ..self }
    }

    /// Counts what `go test -v` says of each test.
    pub(crate) fn from_go(output: &str) -> Self {
        let count = |start| output.lines().filter(|line| line.starts_with(start)).count() as u64;
        Self { passed: count("--- PASS: "), failed: count("--- FAIL: "), skipped: count("--- SKIP: ") }
    }

    /// Adds up the suites of a JUnit report, which pytest and JUnit write alike.
    pub(crate) fn from_junit(report: &str) -> Self {
        let mut sum = Self::default();
        for suite in report.split("<testsuite ").skip(1) {
            let head = &suite[..suite.find('>').unwrap_or(suite.len())];
            let failed = attribute(head, "failures") + attribute(head, "errors");
            let skipped = attribute(head, "skipped");
            // A test can have both a failure and an error, in itself and in its teardown.
            let passed = attribute(head, "tests").saturating_sub(failed + skipped);
            sum += Self { passed, failed, skipped };
        }
        sum
    }
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The number that ends where `words` begins: 5 for " passed" in "ok. 5 passed; 0 failed".
fn number_before(line: &str, words: &str) -> u64 {
    let end = line.find(words).unwrap_or(0);
    let start = line[..end].rfind(|character: char| !character.is_ascii_digit()).map_or(0, |last| last + 1);
    line[start..end].parse().unwrap_or(0)
}

fn attribute(element: &str, name: &str) -> u64 {
    let start = format!(" {name}=\"");
    let element = format!(" {element}");
    let Some((_, rest)) = element.split_once(&start) else { return 0 };
    rest.split('"').next().and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::TestCounts;

    #[test]
    fn cargo_results_are_added_up() {
        let output = "running 2 tests\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured\n\
                      test a ... ok\ntest result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured\n";
        assert_eq!(TestCounts::from_cargo(output), TestCounts { passed: 15, failed: 2, skipped: 1 });
        assert_eq!(TestCounts::from_cargo("error: could not compile"), TestCounts::default());
    }

    #[test]
    fn who_says_that_it_was_skipped_has_not_passed() {
        let output = "running 2 tests\ncut: skipped: no namespaces\ntest cut ... ok\n";
        let counts = TestCounts { passed: 2, failed: 0, skipped: 1 };
        assert_eq!(counts.with_skipped(output), TestCounts { passed: 1, failed: 0, skipped: 2 });
    }

    #[test]
    fn seeds_are_counted() {
        let output =
            "seed 7, step 9, commit x: lost\n199 seeds passed, 1 failed in 5.0 s: 8 writes acknowledged\n";
        assert_eq!(TestCounts::from_simulator(output), TestCounts { passed: 199, failed: 1, skipped: 0 });
        assert_eq!(TestCounts::from_simulator("error: could not compile"), TestCounts::default());
    }

    #[test]
    fn worlds_are_counted() {
        let output = "| `streams` | rules | holds | 364 | 0.9 s\n41 worlds passed, 2 failed\n";
        assert_eq!(TestCounts::from_models(output), TestCounts { passed: 41, failed: 2, skipped: 0 });
        assert_eq!(TestCounts::from_models("error: could not compile"), TestCounts::default());
    }

    #[test]
    fn go_tests_are_counted() {
        let output = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n";
        assert_eq!(TestCounts::from_go(output), TestCounts { passed: 1, failed: 1, skipped: 0 });
    }

    #[test]
    fn junit_suites_are_added_up() {
        let report = r#"<testsuites name="x" tests="99">
            <testsuite name="a" errors="1" failures="2" skipped="3" tests="10">
            <testcase name="t" failures="7"/></testsuite>
            <testsuite tests="4" name="b"/></testsuites>"#;
        assert_eq!(TestCounts::from_junit(report), TestCounts { passed: 8, failed: 3, skipped: 3 });
    }
}
