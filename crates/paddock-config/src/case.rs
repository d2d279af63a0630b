//! For tests: a configuration in a directory of its own. In what comes back the directory's name is taken out.

use std::fs;
use std::path::Path;

use paddock_server::Config;

use super::overrides::Overrides;
use super::remark::Weight;
use super::{Environment, Loaded, load};

pub(super) struct Case {
    pub(super) dir: tempfile::TempDir,
    pub(super) overrides: Overrides,
    pub(super) environment: Environment,
}

impl Case {
    pub(super) fn new() -> Case {
        Case {
            dir: tempfile::tempdir().unwrap(),
            overrides: Overrides::default(),
            environment: Environment::default(),
        }
    }

    /// With the data directory beside the file, and this in its `myid`.
    pub(super) fn with_myid(text: &str) -> Case {
        let mut case = Case::new();
        case.write("myid", text);
        case.overrides.data_dir = Some(case.path().to_owned());
        case
    }

    pub(super) fn with_environment(variables: &[(&str, &str)]) -> Case {
        Case { environment: environment(variables), ..Case::new() }
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), text).unwrap();
    }

    /// Loads a `zoo.cfg` of this text.
    pub(super) fn load(&self, text: impl AsRef<[u8]>) -> Result<Loaded, String> {
        self.load_as("zoo.cfg", text)
    }

    pub(super) fn load_as(&self, name: &str, text: impl AsRef<[u8]>) -> Result<Loaded, String> {
        self.write(name, text);
        let file = self.path().join(name);
        load(Some(&file), &self.overrides, &self.environment).map_err(|fault| self.local(&fault))
    }

    /// Loads what the environment alone says.
    pub(super) fn load_environment(&self) -> Result<Loaded, String> {
        load(None, &self.overrides, &self.environment).map_err(|fault| self.local(&fault))
    }

    /// The settings, and the warnings as they are printed.
    pub(super) fn warned(&self, loaded: Loaded) -> (Config, Vec<String>) {
        let warnings = loaded.remarks.iter().filter(|remark| remark.weight == Weight::Warning);
        let warnings = warnings.map(|remark| self.local(remark)).collect();
        (loaded.config, warnings)
    }

    pub(super) fn local(&self, text: &impl ToString) -> String {
        text.to_string().replace(&format!("{}/", self.path().display()), "")
    }
}

pub(super) fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}
