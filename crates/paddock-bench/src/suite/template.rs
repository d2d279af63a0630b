//! Placeholders in commands and files: `{port}` is filled for each member, `${NAME}` comes from the environment.
//!
//! Only a brace with one lower-case word in it is a placeholder, and only `${…}` with one upper-case name; other braces
//! stay, so that configuration files in any language can be templates.

/// Values of a member's placeholders.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) dir: String,
    pub(super) port: String,
    pub(super) quorum_port: String,
    pub(super) election_port: String,
    /// Port for an interface to operators.
    pub(super) admin_port: String,
    pub(super) id: String,
    /// The `server.N=…` lines of a `zoo.cfg`; empty for a server of one member.
    pub(super) servers: String,
    /// After how many writes a snapshot is to be taken.
    pub(super) snapshot_writes: String,
}

pub(super) const PLACEHOLDERS: &str =
    "{dir}, {port}, {quorum_port}, {election_port}, {admin_port}, {id}, {servers}, {snapshot_writes}";

impl Values {
    pub(super) fn fill(&self, template: &str) -> String {
        replace(template, is_word, |name| Ok(self.get(name).map(str::to_owned)))
            .unwrap_or_else(|never: std::convert::Infallible| match never {})
    }

    fn get(&self, name: &str) -> Option<&str> {
        Some(match name {
            "{dir}" => &self.dir,
            "{port}" => &self.port,
            "{quorum_port}" => &self.quorum_port,
            "{election_port}" => &self.election_port,
            "{admin_port}" => &self.admin_port,
            "{id}" => &self.id,
            "{servers}" => &self.servers,
            "{snapshot_writes}" => &self.snapshot_writes,
            _ => return None,
        })
    }
}

/// Puts in the environment's values; what is wrong with the template if it cannot be filled.
pub(super) fn prepare(
    template: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    replace(template, is_word, |found| match Values::default().get(found) {
        Some(_) => Ok(None),
        None => Err(format!("there is no placeholder {found}; there are {PLACEHOLDERS} and ${{NAME}}")),
    })?;
    replace(template, is_variable, |found| {
        let name = &found[2..found.len() - 1];
        environment(name).map(Some).ok_or_else(|| format!("the environment has no {name}; set it"))
    })
}

fn is_word(found: &str) -> bool {
    found.starts_with('{') && inner(found, |c| c.is_ascii_lowercase() || c == '_')
}

fn is_variable(found: &str) -> bool {
    found.starts_with('$') && inner(&found[1..], |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn inner(braces: &str, allowed: impl Fn(char) -> bool) -> bool {
    let name = &braces[1..braces.len() - 1];
    !name.is_empty() && name.chars().all(allowed)
}

/// Gives each `{…}` or `${…}` that `is_ours` to `value`; what has no value stays.
fn replace<E>(
    text: &str,
    is_ours: fn(&str) -> bool,
    mut value: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(brace) = rest.find('{') {
        let start = if rest[..brace].ends_with('$') { brace - 1 } else { brace };
        let Some(length) = rest[brace..].find('}') else { break };
        let found = &rest[start..=brace + length];
        let own = if is_ours(found) { value(found)? } else { None };
        filled.push_str(&rest[..start]);
        match own {
            Some(value) => {
                filled.push_str(&value);
                rest = &rest[start + found.len()..];
            }
            // What follows the brace may hold another one.
            None => {
                filled.push_str(&rest[start..=brace]);
                rest = &rest[brace + 1..];
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::{Values, prepare};

    fn environment(name: &str) -> Option<String> {
        (name == "HOME_2").then(|| "/home".to_owned())
    }

    fn check(template: &str, expected: Result<&str, &str>) {
        let values = Values {
            dir: "/d".to_owned(),
            port: "2181".to_owned(),
            servers: "server.1=a:1:2\nserver.2=b:1:2".to_owned(),
            ..Values::default()
        };
        let filled = prepare(template, &environment).map(|prepared| values.fill(&prepared));
        match expected {
            Ok(text) => assert_eq!(filled.as_deref(), Ok(text)),
            Err(part) => assert!(filled.as_ref().is_err_and(|error| error.contains(part)), "{filled:?}"),
        }
    }

    #[test]
    fn placeholders_are_filled() {
        check("dataDir={dir}/data\nport={port}", Ok("dataDir=/d/data\nport=2181"));
        check("{servers}", Ok("server.1=a:1:2\nserver.2=b:1:2"));
        check("${HOME_2}/{dir}{port}", Ok("/home//d2181"));
        check("", Ok(""));
    }

    #[test]
    fn other_braces_stay() {
        for text in
            ["{\"port\": 1}", "%d{HH:mm} ${a.b}", "{", "}", "a{}b", "${LEVEL:-INFO}", "${lower}", "{ port }"]
        {
            check(text, Ok(text));
        }
        check("{\"port\": {port}}", Ok("{\"port\": 2181}"));
        check("{{port}}", Ok("{2181}"));
    }

    #[test]
    fn what_is_unknown_is_named() {
        check("a {prot} b", Err("{prot}"));
        check("${MISSING}", Err("no MISSING"));
    }
}
