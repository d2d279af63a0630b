//! Keys of `zoo.cfg` that limit what clients take of a server.

use paddock_server::{ClientLimits, ConnectRate};

use super::value::{self, Text};
use super::zoo_values;

/// Requests that may be under way. ZooKeeper has two such limits; the lower one counts. One below 1 is no limit.
pub(super) fn set_outstanding(limits: &mut ClientLimits, value: &Text<'_>) -> Result<(), String> {
    let max = amount(value, "a number of requests")?;
    limits.outstanding_max = match limits.outstanding_max {
        0 => max,
        other if max == 0 => other,
        other => max.min(other),
    };
    Ok(())
}

/// TLS handshakes that may be under way. A limit below 1 is none.
pub(super) fn handshakes(value: &Text<'_>) -> Result<u32, String> {
    amount(value, "a number of handshakes")
}

fn amount(value: &Text<'_>, expected: &str) -> Result<u32, String> {
    let limit: i32 = value::number(value, i32::MIN.into()..=i32::MAX.into(), expected)?;
    Ok(limit.max(0).unsigned_abs())
}

/// The rate at which clients may connect. Its weights count only if they are switched on, wherever in the file.
#[derive(Debug)]
pub(super) struct ConnectKeys {
    rate: ConnectRate,
    has_weights: bool,
    new_session_weight: u32,
    resumed_session_weight: u32,
}

impl Default for ConnectKeys {
    fn default() -> ConnectKeys {
        let rate = ConnectRate::default();
        ConnectKeys { rate, has_weights: false, new_session_weight: 3, resumed_session_weight: 2 }
    }
}

impl ConnectKeys {
    /// Takes a setting, unless its key is another one.
    pub(super) fn take(&mut self, key: &str, value: &Text<'_>) -> Result<bool, String> {
        let tokens = || amount(value, "a number of tokens");
        match key {
            "connectionMaxTokens" | "connection_throttle_tokens" => self.rate.tokens_max = tokens()?,
            "connectionTokenFillTime" | "connection_throttle_fill_time" => {
                self.rate.fill_interval_ms = value::milliseconds(value)?;
            }
            "connectionTokenFillCount" | "connection_throttle_fill_count" => {
                self.rate.fill_tokens = tokens()?
            }
            "connection_throttle_weight_enabled" => self.has_weights = zoo_values::boolean(value)?,
            "connection_throttle_global_session_weight" => self.new_session_weight = tokens()?,
            "connection_throttle_renew_session_weight" => self.resumed_session_weight = tokens()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn settle(self) -> ConnectRate {
        if !self.has_weights {
            return self.rate;
        }
        ConnectRate {
            new_session_tokens: self.new_session_weight,
            resumed_session_tokens: self.resumed_session_weight,
            ..self.rate
        }
    }
}
