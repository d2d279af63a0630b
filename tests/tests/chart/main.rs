//! The Helm chart: linted, rendered and validated by the real programs, and the settings that it makes, read by the real Paddock.
//!
//! HELM_BIN and KUBECONFORM_BIN are the programs, KUBERNETES_SCHEMAS has a schema of each kind.

mod rendered;

use std::fs;
use std::process::Command;

use paddock_tests::server::environment;
use rendered::{Rendered, chart, helm};

/// Value sets that an operator may have.
const SETS: &[(&str, &[&str])] = &[
    ("as it is", &[]),
    ("one member", &["replicas=1"]),
    ("five members", &["replicas=5", "antiAffinity=required", "persistence.storageClass=fast"]),
    ("two steps down", &["replicas=5", "members=3"]),
    (
        "settings",
        &[
            "settings.connections_max=1000",
            "settings.words={srvr,mntr}",
            "settings.log=debug",
            "ensembleSettings.linearizable_reads=true",
        ],
    ),
    (
        "TLS from cert-manager",
        &["tls.members.enabled=true", "tls.clients.enabled=true", "tls.certManager.issuerName=ca"],
    ),
    (
        "TLS from secrets",
        &[
            "tls.members.enabled=true",
            "tls.members.secretName=a",
            "tls.clients.enabled=true",
            "tls.clients.secretName=b",
            "tls.clients.clientAuth=need",
        ],
    ),
    (
        "monitoring",
        &[
            "metrics.serviceMonitor.enabled=true",
            "metrics.serviceMonitor.labels.release=prometheus",
            "metrics.rules.enabled=true",
            "metrics.dashboard.enabled=true",
        ],
    ),
    (
        "a place for each",
        &[
            "service.type=LoadBalancer",
            "service.annotations.a=b",
            "podAnnotations.a=b",
            "podLabels.a=b",
            "nodeSelector.disk=fast",
            "priorityClassName=high",
            "tolerations[0].key=only",
            "tolerations[0].operator=Exists",
            "imagePullSecrets[0].name=registry",
            "topologySpreadConstraints[0].maxSkew=1",
            "topologySpreadConstraints[0].topologyKey=zone",
            "topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key=a",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator=Exists",
            "serviceAccount.name=theirs",
            "podDisruptionBudget.enabled=false",
            "fullnameOverride=keeper",
        ],
    ),
];

#[test]
fn every_set_of_values_is_linted() {
    for (name, values) in SETS {
        let linted = helm(&["lint", "--strict", "--kube-version", "1.31.0"], values);
        linted.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// At an installation and at an upgrade, which has a job more.
#[test]
fn every_set_of_values_makes_objects_that_kubernetes_takes() {
    for (name, values) in SETS {
        for options in [&[][..], &["--is-upgrade"]] {
            let rendered = Rendered::of(options, values).unwrap_or_else(|error| panic!("{name}: {error}"));
            rendered.validate().unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn an_object_with_a_mistake_is_noticed() {
    let rendered = Rendered::of(&[], &[]).expect("render");
    for (right, wrong) in [
        ("serviceName:", "serviceNames:"),
        ("replicas: 3", "replicas: three"),
        ("publishNotReadyAddresses: true", "publishNotReadyAddresses: 'yes'"),
    ] {
        let error = rendered.replaced(right, wrong).validate().expect_err(wrong);
        assert!(error.contains("is invalid"), "{error}");
    }
}

/// Files of TLS stand where the test has them, and not where a pod has them.
#[test]
fn every_pod_can_use_its_settings() {
    let directory = tempfile::tempdir().expect("make a directory");
    for purpose in ["members", "clients"] {
        write_keys(&directory.path().join(purpose));
    }
    for (name, values) in SETS {
        let rendered = Rendered::of(&[], values).unwrap_or_else(|error| panic!("{name}: {error}"));
        let settings = rendered.settings().replace("\"/tls/", &format!("\"{}/", directory.path().display()));
        let settings = settings.replace("\"/data\"", &format!("\"{}/data\"", directory.path().display()));
        let file = directory.path().join("paddock.toml");
        fs::write(&file, &settings).expect("write the settings");
        let members = settings.matches("[[ensemble.member]]").count();
        for id in 1..=members {
            let mut check = Command::new(environment("PADDOCK_BIN"));
            check.args(["server", "--check", "--config"]).arg(&file).env("ZOO_MY_ID", id.to_string());
            let output = check.output().expect("run paddock");
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}, member {id}: {told}\n{settings}");
        }
    }
}

fn write_keys(directory: &std::path::Path) {
    fs::create_dir_all(directory).expect("make a directory");
    let made = rcgen::generate_simple_self_signed(["*.x-paddock-members.ns.svc.cluster.local".to_owned()]);
    let made = made.expect("make a certificate");
    for (name, text) in [
        ("tls.crt", made.cert.pem()),
        ("ca.crt", made.cert.pem()),
        ("tls.key", made.signing_key.serialize_pem()),
    ] {
        fs::write(directory.join(name), text).expect("write a file of TLS");
    }
}

/// Pods are not restarted for another list: restarts and the list would wait for each other.
#[test]
fn another_list_of_members_restarts_no_pod_and_other_settings_do() {
    let pod = |values: &[&str]| {
        let rendered = Rendered::of(&[], values).expect("render");
        rendered.object("StatefulSet").at("spec.template").to_owned()
    };
    assert_eq!(pod(&["replicas=1"]), pod(&["replicas=5"]));
    assert_ne!(pod(&[]), pod(&["settings.connections_max=1000"]));
    assert_ne!(pod(&[]), pod(&["ensembleSettings.linearizable_reads=true"]));
}

#[test]
fn an_upgrade_waits_until_those_who_go_have_left() {
    let is_there = |options: &[&str]| {
        let rendered = Rendered::of(options, &["replicas=3"]).expect("render");
        rendered.text().contains("kind: Job")
    };
    assert!(!is_there(&[]), "there is nobody to leave");
    assert!(is_there(&["--is-upgrade"]));
    let rendered = Rendered::of(&["--is-upgrade"], &["replicas=5", "members=3"]).expect("render");
    let job = rendered.object("Job");
    let arguments = job.at("spec.template.spec.containers.0.args").texts();
    assert_eq!(arguments, ["members", "x-paddock:2181", "--none-but", "1,2,3", "--within", "4m"]);
    assert_eq!(job.at("metadata.annotations").get("helm.sh/hook").text(), "pre-upgrade");
    let weight = |object: rendered::Object<'_>| -> i32 {
        object.at("metadata.annotations").get("helm.sh/hook-weight").text().parse().expect("a number")
    };
    let list = rendered.hook("ConfigMap");
    assert!(weight(list) < weight(job), "the list changes before it is waited for");
    assert_eq!(list.at("data").get("paddock.toml").text(), rendered.settings(), "both lists are the same");
}

#[test]
fn pods_have_no_rights_and_write_nowhere_but_to_their_disk() {
    let rendered = Rendered::of(&["--is-upgrade"], &[]).expect("render");
    for kind in ["StatefulSet", "Job"] {
        let pod = rendered.object(kind).at("spec.template.spec");
        assert_eq!(pod.at("automountServiceAccountToken").text(), "false");
        assert_eq!(pod.at("securityContext.runAsNonRoot").text(), "true");
        assert_eq!(pod.at("securityContext.seccompProfile.type").text(), "RuntimeDefault");
        let container = pod.at("containers.0.securityContext");
        assert_eq!(container.at("readOnlyRootFilesystem").text(), "true");
        assert_eq!(container.at("allowPrivilegeEscalation").text(), "false");
        assert_eq!(container.at("capabilities.drop").texts(), ["ALL"]);
    }
}

#[test]
fn values_that_cannot_be_meant_are_refused() {
    for (values, expected) in [
        (&["replicas=0"][..], "replicas"),
        (&["replica=3"], "replica"),
        (&["settings.listen=0.0.0.0:1"], "listen"),
        (&["ensembleSettings.reconfig_enabled=true"], "reconfig_enabled"),
        (&["antiAffinity=yes"], "antiAffinity"),
        (&["leaveJob.within=soon"], "within"),
        (&["tls.members.enabled=true"], "tls.certManager.issuerName"),
    ] {
        let error = Rendered::of(&[], values).map(|_| ()).expect_err(expected);
        assert!(error.contains(expected), "{values:?}: {error}");
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let text = fs::read_to_string(chart().join("Chart.yaml")).expect("read Chart.yaml");
    for line in [
        concat!("version: ", env!("CARGO_PKG_VERSION")),
        concat!("appVersion: \"", env!("CARGO_PKG_VERSION"), "\""),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}
