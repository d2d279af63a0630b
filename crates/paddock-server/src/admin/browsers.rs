//! Requests that a page elsewhere has a browser send, in the name of the user who looks at it.
//!
//! A browser shows its owner's certificate by itself, and reaches what its owner reaches. It also says where a request comes from, in
//! `Origin` and `Sec-Fetch-Site`, and sends no header but a few plain ones to a server elsewhere that has not agreed to it, which
//! this one never does. So a request that comes from elsewhere is refused, and an order has to bring something that is not plain.

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use paddock_http::{Request, RequiredProof, Response};

use super::hosts::without_port;
use crate::shared::Shared;

/// Header of an order, with any value, for who has nothing else that no page could send.
const INTENT: HeaderName = HeaderName::from_static("paddock-request");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Lets a request pass unless it comes from a page elsewhere, or could.
pub(super) fn admit(shared: &Shared, proof: RequiredProof, request: &Request) -> Result<(), Response> {
    if let Some(source) = foreign_source(request, &shared.settings().admin.hosts)
        && !(proof.is_page && is_navigation(request))
    {
        let text = format!(
            "This request comes from a page elsewhere ({source}), which this member answers nothing. Where a proxy changes Host, \
             add the name that browsers ask by to the setting admin.hosts.\n"
        );
        return Err(Response::text(StatusCode::FORBIDDEN, text));
    }
    if proof.is_order { require_intent(request) } else { Ok(()) }
}

/// Refuses an order that a page could have a browser send: a form is plain, and so is a body without a type.
pub(super) fn require_intent(request: &Request) -> Result<(), Response> {
    let is_json = || {
        let essence = request.header(CONTENT_TYPE).and_then(|value| value.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
    };
    if request.headers.contains_key(AUTHORIZATION) || request.headers.contains_key(INTENT) || is_json() {
        return Ok(());
    }
    let text = "What changes something needs one of the headers Authorization, Paddock-Request (with any value), and Content-Type: \
                application/json: a page elsewhere could have a browser send it without.\n";
    Err(Response::text(StatusCode::FORBIDDEN, text))
}

/// The header and its value by which a request comes from a page that is not this member's.
fn foreign_source(request: &Request, hosts: &[String]) -> Option<String> {
    let headers = &request.headers;
    let own = request.header(HOST).unwrap_or_default();
    let of_site = headers.get_all(FETCH_SITE).iter();
    let site = of_site.map(|value| ("Sec-Fetch-Site", value)).find(|(_, value)| {
        // Another port of this host is the same site, and not the same origin.
        !matches!(value.as_bytes(), b"same-origin" | b"none")
    });
    let of_origin = headers.get_all(ORIGIN).iter();
    let origin = of_origin.map(|value| ("Origin", value)).find(|(_, value)| {
        let origin = value.to_str().unwrap_or_default();
        !is_own_origin(origin, own, hosts)
    });
    site.or(origin).map(|(name, value)| format!("{name}: {:?}", String::from_utf8_lossy(value.as_bytes())))
}

/// True if an origin is the member as the request asks for it, or has a name that a setting gives to the member.
fn is_own_origin(origin: &str, own: &str, hosts: &[String]) -> bool {
    let schemes = ["http://", "https://"];
    let Some(authority) = schemes.iter().find_map(|scheme| origin.strip_prefix(scheme)) else { return false };
    let name = without_port(authority);
    !authority.is_empty()
        && (authority.eq_ignore_ascii_case(own) || hosts.iter().any(|host| host.eq_ignore_ascii_case(name)))
}

/// True if a user follows a link: the answer is shown, and the page that the link was on sees nothing of it.
fn is_navigation(request: &Request) -> bool {
    let is = |name, expected| request.header(name).is_some_and(|value: &str| value == expected);
    is(FETCH_MODE, "navigate") && is(FETCH_DEST, "document") && !request.headers.contains_key(ORIGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_members_own_by_host_and_port() {
        let hosts = ["ops.example.org".to_owned(), "*".to_owned()];
        for (origin, own, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("https://ZK1:8080", "zk1:8080", true),
            ("https://ops.example.org", "127.0.0.1:8080", true),
            ("http://127.0.0.1:3000", "127.0.0.1:8080", false),
            ("http://127.0.0.1", "127.0.0.1:8080", false),
            ("https://evil.example", "127.0.0.1:8080", false),
            ("https://ops.example.org.evil.example", "127.0.0.1:8080", false),
            ("https://evil.example", "", false),
            ("http://", "", false),
            ("null", "127.0.0.1:8080", false),
            ("", "", false),
            ("file://", "", false),
        ] {
            assert_eq!(is_own_origin(origin, own, &hosts), expected, "{origin} of {own}");
        }
    }
}
