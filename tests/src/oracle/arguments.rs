//! Paths, values and versions, mostly good.

use paddock_chance::Chance;

/// Paths of requests.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) root: &'static str,
    znodes: Vec<String>,
    /// The few of them that most requests of a sequence go to, so that they meet.
    favourites: Vec<String>,
    /// Paths that have, may have or try to have quotas.
    pub(super) quotas: Vec<String>,
    /// ACLs name identities that connections prove by TLS and SASL.
    pub(super) names_identities: bool,
    /// No ACL keeps a client from reading. Only then may a client bring watches on znodes along: of those that it may not read ZooKeeper
    /// tells it all the same, which is one of the wanted differences.
    pub(super) all_may_read: bool,
    pub(super) multis: Multis,
}

/// Operations that the multis of a sequence may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multis {
    Anything,
    /// None deletes a znode that another one writes: of those, a front end on etcd sees nothing.
    UndoNothing,
}

impl Paths {
    pub(super) fn below(root: &'static str, multis: Multis) -> Paths {
        let names = [
            "/a",
            "/a/b",
            "/a/b/c",
            "/a/d",
            "/e",
            "/e/f",
            "/g",
            "/a/s0000000000",
            "/s0000000001",
            "/s0000000002",
        ];
        let mut znodes: Vec<String> = names.iter().map(|name| format!("{root}{name}")).collect();
        znodes.push(root.to_string());
        let quotas = vec![root.to_string(), format!("{root}/a")];
        Paths {
            root,
            znodes,
            favourites: Vec::new(),
            quotas,
            names_identities: false,
            all_may_read: false,
            multis,
        }
    }

    pub(super) fn choose_favourites(&mut self, chance: &mut Chance) {
        self.all_may_read = chance.percent(50);
        self.favourites = (0..2).map(|_| chance.pick(&self.znodes[..5]).clone()).collect();
    }

    /// Parents before children.
    pub(super) fn to_begin_with(&self) -> &[String] {
        &self.znodes[..7]
    }

    pub(super) fn everywhere(multis: Multis) -> Paths {
        let mut paths = Paths::below("", multis);
        *paths.znodes.last_mut().expect("the root is the last") = "/".into();
        let system =
            ["/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/x", "/zookeeper/quota/a", ""];
        paths.znodes.extend(system.map(String::from));
        paths.quotas = vec!["/a".into(), "/e".into(), "/a/b".into()];
        paths
    }

    pub(super) fn with_identities(self) -> Paths {
        Paths { names_identities: true, ..self }
    }

    pub(super) fn good(&self, chance: &mut Chance) -> String {
        match self.favourites.as_slice() {
            [_, ..] if chance.percent(50) => chance.pick(&self.favourites).clone(),
            _ => chance.pick(&self.znodes).clone(),
        }
    }

    /// Mostly good.
    pub(super) fn any(&self, chance: &mut Chance) -> Option<String> {
        if !chance.percent(6) {
            return Some(self.good(chance));
        }
        let root = self.root;
        let bad = [
            Some(String::new()),
            Some("a".into()),
            Some("//".into()),
            Some(format!("{root}/a/")),
            Some(format!("{root}//a")),
            Some(format!("{root}/a/../b")),
            Some(format!("{root}/./a")),
            Some(format!("{root}/a/.")),
            Some(format!("{root}/...")),
            Some(format!("{root}/a\0b")),
            Some(format!("{root}/a\u{1}")),
            Some(format!("{root}/\u{7f}")),
            Some(format!("{root}/\u{e000}")),
            Some(format!("{root}/\u{fff0}")),
            Some(format!("{root}/\u{fffd}")),
            Some(format!("{root}/\u{fc}\u{6f22}")),
            Some(format!("{root}/nothing/here")),
            Some(format!("{root}/nothing//here")),
        ];
        chance.pick(&bad).clone()
    }

    /// Path whose znodes are counted. The empty one counts the whole tree, with what other sequences have left below
    /// their roots; that differs where a wanted difference was tried, and while containers wait for their deletion.
    pub(super) fn to_count_below(&self, chance: &mut Chance) -> Option<String> {
        let path = self.any(chance);
        let is_shared = !self.root.is_empty() && path.as_deref() == Some("");
        if is_shared { Some(self.root.to_string()) } else { path }
    }

    /// Path of a create; a sequential one also goes to a name that is only the suffix.
    pub(super) fn to_create(&self, chance: &mut Chance, flags: i32) -> Option<String> {
        let sequential = matches!(flags, 2 | 3 | 6);
        if sequential && chance.percent(80) {
            let parent = self.good(chance);
            return Some(format!("{}/{}", parent.trim_end_matches('/'), chance.pick(&["s", "s", ""])));
        }
        self.any(chance)
    }
}

pub(super) fn data(chance: &mut Chance) -> Option<Vec<u8>> {
    match chance.index(12) {
        0 => None,
        1 => Some(Vec::new()),
        2 => Some(vec![b'x'; 1 + chance.index(3000)]),
        _ => Some(format!("v{}", chance.index(1000)).into_bytes()),
    }
}

pub(super) fn version(chance: &mut Chance) -> i32 {
    *chance.pick(&[-1, -1, -1, -1, -1, 0, 0, 1, 2, 3, -2, i32::MIN, i32::MAX])
}
