//! Principals of Kerberos as users in ACLs, by the rules that ZooKeeper takes.
//!
//! A principal is `user@REALM` or `service/host@REALM`. The first rule that is about it gives its short name; then its host and its realm
//! are put behind that again, unless they are to be removed. A rule is `DEFAULT`, which takes the first part of principals of the default
//! realm, or `RULE:[PARTS:FORMAT](MATCH)s/FROM/TO/g`: for principals of PARTS parts in front of the realm, the format is filled in
//! (`$0` is the realm, `$1` and `$2` are the parts), has to match as a whole, and what matches `FROM` in it becomes `TO`.

use regex::Regex;

/// The user that a principal is.
#[derive(Clone, Debug)]
pub struct PrincipalNames {
    removes_host: bool,
    removes_realm: bool,
    text: String,
    rules: Vec<Rule>,
}

/// Names are the same if they were asked for in the same words.
impl PartialEq for PrincipalNames {
    fn eq(&self, other: &PrincipalNames) -> bool {
        let key = |names: &PrincipalNames| (names.removes_host, names.removes_realm, names.text.clone());
        key(self) == key(other)
    }
}

impl Eq for PrincipalNames {}

impl Default for PrincipalNames {
    fn default() -> PrincipalNames {
        let (removes_host, removes_realm) = (false, false);
        PrincipalNames { removes_host, removes_realm, text: DEFAULT.to_owned(), rules: vec![Rule::Default] }
    }
}

const DEFAULT: &str = "DEFAULT";

#[derive(Clone, Debug)]
enum Rule {
    Default,
    Format { parts: usize, format: Vec<Piece>, matches: Option<Regex>, substitution: Option<Substitution> },
}

/// A piece of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The realm, or the part of this number.
    Part(usize),
}

#[derive(Clone, Debug)]
struct Substitution {
    from: Regex,
    to: String,
    is_repeated: bool,
}

impl PrincipalNames {
    /// Names by rules, of which one or more stand in `rules`.
    pub fn new(rules: &str, removes_host: bool, removes_realm: bool) -> Result<PrincipalNames, String> {
        let text = rules.trim().to_owned();
        let mut parsed = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (rule, behind) = parse(rest).ok_or_else(|| format!("no rule for principals: {rest}"))?;
            parsed.push(rule.map_err(|error| format!("{rest}: {error}"))?);
            rest = behind.trim_start();
        }
        if parsed.is_empty() {
            return Err("no rule for principals; DEFAULT is one".to_owned());
        }
        Ok(PrincipalNames { removes_host, removes_realm, text, rules: parsed })
    }

    /// The rules as they were written.
    pub fn rules(&self) -> &str {
        &self.text
    }

    /// True if the host of a principal is no part of its user.
    pub fn removes_host(&self) -> bool {
        self.removes_host
    }

    /// True if the realm of a principal is no part of its user.
    pub fn removes_realm(&self) -> bool {
        self.removes_realm
    }

    /// The user that a principal is; `None` if it has no form of a principal. One that no rule is about keeps its whole name.
    pub(super) fn user(&self, principal: &str, default_realm: &str) -> Option<String> {
        let (name, realm) = principal.split_once('@')?;
        let (first, host) = match name.split_once('/') {
            Some((first, host)) => (first, Some(host)),
            None => (name, None),
        };
        if [host.unwrap_or_default(), realm].iter().any(|part| part.contains(['/', '@'])) {
            return None;
        }
        let mut parts = vec![realm, first];
        parts.extend(host);
        let Some(mut user) = self.rules.iter().find_map(|rule| rule.apply(&parts, default_realm)) else {
            return Some(principal.to_owned());
        };
        if user.contains(['/', '@']) {
            // As no rule may make a user of several parts, ZooKeeper takes none then.
            return Some(principal.to_owned());
        }
        for (sign, part, is_removed) in
            [('/', host, self.removes_host), ('@', Some(realm), self.removes_realm)]
        {
            if let Some(part) = part.filter(|_| !is_removed) {
                user.push(sign);
                user.push_str(part);
            }
        }
        Some(user)
    }
}

impl Rule {
    /// The short name of a principal, if the rule is about it. `principal` is its realm and its parts.
    fn apply(&self, principal: &[&str], default_realm: &str) -> Option<String> {
        match self {
            Rule::Default => (principal[0] == default_realm).then(|| principal[1].to_owned()),
            Rule::Format { parts, format, matches, substitution } => {
                if principal.len() - 1 != *parts {
                    return None;
                }
                let filled: String = format
                    .iter()
                    .map(|piece| match piece {
                        Piece::Text(text) => text,
                        Piece::Part(number) => principal[*number],
                    })
                    .collect();
                if matches.as_ref().is_some_and(|matches| !matches.is_match(&filled)) {
                    return None;
                }
                let Some(Substitution { from, to, is_repeated }) = substitution else { return Some(filled) };
                let times = if *is_repeated { 0 } else { 1 };
                Some(from.replacen(&filled, times, to.as_str()).into_owned())
            }
        }
    }
}

/// The first rule of a text, and what stands behind it; `None` if it has no form of a rule.
fn parse(text: &str) -> Option<(Result<Rule, String>, &str)> {
    if let Some(rest) = text.strip_prefix(DEFAULT) {
        return Some((Ok(Rule::Default), rest));
    }
    let rest = text.strip_prefix("RULE:[")?;
    let (parts, rest) = rest.split_once(':')?;
    let parts: usize = parts.parse().ok()?;
    let (format, mut rest) = rest.split_once(']')?;
    let mut matches = None;
    if let Some(behind) = rest.strip_prefix('(') {
        let (pattern, behind) = behind.split_once(')')?;
        matches = Some(pattern);
        rest = behind;
    }
    let mut substitution = None;
    if let Some(behind) = rest.strip_prefix("s/") {
        let (from, behind) = behind.split_once('/')?;
        let (to, behind) = behind.split_once('/')?;
        let (is_repeated, behind) = match behind.strip_prefix('g') {
            Some(behind) => (true, behind),
            None => (false, behind),
        };
        substitution = Some((from, to, is_repeated));
        rest = behind;
    }
    Some((rule(parts, format, matches, substitution), rest))
}

fn rule(
    parts: usize,
    format: &str,
    matches: Option<&str>,
    substitution: Option<(&str, &str, bool)>,
) -> Result<Rule, String> {
    let compile = |pattern: &str| Regex::new(pattern).map_err(|error| error.to_string());
    // The whole has to match, where a regular expression would be content with a part.
    let matches = matches.map(|pattern| compile(&format!("^(?:{pattern})$"))).transpose()?;
    let substitution = substitution.map(|(from, to, is_repeated)| {
        Ok::<_, String>(Substitution { from: compile(from)?, to: groups_in_braces(to), is_repeated })
    });
    Ok(Rule::Format {
        parts,
        format: pieces(format, parts)?,
        matches,
        substitution: substitution.transpose()?,
    })
}

fn pieces(format: &str, parts: usize) -> Result<Vec<Piece>, String> {
    let mut texts = format.split('$');
    let mut pieces = vec![Piece::Text(texts.next().unwrap_or_default().to_owned())];
    for text in texts {
        let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
        let number: usize = text[..digits].parse().map_err(|_| "a $ without a number".to_owned())?;
        if number > parts {
            return Err(format!("${number}, and there are {parts} parts"));
        }
        pieces.push(Piece::Part(number));
        pieces.push(Piece::Text(text[digits..].to_owned()));
    }
    Ok(pieces)
}

/// `$1` as `${1}`: where text follows, Rust would take it for a part of the group's name, and Java does not.
fn groups_in_braces(to: &str) -> String {
    let mut out = String::new();
    let mut chars = to.chars().peekable();
    while let Some(char) = chars.next() {
        out.push(char);
        if char == '$' && chars.peek().is_some_and(char::is_ascii_digit) {
            out.push('{');
            out.extend(chars.next());
            out.push('}');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rules: &str, principal: &str) -> String {
        let names = PrincipalNames::new(rules, true, true).unwrap();
        names.user(principal, "EXAMPLE.COM").unwrap()
    }

    #[test]
    fn host_and_realm_stay_unless_they_are_removed() {
        let check = |removes_host, removes_realm, expected: [&str; 2]| {
            let names = PrincipalNames::new(DEFAULT, removes_host, removes_realm).unwrap();
            let users = ["alice@EXAMPLE.COM", "app/box.example.com@EXAMPLE.COM"]
                .map(|principal| names.user(principal, "EXAMPLE.COM").unwrap());
            assert_eq!(users, expected);
        };
        check(false, false, ["alice@EXAMPLE.COM", "app/box.example.com@EXAMPLE.COM"]);
        check(true, false, ["alice@EXAMPLE.COM", "app@EXAMPLE.COM"]);
        check(false, true, ["alice", "app/box.example.com"]);
        check(true, true, ["alice", "app"]);
    }

    /// Rules of Hadoop's documentation, from which ZooKeeper has them.
    #[test]
    fn rules_give_short_names() {
        let rules = "RULE:[1:$1@$0](.*@OTHER\\.COM)s/@.*//\nRULE:[2:$1;$2](^.*;admin$)s/;admin$//\nRULE:[2:root]\nDEFAULT";
        assert_eq!(user(rules, "ann@OTHER.COM"), "ann");
        assert_eq!(user(rules, "ann/admin@EXAMPLE.COM"), "ann");
        assert_eq!(user(rules, "ann/box@OTHER.COM"), "root");
        assert_eq!(user(rules, "ann@EXAMPLE.COM"), "ann");
        assert_eq!(user("RULE:[1:$1]s/a/b/g", "anna@X"), "bnnb");
        assert_eq!(user("RULE:[1:$1]s/a/b/", "anna@X"), "bnna");
        assert_eq!(user("RULE:[1:$1]s/(n+)a/$1x/", "anna@X"), "annx");
    }

    #[test]
    fn a_principal_that_no_rule_is_about_keeps_its_whole_name() {
        assert_eq!(user(DEFAULT, "ann@OTHER.COM"), "ann@OTHER.COM");
        assert_eq!(user("RULE:[2:$1]", "ann@EXAMPLE.COM"), "ann@EXAMPLE.COM");
        // The rule leaves a realm in a name that is to have none.
        assert_eq!(user("RULE:[1:$1@$0]", "ann@EXAMPLE.COM"), "ann@EXAMPLE.COM");
        // The match is of the whole.
        assert_eq!(user("RULE:[1:$1](an)", "ann@EXAMPLE.COM"), "ann@EXAMPLE.COM");
    }

    #[test]
    fn what_has_no_form_of_a_principal_is_no_user() {
        for name in ["ann", "", "ann@a@b", "ann/a/b@C", "ann\\@x@C", "a@b/c"] {
            assert_eq!(PrincipalNames::default().user(name, "C"), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_rule_is_told() {
        for (rules, expected) in [
            ("", "no rule for principals; DEFAULT is one"),
            ("DEFAULT x", "no rule for principals: x"),
            ("RULE:[1:$1](", "no rule for principals: RULE:[1:$1]("),
            ("RULE:[1:$2]", "RULE:[1:$2]: $2, and there are 1 parts"),
            ("RULE:[1:$]", "RULE:[1:$]: a $ without a number"),
        ] {
            assert_eq!(PrincipalNames::new(rules, false, false).unwrap_err(), expected);
        }
        assert!(PrincipalNames::new("RULE:[1:$1]([)", false, false).is_err());
    }
}
