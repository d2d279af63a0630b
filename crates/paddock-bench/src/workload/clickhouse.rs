//! `clickhouse`: a replicated table under inserts. Each insert is one multi, as ClickHouse makes them: check that the
//! table has not changed, take the block's hash, append to the table's log, note the time at the replica. The rest is
//! what replicas do meanwhile: read each other's state, and watch.

use paddock_proto::{CreateMode, OpCode, encode};

use super::names::Names;
use super::shape::{Setup, Shape};
use super::{Lane, NextRequest, Operation, WorkloadRequest};

const REPLICAS: usize = 10;
const INSERT_PERCENT: u32 = 70;
/// About what ClickHouse writes for the part of an insert.
const LOG_ENTRY_BYTES: usize = 150;
const PART_NAME: &[u8] = b"202611_184_184_0";
const TIME: &[u8] = b"1795219200";

pub(super) const OPERATIONS: [&str; 4] = ["multi", "get", "exists, watched", "list, watched"];
const INSERT: Operation = Operation(0);
const GET: Operation = Operation(1);
const EXISTS: Operation = Operation(2);
const LIST: Operation = Operation(3);

pub(super) fn setup(shape: &Shape) -> Setup<'_> {
    let table = ["", "/metadata", "/blocks", "/log", "/replicas"].map(|name| shape.znode(name));
    let replicas = (0..REPLICAS).flat_map(|number| {
        ["", "/min_unprocessed_insert_time"].map(|name| shape.znode(&format!("/replicas/r{number}{name}")))
    });
    Box::new(table.into_iter().chain(replicas))
}

pub(super) fn lanes(shape: &Shape) -> Vec<Box<dyn Lane>> {
    let root = &shape.root;
    let replica = |number: usize| format!("{root}/replicas/r{number}");
    let time = |number: usize| format!("{}/min_unprocessed_insert_time", replica(number));
    shape.lanes(|session| Replica {
        chance: shape.chance(session),
        metadata: format!("{root}/metadata"),
        blocks: Names::with_prefix(&format!("{root}/blocks/all_{session}_")),
        log: format!("{root}/log/log-"),
        entry: shape.value(LOG_ENTRY_BYTES),
        replicas: format!("{root}/replicas"),
        own_time: time(session % REPLICAS),
        others: (0..REPLICAS).map(replica).collect(),
        other_times: (0..REPLICAS).map(time).collect(),
    })
}

struct Replica {
    chance: fastrand::Rng,
    metadata: String,
    blocks: Names,
    log: String,
    entry: Vec<u8>,
    replicas: String,
    own_time: String,
    others: Vec<String>,
    other_times: Vec<String>,
}

impl Lane for Replica {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        let percent = self.chance.u32(0..100);
        let other = self.chance.usize(0..REPLICAS);
        NextRequest::Send(match percent {
            0..INSERT_PERCENT => {
                self.insert(request);
                INSERT
            }
            70..85 => {
                request.get(&self.others[other], false);
                GET
            }
            85..93 => {
                request.exists(&self.other_times[other], true);
                EXISTS
            }
            _ => {
                request.list(&self.replicas, true);
                LIST
            }
        })
    }
}

impl Replica {
    fn insert(&mut self, request: &mut WorkloadRequest<'_>) {
        request.multi(|out| {
            encode::multi_operation(out, OpCode::Check);
            encode::path_and_version(out, &self.metadata, 0);
            encode::multi_operation(out, OpCode::Create);
            encode::create_open(out, self.blocks.create(), Some(PART_NAME), CreateMode::Persistent);
            encode::multi_operation(out, OpCode::Create);
            encode::create_open(out, &self.log, Some(&self.entry), CreateMode::PersistentSequential);
            encode::multi_operation(out, OpCode::SetData);
            encode::set_data(out, &self.own_time, Some(TIME), -1);
        });
    }
}
