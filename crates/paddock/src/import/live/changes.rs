//! Znodes that the source told of, brought over one by one. Their present state counts, not the change that was told.

use paddock_client::{Acl, Client, Data, Error, ErrorCode, Event, Pending, Stat};

use super::failure::LiveFailure;
use super::kept::{Kind, Unequal, kind_of};
use super::pair::{LivePair, Places};
use super::pass::{self, Repairs};
use super::writes::Writes;
use crate::diff::seen::{Seen, walk_order};

/// Znodes that are asked for at a time.
const AT_ONCE: usize = 256;

/// Paths of events, each once, a parent before its children.
pub(super) fn paths_of(events: Vec<Event>, pair: &LivePair, from: &str) -> Result<Vec<String>, LiveFailure> {
    let mut paths = Vec::new();
    for event in events {
        match event {
            Event::Znode { path, .. } => paths.push(path),
            // Events may have been missed meanwhile.
            Event::Disconnected | Event::Reconnected | Event::SessionExpired => {
                return Err(LiveFailure::Disconnected(from.to_owned()));
            }
        }
    }
    paths.retain(|path| !pair.leaves_out(path));
    paths.sort_unstable_by(|a, b| walk_order(a, b));
    paths.dedup();
    Ok(paths)
}

/// Makes the znodes at these paths equal to those of the source.
pub(super) async fn apply(
    paths: &[String],
    pair: &LivePair,
    places: &Places,
) -> Result<Repairs, LiveFailure> {
    let mut repairs = Repairs::default();
    for paths in paths.chunks(AT_ONCE) {
        repairs += apply_some(paths, pair, places).await?;
    }
    Ok(repairs)
}

async fn apply_some(paths: &[String], pair: &LivePair, places: &Places) -> Result<Repairs, LiveFailure> {
    let ask = |path: &String| (AskedChange::ask(&pair.source, path), AskedChange::ask(&pair.target, path));
    let questions: Vec<(AskedChange, AskedChange)> = paths.iter().map(ask).collect();
    let mut writes = Writes::new(&pair.target, &places.to);
    let mut repairs = Repairs::default();
    let mut gone = Vec::new();
    for (path, (source, target)) in paths.iter().zip(questions) {
        let source = source.answer(path, &places.from).await?;
        let target = target.answer(path, &places.to).await?;
        match (source, target) {
            (Some(source), None) => {
                pass::create(&source, places, &mut writes).await?;
                repairs.created += 1;
            }
            (Some(source), Some(target)) => {
                let unequal = Unequal::between(&source, &target);
                let is_changed = pass::change(&source, unequal, places, &mut writes).await?;
                repairs.changed += u64::from(is_changed);
            }
            (None, Some(_)) => gone.push(path),
            (None, None) => {}
        }
    }
    repairs.deleted = gone.len() as u64;
    for path in gone.into_iter().rev() {
        writes.delete(path).await?;
    }
    repairs.missed = writes.finish().await?;
    Ok(repairs)
}

/// Requests for one znode.
struct AskedChange {
    data: Pending<Data>,
    acl: Pending<(Vec<Acl>, Stat)>,
}

impl AskedChange {
    fn ask(client: &Client, path: &str) -> AskedChange {
        AskedChange { data: client.get_data(path), acl: client.get_acl(path) }
    }

    /// The znode, unless there is none or it is an ephemeral.
    async fn answer(self, path: &str, server: &str) -> Result<Option<Seen>, LiveFailure> {
        let (data, acl) = (self.data.await, self.acl.await);
        let znode = data.and_then(|data| Ok((data, acl?.0)));
        match znode {
            Ok((data, acl)) => {
                let Data { bytes, stat } = data;
                let seen = Seen { path: path.to_owned(), data: bytes, acl, stat, kind: None };
                Ok(Some(seen).filter(|seen| kind_of(seen) != Kind::Ephemeral))
            }
            Err(Error::Refused { code: ErrorCode::NoNode, .. }) => Ok(None),
            Err(Error::Refused { code: ErrorCode::NoAuth, .. }) => {
                Err(LiveFailure::NoReading { server: server.to_owned(), path: path.to_owned() })
            }
            Err(error) => Err(LiveFailure::client(server, error)),
        }
    }
}
