//! The tracing context that a ClickHouse client puts behind a request.

/// Flag of a trace that is kept.
const SAMPLED: u8 = 1;
const TRACE_ID_DIGITS: usize = 32;

/// Whose part a span is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; not 0.
    pub trace_id: u128,
    /// The client's span; 0 if it has none.
    pub parent: u64,
    /// Data of other tracers about this trace. It is passed on.
    pub state: String,
}

impl TraceContext {
    /// Decodes the bytes behind a request: a byte that says if there is a context, and four lines, which are a UUID, two
    /// numbers with a text between them, and nothing that a request depends on. `None` if there is no context that asks
    /// for spans.
    pub fn decode(trace: &[u8]) -> Option<TraceContext> {
        let Some((1, lines)) = trace.split_first() else { return None };
        let mut lines = std::str::from_utf8(lines).ok()?.split('\n');
        let trace_id = lines.next()?.replace('-', "");
        let parent = lines.next()?.parse().ok()?;
        let state = unescape(lines.next()?);
        let flags: u8 = lines.next()?.parse().ok()?;
        let is_number = trace_id.len() == TRACE_ID_DIGITS && trace_id.bytes().all(|b| b.is_ascii_hexdigit());
        let trace_id = u128::from_str_radix(&trace_id, 16).ok().filter(|id| is_number && *id != 0)?;
        (flags & SAMPLED != 0).then_some(TraceContext { trace_id, parent, state })
    }
}

/// ClickHouse writes what would break a line, and quotes, behind a backslash.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        out.push(match char {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            char => char,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af76519-16cd-43dd-8448-eb211c80319c";

    fn decode(id: &str, span: &str, state: &str, flags: &str) -> Option<TraceContext> {
        TraceContext::decode(format!("\u{1}{id}\n{span}\n{state}\n{flags}\n").as_bytes())
    }

    #[test]
    fn a_sampled_context_is_read() {
        let context = |parent, state: &str| {
            let trace_id = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
            Some(TraceContext { trace_id, parent, state: state.into() })
        };
        assert_eq!(decode(ID, "77", "", "1"), context(77, ""));
        assert_eq!(decode(ID, "18446744073709551615", "a=1,b=2", "3"), context(u64::MAX, "a=1,b=2"));
        assert_eq!(decode(ID, "0", r"a=\'\\\'\n\0", "1"), context(0, "a='\\'\n\0"));
    }

    #[test]
    fn what_asks_for_no_span_makes_none() {
        assert_eq!(TraceContext::decode(b""), None);
        assert_eq!(TraceContext::decode(b"\0"), None);
        for flags in ["0", "2", "", "-1", "256"] {
            assert_eq!(decode(ID, "77", "", flags), None, "{flags}");
        }
        for id in ["00000000-0000-0000-0000-000000000000", "", "77", &ID[1..], &ID.replace('0', "+")] {
            assert_eq!(decode(id, "77", "", "1"), None, "{id}");
        }
        for span in ["", "-1", "x", "18446744073709551616"] {
            assert_eq!(decode(ID, span, "", "1"), None, "{span}");
        }
        assert_eq!(TraceContext::decode(b"\x01\xff\n1\n\n1\n"), None);
    }
}
