//! Rows of the tables of `docs/groups-model.md`, which are what a run prints.

use crate::world::{Expected, ModelRun, ModelWorld};

/// The row of a run: of a world that holds with its states, of one with a mistake with the property that breaks and the states until then.
/// A test compares those of small worlds with the page.
pub fn row(world: &ModelWorld, verdict: &ModelRun) -> String {
    let states = thousands(verdict.states);
    let states = if verdict.is_cut_off { format!("{states}, cut off") } else { states };
    let end = match world.expected {
        _ if !verdict.is(world.expected) => format!("**NOT AS EXPECTED** {}", describe(verdict)),
        Expected::Holds => "holds".to_owned(),
        Expected::Finds(property) => property.to_owned(),
    };
    format!("| `{}` | {} | {end} | {states} |", world.name, world.about)
}

fn describe(verdict: &ModelRun) -> String {
    let broken = verdict.broken.iter().map(|broken| format!("broken: {}", broken.property));
    let unreached = verdict.unreached.iter().map(|property| format!("not reached: {property}"));
    let all: Vec<String> = broken.chain(unreached).collect();
    if all.is_empty() { "nothing found".to_owned() } else { all.join("; ") }
}

/// A number with a comma before each group of three digits.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
