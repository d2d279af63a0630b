//! One of the two trees: found by its name, and walked.

use std::path::Path;

use paddock_bench::Access;
use paddock_files::{LoadOptions, ZooKeeperDirs};
use paddock_storage::OsDisk;
use paddock_tree::{Tree, Znodes};

use super::failure::DiffFailure;
use super::seen::Seen;
use super::server::ServerWalk;
use crate::moving::{self, ProgressLine};

/// Place of a tree, with the tree itself if it was read from files.
#[derive(Debug)]
pub(crate) enum DiffSource {
    Servers(String),
    Tree(Box<Tree>),
}

impl DiffSource {
    pub(crate) fn open(name: &str, line: &mut ProgressLine) -> Result<DiffSource, DiffFailure> {
        let path = Path::new(name);
        if path.is_dir() {
            return read_directory(path, None, line).map(|tree| DiffSource::Tree(Box::new(tree)));
        }
        if let Some((path, log_dir)) = directories(name) {
            return read_directory(path, Some(log_dir), line).map(|tree| DiffSource::Tree(Box::new(tree)));
        }
        if path.is_file() && is_own_snapshot(path) {
            return Ok(DiffSource::Tree(Box::new(paddock_member::read_whole_snapshot(&OsDisk, path)?)));
        }
        if path.is_file() {
            let loaded = paddock_files::load_snapshot(path, &mut |progress| line.show(progress))?;
            return Ok(DiffSource::Tree(Box::new(loaded.tree)));
        }
        if is_server_list(name) {
            return Ok(DiffSource::Servers(name.to_owned()));
        }
        Err(DiffFailure::Nowhere(name.to_owned()))
    }
}

/// A data directory and that of its log, with a comma between them.
fn directories(name: &str) -> Option<(&Path, &Path)> {
    let (path, log_dir) = name.split_once(',')?;
    let (path, log_dir) = (Path::new(path), Path::new(log_dir));
    (path.is_dir() && log_dir.is_dir()).then_some((path, log_dir))
}

fn read_directory(path: &Path, log_dir: Option<&Path>, line: &mut ProgressLine) -> Result<Tree, DiffFailure> {
    if paddock_member::is_data_dir(&OsDisk, path) {
        return Ok(moving::read_directory(path, log_dir)?);
    }
    if !paddock_files::is_data_dir(path) {
        return Err(DiffFailure::UnknownDirectory(path.to_owned()));
    }
    let source = ZooKeeperDirs { data_dir: path.to_owned(), log_dir: log_dir.map(Path::to_owned) };
    let options = LoadOptions { drop_ephemerals: false, ignore_digest: false, member: 1 };
    let loaded = paddock_files::load(&source, options, &mut |progress| line.show(progress))?;
    if loaded.report.logs.is_empty() {
        line.clear();
        eprintln!(
            "warning: {0} has no transaction log; if there is a dataLogDir, name it: {0},DIR",
            path.display()
        );
    }
    Ok(loaded.tree)
}

/// True for a name that Paddock's snapshots have; those of ZooKeeper have a point in place of the hyphen.
fn is_own_snapshot(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("snapshot-"))
}

fn is_server_list(name: &str) -> bool {
    name.split(',').all(|server| {
        server.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    })
}

/// A walk over one of the trees.
pub(crate) enum Side<'a> {
    Server(Box<ServerWalk<'a>>),
    Tree { tree: &'a Tree, znodes: Znodes<'a>, exclude: &'a [String] },
}

impl<'a> Side<'a> {
    pub(crate) async fn begin(
        source: &'a DiffSource,
        access: &Access,
        exclude: &'a [String],
    ) -> Result<Side<'a>, DiffFailure> {
        Ok(match source {
            DiffSource::Servers(servers) => {
                Side::Server(Box::new(ServerWalk::begin(servers, access, exclude).await?))
            }
            DiffSource::Tree(tree) => Side::Tree { tree, znodes: tree.znodes(), exclude },
        })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Seen>, DiffFailure> {
        match self {
            Side::Server(walk) => walk.next().await,
            Side::Tree { tree, znodes, exclude } => Ok(next_stored(tree, znodes, exclude)),
        }
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&self) {
        if let Side::Server(walk) = self {
            walk.close().await;
        }
    }
}

fn next_stored(tree: &Tree, znodes: &mut Znodes<'_>, exclude: &[String]) -> Option<Seen> {
    while let Some((path, znode)) = znodes.next_znode() {
        if !exclude.iter().any(|root| paddock_proto::is_at_or_below(path, root)) {
            let stat = tree.stat(path).expect("the walk is over the same tree");
            return Some(Seen::of_stored(path, &znode, stat));
        }
    }
    None
}
