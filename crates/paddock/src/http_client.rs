//! Pages of the HTTP interfaces of servers, whole and within a time: what is asked may be a server of another kind, or one that hangs.

use std::io;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::DATE;
use paddock_bench::ShownIdentity;
use paddock_client::Tls;
use tokio::time::timeout;

use crate::admin_client::{AdminInterface, next_data};

/// Time for a connection, and for an answer.
const WITHIN: Duration = Duration::from_secs(5);
/// A longer answer is given up.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// An HTTP interface: `http://host:port` or `https://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpAddress {
    pub(crate) is_secure: bool,
    /// `host:port`.
    pub(crate) host: String,
}

impl HttpAddress {
    pub(crate) fn parse(text: &str) -> Result<HttpAddress, String> {
        let schemes = [("http://", false), ("https://", true)];
        let found = schemes.iter().find_map(|(prefix, secure)| Some((*secure, text.strip_prefix(prefix)?)));
        let (is_secure, rest) = found.unwrap_or((false, text));
        let host = rest.trim_end_matches('/');
        match host.rsplit_once(':') {
            Some((name, port)) if !name.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok() => {
                Ok(HttpAddress { is_secure, host: host.to_owned() })
            }
            _ => Err("expected http://host:port or https://host:port".to_owned()),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.is_secure { "https" } else { "http" }, self.host)
    }
}

/// An answer over HTTP.
pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    /// The header `Date`.
    pub(crate) date: Option<String>,
    pub(crate) body: String,
}

/// Gets a page. The connection has TLS if the address says so; then `tls` says whom to believe. The identity, if there is one, is the
/// requester's.
pub(crate) async fn get(
    address: &HttpAddress,
    tls: Option<&Tls>,
    identity: Option<&ShownIdentity>,
    path: &str,
) -> io::Result<HttpReply> {
    let interface = AdminInterface::new(&address.url(), tls.cloned(), identity.cloned());
    let interface = interface.map_err(io::Error::other)?;
    within(async {
        let mut response = interface.ask(path, "a page").await.map_err(io::Error::other)?;
        let status = response.status();
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let mut body = Vec::new();
        while let Some(data) = next_data(response.body_mut()).await.map_err(io::Error::other)? {
            body.extend_from_slice(&data);
            if body.len() as u64 > ANSWER_BYTES_MAX {
                return Err(io::Error::other("the answer is too long"));
            }
        }
        Ok(HttpReply { status, date, body: String::from_utf8_lossy(&body).into_owned() })
    })
    .await
}

/// Gives a question up when its answer is late.
pub(crate) async fn within<T>(asked: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late =
        |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", WITHIN.as_secs()));
    timeout(WITHIN, asked).await.map_err(late)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_http_are_read() {
        let read = |text: &str| HttpAddress::parse(text).map(|address| address.url());
        assert_eq!(read("zk1:8080").as_deref(), Ok("http://zk1:8080"));
        assert_eq!(read("https://[::1]:8443/").as_deref(), Ok("https://[::1]:8443"));
        for wrong in ["zk1", "http://:8080", "http://zk1:8080/commands", "ftp://a:1", "a:b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
