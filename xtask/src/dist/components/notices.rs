//! The licences of all crates in one text, each licence once with the crates that it is of.

use std::fs;
use std::path::{Path, PathBuf};

use super::Component;
use crate::process::Error;

/// Beginnings of names of files with a licence or a notice, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// A crate that has the C library it wraps in a directory has that one's licence there.
const DEPTH: usize = 2;
const APACHE: &str = "Apache-2.0";

const HEAD: &str = "\
Paddock contains the crates below, and the standard library of Rust (MIT OR Apache-2.0), whose texts are those of many of them. Their
licences and notices follow, each text once.\n";

/// A text, and names of the crates that have it.
struct Notice {
    text: String,
    crates: Vec<String>,
}

/// The text. A crate that has no file with its licence is listed under the text of Apache's, if it may be used by it; otherwise it is refused.
pub(super) fn text(components: &[Component], apache: &str) -> Result<String, Error> {
    let others = || components.iter().filter(|component| component.is_of_others());
    let mut notices: Vec<Notice> = Vec::new();
    let mut add = |text: &str, component: &Component| {
        let name = format!("{} {}", component.name, component.version);
        let text = normal(text);
        match notices.iter_mut().find(|notice| notice.text == text) {
            // Files of a crate may be the same.
            Some(notice) if notice.crates.last() == Some(&name) => {}
            Some(notice) => notice.crates.push(name),
            None => notices.push(Notice { text, crates: vec![name] }),
        }
    };
    for component in others() {
        let mut files = Vec::new();
        collect(&component.directory, DEPTH, &mut files)?;
        files.sort();
        for file in &files {
            let bytes = fs::read(file).map_err(Error::io("read", file))?;
            add(&String::from_utf8_lossy(&bytes), component);
        }
        if files.is_empty() {
            if !component.license.contains(APACHE) {
                let Component { name, license, .. } = component;
                return Err(Error::new(format!("{name} has no text of its licence, {license}")));
            }
            add(apache, component);
        }
    }
    let mut text = HEAD.to_owned();
    for Component { name, version, license, repository, .. } in others() {
        let place = repository.as_deref().unwrap_or("https://crates.io");
        text += &format!("\n{name} {version}: {license}\n  {place}");
    }
    for Notice { text: notice, crates } in &notices {
        text += &format!("\n\n{}\n{}\n\n{notice}", "-".repeat(80), crates.join(", "));
    }
    Ok(text + "\n")
}

/// The text with the line ends of this system, without blank lines around it.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() {
            if depth > 1 || name == "LICENSES" {
                collect(&path, depth.saturating_sub(1), files)?;
            }
        } else if NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".RS") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, license: &str, directory: &Path) -> Component {
        Component {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            repository: None,
            directory: directory.to_owned(),
            checksum: Some(String::new()),
            uses: Vec::new(),
        }
    }

    #[test]
    fn a_licence_of_several_crates_is_printed_once() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = own.parent().expect("xtask is a directory of the repository");
        let source = own.join("src");
        let apache = fs::read_to_string(root.join("LICENSE")).expect("it is there");
        let components = [
            component("a", APACHE, &source.join("dist/components")),
            component("b", "MIT OR Apache-2.0", &source),
        ];
        let text = text(&components, &apache).expect("both may be used");
        assert!(text.contains("\na 1.0.0, b 1.0.0\n\n"), "{text}");
        assert_eq!(text.matches("TERMS AND CONDITIONS FOR USE").count(), 1);
    }

    #[test]
    fn a_crate_without_a_text_is_refused() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dist/components");
        let error = text(&[component("c", "MIT", &own)], "").expect_err("its text is not there");
        assert_eq!(error.to_string(), "c has no text of its licence, MIT");
    }
}
