//! The ids of the scheme `x509`: distinguished names, as Java's `X500Principal` reads them.

/// Names of attributes that Java knows, beside their numbers.
const KEYWORDS: [&str; 21] = [
    "CN",
    "C",
    "L",
    "S",
    "ST",
    "O",
    "OU",
    "T",
    "IP",
    "STREET",
    "DC",
    "DNQUALIFIER",
    "DNQ",
    "SURNAME",
    "GIVENNAME",
    "INITIALS",
    "GENERATION",
    "EMAIL",
    "EMAILADDRESS",
    "UID",
    "SERIALNUMBER",
];

/// True if a text is the name that a certificate can have. The empty name is one, too.
pub(crate) fn is_distinguished_name(text: &str) -> bool {
    text.is_empty() || attributes(text).is_some_and(|attributes| attributes.into_iter().all(is_attribute))
}

/// The attributes between separators that are neither quoted nor behind a backslash; `None` if a quotation has no end.
fn attributes(text: &str) -> Option<Vec<&str>> {
    let mut attributes = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' | ';' | '+' if !is_quoted => {
                attributes.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    attributes.push(&text[start..]);
    (!is_quoted && !is_escaped).then_some(attributes)
}

/// True for `KEYWORD=VALUE`, where a number may stand for the keyword.
fn is_attribute(text: &str) -> bool {
    let Some((keyword, _)) = text.split_once('=') else { return false };
    let keyword = keyword.trim();
    let number = match keyword.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case("OID.") => &keyword[4..],
        _ => keyword,
    };
    KEYWORDS.iter().any(|known| known.eq_ignore_ascii_case(keyword)) || is_number(number)
}

/// True for the number of an attribute, such as `2.5.4.3`.
fn is_number(text: &str) -> bool {
    text.split('.').count() >= 2
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of `new X500Principal(text)` of Java 17.
    #[test]
    fn a_name_is_read_as_java_reads_it() {
        for (text, expected) in [
            ("", true),
            ("CN=a", true),
            ("cn=a,o=b+ou=c", true),
            ("foo=a", false),
            ("1.2.3=x", true),
            ("OID.1.2.3=x", true),
            ("CN", false),
            ("CN=", true),
            ("=a", false),
            ("CN=a,", false),
            ("CN=a;O=b", true),
            ("CN=\"a,b\"", true),
            ("CN=a\\,b", true),
            ("spiffe://x", false),
            (" CN=a", true),
            ("CN =a", true),
            ("1.2=#1603616263", true),
            ("CN=a=b", true),
            ("CN=a,,O=b", false),
            ("EMAILADDRESS=x@y", true),
            ("T=x", true),
        ] {
            assert_eq!(is_distinguished_name(text), expected, "{text}");
        }
    }
}
