//! Names of tenants, which are looked up for each request without being copied, and what of a request says them.

use std::fmt;
use std::net::IpAddr;

use hashbrown::Equivalent;
use paddock_proto::IdList;

/// A request, as limits of rate see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RatedRequest<'a> {
    /// Empty if it is about none.
    pub(crate) path: &'a str,
    pub(crate) ids: IdList<'a>,
    pub(crate) address: IpAddr,
    pub(crate) bytes: usize,
}

/// A tenant as a request or a rule names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TenantName<'a> {
    Text(&'a str),
    /// In its canonical form.
    Address(IpAddr),
}

/// A name that a table keeps, hashed as one that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TenantKey {
    Text(Box<str>),
    Address(IpAddr),
}

impl TenantKey {
    pub(super) fn name(&self) -> TenantName<'_> {
        match self {
            TenantKey::Text(text) => TenantName::Text(text),
            TenantKey::Address(address) => TenantName::Address(*address),
        }
    }
}

impl From<&TenantName<'_>> for TenantKey {
    fn from(name: &TenantName<'_>) -> TenantKey {
        match name {
            TenantName::Text(text) => TenantKey::Text((*text).into()),
            TenantName::Address(address) => TenantKey::Address(*address),
        }
    }
}

impl Equivalent<TenantKey> for TenantName<'_> {
    fn equivalent(&self, key: &TenantKey) -> bool {
        *self == key.name()
    }
}

impl fmt::Display for TenantName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TenantName::Text(text) => f.write_str(text),
            TenantName::Address(address) => address.fmt(f),
        }
    }
}
