//! Limits of rate for tenants: requests, and bytes of them, that a top-level path, a user or an address may ask for in a second, of this
//! member.
//!
//! Above its soft limit a tenant is counted. At its hard limit its requests wait, each connection's next one with what is behind it: it is
//! not read from meanwhile. A request that would have to wait longer than is allowed is refused, because the pings behind it would come
//! too late. Other tenants wait for none of that.

mod bucket;
mod rule;
mod tenant;
mod wait;

use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use smallvec::SmallVec;

use bucket::Buckets;
pub use rule::{RateRule, RateRuleError, RateRules, Rates, TenantKind};
pub(crate) use tenant::RatedRequest;
use tenant::{TenantKey, TenantName};
pub(crate) use wait::RateWait;

/// Tenants of one kind that are told apart. When there are more, those that have not asked for anything lately are forgotten, and
/// if that does not help, the others share one bucket.
const TENANTS_MAX: usize = 10_000;
/// Name of the bucket of those that are too many to be told apart.
const OTHERS: TenantName<'static> = TenantName::Text("(others)");

/// Tenants of a rule. Clients choose the names of many of them, so the hash is one that they cannot foresee.
type Tenants = hashbrown::HashMap<TenantKey, Arc<Tenant>, RandomState>;

/// Limits of rate of one member, with what its tenants have used.
#[derive(Debug, Default)]
pub struct RateLimits {
    settings: RwLock<Arc<RateSettings>>,
}

/// The rules as they are now. Fronts keep them until their settings change.
#[derive(Debug, Default)]
pub(crate) struct RateSettings {
    rules: Vec<RuleInForce>,
    /// Longest time that a request waits, in milliseconds.
    wait_ms_max: u32,
}

#[derive(Debug)]
struct RuleInForce {
    rule: RateRule,
    tenants: Mutex<Tenants>,
}

#[derive(Debug, Default)]
struct Tenant {
    buckets: Mutex<Buckets>,
    counts: TenantCounts,
}

#[derive(Debug, Default)]
struct TenantCounts {
    requests: AtomicU64,
    bytes: AtomicU64,
    over_soft: AtomicU64,
    delayed: AtomicU64,
    refused: AtomicU64,
}

impl Tenant {
    fn buckets(&self) -> MutexGuard<'_, Buckets> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The use that a tenant has made of a member since its rule is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantUse {
    pub kind: TenantKind,
    /// Path, user or address.
    pub name: String,
    /// Requests that were taken.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests above a soft limit.
    pub over_soft: u64,
    /// Requests that had to wait.
    pub delayed: u64,
    /// Requests that were refused.
    pub refused: u64,
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RateVerdict {
    Take,
    /// Above a soft limit of this tenant.
    TakeAboveSoft(String),
    /// Not before this time of the monotonic clock, in milliseconds. The request is paid for.
    WaitUntil {
        ms: u64,
        tenant: String,
    },
    Refuse {
        tenant: String,
    },
}

impl RateLimits {
    /// Limits by these rules. A request waits `wait_ms_max` milliseconds at most.
    pub fn new(rules: &RateRules, wait_ms_max: u32) -> RateLimits {
        let limits = RateLimits::default();
        limits.set(rules, wait_ms_max);
        limits
    }

    /// Sets the rules from now on. A rule that was there before goes on with what its tenants have used. Fronts have to take their
    /// settings again.
    pub fn set(&self, rules: &RateRules, wait_ms_max: u32) {
        let mut now = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        let in_force = |rule: &RateRule| RuleInForce {
            rule: rule.clone(),
            tenants: Mutex::new(now.tenants_of(rule).unwrap_or_default()),
        };
        *now = Arc::new(RateSettings { rules: rules.iter().map(in_force).collect(), wait_ms_max });
    }

    pub(crate) fn get(&self) -> Arc<RateSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tenants of all rules and what they have used, those first that were limited most often: at most `count_max`.
    pub fn tenants(&self, count_max: usize) -> Vec<TenantUse> {
        let settings = self.get();
        let mut tenants: Vec<TenantUse> = settings.rules.iter().flat_map(RuleInForce::uses).collect();
        tenants.sort_by_key(|one| std::cmp::Reverse((one.refused, one.delayed, one.over_soft, one.requests)));
        tenants.truncate(count_max);
        tenants
    }
}

impl RateSettings {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn tenants_of(&self, rule: &RateRule) -> Option<Tenants> {
        let same = self.rules.iter().find(|in_force| in_force.rule == *rule)?;
        Some(same.tenants().clone())
    }

    /// Decides about a request at this time of the monotonic clock, in milliseconds, and counts it. It is paid for unless it is refused.
    pub(crate) fn decide(&self, request: &RatedRequest<'_>, now_ms: u64) -> RateVerdict {
        // One for each kind at most.
        let mut concerned: SmallVec<[(&RuleInForce, TenantName<'_>, Arc<Tenant>); 3]> = SmallVec::new();
        for kind in TenantKind::ALL {
            if let Some((in_force, name)) = self.rule_about(kind, request) {
                concerned.push((in_force, name, in_force.tenant(&name, now_ms)));
            }
        }
        let (mut wait_ms, mut slowest) = (0, None);
        for (in_force, name, tenant) in &concerned {
            let tenant_wait_ms = tenant.buckets().wait_ms(&in_force.rule.rates, now_ms);
            if tenant_wait_ms > wait_ms {
                (wait_ms, slowest) = (tenant_wait_ms, Some((name, tenant)));
            }
        }
        if let Some((name, tenant)) = slowest.filter(|_| wait_ms > u64::from(self.wait_ms_max)) {
            tenant.counts.refused.fetch_add(1, Relaxed);
            return RateVerdict::Refuse { tenant: name.to_string() };
        }
        let mut above_soft = None;
        for (in_force, name, tenant) in &concerned {
            let is_above = tenant.buckets().pay(&in_force.rule.rates, request.bytes as u64, now_ms);
            tenant.counts.requests.fetch_add(1, Relaxed);
            tenant.counts.bytes.fetch_add(request.bytes as u64, Relaxed);
            tenant.counts.over_soft.fetch_add(u64::from(is_above), Relaxed);
            if is_above {
                above_soft = Some(name);
            }
        }
        match (slowest, above_soft) {
            (Some((name, tenant)), _) => {
                tenant.counts.delayed.fetch_add(1, Relaxed);
                RateVerdict::WaitUntil { ms: now_ms + wait_ms, tenant: name.to_string() }
            }
            (None, Some(name)) => RateVerdict::TakeAboveSoft(name.to_string()),
            (None, None) => RateVerdict::Take,
        }
    }

    /// The rule of a kind that a request falls under, with its tenant: one that names the tenant counts before one for each by itself.
    fn rule_about<'a>(
        &'a self,
        kind: TenantKind,
        request: &RatedRequest<'a>,
    ) -> Option<(&'a RuleInForce, TenantName<'a>)> {
        let of_kind = self.rules.iter().filter(|in_force| in_force.rule.kind == kind);
        let found = of_kind.filter_map(|in_force| Some((in_force, in_force.rule.tenant_of(request)?)));
        found.max_by_key(|(in_force, _)| in_force.rule.name.as_ref().map(String::len))
    }
}

impl RuleInForce {
    fn tenants(&self) -> MutexGuard<'_, Tenants> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tenant(&self, name: &TenantName<'_>, now_ms: u64) -> Arc<Tenant> {
        let mut tenants = self.tenants();
        if let Some(tenant) = tenants.get(name) {
            return tenant.clone();
        }
        if tenants.len() >= TENANTS_MAX {
            tenants.retain(|key, tenant| key.name() == OTHERS || !tenant.buckets().is_full(now_ms));
        }
        let name = if tenants.len() >= TENANTS_MAX { &OTHERS } else { name };
        tenants.entry(name.into()).or_default().clone()
    }

    fn uses(&self) -> Vec<TenantUse> {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let tenants = self.tenants();
        let to_use = |(key, tenant): (&TenantKey, &Arc<Tenant>)| TenantUse {
            kind: self.rule.kind,
            name: key.name().to_string(),
            requests: count(&tenant.counts.requests),
            bytes: count(&tenant.counts.bytes),
            over_soft: count(&tenant.counts.over_soft),
            delayed: count(&tenant.counts.delayed),
            refused: count(&tenant.counts.refused),
        };
        tenants.iter().map(to_use).collect()
    }
}

#[cfg(test)]
mod tests;
