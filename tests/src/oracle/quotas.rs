//! The znodes below `/zookeeper/quota` that carry quotas.

use paddock_chance::Chance;
use paddock_proto::OpCode;

use super::acls;
use super::arguments::Paths;
use super::body::{Body, ROOT};
use super::multis::multi_header;
use super::sequence::{Connect, OracleCall, OracleStep, Sequence};

/// Limits, soft and hard.
const TEXTS: [&str; 8] = [
    "count=3,bytes=10",
    "count=-1,bytes=-1",
    "count=0,bytes=0",
    "bytes=5,count=1",
    "count=1,bytes=1=;byteHardLimit=30;countHardLimit=6",
    "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=4",
    "count=-1,bytes=-1=;byteHardLimit=12;countHardLimit=-1",
    "count=9,bytes=9=;byteHardLimit=0;countHardLimit=0",
];

/// Makes all quotas that there may be.
pub(super) fn set_up(chance: &mut Chance, paths: &Paths) -> Vec<OracleCall> {
    let mut calls = Vec::new();
    for path in &paths.quotas {
        let path = format!("/zookeeper/quota{path}");
        let limits = *chance.pick(&TEXTS);
        calls.push(create(&path, ""));
        calls.push(create(&format!("{path}/zookeeper_limits"), limits));
        calls.push(create(&format!("{path}/zookeeper_stats"), ""));
    }
    calls
}

fn create(path: &str, text: &str) -> OracleCall {
    let body = Body::new().string(Some(path)).buffer(Some(text.as_bytes()));
    let body = acls::open(body);
    OracleCall::of("create", OpCode::Create, body.int("flags", 0))
}

/// A sequence whose last create is above a hard limit.
pub fn above_a_limit() -> Sequence {
    let quota = format!("/zookeeper/quota{ROOT}");
    let calls = [
        create(&quota, ""),
        create(&format!("{quota}/zookeeper_limits"), "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2"),
        create(&format!("{quota}/zookeeper_stats"), ""),
        create(&format!("{ROOT}/a"), ""),
        create(&format!("{ROOT}/b"), ""),
    ];
    let connect = OracleStep::Connect { slot: 0, connect: Connect::new_session() };
    let calls = calls.into_iter().map(|call| OracleStep::Calls { slot: 0, calls: vec![call] });
    Sequence { whole_tree: false, steps: std::iter::once(connect).chain(calls).collect() }
}

/// A sequence whose last multi is above a hard limit by both of its creates together, and by none of them alone.
pub fn multi_above_a_limit() -> Sequence {
    let mut sequence = above_a_limit();
    sequence.steps.truncate(4);
    let both = ["a", "b"].iter().fold(Body::new(), |body, name| {
        let fields = Body::new().string(Some(&format!("{ROOT}/{name}"))).buffer(Some(b""));
        body.then(multi_header(OpCode::Create.code(), false)).then(acls::open(fields).int("flags", 0))
    });
    let call = OracleCall::of("multi", OpCode::Multi, both.then(multi_header(-1, true)));
    sequence.steps.push(OracleStep::Calls { slot: 0, calls: vec![call] });
    sequence
}

/// Makes, changes, reads and removes the znodes that carry a quota. Their text is always good: ZooKeeper's process ends
/// when it meets another one. For the same reason they stand nowhere but below `/zookeeper/quota/<path>`.
pub(super) fn quota(chance: &mut Chance, paths: &Paths) -> OracleCall {
    let path = format!("/zookeeper/quota{}", chance.pick(&paths.quotas));
    let limits = format!("{path}/zookeeper_limits");
    let stats = format!("{path}/zookeeper_stats");
    let either = chance.pick(&[&limits, &stats]).to_string();
    let text = *chance.pick(&TEXTS);
    let read = |path: &str| {
        OracleCall::of("getData", OpCode::GetData, Body::new().string(Some(path)).flag("watch", true))
    };
    match chance.index(10) {
        0 | 1 => create(&path, ""),
        2 | 3 => create(&limits, text),
        4 | 5 => create(&stats, text),
        6 => {
            let body = Body::new().string(Some(&either)).buffer(Some(text.as_bytes())).int("version", -1);
            OracleCall::of("setData", OpCode::SetData, body)
        }
        7 => OracleCall::of("delete", OpCode::Delete, Body::new().string(Some(&either)).int("version", -1)),
        _ => read(&stats),
    }
}
