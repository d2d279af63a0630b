//! `cargo xtask dist`: what is shipped, below dist in the target directory.
//!
//! `source` says what is built, `build` compiles it, `stage` lays out the files of a machine, `archive`, `debian` and `rpm` pack them,
//! `image` puts the program into a container image, `components` and its listings say of what the program is made, `sums` closes with check sums and a signature. Reasons are on decision page 0095.

mod archive;
mod build;
mod components;
mod debian;
mod folders;
pub(crate) mod image;
mod make;
mod options;
mod reproduce;
mod rpm;
mod source;
mod stage;
mod sums;
mod target;
mod tools;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::layout::Layout;
use crate::process::Error;

use folders::Folders;
use make::{SHIPPED, make};
use source::DistSource;
use target::Target;

pub(crate) use options::{DistOptions, ImageOptions};

pub(crate) const HELP: &str = "\
Examples:
  cargo xtask dist                                  archives and packages for x86_64, in target/dist
  cargo xtask dist --sign-key release.key           the same, with check sums that are signed by minisign
  cargo xtask dist --check-reproducible             build in another folder, too, and compare every byte
  cargo xtask dist --target aarch64                 for aarch64, with Debian's compiler and standard library
  cargo xtask dist --program target/release/paddock pack what is built already, to try the packaging

What is written is named by the commit: its time is that of every file, and `paddock version --verbose` says it. Sources that were
changed since are named `changed`.
The key is one of minisign without a password; without --sign-key, that of the variable PADDOCK_SIGNING_KEY; without both, nothing is signed.
Who packages can set DEBFULLNAME and DEBEMAIL, as for other tools of Debian.
Needed beforehand: a Debian 12 with Python 3, binutils and the Rust toolchain. Zig, which links, comes from PyPI.";

pub(crate) fn run(layout: &Layout, options: &DistOptions) -> Result<bool, Error> {
    let source = DistSource::find(layout.root())?;
    let folders = Folders::of_this_checkout(layout);
    let is_same = if options.check_reproducible {
        reproduce::make_twice(layout, &source, options, &folders)?
    } else {
        make(layout, &source, options, &folders)?;
        true
    };
    let key = options.sign_key.clone().or_else(|| env::var_os(sums::KEY_VARIABLE).map(PathBuf::from));
    sums::write(layout, &folders.output, key.as_deref())?;
    Ok(is_same)
}

/// Makes an image of a program for this machine's tests; returns the variable by which they find it.
pub(crate) fn image_for_tests(layout: &Layout, program: PathBuf) -> Result<(&'static str, OsString), Error> {
    let options = ImageOptions { target: vec![Target::X86_64], program: Some(program) };
    let images = image::run(layout, &options)?;
    let image = images.into_iter().next().ok_or_else(|| Error::new("no image was made".to_owned()))?;
    Ok(("PADDOCK_IMAGE", image.into()))
}

/// Makes everything for this machine's tests, with a key of theirs; returns the variables by which they find it.
pub(crate) fn for_tests(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let folders = make_for_tests(layout, Target::X86_64)?;
    let (secret, public) = sums::key_of_tests(layout)?;
    sums::write(layout, &folders.output, Some(&secret))?;
    let mut variables = vec![("DIST", folders.output.into()), ("MINISIGN_KEY", public.into())];
    let minisign = tools::minisign(layout)?;
    variables.push(("MINISIGN", minisign.program.into()));
    variables.extend(minisign.variables);
    Ok(variables)
}

/// Makes everything for machines with aarch64; returns the variables by which tests find it, and an emulator of such a machine.
pub(crate) fn for_emulated_tests(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let folders = make_for_tests(layout, Target::Aarch64)?;
    let (emulator, libraries) = tools::emulator(layout, Target::Aarch64)?;
    Ok(vec![
        ("DIST", folders.output.into()),
        ("EMULATOR", emulator.into()),
        ("FOREIGN_LIBRARIES", libraries.into()),
    ])
}

fn make_for_tests(layout: &Layout, target: Target) -> Result<Folders, Error> {
    let source = DistSource::find(layout.root())?;
    let folders = Folders::of_this_checkout(layout);
    let options = DistOptions {
        target: vec![target],
        profile: SHIPPED.to_owned(),
        program: None,
        sign_key: None,
        check_reproducible: false,
    };
    make(layout, &source, &options, &folders)?;
    Ok(folders)
}
