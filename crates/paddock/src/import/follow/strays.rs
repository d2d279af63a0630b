//! Writes that reach the source after the cut-over, and are lost: they are told as long as it runs.

use std::thread;

use paddock_files::{Event, needs_no_client};
use paddock_proto::Zxid;

use super::link::{FollowedLink, Notice};
use crate::logs;

/// Watches the source until it ends. Sessions that end there are expected: their clients are elsewhere.
pub(super) fn watch(link: FollowedLink, last: Zxid) {
    thread::spawn(move || {
        let mut writes = 0u64;
        while let Ok(notice) = link.notices.recv() {
            match notice {
                Notice::Heard(Event::Transaction(entry)) if !needs_no_client(&entry) => {
                    writes += 1;
                    if writes.is_power_of_two() {
                        logs::say(format_args!(
                            "LOST: the source has taken {writes} writes since the cut-over at its zxid {last}, which are not here: \
                             a client is still connected to it"
                        ));
                    }
                }
                Notice::Ended(_) => return,
                _ => {}
            }
        }
    });
}
