//! Themes of runs. Most runs mix everything. Some bring together on purpose what chance alone brings together once in
//! thousands of runs: the few faults, and the clients, that a certain kind of mistake needs to be seen.

use clap::ValueEnum;
use paddock_chance::Chance;

use crate::client::Habits;
use crate::faults::FaultKind;
use crate::machine::setup::Settings;
use crate::network::Weather;
use crate::numbering::Numbering;
use crate::time::{SimDuration, Time};

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
    /// A leader that handed the lead over, and does not know who took it, is asked for what is newest.
    Handovers,
    /// Members sleep, and others lose their data, while an ensemble is young.
    Beginnings,
    /// Members, mostly the leader, are cut off from the others, and their clients stay.
    CutOff,
    /// Leaders with a lease hear late that they lead, and say nothing any more.
    Leases,
    /// Members come back with disks of another ensemble.
    ForeignDisks,
    /// Members come back with copies of their own disks, from before what they have acknowledged since.
    OldDisks,
    /// The memory of a member is damaged, and others sleep or are cut off before most can say what is right.
    WrongStates,
    /// A second process is started with the number of a member and a copy of its disk, while others elect.
    Twins,
    /// Everything takes long: entries of many commands, removals, lists and setWatches in portions, between which others have their turns.
    Portions,
    /// Members are upgraded one after the other, or back, and newcomers have numbers that the older build does not know.
    Upgrades,
    /// The leader's disk becomes slow, or its links do, and nothing else happens.
    SlowLeaders,
    /// Members change all the time, and the home group of one that leads other groups lags behind them.
    LaggingHomes,
    /// Observers are there from the beginning, and members learn again what they have lost, more than once.
    Learners,
}

impl Theme {
    pub(crate) fn throw(members: u8, chance: &mut Chance) -> Theme {
        if members == 1 || !chance.one_in(3) {
            return Theme::Everything;
        }
        *chance.pick(&[
            Theme::OldLeaders,
            Theme::Elections,
            Theme::LostData,
            Theme::Moves,
            Theme::Handovers,
            Theme::Beginnings,
            Theme::CutOff,
            Theme::Leases,
            Theme::Learners,
            Theme::ForeignDisks,
            Theme::OldDisks,
            Theme::WrongStates,
            Theme::Twins,
            Theme::Portions,
        ])
    }

    /// Kinds of faults that there are in the run: some and not the others, as what never happens alone hides what happens
    /// only then.
    pub(crate) fn faults(self, chance: &mut Chance) -> Vec<FaultKind> {
        match self {
            Theme::Everything => FaultKind::ALL.into_iter().filter(|_| chance.one_in(2)).collect(),
            Theme::OldLeaders => vec![FaultKind::Pause, FaultKind::Pause, FaultKind::Slow],
            Theme::Elections => {
                vec![FaultKind::End, FaultKind::EndInElection, FaultKind::EndAtDisk, FaultKind::Slow]
            }
            Theme::LostData => {
                vec![FaultKind::Pause, FaultKind::Pause, FaultKind::NewDiskBesideSleeper, FaultKind::Cut]
            }
            Theme::Moves => {
                vec![FaultKind::ClientReset, FaultKind::ClientsCut, FaultKind::Pause, FaultKind::Slow]
            }
            Theme::Handovers => vec![FaultKind::DeafOnceHandedOver],
            Theme::Beginnings => vec![FaultKind::Pause, FaultKind::Pause, FaultKind::NewDiskBesideSleeper],
            Theme::CutOff => vec![
                FaultKind::CutOff,
                FaultKind::CutOff,
                FaultKind::CutOff,
                FaultKind::OneWay,
                FaultKind::Drift,
            ],
            Theme::Leases => vec![FaultKind::HearsLate, FaultKind::HearsLate, FaultKind::Slow],
            Theme::ForeignDisks => {
                vec![
                    FaultKind::ForeignDisk,
                    FaultKind::ForeignDisk,
                    FaultKind::End,
                    FaultKind::Pause,
                    FaultKind::Cut,
                ]
            }
            Theme::OldDisks => vec![FaultKind::OldDisk, FaultKind::OldDiskAndClock],
            Theme::WrongStates => {
                vec![FaultKind::WrongState, FaultKind::End, FaultKind::Pause, FaultKind::Cut]
            }
            Theme::Twins => vec![FaultKind::Twin, FaultKind::Twin, FaultKind::Twin, FaultKind::End],
            Theme::Portions => vec![
                FaultKind::EndWithinEntry,
                FaultKind::EndWithinEntry,
                FaultKind::ClientReset,
                FaultKind::End,
                FaultKind::SlowDisk,
            ],
            Theme::Upgrades => vec![
                FaultKind::End,
                FaultKind::EndInElection,
                FaultKind::Pause,
                FaultKind::Cut,
                FaultKind::Reset,
            ],
            Theme::SlowLeaders => vec![FaultKind::SlowLeader],
            Theme::LaggingHomes => vec![FaultKind::HomeLate, FaultKind::HomeLate, FaultKind::End],
            Theme::Learners => vec![FaultKind::NewDiskAndEnd, FaultKind::NewDisksApart, FaultKind::Pause],
        }
    }

    /// Time at which things begin to go wrong: as a rule when there is an ensemble.
    pub(crate) fn begins(self) -> Time {
        Time(0)
            + match self {
                Theme::Beginnings => SimDuration::millis(300),
                // Clients write by then.
                Theme::SlowLeaders => SimDuration::seconds(6),
                _ => SimDuration::seconds(2),
            }
    }

    /// Time for which workers let their mail lie: at least, and at most.
    pub(crate) fn mail(self) -> (SimDuration, SimDuration) {
        match self {
            Theme::Moves => (SimDuration::millis(50), SimDuration::millis(1000)),
            _ => (SimDuration::micros(1), SimDuration::millis(2)),
        }
    }

    /// Time that a sync takes, at most, of those that chance has to choose from.
    pub(crate) fn sync(self, thrown: SimDuration) -> SimDuration {
        if self == Theme::SlowLeaders { SimDuration::millis(1) } else { thrown }
    }

    /// Time after which a connection goes on whose turn was cut short, at most.
    pub(crate) fn turns(self) -> SimDuration {
        SimDuration::millis(if self == Theme::Portions { 30 } else { 2 })
    }

    /// True if there is a client that changes members.
    pub(crate) fn changes_members(self, chance: &mut Chance) -> bool {
        match self {
            Theme::Everything => chance.one_in(3),
            Theme::OldLeaders | Theme::Elections | Theme::LostData | Theme::Beginnings | Theme::CutOff => {
                false
            }
            Theme::Leases | Theme::Learners | Theme::Portions | Theme::SlowLeaders => false,
            Theme::ForeignDisks | Theme::OldDisks | Theme::WrongStates | Theme::Twins => false,
            Theme::Moves | Theme::Handovers | Theme::Upgrades | Theme::LaggingHomes => true,
        }
    }

    /// True if the home group of a member may lag behind its other groups.
    pub(crate) fn delays_home(self) -> bool {
        matches!(self, Theme::Everything | Theme::Moves)
    }

    pub(crate) fn shape(self, settings: &mut Settings, weather: &mut Weather, clients: &mut [Habits]) {
        match self {
            Theme::Everything => {}
            Theme::OldLeaders => {
                // So that much is on its way when a leader falls asleep, and is asked again before it was answered.
                (weather.delay_min, weather.delay_max) = (SimDuration::millis(30), SimDuration::millis(150));
                one_writes_and_all_ask(settings, clients);
            }
            Theme::Handovers => {
                settings.lease_clock_bound_ms = Some(Settings::LEASE_CLOCK_BOUND_MS);
                weather.delay_max = weather.delay_max.min(SimDuration::millis(20));
                one_writes_and_all_ask(settings, clients);
            }
            Theme::Leases => {
                settings.lease_clock_bound_ms = Some(Settings::LEASE_CLOCK_BOUND_MS);
                (weather.delay_min, weather.delay_max) = (SimDuration::millis(5), SimDuration::millis(50));
                one_writes_and_all_ask(settings, clients);
            }
            Theme::ForeignDisks | Theme::LaggingHomes => {}
            // Little is written, so that nothing reminds a member of what it has forgotten.
            Theme::OldDisks => {
                *weather = Weather::CALM;
                clients.iter_mut().for_each(|client| client.pause = SimDuration::seconds(4));
            }
            // No member learns from a snapshot before digests are compared: a majority with the same wrong state would be right.
            Theme::WrongStates => {
                (settings.snapshot_writes, settings.snapshot_log_bytes) = (1000, 1 << 20);
                (settings.segment_bytes, settings.entry_bytes_kept) = (64 << 10, 1 << 20);
                clients.iter_mut().for_each(|client| client.writes = client.writes.max(300));
            }
            // A member that is not heard for long is taken for ended, and its twin for its successor.
            Theme::Twins => *weather = Weather::CALM,
            Theme::Portions => {
                (settings.work_at_once, settings.long_list) = (1, 1);
                (settings.limits.children_per_turn, settings.limits.watches_per_turn) = (1, 1);
                clients.iter_mut().for_each(|client| client.ask_for_lists(settings.tick_ms));
            }
            // Newcomers have the newer build, and numbers that only that knows.
            Theme::Upgrades => settings.numbering = Numbering::WideBehind(settings.members),
            // There is always something to sync.
            Theme::SlowLeaders => {
                *weather = Weather::CALM;
                clients.iter_mut().for_each(|client| client.pause = SimDuration::millis(20));
                clients[0].writes = 900;
            }
            Theme::Learners => {
                settings.observers = 1;
                settings.members += 1;
            }
            Theme::Elections => {
                (weather.delay_min, weather.delay_max) = (SimDuration::millis(5), SimDuration::millis(100))
            }
            Theme::LostData | Theme::Beginnings => {
                clients.iter_mut().for_each(|client| client.writes = client.writes.max(300));
            }
            Theme::Moves => clients.iter_mut().for_each(Habits::move_all_the_time),
            Theme::CutOff => {
                weather.delay_max = weather.delay_max.min(SimDuration::millis(20));
                clients.iter_mut().for_each(|client| client.stay_with_short_timeout(settings.tick_ms));
            }
        }
    }

    pub(crate) fn shape_operator(self, operator: &mut Habits) {
        match self {
            Theme::Moves => operator.leave_much_behind(),
            Theme::Handovers | Theme::LaggingHomes => operator.pause = SimDuration::millis(300),
            Theme::Upgrades => operator.pause = SimDuration::millis(500),
            _ => {}
        }
    }
}

/// Both with the patience to wait for a member that sleeps.
fn one_writes_and_all_ask(settings: &mut Settings, clients: &mut [Habits]) {
    settings.tick_ms = 2000;
    for (number, client) in clients.iter_mut().enumerate() {
        client.writes = if number == 0 { 900 } else { 0 };
        client.asks_what_is_newest(settings.tick_ms);
    }
}
