//! `[etcd]`.

use paddock_server::EtcdEndpoint;
use toml::Spanned;
use toml::de::DeValue;

use super::super::etcd::EtcdDraft;
use super::super::remark::{ConfigError, Location, Remarks};
use super::super::value::{self, Value};
use super::file::texts;
use super::file::{File, Item, boolean, each_key, table};

const ETCD: &str = "etcd";
const KEYS: &[&str] = &[
    "endpoints",
    "prefix",
    "ca",
    "cert",
    "key",
    "key_password_file",
    "user",
    "password",
    "password_file",
    "txn_operations_max",
    "request_bytes_max",
    "write_timeout_ms",
    "stale_reads",
    "separate_writes",
];

pub(super) fn read(
    file: &File<'_>,
    place: &Location,
    value: &Spanned<DeValue<'_>>,
    draft: &mut EtcdDraft,
    remarks: &mut Remarks,
) -> Result<(), ConfigError> {
    let table = table(value, place, ETCD)?;
    each_key(file, table, (ETCD, KEYS), remarks, |setting, _| {
        set(draft, setting.key, &setting.item).map_err(|what| setting.fault(what))
    })
}

fn set(draft: &mut EtcdDraft, key: &str, item: &Item<'_>) -> Result<bool, String> {
    let text = || item.text().map(str::to_owned).ok_or_else(|| value::wrong("a text", item)).map(Some);
    match key {
        "endpoints" => {
            let list = texts(item, "a list of endpoints, such as [\"http://127.0.0.1:2379\"]")?;
            draft.endpoints =
                Some(list.iter().map(|text| EtcdEndpoint::parse(text)).collect::<Result<_, _>>()?);
        }
        "prefix" => draft.prefix = text()?,
        "ca" => draft.ca = Some(value::path(item)?),
        "cert" => draft.cert = Some(value::path(item)?),
        "key" => draft.key = Some(value::path(item)?),
        "key_password_file" => draft.key_password_file = Some(value::path(item)?),
        "user" => draft.user = text()?,
        "password" => draft.password = text()?,
        "password_file" => draft.password_file = Some(value::path(item)?),
        "txn_operations_max" => {
            draft.txn_operations_max = Some(value::amount(item, 16..=i32::MAX.into(), "operations")?);
        }
        "request_bytes_max" => {
            draft.request_bytes_max = Some(value::amount(item, 65_536..=i32::MAX.into(), "bytes")?);
        }
        "write_timeout_ms" => draft.write_timeout_ms = Some(value::milliseconds(item)?),
        "stale_reads" => draft.stale_reads = Some(boolean(item)?),
        "separate_writes" => draft.separate_writes = Some(boolean(item)?),
        _ => return Ok(false),
    }
    Ok(true)
}
