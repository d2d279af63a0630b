//! Looking up names, by the operating system or as a test says.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::{fmt, io};

/// The way to find the addresses of `host:port`.
pub struct LookUp(Arc<LookUpFn>);

/// Finds the addresses of `host:port`.
type LookUpFn = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

impl LookUp {
    /// Looks names up by a function.
    pub fn new(look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> LookUp {
        LookUp(Arc::new(look_up))
    }

    /// Looks names up as the operating system does.
    pub fn of_system() -> LookUp {
        LookUp::new(|name| Ok(name.to_socket_addrs()?.collect()))
    }

    /// The addresses of `host:port`.
    pub fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        (self.0)(name)
    }
}

impl fmt::Debug for LookUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookUp").finish_non_exhaustive()
    }
}
