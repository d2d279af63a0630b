//! Home, two groups, the client and the network.

use super::rules::Owners;

pub(super) const GROUPS: usize = 2;

/// Home's view of the session in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum OwnersAttachment {
    #[default]
    No,
    Yes,
    /// The group has been asked to let go, and counts as attached until it has.
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum OwnersItem {
    Attach { owner: u8 },
    NewOwner { owner: u8 },
    Detach,
    Fence,
    Release,
}

/// The session as one group knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnersGroup {
    pub(super) items: u8,
    pub(super) owner: Option<u8>,
    pub(super) is_fenced: bool,
    pub(super) has_ephemeral: bool,
    /// The owner that staged a part of the run here.
    pub(super) staged_by: Option<u8>,
    /// Its part of the run has been released.
    pub(super) has_run: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum OwnersRun {
    #[default]
    Open,
    Decided,
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum OwnersMessage {
    Command { request: u8, owner: u8 },
    Stage { group: usize, owner: u8 },
    Decide { owner: u8 },
    Attach { group: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnersStep {
    /// The owner sends the client's next request, or asks home to attach the session first.
    Send,
    SendDecision,
    Arrive(OwnersMessage),
    Item {
        group: usize,
        number: u8,
    },
    /// A newer item may take the place of older ones that were not sent yet.
    Move {
        supersedes: bool,
    },
    TimeOut {
        supersedes: bool,
    },
    Detach(usize),
    TellExpired,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnersState {
    pub(super) owner: u8,
    pub(super) has_ended: bool,
    pub(super) attachments: [OwnersAttachment; GROUPS],
    pub(super) streams: [Vec<OwnersItem>; GROUPS],
    pub(super) run: OwnersRun,
    pub(super) groups: [OwnersGroup; GROUPS],
    pub(super) messages: Vec<OwnersMessage>,
    pub(super) next: u8,
    pub(super) is_outstanding: bool,
    pub(super) moves: u8,
    pub(super) detaches: u8,
    pub(super) told: bool,
    pub(super) took_effect: u8,
    pub(super) is_out_of_order: bool,
    pub(super) wrote_after_told: bool,
}

impl OwnersState {
    pub(super) fn actions(&self, model: &Owners, actions: &mut Vec<OwnersStep>) {
        if self.is_broken() {
            return;
        }
        // An owner that has not heard of the end goes on.
        if !self.is_outstanding && (self.next as usize) < model.program.len() {
            actions.push(OwnersStep::Send);
        }
        let is_staged = self.groups.iter().all(|group| group.staged_by.is_some());
        if is_staged && self.run == OwnersRun::Open {
            actions.push(OwnersStep::SendDecision);
        }
        actions.extend(self.messages.iter().map(|&message| OwnersStep::Arrive(message)));
        for group in 0..GROUPS {
            let sent = self.streams[group].len() as u8;
            actions.extend((0..sent).map(|number| OwnersStep::Item { group, number }));
            if self.detaches < model.detaches && self.attachments[group] == OwnersAttachment::Yes {
                actions.push(OwnersStep::Detach(group));
            }
        }
        if !self.has_ended {
            for supersedes in [false, true] {
                if self.moves < model.moves {
                    actions.push(OwnersStep::Move { supersedes });
                }
                actions.push(OwnersStep::TimeOut { supersedes });
            }
        } else if !self.told {
            actions.push(OwnersStep::TellExpired);
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_out_of_order || self.wrote_after_told
    }

    /// True if anything of an ended session is left.
    pub(super) fn is_left_over(&self) -> bool {
        let is_left =
            |group: &OwnersGroup| group.has_ephemeral && self.has_ended || group.staged_by.is_some();
        self.groups.iter().any(is_left)
    }

    /// True if a group does not have its part of a run that was decided.
    pub(super) fn lacks_run(&self) -> bool {
        self.run == OwnersRun::Decided && !self.groups.iter().all(|group| group.has_run)
    }
}
