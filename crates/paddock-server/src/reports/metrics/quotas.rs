//! Metrics of quotas, by the child of the root that they are below.

use paddock_statistics::metric::{Metric, MetricKind, MetricValue};
use paddock_tree::QuotaUse;

use crate::shared::Shared;

/// Limits and use of quotas by the child of the root that they are below, as far as there are any.
pub(super) fn of_quotas(shared: &Shared) -> Vec<Metric> {
    let state = shared.state.read();
    let quotas = state.tree().quota_use();
    let of_each = |name, help, value: fn(&QuotaUse) -> i64| {
        let values = quotas.iter().map(|(key, quota)| (key.clone(), MetricValue::of(value(quota))));
        by_key(name, MetricKind::Gauge, help, values)
    };
    let overruns = state.tree().quota_overruns();
    let counted = |counts: Vec<(&str, u64)>| {
        counts.into_iter().map(|(key, count)| (key.to_owned(), MetricValue::of(count))).collect::<Vec<_>>()
    };
    let metrics = [
        of_each("quota_count_limit_per_namespace", "Znodes that there may be", |quota| quota.count_limit),
        of_each("quota_bytes_limit_per_namespace", "Bytes of data that there may be", |quota| {
            quota.bytes_limit
        }),
        of_each("quota_count_usage_per_namespace", "Znodes that count for a quota", |quota| quota.count),
        of_each("quota_bytes_usage_per_namespace", "Bytes of data that count for a quota", |quota| {
            quota.bytes
        }),
        by_key(
            "quota_exceeded_error_per_namespace",
            MetricKind::Counter,
            "Writes that a hard limit of a quota has refused",
            counted(overruns.refused().collect()),
        ),
        by_key(
            "quota_soft_exceeded_per_namespace",
            MetricKind::Counter,
            "Writes above a soft limit of a quota",
            counted(overruns.told().collect()),
        ),
    ];
    metrics.into_iter().filter(|metric| !metric.values.is_empty()).collect()
}

/// A metric with the label that ZooKeeper gives those that are told apart by a name.
fn by_key(
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    values: impl IntoIterator<Item = (String, MetricValue)>,
) -> Metric {
    let values = values.into_iter().map(|(key, value)| (Some(("key", key)), value)).collect();
    Metric { name, kind, help, values }
}
