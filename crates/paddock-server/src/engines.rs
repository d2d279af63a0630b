//! The way to the engine of this process, whichever it is: a member of an ensemble, a front end on etcd, a mirror.

use paddock_state::ClientInput;

use crate::engine::MemberHandle;
use crate::etcd::EtcdHandle;
use crate::mirror::MirrorHandle;

/// The way to the engine of this process, for workers.
#[derive(Clone, Debug)]
pub(crate) enum EngineHandle {
    Member(MemberHandle),
    Etcd(EtcdHandle),
    Mirror(MirrorHandle),
}

impl EngineHandle {
    /// Hands inputs of clients to the engine and leaves the vector empty. After the engine's end they are dropped, and their
    /// connections are about to end too.
    pub(crate) fn hand_over(&self, inputs: &mut Vec<ClientInput>) {
        match self {
            EngineHandle::Member(member) => member.hand_over(inputs),
            EngineHandle::Etcd(etcd) => etcd.hand_over(inputs),
            EngineHandle::Mirror(mirror) => mirror.hand_over(inputs),
        }
    }

    /// Hands inputs over, and lets an engine that can work at once on this thread, `turns_max` turns at most. `meanwhile` is called
    /// then as often as there may be answers.
    pub(crate) fn work_off(&self, inputs: &mut Vec<ClientInput>, turns_max: usize, meanwhile: impl FnMut()) {
        match self {
            EngineHandle::Member(member) => member.work_off(inputs, turns_max, meanwhile),
            EngineHandle::Etcd(etcd) => etcd.hand_over(inputs),
            EngineHandle::Mirror(mirror) => mirror.work_off(inputs, turns_max, meanwhile),
        }
    }

    /// The member, if this process is one.
    pub(crate) fn member(&self) -> Option<MemberHandle> {
        match self {
            EngineHandle::Member(member) => Some(member.clone()),
            EngineHandle::Mirror(mirror) => mirror.successor(),
            EngineHandle::Etcd(_) => None,
        }
    }

    /// True if this process is a member, now.
    pub(crate) fn is_member(&self) -> bool {
        self.member().is_some()
    }

    /// A leader hands the lead over, as far as there is one.
    pub(crate) fn step_down(&self) {
        if let Some(member) = self.member() {
            member.step_down();
        }
    }

    /// The member asks the leader to hand it the lead.
    pub(crate) fn request_lead(&self) {
        if let Some(member) = self.member() {
            member.request_lead();
        }
    }

    /// A command between groups that the operator orders goes to the home group.
    pub(crate) fn order_between_groups(&self, body: Vec<u8>) {
        if let Some(member) = self.member() {
            member.order_between_groups(body);
        }
    }

    /// The member's configuration file has these members from now on.
    pub(crate) fn change_file_members(&self, lines: String) {
        if let Some(member) = self.member() {
            member.change_file_members(lines);
        }
    }

    /// A snapshot is to be taken soon. False if there is no log that would be let go for it.
    pub(crate) fn order_snapshot(&self) -> bool {
        let member = self.member();
        if let Some(member) = &member {
            member.order_snapshot();
        }
        member.is_some()
    }

    /// Ends the engine, which needs nothing any more once the workers have ended.
    pub(crate) fn close(&self) {
        match self {
            EngineHandle::Member(member) => member.close(),
            EngineHandle::Etcd(etcd) => etcd.close(),
            EngineHandle::Mirror(mirror) => mirror.close(),
        }
    }
}
