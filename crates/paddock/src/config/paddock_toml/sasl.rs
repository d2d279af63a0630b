//! `[sasl]`.

use toml::Spanned;
use toml::de::DeValue;

use super::super::remark::{ConfigError, Location, Remark};
use super::super::sasl::SaslDraft;
use super::super::value;
use super::file::{File, Item, boolean, in_order, named};
use super::texts;

const SASL: &str = "sasl";

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    draft: &mut SaslDraft,
    remarks: &mut Vec<Remark>,
) -> Result<(), ConfigError> {
    let expected = || place.clone().fault(format!("{SASL}: expected a table [{SASL}]"));
    let table = value.get_ref().as_table().ok_or_else(expected)?;
    for (key, value) in in_order(table) {
        let place = file.place(key.span().start);
        let key = format!("{SASL}.{}", key.get_ref());
        let item = file.item(value);
        let named = named(&place, &key);
        match key.as_str() {
            "sasl.jaas_file" => draft.jaas_file = Some(value::path(&item).map_err(named)?),
            "sasl.jaas_section" => {
                draft.jaas_section = Some(text(&item, "the name of a section").map_err(named)?)
            }
            "sasl.users" => read_users(file, value, draft)?,
            "sasl.super_users" => {
                draft.super_users = texts(&item, "a list of users, such as [\"admin\"]").map_err(named)?;
            }
            "sasl.kerberos" => read_kerberos(file, value, draft, remarks)?,
            "sasl.keep_failed_clients" => draft.keeps_failed_clients = boolean(&item).map_err(named)?,
            _ => {
                let what = format!("{key} is not a setting that Paddock knows; it is ignored");
                remarks.push(place.clone().warning(what));
            }
        }
    }
    if draft.jaas_file.is_none() && draft.users.is_empty() && draft.kerberos.principal.is_none() {
        let what = "sasl: no users; add [sasl.users], [sasl.kerberos] or jaas_file";
        return Err(place.clone().fault(what));
    }
    Ok(())
}

/// `[sasl.kerberos]`.
fn read_kerberos(
    file: &File<'_>,
    value: &Spanned<DeValue<'_>>,
    draft: &mut SaslDraft,
    remarks: &mut Vec<Remark>,
) -> Result<(), ConfigError> {
    let place = file.place(value.span().start);
    let expected = || place.clone().fault("sasl.kerberos: expected a table [sasl.kerberos]");
    let table = value.get_ref().as_table().ok_or_else(expected)?;
    let draft = &mut draft.kerberos;
    for (key, value) in in_order(table) {
        let place = file.place(key.span().start);
        let key = format!("sasl.kerberos.{}", key.get_ref());
        let item = file.item(value);
        let named = named(&place, &key);
        match key.as_str() {
            "sasl.kerberos.principal" => {
                draft.principal =
                    Some(text(&item, "a principal, such as \"zookeeper/host@REALM\"").map_err(named)?);
            }
            "sasl.kerberos.keytab" => draft.keytab = Some(value::path(&item).map_err(named)?),
            "sasl.kerberos.remove_host" => draft.removes_host = boolean(&item).map_err(named)?,
            "sasl.kerberos.remove_realm" => draft.removes_realm = boolean(&item).map_err(named)?,
            "sasl.kerberos.auth_to_local" => {
                draft.auth_to_local = Some(text(&item, "rules, such as \"DEFAULT\"").map_err(named)?);
            }
            _ => {
                let what = format!("{key} is not a setting that Paddock knows; it is ignored");
                remarks.push(place.clone().warning(what));
            }
        }
    }
    Ok(())
}

/// `name = "password"` for each user.
fn read_users(
    file: &File<'_>,
    value: &Spanned<DeValue<'_>>,
    draft: &mut SaslDraft,
) -> Result<(), ConfigError> {
    let place = file.place(value.span().start);
    let expected = || place.fault("sasl.users: expected a table with each user's password");
    let Some(table) = value.get_ref().as_table() else { return Err(expected()) };
    for (user, value) in in_order(table) {
        // What stands there may be a password, and is not shown.
        let expected = || {
            let what = format!("sasl.users.{}: expected a password in quotes", user.get_ref());
            file.place(user.span().start).fault(what)
        };
        let password = value.get_ref().as_str().filter(|text| !text.is_empty()).ok_or_else(expected)?;
        draft.users.insert(user.get_ref().clone().into_owned(), password.to_owned());
    }
    Ok(())
}

fn text(value: &Item<'_>, expected: &str) -> Result<String, String> {
    let text = value.value.get_ref().as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| value::wrong(expected, value))
}
