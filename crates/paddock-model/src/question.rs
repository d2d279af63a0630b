//! Reads that own what they hold, as they are asked, and their answers, as they are told.

use std::collections::BTreeSet;

use paddock_proto::jute::{DecodeError, Reader, Writer};
use paddock_proto::{Acl, ErrorCode, OpCode, Stat, encode};

/// A read, but for its watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    Exists {
        path: String,
    },
    GetData {
        path: String,
    },
    GetAcl {
        path: String,
    },
    GetChildren {
        path: String,
    },
    GetChildren2 {
        path: String,
    },
    GetEphemerals {
        prefix: String,
    },
    GetAllChildrenNumber {
        path: String,
    },
    /// A multiRead of getDatas and getChildren.
    MultiRead(Vec<Question>),
}

/// Answer to a read. Children have no order.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Stat(Stat),
    Data(Option<Vec<u8>>, Stat),
    Acl(Vec<Acl>, Stat),
    Children(BTreeSet<String>),
    Children2(BTreeSet<String>, Stat),
    Paths(Vec<String>),
    Number(i32),
    Many(Vec<Result<Answer, ErrorCode>>),
}

impl Question {
    pub fn op(&self) -> OpCode {
        match self {
            Question::Exists { .. } => OpCode::Exists,
            Question::GetData { .. } => OpCode::GetData,
            Question::GetAcl { .. } => OpCode::GetAcl,
            Question::GetChildren { .. } => OpCode::GetChildren,
            Question::GetChildren2 { .. } => OpCode::GetChildren2,
            Question::GetEphemerals { .. } => OpCode::GetEphemerals,
            Question::GetAllChildrenNumber { .. } => OpCode::GetAllChildrenNumber,
            Question::MultiRead(_) => OpCode::MultiRead,
        }
    }

    /// Appends the body of the request.
    pub fn put_body(&self, watch: bool, out: &mut Vec<u8>) {
        match self {
            Question::Exists { path }
            | Question::GetData { path }
            | Question::GetChildren { path }
            | Question::GetChildren2 { path } => encode::path_and_watch(out, path, watch),
            Question::GetAcl { path }
            | Question::GetAllChildrenNumber { path }
            | Question::GetEphemerals { prefix: path } => out.put_string(path),
            Question::MultiRead(questions) => {
                for question in questions {
                    encode::multi_operation(out, question.op());
                    question.put_body(false, out);
                }
                encode::multi_end(out);
            }
        }
    }

    /// Reads the body of the reply.
    pub fn decode_answer(&self, reader: &mut Reader<'_>) -> Result<Answer, DecodeError> {
        Ok(match self {
            Question::Exists { .. } => Answer::Stat(Stat::decode(reader)?),
            Question::GetData { .. } => {
                let data = reader.buffer()?.map(<[u8]>::to_vec);
                Answer::Data(data, Stat::decode(reader)?)
            }
            Question::GetAcl { .. } => Answer::Acl(reader.list(Acl::decode)?, Stat::decode(reader)?),
            Question::GetChildren { .. } => Answer::Children(names(reader)?.collect()),
            Question::GetChildren2 { .. } => {
                Answer::Children2(names(reader)?.collect(), Stat::decode(reader)?)
            }
            Question::GetEphemerals { .. } => Answer::Paths(names(reader)?.collect()),
            Question::GetAllChildrenNumber { .. } => Answer::Number(reader.i32()?),
            Question::MultiRead(questions) => {
                let answers = questions.iter().map(|question| question.decode_in_multi(reader));
                let answers = answers.collect::<Result<_, _>>()?;
                MultiHeader::decode(reader)?;
                Answer::Many(answers)
            }
        })
    }

    fn decode_in_multi(&self, reader: &mut Reader<'_>) -> Result<Result<Answer, ErrorCode>, DecodeError> {
        if MultiHeader::decode(reader)?.op == self.op().code() {
            return self.decode_answer(reader).map(Ok);
        }
        let value = reader.i32()?;
        let unknown = DecodeError::UnknownValue { field: "error code", value };
        ErrorCode::from_code(value).map(Err).ok_or(unknown)
    }
}

fn names(reader: &mut Reader<'_>) -> Result<impl Iterator<Item = String> + use<>, DecodeError> {
    let names: Vec<String> = reader.strings()?.into_iter().map(str::to_owned).collect();
    Ok(names.into_iter())
}

/// In front of each result of a multi, and at its end.
struct MultiHeader {
    op: i32,
}

impl MultiHeader {
    fn decode(reader: &mut Reader<'_>) -> Result<MultiHeader, DecodeError> {
        let header = MultiHeader { op: reader.i32()? };
        reader.bool()?;
        reader.i32()?;
        Ok(header)
    }
}
