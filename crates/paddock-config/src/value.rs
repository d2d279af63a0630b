//! Values of settings, whatever file they stand in. An error says what was expected and what was found.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use paddock_proto::MEMBER_NUMBER_MAX;
use paddock_server::{AuditTarget, Dialect, DigestAlgorithm, LateNames, MemoryMax, RateRules, SplitPaths};
use paddock_settings::MILLISECONDS_MAX;

use super::log_filter::parse_log_filter;
use super::zoo_values;

const MILLISECONDS: RangeInclusive<i64> = 1..=MILLISECONDS_MAX;

/// With less than 64 MiB a member would begin with nothing left.
const MEMORY_LEAST: i64 = 64 << 20;

pub(super) const PORT: RangeInclusive<i64> = 1..=65535;
pub(super) const A_PORT: &str = "a port from 1 to 65535";

/// The numbers that a member can have.
pub(super) const MEMBER: RangeInclusive<i64> = 0..=MEMBER_NUMBER_MAX as i64;
pub(super) const A_MEMBER: &str = "a number from 0 to 2147483647";
/// The numbers that a member alone takes from `myid`, which ZooKeeper does not read there. Earlier builds knew no others, and gave such a
/// member the number 1, which its data still has.
pub(super) const MEMBER_ALONE: RangeInclusive<i64> = 1..=255;

/// A value of a setting as a file gives it.
pub(super) trait Value {
    fn integer(&self) -> Option<i64>;
    fn text(&self) -> Option<&str>;
    /// As it stands in the file, on one line.
    fn shown(&self) -> String;
}

/// A value of a file in which all values are text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl Value for Text<'_> {
    fn integer(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    fn text(&self) -> Option<&str> {
        Some(self.0)
    }

    fn shown(&self) -> String {
        format!("{:?}", self.0)
    }
}

pub(super) fn wrong(expected: &str, value: &impl Value) -> String {
    format!("expected {expected}, found {}", value.shown())
}

/// A whole number in `range`, which `T` holds. `expected` names the range.
pub(super) fn number<T: TryFrom<i64>>(
    value: &impl Value,
    range: RangeInclusive<i64>,
    expected: &str,
) -> Result<T, String> {
    match value.integer() {
        Some(number) if range.contains(&number) => {
            Ok(T::try_from(number).unwrap_or_else(|_| panic!("{range:?} is more than the type holds")))
        }
        _ => Err(wrong(expected, value)),
    }
}

/// Reads a number of things; the message does not name the end of the range, which is too far off to matter.
pub(super) fn amount<T: TryFrom<i64>>(
    value: &impl Value,
    range: RangeInclusive<i64>,
    unit: &str,
) -> Result<T, String> {
    let (start, end) = (*range.start(), *range.end());
    let kind = if start == 1 { "a positive number" } else { "a number" };
    let too_large = value.integer().is_some_and(|number| number > end);
    let bound = match start {
        _ if too_large => format!(" up to {end}"),
        2.. => format!(", at least {start}"),
        _ => String::new(),
    };
    number(value, range, &format!("{kind} of {unit}{bound}"))
}

pub(super) fn milliseconds<T: TryFrom<i64>>(value: &impl Value) -> Result<T, String> {
    amount(value, MILLISECONDS, "milliseconds")
}

/// Memory of a process: bytes, a share such as `"80%"`, or `"unlimited"`.
pub(super) fn memory(value: &impl Value) -> Result<MemoryMax, String> {
    let expected =
        format!("a number of bytes of at least {MEMORY_LEAST}, a share such as \"80%\", or \"unlimited\"");
    let percent = |text: &str| {
        text.strip_suffix('%')?.trim().parse().ok().filter(|percent| (1..=100).contains(percent))
    };
    match (value.integer(), value.text()) {
        (Some(bytes), _) if bytes >= MEMORY_LEAST => Ok(MemoryMax::Bytes(bytes.unsigned_abs())),
        (_, Some("unlimited")) => Ok(MemoryMax::None),
        (_, Some(text)) => percent(text).map(MemoryMax::Percent).ok_or_else(|| wrong(&expected, value)),
        _ => Err(wrong(&expected, value)),
    }
}

/// Rules of rates in one line, with `;` between.
pub(super) fn rate_rules(value: &Text<'_>) -> Result<RateRules, String> {
    value.0.parse().map_err(|error: paddock_server::RateRuleError| error.to_string())
}

/// Paths of split points, with commas between them.
pub(super) fn split_points(value: &Text<'_>) -> Result<SplitPaths, String> {
    let paths = value.0.split(',').map(str::trim).filter(|path| !path.is_empty());
    SplitPaths::of(paths).map_err(|error| error.to_string())
}

/// A path, taken from the directory in which the process was started.
pub(super) fn path(value: &impl Value) -> Result<PathBuf, String> {
    match value.text() {
        Some(text) if !text.is_empty() => Ok(PathBuf::from(text)),
        _ => Err(wrong("a path", value)),
    }
}

/// `log`, or the path of a file.
pub(super) fn audit_log(value: &impl Value) -> Result<AuditTarget, String> {
    match value.text() {
        Some("log") => Ok(AuditTarget::Log),
        _ => path(value).map(AuditTarget::File),
    }
}

/// A filter of the log, as `--log` takes it.
pub(super) fn log_filter(value: &impl Value) -> Result<String, String> {
    let text = value.text().ok_or_else(|| wrong("a level, such as \"info\"", value))?;
    parse_log_filter(text).map(|_| text.to_owned())
}

/// A host by its name or address, with a port.
pub(super) fn host_and_port(value: &impl Value) -> Result<String, String> {
    let wrong = || wrong("HOST:PORT, such as zookeeper-1:2181", value);
    let text = value.text().ok_or_else(wrong)?;
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    port.parse::<u16>().map_err(|_| wrong())?;
    if host.is_empty() || (host.contains(':') && !host.starts_with('[')) {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

/// `ADDR:PORT`, where `ADDR` may be a name. Without it, or as `*`, it stands for all addresses.
/// A name that is not known yet is a late one.
pub(super) fn address(value: &impl Value, late: &mut LateNames) -> Result<SocketAddr, String> {
    let wrong = || wrong("ADDRESS:PORT, such as 127.0.0.1:2181", value);
    let (host, port) = value.text().and_then(|text| text.rsplit_once(':')).ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    // Without its brackets, the port of an IPv6 address could be a part of the address.
    if host.is_empty() || host == "*" {
        return Ok(SocketAddr::new(zoo_values::all_addresses(), port));
    }
    if host.contains(':') && !host.starts_with('[') {
        return Err(wrong());
    }
    Ok(SocketAddr::new(host_address(host, late)?, port))
}

/// A host that can be reached: a name, or an address without brackets.
pub(super) fn host(value: &impl Value) -> Result<String, String> {
    let is_host = |text: &&str| {
        if text.contains(':') {
            text.parse::<Ipv6Addr>().is_ok()
        } else {
            !text.is_empty() && !text.contains(char::is_whitespace)
        }
    };
    let host = value.text().filter(is_host);
    host.map(str::to_owned).ok_or_else(|| wrong("a name or an address without a port", value))
}

/// The address of a host: of a name the IPv4 address, if it has one, as in Java. A name that is not known is a late one: under Kubernetes
/// that passes.
pub(super) fn host_address(host: &str, late: &mut LateNames) -> Result<IpAddr, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match known_address(host) {
        Err(_) if !host.is_empty() && host.chars().all(is_name) => Ok(late.stand_in(host)),
        known => known,
    }
}

/// The address of a host that has to be known now.
pub(super) fn known_address(host: &str) -> Result<IpAddr, String> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let unresolved =
        |why: String| format!("expected an address or a name that can be resolved, found {host:?}{why}");
    let found: Vec<IpAddr> = (bare, 0)
        .to_socket_addrs()
        .map_err(|error| unresolved(format!(" ({error})")))?
        .map(|address| address.ip())
        .collect();
    let preferred = found.iter().find(|ip| ip.is_ipv4()).or(found.first());
    preferred.copied().ok_or_else(|| unresolved(String::new()))
}

/// Whose protocol clients speak, if it is one only.
pub(super) fn dialect(value: &impl Value) -> Result<Option<Dialect>, String> {
    match value.text() {
        Some("each") => Ok(None),
        Some("zookeeper") => Ok(Some(Dialect::ZooKeeper)),
        Some("clickhouse") => Ok(Some(Dialect::ClickHouse)),
        _ => Err(wrong("\"each\", \"zookeeper\" or \"clickhouse\"", value)),
    }
}

/// A name that clients compare with their own.
pub(super) fn availability_zone(value: &impl Value) -> Result<String, String> {
    let zone = value.text().filter(|text| !text.is_empty());
    zone.map(str::to_owned).ok_or_else(|| wrong("the name of a zone", value))
}

/// Names of hashes, as Java has them.
const DIGESTS: [(&str, DigestAlgorithm); 4] = [
    ("SHA1", DigestAlgorithm::Sha1),
    ("SHA-1", DigestAlgorithm::Sha1),
    ("SHA-256", DigestAlgorithm::Sha256),
    ("SHA-512", DigestAlgorithm::Sha512),
];

pub(super) fn digest_algorithm(value: &impl Value) -> Result<DigestAlgorithm, String> {
    let found =
        DIGESTS.iter().find(|(name, _)| value.text().is_some_and(|text| text.eq_ignore_ascii_case(name)));
    found.map(|(_, algorithm)| *algorithm).ok_or_else(|| wrong("SHA1, SHA-256 or SHA-512", value))
}

/// `USER:HASH` as ZooKeeper's digest scheme writes it. What was found is not shown: it may be a password.
pub(super) fn super_digest(value: &impl Value) -> Result<String, String> {
    let is_digest = |text: &&str| {
        text.split_once(':').is_some_and(|(user, hash)| {
            let is_hash = DIGESTS.iter().any(|(_, algorithm)| hash.len() == algorithm.encoded_len());
            !user.is_empty() && is_hash && hash.ends_with('=')
        })
    };
    let digest = value.text().filter(is_digest);
    digest.map(str::to_owned).ok_or_else(|| {
        "expected super: and the Base64 of the hash of super:PASSWORD, with SHA-1 28 characters that end in ="
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_address(text: &str, expected: Result<&str, &str>) {
        let expected = expected.map(|good| good.parse().unwrap()).map_err(str::to_owned);
        assert_eq!(address(&Text(text), &mut LateNames::default()), expected, "{text}");
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        check_address("127.0.0.1:2181", Ok("127.0.0.1:2181"));
        check_address("[::1]:0", Ok("[::1]:0"));
        check_address("localhost:2181", Ok("127.0.0.1:2181"));
        let all = SocketAddr::new(zoo_values::all_addresses(), 2181).to_string();
        check_address(":2181", Ok(&all));
        check_address("*:2181", Ok(&all));
        for bad in ["", "localhost", "127.0.0.1:", "127.0.0.1:65536", "::1:2181"] {
            check_address(bad, Err(&format!("expected ADDRESS:PORT, such as 127.0.0.1:2181, found {bad:?}")));
        }
    }

    #[test]
    fn a_name_that_cannot_be_resolved_is_named() {
        let mut late = LateNames::default();
        let line = host_address("no such host", &mut late).unwrap_err();
        assert!(
            line.starts_with("expected an address or a name that can be resolved, found \"no such host\" ("),
            "{line}"
        );
    }

    #[test]
    fn a_number_out_of_range_tells_the_bound() {
        let number = |text| milliseconds::<u32>(&Text(text));
        assert_eq!(number("2147483647"), Ok(2_147_483_647));
        for bad in ["2s", "0", "-1", ""] {
            assert_eq!(
                number(bad),
                Err(format!("expected a positive number of milliseconds, found {bad:?}"))
            );
        }
        let too_large = "expected a positive number of milliseconds up to 2147483647, found \"2147483648\"";
        assert_eq!(number("2147483648"), Err(too_large.to_owned()));
    }

    #[test]
    fn a_digest_that_is_wrong_is_not_shown() {
        assert!(super_digest(&Text("super:D/InIHSb7yEEbrWz8b9l71RjZJU=")).is_ok());
        for bad in ["super:secret", "D/InIHSb7yEEbrWz8b9l71RjZJU=", ":D/InIHSb7yEEbrWz8b9l71RjZJU=", ""] {
            let line = super_digest(&Text(bad)).unwrap_err();
            assert!(!line.contains("secret"), "{line}");
        }
    }
}
