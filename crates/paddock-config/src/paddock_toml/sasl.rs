//! `[sasl]`.

use toml::Spanned;
use toml::de::DeValue;

use super::super::remark::{ConfigError, Location, Remarks};
use super::super::sasl::SaslDraft;
use super::super::value;
use super::file::texts;
use super::file::{File, Item, boolean, each_key, in_order, table};

const SASL: &str = "sasl";
const KEYS: &[&str] =
    &["jaas_file", "jaas_section", "users", "super_users", "kerberos", "keep_failed_clients"];
const KERBEROS: &str = "sasl.kerberos";
const KERBEROS_KEYS: &[&str] = &["principal", "keytab", "remove_host", "remove_realm", "auth_to_local"];

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    draft: &mut SaslDraft,
    remarks: &mut Remarks,
) -> Result<(), ConfigError> {
    let table = table(value, place, SASL)?;
    each_key(file, table, (SASL, KEYS), remarks, |setting, remarks| {
        let (item, value) = (&setting.item, setting.value);
        let named = |what: String| setting.fault(what);
        match setting.key {
            "jaas_file" => draft.jaas_file = Some(value::path(item).map_err(named)?),
            "jaas_section" => {
                draft.jaas_section = Some(text(item, "the name of a section").map_err(named)?);
            }
            "users" => read_users(file, value, draft)?,
            "super_users" => {
                draft.super_users = texts(item, "a list of users, such as [\"admin\"]").map_err(named)?;
            }
            "kerberos" => read_kerberos(file, value, draft, remarks)?,
            "keep_failed_clients" => draft.keeps_failed_clients = boolean(item).map_err(named)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
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
    remarks: &mut Remarks,
) -> Result<(), ConfigError> {
    let place = file.place(value.span().start);
    let table = table(value, &place, KERBEROS)?;
    let draft = &mut draft.kerberos;
    each_key(file, table, (KERBEROS, KERBEROS_KEYS), remarks, |setting, _| {
        let item = &setting.item;
        let named = |what: String| setting.fault(what);
        match setting.key {
            "principal" => {
                let expected = "a principal, such as \"zookeeper/host@REALM\"";
                draft.principal = Some(text(item, expected).map_err(named)?);
            }
            "keytab" => draft.keytab = Some(value::path(item).map_err(named)?),
            "remove_host" => draft.removes_host = boolean(item).map_err(named)?,
            "remove_realm" => draft.removes_realm = boolean(item).map_err(named)?,
            "auth_to_local" => {
                draft.auth_to_local = Some(text(item, "rules, such as \"DEFAULT\"").map_err(named)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })
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
