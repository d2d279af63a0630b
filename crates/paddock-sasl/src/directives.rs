//! The directives of a token: `name=value` and `name="value"` between commas.

use std::collections::BTreeMap;

/// The largest token, in bytes, as the RFC has it for answers.
const TOKEN_BYTES_MAX: usize = 4096;

/// A token that has no such form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedDirectives;

/// Directives by name.
#[derive(Debug)]
pub(crate) struct Directives {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Directives {
    pub(crate) fn parse(token: &[u8]) -> Result<Directives, MalformedDirectives> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Err(MalformedDirectives);
        }
        let mut values = BTreeMap::new();
        let mut rest = token;
        while let Some(begin) = rest.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t')) {
            rest = &rest[begin..];
            let equals = rest.iter().position(|byte| *byte == b'=').ok_or(MalformedDirectives)?;
            let name = rest[..equals].to_ascii_lowercase();
            let (value, len) = value(&rest[equals + 1..])?;
            rest = &rest[equals + 1 + len..];
            if values.insert(name, value).is_some() {
                return Err(MalformedDirectives);
            }
        }
        Ok(Directives { values })
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.values.get(name).map(Vec::as_slice)
    }

    pub(crate) fn need(&self, name: &[u8]) -> Result<&[u8], MalformedDirectives> {
        self.get(name).ok_or(MalformedDirectives)
    }

    /// A text, in the character set that the token says: Latin-1 unless it is UTF-8.
    pub(crate) fn text(&self, name: &[u8]) -> Option<String> {
        let bytes = self.get(name)?;
        match self.get(b"charset") {
            Some(_) => String::from_utf8(bytes.to_vec()).ok(),
            None => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        }
    }
}

/// A value, and the number of bytes that it takes.
fn value(rest: &[u8]) -> Result<(Vec<u8>, usize), MalformedDirectives> {
    let Some(quoted) = rest.strip_prefix(b"\"") else {
        let len = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        return Ok((rest[..len].trim_ascii().to_vec(), len));
    };
    let mut value = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Ok((value, at + 2)),
            b'\\' => value.push(*bytes.next().ok_or(MalformedDirectives)?.1),
            other => value.push(*other),
        }
    }
    Err(MalformedDirectives)
}

/// Appends `name="value"`.
pub(crate) fn put_quoted(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_read_again() {
        let mut token = b"charset=utf-8,".to_vec();
        put_quoted(&mut token, "username", r#"a "b\" ü, c="d"#.as_bytes());
        let read = Directives::parse(&token).unwrap();
        assert_eq!(read.text(b"username").unwrap(), r#"a "b\" ü, c="d"#);
    }
}
