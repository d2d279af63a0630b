//! Statistics of quotas, which each group keeps for what it has.

use paddock_proto::jute::Reader;
use paddock_proto::{CreateMode, OpCode, SessionId, Stat, encode};

use super::placement::hosted;
use super::routed_pair::{RoutedPair, ToldClient};

const QUOTA: &str = "/zookeeper/quota/b";

#[test]
fn a_reader_is_told_what_all_groups_have_counted() {
    for is_away in [false, true] {
        let mut pair = if is_away { hosted() } else { RoutedPair::new() };
        let statistics = format!("{QUOTA}/zookeeper_stats");
        pair.create(0, 100, QUOTA);
        for (floor, name) in [(101, "zookeeper_limits"), (102, "zookeeper_stats")] {
            let mut body = Vec::new();
            let path = format!("{QUOTA}/{name}");
            encode::create_open(&mut body, &path, Some(b"count=-1,bytes=-1"), CreateMode::Persistent);
            pair.write(0, floor, SessionId::NONE, OpCode::Create, &body);
        }
        pair.send_items(103);
        pair.create(1, 110, "/b/first");
        pair.create(1, 111, "/b/second");
        let mut body = Vec::new();
        encode::path_and_watch(&mut body, &statistics, false);
        pair.hand_in(OpCode::GetData, body);
        pair.create(0, 120, "/later");
        pair.send_items(120);
        pair.create(1, 121, "/b/first/later");
        let answered = (0..10).any(|_| pair.work().contains(&ToldClient::Answer));
        assert!(answered, "is away: {is_away}");
        let mut reader = Reader::new(&pair.answered);
        let data = reader.buffer().unwrap().unwrap();
        // The split point itself, which is home's, and its children.
        assert_eq!(std::str::from_utf8(data), Ok("count=4,bytes=0"), "is away: {is_away}");
        assert_eq!(Stat::decode(&mut reader).unwrap().data_length, data.len() as i32);
    }
}
