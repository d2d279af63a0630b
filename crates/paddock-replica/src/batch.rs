//! The payload of a log entry with commands: a version byte, then batches. Where zxids are stamps, another version byte and a floor for
//! the zxids of its commands stand in front of the batches. A batch is what one member took from its clients in one go:
//! where it comes from, its number, the leader's time, and commands, each behind its u32 length.
//!
//! Batches travel as bytes: from the member that made them to the leader, which only writes the time into them, and
//! from there through the log to everybody.

use bytes::Bytes;
use paddock_proto::{
    DecodeError, MEMBER_NUMBER_MAX, MemberNumber, SessionId, Write, Zxid, narrow_member_number,
};
use paddock_state::Now;
use paddock_tree::{Command, Origin};

use crate::LogEntry;
use crate::configuration::ConfigurationEntry;
use crate::log_entry::{COMMANDS, COMMANDS_WITH_FLOOR};
use crate::stamps::StampClock;

/// Length of an entry's floor.
const FLOOR_BYTES: usize = 8;

const LENGTH_BYTES: usize = 4;
const ORIGIN_BYTES: usize = 1 + 8;
const HEAD_BYTES: usize = ORIGIN_BYTES + 8 + LENGTH_BYTES;
/// The head of a batch of a member whose number is 0 or has more than a byte: the byte for it is 0, and the number follows.
const WIDE_HEAD_BYTES: usize = HEAD_BYTES + 4;
/// Room that a batch begins with: that of a lone command seldom grows.
const FIRST_BYTES: usize = 256;
/// Room that one begins with behind one that was as large, at most.
const ROOM_BYTES_MAX: usize = 64 << 10;

/// A batch that still grows.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    bytes: Vec<u8>,
    commands: usize,
}

impl BatchBuilder {
    pub(crate) fn new() -> BatchBuilder {
        BatchBuilder::with_room(FIRST_BYTES)
    }

    fn with_room(room: usize) -> BatchBuilder {
        let mut bytes = Vec::with_capacity(room);
        bytes.resize(HEAD_BYTES, 0);
        BatchBuilder { bytes, commands: 0 }
    }

    /// Adds an encoded command.
    pub(crate) fn push(&mut self, command: &[u8]) {
        let len = u32::try_from(command.len()).expect("a frame, and so a command, is shorter than 4 GiB");
        self.bytes.reserve(LENGTH_BYTES + command.len());
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(command);
        self.commands += 1;
    }

    pub(crate) fn commands(&self) -> usize {
        self.commands
    }

    /// The command at this place is of no session any more.
    pub(crate) fn withdraw(&mut self, place: usize) {
        withdraw_behind(HEAD_BYTES, &mut self.bytes, place);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The batch; the builder is empty again.
    pub(crate) fn take(&mut self, origin: Origin, number: u64) -> Bytes {
        // Batches of a load are about as large as each other.
        let room = self.bytes.len().clamp(FIRST_BYTES, ROOM_BYTES_MAX);
        let mut bytes = std::mem::replace(self, BatchBuilder::with_room(room)).bytes;
        let len =
            u32::try_from(bytes.len() - HEAD_BYTES).expect("a batch is closed long before it has 4 GiB");
        bytes[0] = narrow_member_number(origin.member);
        bytes[1..9].copy_from_slice(&origin.incarnation.to_le_bytes());
        bytes[9..17].copy_from_slice(&number.to_le_bytes());
        bytes[17..HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
        if bytes[0] == 0 {
            bytes.splice(HEAD_BYTES..HEAD_BYTES, origin.member.to_le_bytes());
        }
        Bytes::from(bytes)
    }
}

/// Makes the command at a place in a whole batch one of no session. One that begins a session or comes back to one is refused then.
pub(crate) fn withdraw(batch: &mut [u8], place: usize) {
    withdraw_behind(head_bytes(batch), batch, place);
}

fn withdraw_behind(head: usize, batch: &mut [u8], place: usize) {
    let mut at = head;
    for _ in 0..place {
        at += LENGTH_BYTES + length_at(batch, at);
    }
    batch[at + LENGTH_BYTES..][..Command::TIME_OFFSET].copy_from_slice(&SessionId::NONE.0.to_be_bytes());
}

/// Length of the head of a batch.
fn head_bytes(batch: &[u8]) -> usize {
    if batch[0] == 0 { WIDE_HEAD_BYTES } else { HEAD_BYTES }
}

/// Length of the command that begins here with its length.
fn length_at(bytes: &[u8], at: usize) -> usize {
    let len: [u8; LENGTH_BYTES] = std::array::from_fn(|i| bytes[at + i]);
    u32::from_le_bytes(len) as usize
}

/// An entry that a leader fills with batches.
#[derive(Debug)]
pub(crate) struct EntryBuilder {
    /// Nothing before the first batch: most entries have one, and take the memory for it and no more.
    bytes: Vec<u8>,
    /// The entry gets a floor, by the time of its first batch and this clock.
    stamps: Option<StampClock>,
}

impl EntryBuilder {
    /// An entry in which zxids are stamps of this clock, or are counted.
    pub(crate) fn new(stamps: Option<StampClock>) -> EntryBuilder {
        EntryBuilder { bytes: Vec::new(), stamps }
    }

    /// Stamps, if there are any, are of this clock from now on, also in this entry unless it has a batch.
    pub(crate) fn set_stamps(&mut self, stamps: Option<StampClock>) {
        self.stamps = stamps;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a batch that came from another member; returns the sessions that clients resume by it. Fails for bytes that `BatchBuilder` did
    /// not make, and has then added nothing.
    pub(crate) fn add_foreign(&mut self, batch: &[u8], now: Now) -> Result<Vec<SessionId>, DecodeError> {
        let resumed = check(batch)?;
        self.add(batch, now);
        Ok(resumed)
    }

    /// Adds a batch that `BatchBuilder` made, and stamps its commands with the leader's time.
    pub(crate) fn add(&mut self, batch: &[u8], now: Now) {
        if self.bytes.is_empty() {
            self.begin(batch.len(), now);
        }
        let mut at = self.bytes.len() + head_bytes(batch);
        self.bytes.extend_from_slice(batch);
        while at < self.bytes.len() {
            let len = length_at(&self.bytes, at);
            let time_at = at + LENGTH_BYTES + Command::TIME_OFFSET;
            self.bytes[time_at..time_at + 8].copy_from_slice(&now.wall_ms.to_be_bytes());
            at += LENGTH_BYTES + len;
        }
    }

    /// Writes what stands in front of the first batch, which has this many bytes and comes now.
    fn begin(&mut self, batch_bytes: usize, now: Now) {
        if let Some(clock) = self.stamps {
            self.bytes.reserve_exact(1 + FLOOR_BYTES + batch_bytes);
            self.bytes.push(COMMANDS_WITH_FLOOR);
            self.bytes.extend_from_slice(&clock.floor(now).0.to_be_bytes());
        } else {
            self.bytes.reserve_exact(1 + batch_bytes);
            self.bytes.push(COMMANDS);
        }
    }

    /// The payload of an entry that has batches; the builder is empty again.
    pub(crate) fn take(&mut self) -> Bytes {
        assert!(!self.is_empty(), "an entry has batches");
        Bytes::from(std::mem::take(&mut self.bytes))
    }
}

/// Checks that these bytes are one whole batch of commands that can be read. Returns the sessions that clients resume by it.
fn check(bytes: &[u8]) -> Result<Vec<SessionId>, DecodeError> {
    let mut rest = bytes;
    let batch = next_batch(&mut rest)?;
    let mut commands = batch.commands;
    let mut resumed = Vec::new();
    while !commands.is_empty() {
        let command = next_command(&mut commands)?;
        if let Ok(Write::ResumeSession { is_asking: false, .. }) = command.write {
            resumed.push(command.session);
        }
    }
    if rest.is_empty() { Ok(resumed) } else { Err(DecodeError::Truncated) }
}

/// A batch as it lies in an entry.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub origin: Origin,
    /// Counted by its origin, from 1; `UNNUMBERED` is what a leader says by itself.
    pub number: u64,
    commands: &'a [u8],
}

impl Batch<'_> {
    pub const UNNUMBERED: u64 = 0;
}

impl<'a> Batch<'a> {
    /// Its commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = Command<'a>> + use<'a> {
        let (member, mut rest) = (self.origin.member, self.commands);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let command = next_command(&mut rest);
            Some(command.expect("a leader takes no batch that cannot be read").taken_by(member))
        })
    }

    /// For each command the znode that it is about, if it is about one that is there already.
    pub(crate) fn known_paths(&self) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
        let mut rest = self.commands;
        std::iter::from_fn(move || Some(Command::known_path(split_command(&mut rest).ok()?)))
    }
}

/// True if these bytes begin with a floor that a leader may have written.
pub(crate) fn is_floor(bytes: &[u8]) -> bool {
    let floor = bytes.first_chunk().map(|floor| i64::from_be_bytes(*floor));
    floor.is_some_and(|floor| (0..=Zxid::stamp(Zxid::STAMP_MS_MAX).0).contains(&floor))
}

/// The floor for the zxids of a payload's commands, 0 for none, and its batches.
fn split_floor(payload: &[u8]) -> (Zxid, &[u8]) {
    match payload.split_first() {
        None => (Zxid(0), &[]),
        Some((&COMMANDS, batches)) => (Zxid(0), batches),
        Some((&COMMANDS_WITH_FLOOR, rest)) => {
            let (floor, batches) = rest.split_first_chunk().expect("it was checked where it came in");
            (Zxid(i64::from_be_bytes(*floor)), batches)
        }
        Some((version, _)) => panic!("a log entry has version {version}, which this member cannot read"),
    }
}

/// The floor for the zxids of the commands of a payload; 0 for none.
pub(crate) fn floor(payload: &[u8]) -> Zxid {
    split_floor(payload).0
}

/// The batches of a payload, in order. An empty payload is a leader's first entry and holds none.
pub(crate) fn batches(payload: &[u8]) -> impl Iterator<Item = Batch<'_>> {
    let mut rest = split_floor(payload).1;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        Some(next_batch(&mut rest).expect("an entry whose checksum is right is as it was written"))
    })
}

impl LogEntry {
    /// The batches of the entry, in order; none if it changes the membership.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        batches(if ConfigurationEntry::decode(&self.payload).is_none() { &self.payload } else { &[] })
    }

    /// The floor for the zxids of its commands; 0 for none.
    pub fn floor(&self) -> Zxid {
        if ConfigurationEntry::decode(&self.payload).is_none() { floor(&self.payload) } else { Zxid(0) }
    }

    /// The id that this entry gives to the ensemble, if it is the one with which the first leader says who the members are.
    pub(crate) fn named_cluster(&self) -> Option<u64> {
        let mut writes = self.batches().flat_map(|batch| batch.commands()).map(|command| command.write);
        writes.find_map(|write| match write {
            Ok(Write::FoundEnsemble { cluster, .. }) => Some(cluster),
            _ => None,
        })
    }
}

fn next_batch<'a>(rest: &mut &'a [u8]) -> Result<Batch<'a>, DecodeError> {
    let (head, mut behind) = rest.split_first_chunk::<HEAD_BYTES>().ok_or(DecodeError::Truncated)?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let len = u32::from_le_bytes(std::array::from_fn(|i| head[17 + i])) as usize;
    let member = match head[0] {
        0 => wide_number(&mut behind)?,
        narrow => narrow.into(),
    };
    let (commands, behind) = behind.split_at_checked(len).ok_or(DecodeError::Truncated)?;
    *rest = behind;
    let origin = Origin { member, incarnation: number(1) };
    Ok(Batch { origin, number: number(9), commands })
}

/// The number that ends a head whose first byte is 0.
fn wide_number(rest: &mut &[u8]) -> Result<MemberNumber, DecodeError> {
    let (wide, behind) = rest.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    *rest = behind;
    let member = MemberNumber::from_le_bytes(*wide);
    let is_one = narrow_member_number(member) == 0 && member <= MEMBER_NUMBER_MAX;
    let unknown = DecodeError::UnknownValue { field: "member", value: member as i32 };
    if is_one { Ok(member) } else { Err(unknown) }
}

fn next_command<'a>(rest: &mut &'a [u8]) -> Result<Command<'a>, DecodeError> {
    Command::decode(split_command(rest)?)
}

fn split_command<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let (len, behind) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or(DecodeError::Truncated)?;
    let (command, behind) =
        behind.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(DecodeError::Truncated)?;
    *rest = behind;
    Ok(command)
}

#[cfg(test)]
mod tests {
    use paddock_proto::{IdList, OpCode, encode};

    use super::*;

    fn close(session: i64) -> Vec<u8> {
        let mut command = Vec::new();
        Command::encode(SessionId(session), 0, IdList::NONE, OpCode::CloseSession, &[], &mut command);
        command
    }

    fn batch(member: MemberNumber, number: u64, sessions: &[i64]) -> Bytes {
        let mut batch = BatchBuilder::new();
        sessions.iter().for_each(|session| batch.push(&close(*session)));
        assert_eq!(batch.commands(), sessions.len());
        batch.take(Origin { member, incarnation: 7 }, number)
    }

    fn at(wall_ms: i64) -> Now {
        Now { monotonic_ms: 0, wall_ms }
    }

    #[test]
    fn batches_come_back_with_the_leaders_time() {
        let mut entry = EntryBuilder::new(None);
        assert!(entry.is_empty());
        entry.add(&batch(1, 5, &[1, 2]), at(1000));
        entry.add_foreign(&batch(2, 9, &[]), at(1001)).unwrap();
        entry.add_foreign(&batch(3, 1, &[3]), at(1002)).unwrap();
        for wide in [0, 256, 1001, MEMBER_NUMBER_MAX] {
            entry.add_foreign(&batch(wide, 2, &[4, 5]), at(1003)).unwrap();
        }
        let payload = entry.take();
        let seen: Vec<_> = batches(&payload)
            .map(|batch| {
                let commands: Vec<_> = batch.commands().map(|c| (c.session.0, c.time_ms, c.member)).collect();
                (batch.origin.member, batch.number, commands)
            })
            .collect();
        assert_eq!(
            seen[..3],
            [(1, 5, vec![(1, 1000, 1), (2, 1000, 1)]), (2, 9, vec![]), (3, 1, vec![(3, 1002, 3)])]
        );
        for (wide, seen) in [0, 256, 1001, MEMBER_NUMBER_MAX].into_iter().zip(&seen[3..]) {
            assert_eq!(*seen, (wide, 2, vec![(4, 1003, wide), (5, 1003, wide)]));
        }
        assert_eq!(batches(&[]).count(), 0);
    }

    #[test]
    fn an_entry_with_a_floor_is_read_as_it_was_written() {
        let mut counted = EntryBuilder::new(None);
        counted.add(&batch(1, 5, &[1]), at(1000));
        let counted = counted.take();
        let mut stamped = EntryBuilder::new(Some(StampClock::Own));
        for time_ms in [1000, 900, -5, i64::MAX] {
            assert!(stamped.is_empty());
            stamped.add(&batch(1, 5, &[1]), at(1000));
            stamped.add(&batch(2, 6, &[2]), at(time_ms));
            let payload = stamped.take();
            assert_eq!(floor(&payload), Zxid::stamp(1000), "its first batch has decided");
            assert_eq!(batches(&payload).count(), 2);
        }
        assert_eq!((floor(&counted), floor(&[])), (Zxid(0), Zxid(0)));
        assert!(
            is_floor(&Zxid::stamp(i64::MAX).0.to_be_bytes()),
            "a clock does not make an entry that cannot be read"
        );
        for other in [-1, Zxid::stamp(i64::MAX).0 + 1, i64::MAX] {
            assert!(!is_floor(&i64::to_be_bytes(other)));
        }
        assert!(!is_floor(&[0; 7]));
    }

    #[test]
    fn a_command_that_is_withdrawn_is_of_no_session() {
        for member in [1, 0, 1001] {
            check_withdrawal(member);
        }
    }

    fn check_withdrawal(member: MemberNumber) {
        let mut builder = BatchBuilder::new();
        [1, 2, 3].iter().for_each(|session| builder.push(&close(*session)));
        builder.withdraw(1);
        let batch = builder.take(Origin { member, incarnation: 7 }, 5);
        let sessions = |batch: &[u8]| {
            let batch = next_batch(&mut &batch[..]).unwrap();
            batch.commands().map(|command| command.session.0).collect::<Vec<_>>()
        };
        assert_eq!(sessions(&batch), [1, 0, 3]);
        let mut batch = batch.to_vec();
        withdraw(&mut batch, 2);
        assert_eq!(sessions(&batch), [1, 0, 0]);
    }

    #[test]
    fn it_is_told_who_comes_back_by_a_batch() {
        let resume = |session: i64, is_asking: bool| {
            let (mut body, mut command) = (Vec::new(), Vec::new());
            encode::resume_session(&mut body, 4000, true, is_asking, None);
            let op = OpCode::ResumeSession;
            Command::encode(SessionId(session), 0, IdList::NONE, op, &body, &mut command);
            command
        };
        let mut builder = BatchBuilder::new();
        [close(1), resume(2, false), resume(3, true)].iter().for_each(|command| builder.push(command));
        let batch = builder.take(Origin { member: 2, incarnation: 7 }, 1);
        assert_eq!(EntryBuilder::new(None).add_foreign(&batch, at(0)), Ok(vec![SessionId(2)]));
    }

    #[test]
    fn bytes_that_are_no_batch_are_not_taken() {
        for member in [1, 1001] {
            check_parts(&batch(member, 1, &[1, 2]));
        }
        // A number that has a byte stands there; two forms of one would be two.
        let mut twofold = batch(1001, 1, &[]).to_vec();
        twofold[HEAD_BYTES..].copy_from_slice(&7_u32.to_le_bytes());
        assert!(EntryBuilder::new(None).add_foreign(&twofold, at(0)).is_err());
    }

    #[test]
    fn a_batch_of_a_small_number_is_as_earlier_builds_write_it() {
        let head = [vec![3], 7_u64.to_le_bytes().into(), 1_u64.to_le_bytes().into(), vec![0; 4]].concat();
        assert_eq!(batch(3, 1, &[]), head);
    }

    fn check_parts(whole: &[u8]) {
        let mut entry = EntryBuilder::new(None);
        for end in 0..whole.len() {
            assert!(entry.add_foreign(&whole[..end], at(0)).is_err(), "cut at {end}");
        }
        let mut longer = whole.to_vec();
        longer.push(0);
        assert!(entry.add_foreign(&longer, at(0)).is_err());
        assert!(entry.is_empty());
    }
}
