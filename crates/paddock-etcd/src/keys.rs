//! Names of keys: one for each znode, one for each session, one for each front end and one for the secret, below a prefix.

use paddock_proto::{SessionId, validate_path};

/// Names the keys below one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

/// Meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    Znode(&'a str),
    Session(SessionId),
    /// The secret for passwords of sessions.
    Secret,
    /// A key that a front end writes to see how far the watch stream has come.
    Front(u64),
}

const FRONTS: &str = "/fronts/";
const SECRET: &str = "/secret";
const ZNODES: &str = "/znodes";
const SESSIONS: &str = "/sessions/";

impl Keys {
    /// Slashes at the end of the prefix do not count.
    pub fn new(prefix: &str) -> Keys {
        Keys { prefix: prefix.trim_end_matches('/').to_owned() }
    }

    pub fn znode(&self, path: &str) -> Vec<u8> {
        format!("{}{ZNODES}{path}", self.prefix).into_bytes()
    }

    pub fn session(&self, session: SessionId) -> Vec<u8> {
        format!("{}{SESSIONS}{:016x}", self.prefix, session.0).into_bytes()
    }

    pub fn secret(&self) -> Vec<u8> {
        format!("{}{SECRET}", self.prefix).into_bytes()
    }

    pub fn front(&self, front: u64) -> Vec<u8> {
        format!("{}{FRONTS}{front:016x}", self.prefix).into_bytes()
    }

    /// First key of all, and the first one behind all: the range that is read at first and watched then. Sessions come
    /// before the znodes that they own, and znodes before their children.
    pub fn range(&self) -> (Vec<u8>, Vec<u8>) {
        (format!("{}/", self.prefix).into_bytes(), format!("{}0", self.prefix).into_bytes())
    }

    /// `None` for a key that is not of this layout.
    pub fn parse<'a>(&self, key: &'a [u8]) -> Option<Key<'a>> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        if let Some(path) = rest.strip_prefix(ZNODES) {
            return validate_path(path).is_ok().then_some(Key::Znode(path));
        }
        if rest == SECRET {
            return Some(Key::Secret);
        }
        match rest.strip_prefix(SESSIONS) {
            Some(number) => Some(Key::Session(SessionId(plain_number(number)? as i64))),
            None => Some(Key::Front(plain_number(rest.strip_prefix(FRONTS)?)?)),
        }
    }
}

/// Sixteen hexadecimal digits, as this layout writes them.
fn plain_number(digits: &str) -> Option<u64> {
    let is_plain = digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_as_named_and_strangers_do_not() {
        let keys = Keys::new("/paddock/");
        for path in ["/", "/a", "/a/b c", "/ü"] {
            assert_eq!(keys.parse(&keys.znode(path)), Some(Key::Znode(path)));
        }
        for id in [1, i64::MAX, -1] {
            assert_eq!(keys.parse(&keys.session(SessionId(id))), Some(Key::Session(SessionId(id))));
        }
        assert_eq!(keys.parse(&keys.front(u64::MAX - 1)), Some(Key::Front(u64::MAX - 1)));
        assert_eq!(keys.parse(&keys.secret()), Some(Key::Secret));
        for stranger in [
            "/paddock/secrets",
            "/paddock/secret/",
            "/paddock/znodes",
            "/paddock/znodesa",
            "/paddock/znodes/a/",
            "/other/znodes/a",
        ] {
            assert_eq!(keys.parse(stranger.as_bytes()), None, "{stranger}");
        }
        for number in ["1", "000000000000000A", "+00000000000000a"] {
            assert_eq!(keys.parse(format!("/paddock/sessions/{number}").as_bytes()), None, "{number}");
        }
        assert_eq!(keys.parse(b"/paddock/znodes/\xff"), None);
    }

    #[test]
    fn the_range_holds_sessions_then_parents_then_children() {
        let keys = Keys::new("/paddock");
        let (first, end) = keys.range();
        let ordered = [
            first,
            keys.front(7),
            keys.secret(),
            keys.session(SessionId(0)),
            keys.session(SessionId(-1)),
            keys.znode("/"),
            keys.znode("/a"),
            keys.znode("/a-b"),
            keys.znode("/a/b"),
            end,
        ];
        assert!(ordered.is_sorted());
    }
}
