//! One session's part of a plan.

use std::sync::Arc;

use fastrand::Rng;
use paddock_proto::{CreateMode, OpCode, encode};

use super::names::Names;
use super::operations::{OperationKind, Operations};
use super::plan::{KeeperPlan, Leaf, PlannedRequest, Pool};
use super::values::Size;
use crate::workload::multi_read;
use crate::workload::{Lane, NextRequest, ReplyVerdict, ServerReply, WorkloadRequest};

pub(super) struct KeeperLane {
    plan: Arc<KeeperPlan>,
    operations: Operations,
    hand: Hand,
}

/// State that a lane changes as it goes on.
struct Hand {
    rng: Rng,
    names: Names,
    /// The sets of paths of this lane's creations that are there when all its requests so far have been carried out.
    made: Vec<Vec<String>>,
    path: String,
    data: Vec<u8>,
    watch: bool,
}

impl KeeperLane {
    pub(super) fn new(plan: Arc<KeeperPlan>, operations: Operations, rng: Rng, names: Names) -> KeeperLane {
        let made = vec![Vec::new(); plan.sets];
        let hand = Hand { rng, names, made, path: String::new(), data: Vec::new(), watch: false };
        KeeperLane { plan, operations, hand }
    }
}

impl Lane for KeeperLane {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        let KeeperLane { plan, operations, hand } = self;
        let step = plan.requests.choose(&mut hand.rng, |step| step.is_ready(&hand.made));
        let kind = match step.expect("a file in which no request could be made was refused") {
            PlannedRequest::Single(leaf) => {
                let op = hand.decide(leaf, plan);
                request.write(op, |out| hand.encode(op, out));
                OperationKind::of(op)
            }
            PlannedRequest::Multi { size, reads: false, parts } => {
                request.multi(|out| hand.write_parts(*size, parts, plan, out));
                OperationKind::Multi
            }
            PlannedRequest::Multi { size, reads: true, parts } => {
                request.write(OpCode::MultiRead, |out| {
                    hand.write_parts(*size, parts, plan, out);
                    encode::multi_end(out);
                });
                OperationKind::MultiRead
            }
        };
        NextRequest::Send(operations.number(kind))
    }

    fn answered(&mut self, answer: &ServerReply<'_>) -> ReplyVerdict {
        let is_multi_read = self.operations.is(answer.operation, OperationKind::MultiRead);
        let error = if is_multi_read { multi_read::error(answer) } else { answer.error };
        if error == 0 { ReplyVerdict::Good } else { ReplyVerdict::Bad }
    }
}

impl PlannedRequest {
    fn is_ready(&self, made: &[Vec<String>]) -> bool {
        match self {
            PlannedRequest::Single(leaf) => leaf.is_ready(made),
            PlannedRequest::Multi { size, parts, .. } => parts
                .entries
                .iter()
                .any(|(weight, leaf)| (*weight > 0 || size.is_none()) && leaf.is_ready(made)),
        }
    }
}

impl Leaf {
    fn is_ready(&self, made: &[Vec<String>]) -> bool {
        let (Leaf::Create { parents: paths, .. }
        | Leaf::Set { paths, .. }
        | Leaf::Get { paths, .. }
        | Leaf::List { paths, .. }) = self;
        !paths.is_empty(made)
    }
}

impl Hand {
    /// The parts of a multi: so many that are chosen, or one of each. Those without any path yet are left out.
    fn write_parts(
        &mut self,
        size: Option<Size>,
        parts: &super::plan::Choices<Leaf>,
        plan: &KeeperPlan,
        out: &mut Vec<u8>,
    ) {
        let Some(size) = size else {
            for (_, leaf) in &parts.entries {
                self.write_part(leaf, plan, out);
            }
            return;
        };
        for _ in 0..size.draw(&mut self.rng) {
            if let Some(leaf) = parts.choose(&mut self.rng, |leaf| leaf.is_ready(&self.made)) {
                self.write_part(leaf, plan, out);
            }
        }
    }

    fn write_part(&mut self, leaf: &Leaf, plan: &KeeperPlan, out: &mut Vec<u8>) {
        if !leaf.is_ready(&self.made) {
            return;
        }
        let op = match self.decide(leaf, plan) {
            // A multi read knows only the older of the two lists.
            OpCode::GetChildren2 => OpCode::GetChildren,
            op => op,
        };
        encode::multi_operation(out, op);
        self.encode(op, out);
    }

    /// Draws path and data of the next request.
    fn decide(&mut self, leaf: &Leaf, plan: &KeeperPlan) -> OpCode {
        match leaf {
            Leaf::Create { parents, name_length, data, remove_factor, into } => {
                if let Some(set) = *into
                    && self.remove(set, *remove_factor)
                {
                    return OpCode::Delete;
                }
                self.create(parents, *name_length, plan);
                data.draw(&mut self.rng, &mut self.data);
                if let Some(set) = *into {
                    self.made[set].push(self.path.clone());
                }
                OpCode::Create
            }
            Leaf::Set { paths, data } => {
                self.pick(paths);
                data.draw(&mut self.rng, &mut self.data);
                OpCode::SetData
            }
            Leaf::Get { paths, watch } => self.read(paths, *watch, OpCode::GetData),
            Leaf::List { paths, watch } => self.read(paths, *watch, OpCode::GetChildren2),
        }
    }

    fn read(&mut self, paths: &Pool, watch: f64, op: OpCode) -> OpCode {
        self.pick(paths);
        self.watch = watch > 0.0 && self.rng.f64() < watch;
        op
    }

    fn pick(&mut self, paths: &Pool) {
        self.path.clear();
        self.path.push_str(paths.draw(&self.made, &mut self.rng));
    }

    /// True if this create is to be a removal instead.
    fn remove(&mut self, set: usize, remove_factor: f64) -> bool {
        let made = &mut self.made[set];
        if made.is_empty() || remove_factor == 0.0 || self.rng.f64() >= remove_factor {
            return false;
        }
        self.path = made.swap_remove(self.rng.usize(0..made.len()));
        true
    }

    fn create(&mut self, parents: &Pool, name_length: Size, plan: &KeeperPlan) {
        self.pick(parents);
        if !self.path.ends_with('/') {
            self.path.push('/');
        }
        let (parent, length) = (self.path.len(), name_length.draw(&mut self.rng));
        loop {
            self.names.append(length, &mut self.rng, &mut self.path);
            if !plan.taken.contains(&self.path[parent..]) {
                return;
            }
            self.path.truncate(parent);
        }
    }

    fn encode(&self, op: OpCode, out: &mut Vec<u8>) {
        match op {
            OpCode::Create => encode::create_open(out, &self.path, Some(&self.data), CreateMode::Persistent),
            OpCode::Delete => encode::path_and_version(out, &self.path, -1),
            OpCode::SetData => encode::set_data(out, &self.path, Some(&self.data), -1),
            _ => encode::path_and_watch(out, &self.path, self.watch),
        }
    }
}
