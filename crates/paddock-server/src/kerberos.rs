//! Kerberos for clients: the library of the system, as the fronts see it.

use paddock_front::Kerberos;

use crate::config::KerberosSettings;
use crate::error::ServerError;

/// Opens the keytab; `None` without settings.
#[cfg(feature = "kerberos")]
pub(crate) fn open(settings: Option<&KerberosSettings>) -> Result<Option<Kerberos>, ServerError> {
    let Some(KerberosSettings { principal, keytab, names }) = settings else { return Ok(None) };
    if let Some(keytab) = keytab {
        paddock_tls::warn_of_readable_file(keytab, "the keys of Kerberos");
    }
    let acceptor = library::open(principal, keytab.as_deref())
        .map_err(|source| ServerError::Kerberos { principal: principal.clone(), source })?;
    Ok(Some(Kerberos { acceptor, names: std::sync::Arc::new(names.clone()) }))
}

#[cfg(not(feature = "kerberos"))]
pub(crate) fn open(settings: Option<&KerberosSettings>) -> Result<Option<Kerberos>, ServerError> {
    if settings.is_some() { Err(ServerError::NoKerberos) } else { Ok(None) }
}

#[cfg(feature = "kerberos")]
mod library {
    use std::path::Path;
    use std::sync::Arc;

    use paddock_front::{KerberosAcceptor, KerberosContext, KerberosStep};
    use paddock_gssapi::{Accepted, Acceptor, ClientContext, GssError};

    pub(super) fn open(
        principal: &str,
        keytab: Option<&Path>,
    ) -> Result<Arc<dyn KerberosAcceptor>, GssError> {
        Ok(Arc::new(Library(Acceptor::open(principal, keytab)?)))
    }

    #[derive(Debug)]
    struct Library(Acceptor);

    impl KerberosAcceptor for Library {
        fn begin(&self) -> Box<dyn KerberosContext> {
            Box::new(Context(self.0.begin()))
        }

        fn default_realm(&self) -> &str {
            self.0.default_realm()
        }
    }

    #[derive(Debug)]
    struct Context(ClientContext);

    impl KerberosContext for Context {
        fn accept(&mut self, token: &[u8]) -> Result<KerberosStep, String> {
            match self.0.accept(token).map_err(|error| error.to_string())? {
                Accepted::Continues(token) => Ok(KerberosStep::Continues(token)),
                Accepted::Established { principal, token } => {
                    Ok(KerberosStep::Established { principal, token })
                }
            }
        }

        fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
            self.0.wrap(message).map_err(|error| error.to_string())
        }

        fn unwrap(&mut self, token: &[u8]) -> Result<Vec<u8>, String> {
            self.0.unwrap(token).map_err(|error| error.to_string())
        }
    }
}
