//! Text files of a configuration.

use std::fs;
use std::path::Path;

use super::properties;
use super::remark::{ConfigError, Location, cannot_read};

/// The text of a file. Anything else, such as a key store or a program, is refused: parts of it would be taken for keys.
pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    let bytes = fs::read(file).map_err(|error| cannot_read(file, &error))?;
    let is_text = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c');
    match bytes.iter().position(|byte| !is_text(byte)) {
        None => Ok(properties::decode(bytes)),
        Some(at) => {
            let what = format!(
                "this is not a text file (byte 0x{:02x} at offset {at}): a configuration is a zoo.cfg, or by its name .toml, .xml, \
                 .yaml or .yml, in UTF-8",
                bytes[at]
            );
            Err(Location::new(file).fault(what))
        }
    }
}
