//! Commands about quotas, which are znodes below `/zookeeper/quota`.

use paddock_client::{Client, CreateMode, ErrorCode};
use serde_json::json;

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::paths;
use crate::shell::Shell;
use crate::walk::Walk;

const ROOT: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";
/// A limit that is not set.
const NONE: i64 = -1;

/// Limits of a subtree, in the text that ZooKeeper 3.9 writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    count: i64,
    bytes: i64,
    byte_hard: i64,
    count_hard: i64,
}

impl Limits {
    const UNSET: Limits = Limits { count: NONE, bytes: NONE, byte_hard: NONE, count_hard: NONE };

    fn parse(text: &str) -> Limits {
        let mut limits = Limits::UNSET;
        for field in text.split([',', ';']) {
            let Some((name, value)) = field.split_once('=') else { continue };
            let value = value.trim_end_matches('=').parse().unwrap_or(NONE);
            match name {
                "count" => limits.count = value,
                "bytes" => limits.bytes = value,
                "byteHardLimit" => limits.byte_hard = value,
                "countHardLimit" => limits.count_hard = value,
                _ => {}
            }
        }
        limits
    }

    fn text(&self) -> String {
        let Limits { count, bytes, byte_hard, count_hard } = self;
        format!("count={count},bytes={bytes}=;byteHardLimit={byte_hard};countHardLimit={count_hard}")
    }

    fn of_flag(&mut self, flag: &str) -> &mut i64 {
        match flag {
            "n" => &mut self.count,
            "b" => &mut self.bytes,
            "N" => &mut self.count_hard,
            _ => &mut self.byte_hard,
        }
    }
}

const FLAGS: [&str; 4] = ["n", "b", "N", "B"];

fn quota_path(path: &str) -> String {
    if path == "/" { ROOT.to_owned() } else { format!("{ROOT}{path}") }
}

pub(crate) async fn set(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let mut wanted = Vec::new();
    for flag in FLAGS {
        wanted.extend(arguments.number::<i64>(flag)?.map(|value| (flag, value)));
    }
    if wanted.is_empty() {
        return Err(ShellFailure::Usage("say at least one of -n, -b, -N and -B with its limit".to_owned()));
    }
    let client = shell.client()?;
    client.exists(&path).await.map_err(ShellFailure::at(&path))?;
    refuse_nested(&client, &path).await?;
    let place = quota_path(&path);
    let limits_path = paths::child(&place, LIMITS);
    let old = read(&client, &limits_path).await?;
    let mut limits = old.as_deref().map_or(Limits::UNSET, Limits::parse);
    for (flag, value) in wanted {
        *limits.of_flag(flag) = value;
    }
    if old.is_some() {
        let set = client.set_data(&limits_path, limits.text().as_bytes(), None);
        return set.await.map(drop).map_err(ShellFailure::at(&limits_path));
    }
    let steps = place.match_indices('/').skip(1).map(|(at, _)| place[..at].to_owned());
    for step in steps.chain([place.clone()]) {
        make(&client, &step, "").await?;
    }
    make(&client, &limits_path, &limits.text()).await?;
    make(&client, &paths::child(&place, STATS), "count=0,bytes=0").await
}

/// A quota above or below another one is refused, as `zkCli.sh` does: neither would count what the other does.
async fn refuse_nested(client: &Client, path: &str) -> Result<(), ShellFailure> {
    let nested = |other: &str| {
        ShellFailure::Refused(format!("{other} has a quota already: only one of a path may have one"))
    };
    for (at, _) in path.match_indices('/').skip(1) {
        let parent = &path[..at];
        if read(client, &paths::child(&quota_path(parent), LIMITS)).await?.is_some() {
            return Err(nested(parent));
        }
    }
    let place = quota_path(path);
    let own = paths::child(&place, LIMITS);
    let below = match Walk::paths(client, &place).await {
        Err(failure) if failure.code() == Some(ErrorCode::NoNode) => Vec::new(),
        below => below?,
    };
    let limits = below.iter().find(|below| **below != own && below.ends_with(&format!("/{LIMITS}")));
    match limits.and_then(|limits| paths::parted(limits)) {
        Some((place, _)) => Err(nested(place.strip_prefix(ROOT).unwrap_or(place))),
        None => Ok(()),
    }
}

async fn make(client: &Client, path: &str, data: &str) -> Result<(), ShellFailure> {
    match client.create(path, data.as_bytes(), CreateMode::Persistent).await {
        Err(error) if error.code() != Some(ErrorCode::NodeExists) => Err(ShellFailure::at(path)(error)),
        _ => Ok(()),
    }
}

async fn read(client: &Client, path: &str) -> Result<Option<String>, ShellFailure> {
    match client.get_data(path).await {
        Ok(data) => Ok(Some(String::from_utf8_lossy(&data.bytes.unwrap_or_default()).into_owned())),
        Err(error) if error.code() == Some(ErrorCode::NoNode) => Ok(None),
        Err(error) => Err(ShellFailure::at(path)(error)),
    }
}

fn no_quota(path: &str) -> ShellFailure {
    ShellFailure::Refused(format!("{path} has no quota: setquota sets one"))
}

pub(crate) async fn list(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let place = quota_path(&path);
    let limits = read(&client, &paths::child(&place, LIMITS)).await?.ok_or_else(|| no_quota(&path))?;
    let used = read(&client, &paths::child(&place, STATS)).await?.unwrap_or_default();
    let text = || format!("limits of {path}: {limits}\nin use: {used}");
    shell.output.show(|| json!({ "path": path, "limits": limits, "used": used }), text)
}

pub(crate) async fn delete(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let place = quota_path(&path);
    let limits_path = paths::child(&place, LIMITS);
    let limits = read(&client, &limits_path).await?.ok_or_else(|| no_quota(&path))?;
    let flags: Vec<_> = FLAGS.into_iter().filter(|flag| arguments.has(flag)).collect();
    if !flags.is_empty() {
        let mut limits = Limits::parse(&limits);
        for flag in flags {
            *limits.of_flag(flag) = NONE;
        }
        let set = client.set_data(&limits_path, limits.text().as_bytes(), None);
        return set.await.map(drop).map_err(ShellFailure::at(&limits_path));
    }
    for name in [LIMITS, STATS] {
        let removed = paths::child(&place, name);
        client.delete(&removed, None).await.map_err(ShellFailure::at(&removed))?;
    }
    remove_empty(&client, place).await
}

/// Removes the znodes of a quota's path for as long as nothing lies below them.
async fn remove_empty(client: &Client, mut place: String) -> Result<(), ShellFailure> {
    while place != ROOT {
        match client.delete(&place, None).await {
            Ok(()) => {}
            Err(error) if matches!(error.code(), Some(ErrorCode::NotEmpty | ErrorCode::NoNode)) => {
                return Ok(());
            }
            Err(error) => return Err(ShellFailure::at(&place)(error)),
        }
        place.truncate(place.rfind('/').expect("a path has a slash"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        let limits = Limits { count: 5, bytes: -1, byte_hard: 7, count_hard: -1 };
        assert_eq!(Limits::parse(&limits.text()), limits);
        // As ZooKeeper before 3.7 wrote them.
        assert_eq!(Limits::parse("count=3,bytes=4"), Limits { count: 3, bytes: 4, ..Limits::UNSET });
        assert_eq!(Limits::parse("x"), Limits::UNSET);
    }

    #[test]
    fn a_quota_has_its_place() {
        assert_eq!(quota_path("/a/b"), "/zookeeper/quota/a/b");
        assert_eq!(quota_path("/"), "/zookeeper/quota");
    }
}
