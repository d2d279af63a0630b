//! Helm, kubeconform, and schemas of the objects that the chart makes.
//!
//! All of it comes from Go's modules: the programs are compiled, the schemas are cut out of the API's description in Kubernetes' own module, and
//! out of the definitions in those of cert-manager and of Prometheus' operator. kubeconform would download schemas from elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use paddock_yaml::{Node, Value as Yaml};
use serde_json::{Map, Value, json};

use super::{go, once, read};
use crate::layout::Layout;
use crate::process::{Error, Program};

const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.19.0";
const KUBECONFORM: &str = "github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7";
const KUBERNETES: &str = "k8s.io/kubernetes@v1.31.4";
const CERT_MANAGER: &str = "github.com/cert-manager/cert-manager@v1.16.2";
const PROMETHEUS_OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator@v0.79.2";

/// Kinds of Kubernetes' own.
const KINDS: [&str; 6] = [
    "io.k8s.api.apps.v1.StatefulSet",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Service",
    "io.k8s.api.core.v1.ServiceAccount",
    "io.k8s.api.policy.v1.PodDisruptionBudget",
];

/// Definitions of kinds that others add, in their modules.
const DEFINITIONS: [(&str, &str); 3] = [
    (CERT_MANAGER, "deploy/crds/crd-certificates.yaml"),
    (PROMETHEUS_OPERATOR, "jsonnet/prometheus-operator/servicemonitors-crd.json"),
    (PROMETHEUS_OPERATOR, "jsonnet/prometheus-operator/prometheusrules-crd.json"),
];

/// Returns the variables by which tests find the programs and the schemas.
pub(crate) fn install(layout: &Layout) -> Result<Vec<(&'static str, OsString)>, Error> {
    let directory = layout.environment("kubernetes");
    let (programs, schemas) = (directory.join("bin"), directory.join("schemas"));
    let sources = [HELM, KUBECONFORM, KUBERNETES, CERT_MANAGER, PROMETHEUS_OPERATOR].join(", ");
    once(&directory, &sources, || {
        let log = layout.log("install-kubernetes");
        let variables = go(layout)?;
        for program in [HELM, KUBECONFORM] {
            let install = Program::new("nice").args(["go", "install", "-buildvcs=false", program]);
            install.envs(&variables).env("GOBIN", &programs).log_to(&log).run()?;
        }
        fs::create_dir_all(&schemas).map_err(Error::io("create", &schemas))?;
        let api = module(KUBERNETES, &variables)?.join("api/openapi-spec/swagger.json");
        let api = parse_json(&api)?;
        KINDS.iter().try_for_each(|kind| write_own(&api, kind, &schemas))?;
        for (name, file) in DEFINITIONS {
            write_added(&module(name, &variables)?.join(file), &schemas)?;
        }
        Ok(())
    })?;
    Ok(vec![
        ("HELM_BIN", programs.join("helm").into()),
        ("KUBECONFORM_BIN", programs.join("kubeconform").into()),
        ("KUBERNETES_SCHEMAS", schemas.into()),
    ])
}

/// Downloads a module; returns its directory.
fn module(name: &str, variables: &[(&'static str, OsString)]) -> Result<PathBuf, Error> {
    let told = Program::new("go").args(["mod", "download", "-json", name]).envs(variables).output()?;
    let told: Value = serde_json::from_str(&told).map_err(|error| Error::new(format!("{name}: {error}")))?;
    let directory = told["Dir"].as_str().ok_or_else(|| Error::new(format!("{name} has no directory")))?;
    Ok(directory.into())
}

fn parse_json(path: &Path) -> Result<Value, Error> {
    serde_json::from_str(&read(path)?).map_err(|error| Error::new(format!("{}: {error}", path.display())))
}

/// Writes the schema of a kind, with the definitions that it refers to.
fn write_own(api: &Value, name: &str, schemas: &Path) -> Result<(), Error> {
    let definition = |name: &str| api["definitions"][name].clone();
    let mut needed = BTreeSet::from([name.to_owned()]);
    let mut waiting = vec![name.to_owned()];
    while let Some(next) = waiting.pop() {
        let mut found = Vec::new();
        references(&definition(&next), &mut found);
        waiting.extend(found.into_iter().filter(|name| needed.insert(name.clone())));
    }
    let definitions: Map<String, Value> =
        needed.iter().map(|name| (name.clone(), strict(definition(name), name))).collect();
    let schema = json!({ "$ref": format!("#/definitions/{name}"), "definitions": definitions });
    let kind = &definition(name)["x-kubernetes-group-version-kind"][0];
    let text = |key: &str| kind[key].as_str().unwrap_or_default().to_owned();
    write(&schema, (&text("group"), &text("version"), &text("kind")), schemas)
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            found.extend(name.and_then(|name| name.strip_prefix("#/definitions/")).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// A definition that allows no other fields, and numbers where the API takes them as text, too.
fn strict(mut definition: Value, name: &str) -> Value {
    if name.ends_with(".IntOrString") || name.ends_with(".Quantity") {
        return json!({ "type": ["string", "number"] });
    }
    close(&mut definition);
    definition
}

/// Allows no fields but those that are named.
fn close(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    let is_int_or_string = fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let is_open = fields.contains_key("additionalProperties")
        || fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if is_int_or_string {
        *schema = json!({ "type": ["string", "number"] });
        return;
    }
    if fields.contains_key("properties") && !is_open {
        fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(close);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            close(inner);
        }
    }
}

/// Writes the schema of a kind that a definition adds.
fn write_added(file: &Path, schemas: &Path) -> Result<(), Error> {
    let definition = if file.extension().is_some_and(|extension| extension == "json") {
        parse_json(file)?
    } else {
        let tree = paddock_yaml::parse(&read(file)?);
        to_json(&tree.map_err(|error| Error::new(format!("{}: {error}", file.display())))?)
    };
    let spec = &definition["spec"];
    let version = &spec["versions"][0];
    let mut schema = version["schema"]["openAPIV3Schema"].clone();
    // Its definition leaves this open.
    schema["properties"]["metadata"] = json!({ "type": "object", "additionalProperties": true });
    close(&mut schema);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = (&*text(&spec["group"]), &*text(&version["name"]), &*text(&spec["names"]["kind"]));
    write(&schema, kind, schemas)
}

fn write(schema: &Value, (group, version, kind): (&str, &str, &str), schemas: &Path) -> Result<(), Error> {
    // As kubeconform calls the group without a name.
    let group = if group.is_empty() { version } else { group };
    let path = schemas.join(format!("{kind}-{group}-{version}.json").to_lowercase());
    fs::write(&path, schema.to_string()).map_err(Error::io("write", &path))
}

/// A schema, whose scalars are numbers and flags at some keys only.
fn to_json(node: &Node) -> Value {
    match &node.value {
        Yaml::Scalar(text) => Value::String(text.clone()),
        Yaml::Sequence(nodes) => nodes.iter().map(to_json).collect(),
        Yaml::Mapping(entries) => {
            let entry =
                |entry: &paddock_yaml::Entry| (entry.key.clone(), typed(&entry.key, to_json(&entry.value)));
            Value::Object(entries.iter().map(entry).collect())
        }
    }
}

fn typed(key: &str, value: Value) -> Value {
    let Some(text) = value.as_str() else { return value };
    let is_number = key.starts_with("min") || key.starts_with("max");
    match text {
        "true" | "false" if key.starts_with("x-kubernetes-") || key == "nullable" => {
            Value::Bool(text == "true")
        }
        _ if is_number => text.parse::<i64>().map_or(value.clone(), Value::from),
        _ => value,
    }
}
