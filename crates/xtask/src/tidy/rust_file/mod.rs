//! What the checks need to know of a Rust file, read from its tokens.
//!
//! Tokens and not a syntax tree: to a parser of Rust the arguments of `assert!`, `vec!` or `proptest!` are opaque, but
//! code that is written there must obey the rules like any other. Comments and strings are no code: the lexer has
//! already set them apart.
//!
//! - [`contents`]: the facts: imports, paths, functions, attributes, macro calls, keywords, and which lines are tests.
//! - [`scan`]: from tokens to facts.
//! - [`names`]: from a path as it is written to the path that it means.

mod contents;
mod names;
mod scan;

pub(crate) use contents::Contents;
pub(crate) use names::{Names, split_path};

use proc_macro2::TokenStream;

/// A Rust file.
pub(crate) struct RustFile {
    /// Relative to the root of the workspace.
    pub path: String,
    /// The folder of its crate under `crates/`; empty for a file outside of it.
    pub crate_folder: String,
    /// The module that the file is, such as `["crate", "storage", "memory"]`.
    pub module: Vec<String>,
    /// What it contains; nothing if the lexer gave up.
    pub contents: Contents,
    /// The line where the lexer gave up.
    pub lexer_error: Option<usize>,
    /// It is a test as a whole: by its folder, or by the `mod` that declares it.
    is_test_file: bool,
}

impl RustFile {
    /// Reads a file.
    pub(crate) fn read(path: &str, text: &str) -> RustFile {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let (crate_folder, inside) = match parts.as_slice() {
            ["crates", crate_folder, inside @ ..] => (*crate_folder, inside),
            other => ("", other),
        };
        let (contents, lexer_error) = match text.parse::<TokenStream>() {
            Ok(tokens) => (scan::scan(tokens, module_of(inside)), None),
            Err(error) => (Contents::default(), Some(error.span().start().line)),
        };
        RustFile {
            path: path.into(),
            crate_folder: crate_folder.into(),
            module: module_of(inside),
            contents,
            lexer_error,
            is_test_file: matches!(inside.first(), Some(&("tests" | "benches" | "examples"))),
        }
    }

    /// Whether a line is a test: inside `#[cfg(test)]` or `#[test]`, or anywhere in a folder of tests.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.is_test_file || self.contents.is_test(line)
    }
}

/// Finds files that are tests because of the file that declares them: `#[cfg(test)] mod simulation;` makes
/// `simulation.rs`, and all below it, a test.
pub(crate) fn mark_test_modules(files: &mut [RustFile]) {
    let mut declared: Vec<(String, Vec<String>)> = Vec::new();
    for file in files.iter() {
        for declaration in file.contents.modules.iter().filter(|declaration| file.is_test(declaration.line)) {
            let module = [declaration.parent.as_slice(), std::slice::from_ref(&declaration.name)].concat();
            declared.push((file.crate_folder.clone(), module));
        }
    }
    for file in files {
        file.is_test_file |= declared
            .iter()
            .any(|(folder, module)| *folder == file.crate_folder && file.module.starts_with(module));
    }
}

/// The module that a file is, from its place in its crate: `src/a/mod.rs` and `src/a.rs` are `crate::a`.
fn module_of(inside: &[&str]) -> Vec<String> {
    let below_src = if inside.first() == Some(&"src") { &inside[1..] } else { &[] };
    let below_src = match below_src {
        [folders @ .., "mod" | "lib" | "main"] => folders,
        // Each file in `src/bin` is a crate of its own.
        ["bin", ..] => &[],
        all => all,
    };
    std::iter::once("crate").chain(below_src.iter().copied()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_modules() {
        let module = |path| RustFile::read(path, "").module.join("::");
        assert_eq!(module("crates/db/src/lib.rs"), "crate");
        assert_eq!(module("crates/db/src/position.rs"), "crate::position");
        assert_eq!(module("crates/db/src/storage/mod.rs"), "crate::storage");
        assert_eq!(module("crates/db/src/storage/memory.rs"), "crate::storage::memory");
        assert_eq!(module("crates/server/src/main.rs"), "crate");
        assert_eq!(module("crates/server/src/bin/tool.rs"), "crate");
        assert_eq!(module("crates/db/tests/bank.rs"), "crate");
    }

    #[test]
    fn folders_of_tests_are_tests() {
        assert!(RustFile::read("crates/db/tests/bank.rs", "fn f() {}").is_test(1));
        assert!(!RustFile::read("crates/db/src/bank.rs", "fn f() {}").is_test(1));
    }

    #[test]
    fn files_declared_as_tests_are_tests() {
        let mut files = [
            RustFile::read("crates/db/src/lib.rs", "mod a;\n#[cfg(test)]\nmod golden;\n"),
            RustFile::read("crates/db/src/golden/mod.rs", "mod script;\n"),
            RustFile::read("crates/db/src/golden/script.rs", "fn f() {}\n"),
            RustFile::read("crates/db/src/a.rs", "fn f() {}\n"),
            RustFile::read("crates/server/src/golden.rs", "fn f() {}\n"),
        ];
        mark_test_modules(&mut files);
        assert_eq!(files.map(|file| file.is_test(1)), [false, true, true, false, false]);
    }

    #[test]
    fn what_cannot_be_lexed_is_reported_by_line() {
        assert_eq!(RustFile::read("crates/db/src/a.rs", "fn f() {}\n\nfn g( {\n").lexer_error, Some(3));
    }
}
