//! Kerberos with tickets in clear, so that a fuzzer gets behind them: the exchange around the library is what it tests.

use std::sync::Arc;

use paddock_front::{Kerberos, KerberosAcceptor, KerberosContext, KerberosStep};

#[derive(Debug)]
struct ClearTickets;

pub(super) fn kerberos() -> Kerberos {
    Kerberos { acceptor: Arc::new(ClearTickets), names: Arc::default() }
}

impl KerberosAcceptor for ClearTickets {
    fn begin(&self) -> Box<dyn KerberosContext> {
        Box::new(ClearTickets)
    }

    fn default_realm(&self) -> &str {
        "R"
    }
}

impl KerberosContext for ClearTickets {
    /// `+` behind a ticket asks for the proof of the service, `-` for one more token.
    fn accept(&mut self, token: &[u8]) -> Result<KerberosStep, String> {
        match token.split_last() {
            Some((b'-', _)) => Ok(KerberosStep::Continues(vec![b'-'])),
            Some((b'+', principal)) => {
                let principal = String::from_utf8_lossy(principal).into_owned();
                Ok(KerberosStep::Established { principal, token: vec![b'+'] })
            }
            _ if token.contains(&b'@') => {
                let principal = String::from_utf8_lossy(token).into_owned();
                Ok(KerberosStep::Established { principal, token: Vec::new() })
            }
            _ => Err("no ticket".to_owned()),
        }
    }

    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
        Ok(message.to_vec())
    }

    fn unwrap(&mut self, token: &[u8]) -> Result<Vec<u8>, String> {
        Ok(token.to_vec())
    }
}
