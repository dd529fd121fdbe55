//! Functions and files that fit a reader's head, by a ratchet.
//!
//! What is longer than the limit must be in a list beside this check, with its length as a ceiling. The list records
//! what is there; it is no way to ask for more. A ceiling follows the code down and never up, and an entry that is
//! no longer needed must go, so that what has been won is not lost again.

use std::collections::BTreeMap;

use super::{Violation, Workspace};

/// A kind of thing, how long it may be, and the list of those that are longer.
struct Ratchet {
    limit: usize,
    list: &'static str,
    advice: &'static str,
}

const FUNCTIONS: Ratchet = Ratchet {
    limit: 70,
    list: "crates/xtask/src/tidy/long_functions.txt",
    advice: "split it where the story turns: keep the branches here, and give each case a function",
};

const FILES: Ratchet = Ratchet {
    limit: 600,
    list: "crates/xtask/src/tidy/long_files.txt",
    advice: "split it by the nouns it is about",
};

/// The measured things by name.
type Measured = BTreeMap<String, Length>;

struct Length {
    path: String,
    line: usize,
    lines: usize,
}

/// Finds what is too long and not listed, and entries of the lists that are wrong. Tests are left out.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut found = FUNCTIONS.violations(workspace, functions(workspace));
    found.extend(FILES.violations(workspace, files(workspace)));
    found
}

/// Functions by `path::name`; of those with the same name in a file, the longest.
fn functions(workspace: &Workspace) -> Measured {
    let mut measured = Measured::new();
    for file in &workspace.rust {
        for function in
            file.contents.functions.iter().filter(|function| !file.is_test(*function.lines.start()))
        {
            let name = format!("{}::{}", file.path, function.name);
            let length =
                Length { path: file.path.clone(), line: *function.lines.start(), lines: function.length() };
            if measured.get(&name).is_none_or(|other| other.lines < length.lines) {
                measured.insert(name, length);
            }
        }
    }
    measured
}

/// Rust files by path, with their lines that are no tests.
fn files(workspace: &Workspace) -> Measured {
    let texts = workspace.texts.iter().filter(|text| text.path.ends_with(".rs"));
    let measured = texts.zip(&workspace.rust).map(|(text, file)| {
        let lines = text.lines().filter(|(number, _)| !file.is_test(*number)).count();
        (text.path.clone(), Length { path: text.path.clone(), line: 1, lines })
    });
    measured.collect()
}

impl Ratchet {
    fn violations(&self, workspace: &Workspace, measured: Measured) -> Vec<Violation> {
        let mut found = Vec::new();
        let ceilings = self.ceilings(workspace.text(self.list).unwrap_or_default(), &mut found);
        for (name, length) in &measured {
            let (lines, limit, list) = (length.lines, self.limit, self.list);
            let mut report = |message| found.push(Violation::new(&length.path, length.line, message));
            match ceilings.get(name.as_str()) {
                None if lines > limit => {
                    report(format!("`{name}` has {lines} lines, and the limit is {limit}: {}", self.advice));
                }
                Some((ceiling, _)) if lines > *ceiling => {
                    report(format!(
                        "`{name}` grew to {lines} lines from the {ceiling} in {list}: {}",
                        self.advice
                    ));
                }
                Some((ceiling, number)) if lines < *ceiling && lines > limit => {
                    let message = format!("`{name}` has shrunk: lower its ceiling to {lines}");
                    found.push(Violation::new(list, *number, message));
                }
                _ => {}
            }
        }
        for (name, (_, number)) in &ceilings {
            if measured.get(*name).is_none_or(|length| length.lines <= self.limit) {
                let message =
                    format!("`{name}` is within the limit of {} or gone: remove the entry", self.limit);
                found.push(Violation::new(self.list, *number, message));
            }
        }
        found
    }

    /// The entries of a list, `name length` each, with the lines that they stand on; `#` starts a comment.
    fn ceilings<'a>(&self, list: &'a str, found: &mut Vec<Violation>) -> BTreeMap<&'a str, (usize, usize)> {
        let mut ceilings = BTreeMap::new();
        for (line, number) in list.lines().zip(1..) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let entry =
                line.rsplit_once(' ').and_then(|(name, ceiling)| Some((name.trim(), ceiling.parse().ok()?)));
            let Some((name, ceiling)) = entry else {
                found.push(Violation::new(
                    self.list,
                    number,
                    "write an entry as its name, a space and its length",
                ));
                continue;
            };
            if ceilings.insert(name, (ceiling, number)).is_some() {
                found.push(Violation::new(
                    self.list,
                    number,
                    format!("`{name}` is listed twice: remove one"),
                ));
            }
        }
        ceilings
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const PATH: &str = "crates/db/src/a.rs";

    /// A method of so many lines, that starts at line 3.
    fn method(lines: usize) -> String {
        format!("impl S {{\n/// Docs do not count.\nfn f() {{{}}}\n}}\n", "\n".repeat(lines - 1))
    }

    fn check_function(lines: usize, list: &str, expected: &[(&str, &str)]) {
        check(violations, &[(PATH, &method(lines)), (FUNCTIONS.list, list)], expected);
    }

    #[test]
    fn a_long_function_bites() {
        check_function(71, "", &[("crates/db/src/a.rs:3", "71 lines, and the limit is 70")]);
    }

    #[test]
    fn a_long_function_may_not_grow() {
        let expected = [("crates/db/src/a.rs:3", "grew to 81 lines from the 80")];
        check_function(81, "crates/db/src/a.rs::S::f 80\n", &expected);
    }

    #[test]
    fn a_ceiling_follows_the_code_down() {
        let list = "# Comment.\ncrates/db/src/a.rs::S::f 80\n";
        check_function(79, list, &[(&format!("{}:2", FUNCTIONS.list), "lower its ceiling to 79")]);
        check_function(70, list, &[(&format!("{}:2", FUNCTIONS.list), "remove the entry")]);
    }

    #[test]
    fn wrong_entries_bite() {
        let place = format!("{}:1", FUNCTIONS.list);
        check_function(1, "crates/db/src/a.rs::S::g 80\n", &[(&place, "remove the entry")]);
        check_function(1, "crates/db/src/a.rs::S::f\n", &[(&place, "write an entry as")]);
        let entry = "crates/db/src/a.rs::S::f 80\n";
        check_function(80, &entry.repeat(2), &[(&format!("{}:2", FUNCTIONS.list), "listed twice")]);
    }

    #[test]
    fn functions_within_the_limit_or_at_their_ceiling_pass() {
        check_function(70, "# Comment.\n", &[]);
        check_function(80, "crates/db/src/a.rs::S::f 80\n", &[]);
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", method(100));
        check(violations, &[(PATH, &test)], &[]);
    }

    #[test]
    fn a_long_file_bites() {
        let text = "//\n".repeat(601);
        check(violations, &[(PATH, &text)], &[("crates/db/src/a.rs:1", "601 lines, and the limit is 600")]);
        let expected = [("crates/db/src/a.rs:1", "grew to 601 lines from the 600")];
        check(violations, &[(PATH, &text), (FILES.list, "crates/db/src/a.rs 600\n")], &expected);
    }

    #[test]
    fn the_tests_of_a_file_do_not_count() {
        let text = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(600), "//\n".repeat(300));
        check(violations, &[(PATH, &text)], &[]);
        check(violations, &[("crates/db/tests/a.rs", &"//\n".repeat(900))], &[]);
        check(violations, &[(PATH, &"//\n".repeat(700)), (FILES.list, "crates/db/src/a.rs 700\n")], &[]);
    }
}
