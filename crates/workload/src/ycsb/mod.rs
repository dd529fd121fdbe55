//! YCSB: the six core workloads (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, Table 2), with
//! transactions of as many rows as one likes.
//!
//! | mix | operations | which rows |
//! |---|---|---|
//! | A | 50% reads, 50% updates | Zipf |
//! | B | 95% reads, 5% updates | Zipf |
//! | C | reads | Zipf |
//! | D | 95% reads, 5% inserts | the latest |
//! | E | 95% scans, 5% inserts | Zipf; a scan reads 1 to 100 rows, alike likely |
//! | F | 50% reads, 50% read-modify-writes | Zipf |
//!
//! A transaction does one of these operations with each of its rows, which YCSB's have one of. A row has ten fields; a read
//! reads them all, an update replaces one.
//!
//! Each site has rows of its own, and its own distribution of calls over them. What differs from YCSB's client:
//! - ranks are spread over the rows by a permutation and not by a hash, which leaves some rows out and gives others two ranks;
//! - a client takes for the latest what it inserted itself, and does not wait for it: a read may find nothing there;
//! - inserted rows come between those that were loaded, so that scans meet them.

mod generator;
mod procedure;
mod zipf;

use std::sync::Arc;

use ordain_db::data::{ColumnType, Key, SchemaBuilder, Table};
use ordain_db::error::Error;
use ordain_db::limits::{READ_RESULTS_BYTES_MAX, ROW_BYTES_MAX};
use ordain_db::procedure::{Catalog, ProcedureId, Procedures};

use self::procedure::Rows;
use crate::check::{CheckLine, Condition, SnapshotReader, Totals, scan_table};
use crate::random::{Chance, Random};
use crate::{Generator, Outcomes, Part, Workload};

pub use procedure::{Change, Insert, NewRow, Read, ReadModifyWrite, RowName, Scan, Seen, Stretch, Update};
pub use zipf::Zipf;

/// The name of the procedure that reads.
pub const READ: &str = "read";
/// The name of the procedure that updates.
pub const UPDATE: &str = "update";
/// The name of the procedure that inserts.
pub const INSERT: &str = "insert";
/// The name of the procedure that scans.
pub const SCAN: &str = "scan";
/// The name of the procedure that reads, modifies and writes.
pub const READ_MODIFY_WRITE: &str = "read-modify-write";

/// Fields of a row.
pub const FIELDS: usize = 10;

/// Most rows of one transaction.
pub const KEYS_MAX: usize = 64;

/// Column numbers of the table.
mod column {
    pub(super) const VERSION: usize = 3;
    pub(super) const FIRST_FIELD: usize = 4;
}

/// What a transaction does with its rows, in the order in which the procedures are registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// One of the core workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Update heavy.
    A,
    /// Read mostly.
    B,
    /// Read only.
    C,
    /// Read latest.
    D,
    /// Short ranges.
    E,
    /// Read-modify-write.
    F,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 6] = [Mix::A, Mix::B, Mix::C, Mix::D, Mix::E, Mix::F];

    /// The name on command lines and in cluster files.
    pub fn name(self) -> &'static str {
        match self {
            Mix::A => "a",
            Mix::B => "b",
            Mix::C => "c",
            Mix::D => "d",
            Mix::E => "e",
            Mix::F => "f",
        }
    }

    /// The share in percent of what is done first, that, and what else is done.
    fn kinds(self) -> (u64, Kind, Kind) {
        match self {
            Mix::A => (50, Kind::Read, Kind::Update),
            Mix::B => (95, Kind::Read, Kind::Update),
            Mix::C => (100, Kind::Read, Kind::Read),
            Mix::D => (95, Kind::Read, Kind::Insert),
            Mix::E => (95, Kind::Scan, Kind::Insert),
            Mix::F => (50, Kind::Read, Kind::ReadModifyWrite),
        }
    }
}

impl std::str::FromStr for Mix {
    type Err = String;

    fn from_str(name: &str) -> Result<Mix, String> {
        Mix::ALL.into_iter().find(|mix| mix.name() == name.to_ascii_lowercase()).ok_or_else(|| {
            let names = Mix::ALL.map(Mix::name);
            format!("YCSB has no workload {name:?}: choose one of {}", names.join(", "))
        })
    }
}

/// Settings of YCSB.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Seed of the rows.
    pub seed: u64,
    /// Number of sites over which the rows are spread.
    pub sites: u16,
    /// Rows of all sites together at first; rounded down to a multiple of the sites.
    pub records: u64,
    /// Which of the core workloads.
    pub mix: Mix,
    /// How uneven the distribution of calls over rows is: 0 is uniform, YCSB has 0.99.
    pub theta: f64,
    /// Rows of each transaction, all different.
    pub keys: usize,
    /// Share of transactions with rows of two sites, in percent; none when there is one site, or one row in each.
    pub multi_partition_percent: f64,
    /// Length of each field.
    pub field_bytes: usize,
    /// The most rows that a scan asks for.
    pub scan_length_max: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            sites: 1,
            records: 100_000,
            mix: Mix::A,
            theta: 0.99,
            keys: 1,
            multi_partition_percent: 0.0,
            field_bytes: 100,
            scan_length_max: 100,
        }
    }
}

/// The workload.
pub struct Ycsb {
    options: Options,
    catalog: Catalog,
    rows: Table,
    shape: Arc<Shape>,
}

/// What generators need of the options, checked and in integers.
#[derive(Debug)]
struct Shape {
    /// By [`Kind`].
    procedures: [ProcedureId; 5],
    mix: Mix,
    latest: bool,
    sites: u16,
    /// At least two for each key.
    rows_per_site: u32,
    /// Has no common divisor with the rows of a site: multiples of it modulo their number are all of them, each once.
    stride: u32,
    keys: usize,
    multi_site: Chance,
    field_bytes: usize,
    scan_length_max: u32,
    zipf: Zipf,
}

impl Ycsb {
    /// Checks the options and builds the catalog.
    pub fn new(options: Options) -> Result<Ycsb, Error> {
        let rows_per_site = check(&options)?;
        let mut table = Table::builder("usertable")
            .column("site", ColumnType::Int32)
            .column("slot", ColumnType::Int64)
            .column("number", ColumnType::Int64)
            .column("version", ColumnType::Int64);
        for field in 0..FIELDS {
            table = table.column(&format!("field{field}"), ColumnType::Bytes);
        }
        let mut schema = SchemaBuilder::new();
        let table = table.primary_key(&["site", "slot", "number"]).partition_by_column("site");
        let table = schema.table(table)?;
        let (mut procedures, rows) = (Procedures::new(), || Rows(table.clone()));
        let registered = [
            procedures.register(Read(rows()))?,
            procedures.register(Update(rows()))?,
            procedures.register(Insert(rows()))?,
            procedures.register(Scan(rows()))?,
            procedures.register(ReadModifyWrite(rows()))?,
        ];
        let shape = Shape {
            procedures: registered,
            mix: options.mix,
            latest: options.mix == Mix::D,
            sites: options.sites,
            rows_per_site,
            stride: stride(rows_per_site),
            keys: options.keys,
            multi_site: Chance::of_percent(options.multi_partition_percent, "multi_partition_percent")?,
            field_bytes: options.field_bytes,
            scan_length_max: options.scan_length_max,
            zipf: Zipf::new(rows_per_site, options.theta)?,
        };
        let catalog = Catalog { schema: schema.finish(), procedures };
        Ok(Ycsb { options, catalog, rows: table, shape: Arc::new(shape) })
    }

    fn last_site(&self) -> i64 {
        i64::from(self.options.sites) - 1
    }
}

/// The rows of each site, if the options are right.
fn check(options: &Options) -> Result<u32, Error> {
    let invalid = |problem: String| Err(Error::Invalid(format!("ycsb: {problem}")));
    let Options { sites, records, keys, field_bytes, scan_length_max, multi_partition_percent, .. } =
        *options;
    if sites == 0 {
        return invalid("sites is 0: give at least 1".to_owned());
    }
    if !(1..=KEYS_MAX).contains(&keys) {
        return invalid(format!("keys is {keys}: give 1 to {KEYS_MAX}"));
    }
    if keys == 1 && multi_partition_percent > 0.0 {
        return invalid(
            "a transaction of one row has one site: give more keys, or no share of two sites".to_owned(),
        );
    }
    let per_site = records / u64::from(sites);
    if !(2 * keys as u64..=u64::from(zipf::RANKS_MAX)).contains(&per_site) {
        return invalid(format!(
            "{records} records give {per_site} to each site: give at least {}, at most {}",
            2 * keys,
            zipf::RANKS_MAX
        ));
    }
    if scan_length_max == 0 {
        return invalid("scan_length_max is 0: give at least 1".to_owned());
    }
    let row_bytes = FIELDS.saturating_mul(field_bytes);
    let scanned = row_bytes.saturating_mul(keys).saturating_mul(scan_length_max as usize);
    // Half of each limit is left to keys, versions and lengths.
    if field_bytes == 0 || row_bytes > ROW_BYTES_MAX / 2 {
        return invalid(format!("field_bytes is {field_bytes}: give 1 to {}", ROW_BYTES_MAX / 2 / FIELDS));
    }
    if options.mix == Mix::E && scanned > READ_RESULTS_BYTES_MAX / 2 {
        return invalid(format!(
            "{keys} scans of {scan_length_max} rows read up to {scanned} bytes, and a transaction may read {}: make one of \
             keys, scan_length_max and field_bytes smaller",
            READ_RESULTS_BYTES_MAX / 2
        ));
    }
    Ok(per_site as u32)
}

/// About the golden section of a number, without a common divisor: the first multiples of it lie far apart.
fn stride(count: u32) -> u32 {
    let divisor = |mut left: u32, mut right: u32| {
        while right > 0 {
            (left, right) = (right, left % right);
        }
        left
    };
    let section = ((u64::from(count) * 0x9E37_79B9) >> 32) as u32;
    (1..=section).rev().find(|stride| divisor(count, *stride) == 1).unwrap_or(1)
}

impl Workload for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        part.count(0, self.last_site()) * u64::from(self.shape.rows_per_site)
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        let (mut fields, mut row) = (vec![0; FIELDS * self.options.field_bytes], Vec::new());
        for site in part.numbers(0, self.last_site()) {
            let mut random = Random::new(self.options.seed, "ycsb rows", &[site as u64]);
            for slot in 0..i64::from(self.shape.rows_per_site) {
                random.fill(&mut fields);
                row.clear();
                self.rows.layout().encode(&Rows::values(0, &fields)[..], &mut row)?;
                sink(&self.rows.key((site as i32, slot, 0_i64))?, &row);
            }
        }
        Ok(())
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        Ok(Box::new(generator::Calls::new(Arc::clone(&self.shape), seed, client, homes)?))
    }

    /// The rows that were loaded are there, and as many more as were inserted. Every row counts its writes: they add up to
    /// those of the commits, so that a lost update, a partly applied transaction or one applied twice breaks the sum.
    fn check(&self, reader: &mut dyn SnapshotReader, totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        let mut loaded_of_site = vec![0_i64; usize::from(self.options.sites)];
        let mut intact = Condition::new("version >= 0, and each field has its length");
        let (mut inserted, mut versions) = (0_i64, 0_i64);
        scan_table(reader, &self.rows, |[site, slot, number], row| {
            let version = row.int64(column::VERSION)?;
            let mut whole = version >= 0;
            for field in 0..FIELDS {
                whole &= row.byte_string(column::FIRST_FIELD + field)?.len() == self.options.field_bytes;
            }
            intact.require(whole, || format!("row ({site}, {slot}, {number}), version {version}"));
            versions += version;
            match usize::try_from(site).ok().and_then(|site| loaded_of_site.get_mut(site)) {
                Some(loaded) if number == 0 => *loaded += 1,
                _ => inserted += 1,
            }
            Ok(())
        })?;
        let mut complete = Condition::new("loaded rows of each site = rows loaded");
        for (site, rows) in loaded_of_site.into_iter().enumerate() {
            complete.equal(|| format!("site {site}"), rows, i64::from(self.shape.rows_per_site));
        }
        let keys = self.shape.keys as i64;
        let (updates, modified) = (totals.of(UPDATE), totals.of(READ_MODIFY_WRITE));
        let writes = Outcomes {
            committed: updates.committed + modified.committed,
            aborted: updates.aborted + modified.aborted,
            unknown: updates.unknown + modified.unknown,
        };
        Ok(vec![
            complete.finish(),
            intact.finish(),
            multiple("inserted rows = keys x commits of insert", inserted, keys, totals.of(INSERT)),
            multiple(
                "sum of versions = keys x commits of update and read-modify-write",
                versions,
                keys,
                writes,
            ),
        ])
    }
}

/// Whether a sum is that of so many commits.
fn multiple(condition: &str, sum: i64, keys: i64, outcomes: Outcomes) -> CheckLine {
    CheckLine {
        condition: condition.to_owned(),
        holds: sum % keys == 0 && outcomes.allow(sum / keys),
        detail: format!("{sum}, {keys} keys, commits {}", outcomes.describe()),
    }
}
