//! Keys of other servers' files that set nothing here: what there is to say of them.

use Otherwise::{Refuse, Warn};

use super::remark::{ConfigError, Remark};
use super::source::Line;

/// A key that may stand in a file with any value, and why it changes nothing. A `*` at its end stands for all keys that
/// begin so.
pub(super) type Meaningless = (&'static str, &'static str);

/// A key of which Paddock offers one value only.
#[derive(Debug)]
pub(super) struct Fixed {
    /// As of `Meaningless`.
    pub(super) key: &'static str,
    /// Ways to write what Paddock does anyway; none if no value asks for that.
    pub(super) values: &'static [&'static str],
    /// For any other value.
    pub(super) otherwise: Otherwise,
}

#[derive(Debug)]
pub(super) enum Otherwise {
    /// The member starts, and says that the setting has no effect.
    Warn(&'static str),
    /// The member does not start: it would be less safe than its operator believes.
    Refuse(&'static str),
}

/// The remark on a line that sets nothing, if there is something to say.
pub(super) fn remark_on(
    line: &Line,
    meaningless: &[Meaningless],
    fixed: &[Fixed],
) -> Result<Option<Remark>, ConfigError> {
    if let Some(fixed) = find(fixed, &line.key) {
        return fixed.remark_on(line);
    }
    if let Some((_, reason)) = meaningless.iter().find(|(pattern, _)| matches(pattern, &line.key)) {
        return Ok(Some(line.changes_nothing(reason)));
    }
    let what = format!("{} is not a setting that Paddock knows; it is ignored", line.key);
    Ok(Some(line.place.clone().warning(what)))
}

pub(super) fn find<'a>(keys: &'a [Fixed], key: &str) -> Option<&'a Fixed> {
    keys.iter().find(|fixed| matches(fixed.key, key))
}

fn matches(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix),
        None => key == pattern,
    }
}

impl Fixed {
    /// The remark on a value, if there is something to say.
    pub(super) fn remark_on(&self, line: &Line) -> Result<Option<Remark>, ConfigError> {
        let value = line.value.as_str();
        if self.values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
            return Ok(None);
        }
        match self.otherwise {
            Warn(reason) => Ok(Some(line.warning(format!("{value:?} has no effect: {reason}")))),
            Refuse(reason) => Err(line.fault(format!("{value:?} is not offered: {reason}"))),
        }
    }
}
