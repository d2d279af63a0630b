//! Clients of one split point: one creates many children at once, again and again, and one looks on.
//!
//! A burst goes to any Raft groups, and no child may be seen before those that were asked for in front of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use paddock_client::{Client, ClientOptions, Error};
use paddock_proto::CreateMode;

/// Creates that are under way together.
const BURST: usize = 64;

/// Names of a series of creates, which follow each other until the connection is lost.
fn name(series: usize, number: usize) -> String {
    format!("burst-{series}-{number}-")
}

/// Series and number in a name.
fn numbers(name: &str) -> Option<(usize, usize)> {
    let (series, number) = name.strip_prefix("burst-")?.strip_suffix('-')?.split_once('-')?;
    Some((series.parse().ok()?, number.parse().ok()?))
}

/// Creates children of a split point until it is stopped, as many at once as make a burst. Returns the names that were acknowledged, in their order.
///
/// # Panics
/// If a create is refused, or acknowledged behind one that was not.
#[tokio::main(flavor = "current_thread")]
pub async fn write_bursts_until(hosts: &str, split_point: &str, stop: &AtomicBool) -> Vec<String> {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    let (mut acknowledged, mut series, mut next) = (Vec::new(), 0, 0);
    while !stop.load(Ordering::Relaxed) {
        let names: Vec<String> = (next..next + BURST).map(|number| name(series, number)).collect();
        let create =
            |name: &String| client.create(&format!("{split_point}/{name}"), b"data", CreateMode::Persistent);
        let asked: Vec<_> = names.iter().map(create).collect();
        let mut is_lost = false;
        for (name, created) in names.into_iter().zip(asked) {
            match created.await {
                Ok(_) if is_lost => {
                    panic!("{name} is acknowledged, and one that was asked for before is not")
                }
                Ok(_) => acknowledged.push(name),
                // Its member has gone: it is not known what became of the write.
                Err(Error::ConnectionLost) => is_lost = true,
                Err(error) => panic!("{name}: {error}"),
            }
        }
        (series, next) = if is_lost { (series + 1, 0) } else { (series, next + BURST) };
    }
    client.close().await.expect("close");
    acknowledged
}

/// Lists the children of a split point until it is stopped. Returns the number of lists with something new.
///
/// # Panics
/// If a child is there and one that was asked for before it is not, or if something that was seen is gone.
#[tokio::main(flavor = "current_thread")]
pub async fn look_on_until(hosts: &str, split_point: &str, stop: &AtomicBool) -> usize {
    let client = Client::connect(hosts, ClientOptions::default()).await.expect("connect");
    let (mut seen, mut growths) = (BTreeMap::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        let names = match client.get_children(split_point).await {
            Ok(names) => names,
            Err(Error::ConnectionLost) => continue,
            Err(error) => panic!("{split_point}: {error}"),
        };
        let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (series, number) in names.iter().filter_map(|name| numbers(name)) {
            found.entry(series).or_default().insert(number);
        }
        let mut counts = BTreeMap::new();
        for (series, numbers) in found {
            let gap = (0..).zip(&numbers).find(|(expected, number)| expected != *number);
            assert_eq!(gap, None, "creates of series {series} are seen, and not one before them");
            counts.insert(series, numbers.len());
        }
        let has_lost = |(series, count): (&usize, &usize)| counts.get(series) < Some(count);
        assert!(!seen.iter().any(has_lost), "there was {seen:?}, and then {counts:?}");
        growths += usize::from(counts != seen);
        seen = counts;
    }
    client.close().await.expect("close");
    growths
}
