//! Settings of the HTTP interface for those who operate the member, beside its address.

/// The HTTP interface at `Config::admin_listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Path of ZooKeeper's commands.
    pub command_url: String,
    /// Path of readiness, in ClickHouse Keeper's form.
    pub ready_path: String,
    /// A connection on which nothing moves is closed after this time, in milliseconds.
    pub idle_timeout_ms: u64,
    /// True if administrators may take snapshots over HTTP.
    pub has_snapshots: bool,
    /// Administrators may take one in this time, in milliseconds.
    pub rate_limit_ms: u64,
}

impl Default for AdminSettings {
    fn default() -> AdminSettings {
        AdminSettings {
            command_url: "/commands".into(),
            ready_path: "/ready".into(),
            idle_timeout_ms: 30_000,
            has_snapshots: true,
            rate_limit_ms: 300_000,
        }
    }
}
