//! Parts of the process that the routes answer from.

use std::sync::Arc;

use parking_lot::Mutex;

use super::logins::Logins;
use super::rate_limit::RateLimit;
use super::stream_places::StreamPlaces;
use crate::clients::InnerClient;
use crate::engines::EngineHandle;
use crate::operator::Operator;
use crate::shared::Shared;

/// The HTTP interface of a member.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) shared: Arc<Shared>,
    pub(crate) operator: Operator,
    pub(super) snapshot_limit: RateLimit,
    /// Streams of changes and of the log that are under way.
    pub(super) streams: StreamPlaces,
    pub(super) logins: Mutex<Logins>,
    /// Asks for the changes that an administrator orders on the page.
    pub(super) client: Mutex<InnerClient>,
}

impl Admin {
    pub(crate) fn new(shared: &Arc<Shared>, engine: &EngineHandle) -> Admin {
        Admin {
            shared: shared.clone(),
            operator: Operator::new(shared, engine),
            snapshot_limit: RateLimit::default(),
            streams: StreamPlaces::default(),
            logins: Mutex::default(),
            client: Mutex::new(InnerClient::new(shared, engine)),
        }
    }
}
