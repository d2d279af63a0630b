//! A member with one group, in one piece: for those who drive a replica without a disk.

use paddock_state::Now;

use crate::{
    Applied, Effects, Group, HeldState, Input, MemberFacts, Presence, Recovered, Replica, ReplicaOptions,
    Replicated,
};

/// A member of an ensemble with one group.
#[derive(Debug)]
pub struct SingleGroup {
    pub presence: Presence,
    pub group: Group,
}

impl SingleGroup {
    /// A member as its disk describes it, for which `Recovered::begin` was called. Every session gets its whole timeout anew.
    pub fn new(options: ReplicaOptions, recovered: Recovered, state: &Replicated, now: Now) -> SingleGroup {
        let watches = state.state().watches().clone();
        let mut presence = Presence::new(options, &recovered, watches, now);
        let mut group = Group::new(&presence, recovered, state, now);
        Replica::new(&mut presence, &mut group).open(state, now);
        SingleGroup { presence, group }
    }

    /// The group at work.
    pub fn replica(&mut self) -> Replica<'_> {
        Replica::new(&mut self.presence, &mut self.group)
    }

    pub fn facts(&self) -> MemberFacts<'_> {
        MemberFacts::of(&self.presence, &self.group)
    }

    /// [`Replica::step`].
    pub fn step(&mut self, now: Now, input: Input) {
        self.replica().step(now, input);
    }

    /// [`Replica::collect`].
    pub fn collect(&mut self, now: Now, effects: &mut Effects) {
        self.replica().collect(now, effects);
    }

    /// [`Replica::apply`].
    pub fn apply(&mut self, now: Now, effects: &mut Effects, held: &mut impl HeldState) -> Applied {
        self.replica().apply(now, effects, held)
    }
}
