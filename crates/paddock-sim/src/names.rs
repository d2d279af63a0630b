//! What members are called where text is wanted.

use paddock_proto::MemberRole;

/// The line that names a member, in configurations and in changes of members.
pub(crate) fn member(id: u8, role: MemberRole) -> String {
    let role = match role {
        MemberRole::Participant => "participant",
        MemberRole::Observer => "observer",
    };
    format!("server.{id}=host-{id}:2888:3888:{role};2181")
}
