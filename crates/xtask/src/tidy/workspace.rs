//! The files of the workspace, read once for all checks.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use super::rust_file::{RustFile, mark_test_modules};

/// Everything that a check may look at.
pub(crate) struct Workspace {
    /// Text files, sorted by path.
    pub texts: Vec<TextFile>,
    /// Paths of all files, those that are no text included. Relative to the root, with `/` on every system.
    pub paths: BTreeSet<String>,
    /// The Rust files among `texts`, in the same order.
    pub rust: Vec<RustFile>,
}

/// A text file and its contents.
pub(crate) struct TextFile {
    /// Relative to the root.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl Workspace {
    /// Reads the files that git tracks and the new ones that it does not ignore: what a commit would contain.
    pub(crate) fn load(root: &Path) -> io::Result<Workspace> {
        let paths = match paths_by_git(root) {
            Some(paths) => paths,
            None => paths_by_walking(root)?,
        };
        let mut texts = Vec::new();
        for path in &paths {
            // What is not UTF-8 or contains a NUL is no text, and no check has anything to say about it.
            if let Ok(text) = String::from_utf8(std::fs::read(root.join(path))?)
                && !text.contains('\0')
            {
                texts.push(TextFile { path: path.clone(), text });
            }
        }
        Ok(Workspace::new(texts, paths))
    }

    fn new(texts: Vec<TextFile>, paths: BTreeSet<String>) -> Workspace {
        let rust = texts.iter().filter(|file| file.path.ends_with(".rs"));
        let mut rust: Vec<RustFile> = rust.map(|file| RustFile::read(&file.path, &file.text)).collect();
        mark_test_modules(&mut rust);
        Workspace { texts, paths, rust }
    }

    /// A workspace for the test of a check.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Workspace {
        let paths = files.iter().map(|(path, _)| path.to_string()).collect();
        let texts =
            files.iter().map(|(path, text)| TextFile { path: path.to_string(), text: text.to_string() });
        Workspace::new(texts.collect(), paths)
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// The manifests of the root and of the crates.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &TextFile> {
        self.texts.iter().filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"))
    }

    /// Whether a file or a folder of this path, relative to the root, is part of the workspace.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.paths.contains(path)
            || self.paths.range(folder.clone()..).next().is_some_and(|p| p.starts_with(&folder))
    }
}

impl TextFile {
    /// The lines with their numbers, from 1. Without their ends, but with a carriage return if there is one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.split_terminator('\n'))
    }
}

/// `None` without git, or when the root is in nobody's repository: an unpacked archive.
fn paths_by_git(root: &Path) -> Option<BTreeSet<String>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = command.output().ok().filter(|output| output.status.success())?;
    let listed = String::from_utf8(output.stdout).ok()?;
    // A tracked file that was deleted and not yet committed is still listed; a link to a folder is listed too.
    let paths: BTreeSet<String> =
        listed.split_terminator('\0').filter(|path| root.join(path).is_file()).map(String::from).collect();
    if paths.is_empty() { None } else { Some(paths) }
}

/// All files but those of git and of the build.
fn paths_by_walking(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_file() {
                paths.insert(path);
            } else if kind.is_dir() && name != ".git" && name != "target" {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_finds_what_git_finds() {
        let root = crate::workspace_root();
        let walked = paths_by_walking(&root).unwrap();
        assert!(walked.contains("crates/xtask/src/tidy/workspace.rs"));
        assert!(!walked.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
        if let Some(listed) = paths_by_git(&root) {
            assert!(listed.contains("crates/xtask/src/tidy/workspace.rs"));
        }
    }

    #[test]
    fn folders_are_known_by_their_files() {
        let workspace = Workspace::of(&[("a/b/c.md", ""), ("a/b.md", "")]);
        assert!(workspace.has("a/b/c.md") && workspace.has("a/b") && workspace.has("a"));
        assert!(!workspace.has("a/c") && !workspace.has("b"));
    }
}
