//! Plan of a run, out of its seed.

use crate::client::Habits;
use crate::faults::{self, Fault, FaultKind, Planned};
use crate::machine::setup::{Settings, Upgrades};
use crate::network::Weather;
use crate::numbering::Numbering;
use crate::theme::Theme;
use crate::time::{SimDuration, Time};
use paddock_chance::Chance;

/// Choices of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    pub(crate) members: Option<u8>,
    pub(crate) groups: Option<u32>,
    /// Replicas of each group beside the home group.
    pub(crate) replicas: Option<u32>,
    pub(crate) minutes: Option<u64>,
    pub(crate) theme: Option<Theme>,
    /// The numbers of the faults that happen; all do if this is not given.
    pub(crate) faults: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    pub(crate) seed: u64,
    pub(crate) settings: Settings,
    pub(crate) weather: Weather,
    /// Time that a sync takes, at most.
    pub(crate) sync: SimDuration,
    /// Time for which workers let their mail lie: at least, and at most.
    pub(crate) mail: (SimDuration, SimDuration),
    /// Time after which a connection goes on whose turn was cut short, at most.
    pub(crate) turns: SimDuration,
    /// Time for which things go wrong.
    pub(crate) length: SimDuration,
    pub(crate) clients: Vec<Habits>,
    /// Machines without a battery begin with the same time whenever they are switched on.
    pub(crate) has_batteries: bool,
    pub(crate) faults: Vec<Planned>,
}

impl RunPlan {
    pub(crate) fn new(seed: u64, wanted: &Choices) -> RunPlan {
        let mut chance = Chance::of(seed, "plan");
        let thrown = *chance.pick(&[1, 3, 3, 3, 3, 5, 5, 5]);
        let members = wanted.members.unwrap_or(thrown);
        let thrown = SimDuration::seconds(chance.between(20, 60));
        let length = wanted.minutes.map_or(thrown, |minutes| SimDuration::seconds(60 * minutes));
        let mut dice = Chance::of(seed, "members");
        let thrown = Theme::throw(members, &mut dice);
        let mut upgrades = Chance::of(seed, "upgrades");
        let thrown = if members > 1 && upgrades.one_in(12) { Theme::Upgrades } else { thrown };
        let is_slow = members > 1 && Chance::of(seed, "slow leaders").one_in(20);
        let thrown = if is_slow { Theme::SlowLeaders } else { thrown };
        let has_groups = members > 1 && wanted.groups.is_some_and(|groups| groups > 1);
        let lags = has_groups && Chance::of(seed, "lagging homes").one_in(10);
        let thrown = if lags { Theme::LaggingHomes } else { thrown };
        let theme = wanted.theme.unwrap_or(thrown);
        let changes_members = members > 1 && theme.changes_members(&mut dice);
        let spares = if changes_members { dice.below(3) as u8 } else { 0 };
        let is_upgraded = theme == Theme::Upgrades && members > 1;
        let spares = if is_upgraded { spares.max(1) } else { spares };
        let mut settings = Settings::throw(members, spares, &mut chance);
        let count = chance.between(2, 8);
        let mut clients: Vec<Habits> =
            (0..count).map(|_| Habits::throw(settings.tick_ms, &mut chance)).collect();
        // Where a leader has nothing to write it goes on answering, though another may lead by now.
        let only_one_writes = chance.one_in(4);
        (clients[0].writes, clients[0].vanishes) = (clients[0].writes.max(100), u64::MAX);
        clients[1..].iter_mut().filter(|_| only_one_writes).for_each(|client| client.writes = 0);
        let mut late = Chance::of(seed, "identities");
        clients.iter_mut().for_each(|client| client.identifies_late = late.one_in(2));
        let mut strangers = Chance::of(seed, "strangers");
        clients.iter_mut().for_each(|client| client.shows_strangers = strangers.one_in(6));
        let mut alone = Chance::of(seed, "one member");
        if alone.one_in(4) {
            clients.iter_mut().for_each(|client| client.knows_one = alone.one_in(2));
        }
        let mut dialects = Chance::of(seed, "dialects");
        if dialects.one_in(3) {
            let count = clients.len() as u64;
            clients[dialects.below(count) as usize].speak_clickhouse(&mut dialects);
        }
        settings.throw_limits(&mut Chance::of(seed, "limits"));
        settings.throw_portions(&mut Chance::of(seed, "portions"));
        let mut weather = Weather::throw(&mut chance);
        settings.numbering = Numbering::throw(&mut Chance::of(seed, "numbering"));
        settings.stamping = *Chance::of(seed, "stamps").pick(&[0, 0, 0, 0, 0, 0, 500, 1000]);
        settings.upgrades = is_upgraded.then(|| Upgrades { completes: !upgrades.one_in(4) });
        theme.shape(&mut settings, &mut weather, &mut clients);
        if changes_members {
            let habits = Habits::throw(settings.tick_ms, &mut dice);
            let mut operator = habits.of_operator(settings.machines(), &mut dice);
            operator.numbering = settings.numbering;
            if is_upgraded {
                operator.changes_from = settings.members + 1;
            }
            theme.shape_operator(&mut operator);
            clients.push(operator);
        }
        let mut thrown = Chance::of(seed, "groups");
        let thrown = if thrown.one_in(4) { thrown.between(2, 8) as u32 } else { 1 };
        let thrown = if is_upgraded { 1 } else { thrown };
        settings.groups = wanted.groups.unwrap_or(thrown);
        settings.replicas = wanted.replicas.unwrap_or(0);
        // A state that is wrong in memory is judged by the home group's model, which then is none.
        let may_spread = settings.groups > 1 && !is_upgraded && theme != Theme::WrongStates;
        settings.moves_slots = may_spread && Chance::of(seed, "slots").one_in(2);
        if settings.moves_slots {
            clients.iter_mut().for_each(Habits::spread);
            let mut dice = Chance::of(seed, "writes everywhere");
            clients.iter_mut().filter(|_| dice.one_in(3)).for_each(Habits::write_everywhere);
            let mut dice = Chance::of(seed, "watches that stay");
            clients.iter_mut().filter(|_| dice.one_in(4)).for_each(Habits::keep_watches);
        }
        let mut dice = Chance::of(seed, "faults");
        let mut kinds = theme.faults(&mut dice);
        kinds.retain(|kind| !settings.moves_slots || *kind != FaultKind::WrongState);
        // An older disk is judged by a leader, and groups that the member has led itself may have none.
        kinds.retain(|kind| settings.groups == 1 || !kind.brings_older_disk());
        if kinds.is_empty() {
            kinds.push(FaultKind::End);
        }
        // Who has fewer voters tomorrow cannot do without a disk today, unless all groups wait for the voters to be.
        let may_lose = |kind: &FaultKind| settings.groups > 1 && *kind == FaultKind::NewDisk;
        kinds.retain(|kind| !changes_members || !kind.loses_data() || may_lose(kind));
        if settings.groups > 1 && theme.delays_home() {
            kinds.push(FaultKind::HomeLate);
        }
        let mut faults = faults::plan(&kinds, theme.begins(), settings.machines(), length, &mut dice);
        let mut dice = Chance::of(seed, "foundings");
        if has_groups && dice.one_in(4) {
            let within = *dice.pick(&[100, 1000, 10_000]);
            let after = SimDuration::micros(dice.below(within));
            let down = SimDuration::micros(dice.below(2_000_000));
            faults.push(Planned { at: Time(0), fault: Fault::PowerCutOfFounders { after, down } });
        }
        let mut dice = Chance::of(seed, "installs");
        if members > 1 && dice.one_in(4) {
            let member = dice.between(1, settings.machines().into()) as u8;
            let span = SimDuration::micros(dice.between(500_000, 6_000_000));
            let at = Time(dice.below(length.0 / 2));
            faults.push(Planned { at, fault: Fault::FullDiskAtInstall { member, span } });
        }
        if let Some(wanted) = &wanted.faults {
            faults = wanted.iter().filter_map(|number| faults.get(*number).copied()).collect();
        }
        RunPlan {
            seed,
            weather,
            sync: theme.sync(SimDuration::micros(*chance.pick(&[100, 1000, 10_000, 50_000]))),
            mail: theme.mail(),
            turns: theme.turns(),
            length,
            clients,
            has_batteries: !chance.one_in(8),
            faults,
            settings,
        }
    }

    /// True if one of the clients changes the members.
    pub(crate) fn changes_members(&self) -> bool {
        self.clients.iter().any(Habits::changes_members)
    }
}
