//! Places for long streams: how many of them a member sends at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The streams that are under way.
#[derive(Debug, Default)]
pub(super) struct StreamPlaces(Arc<AtomicUsize>);

/// A stream's place, until this is dropped.
#[derive(Debug)]
pub(super) struct StreamPlace(Arc<AtomicUsize>);

impl StreamPlaces {
    /// Streams at a time.
    pub(super) const MAX: usize = 8;

    /// A place, if not all are taken.
    pub(super) fn take(&self) -> Option<StreamPlace> {
        // A place that is one too many is given back at once.
        let place = StreamPlace(self.0.clone());
        (self.0.fetch_add(1, SeqCst) < StreamPlaces::MAX).then_some(place)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_limited_and_give_their_places_back() {
        let places = StreamPlaces::default();
        let mut taken: Vec<StreamPlace> =
            (0..StreamPlaces::MAX).map(|_| places.take().expect("a place")).collect();
        assert!(places.take().is_none() && places.take().is_none());
        taken.pop();
        taken.push(places.take().expect("a place that was given back"));
        assert!(places.take().is_none());
    }
}
