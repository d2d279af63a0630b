//! The machines for which something is shipped, and their names in different worlds.

use std::env;

/// A machine for which something is shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Target {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

/// The oldest glibc with which the program runs.
pub(super) const GLIBC: &str = "2.17";

impl Target {
    /// Name of the architecture as the kernel, Rust and RPM have it.
    pub(super) fn machine(self) -> &'static str {
        match self {
            Target::X86_64 => "x86_64",
            Target::Aarch64 => "aarch64",
        }
    }

    pub(super) fn debian(self) -> &'static str {
        match self {
            Target::X86_64 => "amd64",
            Target::Aarch64 => "arm64",
        }
    }

    pub(super) fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.machine())
    }

    pub(super) fn is_of_this_machine(self) -> bool {
        self.machine() == env::consts::ARCH
    }
}
