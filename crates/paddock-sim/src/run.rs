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

pub(crate) fn run(plan: &RunPlan, telling: Telling) -> (Account, Vec<String>) {
    LAST_WORDS.set(Some(String::new()));
    let lived = panic::catch_unwind(AssertUnwindSafe(|| World::new(plan.clone(), telling).live()));
    let words = LAST_WORDS.take();
    lived.unwrap_or_else(|_| {
        let what = words.unwrap_or_default();
        let violation = Some(Violation { checker: "panic", what });
        (Account { violation, ..Account::default() }, Vec::new())
    })
}

/// Verdict about a seed.
#[derive(Clone, Debug)]
pub(crate) enum SeedVerdict {
    Good(Account),
    Violated(Account),
    /// Two runs were not the same.
    Unsteady,
}

/// Runs a plan twice.
pub(crate) fn judge(plan: &RunPlan) -> SeedVerdict {
    let (first, _) = run(plan, Telling::Hash);
    if first.violation.is_some() {
        return SeedVerdict::Violated(first);
    }
    let (second, _) = run(plan, Telling::Hash);
    if first == second { SeedVerdict::Good(first) } else { SeedVerdict::Unsteady }
}

/// The first lines in which two runs of an unsteady plan differ.
pub(crate) fn difference(plan: &RunPlan) -> Option<(String, String)> {
    let (_, first) = run(plan, Telling::Keep);
    let (_, second) = run(plan, Telling::Keep);
    first.into_iter().zip(second).find(|(first, second)| first != second)
}
