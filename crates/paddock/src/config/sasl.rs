//! SASL and the identities that clients need, out of what the files say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use paddock_server::{Config, SaslUsers};

use super::jaas;
use super::remark::{ConfigError, Location};

/// Schemes by which clients can show who they are.
const SCHEMES: [&str; 4] = ["digest", "ip", "sasl", "x509"];

#[derive(Debug, Default)]
pub(super) struct SaslDraft {
    pub(super) jaas_file: Option<PathBuf>,
    pub(super) jaas_section: Option<String>,
    pub(super) users: BTreeMap<String, String>,
    pub(super) super_users: Vec<String>,
    pub(super) keeps_failed_clients: bool,
    /// Clients have to show who they are, by one of `schemes`.
    pub(super) is_enforced: bool,
    pub(super) schemes: Vec<String>,
    /// Clients have to show who they are by SASL.
    pub(super) is_required: bool,
}

impl SaslDraft {
    /// Fills in the settings of a member. `place` is the configuration as a whole.
    pub(super) fn settle(self, place: &Location, config: &mut Config) -> Result<(), ConfigError> {
        let mut passwords = self.users;
        if let Some(file) = &self.jaas_file {
            passwords.extend(jaas::users(file, self.jaas_section.as_deref().unwrap_or(jaas::SERVER))?);
        }
        let (super_users, keeps_failed_clients) = (self.super_users, self.keeps_failed_clients);
        let has_sasl = !passwords.is_empty();
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
            return Err(place
                .clone()
                .fault("clients are to show who they are by SASL, and there are no users"));
        }
        config.required_schemes = schemes;
        Ok(())
    }
}
