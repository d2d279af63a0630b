//! ACLs in the form of Go's package `encoding/gob`, which is how zetcd keeps them: messages with a length, of which those with a
//! negative number describe types, and the last one holds the list.
//!
//! The types are not read: the list is one of structures with a number, a scheme and an id, in this order. Fields that are zero or empty
//! are left out.

use paddock_proto::{Acl, Id, Perms};

/// The list; `None` if the bytes are something else.
pub(super) fn decode_acls(bytes: &[u8]) -> Option<Vec<Acl>> {
    let mut messages = Gob(bytes);
    while !messages.0.is_empty() {
        let mut message = Gob(messages.bytes()?);
        if message.signed()? < 0 {
            continue;
        }
        // A value that is no structure follows a zero.
        if message.unsigned()? != 0 {
            return None;
        }
        let count = message.unsigned()?;
        let list = (0..count).map(|_| message.acl()).collect::<Option<Vec<Acl>>>()?;
        return (message.0.is_empty() && messages.0.is_empty()).then_some(list);
    }
    None
}

struct Gob<'a>(&'a [u8]);

impl<'a> Gob<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Small numbers are a byte; others follow their length, which is written as its complement.
    fn unsigned(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let len = first.wrapping_neg();
        if len > 8 {
            return None;
        }
        (0..len).try_fold(0, |number, _| Some(number << 8 | u64::from(self.byte()?)))
    }

    /// The lowest bit tells that all others are inverted.
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.unsigned()?).ok()?;
        let (front, back) = self.0.split_at_checked(len)?;
        self.0 = back;
        Some(front)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    /// A structure: each field follows its distance from the one before, and a zero ends it.
    fn acl(&mut self) -> Option<Acl> {
        let (mut perms, mut scheme, mut id) = (0, String::new(), String::new());
        let mut field = 0;
        loop {
            match self.unsigned()? {
                0 => return Some(Acl { perms: Perms(perms), id: Id::new(&scheme, &id) }),
                distance => field += distance,
            }
            match field {
                1 => perms = i32::try_from(self.signed()?).ok()?,
                2 => scheme = self.text()?,
                3 => id = self.text()?,
                _ => return None,
            }
        }
    }
}
