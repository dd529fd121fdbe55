//! Parts of queries that run over columns instead of rows.
//!
//! Joins, groups and orders of many rows are the work of an engine of its own, which is not part of this crate: it takes values column by
//! column, thousands of rows at a time. What it runs is a *region*: some nodes at the top of a query, down to its *leaves*, whose rows come
//! from here. It is for statements over snapshots alone. In the order, and for few rows, the nodes run as they always do; and whatever the
//! engine cannot do, or fails at before it has given anything, is done so, too. A statement that fails before it has given anything begins
//! again without the engine. So an engine may make a query faster, and nothing else of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kept::{KEPT_BYTES_MAX, LOOK_UPS, TRIED_AGAIN, rows_worth};
use super::query::Wanted;
use super::work::WORK_BETWEEN_LOOKS;
use super::{Failure, HELD_BYTES_MAX, Interrupt, Patience, Row, Run, held_too_much, malformed, size_of_row};
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, Expression, Node, TableShape};
use crate::types::Datum;

/// A leaf that has no more rows than that is not much. A region all of whose leaves are like that runs without the engine.
const ROWS_FEW: usize = 512;

/// Runs parts of queries over columns.
pub trait QueryEngine: Debug + Send + Sync {
    /// How it would run a query, giving what the query gives: the same values, in the same order where the query has one. `None` if it does
    /// not know how.
    fn region<'p>(&self, query: &'p Node, surroundings: Surroundings<'p>)
    -> Option<Box<dyn Region<'p> + 'p>>;
}

/// An engine for all of a query, or for one part of it alone.
#[derive(Debug)]
pub struct Confined<'e> {
    engine: &'e dyn QueryEngine,
    /// Where the only node that it may begin with is in memory, if there is one.
    only: Option<usize>,
}

impl<'e> Confined<'e> {
    /// For any part of any query.
    pub fn anywhere(engine: &'e dyn QueryEngine) -> Confined<'e> {
        Confined { engine, only: None }
    }

    /// For what begins with a node.
    pub fn to(engine: &'e dyn QueryEngine, node: &Node) -> Confined<'e> {
        Confined { engine, only: Some(std::ptr::from_ref(node).addr()) }
    }
}

impl QueryEngine for Confined<'_> {
    fn region<'p>(
        &self,
        query: &'p Node,
        surroundings: Surroundings<'p>,
    ) -> Option<Box<dyn Region<'p> + 'p>> {
        let is_it = self.only.is_none_or(|only| only == std::ptr::from_ref(query).addr());
        if is_it { self.engine.region(query, surroundings) } else { None }
    }
}

/// How a part of a query ran that could run over columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Way {
    /// So.
    Columns,
    /// By rows, since they were few.
    Few,
    /// By rows, since those that can be counted beforehand were few.
    Unknown,
    /// By rows, since look-ups took less than all that they are made in.
    LookUps,
    /// By rows, since columns would have held too much.
    Memory,
    /// By rows, since there was a value, or a row, that columns do not take, or that nothing can be made of.
    Refused,
}

/// What a query is run with.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'p> {
    /// The tables of the statement.
    pub tables: &'p [TableShape],
    /// The values of its parameters.
    pub parameters: &'p [Datum],
    /// At most so many rows will be taken.
    pub most: usize,
    /// Most bytes that may be held.
    pub bytes: usize,
    /// What tells that the statement is to end.
    pub told: &'p Arc<Interrupt>,
}

/// A query, or the upper part of one, that an engine runs. It is asked for rows again and again; each time it says what it needs to go on.
pub trait Region<'p> {
    /// Where its rows come from.
    fn leaves(&self) -> &[Leaf<'p>];

    /// Goes on.
    ///
    /// # Errors
    /// What it cannot do: the same query may have rows all the same, if it runs otherwise.
    fn go_on(&mut self) -> Result<Next, Trouble>;

    /// Goes on with what is to be joined with the rows of a [kept](Leaf::kept) leaf, until there are so many rows of it, which wait then.
    /// [`Next::Enough`] if there are, [`Next::End`] if all have come.
    ///
    /// # Errors
    /// As of [`go_on`](Self::go_on).
    fn gather(&mut self, leaf: usize, rows: usize) -> Result<Next, Trouble>;

    /// How many rows of that wait.
    fn gathered(&self, leaf: usize) -> usize;

    /// These rows, which do not wait any longer.
    ///
    /// # Errors
    /// As of [`go_on`](Self::go_on).
    fn take_gathered(&mut self, leaf: usize) -> Result<Vec<Row>, Trouble>;

    /// Takes a row of a leaf; whether it has enough of them to go on.
    ///
    /// # Errors
    /// When it cannot take this one.
    fn push(&mut self, leaf: usize, row: &[Datum]) -> Result<bool, Trouble>;

    /// Forgets all rows of a leaf, none of which it has come to yet.
    fn clear(&mut self, leaf: usize);

    /// Says that a leaf has no more rows.
    ///
    /// # Errors
    /// As of [`push`](Self::push).
    fn end(&mut self, leaf: usize) -> Result<(), Trouble>;

    /// Bytes that it holds.
    fn held(&self) -> usize;

    /// How many rows its nodes have given, each by where it is in memory; not those of leaves.
    fn given(&self) -> Vec<(usize, u64)>;
}

/// Where rows of a region come from.
#[derive(Clone, Debug)]
pub struct Leaf<'p> {
    /// The query that gives them.
    pub query: &'p Node,
    /// What is computed of each, and follows its values.
    pub computed: Vec<&'p Expression>,
    /// If they are those of [`Node::Kept`]: the query whose rows look them up. It runs before, and what comes of it decides whether all of the
    /// leaf is read.
    pub kept: Option<&'p Node>,
}

/// What a region needs to go on, or has.
#[derive(Debug)]
pub enum Next {
    /// It needs rows of this leaf.
    Leaf(usize),
    /// Rows of its query.
    Rows(Vec<Row>),
    /// It gives others time to look whether the statement is to end.
    Pause,
    /// As many rows as it was to gather wait.
    Enough,
    /// There are no more rows.
    End,
}

/// Why a region cannot go on.
#[derive(Debug)]
pub enum Trouble {
    /// It would hold too much.
    Memory,
    /// Anything else.
    Other(String),
}

/// A region that runs.
struct Course<'p> {
    region: Box<dyn Region<'p> + 'p>,
    /// The leaves that are being read, the innermost last.
    reading: Vec<usize>,
    /// The [kept](Leaf::kept) leaves that wait for what looks them up, each with the number of rows that it waits for; the innermost last.
    waiting: Vec<(usize, usize)>,
    /// The kept leaves that have been read.
    decided: Vec<usize>,
    /// How many rows of kept leaves were read in vain, the most of each.
    in_vain: BTreeMap<usize, u64>,
    /// Bytes that are counted as held.
    held: usize,
    has_given: bool,
    /// Whether there are no more rows, no more are wanted, or none can be had.
    is_over: bool,
    /// Whether more rows are wanted.
    wants: bool,
    /// Why all is to be done without the engine, if it is.
    abandoned: Option<Way>,
}

impl<'p> Course<'p> {
    fn of(region: Box<dyn Region<'p> + 'p>) -> Course<'p> {
        let (reading, waiting, decided, in_vain) = Default::default();
        let (held, wants) = (0, true);
        let (has_given, is_over, abandoned) = Default::default();
        Course { region, reading, waiting, decided, in_vain, held, has_given, is_over, wants, abandoned }
    }

    fn leaf(&self, number: usize) -> Result<Leaf<'p>, SqlError> {
        self.region.leaves().get(number).cloned().ok_or_else(|| malformed("leaf"))
    }

    /// Ends it for a run without the engine.
    fn abandon(&mut self, why: Way) {
        (self.is_over, self.abandoned) = (true, Some(why));
    }

    /// What has come, unless there is trouble: then the run without the engine finds out what is to be made of it.
    fn or_abandon<T>(&mut self, outcome: Result<T, Trouble>) -> Result<Option<T>, SqlError> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(Trouble::Memory) if self.has_given => Err(held_too_much()),
            Err(Trouble::Other(what)) if self.has_given => Err(SqlError::new(SqlState::INTERNAL_ERROR, what)),
            Err(trouble) => {
                self.abandon(if matches!(trouble, Trouble::Memory) { Way::Memory } else { Way::Refused });
                Ok(None)
            }
        }
    }
}

/// What visits the rows of a query.
type Visit<'v, 'a, 't> = dyn FnMut(&mut Run<'a, 't>, &mut Row) -> Result<bool, Failure> + 'v;

impl<'a, 't> Run<'a, 't> {
    /// Visits the rows of a query by the engine, if there is one that knows how, it pays, and it goes well; whether more are wanted then.
    // Queries within one another have a frame each on the stack: this is not to be a part of it.
    #[inline(never)]
    pub(super) fn by_columns(
        &mut self,
        node: &Node,
        wanted: Wanted,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<Option<bool>, Failure> {
        let Patience::UntilTold(told, Some(engine)) = self.patience else { return Ok(None) };
        let is_inside = !self.outer.is_empty() || !self.locals.is_empty() || !self.working.is_empty();
        let is_query = matches!(self.plan.action, Action::Query(_));
        if !is_query || is_inside || !node.may_read_many() || node.is_volatile() {
            return Ok(None);
        }
        if let Some(way) = self.by_rows {
            self.observe_way(node, way);
            return Ok(None);
        }
        let bytes = HELD_BYTES_MAX.saturating_sub(self.held + self.kept_bytes);
        let (tables, parameters) = (self.plan.tables.as_slice(), &self.inputs.parameters);
        let surroundings = Surroundings { tables, parameters, most: wanted.most(), bytes, told };
        let Some(region) = engine.region(node, surroundings) else { return Ok(None) };
        self.tried_columns = true;
        if let Some(way) = self.has_few_rows(&*region)? {
            self.observe_way(node, way);
            return Ok(None);
        }
        let (mut course, observed) = (Course::of(region), self.observed.clone());
        let outcome = self.follow(&mut course, visit);
        self.let_go(course.held);
        outcome?;
        if course.abandoned.is_some() {
            // All is read again.
            self.observed = observed;
        }
        self.observe_way(node, course.abandoned.unwrap_or(Way::Columns));
        if course.abandoned.is_some() {
            self.by_rows = course.abandoned;
            return Ok(None);
        }
        let root = std::ptr::from_ref(node).addr();
        for (node, rows) in course.region.given().into_iter().filter(|(node, _)| *node != root) {
            self.observe(node, rows);
        }
        Ok(Some(course.wants))
    }

    /// How a region runs by rows, unless a leaf of it has many. Rows of leaves that have few are ready from then on.
    fn has_few_rows(&mut self, region: &dyn Region<'_>) -> Result<Option<Way>, Failure> {
        let mut way = Way::Few;
        for leaf in region.leaves() {
            let is_known = self.ready.contains_key(&std::ptr::from_ref(leaf.query).addr());
            if is_known || leaf.kept.is_some() {
                continue;
            }
            if !leaf.query.gives_at_once() {
                way = Way::Unknown;
                continue;
            }
            let (mut rows, observed) = (Vec::new(), self.observed.clone());
            let ((), held) = self.holding(|run| {
                run.each(leaf.query, Wanted::first(ROWS_FEW + 1), &mut |run, row| {
                    run.hold(size_of_row(row))?;
                    rows.push(std::mem::take(row));
                    Ok(rows.len() <= ROWS_FEW)
                })
                .map(drop)
            })?;
            self.let_go(held);
            if rows.len() > ROWS_FEW {
                // They are read again.
                self.observed = observed;
                return Ok(None);
            }
            self.have_ready(leaf.query, rows)?;
        }
        Ok(Some(way))
    }

    /// Has the rows of a query ready for when it runs.
    fn have_ready(&mut self, query: &Node, rows: Vec<Row>) -> Result<(), Failure> {
        self.keep(rows.iter().map(|row| size_of_row(row)).sum())?;
        self.ready.insert(std::ptr::from_ref(query).addr(), rows);
        Ok(())
    }

    /// Visits the rows of a query if they are ready; whether more are wanted then.
    // As above.
    #[inline(never)]
    pub(super) fn give_ready(
        &mut self,
        query: &Node,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<Option<bool>, Failure> {
        if !self.outer.is_empty() {
            return Ok(None);
        }
        match self.ready.remove(&std::ptr::from_ref(query).addr()) {
            Some(rows) => self.visit_all(rows, visit).map(Some),
            None => Ok(None),
        }
    }

    /// Runs a region as far as it goes with what it has, and with what is read for it on the way. Comes back when it needs more of a leaf that
    /// is being read, and when it is over.
    fn follow(&mut self, course: &mut Course<'_>, visit: &mut Visit<'_, 'a, 't>) -> Result<(), Failure> {
        while !course.is_over {
            let next = match course.waiting.last() {
                Some((leaf, rows)) => course.region.gather(*leaf, *rows),
                None => course.region.go_on(),
            };
            self.count_held(course)?;
            let Some(next) = course.or_abandon(next)? else { break };
            match next {
                Next::Leaf(leaf) if course.reading.contains(&leaf) => return Ok(()),
                Next::Leaf(leaf) if course.leaf(leaf)?.kept.is_some() && !course.decided.contains(&leaf) => {
                    course.waiting.push((leaf, LOOK_UPS as usize));
                }
                Next::Leaf(leaf) => self.read_leaf(course, leaf, visit)?,
                Next::Rows(rows) => {
                    course.has_given = true;
                    for mut row in rows {
                        self.go_on()?;
                        if !visit(self, &mut row)? {
                            (course.wants, course.is_over) = (false, true);
                            break;
                        }
                    }
                }
                Next::Pause => self.work(WORK_BETWEEN_LOOKS)?,
                Next::Enough | Next::End => match course.waiting.pop() {
                    Some((leaf, _)) => self.decide(course, leaf, matches!(next, Next::End))?,
                    None => course.is_over = true,
                },
            }
        }
        Ok(())
    }

    /// Reads a leaf, and has the region go on with its rows.
    fn read_leaf(
        &mut self,
        course: &mut Course<'_>,
        number: usize,
        visit: &mut Visit<'_, 'a, 't>,
    ) -> Result<(), Failure> {
        let Leaf { query, computed, .. } = course.leaf(number)?;
        if course.decided.contains(&number) {
            let ended = course.region.end(number);
            course.or_abandon(ended)?;
            return Ok(());
        }
        course.reading.push(number);
        self.each(query, Wanted::ALL, &mut |run, row| {
            let width = row.len();
            for expression in &computed {
                let value = run.value(expression, &row[..width])?;
                row.push(value);
            }
            let pushed = course.region.push(number, row);
            if course.or_abandon(pushed)? == Some(true) {
                run.follow(course, visit)?;
            }
            Ok(!course.is_over)
        })?;
        course.reading.pop();
        if !course.is_over {
            let ended = course.region.end(number);
            course.or_abandon(ended)?;
        }
        Ok(())
    }

    /// Reads all of a kept leaf if it has not many more rows than would look it up; else waits for more of these. When all of them have come
    /// and are few, they are ready for a run without the engine, in which they look their rows up.
    fn decide(&mut self, course: &mut Course<'_>, number: usize, is_end: bool) -> Result<(), Failure> {
        let Leaf { query, kept: Some(by), .. } = course.leaf(number)? else {
            return Err(malformed("leaf").into());
        };
        let rows = course.region.gathered(number);
        let most = rows_worth(rows as u64, is_end);
        let is_known_in_vain = course.in_vain.get(&number).is_some_and(|read| *read >= most);
        if !is_known_in_vain && (!is_end || rows as u64 >= LOOK_UPS) {
            let read = self.scan_rows(query, (usize::MAX, most), &mut |run, stored| {
                let pushed = course.region.push(number, &stored.values);
                if course.or_abandon(pushed)? == Some(true) {
                    run.count_held(course)?;
                }
                if course.held > KEPT_BYTES_MAX {
                    course.abandon(Way::Memory);
                }
                Ok(!course.is_over)
            })?;
            match read {
                _ if course.is_over => return Ok(()),
                true => {
                    course.decided.push(number);
                    let ended = course.region.end(number);
                    course.or_abandon(ended)?;
                    return Ok(());
                }
                false => {
                    course.region.clear(number);
                    course.in_vain.insert(number, most);
                }
            }
        }
        if !is_end {
            course.waiting.push((number, rows.saturating_mul(TRIED_AGAIN as usize)));
            return Ok(());
        }
        let gathered = course.region.take_gathered(number);
        if let Some(gathered) = course.or_abandon(gathered)? {
            self.have_ready(by, gathered)?;
            course.abandon(Way::LookUps);
        }
        Ok(())
    }

    /// Counts what the region holds.
    fn count_held(&mut self, course: &mut Course<'_>) -> Result<(), Failure> {
        let held = course.region.held();
        if held > course.held {
            self.hold(held - course.held)?;
        } else {
            self.let_go(course.held - held);
        }
        course.held = held;
        Ok(())
    }
}
