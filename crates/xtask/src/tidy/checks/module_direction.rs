//! Modules of `ordain-db` name each other in one direction only.
//!
//! Engines are siblings on one log, one storage layer and one set of procedures. That holds as long as no engine knows
//! another one, and the layers below know none of them: then an engine is read, changed and removed on its own.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rust_file::{Names, RustFile, split_path};
use super::{Violation, Workspace};

/// The folder of the crate that the rules are about.
const CRATE: &str = "db";

/// In a rule: each engine.
const ANY_ENGINE: &str = "engine::*";

/// Why no engine may name another one. The rule follows from the folders, so it is not in the table.
const SIBLINGS: &str = "engines are siblings: each can be read, changed and removed on its own";

/// A module, the modules that neither it nor anything below it may name, and the reason.
struct Rule {
    module: &'static str,
    must_not_name: &'static [&'static str],
    reason: &'static str,
}

#[rustfmt::skip] // One rule, one line.
const RULES: &[Rule] = &[
    Rule { module: "data", must_not_name: &["engine", "sequencer", "storage", "execution", "gateway", "node", "procedure"], reason: "the data model is below everything else" },
    Rule { module: "storage", must_not_name: &["engine", "sequencer", "execution", "gateway", "node"], reason: "storage serves every engine, so it knows none" },
    Rule { module: "sequencer", must_not_name: &["engine", "storage", "execution", "gateway", "node"], reason: "the order of transactions does not depend on what they do" },
    Rule { module: "execution", must_not_name: &["engine", "sequencer", "gateway", "node"], reason: "a transaction runs alike under every engine" },
    Rule { module: ANY_ENGINE, must_not_name: &["sequencer", "gateway", "node"], reason: "an engine is given delivered batches, whoever ordered them" },
];

/// Finds what breaks the table, and engines that name another engine.
pub(super) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let names = Names::of_crate(&workspace.rust, CRATE);
    let engines = engines(workspace);
    let mut found = Vec::new();
    for file in workspace.rust.iter().filter(|file| file.crate_folder == CRATE) {
        let engine = engine_of(file).filter(|engine| engines.contains(engine));
        let module = file.module.get(1).map(String::as_str);
        for rule in RULES {
            if module == Some(rule.module) || (rule.module == ANY_ENGINE && engine.is_some()) {
                let forbidden = rule.must_not_name.iter().map(|module| format!("crate::{module}"));
                found.extend(naming(file, &names, forbidden, engine.unwrap_or(rule.module), rule.reason));
            }
        }
        if let Some(engine) = engine {
            let others = engines.iter().filter(|other| **other != engine);
            let forbidden = others.map(|other| format!("crate::engine::{other}"));
            found.extend(naming(file, &names, forbidden, engine, SIBLINGS));
        }
    }
    found
}

/// One violation per line, whatever number of forbidden modules it names: `use crate::*` names all.
fn naming(
    file: &RustFile,
    names: &Names,
    forbidden: impl Iterator<Item = String>,
    module: &str,
    reason: &str,
) -> Vec<Violation> {
    let mut by_line: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for forbidden in forbidden {
        for line in names.lines_naming(file, &split_path(&forbidden)) {
            by_line.entry(line).or_default().push(forbidden.clone());
        }
    }
    let message = |named: Vec<String>| {
        let named = named.join("`, `");
        format!("`{module}` must not name `{named}`: {reason}. Move what is shared below both, or pass it in")
    };
    by_line.into_iter().map(|(line, named)| Violation::new(&file.path, line, message(named))).collect()
}

/// The folders in `engine/`: one engine each. Files beside them are for all engines.
fn engines(workspace: &Workspace) -> BTreeSet<&str> {
    let folder = format!("crates/{CRATE}/src/engine/");
    let below = workspace.paths.iter().filter_map(|path| path.strip_prefix(&folder));
    below.filter_map(|path| path.split_once('/')).map(|(engine, _)| engine).collect()
}

/// `crate::engine::<this>::…`.
fn engine_of(file: &RustFile) -> Option<&str> {
    match file.module.as_slice() {
        [_, engine, name, ..] if engine == "engine" => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn every_rule_bites() {
        for rule in RULES {
            let path = format!("crates/db/src/{}/mod.rs", rule.module.replace("::*", "/calvin"));
            for forbidden in rule.must_not_name {
                let text = format!("fn f() {{}}\nuse crate::{forbidden}::Thing;\n");
                check(violations, &[(&path, &text)], &[(&format!("{path}:2"), rule.reason)]);
            }
        }
    }

    #[test]
    fn every_way_to_name_a_module_bites() {
        let path = "crates/db/src/storage/memory.rs";
        let place = format!("{path}:1");
        for line in [
            "use crate::engine::Engine;",
            "use crate::{data::Key, engine as e};",
            "use super::super::engine;",
            "fn f() { crate::engine::run() }",
            "fn f() { assert!(crate::engine::is_idle()) }",
            "fn f(x: &super::super::engine::Engine) {}",
            "use crate::Reexported;",
            "use crate::*;",
        ] {
            let root = ("crates/db/src/lib.rs", "mod engine;\npub use engine::Reexported;");
            check(violations, &[root, (path, line)], &[(&place, "must not name `crate::engine`")]);
        }
    }

    #[test]
    fn an_engine_that_names_another_bites() {
        let calvin = ("crates/db/src/engine/calvin/mod.rs", "use super::serial::Serial;\n");
        let serial = ("crates/db/src/engine/serial/mod.rs", "pub struct Serial;\n");
        check(violations, &[calvin, serial], &[("crates/db/src/engine/calvin/mod.rs:1", "siblings")]);
    }

    #[test]
    fn the_right_direction_passes() {
        check(
            violations,
            &[
                ("crates/db/src/lib.rs", "pub mod engine;\npub use engine::Engine;\n"),
                (
                    "crates/db/src/engine/mod.rs",
                    "mod calvin;\nmod serial;\nuse calvin::Calvin;\nuse crate::sequencer;\n",
                ),
                ("crates/db/src/engine/batch.rs", ""),
                (
                    "crates/db/src/engine/calvin/mod.rs",
                    "use super::batch::Batch;\nuse crate::storage::Store;\n",
                ),
                (
                    "crates/db/src/engine/calvin/locks.rs",
                    "use super::Calvin;\nuse crate::engine::calvin::X;\n",
                ),
                (
                    "crates/db/src/engine/serial/mod.rs",
                    "/// Like [`crate::engine::calvin`].\npub struct Serial;\n",
                ),
                ("crates/db/src/storage/mod.rs", "#[cfg(test)]\nmod tests { use crate::engine::Engine; }\n"),
                ("crates/server/src/storage/mod.rs", "use crate::engine::Engine;\n"),
            ],
            &[],
        );
    }
}
