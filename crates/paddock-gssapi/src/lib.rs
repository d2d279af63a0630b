//! Kerberos for a service: clients prove who they are with tickets, by the calls of GSSAPI (RFC 2744) of the system's MIT Kerberos.
//!
//! The library is loaded when it is first asked for, so neither building nor starting a program needs it to be installed. It reads
//! `krb5.conf`, the keytab and its cache of what was shown before (against replays) itself, as for every other service of the machine.
//!
//! `calls` holds all unsafe code, and its types are as RFC 2744 and the library's header say. Beside this crate there is one unsafe
//! declaration of the workspace, that of the C library's `malloc_trim` in `paddock-os`.
#![allow(unsafe_code)]

mod calls;

use std::ffi::CString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use calls::{Calls, Context, Credential, Name};

/// Failures of a call, in the words of the Kerberos library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GssError {
    #[error("load MIT Kerberos (Debian's package libgssapi-krb5-2): {0}")]
    Load(String),
    #[error("a name or path with a zero byte")]
    ZeroByte,
    #[error("{0}")]
    Refused(String),
}

/// Credentials of a service: it takes tickets for its principal.
#[derive(Clone)]
pub struct Acceptor {
    calls: &'static Calls,
    credential: Arc<Credential>,
    default_realm: String,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").field("default_realm", &self.default_realm).finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Takes tickets for `principal`, such as `zookeeper/host@REALM`, with its keys in `keytab`, or in the one that `krb5.conf` names.
    /// A principal without a realm is one of the default realm. Keys are read anew for each ticket; they have to be there now, too.
    pub fn open(principal: &str, keytab: Option<&Path>) -> Result<Acceptor, GssError> {
        let calls = Calls::loaded()?;
        let keytab = keytab.map(|path| {
            let name = [b"FILE:", path.as_os_str().as_bytes()].concat();
            CString::new(name).map_err(|_| GssError::ZeroByte)
        });
        let name = Name::of_principal(calls, principal)?;
        let credential = Credential::to_accept(calls, &name, keytab.transpose()?.as_deref())?;
        let some_name = Name::of_principal(calls, "name")?.of_kerberos()?.text()?;
        let default_realm = some_name.split_once('@').map_or("", |(_, realm)| realm).to_owned();
        Ok(Acceptor { calls, credential: Arc::new(credential), default_realm })
    }

    /// The default realm of `krb5.conf`; empty if it has none.
    pub fn default_realm(&self) -> &str {
        &self.default_realm
    }

    /// Begins to take the tokens of one client.
    pub fn begin(&self) -> ClientContext {
        ClientContext { context: Context::new(self.calls), credential: Arc::clone(&self.credential) }
    }
}

/// The conversation with one client.
#[derive(Debug)]
pub struct ClientContext {
    context: Context,
    credential: Arc<Credential>,
}

/// Outcome of a token that was accepted.
#[derive(Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The client has to answer this token.
    Continues(Vec<u8>),
    /// The client has proved to be a principal, such as `alice@REALM`.
    Established {
        principal: String,
        /// Proof for the client that the service has its key; empty if the client has not asked for one.
        token: Vec<u8>,
    },
}

impl ClientContext {
    /// Takes the next token of the client. After an error the conversation is over.
    pub fn accept(&mut self, token: &[u8]) -> Result<Accepted, GssError> {
        self.context.accept(&self.credential, token)
    }

    /// Signs a message for the client, without encrypting it.
    pub fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, GssError> {
        self.context.wrap(message)
    }

    /// The message that the client has signed, or encrypted.
    pub fn unwrap(&mut self, token: &[u8]) -> Result<Vec<u8>, GssError> {
        self.context.unwrap(token)
    }
}
