//! Descriptors of the process: how many it may have, and those that the member keeps for itself.
//!
//! A member needs some for its log, its snapshots and its peers. So connections are refused before the last ones are taken.

use std::os::fd::AsRawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not given to clients, at most. Where the process may have few, it is a quarter of them.
const RESERVE_MAX: u64 = 128;

/// Origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A client of the member.
    Client,
    /// Requests over HTTP for the member's health: half of the reserve is there for it.
    Http,
}

/// Lets the process have as many descriptors as the system allows it.
pub fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::info!(
            from = shown(current),
            to = shown(maximum),
            "raised the limit of open file descriptors to what the system allows"
        ),
        Err(error) => {
            tracing::warn!(limit = shown(current), %error, "the limit of open file descriptors stays as it is");
        }
    }
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

/// True if a connection that was just accepted has a descriptor that the member keeps for itself.
pub fn is_in_reserve(socket: &impl AsRawFd, caller: Caller) -> bool {
    let number = u64::try_from(socket.as_raw_fd()).expect("an open descriptor is not negative");
    is_reserved(number, getrlimit(Resource::Nofile).current, caller)
}

/// The system gives the lowest number that is free: a caller that gets a high one has taken one of the last.
fn is_reserved(number: u64, limit: Option<u64>, caller: Caller) -> bool {
    let Some(limit) = limit else { return false };
    let reserve = RESERVE_MAX.min(limit / 4);
    let kept = match caller {
        Caller::Client => reserve,
        Caller::Http => reserve / 2,
    };
    number >= limit - kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_kept() {
        let check = |limit, client, http| {
            let first = |caller| (0..limit).find(|number| is_reserved(*number, Some(limit), caller));
            assert_eq!((first(Caller::Client), first(Caller::Http)), (client, http), "of {limit}");
        };
        check(1024, Some(896), Some(960));
        check(64, Some(48), Some(56));
        check(1 << 20, Some((1 << 20) - 128), Some((1 << 20) - 64));
        assert!(!is_reserved(u64::MAX, None, Caller::Client));
    }
}
