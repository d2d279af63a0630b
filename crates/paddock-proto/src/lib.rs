//! ZooKeeper's wire protocol as types: jute, frames, requests, replies, error codes.
//!
//! This crate turns bytes into values and values into bytes. It owns no socket, file or clock, and knows nothing
//! of what a request does to the tree. Requests borrow from the frame they came in; replies are written straight
//! into the buffer that goes to the socket.

mod acl;
pub mod blocks;
mod connect;
mod dialect;
pub mod encode;
mod error;
pub mod frame;
mod groups;
mod ids;
pub mod jute;
mod member;
mod op;
mod path;
mod reply;
mod request;
mod stat;
mod watch;

pub use acl::{Acl, AclList, Id, IdList, Perms};
pub use connect::{ConnectRequest, ConnectResponse, Extensions, PASSWORD_BYTES, Password, SessionSecret};
pub use dialect::Dialect;
pub use error::ErrorCode;
pub use groups::{GroupsCommand, StreamItem, Vote};
pub use ids::{SessionId, Xid, Zxid};
pub use jute::DecodeError;
pub use member::{
    Bracketed, ClientAddress, EnsembleMember, InvalidMember, MEMBER_NUMBER_MAX, MemberNumber, MemberRole,
    Reach, narrow_member_number,
};
pub use op::OpCode;
pub use path::{InvalidPath, is_at_or_below, parent_and_name, split_name, validate_path};
pub use reply::{MultiResult, ReplyHeader, WriteReply};
pub use request::{
    Auth, ChildFilter, Create, CreateMode, Read, Reconfig, Request, RequestHeader, SetWatches, WatchRequest,
    Write,
};
pub use stat::Stat;
pub use watch::{AddWatchMode, EventKind, WatchEvent, WatcherKind};
