//! Home, the groups, the client, and what is under way.

use super::rules::LevelSessions;
use crate::worlds::level_logs::{GROUPS, HOME};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LevelSessionsItem {
    Attach { owner: u8 },
    NewOwner { owner: u8 },
    End,
}

/// The session as one group knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelSessionsGroup {
    pub(super) items: u8,
    pub(super) owner: Option<u8>,
    pub(super) has_ended: bool,
    pub(super) has_ephemeral: bool,
    /// The owner has not said to go on, where it has to.
    pub(super) is_stalled: bool,
}

/// A command on its way. Those of one process to one group arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelSessionsMessage {
    pub(super) owner: u8,
    pub(super) group: usize,
    pub(super) command: LevelSessionsCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LevelSessionsCommand {
    Request(u8),
    Attach(usize),
    GoOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelSessionsStep {
    /// The owner sends the client's next request, or what has to come in front of it.
    Send,
    Arrive(usize),
    TakeItem(usize),
    Move,
    TimeOut,
    TellExpired,
    /// The client's new session looks for its lock in a group.
    LookForLock(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LevelSessionsState {
    pub(super) owner: u8,
    pub(super) has_ended: bool,
    /// Groups to which the session is attached, one bit each, beside home.
    pub(super) attached: u8,
    pub(super) streams: [Vec<LevelSessionsItem>; GROUPS],
    pub(super) groups: [LevelSessionsGroup; GROUPS],
    pub(super) messages: Vec<LevelSessionsMessage>,
    pub(super) next: u8,
    /// Requests that have no answer yet.
    pub(super) outstanding: Vec<u8>,
    pub(super) told: bool,
    pub(super) took_effect: u8,
    /// Requests of former connections that were refused, with their connections.
    pub(super) refused: Vec<(u8, u8)>,
    pub(super) is_out_of_order: bool,
    pub(super) found_own_lock: bool,
}

impl LevelSessionsState {
    pub(super) fn actions(&self, model: &LevelSessions, actions: &mut Vec<LevelSessionsStep>) {
        if self.is_broken() {
            return;
        }
        if (self.next as usize) < model.program.len() {
            actions.push(LevelSessionsStep::Send);
        }
        for (index, message) in self.messages.iter().enumerate() {
            let is_before = |other: &LevelSessionsMessage| {
                other.group == message.group && model.is_same_process(other.owner, message.owner)
            };
            if !self.messages[..index].iter().any(is_before) {
                actions.push(LevelSessionsStep::Arrive(index));
            }
        }
        for group in 1..GROUPS {
            if (self.groups[group].items as usize) < self.streams[group].len() {
                actions.push(LevelSessionsStep::TakeItem(group));
            }
        }
        if !self.has_ended {
            if (self.owner as usize) + 1 < model.processes.len() {
                actions.push(LevelSessionsStep::Move);
            }
            actions.push(LevelSessionsStep::TimeOut);
        } else if !self.told {
            actions.push(LevelSessionsStep::TellExpired);
        } else {
            actions.extend((0..GROUPS).map(LevelSessionsStep::LookForLock));
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_out_of_order || self.found_own_lock
    }

    pub(super) fn is_attached(&self, group: usize) -> bool {
        group == HOME || self.attached & (1 << group) != 0
    }

    /// True if an ephemeral of an ended session is left.
    pub(super) fn is_left_over(&self) -> bool {
        self.has_ended && self.groups.iter().any(|group| group.has_ephemeral)
    }

    /// True if all attached groups know the present owner.
    pub(super) fn have_heard(&self) -> bool {
        let has_heard = |group: usize| self.groups[group].owner == Some(self.owner);
        (0..GROUPS).filter(|&group| self.is_attached(group)).all(has_heard)
    }

    /// True if this process has something under way that an earlier connection of the session has asked for.
    pub(super) fn has_under_way(&self, model: &LevelSessions, owner: u8) -> bool {
        let is_earlier = |message: &LevelSessionsMessage| {
            message.owner < owner && model.is_same_process(message.owner, owner)
        };
        self.messages.iter().any(is_earlier)
    }
}
