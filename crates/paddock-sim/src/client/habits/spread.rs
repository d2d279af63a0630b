//! Requests of clients where znodes are spread over groups: mostly about what lies below split points, from one group to the next.

use paddock_model::{Question, Wish};
use paddock_proto::OpCode;

use super::{Ask, Mind};
use crate::names;

/// Children of split points, each in a slot of its own.
const CHILDREN: [&str; 6] = ["x", "y", "z", "u", "v", "w"];

impl Mind<'_> {
    pub(super) fn ask_spread(
        &mut self,
        (writes, syncs, watches): (u64, u64, u64),
        keeps_watches: bool,
    ) -> Ask {
        if self.chance.permille(writes) {
            return Ask::Write(self.write_spread());
        }
        if self.chance.permille(syncs) {
            return Ask::Sync;
        }
        let path = self.spread_path();
        let question = match self.chance.below(20) {
            0..5 => Question::Exists { path },
            5..10 => Question::GetData { path },
            10..13 => Question::GetChildren { path },
            13..15 => Question::GetChildren2 { path },
            15 => Question::GetAcl { path },
            16 if keeps_watches => return self.add_watch(),
            16 => return Ask::WhoAmI,
            17 => Question::GetChildren { path: self.split_point() },
            18 => Question::GetChildren2 { path: self.split_point() },
            _ => Question::Exists { path: self.split_point() },
        };
        Ask::Read { question, watch: self.chance.permille(watches) }
    }

    /// A watch that stays, below a split point, at one, or above all of them.
    fn add_watch(&mut self) -> Ask {
        let path = match self.chance.below(8) {
            0..4 => self.spread_path(),
            4..7 => self.split_point(),
            _ => "/".to_owned(),
        };
        Ask::AddWatch { path, mode: self.mode() }
    }

    fn write_spread(&mut self) -> Wish {
        match self.chance.below(100) {
            0..4 => {
                let count = self.chance.below(4);
                let step = |mind: &mut Self| {
                    let top = mind.spread_child();
                    mind.step_at(&top)
                };
                Wish::Multi((0..count).map(|_| step(self)).collect())
            }
            4..10 => {
                let (count, top) = (self.chance.below(5), self.spread_child());
                Wish::Multi((0..count).map(|_| self.step_at(&top)).collect())
            }
            10..13 => Wish::SetAcl { path: self.spread_path(), acl: self.acl(), version: self.version() },
            13 => Wish::Broken,
            14..17 => self.create_sequential(),
            17..25 => self.step(),
            25..33 => {
                let path = self.split_point();
                Wish::Create {
                    op: OpCode::Create,
                    path,
                    data: self.data(),
                    acl: self.acl(),
                    flags: 0,
                    ttl_ms: 0,
                }
            }
            _ => {
                let top = self.spread_child();
                match self.step_at(&top) {
                    // Alone it ends the connection.
                    Wish::Check { path, version } => Wish::SetData { path, data: self.data(), version },
                    step => step,
                }
            }
        }
    }

    /// A write of this znode, or of one below it: all that a multi holds is in one slot.
    fn step_at(&mut self, top: &str) -> Wish {
        let path = match self.chance.below(3) {
            0 => format!("{top}/{}", self.chance.pick(&CHILDREN)),
            _ => top.to_owned(),
        };
        match self.chance.below(100) {
            0..50 => {
                let flags = i32::from(self.chance.one_in(2));
                let op = *self.chance.pick(&[OpCode::Create, OpCode::Create, OpCode::Create2]);
                Wish::Create { op, path, data: self.data(), acl: self.acl(), flags, ttl_ms: 0 }
            }
            50..75 => Wish::SetData { path, data: self.data(), version: self.version() },
            75..78 => Wish::Check { path, version: self.version() },
            _ => Wish::Delete { path, version: self.version() },
        }
    }

    fn create_sequential(&mut self) -> Wish {
        let top = if self.chance.one_in(2) { self.split_point() } else { self.spread_child() };
        let (flags, path) = (*self.chance.pick(&[2, 3]), format!("{top}/n-"));
        Wish::Create { op: OpCode::Create, path, data: self.data(), acl: self.acl(), flags, ttl_ms: 0 }
    }

    fn split_point(&mut self) -> String {
        // Most in one of them, so that clients meet.
        let point = if self.chance.one_in(2) { 0 } else { self.chance.below(3) as usize };
        names::SPLIT_POINTS[point].to_owned()
    }

    fn spread_child(&mut self) -> String {
        format!("{}/{}", self.split_point(), self.chance.pick(&CHILDREN))
    }

    fn spread_path(&mut self) -> String {
        match self.chance.below(10) {
            0..6 => self.spread_child(),
            6..8 => format!("{}/{}", self.spread_child(), self.chance.pick(&CHILDREN)),
            _ => self.path(),
        }
    }
}
