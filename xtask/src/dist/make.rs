//! Everything that is shipped, from the sources to packed files.

use std::fs;

use super::folders::{Folders, renew};
use super::options::DistOptions;
use super::source::DistSource;
use super::stage::Parts;
use super::{archive, build, components, debian, rpm};
use crate::layout::Layout;
use crate::process::Error;

/// Largest program that is shipped, stripped: growth is noticed. The goal is 12 MiB (decision 0095).
const PROGRAM_BYTES_MAX: u64 = 20 << 20;
/// The profile of what is shipped, in which the size is looked at.
pub(super) const SHIPPED: &str = "dist";

/// Makes everything for all targets into an empty directory.
pub(super) fn make(
    layout: &Layout,
    source: &DistSource,
    options: &DistOptions,
    folders: &Folders,
) -> Result<(), Error> {
    renew(&folders.output)?;
    for &target in &options.target {
        let work = folders.work.join(target.machine());
        renew(&work)?;
        let whole = match &options.program {
            Some(program) => program.clone(),
            None => build::program(layout, source, target, &options.profile, folders)?,
        };
        let split = build::split(layout, target, &whole, &work)?;
        let bytes = fs::metadata(&split.program).map_err(Error::io("look at", &split.program))?.len();
        println!("{}: {bytes} bytes; symbols apart: {}", target.machine(), split.symbol_bytes);
        if options.program.is_none() && options.profile == SHIPPED && bytes > PROGRAM_BYTES_MAX {
            return Err(Error::new(format!("the program has {bytes} bytes, more than {PROGRAM_BYTES_MAX}")));
        }
        let documents = build::documents(layout, &split.program, target, &work)?;
        let listings = components::write(layout, source, target, &folders.root, &work)?;
        let parts = Parts { root: folders.root.clone(), split, documents, listings };
        archive::write(source, &parts, target, &work, &folders.output)?;
        debian::write(source, &parts, target, &work, &folders.output)?;
        rpm::write(layout, source, &parts, target, &work, &folders.output)?;
    }
    Ok(())
}
