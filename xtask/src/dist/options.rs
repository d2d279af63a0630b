//! The command lines of `cargo xtask dist` and `cargo xtask image`.

use std::path::PathBuf;

use super::target::Target;

#[derive(Debug, clap::Args)]
pub(crate) struct DistOptions {
    /// Architecture, can be given twice
    #[arg(long, value_enum, default_values_t = [Target::X86_64])]
    pub(super) target: Vec<Target>,
    /// Cargo's profile
    #[arg(long, value_name = "NAME", default_value = "dist")]
    pub(super) profile: String,
    /// Pack this program, which is built already, for the first target
    #[arg(long, value_name = "FILE", conflicts_with = "check_reproducible")]
    pub(super) program: Option<PathBuf>,
    /// Secret key of minisign for the check sums [default: $PADDOCK_SIGNING_KEY]
    #[arg(long, value_name = "FILE")]
    pub(super) sign_key: Option<PathBuf>,
    /// Build in two folders, and compare all that is written
    #[arg(long)]
    pub(super) check_reproducible: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImageOptions {
    /// Architecture, can be given twice
    #[arg(long, value_enum, default_values_t = [Target::X86_64])]
    pub(super) target: Vec<Target>,
    /// Put this program into the image, which is built already, for the first target
    #[arg(long, value_name = "FILE")]
    pub(super) program: Option<PathBuf>,
}
