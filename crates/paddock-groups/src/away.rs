//! Groups that a member does not have. It is a *guest* of such a group, and another member, which has a replica, is its *host*: it reads, writes and watches
//! for the guest, which asks it by [letters]. Decision 0125 has the rules.

mod guests;
mod letters;
mod line;

pub(crate) use guests::{Guests, NewsOfHost, PendingQuestion};
pub(crate) use letters::{GuestLetter, GuestRequest, HostLetter, SessionStanding};
pub(crate) use line::{Line, LineFrame, LineName};
