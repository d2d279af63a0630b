//! Network between machines: letters between members, connections of clients. Letters are late, lost, doubled and overtaken;
//! a connection loses nothing and keeps its order, until it breaks.

use std::collections::BTreeMap;

use paddock_chance::Chance;

use crate::time::{SimDuration, Time};

/// Weather of the network when nothing special happens.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) delay_min: SimDuration,
    pub(crate) delay_max: SimDuration,
    /// Letters of a thousand that are lost, or come twice.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// True if letters of one member to another come in their order, as over one connection.
    pub(crate) in_order: bool,
}

impl Weather {
    pub(crate) const CALM: Weather = Weather {
        delay_min: SimDuration::micros(50),
        delay_max: SimDuration::millis(1),
        lost: 0,
        doubled: 0,
        in_order: true,
    };

    pub(crate) fn throw(chance: &mut Chance) -> Weather {
        let delay_max = SimDuration::millis(*chance.pick(&[1, 5, 20, 100]));
        let calm = Weather { delay_max, ..Weather::CALM };
        match chance.below(3) {
            0 => calm,
            1 => Weather { lost: chance.mostly_low(0, 30), ..calm },
            _ => Weather {
                lost: chance.mostly_low(0, 100),
                doubled: chance.mostly_low(0, 100),
                in_order: false,
                ..calm
            },
        }
    }
}

/// One way from a member to another.
#[derive(Debug, Default)]
struct NetworkLink {
    last_arrival: Time,
    /// Number of resets: letters sent before one do not arrive after it.
    resets: u64,
}

/// Something that lasts for a while. Members are sets of bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disturbance {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) what: Trouble,
    pub(crate) since: Time,
    pub(crate) until: Time,
}

impl Disturbance {
    fn is_on(&self, now: Time) -> bool {
        self.since <= now && now < self.until
    }

    fn concerns(&self, from: u8, to: u8) -> bool {
        self.from & (1 << from) != 0 && self.to & (1 << to) != 0
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// Nothing arrives; what is held comes afterwards, if the connection still lives then.
    Cut {
        holds: bool,
    },
    Slow(SimDuration),
    /// Letters of a thousand that are lost.
    Loss(u64),
    /// Nothing passes between clients and the members of `to`.
    ClientsCut,
}

/// Fate of a letter that should arrive now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    Held(Time),
}

#[derive(Debug)]
pub(crate) struct Network {
    weather: Weather,
    chance: Chance,
    links: BTreeMap<(u8, u8), NetworkLink>,
    disturbances: Vec<Disturbance>,
}

impl Network {
    pub(crate) fn new(weather: Weather, chance: Chance) -> Network {
        Network { weather, chance, links: BTreeMap::new(), disturbances: Vec::new() }
    }

    pub(crate) fn disturb(&mut self, disturbance: Disturbance) {
        self.disturbances.push(disturbance);
    }

    /// Nothing is wrong any more, and nothing will be.
    pub(crate) fn heal(&mut self) {
        self.disturbances.clear();
        self.weather = Weather::CALM;
    }

    /// All that is on its way from or to a member is lost.
    pub(crate) fn reset(&mut self, member: u8) {
        for ((from, to), link) in &mut self.links {
            if *from == member || *to == member {
                link.resets += 1;
            }
        }
    }

    /// Times at which a letter that is sent now arrives: once as a rule. Each time comes with a number that `fate` wants to know.
    pub(crate) fn send(&mut self, now: Time, from: u8, to: u8) -> Vec<(Time, u64)> {
        let losses = self.troubles(now, from, to).map(|trouble| match trouble {
            Trouble::Loss(permille) => permille,
            _ => 0,
        });
        let lost = losses.chain([self.weather.lost]).max().unwrap_or_default();
        let copies = 1 + u64::from(self.chance.permille(self.weather.doubled));
        let copies = if self.chance.permille(lost) { 0 } else { copies };
        (0..copies).map(|_| self.arrival(now, from, to)).collect()
    }

    fn arrival(&mut self, now: Time, from: u8, to: u8) -> (Time, u64) {
        let slow = self.troubles(now, from, to).map(|trouble| match trouble {
            Trouble::Slow(span) => span,
            _ => SimDuration::ZERO,
        });
        let slow = slow.max().unwrap_or_default();
        let mut at = now + self.delay() + slow;
        let link = self.links.entry((from, to)).or_default();
        if self.weather.in_order {
            at = at.max(link.last_arrival);
        }
        link.last_arrival = link.last_arrival.max(at);
        (at, link.resets)
    }

    pub(crate) fn fate(&self, now: Time, from: u8, to: u8, resets: u64) -> Fate {
        if self.links.get(&(from, to)).is_some_and(|link| link.resets != resets) {
            return Fate::Lost;
        }
        let is_cut =
            |d: &&Disturbance| d.is_on(now) && d.concerns(from, to) && matches!(d.what, Trouble::Cut { .. });
        let cuts: Vec<&Disturbance> = self.disturbances.iter().filter(is_cut).collect();
        if cuts.iter().any(|cut| matches!(cut.what, Trouble::Cut { holds: false })) {
            return Fate::Lost;
        }
        cuts.iter().map(|cut| cut.until).max().map_or(Fate::Arrives, Fate::Held)
    }

    /// Until when nothing passes between clients and a member.
    pub(crate) fn clients_cut(&self, now: Time, member: u8) -> Option<Time> {
        let is_cut = |d: &&Disturbance| {
            d.is_on(now) && d.to & (1 << member) != 0 && matches!(d.what, Trouble::ClientsCut)
        };
        self.disturbances.iter().filter(is_cut).map(|cut| cut.until).max()
    }

    /// Longest delay by this weather.
    pub(crate) fn delay_max(&self) -> SimDuration {
        self.weather.delay_max
    }

    /// A delay by this weather.
    pub(crate) fn delay(&mut self) -> SimDuration {
        SimDuration(self.chance.mostly_low(self.weather.delay_min.0, self.weather.delay_max.0))
    }

    fn troubles(&self, now: Time, from: u8, to: u8) -> impl Iterator<Item = Trouble> {
        self.disturbances.iter().filter(move |d| d.is_on(now) && d.concerns(from, to)).map(|d| d.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = !0;

    fn network(weather: Weather) -> Network {
        Network::new(weather, Chance::new(1))
    }

    fn cut(from: u64, to: u64, holds: bool) -> Disturbance {
        Disturbance { from, to, what: Trouble::Cut { holds }, since: Time(2), until: Time(100) }
    }

    #[test]
    fn letters_keep_their_order_unless_the_weather_is_bad() {
        let mut calm = network(Weather { delay_max: SimDuration::millis(100), ..Weather::CALM });
        let times: Vec<Time> = (0..100).map(|n| calm.send(Time(n), 1, 2)[0].0).collect();
        assert!(times.is_sorted());
        let weather = Weather { lost: 300, doubled: 300, in_order: false, ..Weather::CALM };
        let mut wild = network(weather);
        let sent: Vec<Vec<(Time, u64)>> = (0..100).map(|n| wild.send(Time(n), 1, 2)).collect();
        assert!(sent.iter().any(Vec::is_empty) && sent.iter().any(|times| times.len() == 2));
        assert!(!sent.concat().is_sorted());
    }

    #[test]
    fn cuts_lose_or_hold_in_one_direction() {
        let mut network = network(Weather::CALM);
        network.disturb(cut(1 << 1, ALL, true));
        assert_eq!(network.fate(Time(1), 1, 2, 0), Fate::Arrives, "it has not begun");
        assert_eq!(network.fate(Time(5), 1, 2, 0), Fate::Held(Time(100)));
        assert_eq!(network.fate(Time(5), 2, 1, 0), Fate::Arrives);
        assert_eq!(network.fate(Time(100), 1, 2, 0), Fate::Arrives, "it is over");
        network.disturb(cut(ALL, 1 << 2, false));
        assert_eq!(network.fate(Time(5), 1, 2, 0), Fate::Lost);
    }

    #[test]
    fn a_reset_loses_what_is_on_its_way() {
        let mut network = network(Weather::CALM);
        let before = network.send(Time(0), 1, 2)[0].1;
        network.reset(2);
        assert_eq!(network.fate(Time(1), 1, 2, before), Fate::Lost);
        let after = network.send(Time(0), 1, 2)[0].1;
        assert_eq!(network.fate(Time(1), 1, 2, after), Fate::Arrives);
    }
}
