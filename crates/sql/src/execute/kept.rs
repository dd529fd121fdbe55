//! Rows that are kept for what runs many times: those of correlated subqueries by the values that they are asked for by, and the values
//! after `IN`.

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::keyed::{HELD_PER_KEY, KeyMap, KeySet, hashed};
use super::query::Wanted;
use super::rows::Reading;
use super::work::work_of_copies;
use super::{Failure, HELD_BYTES_MAX, Patience, Row, Run, malformed, size_of_row};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node, Path};
use crate::types::Datum;

/// Rows of a table that are read by the direct way in vain before all that could be asked for are kept: where there are few, no more is
/// read than is needed.
const DIRECT_ROWS: u64 = 1024;

/// Rows of a run of the direct way that are few: if no more come each time, it is as good as the rows would be.
const DIRECT_ROWS_EACH: u64 = 16;

/// Look-ups over a snapshot after which all rows of a table are read to keep them, if they are not [too many](rows_worth). If there turn out
/// to be, look-ups go on, and it is tried again after [`TRIED_AGAIN`] times as many.
pub(super) const LOOK_UPS: u64 = 2048;
pub(super) const TRIED_AGAIN: u64 = 16;

/// A look-up takes as long as so many rows that are read one after the other.
const ROWS_PER_LOOK_UP: u64 = 32;

/// All rows of a table are read in place of look-ups that are all there will be only if that takes so many times less.
const FAR_BETTER: u64 = 4;

/// How many rows of a table may be read in place of look-ups each of which gives few: of so many by now, which may be all there will be.
pub(super) fn rows_worth(look_ups: u64, are_all: bool) -> u64 {
    look_ups.saturating_mul(ROWS_PER_LOOK_UP) / if are_all { FAR_BETTER } else { 1 }
}

/// Most bytes that may be kept: if there are more, rows are read again each time. The rest is for what is held for a while.
pub(super) const KEPT_BYTES_MAX: usize = HELD_BYTES_MAX / 2;

/// How far rows are kept.
pub(super) struct Kept {
    state: State,
    /// Runs of the direct way, and the rows that these read and would not have to read from what is kept.
    direct: (u64, u64),
    /// After how many runs of it all rows are read, if that is not more than these took.
    next_try: u64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { state: State::NotYet, direct: (0, 0), next_try: LOOK_UPS }
    }
}

impl Kept {
    /// How many rows may be read to keep them, if that should be tried: the direct way has read much itself, or has run often over a snapshot.
    fn pays(&self, is_snapshot: bool) -> Option<u64> {
        let (runs, read) = self.direct;
        if read >= DIRECT_ROWS && read / runs.max(1) > DIRECT_ROWS_EACH {
            return Some(u64::MAX);
        }
        (is_snapshot && runs >= self.next_try).then(|| rows_worth(runs, false))
    }
}

#[derive(Default, Clone)]
enum State {
    #[default]
    NotYet,
    Done(Rc<Table>),
    /// They are too many, or one of them cannot be computed: perhaps it is never asked for.
    Impossible,
}

/// Rows, and their places by the bytes of the values that they are found by.
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    places: KeyMap<SmallVec<[usize; 2]>>,
}

/// Rows that a query looks up, which are kept by now.
pub(super) struct Found<'p> {
    pub(super) table: Rc<Table>,
    keys: &'p Keys,
    tested: bool,
    has_direct: bool,
    /// What else must hold.
    condition: Option<&'p Expression>,
}

/// The values of a subquery or a list after `IN`, or of an array.
pub(super) struct Members {
    values: KeySet,
    has_null: bool,
}

impl Members {
    /// Whether a value is among them: null if that is not known. There are some.
    pub(super) fn has(&self, value: &Datum) -> Datum {
        if value.is_null() {
            return Datum::Null;
        }
        match self.values.contains(&hashed(std::slice::from_ref(value))) {
            false if self.has_null => Datum::Null,
            found => Datum::Bool(found),
        }
    }
}

type Keys = [(Expression, Expression)];

/// What rows are asked for.
#[derive(Clone, Copy)]
struct Asked<'k> {
    keys: &'k Keys,
    /// Whether what is around tests the keys too.
    tested: bool,
    /// The key that they must have, if it is known.
    wanted: Option<&'k [u8]>,
}

/// Which rows may be equal to a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// None: nothing equals null.
    None,
    /// Those with the same key.
    Equal,
    /// All: the key cannot be computed. Whether it has to be is for what is around to find out, as for rows that have none. A table is
    /// asked by the direct way then, whether its rows are kept or not: it may fail, too, and rows are kept over snapshots only.
    All,
}

impl Run<'_, '_> {
    /// Visits the rows of [`Node::Kept`].
    pub(super) fn kept(
        &mut self,
        node: &Node,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let Node::Kept { input, keys, tested, direct } = node else {
            return Err(malformed("kept rows").into());
        };
        let mut wanted = Vec::new();
        let sought = self.sought(keys.iter().map(|(_, around)| around), &[], *tested, &mut wanted)?;
        if sought == Sought::None {
            return Ok(true);
        }
        let place = std::ptr::from_ref(node).addr();
        // In the order, what is read is claimed, and nobody else waits for a snapshot.
        let is_snapshot = matches!(self.patience, Patience::UntilTold(..));
        let kept = self.kept_rows.entry(place).or_default();
        let (mut state, most) =
            (kept.state.clone(), if direct.is_none() { Some(u64::MAX) } else { kept.pays(is_snapshot) });
        if let (State::NotYet, Some(most)) = (&state, most) {
            kept.next_try = kept.direct.0.saturating_mul(TRIED_AGAIN);
            state = self.try_keep(input, keys, most)?;
            self.kept_rows.entry(place).or_default().state = state.clone();
        }
        let table = match state {
            State::Done(table) if !(sought == Sought::All && direct.is_some()) => table,
            _ => {
                let wanted = (sought == Sought::Equal).then_some(wanted.as_slice());
                let asked = Asked { keys, tested: *tested, wanted };
                return self.unkept((input, direct.as_ref()), asked, place, visit);
            }
        };
        let mut copy = Row::new();
        let mut give = |run: &mut Self, row: &Row| {
            run.go_on()?;
            run.work(work_of_copies(row))?;
            copy.clone_from(row);
            visit(run, &mut copy)
        };
        if keys.is_empty() || sought == Sought::All {
            for row in &table.rows {
                if !give(self, row)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for place in table.places.get(&wanted).into_iter().flatten() {
            if !give(self, &table.rows[*place])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the rows that a query looks up are kept by now.
    pub(super) fn is_kept(&self, node: &Node) -> bool {
        match node {
            Node::Filter { input, .. } | Node::Project { input, .. } => self.is_kept(input),
            Node::Kept { .. } => self.table_kept_for(node).is_some(),
            _ => false,
        }
    }

    fn table_kept_for(&self, node: &Node) -> Option<&Rc<Table>> {
        match &self.kept_rows.get(&std::ptr::from_ref(node).addr())?.state {
            State::Done(table) => Some(table),
            _ => None,
        }
    }

    /// The rows that a query looks up, if they are kept by now and nobody wants to be told what each of its nodes gives.
    pub(super) fn kept_table<'p>(&self, node: &'p Node) -> Option<Found<'p>> {
        let (node, condition) = match node {
            Node::Filter { input, condition } => (&**input, Some(condition)),
            node => (node, None),
        };
        match node {
            Node::Kept { keys, tested, direct, .. } if !self.inputs.observes => {
                let table = Rc::clone(self.table_kept_for(node)?);
                let has_direct = direct.is_some();
                Some(Found { table, keys, tested: *tested, has_direct, condition })
            }
            _ => None,
        }
    }

    /// The places of those rows that the query gives for the rows around; `None` if it is to be asked itself. `key` is for bytes.
    pub(super) fn kept_places(
        &mut self,
        found: &Found<'_>,
        key: &mut Vec<u8>,
    ) -> Result<Option<SmallVec<[usize; 2]>>, Failure> {
        let Found { table, keys, tested, has_direct, condition } = found;
        let mut places = SmallVec::new();
        let mut test = |run: &mut Self, place: usize| {
            if run.passes(*condition, &table.rows[place])? {
                places.push(place);
            }
            Ok::<(), Failure>(())
        };
        match self.sought(keys.iter().map(|(_, around)| around), &[], *tested, key)? {
            Sought::Equal if !keys.is_empty() => {
                let places = table.places.get(key.as_slice()).into_iter().flatten();
                places.into_iter().try_for_each(|place| test(self, *place))?;
            }
            Sought::All if *has_direct => return Ok(None),
            Sought::Equal | Sought::All => (0..table.rows.len()).try_for_each(|place| test(self, place))?,
            Sought::None => {}
        }
        Ok(Some(places))
    }

    /// Which rows may be equal to the key that values make. `tested` says that what is around tests it too.
    fn sought<'e>(
        &mut self,
        values: impl Iterator<Item = &'e Expression>,
        row: &[Datum],
        tested: bool,
        key: &mut Vec<u8>,
    ) -> Result<Sought, Failure> {
        match self.attempt(|run| run.hash_key(values, row, key))? {
            Ok(true) => Ok(Sought::Equal),
            Ok(false) => Ok(Sought::None),
            Err(_) if tested => Ok(Sought::All),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a row may be one that is asked for. `key` is for bytes.
    fn may_be(&mut self, asked: Asked<'_>, row: &[Datum], key: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(match self.sought(asked.keys.iter().map(|(own, _)| own), row, asked.tested, key)? {
            Sought::None => false,
            Sought::Equal => asked.wanted.is_none_or(|wanted| key == wanted),
            Sought::All => true,
        })
    }

    /// Visits the same rows without keeping any.
    fn unkept(
        &mut self,
        (input, direct): (&Node, Option<&Path>),
        asked: Asked<'_>,
        place: usize,
        visit: &mut dyn FnMut(&mut Self, &mut Row) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let mut key = Vec::new();
        let (Some(path), Node::Scan { table, direction, needed, .. }) = (direct, input) else {
            return self.each(input, Wanted::ALL, &mut |run, row| {
                if run.may_be(asked, row, &mut key)? { visit(run, row) } else { Ok(true) }
            });
        };
        let table = Reading { shape: self.table(*table)?, needed: needed.as_deref() };
        let (mut wants, mut spared) = (true, 0);
        self.observe_run(input);
        self.scan(table, (path, *direction), usize::MAX, &mut |run, stored| {
            run.observe_row(input);
            let row = &mut stored.values;
            let may_be = run.may_be(asked, row, &mut key)?;
            if !may_be || asked.keys.is_empty() {
                spared += 1;
            }
            if may_be {
                wants = visit(run, row)?;
            }
            Ok(wants)
        })?;
        let kept = self.kept_rows.entry(place).or_default();
        kept.direct = (kept.direct.0 + 1, kept.direct.1 + spared);
        Ok(wants)
    }

    /// Keeps the rows of a query, if no more than so many must be read. What a failure means is for the run without them to find out, which may
    /// never come to it.
    fn try_keep(&mut self, input: &Node, keys: &Keys, most: u64) -> Result<State, Failure> {
        let kept = self.kept_bytes;
        let state = match self.attempt(|run| run.table_of(input, keys, most))? {
            Ok(Some(table)) => return Ok(State::Done(Rc::new(table))),
            Ok(None) => State::NotYet,
            Err(_) => State::Impossible,
        };
        self.kept_bytes = kept;
        Ok(state)
    }

    /// What comes of a part of the statement, which can go on without it where that fails for what is computed. It holds nothing then.
    pub(super) fn attempt<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<Result<T, SqlError>, Failure> {
        let before = self.before_part();
        part(self).map(Ok).or_else(|failure| self.left_out(before, failure).map(Err))
    }

    /// What a part of the statement begins with: how much is held, and how many rows are around.
    pub(super) fn before_part(&self) -> (usize, usize) {
        (self.held, self.outer.len())
    }

    /// Goes back to before a part of the statement that has failed and is left out. Fails unless it was for what is computed.
    pub(super) fn left_out(
        &mut self,
        (held, around): (usize, usize),
        failure: Failure,
    ) -> Result<SqlError, Failure> {
        match failure {
            Failure::Sql(error) if error.state != SqlState::OUT_OF_MEMORY => {
                self.let_go(self.held - held);
                self.outer.truncate(around);
                Ok(error)
            }
            failure => Err(failure),
        }
    }

    /// The rows of a query with their places; `None` if more than so many rows of a table must be read for them.
    fn table_of(&mut self, input: &Node, keys: &Keys, most: u64) -> Result<Option<Table>, Failure> {
        let mut table = Table { rows: Vec::new(), places: KeyMap::with_hasher(self.hash_seed()) };
        let mut key = Vec::new();
        let mut keep = |run: &mut Self, row: &mut Row| {
            if !run.hash_key(keys.iter().map(|(own, _)| own), row, &mut key)? {
                return Ok(true);
            }
            run.keep(size_of_row(row) + key.len() + HELD_PER_KEY)?;
            if run.kept_bytes > KEPT_BYTES_MAX {
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too much to keep").into());
            }
            match table.places.get_mut(key.as_slice()) {
                _ if keys.is_empty() => {}
                Some(places) => places.push(table.rows.len()),
                None => drop(table.places.insert(key.clone(), smallvec![table.rows.len()])),
            }
            table.rows.push(std::mem::take(row));
            Ok(true)
        };
        let are_all = match input {
            Node::Scan { .. } if most < u64::MAX => {
                self.scan_rows(input, (usize::MAX, most), &mut |run, stored| keep(run, &mut stored.values))?
            }
            _ => self.each(input, Wanted::ALL, &mut keep)?,
        };
        Ok(are_all.then_some(table))
    }

    /// The rows of a query of `WITH`, which runs if it has not run.
    pub(super) fn once(&mut self, number: u16, query: &Node) -> Result<Rc<Vec<Row>>, Failure> {
        if let Some(rows) = self.once.get(&number) {
            return Ok(Rc::clone(rows));
        }
        let (rows, held) = self.holding(|run| run.query(query))?;
        self.let_go(held);
        self.keep(held)?;
        let rows = Rc::new(rows);
        self.once.insert(number, Rc::clone(&rows));
        Ok(rows)
    }

    /// The values of what depends on nothing, by where its plan is in memory.
    pub(super) fn members_of<'v>(
        &mut self,
        place: usize,
        values: impl Iterator<Item = &'v Datum>,
    ) -> Result<Rc<Members>, Failure> {
        if let Some(members) = self.members.get(&place) {
            return Ok(Rc::clone(members));
        }
        let mut members = Members { values: KeySet::with_hasher(self.hash_seed()), has_null: false };
        let mut key = Vec::new();
        for value in values {
            match value {
                Datum::Null => members.has_null = true,
                value => {
                    self.hash(std::slice::from_ref(value), &mut key)?;
                    if members.values.insert(key.clone()) {
                        self.keep(key.len() + HELD_PER_KEY)?;
                    }
                }
            }
        }
        let members = Rc::new(members);
        self.members.insert(place, Rc::clone(&members));
        Ok(members)
    }
}
