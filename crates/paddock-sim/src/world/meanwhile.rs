//! Moments within the entries that a member applies: its engine has let the state go, and its other threads have it. Frames come,
//! mail is delivered, connections go on or end, a snapshot wants to begin; or the process is killed.

use paddock_model::{Dump, dump};
use paddock_proto::{SessionId, Zxid};

use super::World;
use crate::machine::beside::{Beside, Others};

/// All znodes are compared with the model's after one such moment in this number.
const LOOK_ONE_IN: u64 = 50;
/// Things that happen in one such moment, at most.
const HAPPENINGS_MAX: u64 = 3;

pub(super) struct Meanwhile<'a> {
    world: &'a mut World,
    member: u8,
    witnessed: Witnessed,
}

/// Notes of such moments in a turn, to be judged when it is known what the turn was about.
#[derive(Debug, Default)]
pub(super) struct Witnessed {
    /// Sessions that were heard.
    pub(super) heard: Vec<SessionId>,
    /// The state at some zxids.
    pub(super) passed: Vec<(Zxid, Dump)>,
}

impl<'a> Meanwhile<'a> {
    pub(super) fn new(world: &'a mut World, member: u8) -> Meanwhile<'a> {
        Meanwhile { world, member, witnessed: Witnessed::default() }
    }

    pub(super) fn into_witnessed(self) -> Witnessed {
        self.witnessed
    }

    fn happen(&mut self, beside: &mut Beside<'_>) {
        let Meanwhile { world, member, witnessed } = self;
        let packets = match world.chance.below(10) {
            0..6 => {
                let conns = world.conns_with_frames(*member);
                if conns.is_empty() {
                    return;
                }
                let conn = *world.chance.pick(&conns);
                let Some(frame) = world.next_frame(conn) else { return };
                witnessed.heard.extend(world.note_taken(frame.enter(beside)));
                return;
            }
            6 => {
                let worker = world.chance.below(beside.workers.count() as u64) as usize;
                beside.deliver(worker)
            }
            7 => beside.take_turns(),
            8 => beside.report_heard(),
            _ => {
                beside.walk();
                return;
            }
        };
        world.send_packets(packets);
    }
}

impl Others for Meanwhile<'_> {
    fn have_state(&mut self, beside: &mut Beside<'_>) {
        if self.world.dies_within_entry(self.member) {
            return;
        }
        if !self.world.machine(self.member).blame.is_foreign && self.world.chance.one_in(LOOK_ONE_IN) {
            let state = beside.state.read();
            self.witnessed.passed.push((state.tree().zxid(), dump(state.tree())));
        }
        for _ in 0..self.world.chance.below(HAPPENINGS_MAX + 1) {
            self.happen(beside);
        }
    }
}

impl World {
    /// Counts the moments until the process is killed in one, if it is to be. True if it is dead.
    fn dies_within_entry(&mut self, member: u8) -> bool {
        let now = self.now;
        let machine = self.machine(member);
        let Some(moments) = &mut machine.faults.dies_within_entry else { return false };
        *moments = moments.saturating_sub(1);
        if *moments > 0 {
            return false;
        }
        machine.faults.dies_within_entry = None;
        machine.disk.die();
        self.trace.note(now, format_args!("{member} dies within an entry"));
        true
    }
}
