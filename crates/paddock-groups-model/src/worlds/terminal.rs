//! States in which nothing is left to happen.

use stateright::Model;

/// True if no step is left.
pub(super) fn is_terminal<M: Model>(model: &M, state: &M::State) -> bool {
    let mut steps = Vec::new();
    model.actions(state, &mut steps);
    !steps.into_iter().any(|step| model.next_state(state, step).is_some())
}
