//! What a run is about. Most runs mix everything. Some bring together on purpose what chance alone brings together once in
//! thousands of runs: the few faults, and the clients, that a certain kind of mistake needs to be seen.

use clap::ValueEnum;

use crate::chance::Chance;
use crate::client::Habits;
use crate::faults::Kind;
use crate::machine::setup::Settings;
use crate::network::Weather;
use crate::time::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Theme {
    /// A mix of all there is.
    Everything,
    /// A leader that has been replaced, and does not know, is asked for what is newest.
    OldLeaders,
    /// Members come back in the middle of elections that take their time.
    Elections,
    /// Members lose their data while leaders sleep.
    LostData,
    /// Sessions move while members change.
    Moves,
}

impl Theme {
    pub(crate) fn throw(members: u8, chance: &mut Chance) -> Theme {
        if members == 1 || !chance.one_in(4) {
            return Theme::Everything;
        }
        *chance.pick(&[Theme::OldLeaders, Theme::Elections, Theme::LostData, Theme::Moves])
    }

    /// Which kinds of faults there are in the run: some and not the others, as what never happens alone hides what happens
    /// only then.
    pub(crate) fn faults(self, chance: &mut Chance) -> Vec<Kind> {
        match self {
            Theme::Everything => Kind::ALL.into_iter().filter(|_| chance.one_in(2)).collect(),
            Theme::OldLeaders => vec![Kind::Pause],
            Theme::Elections => vec![Kind::End, Kind::EndInElection, Kind::EndAtDisk, Kind::Slow],
            Theme::LostData => vec![Kind::Pause, Kind::Pause, Kind::NewDiskBesideSleeper, Kind::Cut],
            Theme::Moves => vec![Kind::ClientReset, Kind::ClientsCut, Kind::Pause, Kind::Slow],
        }
    }

    /// Whether there is somebody who changes members.
    pub(crate) fn changes_members(self, chance: &mut Chance) -> bool {
        match self {
            Theme::Everything => chance.one_in(3),
            Theme::OldLeaders | Theme::Elections | Theme::LostData => false,
            Theme::Moves => true,
        }
    }

    pub(crate) fn shape(self, settings: &mut Settings, weather: &mut Weather, clients: &mut [Habits]) {
        match self {
            Theme::Everything => {}
            Theme::OldLeaders => {
                settings.tick_ms = 2000;
                // So that much is on its way when a leader falls asleep.
                weather.delay_max = Span::millis(100);
                for (number, client) in clients.iter_mut().enumerate() {
                    client.writes = if number == 0 { 900 } else { 0 };
                    client.asks_what_is_newest(settings.tick_ms);
                }
            }
            Theme::Elections => (weather.delay_min, weather.delay_max) = (Span::millis(5), Span::millis(100)),
            Theme::LostData => clients.iter_mut().for_each(|client| client.writes = client.writes.max(300)),
            Theme::Moves => clients.iter_mut().for_each(Habits::move_all_the_time),
        }
    }
}
