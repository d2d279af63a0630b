//! Two front ends on a model of etcd, from seeds: calls are lost before and after they are carried out, watch streams break,
//! revisions are compacted, front ends die. No request is carried out twice, none that was acknowledged is lost, requests of
//! a connection keep their order, all is answered in the end, and both states are those of etcd.

mod etcd;
mod world;

use etcd::Mistake;
use world::World;

const STEPS: usize = 3000;

/// Returns the number of acknowledged requests.
fn run(seed: u64, mistake: Mistake) -> Result<usize, String> {
    let mut world = World::new(seed, mistake);
    for _ in 0..STEPS {
        world.step()?;
    }
    world.finish()
}

/// `ETCD_SEEDS` asks for more.
#[test]
fn front_ends_keep_their_promises_whatever_is_lost() {
    let seeds = std::env::var("ETCD_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    let run = |seed| run(seed, Mistake::None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let acknowledged: usize = (0..seeds).map(run).sum();
    assert!(acknowledged as u64 > 20 * seeds, "{acknowledged} requests were acknowledged in {seeds} seeds");
    println!("{acknowledged} requests were acknowledged in {seeds} seeds");
}

#[test]
fn mistakes_of_a_store_are_noticed() {
    for mistake in [Mistake::IgnoresCompares, Mistake::LosesRevisions] {
        let is_noticed = (0..40).any(|seed| {
            std::panic::catch_unwind(|| run(seed, mistake)).map_or(true, |result| result.is_err())
        });
        assert!(is_noticed, "{mistake:?}");
    }
}
