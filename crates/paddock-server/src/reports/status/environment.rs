//! Environment of a member's process, and its configuration as ZooKeeper tells it.

use paddock_os::process::user_name;
use paddock_proto::MemberRole;

use super::disk::{data_bytes, log_bytes};
use crate::shared::Shared;
use crate::version::version_and_date;

/// Value of a property that Java has and this process does not, as ZooKeeper writes it.
const NONE: &str = "<NA>";

/// ZooKeeper's `envi`. Collectors ask for Java's properties, too.
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let directory = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    vec![
        ("zookeeper.version", version_and_date()),
        ("host.name", read("/proc/sys/kernel/hostname")),
        ("java.version", NONE.into()),
        ("java.vendor", NONE.into()),
        ("java.home", NONE.into()),
        ("java.class.path", NONE.into()),
        ("java.library.path", NONE.into()),
        ("java.io.tmpdir", std::env::temp_dir().display().to_string()),
        ("java.compiler", NONE.into()),
        ("os.name", "Linux".into()),
        ("os.arch", architecture().into()),
        ("os.version", read("/proc/sys/kernel/osrelease")),
        ("user.name", user_name()),
        ("user.home", var("HOME")),
        ("user.dir", directory),
    ]
}

/// The architecture by Java's name.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    }
}

/// A setting as ZooKeeper tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Name in the answer to `conf`.
    pub(crate) word_name: &'static str,
    /// Name in the answer to the command `configuration`; `None` if it does not have it.
    pub(crate) command_name: Option<&'static str>,
    pub(crate) value: SettingValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingValue {
    Number(i64),
    Text(String),
}

/// The rest of ZooKeeper's `conf` at a member of an ensemble: its own ports, its part, and all members with the version; `None` for a
/// member alone. Ports are 0 for a member that the ensemble does not name.
pub(crate) fn membership(shared: &Shared) -> Option<Vec<(&'static str, String)>> {
    let state = shared.state.read();
    let ensemble = state.tree().ensemble()?;
    let own = ensemble.members.iter().find(|member| member.id == shared.config.member);
    let (quorum, election) = own.map_or((0, 0), |own| (own.quorum_port, own.election_port));
    let is_observer = own.is_some_and(|own| own.role == MemberRole::Observer);
    Some(vec![
        ("electionPort", election.to_string()),
        ("quorumPort", quorum.to_string()),
        ("peerType", u8::from(is_observer).to_string()),
        ("membership", format!("\n{}", ensemble.text())),
    ])
}

/// ZooKeeper's `conf`.
pub(crate) fn configuration(shared: &Shared) -> Vec<Setting> {
    let c = &*shared.settings();
    let number = |word_name, command_name, value: u64| Setting {
        word_name,
        command_name,
        value: SettingValue::Number(value as i64),
    };
    let text = |word_name, command_name, value: String| Setting {
        word_name,
        command_name: Some(command_name),
        value: SettingValue::Text(value),
    };
    let none = |word_name, command_name| Setting { word_name, command_name, value: SettingValue::Number(-1) };
    let secure_port = c.tls_address().map(|address| number("secureClientPort", None, address.port().into()));
    let connections = u64::from(c.connections_per_address_max);
    vec![
        number("clientPort", Some("client_port"), c.listen.port().into()),
        secure_port.unwrap_or_else(|| none("secureClientPort", None)),
        text("dataDir", "data_dir", c.data_dir.display().to_string()),
        number("dataDirSize", None, data_bytes(shared)),
        text("dataLogDir", "data_log_dir", c.log_dir().display().to_string()),
        number("dataLogSize", None, log_bytes(shared)),
        number("tickTime", Some("tick_time"), c.tick_ms.into()),
        number("maxClientCnxns", Some("max_client_cnxns"), connections),
        number("minSessionTimeout", Some("min_session_timeout"), c.session_timeout_ms_min.into()),
        number("maxSessionTimeout", Some("max_session_timeout"), c.session_timeout_ms_max.into()),
        none("clientPortListenBacklog", Some("client_port_listen_backlog")),
        number("serverId", Some("server_id"), c.member.into()),
    ]
}
