//! Distinguished names in the form that Java gives them: `X500Principal.getName()`, which follows RFC 2253.
//!
//! ZooKeeper's ACLs of the scheme `x509` hold names in this form, so it has to be the same to the byte. A value is text only if its bytes
//! are text of its own ASN.1 type: bytes of another one would spell a name that was never certified. All others are written as `#` and
//! their DER in hexadecimal digits, which no text can look like, where Java writes U+FFFD in place of what it cannot read.

use std::borrow::Cow;

use x509_parser::asn1_rs::{Any, Class, Oid, Tag, ToDer};
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

/// The last part of a name comes first.
pub(crate) fn java_form(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+")).collect();
    parts.reverse();
    parts.join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let value = attribute.attr_value();
    match keyword(attribute.attr_type()) {
        Some(keyword) => match text_of(value) {
            Some(text) => format!("{keyword}={}", escape(&text)),
            None => format!("{keyword}={}", hexadecimal(value)),
        },
        None => format!("{}={}", attribute.attr_type().to_id_string(), hexadecimal(value)),
    }
}

fn keyword(oid: &Oid<'_>) -> Option<&'static str> {
    let number = oid.to_id_string();
    KEYWORDS.iter().find(|(known, _)| *known == number).map(|(_, keyword)| *keyword)
}

fn hexadecimal(value: &Any<'_>) -> String {
    let der = value.to_der_vec().unwrap_or_default();
    std::iter::once("#".to_owned()).chain(der.iter().map(|byte| format!("{byte:02x}"))).collect()
}

/// The text of a value, read by its type; `None` for one that is no text, and for bytes that its type does not have. Java does not read
/// `UniversalString` either.
pub(crate) fn text_of<'a>(value: &Any<'a>) -> Option<Cow<'a, str>> {
    if value.header.class() != Class::Universal || value.header.is_constructed() {
        return None;
    }
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        // Some authorities put an at sign or a star into a PrintableString, and Java reads it.
        Tag::PrintableString | Tag::Ia5String | Tag::GeneralString if bytes.is_ascii() => {
            std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
        }
        // Teletex is far more than Latin-1, but that is what everybody means by it, newer versions of Java included.
        Tag::T61String => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => two_byte_text(bytes).map(Cow::Owned),
        _ => None,
    }
}

/// The text of a `BMPString`, which has no characters beyond the first plane of Unicode.
fn two_byte_text(bytes: &[u8]) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let character = |pair: &[u8; 2]| char::from_u32(u16::from_be_bytes(*pair).into());
    if rest.is_empty() { pairs.iter().map(character).collect() } else { None }
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
    use x509_parser::prelude::FromDer;
    use x509_parser::x509::X509Name;

    use crate::certificate::Facts;

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

    /// A value of a common name with this tag and these bytes, as a name prints it.
    #[track_caller]
    fn check_value(tag: u8, content: &[u8], expected: &str) {
        let tlv = |tag: u8, parts: &[&[u8]]| {
            let content = parts.concat();
            [&[tag, content.len() as u8][..], &content].concat()
        };
        let value = tlv(tag, &[content]);
        let name = tlv(0x30, &[&tlv(0x31, &[&tlv(0x30, &[b"\x06\x03\x55\x04\x03", &value])])]);
        let (_, name) = X509Name::from_der(&name).unwrap();
        assert_eq!(super::java_form(&name), expected, "{tag:#x} {content:x?}");
    }

    /// The names are those that `X500Principal.getName()` of Java 25 printed, which reads a value by its type. (Java 17 takes every
    /// string for UTF-8, so that the first of them is `root` to it.)
    #[test]
    fn a_value_is_read_by_its_type_as_java_reads_it() {
        check_value(0x1e, b"root", "CN=牯潴");
        check_value(0x1e, b"\0r\0o\0o\0t", "CN=root");
        check_value(0x1e, b"\0,\0=\0 \0a\0 ", "CN=\\,\\= a\\ ");
        check_value(0x1e, b"\0r\0\0", "CN=r\\00");
        check_value(0x1e, b"\xfe\xff\0A", "CN=\u{feff}A");
        check_value(0x1e, b"", "CN=");
        check_value(0x1c, b"\0\0\0r\0\0\0o\0\0\0o\0\0\0t", "CN=#1c10000000720000006f0000006f00000074");
        check_value(0x14, b"j\xfcrgen", "CN=jürgen");
        check_value(0x14, b"root", "CN=root");
        for tag in [0x0c, 0x13, 0x16, 0x1b] {
            check_value(tag, b"root", "CN=root");
            check_value(tag, b"ro*t@_", "CN=ro*t@_");
        }
        check_value(0x1a, b"root", "CN=#1a04726f6f74");
        check_value(0x12, b"123", "CN=#1203313233");
        check_value(0x04, b"root", "CN=#0404726f6f74");
        check_value(0x2c, b"\x0c\x04root", "CN=#2c060c04726f6f74");
        check_value(0x30, b"\x0c\x04root", "CN=#30060c04726f6f74");
        check_value(0x0c, b"r\0t", "CN=r\\00t");
        check_value(0x0c, b"\ra\r", "CN=\\\ra\\\r");
        check_value(0x0c, b"#ab#c", "CN=\\#ab\\#c");
    }

    /// Java puts U+FFFD in place of the bytes, so that many values have one name.
    #[test]
    fn a_value_that_is_no_text_of_its_type_is_written_in_digits() {
        check_value(0x0c, b"r\xfft", "CN=#0c0372ff74");
        check_value(0x0c, b"r\xc0\xae", "CN=#0c0372c0ae");
        check_value(0x0c, b"\xed\xa0\xbd", "CN=#0c03eda0bd");
        check_value(0x1e, b"\0r\0", "CN=#1e03007200");
        check_value(0x1e, b"\xd8\x3d\xde\0", "CN=#1e04d83dde00");
        check_value(0x13, b"r\xfc", "CN=#130272fc");
        check_value(0x16, b"r\xc3\xbc", "CN=#160372c3bc");
        check_value(0x1b, b"r\xfc", "CN=#1b0272fc");
        // The number of UTF8String, but as the twelfth kind of something else.
        check_value(0x8c, b"root", "CN=#8c04726f6f74");
    }
}
