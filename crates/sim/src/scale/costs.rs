//! The file of measured costs: one [`CostTable`] for each engine and workload, in TOML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ordain_db::engine::EngineKind;

use super::Benchmark;
use crate::machine::cost::CostTable;

/// The tables that are used when no others are given. A test holds that they can be read.
const MEASURED: &str = include_str!("costs.toml");

/// What a table is of.
pub type Costed = (EngineKind, Benchmark);

/// By engine, and then by workload.
type Tables = BTreeMap<String, BTreeMap<String, CostTable>>;

/// The table of a workload on `calvin` as it was measured for this version, in `costs.toml`: what experiments use that hold other engines
/// against that one by its costs.
///
/// # Panics
/// Never: a test reads the file.
pub fn costs(workload: Benchmark) -> CostTable {
    let of = (EngineKind::Calvin, workload);
    costs_from(MEASURED, of).expect("the file beside this one has a table for each workload")
}

/// The table of a workload on an engine in the text of a file of costs.
///
/// # Errors
/// When the text is no such file, or has no such table.
pub fn costs_from(text: &str, (engine, workload): Costed) -> Result<CostTable, String> {
    let (engine, name) = (engine.name(), workload.name());
    let advice = format!("write one with `ordain sim calibrate --engine {engine} --output FILE`");
    let tables: Tables =
        toml::from_str(text).map_err(|error| format!("this is no file of costs: {error}: {advice}"))?;
    let table = tables.get(engine).and_then(|tables| tables.get(name)).copied();
    table.ok_or_else(|| format!("the file of costs has no table [{engine}.{name}]: {advice}"))
}

/// The text of a file of costs; each line of `heading` becomes a comment at its top.
///
/// # Errors
/// When a number is too large for the format.
pub fn costs_file(heading: &str, tables: &[(Costed, CostTable)]) -> Result<String, String> {
    let mut text = String::new();
    for line in heading.lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
    let mut all = Tables::new();
    for ((engine, workload), costs) in tables {
        let of_engine = all.entry(engine.name().to_owned()).or_default();
        of_engine.insert(workload.name().to_owned(), *costs);
    }
    let tables = toml::to_string(&all).map_err(|error| format!("cannot write costs as TOML: {error}"))?;
    text.push('\n');
    text.push_str(&tables);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_of_the_scaling_experiments_has_measured_costs() {
        for workload in Benchmark::SCALING {
            let CostTable { request, executed_alone, executed_together, call, .. } = costs(workload);
            for cost in [request, executed_alone, executed_together, call] {
                assert!((1..1_000_000_000).contains(&cost), "{} costs {cost} ps", workload.name());
            }
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let micro = CostTable { step: 1, call: 2, ..CostTable::default() };
        let new_order = CostTable { reply: 3, functor: Some(4), ..CostTable::default() };
        let tables = [
            ((EngineKind::Calvin, Benchmark::Micro), micro),
            ((EngineKind::Aloha, Benchmark::Micro), new_order),
            ((EngineKind::Calvin, Benchmark::NewOrder), new_order),
        ];
        let text = costs_file("Measured\nhere", &tables).unwrap();
        assert!(text.starts_with("# Measured\n# here\n\n[aloha.micro]\n"), "{text}");
        for (of, costs) in tables {
            assert_eq!(costs_from(&text, of), Ok(costs));
        }
    }

    #[test]
    fn wrong_files_say_what_to_do() {
        let micro = (EngineKind::Calvin, Benchmark::Micro);
        let only_micro = costs_file("Half a file", &[(micro, CostTable::default())]).unwrap();
        let missing = costs_from(&only_micro, (EngineKind::Calvin, Benchmark::NewOrder)).unwrap_err();
        assert!(
            missing.contains("[calvin.new-order]") && missing.contains("ordain sim calibrate"),
            "{missing}"
        );
        let missing = costs_from(&only_micro, (EngineKind::Aloha, Benchmark::Micro)).unwrap_err();
        assert!(missing.contains("[aloha.micro]") && missing.contains("--engine aloha"), "{missing}");
        let unknown = costs_from("[calvin.micro]\nsteps = 3\n", micro).unwrap_err();
        assert!(unknown.contains("steps"), "{unknown}");
    }
}
