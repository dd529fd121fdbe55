//! The secondary index of the microbenchmark: an ordinary table, each entry of which names ten records (DET-54).
//!
//! Every site has as many entries as every other. Of these the first name records of their own site, and the others of several
//! sites, their own among them: as many of the ten as the share of transactions of several sites is.

use ordain_db::data::{ColumnType, DataError, Key, Table, TableBuilder};
use ordain_db::error::Error;
use ordain_db::procedure::ProcedureId;
use serde::{Deserialize, Serialize};

use super::{IndexOptions, Options, RECORDS_PER_TRANSACTION, RecordName, Shape};
use crate::random::{Chance, Random};

/// The column with the records of an entry.
const RECORDS: usize = 2;

/// The records that an entry names.
pub(super) type Named = [RecordName; RECORDS_PER_TRANSACTION];

/// Which entry of the index.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct EntryName {
    /// The site that it is on.
    pub site: u16,
    /// The number among the site's entries; those that name records of several sites come last.
    pub number: u32,
}

/// The procedures that use the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexProcedures {
    pub(super) increment_by_index: ProcedureId,
    pub(super) reindex: ProcedureId,
}

/// What the generators need of the index, checked and in integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    pub(super) procedures: IndexProcedures,
    pub(super) dependent: Chance,
    /// Entries of each site, and how many of them name records of several sites.
    pub(super) entries: u32,
    spread: u32,
    sites: u16,
    participants: u16,
    contended: u32,
    records_per_site: u32,
    position_percent: u8,
}

/// Most entries of an index at a site: all are loaded into memory.
const ENTRIES_PER_SITE_MAX: u32 = 10_000_000;

impl Index {
    /// # Errors
    /// When an option is wrong.
    pub(super) fn new(options: &Options, shape: &Shape, procedures: IndexProcedures) -> Result<Index, Error> {
        let invalid = |problem: String| Err(Error::Invalid(format!("micro: {problem}")));
        let IndexOptions { dependent_percent, entries_per_site, position_percent, volatility } =
            options.index;
        let several = if shape.sites > 1 { options.multi_partition_percent } else { 0.0 };
        let spread = (f64::from(entries_per_site) * several / 100.0).round() as u32;
        // What happens at all has an entry.
        let spread = if several > 0.0 { spread.max(1) } else { 0 };
        let spread = if several < 100.0 { spread.min(entries_per_site.saturating_sub(1)) } else { spread };
        if entries_per_site == 0 || (several > 0.0 && spread == 0) {
            return invalid(format!(
                "entries_per_site is {entries_per_site}: give at least 1, and 2 if transactions touch several sites and one"
            ));
        }
        if entries_per_site > ENTRIES_PER_SITE_MAX {
            return invalid(format!(
                "entries_per_site is {entries_per_site}: give at most {ENTRIES_PER_SITE_MAX}"
            ));
        }
        if position_percent > 100 {
            return invalid(format!("position_percent is {position_percent}: give 0 to 100"));
        }
        if !(volatility.is_finite() && volatility >= 0.0) {
            return invalid(format!("volatility is {volatility}: give 0 or more updates per second"));
        }
        if shape.records_per_site - shape.contended < 2 * RECORDS_PER_TRANSACTION as u32 {
            return invalid(format!(
                "{} records of a site are not contended: an index needs {}",
                shape.records_per_site - shape.contended,
                2 * RECORDS_PER_TRANSACTION
            ));
        }
        Ok(Index {
            procedures,
            dependent: Chance::of_percent(dependent_percent, "dependent_percent")?,
            entries: entries_per_site,
            spread,
            sites: shape.sites,
            participants: shape.participants,
            contended: shape.contended,
            records_per_site: shape.records_per_site,
            position_percent,
        })
    }

    /// A uniform draw among the entries of a site that name records of several sites, or of their own alone. There are some of
    /// each kind that is asked for: the other kind is missing when all transactions touch several sites, or none does.
    pub(super) fn draw(&self, site: u16, several: bool, random: &mut Random) -> EntryName {
        let local = self.entries - self.spread;
        let (first, count) = if several { (local, self.spread) } else { (0, local) };
        EntryName { site, number: first + random.below(u64::from(count)) as u32 }
    }

    /// Whether an entry names records of several sites.
    pub(super) fn is_spread(&self, entry: EntryName) -> bool {
        entry.number >= self.entries - self.spread
    }

    /// The sites of the records that an entry names, its own first. They stay the same however often it is updated.
    pub(super) fn sites(&self, entry: EntryName) -> Vec<u16> {
        let mut sites = vec![entry.site];
        if self.is_spread(entry) {
            let others = u32::from(self.sites) - 1;
            for place in 0..u32::from(self.participants) - 1 {
                let distance = 1 + (entry.number + place) % others;
                sites.push(((u32::from(entry.site) + distance) % u32::from(self.sites)) as u16);
            }
        }
        sites
    }

    /// Draws what an entry names: one contended record on each of its sites, and cold ones in turn, all different. The cold ones are
    /// of the lower half, so that no transaction comes to one of them in another way too.
    pub(super) fn records(&self, entry: EntryName, random: &mut Random) -> Named {
        let sites = self.sites(entry);
        let mut records = Named::default();
        for place in 0..RECORDS_PER_TRANSACTION {
            let site = sites[place % sites.len()];
            records[place] = loop {
                let id = match place < sites.len() {
                    true => random.below(u64::from(self.contended)) as u32,
                    false => self.contended + random.below(u64::from(self.cold_named())) as u32,
                };
                let name = RecordName { site, id };
                if !records[..place].contains(&name) {
                    break name;
                }
            };
        }
        records
    }

    /// Cold records of a site that entries may name.
    fn cold_named(&self) -> u32 {
        (self.records_per_site - self.contended) / 2
    }

    /// Whether an entry names what [`Index::records`] can have drawn.
    pub(super) fn allows(&self, entry: EntryName, records: &Named) -> bool {
        let sites = self.sites(entry);
        records.iter().enumerate().all(|(place, name)| {
            let contended = name.id < self.contended;
            name.site == sites[place % sites.len()]
                && contended == (place < sites.len())
                && name.id < self.contended + self.cold_named()
                && !records[..place].contains(name)
        })
    }

    /// How many of its ten records a transaction takes before it reads the index: one for each tenth of the work that comes before,
    /// but always at least one through the index.
    pub(super) fn records_ahead(&self) -> usize {
        usize::from(self.position_percent / 10).min(RECORDS_PER_TRANSACTION - 1)
    }

    /// A cold record that no entry names.
    pub(super) fn record_ahead(&self, site: u16, random: &mut Random) -> RecordName {
        let named = self.cold_named();
        let others = self.records_per_site - self.contended - named;
        RecordName { site, id: self.contended + named + random.below(u64::from(others)) as u32 }
    }
}

/// The table.
pub(super) fn table() -> TableBuilder {
    Table::builder("entries")
        .column("site", ColumnType::Int32)
        .column("number", ColumnType::Int64)
        .column("records", ColumnType::Bytes)
        .primary_key(&["site", "number"])
        .partition_by_column("site")
}

/// The key of an entry.
pub(super) fn key(table: &Table, entry: EntryName) -> Result<Key, DataError> {
    table.key((i32::from(entry.site), i64::from(entry.number)))
}

/// What an entry names, as the table has it.
pub(super) fn encode(records: &Named) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(6 * RECORDS_PER_TRANSACTION);
    for RecordName { site, id } in records {
        bytes.extend_from_slice(&site.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

/// The records of an entry's row.
pub(super) fn decode(row: &ordain_db::data::Row<'_>) -> Result<Named, DataError> {
    let bytes = row.byte_string(RECORDS)?;
    let (names, rest) = bytes.as_chunks::<6>();
    if names.len() != RECORDS_PER_TRANSACTION || !rest.is_empty() {
        return Err(DataError::Malformed("index entry"));
    }
    let mut records = Named::default();
    for (name, [site0, site1, id @ ..]) in records.iter_mut().zip(names) {
        *name = RecordName { site: u16::from_le_bytes([*site0, *site1]), id: u32::from_le_bytes(*id) };
    }
    Ok(records)
}
