//! What the parts of a step are taken to cost with a workload.
//!
//! Costs were measured for a few workloads on `calvin` and on `aloha`, see `ordain sim calibrate`. For others they are an estimate,
//! and the report says which.

use std::path::Path;

use ordain_sim::scale::Benchmark;
use ordain_sim::scale::advice::AdviceCosts;
use ordain_workload::micro::RECORDS_PER_TRANSACTION;

use crate::bench::options::{MicroAdds, MicroOptions, TpccMix, TpccOptions, WorkloadOptions};
use crate::bench::work;

/// Costs, and where they come from, in words.
#[derive(Clone, PartialEq, Debug)]
pub struct Costs {
    /// Those of engines with locks, and of `aloha`.
    pub table: AdviceCosts,
    /// Where they come from.
    pub source: String,
}

/// The costs of a workload of which a transaction touches so many keys and ranges in the mean; none for one that is not ours.
/// `file` has others than those in the binary.
///
/// # Errors
/// When the file cannot be read, or lacks a table.
pub fn costs(workload: Option<&WorkloadOptions>, keys: f64, file: Option<&Path>) -> Result<Costs, String> {
    match workload {
        Some(WorkloadOptions::Micro(options)) => {
            let table = costs_of(file, benchmark(options))?;
            let per_record = work_microseconds(options);
            let mut source = "those measured with micro".to_owned();
            if options.adds.is_none() && file.is_none() {
                source.push_str(" without its constraint");
            }
            if per_record > 0 {
                source.push_str(&format!(", and {per_record} us of work with each record"));
            }
            Ok(Costs { table: table.with_work(per_record * 1_000_000), source })
        }
        Some(WorkloadOptions::Tpcc(options)) => {
            let source = match has_new_orders_alone(options) {
                true => "those measured with New Order",
                false => "those measured with New Order, taken for all transactions",
            };
            Ok(Costs { table: costs_of(file, Benchmark::NewOrder)?, source: source.to_owned() })
        }
        Some(WorkloadOptions::ScaledTpcc(_)) => Ok(Costs {
            table: costs_of(file, Benchmark::NewOrder)?,
            source: "those measured with New Order".to_owned(),
        }),
        _ => Ok(Costs {
            table: costs_of(file, Benchmark::Micro)?.of_keys(keys),
            source: format!(
                "an estimate: those measured with micro, whose {RECORDS_PER_TRANSACTION} records are scaled to {keys:.1} keys"
            ),
        }),
    }
}

/// The costs in a file that `ordain sim calibrate` wrote; those in the binary, if none is named.
fn costs_of(file: Option<&Path>, benchmark: Benchmark) -> Result<AdviceCosts, String> {
    let Some(path) = file else { return AdviceCosts::measured(benchmark) };
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    AdviceCosts::read(&text, benchmark)
}

/// What was measured of `micro`, by how its additions are declared, if it does nothing but add.
fn benchmark(options: &MicroOptions) -> Benchmark {
    match options.adds {
        None => Benchmark::Micro,
        Some(MicroAdds::Arithmetic) => Benchmark::AddsArithmetic,
        Some(MicroAdds::Own) => Benchmark::AddsOwn,
        Some(MicroAdds::Whole) => Benchmark::AddsWhole,
    }
}

/// Busy work with each record, in whole microseconds. Rounds are as fast as this machine is, now.
pub fn work_microseconds(options: &MicroOptions) -> u64 {
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
    use ordain_sim::scale::advice::WORK_UNITS;

    use crate::bench::options::{BankOptions, ScaledTpccOptions};

    fn of(workload: &WorkloadOptions, keys: f64) -> Costs {
        costs(Some(workload), keys, None).unwrap()
    }

    #[test]
    fn work_is_charged_by_its_units() {
        let micro = |work_microseconds| {
            WorkloadOptions::Micro(MicroOptions { work_microseconds, ..MicroOptions::default() })
        };
        let (short, long) = (of(&micro(None), 10.0), of(&micro(Some(15.0)), 10.0));
        for (long, short) in [(long.table.locks, short.table.locks), (long.table.aloha, short.table.aloha)] {
            assert_eq!(u64::from(WORK_UNITS) * long.unit, 15_000_000);
            assert_eq!((long.executed_alone, short.unit), (short.executed_alone, 0));
        }
        assert!(short.source.ends_with("micro without its constraint") && long.source.contains("15 us"));
        // Less than half a microsecond is none.
        let rounds = WorkloadOptions::Micro(MicroOptions { work_rounds: 1, ..MicroOptions::default() });
        assert_eq!(of(&rounds, 10.0).table, short.table);
    }

    #[test]
    fn what_was_not_measured_is_said_to_be_an_estimate() {
        let micro = costs(Some(&WorkloadOptions::Micro(MicroOptions::default())), 10.0, None).unwrap().table;
        let bank = of(&WorkloadOptions::Bank(BankOptions::default()), 2.0);
        assert_eq!(bank.table, micro.of_keys(2.0));
        assert!(bank.source.starts_with("an estimate") && bank.source.ends_with("2.0 keys"));
        assert_eq!(costs(None, 10.0, None).unwrap().table, micro.of_keys(10.0));
        let tpcc = |mix| of(&WorkloadOptions::Tpcc(TpccOptions { mix, ..TpccOptions::default() }), 30.0);
        assert!(!tpcc(None).source.contains("taken for all"));
        assert!(tpcc(Some(TpccMix::Full)).source.contains("taken for all"));
        let scaled = of(&WorkloadOptions::ScaledTpcc(ScaledTpccOptions::default()), 30.0);
        assert_eq!(scaled.table, tpcc(None).table);
    }

    #[test]
    fn additions_cost_what_their_declaration_does() {
        let adds = |adds| {
            let options = MicroOptions { adds: Some(adds), ..MicroOptions::default() };
            of(&WorkloadOptions::Micro(options), 10.0).table
        };
        let [arithmetic, own, whole] = [MicroAdds::Arithmetic, MicroAdds::Own, MicroAdds::Whole].map(adds);
        assert!(arithmetic.aloha != own.aloha && own.aloha != whole.aloha);
        assert_eq!((arithmetic.locks, own.locks), (whole.locks, whole.locks));
    }
}
