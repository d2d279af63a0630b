//! The snapshot of a running member, over its HTTP interface, with TLS or without.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use paddock_bench::ShownIdentity;
use paddock_client::Tls;

use crate::admin_client::{AdminError, AdminInterface, next_data};
use crate::moving::{MovingFailure, ProgressLine};

/// Path of ZooKeeper's command, with the parameter that sends the snapshot along.
const COMMAND: &str = "/commands/snapshot?streaming=true";
/// Path of a route for administrators alone, whose connections may take their time.
const SNAPSHOT: &str = "/api/v1/snapshot";
/// Header with the length of the snapshot in bytes.
const SIZE: &str = "snapshot_size";
/// Header with the id of the ensemble, in hexadecimal digits.
const CLUSTER: &str = "cluster";
const WHAT: &str = "a snapshot";
const MEBIBYTE: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("the snapshot of {address} ended after {received} of {expected} bytes")]
    Short { address: String, received: u64, expected: u64 },
    #[error("{path} is there already: remove it first")]
    Exists { path: String },
    #[error("write {path}")]
    Write {
        path: String,
        #[source]
        source: io::Error,
    },
}

impl From<DownloadError> for MovingFailure {
    fn from(failure: DownloadError) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

/// Writes the snapshot of the member at `url` into a new file.
pub(super) fn download(
    url: &str,
    tls: Option<&Tls>,
    identity: Option<&ShownIdentity>,
    path: &Path,
    line: &mut ProgressLine,
) -> Result<(), DownloadError> {
    let interface = AdminInterface::new(url, tls.cloned(), identity.cloned())?;
    let written = |source| DownloadError::Write { path: path.display().to_string(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(written)?;
    runtime.block_on(download_into(&interface, COMMAND, path, line)).map(drop)
}

/// Facts that come with a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotFacts {
    /// Id of the ensemble, if there is one.
    pub(crate) cluster: Option<u64>,
    /// Time at which it was taken already.
    pub(crate) taken: SystemTime,
}

/// Writes the snapshot of a member into a new file, for as long as that takes.
pub(crate) async fn download_snapshot(
    interface: &AdminInterface,
    path: &Path,
    line: &mut ProgressLine,
) -> Result<SnapshotFacts, DownloadError> {
    download_into(interface, SNAPSHOT, path, line).await
}

async fn download_into(
    interface: &AdminInterface,
    route: &str,
    path: &Path,
    line: &mut ProgressLine,
) -> Result<SnapshotFacts, DownloadError> {
    let address = &interface.address;
    let mut file = create(path)?;
    let mut response = interface.get(route, WHAT).await?;
    let taken = SystemTime::now();
    // ZooKeeper's commands tell of an error with 200.
    let Some(expected) = size_of(&response) else {
        return Err(interface.refusal(StatusCode::OK, response.body_mut(), WHAT).await.into());
    };
    let mut received = 0;
    let http = |source| AdminError::Http { address: address.clone(), what: WHAT, source };
    while let Some(data) = next_data(response.body_mut()).await.map_err(http)? {
        let written = |source| DownloadError::Write { path: path.display().to_string(), source };
        file.write_all(&data).map_err(written)?;
        received += data.len() as u64;
        line.show_text(|| format!("{address}: {} MiB of the snapshot", received / MEBIBYTE));
    }
    if expected != received {
        return Err(DownloadError::Short { address: address.clone(), received, expected });
    }
    let cluster = response.headers().get(CLUSTER).and_then(|cluster| cluster.to_str().ok());
    let cluster = cluster.and_then(|cluster| u64::from_str_radix(cluster, 16).ok());
    Ok(SnapshotFacts { cluster: cluster.filter(|cluster| *cluster != 0), taken })
}

fn create(path: &Path) -> Result<File, DownloadError> {
    let name = path.display().to_string();
    File::options().write(true).create_new(true).open(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => DownloadError::Exists { path: name },
        _ => DownloadError::Write { path: name, source },
    })
}

fn size_of(response: &Response<Incoming>) -> Option<u64> {
    response.headers().get(SIZE)?.to_str().ok()?.parse().ok()
}
