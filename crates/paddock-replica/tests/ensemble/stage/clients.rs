//! Clients of the members: their sessions, what they ask for and what they are told.

use paddock_proto::jute::{Reader, Writer};
use paddock_proto::{AclList, Id, IdList, OpCode, Xid};
use paddock_replica::Input;
use paddock_state::{Client, ClientInput, ConnId, ProvenIds, QueuedRead, RequestId, Resumption};
use paddock_tree::Command;

use super::Stage;

const SESSION_TIMEOUT_MS: i32 = 10_000;

#[derive(Clone)]
pub(crate) struct Guest {
    pub(super) member: u64,
    pub(super) client: Client,
}

impl Stage {
    pub(crate) fn connect(&mut self, member: u64, number: u64) -> Guest {
        self.ask_for_session(member, number, false);
        self.greet(member, ConnId::new(0, number))
    }

    pub(crate) fn ask_for_session(&mut self, member: u64, number: u64, may_only_read: bool) {
        let conn = ConnId::new(0, number);
        self.step(
            member,
            Input::Client(ClientInput::Connect {
                conn,
                timeout_ms: SESSION_TIMEOUT_MS,
                may_only_read,
                ids: ProvenIds::default(),
            }),
        );
        self.settle();
    }

    pub(crate) fn submit_resume(&mut self, member: u64, number: u64, former: &Guest) -> ConnId {
        let (conn, session) = (ConnId::new(0, number), former.client.session);
        let tree = self.members[&member].as_ref().expect("the member runs").state.tree();
        let moves = tree.session_moves(session);
        let resumption = Resumption { moves, ..Resumption::keyed(session, SESSION_TIMEOUT_MS) };
        let resume = Input::Client(ClientInput::Resume { conn, resumption, may_only_read: false });
        self.step(member, resume);
        conn
    }

    pub(crate) fn greet(&mut self, member: u64, conn: ConnId) -> Guest {
        self.settle();
        let session = self.sessions[&(member, conn)];
        self.stories.remove(&(member, conn));
        Guest { member, client: Client::new(conn, session, &[]) }
    }

    pub(crate) fn disconnect(&mut self, guest: &Guest) {
        self.step(guest.member, Input::Client(ClientInput::Disconnect { conn: guest.client.conn }));
    }

    /// A connection ends that may not have got a session.
    pub(crate) fn hang_up(&mut self, member: u64, number: u64) {
        self.step(member, Input::Client(ClientInput::Disconnect { conn: ConnId::new(0, number) }));
    }

    pub(crate) fn touch(&mut self, guest: &Guest) {
        self.step(guest.member, Input::Client(ClientInput::Touch { session: guest.client.session }));
    }

    /// Lets time pass for a session that is heard all the while.
    pub(crate) fn run_ticks_with(&mut self, guest: &Guest, ticks: u64) {
        for _ in 0..ticks {
            self.touch(guest);
            self.run_ticks(1);
        }
    }

    /// Story of the guest since it was asked for last.
    pub(crate) fn story(&mut self, guest: &Guest) -> Vec<String> {
        self.stories.remove(&(guest.member, guest.client.conn)).unwrap_or_default()
    }

    /// Story of a connection without a session.
    pub(crate) fn story_of(&mut self, member: u64, number: u64) -> Vec<String> {
        self.stories.remove(&(member, ConnId::new(0, number))).unwrap_or_default()
    }

    /// The paths of all creates that were answered since this was asked last.
    pub(crate) fn all_created(&mut self) -> Vec<String> {
        let stories = std::mem::take(&mut self.stories);
        let lines = stories.into_values().flatten();
        lines.filter_map(|line| Some(line.split_once(" \"")?.1.trim_end_matches('"').to_owned())).collect()
    }

    fn submit(&mut self, guest: &Guest, xid: i32, op: OpCode, body: &[u8]) {
        let mut command = Vec::new();
        Command::encode(guest.client.session, 0, IdList::NONE, op, body, &mut command);
        self.step(
            guest.member,
            Input::Client(ClientInput::Write {
                conn: guest.client.conn,
                request: RequestId::first(Xid(xid)),
                op,
                command: command.into(),
            }),
        );
    }

    pub(crate) fn submit_create(&mut self, guest: &Guest, xid: i32, path: &str, data: &str, flags: i32) {
        self.submit(guest, xid, OpCode::Create, &create_body(path, data, flags));
    }

    pub(crate) fn submit_container(&mut self, guest: &Guest, xid: i32, path: &str) {
        self.submit(guest, xid, OpCode::CreateContainer, &create_body(path, "", 4));
    }

    pub(crate) fn submit_delete(&mut self, guest: &Guest, xid: i32, path: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_i32(-1);
        self.submit(guest, xid, OpCode::Delete, &body);
    }

    pub(crate) fn create(&mut self, guest: &Guest, xid: i32, path: &str, data: &str) {
        self.submit_create(guest, xid, path, data, 0);
        self.settle();
    }

    /// True if the guest's member runs, so that it could ask.
    pub(crate) fn submit_named(&mut self, guest: &Guest, xid: i32, path: &str) -> bool {
        self.touch(guest);
        self.submit_create(guest, xid, path, "x", 0);
        self.members[&guest.member].is_some()
    }

    pub(crate) fn submit_set(&mut self, guest: &Guest, xid: i32, path: &str, data: &str) {
        let mut body = Vec::new();
        body.put_string(path);
        body.put_string(data);
        body.put_i32(-1);
        self.submit(guest, xid, OpCode::SetData, &body);
    }

    pub(crate) fn submit_local(&mut self, guest: &Guest, xid: i32, op: OpCode, path: &str) {
        self.submit_read(guest, xid, op, path, false);
    }

    /// A getData that sets a watch.
    pub(crate) fn watch(&mut self, guest: &Guest, xid: i32, path: &str) {
        self.submit_read(guest, xid, OpCode::GetData, path, true);
        self.settle();
    }

    fn submit_read(&mut self, guest: &Guest, xid: i32, op: OpCode, path: &str, watch: bool) {
        let mut body = Vec::new();
        body.put_string(path);
        if op == OpCode::GetData {
            body.put_bool(watch);
        }
        let local = QueuedRead::new(guest.client.clone(), RequestId::first(Xid(xid)), op, body);
        self.step(guest.member, Input::Client(ClientInput::Read(local)));
    }

    /// Asks for another set of members as one who may.
    pub(crate) fn submit_reconfig(&mut self, guest: &Guest, xid: i32, joining: &[String], leaving: &[u64]) {
        let leaving: Vec<String> = leaving.iter().map(u64::to_string).collect();
        let mut body = Vec::new();
        body.put_string(&joining.join(","));
        body.put_string(&leaving.join(","));
        body.put_i32(-1);
        body.put_i64(-1);
        let ids = IdList::encode(&[Id::new("super", "")]);
        let ids = IdList::decode(&mut Reader::new(&ids)).expect("it was just encoded");
        let mut command = Vec::new();
        let op = OpCode::Reconfig;
        Command::encode(guest.client.session, 0, ids, op, &body, &mut command);
        self.step(
            guest.member,
            Input::Client(ClientInput::Write {
                conn: guest.client.conn,
                request: RequestId::first(Xid(xid)),
                op,
                command: command.into(),
            }),
        );
    }
}

fn create_body(path: &str, data: &str, flags: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_string(path);
    body.put_string(data);
    body.extend_from_slice(AclList::OPEN.wire());
    body.put_i32(flags);
    body
}
