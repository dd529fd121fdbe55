//! Insertions, changes and deletions, with the constraints of the table and its indexes.

use ordain_db::data::Key;

use super::decide::reads_tables;
use super::entries::{has_same_entry, unique_entries};
use super::rows::{Reading, Stored, agree, index_of, pick};
use super::{Failure, Few, Output, Row, Run, encode_row};
use crate::error::{SqlError, SqlState};
use crate::plan::{ConflictTarget, Expression, GeneratedShape, IndexShape, Node, OnConflict, TableShape};
use crate::types::{Datum, Zone};

/// Where a new row stands in the way of another.
pub(super) struct Conflict {
    pub target: ConflictTarget,
    /// The key of the row that is there.
    key: Key,
}

/// A row that is to be changed.
pub(super) struct Change {
    pub key: Key,
    pub old: Row,
    pub new: Row,
    /// What the expressions see besides.
    pub besides: Row,
}

impl Run<'_, '_> {
    pub(super) fn insert(
        &mut self,
        table: u16,
        source: &Node,
        on_conflict: &OnConflict,
        returning: Option<&[Expression]>,
    ) -> Result<Output, Failure> {
        let shape = self.table(table)?;
        let mut output = Output::default();
        let mut touched = std::collections::BTreeSet::new();
        let mut rows = self.query(source)?;
        rows.iter_mut().try_for_each(|values| self.generate(shape, values))?;
        let inputs = self.inputs;
        self.read_soon(|storages| {
            let mut keys = Vec::new();
            for values in &rows {
                if !shape.key.is_empty() {
                    keys.push(storages.row(shape, &pick(values, &shape.key))?);
                }
                keys.extend(unique_entries(storages, shape, values, inputs, |_| true)?);
            }
            Ok(keys)
        })?;
        if reads_tables(on_conflict, returning) {
            return self.insert_decided(table, rows, on_conflict, returning);
        }
        for values in rows {
            self.check_row(shape, &values)?;
            let key = self.key_of(shape, &values)?;
            let written = match self.conflict(shape, (&key, &values), on_conflict.arbiter())? {
                None => {
                    self.add(shape, &key, &values)?;
                    self.note(table, None, Some((&key, &values)));
                    touched.insert(key);
                    Some(values)
                }
                Some(conflict) => self.resolve(table, conflict, values, on_conflict, &mut touched)?,
            };
            if let Some(values) = written {
                output.written += 1;
                self.tell(returning, &values, &mut output)?;
            }
        }
        self.enforce()?;
        Ok(output)
    }

    /// What becomes of a row that is there already; the row as written, if one was.
    fn resolve(
        &mut self,
        table: u16,
        conflict: Conflict,
        values: Row,
        on_conflict: &OnConflict,
        touched: &mut std::collections::BTreeSet<Key>,
    ) -> Result<Option<Row>, Failure> {
        let shape = self.table(table)?;
        match on_conflict {
            OnConflict::Nothing(target) if matches(*target, conflict.target) => Ok(None),
            OnConflict::Update { target, assignments, condition } if matches(*target, conflict.target) => {
                // Which of the rows would win is no question of their order.
                if touched.contains(&conflict.key) {
                    return Err(second_time().into());
                }
                let old = self.read(Reading::whole(shape), &conflict.key)?.unwrap_or_default();
                let new = self.merged(shape, &old, values, assignments, condition.as_ref())?;
                let Some(new) = new else { return Ok(None) };
                touched.insert(self.moved_key(shape, &conflict.key, &new)?);
                self.replace(
                    table,
                    Few::from([Change { key: conflict.key, old, new: new.clone(), besides: Vec::new() }]),
                )?;
                Ok(Some(new))
            }
            _ => Err(self.duplicate(shape, conflict.target, &values)?.into()),
        }
    }

    pub(super) fn update(
        &mut self,
        table: u16,
        source: &Node,
        assignments: &[(u16, Expression)],
        returning: Option<&[Expression]>,
    ) -> Result<Output, Failure> {
        let shape = self.table(table)?;
        let mut changes = Few::new();
        for (Stored { key, values: old }, besides) in self.targets(shape, source)? {
            let new = if besides.is_empty() {
                self.assigned(shape, &old, assignments, &old)?
            } else {
                self.assigned(shape, &old, assignments, &[&*old, &*besides].concat())?
            };
            self.check_row(shape, &new)?;
            changes.push(Change { key, old, new, besides });
        }
        let mut output = Output { written: changes.len() as u64, ..Output::default() };
        for change in &changes {
            if returning.is_some() {
                let mut seen = change.new.clone();
                seen.extend_from_slice(&change.besides);
                self.tell(returning, &seen, &mut output)?;
            }
        }
        self.replace(table, changes)?;
        self.enforce()?;
        Ok(output)
    }

    pub(super) fn delete(
        &mut self,
        table: u16,
        source: &Node,
        returning: Option<&[Expression]>,
    ) -> Result<Output, Failure> {
        let shape = self.table(table)?;
        let mut output = Output::default();
        let mut targets = self.targets(shape, source)?;
        output.written = targets.len() as u64;
        // What is told may read the table, which is as it was until then.
        if returning.is_some() {
            for (stored, besides) in &mut targets {
                let columns = stored.values.len();
                stored.values.append(besides);
                self.tell(returning, &stored.values, &mut output)?;
                stored.values.truncate(columns);
            }
        }
        for (Stored { key, values }, _) in targets {
            self.remove(shape, &key, &values)?;
            self.note(table, Some((&key, &values)), None);
        }
        self.enforce()?;
        Ok(output)
    }

    /// The rows of a table that a statement changes, each once, with what its source gives besides. All are known before any is
    /// changed: the statement does not see its own changes.
    fn targets(&mut self, shape: &TableShape, source: &Node) -> Result<Few<(Stored, Row)>, Failure> {
        let mut targets = Few::new();
        if let Node::Scan { .. } = source {
            self.scan_rows(source, (usize::MAX, u64::MAX), &mut |_, stored| {
                targets.push((stored.take(), Vec::new()));
                Ok(true)
            })?;
            return Ok(targets);
        }
        // A join gives values, from which the key is made again, or with which it comes.
        let mut seen = std::collections::BTreeSet::new();
        for mut row in self.query(source)? {
            let besides = row.split_off(shape.columns.len().min(row.len()));
            let key = match besides.first() {
                Some(Datum::Bytes(key)) if shape.key.is_empty() => Key::from_bytes(key),
                _ => self.storages.row(shape, &pick(&row, &shape.key))?,
            };
            if seen.insert(key.clone()) {
                targets.push((Stored { key, values: row }, besides));
            }
        }
        Ok(targets)
    }

    /// What the row that stands in the way of another becomes; `None` if it stays as it is.
    pub(super) fn merged(
        &mut self,
        shape: &TableShape,
        old: &[Datum],
        values: Row,
        assignments: &[(u16, Expression)],
        condition: Option<&Expression>,
    ) -> Result<Option<Row>, Failure> {
        let mut both = old.to_vec();
        both.extend(values);
        if !self.passes(condition, &both)? {
            return Ok(None);
        }
        let new = self.assigned(shape, old, assignments, &both)?;
        self.check_row(shape, &new)?;
        Ok(Some(new))
    }

    pub(super) fn assigned(
        &mut self,
        shape: &TableShape,
        old: &[Datum],
        assignments: &[(u16, Expression)],
        seen: &[Datum],
    ) -> Result<Row, Failure> {
        let mut new = old.to_vec();
        for (column, expression) in assignments {
            let value = self.value(expression, seen)?;
            let place = new.get_mut(usize::from(*column)).ok_or_else(|| super::malformed("column"))?;
            *place = value;
        }
        debug_assert_eq!(new.len(), shape.columns.len());
        self.generate(shape, &mut new)?;
        Ok(new)
    }

    /// Gives a new row the values of its generated columns.
    pub(super) fn generate(&mut self, shape: &TableShape, row: &mut [Datum]) -> Result<(), Failure> {
        for GeneratedShape { column, value } in &shape.generated {
            let value = self.value(value, row)?;
            *row.get_mut(usize::from(*column)).ok_or_else(|| super::malformed("column"))? = value;
        }
        Ok(())
    }

    /// Notes what is told of a row that was written.
    pub(super) fn tell(
        &mut self,
        returning: Option<&[Expression]>,
        row: &[Datum],
        output: &mut Output,
    ) -> Result<(), Failure> {
        if let Some(returning) = returning {
            let told = encode_row(&self.values(returning, row)?);
            self.keep(size_of_val(&told) + told.len())?;
            output.rows.push(told);
        }
        Ok(())
    }

    /// Fails unless a row has values where it must, and fulfils the checks.
    pub(super) fn check_row(&mut self, shape: &TableShape, values: &[Datum]) -> Result<(), Failure> {
        for (column, value) in shape.columns.iter().zip(values) {
            if column.not_null && value.is_null() {
                let message = format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    column.name, shape.name
                );
                let error =
                    SqlError::new(SqlState::NOT_NULL_VIOLATION, message).of_column(&shape.name, &column.name);
                return Err(error.with_detail(failing(shape, values, self.inputs.zone)).into());
            }
        }
        for check in &shape.checks {
            // A condition that is null does not fail.
            if self.value(&check.condition, values)? == Datum::Bool(false) {
                let message = format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    shape.name, check.name
                );
                let error =
                    SqlError::new(SqlState::CHECK_VIOLATION, message).of_constraint(&shape.name, &check.name);
                return Err(error.with_detail(failing(shape, values, self.inputs.zone)).into());
            }
        }
        Ok(())
    }

    /// The key of a row that was changed.
    pub(super) fn moved_key(&self, shape: &TableShape, key: &Key, new: &[Datum]) -> Result<Key, SqlError> {
        if shape.key.is_empty() { Ok(key.clone()) } else { self.storages.row(shape, &pick(new, &shape.key)) }
    }

    /// What stands in the way of a new row: where the statement says what to do about it, rather than anywhere else.
    pub(super) fn conflict(
        &mut self,
        shape: &TableShape,
        (key, values): (&Key, &[Datum]),
        arbiter: Option<ConflictTarget>,
    ) -> Result<Option<Conflict>, Failure> {
        if let Some(target @ ConflictTarget::Index(number)) = arbiter {
            let index = index_of(shape, number)?;
            if let Some(there) = self.unique_conflict(shape, index, key, values)? {
                return Ok(Some(Conflict { target, key: there }));
            }
        }
        if !shape.key.is_empty() && self.transaction.get(key)?.is_some() {
            return Ok(Some(Conflict { target: ConflictTarget::Key, key: key.clone() }));
        }
        for (number, index) in (0..).zip(&shape.indexes) {
            if let Some(there) = self.unique_conflict(shape, index, key, values)? {
                return Ok(Some(Conflict { target: ConflictTarget::Index(number), key: there }));
            }
        }
        Ok(None)
    }

    /// Writes a row and its entries, which nothing stands in the way of.
    pub(super) fn add(&mut self, shape: &TableShape, key: &Key, values: &[Datum]) -> Result<(), Failure> {
        self.write(shape, key, &encode_row(values))?;
        for index in &shape.indexes {
            if let Some((entry, content)) = self.entry_of(shape, index, key, values)? {
                self.write(shape, &entry, &content)?;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, shape: &TableShape, key: &Key, values: &[Datum]) -> Result<(), Failure> {
        self.transaction.delete(key)?;
        shape.indexes.iter().try_for_each(|index| self.delete_entry(shape, index, key, values))
    }

    /// Puts new rows in the place of old ones. What is unique must be so when all are there: rows may take each other's values.
    pub(super) fn replace(&mut self, table: u16, changes: Few<Change>) -> Result<(), Failure> {
        let shape = self.table(table)?;
        let mut moved = Few::new();
        for change in &changes {
            moved.push(self.take_away(shape, change)?);
        }
        let inputs = self.inputs;
        self.read_soon(|storages| {
            let mut keys = Vec::new();
            for (change, moved) in changes.iter().zip(&moved) {
                keys.extend(moved.key.clone());
                let is_new = |index: &IndexShape| !has_same_entry(shape, index, &change.old, &change.new);
                keys.extend(unique_entries(storages, shape, &change.new, inputs, is_new)?);
            }
            Ok(keys)
        })?;
        for (change, moved) in changes.into_iter().zip(moved) {
            self.put_back(shape, &change, &moved)?;
            let key = moved.key.as_ref().unwrap_or(&change.key);
            self.note(table, Some((&change.key, &change.old)), Some((key, &change.new)));
        }
        Ok(())
    }

    /// Deletes the row if its key changes, and its entries in indexes where they change; the numbers of these.
    fn take_away(&mut self, shape: &TableShape, change: &Change) -> Result<Moved, Failure> {
        let is_moved = !agree(&change.old, &change.new, &shape.key);
        let mut moved = Moved { key: is_moved.then(|| change.key.clone()), entries: Vec::new() };
        if is_moved {
            moved.key = Some(self.storages.row(shape, &pick(&change.new, &shape.key))?);
            self.transaction.delete(&change.key)?;
        }
        for (number, index) in shape.indexes.iter().enumerate() {
            let same = has_same_entry(shape, index, &change.old, &change.new);
            if same && !is_moved && !index.covering {
                continue;
            }
            moved.entries.push(number);
            if !(same && index.covering) {
                self.delete_entry(shape, index, &change.key, &change.old)?;
            }
        }
        Ok(moved)
    }

    fn put_back(&mut self, shape: &TableShape, change: &Change, moved: &Moved) -> Result<(), Failure> {
        let key = moved.key.as_ref().unwrap_or(&change.key);
        if moved.key.is_some() && self.transaction.get(key)?.is_some() {
            return Err(self.duplicate(shape, ConflictTarget::Key, &change.new)?.into());
        }
        self.write(shape, key, &encode_row(&change.new))?;
        for number in &moved.entries {
            let index = &shape.indexes[*number];
            let same = has_same_entry(shape, index, &change.old, &change.new);
            if !same && self.unique_conflict(shape, index, key, &change.new)?.is_some() {
                let target = ConflictTarget::Index(u16::try_from(*number).unwrap_or(u16::MAX));
                return Err(self.duplicate(shape, target, &change.new)?.into());
            }
            if let Some((entry, content)) = self.entry_of(shape, index, key, &change.new)? {
                self.write(shape, &entry, &content)?;
            }
        }
        Ok(())
    }
}

/// What of a row went elsewhere.
struct Moved {
    /// Its new key.
    key: Option<Key>,
    /// The indexes, by their place, in which it has a new entry.
    entries: Vec<usize>,
}

pub(super) fn matches(wanted: ConflictTarget, found: ConflictTarget) -> bool {
    wanted == ConflictTarget::Any || wanted == found
}

pub(super) fn second_time() -> SqlError {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
    SqlError::new(SqlState::CARDINALITY_VIOLATION, message).with_hint(hint)
}

/// A row as errors show it: PostgreSQL cuts long values.
fn failing(shape: &TableShape, values: &[Datum], zone: Zone) -> String {
    const SHOWN_MAX: usize = 64;
    let mut shown = Vec::with_capacity(values.len());
    for (column, value) in shape.columns.iter().zip(values) {
        // A dropped column has no name.
        if column.name.is_empty() {
            continue;
        }
        let mut bytes = Vec::new();
        match value {
            Datum::Null => bytes.extend_from_slice(b"null"),
            value => crate::types::text::format(value, column.data_type, zone, &mut bytes),
        }
        let text = String::from_utf8_lossy(&bytes);
        let end = text.floor_char_boundary(SHOWN_MAX);
        shown.push(if end < text.len() { format!("{}...", &text[..end]) } else { text.into_owned() });
    }
    format!("Failing row contains ({}).", shown.join(", "))
}
