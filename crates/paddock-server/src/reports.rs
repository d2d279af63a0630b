//! Reports of a member on itself: four-letter words, and pages of metrics. Facts are gathered once, in `status.rs`, and printed by the others.

pub(crate) mod clickhouse_metrics;
pub(crate) mod four_letter_words;
pub(crate) mod metrics;
pub(crate) mod status;
pub(crate) mod word_thread;
