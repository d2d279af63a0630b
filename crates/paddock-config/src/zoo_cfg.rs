//! ZooKeeper's `zoo.cfg`, its dynamic configuration file and its `myid`, read as ZooKeeper 3.9 reads them.
//!
//! Always true: a key of any such file is taken, known to change nothing, or named in a remark.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use paddock_server::{AuditTarget, ClientAddress, LateNames};

use super::draft::Draft;
use super::ensemble::{self, Named, OwnNumber};
use super::environment::{Environment, MY_ID};
use super::jvm_flags;
use super::known_keys;
use super::origins::OF_ZOO_CFG;
use super::overrides::Overrides;
use super::properties;
use super::remark::{ConfigError, Location, Remarks, cannot_read};
use super::rows;
use super::source::{Line, Source};
use super::value::{self, Text};
use super::zoo_admin::ZooAdmin;
use super::zoo_client_tls::ZooClientTls;
use super::zoo_keys;
use super::zoo_limits::{self, ConnectKeys};
use super::zoo_metrics::ZooMetrics;
use super::zoo_servers::ZooServers;
use super::zoo_values;

/// The tick of a `zoo.cfg` that does not say.
const TICK_MS: u32 = 3000;
/// ZooKeeper's own classes for schemes that are always there, or with their settings.
const AUTH_PROVIDERS: [&str; 4] = [
    "DigestAuthenticationProvider",
    "IPAuthenticationProvider",
    "SASLAuthenticationProvider",
    "X509AuthenticationProvider",
];
/// ZooKeeper keeps no fewer.
const SNAPSHOTS_KEPT_MIN: usize = 3;

pub(super) fn load(
    source: &Source,
    overrides: &Overrides,
    environment: &Environment,
    remarks: &mut Remarks,
) -> Result<Draft, ConfigError> {
    let mut zoo = ZooCfg::default();
    let lines = source.lines()?;
    zoo.take_properties(environment, &lines, remarks);
    for line in &lines {
        let outcome = zoo.take(line, remarks);
        remarks.note(outcome);
    }
    if let Some(dynamic) = zoo.dynamic_file.take() {
        zoo.read_dynamic(&dynamic, remarks)?;
    }
    zoo.finish(&source.whole(), overrides, environment, remarks)
}

/// Settings of the files. Keys that depend on others wait outside `draft`.
#[derive(Default)]
struct ZooCfg {
    draft: Draft,
    tick_ms: Option<u32>,
    client_port: Option<u16>,
    client_address: Option<IpAddr>,
    garbage_per_minute: Option<u64>,
    dynamic_file: Option<PathBuf>,
    has_audit_log: bool,
    /// A key of Paddock's own: ZooKeeper has it in a configuration of its logs.
    audit_file: Option<PathBuf>,
    metrics: ZooMetrics,
    admin: ZooAdmin,
    connects: ConnectKeys,
    servers: ZooServers,
    tls: ZooClientTls,
}

/// The place where a file names the port for clients.
enum Plaintext<'a> {
    Server(&'a Named, &'a ClientAddress),
    Port(u16),
}

impl ZooCfg {
    /// Reads the file that ZooKeeper writes when its ensemble changes. It names the members and nothing else.
    fn read_dynamic(&mut self, file: &Path, remarks: &mut Remarks) -> Result<(), ConfigError> {
        if let Some(server) = self.servers.first() {
            let what =
                format!("dynamicConfigFile says that the members are named in {}; move it", file.display());
            return Err(server.fault(what));
        }
        for line in Source::open(file)?.lines()? {
            if !["server.", "group.", "weight.", "version"].iter().any(|known| line.key.starts_with(known)) {
                return Err(line.fault("a dynamic configuration only names the members; move it to zoo.cfg"));
            }
            self.take(&line, remarks)?;
        }
        Ok(())
    }

    /// Takes the properties of the JVM that none of the file's lines is about.
    fn take_properties(&mut self, environment: &Environment, lines: &[Line], remarks: &mut Remarks) {
        for jvm_flags::Property { line, is_other } in jvm_flags::properties(environment) {
            if let Some(reason) = is_other {
                remarks.push(line.changes_nothing(reason));
            } else if let Some(said) = lines.iter().find(|said| said.key == line.key) {
                remarks.push(line.changes_nothing(&format!("{} says it too, and counts", said.place)));
            } else {
                let outcome = self.take(&line, remarks);
                remarks.note(outcome);
            }
        }
    }

    fn take(&mut self, line: &Line, remarks: &mut Remarks) -> Result<(), ConfigError> {
        remarks.origins.note_key(OF_ZOO_CFG, &line.key, &line.place);
        if self.servers.take(line, remarks)? || self.tls.take(line, &mut self.draft.config.late_names)? {
            return Ok(());
        }
        match self.set(&line.key, &Text(&line.value)) {
            Err(what) => return Err(line.fault(what)),
            Ok(Known::Yes) => {}
            Ok(Known::Adjusted(what)) => remarks.push(line.warning(what)),
            Ok(Known::No) => {
                remarks.extend(known_keys::remark_on(line, zoo_keys::MEANINGLESS, zoo_keys::FIXED)?);
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &Text<'_>) -> Result<Known, String> {
        if let Some(taken) = self.metrics.take(key, value, &mut self.draft.config.late_names) {
            return Ok(taken?.map_or(Known::Yes, Known::Adjusted));
        }
        if let Some(taken) = self.admin.take(key, value, &mut self.draft.config.late_names) {
            return taken.map(|()| Known::Yes);
        }
        let draft = &mut self.draft;
        let config = &mut draft.config;
        match key {
            "dataDir" => draft.data_dir = Some(value::path(value)?),
            "dataLogDir" => config.log_dir = Some(value::path(value)?),
            "clientPort" => self.client_port = zoo_values::port(value)?,
            "clientPortAddress" => {
                self.client_address = Some(value::host_address(value.0, &mut config.late_names)?)
            }
            "dynamicConfigFile" => self.dynamic_file = Some(value::path(value)?),
            "tickTime" => self.tick_ms = Some(value::milliseconds(value)?),
            "minSessionTimeout" => draft.session_timeout_ms_min = zoo_values::timeout(value)?,
            "maxSessionTimeout" => draft.session_timeout_ms_max = zoo_values::timeout(value)?,
            "electionPortBindRetry" => config.bind_tries = zoo_values::tries(value)?,
            "maxClientCnxns" => config.connections_per_address_max = zoo_values::connections(value)?,
            "maxCnxns" => config.connections_max = zoo_values::connections(value)?,
            "globalOutstandingLimit" | "requestThrottleLimit" | "request_throttle_max_requests" => {
                zoo_limits::set_outstanding(&mut config.client_limits, value)?;
            }
            "paddock.split_points" => config.member_settings.split_points = value::split_points(value)?,
            "paddock.rate_limits" => config.client_limits.rate_limits = value::rate_rules(value)?,
            _ if let Some(key) = key.strip_prefix("paddock.backup.")
                && draft.backup.set(key, value)? => {}
            _ if self.connects.take(key, value)? => {}
            "netty.server.outstandingHandshake.limit" => {
                config.client_limits.handshakes_max = zoo_limits::handshakes(value)?;
            }
            "4lw.commands.whitelist" => config.words = zoo_values::words(value.0),
            "jute.maxbuffer" => config.frame_bytes_max = zoo_values::frame_bytes(value)?,
            "snapSizeLimitInKb" => {
                config.member_settings.snapshot_log_bytes = zoo_values::snapshot_log_bytes(value)?
            }
            "autopurge.snapRetainCount" => return self.set_snapshots_kept(value),
            "preAllocSize" => config.member_settings.segment_bytes = zoo_values::segment_bytes(value)?,
            "DigestAuthenticationProvider.superDigest" => {
                config.super_digest = Some(value::super_digest(value)?);
            }
            "DigestAuthenticationProvider.digestAlg" => {
                config.digest_algorithm = value::digest_algorithm(value)?;
            }
            jvm_flags::JAAS_FILE => draft.sasl.jaas_file = Some(value::path(value)?),
            "sasl.serverconfig" => draft.sasl.jaas_section = Some(value.0.to_owned()),
            "allowSaslFailedClients" => draft.sasl.keeps_failed_clients = zoo_values::boolean(value)?,
            "sessionRequireClientSASLAuth" => draft.sasl.is_required = zoo_values::boolean(value)?,
            "enforce.auth.enabled" => draft.sasl.is_enforced = zoo_values::boolean(value)?,
            "enforce.auth.schemes" => {
                draft.sasl.schemes = zoo_values::list(value.0).map(str::to_owned).collect();
            }
            "kerberos.removeHostFromPrincipal" => {
                draft.sasl.kerberos.removes_host = zoo_values::boolean(value)?;
            }
            "kerberos.removeRealmFromPrincipal" => {
                draft.sasl.kerberos.removes_realm = zoo_values::boolean(value)?;
            }
            "security.auth_to_local" => draft.sasl.kerberos.auth_to_local = Some(value.0.to_owned()),
            jvm_flags::KRB5_CONF => {
                let what = "it is Java's; the Kerberos library here reads the file that the variable KRB5_CONFIG names";
                return Ok(Known::Adjusted(what.to_owned()));
            }
            "audit.enable" => self.has_audit_log = zoo_values::boolean(value)?,
            // As ZooKeeper says it in a configuration of its logs.
            "log.level" => draft.log = Some(value::log_filter(value)?),
            "audit.file" => self.audit_file = Some(value::path(value)?),
            _ if key.starts_with("authProvider.") => {
                let class = value.0.rsplit('.').next().unwrap_or_default();
                if !AUTH_PROVIDERS.contains(&class) {
                    let what = format!("{} is not offered; its scheme is unknown here", value.0);
                    return Ok(Known::Adjusted(what));
                }
            }
            _ if is_super_user(key) => draft.sasl.super_users.push(value.0.to_owned()),
            "znode.container.maxPerMinute" => {
                self.garbage_per_minute = Some(value::amount(value, 1..=i32::MAX.into(), "znodes")?);
            }
            // The name is all that differs.
            _ if rows::set_named(config, OF_ZOO_CFG, key, value, zoo_values::boolean)? => {}
            _ => return Ok(Known::No),
        }
        Ok(Known::Yes)
    }

    fn set_snapshots_kept(&mut self, value: &Text<'_>) -> Result<Known, String> {
        let asked: i32 = value::number(value, i32::MIN.into()..=i32::MAX.into(), "a number of snapshots")?;
        let asked = usize::try_from(asked).unwrap_or(0);
        self.draft.config.member_settings.snapshots_kept = asked.max(SNAPSHOTS_KEPT_MIN);
        if asked < SNAPSHOTS_KEPT_MIN {
            return Ok(Known::Adjusted(format!("{SNAPSHOTS_KEPT_MIN} snapshots are kept, as in ZooKeeper")));
        }
        Ok(Known::Yes)
    }

    fn finish(
        mut self,
        place: &Location,
        overrides: &Overrides,
        environment: &Environment,
        remarks: &mut Remarks,
    ) -> Result<Draft, ConfigError> {
        self.settle_times();
        if self.has_audit_log {
            let target = self.audit_file.take().map_or(AuditTarget::Log, AuditTarget::File);
            self.draft.config.audit_log = Some(target);
        }
        self.draft.config.client_limits.connect_rate = std::mem::take(&mut self.connects).settle();
        let Some(data_dir) = overrides.data_dir.as_deref().or(self.draft.data_dir.as_deref()) else {
            return Err(place.clone().fault("dataDir is missing"));
        };
        let my_id = data_dir.join("myid");
        let own = own_number(&my_id, environment, self.servers.is_alone(), remarks)?;
        let missing = |numbers: String| {
            let what =
                format!("missing; write into it which of the members {numbers} this is, or set {MY_ID}");
            Location::new(&my_id).fault(what)
        };
        let settled = std::mem::take(&mut self.servers).settle(own, place, missing, remarks)?;
        if overrides.listen.is_none() {
            let mut late = std::mem::take(&mut self.draft.config.late_names);
            if let (Some(own), true) = (&settled.own, settled.ensemble.is_some()) {
                self.check_client_address(own, &mut late)?;
            }
            self.draft.listen = Some(self.listen(place, settled.own.as_ref(), &mut late)?);
            self.draft.config.late_names = late;
        }
        let has_plaintext_port = self.plaintext(settled.own.as_ref()).is_some();
        self.draft.config.tls = self.tls.settle(has_plaintext_port, remarks)?;
        self.draft.config.metrics_listen = self.metrics.listen();
        self.draft.config.admin_listen = self.admin.listen();
        self.draft.config.admin = self.admin.into_settings();
        self.draft.member = Some(settled.member);
        if let Some(place) = settled.member_place {
            remarks.origins.note("member", place);
        }
        self.draft.config.ensemble = settled.ensemble;
        Ok(self.draft)
    }

    fn settle_times(&mut self) {
        let config = &mut self.draft.config;
        config.tick_ms = self.tick_ms.unwrap_or(TICK_MS);
        if let Some(per_minute) = self.garbage_per_minute {
            let each_time = per_minute.saturating_mul(config.member_settings.garbage_interval_ms) / 60_000;
            config.member_settings.garbage_max = usize::try_from(each_time).unwrap_or(usize::MAX).max(1);
        }
    }

    /// The address for clients. A server line counts before `clientPort` and `clientPortAddress`, as in ZooKeeper.
    fn listen(
        &self,
        place: &Location,
        own: Option<&Named>,
        late: &mut LateNames,
    ) -> Result<SocketAddr, ConfigError> {
        let otherwise = || self.client_address.unwrap_or_else(zoo_values::all_addresses);
        match (self.plaintext(own), self.tls.listen()) {
            (Some(Plaintext::Server(own, client)), _) => {
                ensemble::listen(client, otherwise(), late).map_err(|what| own.fault(what))
            }
            (Some(Plaintext::Port(port)), _) => Ok(SocketAddr::new(otherwise(), port)),
            (None, Some(address)) => Ok(address),
            (None, None) => Err(match own {
                Some(own) => own.fault("clients have no port; add one behind a semicolon, or set clientPort"),
                None => place.clone().fault("clientPort is missing"),
            }),
        }
    }

    /// The port on which clients may speak plaintext.
    fn plaintext<'a>(&self, own: Option<&'a Named>) -> Option<Plaintext<'a>> {
        let client = own.and_then(|own| Some(Plaintext::Server(own, own.member.client.as_ref()?)));
        client.or(self.client_port.map(Plaintext::Port))
    }

    /// Like ZooKeeper, a member of an ensemble does not choose between two addresses for its clients.
    fn check_client_address(&self, own: &Named, late: &mut LateNames) -> Result<(), ConfigError> {
        let (Some(client), Some(port)) = (&own.member.client, self.client_port) else { return Ok(()) };
        let all = zoo_values::all_addresses();
        let said = SocketAddr::new(self.client_address.unwrap_or(all), port);
        let own_says = ensemble::listen(client, all, late).map_err(|what| own.fault(what))?;
        let agree =
            said.port() == own_says.port() && (said.ip().is_unspecified() || said.ip() == own_says.ip());
        if agree {
            return Ok(());
        }
        let what = format!(
            "clients connect to {} here, but to {} by clientPort; say it once",
            late.shown(own_says),
            late.shown(said)
        );
        Err(own.fault(what))
    }
}

/// True for `superUser`, and for `superUser.` with a name of its own behind it: there may be several.
fn is_super_user(key: &str) -> bool {
    key.strip_prefix("superUser").is_some_and(|name| name.is_empty() || name.starts_with('.'))
}

enum Known {
    Yes,
    No,
    /// The key is known, but this value is not taken as it is.
    Adjusted(String),
}

/// This member's number, from `myid` or from the environment. One alone needs none, and ZooKeeper ignores `myid` there: another number than
/// from 1 to 255 is left unused.
fn own_number(
    my_id: &Path,
    environment: &Environment,
    is_alone: bool,
    remarks: &mut Remarks,
) -> Result<Option<OwnNumber>, ConfigError> {
    let text = match fs::read(my_id) {
        Ok(bytes) => properties::decode(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return environment.own_number(),
        Err(error) => return Err(cannot_read(my_id, &error)),
    };
    let place = Location::at(my_id, 1);
    let first = text.lines().next().unwrap_or("").trim();
    if is_alone && first.parse().is_ok_and(|number: i64| !value::MEMBER_ALONE.contains(&number)) {
        remarks.push(place.detail(format!("{first} is not used: a member alone needs no number")));
        return Ok(None);
    }
    let number = value::number(&Text(first), value::MEMBER, value::A_MEMBER)
        .map_err(|what| place.clone().fault(what))?;
    if let Some(other) = environment.own_number()?.filter(|other| other.number != number) {
        let what = format!("{} says {number}, which counts", my_id.display());
        remarks.push(other.place.warning(what));
    }
    Ok(Some(OwnNumber { place, number }))
}

#[cfg(test)]
mod tests;
