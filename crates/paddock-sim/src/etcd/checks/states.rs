//! States of front ends, and what is left in etcd in the end.

use std::collections::BTreeSet;

use paddock_etcd::{Key, decode_znode};
use paddock_tree::ZnodeKind;

use super::{CONVERGENCE, Checks};
use crate::checks::{Checked, ensure};
use crate::etcd::front_end::FrontEnd;
use crate::etcd::store::EtcdModel;

impl Checks {
    /// The state of a front end is that of the revision that it names.
    pub(crate) fn check_state(&self, front: usize, at: &FrontEnd, store: &EtcdModel) -> Checked {
        let tree = at.state.tree();
        let revision = tree.zxid().0;
        if revision == 0 {
            return Ok(());
        }
        let mut expected = BTreeSet::new();
        for (key, event) in store.pairs_at(revision) {
            match (self.keys.parse(key), &event.value) {
                (Some(Key::Znode(path)), Some(value)) => {
                    let (znode, _) = decode_znode(value, event.mod_revision).expect("it was decoded before");
                    let found = tree.znode(path);
                    let is_right = found.as_ref() == Some(&znode);
                    ensure!(
                        is_right,
                        CONVERGENCE,
                        "front end {front} at revision {revision} has {found:?} at {path}, and etcd {znode:?}"
                    );
                    expected.insert(path);
                }
                (Some(Key::Session(session)), _) => {
                    let is_there = tree.session_owner(session).is_some();
                    ensure!(is_there, CONVERGENCE, "front end {front} does not know session {session}");
                }
                _ => {}
            }
        }
        let mut all = tree.znodes();
        while let Some((path, _)) = all.next_znode() {
            let is_ours = path == "/" || path.starts_with("/zookeeper");
            let is_right = is_ours || expected.contains(path);
            ensure!(
                is_right,
                CONVERGENCE,
                "front end {front} at revision {revision} has {path}, and etcd has not"
            );
        }
        Ok(())
    }

    /// In the end nothing is left of sessions that have ended.
    pub(crate) fn check_ephemerals(&self) -> Checked {
        for (path, znode) in &self.znodes {
            if let ZnodeKind::Ephemeral(session) = znode.kind {
                let is_alive = self.sessions.contains(&session);
                ensure!(is_alive, "sessions", "{path} is there, and its session {session} has ended");
            }
        }
        Ok(())
    }
}
