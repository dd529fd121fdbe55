//! Building the server, and finding it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The server by itself.
const ALONE: &str = "build --package ordain --bin ordain";

/// The server, as tests need it to start it, with all tests: nothing is built anew after `cargo test --workspace --locked`.
const OF_TESTS: &str = "test --workspace --no-run";

/// Where what is built is depends on the caller's configuration, so cargo is asked to say it.
const HOW: &str = "--locked --quiet --message-format json-render-diagnostics";

/// Builds the server for development, or has the tests' own be up to date, and returns where it is.
pub(super) fn server(root: &Path, of_tests: bool) -> Result<PathBuf, String> {
    let mut command = crate::cargo();
    let what = if of_tests { OF_TESTS } else { ALONE };
    command.args(what.split(' ')).args(HOW.split(' ')).current_dir(root).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cargo did not start: {error}"))?;
    let mut found = None;
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines().map_while(Result::ok) {
            found = executable(&line).map(PathBuf::from).filter(|path| is_server(path)).or(found);
        }
    }
    let status = child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    if !status.success() {
        return Err(format!("the server cannot be built ({status})"));
    }
    found.ok_or_else(|| "cargo did not say where the server is".to_owned())
}

/// Whether an executable is the server: names of tests end with a hash.
fn is_server(executable: &Path) -> bool {
    executable.file_stem().is_some_and(|name| name == "ordain")
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
    fn tests_are_not_the_server() {
        assert!(
            is_server(Path::new("/target/debug/ordain")) && is_server(Path::new("/target/debug/ordain.exe"))
        );
        assert!(!is_server(Path::new("/target/debug/deps/ordain-d1fbc9e1")));
    }

    #[test]
    fn the_executable_is_found_in_messages() {
        let message =
            r#"{"reason":"compiler-artifact","executable":"/a b/\"target\"/debug/ordain","fresh":true}"#;
        assert_eq!(executable(message).as_deref(), Some("/a b/\"target\"/debug/ordain"));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
        assert_eq!(executable(r#"{"executable":"cut"#), None);
    }
}
