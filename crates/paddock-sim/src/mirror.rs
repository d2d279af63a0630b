//! A server that shows the state of a source and forwards to it, from a seed: the link to the source is slow and is lost with requests and
//! answers on it, sessions end at the source, clients write there directly and move, and a member takes the mirror's place.
//!
//! The mirror runs the code of the server, from [`paddock_forward::MirrorEngine`] down. Every transaction and every reply is looked at as
//! soon as it is there. Then nothing goes wrong any more, and all clients have to be served.

mod checks;
mod client;
mod clients;
mod connections;
mod cutover;
mod healing;
mod link;
mod source;
mod successor;
mod world;

use world::MirrorWorld;

use crate::trace::Telling;
use crate::world::Account;

/// One run, from its beginning to its end or to the first violation.
pub(crate) fn live(seed: u64, telling: Telling) -> (Account, Vec<String>) {
    MirrorWorld::new(seed, telling).live()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    #[test]
    fn a_mirror_keeps_its_promises_whatever_is_lost() {
        let (seeds, mut acknowledged) = (8, 0);
        for seed in 0..seeds {
            let verdict = run::judge(|telling| live(seed, telling), false);
            let run::SeedVerdict::Good(account) = verdict else { panic!("seed {seed}: {verdict:?}") };
            acknowledged += account.writes;
        }
        assert!(acknowledged > 20 * seeds, "{acknowledged} requests were acknowledged in {seeds} seeds");
    }
}
