//! The SASL mechanism GSSAPI of RFC 4752, which is Kerberos, without layers of integrity or confidentiality: as ZooKeeper offers it.
//!
//! The client's first token holds its ticket. Once the context between the two is established, the server signs an offer of layers, and
//! the client signs its choice, with the name that it wants to be taken for.

use std::fmt;
use std::sync::Arc;

use super::PrincipalNames;

/// The largest token in bytes: what Windows lets a ticket grow to with all groups of its user.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// The layer that leaves what follows as it is.
const NO_LAYER: u8 = 1;

/// Kerberos, as far as a front needs it.
#[derive(Clone, Debug)]
pub struct Kerberos {
    pub acceptor: Arc<dyn KerberosAcceptor>,
    /// The names in ACLs that clients' principals have.
    pub names: Arc<PrincipalNames>,
}

/// The Kerberos library with the service's keys.
pub trait KerberosAcceptor: fmt::Debug + Send + Sync {
    /// Begins a context with one client.
    fn begin(&self) -> Box<dyn KerberosContext>;

    /// The realm of principals that the rule `DEFAULT` is about.
    fn default_realm(&self) -> &str;
}

/// The context between the service and one client. Errors say why, in the library's words.
pub trait KerberosContext: fmt::Debug + Send {
    /// Takes a token of the client, until the context is established.
    fn accept(&mut self, token: &[u8]) -> Result<KerberosStep, String>;

    /// Signs a message for the client.
    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String>;

    /// The message that the client has signed.
    fn unwrap(&mut self, token: &[u8]) -> Result<Vec<u8>, String>;
}

/// Outcome of a token that the library has accepted.
#[derive(Debug, PartialEq, Eq)]
pub enum KerberosStep {
    /// The client has to answer this token.
    Continues(Vec<u8>),
    /// The client is this principal. The token proves who the service is, if the client wants to know; else it is empty.
    Established { principal: String, token: Vec<u8> },
}

/// Reason for which a client has not proved which principal it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GssapiError {
    #[error("a token of {0} bytes, where {TOKEN_BYTES_MAX} are enough for Kerberos")]
    TooLarge(usize),
    #[error("Kerberos does not accept the client's ticket: {0}")]
    Ticket(String),
    #[error("a token where the client has to wait for the offer of layers")]
    NotEmpty,
    #[error("Kerberos does not accept the client's choice of a layer: {0}")]
    Choice(String),
    #[error("a choice of a layer that was not offered")]
    NotOffered,
    #[error("principal {0} wants to be taken for another one")]
    OtherPrincipal(String),
    #[error("principal {0:?} is no name of the form user@REALM or service/host@REALM")]
    Name(String),
}

#[derive(Debug)]
pub(crate) struct GssapiExchange {
    context: Box<dyn KerberosContext>,
    state: State,
    names: Arc<PrincipalNames>,
    default_realm: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Accepting,
    /// The client has the server's last token and owes an empty one, so that it can be sent the offer.
    Accepted {
        principal: String,
    },
    Offered {
        principal: String,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Challenge(Vec<u8>),
    Proven { user: String },
}

impl GssapiExchange {
    pub(super) fn begin(kerberos: &Kerberos) -> GssapiExchange {
        GssapiExchange {
            context: kerberos.acceptor.begin(),
            state: State::Accepting,
            names: Arc::clone(&kerberos.names),
            default_realm: kerberos.acceptor.default_realm().to_owned(),
        }
    }

    /// Takes the next token of the client. Behind an error there is none.
    pub(super) fn take(&mut self, token: &[u8]) -> Result<Step, GssapiError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(GssapiError::TooLarge(token.len()));
        }
        match self.state.clone() {
            State::Accepting => match self.context.accept(token).map_err(GssapiError::Ticket)? {
                KerberosStep::Continues(token) => Ok(Step::Challenge(token)),
                KerberosStep::Established { principal, token } if token.is_empty() => self.offer(principal),
                KerberosStep::Established { principal, token } => {
                    self.state = State::Accepted { principal };
                    Ok(Step::Challenge(token))
                }
            },
            State::Accepted { .. } if !token.is_empty() => Err(GssapiError::NotEmpty),
            State::Accepted { principal } => self.offer(principal),
            State::Offered { principal } => self.choose(token, principal),
        }
    }

    /// Offers no layer, in messages of no size.
    fn offer(&mut self, principal: String) -> Result<Step, GssapiError> {
        let offer = self.context.wrap(&[NO_LAYER, 0, 0, 0]).map_err(GssapiError::Choice)?;
        self.state = State::Offered { principal };
        Ok(Step::Challenge(offer))
    }

    fn choose(&mut self, token: &[u8], principal: String) -> Result<Step, GssapiError> {
        let choice = self.context.unwrap(token).map_err(GssapiError::Choice)?;
        // The layer, the size of messages in three bytes, and the name.
        let Some((&[layer, _, _, _], name)) = choice.split_first_chunk() else {
            return Err(GssapiError::NotOffered);
        };
        if layer != NO_LAYER {
            return Err(GssapiError::NotOffered);
        }
        if !name.is_empty() && name != principal.as_bytes() {
            return Err(GssapiError::OtherPrincipal(principal));
        }
        let user = self.names.user(&principal, &self.default_realm);
        Ok(Step::Proven { user: user.ok_or(GssapiError::Name(principal))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens in clear: a ticket names its principal, and what is signed begins with a word.
    #[derive(Debug)]
    struct Clear {
        proves_itself: bool,
    }

    impl KerberosAcceptor for Clear {
        fn begin(&self) -> Box<dyn KerberosContext> {
            Box::new(Clear { ..*self })
        }

        fn default_realm(&self) -> &str {
            "EXAMPLE.COM"
        }
    }

    impl KerberosContext for Clear {
        fn accept(&mut self, token: &[u8]) -> Result<KerberosStep, String> {
            if token == b"more" {
                return Ok(KerberosStep::Continues(b"go on".to_vec()));
            }
            let ticket = token.strip_prefix(b"ticket ").ok_or("no ticket")?;
            let principal = String::from_utf8(ticket.to_vec()).map_err(|error| error.to_string())?;
            let token = if self.proves_itself { b"service".to_vec() } else { Vec::new() };
            Ok(KerberosStep::Established { principal, token })
        }

        fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
            Ok([b"signed ", message].concat())
        }

        fn unwrap(&mut self, token: &[u8]) -> Result<Vec<u8>, String> {
            token.strip_prefix(b"signed ").map(<[u8]>::to_vec).ok_or_else(|| "not signed".to_owned())
        }
    }

    fn exchange(proves_itself: bool) -> GssapiExchange {
        let acceptor = Arc::new(Clear { proves_itself });
        GssapiExchange::begin(&Kerberos { acceptor, names: Arc::default() })
    }

    /// The exchange behind the offer of layers.
    fn offered() -> GssapiExchange {
        let mut exchange = exchange(true);
        let service = Step::Challenge(b"service".to_vec());
        assert_eq!(exchange.take(b"ticket alice@EXAMPLE.COM"), Ok(service));
        assert_eq!(exchange.take(b""), Ok(offer()));
        exchange
    }

    fn offer() -> Step {
        Step::Challenge(b"signed \x01\0\0\0".to_vec())
    }

    fn alice() -> Result<Step, GssapiError> {
        Ok(Step::Proven { user: "alice@EXAMPLE.COM".to_owned() })
    }

    #[test]
    fn a_client_proves_who_it_is_and_chooses_no_layer() {
        assert_eq!(offered().take(b"signed \x01\0\0\0"), alice());
        assert_eq!(offered().take(b"signed \x01\0\0\0alice@EXAMPLE.COM"), alice());
        // Without a proof for the client, the offer comes at once.
        let mut exchange = exchange(false);
        assert_eq!(exchange.take(b"more"), Ok(Step::Challenge(b"go on".to_vec())));
        assert_eq!(exchange.take(b"ticket alice@EXAMPLE.COM"), Ok(offer()));
        assert_eq!(exchange.take(b"signed \x01\0\0\0"), alice());
    }

    #[test]
    fn nobody_is_taken_for_another_one() {
        let other = GssapiError::OtherPrincipal("alice@EXAMPLE.COM".into());
        assert_eq!(offered().take(b"signed \x01\0\0\0root@EXAMPLE.COM"), Err(other));
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        for choice in [&b"signed \x02\0\0\0"[..], b"signed \x04\xff\xff\xff", b"signed \x01\0\0", b"signed "]
        {
            assert_eq!(offered().take(choice), Err(GssapiError::NotOffered));
        }
        assert_eq!(offered().take(b"\x01\0\0\0"), Err(GssapiError::Choice("not signed".into())));
    }

    #[test]
    fn bad_tokens_are_refused_with_the_reason() {
        assert_eq!(exchange(true).take(b"x"), Err(GssapiError::Ticket("no ticket".into())));
        let large = vec![b't'; TOKEN_BYTES_MAX + 1];
        assert_eq!(exchange(true).take(&large), Err(GssapiError::TooLarge(TOKEN_BYTES_MAX + 1)));
        let mut early = exchange(true);
        early.take(b"ticket alice@EXAMPLE.COM").unwrap();
        assert_eq!(early.take(b"signed \x01\0\0\0"), Err(GssapiError::NotEmpty));
        let mut nameless = exchange(false);
        nameless.take(b"ticket alice").unwrap();
        assert_eq!(nameless.take(b"signed \x01\0\0\0"), Err(GssapiError::Name("alice".into())));
    }
}
