//! From values to places along an axis, and the round values that are written on it.

use super::super::units::Unit;

#[derive(Debug)]
pub(super) struct Scale {
    spacing: Spacing,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug)]
enum Spacing {
    Linear,
    Logarithmic,
    /// 90 %, 99 %, 99.9 % are equally far apart.
    Nines,
}

const TICKS: f64 = 5.0;
const TIME_TICKS: f64 = 8.0;
/// 100 % would be infinitely far away; it stands one step behind the last percentile that is reported.
const NINES: f64 = 6.0;
/// Decades of a logarithmic axis up to which 2 and 5 are written too.
const FEW_DECADES: f64 = 2.5;
const DAY_S: f64 = 86_400.0;
/// Round numbers of seconds, minutes and hours.
const TIME_STEPS_S: [f64; 16] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0,
    28_800.0,
];

impl Scale {
    /// From zero to the first round value that is not below `max`.
    pub(super) fn linear(max: f64, unit: Unit) -> Scale {
        let max = if max > 0.0 { max } else { TICKS };
        let step = round_up(max / TICKS, unit.step(max));
        let count = (max / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|number| tick(f64::from(number) * step, unit)).collect();
        Scale { spacing: Spacing::Linear, low: 0.0, high: count * step, ticks }
    }

    /// From a round value below the smallest positive one; zeros lie on the axis.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>, unit: Unit) -> Scale {
        let (mut min, mut max) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| *value > 0.0) {
            min = min.min(value);
            max = max.max(value);
        }
        if max == 0.0 {
            (min, max) = (1.0, 10.0);
        }
        let (low, high) = (min.log10().floor(), (max * 1.001).log10().ceil());
        let factors: &[f64] = if high - low <= FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = low as i32..=high as i32;
        let rounds =
            decades.flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)));
        let rounds: Vec<f64> = rounds.filter(|value| *value <= 10_f64.powf(high) * 1.001).collect();
        // The axis ends at the round values next to the figures.
        let from = rounds.iter().copied().rfind(|value| *value <= min).unwrap_or(min);
        let to = rounds.iter().copied().find(|value| *value >= max && *value > from).unwrap_or(max);
        let ticks =
            rounds.into_iter().filter(|value| (from..=to).contains(value)).map(|value| tick(value, unit));
        Scale { spacing: Spacing::Logarithmic, low: from, high: to, ticks: ticks.collect() }
    }

    /// From zero to `max` seconds.
    pub(super) fn time(max: f64) -> Scale {
        let max = if max > 0.0 { max } else { 1.0 };
        let enough = |step: &f64| max / step <= TIME_TICKS;
        let step = match TIME_STEPS_S.into_iter().find(enough) {
            Some(step) if step > 1.0 || max >= 2.0 => step,
            Some(_) => round_up(max / TICKS, 1.0),
            None => round_up(max / TIME_TICKS, DAY_S),
        };
        let (size, name) = match step {
            step if step < 60.0 => (1.0, "s"),
            step if step < 3600.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        let text = |value: f64| format!("{} {name}", (value / size * 1e6).round() / 1e6);
        let values = (0..=(max / step + 1e-9) as u32).map(|number| f64::from(number) * step);
        let ticks = values.map(|value| Tick { value, text: text(value) }).collect();
        Scale { spacing: Spacing::Linear, low: 0.0, high: max, ticks }
    }

    pub(super) fn percentiles() -> Scale {
        let texts = [
            (50.0, "50 %"),
            (90.0, "90 %"),
            (99.0, "99 %"),
            (99.9, "99.9 %"),
            (99.99, "99.99 %"),
            (99.999, "99.999 %"),
        ];
        let ticks = texts.into_iter().chain([(100.0, "max")]);
        let ticks = ticks.map(|(value, text)| Tick { value, text: text.to_owned() }).collect();
        Scale { spacing: Spacing::Nines, low: 0.0, high: 100.0, ticks }
    }

    /// Place of a value: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.spacing {
            Spacing::Linear => (value - self.low) / (self.high - self.low),
            Spacing::Logarithmic => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
            Spacing::Nines => -(1.0 - value.min(100.0) / 100.0).max(10_f64.powf(-NINES)).log10() / NINES,
        };
        place.clamp(0.0, 1.0)
    }
}

fn tick(value: f64, unit: Unit) -> Tick {
    Tick { value, text: unit.tick(value) }
}

/// The first of 1, 2, 2.5, 5, 10, 20, … times `grain`, or of their parts, that is not below `value`.
fn round_up(value: f64, grain: f64) -> f64 {
    let scaled = value / grain;
    let magnitude = 10_f64.powf(scaled.log10().floor());
    let factor =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * magnitude >= scaled * 0.999_999);
    factor.unwrap_or(10.0) * magnitude * grain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scale: &Scale, expected: &str) {
        let texts: Vec<&str> = scale.ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts.join(", "), expected);
        let places: Vec<f64> = scale.ticks.iter().map(|tick| scale.place(tick.value)).collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    }

    #[test]
    fn linear_axes_begin_at_zero_and_have_round_ticks() {
        check(&Scale::linear(97_000.0, Unit::PerSecond), "0, 20k, 40k, 60k, 80k, 100k");
        check(&Scale::linear(192.0 * 1_048_576.0, Unit::Bytes), "0, 50 MiB, 100 MiB, 150 MiB, 200 MiB");
        check(&Scale::linear(0.0, Unit::Count), "0, 1, 2, 3, 4, 5");
        check(&Scale::linear(5.0, Unit::Percent), "0, 1 %, 2 %, 3 %, 4 %, 5 %");
        check(&Scale::linear(1e-9, Unit::Count), "0, 0, 0, 0, 0, 0");
    }

    #[test]
    fn logarithmic_axes_have_ticks_by_decades() {
        let axis = |values: &[f64]| Scale::logarithmic(values.iter().copied(), Unit::Microseconds);
        check(&axis(&[130.0, 900.0]), "100 us, 200 us, 500 us, 1 ms");
        check(&axis(&[0.0, 130.0, 2e6]), "100 us, 1 ms, 10 ms, 100 ms, 1 s, 10 s");
        check(&axis(&[]), "1 us, 2 us, 5 us, 10 us");
        check(&axis(&[0.0]), "1 us, 2 us, 5 us, 10 us");
        check(&axis(&[1000.0]), "1 ms, 2 ms");
    }

    #[test]
    fn time_axes_have_round_seconds_minutes_hours() {
        check(&Scale::time(1.0), "0 s, 0.2 s, 0.4 s, 0.6 s, 0.8 s, 1 s");
        check(&Scale::time(3.0), "0 s, 1 s, 2 s, 3 s");
        check(&Scale::time(60.0), "0 s, 10 s, 20 s, 30 s, 40 s, 50 s, 60 s");
        check(&Scale::time(10_800.0), "0 min, 30 min, 60 min, 90 min, 120 min, 150 min, 180 min");
        check(&Scale::time(3.0 * DAY_S), "0 h, 12 h, 24 h, 36 h, 48 h, 60 h, 72 h");
        check(&Scale::time(0.0), "0 s, 0.2 s, 0.4 s, 0.6 s, 0.8 s, 1 s");
    }

    #[test]
    fn each_nine_is_as_wide_as_the_last() {
        let scale = Scale::percentiles();
        check(&scale, "50 %, 90 %, 99 %, 99.9 %, 99.99 %, 99.999 %, max");
        assert!((scale.place(99.9) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn every_value_has_a_place_within_the_axis() {
        for scale in [Scale::linear(5.0, Unit::Count), Scale::logarithmic([3.0].into_iter(), Unit::Count)] {
            for value in [-1.0, 0.0, 1e300, f64::INFINITY] {
                assert!((0.0..=1.0).contains(&scale.place(value)), "{value} on {scale:?}");
            }
        }
    }
}
