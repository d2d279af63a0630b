//! Statistics of the repetitions of one figure.

use serde::Serialize;

/// One figure over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    pub runs: usize,
    pub median: f64,
    pub mean: f64,
    pub p95: f64,
    pub p99: f64,
    pub min: f64,
    pub max: f64,
}

impl Statistics {
    /// None if there are no values.
    pub fn of(values: &[f64]) -> Option<Statistics> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Statistics {
            runs: sorted.len(),
            median: median(&sorted),
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p95: percentile(&sorted, 95.0),
            p99: percentile(&sorted, 99.0),
            min,
            max,
        })
    }
}

/// Ratio of another server's median to the base's.
pub(super) fn ratio(other: Option<Statistics>, base: Option<Statistics>) -> Option<f64> {
    let (other, base) = (other?.median, base?.median);
    (base != 0.0).then(|| other / base)
}

/// The middle one, or halfway between the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    f64::midpoint(sorted[low], sorted[high])
}

/// The smallest value that at least `percent` of all do not exceed.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::{Statistics, ratio};

    fn check(values: &[f64], median: f64, mean: f64, p95: f64, p99: f64) {
        let of = Statistics::of(values).expect("there are values");
        assert_eq!((of.runs, of.median, of.mean, of.p95, of.p99), (values.len(), median, mean, p95, p99));
    }

    #[test]
    fn a_few_values() {
        check(&[3.0], 3.0, 3.0, 3.0, 3.0);
        check(&[4.0, 1.0], 2.5, 2.5, 4.0, 4.0);
        check(&[5.0, 1.0, 3.0], 3.0, 3.0, 5.0, 5.0);
        check(&[9.0, 1.0, 2.0, 3.0, 5.0], 3.0, 4.0, 9.0, 9.0);
        assert_eq!(Statistics::of(&[]), None);
    }

    #[test]
    fn percentiles_of_a_hundred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        check(&values, 50.5, 50.5, 95.0, 99.0);
    }

    #[test]
    fn ratios_are_of_medians() {
        let of = Statistics::of;
        assert_eq!(ratio(of(&[6.0, 600.0, 1.0]), of(&[2.0])), Some(3.0));
        assert_eq!(ratio(of(&[6.0]), of(&[0.0])), None);
        assert_eq!(ratio(of(&[6.0]), None), None);
        assert_eq!(ratio(None, of(&[6.0])), None);
    }
}
