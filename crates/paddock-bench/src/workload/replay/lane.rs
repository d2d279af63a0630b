//! One recorded session, sent again.

use std::sync::Arc;

use paddock_proto::OpCode;

use super::recorded::Exchange;
use crate::workload::multi_read;
use crate::workload::{Lane, NextRequest, ReplyVerdict, ServerReply, WorkloadRequest};

pub(super) struct ReplayLane {
    exchanges: Arc<[Exchange]>,
    sent: usize,
    answered: usize,
    /// True if the driver has been told when the next request is due.
    announced: bool,
}

impl ReplayLane {
    pub(super) fn new(exchanges: Arc<[Exchange]>) -> ReplayLane {
        ReplayLane { exchanges, sent: 0, answered: 0, announced: false }
    }
}

impl Lane for ReplayLane {
    fn next(&mut self, request: &mut WorkloadRequest<'_>) -> NextRequest {
        let Some(exchange) = self.exchanges.get(self.sent) else { return NextRequest::Done };
        if let Some(due) = exchange.due
            && !self.announced
        {
            self.announced = true;
            return NextRequest::At(due);
        }
        request.write(exchange.op, |out| out.extend_from_slice(&exchange.body));
        self.announced = false;
        self.sent += 1;
        NextRequest::Send(exchange.operation)
    }

    fn answered(&mut self, answer: &ServerReply<'_>) -> ReplyVerdict {
        let exchange = &self.exchanges[self.answered];
        self.answered += 1;
        let error = match exchange.op {
            OpCode::MultiRead => multi_read::error(answer),
            _ => answer.error,
        };
        match exchange.error {
            Some(expected) if expected != error => ReplyVerdict::Bad,
            _ => ReplyVerdict::Good,
        }
    }
}
