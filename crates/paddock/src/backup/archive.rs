//! A backup in one file, or in one stream: its parts one behind the other, and the manifest behind them.
//!
//! Little-endian: 8 bytes magic and a u32 version; then frames, each with its length (u32), the CRC-32C of its bytes (u32), its kind (u32), and its bytes.
//! Kinds: 1 the name of a part, of which the frames behind it are; 2 bytes of the part; 3 the manifest, with which the archive ends.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use super::failure::BackupFailure;
use super::manifest::{Manifest, is_plain};

const MAGIC: &[u8; 8] = b"PADKBKUP";
const VERSION: u32 = 1;
const NAME: u32 = 1;
const BYTES: u32 = 2;
const MANIFEST: u32 = 3;
const FRAME_BYTES_MAX: usize = 1 << 20;

/// Writes the backup whose parts are in a directory.
pub(crate) fn write(dir: &Path, manifest: &Manifest, out: &mut impl Write) -> io::Result<()> {
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    for part in manifest.parts() {
        frame(NAME, part.file.as_bytes(), out)?;
        let mut file = File::open(dir.join(&part.file))?;
        let mut piece = vec![0; FRAME_BYTES_MAX / 4];
        loop {
            match file.read(&mut piece)? {
                0 => break,
                read => frame(BYTES, &piece[..read], out)?,
            }
        }
    }
    let manifest = manifest.encode();
    for piece in manifest.chunks(FRAME_BYTES_MAX) {
        frame(MANIFEST, piece, out)?;
    }
    // An empty one is the end.
    frame(MANIFEST, &[], out)?;
    out.flush()
}

fn frame(kind: u32, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).expect("a frame is limited");
    for word in [length, crc32c::crc32c(bytes), kind] {
        out.write_all(&word.to_le_bytes())?;
    }
    out.write_all(bytes)
}

/// Reads an archive at `place`, puts its parts into a directory, and returns its manifest.
pub(crate) fn read(input: &mut impl Read, place: &str, dir: &Path) -> Result<Manifest, BackupFailure> {
    let wrong = |why: String| BackupFailure::Manifest { place: place.to_owned(), why };
    let mut archive = ArchiveReader { input, place, offset: 0 };
    let head = archive.bytes(12).map_err(|failure| match failure {
        BackupFailure::Manifest { .. } => wrong("it is no backup of Paddock".to_owned()),
        other => other,
    })?;
    if &head[..8] != MAGIC {
        return Err(wrong("it is no backup of Paddock".to_owned()));
    }
    match u32_at(&head, 8) {
        VERSION => {}
        version => {
            return Err(wrong(format!(
                "it has version {version}, which this build cannot read: use the release that made it"
            )));
        }
    }
    let (mut part, mut manifest) = (None, Vec::new());
    loop {
        let (kind, bytes) = archive.frame()?;
        match (kind, &mut part) {
            (NAME, _) => {
                let name = String::from_utf8(bytes).ok().filter(|name| is_plain(name));
                let name = name.ok_or_else(|| wrong("it names a file that is no part".to_owned()))?;
                let path = dir.join(name);
                let file = File::create_new(&path).map_err(BackupFailure::io("create", path.display()))?;
                part = Some((file, path));
            }
            (BYTES, Some((file, path))) => {
                file.write_all(&bytes).map_err(BackupFailure::io("write", path.display()))?;
            }
            (MANIFEST, _) if bytes.is_empty() => return Manifest::decode(&manifest, place),
            (MANIFEST, _) if manifest.len() as u64 <= super::manifest::BYTES_MAX => {
                manifest.extend_from_slice(&bytes)
            }
            _ => {
                return Err(wrong(format!(
                    "it is damaged at offset {}: a frame is none that can stand there",
                    archive.offset
                )));
            }
        }
    }
}

struct ArchiveReader<'a, R> {
    input: &'a mut R,
    place: &'a str,
    offset: u64,
}

impl<R: Read> ArchiveReader<'_, R> {
    fn frame(&mut self) -> Result<(u32, Vec<u8>), BackupFailure> {
        let begin = self.offset;
        let damaged = |what: &str| BackupFailure::Manifest {
            place: self.place.to_owned(),
            why: format!("it is damaged at offset {begin}: {what}"),
        };
        let head = self.bytes(12)?;
        let (length, crc, kind) = (u32_at(&head, 0) as usize, u32_at(&head, 4), u32_at(&head, 8));
        if length > FRAME_BYTES_MAX {
            return Err(damaged("a frame is longer than any can be"));
        }
        let bytes = self.bytes(length)?;
        if crc32c::crc32c(&bytes) != crc {
            return Err(damaged("the checksum of a frame is wrong"));
        }
        Ok((kind, bytes))
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, BackupFailure> {
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => BackupFailure::Manifest {
                place: self.place.to_owned(),
                why: format!("it is cut off behind offset {}: the backup is incomplete", self.offset),
            },
            _ => BackupFailure::Io { action: "read", place: self.place.to_owned(), source },
        })?;
        self.offset += length as u64;
        Ok(bytes)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
