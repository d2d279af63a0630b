use paddock_tree::slot_of;

use super::*;

/// A client that has seen nothing asks for znodes in read-only mode, in their order: one of the home group, and one of another group, which has not come as far. Returns the zxid of each
/// answer; `None` where the connection is closed.
fn told(asked: &[(bool, bool)]) -> Vec<Option<Zxid>> {
    told_after(Some(Zxid(0)), asked)
}

/// As [`told`], by a client that has greeted with this zxid; `None` if that was before znodes were spread.
fn told_after(seen: Option<Zxid>, asked: &[(bool, bool)]) -> Vec<Option<Zxid>> {
    let (home, other) = (home(), State::new(Tree::new()));
    let settled = home.tree().zxid();
    assert!(settled > other.tree().zxid());
    let views = [&home, &other].map(|state| Some(GroupView { state, settled, origin: ORIGIN }));
    let mut router = Router::new(MEMBER, false, (ORIGIN, 0));
    router.begin_spread(home.tree().zxid());
    router.work(&views, &NO_HOSTS, Zxid(0), &mut Outboxes::new(1));
    let conn = ConnId::new(0, 1);
    seen.into_iter().for_each(|zxid| assert!(router.take(ClientInput::Seen { conn, zxid }).is_none()));
    let client = Client::new(conn, SessionId(7), &[]);
    let away =
        ["a", "b", "c", "d"].into_iter().find(|name| slot_of(name).is_some_and(|slot| slot <= SLOTS / 2));
    let away = format!("/p/{}", away.unwrap());
    let mut told = Vec::new();
    for (number, (is_away, watch)) in asked.iter().enumerate() {
        let mut path = Vec::new();
        encode::path_and_watch(&mut path, if *is_away { &away } else { "/" }, *watch);
        let request = RequestId { xid: Xid(1), slot: Slot(number as u32) };
        let read = QueuedRead::new(client.clone(), request, OpCode::Exists, path);
        router.take_read_only(ReadOnlyRequest::Read(read));
        let mut out = Outboxes::new(1);
        router.work(&views, &NO_HOSTS, Zxid(0), &mut out);
        told.extend(out.iter_mut().flat_map(|(_, outbox)| outbox.iter()).map(|(_, parcel)| match parcel {
            Parcel::Reply(_, bytes) => crate::answer::zxid_of(bytes),
            _ => None,
        }));
    }
    told
}

#[test]
fn a_client_is_told_of_nothing_that_lies_behind_what_a_group_lacks_in_which_it_watches() {
    let newest = home().tree().zxid();
    const HOME: (bool, bool) = (false, false);
    const AWAY: (bool, bool) = (true, false);
    const WATCHED: (bool, bool) = (true, true);
    assert_eq!(told(&[AWAY, HOME, AWAY]), [Some(Zxid(0)), Some(newest), Some(newest)]);
    assert_eq!(told(&[WATCHED, AWAY, WATCHED]), [Some(Zxid(0)); 3]);
    assert_eq!(told(&[WATCHED, HOME]), [Some(Zxid(0)), None]);
    assert_eq!(told(&[HOME, WATCHED]), [Some(newest), None]);
    assert_eq!(told(&[(false, true), AWAY]), [Some(newest), Some(newest)]);
}

#[test]
fn a_client_that_greeted_before_znodes_were_spread_is_shown_nothing_older_than_their_beginning() {
    let newest = home().tree().zxid();
    assert_eq!(told_after(None, &[(false, false)]), [Some(newest)]);
    assert_eq!(
        told_after(None, &[(true, false)]),
        [None],
        "the other group lacks what the client may have seen"
    );
}
