//! The HTTP interface of a running member, as a command asks it: with TLS or without, and with the identity of an administrator.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use paddock_bench::ShownIdentity;
use paddock_client::{Stream, Tls};

use crate::access::{AccessError, tls_of};
use crate::identity_source::{IdentitySource, parse_identity, read_identities};
use crate::moving::MovingFailure;

/// Header of an order.
const INTENT: &str = "paddock-request";
/// Bytes of a refusal that are shown.
const REFUSAL_BYTES_MAX: usize = 600;

/// Options of a command that asks a member over its HTTP interface.
#[derive(Debug, clap::Args)]
pub(crate) struct AdminArgs {
    /// Connect with TLS, and believe a member whose certificate is in this file or signed by one that is (PEM)
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Own certificate to show, with its private key (PEM); it may be an administrator's
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    tls_cert: Option<PathBuf>,
    /// Identity of an administrator, such as digest:USER:PASSWORD: the only line of FILE (@- is standard input), or env:NAME for what a
    /// variable of the environment holds
    #[arg(long, value_name = "@FILE", value_parser = parse_identity)]
    auth: Option<IdentitySource>,
}

impl AdminArgs {
    /// The interface at an address: `host:port`, or with a scheme in front.
    pub(crate) fn interface(&self, address: &str) -> Result<AdminInterface, MovingFailure> {
        let tls = tls_of(self.tls_ca.as_deref(), self.tls_cert.as_deref())?;
        let identities = read_identities("--auth", self.auth.as_slice()).map_err(AccessError::from)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
        Ok(AdminInterface::new(&url, tls, identities.into_iter().next())?)
    }
}

/// Reason for which a member has not answered as it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
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
    #[error("ask {address} for {what}")]
    Http {
        address: String,
        what: &'static str,
        #[source]
        source: hyper::Error,
    },
    #[error(
        "{address} refuses {what} to who is no administrator: show an identity with --auth that the ACL of / names ({text})"
    )]
    NoAdministrator { address: String, what: &'static str, text: String },
    #[error("{address} gives one snapshot in a time, which rate_limit_ms sets: try again later")]
    TooSoon { address: String },
    #[error("{address}: {text}")]
    Gone { address: String, text: String },
    #[error("{address} gives no {}: {status}: {text}", what.trim_start_matches("a "))]
    Refused { address: String, what: &'static str, status: StatusCode, text: String },
}

impl From<AdminError> for MovingFailure {
    fn from(failure: AdminError) -> MovingFailure {
        MovingFailure::OfCommand(Box::new(failure))
    }
}

/// The HTTP interface of a member.
#[derive(Debug)]
pub(crate) struct AdminInterface {
    /// Host and port.
    pub(crate) address: String,
    tls: Option<Tls>,
    identity: Option<ShownIdentity>,
}

impl AdminInterface {
    /// The interface at a URL.
    pub(crate) fn new(
        url: &str,
        tls: Option<Tls>,
        identity: Option<ShownIdentity>,
    ) -> Result<AdminInterface, AdminError> {
        let (scheme, address) = address_of(url)?;
        let tls = match scheme {
            Scheme::Http => None,
            Scheme::Https => Some(tls.ok_or(AdminError::NoAuthorities)?),
        };
        Ok(AdminInterface { address, tls, identity })
    }

    /// Asks for `what`, which is at a path, and returns the answer if that is 200.
    pub(crate) async fn get(&self, path: &str, what: &'static str) -> Result<Response<Incoming>, AdminError> {
        let mut response = self.ask(path, what).await?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(self.refusal(status, response.body_mut(), what).await),
        }
    }

    /// The error that an answer is.
    pub(crate) async fn refusal(
        &self,
        status: StatusCode,
        body: &mut Incoming,
        what: &'static str,
    ) -> AdminError {
        let (address, text) = (self.address.clone(), text_of(body).await);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                AdminError::NoAdministrator { address, what, text }
            }
            StatusCode::TOO_MANY_REQUESTS => AdminError::TooSoon { address },
            StatusCode::GONE => AdminError::Gone { address, text },
            _ => AdminError::Refused { address, what, status, text },
        }
    }

    /// Asks for `what`, which is at a path, and returns whatever the answer is.
    pub(crate) async fn ask(&self, path: &str, what: &'static str) -> Result<Response<Incoming>, AdminError> {
        self.send(Method::GET, path, String::new(), what).await
    }

    /// Orders `what` with a body, and returns if the order was taken.
    pub(crate) async fn order(&self, path: &str, body: String, what: &'static str) -> Result<(), AdminError> {
        let mut response = self.send(Method::POST, path, body, what).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.refusal(status, response.body_mut(), what).await),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: String,
        what: &'static str,
    ) -> Result<Response<Incoming>, AdminError> {
        let address = || self.address.clone();
        let stream = Stream::connect(&self.address, self.tls.as_ref()).await;
        let stream = stream.map_err(|source| AdminError::Connect { address: address(), source })?;
        let http = |source| AdminError::Http { address: address(), what, source };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
        // Its failure is also that of the request, or of the body.
        tokio::spawn(connection);
        let is_order = method != Method::GET;
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.address);
        if is_order {
            // No page could have a browser send it.
            request = request.header(INTENT, "1");
        }
        if let Some(ShownIdentity { scheme, auth }) = &self.identity {
            request = request.header(AUTHORIZATION, format!("{scheme} {auth}"));
        }
        let request = request.body(body).map_err(|_| AdminError::BadUrl(address()))?;
        sender.send_request(request).await.map_err(http)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// The scheme of an address, and its `host:port`.
fn address_of(url: &str) -> Result<(Scheme, String), AdminError> {
    let schemes = [("http://", Scheme::Http), ("https://", Scheme::Https)];
    let of_scheme = schemes.iter().find_map(|(prefix, scheme)| Some((*scheme, url.strip_prefix(prefix)?)));
    let address = of_scheme.map(|(scheme, rest)| (scheme, rest.trim_end_matches('/')));
    let is_whole = |address: &str| {
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    match address {
        Some((scheme, address)) if is_whole(address) => Ok((scheme, address.to_owned())),
        _ => Err(AdminError::BadUrl(url.to_owned())),
    }
}

/// The beginning of a refusal, in one line: of one in JSON its error.
async fn text_of(body: &mut Incoming) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(data)) = next_data(body).await {
        bytes.extend_from_slice(&data);
        if bytes.len() > REFUSAL_BYTES_MAX {
            break;
        }
    }
    let error = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
    if let Some(text) = error.as_ref().and_then(|value| value.get("error")?.as_str()) {
        return one_line(text);
    }
    bytes.truncate(REFUSAL_BYTES_MAX);
    one_line(&String::from_utf8_lossy(&bytes))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The next bytes of a body; `None` at its end.
pub(crate) async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
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
            assert!(matches!(address_of(bad), Err(AdminError::BadUrl(_))), "{bad}");
        }
    }
}
