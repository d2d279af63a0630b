//! SASL of a connection: DIGEST-MD5, right behind the greeting and before anything else.

use std::io;

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{DecodeError, OpCode, RequestHeader, Xid, frame};
use paddock_sasl::{ChallengeError, Login, LoginExchange, ServerProof, Service};

use crate::handshake::Granted;

/// Xid of the requests of a login. Those of callers begin with 1.
const XID: Xid = Xid(0);

/// Reason for which a client is not logged in. The client that has it is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server has heard the answer to its challenge, and says no.
    #[error("the server does not let {user} in by SASL: the password is wrong, or it has no such user")]
    Refused {
        /// The user that was to log in.
        user: String,
    },
    /// The server takes part in SASL, but knows nothing of users with passwords.
    #[error("the server has no users of SASL: log in elsewhere, or not at all")]
    NotOffered,
    /// The server's challenge cannot be answered, or it could not prove that it knows the password.
    #[error("SASL of the server: {0}")]
    Server(ChallengeError),
    /// The server's answer has not the form that the protocol gives it.
    #[error("the server's answer to SASL cannot be read: {0}")]
    Malformed(DecodeError),
}

/// The client's side of a login: requests out, replies in.
#[derive(Debug)]
pub struct LoginSteps {
    exchange: LoginExchange,
    /// Proof that the server owes, once it has been answered.
    proof: Option<ServerProof>,
}

impl LoginSteps {
    /// A login that has not begun, with a nonce of its own.
    pub fn new(login: &Login) -> LoginSteps {
        let exchange = LoginExchange::new(login.clone(), Service::Clients, fresh_nonce());
        LoginSteps { exchange, proof: None }
    }

    /// The token of the first request: the server has the first word in DIGEST-MD5.
    pub fn first(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes a reply: its error code and what is behind it. Returns the token of the next request; none if the client is logged in.
    pub fn take(&mut self, error: i32, body: &[u8]) -> Result<Option<Vec<u8>>, LoginError> {
        let refused = || LoginError::Refused { user: self.exchange.user().to_owned() };
        if error != 0 {
            return Err(refused());
        }
        let token = Reader::new(body).buffer().map_err(LoginError::Malformed)?;
        match (&self.proof, token) {
            (None, None) => Err(LoginError::NotOffered),
            (None, Some(challenge)) => {
                let (answer, proof) = self.exchange.answer(challenge).map_err(LoginError::Server)?;
                self.proof = Some(proof);
                Ok(Some(answer))
            }
            // A server that keeps clients which it does not know says this to them.
            (Some(_), None) => Err(refused()),
            (Some(proof), Some(token)) => proof.check(token).map(|()| None).map_err(LoginError::Server),
        }
    }
}

/// Reason for which the connection is of no use.
pub(crate) enum LoginFailure {
    Io(io::Error),
    Login(LoginError),
}

impl From<io::Error> for LoginFailure {
    fn from(error: io::Error) -> LoginFailure {
        LoginFailure::Io(error)
    }
}

/// Logs in on a connection whose session was granted.
pub(crate) async fn log_in(granted: &mut Granted, login: &Login) -> Result<(), LoginFailure> {
    /// A token is 4 KiB at most.
    const REPLY_BYTES_MAX: i32 = 8 << 10;
    let mut steps = LoginSteps::new(login);
    let mut token = Some(steps.first());
    while let Some(sent) = token {
        let mut request = Vec::new();
        put_request(&mut request, &sent);
        granted.send(&request).await?;
        let reply = granted.receive(REPLY_BYTES_MAX).await?;
        let mut reader = Reader::new(&reply);
        let mut header = || Ok((reader.i32()?, reader.i64()?, reader.i32()?));
        let (_, _, error) = header().map_err(|error| LoginFailure::Login(LoginError::Malformed(error)))?;
        token = steps.take(error, reader.rest()).map_err(LoginFailure::Login)?;
    }
    Ok(())
}

fn put_request(out: &mut Vec<u8>, token: &[u8]) {
    frame::write(out, |out| {
        RequestHeader { xid: XID, op: OpCode::Sasl.code() }.encode(out);
        out.put_buffer(Some(token));
    });
}

/// Random bits that cannot be foreseen, for a login.
pub fn fresh_nonce() -> u128 {
    u128::from_be_bytes(paddock_tls::random_bytes())
}
