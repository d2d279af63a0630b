use paddock_server::{TracesEndpoint, Tracing};

use super::super::case::{Case, environment};

const COLLECTOR: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318");
const FILE: &str = "[tracing]\nendpoint = 'http://file:1/'\n";

/// The settings for spans that a file and an environment make together, and the warnings.
fn load(file: &str, variables: &[(&str, &str)]) -> (Option<Tracing>, Vec<String>) {
    let case = Case { environment: environment(variables), ..Case::new() };
    let loaded = case.load_as("paddock.toml", file).unwrap();
    let (config, warnings) = case.warned(loaded);
    (config.tracing, warnings)
}

#[track_caller]
fn check(file: &str, variables: &[(&str, &str)], expected: Option<(&str, &str)>) {
    let expected = expected.map(|(url, name)| Tracing {
        endpoint: TracesEndpoint::new(url).unwrap(),
        service_name: name.to_owned(),
    });
    assert_eq!(load(file, variables), (expected, vec![]), "{file} {variables:?}");
}

#[test]
fn nothing_is_exported_unless_someone_says_where() {
    check("", &[], None);
    check("", &[("OTEL_SERVICE_NAME", "x")], None);
    check("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], None);
}

#[test]
fn a_file_says_where_spans_go() {
    check(FILE, &[], Some(("http://file:1/v1/traces", "paddock")));
    let named = format!("{FILE}service_name = 'coordination'");
    check(&named, &[("OTEL_SERVICE_NAME", "x")], Some(("http://file:1/v1/traces", "coordination")));
}

#[test]
fn so_do_the_variables_of_opentelemetry() {
    let named = ("OTEL_SERVICE_NAME", "x");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://otel/traces");
    check("", &[COLLECTOR], Some(("http://otel:4318/v1/traces", "paddock")));
    check("", &[COLLECTOR, traces, named], Some(("http://otel/traces", "x")));
    check(FILE, &[COLLECTOR, traces, named], Some(("http://file:1/v1/traces", "x")));
    for disabled in ["true", "TRUE"] {
        check(FILE, &[COLLECTOR, ("OTEL_SDK_DISABLED", disabled)], None);
    }
    check("", &[COLLECTOR, ("OTEL_SDK_DISABLED", "false")], Some(("http://otel:4318/v1/traces", "paddock")));
}

#[test]
fn they_count_for_every_kind_of_file() {
    let case = Case { environment: environment(&[COLLECTOR]), ..Case::new() };
    let loaded = case.load("dataDir=/absent\nclientPort=2181\n").unwrap();
    assert!(loaded.config.tracing.is_some());
    assert!(case.load_environment().unwrap().config.tracing.is_some());
}

#[test]
fn a_variable_that_is_of_no_use_is_warned_of() {
    let (tracing, warnings) = load("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel:4318")]);
    assert_eq!(tracing, None);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let expected = "OTEL_EXPORTER_OTLP_ENDPOINT: no spans are exported: https is not spoken here";
    assert!(warning.starts_with(expected), "{warning}");
    assert_eq!(load(FILE, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel:4318")]).1, [""; 0]);
}

#[test]
fn a_wrong_value_in_a_file_is_refused() {
    for (text, expected) in [
        ("tracing = 'http://otel'", "1: tracing: expected a table [tracing]"),
        ("[tracing]\nservice_name = 'x'", "1: tracing: endpoint is missing"),
        (
            "[tracing]\nendpoint = 'otel:4318'",
            "2: tracing.endpoint: expected a URL, such as http://127.0.0.1:4318, found 'otel:4318'",
        ),
        (
            "[tracing]\nendpoint = 4318",
            "2: tracing.endpoint: expected a URL, such as http://127.0.0.1:4318, found 4318",
        ),
        (
            "[tracing]\nendpoint = 'https://otel'",
            "2: tracing.endpoint: https is not spoken here: name an endpoint with http, such as a collector on this machine \
             that passes spans on, found 'https://otel'",
        ),
        (
            "[tracing]\nendpoint = 'http://otel'\nservice_name = ''",
            "3: tracing.service_name: expected the name of a service, found ''",
        ),
    ] {
        let refused = Case::new().load_as("paddock.toml", text).unwrap_err();
        assert_eq!(refused, format!("paddock.toml:{expected}"));
    }
    let refused = Case::new().load_as("paddock.toml", format!("{FILE}sampler = 1\n")).unwrap_err();
    assert_eq!(refused, "paddock.toml:3: tracing.sampler is not a setting that Paddock knows");
}

#[test]
fn the_documentation_lists_every_variable() {
    let page = include_str!("../../../../docs/configuration.md");
    for variable in [super::TRACES_ENDPOINT, super::ENDPOINT, super::SERVICE_NAME, super::DISABLED] {
        let row = format!("| `{variable}` |");
        assert!(
            page.lines().any(|line| line.starts_with(&row)),
            "{variable} is missing in docs/configuration.md"
        );
    }
}
