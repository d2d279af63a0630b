//! The bill of materials as CycloneDX 1.5 has it.

use serde_json::{Value, json};

use super::super::source::DistSource;
use super::super::target::Target;
use super::Component;
use crate::process::Error;

/// The program, which is the subject of the bill.
const PROGRAM: &str = "paddock";

pub(super) fn text(source: &DistSource, target: Target, components: &[Component]) -> Result<String, Error> {
    let (program, others): (Vec<_>, Vec<_>) =
        components.iter().partition(|component| component.name == PROGRAM);
    let [program] = program.as_slice() else {
        return Err(Error::new("the program is not among its components"));
    };
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": source.date("+%Y-%m-%dT%H:%M:%SZ")?,
            "component": described(program, "application"),
            "properties": [
                { "name": "commit", "value": source.commit },
                { "name": "target", "value": target.triple() },
            ],
        },
        "components": others.iter().map(|component| described(component, "library")).collect::<Vec<_>>(),
        "dependencies": components.iter().map(edges).collect::<Vec<_>>(),
    });
    Ok(format!("{bill:#}\n"))
}

fn described(component: &Component, kind: &str) -> Value {
    let Component { name, version, license, repository, checksum, .. } = component;
    let mut value = json!({
        "type": kind,
        "bom-ref": reference(name, version),
        "name": name,
        "version": version,
        "licenses": [{ "expression": license }],
    });
    if let Some(checksum) = checksum {
        value["purl"] = reference(name, version).into();
        value["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = repository {
        value["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    value
}

fn edges(component: &Component) -> Value {
    let mut uses: Vec<String> =
        component.uses.iter().map(|(name, version)| reference(name, version)).collect();
    uses.sort();
    json!({ "ref": reference(&component.name, &component.version), "dependsOn": uses })
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}
