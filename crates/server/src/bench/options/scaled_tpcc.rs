//! What the scaled TPC-C can be told.

use clap::Args;
use ordain_workload::tpcc;
use serde::{Deserialize, Serialize};

use super::check_rows;

/// Settings of `scaled-tpcc`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScaledTpccOptions {
    /// Districts of each partition (or site).
    #[arg(long, default_value_t = 10)]
    pub districts_per_partition: u16,
    /// Items, and stock rows, over all partitions (100,000 by the specification).
    #[arg(long, default_value_t = 100_000)]
    pub items: u32,
    /// Customers, and first orders, of each district (3,000 by the specification).
    #[arg(long, default_value_t = 3_000)]
    pub customers: u32,
}

impl ScaledTpccOptions {
    pub(super) fn workload(&self, sites: u16, seed: u64) -> Result<tpcc::Options, String> {
        check_rows("scaled-tpcc", self.items, self.customers)?;
        let districts_per_warehouse = self.districts_per_partition.checked_mul(sites);
        let districts_per_warehouse = districts_per_warehouse.filter(|districts| *districts > 0).ok_or_else(|| {
            let most = u16::MAX / sites.max(1);
            format!(
                "scaled-tpcc: there are {} districts per partition on {sites}: give 1 to {most}, 65,535 over all",
                self.districts_per_partition
            )
        })?;
        Ok(tpcc::Options {
            seed,
            sites,
            layout: tpcc::Layout::DistrictsAndItems,
            warehouses: 1,
            items: self.items,
            districts_per_warehouse,
            customers_per_district: self.customers,
            orders_per_district: self.customers,
            ..tpcc::Options::default()
        })
    }
}

impl Default for ScaledTpccOptions {
    fn default() -> ScaledTpccOptions {
        let own = tpcc::Options::default();
        ScaledTpccOptions {
            districts_per_partition: own.districts_per_warehouse,
            items: own.items,
            customers: own.customers_per_district,
        }
    }
}
