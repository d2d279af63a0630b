//! JAAS files, in which ZooKeeper's servers keep the users of SASL.
//!
//! ```text
//! Server {
//!     org.apache.zookeeper.server.auth.DigestLoginModule required
//!     user_bob="secret";
//! };
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::properties;
use super::remark::{ConfigError, Location, cannot_read};

/// The section that ZooKeeper's servers read unless they are told another one.
pub(super) const SERVER: &str = "Server";
const DIGEST_MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";
/// Each user's password is an option of this name, with the user's behind it.
const USER: &str = "user_";

/// The users of a section, with their passwords.
pub(super) fn users(file: &Path, section: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let bytes = fs::read(file).map_err(|error| cannot_read(file, &error))?;
    let text = properties::decode(bytes);
    let sections = Parser::new(file, &text)?.sections()?;
    let modules = sections.get(section).ok_or_else(|| {
        let there: Vec<&str> = sections.keys().map(String::as_str).collect();
        Location::new(file).fault(format!("no section {section}; there are: {}", there.join(", ")))
    })?;
    let mut users = BTreeMap::new();
    for module in modules {
        if module.class != DIGEST_MODULE {
            let what = format!("{} is not offered: SASL goes by {DIGEST_MODULE} only", module.class);
            return Err(Location::at(file, module.line).fault(what));
        }
        for (name, value) in &module.options {
            let user = name.strip_prefix(USER).filter(|user| !user.is_empty());
            users.extend(user.map(|user| (user.to_owned(), value.clone())));
        }
    }
    if users.is_empty() {
        let what = format!("section {section} has no users; write {USER}NAME=\"PASSWORD\" into it");
        return Err(Location::new(file).fault(what));
    }
    Ok(users)
}

/// A login module with its options.
#[derive(Debug)]
struct Module {
    class: String,
    line: usize,
    options: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(char),
}

/// Tokens of a file, each with its line.
struct Parser<'a> {
    file: &'a Path,
    tokens: Vec<(usize, Token)>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn new(file: &'a Path, text: &str) -> Result<Parser<'a>, ConfigError> {
        let mut tokens = Vec::new();
        let mut chars = text.char_indices().peekable();
        let line_at = |at: usize| 1 + text[..at].matches('\n').count();
        while let Some((at, char)) = chars.next() {
            let rest = &text[at..];
            if char.is_whitespace() {
                continue;
            }
            let skipped = if rest.starts_with("//") || char == '#' {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                let end = rest.find("*/");
                end.ok_or_else(|| Location::at(file, line_at(at)).fault("a comment has no end"))? + 2
            } else {
                0
            };
            if skipped > 0 {
                while chars.next_if(|(next, _)| *next < at + skipped).is_some() {}
                continue;
            }
            let token = match char {
                '{' | '}' | ';' | '=' => Token::Sign(char),
                '"' => {
                    let mut word = String::new();
                    loop {
                        match chars.next() {
                            Some((_, '"')) => break,
                            Some((_, '\\')) => word.extend(chars.next().map(|(_, escaped)| escaped)),
                            Some((_, '\n')) | None => {
                                return Err(Location::at(file, line_at(at)).fault("a quotation has no end"));
                            }
                            Some((_, other)) => word.push(other),
                        }
                    }
                    Token::Word(word)
                }
                _ => {
                    let mut word = String::from(char);
                    let goes_on = |char: char| !char.is_whitespace() && !"{};=\"".contains(char);
                    while let Some((_, next)) = chars.next_if(|(_, next)| goes_on(*next)) {
                        word.push(next);
                    }
                    Token::Word(word)
                }
            };
            tokens.push((line_at(at), token));
        }
        Ok(Parser { file, tokens, next: 0 })
    }

    /// `Name { modules };` again and again.
    fn sections(mut self) -> Result<BTreeMap<String, Vec<Module>>, ConfigError> {
        let mut sections = BTreeMap::new();
        while self.next < self.tokens.len() {
            let name = self.word("the name of a section")?;
            self.sign('{')?;
            let mut modules = Vec::new();
            while !self.skips('}') {
                modules.push(self.module()?);
            }
            self.sign(';')?;
            sections.insert(name, modules);
        }
        Ok(sections)
    }

    /// `class flag name=value ... ;`
    fn module(&mut self) -> Result<Module, ConfigError> {
        let line = self.line();
        let class = self.word("the class of a login module")?;
        self.word("required, requisite, sufficient or optional")?;
        let mut options = Vec::new();
        while !self.skips(';') {
            let name = self.word("an option or a semicolon")?;
            self.sign('=')?;
            options.push((name, self.word("a value")?));
        }
        Ok(Module { class, line, options })
    }

    fn line(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(1, |(line, _)| *line)
    }

    fn word(&mut self, expected: &str) -> Result<String, ConfigError> {
        match self.tokens.get(self.next) {
            Some((_, Token::Word(word))) => {
                self.next += 1;
                Ok(word.clone())
            }
            _ => Err(self.expected(expected)),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), ConfigError> {
        if self.skips(sign) { Ok(()) } else { Err(self.expected(&format!("{sign:?}"))) }
    }

    fn skips(&mut self, sign: char) -> bool {
        let is_next = matches!(self.tokens.get(self.next), Some((_, Token::Sign(next))) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    fn expected(&self, expected: &str) -> ConfigError {
        let found = match self.tokens.get(self.next) {
            // It may be a password.
            Some((_, Token::Word(_))) => "a word".to_owned(),
            Some((_, Token::Sign(sign))) => format!("{sign:?}"),
            None => "the end of the file".to_owned(),
        };
        Location::at(self.file, self.line()).fault(format!("expected {expected}, found {found}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jaas.conf");
        fs::write(&file, text).unwrap();
        let users = users(&file, SERVER).map_err(|error| error.to_string());
        users
            .map(|users| users.into_iter().collect())
            .map_err(|line| line.replace(&format!("{}/", dir.path().display()), ""))
    }

    const MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule required";

    #[test]
    fn users_stand_in_the_server_section() {
        let text = format!(
            "// a comment\n/* another\none */\nClient {{ x.Y optional a=b; }};\n\
             Server {{\n  {MODULE}\n  user_super=\"admin\\\"s\" # not this\n  user_bob=secret;\n}};\n"
        );
        let expected = [("bob", "secret"), ("super", "admin\"s")];
        let expected: Vec<(String, String)> =
            expected.iter().map(|(user, password)| ((*user).into(), (*password).into())).collect();
        assert_eq!(read(&text), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        let check = |text: &str, expected: &str| assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        check("Other { };", "jaas.conf: no section Server; there are: Other");
        check(
            &format!("Server {{ {MODULE}; }};"),
            "jaas.conf: section Server has no users; write user_NAME=\"PASSWORD\" into it",
        );
        check(
            "Server {\n  com.sun.security.auth.module.Krb5LoginModule required\n  useKeyTab=true;\n};",
            "jaas.conf:2: com.sun.security.auth.module.Krb5LoginModule is not offered: SASL goes by \
             org.apache.zookeeper.server.auth.DigestLoginModule only",
        );
        check("Server {\n x required a;", "jaas.conf:2: expected '=', found ';'");
        check(
            "Server {\n x required",
            "jaas.conf:2: expected an option or a semicolon, found the end of the file",
        );
        check("Server {\n x required a=\"b", "jaas.conf:2: a quotation has no end");
        check("Server /* {", "jaas.conf:1: a comment has no end");
        check("Server { }", "jaas.conf:1: expected ';', found the end of the file");
    }
}
