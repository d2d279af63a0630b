//! Objects that the chart makes of a set of values.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use paddock_tests::server::environment;
use paddock_yaml::{Node, Value};

#[derive(Debug)]
pub(crate) struct Rendered {
    text: String,
    objects: Vec<Node>,
}

pub(crate) fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/paddock")
}

/// Runs Helm on the chart with values; its output, or what it complains of.
pub(crate) fn helm(arguments: &[&str], values: &[&str]) -> Result<String, String> {
    let mut helm = Command::new(environment("HELM_BIN"));
    // Helm keeps files below the home directory.
    let directory = tempfile::tempdir().expect("make a directory");
    helm.env("HOME", directory.path()).args(arguments).arg(chart());
    helm.args(values.iter().flat_map(|value| ["--set", value]));
    let output = helm.output().expect("run helm");
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(told(&output.stdout))
    } else {
        Err(told(&output.stdout) + &told(&output.stderr))
    }
}

impl Rendered {
    pub(crate) fn of(options: &[&str], values: &[&str]) -> Result<Rendered, String> {
        let words = ["template", "x", "--namespace", "ns", "--kube-version", "1.31.0"];
        Ok(Rendered::parse(helm(&[&words, options].concat(), values)?))
    }

    fn parse(text: String) -> Rendered {
        let objects = text.split("---\n").filter(|text| text.contains("kind:"));
        let objects = objects.map(|text| paddock_yaml::parse(text).expect("it is YAML")).collect();
        Rendered { text, objects }
    }

    /// These objects with other text in them.
    pub(crate) fn replaced(&self, from: &str, to: &str) -> Rendered {
        assert!(self.text.contains(from), "{from}");
        Rendered::parse(self.text.replace(from, to))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Compares every object with the schema of its kind.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("make a file");
        fs::write(file.path(), &self.text).expect("write the objects");
        let schemas = environment("KUBERNETES_SCHEMAS");
        let schemas =
            format!("{schemas}/{{{{.ResourceKind}}}}-{{{{.Group}}}}-{{{{.ResourceAPIVersion}}}}.json");
        let mut validate = Command::new(environment("KUBECONFORM_BIN"));
        validate.args(["-strict", "-summary", "-schema-location", &schemas]).arg(file.path());
        let output = validate.output().expect("run kubeconform");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = format!("Summary: {} resources found in 1 file - Valid: {0}, ", self.objects.len());
        if output.status.success() && told.contains(&all) { Ok(()) } else { Err(told) }
    }

    /// The object of a kind that is no hook, or the only one.
    pub(crate) fn object(&self, kind: &str) -> Object<'_> {
        let mut of_kind = self.of_kind(kind);
        of_kind.sort_by_key(Object::is_hook);
        *of_kind.first().unwrap_or_else(|| panic!("there is no {kind}"))
    }

    pub(crate) fn hook(&self, kind: &str) -> Object<'_> {
        self.of_kind(kind).into_iter().find(Object::is_hook).expect("there is a hook")
    }

    fn of_kind(&self, kind: &str) -> Vec<Object<'_>> {
        self.objects.iter().map(Object).filter(|object| object.get("kind").text() == kind).collect()
    }

    /// The file that pods are given.
    pub(crate) fn settings(&self) -> String {
        self.object("ConfigMap").at("data").get("paddock.toml").text().to_owned()
    }
}

/// A part of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object<'a>(&'a Node);

impl<'a> Object<'a> {
    /// The part at a path of fields and places, with points between them.
    #[track_caller]
    pub(crate) fn at(self, path: &str) -> Object<'a> {
        path.split('.').fold(self, |object, name| object.get(name))
    }

    #[track_caller]
    pub(crate) fn get(self, name: &str) -> Object<'a> {
        self.find(name).unwrap_or_else(|| panic!("there is no {name} in {:?}", self.0))
    }

    fn find(self, name: &str) -> Option<Object<'a>> {
        match &self.0.value {
            Value::Mapping(entries) => {
                entries.iter().find(|entry| entry.key == name).map(|entry| Object(&entry.value))
            }
            Value::Sequence(nodes) => nodes.get(name.parse::<usize>().ok()?).map(Object),
            Value::Scalar(_) => None,
        }
    }

    fn is_hook(&self) -> bool {
        let annotations = self.get("metadata").find("annotations");
        annotations.is_some_and(|annotations| annotations.find("helm.sh/hook").is_some())
    }

    #[track_caller]
    pub(crate) fn text(self) -> &'a str {
        match &self.0.value {
            Value::Scalar(text) => text,
            other => panic!("it is {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn texts(self) -> Vec<&'a str> {
        match &self.0.value {
            Value::Sequence(nodes) => nodes.iter().map(|node| Object(node).text()).collect(),
            other => panic!("it is {other:?}"),
        }
    }

    /// All of it, without its place in the file.
    pub(crate) fn to_owned(self) -> String {
        match &self.0.value {
            Value::Scalar(text) => format!("{text:?}"),
            Value::Sequence(nodes) => {
                nodes.iter().map(|node| format!("- {}\n", Object(node).to_owned())).collect()
            }
            Value::Mapping(entries) => {
                let entry = |entry: &paddock_yaml::Entry| {
                    format!("{}: {}\n", entry.key, Object(&entry.value).to_owned())
                };
                entries.iter().map(entry).collect()
            }
        }
    }
}
