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
//!
//! Some transactions may be *dependent* (Ren et al. §3.6, DET-54): an entry of a secondary index names their records. The index
//! is an ordinary table, and who updates it is an ordinary client, beside those that are measured (see [`IndexOptions`]).

mod addition;
mod dependent;
mod generator;
mod index;
mod procedure;

use ordain_db::data::{ColumnType, Key, SchemaBuilder, Table};
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, ProcedureId, Procedures, decode_output};

use crate::check::{CheckLine, Condition, SnapshotReader, Totals, scan_table};
use crate::random::{Chance, Random};
use crate::{Background, Generator, Part, Workload};

use addition::Add;
use generator::{Calls, Updates};
use index::{Index, IndexProcedures};
use procedure::Work;

pub use addition::Declare;
pub use dependent::{DependentArguments, IncrementByIndex, Reindex, ReindexArguments};
pub use index::EntryName;
pub use procedure::{Arguments, Increment, RecordName, busy_work};

/// The procedure's name.
pub const INCREMENT: &str = "increment";

/// The name of the procedure that adds without a constraint.
pub const ADD: &str = "add";

/// The name of the procedure that finds its records through the index.
pub const INCREMENT_BY_INDEX: &str = "increment-by-index";

/// The name of the procedure that updates the index.
pub const REINDEX: &str = "reindex";

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
    /// Whether the rounds are only counted, and take no time: for the simulator, which lets virtual time pass for them.
    pub work_is_counted_only: bool,
    /// The secondary index, and the transactions that use it.
    pub index: IndexOptions,
    /// Whether transactions only add, without constraint, work and result, and how that is declared.
    pub adds: Option<Declare>,
}

/// Settings of the secondary index. By default there is none: no dependent transactions, and no updates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IndexOptions {
    /// Share of transactions that find their records through the index, in percent (DET-54).
    pub dependent_percent: f64,
    /// Entries of each site.
    pub entries_per_site: u32,
    /// The share of a dependent transaction's work that comes before it reads the index, in percent (DET-59). As much of the work
    /// is left for the time after that.
    pub position_percent: u8,
    /// How often *each* entry is updated in a second (DET-55), by a client of its own for each partition. Drivers that make no
    /// [`Background`] calls update none.
    pub volatility: f64,
}

impl Default for IndexOptions {
    fn default() -> IndexOptions {
        IndexOptions { dependent_percent: 0.0, entries_per_site: 100, position_percent: 0, volatility: 0.0 }
    }
}

impl IndexOptions {
    /// Whether there is an index at all.
    fn is_used(&self) -> bool {
        self.dependent_percent != 0.0 || self.volatility != 0.0
    }
}

/// A kind of calls, for latencies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CallKind {
    /// Of one site.
    Local,
    /// Of several sites.
    Distributed,
    /// Of one site, found through the index.
    Dependent,
    /// Of several sites, found through the index.
    DependentDistributed,
    /// An update of the index.
    IndexUpdate,
}

impl CallKind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            CallKind::Local => "local",
            CallKind::Distributed => "distributed",
            CallKind::Dependent => "dependent",
            CallKind::DependentDistributed => "dependent distributed",
            CallKind::IndexUpdate => "index update",
        }
    }
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
            work_is_counted_only: false,
            index: IndexOptions::default(),
            adds: None,
        }
    }
}

/// The microbenchmark.
pub struct Micro {
    options: Options,
    catalog: Catalog,
    records: Table,
    shape: Shape,
    /// The index and its table, if there is one.
    index: Option<(Index, Table)>,
}

/// What the generator needs of the options, checked and in integers.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// [`Increment`], or that which only adds.
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
        if options.adds.is_some() && (options.abort_percent > 0.0 || options.work_rounds > 0) {
            return invalid(
                "additions neither abort nor work: leave abort_percent and work_rounds out".to_owned(),
            );
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
        let work = Work { rounds: options.work_rounds, is_counted_only: options.work_is_counted_only };
        let increment = match options.adds {
            None => procedures.register(Increment::new(records.clone(), work))?,
            Some(declare) => procedures.register(Add::new(records.clone(), declare))?,
        };
        let shape = Shape {
            increment,
            sites,
            records_per_site: per_site as u32,
            contended: contended as u32,
            multi_site: Chance::of_percent(options.multi_partition_percent, "multi_partition_percent")?,
            participants: options.participants.min(sites),
            abort: Chance::of_percent(options.abort_percent, "abort_percent")?,
        };
        let index = match options.index.is_used() {
            true => {
                let entries = schema.table(index::table())?;
                let procedures = register(&options, &records, &entries, &mut procedures)?;
                Some((Index::new(&options, &shape, procedures)?, entries))
            }
            false => None,
        };
        Ok(Micro { options, catalog: Catalog { schema: schema.finish(), procedures }, records, shape, index })
    }

    /// Entries of the index, over all sites.
    pub fn entries(&self) -> u64 {
        self.index.as_ref().map_or(0, |(index, _)| u64::from(index.entries) * u64::from(self.options.sites))
    }

    /// What kind of call this is; `None` if it is none of this workload's.
    pub fn kind_of(&self, procedure: ProcedureId, arguments: &[u8]) -> Option<CallKind> {
        if procedure == self.shape.increment {
            let Arguments { records, .. } = decode_output(arguments).ok()?;
            let is_local = records.iter().all(|record| record.site == records[0].site);
            return Some(if is_local { CallKind::Local } else { CallKind::Distributed });
        }
        let (index, _) = self.index.as_ref()?;
        if procedure == index.procedures.reindex {
            return Some(CallKind::IndexUpdate);
        }
        let DependentArguments { entry, .. } = decode_output(arguments).ok()?;
        let is_spread = index.is_spread(entry);
        Some(if is_spread { CallKind::DependentDistributed } else { CallKind::Dependent })
    }

    /// Number of contended records of each site.
    pub fn contended(&self) -> u32 {
        self.shape.contended
    }

    fn check_index(
        &self,
        index: &Index,
        entries: &Table,
        reader: &mut dyn SnapshotReader,
    ) -> Result<[CheckLine; 2], Error> {
        let mut proper = Condition::new("an entry names ten records of its sites");
        let mut count = 0;
        scan_table(reader, entries, |[site, number], row| {
            count += 1;
            let entry = EntryName { site: site as u16, number: number as u32 };
            let records = index::decode(&row)?;
            proper.require(index.allows(entry, &records), || format!("{entry:?} names {records:?}"));
            Ok(())
        })?;
        let mut complete = Condition::new("entries = entries loaded");
        complete.equal(|| "all sites".to_owned(), count, self.entries() as i64);
        Ok([complete.finish(), proper.finish()])
    }

    fn last_site(&self) -> i64 {
        i64::from(self.options.sites) - 1
    }
}

/// Registers the procedures that use the index.
fn register(
    options: &Options,
    records: &Table,
    entries: &Table,
    procedures: &mut Procedures,
) -> Result<IndexProcedures, Error> {
    let all = options.work_rounds.saturating_mul(RECORDS_PER_TRANSACTION as u32);
    let before = (u64::from(all) * u64::from(options.index.position_percent.min(100)) / 100) as u32;
    let work =
        [before, all - before].map(|rounds| Work { rounds, is_counted_only: options.work_is_counted_only });
    let dependent = IncrementByIndex::new(records.clone(), entries.clone(), work);
    Ok(IndexProcedures {
        increment_by_index: procedures.register(dependent)?,
        reindex: procedures.register(Reindex::new(entries.clone()))?,
    })
}

impl Workload for Micro {
    fn name(&self) -> &'static str {
        "micro"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        let entries = self.index.as_ref().map_or(0, |(index, _)| u64::from(index.entries));
        part.count(0, self.last_site()) * (u64::from(self.shape.records_per_site) + entries)
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
        let Some((index, entries)) = &self.index else { return Ok(()) };
        for site in part.numbers(0, self.last_site()) {
            let mut random = Random::new(self.options.seed, "micro entries", &[site as u64]);
            for number in 0..index.entries {
                let entry = EntryName { site: site as u16, number };
                row.clear();
                let records = index::encode(&index.records(entry, &mut random));
                entries.layout().encode((&records[..],), &mut row)?;
                sink(&index::key(entries, entry)?, &row);
            }
        }
        Ok(())
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        let index = self.index.as_ref().map(|(index, _)| *index);
        Ok(Box::new(Calls::new(self.shape, index, seed, client, homes)?))
    }

    /// The updates of the entries on these homes.
    fn background(&self, seed: u64, client: u32, homes: Part) -> Result<Option<Background>, Error> {
        let volatility = self.options.index.volatility;
        let Some((index, _)) = self.index.as_ref().filter(|_| volatility > 0.0) else { return Ok(None) };
        let generator = Updates::new(self.shape, *index, seed, client, homes)?;
        let entries = homes.count(0, self.last_site()) * u64::from(index.entries);
        let calls_per_second = volatility * entries as f64;
        Ok(Some(Background { generator: Box::new(generator), calls_per_second }))
    }

    /// Each record is there, no counter is negative, and the counters add up to ten for each commit: a lost update, a partly
    /// applied transaction or one applied twice breaks the sum. Each entry of the index is there and names ten records of its sites.
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
        let mut outcomes = totals.of(INCREMENT);
        for other in [ADD, INCREMENT_BY_INDEX].map(|name| totals.of(name)) {
            outcomes.committed += other.committed;
            outcomes.unknown += other.unknown;
        }
        let per_transaction = RECORDS_PER_TRANSACTION as i64;
        let holds = sum % per_transaction == 0 && outcomes.allow(sum / per_transaction);
        let conserved = CheckLine {
            condition: "sum of all counters = 10 x commits".to_owned(),
            holds,
            detail: format!("sum {sum}, commits {}", outcomes.describe()),
        };
        let mut lines = vec![complete.finish(), not_negative.finish(), conserved];
        if let Some((index, entries)) = &self.index {
            lines.extend(self.check_index(index, entries, reader)?);
        }
        Ok(lines)
    }
}
