//! JAAS files, in which ZooKeeper's servers keep the users of SASL.
//!
//! ```text
//! Server {
//!     org.apache.zookeeper.server.auth.DigestLoginModule required
//!     user_bob="secret";
//! };
//! ```
//!
//! For Kerberos the module is `com.sun.security.auth.module.Krb5LoginModule`, and names the service's principal and its keytab.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::CharIndices;

use super::remark::{ConfigError, Location, Remarks};
use super::text_file;

/// The section that ZooKeeper's servers read unless they are told another one.
pub(super) const SERVER: &str = "Server";
const DIGEST_MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";
const KERBEROS_MODULE: &str = "com.sun.security.auth.module.Krb5LoginModule";
/// Each user's password is an option of this name, with the user's behind it.
const USER: &str = "user_";

/// Users and services of a section.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// Passwords by user.
    pub(super) users: BTreeMap<String, String>,
    pub(super) kerberos: Option<KerberosLogin>,
}

/// The service's own principal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KerberosLogin {
    pub(super) principal: String,
    /// `None` is the keytab of the machine.
    pub(super) keytab: Option<PathBuf>,
}

/// Reads a section of a file.
pub(super) fn section(file: &Path, section: &str, remarks: &mut Remarks) -> Result<Section, ConfigError> {
    let text = text_file::read(file)?;
    let sections = Parser::new(file, &text)?.sections()?;
    let modules = sections.get(section).ok_or_else(|| {
        let there: Vec<&str> = sections.keys().map(String::as_str).collect();
        Location::new(file).fault(format!("no section {section}; there are: {}", there.join(", ")))
    })?;
    let mut read = Section::default();
    let has_users =
        modules.iter().any(|module| module.class == DIGEST_MODULE && module.users().next().is_some());
    for module in modules {
        let place = Location::at(file, module.line);
        match module.class.as_str() {
            DIGEST_MODULE => read.users.extend(module.users()),
            KERBEROS_MODULE => match module.kerberos() {
                Ok(kerberos) => read.kerberos = Some(kerberos),
                // The users can log in all the same.
                Err(what) if has_users => {
                    remarks.push(place.warning(format!("no client can log in by Kerberos: {what}")));
                }
                Err(what) => return Err(place.fault(what)),
            },
            class => {
                let what = format!(
                    "{class} is not offered: SASL goes by {DIGEST_MODULE} and {KERBEROS_MODULE} only"
                );
                return Err(place.fault(what));
            }
        }
    }
    if read == Section::default() {
        let what = format!("section {section} has no users; write {USER}NAME=\"PASSWORD\" into it");
        return Err(Location::new(file).fault(what));
    }
    Ok(read)
}

/// A login module with its options.
#[derive(Debug)]
struct Module {
    class: String,
    line: usize,
    options: Vec<(String, String)>,
}

impl Module {
    fn users(&self) -> impl Iterator<Item = (String, String)> {
        self.options.iter().filter_map(|(name, value)| {
            let user = name.strip_prefix(USER).filter(|user| !user.is_empty())?;
            Some((user.to_owned(), value.clone()))
        })
    }

    /// The other options are about tickets that a client gets for itself.
    fn kerberos(&self) -> Result<KerberosLogin, String> {
        let option = |wanted: &str| {
            let mut options = self.options.iter().rev();
            options.find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        if option("useKeyTab").is_none_or(|value| !value.eq_ignore_ascii_case("true")) {
            return Err("a server's keys are in a keytab: useKeyTab=true is missing".to_owned());
        }
        let principal = option("principal").filter(|principal| !principal.is_empty() && *principal != "*");
        let principal = principal
            .ok_or("principal is missing: the name that clients ask for, such as zookeeper/HOST@REALM")?;
        // Java takes it as a URL, too.
        let keytab = option("keyTab").map(|path| path.strip_prefix("file:").unwrap_or(path).into());
        Ok(KerberosLogin { principal: principal.to_owned(), keytab })
    }
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

/// The character behind a backslash, as Java reads it: a letter that stands for a control character, up to three octal digits, or the
/// character itself.
fn escaped(chars: &mut Peekable<CharIndices<'_>>) -> Option<char> {
    let (_, first) = chars.next()?;
    let octal = |char: char| char.to_digit(8);
    let Some(mut code) = octal(first) else {
        return Some(match first {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            other => other,
        });
    };
    // The largest is 377, so a third digit counts behind 0 to 3 only.
    let more = if first <= '3' { 2 } else { 1 };
    for _ in 0..more {
        let Some((_, digit)) = chars.next_if(|(_, next)| octal(*next).is_some()) else { break };
        code = code * 8 + octal(digit).expect("it is one");
    }
    char::from_u32(code)
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
                            Some((_, '\\')) => word.extend(escaped(&mut chars)),
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
            // The word may be a password.
            Some((_, Token::Word(_))) => "a word".to_owned(),
            Some((_, Token::Sign(sign))) => format!("{sign:?}"),
            None => "the end of the file".to_owned(),
        };
        Location::at(self.file, self.line()).fault(format!("expected {expected}, found {found}"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jaas.conf");
        fs::write(&file, text).unwrap();
        let section = section(&file, SERVER, &mut Remarks::default()).map_err(|error| error.to_string());
        section
            .map(|section| section.users.into_iter().collect())
            .map_err(|line| line.replace(&format!("{}/", dir.path().display()), ""))
    }

    #[test]
    fn kerberos_has_a_principal_and_a_keytab() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jaas.conf");
        let module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true";
        let principal = "principal=\"zookeeper/box@EXAMPLE.COM\"";
        for (keytab, expected) in [("keyTab=\"/etc/zk.keytab\"", Some("/etc/zk.keytab".into())), ("", None)] {
            fs::write(&file, format!("Server {{ {module} {keytab} {principal}; }};")).unwrap();
            let principal = "zookeeper/box@EXAMPLE.COM".to_owned();
            let kerberos = Some(KerberosLogin { principal, keytab: expected });
            assert_eq!(
                section(&file, SERVER, &mut Remarks::default()),
                Ok(Section { users: BTreeMap::new(), kerberos })
            );
        }
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
    fn escapes_are_those_of_java() {
        let password = r#"\ta\n\101\0\1234\477\"\\\q\v"#;
        let expected = "\ta\nA\0S4\u{27}7\"\\q\u{b}";
        let text = format!("Server {{ {MODULE} user_bob=\"{password}\"; }};");
        assert_eq!(read(&text), Ok(vec![("bob".to_owned(), expected.to_owned())]));
    }

    #[test]
    fn users_can_log_in_beside_a_module_for_kerberos() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("jaas.conf");
        const KERBEROS: &str = "com.sun.security.auth.module.Krb5LoginModule";
        for (options, has_kerberos) in
            [("useKeyTab=true principal=\"zookeeper/box@EXAMPLE.COM\"", true), ("useTicketCache=true", false)]
        {
            let text = format!("Server {{\n {MODULE} user_bob=b;\n {KERBEROS} optional {options};\n}};");
            fs::write(&file, text).unwrap();
            let mut remarks = Remarks::default();
            let section = section(&file, SERVER, &mut remarks).unwrap();
            assert_eq!(section.users.len(), 1);
            assert_eq!((section.kerberos.is_some(), remarks.list.is_empty()), (has_kerberos, has_kerberos));
        }
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
            "Server {\n  com.sun.security.auth.module.JndiLoginModule required;\n};",
            "jaas.conf:2: com.sun.security.auth.module.JndiLoginModule is not offered: SASL goes by \
             org.apache.zookeeper.server.auth.DigestLoginModule and com.sun.security.auth.module.Krb5LoginModule only",
        );
        let kerberos = |options: &str| {
            format!("Server {{\n  com.sun.security.auth.module.Krb5LoginModule required {options};\n}};")
        };
        check(
            &kerberos("useTicketCache=true"),
            "jaas.conf:2: a server's keys are in a keytab: useKeyTab=true is missing",
        );
        check(
            &kerberos("useKeyTab=true"),
            "jaas.conf:2: principal is missing: the name that clients ask for, such as zookeeper/HOST@REALM",
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
