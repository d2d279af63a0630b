//! HTTP for those who operate a member: one server for all its ports, which clients' threads never wait for.
//!
//! A route is a line in a table ([`Route`]): method, path, who may ask, and a plain function from a request to a response. Functions
//! run on a few threads of their own and may take their time. Left to the server's `admin`: what the routes answer, and who is an administrator.
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
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;

pub use body::BodyWriter;
pub use request::Request;
pub use response::Response;
pub use route::{Access, Context, RequiredProof, Route, Surface};
pub use server::{HttpPort, HttpServer};
pub use tls::HttpTls;
