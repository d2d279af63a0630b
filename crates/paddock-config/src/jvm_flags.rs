//! System properties of ZooKeeper's JVM, `-Dzookeeper.snapCount=1000`: settings like those of a `zoo.cfg`, and judged like them.
//!
//! ZooKeeper's scripts and those of Kafka take flags from variables. A key of the file counts before the property, since ZooKeeper makes
//! properties of the keys.

use std::path::Path;

use super::environment::Environment;
use super::remark::{Location, Remarks};
use super::source::Line;

/// Variables with flags for the JVM, in the order of the command line that they become: the last of two properties counts.
pub(super) const VARIABLES: [&str; 5] =
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "KAFKA_OPTS", "SERVER_JVMFLAGS", "JVMFLAGS"];
/// The JAAS file.
pub(super) const JAAS_FILE: &str = "java.security.auth.login.config";
/// The file of Kerberos for Java, where other programs read the variable `KRB5_CONFIG`.
pub(super) const KRB5_CONF: &str = "java.security.krb5.conf";
const PREFIX: &str = "zookeeper.";
/// Beginnings of ZooKeeper's properties that have no `zookeeper.` before them. All others without it are about the JVM.
const WITHOUT_PREFIX: [&str; 7] =
    [JAAS_FILE, KRB5_CONF, "jute.", "readonlymode.", "znode.container.", "quorum.auth.", "fsync."];
/// Beginnings of properties that are none of a server's settings, with what they are about.
const OTHERS: [(&str, &str); 12] = [
    ("log.dir", LOGS),
    ("log.file", LOGS),
    ("log.threshold", LOGS),
    ("root.logger", LOGS),
    ("console.threshold", LOGS),
    ("tracelog.", LOGS),
    ("jmx.", "there is no JMX; metrics are served over HTTP"),
    ("sasl.client", CLIENTS),
    ("clientCnxnSocket", CLIENTS),
    ("server.principal", CLIENTS),
    ("server.realm", CLIENTS),
    ("request.timeout", CLIENTS),
];
const LOGS: &str = "logs go to standard error, and --log says what is logged";
const CLIENTS: &str = "it is about clients of ZooKeeper";

/// A property, as a line of a `zoo.cfg`.
pub(super) struct Property {
    pub(super) line: Line,
    /// The reason why it is no setting of a server.
    pub(super) is_other: Option<&'static str>,
}

/// The properties of all variables. Of one that is given twice the last counts.
pub(super) fn properties(environment: &Environment) -> Vec<Property> {
    let mut properties: Vec<Property> = Vec::new();
    for variable in VARIABLES {
        for flag in environment.variable(variable).unwrap_or_default().split_whitespace() {
            let Some(line) = flag.strip_prefix("-D").and_then(|property| line(variable, property)) else {
                continue;
            };
            properties.retain(|earlier| earlier.line.key != line.key);
            let other = OTHERS.iter().find(|(beginning, _)| line.key.starts_with(beginning));
            properties.push(Property { line, is_other: other.map(|(_, reason)| *reason) });
        }
    }
    properties
}

/// Names the variables with settings beside a file in another format, where they say nothing.
pub(super) fn remark_on_unused(environment: &Environment, file: &Path, remarks: &mut Remarks) {
    for variable in VARIABLES.into_iter().filter(|variable| has_settings(variable, environment)) {
        let what = format!("it changes nothing: {} counts", file.display());
        remarks.push(Location::new(variable.as_ref()).detail(what));
    }
}

fn has_settings(variable: &str, environment: &Environment) -> bool {
    let flags = environment.variable(variable).unwrap_or_default().split_whitespace();
    flags.filter_map(|flag| flag.strip_prefix("-D")).any(|property| line(variable, property).is_some())
}

fn line(variable: &str, property: &str) -> Option<Line> {
    let (name, value) = property.split_once('=').unwrap_or((property, ""));
    let key = match name.strip_prefix(PREFIX) {
        Some(key) => key,
        None => WITHOUT_PREFIX.iter().any(|beginning| name.starts_with(beginning)).then_some(name)?,
    };
    let (place, key, value) = (Location::new(variable.as_ref()), key.to_owned(), value.to_owned());
    Some(Line { place, key, value, earlier: None })
}
