//! Paddock's own configuration file. Its keys are the rows of `paddock_server::Config`, and its tables the parts of it that have none.

mod admin;
mod backup;
mod client_tls;
mod ensemble;
mod etcd;
mod file;
pub(super) mod own_forms;
mod sasl;
mod tls;
mod tracing;

use std::path::Path;

use toml::de::DeTable;

use super::draft::Draft;
use super::ensemble::{Named, OwnNumber};
use super::environment::Environment;
use super::remark::{ConfigError, Remarks};
use super::rows;
use super::text_file;
use super::zoo_values;
use file::{File, Item, boolean, each_key};

pub(super) fn load(
    path: &Path,
    environment: &Environment,
    remarks: &mut Remarks,
) -> Result<Draft, ConfigError> {
    let text = text_file::read(path)?;
    let file = File { path, text: &text };
    let table = DeTable::parse(&text).map_err(|error| {
        file.place(error.span().map_or(0, |span| span.start)).fault(error.message().replace('\n', ", "))
    })?;
    let mut draft = Draft::default();
    let (mut own, mut ensemble) = (environment.own_number()?, None);
    let outcome = each_key(&file, table.get_ref(), ("", &rows::keys()), remarks, |setting, remarks| {
        let (place, value) = (&setting.place, setting.value);
        match setting.key {
            "ensemble" => {
                ensemble = Some(ensemble::Table::read(&file, place.clone(), value, remarks)?);
            }
            "admin" => draft.config.admin = admin::read(&file, place, value, remarks)?,
            "backup" => backup::read(&file, place, value, &mut draft.backup, remarks)?,
            "etcd" => etcd::read(&file, place, value, &mut draft.etcd, remarks)?,
            "sasl" => sasl::read(&file, place, value, &mut draft.sasl, remarks)?,
            "tls" => {
                let late = &mut draft.config.late_names;
                draft.config.tls = Some(client_tls::read(&file, place, value, late, remarks)?);
            }
            "tracing" => draft.tracing = Some(tracing::read(&file, place, value, remarks)?),
            key => {
                let is_known = set(&mut draft, key, &setting.item).map_err(|what| setting.fault(what))?;
                if key == "member" {
                    own = draft.member.map(|number| OwnNumber { place: place.clone(), number });
                }
                return Ok(is_known);
            }
        }
        Ok(true)
    });
    remarks.note(outcome);
    remarks.settle(Ok(()))?;
    if let Some(own) = &own {
        remarks.origins.note("member", &own.place);
    }
    draft.member = own.as_ref().map(|own| own.number);
    if let Some(ensemble) = ensemble {
        let (ensemble, own) = ensemble.settle(own.as_ref(), remarks)?;
        draft.config.ensemble = Some(ensemble);
        listen_as_the_ensemble_is_told(&mut draft, &own)?;
    }
    Ok(draft)
}

/// Unless `listen` says otherwise, clients connect where the ensemble is told that they do.
fn listen_as_the_ensemble_is_told(draft: &mut Draft, own: &Named) -> Result<(), ConfigError> {
    if let (None, Some(client)) = (draft.listen, &own.member.client) {
        let listen =
            super::ensemble::listen(client, zoo_values::all_addresses(), &mut draft.config.late_names);
        draft.listen = Some(listen.map_err(|what| own.fault(what))?);
    }
    Ok(())
}

/// Takes a setting, unless its key is not known.
fn set(draft: &mut Draft, key: &str, value: &Item<'_>) -> Result<bool, String> {
    match (key, own_forms::find(key)) {
        (_, Some(form)) => (form.read)(draft, value)?,
        ("session_timeout_ms_min", _) => {
            draft.session_timeout_ms_min = Some(rows::waiting_number(key, value)?);
        }
        ("session_timeout_ms_max", _) => {
            draft.session_timeout_ms_max = Some(rows::waiting_number(key, value)?);
        }
        _ => return rows::set(&mut draft.config, key, value, boolean),
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
