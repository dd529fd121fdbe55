//! Plain rules for every text file: nothing of one person's machine, clean ends of lines.
//!
//! A path of one machine is wrong on every other one. The host of a package registry is the same mistake in disguise:
//! where packages come from is decided by whoever builds, in cargo's own configuration, and not by the repository.

use super::super::workspace::TextFile;
use super::{Violation, Workspace};

/// Folders at the root of a machine's file system that no other machine need have.
const MACHINE_ROOTS: &[&str] = &["work", "root"];

/// Folders whose children are people.
const HOMES: &[&str] = &["home", "Users"];

/// Hosts that serve packages, in parts, so that this file names none.
const REGISTRY_HOSTS: &[[&str; 2]] = &[
    ["crates", "io"],
    ["npmjs", "org"],
    ["pypi", "org"],
    ["pythonhosted", "org"],
    ["rubygems", "org"],
    ["proxy.golang", "org"],
    ["jfrog", "io"],
];

/// Finds machine paths, registries, trailing whitespace and missing final newlines.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &workspace.texts {
        for (number, line) in file.lines() {
            for message in
                [machine_path(line), registry(file, line), trailing_whitespace(line)].into_iter().flatten()
            {
                found.push(Violation::new(&file.path, number, message));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            found.push(Violation::new(&file.path, file.lines().count(), "end the file with a newline"));
        }
    }
    found
}

fn machine_path(line: &str) -> Option<String> {
    let message =
        |path: &str| format!("`{path}` is a path of one machine: write it relative to the repository");
    for root in MACHINE_ROOTS {
        let path = format!("/{root}/");
        if line.match_indices(&path).any(|(at, _)| starts_a_path(&line[..at])) {
            return Some(message(&path));
        }
    }
    for home in HOMES {
        let folder = format!("/{home}/");
        for (at, _) in line.match_indices(&folder) {
            let below = &line[at + folder.len()..];
            let name =
                below.split(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).next().unwrap_or_default();
            if starts_a_path(&line[..at]) && !name.is_empty() && below[name.len()..].starts_with('/') {
                return Some(message(&format!("{folder}{name}/")));
            }
        }
    }
    None
}

/// Whether a `/` behind this text is the root of a file system, and not a step inside a path or an address.
fn starts_a_path(before: &str) -> bool {
    let inside = |character: char| character.is_alphanumeric() || "._-~/$})>*".contains(character);
    before.ends_with("file://") || !before.ends_with(inside)
}

/// Anything that says where packages are to be fetched from.
fn registry(file: &TextFile, line: &str) -> Option<String> {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    if name == "Cargo.lock" {
        let public =
            format!("source = \"registry+https://github.com/rust-lang/{}-index\"", host(&REGISTRY_HOSTS[0]));
        let message =
            "a source other than the public index: resolve again without a mirror that writes itself down";
        return (line.starts_with("source = ") && line != public).then(|| message.into());
    }
    let is_cargo_file = name == "Cargo.toml" || file.path.ends_with(".cargo/config.toml");
    let words = ["[source.", "[source]", "[registry]", "[registries", "registry = ", "registry-index = "];
    if is_cargo_file && words.iter().any(|word| line.contains(word)) {
        return Some("a registry: it belongs into the cargo configuration of whoever builds".into());
    }
    let host = REGISTRY_HOSTS.iter().map(host).find(|host| names_host(line, host))?;
    Some(format!("`{host}` serves packages: name the package, not where it comes from"))
}

fn host(parts: &[&str; 2]) -> String {
    parts.join(".")
}

/// Whether a line contains a host or a host below it.
fn names_host(line: &str, host: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '-';
    line.match_indices(host)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + host.len()..].starts_with(is_part))
}

fn trailing_whitespace(line: &str) -> Option<String> {
    line.ends_with(char::is_whitespace).then(|| "remove the whitespace at the end of the line".into())
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    /// One violation in line 2 of a file.
    fn check_bites(path: &str, line: &str, words: &str) {
        let text = format!("\n{line}\n");
        check(violations, &[(path, &text)], &[(&format!("{path}:2"), words)]);
    }

    fn check_passes(path: &str, line: &str) {
        check(violations, &[(path, &format!("\n{line}\n"))], &[]);
    }

    #[test]
    fn machine_paths_bite() {
        for folders in [vec!["", "work", "x"], vec!["", "root", ".bashrc"], vec!["", "home", "ann", "x"]] {
            let path = folders.join("/");
            for line in
                [path.clone(), format!("see `{path}`"), format!("DIR={path}"), format!("file://{path}")]
            {
                check_bites("a.md", &line, "a path of one machine");
            }
        }
    }

    #[test]
    fn other_paths_pass() {
        let path = ["", "work", "x"].join("/");
        for before in ["target", "https://example.com", "~", "$HOME"] {
            check_passes("a.md", &format!("see {before}{path}"));
        }
        for line in ["/home/<name>/x", "/etc/x", "network/x"] {
            check_passes("a.md", line);
        }
    }

    #[test]
    fn registries_bite() {
        for host in REGISTRY_HOSTS.iter().map(host) {
            check_bites("a.md", &format!("from https://static.{host}/x"), "name the package");
        }
        check_bites(".cargo/config.toml", "[source.mirror]", "whoever builds");
        check_bites(
            "crates/db/Cargo.toml",
            "a = { version = \"1\", registry = \"mirror\" }",
            "whoever builds",
        );
        check_bites("Cargo.lock", "source = \"registry+https://mirror.example\"", "the public index");
    }

    #[test]
    fn other_hosts_and_the_public_index_pass() {
        check_passes("a.md", "https://docs.rs/bytes");
        check_passes("a.rs", "fn crates() { io() }");
        let index = host(&REGISTRY_HOSTS[0]);
        check_passes(
            "Cargo.lock",
            &format!("source = \"registry+https://github.com/rust-lang/{index}-index\""),
        );
    }

    #[test]
    fn untidy_ends_bite() {
        check_bites("a.md", "x ", "whitespace");
        check_bites("a.md", "x\t", "whitespace");
        check_bites("a.md", "x\r", "whitespace");
        check(violations, &[("a.md", "x\ny")], &[("a.md:2", "end the file with a newline")]);
    }

    #[test]
    fn tidy_ends_pass() {
        check(violations, &[("a.md", "x\n\ny\n"), ("empty", "")], &[]);
    }
}
