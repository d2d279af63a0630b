//! The story of a run, line by line. Two runs of the same seed tell the same story to the byte; usually only a hash of it
//! is kept.

use std::fmt::{Arguments, Write};

use crate::time::Time;

/// Use of the lines that tell a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Only their hash is kept.
    Hash,
    /// Each is printed at once.
    Print,
    /// All are kept, to be compared.
    Keep,
}

#[derive(Debug)]
pub(crate) struct Trace {
    telling: Telling,
    hash: u64,
    line: String,
    kept: Vec<String>,
}

impl Trace {
    pub(crate) fn new(telling: Telling) -> Trace {
        Trace { telling, hash: 0xCBF2_9CE4_8422_2325, line: String::new(), kept: Vec::new() }
    }

    pub(crate) fn note(&mut self, now: Time, what: Arguments<'_>) {
        self.line.clear();
        writeln!(self.line, "{now} {what}").expect("a string takes every text");
        // FNV-1a, over words where there are whole ones: it need not withstand an attacker.
        for word in self.line.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            self.hash = (self.hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0000_0100_0000_01B3);
            self.hash ^= self.hash >> 29;
        }
        match self.telling {
            Telling::Hash => {}
            Telling::Print => print!("{}", self.line),
            Telling::Keep => self.kept.push(self.line.trim_end().to_owned()),
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let hash = |text: &str| {
            let mut trace = Trace::new(Telling::Hash);
            trace.note(Time(1), format_args!("{text}"));
            trace.hash()
        };
        assert_eq!(hash("the member starts"), hash("the member starts"));
        assert_ne!(hash("the member starts"), hash("the member start"));
        assert_ne!(hash("the member starts"), hash("tHe member starts"));
    }
}
