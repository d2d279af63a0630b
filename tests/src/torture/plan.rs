//! Plan of a round: what goes wrong, and when, made of its seed alone, but for who leads at the time.

use std::fmt;
use std::time::Duration;

use paddock_chance::Chance;

/// Spells and the calm before each take this time together, or a little longer.
const FAULTS_LAST: Duration = Duration::from_secs(5);
/// Length of a long isolation at least.
const LONG: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL, and a new start in the end.
    Kill,
    Pause,
    /// Nothing reaches it, and nothing of what it sends reaches the others.
    Isolate,
    /// Nothing reaches it.
    Deafen,
    /// Nothing of what it sends reaches the others.
    Mute,
    /// The member and the next one do not reach each other; the third reaches both.
    Separate,
    FillDisk,
}

impl Fault {
    pub(super) const ALL: [Fault; 7] = [
        Fault::Kill,
        Fault::Pause,
        Fault::Isolate,
        Fault::Deafen,
        Fault::Mute,
        Fault::Separate,
        Fault::FillDisk,
    ];

    /// Four of the seven are cuts: without weights there would be little else.
    fn weight(self) -> u64 {
        match self {
            Fault::Kill => 5,
            Fault::Pause | Fault::FillDisk => 3,
            Fault::Isolate | Fault::Separate => 2,
            Fault::Deafen | Fault::Mute => 1,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Fault::Kill => "kill",
            Fault::Pause => "pause",
            Fault::Isolate => "isolate",
            Fault::Deafen => "deafen",
            Fault::Mute => "mute",
            Fault::Separate => "separate",
            Fault::FillDisk => "fill disk of",
        })
    }
}

/// A fault, and whom it is done to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strike {
    pub(super) fault: Fault,
    /// Distance of the first victim from the leader: 0 is the leader itself.
    pub(super) behind_leader: usize,
}

/// A time in which something is wrong; all of it is mended at its end.
#[derive(Clone, Debug)]
pub(super) struct Spell {
    /// Before it.
    pub(super) calm: Duration,
    /// To different members.
    pub(super) strikes: Vec<Strike>,
    pub(super) length: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) spells: Vec<Spell>,
    pub(super) clients_seed: u64,
}

impl Plan {
    pub(super) fn from_seed(seed: u64, members: usize, faults: &[Fault]) -> Plan {
        let mut chance = Chance::new(seed);
        let clients_seed = chance.word() >> 1;
        let (mut spells, mut planned) = (Vec::new(), Duration::ZERO);
        while planned < FAULTS_LAST {
            let spell = Spell::choose(&mut chance, members, faults);
            planned += spell.calm + spell.length;
            spells.push(spell);
        }
        Plan { spells, clients_seed }
    }
}

impl Spell {
    fn choose(chance: &mut Chance, members: usize, faults: &[Fault]) -> Spell {
        if faults.contains(&Fault::Isolate) && chance.one_in(4) {
            return Spell::long_isolation(chance, members);
        }
        // Mostly the leader first: that is where it hurts.
        let first = chance.weighted(&[(5, 0), (3, 1), (3, 2)]);
        let count = chance.weighted(&[(6, 1), (3, 2), (1, members)]);
        let weights: Vec<(u64, Fault)> = faults.iter().map(|fault| (fault.weight(), *fault)).collect();
        let strikes = (0..count).map(|number| Strike {
            fault: chance.weighted(&weights),
            behind_leader: (first + number) % members,
        });
        let strikes = strikes.collect();
        // Some are over before a member notices, some outlast an election.
        let length = if chance.percent(30) { 20 + chance.index(400) } else { 600 + chance.index(2000) };
        Spell {
            calm: Duration::from_millis(100 + chance.index(900) as u64),
            strikes,
            length: Duration::from_millis(length as u64),
        }
    }
}

impl Spell {
    /// A member is away for longer than the sessions last of those who take turns at the lock. Others get it, and its former holder has to
    /// be told before.
    fn long_isolation(chance: &mut Chance, members: usize) -> Spell {
        Spell {
            calm: Duration::from_millis(100 + chance.below(900)),
            strikes: vec![Strike { fault: Fault::Isolate, behind_leader: chance.index(members) }],
            length: LONG + Duration::from_millis(chance.below(1000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FAULTS_LAST, Fault, Plan};

    const MEMBERS: usize = 3;

    #[test]
    fn a_seed_is_a_plan_and_many_seeds_are_all_faults() {
        let plan = |seed| format!("{:?}", Plan::from_seed(seed, MEMBERS, &Fault::ALL));
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));

        let spells: Vec<_> =
            (0..50).flat_map(|seed| Plan::from_seed(seed, MEMBERS, &Fault::ALL).spells).collect();
        for fault in Fault::ALL {
            let on_leader = spells
                .iter()
                .flat_map(|spell| &spell.strikes)
                .any(|strike| strike.fault == fault && strike.behind_leader == 0);
            assert!(on_leader, "no leader gets: {fault}");
        }
        for spell in &spells {
            let mut victims: Vec<_> = spell.strikes.iter().map(|strike| strike.behind_leader).collect();
            victims.sort_unstable();
            victims.dedup();
            assert_eq!(victims.len(), spell.strikes.len(), "one member twice in {spell:?}");
        }
        assert!(spells.iter().any(|spell| spell.strikes.len() == MEMBERS), "never all of them");
    }

    #[test]
    fn what_cannot_be_done_is_not_planned() {
        let plan = Plan::from_seed(1, MEMBERS, &[Fault::Pause]);
        assert!(
            plan.spells.iter().flat_map(|spell| &spell.strikes).all(|strike| strike.fault == Fault::Pause)
        );
        assert!(
            plan.spells.iter().map(|spell| spell.calm + spell.length).sum::<std::time::Duration>()
                >= FAULTS_LAST
        );
    }
}
