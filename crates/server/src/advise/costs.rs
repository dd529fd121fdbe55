//! What the parts of a step are taken to cost with a workload.
//!
//! Costs were measured for two workloads, see `ordain sim calibrate`. For others they are an estimate, and the report says which.

use std::path::Path;

use ordain_sim::machine::cost::CostTable;
use ordain_sim::scale::Benchmark;
use ordain_workload::micro::RECORDS_PER_TRANSACTION;

use crate::bench::options::{MicroOptions, TpccMix, TpccOptions, WorkloadOptions};
use crate::bench::work;
use crate::sim::costs_of;

/// Costs, and where they come from, in words.
#[derive(Clone, PartialEq, Debug)]
pub struct Costs {
    /// Those on the engine `calvin`.
    pub table: CostTable,
    /// Where they come from.
    pub source: String,
}

/// The costs of a workload of which a transaction touches so many keys and ranges in the mean; none for one that is not ours.
/// `file` has others than those in the binary.
///
/// # Errors
/// When the file cannot be read.
pub fn costs(workload: Option<&WorkloadOptions>, keys: f64, file: Option<&Path>) -> Result<Costs, String> {
    match workload {
        Some(WorkloadOptions::Micro(options)) => {
            let table = costs_of(file, Benchmark::Micro)?;
            let per_record = work_microseconds(options);
            let picoseconds = RECORDS_PER_TRANSACTION as u64 * per_record * 1_000_000;
            let source = match per_record {
                0 => "those measured with micro".to_owned(),
                _ => format!("those measured with micro, and {per_record} us of work with each record"),
            };
            Ok(Costs { table: table.with_work(picoseconds), source })
        }
        Some(WorkloadOptions::Tpcc(options)) => {
            let source = match has_new_orders_alone(options) {
                true => "those measured with New Order",
                false => "those measured with New Order, taken for all transactions",
            };
            Ok(Costs { table: costs_of(file, Benchmark::NewOrder)?, source: source.to_owned() })
        }
        _ => Ok(of_keys(&costs_of(file, Benchmark::Micro)?, keys)),
    }
}

/// The costs of micro with what it does with each record scaled to another number of keys.
fn of_keys(micro: &CostTable, keys: f64) -> Costs {
    let share = keys / RECORDS_PER_TRANSACTION as f64;
    let scaled = |cost: u64| (cost as f64 * share).round() as u64;
    Costs {
        table: CostTable {
            executed_alone: scaled(micro.executed_alone),
            executed_together: scaled(micro.executed_together),
            ..*micro
        },
        source: format!(
            "an estimate: those measured with micro, whose {RECORDS_PER_TRANSACTION} records are scaled to {keys:.1} keys"
        ),
    }
}

/// Busy work with each record, in whole microseconds. Rounds are as fast as this machine is, now.
fn work_microseconds(options: &MicroOptions) -> u64 {
    let microseconds = options.work_microseconds.unwrap_or_else(|| match options.work_rounds {
        0 => 0.0,
        rounds => work::microseconds(rounds),
    });
    microseconds.round() as u64
}

fn has_new_orders_alone(options: &TpccOptions) -> bool {
    match options.mix {
        Some(mix) => mix == TpccMix::NewOrder,
        None => options.new_order_percent.is_none_or(|percent| percent >= 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::options::BankOptions;

    fn of(workload: &WorkloadOptions, keys: f64) -> Costs {
        costs(Some(workload), keys, None).unwrap()
    }

    #[test]
    fn work_is_charged_with_each_execution() {
        let micro = |work_microseconds| {
            WorkloadOptions::Micro(MicroOptions { work_microseconds, ..MicroOptions::default() })
        };
        let (short, long) = (of(&micro(None), 10.0), of(&micro(Some(15.0)), 10.0));
        assert_eq!(long.table.executed_alone - short.table.executed_alone, 150_000_000);
        assert_eq!(long.table.request, short.table.request);
        assert!(short.source.ends_with("micro") && long.source.contains("15 us"));
        // Less than half a microsecond is none.
        let rounds = WorkloadOptions::Micro(MicroOptions { work_rounds: 1, ..MicroOptions::default() });
        assert_eq!(of(&rounds, 10.0).table, short.table);
    }

    #[test]
    fn what_was_not_measured_is_said_to_be_an_estimate() {
        let micro = costs(Some(&WorkloadOptions::Micro(MicroOptions::default())), 10.0, None).unwrap().table;
        let bank = of(&WorkloadOptions::Bank(BankOptions::default()), 2.0);
        assert_eq!(bank.table.executed_alone, (micro.executed_alone as f64 * 0.2).round() as u64);
        assert!(bank.source.starts_with("an estimate") && bank.source.ends_with("2.0 keys"));
        assert_eq!(costs(None, 10.0, None).unwrap().table, micro);
        let tpcc = |mix| of(&WorkloadOptions::Tpcc(TpccOptions { mix, ..TpccOptions::default() }), 30.0);
        assert!(!tpcc(None).source.contains("taken for all"));
        assert!(tpcc(Some(TpccMix::Full)).source.contains("taken for all"));
    }
}
