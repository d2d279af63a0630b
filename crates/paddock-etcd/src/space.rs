//! Space in etcd's database. While its alarm NOSPACE is raised, etcd refuses whatever puts a key, and carries out the rest.

/// Time for which nothing that can wait is tried after a refusal, in milliseconds.
const PAUSE_MS: u64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Time of the newest refusal, if nothing was put since then.
    refused_ms: Option<u64>,
}

impl Space {
    /// Notes that etcd has refused to put something. True if it is the first time since something was put.
    pub(crate) fn refuse(&mut self, now_ms: u64) -> bool {
        self.refused_ms.replace(now_ms).is_none()
    }

    /// Notes that etcd has put something. True if it has refused that before.
    pub(crate) fn put(&mut self) -> bool {
        self.refused_ms.take().is_some()
    }

    /// True if the engine's own writes should wait: ends of sessions and of znodes that have expired, marks in the watch stream.
    pub(crate) fn is_exhausted(&self, now_ms: u64) -> bool {
        self.refused_ms.is_some_and(|refused_ms| now_ms < refused_ms + PAUSE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_once_and_what_can_wait_is_tried_again() {
        let mut space = Space::default();
        assert!(!space.put() && !space.is_exhausted(0));
        assert!(space.refuse(100));
        assert!(!space.refuse(200));
        assert!(space.is_exhausted(200 + PAUSE_MS - 1) && !space.is_exhausted(200 + PAUSE_MS));
        assert!(space.put());
        assert!(!space.put() && !space.is_exhausted(200));
    }
}
