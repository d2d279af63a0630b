//! One run of a plan, from its beginning to its end or to the first violation. A broken invariant of a member, which panics,
//! is one.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

use crate::checks::Violation;
use crate::plan::RunPlan;
use crate::trace::Telling;
use crate::world::{Account, World};

thread_local! {
    /// Message of the last panic of this thread's run; `None` while there is no run.
    static LAST_WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Lets panics be told as violations and not on the screen.
pub(crate) fn catch_panics() {
    let as_usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        LAST_WORDS.with_borrow_mut(|words| match words {
            Some(words) => *words = info.to_string().replace('\n', " "),
            None => as_usual(info),
        });
    }));
}

/// Lives through a run. A panic is a violation.
pub(crate) fn guard(live: impl FnOnce() -> (Account, Vec<String>)) -> (Account, Vec<String>) {
    LAST_WORDS.set(Some(String::new()));
    let lived = panic::catch_unwind(AssertUnwindSafe(live));
    let words = LAST_WORDS.take();
    lived.unwrap_or_else(|_| {
        let what = words.unwrap_or_default();
        let violation = Some(Violation { checker: "panic", what });
        (Account { violation, ..Account::default() }, Vec::new())
    })
}

pub(crate) fn run(plan: &RunPlan, telling: Telling) -> (Account, Vec<String>) {
    guard(|| World::new(plan.clone(), telling).live())
}

/// Verdict about a seed.
#[derive(Clone, Debug)]
pub(crate) enum SeedVerdict {
    Good(Account),
    Violated(Account),
    /// Two runs were not the same.
    Unsteady,
}

/// Lives through a run, twice unless `is_once`.
pub(crate) fn judge(live: impl Fn(Telling) -> (Account, Vec<String>), is_once: bool) -> SeedVerdict {
    let (first, _) = guard(|| live(Telling::Hash));
    if first.violation.is_some() {
        return SeedVerdict::Violated(first);
    }
    if is_once {
        return SeedVerdict::Good(first);
    }
    let (second, _) = guard(|| live(Telling::Hash));
    if first == second { SeedVerdict::Good(first) } else { SeedVerdict::Unsteady }
}

/// The first lines in which two runs differ that should be the same.
pub(crate) fn difference(live: impl Fn(Telling) -> (Account, Vec<String>)) -> Option<(String, String)> {
    let (_, first) = guard(|| live(Telling::Keep));
    let (_, second) = guard(|| live(Telling::Keep));
    first.into_iter().zip(second).find(|(first, second)| first != second)
}
