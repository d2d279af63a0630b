//! The number of a group on a message between members.
//!
//! A message of the home group is sent as it is. In front of one of another group stand a byte that no message begins with, and the
//! group's number (u32, big-endian). A member that has no such group drops it.

use paddock_storage::GroupNumber;

use crate::config::HOME;

/// The first byte of a message of another group than home: messages begin with the kind of an ensemble's id, which is less.
const OF_GROUP: u8 = 0xFF;
/// The first byte of a letter of a guest to its host about a group, and of one back.
const TO_HOST: u8 = 0xFE;
const TO_GUEST: u8 = 0xFD;
/// The first byte of a message about the copy of a group, which the member's owner takes.
const OF_COPIES: u8 = 0xFC;
const HEAD_BYTES: usize = 1 + 4;

/// The way of letters about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterWay {
    ToHost,
    ToGuest,
}

/// Letters about a group, as they are sent.
pub(crate) fn seal_letters(way: LetterWay, group: u32, letters: &[u8]) -> Vec<u8> {
    let first = if way == LetterWay::ToHost { TO_HOST } else { TO_GUEST };
    with_head(first, group, letters)
}

/// The way, the group and the letters of a message that has letters.
pub(crate) fn open_letters(sealed: &[u8]) -> Option<(LetterWay, u32, &[u8])> {
    let way = match *sealed.first()? {
        TO_HOST => LetterWay::ToHost,
        TO_GUEST => LetterWay::ToGuest,
        _ => return None,
    };
    let group = u32::from_be_bytes(*sealed.get(1..)?.first_chunk()?);
    Some((way, group, sealed.get(HEAD_BYTES..)?))
}

/// A message about the copy of a group between the owners of two members, as it is sent.
pub fn seal_of_copies(message: &[u8]) -> Vec<u8> {
    [&[OF_COPIES], message].concat()
}

/// A message about the copy of a group; `None` if the bytes are for the member itself.
pub fn open_of_copies(sealed: &[u8]) -> Option<&[u8]> {
    sealed.strip_prefix(&[OF_COPIES])
}

fn with_head(first: u8, group: u32, message: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(HEAD_BYTES + message.len());
    sealed.push(first);
    sealed.extend_from_slice(&group.to_be_bytes());
    sealed.extend_from_slice(message);
    sealed
}

/// A message of a group, as it is sent.
pub(crate) fn seal(group: GroupNumber, message: Vec<u8>) -> Vec<u8> {
    if group == HOME {
        return message;
    }
    with_head(OF_GROUP, group.0, &message)
}

/// True if a message, as a member has sent it, is about the log, the leader or the members, as most are, and not about a snapshot.
pub fn is_of_log(sealed: &[u8]) -> bool {
    if open_letters(sealed).is_some() {
        return true;
    }
    let head_bytes = if sealed.first() == Some(&OF_GROUP) { HEAD_BYTES } else { 0 };
    sealed.get(head_bytes..).is_some_and(paddock_replica::is_of_log)
}

/// The group of a message that has come, and the message; `None` if its head is not whole.
pub(crate) fn open(mut sealed: Vec<u8>) -> Option<(GroupNumber, Vec<u8>)> {
    if sealed.first() != Some(&OF_GROUP) {
        return Some((HOME, sealed));
    }
    let number = sealed.get(1..HEAD_BYTES)?.try_into().expect("four bytes");
    sealed.drain(..HEAD_BYTES);
    Some((GroupNumber(u32::from_be_bytes(number)), sealed))
}

/// The number of the group of a message that a member has sent, and the message; `None` if its head is not whole.
#[cfg(feature = "testing")]
pub fn open_message(sealed: Vec<u8>) -> Option<(u32, Vec<u8>)> {
    open(sealed).map(|(group, message)| (group.0, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_home_group_is_what_it_was_and_another_names_its_group() {
        assert_eq!(seal(HOME, vec![2, 3]), [2, 3]);
        for group in [HOME, GroupNumber(1), GroupNumber(u32::MAX)] {
            assert_eq!(open(seal(group, vec![2, 3])), Some((group, vec![2, 3])));
        }
        assert_eq!(seal(GroupNumber(258), vec![2]), [OF_GROUP, 0, 0, 1, 2, 2]);
        assert_eq!(open(vec![OF_GROUP, 0, 0, 1]), None);
        assert_eq!(open(Vec::new()), Some((HOME, Vec::new())));
    }
}
