//! The microbenchmark: each transaction reads ten records, checks a constraint over them, and only if it holds increments a
//! counter in each (Calvin §6.2, CAL-115).
//!
//! Every site has `records / sites` records. Its first `1 / contention_index` are the contended set: a transaction takes
//! exactly one of them on each site that it touches, and the rest of its ten from the cold others (CAL-116, CAL-117). So the
//! contention index is per site, and a larger share of multi-site transactions also means more contention (trap 17).
//!
//! Transactions are "short" or "long" (DET-48, DET-49): long ones keep the processor busy for 15 µs with each record. The
//! work is a number of rounds, the same everywhere; no procedure looks at a clock. Each participant runs all of the logic
//! (CAL-57), the work with all ten records included, so that a transaction of three sites works three times as much in all.

mod generator;
mod procedure;

use ordain_db::data::{ColumnType, Key, SchemaBuilder, Table};
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, ProcedureId, Procedures};

use crate::check::{CheckLine, Condition, SnapshotReader, Totals, scan_table};
use crate::random::{Chance, Random};
use crate::{Generator, Part, Workload};

pub use procedure::{Arguments, Increment, RecordName, busy_work};

/// The procedure's name.
pub const INCREMENT: &str = "increment";

/// Records that each transaction reads and increments (CAL-115).
pub const RECORDS_PER_TRANSACTION: usize = 10;

/// Bytes of filler in a row, so that key and row are 128 bytes together.
pub const FILLER_BYTES: usize = 101;

/// Column numbers of the table `records`.
pub(crate) mod column {
    pub(crate) const COUNTER: usize = 2;
}

/// Settings of the microbenchmark.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Seed of the rows.
    pub seed: u64,
    /// Number of sites over which the records are spread.
    pub sites: u16,
    /// Records of all sites together; rounded down to a multiple of the sites.
    pub records: u64,
    /// Share of a site's contended set that one transaction updates there: 0.001 means 1,000 contended records per site, 1 means
    /// one, and so one transaction at a time (CAL-117).
    pub contention_index: f64,
    /// Share of transactions that touch more than one site, in percent; none do when there is one site.
    pub multi_partition_percent: f64,
    /// Sites that a multi-site transaction touches, 2 to 4 (DET-50); no more than there are.
    pub participants: u16,
    /// Share of transactions whose constraint does not hold, in percent.
    pub abort_percent: f64,
    /// Rounds of [`busy_work`] for each record: 0 gives "short" transactions; for "long" ones (DET-49), a benchmark calibrates
    /// it to 15 µs for each record.
    pub work_rounds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            sites: 1,
            records: 1_000_000,
            contention_index: 0.0001,
            multi_partition_percent: 10.0,
            participants: 2,
            abort_percent: 0.0,
            work_rounds: 0,
        }
    }
}

/// The microbenchmark.
pub struct Micro {
    options: Options,
    catalog: Catalog,
    records: Table,
    shape: Shape,
}

/// What the generator needs of the options, checked and in integers.
#[derive(Clone, Copy, Debug)]
struct Shape {
    increment: ProcedureId,
    sites: u16,
    records_per_site: u32,
    /// `1 <= contended`, and `records_per_site - contended >= RECORDS_PER_TRANSACTION`.
    contended: u32,
    multi_site: Chance,
    participants: u16,
    abort: Chance,
}

impl Micro {
    /// Checks the options and builds the catalog.
    pub fn new(options: Options) -> Result<Micro, Error> {
        let invalid = |problem: String| Err(Error::Invalid(format!("micro: {problem}")));
        let Options { sites, records, contention_index, .. } = options;
        if sites == 0 {
            return invalid("sites is 0: give at least 1".to_owned());
        }
        if !(contention_index > 0.0 && contention_index <= 1.0) {
            return invalid(format!("contention_index is {contention_index}: give more than 0, at most 1"));
        }
        if !(2..=4).contains(&options.participants) {
            return invalid(format!("participants is {}: give 2, 3 or 4", options.participants));
        }
        let contended = (1.0 / contention_index).round();
        let per_site = records / u64::from(sites);
        if per_site > u64::from(u32::MAX) || (per_site as f64) < contended + RECORDS_PER_TRANSACTION as f64 {
            return invalid(format!(
                "{records} records give {per_site} to each site: give at least the {contended} contended ones \
                 and {RECORDS_PER_TRANSACTION} others, at most {}",
                u32::MAX
            ));
        }
        let mut schema = SchemaBuilder::new();
        let records = schema.table(
            Table::builder("records")
                .column("site", ColumnType::Int32)
                .column("id", ColumnType::Int64)
                .column("counter", ColumnType::Int64)
                .column("filler", ColumnType::Bytes)
                .primary_key(&["site", "id"])
                .partition_by_column("site"),
        )?;
        let mut procedures = Procedures::new();
        let increment = procedures.register(Increment::new(records.clone(), options.work_rounds))?;
        let shape = Shape {
            increment,
            sites,
            records_per_site: per_site as u32,
            contended: contended as u32,
            multi_site: Chance::of_percent(options.multi_partition_percent, "multi_partition_percent")?,
            participants: options.participants.min(sites),
            abort: Chance::of_percent(options.abort_percent, "abort_percent")?,
        };
        Ok(Micro { options, catalog: Catalog { schema: schema.finish(), procedures }, records, shape })
    }

    /// Number of contended records of each site.
    pub fn contended(&self) -> u32 {
        self.shape.contended
    }

    fn last_site(&self) -> i64 {
        i64::from(self.options.sites) - 1
    }
}

impl Workload for Micro {
    fn name(&self) -> &'static str {
        "micro"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        part.count(0, self.last_site()) * u64::from(self.shape.records_per_site)
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        let (mut filler, mut row) = ([0; FILLER_BYTES], Vec::new());
        for site in part.numbers(0, self.last_site()) {
            let mut random = Random::new(self.options.seed, "micro records", &[site as u64]);
            for id in 0..i64::from(self.shape.records_per_site) {
                random.fill(&mut filler);
                row.clear();
                self.records.layout().encode((0_i64, &filler[..]), &mut row)?;
                sink(&self.records.key((site as i32, id))?, &row);
            }
        }
        Ok(())
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        Ok(Box::new(generator::Calls::new(self.shape, seed, client, homes)?))
    }

    /// Each record is there, no counter is negative, and the counters add up to ten for each commit: a lost update, a partly
    /// applied transaction or one applied twice breaks the sum.
    fn check(&self, reader: &mut dyn SnapshotReader, totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        let mut rows_of_site = vec![0_i64; usize::from(self.options.sites)];
        let mut not_negative = Condition::new("counter >= 0");
        let mut sum = 0_i64;
        scan_table(reader, &self.records, |[site, id], row| {
            let counter = row.int64(column::COUNTER)?;
            not_negative.require(counter >= 0, || format!("record ({site}, {id}) has counter {counter}"));
            sum += counter;
            if let Some(rows) = usize::try_from(site).ok().and_then(|site| rows_of_site.get_mut(site)) {
                *rows += 1;
            }
            Ok(())
        })?;
        let mut complete = Condition::new("records of each site = records loaded");
        for (site, rows) in rows_of_site.into_iter().enumerate() {
            complete.equal(|| format!("site {site}"), rows, i64::from(self.shape.records_per_site));
        }
        let outcomes = totals.of(INCREMENT);
        let per_transaction = RECORDS_PER_TRANSACTION as i64;
        let holds = sum % per_transaction == 0 && outcomes.allow(sum / per_transaction);
        let conserved = CheckLine {
            condition: "sum of all counters = 10 x commits".to_owned(),
            holds,
            detail: format!("sum {sum}, commits {}", outcomes.describe()),
        };
        Ok(vec![complete.finish(), not_negative.finish(), conserved])
    }
}
