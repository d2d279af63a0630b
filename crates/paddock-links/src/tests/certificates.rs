//! Members with TLS, and their certificates.

use std::fs;
use std::time::Instant;

use paddock_proto::MemberNumber;
use paddock_tls::PeerTls;
use paddock_tls::Tls;
use paddock_tls::testing::{Authority, for_loopback, settings};
use rcgen::CertificateParams;

use super::node::{Node, PATIENCE, TIMING, any_port};
use crate::Timing;

/// An authority and a place for the stores of members.
pub(super) struct Certificates {
    pub(super) authority: Authority,
    dir: tempfile::TempDir,
}

impl Certificates {
    pub(super) fn new() -> Certificates {
        Certificates::of("ours")
    }

    pub(super) fn of(authority: &str) -> Certificates {
        Certificates { authority: Authority::new(authority), dir: tempfile::tempdir().unwrap() }
    }

    /// The settings of a member with a good certificate.
    pub(super) fn settings(&self, id: MemberNumber) -> PeerTls {
        self.settings_with(id, &for_loopback())
    }

    pub(super) fn settings_with(&self, id: MemberNumber, params: &CertificateParams) -> PeerTls {
        let dir = self.dir.path().join(id.to_string());
        fs::create_dir_all(&dir).unwrap();
        settings(&dir, &self.authority.issue(params), &self.authority.pem())
    }

    pub(super) fn start(&self, id: MemberNumber) -> Node {
        start(id, self.settings(id))
    }
}

pub(super) fn start(id: MemberNumber, settings: PeerTls) -> Node {
    start_with(id, TIMING, settings)
}

pub(super) fn start_with(id: MemberNumber, timing: Timing, settings: PeerTls) -> Node {
    let tls = Tls::load(settings, "127.0.0.1".to_owned()).unwrap();
    Node::start_secured(id, any_port(), timing, Some(tls))
}

/// The reason for which there is no link, once an attempt has failed.
pub(super) fn reason(node: &Node, peer: MemberNumber) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let known = node.links.status().into_iter().any(|status| status.peer == peer);
        let reason = if known { node.reason(peer) } else { String::new() };
        if !["", "up", "no attempt was made yet"].contains(&&*reason) {
            return reason;
        }
        assert!(Instant::now() < deadline, "no attempt fails: {reason}");
        std::thread::yield_now();
    }
}
