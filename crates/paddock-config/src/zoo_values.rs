//! Values of `zoo.cfg` that ZooKeeper reads in a way of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use paddock_server::{MemberSettings, WordList};

use super::value::{self, Text};

/// All addresses of this machine: both families where the system has IPv6.
pub(super) fn all_addresses() -> IpAddr {
    let v6 = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    match UdpSocket::bind((v6, 0)) {
        Ok(_) => v6,
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// 0 stands for no port.
pub(super) fn port(value: &Text<'_>) -> Result<Option<u16>, String> {
    let port: u16 = value::number(value, 0..=65535, value::A_PORT)?;
    Ok(Some(port).filter(|port| *port != 0))
}

/// `true` or `false`, which ZooKeeper insists on.
pub(super) fn boolean(value: &Text<'_>) -> Result<bool, String> {
    match value.0.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(value::wrong("true or false", value)),
    }
}

/// -1 leaves it to the tick.
pub(super) fn timeout(value: &Text<'_>) -> Result<Option<u32>, String> {
    if value.0 == "-1" { Ok(None) } else { value::milliseconds(value).map(Some) }
}

/// Tries to listen. 0 is for ever, and below it ZooKeeper takes its default.
pub(super) fn tries(value: &Text<'_>) -> Result<u32, String> {
    let tries: i32 = value::number(value, i32::MIN.into()..=i32::MAX.into(), "a number of tries")?;
    Ok(u32::try_from(tries).unwrap_or(3))
}

/// A limit below 1 is no limit.
pub(super) fn connections(value: &Text<'_>) -> Result<u32, String> {
    let limit: i32 = value::number(value, i32::MIN.into()..=i32::MAX.into(), "a number of connections")?;
    Ok(limit.max(0).unsigned_abs())
}

/// Parts of a text between commas.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

pub(super) fn words(text: &str) -> WordList {
    let mut words: Vec<String> = list(text).map(str::to_owned).collect();
    if words.iter().any(|word| word == "*") {
        return WordList::All;
    }
    // ZooKeeper's own scripts depend on it, so ZooKeeper always answers it.
    if !words.iter().any(|word| word == "srvr") {
        words.push("srvr".to_owned());
    }
    WordList::Only(words)
}

/// A number as Java's `Integer.decode` reads it: hexadecimal after `0x` or `#`, octal after `0`.
pub(super) fn frame_bytes(value: &Text<'_>) -> Result<i32, String> {
    let text = value.0;
    let hexadecimal = ["0x", "0X", "#"].iter().find_map(|prefix| text.strip_prefix(prefix));
    let (digits, radix) = match (hexadecimal, text.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (text, 10),
    };
    match i32::from_str_radix(digits, radix) {
        Ok(bytes) if bytes > 0 && !digits.starts_with('+') => Ok(bytes),
        _ => Err(value::wrong("a positive number of bytes up to 0x7fffffff", value)),
    }
}

/// A limit below 1 is no limit.
pub(super) fn snapshot_log_bytes(value: &Text<'_>) -> Result<u64, String> {
    let kib: i64 = value::number(value, i64::MIN..=i64::MAX, "a number of KiB")?;
    Ok(u64::try_from(kib).ok().filter(|kib| *kib > 0).map_or(u64::MAX, |kib| kib.saturating_mul(1024)))
}

/// In ZooKeeper any number goes, and one below 1 turns preallocation off.
pub(super) fn segment_bytes(value: &Text<'_>) -> Result<u64, String> {
    let kib: i64 = value::number(value, i64::MIN..=i64::MAX, "a number of KiB")?;
    let (min, max) = MemberSettings::SEGMENT_BYTES.into_inner();
    Ok(kib.saturating_mul(1024).clamp(min, max).unsigned_abs())
}
