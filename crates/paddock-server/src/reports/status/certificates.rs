//! Ends of a member's certificates.

use crate::shared::Shared;

/// Ports that show a certificate, and its end in seconds since 1970.
pub(crate) fn certificate_ends(shared: &Shared) -> Vec<(&'static str, u64)> {
    let opened = &shared.opened;
    let links = shared.statistics.link_certificate_end.get();
    let ends = [
        ("client", opened.client_port.as_ref().and_then(|port| port.certificate_end())),
        ("quorum", links.and_then(|end| end.seconds())),
        ("http", opened.admin_keys.as_ref().and_then(|port| port.certificate_end())),
    ];
    ends.into_iter().filter_map(|(port, end)| Some((port, end?))).collect()
}
