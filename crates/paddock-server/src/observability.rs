//! Facts that a member tells of itself: statistics, four-letter words, spans of traced requests.

pub(crate) mod four_letter_words;
mod metrics;
pub(crate) mod metrics_port;
pub(crate) mod spans;
pub(crate) mod stats;
mod status;
mod version;
