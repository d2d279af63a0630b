//! Znodes of slots that leave a group, on their way to the home group.

use std::collections::BTreeMap;

use paddock_proto::{GroupsCommand, Zxid};
use paddock_tree::Tree;

use crate::last_proposal::LastProposal;

/// Portions that the home group waits for, as its replica on this member knows.
#[derive(Debug, Default)]
pub(crate) struct Givings {
    awaited: BTreeMap<(String, u16), Awaited>,
}

/// The next portion of the znodes of slots.
#[derive(Clone, Debug)]
struct Awaited {
    from: u32,
    portion: u32,
    /// As the group's replica here has given it.
    given: Option<Given>,
    proposed: LastProposal,
}

#[derive(Clone, Debug)]
struct Given {
    znodes: Vec<u8>,
    is_last: bool,
    above: Zxid,
}

impl Givings {
    /// The home group's replica here has come so far.
    pub(crate) fn follow_home(&mut self, home: &Tree) {
        let mut known = std::mem::take(&mut self.awaited);
        for (path, leaving) in home.split_points().leaving() {
            let key = (path.to_owned(), leaving.first);
            let (from, portion) = (leaving.from, leaving.portions());
            let same =
                known.remove(&key).filter(|awaited| (awaited.from, awaited.portion) == (from, portion));
            self.awaited.insert(
                key,
                same.unwrap_or(Awaited { from, portion, given: None, proposed: LastProposal::default() }),
            );
        }
    }

    /// A group's replica here is in this state.
    pub(crate) fn follow_group(&mut self, group: u32, state: &Tree) {
        for ((path, first), awaited) in &mut self.awaited {
            if awaited.from == group {
                let given = state.given_portion(path, *first, awaited.portion);
                awaited.given = given.map(|given| Given {
                    znodes: given.znodes.to_vec(),
                    is_last: given.is_last,
                    above: given.above,
                });
            }
        }
    }

    /// Groups whose znodes the home group waits for, whether they are known here or not.
    pub(crate) fn groups(&self) -> impl Iterator<Item = u32> {
        self.awaited.values().map(|awaited| awaited.from)
    }

    /// Groups whose znodes are awaited.
    pub(crate) fn from(&self) -> impl Iterator<Item = u32> {
        self.awaited.values().filter(|awaited| awaited.given.is_none()).map(|awaited| awaited.from)
    }

    pub(crate) fn tick(&mut self) {
        for awaited in self.awaited.values_mut() {
            awaited.proposed.tick();
        }
    }

    /// Gives `submit` the portions of a group that the home group is to have. This member leads the group in this term.
    pub(crate) fn propose(&mut self, group: u32, term: u64, mut submit: impl FnMut(&GroupsCommand<'_>)) {
        for ((path, first), awaited) in self.awaited.iter_mut().filter(|(_, awaited)| awaited.from == group) {
            let is_under_way = awaited.proposed.is_under_way(term);
            let Some(Given { znodes, is_last, above }) = awaited.given.as_ref().filter(|_| !is_under_way)
            else {
                continue;
            };
            let (portion, is_last, above) = (awaited.portion, *is_last, *above);
            submit(&GroupsCommand::Given { path, first: *first, portion, is_last, above, znodes });
            awaited.proposed.note(term);
        }
    }
}
