//! SASL in front of the learner protocol, as members with `quorum.auth.enableSasl` ask for it: packets of their own form carry the
//! tokens of DIGEST-MD5.

use std::io::{Read, Write};

use paddock_proto::jute::Writer;
use paddock_sasl::{ChallengeError, LoginExchange};

use super::{LearnerError, lost};
use crate::error::Problem;
use crate::jute_stream::JuteStream;

/// The first field of every packet, which no packet of the learner protocol begins with.
const MAGIC: i64 = 0x5f24_3501_3501_edcc;
const IN_PROGRESS: i32 = 0;
const SUCCESS: i32 = 1;
const ERROR: i32 = -1;
const TOKEN_BYTES_MAX: i32 = 4096;

/// Proves who the observer is, and that the leader knows the password too.
pub(super) fn log_in<S: Read + Write>(
    stream: &mut JuteStream<S>,
    login: &LoginExchange,
) -> Result<(), LearnerError> {
    // The server has the first word in DIGEST-MD5; the client asks for it.
    send(stream, &[])?;
    let challenge = match receive(stream).map_err(no_challenge)? {
        (IN_PROGRESS, token) => token,
        _ => return Err(LearnerError::Sasl(ChallengeError::Malformed)),
    };
    let (answer, proof) = login.answer(&challenge).map_err(LearnerError::Sasl)?;
    send(stream, &answer)?;
    match receive(stream).map_err(LearnerError::Lost)? {
        (SUCCESS, token) => proof.check(&token).map_err(LearnerError::Sasl),
        (ERROR, _) => Err(LearnerError::LoginRefused { user: login.user().to_owned() }),
        _ => Err(LearnerError::Sasl(ChallengeError::NotProven)),
    }
}

/// A leader that does not know SASL takes the packet for one of the learner protocol, and hangs up.
fn no_challenge(problem: Problem) -> LearnerError {
    match problem {
        Problem::Io(_) | Problem::Truncated => LearnerError::NoSasl,
        problem => LearnerError::Foreign(problem),
    }
}

fn send<S: Read + Write>(stream: &mut JuteStream<S>, token: &[u8]) -> Result<(), LearnerError> {
    let mut packet = Vec::new();
    packet.put_i64(MAGIC);
    packet.put_i32(IN_PROGRESS);
    packet.put_buffer(Some(token));
    let stream = stream.get_mut();
    stream.write_all(&packet).and_then(|()| stream.flush()).map_err(lost)
}

/// Status and token of the next packet.
fn receive<S: Read>(stream: &mut JuteStream<S>) -> Result<(i32, Vec<u8>), Problem> {
    let magic = stream.i64()?;
    if magic != MAGIC {
        let found = (magic >> 32) as u32;
        return Err(Problem::Magic { expected: "packet of SASL", found });
    }
    let status = stream.i32()?;
    let mut token = Vec::new();
    stream.short_buffer(&mut token, TOKEN_BYTES_MAX)?;
    Ok((status, token))
}
