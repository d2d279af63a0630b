use std::collections::HashMap;

use paddock_proto::{Extensions, OpCode};

use super::*;
use crate::workload::model::Model;
use crate::workload::{NextRequest, ReplyVerdict};

fn example(name: &str) -> KeeperFile {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/bench").join(name)).unwrap()
}

fn parse(text: &str) -> Result<KeeperFile, BenchError> {
    read::file(Path::new("f.yaml"), text)
}

/// Plays `requests` turns of several lanes at once; everything must be answered well. How often each operation came.
fn play(workload: &KeeperWorkload, lanes: usize, requests: usize) -> HashMap<String, usize> {
    let mut model = Model::of(workload);
    let mut lanes = workload.lanes(lanes);
    let (names, mut counts, mut frame) = (workload.operations(), HashMap::new(), Vec::new());
    for turn in 0..requests {
        let lane = turn % lanes.len();
        let (_, answer) = model.turn(lanes[lane].as_mut(), &mut frame);
        let (operation, verdict, error) = answer.expect("lanes of this kind always send");
        assert_eq!((verdict, error), (ReplyVerdict::Good, 0), "{} {frame:?}", names[operation.0]);
        *counts.entry(names[operation.0].clone()).or_default() += 1;
    }
    counts
}

fn check_share(counts: &HashMap<String, usize>, names: &[&str], expected: f64) {
    let all: usize = counts.values().sum();
    let of: usize = names.iter().map(|name| counts.get(*name).copied().unwrap_or(0)).sum();
    let share = of as f64 / all as f64;
    assert!((share - expected).abs() < 0.01, "{names:?} are {share} of {counts:?}, expected {expected}");
}

/// A file with these requests, over a setup with `/a` and two children of it.
fn with_requests(requests: &str) -> String {
    format!(
        "setup: {{node: {{name: a, node: [{{name: x}}, {{name: y, tag: t}}]}}}}\ngenerator:\n  requests:\n{requests}"
    )
}

fn refused(text: &str, expected: &str) {
    let refusal = parse(text).map_or_else(|error| error.to_string(), |file| format!("{file:?}"));
    assert_eq!(refusal, format!("f.yaml:{expected}"), "{text}");
}

#[test]
fn the_examples_say_what_they_say() {
    let file = example("mixed.yaml");
    assert_eq!((file.sessions(), file.window(), file.hosts().len()), (4, 4, 4));
    assert_eq!(file.until(), Until { time: Some(Duration::from_secs(60)), requests: Some(100_000) });
    assert_eq!(file.session_timeout(), Some(Duration::from_secs(30)));
    assert_eq!(file.connection_timeout(), Some(Duration::from_secs(5)));
    assert!(file.output.stdout && file.output.file.as_ref().unwrap().with_timestamp);
    let workload = file.workload(1);
    assert_eq!(workload.name(), "mixed.yaml");
    assert_eq!(workload.operations(), ["create", "delete", "set", "get", "list", "multi", "multi_read"]);
    assert_eq!((workload.roots(), workload.setup().count()), (vec!["/bench".to_string()], 204));

    let file = example("tagged.yaml");
    assert_eq!((file.sessions(), file.window(), file.seed), (3, 11, Some(7)));
    assert_eq!(file.hosts(), ["localhost:2181", "localhost:2182", "localhost:2183"]);
    assert_eq!(file.until(), Until { time: None, requests: Some(50_000) });
    assert_eq!(file.workload(1).roots(), ["/tree", "/tasks"]);
}

#[test]
fn no_request_of_the_examples_fails() {
    let counts = play(&example("mixed.yaml").workload(3), 4, 100_000);
    check_share(&counts, &["get"], 0.60);
    check_share(&counts, &["list"], 0.10);
    check_share(&counts, &["set"], 0.10);
    check_share(&counts, &["create"], 0.05);
    check_share(&counts, &["delete"], 0.05);
    check_share(&counts, &["multi"], 0.08);
    check_share(&counts, &["multi_read"], 0.02);

    let counts = play(&example("tagged.yaml").workload(3), 3, 100_000);
    check_share(&counts, &["create", "delete"], 0.10);
    check_share(&counts, &["set"], 0.30);
}

#[test]
fn short_names_never_collide() {
    let text = with_requests("    create: {path: [/a, /], name_length: {min_value: 1, max_value: 2}}\n");
    play(&parse(&text).unwrap().workload(1), 20, 100_000);
}

#[test]
fn creates_with_removals_keep_the_tree_small() {
    let text =
        with_requests("    create: {path: /a, remove_factor: 0.9}\n    get: {path: {children_of: /a}}\n");
    let workload = parse(&text).unwrap().workload(1);
    let (mut model, mut lane, mut frame) = (Model::of(&workload), workload.lanes(1).remove(0), Vec::new());
    for _ in 0..100_000 {
        let (_, answer) = model.turn(lane.as_mut(), &mut frame);
        assert_eq!(answer.unwrap().1, ReplyVerdict::Good);
        assert!(model.len() < 50);
    }
}

#[test]
fn a_session_repeats_from_the_seed() {
    let frames = |seed, session| {
        let workload = example("mixed.yaml").workload(seed);
        let (mut model, mut lane, mut all) =
            (Model::of(&workload), workload.lanes(session + 1).remove(session), Vec::new());
        for _ in 0..1000 {
            let mut frame = Vec::new();
            let (next, _) = model.turn(lane.as_mut(), &mut frame);
            assert!(matches!(next, NextRequest::Send(_)));
            all.push(frame);
        }
        (workload.setup().collect::<Vec<_>>(), all)
    };
    assert_eq!(frames(1, 0), frames(1, 0));
    assert_eq!(frames(1, 0).0, frames(1, 1).0);
    assert_ne!(frames(1, 0).1, frames(1, 1).1);
    assert_ne!(frames(1, 0), frames(2, 0));
}

#[test]
fn requests_wait_for_the_znodes_that_others_create() {
    let text = with_requests(
        "    create: {path: /a/x, weight: 1}\n    get: {path: {children_of: /a/x}, weight: 99}\n",
    );
    let workload = parse(&text).unwrap().workload(1);
    let (mut model, mut lane, mut frame) = (Model::of(&workload), workload.lanes(1).remove(0), Vec::new());
    let (_, answer) = model.turn(lane.as_mut(), &mut frame);
    assert_eq!(workload.operations()[answer.unwrap().0.0], "create");
    check_share(&play(&workload, 1, 20_000), &["get"], 0.99);
}

#[test]
fn a_watch_is_asked_for_as_often_as_said() {
    let text = with_requests("    get: {path: /a, watch_probability: 0.25}\n");
    let workload = parse(&text).unwrap().workload(1);
    let (mut model, mut lane, mut frame) = (Model::of(&workload), workload.lanes(1).remove(0), Vec::new());
    let mut watches = 0;
    for _ in 0..10_000 {
        model.turn(lane.as_mut(), &mut frame);
        assert_eq!(frame[8..12], OpCode::GetData.code().to_be_bytes());
        watches += usize::from(*frame.last().unwrap());
    }
    assert!((2300..2700).contains(&watches), "{watches}");
}

#[test]
fn older_spellings_and_places_are_understood() {
    let file = parse(
        "concurrency: '20'\niterations: 0\ndelay: 4\ntimelimit: 300\ncontinue_on_errors: true\n\
         connections:\n  operation_timeout_ms: 3000\n  connection_timeout_ms: 40000\n\
         \x20 connection: {secure: false, host: 'a:1', sessions: 3, connection_timeout_ms: 50000}\n  host: b:2\n\
         generator:\n  setup:\n    node: {name: a}\n    node_2: {name: b}\n\
         \x20 requests: {list: {path: /a}, list: {path: [/b, /a], path: /}}\noutput: {file: out.json}\n",
    )
    .unwrap();
    assert_eq!((file.report_delay, file.time_limit), (Duration::from_secs(4), Duration::from_secs(300)));
    assert!(file.continue_on_error);
    assert_eq!(file.until(), Until { time: Some(Duration::from_secs(300)), requests: None });
    assert_eq!(file.hosts(), ["a:1", "a:1", "a:1", "b:2"]);
    assert_eq!((file.sessions(), file.window()), (4, 5));
    assert_eq!(file.connections[0].connection_timeout, Some(Duration::from_secs(50)));
    assert_eq!(file.connections[1].connection_timeout, Some(Duration::from_secs(40)));
    assert_eq!(file.connections[0].operation_timeout, Some(Duration::from_secs(3)));
    assert_eq!(file.output.file, Some(OutputFile { path: "out.json".into(), with_timestamp: false }));
    assert_eq!((file.setup.len(), file.requests.len()), (2, 2));
}

#[test]
fn more_sessions_than_requests_in_flight_are_not_opened() {
    let file = "concurrency: 2\nconnections: {connection: {host: 'a:1', sessions: 5}}\n";
    let file = parse(&format!("{file}{}", with_requests("    get: {path: /a}"))).unwrap();
    assert_eq!((file.sessions(), file.window()), (2, 1));
}

#[test]
fn wrong_settings_are_named_with_their_line() {
    let good = with_requests("    get: {path: /a}\n");
    refused(&format!("{good}\niteratons: 5"), "6: unknown key `iteratons`; did you mean `iterations`?");
    refused(
        &format!("{good}concurrency: many"),
        "5: `concurrency` must be a whole number, 0 or more, not `many`",
    );
    refused(&format!("{good}concurrency: 0"), "5: `concurrency` must be at least 1");
    refused(&format!("{good}pipeline_depth: 0"), "5: `pipeline_depth` must be at least 1");
    refused(
        &format!("{good}timelimit: -1"),
        "5: `timelimit` must be a number of seconds, 0 or more, not `-1`",
    );
    refused(
        &format!("{good}continue_on_error: maybe"),
        "5: `continue_on_error` must be true or false, not `maybe`",
    );
    refused(
        &format!("{good}delay: 1\nreport_delay: 1"),
        "5: this is given in line 6 already; leave one of them out",
    );
    refused("concurrency: 1", "1: `generator` is missing");
    refused("generator:\n  seed: 1", "1: `requests` is missing");
}

#[test]
fn what_is_not_supported_is_refused() {
    let good = with_requests("    get: {path: /a}\n");
    let message = |key: &str| format!("`{key}` is not supported; leave it out or set it to false");
    for key in ["secure", "use_compression", "use_xid_64"] {
        let file = format!("{good}connections:\n  {key}: true");
        match key {
            "secure" => refused(&file, &format!("6: {}", message(key))),
            // On all connections, but not on some.
            _ => drop(parse(&file).unwrap()),
        }
        let connection = format!("{good}connections:\n  connection:\n    host: a:1\n    {key}: true");
        refused(&connection, &format!("8: {}", message(key)));
    }
    let slip = format!("{good}connections: {{connection_timout_ms: 1}}");
    refused(&slip, "5: unknown key `connection_timout_ms`; did you mean `connection_timeout_ms`?");
    refused(&format!("{good}connections: {{host: 'fdb://'}}"), "5: `fdb://` must be host:port");
    refused(&format!("{good}connections: {{connection: {{sessions: 1}}}}"), "5: `host` is missing");
}

#[test]
fn a_file_may_ask_for_what_is_clickhouses() {
    let good = with_requests("    get: {path: /a}\n");
    let none = Extensions::default();
    for (text, expected) in [
        ("", none),
        ("connections: {use_compression: false, use_xid_64: false}", none),
        ("enable_tracing: true", Extensions { tracing: true, ..none }),
        ("connections: {use_compression: true}", Extensions { compression: true, ..none }),
        ("connections: {use_xid_64: true}", Extensions { wide_xids: true, ..none }),
    ] {
        assert_eq!(parse(&format!("{good}{text}")).unwrap().extensions, expected, "{text}");
    }
}

#[test]
fn wrong_requests_are_named_with_their_line() {
    let check = |requests: &str, expected: &str| refused(&with_requests(requests), expected);
    check("", "3: there are no requests here; add a create, set, get or list");
    check("    remove: {path: /a}", "4: unknown key `remove`; known here: create, set, get, list, multi");
    check("    get:\n      path: /a\n      wieght: 2", "6: unknown key `wieght`; did you mean `weight`?");
    check("    get:\n      weight: 2", "4: `path` is missing");
    check("    get: {path: a}", "4: `a`: path does not start with /");
    check("    get: {path: /a/}", "4: `/a/`: path ends with /");
    check("    get: {path: {}}", "4: `path` needs a string, or one of `children_of` and `tagged`");
    check("    set: {path: /a}", "4: `data` is missing");
    check("    get: {path: /a, weight: 0}", "3: all weights are 0; nothing could be chosen");
    check(
        "    create: {path: /a, remove_factor: 2}",
        "4: `remove_factor` must be a number from 0 to 1, not `2`",
    );
    check("    create: {path: /a, name_length: 0}", "4: a name needs at least one letter");
    check(
        "    create: {path: /a, name_length: {min_value: 5, max_value: 4}}",
        "4: `max_value` must be at least `min_value`, 5",
    );
    check(
        "    create: {path: /a, data: {random_string: {size: x}}}",
        "4: `size` must be a whole number, 0 or more, not `x`",
    );
}

#[test]
fn wrong_multis_are_named_with_their_line() {
    let check = |requests: &str, expected: &str| refused(&with_requests(requests), expected);
    check("    multi: {size: 3}", "4: there are no requests here; add a create, set, get or list");
    check("    multi: {size: 0, get: {path: /a}}", "4: a multi needs at least one request");
    check("    multi:\n      multi: {get: {path: /a}}", "5: a multi cannot hold another multi");
    check(
        "    multi:\n      set: {path: /a, data: x}\n      get: {path: /a}",
        "6: a multi holds either reads or writes; put this one into a multi of its own",
    );
}

#[test]
fn paths_that_nothing_makes_are_named_with_their_line() {
    let check = |requests: &str, expected: &str| refused(&with_requests(requests), expected);
    check(
        "    get:\n      path:\n        - /a\n        - children_of: /b",
        "7: neither `setup` nor a create makes anything below `/b`",
    );
    check(
        "    get: {path: {children_of: /a/x}}",
        "4: neither `setup` nor a create makes anything below `/a/x`",
    );
    check("    get: {path: {tagged: u}}", "4: neither `setup` nor a create makes anything with the tag `u`");
    check(
        "    create: {path: /a/x}\n    create: {path: {children_of: /a/x}}",
        "5: `setup` does not create anything below `/a/x`, and a create needs parents that it does",
    );
    check(
        "    create: {path: /a/x, weight: 0}\n    get: {path: {children_of: /a/x}}",
        "3: no request can be the first: each needs a znode that another one creates",
    );
}
