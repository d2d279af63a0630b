use std::io::Write as _;

use super::*;
use crate::workload::model::Model;
use crate::workload::{NextRequest, ReplyVerdict};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/bench/recorded.csv");

fn load_text(text: &str, speed: Option<f64>) -> Result<Replay, BenchError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    load(file.path(), "/replay", speed)
}

/// Znodes that setup makes below the root.
fn setup(replay: &Replay) -> Vec<String> {
    let below = |znode: PreparedZnode| znode.path.strip_prefix("/replay").unwrap().to_owned();
    replay.setup().map(below).filter(|path| !path.is_empty()).collect()
}

/// One request after the other from each session in turn: `operation error` of each, with `!` if it is not as recorded.
fn play(replay: &Replay) -> Vec<String> {
    let mut model = Model::of(replay);
    let mut lanes = replay.lanes(replay.sessions());
    let (names, mut answers, mut frame) = (replay.operations(), Vec::new(), Vec::new());
    while !lanes.is_empty() {
        lanes.retain_mut(|lane| {
            let (next, answer) = model.turn(lane.as_mut(), &mut frame);
            if let Some((operation, verdict, error)) = answer {
                let mark = if verdict == ReplyVerdict::Bad { "!" } else { "" };
                answers.push(format!("{} {error}{mark}", names[operation.0]));
            }
            next != NextRequest::Done
        });
    }
    answers
}

/// Rows of `session,xid,op_num,path,error` with what else is needed behind them.
fn check_answers(rows: &str, expected_setup: &[&str], expected: &[&str]) {
    let replay = load_text(&format!("session_id,xid,op_num,path,error\n{rows}"), None).unwrap();
    assert_eq!(setup(&replay), expected_setup, "{rows}");
    assert_eq!(play(&replay), expected, "{rows}");
}

fn refused(text: &str, speed: Option<f64>, expected: &str) {
    let error = load_text(text, speed).unwrap_err();
    let shown = match &error {
        BenchError::InFile { line, message, .. } => format!("{line}: {message}"),
        other => other.to_string(),
    };
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn the_example_is_answered_as_recorded() {
    let replay = load(Path::new(EXAMPLE), "/replay", None).unwrap();
    assert_eq!((replay.sessions(), replay.requests(), replay.name().as_str()), (2, 13, "recorded.csv"));
    assert_eq!(replay.roots(), ["/replay"]);
    assert!(play(&replay).iter().all(|answer| !answer.ends_with('!')), "{:?}", play(&replay));
    assert!(setup(&replay).contains(&"/clickhouse/tables/hits/metadata".to_string()));
    assert!(!setup(&replay).contains(&"/clickhouse/tables/hits/dropped".to_string()));
}

#[test]
fn requests_come_by_their_xids() {
    check_answers("5,2,2,/a/b,0\n5,1,1,/a/b,0\n", &["/a"], &["create 0", "delete 0"]);
}

#[test]
fn setup_makes_what_was_found() {
    check_answers("1,1,Get,/a/b,ZOK\n", &["/a", "/a/b"], &["get 0"]);
    check_answers("1,1,Get,/a/b,ZNONODE\n", &[], &["get -101"]);
    check_answers("1,1,Create,/a/b,ZNODEEXISTS\n", &["/a", "/a/b"], &["create -110"]);
    check_answers("1,1,Create,/a/b,ZNONODE\n", &[], &["create -101"]);
    check_answers(
        "1,1,Get,/a,ZNONODE\n1,2,Create,/a,ZOK\n1,3,Get,/a,\n",
        &[],
        &["get -101", "create 0", "get 0"],
    );
    check_answers("1,1,Get,/zookeeper/quota,ZOK\n", &["/zookeeper", "/zookeeper/quota"], &["get 0"]);
}

#[test]
fn an_answer_that_differs_is_bad_if_one_was_recorded() {
    check_answers("1,1,Create,/a,ZNONODE\n", &[], &["create 0!"]);
    check_answers(
        "1,1,Create,/a,ZOK\n1,2,Create,/a,\n1,3,Create,/a,-4\n",
        &[],
        &["create 0", "create -110", "create -110"],
    );
}

#[test]
fn a_multi_takes_its_rows() {
    let header = "session_id,xid,op_num,path,error,requests_size,version,is_sequential\n";
    let check = |rows: &str, expected: &[&str]| {
        assert_eq!(play(&load_text(&format!("{header}{rows}"), None).unwrap()), expected, "{rows}");
    };
    check("1,1,14,,0,2,,\n1,1,1,/a,0,0,,0\n1,1,1,/a/b-,0,0,,1\n1,2,3,/a,0,0,,\n", &["multi 0", "exists 0"]);
    // Neither the create nor what follows it was carried out.
    check(
        "1,1,14,,-110,3,,\n1,1,1,/a,0,,,\n1,1,1,/b,-110,,,\n1,1,5,/c,-2,,,\n1,2,3,/a,-101,,,\n",
        &["multi -110", "exists -101"],
    );
    check("1,1,14,,-103,1,,\n1,1,13,/a,,0,7,\n", &["multi -103"]);
    check("1,1,14,,-103,1,,\n1,1,13,/a,-103,0,7,\n", &["multi -103"]);
    // Its header says nothing of the error in its body.
    check("1,1,22,,-101,1,,\n1,1,4,/a,-101,0,,\n", &["multi_read 0"]);
    check("1,1,22,,0,1,,\n1,1,4,/a,-101,0,,\n", &["multi_read 0!"]);
}

#[test]
fn rows_of_clickhouses_own_table_are_understood() {
    let text = "hostname,type,event_time_microseconds,request_idx,session_id,xid,op_num,path,requests_size,zxid\n\
                h,Request,2026-11-20 10:00:00.000002,2,9,1,Create,/a/b,0,\\N\n\
                h,Request,2026-11-20 10:00:00.000002,1,9,1,Create,/a,0,\\N\n\
                h,Request,2026-11-20 10:00:00.000002,0,9,1,Multi,,2,\\N\n\
                h,Response,2026-11-20 10:00:00.000005,0,9,1,Multi,,2,77\n\
                h,Request,2026-11-20 10:00:00.000001,0,9,-2,Heartbeat,,0,\\N\n\
                h,Finalize,2026-11-20 10:00:00.000001,0,9,3,Get,/b,0,\\N\n";
    assert_eq!(play(&load_text(text, Some(1.0)).unwrap()), ["multi 0"]);
}

#[test]
fn names_that_were_given_during_the_recording_are_not_set_up() {
    let text = "session_id,xid,op_num,path,is_sequential,error\n\
                1,1,Create,/q/n-,1,0\n1,2,Remove,/q/n-0000000041,0,0\n1,3,Get,/q/m-0000000041,0,0\n";
    let replay = load_text(text, None).unwrap();
    assert_eq!(setup(&replay), ["/q", "/q/m-0000000041"]);
    assert_eq!(play(&replay), ["create 0", "delete -101!", "get 0"]);
}

#[test]
fn with_a_speed_each_request_has_its_time() {
    let text = "session_id,xid,op_num,path,request_event_time\n\
                1,1,Create,/a,100.5\n2,1,Get,/a,101\n1,2,Get,/a,102.5\n";
    let due = |speed| {
        let replay = load_text(text, speed).unwrap();
        let (mut model, mut frame) = (Model::of(&replay), Vec::new());
        let mut lane = replay.lanes(1).remove(0);
        std::iter::from_fn(|| {
            Some(model.turn(lane.as_mut(), &mut frame).0).filter(|next| *next != NextRequest::Done)
        })
        .filter_map(|next| match next {
            NextRequest::At(due) => Some(due.as_millis()),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(due(Some(1.0)), [0, 2000]);
    assert_eq!(due(Some(4.0)), [0, 500]);
    assert_eq!(due(None), [0u128; 0]);
}

#[test]
fn bad_rows_are_named_with_their_line() {
    let header = "session_id,xid,op_num,path,error,has_watch,requests_size\n";
    let check = |row: &str, expected: &str| {
        refused(&format!("{header}1,1,Get,/a,0,0,0\n{row}\n"), None, &format!("3: {expected}"));
    };
    check("1,x,Get,/a,0,0,0", "`xid` must be a number, not `x`");
    check("1,2,CheckNotExists,/a,0,0,0", "`CheckNotExists` is no operation that can be replayed");
    check("1,2,Get,a,0,0,0", "`a`: path does not start with /");
    check("1,2,Get,/a,ZBAD,0,0", "`ZBAD` is no error of ZooKeeper's");
    check("1,2,Get,/a,0,2,0", "`2` is neither 0 nor 1");
    check("1,2,Get,/a", "4 columns, but the header has 7");
    check("1,2,Multi,,0,0,2\n1,2,Create,/a,0,0,0", "a multi of 2 requests has 1 rows after it");
    let multi = "1,2,Multi,,0,0,1\n1,2,Get,/a,0,0,0\n";
    refused(&format!("{header}{multi}"), None, "3: a Multi cannot hold a Get");
}

#[test]
fn what_is_wrong_with_a_whole_file_is_said() {
    refused("session_id,op_num,path\n", None, "1: there is no column `xid`");
    refused("", None, "1: there is no column `session_id`");
    refused("session_id,xid,op_num,path\n", None, "1: no requests");
    let text = "session_id,xid,op_num,path\n1,1,Get,/a\n";
    let message = "2: no `request_event_time`; without one, the log can only be replayed without a speed";
    refused(text, Some(1.0), message);
    refused(text, Some(0.0), "a speed of 0 is not possible; give a number above 0");
    let error = load(Path::new("/does/not/exist.csv"), "/replay", None).unwrap_err();
    assert_eq!(error.to_string(), "read recorded requests /does/not/exist.csv");
}
