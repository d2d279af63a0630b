//! Queue of events, in the order of their times; at the same time, in the order in which they were planned.

use std::collections::BTreeMap;

use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Queue<E> {
    events: BTreeMap<(Time, u64), E>,
    planned: u64,
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Queue<E> {
        Queue { events: BTreeMap::new(), planned: 0 }
    }

    pub(crate) fn plan(&mut self, at: Time, event: E) {
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    pub(crate) fn next(&mut self) -> Option<(Time, E)> {
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_their_time_and_then_of_their_planning() {
        let mut queue = Queue::new();
        queue.plan(Time(5), "third");
        queue.plan(Time(1), "first");
        queue.plan(Time(1), "second");
        let order: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(order, [(Time(1), "first"), (Time(1), "second"), (Time(5), "third")]);
    }
}
