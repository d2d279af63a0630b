//! The end of a distribution: SHA-256 sums of all files, signed if there is a key.

use std::fs;
use std::path::{Path, PathBuf};

use super::tools;
use crate::layout::Layout;
use crate::process::{Error, Program};

/// The variable that names a secret key.
pub(super) const KEY_VARIABLE: &str = "PADDOCK_SIGNING_KEY";
const SUMS: &str = "SHA256SUMS";

/// Writes the sums of what is in a directory, and their signature beside them.
pub(super) fn write(layout: &Layout, output: &Path, key: Option<&Path>) -> Result<(), Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(output).map_err(Error::io("list", output))? {
        names.push(entry.map_err(Error::io("list", output))?.file_name());
    }
    names.sort();
    let sums = Program::new("sha256sum").current_dir(output).args(&names).output()? + "\n";
    print!("{sums}");
    let file = output.join(SUMS);
    fs::write(&file, sums).map_err(Error::io("write", &file))?;
    let Some(key) = key else {
        println!("not signed: no --sign-key");
        return Ok(());
    };
    let sign = tools::minisign(layout)?.program().arg("-S").arg("-s").arg(key);
    sign.args(["-t", "check sums of Paddock", "-m"]).arg(&file).output().map(drop)
}

/// A secret key without a password, and its public key, which only tests have.
pub(super) fn key_of_tests(layout: &Layout) -> Result<(PathBuf, PathBuf), Error> {
    let directory = layout.dist_work("key-of-tests");
    fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
    let (secret, public) = (directory.join("key"), directory.join("key.pub"));
    let generate = tools::minisign(layout)?.program().args(["-G", "-W", "-f", "-s"]).arg(&secret);
    generate.arg("-p").arg(&public).output()?;
    Ok((secret, public))
}
