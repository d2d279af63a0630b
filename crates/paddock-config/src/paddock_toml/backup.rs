//! `[backup]`.

use toml::Spanned;
use toml::de::DeValue;

use super::super::backup::{BACKUP, BackupDraft, KEYS};
use super::super::remark::{ConfigError, Location, Remarks};
use super::file::{File, each_key, table};

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    draft: &mut BackupDraft,
    remarks: &mut Remarks,
) -> Result<(), ConfigError> {
    let table = table(value, place, BACKUP)?;
    each_key(file, table, (BACKUP, KEYS), remarks, |setting, _| {
        draft.set(setting.key, &setting.item).map_err(|what| setting.fault(what))
    })
}
