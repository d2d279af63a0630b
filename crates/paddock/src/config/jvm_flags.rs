//! System properties of ZooKeeper's JVM that say what no key of `zoo.cfg` can say, or that are mostly said there:
//! `-Djava.security.auth.login.config=FILE` and others in `SERVER_JVMFLAGS` or `JVMFLAGS`, which ZooKeeper's scripts take.

use super::environment::Environment;
use super::source::Source;

/// Variables with flags for the JVM, the first before the next.
const VARIABLES: [&str; 2] = ["JVMFLAGS", "SERVER_JVMFLAGS"];
/// The JAAS file.
pub(super) const JAAS_FILE: &str = "java.security.auth.login.config";
/// The file of Kerberos for Java, where other programs read the variable `KRB5_CONFIG`.
pub(super) const KRB5_CONF: &str = "java.security.krb5.conf";
/// Properties that count, without `zookeeper.` in front of them. The others are about the JVM, or have their own keys.
const PROPERTIES: [&str; 13] = [
    JAAS_FILE,
    KRB5_CONF,
    "kerberos.",
    "security.auth_to_local",
    "sasl.serverconfig",
    "superUser",
    "allowSaslFailedClients",
    "sessionRequireClientSASLAuth",
    "enforce.auth.",
    "enforceQuota",
    "audit.",
    "DigestAuthenticationProvider.digestAlg",
    "DigestAuthenticationProvider.superDigest",
];

/// The flags as lines of a `zoo.cfg`.
pub(super) fn source(environment: &Environment) -> Source {
    let mut source = Source::of_environment();
    for variable in VARIABLES {
        for flag in environment.variable(variable).unwrap_or_default().split_whitespace() {
            let Some(property) = flag.strip_prefix("-D") else { continue };
            let key = property.strip_prefix("zookeeper.").unwrap_or(property);
            if PROPERTIES.iter().any(|known| key.starts_with(known)) {
                source.add(variable, key);
            }
        }
    }
    source
}
