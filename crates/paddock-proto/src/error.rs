//! Error codes as they go over the wire.

/// Error in a reply header. Codes that only client libraries make (connection loss and the like) are
/// absent: a server must never send a code that an old client does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// In a failed multi: the operations after the one that failed.
    RuntimeInconsistency = -2,
    /// The server could not read the request.
    MarshallingError = -5,
    /// The server does not know the operation, or does not offer it.
    Unimplemented = -6,
    /// A field is not allowed: a path that is none, a TTL out of range, flags that do not fit the operation.
    BadArguments = -8,
    /// ClickHouse Keeper's own, and known to its clients only: see `ThrottledOp`.
    OutOfMemory = -10,
    /// A reconfig was given up: the new members were not heard in time, or are no quorum.
    NewConfigNoQuorum = -13,
    /// Another change of membership is under way. May be tried again when that has ended.
    ReconfigInProgress = -14,
    /// There is no such znode; of a create, no parent.
    NoNode = -101,
    /// The ACL does not allow it to any identity of the client.
    NoAuth = -102,
    /// The znode has another version than the request asks for.
    BadVersion = -103,
    /// The parent is ephemeral.
    NoChildrenForEphemerals = -108,
    /// The znode is there already.
    NodeExists = -110,
    /// The znode has children.
    NotEmpty = -111,
    /// The session is over.
    SessionExpired = -112,
    /// The ACL is empty, or has a scheme or an id that is not known.
    InvalidAcl = -114,
    /// The identity was refused. The server closes the connection.
    AuthFailed = -115,
    /// The session's client has connected to another member meanwhile.
    SessionMoved = -118,
    /// The member has no quorum, or a full disk, and only reads.
    NotReadOnly = -119,
    /// There is no such watch.
    NoWatcher = -121,
    /// Clients may not change who belongs to the ensemble.
    ReconfigDisabled = -123,
    /// The server wants an identity of SASL before anything else, and closes the connection.
    SessionClosedRequireSaslAuth = -124,
    /// The write would exceed a hard limit of a quota.
    QuotaExceeded = -125,
    /// The request was not carried out, because the member has too much to do or to hold. It may be tried again later.
    ThrottledOp = -127,
}

impl ErrorCode {
    /// Every code, in the order of their numbers.
    pub const ALL: [ErrorCode; 23] = [
        ErrorCode::RuntimeInconsistency,
        ErrorCode::MarshallingError,
        ErrorCode::Unimplemented,
        ErrorCode::BadArguments,
        ErrorCode::OutOfMemory,
        ErrorCode::NewConfigNoQuorum,
        ErrorCode::ReconfigInProgress,
        ErrorCode::NoNode,
        ErrorCode::NoAuth,
        ErrorCode::BadVersion,
        ErrorCode::NoChildrenForEphemerals,
        ErrorCode::NodeExists,
        ErrorCode::NotEmpty,
        ErrorCode::SessionExpired,
        ErrorCode::InvalidAcl,
        ErrorCode::AuthFailed,
        ErrorCode::SessionMoved,
        ErrorCode::NotReadOnly,
        ErrorCode::NoWatcher,
        ErrorCode::ReconfigDisabled,
        ErrorCode::SessionClosedRequireSaslAuth,
        ErrorCode::QuotaExceeded,
        ErrorCode::ThrottledOp,
    ];

    /// The number on the wire.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The error a server meant by `code`; none for 0 and for codes that no server sends.
    pub fn from_code(code: i32) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|error| error.code() == code)
    }
}
