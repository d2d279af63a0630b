//! Stamps of the files that keys and certificates are read from.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::settings::{Password, Store};

/// Times and sizes of the files when they were read. Others tell that a file has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Option<(Option<SystemTime>, u64)>>);

impl Stamps {
    pub(crate) fn of<'a>(
        stores: impl IntoIterator<Item = &'a Store>,
        others: impl IntoIterator<Item = &'a Path>,
    ) -> Stamps {
        let mut stamps = Vec::new();
        for store in stores {
            stamps.push(stamp(&store.path));
            if let Some(Password::File(path)) = &store.password {
                stamps.push(stamp(path));
            }
        }
        stamps.extend(others.into_iter().map(stamp));
        Stamps(stamps)
    }
}

fn stamp(path: &Path) -> Option<(Option<SystemTime>, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.modified().ok(), metadata.len()))
}
