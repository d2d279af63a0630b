//! Error codes as they go over the wire.

/// Error in a reply header. Codes that only client libraries make (connection loss and the like) are
/// absent: a server must never send a code that an old client does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// In a failed multi: the operations after the one that failed.
    RuntimeInconsistency = -2,
    MarshallingError = -5,
    Unimplemented = -6,
    BadArguments = -8,
    /// ClickHouse Keeper's own, and known to its clients only: see `ThrottledOp`.
    OutOfMemory = -10,
    NewConfigNoQuorum = -13,
    ReconfigInProgress = -14,
    NoNode = -101,
    NoAuth = -102,
    BadVersion = -103,
    NoChildrenForEphemerals = -108,
    NodeExists = -110,
    NotEmpty = -111,
    SessionExpired = -112,
    InvalidAcl = -114,
    AuthFailed = -115,
    SessionMoved = -118,
    NotReadOnly = -119,
    NoWatcher = -121,
    ReconfigDisabled = -123,
    SessionClosedRequireSaslAuth = -124,
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

    pub fn code(self) -> i32 {
        self as i32
    }

    /// The error a server meant by `code`; none for 0 and for codes that no server sends.
    pub fn from_code(code: i32) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|error| error.code() == code)
    }
}
