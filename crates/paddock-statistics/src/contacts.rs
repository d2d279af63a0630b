//! Other members, as this one sees them itself: those that answer, those that do not, and since when.
//!
//! A leader hears what its followers acknowledge; every member has links to all others. This board has what the links tell, so that the
//! page of any member shows one that is dead.

use std::collections::BTreeMap;

use paddock_proto::MemberNumber;
use parking_lot::Mutex;

/// Another member since it began to answer, or has ceased to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    /// True if it answers.
    pub answers: bool,
    /// In milliseconds since 1970.
    pub since_ms: i64,
}

/// Contacts to the other members, by their numbers.
#[derive(Debug, Default)]
pub struct Contacts(Mutex<BTreeMap<MemberNumber, Contact>>);

impl Contacts {
    /// The link to a member is up, or down, from now on.
    pub fn note(&self, member: MemberNumber, answers: bool, now_ms: i64) {
        let mut contacts = self.0.lock();
        // A member that connects again has not been away in between.
        if contacts.get(&member).is_none_or(|contact| contact.answers != answers) {
            contacts.insert(member, Contact { answers, since_ms: now_ms });
        }
    }

    /// `None` for a member that has never answered this one since it was started.
    pub fn of(&self, member: MemberNumber) -> Option<Contact> {
        self.0.lock().get(&member).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_answers_since_its_link_came_and_does_not_since_it_went() {
        let contacts = Contacts::default();
        assert_eq!(contacts.of(2), None);
        for (answers, now_ms, since_ms) in
            [(true, 100, 100), (true, 200, 100), (false, 300, 300), (false, 400, 300), (true, 500, 500)]
        {
            contacts.note(2, answers, now_ms);
            assert_eq!(contacts.of(2), Some(Contact { answers, since_ms }));
        }
        assert_eq!(contacts.of(3), None);
    }
}
