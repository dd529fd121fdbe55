//! The facts of one Rust file.

use std::ops::RangeInclusive;

/// What a file contains. All lines are counted from 1.
#[derive(Default)]
pub(crate) struct Contents {
    /// One for each name that a `use` brings in.
    pub imports: Vec<Import>,
    /// Paths of at least two segments outside of `use`.
    pub paths: Vec<PathUse>,
    /// Functions and methods that have a body.
    pub functions: Vec<Function>,
    /// `mod name;` and `mod name { … }`.
    pub modules: Vec<ModuleDeclaration>,
    /// `unsafe`, `async` and `await`, with their lines.
    pub keywords: Vec<(String, usize)>,
    /// Calls such as `name!(…)`.
    pub macro_calls: Vec<MacroCall>,
    /// `#[…]` and `#![…]`, documentation comments included.
    pub attributes: Vec<Attribute>,
    /// The items that exist only in tests, from their attribute to their end.
    pub test_lines: Vec<RangeInclusive<usize>>,
}

/// One name that a `use` brings in.
pub(crate) struct Import {
    /// The module that the `use` is in.
    pub module: Vec<String>,
    /// The path as written; of a glob, the path before `*`.
    pub segments: Vec<String>,
    /// The name that it has from here on: `None` for a glob and for `as _`.
    pub name: Option<String>,
    /// It ends in `*`.
    pub is_glob: bool,
    /// Where.
    pub line: usize,
}

/// A path in an expression, a type, a pattern, an attribute, or the arguments of a macro.
pub(crate) struct PathUse {
    /// The module that it is in.
    pub module: Vec<String>,
    /// The path as written, without generic arguments and what follows them.
    pub segments: Vec<String>,
    /// Where.
    pub line: usize,
}

/// A function with a body.
pub(crate) struct Function {
    /// With the types, modules and functions that it is in: `Scheduler::step`.
    pub name: String,
    /// From the line of `fn` to the line of the closing brace.
    pub lines: RangeInclusive<usize>,
}

/// `mod name;` or `mod name { … }`.
pub(crate) struct ModuleDeclaration {
    /// The module that it is in.
    pub parent: Vec<String>,
    /// The name.
    pub name: String,
    /// Where.
    pub line: usize,
}

/// `name!(…)`.
pub(crate) struct MacroCall {
    /// The last segment of the path before `!`.
    pub name: String,
    /// All identifiers in the arguments.
    pub words: Vec<String>,
    /// Where.
    pub line: usize,
}

/// `#[name …]` or `#![name …]`.
pub(crate) struct Attribute {
    /// The path: `cfg`, `ignore`, `rustfmt::skip`.
    pub name: String,
    /// All identifiers in the arguments.
    pub words: Vec<String>,
    /// Where.
    pub line: usize,
}

impl Contents {
    /// Whether a line belongs to an item that exists only in tests.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }
}

impl Function {
    /// From the line of `fn` to the line of the closing brace, both counted.
    pub(crate) fn length(&self) -> usize {
        self.lines.end() - self.lines.start() + 1
    }
}
