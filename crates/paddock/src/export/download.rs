//! The snapshot of a running member, over its HTTP interface, with TLS or without.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use paddock_bench::ShownIdentity;
use paddock_client::{Stream, Tls};

use crate::moving::{MovingFailure, ProgressLine};

/// Path of ZooKeeper's command, with the parameter that sends the snapshot along.
const COMMAND: &str = "/commands/snapshot?streaming=true";
/// Header with the length of the snapshot in bytes.
const SIZE: &str = "snapshot_size";
/// Bytes of a refusal that are shown.
const REFUSAL_BYTES_MAX: usize = 300;
const MEBIBYTE: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error("{0} is no address of an HTTP interface: expected http://host:port or https://host:port")]
    BadUrl(String),
    #[error(
        "https:// needs to know whom to believe: name the file of the authorities' certificates with --tls-ca"
    )]
    NoAuthorities,
    #[error("connect to {address}")]
    Connect {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("ask {address} for a snapshot")]
    Http {
        address: String,
        #[source]
        source: hyper::Error,
    },
    #[error(
        "{address} refuses a snapshot to who is no administrator: show an identity with --auth that the ACL of / names ({text})"
    )]
    NoAdministrator { address: String, text: String },
    #[error("{address} gives one snapshot in a time, which rate_limit_ms sets: try again later")]
    TooSoon { address: String },
    #[error("{address} gives no snapshot: {status}: {text}")]
    Refused { address: String, status: StatusCode, text: String },
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
    let (scheme, address) = address_of(url)?;
    let tls = match scheme {
        Scheme::Http => None,
        Scheme::Https => Some(tls.ok_or(DownloadError::NoAuthorities)?),
    };
    let written = |source| DownloadError::Write { path: path.display().to_string(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(written)?;
    let mut file = create(path)?;
    runtime.block_on(async {
        let mut response = ask(&address, tls, identity).await?;
        check(&address, &mut response).await?;
        let expected = size_of(&response);
        let mut received = 0;
        let http = |source| DownloadError::Http { address: address.clone(), source };
        while let Some(data) = next_data(response.body_mut()).await.map_err(http)? {
            file.write_all(&data).map_err(written)?;
            received += data.len() as u64;
            line.show_text(|| format!("{address}: {} MiB of the snapshot", received / MEBIBYTE));
        }
        match expected {
            Some(expected) if expected != received => {
                Err(DownloadError::Short { address, received, expected })
            }
            _ => Ok(()),
        }
    })
}

fn create(path: &Path) -> Result<File, DownloadError> {
    let name = path.display().to_string();
    File::options().write(true).create_new(true).open(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => DownloadError::Exists { path: name },
        _ => DownloadError::Write { path: name, source },
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// The scheme of an address, and its `host:port`.
fn address_of(url: &str) -> Result<(Scheme, String), DownloadError> {
    let schemes = [("http://", Scheme::Http), ("https://", Scheme::Https)];
    let of_scheme = schemes.iter().find_map(|(prefix, scheme)| Some((*scheme, url.strip_prefix(prefix)?)));
    let address = of_scheme.map(|(scheme, rest)| (scheme, rest.trim_end_matches('/')));
    let is_whole = |address: &str| {
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    match address {
        Some((scheme, address)) if is_whole(address) => Ok((scheme, address.to_owned())),
        _ => Err(DownloadError::BadUrl(url.to_owned())),
    }
}

async fn ask(
    address: &str,
    tls: Option<&Tls>,
    identity: Option<&ShownIdentity>,
) -> Result<Response<Incoming>, DownloadError> {
    let stream = Stream::connect(address, tls).await;
    let stream = stream.map_err(|source| DownloadError::Connect { address: address.to_owned(), source })?;
    let http = |source| DownloadError::Http { address: address.to_owned(), source };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    // Its failure is also that of the request, or of the body.
    tokio::spawn(connection);
    let mut request = Request::get(COMMAND).header(HOST, address);
    if let Some(ShownIdentity { scheme, auth }) = identity {
        request = request.header(AUTHORIZATION, format!("{scheme} {auth}"));
    }
    let bad_url = |_| DownloadError::BadUrl(address.to_owned());
    let request = request.body(String::new()).map_err(bad_url)?;
    sender.send_request(request).await.map_err(http)
}

/// Fails unless the answer is a snapshot.
async fn check(address: &str, response: &mut Response<Incoming>) -> Result<(), DownloadError> {
    let (address, status) = (address.to_owned(), response.status());
    if status == StatusCode::OK && size_of(response).is_some() {
        return Ok(());
    }
    let text = text_of(response.body_mut()).await;
    Err(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => DownloadError::NoAdministrator { address, text },
        StatusCode::TOO_MANY_REQUESTS => DownloadError::TooSoon { address },
        _ => DownloadError::Refused { address, status, text },
    })
}

fn size_of(response: &Response<Incoming>) -> Option<u64> {
    response.headers().get(SIZE)?.to_str().ok()?.parse().ok()
}

/// The beginning of a refusal, in one line.
async fn text_of(body: &mut Incoming) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(data)) = next_data(body).await {
        bytes.extend_from_slice(&data);
        if bytes.len() > REFUSAL_BYTES_MAX {
            break;
        }
    }
    bytes.truncate(REFUSAL_BYTES_MAX);
    String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The next bytes of a body; `None` at its end.
pub(crate) async fn next_data(body: &mut Incoming) -> Result<Option<hyper::body::Bytes>, hyper::Error> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            // Anything else than data is a trailer.
            Some(frame) => {
                if let Ok(data) = frame?.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_other_text() {
        let parsed = |url| address_of(url).unwrap();
        assert_eq!(parsed("http://paddock1:8080/"), (Scheme::Http, "paddock1:8080".to_owned()));
        assert_eq!(parsed("https://[::1]:8080"), (Scheme::Https, "[::1]:8080".to_owned()));
        for bad in
            ["paddock1:8080", "ftp://paddock1:8080", "https://paddock1", "http://:8080", "http://a:b", ""]
        {
            assert!(matches!(address_of(bad), Err(DownloadError::BadUrl(_))), "{bad}");
        }
    }
}
