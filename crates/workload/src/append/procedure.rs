//! The one procedure: up to [`OPERATIONS_MAX`](super::OPERATIONS_MAX) operations in one transaction.

use ordain_db::data::{DataError, Row};
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};

use super::operation::{Arguments, CALL_NUMBER_END, Operation, RowName, Seen};
use super::tables::{self, Tables};
use super::{LIST_NUMBERS_MAX, Shape, TRANSACT};

/// Does what its arguments say and returns what it saw on the way.
pub struct Transact {
    tables: Tables,
    shape: Shape,
}

impl Transact {
    pub(super) fn new(tables: Tables, shape: Shape) -> Transact {
        Transact { tables, shape }
    }

    fn perform(
        &self,
        operation: Operation,
        number: u64,
        transaction: &mut Transaction<'_>,
    ) -> Result<Seen, Stop> {
        match operation {
            Operation::ReadList(list) => Ok(Seen::List(self.numbers(list, transaction)?)),
            Operation::Append(list) => self.append(list, number, transaction),
            Operation::FollowPointer(pointer) => {
                let list = self.target(pointer, transaction)?;
                self.append(list, number, transaction)
            }
            Operation::MovePointer { pointer, target } => self.move_pointer(pointer, target, transaction),
            Operation::ReadNotes { from, to, limit } => self.read_notes(from, to, limit, transaction),
            Operation::InsertNote(name) => {
                let before = self.note(name, transaction)?;
                if before.is_none() {
                    self.write_note(name, number, transaction)?;
                }
                Ok(Seen::Note(before))
            }
            Operation::DeleteNote(name) => {
                let before = self.note(name, transaction)?;
                if before.is_some() {
                    transaction.delete(&self.tables.note(name)?)?;
                }
                Ok(Seen::Note(before))
            }
            Operation::WriteNote(name) => {
                self.write_note(name, number, transaction)?;
                Ok(Seen::Nothing)
            }
            Operation::ReadSetting(id) => {
                let row = transaction.get(&self.tables.setting(id)?)?;
                Ok(Seen::Setting(tables::setting_number(existing(row, "setting", &id)?)?))
            }
            Operation::WriteSetting(id) => self.write_setting(id, number, transaction),
        }
    }

    fn numbers(&self, list: RowName, transaction: &mut Transaction<'_>) -> Result<Vec<u64>, Stop> {
        let row = transaction.get(&self.tables.list(list)?)?;
        Ok(tables::list_numbers(existing(row, "list", &list)?)?)
    }

    fn append(&self, list: RowName, number: u64, transaction: &mut Transaction<'_>) -> Result<Seen, Stop> {
        let mut numbers = self.numbers(list, transaction)?;
        if numbers.len() >= LIST_NUMBERS_MAX {
            return Err(Stop::abort(format!("{list:?} is full: a list holds {LIST_NUMBERS_MAX} numbers")));
        }
        let (length, last) = (numbers.len() as u32, numbers.last().copied().unwrap_or(0));
        numbers.push(number);
        let bytes = tables::list_bytes(&numbers);
        transaction.put(&self.tables.lists, &self.tables.list(list)?, (bytes,))?;
        Ok(Seen::Appended { list, length, last })
    }

    fn target(&self, pointer: RowName, transaction: &mut Transaction<'_>) -> Result<RowName, Stop> {
        let row = transaction.get(&self.tables.pointer(pointer)?)?;
        Ok(tables::pointer_target(existing(row, "pointer", &pointer)?)?)
    }

    fn move_pointer(
        &self,
        pointer: RowName,
        target: RowName,
        transaction: &mut Transaction<'_>,
    ) -> Result<Seen, Stop> {
        let before = self.target(pointer, transaction)?;
        if target.site >= self.shape.sites || target.id >= self.shape.lists_per_site {
            return Err(absent("list", &target));
        }
        let row = (i32::from(target.site), i64::from(target.id));
        transaction.put(&self.tables.pointers, &self.tables.pointer(pointer)?, row)?;
        Ok(Seen::Target(before))
    }

    fn read_notes(
        &self,
        from: RowName,
        to: RowName,
        limit: u32,
        transaction: &mut Transaction<'_>,
    ) -> Result<Seen, Stop> {
        let found = transaction.scan(&self.tables.note_range(from, to)?, limit as usize)?;
        let mut notes = Vec::with_capacity(found.len());
        for found in found {
            let number = tables::note_number(self.tables.notes.read(&found.row))?;
            notes.push((self.tables.note_name(&found.key)?, number));
        }
        Ok(Seen::Notes(notes))
    }

    fn note(&self, name: RowName, transaction: &mut Transaction<'_>) -> Result<Option<u64>, Stop> {
        let row = transaction.get(&self.tables.note(name)?)?;
        Ok(row.map(tables::note_number).transpose()?)
    }

    fn write_note(&self, name: RowName, number: u64, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        if name.site >= self.shape.sites || name.id >= self.shape.notes_per_site {
            return Err(Stop::abort(format!("{name:?} is outside of the names that notes may have")));
        }
        transaction.put(&self.tables.notes, &self.tables.note(name)?, (number as i64,))
    }

    fn write_setting(&self, id: u32, number: u64, transaction: &mut Transaction<'_>) -> Result<Seen, Stop> {
        if id >= self.shape.settings {
            return Err(absent("setting", &id));
        }
        transaction.put(&self.tables.settings, &self.tables.setting(id)?, (number as i64,))?;
        Ok(Seen::Nothing)
    }
}

fn existing<'a>(row: Option<Row<'a>>, kind: &str, name: &dyn std::fmt::Debug) -> Result<Row<'a>, Stop> {
    row.ok_or_else(|| absent(kind, name))
}

fn absent(kind: &str, name: &dyn std::fmt::Debug) -> Stop {
    Stop::abort(format!("there is no {kind} {name:?}"))
}

impl Procedure for Transact {
    type Arguments = Arguments;
    type Output = Vec<Seen>;

    fn name(&self) -> &str {
        TRANSACT
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        let tables = &self.tables;
        for operation in &arguments.operations {
            match *operation {
                Operation::ReadList(list) => footprint.read(&tables.list(list)?)?,
                Operation::Append(list) => footprint.update(&tables.list(list)?)?,
                Operation::FollowPointer(_) => return Ok(Declared::Unknown),
                Operation::MovePointer { pointer, .. } => footprint.update(&tables.pointer(pointer)?)?,
                Operation::ReadNotes { from, to, .. } => {
                    footprint.read_range(&tables.note_range(from, to)?)?;
                }
                Operation::InsertNote(name) | Operation::DeleteNote(name) => {
                    footprint.update(&tables.note(name)?)?;
                }
                Operation::WriteNote(name) => footprint.write(&tables.note(name)?)?,
                Operation::ReadSetting(id) => footprint.read(&tables.setting(id)?)?,
                Operation::WriteSetting(id) => footprint.write(&tables.setting(id)?)?,
            }
        }
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Vec<Seen>, Stop> {
        if !(1..CALL_NUMBER_END).contains(&arguments.number) {
            return Err(Stop::abort(format!(
                "a call has a number from 1 to {CALL_NUMBER_END}, not {}",
                arguments.number
            )));
        }
        let mut all = Vec::with_capacity(arguments.operations.len());
        for (index, operation) in arguments.operations.iter().enumerate() {
            let seen = self.perform(*operation, arguments.number_of(index), transaction)?;
            if let Some(abort) = arguments.abort.filter(|abort| abort.holds(index, &seen)) {
                return Err(Stop::abort(format!(
                    "operation {index} saw {:?}, a multiple of {}",
                    seen.measure(),
                    abort.multiple_of
                )));
            }
            all.push(seen);
        }
        Ok(all)
    }
}
