//! Versions of TLS.

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

use crate::settings::TlsVersions;

pub(crate) fn protocol_versions(versions: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
    match versions {
        TlsVersions::Both => &BOTH,
        TlsVersions::Only12 => &BOTH[..1],
        TlsVersions::Only13 => &BOTH[1..],
    }
}
