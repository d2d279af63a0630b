//! Many commands in the payload of one log entry: a version byte, then each command behind its u32 length.

use bytes::Bytes;
use paddock_proto::DecodeError;
use paddock_tree::Command;

const VERSION: u8 = 1;
const LENGTH_BYTES: usize = 4;

/// A batch that still grows.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    bytes: Vec<u8>,
    commands: usize,
}

impl BatchBuilder {
    pub(crate) fn new() -> BatchBuilder {
        BatchBuilder { bytes: vec![VERSION], commands: 0 }
    }

    /// Adds an encoded command and stamps it with the leader's time.
    pub(crate) fn push(&mut self, command: &[u8], time_ms: i64) {
        let len = u32::try_from(command.len()).expect("a frame, and so a command, is shorter than 4 GiB");
        self.bytes.extend_from_slice(&len.to_le_bytes());
        let time_at = self.bytes.len() + Command::TIME_OFFSET;
        self.bytes.extend_from_slice(command);
        self.bytes[time_at..time_at + 8].copy_from_slice(&time_ms.to_be_bytes());
        self.commands += 1;
    }

    pub(crate) fn commands(&self) -> usize {
        self.commands
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The payload; the builder is empty again.
    pub(crate) fn take(&mut self) -> Bytes {
        let bytes = std::mem::replace(self, BatchBuilder::new()).bytes;
        Bytes::from(bytes)
    }
}

/// The commands of a payload, in order. An empty payload is a leader's first entry and holds none.
pub(crate) fn commands(payload: &[u8]) -> impl Iterator<Item = Command<'_>> {
    let (version, mut rest) = payload.split_first().unwrap_or((&VERSION, &[]));
    assert!(*version == VERSION, "log entry has version {version}, this member reads {VERSION}");
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let command = next_command(&mut rest);
        Some(command.expect("a batch whose checksum is right is as it was written"))
    })
}

fn next_command<'a>(rest: &mut &'a [u8]) -> Result<Command<'a>, DecodeError> {
    let (len, behind) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or(DecodeError::Truncated)?;
    let (command, behind) =
        behind.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(DecodeError::Truncated)?;
    *rest = behind;
    Command::decode(command)
}

#[cfg(test)]
mod tests {
    use paddock_proto::{IdList, OpCode, SessionId};

    use super::*;

    #[test]
    fn commands_come_back_with_the_leaders_time() {
        let mut batch = BatchBuilder::new();
        for session in [1, 2] {
            let mut command = Vec::new();
            Command::encode(SessionId(session), 0, IdList::NONE, OpCode::CloseSession, &[], &mut command);
            batch.push(&command, 1000 + session);
        }
        assert_eq!(batch.commands(), 2);
        let payload = batch.take();
        let seen: Vec<_> = commands(&payload).map(|command| (command.session.0, command.time_ms)).collect();
        assert_eq!(seen, [(1, 1001), (2, 1002)]);
        assert_eq!(batch.commands(), 0);
        assert_eq!(commands(&[]).count(), 0);
    }
}
