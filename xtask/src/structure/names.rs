//! Names of types that stand for several things: the same name is defined in many files of the workspace.

/// Types that a file defines at its top level.
pub(super) fn defined(text: &str) -> Vec<&str> {
    text.lines().filter_map(defined_by).collect()
}

fn defined_by(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word.starts_with("pub") {
        // `pub(in crate::a)` is two words.
        word = words.find(|word| !word.ends_with(')'))?;
    }
    let is_type = matches!(word, "struct" | "enum" | "union" | "trait" | "type");
    if !is_type || line.starts_with(char::is_whitespace) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_definitions() {
        let text = "\
pub struct Alpha<'a> {
    struct Inner;
pub(crate) enum Beta {
pub(in crate::engine) struct Gamma(u64);
trait Delta: Send {
type Epsilon = Vec<u8>;
impl Alpha {
// struct Comment;
pub use other::Eta;
fn beta() {}
struct Zeta;
";
        assert_eq!(defined(text), ["Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta"]);
    }
}
