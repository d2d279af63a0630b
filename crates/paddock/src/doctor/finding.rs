//! Result of a check: one line, and one about what to do.

use serde_json::{Value, json};

/// Weight of a finding, the lightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, or not known.
    Note,
    /// To be mended before it becomes an error.
    Warning,
    /// Service or data are in danger.
    Error,
}

impl Level {
    pub(crate) const ALL: [Level; 4] = [Level::Ok, Level::Note, Level::Warning, Level::Error];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }

    /// The exit code of a command that found nothing worse.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Level::Ok | Level::Note => 0,
            Level::Warning => 1,
            Level::Error => 2,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// Name of the check, one word.
    pub(crate) check: &'static str,
    /// A server, a path, or the machine; empty for the ensemble as a whole.
    pub(crate) subject: String,
    pub(crate) text: String,
    /// Empty if there is nothing to do.
    pub(crate) advice: String,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, subject: &str, text: impl Into<String>) -> Finding {
        Finding {
            level: Level::Ok,
            check,
            subject: subject.to_owned(),
            text: text.into(),
            advice: String::new(),
        }
    }

    pub(crate) fn new(
        level: Level,
        check: &'static str,
        subject: &str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { level, advice: advice.into(), ..Finding::ok(check, subject, text) }
    }

    pub(crate) fn as_json(&self) -> Value {
        let none_if_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        json!({
            "level": self.level.name(),
            "check": self.check,
            "subject": none_if_empty(&self.subject),
            "text": self.text,
            "advice": none_if_empty(&self.advice),
        })
    }
}
