//! The requests that a file asks for, as it says them.

use super::fields::{Field, KeeperFields, Keys};
use super::values::{Size, Text};
use crate::BenchError;

/// One entry of `generator.requests`, or of a multi.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted<T> {
    /// Weight of its choice, in comparison with the entries beside it.
    pub weight: u64,
    pub request: T,
    pub(super) line: FileLine,
}

/// A line of the file, for refusals that come after reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileLine(pub(super) usize);

#[derive(Clone, Debug, PartialEq)]
pub enum RequestKind {
    Single(Single),
    Multi {
        /// Number of requests it holds; without one, it holds one of each.
        size: Option<Size>,
        parts: Vec<Weighted<Single>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Single {
    Create {
        parents: Vec<PathSource>,
        name_length: Size,
        data: Text,
        /// The share of these requests that remove what an earlier one created.
        remove_factor: f64,
        /// The set of paths that the new znodes belong to.
        tag: Option<String>,
    },
    Set {
        paths: Vec<PathSource>,
        data: Text,
    },
    Get {
        paths: Vec<PathSource>,
        watch_probability: f64,
    },
    List {
        paths: Vec<PathSource>,
        watch_probability: f64,
    },
}

/// Origin of a request's path; if there are several, each of all their paths is as likely.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSource {
    pub paths: Paths,
    pub(super) line: FileLine,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Paths {
    Is(String),
    ChildrenOf(String),
    Tagged(String),
}

impl Single {
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Single::Get { .. } | Single::List { .. })
    }

    pub(super) fn sources(&self) -> &[PathSource] {
        match self {
            Single::Create { parents: paths, .. }
            | Single::Set { paths, .. }
            | Single::Get { paths, .. }
            | Single::List { paths, .. } => paths,
        }
    }
}

impl Single {
    /// The set that new znodes are put into; a create from several places keeps its znodes to itself unless it is tagged.
    pub(super) fn output(&self) -> Option<Paths> {
        match self {
            Single::Create { tag: Some(tag), .. } => Some(Paths::Tagged(tag.clone())),
            Single::Create { parents, .. } => match parents.as_slice() {
                [PathSource { paths: Paths::Is(parent), .. }] => Some(Paths::ChildrenOf(parent.clone())),
                _ => None,
            },
            _ => None,
        }
    }
}

impl RequestKind {
    pub(super) fn singles(&self) -> Vec<&Single> {
        match self {
            RequestKind::Single(single) => vec![single],
            RequestKind::Multi { parts, .. } => parts.iter().map(|part| &part.request).collect(),
        }
    }
}

const REQUEST_KEYS: Keys = Keys { once: &[], many: &["create", "set", "get", "list", "multi"] };
const CREATE_KEYS: Keys =
    Keys { once: &["weight", "name_length", "data", "remove_factor", "tag"], many: &["path"] };
const SET_KEYS: Keys = Keys { once: &["weight", "data"], many: &["path"] };
const READ_KEYS: Keys = Keys { once: &["weight", "watch_probability"], many: &["path"] };
const MULTI_KEYS: Keys = Keys { once: &["weight", "size"], many: &["create", "set", "get", "list", "multi"] };
const PATH_KEYS: Keys = Keys { once: &["children_of", "tagged"], many: &[] };

pub(super) fn read(requests: Field<'_>) -> Result<Vec<Weighted<RequestKind>>, BenchError> {
    let fields = requests.fields(&REQUEST_KEYS)?;
    let read = |&(kind, field): &(&str, Field<'_>)| match kind {
        "multi" => read_multi(field),
        _ => read_single(kind, field).map(|part| Weighted {
            weight: part.weight,
            request: RequestKind::Single(part.request),
            line: part.line,
        }),
    };
    let requests = fields.many().iter().map(read).collect::<Result<Vec<_>, _>>()?;
    check_weights(&fields, &requests)?;
    Ok(requests)
}

fn check_weights<T>(fields: &KeeperFields<'_>, requests: &[Weighted<T>]) -> Result<(), BenchError> {
    if requests.is_empty() {
        return Err(fields.error("there are no requests here; add a create, set, get or list".to_string()));
    }
    let sum = requests.iter().try_fold(0u64, |sum, request| sum.checked_add(request.weight));
    match sum {
        Some(0) => Err(fields.error("all weights are 0; nothing could be chosen".to_string())),
        Some(_) => Ok(()),
        None => Err(fields.error("the weights are too large".to_string())),
    }
}

fn read_multi(field: Field<'_>) -> Result<Weighted<RequestKind>, BenchError> {
    let fields = field.fields(&MULTI_KEYS)?;
    let mut parts = Vec::new();
    for &(kind, part) in fields.many() {
        if kind == "multi" {
            return Err(part.error("a multi cannot hold another multi".to_string()));
        }
        parts.push(read_single(kind, part)?);
    }
    check_weights(&fields, &parts)?;
    if let Some(other) = parts.iter().find(|part| part.request.is_read() != parts[0].request.is_read()) {
        let message = "a multi holds either reads or writes; put this one into a multi of its own";
        return Err(fields.error_at(other.line.0, message.to_string()));
    }
    let size = fields
        .one("size")
        .map(|size| at_least_one(size, "a multi needs at least one request"))
        .transpose()?;
    Ok(Weighted {
        weight: weight(&fields)?,
        request: RequestKind::Multi { size, parts },
        line: FileLine(field.line),
    })
}

fn read_single(kind: &str, field: Field<'_>) -> Result<Weighted<Single>, BenchError> {
    let (fields, request) = match kind {
        "create" => read_create(field)?,
        "set" => {
            let fields = field.fields(&SET_KEYS)?;
            let request = Single::Set { paths: paths(&fields)?, data: Text::read(fields.needed("data")?)? };
            (fields, request)
        }
        "get" => {
            let (fields, paths, watch_probability) = read_read(field)?;
            (fields, Single::Get { paths, watch_probability })
        }
        _ => {
            let (fields, paths, watch_probability) = read_read(field)?;
            (fields, Single::List { paths, watch_probability })
        }
    };
    Ok(Weighted { weight: weight(&fields)?, request, line: FileLine(field.line) })
}

fn read_create(field: Field<'_>) -> Result<(KeeperFields<'_>, Single), BenchError> {
    let fields = field.fields(&CREATE_KEYS)?;
    let name_length = fields.one("name_length");
    let name_length = name_length.map(|length| at_least_one(length, "a name needs at least one letter"));
    let create = Single::Create {
        parents: paths(&fields)?,
        // As keeper-bench has it.
        name_length: name_length.transpose()?.unwrap_or(Size::Fixed(5)),
        data: fields.one("data").map(Text::read).transpose()?.unwrap_or_default(),
        remove_factor: share(&fields, "remove_factor")?,
        tag: fields.one("tag").map(|tag| tag.text().map(str::to_string)).transpose()?,
    };
    Ok((fields, create))
}

fn read_read(field: Field<'_>) -> Result<(KeeperFields<'_>, Vec<PathSource>, f64), BenchError> {
    let fields = field.fields(&READ_KEYS)?;
    let (paths, watch) = (paths(&fields)?, share(&fields, "watch_probability")?);
    Ok((fields, paths, watch))
}

fn weight(fields: &KeeperFields<'_>) -> Result<u64, BenchError> {
    fields.one("weight").map_or(Ok(1), |weight| weight.count())
}

fn share(fields: &KeeperFields<'_>, key: &str) -> Result<f64, BenchError> {
    fields.one(key).map_or(Ok(0.0), |share| share.share())
}

fn at_least_one(field: Field<'_>, message: &str) -> Result<Size, BenchError> {
    let size = Size::read(field)?;
    if size.min() == 0 { Err(field.error(message.to_string())) } else { Ok(size) }
}

fn paths(fields: &KeeperFields<'_>) -> Result<Vec<PathSource>, BenchError> {
    if fields.many().is_empty() {
        return Err(fields.error("`path` is missing".to_string()));
    }
    fields.many().iter().map(|(_, field)| source(*field)).collect()
}

fn source(field: Field<'_>) -> Result<PathSource, BenchError> {
    if !field.is_mapping() {
        return Ok(PathSource { paths: Paths::Is(path(field)?), line: FileLine(field.line) });
    }
    let fields = field.fields(&PATH_KEYS)?;
    let (paths, line) = match (fields.one("children_of"), fields.one("tagged")) {
        (Some(parent), None) => (Paths::ChildrenOf(path(parent)?), parent.line),
        (None, Some(tag)) => (Paths::Tagged(tag.text()?.to_string()), tag.line),
        _ => {
            return Err(
                field.error("`path` needs a string, or one of `children_of` and `tagged`".to_string())
            );
        }
    };
    Ok(PathSource { paths, line: FileLine(line) })
}

fn path(field: Field<'_>) -> Result<String, BenchError> {
    let path = field.text()?;
    match paddock_proto::validate_path(path) {
        Ok(()) => Ok(path.to_string()),
        Err(invalid) => Err(field.error(format!("`{path}`: {invalid}"))),
    }
}
