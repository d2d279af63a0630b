//! Whose protocol a client speaks. ZooKeeper's and ClickHouse Keeper's differ where neither can read the other.

use crate::ErrorCode;

/// The protocol of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Dialect of every connection until it shows otherwise.
    #[default]
    ZooKeeper,
    /// Dialect of ClickHouse with ClickHouse Keeper.
    ClickHouse,
}

impl Dialect {
    /// The error as a client of this dialect knows it. ClickHouse counts errors in an array that ends at `NoWatcher`,
    /// and does not look whether an error is within.
    pub fn error(self, error: ErrorCode) -> ErrorCode {
        match (self, error) {
            (Dialect::ClickHouse, ErrorCode::ReconfigDisabled) => ErrorCode::Unimplemented,
            (Dialect::ClickHouse, ErrorCode::QuotaExceeded) => ErrorCode::BadArguments,
            (Dialect::ClickHouse, ErrorCode::SessionClosedRequireSaslAuth) => ErrorCode::AuthFailed,
            (Dialect::ClickHouse, ErrorCode::ThrottledOp) => ErrorCode::OutOfMemory,
            (_, error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clickhouse_gets_no_error_beyond_its_array() {
        for error in ErrorCode::ALL {
            assert!(Dialect::ClickHouse.error(error).code() >= ErrorCode::NoWatcher.code(), "{error:?}");
            assert_eq!(Dialect::ZooKeeper.error(error), error);
        }
    }
}
