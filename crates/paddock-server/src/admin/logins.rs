//! Logins with passwords, and a growing delay for an address that shows one wrong password after another.
//!
//! A login is tried when it is shown for the first time from an address. Nothing can be learned by showing one again, so that costs
//! nothing; and a login that was right once, an administrator's or one that an ACL names, is never kept waiting, wherever it
//! comes from. So a guesser holds up only itself, and those at the same address who have not logged in yet.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, CONNECTION, RETRY_AFTER};
use paddock_http::{Request, Response};

use super::authorization;
use super::parts::Admin;
use crate::server_limit::ServerLimit;

/// Wrong logins of an address before there is a delay.
const FREE_TRIES: u32 = 10;
/// The first delay, in milliseconds. Each further wrong login doubles it.
const DELAY_MS: u64 = 1000;
/// The longest delay, in milliseconds.
const DELAY_MAX_MS: u64 = 60_000;
/// An address from which no wrong login has come for this time, in milliseconds, is forgotten.
const FORGOTTEN_MS: u64 = 600_000;
/// Addresses that are remembered. The one that has been quiet for longest gives way to a newcomer.
const ADDRESSES_MAX: usize = 1024;
/// Logins that are remembered of one address.
const TRIED_MAX: usize = 64;
/// Right logins that are remembered.
const PROVEN_MAX: usize = 256;

/// Refuses a request whose address has shown too many wrong logins of late, if it shows one more.
pub(super) fn admit(admin: &Admin, request: &Request) -> Result<(), Response> {
    let Some(login) = request.headers.get(AUTHORIZATION) else { return Ok(()) };
    let shared = &admin.shared;
    // What is no password cannot be guessed, and is judged where it counts.
    let is_password = login.as_bytes().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"digest "));
    if !is_password {
        return Ok(());
    }
    let now_ms = shared.clock.monotonic_ms();
    let is_right = || authorization::is_login_of_somebody(shared, request);
    let waits = admin.logins.lock().admit(request.peer.ip(), login.as_bytes(), now_ms, is_right);
    let Err(delay_ms) = waits else { return Ok(()) };
    let detail = "an HTTP request has to wait: its address has shown too many wrong logins";
    shared.hit(ServerLimit::FailedLogin, request.peer, &detail);
    let seconds = delay_ms.div_ceil(1000);
    let text =
        format!("Too many wrong logins have come from this address. Try again in {seconds} seconds.\n");
    let refused = Response::text(StatusCode::TOO_MANY_REQUESTS, text);
    Err(refused.with_header(RETRY_AFTER, &seconds.to_string()).with_header(CONNECTION, "close"))
}

/// Logins that were shown of late. Of each there is a hash with a key of this process, and nothing else.
#[derive(Debug, Default)]
pub(super) struct Logins {
    hasher: RandomState,
    /// The right ones, the one that was used last at the end.
    proven: VecDeque<u64>,
    addresses: HashMap<IpAddr, Tries>,
}

/// Wrong logins of an address.
#[derive(Debug, Default)]
struct Tries {
    count: u32,
    last_ms: u64,
    /// The last ones, the oldest first.
    tried: VecDeque<u64>,
}

impl Logins {
    /// Lets a login be judged, or tells for how many milliseconds its address has to wait. Times are of the monotonic clock.
    fn admit(
        &mut self,
        address: IpAddr,
        login: &[u8],
        now_ms: u64,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), u64> {
        let (address, login) = (network(address), self.hasher.hash_one(login));
        if self.is_proven(login) {
            return Ok(());
        }
        self.addresses.retain(|_, tries| now_ms.saturating_sub(tries.last_ms) < FORGOTTEN_MS);
        let tries = self.addresses.get(&address);
        let is_new = tries.is_none_or(|tries| !tries.tried.contains(&login));
        let delay_ms = tries.map_or(0, |tries| tries.delay_ms(now_ms));
        if is_new && delay_ms > 0 {
            return Err(delay_ms);
        }
        if is_right() {
            self.note_proven(login);
        } else if is_new {
            self.note_wrong(address, login, now_ms);
        }
        Ok(())
    }

    fn is_proven(&mut self, login: u64) -> bool {
        let Some(place) = self.proven.iter().position(|proven| *proven == login) else { return false };
        self.proven.remove(place);
        self.proven.push_back(login);
        true
    }

    fn note_proven(&mut self, login: u64) {
        if self.proven.len() >= PROVEN_MAX {
            self.proven.pop_front();
        }
        self.proven.push_back(login);
    }

    fn note_wrong(&mut self, address: IpAddr, login: u64, now_ms: u64) {
        if self.addresses.len() >= ADDRESSES_MAX && !self.addresses.contains_key(&address) {
            let quietest = self.addresses.iter().min_by_key(|(_, tries)| tries.last_ms);
            let quietest = *quietest.expect("there are as many as there may be").0;
            self.addresses.remove(&quietest);
        }
        let tries = self.addresses.entry(address).or_default();
        tries.count = tries.count.saturating_add(1);
        tries.last_ms = now_ms;
        if tries.tried.len() >= TRIED_MAX {
            tries.tried.pop_front();
        }
        tries.tried.push_back(login);
    }
}

impl Tries {
    /// Time in milliseconds until another login may be tried.
    fn delay_ms(&self, now_ms: u64) -> u64 {
        let Some(doublings) = self.count.checked_sub(FREE_TRIES) else { return 0 };
        let delay_ms = DELAY_MS.saturating_mul(1 << doublings.min(16)).min(DELAY_MAX_MS);
        (self.last_ms + delay_ms).saturating_sub(now_ms)
    }
}

/// The address, or the network of an address of IPv6: the owner of one has 2^64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: &str = "10.0.0.1";
    const FAR: &str = "10.0.0.2";

    /// Shows a login at a time in milliseconds; the right one is `right`.
    fn show(logins: &mut Logins, address: &str, login: &str, now_ms: u64) -> Result<(), u64> {
        logins.admit(address.parse().unwrap(), login.as_bytes(), now_ms, || login == "right")
    }

    /// Logins of which all that are free have been tried from `NEAR`, at time 0.
    fn guessed() -> Logins {
        let mut logins = Logins::default();
        for number in 0..FREE_TRIES {
            assert_eq!(show(&mut logins, NEAR, &number.to_string(), 0), Ok(()), "{number}");
        }
        logins
    }

    #[test]
    fn the_delay_of_an_address_grows_with_each_wrong_login() {
        let mut logins = guessed();
        let mut now_ms = 0;
        for (number, delay_ms) in
            [1, 2, 4, 8, 16, 32, 60, 60].map(|seconds| seconds * 1000).iter().enumerate()
        {
            let guess = format!("guess {number}");
            assert_eq!(show(&mut logins, NEAR, &guess, now_ms), Err(*delay_ms));
            assert_eq!(show(&mut logins, NEAR, &guess, now_ms + delay_ms - 1), Err(1));
            now_ms += delay_ms;
            assert_eq!(show(&mut logins, NEAR, &guess, now_ms), Ok(()));
        }
        assert_eq!(show(&mut logins, NEAR, "one more", now_ms + FORGOTTEN_MS), Ok(()), "it was forgotten");
        assert_eq!(show(&mut logins, NEAR, "and another", now_ms + FORGOTTEN_MS), Ok(()));
    }

    #[test]
    fn others_and_those_who_are_logged_in_do_not_wait() {
        let mut logins = Logins::default();
        assert_eq!(show(&mut logins, NEAR, "right", 0), Ok(()));
        let proven = std::mem::take(&mut logins.proven);
        logins = Logins { proven, hasher: logins.hasher, ..guessed() };
        assert_eq!(show(&mut logins, FAR, "wrong", 0), Ok(()), "another address");
        assert_eq!(show(&mut logins, NEAR, "right", 0), Ok(()), "it was right before");
        assert_eq!(show(&mut logins, NEAR, "wrong", 0), Err(DELAY_MS), "that makes nothing right of others");
    }

    #[test]
    fn the_right_login_waits_as_long_as_a_wrong_one() {
        let mut logins = guessed();
        assert_eq!(show(&mut logins, NEAR, "right", 0), Err(DELAY_MS));
        assert_eq!(show(&mut logins, NEAR, "right", DELAY_MS), Ok(()));
        assert_eq!(show(&mut logins, NEAR, "right", 0), Ok(()));
    }

    #[test]
    fn a_login_that_is_shown_again_is_no_guess() {
        let mut logins = Logins::default();
        for _ in 0..1000 {
            assert_eq!(show(&mut logins, NEAR, "of a script", 0), Ok(()));
        }
        assert_eq!(show(&mut logins, NEAR, "another", 0), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let mut logins = Logins::default();
        for number in 0..FREE_TRIES {
            let address = format!("2001:db8::{number}");
            assert_eq!(show(&mut logins, &address, &number.to_string(), 0), Ok(()));
        }
        assert_eq!(show(&mut logins, "2001:db8::ffff", "wrong", 0), Err(DELAY_MS));
        assert_eq!(show(&mut logins, "2001:db8:0:1::1", "wrong", 0), Ok(()));
        for number in 0..FREE_TRIES {
            assert_eq!(show(&mut logins, "::ffff:10.0.0.1", &number.to_string(), 0), Ok(()));
        }
        assert_eq!(show(&mut logins, NEAR, "wrong", 0), Err(DELAY_MS));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut logins = guessed();
        for number in 0..2 * ADDRESSES_MAX as u32 {
            let address = std::net::Ipv4Addr::from_bits(number).to_string();
            assert_eq!(show(&mut logins, &address, "wrong", u64::from(number)), Ok(()));
        }
        assert_eq!(logins.addresses.len(), ADDRESSES_MAX);
        assert_eq!(show(&mut logins, NEAR, "wrong", 5000), Ok(()), "it was quiet for longest");
        let mut logins = Logins::default();
        for number in 0..u64::from(FREE_TRIES) + 2 * TRIED_MAX as u64 {
            let now_ms = number * DELAY_MAX_MS;
            assert_eq!(show(&mut logins, NEAR, &number.to_string(), now_ms), Ok(()));
        }
        assert_eq!(logins.addresses[&NEAR.parse::<IpAddr>().unwrap()].tried.len(), TRIED_MAX);
        for number in 0..2 * PROVEN_MAX {
            let login = number.to_string();
            let admitted = logins.admit(FAR.parse().unwrap(), login.as_bytes(), 0, || true);
            assert_eq!((admitted, logins.proven.len()), (Ok(()), (number + 1).min(PROVEN_MAX)));
        }
    }
}
