//! Links between files of the repository lead somewhere.
//!
//! Prose rots, checked prose does not. Links in Rust documentation are rustdoc's business, links to other sites
//! nobody's: a check that needs a network is no check.

use super::{Violation, Workspace};

/// Finds relative links in Markdown files whose target is no file or folder of the workspace.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in workspace.texts.iter().filter(|file| file.path.ends_with(".md")) {
        let mut fence: Option<&str> = None;
        for (number, line) in file.lines() {
            let marker = ["```", "~~~"].into_iter().find(|marker| line.trim_start().starts_with(marker));
            if marker.is_some() && (fence.is_none() || fence == marker) {
                fence = if fence.is_none() { marker } else { None };
            } else if fence.is_none() {
                for target in
                    targets(line).into_iter().filter(|target| !leads_somewhere(workspace, &file.path, target))
                {
                    let message =
                        format!("`{target}` leads nowhere: correct the link, relative to this file");
                    found.push(Violation::new(&file.path, number, message));
                }
            }
        }
    }
    found
}

/// The targets of `[text](target)`, `![image](target)` and `[label]: target`.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let mut found = Vec::new();
    if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
        found.push(target);
    }
    for (at, opening) in line.match_indices("](") {
        let rest = &line[at + opening.len()..];
        found.push(rest.split_once(')').map_or(rest, |(target, _)| target));
    }
    // What follows a space is a title.
    let targets = found.into_iter().filter_map(|target| target.split_whitespace().next());
    targets.map(|target| target.trim_matches(['<', '>']).to_string()).collect()
}

/// A line without its `code`.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

fn leads_somewhere(workspace: &Workspace, from: &str, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    let is_address = target.split('/').next().is_some_and(|scheme| scheme.contains(':'));
    if path.is_empty() || is_address {
        return true;
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            name => parts.push(name),
        }
    }
    // A leading slash is the root of a site or of a machine, never of the repository.
    !path.starts_with('/') && (parts.is_empty() || workspace.has(&parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const FILES: [(&str, &str); 2] = [("docs/b.md", ""), ("crates/db/src/lib.rs", "")];

    /// The text is that of `docs/a.md`.
    fn check_links(text: &str, expected: &[(&str, &str)]) {
        check(violations, &[FILES[0], FILES[1], ("docs/a.md", text)], expected);
    }

    #[test]
    fn links_to_nowhere_bite() {
        check_links("\nsee [this](c.md), [that](b.md)\n", &[("docs/a.md:2", "`c.md` leads nowhere")]);
        check_links("![x](../docs/x.png \"title\")\n", &[("docs/a.md:1", "`../docs/x.png`")]);
        check_links("[x]: ../c.md\n", &[("docs/a.md:1", "`../c.md`")]);
        check_links("[x](/docs/b.md)\n", &[("docs/a.md:1", "relative to this file")]);
        check_links("[x](../../b.md)\n", &[("docs/a.md:1", "`../../b.md`")]);
        check_links("```\n```\n[x](c.md#part)\n", &[("docs/a.md:3", "`c.md#part`")]);
    }

    #[test]
    fn links_to_somewhere_pass() {
        check_links("[x](b.md) [x](./b.md#part) [x](../docs) [x](../crates/db/src/) [x](..)\n", &[]);
        check_links("[x](https://example.com) [x](#here) [x](mailto:ann@example.com)\n", &[]);
        check_links("`[x](c.md)`\n```text\n[x](c.md)\n```\n", &[]);
    }
}
