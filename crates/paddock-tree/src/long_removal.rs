//! Commands that remove many znodes, carried out as several transactions: readers have the tree between two of them.
//!
//! The end of a session takes all of its ephemerals along, and `RemoveRecursive` a whole subtree. Where that is more than a
//! portion, what is to go is looked up first, a little at a time, which changes nothing. Then whole portions go, each in a
//! transaction with a zxid of its own. The command itself removes the last ones, and its client is told that zxid.
//!
//! Every member makes the same portions of the same command: znodes go in the order of their paths, and the length of a portion is
//! the same everywhere. Nothing else may change the tree before the command itself has been applied.

use std::borrow::Cow;
use std::collections::BTreeMap;

use paddock_proto::{ErrorCode, IdList, Perms, SessionId, Write, WriteReply};

use crate::outcome::{Changes, Outcome};
use crate::store::NodeId;
use crate::{Command, Tree};

/// Znodes that a transaction removes at most where a command removes more: that number takes less than a millisecond. It is part of what
/// an entry of the log means, since it decides how many zxids a command takes.
pub const REMOVED_AT_ONCE: usize = 500;

/// Znodes that are looked up in one step, for each that a transaction removes: to find one takes less than to remove it.
const LOOKED_UP_FOR_EACH: usize = 2;

/// The long part of a command that removes more znodes than a portion holds.
#[derive(Debug)]
pub struct LongRemoval<'a> {
    at_once: usize,
    search: Search<'a>,
    /// Znodes found so far that have not gone.
    doomed: BTreeMap<String, NodeId>,
}

/// The znodes that are to go, and the next one to be looked up.
#[derive(Debug)]
enum Search<'a> {
    /// Ephemerals of a session: those behind `after` have not been found yet.
    Session {
        session: SessionId,
        after: Option<NodeId>,
    },
    Subtree {
        top: NodeId,
        next: Option<NodeId>,
        nodes_max: usize,
        ids: IdList<'a>,
        is_forbidden: bool,
    },
}

impl Tree {
    /// The long part of a command, if it removes more than `at_once` znodes. All members have to ask with the same number. A command that is refused because of
    /// where its znodes are has none.
    #[inline]
    pub fn long_removal<'a>(&self, command: &Command<'a>, at_once: usize) -> Option<LongRemoval<'a>> {
        let search = match command.write {
            Ok(Write::ExpireSession { session }) => self.long_end(session, at_once),
            Ok(Write::CloseSession) if self.may_close(command) => self.long_end(command.session, at_once),
            Ok(Write::RemoveRecursive { path, nodes_max }) => {
                self.long_subtree(command, path, nodes_max, at_once)
            }
            _ => None,
        };
        let search = search.filter(|_| !self.are_znodes_spread || !self.is_misplaced(command))?;
        Some(LongRemoval { at_once, search, doomed: BTreeMap::new() })
    }

    fn long_end(&self, session: SessionId, at_once: usize) -> Option<Search<'static>> {
        let is_long = self.store.ephemeral_count_of(session) > at_once;
        is_long.then_some(Search::Session { session, after: None })
    }

    fn long_subtree<'a>(
        &self,
        command: &Command<'a>,
        path: &str,
        nodes_max: u32,
        at_once: usize,
    ) -> Option<Search<'a>> {
        self.check_session(command.session, command.member).ok()?;
        let top = self.top_to_remove(path, command.ids).ok()??;
        self.store.subtree(top).nth(at_once)?;
        let nodes_max = usize::try_from(nodes_max).unwrap_or(usize::MAX);
        Some(Search::Subtree { top, next: Some(top), nodes_max, ids: command.ids, is_forbidden: false })
    }

    /// Refuses a command with an error that is known beforehand. It takes a zxid, as every refusal does.
    pub fn refuse<'a>(&mut self, error: ErrorCode) -> Outcome<'a> {
        Outcome { zxid: self.take_zxid(), result: Err(error), changes: Changes::new() }
    }
}

impl LongRemoval<'_> {
    /// Looks up some more of the znodes that are to go; false once all are known. An error is what the command is to be refused with.
    pub fn look_up(&mut self, tree: &Tree) -> Result<bool, ErrorCode> {
        for _ in 0..LOOKED_UP_FOR_EACH * self.at_once {
            let Some(node) = self.search.next(tree) else { return self.search.verdict().map(|()| false) };
            self.doomed.insert(tree.store.path(node), node);
            if self.search.is_above_limit(self.doomed.len()) {
                return Err(ErrorCode::NotEmpty);
            }
        }
        Ok(true)
    }

    /// Removes a portion of what was found, as a transaction of its own; `None` once the rest is for the command itself.
    pub fn remove_portion(&mut self, tree: &mut Tree) -> Option<Outcome<'static>> {
        if self.doomed.len() <= self.at_once {
            return None;
        }
        let zxid = tree.take_zxid();
        let mut changes = Changes::new();
        for _ in 0..self.at_once {
            let (path, node) = self.take_next().expect("there are more than a portion");
            tree.remove(zxid, node, Cow::Owned(path), &mut changes);
        }
        tree.tell_changed_limits(zxid);
        tree.note_recent_children(&changes);
        Some(Outcome { zxid, result: Ok(WriteReply::Done), changes })
    }

    /// Looks up all and removes all portions, where no reader waits for the tree.
    pub fn run_alone(mut self, tree: &mut Tree) -> Result<(), ErrorCode> {
        while self.look_up(tree)? {}
        while self.remove_portion(tree).is_some() {}
        Ok(())
    }

    /// Ephemerals by path; of a subtree children before their parents, and otherwise the last by name first: in the order in which the
    /// command itself removes them.
    fn take_next(&mut self) -> Option<(String, NodeId)> {
        match self.search {
            Search::Session { .. } => self.doomed.pop_first(),
            Search::Subtree { .. } => self.doomed.pop_last(),
        }
    }
}

impl Search<'_> {
    fn next(&mut self, tree: &Tree) -> Option<NodeId> {
        match self {
            Search::Session { session, after } => {
                let node = tree.store.ephemeral_behind(*session, *after)?;
                *after = Some(node);
                Some(node)
            }
            Search::Subtree { top, next, ids, is_forbidden, .. } => {
                let node = next.take()?;
                *next = tree.store.behind_in_subtree(*top, node);
                *is_forbidden |= tree.check_access(node, Perms::DELETE, *ids).is_err();
                Some(node)
            }
        }
    }

    fn is_above_limit(&self, found: usize) -> bool {
        matches!(*self, Search::Subtree { nodes_max, .. } if found > nodes_max)
    }

    /// The answer to whether all may go, once they are known.
    fn verdict(&self) -> Result<(), ErrorCode> {
        match self {
            Search::Subtree { is_forbidden: true, .. } => Err(ErrorCode::NoAuth),
            _ => Ok(()),
        }
    }
}
