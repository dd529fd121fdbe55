//! The file of measured costs: one [`CostTable`] for each workload, in TOML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Benchmark;
use crate::machine::cost::CostTable;

/// The tables that are used when no others are given. A test holds that they can be read.
const MEASURED: &str = include_str!("costs.toml");

/// The table of a workload as it was measured for this version, in `costs.toml`.
///
/// # Panics
/// Never: a test reads the file.
pub fn costs(workload: Benchmark) -> CostTable {
    costs_from(MEASURED, workload).expect("the file beside this one has a table for each workload")
}

/// The table of a workload in the text of a file of costs.
///
/// # Errors
/// When the text is no such file, or has no table for the workload.
pub fn costs_from(text: &str, workload: Benchmark) -> Result<CostTable, String> {
    let advice = "write one with `ordain sim calibrate --output FILE`";
    let tables: BTreeMap<String, CostTable> =
        toml::from_str(text).map_err(|error| format!("this is no file of costs: {error}: {advice}"))?;
    let name = workload.name();
    tables.get(name).copied().ok_or_else(|| format!("the file of costs has no table [{name}]: {advice}"))
}

/// The text of a file of costs; each line of `heading` becomes a comment at its top.
///
/// # Errors
/// When a number is too large for the format.
pub fn costs_file(heading: &str, tables: &[(Benchmark, CostTable)]) -> Result<String, String> {
    let mut text = String::new();
    for line in heading.lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
    let tables: BTreeMap<&str, CostTable> =
        tables.iter().map(|(workload, costs)| (workload.name(), *costs)).collect();
    let tables = toml::to_string(&tables).map_err(|error| format!("cannot write costs as TOML: {error}"))?;
    text.push('\n');
    text.push_str(&tables);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_measured_costs() {
        for workload in Benchmark::ALL {
            let CostTable { request, executed_alone, executed_together, call, .. } = costs(workload);
            for cost in [request, executed_alone, executed_together, call] {
                assert!((1..1_000_000_000).contains(&cost), "{} costs {cost} ps", workload.name());
            }
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let micro = CostTable { step: 1, call: 2, ..CostTable::default() };
        let new_order = CostTable { reply: 3, transaction_received: 4, ..CostTable::default() };
        let tables = [(Benchmark::Micro, micro), (Benchmark::NewOrder, new_order)];
        let text = costs_file("Measured\nhere", &tables).unwrap();
        assert!(text.starts_with("# Measured\n# here\n\n[micro]\n"), "{text}");
        for (workload, costs) in tables {
            assert_eq!(costs_from(&text, workload), Ok(costs));
        }
    }

    #[test]
    fn wrong_files_say_what_to_do() {
        let only_micro = costs_file("Half a file", &[(Benchmark::Micro, CostTable::default())]).unwrap();
        let missing = costs_from(&only_micro, Benchmark::NewOrder).unwrap_err();
        assert!(missing.contains("[new-order]") && missing.contains("ordain sim calibrate"), "{missing}");
        let unknown = costs_from("[micro]\nsteps = 3\n", Benchmark::Micro).unwrap_err();
        assert!(unknown.contains("steps"), "{unknown}");
    }
}
