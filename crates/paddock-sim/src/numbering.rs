//! Numbers of the members: machines are counted from 1, and their members mostly have the same numbers.

use paddock_chance::Chance;
use paddock_proto::MemberNumber;

/// Rule by which members get their numbers. The numbers rise with the machines'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// A member has the number of its machine.
    Machines,
    /// All have this low byte, 0 or 1, and nothing else in common: 0, 256, 512, or 1, 257, 513.
    LowByte(u8),
    /// Machines up to this one give their members their number, and later ones give numbers that do not fit into a byte.
    WideBehind(u8),
}

impl Numbering {
    /// In a quarter of the runs the numbers have the same low byte.
    pub(crate) fn throw(chance: &mut Chance) -> Numbering {
        if chance.one_in(4) { Numbering::LowByte(*chance.pick(&[0, 1])) } else { Numbering::Machines }
    }

    pub(crate) fn number(self, machine: u8) -> MemberNumber {
        match self {
            Numbering::Machines => machine.into(),
            Numbering::WideBehind(last) if machine <= last => machine.into(),
            Numbering::WideBehind(_) => (MemberNumber::from(machine) - 1) << 8 | 1,
            Numbering::LowByte(byte) => (MemberNumber::from(machine) - 1) << 8 | MemberNumber::from(byte),
        }
    }
}

/// The machine of a member, whatever rule has numbered it.
pub(crate) fn machine_of(number: MemberNumber) -> u8 {
    match (number >> 8, number as u8) {
        (0, machine @ 1..) => machine,
        (above, _) => above as u8 + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_its_machine() {
        for numbering in
            [Numbering::Machines, Numbering::LowByte(0), Numbering::LowByte(1), Numbering::WideBehind(3)]
        {
            for machine in 1..=9 {
                assert_eq!(machine_of(numbering.number(machine)), machine);
            }
        }
    }
}
