//! Paths of a write, by which it is known where its znodes lie.

use paddock_proto::Write;

/// Calls `look` with each path that decides where a write belongs: of a sequential create one that ends as the name will.
pub fn for_each_path(write: &Write<'_>, look: &mut impl FnMut(&str)) {
    match write {
        Write::Create(create) => match create.mode() {
            Some(mode) if mode.is_sequential() => look(&format!("{}0000000000", create.path)),
            _ => look(create.path),
        },
        Write::Delete { path, .. }
        | Write::SetData { path, .. }
        | Write::SetAcl { path, .. }
        | Write::Check { path, .. }
        | Write::CheckNotExists { path, .. }
        | Write::CheckStat { path, .. }
        | Write::TryRemove { path, .. }
        | Write::RemoveRecursive { path, .. }
        | Write::DeleteContainer { path } => look(path),
        Write::Multi(writes) => writes.iter().for_each(|write| for_each_path(write, look)),
        _ => {}
    }
}
