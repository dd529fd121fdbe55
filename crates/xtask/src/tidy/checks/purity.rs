//! The pure crates have no clock, thread, socket, file, environment, global randomness or randomly seeded hash map.
//!
//! Time, randomness and order are arguments, so that the server and the simulator drive the same code, and a seed
//! reproduces a run. Clippy's `disallowed-types` and `disallowed-methods` say so first, where the code is written; this
//! is the second net: it holds whole modules, sees through renames, and no `#[allow]` opens it. Tests are left out.

use super::super::rust_file::{Names, RustFile, split_path};
use super::{Violation, Workspace};

/// The crates that do the impure work. A new crate is pure until it is listed here.
const IMPURE_CRATES: &[&str] = &["server", "xtask"];

/// What must not be named, nor anything below it, and what to do instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::time::Instant", "time is an argument: take the time with the event"),
    ("std::time::SystemTime", "time is an argument: take the time with the event"),
    ("std::thread", "cores are step functions: let the driver in the server crate own the thread"),
    ("std::sync::Mutex", "cores are single-threaded: own the state, or share it as an immutable `Arc`"),
    ("std::sync::RwLock", "cores are single-threaded: own the state, or share it as an immutable `Arc`"),
    ("std::sync::Condvar", "cores never wait: make waiting an explicit phase in a table"),
    ("std::sync::mpsc", "cores never wait: return effects, and let the driver carry them"),
    ("std::net", "sending is an effect: put a message into the outbox"),
    ("std::fs", "persisting is an effect: put it into the outbox"),
    ("std::env", "configuration is an argument"),
    ("std::process", "stopping is an effect: return an error, or panic on a broken invariant"),
    ("std::collections::HashMap", "it is randomly seeded: use `ordain_db::hash::FastMap`, or a `BTreeMap`"),
    ("std::collections::HashSet", "it is randomly seeded: use `ordain_db::hash::FastSet`, or a `BTreeSet`"),
    ("std::collections::hash_map::HashMap", "it is randomly seeded: use `ordain_db::hash::FastMap`"),
    ("std::collections::hash_set::HashSet", "it is randomly seeded: use `ordain_db::hash::FastSet`"),
    ("std::collections::hash_map::RandomState", "it is randomly seeded: use the hasher of `ordain_db::hash`"),
    ("std::hash::RandomState", "it is randomly seeded: use the hasher of `ordain_db::hash`"),
    ("rand::rng", "randomness is an argument: take a seeded generator"),
    ("rand::thread_rng", "randomness is an argument: take a seeded generator"),
    ("rand::random", "randomness is an argument: take a seeded generator"),
    ("rand::rngs::ThreadRng", "randomness is an argument: take a seeded generator"),
    ("rand::rngs::OsRng", "randomness is an argument: take a seeded generator"),
    ("rand::rngs::SysRng", "randomness is an argument: take a seeded generator"),
    ("getrandom", "randomness is an argument: take a seeded generator"),
];

/// The files that may name what nobody else may, and the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Gives the standard map and set a fixed hasher.
    ("crates/db/src/hash.rs", "std::collections::HashMap"),
    ("crates/db/src/hash.rs", "std::collections::HashSet"),
    // Streams of DataFusion must be able to go to other threads; theirs do not.
    ("crates/columns/src/exchange.rs", "std::sync::Mutex"),
];

/// Conditions of compilation that would make the simulated code another code than the one that serves.
const FORBIDDEN_CONDITIONS: &[&str] =
    &["feature", "sim", "simulation", "madsim", "turmoil", "loom", "shuttle"];

/// Finds impure names, `async`, and conditions of compilation in the pure crates.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut crates: Vec<&str> = workspace.rust.iter().map(|file| file.crate_folder.as_str()).collect();
    crates.dedup();
    crates.retain(|folder| !folder.is_empty() && !IMPURE_CRATES.contains(folder));
    let mut found = Vec::new();
    for folder in crates {
        let names = Names::of_crate(&workspace.rust, folder);
        for file in workspace.rust.iter().filter(|file| file.crate_folder == folder) {
            found.extend(impure_names(file, &names));
            found.extend(asynchrony(file));
            found.extend(conditions(file));
        }
    }
    found
}

fn impure_names(file: &RustFile, names: &Names) -> Vec<Violation> {
    let mut found = Vec::new();
    for (forbidden, instead) in FORBIDDEN {
        if EXCEPTIONS.contains(&(&file.path, forbidden)) {
            continue;
        }
        let message = format!("`{forbidden}` in a pure crate: {instead}");
        let lines = names.lines_naming(file, &split_path(forbidden));
        found.extend(lines.into_iter().map(|line| Violation::new(&file.path, line, &*message)));
    }
    found
}

fn asynchrony(file: &RustFile) -> Vec<Violation> {
    let keywords = file.contents.keywords.iter();
    let keywords =
        keywords.filter(|(word, line)| (word == "async" || word == "await") && !file.is_test(*line));
    let message = |word| {
        format!(
            "`{word}` in a pure crate: cores run to completion; make waiting an explicit phase in a table"
        )
    };
    keywords.map(|(word, line)| Violation::new(&file.path, *line, message(word))).collect()
}

fn conditions(file: &RustFile) -> Vec<Violation> {
    let contents = &file.contents;
    let attributes =
        contents.attributes.iter().map(|attribute| (&attribute.name, &attribute.words, attribute.line));
    let calls = contents.macro_calls.iter().map(|call| (&call.name, &call.words, call.line));
    let mut found = Vec::new();
    for (name, words, line) in attributes.chain(calls) {
        let condition = words.iter().find(|word| FORBIDDEN_CONDITIONS.contains(&word.as_str()));
        if let Some(condition) = condition
            && matches!(name.as_str(), "cfg" | "cfg_attr" | "cfg_select")
            && !file.is_test(line)
        {
            let message = format!(
                "`{name}({condition} …)` in a pure crate: what is simulated must be what serves; make it an argument"
            );
            found.push(Violation::new(&file.path, line, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const PATH: &str = "crates/db/src/storage/memory.rs";

    /// One violation in line 2.
    fn check_bites(line: &str, words: &str) {
        let text = format!("\n{line}\n");
        check(violations, &[(PATH, &text)], &[(&format!("{PATH}:2"), words)]);
    }

    #[test]
    fn every_forbidden_name_bites() {
        for (forbidden, instead) in FORBIDDEN {
            check_bites(&format!("use {forbidden};"), instead);
            check_bites(&format!("fn f() {{ {forbidden}::new() }}"), instead);
        }
    }

    #[test]
    fn names_bite_in_any_dress() {
        check_bites("use std::{sync::Arc, collections::{BTreeMap, HashMap as Map}};", "FastMap");
        check_bites("use std::thread; fn f() { thread::spawn(g) }", "own the thread");
        check_bites("fn f() { println!(\"{:?}\", std::time::Instant::now()) }", "time is an argument");
        check_bites("use std::thread::*;", "own the thread");
        let text = "use std::collections as c;\nstruct S { a: c::HashMap<u8, u8> }\n";
        check(violations, &[(PATH, text)], &[(&format!("{PATH}:2"), "randomly seeded")]);
    }

    #[test]
    fn asynchrony_bites() {
        check_bites("async fn f() {}", "`async` in a pure crate");
        check_bites("fn f() { g().await }", "`await` in a pure crate");
    }

    #[test]
    fn conditions_bite() {
        check_bites("#[cfg(sim)] fn f() {}", "`cfg(sim …)`");
        check_bites("#[cfg(not(feature = \"x\"))] fn f() {}", "`cfg(feature …)`");
        check_bites("fn f() { if cfg!(feature = \"x\") {} }", "`cfg(feature …)`");
        check_bites("#[cfg_attr(feature = \"x\", derive(A))] struct S;", "`cfg_attr(feature …)`");
    }

    #[test]
    fn pure_code_passes() {
        let text = "//! No `std::thread` here, and no async.\n\
            use std::sync::Arc;\n\
            use std::time::Duration;\n\
            use std::collections::{BTreeMap, hash_map::Entry};\n\
            use crate::hash::FastMap;\n\
            #[cfg(debug_assertions)]\n\
            fn f(now: Duration) { let text = \"std::thread\"; }\n\
            #[cfg(test)]\n\
            mod tests { use std::fs; async fn g() {} }\n";
        check(violations, &[(PATH, text)], &[]);
        check(violations, &[("crates/db/tests/golden.rs", "use std::fs;\n")], &[]);
    }

    #[test]
    fn impure_crates_and_exceptions_pass() {
        check(violations, &[("crates/server/src/main.rs", "use std::thread;\n")], &[]);
        check(violations, &[("crates/db/src/hash.rs", "use std::collections::{HashMap, HashSet};\n")], &[]);
    }
}
