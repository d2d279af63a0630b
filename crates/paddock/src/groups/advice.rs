//! Advice on slots that should move, because one group has much more to do than others, or much more to keep.

use std::time::Duration;

use paddock_bench::report::units::one_line;
use serde_json::Value;

use super::slots_on;

/// A group has much more than others from this multiple of the mean on.
const MUCH: f64 = 1.5;
/// Below this number of commands in a second of all groups together, their sizes count, and not their loads.
const RATE_MIN: f64 = 100.0;
/// Below this number of bytes in all groups together no advice is given.
const BYTES_MIN: f64 = 1e6;

/// Load and size of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    group: u64,
    /// Commands in a second.
    pub(super) rate: f64,
    bytes: f64,
}

impl Load {
    /// Loads of the groups of a page, in its order, from an earlier look at it and a later one.
    pub(super) fn of_groups(before: &Value, after: &Value, time: Duration) -> Vec<Load> {
        let groups = |page: &Value| page["groups"].as_array().cloned().unwrap_or_default();
        let commands = |group: &Value| group["commands"].as_u64().unwrap_or_default();
        let before = groups(before);
        let load = |group: &Value| {
            let same = before.iter().find(|former| former["group"] == group["group"]);
            // A member that was started in between counts from 0.
            let since = same.map_or(0, commands).min(commands(group));
            Load {
                group: group["group"].as_u64().unwrap_or_default(),
                rate: (commands(group) - since) as f64 / time.as_secs_f64().max(f64::EPSILON),
                bytes: group["bytes"].as_f64().unwrap_or_default(),
            }
        };
        groups(after).iter().map(load).collect()
    }
}

/// The order that would take half of what the first group has more than the last one from it; empty if no group has much more than others.
pub(super) fn advice(page: &Value, loads: &[Load], host: &str) -> String {
    let (what, of): (_, fn(&Load) -> f64) = match loads.iter().map(|load| load.rate).sum::<f64>() {
        rate if rate >= RATE_MIN => ("commands", |load| load.rate),
        _ => ("bytes", |load| load.bytes),
    };
    let sum: f64 = loads.iter().map(of).sum();
    let order = |left: &&Load, right: &&Load| of(left).total_cmp(&of(right));
    let (Some(most), Some(least)) = (loads.iter().max_by(order), loads.iter().min_by(order)) else {
        return String::new();
    };
    let is_much = of(most) > MUCH * sum / loads.len() as f64 && (what == "commands" || sum >= BYTES_MIN);
    let Some((path, order)) = slots_to_move(page, most.group, least.group, of(most) - of(least), of(most))
    else {
        return String::new();
    };
    if !is_much {
        return String::new();
    }
    let share = of(most) / sum * 100.0;
    let group = if most.group == 0 { "the home group".to_owned() } else { format!("group {}", most.group) };
    format!(
        "\n{group} has {share:.0}% of all {what}; this would move a part of that, with the right of an administrator:\n  paddock groups move {host} {} {order}\n",
        one_line(&path)
    )
}

/// The split point with the most slots of a group, and options of an order that gives some of them to another group.
fn slots_to_move(page: &Value, from: u64, to: u64, excess: f64, all: f64) -> Option<(String, String)> {
    let points = page["split_points"].as_array()?;
    let there =
        points.iter().filter(|point| point["is_there"] == true).filter_map(|point| point["path"].as_str());
    let of_group = |path: &str| -> Vec<u16> {
        let slots = slots_on(page, path).unwrap_or_default();
        (0..).zip(slots).filter(|(_, group)| *group == from).map(|(slot, _)| slot).collect()
    };
    let (path, slots) = there.map(|path| (path, of_group(path))).max_by_key(|(_, slots)| slots.len())?;
    if slots.len() == usize::from(paddock_tree::SLOTS) {
        return Some((path.to_owned(), "--evenly".to_owned()));
    }
    let count = (slots.len() as f64 * excess / all / 2.0) as usize;
    // Of one run, so that it is one order.
    let first = *slots.get(slots.len().checked_sub(count.max(1))?)?;
    let last = (first..)
        .zip(slots.iter().filter(|slot| **slot >= first))
        .take_while(|(own, slot)| own == *slot)
        .last()?
        .0;
    Some((path.to_owned(), format!("--to {to} --slots {first}-{last}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(commands: [u64; 3], bytes: [u64; 3], slots: &[(u16, u16, u32)]) -> Value {
        let groups =
            (0..3).map(|group| json!({ "group": group, "commands": commands[group], "bytes": bytes[group] }));
        let runs =
            slots.iter().map(|(first, last, group)| json!({ "first": first, "last": last, "group": group }));
        json!({
            "groups": groups.collect::<Vec<_>>(),
            "split_points": [{ "path": "/app", "is_there": true, "slots": runs.collect::<Vec<_>>() }],
        })
    }

    #[test]
    fn a_group_with_much_more_than_others_is_named_with_slots_to_move() {
        let slots = [(0, 999, 0), (1000, 2999, 1), (3000, 4095, 2)];
        let check = |commands: [u64; 3], bytes: [u64; 3], slots: &[(u16, u16, u32)], expected: &str| {
            let (before, after) = (page([0; 3], bytes, slots), page(commands, bytes, slots));
            let loads = Load::of_groups(&before, &after, Duration::from_secs(2));
            let text = advice(&after, &loads, "zk1:8080");
            assert_eq!(text.lines().last().unwrap_or_default().trim(), expected, "{text}");
        };
        check([200, 1600, 200], [0; 3], &slots, "paddock groups move zk1:8080 /app --to 0 --slots 2125-2999");
        check([600, 800, 600], [0; 3], &slots, "");
        check([2000, 10, 10], [0; 3], &[(0, 4095, 0)], "paddock groups move zk1:8080 /app --evenly");
        check([2000, 10, 10], [0; 3], &[(0, 4095, 1)], "");
        let large = [1 << 20, 9 << 20, 1 << 19];
        check([10, 10, 10], large, &slots, "paddock groups move zk1:8080 /app --to 2 --slots 2056-2999");
        check([10, 10, 10], [10, 900, 10], &slots, "");
    }

    #[test]
    fn a_member_that_was_started_meanwhile_counts_from_its_start() {
        let (before, after) = (page([500; 3], [0; 3], &[]), page([100, 600, 0], [0; 3], &[]));
        let loads = Load::of_groups(&before, &after, Duration::from_secs(1));
        assert_eq!(loads.iter().map(|load| load.rate).collect::<Vec<_>>(), [0.0, 100.0, 0.0]);
    }
}
