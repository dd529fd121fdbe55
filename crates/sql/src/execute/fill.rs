//! Filling indexes and tables, sequences, and clearing what nothing refers to any more.

use ordain_db::data::{Direction, Key, KeyRange};

use super::rows::{Place, Reading, Stored, decode, index_of};
use super::{Failure, Few, Output, RESERVED_MAX, Row, Run, malformed};
use crate::error::{SqlError, SqlState};
use crate::plan::{ConflictTarget, Path, Reservation, SequenceShape, TableShape};
use crate::types::Datum;

impl<'a> Run<'a, '_> {
    /// Fills an index from all rows of a table.
    pub(super) fn fill_all(&mut self, shape: &TableShape, number: u16) -> Result<(), Failure> {
        let mut rows = Vec::new();
        self.scan(
            Reading::whole(shape),
            (&Path::All, Direction::Ascending),
            usize::MAX,
            &mut |_, stored| {
                rows.push(stored.take());
                Ok(true)
            },
        )?;
        rows.into_iter().try_for_each(|stored| self.enter(shape, number, &stored))
    }

    /// Fills an index from the next rows of a table; the result has the key of the last, if there may be more.
    pub(super) fn fill(
        &mut self,
        shape: &TableShape,
        number: u16,
        after: Option<&[u8]>,
        most: u32,
    ) -> Result<Output, Failure> {
        let all = self.storages.all(shape.replicated, shape.storage)?;
        // Rows that were written anew meanwhile are elsewhere, and none of them has been there.
        let after = after.filter(|after| all.contains(after));
        let rest = after.map_or(all.clone(), |after| all.after(after));
        let mut rows = Vec::new();
        let most = most as usize;
        self.scan_from(shape, &rest, most, &mut rows)?;
        let last = rows.last().map(|stored| stored.key.bytes().to_vec());
        let is_full = rows.len() == most;
        let written = rows.len() as u64;
        rows.into_iter().try_for_each(|stored| self.enter(shape, number, &stored))?;
        Ok(Output { rows: last.filter(|_| is_full).into_iter().collect(), written, ..Output::default() })
    }

    fn scan_from(
        &mut self,
        shape: &TableShape,
        range: &KeyRange,
        most: usize,
        rows: &mut Vec<Stored>,
    ) -> Result<(), Failure> {
        self.scan_range(
            Reading::whole(shape),
            Place::Rows,
            (range, Direction::Ascending),
            most,
            &mut |_, stored| {
                rows.push(stored.take());
                Ok(rows.len() < most)
            },
        )
    }

    /// Puts a row into an index, unless it is there.
    fn enter(&mut self, shape: &TableShape, number: u16, stored: &Stored) -> Result<(), Failure> {
        let index = index_of(shape, number)?;
        if index.covering
            && let Some(column) = index
                .columns
                .iter()
                .find(|column| stored.values.get(usize::from(**column)).is_some_and(Datum::is_null))
        {
            let column = shape.columns.get(usize::from(*column)).ok_or_else(|| malformed("column"))?;
            let message =
                format!("column \"{}\" of relation \"{}\" contains null values", column.name, shape.name);
            let error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
            return Err(error.of_column(&shape.name, &column.name).into());
        }
        let entry = self.entry_of(shape, index, &stored.key, &stored.values)?;
        let Some((entry, content)) = entry else { return Ok(()) };
        let there = self
            .transaction
            .get(&entry)?
            .map(|row| row.byte_string(crate::keys::ROW_COLUMN).map(<[u8]>::to_vec));
        match there {
            Some(there) if there.as_deref() == Ok(&content) => Ok(()),
            Some(_) => {
                let error = self.duplicate(shape, ConflictTarget::Index(number), &stored.values)?;
                Err(could_not_create(&index.name, error).into())
            }
            None => self.write(shape, &entry, &content),
        }
    }

    /// Puts rows into a table that nobody sees yet.
    pub(super) fn load(&mut self, shape: &TableShape, rows: &[Vec<u8>]) -> Result<Output, Failure> {
        for bytes in rows {
            let mut values = Row::new();
            decode(Reading::whole(shape), bytes, &mut values)?;
            self.generate(shape, &mut values)?;
            self.check_row(shape, &values)?;
            let key = self.key_of(shape, &values)?;
            if let Some(conflict) = self.conflict(shape, (&key, &values), None)? {
                return Err(self.duplicate(shape, conflict.target, &values)?.into());
            }
            self.add(shape, &key, &values)?;
        }
        Ok(Output { written: rows.len() as u64, ..Output::default() })
    }

    /// Deletes rows of a storage after a key; `written` tells how many, and the result has the key of the last, if there may be more.
    pub(super) fn clear(
        &mut self,
        (storage, replicated): (u32, bool),
        after: Option<&[u8]>,
        most: u32,
    ) -> Result<Output, Failure> {
        let all = self.storages.all(replicated, storage)?;
        let range = after.map_or_else(|| all.clone(), |after| all.after(after));
        let found = self.transaction.scan(&range, most as usize)?;
        for row in &found {
            self.transaction.delete(&row.key)?;
        }
        let last = found.last().filter(|_| found.len() == most as usize);
        let rows = last.map(|last| last.key.bytes().to_vec()).into_iter().collect();
        Ok(Output { rows, written: found.len() as u64, ..Output::default() })
    }

    fn sequence_key(&self, storage: u32) -> Result<Key, SqlError> {
        self.storages.sequence(storage)
    }

    /// Draws numbers of the first sequence for who may need all of them, or takes back what was not needed.
    pub(super) fn reserve(&mut self, reservation: &Reservation) -> Result<Output, Failure> {
        let sequence = self.sequence(0)?;
        let key = self.sequence_key(sequence.storage)?;
        let state = self.state(&key)?;
        let most = match reservation {
            Reservation::Draw(most) => *most,
            Reservation::GiveBack { last, seed } => {
                if state.is_some_and(|(_, reserved)| reserved == Some(*seed)) {
                    self.set_sequence(sequence.storage, *last)?;
                }
                return Ok(Output::default());
            }
        };
        let (mut last, mut rows) = (state.map(|(last, _)| last), Few::new());
        for _ in 0..most.clamp(1, RESERVED_MAX) {
            let next = match last {
                None => Ok(sequence.start),
                Some(last) => following(sequence, last),
            };
            match next {
                Ok(next) => {
                    rows.push(super::encode_row(&[Datum::Int(next)]));
                    last = Some(next);
                }
                Err(error) if rows.is_empty() => return Err(error.into()),
                // Whoever needs more than there are asks again, and is told.
                Err(_) => break,
            }
        }
        let state =
            [&last.unwrap_or(sequence.start).to_be_bytes()[..], &self.inputs.seed.to_be_bytes()].concat();
        self.transaction.put(&self.storages.spread, &key, (state.as_slice(),))?;
        Ok(Output { rows, ..Output::default() })
    }

    /// Draws the next number of a sequence.
    pub(super) fn draw(&mut self, number: u16) -> Result<i64, Failure> {
        let sequence = self.sequence(number)?;
        let key = self.sequence_key(sequence.storage)?;
        let next = match self.state(&key)? {
            None => sequence.start,
            Some((last, _)) => following(sequence, last)?,
        };
        self.set_sequence(sequence.storage, next)?;
        self.noted.note_drawn(sequence.storage, next);
        Ok(next)
    }

    pub(super) fn sequence(&self, number: u16) -> Result<&'a SequenceShape, SqlError> {
        let plan: &'a crate::plan::Plan = self.plan;
        plan.sequences.get(usize::from(number)).ok_or_else(|| malformed("sequence"))
    }

    /// The number that was given out last, with the seed that stands for it if it was [reserved](Run::reserve), and nothing happened since.
    fn state(&mut self, key: &Key) -> Result<Option<(i64, Option<u128>)>, Failure> {
        let Some(row) = self.transaction.get(key)? else { return Ok(None) };
        let bytes = row.byte_string(crate::keys::ROW_COLUMN).map_err(ordain_db::procedure::Stop::from)?;
        let (last, seed) = bytes.split_first_chunk().ok_or_else(|| malformed("sequence state"))?;
        let seed = match seed {
            [] => None,
            seed => Some(u128::from_be_bytes(seed.try_into().map_err(|_| malformed("sequence state"))?)),
        };
        Ok(Some((i64::from_be_bytes(*last), seed)))
    }

    pub(super) fn set_sequence(&mut self, storage: u32, last: i64) -> Result<(), Failure> {
        let key = self.sequence_key(storage)?;
        Ok(self.transaction.put(&self.storages.spread, &key, (&last.to_be_bytes()[..],))?)
    }

    /// Has a sequence go on after a number if that was `called`, else with it.
    pub(super) fn restart(&mut self, number: u16, value: i64, called: bool) -> Result<(), Failure> {
        let sequence = self.sequence(number)?;
        let (storage, increment) = (sequence.storage, sequence.increment);
        check_bounds(sequence, value)?;
        self.set_sequence(storage, if called { value } else { value.wrapping_sub(increment) })
    }
}

/// Fails for a number that a sequence cannot be set to.
pub(super) fn check_bounds(sequence: &SequenceShape, value: i64) -> Result<(), SqlError> {
    if (sequence.minimum..=sequence.maximum).contains(&value) {
        return Ok(());
    }
    let message = format!(
        "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
        sequence.name, sequence.minimum, sequence.maximum
    );
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

fn following(sequence: &SequenceShape, last: i64) -> Result<i64, SqlError> {
    let next = last.checked_add(sequence.increment);
    let inside = next.filter(|next| (sequence.minimum..=sequence.maximum).contains(next));
    match inside {
        Some(next) => Ok(next),
        None if sequence.cycles && sequence.increment > 0 => Ok(sequence.minimum),
        None if sequence.cycles => Ok(sequence.maximum),
        None => {
            let (which, value) = if sequence.increment > 0 {
                ("maximum", sequence.maximum)
            } else {
                ("minimum", sequence.minimum)
            };
            let message =
                format!("nextval: reached {which} value of sequence \"{}\" ({value})", sequence.name);
            Err(SqlError::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message))
        }
    }
}

/// The error of an index that is to be unique and cannot be.
fn could_not_create(name: &str, mut error: SqlError) -> SqlError {
    error.message = format!("could not create unique index \"{name}\"");
    error.detail = error.detail.map(|detail| detail.replace("already exists", "is duplicated"));
    error
}
