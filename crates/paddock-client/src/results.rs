//! Results of operations, and how they are read from a reply's body.

use paddock_proto::jute::Reader;
use paddock_proto::{Acl, DecodeError, Id, Stat};

use crate::pending::{Reply, Undecoded};

/// A znode that was made: its path has the suffix of a sequential one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The whole path.
    pub path: String,
    /// The Stat of the new znode.
    pub stat: Stat,
}

/// The value of a znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// `None` for null, which is not the same as empty.
    pub bytes: Option<Vec<u8>>,
    /// The Stat that goes with these bytes: its `version` is the one for a conditional write.
    pub stat: Stat,
}

/// The children of a znode, in no order, and its own Stat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Children {
    /// Last parts of their paths, without slashes.
    pub names: Vec<String>,
    /// The Stat of their parent.
    pub stat: Stat,
}

/// Reads a whole body with `read`. Bytes after the last field are left to newer servers.
fn whole<T>(
    reply: &Reply,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, Undecoded> {
    Ok(read(&mut Reader::new(&reply.body))?)
}

pub(crate) fn read_strings(reader: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    reader.list(|reader| reader.string().map(String::from))
}

pub(crate) fn read_data(reader: &mut Reader<'_>) -> Result<Data, DecodeError> {
    Ok(Data { bytes: reader.buffer()?.map(<[u8]>::to_vec), stat: Stat::decode(reader)? })
}

pub(crate) fn raw(reply: Reply) -> Result<Reply, Undecoded> {
    Ok(reply)
}

pub(crate) fn nothing(_: Reply) -> Result<(), Undecoded> {
    Ok(())
}

pub(crate) fn path(reply: Reply) -> Result<String, Undecoded> {
    whole(&reply, |reader| reader.string().map(String::from))
}

pub(crate) fn created(reply: Reply) -> Result<Created, Undecoded> {
    whole(&reply, |reader| Ok(Created { path: reader.string()?.into(), stat: Stat::decode(reader)? }))
}

pub(crate) fn stat(reply: Reply) -> Result<Stat, Undecoded> {
    whole(&reply, Stat::decode)
}

pub(crate) fn data(reply: Reply) -> Result<Data, Undecoded> {
    whole(&reply, read_data)
}

pub(crate) fn names(reply: Reply) -> Result<Vec<String>, Undecoded> {
    whole(&reply, read_strings)
}

pub(crate) fn children(reply: Reply) -> Result<Children, Undecoded> {
    whole(&reply, |reader| Ok(Children { names: read_strings(reader)?, stat: Stat::decode(reader)? }))
}

pub(crate) fn acl(reply: Reply) -> Result<(Vec<Acl>, Stat), Undecoded> {
    whole(&reply, |reader| Ok((reader.list(Acl::decode)?, Stat::decode(reader)?)))
}

pub(crate) fn count(reply: Reply) -> Result<i32, Undecoded> {
    whole(&reply, |reader| reader.i32())
}

pub(crate) fn identities(reply: Reply) -> Result<Vec<Id>, Undecoded> {
    whole(&reply, |reader| reader.list(Id::decode))
}
