//! Rules of rates, and the form in which files have them: `KIND[=NAME]:LIMIT=NUMBER[,LIMIT=NUMBER…]`, several with `;` between.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use memchr::memchr;
use paddock_proto::is_at_or_below;

use super::tenant::{RatedRequest, TenantName};

/// The property of a request by which its tenant is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantKind {
    /// The path of the request, the first one of a multi.
    Path,
    /// Each identity that the client has proved, other than its address.
    User,
    /// The IP address of the connection.
    Address,
}

/// Limits in a second; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Requests above which they wait.
    pub requests: Option<u64>,
    /// Bytes of requests above which they wait.
    pub bytes: Option<u64>,
    /// Requests above which they are counted.
    pub requests_soft: Option<u64>,
    /// Bytes of requests above which they are counted.
    pub bytes_soft: Option<u64>,
}

/// Rates of one tenant, or of each tenant of a kind by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateRule {
    pub kind: TenantKind,
    /// The tenant: a path and all below it, a user, or an address. `None` is each one by itself, of paths each top-level one.
    pub name: Option<String>,
    pub rates: Rates,
}

/// Rules of a member, each about other tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateRules(Vec<RateRule>);

/// The reason why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateRuleError {
    /// The text has another form.
    #[error(
        "expected a rule such as \"path=/app:requests=1000\", \"user:bytes=1000000\" or \"address:requests_soft=100,requests=200\", \
         found {0:?}"
    )]
    Form(String),
    /// Two rules are about the same tenants.
    #[error("two rules are about {0}")]
    Twice(String),
}

impl TenantKind {
    pub(super) const ALL: [TenantKind; 3] = [TenantKind::Path, TenantKind::User, TenantKind::Address];

    /// Its name in rules and metrics.
    pub fn label(self) -> &'static str {
        match self {
            TenantKind::Path => "path",
            TenantKind::User => "user",
            TenantKind::Address => "address",
        }
    }
}

impl RateRule {
    /// The tenant of this rule that a request is of, if it is one.
    pub(super) fn tenant_of<'a>(&'a self, request: &RatedRequest<'a>) -> Option<TenantName<'a>> {
        let text = match (self.kind, &self.name) {
            (TenantKind::Path, Some(top)) => is_at_or_below(request.path, top).then_some(&**top),
            (TenantKind::Path, None) => top_level(request.path),
            (TenantKind::User, name) => {
                let mut users = request.ids.iter().filter_map(|(scheme, id)| user(scheme, id));
                users.find(|user| name.as_ref().is_none_or(|name| name == user))
            }
            (TenantKind::Address, name) => {
                let address = request.address.to_canonical();
                let is_it = name.as_ref().is_none_or(|name| is_address(name, address));
                return is_it.then_some(TenantName::Address(address));
            }
        };
        text.map(TenantName::Text)
    }

    fn tenants(&self) -> String {
        match &self.name {
            Some(name) => format!("{}={name}", self.kind.label()),
            None => self.kind.label().to_owned(),
        }
    }
}

/// True if a text is this address, in whatever form.
fn is_address(text: &str, address: IpAddr) -> bool {
    text.parse::<IpAddr>().is_ok_and(|named| named.to_canonical() == address)
}

/// The first part of a path, with its slash.
fn top_level(path: &str) -> Option<&str> {
    let below = path.strip_prefix('/').filter(|below| !below.is_empty())?;
    Some(&path[..1 + memchr(b'/', below.as_bytes()).unwrap_or(below.len())])
}

/// The user of an identity that was proved: of a digest the name.
fn user<'a>(scheme: &str, id: &'a str) -> Option<&'a str> {
    match scheme {
        "ip" | "world" => None,
        "digest" => id.split(':').next(),
        _ => Some(id),
    }
}

impl RateRules {
    /// Rules of these texts, each one rule.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<RateRules, RateRuleError> {
        let mut rules: Vec<RateRule> = Vec::new();
        for text in texts {
            let rule: RateRule = text.parse()?;
            if rules.iter().any(|other| other.tenants() == rule.tenants()) {
                return Err(RateRuleError::Twice(rule.tenants()));
            }
            rules.push(rule);
        }
        Ok(RateRules(rules))
    }

    pub fn iter(&self) -> impl Iterator<Item = &RateRule> {
        self.0.iter()
    }
}

/// Several rules in one line, with `;` between.
impl FromStr for RateRules {
    type Err = RateRuleError;

    fn from_str(text: &str) -> Result<RateRules, RateRuleError> {
        RateRules::parse(text.split(';').map(str::trim).filter(|rule| !rule.is_empty()))
    }
}

impl FromStr for RateRule {
    type Err = RateRuleError;

    fn from_str(text: &str) -> Result<RateRule, RateRuleError> {
        parse(text).ok_or_else(|| RateRuleError::Form(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<RateRule> {
    let (tenants, limits) = text.trim().rsplit_once(':')?;
    let (kind, name) = match tenants.split_once('=') {
        Some((kind, name)) => (kind, Some(name.to_owned())),
        None => (tenants, None),
    };
    let kind = *TenantKind::ALL.iter().find(|known| known.label() == kind)?;
    let is_name = |name: &String| match kind {
        TenantKind::Path => name.starts_with('/'),
        TenantKind::User => !name.is_empty(),
        TenantKind::Address => name.parse::<IpAddr>().is_ok(),
    };
    if !name.as_ref().is_none_or(is_name) {
        return None;
    }
    let mut rates = Rates::default();
    for limit in limits.split(',') {
        let (limit, number) = limit.split_once('=')?;
        let rate = match limit.trim() {
            "requests" => &mut rates.requests,
            "bytes" => &mut rates.bytes,
            "requests_soft" => &mut rates.requests_soft,
            "bytes_soft" => &mut rates.bytes_soft,
            _ => return None,
        };
        let number: u64 = number.trim().parse().ok()?;
        if number == 0 || number > i64::MAX as u64 || rate.replace(number).is_some() {
            return None;
        }
    }
    Some(RateRule { kind, name, rates })
}

impl fmt::Display for RateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rates { requests, bytes, requests_soft, bytes_soft } = &self.rates;
        let limits = [
            ("requests", requests),
            ("bytes", bytes),
            ("requests_soft", requests_soft),
            ("bytes_soft", bytes_soft),
        ];
        let limits = limits.iter().filter_map(|(name, limit)| Some(format!("{name}={}", limit.as_ref()?)));
        write!(f, "{}:{}", self.tenants(), limits.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_and_shown_the_same_way() {
        for text in [
            "path:requests=1000",
            "path=/app/part:bytes=1000000,requests_soft=5",
            "user=ann:requests=1",
            "address=::1:requests=9,bytes_soft=8",
        ] {
            assert_eq!(text.parse::<RateRule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "path",
            "path:",
            "path:requests",
            "path:requests=0",
            "path:requests=-1",
            "path:requests=1,requests=2",
            "path=app:requests=1",
            "address=host:requests=1",
            "user=:requests=1",
            "session:requests=1",
            "path:per_minute=1",
        ] {
            assert_eq!(text.parse::<RateRule>(), Err(RateRuleError::Form(text.to_owned())), "{text}");
        }
        let twice = "path=/a:requests=1; path=/a:bytes=1";
        assert_eq!(twice.parse::<RateRules>(), Err(RateRuleError::Twice("path=/a".to_owned())));
    }

    #[test]
    fn several_rules_stand_in_one_line() {
        let rules: RateRules = "path:requests=1; path=/a:requests=2;".parse().unwrap();
        assert_eq!(
            rules.iter().map(RateRule::to_string).collect::<Vec<_>>(),
            ["path:requests=1", "path=/a:requests=2"]
        );
        assert_eq!("".parse(), Ok(RateRules::default()));
    }

    #[test]
    fn a_path_belongs_to_its_top_level_znode() {
        assert_eq!(["/", "", "/a", "/a/b/c"].map(top_level), [None, None, Some("/a"), Some("/a")]);
        assert_eq!(
            [("/a", "/a"), ("/a", "/ab"), ("/a/b", "/a/b/c"), ("/", "/x"), ("/", "")]
                .map(|(top, path)| is_at_or_below(path, top)),
            [true, false, true, true, false]
        );
    }
}
