//! Places from which the settings of a member came: by the name of each setting in Paddock's own file, the last place that set it.
//!
//! `docs/configuration-keys.md` has the same names; a test compares them.

use std::collections::BTreeMap;

/// Keys of a `zoo.cfg`, with the setting of Paddock's own file that each is or takes part in.
pub(super) const OF_ZOO_CFG: &[(&str, &str)] = &[
    ("dataDir", "data_dir"),
    ("dataLogDir", "log_dir"),
    ("clientPort", "listen"),
    ("clientPortAddress", "listen"),
    ("secureClientPort", "tls.listen"),
    ("secureClientPortAddress", "tls.listen"),
    ("portUnification", "ensemble.tls.mode"),
    ("client.portUnification", "tls.mode"),
    ("tickTime", "tick_ms"),
    ("maxClientCnxns", "connections_per_address_max"),
    ("maxCnxns", "connections_max"),
    ("minSessionTimeout", "session_timeout_ms_min"),
    ("maxSessionTimeout", "session_timeout_ms_max"),
    ("autopurge.snapRetainCount", "snapshots_kept"),
    ("electionPortBindRetry", "bind_tries"),
    ("quorumListenOnAllIPs", "ensemble.listen_on_all_addresses"),
    ("reconfigEnabled", "ensemble.reconfig_enabled"),
    ("snapCount", "snapshot_writes"),
    ("snapSizeLimitInKb", "snapshot_log_bytes"),
    ("preAllocSize", "segment_bytes"),
    ("globalOutstandingLimit", "outstanding_max"),
    ("requestThrottleLimit", "outstanding_max"),
    ("request_throttle_max_requests", "outstanding_max"),
    ("paddock.rate_limits", "rate_limits"),
    ("paddock.rate_wait_ms_max", "rate_wait_ms_max"),
    ("paddock.feature_level_max", "feature_level_max"),
    ("paddock.group_count", "group_count"),
    ("paddock.group_replicas", "group_replicas"),
    ("paddock.split_points", "split_points"),
    ("paddock.backup.to", "backup.to"),
    ("paddock.backup.full_interval_ms", "backup.full_interval_ms"),
    ("paddock.backup.log_interval_ms", "backup.log_interval_ms"),
    ("paddock.backup.keep", "backup.keep"),
    ("connectionMaxTokens", "connect_tokens_max"),
    ("connection_throttle_tokens", "connect_tokens_max"),
    ("connectionTokenFillTime", "connect_token_fill_ms"),
    ("connection_throttle_fill_time", "connect_token_fill_ms"),
    ("connectionTokenFillCount", "connect_token_fill_count"),
    ("connection_throttle_fill_count", "connect_token_fill_count"),
    ("connection_throttle_global_session_weight", "connect_tokens_of_new_session"),
    ("connection_throttle_renew_session_weight", "connect_tokens_of_resumed_session"),
    ("jute.maxbuffer", "frame_bytes_max"),
    ("enforceQuota", "enforce_quota"),
    ("netty.server.outstandingHandshake.limit", "handshakes_max"),
    ("DigestAuthenticationProvider.superDigest", "super_digest"),
    ("DigestAuthenticationProvider.digestAlg", "digest_algorithm"),
    ("X509AuthenticationProvider.superUser", "tls.superuser"),
    ("superUser", "sasl.super_users"),
    ("sessionRequireClientSASLAuth", "required_schemes"),
    ("enforce.auth.enabled", "required_schemes"),
    ("enforce.auth.schemes", "required_schemes"),
    ("allowSaslFailedClients", "sasl.keep_failed_clients"),
    ("kerberos.removeHostFromPrincipal", "sasl.kerberos.remove_host"),
    ("kerberos.removeRealmFromPrincipal", "sasl.kerberos.remove_realm"),
    ("security.auth_to_local", "sasl.kerberos.auth_to_local"),
    ("sslQuorum", "ensemble.tls.mode"),
    ("ssl.keyStore.location", "tls.key_store"),
    ("ssl.keyStore.password", "tls.key_store_password"),
    ("ssl.keyStore.passwordPath", "tls.key_store_password_file"),
    ("ssl.trustStore.location", "tls.trust_store"),
    ("ssl.trustStore.password", "tls.trust_store_password"),
    ("ssl.trustStore.passwordPath", "tls.trust_store_password_file"),
    ("ssl.server.trustStore.location", "tls.trust_store"),
    ("ssl.server.trustStore.password", "tls.trust_store_password"),
    ("ssl.server.trustStore.passwordPath", "tls.trust_store_password_file"),
    ("ssl.protocol", "tls.versions"),
    ("ssl.enabledProtocols", "tls.versions"),
    ("ssl.ciphersuites", "tls.cipher_suites"),
    ("ssl.clientHostnameVerification", "tls.verify_addresses"),
    ("ssl.crl", "tls.revocations"),
    ("ssl.clientAuth", "tls.client_auth"),
    ("ssl.handshakeDetectionTimeoutMillis", "tls.detection_timeout_ms"),
    ("ssl.quorum.keyStore.location", "ensemble.tls.key_store"),
    ("ssl.quorum.keyStore.password", "ensemble.tls.key_store_password"),
    ("ssl.quorum.keyStore.passwordPath", "ensemble.tls.key_store_password_file"),
    ("ssl.quorum.trustStore.location", "ensemble.tls.trust_store"),
    ("ssl.quorum.trustStore.password", "ensemble.tls.trust_store_password"),
    ("ssl.quorum.trustStore.passwordPath", "ensemble.tls.trust_store_password_file"),
    ("ssl.quorum.client.keyStore.location", "ensemble.tls.calling_key_store"),
    ("ssl.quorum.client.keyStore.password", "ensemble.tls.calling_key_store_password"),
    ("ssl.quorum.client.keyStore.passwordPath", "ensemble.tls.calling_key_store_password_file"),
    ("ssl.quorum.server.trustStore.location", "ensemble.tls.callers_trust_store"),
    ("ssl.quorum.server.trustStore.password", "ensemble.tls.callers_trust_store_password"),
    ("ssl.quorum.server.trustStore.passwordPath", "ensemble.tls.callers_trust_store_password_file"),
    ("ssl.quorum.protocol", "ensemble.tls.versions"),
    ("ssl.quorum.enabledProtocols", "ensemble.tls.versions"),
    ("ssl.quorum.ciphersuites", "ensemble.tls.cipher_suites"),
    ("ssl.quorum.hostnameVerification", "ensemble.tls.verify_called"),
    ("ssl.quorum.clientHostnameVerification", "ensemble.tls.verify_callers"),
    ("znode.container.checkIntervalMs", "garbage_interval_ms"),
    ("znode.container.maxPerMinute", "garbage_max"),
    ("4lw.commands.whitelist", "words"),
    ("admin.enableServer", "admin_listen"),
    ("admin.serverAddress", "admin_listen"),
    ("admin.serverPort", "admin_listen"),
    ("admin.idleTimeout", "admin.idle_timeout_ms"),
    ("admin.commandURL", "admin.command_url"),
    ("admin.portUnification", "admin.tls"),
    ("admin.forceHttps", "admin.tls"),
    ("admin.needClientAuth", "admin.needs_certificate"),
    ("admin.rateLimiterIntervalInMS", "admin.rate_limit_ms"),
    ("admin.snapshot.enabled", "admin.snapshots"),
    ("admin.hosts", "admin.hosts"),
    ("metricsProvider.className", "metrics_listen"),
    ("metricsProvider.httpHost", "metrics_listen"),
    ("metricsProvider.httpPort", "metrics_listen"),
    ("audit.enable", "audit_log"),
    ("audit.file", "audit_log"),
    ("log.level", "log"),
];

/// Settings by the keys of a `keeper_config.xml`.
pub(super) const OF_KEEPER: &[(&str, &str)] = &[
    ("keeper_server.server_id", "member"),
    ("keeper_server.tcp_port", "listen"),
    ("keeper_server.tcp_port_secure", "tls.listen"),
    ("listen_host", "listen"),
    ("max_connections", "connections_max"),
    ("keeper_server.superdigest", "super_digest"),
    ("keeper_server.four_letter_word_allow_list", "words"),
    ("keeper_server.four_letter_word_white_list", "words"),
    ("keeper_server.enable_reconfiguration", "ensemble.reconfig_enabled"),
    ("keeper_server.rate_limits", "rate_limits"),
    ("keeper_server.rate_wait_ms_max", "rate_wait_ms_max"),
    ("keeper_server.feature_level_max", "feature_level_max"),
    ("keeper_server.group_count", "group_count"),
    ("keeper_server.group_replicas", "group_replicas"),
    ("keeper_server.split_points", "split_points"),
    ("keeper_server.backup.to", "backup.to"),
    ("keeper_server.backup.full_interval_ms", "backup.full_interval_ms"),
    ("keeper_server.backup.log_interval_ms", "backup.log_interval_ms"),
    ("keeper_server.backup.keep", "backup.keep"),
    ("keeper_server.max_memory_usage_soft_limit", "memory_max"),
    ("keeper_server.max_memory_usage_soft_limit_ratio", "memory_max"),
    ("keeper_server.storage_path", "data_dir"),
    ("keeper_server.log_storage_path", "log_dir"),
    ("keeper_server.snapshot_storage_path", "data_dir"),
    ("keeper_server.availability_zone.value", "availability_zone"),
    ("placement.availability_zone", "availability_zone"),
    ("keeper_server.http_control.port", "admin_listen"),
    ("keeper_server.http_control.secure_port", "admin_listen"),
    ("keeper_server.http_control.readiness.endpoint", "admin.ready_path"),
    ("keeper_server.http_control.hosts", "admin.hosts"),
    ("prometheus.endpoint", "admin.metrics_path"),
    ("prometheus.port", "metrics_listen"),
    ("logger.level", "log"),
    ("keeper_server.coordination_settings.min_session_timeout_ms", "session_timeout_ms_min"),
    ("keeper_server.coordination_settings.session_timeout_ms", "session_timeout_ms_max"),
    ("keeper_server.coordination_settings.dead_session_check_period_ms", "tick_ms"),
    ("keeper_server.coordination_settings.container_gc_period_ms", "garbage_interval_ms"),
    ("keeper_server.coordination_settings.container_gc_batch_size", "garbage_max"),
    ("keeper_server.coordination_settings.snapshot_distance", "snapshot_writes"),
    ("keeper_server.coordination_settings.snapshots_to_keep", "snapshots_kept"),
    ("keeper_server.coordination_settings.max_log_file_size", "segment_bytes"),
    ("keeper_server.coordination_settings.compress_logs", "log_compression"),
    ("keeper_server.coordination_settings.latest_logs_cache_size_threshold", "entry_bytes_kept"),
    ("keeper_server.coordination_settings.max_request_size", "frame_bytes_max"),
    ("keeper_server.coordination_settings.quorum_reads", "ensemble.linearizable_reads"),
];

/// By the names of settings in Paddock's own file, the places that set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, String>);

impl Origins {
    /// A setting, by its name in Paddock's own file, comes from this place.
    pub(super) fn note(&mut self, setting: &str, place: impl ToString) {
        self.0.insert(setting.to_owned(), place.to_string());
    }

    /// Notes a key of another server's file, if its key sets something.
    pub(super) fn note_key(&mut self, keys: &[(&str, &str)], key: &str, place: impl std::fmt::Display) {
        if let Some((_, setting)) = keys.iter().find(|(known, _)| *known == key) {
            self.note(setting, format_args!("{place}: {key}"));
        }
    }

    /// The page of a configuration as Paddock's own file says it, with a comment behind each value that was set somewhere.
    pub fn annotate(&self, page: &str) -> String {
        let (mut annotated, mut table) = (String::new(), String::new());
        for line in page.lines() {
            annotated += line;
            if let Some(name) = line.strip_prefix('[') {
                table = name.trim_matches(['[', ']']).to_owned() + ".";
            } else if let Some((key, value)) = line.split_once(" = ") {
                let setting =
                    if table == MEMBERS { format!("{table}{value}") } else { format!("{table}{key}") };
                if let Some(place) = self.0.get(&setting) {
                    annotated += &format!("  # {place}");
                }
            }
            annotated.push('\n');
        }
        annotated
    }
}

/// Table in which the number of a member stands for its place.
pub(super) const MEMBERS: &str = "ensemble.member.";
