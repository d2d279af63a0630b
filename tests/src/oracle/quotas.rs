//! The znodes below `/zookeeper/quota` that carry quotas.

use paddock_proto::OpCode;

use super::acls;
use super::arguments::Paths;
use super::body::Body;
use super::sequence::Call;
use paddock_chance::Chance;

/// Makes, changes, reads and removes the znodes that carry a quota. Their text is always good: ZooKeeper's process ends
/// when it meets another one. For the same reason they stand nowhere but below `/zookeeper/quota/<path>`.
pub(super) fn quota(chance: &mut Chance, paths: &Paths) -> Call {
    let path = format!("/zookeeper/quota{}", chance.pick(&paths.quotas));
    let limits = format!("{path}/zookeeper_limits");
    let stats = format!("{path}/zookeeper_stats");
    let either = chance.pick(&[&limits, &stats]).to_string();
    let text = *chance.pick(&["count=3,bytes=10", "count=-1,bytes=-1", "count=0,bytes=0", "bytes=5,count=1"]);
    let create = |path: &str, text: &str| {
        let body = Body::new().string(Some(path)).buffer(Some(text.as_bytes()));
        let body = acls::open(body);
        Call::of("create", OpCode::Create, body.int("flags", 0))
    };
    let read =
        |path: &str| Call::of("getData", OpCode::GetData, Body::new().string(Some(path)).flag("watch", true));
    match chance.index(10) {
        0 | 1 => create(&path, ""),
        2 | 3 => create(&limits, text),
        4 | 5 => create(&stats, text),
        6 => {
            let body = Body::new().string(Some(&either)).buffer(Some(text.as_bytes())).int("version", -1);
            Call::of("setData", OpCode::SetData, body)
        }
        7 => Call::of("delete", OpCode::Delete, Body::new().string(Some(&either)).int("version", -1)),
        _ => read(&stats),
    }
}
