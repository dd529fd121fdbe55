//! What the microbenchmark can be told.

use std::ops::RangeInclusive;

use clap::{Args, ValueEnum};
use ordain_workload::micro;
use serde::{Deserialize, Serialize};

use super::super::work::WORK_MICROSECONDS;
use crate::quantity::number_within;

/// How often an entry of the index may be updated in a second.
const VOLATILITY: RangeInclusive<f64> = 0.0..=1e6;

/// Settings of `micro`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MicroOptions {
    /// Records, over all sites.
    #[arg(long, default_value_t = 1_000_000)]
    pub records: u64,
    /// Share of a site's contended records that one transaction updates: 1 is serial, 0.0001 is low contention.
    #[arg(long, default_value_t = 0.0001)]
    pub contention_index: f64,
    /// Percentage of transactions that span sites.
    #[arg(long = "multi-partition", value_name = "PERCENT", default_value_t = 0.0)]
    pub multi_partition_percent: f64,
    /// Sites that such a transaction spans.
    #[arg(long, default_value_t = 2)]
    pub participants: u16,
    /// Percentage of transactions whose constraint fails.
    #[arg(long, default_value_t = 0.0)]
    pub abort_percent: f64,
    /// Rounds of busy work with each record.
    // Written only where there are some: data that was made before there could be any keeps its fingerprint.
    #[arg(long, default_value_t = 0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub work_rounds: u32,
    /// Busy work with each record: as many rounds as take so long on this machine. 15 gives the study's long transactions.
    #[arg(long = "work", value_name = "MICROSECONDS", conflicts_with = "work_rounds", value_parser = number_within(WORK_MICROSECONDS, "microseconds"))]
    #[serde(skip)]
    pub work_microseconds: Option<f64>,
    /// Whether busy work is only counted: for the simulator, which lets virtual time pass for it.
    #[arg(skip)]
    #[serde(skip)]
    pub work_is_counted_only: bool,
    /// Let transactions only add, without a constraint, and say how that is declared.
    #[arg(long, value_enum, conflicts_with_all = ["abort_percent", "work_rounds", "work_microseconds"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adds: Option<MicroAdds>,
    /// Percentage of transactions that are dependent: they read an entry of a secondary index to know their records.
    // These four are written only where they are given, too.
    #[arg(long = "dependent", value_name = "PERCENT", default_value_t = 0.0)]
    #[serde(skip_serializing_if = "is_nothing")]
    pub dependent_percent: f64,
    /// Percentage of a dependent transaction's work that comes before it reads the index.
    #[arg(long = "dependent-at", value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    #[serde(skip_serializing_if = "is_start")]
    pub dependent_at_percent: u8,
    /// Entries of the index of each site.
    #[arg(long = "entries", value_name = "N", default_value_t = micro::IndexOptions::default().entries_per_site)]
    #[serde(skip_serializing_if = "is_usual")]
    pub entries_per_site: u32,
    /// Updates of each entry of the index in a second, beside the transactions that are measured.
    #[arg(long, value_name = "RATE", default_value_t = 0.0, value_parser = number_within(VOLATILITY, "updates of each entry in a second"))]
    #[serde(skip_serializing_if = "is_nothing")]
    pub volatility: f64,
}

/// How additions of `micro` are declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MicroAdds {
    /// As arithmetic functors: the engine aloha adds by itself.
    Arithmetic,
    /// As functors of the procedure's own.
    Own,
    /// Not at all: every engine runs the procedure.
    Whole,
}

impl From<MicroAdds> for micro::Declare {
    fn from(adds: MicroAdds) -> micro::Declare {
        match adds {
            MicroAdds::Arithmetic => micro::Declare::Arithmetic,
            MicroAdds::Own => micro::Declare::Own,
            MicroAdds::Whole => micro::Declare::Whole,
        }
    }
}

impl Default for MicroOptions {
    fn default() -> MicroOptions {
        let own = micro::Options::default();
        MicroOptions {
            records: own.records,
            contention_index: own.contention_index,
            multi_partition_percent: 0.0,
            participants: own.participants,
            abort_percent: own.abort_percent,
            work_rounds: own.work_rounds,
            work_microseconds: None,
            work_is_counted_only: false,
            adds: None,
            dependent_percent: own.index.dependent_percent,
            dependent_at_percent: own.index.position_percent,
            entries_per_site: own.index.entries_per_site,
            volatility: own.index.volatility,
        }
    }
}

impl MicroOptions {
    pub(super) fn workload(&self, sites: u16, seed: u64) -> micro::Options {
        micro::Options {
            seed,
            sites,
            records: self.records,
            contention_index: self.contention_index,
            multi_partition_percent: self.multi_partition_percent,
            participants: self.participants,
            abort_percent: self.abort_percent,
            work_rounds: self.work_rounds,
            work_is_counted_only: self.work_is_counted_only,
            adds: self.adds.map(micro::Declare::from),
            index: micro::IndexOptions {
                dependent_percent: self.dependent_percent,
                entries_per_site: self.entries_per_site,
                position_percent: self.dependent_at_percent,
                volatility: self.volatility,
            },
        }
    }

    /// Checks what the workload cannot.
    pub(super) fn check(&self, sites: u16) -> Result<(), String> {
        if self.work_microseconds.is_some() {
            return Err(
                "--work is of a machine: give --work-rounds here, as a benchmark with --work prints them"
                    .to_owned(),
            );
        }
        // Two are the default, and one site makes no transaction of several.
        if self.participants > sites.max(2) && self.multi_partition_percent > 0.0 {
            return Err(format!(
                "there are {sites} sites for transactions of {}: give fewer --participants, or more --partitions or --sites",
                self.participants
            ));
        }
        Ok(())
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_nothing(number: &f64) -> bool {
    *number == 0.0
}

fn is_start(percent: &u8) -> bool {
    *percent == 0
}

fn is_usual(entries: &u32) -> bool {
    *entries == micro::IndexOptions::default().entries_per_site
}

#[cfg(test)]
mod tests {
    use super::super::WorkloadOptions;
    use super::*;

    /// What a data directory is compared with must not change with a release.
    #[test]
    fn micro_without_work_is_written_as_before_there_was_any() {
        let text = |options: MicroOptions| serde_json::to_string(&WorkloadOptions::Micro(options)).unwrap();
        let before = r#"{"name":"micro","records":1000000,"contention_index":0.0001,"multi_partition_percent":0.0,"participants":2,"abort_percent":0.0}"#;
        assert_eq!(text(MicroOptions::default()), before);
        assert!(
            text(MicroOptions { work_rounds: 9, ..MicroOptions::default() }).contains(r#""work_rounds":9"#)
        );
    }

    #[test]
    fn dependent_transactions_are_of_the_command_line_and_of_the_file() {
        let index = MicroOptions {
            dependent_percent: 20.0,
            dependent_at_percent: 50,
            entries_per_site: 7,
            volatility: 2.5,
            ..MicroOptions::default()
        };
        let text = toml::to_string(&WorkloadOptions::Micro(index.clone())).unwrap();
        assert_eq!(toml::from_str(&text), Ok(WorkloadOptions::Micro(index.clone())));
        let expected = micro::IndexOptions {
            dependent_percent: 20.0,
            entries_per_site: 7,
            position_percent: 50,
            volatility: 2.5,
        };
        assert_eq!(index.workload(2, 1).index, expected);
        let wrong = MicroOptions { volatility: -1.0, ..index };
        let refused = WorkloadOptions::Micro(wrong).workload(2, None, 1);
        assert!(refused.is_err_and(|problem| problem.contains("volatility is -1")));
    }

    #[test]
    fn transactions_of_more_sites_than_there_are_are_refused() {
        let micro = |participants, multi_partition_percent| {
            let options = MicroOptions {
                records: 1_000,
                contention_index: 0.1,
                participants,
                ..MicroOptions::default()
            };
            WorkloadOptions::Micro(MicroOptions { multi_partition_percent, ..options }).workload(3, None, 1)
        };
        assert!(micro(3, 10.0).is_ok() && micro(4, 0.0).is_ok());
        assert!(micro(4, 10.0).is_err_and(|problem| problem.contains("fewer --participants")));
    }
}
