//! The procedure: declares and runs a [`Program`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ordain_db::data::{DataError, Direction, Key, Row, Table, Value};
use ordain_db::hash::key_hash;
use ordain_db::procedure::footprint::Access;
use ordain_db::procedure::{Arithmetic, Declaration, Functor, OwnRow, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::name::{Name, Span};
use super::operation::{Amount, Declared, Declares, Operation, Program, Target, Touch};
use super::{Tables, VALUE};

/// What a row holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) value: i64,
    pub(crate) rank: Option<i32>,
    pub(crate) note: Option<String>,
}

/// What an operation saw.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Seen {
    Row(Name, Option<Content>),
    Rows(Vec<(Name, Content)>),
    /// Whether there was a row to change.
    Changed(Name, bool),
}

/// See the [module](self).
pub(crate) struct Interpreter {
    tables: Tables,
    runs: Arc<AtomicUsize>,
}

impl Interpreter {
    pub(crate) fn new(tables: Tables, runs: Arc<AtomicUsize>) -> Interpreter {
        Interpreter { tables, runs }
    }

    fn table(&self, name: &Name) -> &Table {
        match name {
            Name::Account(..) => &self.tables.account,
            Name::Word(_) => &self.tables.word,
            Name::Line(..) => &self.tables.line,
            Name::Item(_) => &self.tables.item,
        }
    }

    fn declare_target(
        &self,
        target: &Target,
        access: Access,
        footprint: &mut Declaration<'_>,
    ) -> Result<(), DataError> {
        match target {
            Target::Named(name) => footprint.touch(&name.key(&self.tables), access),
            Target::At(span, from) => {
                footprint.read(&from.key(&self.tables))?;
                footprint.touch_range(&span.range(&self.tables), access)
            }
        }
    }

    fn declare_operation(
        &self,
        operation: &Operation,
        footprint: &mut Declaration<'_>,
    ) -> Result<(), DataError> {
        let access = match operation {
            Operation::Get(_)
            | Operation::AbortIfMissing(_)
            | Operation::AbortIfPresent(_)
            | Operation::AbortIfBelow(..) => Access::READ,
            Operation::Put(..) | Operation::Delete(_) => Access::WRITE,
            Operation::Set(..) | Operation::Add(..) | Operation::Rank(..) | Operation::Note(..) => {
                Access::UPDATE
            }
            Operation::Scan(span, _) | Operation::ScanDown(span, _) | Operation::GetMany(span, _) => {
                return footprint.read_range(&span.range(&self.tables));
            }
            Operation::Outsized(span, _) => return footprint.write_range(&span.range(&self.tables)),
        };
        match operation.target() {
            Some(target) => self.declare_target(target, access, footprint),
            None => Ok(()),
        }
    }
}

impl Interpreter {
    fn declare_functors(&self, program: &Program, footprint: &mut Declaration<'_>) -> Result<(), DataError> {
        let is_guarded = program.is_guarded(&self.tables);
        for (place, operation) in program.operations.iter().enumerate() {
            let by_itself = operation.writes_by_itself().filter(|_| is_guarded);
            match by_itself.filter(|name| program.is_only_writer(place, name, &self.tables)) {
                Some(name) => {
                    let functor = match operation {
                        Operation::Add(_, amount) => Functor::Arithmetic {
                            column: self.table(name).column(VALUE)?,
                            operation: Arithmetic::Add(*amount),
                        },
                        _ => Functor::Own(place as u16),
                    };
                    footprint.functor(&name.key(&self.tables), functor)?;
                }
                None => self.declare_operation(operation, footprint)?,
            }
            if let Some(Target::Named(name)) = operation.target()
                && operation.is_condition()
            {
                footprint.guard(&name.key(&self.tables))?;
            }
        }
        Ok(())
    }
}

/// One run of a program.
struct Run<'a, 'b> {
    interpreter: &'a Interpreter,
    transaction: &'a mut Transaction<'b>,
    /// A hash of everything that was read.
    mixed: u64,
    seen: Vec<Seen>,
}

pub(crate) fn content(row: &Row<'_>) -> Result<Content, DataError> {
    Ok(Content {
        value: row.int64(VALUE)?,
        rank: if row.is_null("rank")? { None } else { Some(row.int32("rank")?) },
        note: if row.is_null("note")? { None } else { Some(row.text("note")?.to_owned()) },
    })
}

impl Run<'_, '_> {
    fn mix(&mut self, bytes: &[u8]) {
        self.mixed = key_hash(&[&self.mixed.to_le_bytes(), bytes].concat());
    }

    fn read(&mut self, name: &Name) -> Result<Option<Content>, Stop> {
        let key = name.key(&self.interpreter.tables);
        let found = self.transaction.get(&key)?.map(|row| content(&row)).transpose()?;
        self.mix(format!("{found:?}").as_bytes());
        Ok(found)
    }

    fn resolve(&mut self, target: &Target) -> Result<(Name, Key), Stop> {
        let name = match target {
            Target::Named(name) => name.clone(),
            Target::At(span, from) => {
                let value = self.read(from)?.map_or(0, |content| content.value);
                span.pick(value)
            }
        };
        let key = name.key(&self.interpreter.tables);
        Ok((name, key))
    }

    fn amount(&self, amount: Amount) -> i64 {
        match amount {
            Amount::Constant(value) => value,
            Amount::Mixed => (self.mixed % 1000) as i64,
        }
    }

    fn change(&mut self, name: Name, column: &str, value: Value<'_>) -> Result<(), Stop> {
        let key = name.key(&self.interpreter.tables);
        let changed = self.transaction.set(self.interpreter.table(&name), &key, [(column, value)])?;
        self.mix(&[u8::from(changed)]);
        self.seen.push(Seen::Changed(name, changed));
        Ok(())
    }

    fn scan(&mut self, span: &Span, direction: Direction, limit: u32) -> Result<(), Stop> {
        let range = span.range(&self.interpreter.tables);
        let mut rows = Vec::new();
        for found in self.transaction.scan_directed(&range, direction, limit as usize)? {
            let name = Name::of_key(&self.interpreter.tables, &found.key);
            let row = content(&self.interpreter.table(&name).read(&found.row))?;
            self.mix(format!("{name} {row:?}").as_bytes());
            rows.push((name, row));
        }
        self.seen.push(Seen::Rows(rows));
        Ok(())
    }

    fn put(&mut self, name: &Name, value: i64, note: &str) -> Result<(), Stop> {
        let key = name.key(&self.interpreter.tables);
        self.transaction.put(self.interpreter.table(name), &key, (value, None::<i32>, note))
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), Stop> {
        let name = match operation.target() {
            Some(target) => self.resolve(target)?.0,
            None => Name::Item(0),
        };
        match operation {
            Operation::Get(_) => {
                let found = self.read(&name)?;
                self.seen.push(Seen::Row(name, found));
            }
            Operation::Put(_, amount) => self.put(&name, self.amount(*amount), "put")?,
            Operation::Set(_, amount) => self.change(name, VALUE, Value::Int64(self.amount(*amount)))?,
            Operation::Add(_, amount) => {
                let value = self.read(&name)?.map_or(0, |content| content.value);
                // As the functor, it leaves a number alone that would not fit.
                match value.checked_add(*amount) {
                    Some(sum) => self.change(name, VALUE, Value::Int64(sum))?,
                    None => self.seen.push(Seen::Changed(name, false)),
                }
            }
            Operation::Rank(_, rank) => self.change(name, "rank", rank.map_or(Value::Null, Value::Int32))?,
            Operation::Note(_, note) => {
                self.change(name, "note", note.as_deref().map_or(Value::Null, Value::Text))?;
            }
            Operation::Delete(_) => self.transaction.delete(&name.key(&self.interpreter.tables))?,
            Operation::Scan(span, limit) => self.scan(span, Direction::Ascending, *limit)?,
            Operation::ScanDown(span, limit) => self.scan(span, Direction::Descending, *limit)?,
            Operation::AbortIfMissing(_) if self.read(&name)?.is_none() => {
                return Err(Stop::abort(format!("{name} is missing")));
            }
            Operation::AbortIfPresent(_) if self.read(&name)?.is_some() => {
                return Err(Stop::abort(format!("{name} is present")));
            }
            Operation::AbortIfBelow(_, least) => {
                let value = self.read(&name)?.map_or(0, |content| content.value);
                if value < *least {
                    return Err(Stop::abort(format!("{name} has {value}, less than {least}")));
                }
            }
            Operation::AbortIfMissing(_) | Operation::AbortIfPresent(_) => {}
            Operation::Outsized(span, rows) => {
                for number in 0..*rows {
                    self.put(&numbered(span, number), 0, &"x".repeat(50_000))?;
                }
            }
            Operation::GetMany(span, keys) => {
                for number in 0..*keys {
                    self.read(&numbered(span, number))?;
                }
            }
        }
        Ok(())
    }
}

impl Procedure for Interpreter {
    type Arguments = Program;
    type Output = Vec<Seen>;

    fn name(&self) -> &str {
        "interpret"
    }

    fn declare(
        &self,
        program: &Program,
        footprint: &mut Declaration<'_>,
    ) -> Result<ordain_db::procedure::Declared, DataError> {
        match &program.declares {
            Declares::Nothing => return Ok(ordain_db::procedure::Declared::Unknown),
            Declares::Exactly => {
                for operation in &program.operations {
                    self.declare_operation(operation, footprint)?;
                }
            }
            Declares::Functors => self.declare_functors(program, footprint)?,
            Declares::These(declared) => {
                for declared in declared {
                    match declared {
                        Declared::Key(touch, name) => {
                            footprint.touch(&name.key(&self.tables), access_of(*touch))?;
                        }
                        Declared::Range(touch, span) => {
                            footprint.touch_range(&span.range(&self.tables), access_of(*touch))?;
                        }
                    }
                }
            }
        }
        Ok(ordain_db::procedure::Declared::Complete)
    }

    fn guard(&self, program: &Program, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        let mut run = Run { interpreter: self, transaction, mixed: 0, seen: Vec::new() };
        let mut conditions = program.operations.iter().filter(|operation| operation.is_condition());
        conditions.try_for_each(|condition| run.perform(condition))
    }

    fn functors(&self) -> u16 {
        u16::MAX
    }

    /// Shares nothing with the run, so that each is a check of the other.
    fn functor(&self, program: &Program, number: u16, row: &mut OwnRow<'_>) -> Result<(), Stop> {
        let changed = match &program.operations[usize::from(number)] {
            Operation::Put(_, Amount::Constant(value)) => return row.put((*value, None::<i32>, "put")),
            Operation::Delete(_) => return row.delete(),
            Operation::Set(_, Amount::Constant(value)) => row.set([(VALUE, Value::Int64(*value))]),
            Operation::Rank(_, rank) => row.set([("rank", rank.map_or(Value::Null, Value::Int32))]),
            Operation::Note(_, note) => row.set([("note", note.as_deref().map_or(Value::Null, Value::Text))]),
            other => Err(Stop::Invalid(format!("{other:?} has no functor of its own"))),
        };
        changed.map(|_| ())
    }

    fn run(&self, program: &Program, transaction: &mut Transaction<'_>) -> Result<Vec<Seen>, Stop> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let mut run = Run { interpreter: self, transaction, mixed: 0, seen: Vec::new() };
        for operation in &program.operations {
            run.perform(operation)?;
        }
        Ok(run.seen)
    }
}

/// A key of a span by its number.
fn numbered(span: &Span, number: u32) -> Name {
    match span {
        Span::Site(site) => Name::Account(*site, i64::from(number)),
        Span::Parts(id) => Name::Line(*id, number as i32),
        other => other.pick(i64::from(number)),
    }
}

fn access_of(touch: Touch) -> Access {
    match touch {
        Touch::Read => Access::READ,
        Touch::Write => Access::WRITE,
        Touch::Update => Access::UPDATE,
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        if let Some(rank) = self.rank {
            write!(f, " rank {rank}")?;
        }
        match &self.note {
            Some(note) if note == "put" => Ok(()),
            Some(note) if note.len() > 20 => write!(f, " note of {} bytes", note.len()),
            Some(note) => write!(f, " note {note:?}"),
            None => write!(f, " note null"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::Row(name, Some(content)) => write!(f, "{name} = {content}"),
            Seen::Row(name, None) => write!(f, "{name} is missing"),
            Seen::Rows(rows) => {
                let rows: Vec<String> =
                    rows.iter().map(|(name, content)| format!("{name} = {content}")).collect();
                write!(f, "[{}]", rows.join(", "))
            }
            Seen::Changed(name, true) => write!(f, "{name} changed"),
            Seen::Changed(name, false) => write!(f, "{name} had no row to change"),
        }
    }
}
