//! Building the server, and finding it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What is built. Where it is then depends on the caller's configuration, so cargo is asked to say it.
const ARGUMENTS: &str =
    "build --package ordain --bin ordain --locked --quiet --message-format json-render-diagnostics";

/// Builds the server for development, and returns where it is.
pub(super) fn server(root: &Path) -> Result<PathBuf, String> {
    let mut command = crate::cargo();
    command.args(ARGUMENTS.split(' ')).current_dir(root).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cargo did not start: {error}"))?;
    let mut found = None;
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines().map_while(Result::ok) {
            found = executable(&line).or(found);
        }
    }
    let status = child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    if !status.success() {
        return Err(format!("the server cannot be built ({status})"));
    }
    found.map(PathBuf::from).ok_or_else(|| "cargo did not say where the server is".to_owned())
}

/// The path of an executable in one of cargo's messages.
fn executable(message: &str) -> Option<String> {
    let (_, behind) = message.split_once("\"executable\":\"")?;
    let mut path = String::new();
    let mut characters = behind.chars();
    loop {
        match characters.next()? {
            '"' => return Some(path),
            '\\' => path.push(characters.next()?),
            other => path.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_in_messages() {
        let message =
            r#"{"reason":"compiler-artifact","executable":"/a b/\"target\"/debug/ordain","fresh":true}"#;
        assert_eq!(executable(message).as_deref(), Some("/a b/\"target\"/debug/ordain"));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
        assert_eq!(executable(r#"{"executable":"cut"#), None);
    }
}
