//! A model with a name, and one run of the checker over it.
//!
//! A run that should find nothing goes depth first, which holds few states in memory, and ends when all states were visited or when there are
//! too many. One that should find a mistake goes breadth first, so that the steps to it are as few as possible.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// The end that a run of a world has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Every property holds in every state, and each state that a property wants to be reached is.
    Holds,
    /// The property of this name is broken: a mistake is planted.
    Finds(&'static str),
}

/// The number of states of a world, by the tests that run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A second or two in a release: runs with the tests beside the code.
    Small,
    /// Up to minutes: runs in the stage `groups-model` of `cargo xtask test --all`.
    Large,
}

type Checking = Box<dyn Fn(Expected, Bounds) -> ModelRun + Send + Sync>;

/// States and steps at which a run is cut off.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    states: usize,
    /// States on a way, the first one included; one more is not looked at.
    depth: Option<usize>,
}

/// A model with its name, the rules that it is about, and the end that is expected of a run.
pub struct ModelWorld {
    /// Name on the command line: `multi`, or `multi/no-vote` for a world with a mistake.
    pub name: String,
    /// The rules that are at work in it, or the mistake that is planted, as the page says it.
    pub about: String,
    /// The end that a run has to have.
    pub expected: Expected,
    /// The tests that run it.
    pub size: Size,
    search: Checking,
}

impl ModelWorld {
    /// A small world in which every property holds.
    pub fn holds<M>(name: impl Into<String>, about: impl Into<String>, model: M) -> ModelWorld
    where
        M: Model + Clone + Send + Sync + 'static,
        M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        M::Action: Clone + Debug + PartialEq,
    {
        let search = move |expected, bounds| search(model.clone(), expected, bounds);
        ModelWorld {
            name: name.into(),
            about: about.into(),
            expected: Expected::Holds,
            size: Size::Small,
            search: Box::new(search),
        }
    }

    /// A small world with a planted mistake, by which the named property breaks.
    pub fn finds<M>(
        name: impl Into<String>,
        about: impl Into<String>,
        property: &'static str,
        model: M,
    ) -> ModelWorld
    where
        M: Model + Clone + Send + Sync + 'static,
        M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        M::Action: Clone + Debug + PartialEq,
    {
        assert!(
            model.properties().iter().any(|known| known.name == property),
            "a model has no property {property:?}"
        );
        ModelWorld { expected: Expected::Finds(property), ..ModelWorld::holds(name, about, model) }
    }

    /// Makes this a large world, for the tests that may take long.
    pub fn large(self) -> ModelWorld {
        ModelWorld { size: Size::Large, ..self }
    }

    /// Runs the checker in one thread. It stops at the end that is expected, at a broken property, or a little after it has made this number
    /// of states, those that it had met before included.
    pub fn run(&self, max_states: usize) -> ModelRun {
        (self.search)(self.expected, Bounds { states: max_states, depth: None })
    }

    /// The shortest way to a broken property, or none if it does not break within this number of states.
    pub fn shortest_way(&self, property: &'static str, max_states: usize) -> Option<Broken> {
        let mut shortest: Option<Broken> = None;
        loop {
            let depth = shortest.as_ref().map(|broken| broken.steps.len() + 1);
            let verdict = (self.search)(Expected::Finds(property), Bounds { states: max_states, depth });
            match verdict.finds(property) {
                Some(broken) => shortest = Some(broken.clone()),
                None => return shortest,
            }
        }
    }
}

impl Debug for ModelWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelWorld { name, expected, size, .. } = self;
        formatter
            .debug_struct("ModelWorld")
            .field("name", name)
            .field("expected", expected)
            .field("size", size)
            .finish()
    }
}

/// A property that is broken, and the steps from the first state to one that breaks it.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Name of the property.
    pub property: &'static str,
    /// Each step as the model prints it.
    pub steps: Vec<String>,
}

/// The account of a run.
#[derive(Clone, Debug)]
pub struct ModelRun {
    /// States that were met, each counted once.
    pub states: usize,
    /// Steps of the longest way that was tried.
    pub depth: usize,
    /// True if the run ended for its number of states: what it did not find may still be there.
    pub is_cut_off: bool,
    /// Properties that do not hold.
    pub broken: Vec<Broken>,
    /// Properties that want some state to be reached, of which none was.
    pub unreached: Vec<&'static str>,
    /// Time that it took.
    pub time: Duration,
}

impl ModelRun {
    /// True if the run ended as expected. One that was cut off has found nothing wrong as far as it went.
    pub fn is(&self, expected: Expected) -> bool {
        match expected {
            Expected::Holds => self.broken.is_empty() && (self.is_cut_off || self.unreached.is_empty()),
            Expected::Finds(property) => self.finds(property).is_some(),
        }
    }

    /// The broken property of this name.
    pub fn finds(&self, property: &str) -> Option<&Broken> {
        self.broken.iter().find(|broken| broken.property == property)
    }
}

fn search<M>(model: M, expected: Expected, bounds: Bounds) -> ModelRun
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let start = Instant::now();
    let mut builder = model.checker().threads(1).target_state_count(bounds.states);
    if let Some(depth) = bounds.depth {
        builder = builder.target_max_depth(depth);
    }
    match expected {
        Expected::Holds => {
            let checker = builder.finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
            account(checker, bounds.states, start)
        }
        Expected::Finds(property) => {
            let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
            account(builder.finish_when(found).spawn_bfs().join(), bounds.states, start)
        }
    }
}

fn account<M>(checker: impl Checker<M>, max_states: usize, start: Instant) -> ModelRun
where
    M: Model,
    M::State: Clone + Debug + Hash + PartialEq,
    M::Action: Clone + Debug + PartialEq,
{
    let discoveries = checker.discoveries();
    let properties = checker.model().properties();
    let is_failure = |name: &str| {
        properties.iter().any(|known| known.name == name && known.expectation != Expectation::Sometimes)
    };
    let unreached = properties.iter().filter(|known| known.expectation == Expectation::Sometimes);
    let unreached: Vec<&'static str> =
        unreached.map(|known| known.name).filter(|name| !discoveries.contains_key(name)).collect();
    let mut broken: Vec<Broken> = discoveries
        .into_iter()
        .filter(|(property, _)| is_failure(property))
        .map(|(property, path)| {
            let steps = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
            Broken { property, steps }
        })
        .collect();
    broken.sort_by_key(|broken| broken.property);
    ModelRun {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        is_cut_off: broken.is_empty() && checker.state_count() >= max_states,
        broken,
        unreached,
        time: start.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use stateright::Property;

    use super::*;

    const LIMIT: &str = "the counter stays below its limit";
    const MANY: usize = 1_000_000;

    /// Counts to 3,000 by steps of one or two.
    #[derive(Clone, Debug)]
    struct Counter {
        limit: u32,
    }

    impl Model for Counter {
        type State = u32;
        type Action = u32;

        fn init_states(&self) -> Vec<u32> {
            vec![0]
        }

        fn actions(&self, _: &u32, actions: &mut Vec<u32>) {
            actions.extend([1, 2]);
        }

        fn next_state(&self, state: &u32, action: u32) -> Option<u32> {
            Some(state + action).filter(|next| *next <= 3_000)
        }

        fn properties(&self) -> Vec<Property<Self>> {
            vec![
                Property::always(LIMIT, |model: &Counter, state| *state < model.limit),
                Property::sometimes("it ends", |_, state| *state == 3_000),
            ]
        }
    }

    #[test]
    fn a_world_that_holds_is_visited_whole() {
        let verdict = ModelWorld::holds("counter", "", Counter { limit: 3_001 }).run(MANY);
        assert!(verdict.is(Expected::Holds), "{verdict:?}");
        assert_eq!((verdict.states, verdict.is_cut_off), (3_001, false));
    }

    #[test]
    fn a_mistake_is_found_and_the_shortest_way_to_it() {
        let world = ModelWorld::finds("counter/limit", "", LIMIT, Counter { limit: 7 });
        let verdict = world.run(MANY);
        assert!(verdict.is(world.expected), "{verdict:?}");
        assert!(!verdict.is(Expected::Holds));
        assert_eq!(world.shortest_way(LIMIT, MANY).expect("the limit is broken").steps.len(), 4);
    }

    #[test]
    fn a_mistake_that_is_not_there_is_not_found() {
        let world = ModelWorld::finds("counter/limit", "", LIMIT, Counter { limit: 3_001 });
        assert!(!world.run(MANY).is(world.expected));
    }

    #[test]
    fn a_run_that_is_cut_off_says_so() {
        let verdict = ModelWorld::holds("counter", "", Counter { limit: 3_001 }).run(100);
        assert!(verdict.is_cut_off && verdict.is(Expected::Holds), "{verdict:?}");
    }

    #[test]
    fn a_state_that_has_to_be_reached_is_missed() {
        let verdict = ModelRun {
            unreached: vec!["it ends"],
            ..ModelWorld::holds("c", "", Counter { limit: 3_001 }).run(MANY)
        };
        assert!(!verdict.is(Expected::Holds));
    }
}
