//! Looking up names, by the operating system or as a test says.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::{fmt, io};

/// The way to find the addresses of `host:port`.
pub(crate) struct LookUp(pub(crate) Arc<LookUpFn>);

/// Finds the addresses of `host:port`.
type LookUpFn = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

impl LookUp {
    /// Looks names up as the operating system does.
    pub(crate) fn of_system() -> LookUp {
        LookUp(Arc::new(|name| Ok(name.to_socket_addrs()?.collect())))
    }
}

impl fmt::Debug for LookUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookUp").finish_non_exhaustive()
    }
}
