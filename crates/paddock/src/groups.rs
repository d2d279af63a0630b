//! `paddock groups`: the Raft groups of an ensemble, and the znodes whose children may be spread over them.
//!
//! An order has no answer of its own: the command looks at the member until it is carried out there.

mod advice;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Subcommand;
use paddock_bench::Access;
use paddock_bench::report::units::one_line;
use paddock_tree::SLOTS;
use serde_json::{Value, json};

use advice::{Load, advice};

use crate::access::{AccessArgs, AccessError};
use crate::admin_client::{AdminError, AdminInterface};
use crate::http_client::{HttpAddress, get};

/// Page on which a member tells of its groups.
const PAGE: &str = "/api/v1/groups";
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(100);
/// Pause behind the first slot that moves. Members expect more to move from then on, and let no write of a session overtake its reads, which a group
/// refuses when their znodes have left.
const FOREWARNING: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  paddock groups list zk1:8080             groups with their leaders, load and size, split points with their slots, and
                                           which slots to move if one group has much more than others
  paddock groups list zk1:8080 --over 1m   the load of a minute
  paddock groups list zk1:8080 --json      the same for a program
  paddock groups split zk1:8080 /app --auth @identity
                                           let children of /app be spread over the groups
  paddock groups join zk1:8080 /app --auth @identity
                                           take that back while all of them are in the home group
  paddock groups move zk1:8080 /app --to 1 --slots 0-2047 --auth @identity
                                           give half of the children of /app to group 1
  paddock groups move zk1:8080 /app --evenly --auth @identity
                                           spread them over all groups
  paddock groups move zk1:8080 /app --to 0 --auth @identity
                                           bring all of them back to the home group
  paddock groups list https://zk1:8443 --tls-ca ca.pem

HOST is the address of a member's HTTP interface (admin_listen, admin.serverPort). Split points that everybody may read are shown; for others,
and to change them, show the identity of an administrator with --auth.";

/// Look at the Raft groups of an ensemble, and change which znodes are split points
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GroupsArgs {
    #[command(subcommand)]
    command: GroupsOrder,
}

#[derive(Debug, Subcommand)]
enum GroupsOrder {
    List(ListArgs),
    /// Make a znode a split point, whose children may be spread over the groups
    Split(ChangeArgs),
    /// Make a split point an ordinary znode, while all its children are in the home group
    Join(ChangeArgs),
    /// Move slots of a split point, with the znodes in them, to another group
    Move(MoveArgs),
}

#[derive(Debug, clap::Args)]
struct MoveArgs {
    /// HTTP interface of a member, host:port or URL
    #[arg(value_name = "HOST", value_parser = HttpAddress::parse)]
    host: HttpAddress,
    /// Path of the split point
    #[arg(value_name = "PATH")]
    path: String,
    /// Number of the group that the slots go to
    #[arg(long, value_name = "GROUP", required_unless_present = "evenly", conflicts_with = "evenly")]
    to: Option<u32>,
    /// Slots from the first to the last
    #[arg(long, value_name = "FIRST-LAST", default_value = "0-4095", value_parser = slots)]
    slots: (u16, u16),
    /// Spread the slots over all groups, the home group included
    #[arg(long)]
    evenly: bool,
    /// Slots that move at a time: while they do, requests about them wait for some milliseconds
    #[arg(long, value_name = "SLOTS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    at_once: u16,
    /// Time within which each portion has to be moved
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    within: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

/// Slots as `FIRST-LAST`, or one.
fn slots(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let slot = |text: &str| text.trim().parse::<u16>().ok().filter(|slot| *slot < SLOTS);
    match (slot(first), slot(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(format!("slots are numbers from 0 to {}, such as 0-2047", SLOTS - 1)),
    }
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// HTTP interface of a member, host:port or URL
    #[arg(value_name = "HOST", value_parser = HttpAddress::parse)]
    host: HttpAddress,
    /// Path of the znode, which need not be there
    #[arg(value_name = "PATH")]
    path: String,
    /// Time within which the member has to carry it out
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    within: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

/// List groups with their leaders, and split points with their slots
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct ListArgs {
    /// HTTP interface of a member, host:port or URL
    #[arg(value_name = "HOST", default_value = "localhost:8080", value_parser = HttpAddress::parse)]
    host: HttpAddress,
    /// Time over which the load is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration, conflicts_with = "json")]
    over: Duration,
    /// Print JSON, with the number of commands since the member's start in the place of the load
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, thiserror::Error)]
enum GroupsFailure {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("ask {host}: {reason}; HOST is the address of a member's HTTP interface (admin_listen)")]
    Ask { host: String, reason: std::io::Error },
    #[error("{host} answers {status} to {PAGE}: it is no HTTP interface of this release of Paddock")]
    NoInterface { host: String, status: hyper::StatusCode },
    #[error(
        "{path} is no split point, or may not be seen: `paddock groups split` makes it one, --auth shows an identity"
    )]
    NoSplitPoint { path: String },
    #[error(transparent)]
    Order(#[from] AdminError),
    #[error(
        "not carried out after {}: the ensemble may be without a quorum; `paddock groups list` shows whether it is done later",
        humantime::format_duration(*within)
    )]
    Late { within: Duration },
}

pub(crate) fn run(args: &GroupsArgs) -> ExitCode {
    let done = match &args.command {
        GroupsOrder::List(args) => list(args),
        GroupsOrder::Split(args) => change(args, "/api/v1/groups/split", "a split point", true),
        GroupsOrder::Join(args) => change(args, "/api/v1/groups/join", "an ordinary znode", false),
        GroupsOrder::Move(args) => move_slots(args),
    };
    match done {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {}", one_line(&paddock_tls::with_causes(&failure)));
            ExitCode::FAILURE
        }
    }
}

fn list(args: &ListArgs) -> Result<String, GroupsFailure> {
    let access = args.access.read()?;
    runtime()?.block_on(async {
        let page = look(&args.host, &access).await?;
        if args.json {
            return Ok(page.to_string());
        }
        let since = Instant::now();
        tokio::time::sleep(args.over).await;
        let later = look(&args.host, &access).await?;
        let loads = Load::of_groups(&page, &later, since.elapsed());
        Ok(as_text(&later, &loads) + &advice(&later, &loads, &args.host.url()))
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, GroupsFailure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(GroupsFailure::Runtime)
}

async fn look(host: &HttpAddress, access: &Access) -> Result<Value, GroupsFailure> {
    let reply = get(host, access.tls.as_ref(), access.identities.first(), PAGE).await;
    let name = || host.host.clone();
    let reply = reply.map_err(|reason| GroupsFailure::Ask { host: name(), reason })?;
    let page = serde_json::from_str(&reply.body).ok().filter(|_| reply.status.is_success());
    page.ok_or_else(|| GroupsFailure::NoInterface { host: name(), status: reply.status })
}

/// Orders a change, and waits until the member has carried it out.
fn change(
    args: &ChangeArgs,
    order: &str,
    what: &'static str,
    is_split: bool,
) -> Result<String, GroupsFailure> {
    let access = args.access.read()?;
    let identity = access.identities.first().cloned();
    let interface = AdminInterface::new(&args.host.url(), access.tls.clone(), identity)?;
    let deadline = Instant::now() + args.within;
    runtime()?.block_on(async {
        interface.order(order, args.path.clone(), what).await?;
        loop {
            let page = look(&args.host, &access).await?;
            let points = page["split_points"].as_array().cloned().unwrap_or_default();
            if points.iter().any(|point| point["path"] == *args.path) == is_split {
                return Ok(format!("{} is {what}", one_line(&args.path)));
            }
            if Instant::now() >= deadline {
                return Err(GroupsFailure::Late { within: args.within });
            }
            tokio::time::sleep(POLL).await;
        }
    })
}

/// Groups of the slots of a split point, as a page has them; `None` if there is no such split point.
fn slots_on(page: &Value, path: &str) -> Option<Vec<u64>> {
    let points = page["split_points"].as_array()?;
    let point = points.iter().find(|point| point["path"] == *path)?;
    let mut groups = vec![0; usize::from(SLOTS)];
    for run in point["slots"].as_array()? {
        let (first, last) = (run["first"].as_u64()? as usize, run["last"].as_u64()? as usize);
        groups.get_mut(first..=last)?.fill(run["group"].as_u64()?);
    }
    Some(groups)
}

/// Portions of slots of one group each that go to another one: first, last, and the group that they go to. The first of them is one slot.
fn portions(
    now: &[u64],
    (first, last): (u16, u16),
    at_once: u16,
    goal: impl Fn(u16) -> u32,
) -> Vec<(u16, u16, u32)> {
    let mut portions: Vec<(u16, u16, u32)> = Vec::new();
    let group = |slot: u16| now[usize::from(slot)];
    for slot in (first..=last).filter(|slot| group(*slot) != u64::from(goal(*slot))) {
        let is_first = portions.len() == 1;
        match portions.last_mut() {
            Some((begin, end, to))
                if *end + 1 == slot
                    && !is_first
                    && *to == goal(slot)
                    && group(*begin) == group(slot)
                    && slot - *begin < at_once =>
            {
                *end = slot;
            }
            _ => portions.push((slot, slot, goal(slot))),
        }
    }
    portions
}

/// Moves slots a portion at a time, and waits until the member has carried out each.
fn move_slots(args: &MoveArgs) -> Result<String, GroupsFailure> {
    let access = args.access.read()?;
    let identity = access.identities.first().cloned();
    let interface = AdminInterface::new(&args.host.url(), access.tls.clone(), identity)?;
    runtime()?.block_on(async {
        let page = look(&args.host, &access).await?;
        let count = page["count"].as_u64().unwrap_or(1) as u32;
        let no_point = || GroupsFailure::NoSplitPoint { path: one_line(&args.path).to_string() };
        let now = slots_on(&page, &args.path).ok_or_else(no_point)?;
        let evenly = |slot: u16| u32::from(slot) * count / u32::from(SLOTS);
        let goal = |slot: u16| args.to.unwrap_or_else(|| evenly(slot));
        let portions = portions(&now, args.slots, args.at_once, goal);
        let all: usize = portions.iter().map(|(first, last, _)| usize::from(last - first) + 1).sum();
        let mut moved = 0;
        for (number, (first, last, group)) in portions.into_iter().enumerate() {
            if number == 1 {
                tokio::time::sleep(FOREWARNING).await;
            }
            let order = json!({ "path": args.path, "first": first, "last": last, "group": group });
            interface.order("/api/v1/groups/move", order.to_string(), "move of slots").await?;
            let deadline = Instant::now() + args.within;
            loop {
                let page = look(&args.host, &access).await?;
                let now = slots_on(&page, &args.path).ok_or_else(no_point)?;
                if now[usize::from(first)..=usize::from(last)].iter().all(|now| *now == u64::from(group)) {
                    break;
                }
                if Instant::now() >= deadline {
                    return Err(GroupsFailure::Late { within: args.within });
                }
                tokio::time::sleep(POLL / 10).await;
            }
            moved += usize::from(last - first) + 1;
            eprintln!("{moved} of {all} slots moved");
        }
        Ok(format!("{moved} slots of {} moved", one_line(&args.path)))
    })
}

/// Groups and split points as tables.
fn as_text(page: &Value, loads: &[Load]) -> String {
    let list = |key: &str| page[key].as_array().cloned().unwrap_or_default();
    let row = |cells: [&str; 7]| {
        let [group, leader, rate, znodes, bytes, applied, items] = cells;
        format!(
            "{group:>5}  {leader:>10}  {rate:>10}  {znodes:>12}  {bytes:>14}  {applied:>12}  {items:>8}\n"
        )
    };
    let mut text = row(["group", "leader", "commands/s", "znodes", "bytes", "applied", "items"]);
    for (group, load) in list("groups").iter().zip(loads) {
        let leader = group["leader"].as_u64().map_or_else(|| "none".to_owned(), |leader| leader.to_string());
        let items = match (group["items_applied"].as_u64(), group["items"].as_u64()) {
            (Some(applied), Some(items)) => format!("{applied}/{items}"),
            _ => "home".to_owned(),
        };
        let [number, znodes, bytes, applied] =
            ["group", "znodes", "bytes", "applied"].map(|key| group[key].to_string());
        text += &row([&number, &leader, &format!("{:.0}", load.rate), &znodes, &bytes, &applied, &items]);
    }
    for group in list("away") {
        let replicas: Vec<String> =
            group["replicas"].as_array().into_iter().flatten().map(Value::to_string).collect();
        let host =
            group["host"].as_u64().map_or_else(|| "no member".to_owned(), |host| format!("member {host}"));
        text += &format!(
            "{:>5}  not on this member, which asks {host}; on members {}\n",
            group["group"],
            replicas.join(", ")
        );
    }
    for point in list("split_points") {
        let path = one_line(point["path"].as_str().unwrap_or_default());
        let missing = if point["is_there"] == true { "" } else { " (no such znode)" };
        text += &format!("\nsplit point {path}{missing}\n");
        for run in point["slots"].as_array().into_iter().flatten() {
            text += &format!("  slots {} to {}: group {}\n", run["first"], run["last"], run["group"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_move_in_portions_behind_one_that_moves_alone() {
        let mut now = vec![0; usize::from(SLOTS)];
        now[5] = 2;
        assert_eq!(
            portions(&now, (3, 12), 4, |_| 1),
            [(3, 3, 1), (4, 4, 1), (5, 5, 1), (6, 9, 1), (10, 12, 1)]
        );
        assert_eq!(portions(&now, (3, 5), 4, |slot| if slot == 5 { 2 } else { 0 }), []);
    }

    #[test]
    fn groups_and_split_points_are_tables() {
        let page = json!({
            "groups": [
                { "group": 0, "leader": 2, "znodes": 1000, "bytes": 9, "commands": 50, "applied": 77, "committed": 77 },
                { "group": 1, "leader": null, "znodes": 7, "bytes": 8, "commands": 3, "applied": 5, "committed": 6, "items": 3, "items_applied": 2 },
            ],
            "count": 4,
            "away": [
                { "group": 2, "host": 3, "replicas": [3, 4] },
                { "group": 3, "host": null, "replicas": [4, 5] },
            ],
            "split_points": [
                { "path": "/a\u{1b}b", "is_there": true, "version": 9, "slots": [{ "first": 0, "last": 4095, "group": 0 }] },
                { "path": "/c", "is_there": false, "version": 9, "slots": [] },
            ],
        });
        let loads = Load::of_groups(&page, &page, Duration::from_secs(1));
        let text = as_text(&page, &loads);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["0", "2", "0", "1000", "9", "77", "home"]);
        assert_eq!(lines[2], ["1", "none", "0", "7", "8", "5", "2/3"]);
        assert_eq!(lines[3].join(" "), "2 not on this member, which asks member 3; on members 3, 4");
        assert_eq!(lines[4].join(" "), "3 not on this member, which asks no member; on members 4, 5");
        assert!(!text.contains('\u{1b}'), "a path does not steer a terminal: {text}");
        assert!(
            text.contains("  slots 0 to 4095: group 0\n")
                && text.contains("split point /c (no such znode)\n")
        );
    }
}
