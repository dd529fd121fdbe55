//! Foreign keys: what the changes of a statement mean for rows that refer to others.
//!
//! A statement notes what it does to the rows that foreign keys are about. When it has done all of it, the rows that refer to what went
//! away go too, or change, in waves: all rows that one foreign key is about are found before any of them is changed, since rows
//! may take each other's keys. In the end all rows that refer to something must find it.

use ordain_db::data::{Direction, Key, KeyRange};
use ordain_db::procedure::Transaction;

use super::entries::key_shown;
use super::modify::Change;
use super::rows::{Place, Reading, Stored, index_of, pick};
use super::{Failure, Few, Inputs, Patience, Row, Run, malformed};
use crate::error::{SqlError, SqlState};
use crate::keys::{Bounds, Storages};
use crate::plan::{ForeignKeyShape, Plan, ReferentialAction, Search, TableShape};
use crate::types::compare::equal;
use crate::types::{Datum, SqlType, Values, Zone, cast};

/// Most times that changes of referring rows lead to further ones.
const WAVES_MAX: usize = 10_000;

/// In which a moment refers to a date, or a date to a moment: what a row refers to is the same for all sessions.
const CONSTRAINT_ZONE: Zone = Zone::Utc;

/// What happened to a row that may be referred to.
struct Event {
    table: u16,
    old: Row,
    /// `None` if it was deleted.
    new: Option<Row>,
}

/// Something to be checked when all is done. A foreign key is its number in the plan.
#[derive(Clone)]
pub struct Pending {
    foreign_key: usize,
    kind: PendingKind,
}

#[derive(Clone)]
enum PendingKind {
    /// No row refers to this key, unless a row has it again.
    Gone(Values),
    /// The row with this key, if it still has these values, finds what it refers to.
    Refers(Key, Values),
}

impl Pending {
    /// Whether it is about one of these foreign keys, by the storages of their tables and their names; the plan is that which left it.
    pub fn is_of(&self, plan: &Plan, constraints: &[(u32, String)]) -> bool {
        let Some(foreign_key) = plan.foreign_keys.get(self.foreign_key) else { return false };
        let storage = plan.tables.get(usize::from(foreign_key.table)).map(|shape| shape.storage);
        constraints.iter().any(|(table, name)| Some(*table) == storage && *name == foreign_key.name)
    }
}

/// What a statement has noted.
#[derive(Default)]
pub(super) struct Notes {
    events: Vec<Event>,
    pending: Vec<Pending>,
    /// Whether rows were changed that the statement does not name: they may have been noted before.
    cascaded: bool,
}

/// A row that refers to one that is not as it was.
struct Affected {
    stored: Stored,
    /// `None` if it is to be deleted.
    new: Option<Row>,
}

impl<'a, 't> Run<'a, 't> {
    /// Checks at the end of a transaction what a run of this plan has left until then.
    ///
    /// # Errors
    /// When a row refers to nothing.
    pub fn settle(
        transaction: &'a mut Transaction<'t>,
        storages: &'a Storages,
        plan: &'a Plan,
        inputs: &'a Inputs,
        patience: Patience<'a>,
        pending: Vec<Pending>,
    ) -> Result<(), Failure> {
        let mut run = Run::new(transaction, storages, plan, inputs, None, patience);
        run.notes.cascaded = true;
        run.check_all(pending)
    }

    /// Notes that a row was written, deleted, or replaced by another, whose key is given.
    pub(super) fn note(&mut self, table: u16, old: Option<(&Key, &[Datum])>, new: Option<(&Key, &[Datum])>) {
        let plan: &'a Plan = self.plan;
        for (number, foreign_key) in plan.foreign_keys.iter().enumerate() {
            if let Some((key, new)) = new
                && foreign_key.table == table
            {
                let values = pick(new, &foreign_key.columns);
                let is_same = |(place, old): (&Key, &[Datum])| {
                    place == key && same(&pick(old, &foreign_key.columns), &values)
                };
                // Where a value is null, the row refers to nothing.
                if !values.contains(&Datum::Null) && !old.is_some_and(is_same) {
                    let kind = PendingKind::Refers(key.clone(), values);
                    self.notes.pending.push(Pending { foreign_key: number, kind });
                }
            }
        }
        if let Some((_, old)) = old
            && plan.foreign_keys.iter().any(|foreign_key| foreign_key.referenced == table)
        {
            let new = new.map(|(_, new)| new.to_vec());
            self.notes.events.push(Event { table, old: old.to_vec(), new });
        }
    }

    /// Does what follows from all that was noted, and checks it; what is left is for the end of the transaction.
    pub(super) fn enforce(&mut self) -> Result<(), Failure> {
        let plan: &'a Plan = self.plan;
        let mut waves = 0;
        while !self.notes.events.is_empty() {
            waves += 1;
            if waves > WAVES_MAX {
                let message = format!("foreign keys lead from row to row more than {WAVES_MAX} times");
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).into());
            }
            let events = std::mem::take(&mut self.notes.events);
            for (number, foreign_key) in plan.foreign_keys.iter().enumerate() {
                let affected = self.affected(number, foreign_key, &events)?;
                self.notes.cascaded |= !affected.is_empty();
                self.carry_on(foreign_key, affected)?;
            }
        }
        let is_deferred = |pending: &Pending| plan.foreign_keys[pending.foreign_key].deferred;
        let (deferred, now) = std::mem::take(&mut self.notes.pending).into_iter().partition(is_deferred);
        self.deferred = deferred;
        self.check_all(now)
    }

    /// The rows that must go or change since rows that they refer to by a foreign key did.
    fn affected(
        &mut self,
        number: usize,
        foreign_key: &'a ForeignKeyShape,
        events: &[Event],
    ) -> Result<Vec<Affected>, Failure> {
        let mut affected = Vec::new();
        for event in events.iter().filter(|event| event.table == foreign_key.referenced) {
            let key = pick(&event.old, &foreign_key.referenced_columns);
            let new = event.new.as_ref().map(|new| pick(new, &foreign_key.referenced_columns));
            if key.contains(&Datum::Null) || new.as_ref().is_some_and(|new| same(&key, new)) {
                continue;
            }
            let action = if new.is_none() { foreign_key.on_delete } else { foreign_key.on_update };
            match action {
                ReferentialAction::NoAction => {
                    let kind = PendingKind::Gone(key);
                    self.notes.pending.push(Pending { foreign_key: number, kind });
                }
                ReferentialAction::Restrict => {
                    if self.is_referred_to(foreign_key, &key)? {
                        return Err(self.still_referred_to(foreign_key, &key)?.into());
                    }
                }
                ReferentialAction::Cascade | ReferentialAction::SetNull | ReferentialAction::SetDefault => {
                    for stored in self.referring(foreign_key, &key, usize::MAX)? {
                        let new = self.changed(foreign_key, action, &stored.values, new.as_deref())?;
                        affected.push(Affected { stored, new });
                    }
                    if action == ReferentialAction::SetDefault {
                        // The default may be the very key that is gone.
                        let kind = PendingKind::Gone(key);
                        self.notes.pending.push(Pending { foreign_key: number, kind });
                    }
                }
            }
        }
        Ok(affected)
    }

    /// What becomes of a row that refers to a key that is gone, or another by now.
    fn changed(
        &mut self,
        foreign_key: &'a ForeignKeyShape,
        action: ReferentialAction,
        old: &[Datum],
        key: Option<&[Datum]>,
    ) -> Result<Option<Row>, Failure> {
        let shape = self.table(foreign_key.table)?;
        let mut new = old.to_vec();
        for (place, column) in foreign_key.columns.iter().enumerate() {
            let value = match (action, key) {
                (ReferentialAction::SetNull, _) => Datum::Null,
                (ReferentialAction::SetDefault, _) => {
                    let default = foreign_key.defaults.get(place).ok_or_else(|| malformed("default"))?;
                    self.value(default, &[])?
                }
                (_, None) => return Ok(None),
                (_, Some(key)) => {
                    let (own, other) = self.types(foreign_key, place)?;
                    let value = key.get(place).cloned().ok_or_else(|| malformed("column"))?;
                    cast::assign(value, other, own, CONSTRAINT_ZONE)?
                }
            };
            *new.get_mut(usize::from(*column)).ok_or_else(|| malformed("column"))? = value;
        }
        self.generate(shape, &mut new)?;
        self.check_row(shape, &new)?;
        Ok(Some(new))
    }

    /// The types of a column of a foreign key and of the one that it refers to.
    fn types(&self, foreign_key: &ForeignKeyShape, place: usize) -> Result<(SqlType, SqlType), SqlError> {
        let of = |table: u16, columns: &[u16]| {
            let column = columns.get(place).ok_or_else(|| malformed("column"))?;
            let shape = self.table(table)?.columns.get(usize::from(*column));
            Ok::<SqlType, SqlError>(shape.ok_or_else(|| malformed("column"))?.data_type)
        };
        Ok((
            of(foreign_key.table, &foreign_key.columns)?,
            of(foreign_key.referenced, &foreign_key.referenced_columns)?,
        ))
    }

    /// Deletes and changes rows that refer to others, and notes it.
    fn carry_on(&mut self, foreign_key: &ForeignKeyShape, affected: Vec<Affected>) -> Result<(), Failure> {
        let shape = self.table(foreign_key.table)?;
        let mut changes = Few::new();
        for Affected { stored: Stored { key, values }, new } in affected {
            match new {
                None => {
                    self.remove(shape, &key, &values)?;
                    self.note(foreign_key.table, Some((&key, &values)), None);
                }
                Some(new) => changes.push(Change { key, old: values, new, besides: Vec::new() }),
            }
        }
        self.replace(foreign_key.table, changes)
    }

    fn check_all(&mut self, pending: Vec<Pending>) -> Result<(), Failure> {
        let (plan, cascaded): (&'a Plan, bool) = (self.plan, self.notes.cascaded);
        self.read_soon(|storages| {
            let mut keys = Vec::new();
            for Pending { foreign_key, kind } in &pending {
                let foreign_key =
                    plan.foreign_keys.get(*foreign_key).ok_or_else(|| malformed("foreign key"))?;
                match kind {
                    PendingKind::Gone(key) => keys.extend(target_key(storages, plan, foreign_key, key)?),
                    PendingKind::Refers(key, values) => {
                        keys.extend(cascaded.then(|| key.clone()));
                        keys.extend(referenced_key(storages, plan, foreign_key, values)?);
                    }
                }
            }
            Ok(keys)
        })?;
        pending.into_iter().try_for_each(|pending| self.check_pending(pending))
    }

    fn check_pending(&mut self, pending: Pending) -> Result<(), Failure> {
        let plan: &'a Plan = self.plan;
        let foreign_key =
            plan.foreign_keys.get(pending.foreign_key).ok_or_else(|| malformed("foreign key"))?;
        match pending.kind {
            PendingKind::Gone(key) => {
                let there = target_key(self.storages, plan, foreign_key, &key)?;
                if self.is_there(there.as_ref())? || !self.is_referred_to(foreign_key, &key)? {
                    return Ok(());
                }
                Err(self.still_referred_to(foreign_key, &key)?.into())
            }
            PendingKind::Refers(key, values) => {
                if self.notes.cascaded {
                    // It may have gone or changed since; then that was noted too.
                    let shape = self.table(foreign_key.table)?;
                    let row = self.read(Reading::whole(shape), &key)?;
                    if !row.is_some_and(|row| same(&pick(&row, &foreign_key.columns), &values)) {
                        return Ok(());
                    }
                }
                let there = referenced_key(self.storages, plan, foreign_key, &values)?;
                if self.is_there(there.as_ref())? {
                    return Ok(());
                }
                let (shape, other) = (self.table(foreign_key.table)?, self.table(foreign_key.referenced)?);
                let ForeignKeyShape { name, columns, .. } = foreign_key;
                Err(refers_to_nothing(shape, name, columns, &other.name, &values, self.inputs.zone).into())
            }
        }
    }

    fn is_there(&mut self, key: Option<&Key>) -> Result<bool, Failure> {
        key.map_or(Ok(false), |key| Ok(self.transaction.get(key)?.is_some()))
    }

    /// Whether a row refers to a key.
    fn is_referred_to(&mut self, foreign_key: &ForeignKeyShape, key: &[Datum]) -> Result<bool, Failure> {
        match referring_range(self.storages, self.plan, foreign_key, key)? {
            // What refers is all that the range has: its rows need not be read.
            (range, _, true) => Ok(!range.is_empty() && !self.transaction.scan(&range, 1)?.is_empty()),
            _ => Ok(!self.referring(foreign_key, key, 1)?.is_empty()),
        }
    }

    /// The rows that refer to a key, at most so many.
    fn referring(
        &mut self,
        foreign_key: &ForeignKeyShape,
        key: &[Datum],
        most: usize,
    ) -> Result<Vec<Stored>, Failure> {
        let shape = self.table(foreign_key.table)?;
        let (range, place, is_exact) = referring_range(self.storages, self.plan, foreign_key, key)?;
        let mut types = Vec::with_capacity(key.len());
        for place in 0..key.len() {
            types.push(self.types(foreign_key, place)?);
        }
        let mut found = Vec::new();
        let asked = if is_exact { most } else { usize::MAX };
        self.scan_range(
            Reading::whole(shape),
            place,
            (&range, Direction::Ascending),
            asked,
            &mut |_, stored| {
                if refers(foreign_key, &types, &stored.values, key)? {
                    found.push(stored.take());
                }
                Ok(found.len() < most)
            },
        )?;
        Ok(found)
    }

    fn still_referred_to(&self, foreign_key: &ForeignKeyShape, key: &[Datum]) -> Result<SqlError, SqlError> {
        let (shape, other) = (self.table(foreign_key.table)?, self.table(foreign_key.referenced)?);
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            other.name, foreign_key.name, shape.name
        );
        let shown = key_shown(other, &foreign_key.referenced_columns, key, self.inputs.zone);
        Ok(SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .of_constraint(&shape.name, &foreign_key.name)
            .with_detail(format!("Key {shown} is still referenced from table \"{}\".", shape.name)))
    }
}

/// The error of a row that refers to nothing by a foreign key with these columns and values.
pub fn refers_to_nothing(
    shape: &TableShape,
    name: &str,
    columns: &[u16],
    other: &str,
    values: &[Datum],
    zone: Zone,
) -> SqlError {
    let message =
        format!("insert or update on table \"{}\" violates foreign key constraint \"{name}\"", shape.name);
    let shown = key_shown(shape, columns, values, zone);
    SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
        .of_constraint(&shape.name, name)
        .with_detail(format!("Key {shown} is not present in table \"{other}\"."))
}

/// Where it is told whether there is what values of a foreign key refer to; `None` if they are too long to be there.
pub(super) fn referenced_key(
    storages: &Storages,
    plan: &Plan,
    foreign_key: &ForeignKeyShape,
    values: &[Datum],
) -> Result<Option<Key>, SqlError> {
    let (shape, other) = (shape(plan, foreign_key.table)?, shape(plan, foreign_key.referenced)?);
    let columns = foreign_key.columns.iter().zip(&foreign_key.referenced_columns);
    let mut key = Vec::with_capacity(values.len());
    for (value, (own, referenced)) in values.iter().zip(columns) {
        let (from, to) = (column_type(shape, *own)?, column_type(other, *referenced)?);
        key.push(as_referenced(value.clone(), from, to)?);
    }
    target_key(storages, plan, foreign_key, &key)
}

/// The key of the row or entry that has values of the columns that a foreign key refers to.
fn target_key(
    storages: &Storages,
    plan: &Plan,
    foreign_key: &ForeignKeyShape,
    values: &[Datum],
) -> Result<Option<Key>, SqlError> {
    let other = shape(plan, foreign_key.referenced)?;
    let index = foreign_key.target.map(|number| index_of(other, number)).transpose()?;
    let columns = index.map_or(other.key.as_slice(), |index| index.columns.as_slice());
    let mut ordered = Vec::with_capacity(values.len());
    for column in columns {
        let place = foreign_key.referenced_columns.iter().position(|known| known == column);
        let value = place.and_then(|place| values.get(place)).ok_or_else(|| malformed("column"))?;
        ordered.push(value.clone());
    }
    storages.unique(other, index, &ordered)
}

/// The range of rows or entries among which are those that refer to a key, and whether all of it does.
pub(super) fn referring_range(
    storages: &Storages,
    plan: &Plan,
    foreign_key: &ForeignKeyShape,
    key: &[Datum],
) -> Result<(KeyRange, Place, bool), SqlError> {
    let shape = shape(plan, foreign_key.table)?;
    let Search::Range { index, places } = &foreign_key.search else {
        return Ok((storages.all(shape.replicated, shape.storage)?, Place::Rows, false));
    };
    let mut values = Vec::with_capacity(places.len());
    for place in places {
        values.push(key.get(usize::from(*place)).cloned().ok_or_else(|| malformed("column"))?);
    }
    let bounds = Bounds::of_prefix(&values);
    let is_exact = places.len() == key.len();
    match index {
        None => {
            let range = storages.range(shape.replicated, shape.storage, shape.placing, &bounds)?;
            Ok((range, Place::Rows, is_exact))
        }
        Some(number) => {
            let index = index_of(shape, *number)?;
            Ok((storages.range(shape.replicated, index.storage, 1, &bounds)?, Place::Entries, is_exact))
        }
    }
}

/// Whether a row refers to a key. `types` are those of the columns and of the ones that they refer to.
fn refers(
    foreign_key: &ForeignKeyShape,
    types: &[(SqlType, SqlType)],
    row: &[Datum],
    key: &[Datum],
) -> Result<bool, SqlError> {
    let values = pick(row, &foreign_key.columns);
    for ((value, key), (own, other)) in values.into_iter().zip(key).zip(types) {
        if value.is_null() || !equal(&as_referenced(value, *own, *other)?, key) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A value of a foreign key's column as one of the type that it refers to. All integers are compared as they are: one that the other
/// type does not have is just not there.
fn as_referenced(value: Datum, from: SqlType, to: SqlType) -> Result<Datum, SqlError> {
    if from.is_integer() && to.is_integer() {
        Ok(value)
    } else {
        cast::cast(value, from, to.plain(), CONSTRAINT_ZONE)
    }
}

fn same(left: &[Datum], right: &[Datum]) -> bool {
    left.iter().zip(right).all(|(left, right)| equal(left, right))
}

fn shape(plan: &Plan, table: u16) -> Result<&TableShape, SqlError> {
    plan.tables.get(usize::from(table)).ok_or_else(|| malformed("table"))
}

fn column_type(shape: &TableShape, column: u16) -> Result<SqlType, SqlError> {
    let column = shape.columns.get(usize::from(column)).ok_or_else(|| malformed("column"))?;
    Ok(column.data_type)
}
