//! Places of things: the repository, the target directory, and what the tests install and write in it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::process::Program;

/// The directories of one checkout.
pub(crate) struct Layout {
    root: PathBuf,
    target: PathBuf,
}

impl Layout {
    pub(crate) fn find() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().expect("xtask is a directory of the repository").to_owned();
        // Cargo put this program into <target>/<profile>/, wherever the user has the target directory.
        let program = env::current_exe().expect("Linux tells a process its own path");
        let target = program.ancestors().nth(2).expect("a built program is two levels deep").to_owned();
        Self { root, target }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A directory or file of the repository's tests.
    pub(crate) fn tests(&self, name: &str) -> PathBuf {
        self.root.join("tests").join(name)
    }

    /// A package that starts servers in the tests of others.
    pub(crate) fn fixtures(&self, name: &str) -> PathBuf {
        self.root.join("fixtures").join(name)
    }

    /// Directory of wheels that are to be shipped.
    pub(crate) fn wheels(&self) -> PathBuf {
        self.target.join("wheels")
    }

    /// A file of the repository.
    pub(crate) fn source(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Directory in which mistakes are planted.
    pub(crate) fn breaks(&self, name: &str) -> PathBuf {
        self.target.join("breaks").join(name)
    }

    pub(crate) fn document(&self, name: &str) -> PathBuf {
        self.root.join("docs").join(name)
    }

    /// Directory of the results of a comparison.
    pub(crate) fn comparison(&self, name: &str) -> PathBuf {
        self.target.join("compare").join(name)
    }

    /// Directory of profiles, with what they are made of.
    pub(crate) fn profile(&self, name: &str) -> PathBuf {
        self.target.join("profile").join(name)
    }

    /// Directory of what is shipped.
    pub(crate) fn dist(&self) -> PathBuf {
        self.target.join("dist")
    }

    /// Directory of what is on its way to be shipped.
    pub(crate) fn dist_work(&self, name: &str) -> PathBuf {
        self.target.join("dist-work").join(name)
    }

    /// Directory of an ensemble of `members` members, unless another place is named.
    pub(crate) fn cluster(&self, members: &str) -> PathBuf {
        self.target.join("cluster").join(members)
    }

    /// A place below the target directory for what the tests install or write.
    pub(crate) fn environment(&self, name: &str) -> PathBuf {
        self.target.join("test-env").join(name)
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.environment("logs").join(format!("{name}.log"))
    }

    /// The binary under test, as the stage `build` makes it.
    pub(crate) fn paddock(&self) -> PathBuf {
        self.target.join("release").join("paddock")
    }

    /// The example that Paddock is compared with.
    pub(crate) fn bare_server(&self) -> PathBuf {
        self.target.join("release").join("examples").join("bare")
    }

    /// A binary of the tests.
    pub(crate) fn test_program(&self, name: &str) -> Program {
        Program::new(self.target.join("debug").join(name))
    }

    /// The simulator, in the profile of its own.
    pub(crate) fn simulator(&self) -> PathBuf {
        self.target.join("sim").join("paddock-sim")
    }

    /// The models of several groups, in the profile of the simulator.
    pub(crate) fn groups_model(&self) -> PathBuf {
        self.target.join("sim").join("paddock-groups-model")
    }

    /// Directory in which rustdoc puts its pages, and its JSON.
    pub(crate) fn pages_of_crates(&self) -> PathBuf {
        self.target.join("doc")
    }

    /// Directory of the site and of what it is made of.
    pub(crate) fn site(&self) -> PathBuf {
        self.target.join("site")
    }

    /// Directory of the summaries of `soak`.
    pub(crate) fn soak(&self, name: &str) -> PathBuf {
        self.target.join("soak").join(name)
    }

    /// A class path with Apache ZooKeeper's server and client, and the logging settings for both.
    pub(crate) fn class_path(&self) -> String {
        format!("{}:{}/*", self.tests("java").display(), self.environment("jars").display())
    }

    pub(crate) fn cargo(&self) -> Program {
        Program::new(cargo()).current_dir(&self.root)
    }

    /// A Cargo whose compilers leave the processors to the tests beside them.
    pub(crate) fn nice_cargo(&self, niceness: u32) -> Program {
        Program::nice(niceness, cargo()).current_dir(&self.root)
    }
}

fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
