//! What a run is like, out of its seed.

use crate::chance::Chance;
use crate::client::Habits;
use crate::faults::{self, Planned};
use crate::machine::setup::Settings;
use crate::network::Weather;
use crate::time::Span;

/// What the command line decides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) members: Option<u8>,
    pub(crate) minutes: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) settings: Settings,
    pub(crate) weather: Weather,
    /// How long a sync takes, at most.
    pub(crate) sync: Span,
    /// So long things go wrong.
    pub(crate) length: Span,
    pub(crate) clients: Vec<Habits>,
    /// Machines without a battery begin with the same time whenever they are switched on.
    pub(crate) has_batteries: bool,
    pub(crate) faults: Vec<Planned>,
}

impl Plan {
    pub(crate) fn new(seed: u64, wanted: Wanted) -> Plan {
        let mut chance = Chance::of(seed, "plan");
        let thrown = *chance.pick(&[1, 3, 3, 3, 3, 5, 5, 5]);
        let members = wanted.members.unwrap_or(thrown);
        let thrown = Span::seconds(chance.between(20, 60));
        let length = wanted.minutes.map_or(thrown, |minutes| Span::seconds(60 * minutes));
        let settings = Settings::throw(members, &mut chance);
        let clients = chance.between(2, 8);
        Plan {
            seed,
            weather: Weather::throw(&mut chance),
            sync: Span::micros(*chance.pick(&[100, 1000, 10_000, 50_000])),
            length,
            clients: (0..clients).map(|_| Habits::throw(settings.tick_ms, &mut chance)).collect(),
            has_batteries: !chance.one_in(8),
            faults: faults::plan(members, length, &mut Chance::of(seed, "faults")),
            settings,
        }
    }
}
