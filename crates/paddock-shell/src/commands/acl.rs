//! Commands about ACLs and identities.

use paddock_client::{Acl, Id, Perms};
use serde_json::json;

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::output::{PERMISSIONS, acl_text, stat_json};
use crate::shell::Shell;
use crate::walk::Walk;

/// Reads `scheme:id:perms`, with commas between several. An id may have colons.
pub(crate) fn parse(text: &str) -> Result<Vec<Acl>, ShellFailure> {
    let wrong = |entry: &str| {
        ShellFailure::Usage(format!(
            "{entry:?} is no entry of an ACL: scheme:id:perms, as in world:anyone:cdrwa"
        ))
    };
    let entry = |entry: &str| {
        let (scheme, rest) = entry.split_once(':').ok_or_else(|| wrong(entry))?;
        let (id, letters) = rest.rsplit_once(':').ok_or_else(|| wrong(entry))?;
        let bit = |letter: char| PERMISSIONS.iter().find(|(known, _)| *known == letter).map(|(_, bit)| bit);
        let perms = letters.chars().map(bit).try_fold(0, |perms, bit| bit.map(|bit| perms | bit));
        Ok(Acl { perms: Perms(perms.ok_or_else(|| wrong(entry))?), id: Id::new(scheme.trim(), id) })
    };
    text.split(',').map(entry).collect()
}

pub(crate) async fn get(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let (acl, stat) = shell.client()?.get_acl(&path).await.map_err(ShellFailure::at(&path))?;
    let out = &shell.output;
    let entries: Vec<String> = acl.iter().map(acl_text).collect();
    if out.is_json() {
        let value = match arguments.has("s") {
            true => json!({ "path": path, "acl": entries, "stat": stat_json(&stat) }),
            false => json!(entries),
        };
        return out.line(&value.to_string());
    }
    entries.iter().try_for_each(|entry| out.line(entry))?;
    if arguments.has("s") { out.stat(&stat) } else { Ok(()) }
}

pub(crate) async fn set(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let acl = parse(arguments.at(1).expect("the table wants two"))?;
    let version = arguments.number("v")?;
    let client = shell.client()?;
    if arguments.has("R") {
        let mut first_failure = None;
        for path in Walk::paths(&client, &path).await? {
            // A refusal keeps no other znode from being changed.
            let changed = client.set_acl(&path, &acl, version).await.map_err(ShellFailure::at(&path));
            first_failure = first_failure.or(changed.err());
        }
        return first_failure.map_or(Ok(()), Err);
    }
    let stat = client.set_acl(&path, &acl, version).await.map_err(ShellFailure::at(&path))?;
    let out = &shell.output;
    match arguments.has("s") {
        true if out.is_json() => out.line(&stat_json(&stat).to_string()),
        true => out.stat(&stat),
        false => Ok(()),
    }
}

pub(crate) async fn add_auth(shell: &mut Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let scheme = arguments.at(0).expect("the table wants one").to_owned();
    let auth = arguments.at(1).unwrap_or_default().as_bytes().to_vec();
    shell.client()?.add_auth(&scheme, &auth).await.map_err(ShellFailure::at(&scheme))?;
    shell.identities.push((scheme, auth));
    Ok(())
}

pub(crate) async fn who_am_i(shell: &Shell) -> Result<(), ShellFailure> {
    let identities = shell.client()?.who_am_i().await?;
    if shell.output.is_json() {
        let list: Vec<_> = identities.iter().map(|id| json!({ "scheme": id.scheme, "id": id.id })).collect();
        return shell.output.line(&json!(list).to_string());
    }
    identities.iter().try_for_each(|id| shell.output.line(&format!("{}: {}", id.scheme, id.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acl_is_read_as_it_is_shown() {
        let text = "world:anyone:r,digest:ann:HASH=:cdrwa,ip:::1:rw";
        let acl = parse(text).unwrap();
        assert_eq!(acl.iter().map(acl_text).collect::<Vec<_>>().join(","), text);
        assert_eq!(acl[2].id, Id::new("ip", "::1"));
        for wrong in ["", "world", "world:anyone", "world:anyone:x"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("is no entry of an ACL"), "{wrong}: {error}");
        }
    }
}
