//! Clients that come back and set their watches again.

use paddock_proto::{Perms, Stat};

use super::*;

/// Ben's watches on the data of `/a/x`, its coming, and on the children of `/a`.
fn watching(data: &[&str], exist: &[&str], children: &[&str]) -> Watching {
    let mut watching = Watching::default();
    data.iter().for_each(|path| watching.watch_data(path));
    exist.iter().for_each(|path| watching.watch_exist(path));
    children.iter().for_each(|path| watching.watch_children(path));
    watching
}

impl HandMadeRun {
    /// `/a/x`, which was created at 10, gets this version.
    fn set_data(&mut self, zxid: i64, version: i32) {
        let (path, data) = ("/a/x".to_owned(), Some(b"e".to_vec()));
        let (czxid, mzxid, data_length) = (Zxid(10), Zxid(zxid), 1);
        let stat = Stat { czxid, mzxid, version, data_length, ..Stat::default() };
        let wish = Wish::SetData { path, data, version: -1 };
        self.log(B, zxid, SessionId::NONE, wish, Ok(WriteReply::Changed { stat }));
    }

    /// Ben has a new connection. It knows everything up to a zxid, and asks for these watches.
    fn come_back(&mut self, known: i64, watching: Watching, caught_up: &[(EventKind, &str)], zxid: i64) {
        let ids = vec![Id::new("ip", "10.0.0.1")];
        self.history.note(client(BEN), BEN, Happening::Begins { ids, watching: Box::new(watching) });
        let ask = Ask::SetWatches { relative_zxid: Zxid(known) };
        let mut request = self.ask(BEN, ask);
        request.ids = vec![Id::new("ip", "10.0.0.1")];
        for (kind, path) in caught_up {
            self.told(BEN, Zxid::NONE.0, *kind, path);
        }
        self.answer(BEN, request, zxid, None, &[]);
    }
}

#[test]
fn what_the_session_was_shown_with_the_same_zxid_is_not_told_again() {
    let story = |is_told: bool| {
        let mut story = HandMadeRun::new();
        story.write(B, 10, BEN, create("/a/x", 0), created("/a/x"));
        story.come_back(10, watching(&[], &[], &["/a"]), &[], 10);
        story.write(B, 20, ANN, create("/a/y", 0), created("/a/y"));
        if is_told {
            story.told(BEN, 20, EventKind::NodeChildrenChanged, "/a");
        }
        story.read(BEN, 20, names(&["x", "y"]), false);
        story
    };
    story(true).holds();
    story(false).fails("was not told");
}

#[test]
fn each_watch_of_a_znode_is_told_of_by_itself() {
    let story = |caught_up: &[(EventKind, &str)], is_told: bool| {
        let mut story = HandMadeRun::new();
        story.write(B, 10, BEN, create("/a/x", 0), created("/a/x"));
        story.come_back(10, watching(&["/a/x"], &["/a/x"], &[]), caught_up, 10);
        let (path, data) = ("/a/x".to_owned(), Some(b"e".to_vec()));
        story.log(
            B,
            20,
            SessionId::NONE,
            Wish::SetData { path, data, version: 3 },
            Err(ErrorCode::BadVersion),
        );
        story.log(B, 21, SessionId::NONE, delete("/a/x"), done());
        if is_told {
            story.told(BEN, 21, EventKind::NodeDeleted, "/a/x");
        }
        story.read(BEN, 21, missing("/a/x"), false);
        story
    };
    let created = (EventKind::NodeCreated, "/a/x");
    story(&[created], true).holds();
    story(&[created], false).fails("was not told");
    story(&[], true).fails("but not NodeCreated");
    story(&[created, (EventKind::NodeDataChanged, "/a/x")], false).fails("has not come about");
}

#[test]
fn a_znode_may_come_and_go_before_its_watch_is_set_and_not_later() {
    let story = |latest: i64, is_told: bool| {
        let mut story = HandMadeRun::new();
        story.write(B, 10, BEN, create("/a/y", 0), created("/a/y"));
        story.log(B, 20, SessionId::NONE, create("/a/x", 0), created("/a/x"));
        story.log(B, 21, SessionId::NONE, delete("/a/x"), done());
        story.latest = Zxid(latest);
        story.come_back(10, watching(&[], &["/a/x"], &[]), &[], 10);
        if is_told {
            story.told(BEN, 20, EventKind::NodeCreated, "/a/x");
        }
        story.read(BEN, 30, names(&["y"]), false);
        story
    };
    story(10, true).holds();
    story(10, false).fails("was not told");
    story(21, true).holds();
    story(21, false).holds();
    // The last of the states has the znode: whenever its watch was set, that is told.
    story(20, false).fails("was not told");
}

#[test]
fn a_watch_may_be_set_behind_a_change_that_the_client_is_not_to_be_told_of() {
    let ann = Id::new("digest", "ann:meMUxltk+OnqVz5fejUAykzSaNA=");
    let story = |latest: i64, is_told: bool| {
        let mut story = HandMadeRun::new();
        let mut secret = create("/a/x", 0);
        if let Wish::Create { acl, .. } = &mut secret {
            *acl = vec![
                Acl { perms: Perms(Perms::ALL.0 & !Perms::READ.0), id: Id::new("world", "anyone") },
                Acl { perms: Perms::READ, id: ann.clone() },
            ];
        }
        story.log(B, 10, SessionId::NONE, secret, created("/a/x"));
        story.set_data(15, 1);
        story.set_data(20, 2);
        story.latest = Zxid(latest);
        story.come_back(10, watching(&["/a/x"], &[], &[]), &[], 16);
        let ids = vec![Id::new("ip", "10.0.0.1"), ann.clone()];
        story.history.note(client(BEN), BEN, Happening::Identified { latest: Zxid(21), ids });
        story.log(B, 30, SessionId::NONE, delete("/a/x"), done());
        if is_told {
            story.told(BEN, 30, EventKind::NodeDeleted, "/a/x");
        }
        story.read(BEN, 30, missing("/a/x"), false);
        story
    };
    story(20, true).holds();
    story(20, false).holds();
    // Before the second change it used itself up in silence.
    story(16, true).fails("where None is due");
    story(16, false).holds();
}
