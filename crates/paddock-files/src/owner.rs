//! The ephemeral owner of a znode, in which ZooKeeper also keeps what other kind of znode it is.

use paddock_proto::SessionId;
use paddock_tree::ZnodeKind;

const CONTAINER: i64 = i64::MIN;
/// The top byte of an extended kind. Below it, 16 bits say which: 0 is a TTL.
const EXTENDED: u64 = 0xff << 56;
const EXTENDED_KIND: u64 = 0xffff << 40;
/// As ZooKeeper 3.5.3 wrote TTL znodes.
const TTL_OF_353: u64 = 0x80 << 56;
const TTL_MS: u64 = 0xff_ffff_ffff;

/// The kind of znode that an owner means. The ids of the servers 128 and 255 look like TTLs: `is_session` tells them apart.
pub(crate) fn kind_of(owner: i64, is_session: impl Fn(SessionId) -> bool) -> ZnodeKind {
    let bits = owner as u64;
    let (top, kind, ttl) = (bits & EXTENDED, bits & EXTENDED_KIND, bits & TTL_MS);
    match owner {
        0 => ZnodeKind::Persistent,
        CONTAINER => ZnodeKind::Container,
        _ if is_session(SessionId(owner)) => ZnodeKind::Ephemeral(SessionId(owner)),
        _ if matches!(top, EXTENDED | TTL_OF_353) && kind == 0 && ttl > 0 => {
            ZnodeKind::Ttl { ms: ttl as i64 }
        }
        _ => ZnodeKind::Ephemeral(SessionId(owner)),
    }
}

pub(crate) fn owner_of(kind: ZnodeKind) -> i64 {
    match kind {
        ZnodeKind::Persistent => 0,
        ZnodeKind::Ephemeral(session) => session.0,
        ZnodeKind::Container => CONTAINER,
        ZnodeKind::Ttl { ms } => (EXTENDED | (ms as u64 & TTL_MS)) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_back() {
        let session = ZnodeKind::Ephemeral(SessionId(0x0100_0001_2345_0000));
        for kind in [ZnodeKind::Persistent, ZnodeKind::Container, ZnodeKind::Ttl { ms: 1000 }, session] {
            assert_eq!(kind_of(owner_of(kind), |_| false), kind);
        }
    }

    #[test]
    fn a_session_of_server_255_is_no_ttl() {
        let id = (0xff_u64 << 56 | 77) as i64;
        assert_eq!(kind_of(id, |_| true), ZnodeKind::Ephemeral(SessionId(id)));
        assert_eq!(kind_of(id, |_| false), ZnodeKind::Ttl { ms: 77 });
        assert_eq!(kind_of((0x80_u64 << 56 | 77) as i64, |_| false), ZnodeKind::Ttl { ms: 77 });
    }
}
