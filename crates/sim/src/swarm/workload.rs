//! Which workload a seed has, and its options.

use ordain_workload::random::Random;
use ordain_workload::{append, bank, micro, tpcc, ycsb};

use super::{one_in, rarely};
use crate::plan::{WorkloadKind, WorkloadPlan};
use crate::sql;

/// SQL is what the clients of one in so many seeds do, and YCSB in one of so many of the others. Each is drawn from a stream of its own:
/// the others draw what they drew without it.
const SQL_ONE_IN: u64 = 8;
const YCSB_ONE_IN: u64 = 16;

/// Draws a workload for a cluster of so many partitions, of the kind that is fixed, if one is.
pub(super) fn draw(
    random: &mut Random,
    seed: u64,
    partitions: u16,
    fixed: Option<WorkloadKind>,
) -> WorkloadPlan {
    // More sites than partitions, as a cluster has that may grow; fewer would leave partitions without clients.
    let sites = partitions * (1 + random.below(2) as u16);
    let multi_site_percent = [0.0, 10.0, 50.0, 100.0][random.below(4) as usize];
    let drawn = match random.below(8) {
        0 | 1 => WorkloadKind::Bank,
        2 => WorkloadKind::Micro,
        3 => WorkloadKind::Tpcc,
        _ => WorkloadKind::Append,
    };
    let apart = |stream, count| one_in(&mut Random::new(seed, stream, &[]), count);
    let drawn = match drawn {
        _ if apart("swarm sql", SQL_ONE_IN) => WorkloadKind::Sql,
        _ if apart("swarm ycsb", YCSB_ONE_IN) => WorkloadKind::Ycsb,
        drawn => drawn,
    };
    match fixed.unwrap_or(drawn) {
        WorkloadKind::Sql => WorkloadPlan::Sql(sql_options(seed)),
        WorkloadKind::Bank => WorkloadPlan::Bank(bank::Options {
            sites,
            accounts: u64::from(sites) * (2 + random.below(20)),
            balance: random.between(0, 1_000),
            amount_max: random.between(1, 1_000),
            multi_partition_percent: multi_site_percent,
            transfers: transfers(seed),
        }),
        WorkloadKind::Micro => WorkloadPlan::Micro(additions(micro::Options {
            seed,
            sites,
            records: u64::from(sites) * (11 + random.below(60)),
            contention_index: 1.0,
            multi_partition_percent: multi_site_percent,
            participants: 2 + random.below(3) as u16,
            abort_percent: random.below(30) as f64,
            work_rounds: 0,
            ..micro::Options::default()
        })),
        WorkloadKind::Tpcc => WorkloadPlan::Tpcc(scaled(tpcc::Options {
            order_numbers: tpcc::OrderNumbers::Declared,
            functors: true,
            seed,
            sites,
            layout: tpcc::Layout::Warehouses,
            warehouses: u32::from(sites),
            items: 20 + random.below(30) as u32,
            districts_per_warehouse: 1 + random.below(3) as u16,
            customers_per_district: 2 + random.below(5) as u32,
            orders_per_district: 2 + random.below(5) as u32,
            mix: tpcc_mix(seed, random.below(101) as f64),
            remote: tpcc::Remote::Orders(multi_site_percent),
            payment_remote_percent: multi_site_percent,
            by_name_percent: random.below(101) as f64,
            abort_percent: random.below(20) as f64,
        })),
        WorkloadKind::Ycsb => WorkloadPlan::Ycsb(ycsb_options(random, seed, sites, multi_site_percent)),
        WorkloadKind::Append => WorkloadPlan::Append(append_options(random, sites, multi_site_percent)),
    }
}

/// How the transfers of the bank are declared: in half of the seeds with functors and a guard that may read another partition. Drawn
/// from a stream of its own, too: else a seed has what it had without it.
fn transfers(seed: u64) -> bank::Declare {
    match Random::new(seed, "swarm bank transfers", &[]).below(4) {
        0 => bank::Declare::Functors,
        1 => bank::Declare::OnlyFunctors,
        _ => bank::Declare::Whole,
    }
}

/// The same, or in half of the seeds that which only adds, and has no constraint that could abort. Drawn from a stream of its own, too.
fn additions(options: micro::Options) -> micro::Options {
    let adds = match Random::new(options.seed, "swarm micro additions", &[]).below(6) {
        0 => micro::Declare::Arithmetic,
        1 => micro::Declare::Own,
        2 => micro::Declare::Whole,
        _ => return options,
    };
    micro::Options { adds: Some(adds), abort_percent: 0.0, ..options }
}

/// The same, or one time in four the scaled form of it. Drawn from a stream of its own: all else that a seed draws does not depend
/// on it.
fn scaled(options: tpcc::Options) -> tpcc::Options {
    if Random::new(options.seed, "swarm tpcc layout", &[]).below(4) > 0 {
        return options;
    }
    tpcc::Options {
        layout: tpcc::Layout::DistrictsAndItems,
        warehouses: 1,
        districts_per_warehouse: options.districts_per_warehouse * options.sites,
        mix: tpcc::Mix::NewOrderPayment(100.0),
        ..options
    }
}

/// New Orders and Payments in these shares, or all five transactions. Drawn from a stream of its own: all else that a seed
/// draws does not depend on it.
fn tpcc_mix(seed: u64, new_order_percent: f64) -> tpcc::Mix {
    match Random::new(seed, "swarm tpcc mix", &[]).below(2) {
        0 => tpcc::Mix::NewOrderPayment(new_order_percent),
        _ => tpcc::Mix::FULL,
    }
}

/// Mostly so few rows that clients meet. Now and then an index takes several steps to be built.
fn sql_options(seed: u64) -> sql::Options {
    let random = &mut Random::new(seed, "swarm sql options", &[]);
    let few = 2 + random.below(20) as u32;
    sql::Options {
        accounts: rarely(random, 12, few, 520),
        lists: 1 + random.below(4) as u32,
        persons: 1 + random.below(8) as u32,
        definitions_percent: [0, 10, 40][random.below(3) as usize],
        blocks_percent: [0, 30, 60][random.below(3) as usize],
        replicated: one_in(random, 5),
    }
}

fn append_options(random: &mut Random, sites: u16, multi_site_percent: f64) -> append::Options {
    let mut share = |most: u64| {
        let share = random.below(most) as f64;
        rarely(random, 2, 0.0, share)
    };
    append::Options {
        dependent_percent: share(60),
        range_percent: share(60),
        replicated_percent: share(20),
        abort_percent: share(30),
        hot_list_percent: share(100),
        sites,
        multi_site_percent,
        lists_per_site: 1 + random.below(20) as u32,
        pointers_per_site: 1 + random.below(5) as u32,
        notes_per_site: 1 + random.below(30) as u32,
        settings: 1 + random.below(3) as u32,
        operations_max: 1 + random.below(8) as usize,
    }
}

fn ycsb_options(random: &mut Random, seed: u64, sites: u16, multi_site_percent: f64) -> ycsb::Options {
    let keys = 1 + random.below(8) as usize;
    ycsb::Options {
        seed,
        sites,
        records: u64::from(sites) * (2 * keys as u64 + random.below(50)),
        mix: ycsb::Mix::ALL[random.below(6) as usize],
        theta: random.below(16) as f64 / 10.0,
        keys,
        multi_partition_percent: if keys == 1 { 0.0 } else { multi_site_percent },
        field_bytes: 1 + random.below(20) as usize,
        scan_length_max: 1 + random.below(30) as u32,
    }
}
