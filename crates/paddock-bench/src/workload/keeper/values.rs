//! Numbers and strings that are fixed or drawn at random.

use fastrand::Rng;

use super::fields::{Field, Keys};
use crate::BenchError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Fixed(usize),
    /// Both are possible.
    Between {
        min: usize,
        max: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    Fixed(String),
    Random(Size),
}

impl Size {
    /// `N` or `{min_value, max_value}`.
    pub(super) fn read(field: Field<'_>) -> Result<Size, BenchError> {
        const KEYS: Keys = Keys { once: &["min_value", "max_value"], many: &[] };
        if !field.is_mapping() {
            return field.size().map(Size::Fixed);
        }
        let fields = field.fields(&KEYS)?;
        let (min, max) = (fields.needed("min_value")?, fields.needed("max_value")?);
        let size = Size::Between { min: min.size()?, max: max.size()? };
        if size.min() > size.max() {
            return Err(max.error(format!("`max_value` must be at least `min_value`, {}", size.min())));
        }
        Ok(size)
    }

    pub(super) fn min(self) -> usize {
        match self {
            Size::Fixed(size) => size,
            Size::Between { min, .. } => min,
        }
    }

    fn max(self) -> usize {
        match self {
            Size::Fixed(size) => size,
            Size::Between { max, .. } => max,
        }
    }

    pub(super) fn draw(self, rng: &mut Rng) -> usize {
        match self {
            Size::Fixed(size) => size,
            Size::Between { min, max } => rng.usize(min..=max),
        }
    }
}

impl Text {
    /// A plain string or `{random_string: {size: …}}`.
    pub(super) fn read(field: Field<'_>) -> Result<Text, BenchError> {
        const KEYS: Keys = Keys { once: &["random_string"], many: &[] };
        const RANDOM_KEYS: Keys = Keys { once: &["size"], many: &[] };
        if !field.is_mapping() {
            return Ok(Text::Fixed(field.text()?.to_string()));
        }
        let random = field.fields(&KEYS)?.needed("random_string")?;
        Size::read(random.fields(&RANDOM_KEYS)?.needed("size")?).map(Text::Random)
    }

    /// Puts the text, or one drawn anew, in the place of what `out` held.
    pub(super) fn draw(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Text::Fixed(text) => out.extend_from_slice(text.as_bytes()),
            Text::Random(size) => append_random(size.draw(rng), rng, out),
        }
    }
}

impl Default for Text {
    fn default() -> Text {
        Text::Fixed(String::new())
    }
}

/// Sixty-four letters, so that six bits choose one.
const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

/// Ten letters from each draw of 64 bits: values are made for every request, so they must cost little.
fn append_random(size: usize, rng: &mut Rng, out: &mut Vec<u8>) {
    let end = out.len() + size;
    while out.len() < end {
        let mut bits = rng.u64(..);
        for _ in 0..(end - out.len()).min(10) {
            out.push(LETTERS[(bits & 63) as usize]);
            bits >>= 6;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_is_as_long_as_asked_and_repeats_from_its_seed() {
        let draw = |seed| {
            let (mut rng, mut out) = (Rng::with_seed(seed), Vec::new());
            let sizes = (0..100).map(|_| {
                Text::Random(Size::Between { min: 10, max: 12 }).draw(&mut rng, &mut out);
                out.len()
            });
            (sizes.collect::<Vec<_>>(), out)
        };
        let (sizes, last) = draw(1);
        assert!(
            [10, 11, 12].iter().all(|size| sizes.contains(size))
                && sizes.iter().all(|s| (10..=12).contains(s))
        );
        assert_eq!(draw(1), (sizes, last.clone()));
        assert_ne!(draw(2).1, last);
    }
}
