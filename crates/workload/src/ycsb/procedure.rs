//! The procedures: each does one kind of operation with every row that it is given.

use ordain_db::data::{DataError, Key, KeyRange, Row, Table, Value};
use ordain_db::hash::Digest;
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::{FIELDS, INSERT, READ, READ_MODIFY_WRITE, SCAN, UPDATE, column};

/// Which row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct RowName {
    /// The site.
    pub site: u16,
    /// The place among the site's loaded rows where it is, in the order of keys.
    pub slot: u32,
    /// 0 for the loaded row of the place; that of the insert for the others, which follow it.
    pub number: u64,
}

/// A new value of one field.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The row.
    pub row: RowName,
    /// The field's number.
    pub field: u8,
    /// The value.
    pub value: Vec<u8>,
}

/// A new row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewRow {
    /// The row.
    pub row: RowName,
    /// Its fields, one after the other; all have the same length.
    pub fields: Vec<u8>,
}

/// Rows that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stretch {
    /// The first.
    pub from: RowName,
    /// How many, at most.
    pub length: u32,
}

/// What was read. The rows themselves stay where they are; that the right ones were read, the digest tells.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// How many rows there were.
    pub rows: u32,
    /// Of keys and rows, in any order.
    pub digest: u64,
}

impl Seen {
    fn add(&mut self, key: &Key, row: &[u8]) {
        let mut digest = Digest::default();
        digest.add(key, row);
        self.rows += 1;
        self.digest = self.digest.wrapping_add(digest.0 as u64);
    }
}

/// The table, as procedures use it.
#[derive(Clone)]
pub(super) struct Rows(pub(super) Table);

impl Rows {
    #[inline]
    pub(super) fn key(&self, name: RowName) -> Result<Key, DataError> {
        self.0.key((i32::from(name.site), i64::from(name.slot), name.number as i64))
    }

    /// The places of a stretch, which have as many rows as were loaded, and those that were inserted.
    fn range(&self, stretch: &Stretch) -> Result<KeyRange, DataError> {
        let Stretch { from: RowName { site, slot, .. }, length } = *stretch;
        let (site, first) = (i32::from(site), i64::from(slot));
        self.0.range((site, first), (site, first + i64::from(length)))
    }

    /// Writes a row that holds `fields`.
    pub(super) fn values(version: i64, fields: &[u8]) -> [Value<'_>; FIELDS + 1] {
        let length = fields.len() / FIELDS;
        let field = |number: usize| Value::Bytes(&fields[number * length..][..length]);
        std::array::from_fn(|place| place.checked_sub(1).map_or(Value::Int64(version), field))
    }

    /// Gives a row's field a value that is made from the one that it has, and counts its version up.
    fn change(
        &self,
        change: &Change,
        transaction: &mut Transaction<'_>,
        value: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<(), Stop> {
        let Change { row: name, field, .. } = change;
        if usize::from(*field) >= FIELDS {
            return Err(Stop::abort(format!("there is no field {field}: a row has {FIELDS}")));
        }
        let (key, field) = (self.key(*name)?, column::FIRST_FIELD + usize::from(*field));
        let row = transaction.get(&key)?.ok_or_else(|| absent(*name))?;
        let (version, value) = (row.int64(column::VERSION)? + 1, value(row.byte_string(field)?));
        let values = [(column::VERSION, Value::Int64(version)), (field, Value::Bytes(&value))];
        transaction.set(&self.0, &key, values).map(|_| ())
    }
}

fn absent(name: RowName) -> Stop {
    Stop::abort(format!("there is no {name:?}"))
}

/// Reads rows, all fields of them. Those that are not there are not counted: one may be asked for before it is inserted.
pub struct Read(pub(super) Rows);

impl Procedure for Read {
    type Arguments = Vec<RowName>;
    type Output = Seen;

    fn name(&self) -> &str {
        READ
    }

    fn declare(&self, rows: &Vec<RowName>, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        for row in rows {
            footprint.read(&self.0.key(*row)?)?;
        }
        Ok(Declared::Complete)
    }

    fn run(&self, rows: &Vec<RowName>, transaction: &mut Transaction<'_>) -> Result<Seen, Stop> {
        let mut seen = Seen::default();
        for row in rows {
            let key = self.0.key(*row)?;
            if let Some(row) = transaction.get(&key)? {
                seen.add(&key, Row::bytes(&row));
            }
        }
        Ok(seen)
    }
}

/// Replaces a field in each row.
pub struct Update(pub(super) Rows);

impl Procedure for Update {
    type Arguments = Vec<Change>;
    type Output = ();

    fn name(&self) -> &str {
        UPDATE
    }

    fn declare(&self, changes: &Vec<Change>, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        declare_changes(&self.0, changes, footprint)
    }

    fn run(&self, changes: &Vec<Change>, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        for change in changes {
            self.0.change(change, transaction, |_| change.value.clone())?;
        }
        Ok(())
    }
}

/// Reads each row, and changes a field by what was there.
pub struct ReadModifyWrite(pub(super) Rows);

impl Procedure for ReadModifyWrite {
    type Arguments = Vec<Change>;
    type Output = Seen;

    fn name(&self) -> &str {
        READ_MODIFY_WRITE
    }

    fn declare(&self, changes: &Vec<Change>, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        declare_changes(&self.0, changes, footprint)
    }

    fn run(&self, changes: &Vec<Change>, transaction: &mut Transaction<'_>) -> Result<Seen, Stop> {
        let mut seen = Seen::default();
        for change in changes {
            let key = self.0.key(change.row)?;
            let row = transaction.get(&key)?.ok_or_else(|| absent(change.row))?;
            seen.add(&key, row.bytes());
            self.0.change(change, transaction, |before| {
                before.iter().zip(&change.value).map(|(before, new)| before ^ new).collect()
            })?;
        }
        Ok(seen)
    }
}

fn declare_changes(
    rows: &Rows,
    changes: &[Change],
    footprint: &mut Declaration<'_>,
) -> Result<Declared, DataError> {
    for change in changes {
        footprint.update(&rows.key(change.row)?)?;
    }
    Ok(Declared::Complete)
}

/// Inserts rows. One that is there already aborts the call.
pub struct Insert(pub(super) Rows);

impl Procedure for Insert {
    type Arguments = Vec<NewRow>;
    type Output = ();

    fn name(&self) -> &str {
        INSERT
    }

    fn declare(&self, rows: &Vec<NewRow>, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        for new in rows {
            footprint.update(&self.0.key(new.row)?)?;
        }
        Ok(Declared::Complete)
    }

    fn run(&self, rows: &Vec<NewRow>, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        for new in rows {
            let key = self.0.key(new.row)?;
            if transaction.get(&key)?.is_some() {
                return Err(Stop::abort(format!("there is {:?} already", new.row)));
            }
            transaction.put(&self.0.0, &key, &Rows::values(0, &new.fields)[..])?;
        }
        Ok(())
    }
}

/// Reads rows that follow each other.
pub struct Scan(pub(super) Rows);

impl Procedure for Scan {
    type Arguments = Vec<Stretch>;
    type Output = Seen;

    fn name(&self) -> &str {
        SCAN
    }

    fn declare(
        &self,
        stretches: &Vec<Stretch>,
        footprint: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        for stretch in stretches {
            footprint.read_range(&self.0.range(stretch)?)?;
        }
        Ok(Declared::Complete)
    }

    fn run(&self, stretches: &Vec<Stretch>, transaction: &mut Transaction<'_>) -> Result<Seen, Stop> {
        let mut seen = Seen::default();
        for stretch in stretches {
            for found in transaction.scan(&self.0.range(stretch)?, stretch.length as usize)? {
                seen.add(&found.key, &found.row);
            }
        }
        Ok(seen)
    }
}
