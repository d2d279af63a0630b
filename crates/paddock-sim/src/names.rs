//! Names of members, and users with their passwords.

use paddock_front::digest_id;
use paddock_proto::MemberNumber;
use paddock_proto::{Id, MemberRole};

/// A user whom some ACLs name.
pub(crate) const ANN: &str = "ann:apples";
/// The user who may do everything.
pub(crate) const SUPER: &str = "super:oranges";

/// Unknown users: more than a connection may show.
pub(crate) const STRANGERS: [&str; 6] = ["a:1", "b:2", "c:3", "d:4", "e:5", "f:6"];
/// Identities that a connection may show, that of its address included.
pub(crate) const IDENTITIES_MAX: usize = 5;

/// Znodes whose children may be spread over groups.
pub(crate) const SPLIT_POINTS: [&str; 3] = ["/a", "/b/x", "/c/y"];

/// The identities that a user and password prove.
pub(crate) fn identities(credentials: &str) -> Vec<Id> {
    let id = digest_id(credentials.as_bytes());
    let is_super = credentials == SUPER;
    [id].into_iter().chain(is_super.then(|| Id::new("super", ""))).collect()
}

/// Machines of the simulated ensemble.
pub(crate) const OWN_HOSTS: &str = "host";
/// Machines of the ensemble whose disks come into the simulated one.
pub(crate) const FOREIGN_HOSTS: &str = "foreign";

/// The line that names a member of the simulated ensemble, in configurations and in changes of members.
pub(crate) fn member(id: MemberNumber, role: MemberRole) -> String {
    member_at(OWN_HOSTS, id, role)
}

/// A member of an ensemble whose machines are called like this.
pub(crate) fn member_at(hosts: &str, id: MemberNumber, role: MemberRole) -> String {
    let role = match role {
        MemberRole::Participant => "participant",
        MemberRole::Observer => "observer",
    };
    format!("server.{id}={hosts}-{id}:2888:3888:{role};2181")
}
