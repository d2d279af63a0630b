//! User that runs this process.

/// Name of the user, or its number where it has none.
pub(crate) fn user_name() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    let Some(number) = number else { return "?".into() };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| number.to_owned())
}
