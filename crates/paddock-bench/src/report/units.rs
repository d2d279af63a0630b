//! Quantities as text: three digits and a unit, the same in every table, page and chart.

use serde::{Deserialize, Serialize};

/// The unit of a figure, for those who show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Microseconds,
    Seconds,
    Bytes,
    PerSecond,
    Percent,
    Count,
}

impl Unit {
    /// For reading: `12.3 ms`, `1.50 GiB`, `12,345/s`.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Microseconds => duration(value),
            Unit::Seconds => duration(value * 1e6),
            Unit::Bytes => bytes(value),
            Unit::PerSecond => format!("{}/s", number(value)),
            Unit::Percent => format!("{} %", number(value)),
            Unit::Count => number(value),
        }
    }

    /// For an axis, where round values stand: `10 ms`, `512 MiB`, `12k`.
    pub fn tick(self, value: f64) -> String {
        match self {
            // Nothing is nothing in every unit.
            _ if value == 0.0 => "0".to_owned(),
            Unit::Microseconds => short(value, &TIMES, " "),
            Unit::Seconds => short(value * 1e6, &TIMES, " "),
            Unit::Bytes => short(value, &SIZES, " "),
            Unit::PerSecond | Unit::Count => short(value, &THOUSANDS, ""),
            Unit::Percent => short(value, &[(1.0, "%")], " "),
        }
    }

    /// The largest step of this unit that is not above `value`; round numbers are round in these steps.
    pub(super) fn step(self, value: f64) -> f64 {
        let steps: &[UnitStep] = match self {
            Unit::Bytes => &SIZES,
            _ => return 1.0,
        };
        steps.iter().map(|step| step.0).rfind(|size| *size <= value).unwrap_or(1.0)
    }
}

/// The size of a unit and its name, in ascending order.
type UnitStep = (f64, &'static str);

const TIMES: [UnitStep; 3] = [(1.0, "us"), (1e3, "ms"), (1e6, "s")];
const SIZES: [UnitStep; 5] = [
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
];
const THOUSANDS: [UnitStep; 4] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];

/// Sign for a figure that was not measured.
pub const NOTHING: &str = "–";

/// A time that is given in microseconds: `12.3 us`, `1.23 ms`, `60.0 s`.
pub fn duration(us: f64) -> String {
    with_unit(us, &TIMES)
}

/// `512 B`, `1.50 GiB`.
pub fn bytes(bytes: f64) -> String {
    with_unit(bytes, &SIZES)
}

/// `1,234,567`.
pub fn count(count: u64) -> String {
    group(&count.to_string())
}

/// At least three digits, never an exponent: `0.52`, `12.3`, `1,234,567`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", group(&three_digits(value.abs())))
}

/// A text from outside on one line: what would move a terminal's cursor is replaced.
pub fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// At most `width` characters; an ellipsis tells that there were more.
pub fn elide(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn with_unit(value: f64, steps: &[UnitStep]) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let (scaled, name) = scale(value.abs(), steps);
    let digits = if scaled == 0.0 { "0".to_owned() } else { three_digits(scaled) };
    format!("{sign}{digits} {name}")
}

fn short(value: f64, steps: &[UnitStep], space: &str) -> String {
    let (scaled, name) = scale(value, steps);
    // The sum of round steps is not quite round.
    let rounded = (scaled * 1e6).round() / 1e6;
    format!("{rounded}{space}{name}").trim_end().to_owned()
}

/// The value in the first unit in which three digits are enough for it.
fn scale(value: f64, steps: &[UnitStep]) -> (f64, &'static str) {
    let step = steps.iter().find(|step| value / step.0 < 999.5).or(steps.last());
    step.map_or((value, ""), |step| (value / step.0, step.1))
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Commas between the thousands, if there is nothing but digits.
fn group(digits: &str) -> String {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.to_owned();
    }
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[(String, &str)]) {
        for (text, expected) in texts {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn quantities_have_three_digits_and_the_unit_that_suits_them() {
        check(&[
            (duration(0.0), "0 us"),
            (duration(0.123), "0.12 us"),
            (duration(9.996), "10.0 us"),
            (duration(999.4), "999 us"),
            (duration(999.6), "1.00 ms"),
            (duration(61_234_567.0), "61.2 s"),
            (duration(7_200e6), "7200 s"),
            (duration(f64::NAN), "–"),
            (bytes(512.0), "512 B"),
            (bytes(1536.0 * 1_048_576.0), "1.50 GiB"),
            (bytes(1e18), "909495 TiB"),
            (count(0), "0"),
            (count(999), "999"),
            (count(1_234_567), "1,234,567"),
            (number(0.5), "0.50"),
            (number(-12.34), "-12.3"),
            (number(12_345.6), "12,346"),
            (number(f64::INFINITY), "–"),
            (Unit::PerSecond.text(1234.5), "1,234/s"),
            (Unit::Percent.text(187.0), "187 %"),
            (Unit::Seconds.text(0.25), "250 ms"),
        ]);
    }

    #[test]
    fn ticks_are_as_short_as_they_can_be() {
        check(&[
            (Unit::Microseconds.tick(100.0), "100 us"),
            (Unit::Microseconds.tick(2e6), "2 s"),
            (Unit::Bytes.tick(0.1 * 3.0 * 1_073_741_824.0), "307.2 MiB"),
            (Unit::Bytes.tick(2_147_483_648.0), "2 GiB"),
            (Unit::PerSecond.tick(12_500.0), "12.5k"),
            (Unit::Count.tick(0.0), "0"),
            (Unit::Percent.tick(0.1 + 0.2), "0.3 %"),
        ]);
    }

    #[test]
    fn texts_from_outside_stay_on_their_line() {
        check(&[
            (one_line("a\u{1b}[2J\nb\0"), "a\u{fffd}[2J\u{fffd}b\u{fffd}"),
            (elide("create", 6), "create"),
            (elide("creates", 6), "creat…"),
            (elide("ééé", 2), "é…"),
        ]);
    }
}
