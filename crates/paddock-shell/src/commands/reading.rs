//! Commands that read one znode.

use paddock_client::{Error, ErrorCode};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::failure::ShellFailure;
use crate::output::{base64, data_json, hex, hexadecimal, stat_json};
use crate::pretty::{indented_json, part_name};
use crate::shell::Shell;
use crate::walk::Walk;

pub(crate) async fn ls(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    if arguments.has("R") {
        return ls_all(shell, &path).await;
    }
    let pending = if arguments.has("w") { client.watch_children(&path) } else { client.get_children2(&path) };
    let mut children = pending.await.map_err(ShellFailure::at(&path))?;
    children.names.sort_unstable();
    let out = &shell.output;
    if out.is_json() {
        let value = match arguments.has("s") {
            true => json!({ "path": path, "children": children.names, "stat": stat_json(&children.stat) }),
            false => json!(children.names),
        };
        return out.line(&value.to_string());
    }
    for name in &children.names {
        match part_name(name).filter(|_| arguments.has("p")) {
            Some(meaning) => out.line(&format!("{name}\t{meaning}"))?,
            None => out.line(name)?,
        }
    }
    if arguments.has("s") { out.stat(&children.stat) } else { Ok(()) }
}

/// Prints paths as they come, so that a long listing begins at once and can be interrupted.
async fn ls_all(shell: &Shell, path: &str) -> Result<(), ShellFailure> {
    let client = shell.client()?;
    let mut walk = Walk::new(&client, path, usize::MAX);
    while let Some(visited) = walk.next().await? {
        shell.output.show(|| json!(visited.path), || visited.path.clone())?;
    }
    walk.finish()
}

/// The form in which `get` shows data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataForm {
    AsItIs,
    Base64,
    Hexadecimal,
}

impl DataForm {
    /// With both flags it is hexadecimal, as in `zkCli.sh`.
    fn of(arguments: &Arguments) -> DataForm {
        match (arguments.has("x"), arguments.has("b")) {
            (true, _) => DataForm::Hexadecimal,
            (_, true) => DataForm::Base64,
            _ => DataForm::AsItIs,
        }
    }
}

pub(crate) async fn get(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let pending = if arguments.has("w") { client.watch_data(&path) } else { client.get_data(&path) };
    let data = pending.await.map_err(ShellFailure::at(&path))?;
    let out = &shell.output;
    if out.is_json() {
        let (name, value) = match DataForm::of(arguments) {
            DataForm::AsItIs => data_json(data.bytes.as_deref()),
            DataForm::Base64 => ("data_base64", base64(data.bytes.as_deref().unwrap_or_default()).into()),
            DataForm::Hexadecimal => ("data_hex", hex(data.bytes.as_deref().unwrap_or_default()).into()),
        };
        let mut object = Map::from_iter([("path".to_owned(), json!(path)), (name.to_owned(), value)]);
        if arguments.has("s") {
            object.insert("stat".to_owned(), stat_json(&data.stat));
        }
        return out.line(&Value::Object(object).to_string());
    }
    let bytes = data.bytes.as_deref();
    match DataForm::of(arguments) {
        DataForm::Base64 => out.line(&base64(bytes.unwrap_or_default()))?,
        DataForm::Hexadecimal => out.line(&hexadecimal(bytes.unwrap_or_default()))?,
        DataForm::AsItIs => {
            let indents = (shell.settings.indents || arguments.has("p")) && out.is_text();
            let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            match text.filter(|_| indents).and_then(indented_json) {
                Some(indented) => out.line(&indented)?,
                None => out.data(bytes)?,
            }
        }
    }
    if arguments.has("s") { out.stat(&data.stat) } else { Ok(()) }
}

pub(crate) async fn stat(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let pending = if arguments.has("w") { client.watch_exists(&path) } else { client.exists(&path) };
    let stat = pending.await.map_err(ShellFailure::at(&path))?;
    if shell.output.is_json() {
        shell.output.line(&stat_json(&stat).to_string())
    } else {
        shell.output.stat(&stat)
    }
}

pub(crate) async fn exists(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let client = shell.client()?;
    let pending = if arguments.has("w") { client.watch_exists(&path) } else { client.exists(&path) };
    let exists = match pending.await {
        Ok(_) => true,
        Err(Error::Refused { code: ErrorCode::NoNode, .. }) => false,
        Err(error) => return Err(ShellFailure::at(&path)(error)),
    };
    shell.output.show(|| json!(exists), || u8::from(exists).to_string())
}

pub(crate) async fn direct_children(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let stat = shell.client()?.exists(&path).await.map_err(ShellFailure::at(&path))?;
    shell.output.show(|| json!(stat.num_children), || stat.num_children.to_string())
}

pub(crate) async fn all_children(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = shell.path(arguments.at(0))?;
    let count = shell.client()?.get_all_children_number(&path).await.map_err(ShellFailure::at(&path))?;
    shell.output.show(|| json!(count), || count.to_string())
}

pub(crate) async fn ephemerals(shell: &Shell, arguments: &Arguments) -> Result<(), ShellFailure> {
    let path = arguments.at(0).map_or_else(|| Ok("/".to_owned()), |typed| shell.path(Some(typed)))?;
    let mut paths = shell.client()?.get_ephemerals(&path).await.map_err(ShellFailure::at(&path))?;
    paths.sort_unstable();
    if shell.output.is_json() {
        return shell.output.line(&json!(paths).to_string());
    }
    paths.iter().try_for_each(|path| shell.output.line(path))
}
