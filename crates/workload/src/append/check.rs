//! The conditions of a state in which no call is under way.

use ordain_db::data::Table;
use ordain_db::error::Error;
use ordain_db::hash::FastSet;

use super::tables::{list_numbers, note_number, pointer_target, setting_number};
use super::{Append, LIST_NUMBERS_MAX, NUMBERS_PER_CALL, OPERATIONS_MAX};
use crate::check::{CheckLine, Condition, SnapshotReader, scan_table};

/// What is collected over all tables.
struct Numbers {
    seen: FastSet<u64>,
    once: Condition,
    made: Condition,
}

impl Numbers {
    /// Takes a number that a call wrote, and where it was found.
    fn add(&mut self, number: u64, place: impl Fn() -> String) {
        self.once.require(self.seen.insert(number), || format!("{number} again in {}", place()));
        let made = number >= NUMBERS_PER_CALL && number % NUMBERS_PER_CALL < OPERATIONS_MAX as u64;
        self.made.require(made, || format!("{number} in {}", place()));
    }
}

pub(super) fn check(append: &Append, reader: &mut dyn SnapshotReader) -> Result<Vec<CheckLine>, Error> {
    let mut numbers = Numbers {
        seen: FastSet::default(),
        once: Condition::new("each number was written once"),
        made: Condition::new("each number is one that calls write"),
    };
    let mut complete = Condition::new("lists, pointers and settings = those loaded");
    let mut lines = vec![
        check_lists(append, reader, &mut numbers, &mut complete)?,
        check_pointers(append, reader, &mut complete)?,
        check_notes(append, reader, &mut numbers)?,
    ];
    check_settings(append, reader, &mut numbers, &mut complete)?;
    lines.extend([numbers.once.finish(), numbers.made.finish(), complete.finish()]);
    Ok(lines)
}

fn check_lists(
    append: &Append,
    reader: &mut dyn SnapshotReader,
    numbers: &mut Numbers,
    complete: &mut Condition,
) -> Result<CheckLine, Error> {
    let mut bounded = Condition::new("numbers of a list <= 2,000");
    let mut found = Found::default();
    scan_table(reader, &append.tables.lists, |[site, id], row| {
        let list = list_numbers(row)?;
        bounded.require(list.len() <= LIST_NUMBERS_MAX, || {
            format!("list ({site}, {id}) has {} numbers", list.len())
        });
        list.into_iter().for_each(|number| numbers.add(number, || format!("list ({site}, {id})")));
        found.count(append, site, id, append.options.lists_per_site);
        Ok(())
    })?;
    found.equal(complete, &append.tables.lists, append.rows_of(append.options.lists_per_site));
    Ok(bounded.finish())
}

fn check_pointers(
    append: &Append,
    reader: &mut dyn SnapshotReader,
    complete: &mut Condition,
) -> Result<CheckLine, Error> {
    let mut led = Condition::new("each pointer names a list");
    let mut found = Found::default();
    scan_table(reader, &append.tables.pointers, |[site, id], row| {
        let target = pointer_target(row);
        let is_list = |name: super::RowName| {
            append.names(i64::from(name.site), i64::from(name.id), append.options.lists_per_site)
        };
        let holds = target.as_ref().is_ok_and(|target| is_list(*target));
        led.require(holds, || format!("pointer ({site}, {id}) names {target:?}"));
        found.count(append, site, id, append.options.pointers_per_site);
        Ok(())
    })?;
    found.equal(complete, &append.tables.pointers, append.rows_of(append.options.pointers_per_site));
    Ok(led.finish())
}

fn check_notes(
    append: &Append,
    reader: &mut dyn SnapshotReader,
    numbers: &mut Numbers,
) -> Result<CheckLine, Error> {
    let mut bounded = Condition::new("0 <= id of a note < notes_per_site");
    scan_table(reader, &append.tables.notes, |[site, id], row| {
        let inside = append.names(site, id, append.options.notes_per_site);
        bounded.require(inside, || format!("note ({site}, {id})"));
        match note_number(row)? {
            0 => {}
            number => numbers.add(number, || format!("note ({site}, {id})")),
        }
        Ok(())
    })?;
    Ok(bounded.finish())
}

fn check_settings(
    append: &Append,
    reader: &mut dyn SnapshotReader,
    numbers: &mut Numbers,
    complete: &mut Condition,
) -> Result<(), Error> {
    let mut found = Found::default();
    scan_table(reader, &append.tables.settings, |[id], row| {
        match setting_number(row)? {
            0 => {}
            number => numbers.add(number, || format!("setting {id}")),
        }
        found.count(append, 0, id, append.options.settings);
        Ok(())
    })?;
    found.equal(complete, &append.tables.settings, u64::from(append.options.settings));
    Ok(())
}

/// Rows of one table with a name that was loaded, and others.
#[derive(Default)]
struct Found {
    loaded: i64,
    others: i64,
}

impl Found {
    fn count(&mut self, append: &Append, site: i64, id: i64, per_site: u32) {
        *(if append.names(site, id, per_site) { &mut self.loaded } else { &mut self.others }) += 1;
    }

    fn equal(self, complete: &mut Condition, table: &Table, expected: u64) {
        complete.equal(|| table.name().to_owned(), self.loaded, expected as i64);
        complete.equal(|| format!("{} that were not loaded", table.name()), self.others, 0);
    }
}
