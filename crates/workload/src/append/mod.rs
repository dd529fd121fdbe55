//! Append: calls made for checkers, after Elle's list-append.
//!
//! The rows are lists of numbers. A call appends numbers that no other call has, and returns what it read: so a list that
//! was read tells which calls came before it, and in which order, and a history of calls can be checked without a look into
//! the database. Around the lists stand the things that make engines go wrong: pointers, so that a call's keys depend on
//! data; notes, which are inserted, deleted, read in ranges and written blindly; settings, which every partition holds and
//! whose writers concern all of them; and aborts by what was read, also after writes.

mod check;
mod generator;
mod operation;
mod procedure;
mod tables;

use ordain_db::data::{Key, SchemaBuilder};
use ordain_db::error::Error;
use ordain_db::procedure::{Catalog, ProcedureId, Procedures, decode_output};

use crate::check::{CheckLine, SnapshotReader, Totals};
use crate::random::Chance;
use crate::{Generator, Part, Workload};
use tables::{Tables, list_bytes};

pub use operation::{AbortWhen, Arguments, CALL_NUMBER_END, NUMBERS_PER_CALL, Operation, RowName, Seen};
pub use procedure::Transact;

/// The procedure's name.
pub const TRANSACT: &str = "transact";

/// Most operations of a call.
pub const OPERATIONS_MAX: usize = 8;

/// Most numbers of a list: a call that would append to a full one aborts.
pub const LIST_NUMBERS_MAX: usize = 2_000;

/// Settings of the workload. Small numbers of rows make conflicts.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Number of sites over which all rows but the settings are spread.
    pub sites: u16,
    /// Lists of each site.
    pub lists_per_site: u32,
    /// Pointers of each site. At first each names a list of its own site.
    pub pointers_per_site: u32,
    /// Names that notes of each site may have; every other one has a note at first.
    pub notes_per_site: u32,
    /// Settings, at every partition the same.
    pub settings: u32,
    /// Most operations of a call, up to [`OPERATIONS_MAX`]; the number is uniform from 1, and larger where a call must have more
    /// to do what the shares below ask of it.
    pub operations_max: usize,
    /// Share of calls that touch two sites, in percent; none do when there is one site.
    pub multi_site_percent: f64,
    /// Share of calls that follow a pointer, in percent.
    pub dependent_percent: f64,
    /// Share of calls that read a range of notes, in percent; of a call of two sites it reaches from one to the other.
    pub range_percent: f64,
    /// Share of calls that write a setting, in percent.
    pub replicated_percent: f64,
    /// Share of calls with a condition under which they abort, in percent; it holds for some of them. The plain store of
    /// [`limit`](crate::limit) takes no writes back: give 0 there.
    pub abort_percent: f64,
    /// Share of the draws of a list that give list 0 of the site, in percent; the others are uniform.
    pub hot_list_percent: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sites: 1,
            lists_per_site: 8,
            pointers_per_site: 4,
            notes_per_site: 16,
            settings: 2,
            operations_max: 6,
            multi_site_percent: 20.0,
            dependent_percent: 10.0,
            range_percent: 15.0,
            replicated_percent: 5.0,
            abort_percent: 10.0,
            hot_list_percent: 20.0,
        }
    }
}

/// The workload.
pub struct Append {
    options: Options,
    catalog: Catalog,
    tables: Tables,
    shape: Shape,
    transact: ProcedureId,
}

/// What generator and procedure need of the options, checked and in integers.
#[derive(Clone, Copy, Debug)]
struct Shape {
    sites: u16,
    lists_per_site: u32,
    pointers_per_site: u32,
    notes_per_site: u32,
    settings: u32,
    operations_max: usize,
    multi_site: Chance,
    dependent: Chance,
    range: Chance,
    replicated: Chance,
    abort: Chance,
    hot_list: Chance,
}

impl Shape {
    fn of(options: &Options) -> Result<Shape, Error> {
        let counts = [
            ("sites", u32::from(options.sites)),
            ("lists_per_site", options.lists_per_site),
            ("pointers_per_site", options.pointers_per_site),
            ("notes_per_site", options.notes_per_site),
            ("settings", options.settings),
        ];
        if let Some((option, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Error::Invalid(format!("append: {option} is 0: give at least 1")));
        }
        let most = options.operations_max;
        if !(1..=OPERATIONS_MAX).contains(&most) {
            return Err(Error::Invalid(format!(
                "append: operations_max is {most}: give 1 to {OPERATIONS_MAX}"
            )));
        }
        Ok(Shape {
            sites: options.sites,
            lists_per_site: options.lists_per_site,
            pointers_per_site: options.pointers_per_site,
            notes_per_site: options.notes_per_site,
            settings: options.settings,
            operations_max: most,
            multi_site: Chance::of_percent(options.multi_site_percent, "multi_site_percent")?,
            dependent: Chance::of_percent(options.dependent_percent, "dependent_percent")?,
            range: Chance::of_percent(options.range_percent, "range_percent")?,
            replicated: Chance::of_percent(options.replicated_percent, "replicated_percent")?,
            abort: Chance::of_percent(options.abort_percent, "abort_percent")?,
            hot_list: Chance::of_percent(options.hot_list_percent, "hot_list_percent")?,
        })
    }
}

impl Append {
    /// Checks the options and builds the catalog.
    pub fn new(options: Options) -> Result<Append, Error> {
        let shape = Shape::of(&options)?;
        let mut schema = SchemaBuilder::new();
        let tables = Tables::add_to(&mut schema)?;
        let mut procedures = Procedures::new();
        let transact = procedures.register(Transact::new(tables.clone(), shape))?;
        let catalog = Catalog { schema: schema.finish(), procedures };
        Ok(Append { options, catalog, tables, shape, transact })
    }

    /// The one procedure.
    pub fn procedure(&self) -> ProcedureId {
        self.transact
    }

    /// The number of a list among those of all sites, from 0: what checkers take for its key.
    pub fn list_number(&self, list: RowName) -> u64 {
        u64::from(list.site) * u64::from(self.options.lists_per_site) + u64::from(list.id)
    }

    /// Number of lists of all sites.
    pub fn lists(&self) -> u64 {
        self.rows_of(self.options.lists_per_site)
    }

    /// What a call of [`TRANSACT`] was to do. Fails for arguments that no generator of this workload makes.
    pub fn decode_arguments(encoded: &[u8]) -> Result<Arguments, Error> {
        decode_output(encoded).map_err(|error| Error::Invalid(format!("append: arguments: {error}")))
    }

    /// What a committed call saw, one for each operation of its arguments. Fails for results of something else.
    pub fn decode_result(arguments: &Arguments, encoded: &[u8]) -> Result<Vec<Seen>, Error> {
        let seen: Vec<Seen> = decode_output(encoded)?;
        if seen.len() != arguments.operations.len() {
            return Err(Error::Invalid(format!(
                "append: {} results for {} operations: they belong to another call",
                seen.len(),
                arguments.operations.len()
            )));
        }
        Ok(seen)
    }

    /// Rows of all sites of a table that has this many at each.
    fn rows_of(&self, per_site: u32) -> u64 {
        u64::from(self.options.sites) * u64::from(per_site)
    }

    /// Whether there is such a site and, in a table with this many rows at each, such a row.
    fn names(&self, site: i64, id: i64, per_site: u32) -> bool {
        (0..i64::from(self.options.sites)).contains(&site) && (0..i64::from(per_site)).contains(&id)
    }

    fn last_site(&self) -> i64 {
        i64::from(self.options.sites) - 1
    }
}

impl Workload for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn rows_expected(&self, part: Part) -> u64 {
        let Options { lists_per_site, pointers_per_site, notes_per_site, settings, .. } = self.options;
        let notes = u64::from(notes_per_site).div_ceil(2);
        let per_site = u64::from(lists_per_site) + u64::from(pointers_per_site) + notes;
        part.count(0, self.last_site()) * per_site + u64::from(settings)
    }

    fn load(&self, part: Part, sink: &mut dyn FnMut(&Key, &[u8])) -> Result<(), Error> {
        let Options { lists_per_site, pointers_per_site, notes_per_site, settings, .. } = self.options;
        let Tables { lists, pointers, notes, settings: setting_table } = &self.tables;
        let (empty, untouched) = (lists.row((list_bytes(&[]),))?, notes.row((0_i64,))?);
        for site in part.numbers(0, self.last_site()) {
            let name = |id| RowName { site: site as u16, id };
            for id in 0..lists_per_site {
                sink(&self.tables.list(name(id))?, &empty);
            }
            for id in 0..pointers_per_site {
                let target = pointers.row((site as i32, i64::from(id % lists_per_site)))?;
                sink(&self.tables.pointer(name(id))?, &target);
            }
            for id in (0..notes_per_site).step_by(2) {
                sink(&self.tables.note(name(id))?, &untouched);
            }
        }
        let unset = setting_table.row((0_i64,))?;
        for id in 0..settings {
            sink(&self.tables.setting(id)?, &unset);
        }
        Ok(())
    }

    fn generator(&self, seed: u64, client: u32, homes: Part) -> Result<Box<dyn Generator>, Error> {
        Ok(Box::new(generator::Calls::new(self.transact, self.shape, seed, client, homes)?))
    }

    /// What was loaded and is never deleted is there, names are those that there may be, and no number stands in two places
    /// or twice in one: a call that took effect twice would leave that behind.
    fn check(&self, reader: &mut dyn SnapshotReader, _totals: &Totals) -> Result<Vec<CheckLine>, Error> {
        check::check(self, reader)
    }
}
