//! Bodies of requests with all that a client can get wrong, next to their story.

use paddock_proto::jute::Writer;

/// A path below which a sequence lives. Every performance of the sequence gets a root of its own with as many letters,
/// so that bodies can be made before it is known.
pub const ROOT: &str = "/o@@@@@@";

/// A request's fields: the bytes, and how a reader would write them.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub story: String,
}

impl Body {
    pub fn new() -> Body {
        Body::default()
    }

    fn tell(&mut self, text: &str) {
        if !self.story.is_empty() {
            self.story.push(' ');
        }
        self.story.push_str(text);
    }

    pub fn int(mut self, name: &str, value: i32) -> Body {
        self.bytes.put_i32(value);
        self.tell(&format!("{name}={value}"));
        self
    }

    pub fn long(mut self, name: &str, value: i64) -> Body {
        self.bytes.put_i64(value);
        self.tell(&format!("{name}={value}"));
        self
    }

    pub fn flag(mut self, name: &str, value: bool) -> Body {
        self.bytes.put_bool(value);
        if value {
            self.tell(name);
        }
        self
    }

    pub fn string(mut self, value: Option<&str>) -> Body {
        self.bytes.put_buffer(value.map(str::as_bytes));
        self.tell(&match value {
            Some(text) => format!("{text:?}"),
            None => "null".into(),
        });
        self
    }

    pub fn buffer(mut self, value: Option<&[u8]>) -> Body {
        self.bytes.put_buffer(value);
        self.tell(&match value {
            Some(bytes) if bytes.len() > 40 => format!("[{} bytes]", bytes.len()),
            Some(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
            None => "null".into(),
        });
        self
    }

    /// A vector of which `item` appends one.
    pub fn list<T>(
        mut self,
        name: &str,
        items: Option<&[T]>,
        mut item: impl FnMut(Body, &T) -> Body,
    ) -> Body {
        let Some(items) = items else {
            self.bytes.put_i32(-1);
            self.tell(&format!("{name}=null"));
            return self;
        };
        self.bytes.put_count(items.len());
        self.tell(&format!("{name}=["));
        for one in items {
            self = item(self, one);
        }
        self.tell("]");
        self
    }

    /// Puts another body behind this one.
    pub fn then(mut self, other: Body) -> Body {
        self.bytes.extend_from_slice(&other.bytes);
        self.tell(&other.story);
        self
    }

    /// Remarks something about what is already there.
    pub fn remark(mut self, text: &str) -> Body {
        self.tell(text);
        self
    }
}

/// Replaces the placeholder root wherever it stands.
pub fn with_root(bytes: &[u8], root: &str) -> Vec<u8> {
    assert!(root.len() == ROOT.len(), "lengths in front of paths must stay true");
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while at + ROOT.len() <= bytes.len() {
        let window = &mut bytes[at..at + ROOT.len()];
        if window == ROOT.as_bytes() {
            window.copy_from_slice(root.as_bytes());
        }
        at += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_replaced_everywhere() {
        let bytes = b"x/o@@@@@@/a/o@@@@@@y";
        assert_eq!(with_root(bytes, "/o000042"), b"x/o000042/a/o000042y");
    }

    #[test]
    fn a_story_tells_what_the_bytes_say() {
        let body = Body::new().string(Some("/a")).buffer(None).flag("watch", true).int("version", -1);
        assert_eq!(body.story, "\"/a\" null watch version=-1");
        assert_eq!(body.bytes.len(), 6 + 4 + 1 + 4);
    }
}
