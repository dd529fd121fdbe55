//! Cursors: `DECLARE`, `FETCH`, `MOVE` and `CLOSE`.
//!
//! A cursor's query runs when it is declared, and its rows stay with the session. What the block certifies of it at `COMMIT` is what
//! was fetched: the rows up to the furthest that its client came to, or all of them once it knows their end. A cursor that outlives
//! its block shows rows later, so that all of them are certified.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlparser::ast::{
    CloseCursor, Declare, FetchDirection, FetchPosition, Ident, Statement, Value, ValueWithSpan,
};

use super::Session;
use super::answer::{Answer, Rows, Tag};
use super::block::Block;
use crate::bind::names::name_of;
use crate::bind::{Field, Prepared};
use crate::error::{SqlError, SqlState};
use crate::execute::{EncodedRows, Kept, bytes_of};
use crate::types::Datum;

/// Most bytes of rows that the cursors of a session hold together.
const HELD_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Most cursors of a session.
const CURSORS_MAX: usize = 4096;

/// A cursor.
struct Cursor {
    /// The statement that has declared it.
    text: String,
    /// When it was declared.
    at: i64,
    fields: Arc<[Field]>,
    /// Its rows, encoded.
    rows: EncodedRows,
    /// What counts them, as long as it is open.
    _kept: Option<Kept>,
    /// The number of the row that it is on, from 1 on; 0 before the first, and one more than there are after the last.
    place: usize,
    /// The furthest place that it was on.
    furthest: usize,
    /// Whether it may go back.
    scrolls: bool,
    /// Whether it outlives its block.
    holds: bool,
    /// The step of its block that it is, if it read anything there.
    step: Option<usize>,
    /// How many cursors the block had declared before, while that is open.
    number: Option<usize>,
}

/// The cursors of a session.
#[derive(Default)]
pub(super) struct Cursors(BTreeMap<String, Cursor>);

impl Cursors {
    /// As `pg_cursors` has them.
    pub(super) fn rows(&self) -> Vec<Vec<Datum>> {
        let row = |(name, cursor): (&String, &Cursor)| {
            let [holds, is_binary, scrolls] = [cursor.holds, false, cursor.scrolls].map(Datum::Bool);
            let (name, text) = (Datum::Text(name.clone()), Datum::Text(cursor.text.clone()));
            vec![name, text, holds, is_binary, scrolls, Datum::Timestamp(cursor.at)]
        };
        self.0.iter().map(row).collect()
    }

    /// Says which rows of its cursors the client of a block was shown.
    pub(super) fn settle(&self, block: &mut Block) {
        self.0.values().for_each(|cursor| cursor.settle(block));
    }

    /// Closes all.
    pub(super) fn close_all(&mut self) {
        self.0.clear();
    }

    /// Closes the cursors that end with a block.
    pub(super) fn end_block(&mut self, committed: bool) {
        self.0.retain(|_, cursor| cursor.number.is_none() || (committed && cursor.holds));
        for cursor in self.0.values_mut() {
            (cursor.step, cursor.number) = (None, None);
        }
    }

    /// Closes those that a block has declared since the savepoint that it has gone back to.
    pub(super) fn go_back(&mut self, block: &mut Block) {
        let first = block.cursors;
        self.0.retain(|_, cursor| {
            let stays = cursor.number.is_none_or(|number| number < first);
            if !stays {
                cursor.settle(block);
            }
            stays
        });
    }

    /// Whether there is one of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The columns of a cursor.
    pub(super) fn fields(&self, name: &str) -> Option<&[Field]> {
        self.0.get(name).map(|cursor| &*cursor.fields)
    }

    fn bytes(&self) -> usize {
        self.0.values().map(|cursor| bytes_of(&cursor.rows)).sum()
    }
}

impl Cursor {
    fn settle(&self, block: &mut Block) {
        let Some(step) = self.step else { return };
        let knows_end = self.holds || self.furthest > self.rows.len();
        let shown = if knows_end { &self.rows } else { &self.rows[..self.furthest] };
        block.certify_rows(step, shown, knows_end);
    }

    /// Moves, and gives the numbers of the rows that it comes by, in their order.
    fn advance(&mut self, direction: &FetchDirection) -> Result<Vec<usize>, SqlError> {
        let end = self.rows.len() + 1;
        let before = self.place;
        let count = |limit: &Option<ValueWithSpan>| limit.as_ref().map_or(Ok(1), number);
        let (place, passes) = match direction {
            FetchDirection::Next => (step(before, 1, end), true),
            FetchDirection::Count { limit } => self.by(number(limit)?),
            FetchDirection::Forward { limit } => self.by(count(limit)?),
            FetchDirection::Backward { limit } => self.by(count(limit)?.saturating_neg()),
            FetchDirection::All | FetchDirection::ForwardAll => (end, true),
            FetchDirection::BackwardAll => (0, true),
            FetchDirection::Prior => (step(before, -1, end), true),
            FetchDirection::First => (1.min(end), false),
            FetchDirection::Last => (end - 1, false),
            FetchDirection::Absolute { limit } => match number(limit)? {
                place if place < 0 => (step(end, place, end), false),
                place => (step(0, place, end), false),
            },
            FetchDirection::Relative { limit } => (step(before, number(limit)?, end), false),
        };
        let from_end = matches!(direction, FetchDirection::Last)
            || matches!(direction, FetchDirection::Absolute { limit } if number(limit)? < 0);
        let stays = place == before && (1..end).contains(&place);
        if !self.scrolls && (place < before || from_end || stays) {
            let message = "cursor can only scan forward";
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.place = place;
        self.furthest = self.furthest.max(if from_end { end } else { place });
        let numbers: Vec<usize> = match (passes, place > before) {
            (true, true) => (before + 1..=place).collect(),
            (true, false) if place < before => (place..before).rev().collect(),
            _ => vec![place],
        };
        Ok(numbers.into_iter().filter(|number| (1..end).contains(number)).collect())
    }

    /// Where it comes to by so many rows, and whether those between are shown: it goes on, back, or shows its row again.
    fn by(&self, count: i64) -> (usize, bool) {
        (step(self.place, count, self.rows.len() + 1), count != 0)
    }
}

fn step(from: usize, count: i64, end: usize) -> usize {
    let to = (from as i64).saturating_add(count).max(0);
    usize::try_from(to).unwrap_or(end).min(end)
}

fn number(written: &ValueWithSpan) -> Result<i64, SqlError> {
    let digits = match &written.value {
        Value::Number(digits, _) => digits.parse().ok(),
        _ => None,
    };
    digits.ok_or_else(|| {
        SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{}\"", written.value))
    })
}

/// The declaration of a cursor that a statement is.
pub(super) fn declaration(statement: &Statement) -> Option<&Declare> {
    match statement {
        Statement::Declare { stmts, .. } => match stmts.as_slice() {
            [declare] if declare.for_query.is_some() => Some(declare),
            _ => None,
        },
        _ => None,
    }
}

impl Session {
    /// Runs a planned statement with values for its parameters. `described` tells whether the client knows its columns.
    pub(super) fn run_planned(
        &mut self,
        statement: &Statement,
        prepared: &Prepared,
        parameters: &[Datum],
        described: bool,
    ) -> Result<Answer, SqlError> {
        if let Some(declare) = declaration(statement) {
            return self.declare_cursor(statement, declare, prepared, parameters);
        }
        if let Statement::Explain { .. } = statement {
            return self.explain(statement, Some((prepared, parameters)));
        }
        let (prepared, output, kept) = self.execute(statement, prepared, parameters, described)?;
        Ok(Answer::of(&prepared.plan, prepared.fields.clone(), (output, kept)))
    }

    fn declare_cursor(
        &mut self,
        statement: &Statement,
        declare: &Declare,
        prepared: &Prepared,
        parameters: &[Datum],
    ) -> Result<Answer, SqlError> {
        let holds = declare.hold == Some(true);
        if self.block.is_none() && !holds {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        }
        let name = declare.names.first().map_or_else(String::new, name_of);
        if self.cursors.0.contains_key(&name) || self.portals.has(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        if self.cursors.0.len() >= CURSORS_MAX {
            let message = format!("more than {CURSORS_MAX} cursors");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint("Close some."));
        }
        if declare.binary == Some(true) {
            return Err(
                SqlError::unsupported("a BINARY cursor").with_hint("Ask for binary values when you fetch.")
            );
        }
        let Some(fields) = prepared.fields.clone() else {
            return Err(SqlError::unsupported("a cursor of a statement that gives no rows"));
        };
        if !prepared.plan.sequences.is_empty() {
            return Err(SqlError::unsupported("a cursor whose query draws numbers of a sequence"));
        }
        let steps = self.block.as_ref().map_or(0, Block::steps);
        let (_, output, kept) = self.execute(statement, prepared, parameters, false)?;
        let mut cursor = Cursor {
            text: super::beginning_of(&statement.to_string()).to_owned(),
            at: self.database.now(),
            fields,
            rows: output.rows,
            _kept: kept,
            place: 0,
            furthest: 0,
            scrolls: declare.scroll != Some(false),
            holds,
            step: None,
            number: None,
        };
        if let Some(block) = &mut self.block {
            cursor.step = (block.steps() > steps).then_some(steps);
            cursor.number = Some(block.cursors);
            block.cursors += 1;
            cursor.settle(block);
        }
        self.cursors.0.insert(name.clone(), cursor);
        if self.cursors.bytes() > HELD_BYTES_MAX {
            self.cursors.0.remove(&name);
            let message = format!("the cursors of the session hold more than {} MiB", HELD_BYTES_MAX >> 20);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint("Close some."));
        }
        Ok(Answer::Tag(Tag::Plain("DECLARE CURSOR")))
    }

    /// `FETCH`, and `MOVE`, which the parser is told by `IN`.
    pub(super) fn fetch(
        &mut self,
        name: &Ident,
        direction: &FetchDirection,
        position: &FetchPosition,
    ) -> Result<Answer, SqlError> {
        let name = name_of(name);
        let cursor = self.cursors.0.get_mut(&name).ok_or_else(|| unknown_cursor(&name))?;
        let before = cursor.place;
        let numbers = cursor.advance(direction)?;
        if *position == FetchPosition::In {
            return Ok(Answer::Tag(Tag::Counted("MOVE", numbers.len() as u64)));
        }
        let mut kept = Kept::nothing(&self.keeping);
        let fetched = numbers.into_iter().map(|number| {
            let row = &cursor.rows[number - 1];
            kept.add(bytes_of(std::slice::from_ref(row)), false)?;
            Ok(row.clone())
        });
        let rows: Result<EncodedRows, SqlError> = fetched.collect();
        if rows.is_err() {
            // They can be fetched once there is room.
            cursor.place = before;
        }
        let rows = rows?;
        let (fields, tag) = (Arc::clone(&cursor.fields), Tag::Counting("FETCH"));
        Ok(Answer::Rows(Rows { fields, rows, tag, sent: 0, _kept: Some(kept) }))
    }

    pub(super) fn close(&mut self, which: &CloseCursor) -> Result<Answer, SqlError> {
        match which {
            CloseCursor::All => {
                if let Some(block) = &mut self.block {
                    self.cursors.settle(block);
                }
                self.cursors.close_all();
                Ok(Answer::Tag(Tag::Plain("CLOSE CURSOR ALL")))
            }
            CloseCursor::Specific { name } => {
                self.close_cursor(&name_of(name))?;
                Ok(Answer::Tag(Tag::Plain("CLOSE CURSOR")))
            }
        }
    }

    /// Closes one cursor.
    pub(super) fn close_cursor(&mut self, name: &str) -> Result<(), SqlError> {
        let cursor = self.cursors.0.remove(name).ok_or_else(|| unknown_cursor(name))?;
        if let Some(block) = &mut self.block {
            cursor.settle(block);
        }
        Ok(())
    }
}

fn unknown_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}
