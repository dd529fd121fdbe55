//! From a path as it is written to the path that it means.
//!
//! `use std::collections; collections::HashMap`, `super::super::engine`, or a re-export at the root of the crate: each is
//! a way to name a thing without spelling its full path, and a rule must see through all of them. What is not seen
//! through: glob imports, which are therefore treated as naming whatever lies below them, macros, and type aliases.

use std::collections::{BTreeMap, BTreeSet};

use super::RustFile;

/// Names that the modules of one crate import, tests left out.
pub(crate) struct Names {
    /// `(module, name)` to the path as the `use` writes it.
    imports: BTreeMap<(Vec<String>, String), Vec<String>>,
    modules: BTreeSet<Vec<String>>,
}

/// How many imports a path is followed through: `use smallvec;` names itself.
const IMPORTS_FOLLOWED_MAX: usize = 8;

impl Names {
    /// The names of the crate in a folder of `crates/`.
    pub(crate) fn of_crate(files: &[RustFile], crate_folder: &str) -> Names {
        let mut names = Names { imports: BTreeMap::new(), modules: BTreeSet::new() };
        for file in files.iter().filter(|file| file.crate_folder == crate_folder) {
            for import in file.contents.imports.iter().filter(|import| !file.is_test(import.line)) {
                if let Some(name) = &import.name {
                    names.imports.insert((import.module.clone(), name.clone()), import.segments.clone());
                }
            }
            names.modules.insert(file.module.clone());
            for declaration in &file.contents.modules {
                let module =
                    [declaration.parent.as_slice(), std::slice::from_ref(&declaration.name)].concat();
                names.modules.insert(module);
            }
        }
        names
    }

    /// The lines of a file, tests left out, that name `forbidden` or anything below it.
    ///
    /// A path that starts with an imported name is not reported again if the import itself is.
    pub(crate) fn lines_naming(&self, file: &RustFile, forbidden: &[String]) -> Vec<usize> {
        let mut lines = Vec::new();
        for import in &file.contents.imports {
            let meant = self.resolve(&import.module, &import.segments);
            let hides_it = import.is_glob && forbidden.starts_with(&meant);
            if meant.starts_with(forbidden) || hides_it {
                lines.push(import.line);
            }
        }
        for path in &file.contents.paths {
            let import = self.import_of(&path.module, &path.segments[0]);
            let is_reported = import.is_some_and(|import| import.starts_with(forbidden));
            if !is_reported && self.resolve(&path.module, &path.segments).starts_with(forbidden) {
                lines.push(path.line);
            }
        }
        lines.retain(|line| !file.is_test(*line));
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// What a name means that a module imports.
    fn import_of(&self, module: &[String], name: &str) -> Option<Vec<String>> {
        let written = self.imports.get(&(module.to_vec(), name.into()))?;
        Some(self.resolve(module, written))
    }

    /// The path that `written` means in `module`: from `crate` or from another crate's name.
    fn resolve(&self, module: &[String], written: &[String]) -> Vec<String> {
        self.resolve_through(module, written, IMPORTS_FOLLOWED_MAX)
    }

    fn resolve_through(&self, module: &[String], written: &[String], imports_left: usize) -> Vec<String> {
        let path = self.absolute(module, written);
        if imports_left == 0 || path.first().is_none_or(|first| first != "crate") {
            return path;
        }
        // A name of a module of this crate may itself be an import: follow it, from the module that it is in.
        for split in 1..path.len() {
            // `mod scan; use scan::scan;`: with more to come, the name is the module.
            if split + 1 < path.len() && self.modules.contains(&path[..=split]) {
                continue;
            }
            let key = (path[..split].to_vec(), path[split].clone());
            if let Some(target) = self.imports.get(&key) {
                let target = [target.as_slice(), &path[split + 1..]].concat();
                return self.resolve_through(&path[..split], &target, imports_left - 1);
            }
        }
        path
    }

    /// The path from the root of this crate or of another one, before any import is followed.
    fn absolute(&self, module: &[String], written: &[String]) -> Vec<String> {
        let Some((first, rest)) = written.split_first() else { return Vec::new() };
        match first.as_str() {
            "crate" => written.to_vec(),
            "self" => below(module, rest),
            "super" => below(parent(module), rest),
            _ if self.is_local(module, first) => [module, written].concat(),
            _ => written.to_vec(),
        }
    }

    /// Whether a module imports a name or has a child module of that name.
    fn is_local(&self, module: &[String], name: &String) -> bool {
        // `use smallvec;` imports the name of another crate under itself: not local.
        let import = self.imports.get(&(module.to_vec(), name.clone()));
        import.is_some_and(|target| target.first() != Some(name))
            || self.modules.contains(&[module, std::slice::from_ref(name)].concat())
    }
}

/// The path that `rest` means behind `self` or `super`: it may go on with more of `super`.
fn below(module: &[String], rest: &[String]) -> Vec<String> {
    match rest.split_first() {
        Some((first, rest)) if first == "super" => below(parent(module), rest),
        _ => [module, rest].concat(),
    }
}

/// The module around a module; of the root, the root.
fn parent(module: &[String]) -> &[String] {
    &module[..module.len().saturating_sub(1).max(1)]
}

/// The segments of a path written with `::`.
pub(crate) fn split_path(path: &str) -> Vec<String> {
    path.split("::").map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a path means in `crates/db/src/a/b.rs`, the text of which is given, next to a root with re-exports.
    fn check(text: &str, written: &str, expected: &str) {
        let files = [
            RustFile::read("crates/db/src/lib.rs", "pub mod a;\nmod engine;\npub use engine::Engine;"),
            RustFile::read("crates/db/src/a/mod.rs", "mod b;"),
            RustFile::read("crates/db/src/a/b.rs", text),
        ];
        let names = Names::of_crate(&files, "db");
        assert_eq!(names.resolve(&files[2].module, &split_path(written)).join("::"), expected);
    }

    #[test]
    fn paths_are_resolved() {
        check("", "crate::x::Y", "crate::x::Y");
        check("", "self::x", "crate::a::b::x");
        check("", "super::x", "crate::a::x");
        check("", "super::super::x", "crate::x");
        check("", "super::super::super::super::x", "crate::x");
        check("", "std::thread::spawn", "std::thread::spawn");
        check("mod inner;", "inner::x", "crate::a::b::inner::x");
    }

    #[test]
    fn imports_are_followed() {
        check("use std::collections as c;", "c::HashMap", "std::collections::HashMap");
        check("use std::collections;", "collections::HashMap", "std::collections::HashMap");
        check("use super::super::engine::calvin;", "calvin::x", "crate::engine::calvin::x");
        check("", "crate::Engine", "crate::engine::Engine");
        check("use crate::Engine;", "Engine::new", "crate::engine::Engine::new");
        check("use smallvec;", "smallvec::SmallVec", "smallvec::SmallVec");
        check("mod scan; use scan::scan;", "scan::scan", "crate::a::b::scan::scan");
    }

    #[test]
    fn imports_in_a_circle_end() {
        check("use self::y as x; use self::x as y;", "self::x", "crate::a::b::x");
    }

    /// The lines of `crates/db/src/a/b.rs` that name `crate::engine` or `std::thread`.
    fn check_lines(text: &str, expected: &[usize]) {
        let files = [
            RustFile::read("crates/db/src/lib.rs", "pub use engine::Engine;\nmod engine;"),
            RustFile::read("crates/db/src/a/b.rs", text),
        ];
        let names = Names::of_crate(&files, "db");
        let mut lines = names.lines_naming(&files[1], &split_path("crate::engine"));
        lines.extend(names.lines_naming(&files[1], &split_path("std::thread")));
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_that_name_something_are_found() {
        check_lines("fn f() {\n  crate::engine::run();\n}", &[2]);
        check_lines("use std::thread;\nfn f() {\n  thread::spawn();\n}", &[1]);
        check_lines("use crate::Engine;", &[1]);
        check_lines("use crate::*;", &[1]);
        check_lines("use std::*;", &[1]);
        check_lines("use super::*;\nuse std::time::Duration;", &[]);
        check_lines("#[cfg(test)]\nmod tests {\n  use std::thread;\n}", &[]);
    }
}
