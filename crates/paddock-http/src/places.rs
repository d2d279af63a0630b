//! Places of a port: how many connections are served at a time, and which of them gives way to a newcomer.
//!
//! A connection that says nothing costs its peer nothing. So when all places are taken, one that has no request under way is closed: the
//! oldest one of the address that has most connections, so that a client elsewhere still gets in. If each has a request under way, one
//! whose peer has not read for a while gives way; if there is none, the newcomer waits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

/// A peer that has not read for this time gives way.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(2);
/// A newcomer looks for a place at least as often as this.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The connections of a port.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    /// Connections in the order in which they came.
    taken: Mutex<Vec<Taken>>,
    /// A place may have become free.
    changed: Arc<Notify>,
}

#[derive(Clone, Debug)]
struct Taken {
    peer: IpAddr,
    activity: Arc<Activity>,
}

/// A place that a connection has until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    activity: Arc<Activity>,
}

/// Activity of a connection, by which it has to give way or not.
#[derive(Debug)]
pub(super) struct Activity {
    /// Requests that have come as a whole and are not answered as a whole.
    under_way: AtomicUsize,
    /// Time since which the peer has taken nothing of what is to be sent.
    unread_since: Mutex<Option<Instant>>,
    must_go: Notify,
    changed: Arc<Notify>,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl Places {
    pub(super) fn new(max: usize) -> Arc<Places> {
        Arc::new(Places { max, taken: Mutex::default(), changed: Arc::default() })
    }

    /// A place for a newcomer, as soon as there is one.
    pub(super) async fn take(self: &Arc<Places>, peer: IpAddr) -> Place {
        loop {
            if let Some(place) = self.try_take(peer, Instant::now()) {
                return place;
            }
            let _ = timeout(LOOK_INTERVAL, self.changed.notified()).await;
        }
    }

    fn try_take(self: &Arc<Places>, peer: IpAddr, now: Instant) -> Option<Place> {
        let mut taken = self.taken.lock();
        if taken.len() >= self.max {
            let position = giving_way(&taken, now)?;
            let gone = taken.remove(position);
            tracing::debug!(peer = %gone.peer, "a connection to an HTTP port gives way to a newcomer");
            gone.activity.must_go.notify_one();
        }
        let activity = Arc::new(Activity::new(self.changed.clone()));
        taken.push(Taken { peer, activity: activity.clone() });
        Some(Place { places: self.clone(), activity })
    }
}

/// Position of the connection that gives way, if there is one that may.
fn giving_way(taken: &[Taken], now: Instant) -> Option<usize> {
    let mut of_peers: HashMap<IpAddr, usize> = HashMap::new();
    for one in taken {
        *of_peers.entry(one.peer).or_default() += 1;
    }
    let oldest_of_most = |may: &dyn Fn(&Activity) -> bool| {
        let candidates = taken.iter().enumerate().filter(|(_, one)| may(&one.activity));
        // Of equals, the last one is the greatest: they are looked at from the newest to the oldest.
        candidates.rev().max_by_key(|(_, one)| of_peers[&one.peer]).map(|(position, _)| position)
    };
    oldest_of_most(&Activity::is_silent).or_else(|| oldest_of_most(&|activity| activity.is_unread(now)))
}

impl Place {
    pub(super) fn activity(&self) -> Arc<Activity> {
        self.activity.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The connection is not among them any more if it had to give way.
        self.places.taken.lock().retain(|one| !Arc::ptr_eq(&one.activity, &self.activity));
        self.places.changed.notify_one();
    }
}

impl Activity {
    fn new(changed: Arc<Notify>) -> Activity {
        Activity { under_way: 0.into(), unread_since: Mutex::default(), must_go: Notify::new(), changed }
    }

    /// A request has come as a whole.
    pub(super) fn begin(self: &Arc<Activity>) -> UnderWay {
        self.under_way.fetch_add(1, Relaxed);
        UnderWay(self.clone())
    }

    /// The peer takes nothing of what is to be sent, or has taken something.
    pub(super) fn note_sending(&self, is_taken: bool) {
        let mut since = self.unread_since.lock();
        if is_taken {
            *since = None;
        } else {
            since.get_or_insert_with(Instant::now);
        }
    }

    /// Waits until the connection has to give way.
    pub(super) async fn gives_way(&self) {
        self.must_go.notified().await;
    }

    fn is_silent(&self) -> bool {
        self.under_way.load(Relaxed) == 0 && self.unread_since.lock().is_none()
    }

    fn is_unread(&self, now: Instant) -> bool {
        self.unread_since.lock().is_some_and(|since| now.saturating_duration_since(since) >= UNREAD_TIMEOUT)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn places(peers: &[IpAddr]) -> (Arc<Places>, Vec<Place>) {
        let places = Places::new(peers.len());
        let held = peers.iter().map(|peer| places.try_take(*peer, Instant::now()).expect("there is room"));
        let held = held.collect();
        (places, held)
    }

    /// Position of the connection that has to go.
    async fn gone(held: &[Place]) -> Option<usize> {
        for (position, place) in held.iter().enumerate() {
            if timeout(Duration::from_millis(1), place.activity().gives_way()).await.is_ok() {
                return Some(position);
            }
        }
        None
    }

    #[tokio::test]
    async fn the_oldest_silent_one_of_who_has_most_gives_way() {
        let (places, held) = places(&[FAR, NEAR, NEAR, NEAR]);
        let busy = held[1].activity().begin();
        let _newcomer = places.try_take(FAR, Instant::now()).expect("one gives way");
        assert_eq!(gone(&held).await, Some(2));
        drop(busy);
        // Now both have two; the oldest one of all goes.
        let _newcomer = places.try_take(FAR, Instant::now()).expect("one gives way");
        assert_eq!(gone(&held).await, Some(0));
    }

    #[tokio::test]
    async fn who_is_being_answered_stays_unless_it_does_not_read() {
        let (places, held) = places(&[NEAR, NEAR]);
        let under_way = [held[0].activity().begin(), held[1].activity().begin()];
        held[1].activity().note_sending(false);
        let now = Instant::now();
        assert!(places.try_take(FAR, now).is_none(), "it may still read");
        let _newcomer = places.try_take(FAR, now + UNREAD_TIMEOUT).expect("it has not read");
        assert_eq!(gone(&held).await, Some(1));
        held[0].activity().note_sending(false);
        held[0].activity().note_sending(true);
        assert!(places.try_take(FAR, now + 2 * UNREAD_TIMEOUT).is_some(), "the first newcomer is silent");
        assert_eq!(gone(&held).await, None);
        drop(under_way);
    }

    #[tokio::test]
    async fn a_newcomer_waits_for_an_answer_to_end() {
        let (places, held) = places(&[NEAR]);
        let under_way = held[0].activity().begin();
        let mut waiting = Box::pin(places.take(FAR));
        assert!(timeout(Duration::from_millis(20), &mut waiting).await.is_err());
        drop(under_way);
        timeout(Duration::from_secs(5), waiting).await.expect("there is a place");
        assert_eq!(gone(&held).await, Some(0));
    }
}
