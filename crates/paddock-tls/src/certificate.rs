//! Facts of a certificate that the TLS library does not tell.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, SubjectAlternativeName};
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::distinguished_name;

pub(crate) struct Facts<'a>(X509Certificate<'a>);

impl<'a> Facts<'a> {
    /// `None` if it cannot be read.
    pub(crate) fn of(certificate: &'a CertificateDer<'_>) -> Option<Facts<'a>> {
        X509Certificate::from_der(certificate).ok().map(|(_, parsed)| Facts(parsed))
    }

    pub(crate) fn not_before(&self) -> UnixTime {
        unix_time(self.0.validity().not_before)
    }

    pub(crate) fn not_after(&self) -> UnixTime {
        unix_time(self.0.validity().not_after)
    }

    /// The common name of a certificate whose list of alternative names has no host and no address: one with only a URI, as SPIFFE's, or
    /// none at all. As ZooKeeper's `ZKHostnameVerifier`.
    pub(crate) fn common_name_in_place_of_hosts(&self) -> Option<String> {
        let names_hosts = |names: &SubjectAlternativeName<'_>| {
            names
                .general_names
                .iter()
                .any(|name| matches!(name, GeneralName::DNSName(_) | GeneralName::IPAddress(_)))
        };
        match self.0.subject_alternative_name() {
            Ok(None) => {}
            Ok(Some(names)) if !names_hosts(names.value) => {}
            Ok(Some(_)) | Err(_) => return None,
        }
        let name = self.0.subject().iter_common_name().next()?;
        distinguished_name::text_of(name.attr_value()).map(Cow::into_owned)
    }

    /// The subject in the form in which ZooKeeper's `x509` scheme has it.
    pub(crate) fn subject(&self) -> String {
        distinguished_name::java_form(self.0.subject())
    }
}

impl fmt::Display for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last_day = self.0.validity().not_after.to_datetime().date();
        write!(f, "{}, valid until {last_day}", self.subject())
    }
}

/// Times before 1970 are as good as 1970.
fn unix_time(time: ASN1Time) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or(0)))
}
