//! Nothing half done: no macro that stands for missing code, no marker that asks for a later repair, no test that does
//! not run.
//!
//! What is not done yet belongs into an issue, where it can be found and weighed.

use super::{Violation, Workspace};

/// Macros that stand for missing or passing code, and what to do instead.
const MACROS: &[(&str, &str)] = &[
    ("todo", "write it, or leave out what needs it"),
    ("unimplemented", "write it, or return an error that says what is not supported"),
    ("dbg", "remove it"),
];

/// Words in comments. In two parts, so that this file has none of them.
const MARKERS: &[(&str, &str)] = &[("FIX", "ME"), ("XX", "X")];

/// Finds leftovers, in tests too.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &workspace.rust {
        for call in &file.contents.macro_calls {
            if let Some((name, instead)) = MACROS.iter().find(|(name, _)| *name == call.name) {
                found.push(Violation::new(&file.path, call.line, format!("`{name}!`: {instead}")));
            }
        }
        for attribute in &file.contents.attributes {
            let by_condition =
                attribute.name == "cfg_attr" && attribute.words.iter().any(|word| word == "ignore");
            if attribute.name == "ignore" || by_condition {
                let message = "an ignored test rots: make it fast and reliable, or remove it";
                found.push(Violation::new(&file.path, attribute.line, message));
            }
        }
    }
    for file in &workspace.texts {
        for (number, line) in file.lines() {
            if let Some(marker) = marker_in(line) {
                let message =
                    format!("{marker}: repair it now, or open an issue and say here what the code does");
                found.push(Violation::new(&file.path, number, message));
            }
        }
    }
    found
}

/// The marker in a line, if there is one as a word of its own.
fn marker_in(line: &str) -> Option<String> {
    let mut words = line.split(|character: char| !(character.is_alphanumeric() || character == '_'));
    let marker = |word: &str| MARKERS.iter().any(|(head, tail)| word.strip_prefix(head) == Some(tail));
    words.find(|word| marker(word)).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const PATH: &str = "crates/db/src/a.rs";

    #[test]
    fn every_macro_bites() {
        for (name, instead) in MACROS {
            let text = format!("fn f() {{\n  std::{name}!(x)\n}}\n");
            check(violations, &[(PATH, &text)], &[(&format!("{PATH}:2"), instead)]);
        }
    }

    #[test]
    fn ignored_tests_bite() {
        for attribute in ["ignore", "ignore = \"slow\"", "cfg_attr(miri, ignore)"] {
            let text = format!("#[test]\n#[{attribute}]\nfn f() {{}}\n");
            check(violations, &[(PATH, &text)], &[(&format!("{PATH}:2"), "rots")]);
        }
    }

    #[test]
    fn every_marker_bites() {
        for (head, tail) in MARKERS {
            let text = format!("\n# {head}{tail}: later\n");
            check(violations, &[("a.toml", &text)], &[("a.toml:2", "open an issue")]);
        }
    }

    #[test]
    fn finished_code_passes() {
        let (head, tail) = MARKERS[1];
        let text =
            format!("// the column {head}{tail}X and todo lists\nfn f(todo: u8) {{ if todo != 1 {{}} }}\n");
        check(violations, &[(PATH, &text)], &[]);
    }
}
