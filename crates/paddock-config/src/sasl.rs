//! SASL and the identities that clients need, out of what the files say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use paddock_server::{Config, KerberosSettings, PrincipalNames, SaslUsers};

use super::jaas;
use super::remark::{ConfigError, Location, Remarks};

/// Schemes by which clients can show who they are.
const SCHEMES: [&str; 4] = ["digest", "ip", "sasl", "x509"];

#[derive(Debug, Default)]
pub(super) struct SaslDraft {
    pub(super) jaas_file: Option<PathBuf>,
    pub(super) jaas_section: Option<String>,
    pub(super) users: BTreeMap<String, String>,
    pub(super) super_users: Vec<String>,
    pub(super) keeps_failed_clients: bool,
    pub(super) kerberos: KerberosDraft,
    /// Clients have to show who they are, by one of `schemes`.
    pub(super) is_enforced: bool,
    pub(super) schemes: Vec<String>,
    /// Clients have to show who they are by SASL.
    pub(super) is_required: bool,
}

/// Kerberos, as the files say it.
#[derive(Debug, Default)]
pub(super) struct KerberosDraft {
    pub(super) principal: Option<String>,
    pub(super) keytab: Option<PathBuf>,
    /// Rules by which principals become users.
    pub(super) auth_to_local: Option<String>,
    pub(super) removes_host: bool,
    pub(super) removes_realm: bool,
}

impl KerberosDraft {
    /// `login` is that of the JAAS file, which counts where nothing else is said.
    fn settle(
        self,
        login: Option<jaas::KerberosLogin>,
        place: &Location,
    ) -> Result<Option<KerberosSettings>, ConfigError> {
        let names = match &self.auth_to_local {
            None => PrincipalNames::new("DEFAULT", self.removes_host, self.removes_realm),
            Some(rules) => PrincipalNames::new(rules, self.removes_host, self.removes_realm),
        };
        let names = names.map_err(|error| place.clone().fault(error))?;
        let login = match self.principal {
            Some(principal) => Some((principal, self.keytab)),
            None => login.map(|login| (login.principal, login.keytab)),
        };
        Ok(login.map(|(principal, keytab)| KerberosSettings { principal, keytab, names }))
    }
}

impl SaslDraft {
    /// Fills in the settings of a member. `place` is the configuration as a whole.
    pub(super) fn settle(
        self,
        place: &Location,
        config: &mut Config,
        remarks: &mut Remarks,
    ) -> Result<(), ConfigError> {
        let mut passwords = self.users;
        let mut kerberos_login = None;
        if let Some(file) = &self.jaas_file {
            let section = jaas::section(file, self.jaas_section.as_deref().unwrap_or(jaas::SERVER), remarks)?;
            passwords.extend(section.users);
            kerberos_login = section.kerberos;
        }
        config.kerberos = self.kerberos.settle(kerberos_login, place)?;
        let (super_users, keeps_failed_clients) = (self.super_users, self.keeps_failed_clients);
        let has_sasl = !passwords.is_empty() || config.kerberos.is_some();
        config.sasl = has_sasl.then_some(SaslUsers { passwords, super_users, keeps_failed_clients });
        let mut schemes = if self.is_enforced { self.schemes } else { Vec::new() };
        if self.is_enforced && schemes.is_empty() {
            return Err(place.clone().fault("enforce.auth.enabled needs enforce.auth.schemes"));
        }
        if self.is_required && !schemes.iter().any(|scheme| scheme == "sasl") {
            schemes.push("sasl".to_owned());
        }
        if let Some(scheme) = schemes.iter().find(|scheme| !SCHEMES.contains(&scheme.as_str())) {
            let what = format!(
                "no scheme {scheme} for clients to show who they are; there are {}",
                SCHEMES.join(", ")
            );
            return Err(place.clone().fault(what));
        }
        if !has_sasl && schemes.iter().any(|scheme| scheme == "sasl") {
            return Err(place.clone().fault(
                "clients are to show who they are by SASL, and there are neither users nor Kerberos",
            ));
        }
        config.required_schemes = schemes;
        Ok(())
    }
}
