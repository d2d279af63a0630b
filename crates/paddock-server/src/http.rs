//! HTTP for those who operate a member: one server for all its ports, which clients' threads never wait for.
//!
//! A route is a line in a table ([`Route`]): method, path, who may ask, and a plain function from a request to a response. Functions
//! run on a few threads of their own and may take their time. Left to `admin`: what the routes answer, and who is an administrator.
//!
//! Always true: a connection holds a bounded amount of memory, and is closed when nothing moves on it for the idle timeout.

mod body;
mod connection;
mod places;
mod request;
mod response;
mod route;
mod server;
mod stall;
#[cfg(test)]
pub(crate) mod testing;
mod tls;

pub(crate) use request::Request;
pub(crate) use response::Response;
pub(crate) use route::{Access, Context, RequiredProof, Route, Surface};
pub(crate) use server::{HttpPort, HttpServer};
pub(crate) use tls::HttpTls;
