//! The text that limits and statistics of a quota are kept in.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The text form of limits and statistics: `count=3,bytes=40`, then `=` and other numbers after semicolons. The odd `=`
/// keeps old readers from seeing those. What is not there counts as -1.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<String, i64>);

impl Numbers {
    pub(super) fn parse(data: &[u8]) -> Option<Numbers> {
        let text = std::str::from_utf8(data).ok()?;
        let mut numbers = BTreeMap::new();
        for pair in text.split([',', ';']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=')?;
            let value = value.split('=').next().unwrap_or_default();
            let value = if value.is_empty() { -1 } else { value.parse().ok()? };
            numbers.insert(name.to_owned(), value);
        }
        Some(Numbers(numbers))
    }

    /// Limits, without whatever else a client has written beside them; none if it is no such text.
    pub(super) fn limits_in(data: &[u8]) -> Numbers {
        const LIMITS: [&str; 4] = ["count", "bytes", "countHardLimit", "byteHardLimit"];
        let mut numbers = Numbers::parse(data).unwrap_or_default();
        numbers.0.retain(|name, _| LIMITS.contains(&name.as_str()));
        numbers
    }

    pub(super) fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(-1)
    }

    pub(super) fn add(&mut self, name: &str, difference: i64) {
        self.0.insert(name.to_owned(), self.get(name).wrapping_add(difference));
    }
}

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "count={},bytes={}", self.get("count"), self.get("bytes"))?;
        let mut others = String::new();
        for (name, value) in self.0.iter().filter(|(name, _)| !matches!(name.as_str(), "count" | "bytes")) {
            write!(others, ";{name}={value}")?;
        }
        if !others.is_empty() {
            write!(f, "={others}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_zookeepers_order() {
        let again = |text: &str| Numbers::parse(text.as_bytes()).map(|numbers| numbers.to_string());
        assert_eq!(again("bytes=2,count=1").as_deref(), Some("count=1,bytes=2"));
        assert_eq!(again("").as_deref(), Some("count=-1,bytes=-1"));
        let limits = "count=3,bytes=-1=;byteHardLimit=5;countHardLimit=-1";
        assert_eq!(again(limits).as_deref(), Some(limits));
        assert_eq!(again("count=x"), None);
        assert_eq!(again("count"), None);
    }
}
