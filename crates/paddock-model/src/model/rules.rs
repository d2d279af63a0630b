//! Rules that look at nothing but the request.

use paddock_proto::{Acl, CreateMode, ErrorCode, Id, OpCode};

use crate::Wish;

pub(super) fn resolve(list: &[Acl], ids: &[Id]) -> Result<Vec<Acl>, ErrorCode> {
    let mut unique: Vec<&Acl> = Vec::new();
    for entry in list {
        if !unique.contains(&entry) {
            unique.push(entry);
        }
    }
    let mut resolved = Vec::new();
    for entry in unique {
        match (entry.id.scheme.as_str(), entry.id.id.as_str()) {
            ("world", "anyone") => resolved.push(entry.clone()),
            ("auth", _) => {
                let proved: Vec<&Id> = ids
                    .iter()
                    .filter(|id| ["digest", "sasl", "x509"].contains(&id.scheme.as_str()))
                    .collect();
                if proved.is_empty() {
                    return Err(ErrorCode::InvalidAcl);
                }
                resolved.extend(proved.into_iter().map(|id| Acl { perms: entry.perms, id: id.clone() }));
            }
            ("x509", id) if id.contains('=') => resolved.push(entry.clone()),
            ("sasl", id) if !id.contains('@') => resolved.push(entry.clone()),
            ("digest", id) if id.split(':').count() == 2 => resolved.push(entry.clone()),
            _ => return Err(ErrorCode::InvalidAcl),
        }
    }
    if resolved.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(resolved) }
}

pub(super) fn fits(expected: i32, actual: i32) -> Result<(), ErrorCode> {
    if expected == -1 || expected == actual { Ok(()) } else { Err(ErrorCode::BadVersion) }
}

pub(super) fn cannot_be_decoded(wish: &Wish) -> bool {
    let fits_in_multi = |wish: &Wish| match wish {
        Wish::Create { op, flags, .. } => {
            *op == OpCode::CreateTtl || CreateMode::from_flags(*flags).is_some()
        }
        Wish::Delete { .. } | Wish::SetData { .. } | Wish::Check { .. } => true,
        Wish::CheckNotExists { .. } | Wish::CheckStat { .. } => true,
        Wish::TryRemove { .. } | Wish::RemoveRecursive { .. } => true,
        _ => false,
    };
    match wish {
        Wish::Broken => true,
        Wish::Multi(wishes) => !wishes.iter().all(fits_in_multi),
        _ => false,
    }
}

/// A TTL mode must come with a TTL.
pub(super) fn cannot_be_in_multi(wish: &Wish) -> bool {
    matches!(wish, Wish::Create { op, flags: 5 | 6, .. } if *op != OpCode::CreateTtl)
}

pub(super) fn as_in_multi(wish: &Wish) -> Wish {
    let mut wish = wish.clone();
    if let Wish::Create { op, flags, .. } = &mut wish {
        if *flags == 4 && *op != OpCode::CreateIfNotExists {
            *op = OpCode::CreateContainer;
        } else if *op == OpCode::CreateTtl && *flags < 4 {
            *op = OpCode::Create;
        }
    }
    wish
}

pub(super) fn is_special(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config")
}

pub(super) fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'))
}

/// Path before the last slash.
pub(super) fn up(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The root has two names.
pub(super) fn real(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

pub(super) fn len(data: &Option<Vec<u8>>) -> usize {
    data.as_ref().map_or(0, Vec::len)
}
