//! Arguments of a command: its flags, their values, and what is left in order.

use crate::failure::ShellFailure;
use crate::table::Command;
use crate::words::Word;

/// The arguments of one call, checked against the command's row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Flags without their dash, and the value of those that have one.
    flags: Vec<(&'static str, String)>,
    positional: Vec<String>,
}

impl Arguments {
    pub(crate) fn parse(command: &'static Command, words: &[Word]) -> Result<Arguments, ShellFailure> {
        let mut arguments = Arguments::default();
        let mut only_positional = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if only_positional || !is_flag(word) {
                arguments.positional.push(word.text.clone());
            } else if word.text == "--" {
                only_positional = true;
            } else {
                arguments.take_flag(command, &word.text[1..], &mut words)?;
            }
        }
        let (least, most) = command.positional;
        match arguments.positional.len() {
            count if count < least => Err(usage(command, "something is missing")),
            count if count > most => Err(usage(
                command,
                &format!("{:?} is too much; quote what has blanks", arguments.positional[most]),
            )),
            _ => Ok(arguments),
        }
    }

    /// Takes a flag, or several of one letter in one word, as in `-sw`.
    fn take_flag<'a>(
        &mut self,
        command: &'static Command,
        name: &str,
        words: &mut impl Iterator<Item = &'a Word>,
    ) -> Result<(), ShellFailure> {
        for flag in command.flags {
            match flag.strip_suffix(':') {
                Some(valued) if valued == name => {
                    let missing = || usage(command, &format!("-{name} wants a value"));
                    self.flags.push((valued, words.next().ok_or_else(missing)?.text.clone()));
                    return Ok(());
                }
                None if *flag == name => {
                    self.flags.push((flag, String::new()));
                    return Ok(());
                }
                _ => {}
            }
        }
        let letter = |c: char| command.flags.iter().find(|flag| flag.len() == 1 && flag.starts_with(c));
        let letters: Option<Vec<_>> = name.chars().map(letter).collect();
        match letters {
            Some(letters) if letters.len() > 1 => {
                self.flags.extend(letters.into_iter().map(|flag| (*flag, String::new())));
                Ok(())
            }
            _ => Err(usage(command, &format!("there is no flag -{name}"))),
        }
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(known, _)| *known == flag)
    }

    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        self.flags.iter().find(|(known, _)| *known == flag).map(|(_, value)| value.as_str())
    }

    /// Every value of a flag that may be repeated.
    pub(crate) fn values(&self, flag: &str) -> Vec<&str> {
        self.flags.iter().filter(|(known, _)| *known == flag).map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, flag: &str) -> Result<Option<T>, ShellFailure> {
        self.value(flag).map(|text| number(text)).transpose()
    }

    pub(crate) fn at(&self, place: usize) -> Option<&str> {
        self.positional.get(place).map(String::as_str)
    }

    pub(crate) fn number_at<T: std::str::FromStr>(&self, place: usize) -> Result<Option<T>, ShellFailure> {
        self.at(place).map(|text| number(text)).transpose()
    }
}

/// Only what begins with a dash and a letter is a flag: `-5` is data.
fn is_flag(word: &Word) -> bool {
    let mut chars = word.text.chars();
    let begins = chars.next() == Some('-');
    begins && !word.is_quoted && (word.text == "--" || chars.next().is_some_and(char::is_alphabetic))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, ShellFailure> {
    text.parse().map_err(|_| ShellFailure::Usage(format!("{text:?} is not a number that fits here")))
}

fn usage(command: &Command, what: &str) -> ShellFailure {
    ShellFailure::Usage(format!("{what}: {} {}", command.name, command.usage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;
    use crate::words::split;

    fn parse(line: &str) -> Result<Arguments, ShellFailure> {
        let words = split(line).unwrap();
        Arguments::parse(table::find(&words[0].text).unwrap(), &words[1..])
    }

    #[test]
    fn flags_stand_anywhere_and_together() {
        for line in ["ls -s -R /a", "ls /a -R -s", "ls -sR /a"] {
            let arguments = parse(line).unwrap();
            assert!(arguments.has("s") && arguments.has("R") && !arguments.has("w"), "{line}");
            assert_eq!(arguments.at(0), Some("/a"), "{line}");
        }
    }

    #[test]
    fn values_follow_their_flags() {
        let arguments = parse("set -v 3 /a -5").unwrap();
        assert_eq!(arguments.number::<i32>("v").unwrap(), Some(3));
        assert_eq!(arguments.at(1), Some("-5"));
        assert_eq!(parse("set /a -- -v").unwrap().at(1), Some("-v"));
        assert_eq!(parse("set /a '-v'").unwrap().at(1), Some("-v"));
        assert_eq!(parse("reconfig -add a -add b").unwrap().values("add"), ["a", "b"]);
    }

    #[test]
    fn mistakes_show_the_usage() {
        for (line, expected) in [
            ("set /a", "something is missing: set [-v version] [-s] [-b] path data [version]"),
            ("get /a b c", "\"b\" is too much; quote what has blanks: get"),
            ("get -y /a", "there is no flag -y: get"),
            ("set /a b -v", "-v wants a value: set"),
        ] {
            let text = parse(line).unwrap_err().to_string();
            assert!(text.starts_with(expected), "{line}: {text}");
        }
        let version = parse("set -v x /a b").unwrap().number::<i32>("v").unwrap_err().to_string();
        assert_eq!(version, "\"x\" is not a number that fits here");
    }
}
