//! Routes: which function answers which request, and who may ask.

use std::borrow::Cow;
use std::time::Duration;

use hyper::header::{ALLOW, HeaderMap};
use hyper::{Method, StatusCode};

use super::{Request, Response};

/// The ports that serve a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Metrics, readiness and liveness: what a network of monitoring may see.
    Metrics,
    /// Everything.
    Admin,
}

/// The proof that a route asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No proof.
    Anyone,
    /// Identities that the ACL of the root names with every permission, or a superuser.
    Administrator,
}

/// Everything that has to be proved before a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredProof {
    /// The proof of the route.
    pub access: Access,
    /// The request is an order: it has to show that no page elsewhere has a browser send it.
    pub is_order: bool,
    /// The answer is a page, which a link may lead to from anywhere.
    pub is_page: bool,
}

/// The side that answers, as far as the server has to ask it.
pub trait Context: Send + Sync + 'static {
    /// The path as the table of routes knows it, for a path that a setting has moved.
    fn canonical<'a>(&self, path: &'a str) -> Cow<'a, str>;

    /// Time after which a connection is closed on which nothing moves.
    fn idle_timeout(&self) -> Duration;

    /// Lets a request pass that asks for the member by a name of its own, or refuses it, whatever stands at its path.
    fn admit_host(&self, headers: &HeaderMap) -> Result<(), Response>;

    /// Lets a request pass, or refuses it. The body has not been read yet.
    fn admit(&self, proof: RequiredProof, request: &Request) -> Result<(), Response>;
}

/// A line of the table of routes.
pub struct Route<C> {
    /// The method that it answers.
    pub method: &'static str,
    /// A `*` at its end stands for any rest.
    pub path: &'static str,
    pub(super) access: Access,
    surface: Surface,
    /// The answer is a page, to which links lead.
    is_page: bool,
    /// Its function finds out whether a request changes something, and asks for the proof.
    judges_orders: bool,
    /// The body of a request is read.
    pub(super) reads_body: bool,
    /// Bytes that the body of a request may have.
    pub(super) body_bytes_max: usize,
    pub(super) answer: fn(&C, Request) -> Response,
}

impl<C> std::fmt::Debug for Route<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl<C> Route<C> {
    /// Anyone may ask for it, at the port for administrators.
    pub const fn new(
        method: &'static str,
        path: &'static str,
        answer: fn(&C, Request) -> Response,
    ) -> Route<C> {
        Route {
            method,
            path,
            access: Access::Anyone,
            surface: Surface::Admin,
            is_page: false,
            judges_orders: false,
            reads_body: true,
            body_bytes_max: 0,
            answer,
        }
    }

    /// Tells something, to anyone.
    pub const fn get(path: &'static str, answer: fn(&C, Request) -> Response) -> Route<C> {
        Route::new("GET", path, answer)
    }

    /// Changes something, for anyone.
    pub const fn post(path: &'static str, answer: fn(&C, Request) -> Response) -> Route<C> {
        Route::new("POST", path, answer)
    }

    /// The port for metrics has it too.
    pub const fn everywhere(self) -> Route<C> {
        Route { surface: Surface::Metrics, ..self }
    }

    /// The answer is a page: it tells nothing but how to ask, so a link may lead to it from anywhere.
    pub const fn for_links(self) -> Route<C> {
        Route { is_page: true, ..self }
    }

    /// Its requests may change something or only tell, which its function finds out.
    pub const fn judges_orders(self) -> Route<C> {
        Route { judges_orders: true, ..self }
    }

    /// The proof that a request needs. `GET` changes nothing anywhere; every other method is an order.
    pub(super) fn proof(&self) -> RequiredProof {
        let is_order = self.method != "GET" && !self.judges_orders;
        RequiredProof { access: self.access, is_order, is_page: self.is_page }
    }

    /// Only administrators may ask for it.
    pub const fn for_administrators(self) -> Route<C> {
        Route { access: Access::Administrator, ..self }
    }

    /// Its requests may have a body of `bytes_max` bytes.
    pub const fn takes(self, bytes_max: usize) -> Route<C> {
        Route { body_bytes_max: bytes_max, ..self }
    }

    /// The route answers without a look at the body, however large that would be.
    pub const fn leaves_body(self) -> Route<C> {
        Route { reads_body: false, ..self }
    }

    /// The rest of a path behind this route's, if it is for this route.
    fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.path.strip_suffix('*') {
            Some(prefix) => path.strip_prefix(prefix),
            None => (path == self.path).then_some(""),
        }
    }

    fn allows(&self, method: &Method) -> bool {
        self.method == method.as_str() || self.method == "GET" && *method == Method::HEAD
    }
}

/// The first route for a request and the rest of its path, or the refusal.
pub(super) fn find<'r, 'p, C>(
    routes: &'r [Route<C>],
    surface: Surface,
    method: &Method,
    path: &'p str,
) -> Result<(&'r Route<C>, &'p str), Response> {
    let is_served = |route: &&Route<C>| surface == Surface::Admin || route.surface == Surface::Metrics;
    let mut allowed: Vec<&str> = Vec::new();
    for route in routes.iter().filter(is_served) {
        let Some(rest) = route.rest(path) else { continue };
        if route.allows(method) {
            return Ok((route, rest));
        }
        let methods: &[&str] = if route.method == "GET" { &["GET", "HEAD"] } else { &[route.method] };
        for method in methods {
            if !allowed.contains(method) {
                allowed.push(method);
            }
        }
    }
    if allowed.is_empty() {
        return Err(Response::text(StatusCode::NOT_FOUND, "There is nothing at this path.\n"));
    }
    let allowed = allowed.join(", ");
    let refused =
        Response::text(StatusCode::METHOD_NOT_ALLOWED, format!("The methods for this path are {allowed}.\n"));
    Err(refused.with_header(ALLOW, &allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &(), _: Request) -> Response {
        Response::text(StatusCode::OK, "")
    }

    const ROUTES: &[Route<()>] = &[
        Route::get("/metrics", nothing).everywhere(),
        Route::get("/commands/*", nothing),
        Route::post("/commands/restore", nothing),
        Route::new("PUT", "/data/*", nothing),
    ];

    #[track_caller]
    fn check(surface: Surface, method: Method, path: &str, expected: Result<(&str, &str), (u16, &str)>) {
        let found = find(ROUTES, surface, &method, path);
        let found = found.map(|(route, rest)| (route.path, rest)).map_err(|refused| {
            let allowed = refused.headers.iter().find(|(name, _)| *name == ALLOW);
            let allowed = allowed.map_or("", |(_, value)| value.to_str().unwrap());
            (refused.status.as_u16(), allowed.to_owned())
        });
        assert_eq!(found, expected.map_err(|(status, allowed)| (status, allowed.to_owned())), "{path}");
    }

    #[test]
    fn a_route_is_found_by_port_method_and_path() {
        use Surface::{Admin, Metrics};
        check(Metrics, Method::HEAD, "/metrics", Ok(("/metrics", "")));
        check(Admin, Method::GET, "/commands/stat", Ok(("/commands/*", "stat")));
        check(Metrics, Method::GET, "/commands/stat", Err((404, "")));
        check(Admin, Method::POST, "/commands/restore", Ok(("/commands/restore", "")));
        check(Admin, Method::POST, "/commands/stat", Err((405, "GET, HEAD")));
        check(Admin, Method::DELETE, "/commands/restore", Err((405, "GET, HEAD, POST")));
        check(Admin, Method::PUT, "/data//x", Ok(("/data/*", "/x")));
        check(Admin, Method::GET, "/metrics/", Err((404, "")));
    }
}
