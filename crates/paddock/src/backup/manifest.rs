//! The manifest of a backup: its parts with their checksums, and from where to where they go.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::failure::BackupFailure;

pub(crate) const NAME: &str = "manifest.json";
const FORMAT: &str = "paddock-backup";
const VERSION: u32 = 1;
/// A manifest is smaller: a part of the log takes some hundred bytes.
pub(super) const BYTES_MAX: u64 = 64 << 20;

/// Content of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: String,
    version: u32,
    /// Version of the program that made it.
    made_by: String,
    /// The member that it is from.
    pub(crate) source: String,
    /// Id of the ensemble in hexadecimal digits; none of a member alone.
    pub(crate) cluster: Option<String>,
    pub(crate) snapshot: SnapshotPart,
    /// The log behind the snapshot, in its order. Each part begins with the last entry of what is before it.
    pub(crate) logs: Vec<LogPart>,
    /// SHA-256 of the manifest without it, in hexadecimal digits.
    checksum: String,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// Name of the file beside the manifest.
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotPart {
    pub(crate) part: Part,
    /// The last entry in it, and its term.
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) zxid: i64,
    /// Time at which it was taken already: nothing in it was written later.
    pub(crate) time_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogPart {
    pub(crate) part: Part,
    /// The first entry, which what is before it has too.
    pub(crate) first: u64,
    /// The last entry, its term, and the CRC-32C of its payload.
    pub(crate) last: u64,
    pub(crate) term: u64,
    pub(crate) last_crc: u32,
    /// Zxid of the state behind it.
    pub(crate) zxid: i64,
    /// Time at which it was asked for: everything that was written before is in it.
    pub(crate) time_ms: i64,
}

/// End of a backup: what a next part of the log has to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackupEnd {
    pub(crate) index: u64,
    pub(crate) term: u64,
    /// CRC-32C of the last entry's payload, if that is known.
    pub(crate) crc: Option<u32>,
    pub(crate) zxid: i64,
    pub(crate) time_ms: i64,
}

impl Manifest {
    pub(crate) fn new(source: String, cluster: Option<u64>, snapshot: SnapshotPart) -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            source,
            cluster: cluster.map(|cluster| format!("{cluster:016x}")),
            snapshot,
            logs: Vec::new(),
            checksum: String::new(),
        }
    }

    pub(crate) fn end(&self) -> BackupEnd {
        match self.logs.last() {
            Some(&LogPart { last: index, term, last_crc, zxid, time_ms, .. }) => {
                BackupEnd { index, term, crc: Some(last_crc), zxid, time_ms }
            }
            None => {
                let SnapshotPart { index, term, zxid, time_ms, .. } = self.snapshot;
                BackupEnd { index, term, crc: None, zxid, time_ms }
            }
        }
    }

    /// True if the snapshot is of several Raft groups, and stands in no log that could go on behind it.
    pub(crate) fn is_of_groups(&self) -> bool {
        self.snapshot.index == 0
    }

    /// All files, the snapshot first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.snapshot.part).chain(self.logs.iter().map(|log| &log.part))
    }

    /// The manifest as the bytes of its file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let whole = Manifest { checksum: self.checksum(), ..self.clone() };
        let mut bytes = serde_json::to_vec_pretty(&whole).expect("a manifest can be written as JSON");
        bytes.push(b'\n');
        bytes
    }

    fn checksum(&self) -> String {
        let bare = Manifest { checksum: String::new(), ..self.clone() };
        hexadecimal(&Sha256::digest(serde_json::to_vec(&bare).expect("a manifest can be written as JSON")))
    }

    /// Reads the bytes of the file at `place`, and checks that they go together.
    pub(crate) fn decode(bytes: &[u8], place: &str) -> Result<Manifest, BackupFailure> {
        let wrong = |why: String| BackupFailure::Manifest { place: place.to_owned(), why };
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| wrong(format!("it is damaged: {error}")))?;
        if value.get("format").and_then(|format| format.as_str()) != Some(FORMAT) {
            return Err(wrong("it is not that of a backup of Paddock".to_owned()));
        }
        if value.get("version").and_then(serde_json::Value::as_u64) != Some(VERSION.into()) {
            let version = value.get("version").cloned().unwrap_or_default();
            return Err(wrong(format!(
                "it has version {version}, which this build cannot read: use the release that made it"
            )));
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|error| wrong(format!("it is damaged: {error}")))?;
        if manifest.checksum != manifest.checksum() {
            return Err(wrong("it is damaged: its checksum is wrong".to_owned()));
        }
        if manifest.encode() != bytes {
            return Err(wrong("it is damaged: bytes of it are missing or others".to_owned()));
        }
        // Names come from outside: none leads to another directory.
        if let Some(part) = manifest.parts().find(|part| !is_plain(&part.file)) {
            return Err(wrong(format!("it names a file {:?}, which is no name of a part", part.file)));
        }
        let mut reached = (manifest.snapshot.index, manifest.snapshot.zxid);
        for log in &manifest.logs {
            if log.first > reached.0 + 1 || log.last < reached.0 || log.zxid < reached.1 {
                return Err(wrong(format!("{} does not follow what is before it", log.part.file)));
            }
            reached = (log.last, log.zxid);
        }
        Ok(manifest)
    }
}

impl Part {
    /// The part that a file is.
    pub(crate) fn of(path: &Path) -> io::Result<Part> {
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let (bytes, sha256) = digest(path)?;
        Ok(Part { file, bytes, sha256 })
    }

    /// Makes sure that a file is this part.
    pub(crate) fn verify(&self, path: &Path) -> Result<(), BackupFailure> {
        let place = path.display().to_string();
        let (bytes, sha256) = digest(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => BackupFailure::Missing { place: place.clone() },
            _ => BackupFailure::Io { action: "read", place: place.clone(), source },
        })?;
        if bytes != self.bytes {
            return Err(BackupFailure::Length { place, bytes, expected: self.bytes });
        }
        if sha256 != self.sha256 {
            return Err(BackupFailure::Checksum { place });
        }
        Ok(())
    }
}

fn digest(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash, mut bytes) = (File::open(path)?, Sha256::new(), 0);
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((bytes, hexadecimal(&hash.finalize()))),
            read => {
                hash.update(&piece[..read]);
                bytes += read as u64;
            }
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// True for a name that stands for a file in the same directory, and for nothing else.
pub(super) fn is_plain(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_usual) && name.len() <= 200
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(file: &str) -> Part {
        Part { file: file.to_owned(), bytes: 3, sha256: "00".to_owned() }
    }

    fn manifest() -> Manifest {
        let snapshot = SnapshotPart { part: part("snapshot"), index: 10, term: 2, zxid: 100, time_ms: 1000 };
        let log = |first, last| LogPart {
            part: part("log"),
            first,
            last,
            term: 2,
            last_crc: 7,
            zxid: 100 + last as i64,
            time_ms: 2000,
        };
        Manifest {
            logs: vec![log(10, 20), log(20, 20), log(20, 35)],
            ..Manifest::new("a:1".to_owned(), Some(0xab), snapshot)
        }
    }

    #[track_caller]
    fn refused(bytes: &[u8], expected: &str) {
        let refused = Manifest::decode(bytes, "x/manifest.json").expect_err("it is wrong").to_string();
        assert!(refused.contains(expected) && refused.contains("x/manifest.json"), "{refused}");
    }

    #[test]
    fn a_manifest_comes_back_and_every_change_of_it_is_noticed() {
        let text = String::from_utf8(manifest().encode()).expect("it is text");
        let read = Manifest::decode(text.as_bytes(), "").expect("it is whole");
        assert_eq!(
            (&read.snapshot, &read.logs, &read.cluster),
            (&manifest().snapshot, &manifest().logs, &manifest().cluster)
        );
        assert_eq!(read.end(), BackupEnd { index: 35, term: 2, crc: Some(7), zxid: 135, time_ms: 2000 });
        refused(text.replace("\"zxid\": 100", "\"zxid\": 101").as_bytes(), "its checksum is wrong");
        refused(&text.as_bytes()[..text.len() - 10], "damaged");
        refused(b"{}", "not that of a backup");
        refused(text.replace("\"version\": 1", "\"version\": 9").as_bytes(), "version 9");
    }

    #[test]
    fn names_and_places_that_cannot_be_are_refused() {
        for name in ["../secret", "/etc/passwd", "", ".", "..", ".hidden", "a/b", "a\0b"] {
            let mut wrong = manifest();
            wrong.snapshot.part.file = name.to_owned();
            refused(&wrong.encode(), "no name of a part");
        }
        let mut gap = manifest();
        gap.logs.remove(0);
        refused(&gap.encode(), "does not follow");
    }
}
