//! Distinguished names in the form that Java gives them: `X500Principal.getName()`, which follows RFC 2253.
//!
//! ZooKeeper's ACLs of the scheme `x509` hold names in this form, so it has to be the same to the byte.

use x509_parser::asn1_rs::{Oid, Tag, ToDer};
use x509_parser::prelude::AttributeTypeAndValue;
use x509_parser::x509::X509Name;

/// The attributes that RFC 2253 has names for. All others are written as numbers.
const KEYWORDS: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
];
const STRINGS: [Tag; 7] = [
    Tag::Utf8String,
    Tag::PrintableString,
    Tag::Ia5String,
    Tag::T61String,
    Tag::GeneralString,
    Tag::BmpString,
    Tag::UniversalString,
];

/// The last part of a name comes first.
pub(super) fn java_form(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+")).collect();
    parts.reverse();
    parts.join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let value = attribute.attr_value();
    match keyword(attribute.attr_type()) {
        Some(keyword) if STRINGS.contains(&value.tag()) => {
            format!("{keyword}={}", escape(&String::from_utf8_lossy(value.data)))
        }
        keyword => {
            let number = keyword.map_or_else(|| attribute.attr_type().to_id_string(), str::to_owned);
            let der = value.to_der_vec().unwrap_or_default();
            let digits: String = der.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{number}=#{digits}")
        }
    }
}

fn keyword(oid: &Oid<'_>) -> Option<&'static str> {
    let number = oid.to_id_string();
    KEYWORDS.iter().find(|(known, _)| *known == number).map(|(_, keyword)| *keyword)
}

/// Puts a backslash in front of what would else have a meaning, and in front of spaces at both ends.
fn escape(value: &str) -> String {
    let is_space = |c: char| c == ' ' || c == '\r';
    let inner = value.trim_matches(is_space);
    let start = value.len() - value.trim_start_matches(is_space).len();
    let end = start + inner.len();
    let mut escaped = String::with_capacity(value.len());
    for (at, c) in value.char_indices() {
        let is_outer_space = at < start || at >= end;
        match c {
            '\0' => escaped.push_str("\\00"),
            ',' | '=' | '+' | '<' | '>' | '#' | ';' | '"' | '\\' => escaped.extend(['\\', c]),
            c if is_outer_space => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
    use rustls::pki_types::CertificateDer;

    use super::super::certificate::Facts;

    #[track_caller]
    fn check(parts: Vec<(DnType, DnValue)>, expected: &str) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind, value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let certificate = CertificateDer::from(certificate.der().to_vec());
        assert_eq!(Facts::of(&certificate).unwrap().subject(), expected);
    }

    fn text(text: &str) -> DnValue {
        DnValue::Utf8String(text.to_owned())
    }

    /// Each expected name was printed by `X500Principal.getName()` of Java 17.
    #[test]
    fn a_name_is_written_as_java_writes_it() {
        let parts = vec![
            (DnType::CountryName, DnValue::PrintableString("DE".try_into().unwrap())),
            (DnType::OrganizationName, text("Example, Inc.")),
            (DnType::CommonName, text("client one")),
        ];
        check(parts, "CN=client one,O=Example\\, Inc.,C=DE");
        check(vec![(DnType::CommonName, text(" a#b+c=\"d\" "))], "CN=\\ a\\#b\\+c\\=\\\"d\\\"\\ ");
        check(vec![(DnType::CommonName, text("jürgen"))], "CN=jürgen");
        let mail = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        let mail_value = DnValue::Ia5String("a@b.de".try_into().unwrap());
        check(vec![(mail, mail_value)], "1.2.840.113549.1.9.1=#16066140622e6465");
        check(vec![], "");
    }
}
