//! Watches that are set again, in portions.

use paddock_front::Limits;
use paddock_proto::{Extensions, OpCode, SetWatches, Xid, encode};

use crate::stage::*;

/// A setWatches for znodes that are not there.
fn watches_again(paths: &[&str]) -> Vec<u8> {
    let watches = SetWatches { exist: paths.to_vec(), ..SetWatches::default() };
    request(Xid::SET_WATCHES.0, OpCode::SetWatches, |out| encode::set_watches(out, &watches))
}

#[test]
fn others_have_their_turn_while_many_watches_are_set() {
    let mut stage = FrontStage::new(Limits { watches_per_turn: 2, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    let has_more =
        |stage: &FrontStage| stage.front.condition(conn, &stage.around).expect("it is there").has_more;
    let watch_count = |stage: &FrontStage| stage.around.state.borrow().watches().count();
    stage.receive(conn, &[watches_again(&["/a", "/b", "/c", "/d", "/e"]), write(1)].concat());
    assert_eq!(watch_count(&stage), 2);
    assert!(stage.takes_input(conn) && has_more(&stage), "others have their turn");
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(watch_count(&stage), 4);
    assert!(
        stage.replies(conn).is_empty() && stage.inputs().is_empty(),
        "it is not answered before all are set"
    );
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!((watch_count(&stage), stage.replies(conn)), (5, vec![(Xid::SET_WATCHES.0, None)]));
    stage.front.resume(conn, 0, &stage.around);
    assert!(!has_more(&stage));
    assert_eq!(stage.inputs().len(), 1, "what is behind it has waited");
}

#[test]
fn many_watches_are_not_set_before_the_writes_in_front_of_them() {
    let mut stage = FrontStage::new(Limits { watches_per_turn: 1, ..Limits::default() });
    let conn = stage.connect(1, FIRST, Extensions::default());
    stage.receive(conn, &[write(1), watches_again(&["/a", "/b"])].concat());
    assert_eq!(stage.around.state.borrow().watches().count(), 0);
    assert!(!stage.takes_input(conn), "there is nothing to be done now");
    stage.engine(|out| reply(out, conn, 1));
    stage.front.deliver(&stage.around);
    assert!(stage.reached().iter().any(|reached| reached.has_changed), "its worker looks again");
    stage.front.resume(conn, 0, &stage.around);
    stage.front.resume(conn, 0, &stage.around);
    assert_eq!(stage.around.state.borrow().watches().count(), 2);
    assert_eq!(stage.replies(conn), [(1, None), (Xid::SET_WATCHES.0, None)]);
}
