//! Two front ends on a model of etcd, from a seed: calls are lost before and after they are carried out, and carried out
//! late; watch streams break, revisions are compacted, etcd runs out of space, front ends die, sleep and are cut off; clients watch, and
//! move.
//!
//! The front ends run the code of the server, from [`paddock_etcd::Engine`] down. Every revision of etcd and every
//! reply is looked at as soon as it is there. Then nothing goes wrong any more, and everything has to come to an end.

mod checks;
pub(crate) mod client;
mod clients;
mod faults;
mod front_end;
mod healing;
pub(crate) mod history;
mod scarcity;
mod sessions;
mod store;
pub(crate) mod watching;
mod weather;
mod world;

use store::Mistakes;
use world::World;

use crate::trace::Telling;
use crate::world::Account;

/// One run, from its beginning to its end or to the first violation.
pub(crate) fn live(seed: u64, telling: Telling) -> (Account, Vec<String>) {
    World::new(seed, telling, Mistakes::default()).live()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    /// `ETCD_SEEDS` asks for more.
    #[test]
    fn front_ends_keep_their_promises_whatever_is_lost() {
        let seeds = std::env::var("ETCD_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
        let mut acknowledged = 0;
        for seed in 0..seeds {
            let verdict = run::judge(|telling| live(seed, telling), false);
            let run::SeedVerdict::Good(account) = verdict else { panic!("seed {seed}: {verdict:?}") };
            acknowledged += account.writes;
        }
        assert!(acknowledged > 20 * seeds, "{acknowledged} requests were acknowledged in {seeds} seeds");
    }

    #[test]
    fn mistakes_of_etcd_are_noticed() {
        let all = [
            ("compares", Mistakes { ignores_compares: true, ..Mistakes::default() }),
            ("revisions", Mistakes { loses_revisions: true, ..Mistakes::default() }),
        ];
        for (name, mistakes) in all {
            let live = |seed| World::new(seed, Telling::Hash, mistakes).live();
            let is_noticed = (0..10).any(|seed| run::guard(|| live(seed)).0.violation.is_some());
            assert!(is_noticed, "{name}");
        }
    }
}
