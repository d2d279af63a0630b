//! Kerberos, by which clients prove who they are with tickets.

use std::path::PathBuf;

use paddock_front::PrincipalNames;

/// Settings of a service of Kerberos.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosSettings {
    /// Principal of this member as clients ask for it, such as `zookeeper/host@REALM`. Without a realm it is in the default one.
    pub principal: String,
    /// File with the principal's keys. `None` is the one that `krb5.conf` names.
    pub keytab: Option<PathBuf>,
    /// The users that clients' principals are in ACLs.
    pub names: PrincipalNames,
}
