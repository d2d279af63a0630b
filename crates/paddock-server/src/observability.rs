//! Facts that a member tells of itself: statistics, four-letter words, spans of traced requests.

pub(crate) mod audit;
pub(crate) mod clickhouse_metrics;
pub(crate) mod contacts;
pub(crate) mod cross_check_metrics;
pub(crate) mod etcd_metrics;
pub(crate) mod four_letter_words;
pub(crate) mod history;
pub(crate) mod hot;
pub(crate) mod log_lines;
pub(crate) mod member_profile;
pub(crate) mod metric;
pub(crate) mod metrics;
pub(crate) mod operator;
pub(crate) mod request_times;
pub(crate) mod server_metrics;
pub(crate) mod snapshot_board;
pub(crate) mod spans;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod summary;
pub(crate) mod user;
pub(crate) mod version;
pub(crate) mod word_thread;
