//! `GROUPING SETS`, `ROLLUP`, `CUBE`, and `GROUPING()`.

use std::collections::BTreeMap;
use std::rc::Rc;

use sqlparser::ast::{Expr, Function, SelectItem};

use super::functions::arguments_of;
use super::names::last_name;
use super::scope::{Bound, Grouping};
use super::{Binder, numbering};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, is_same};
use crate::types::{Datum, SqlType};

/// Most grouping sets of one query.
const SETS_MAX: usize = 4096;

/// Most elements of a `CUBE`.
const CUBE_MAX: usize = 12;

/// Most arguments of `GROUPING()`: its result is an `integer`.
const QUESTION_MAX: usize = 31;

/// A way to group rows: by some expressions, which may be part of many ways.
type Set = Vec<Rc<Expr>>;

/// Ways to group rows.
type Sets = Vec<Set>;

impl Binder<'_> {
    /// Binds `GROUP BY`; the items of the list are what numbers and aliases stand for.
    pub(super) fn grouping(&mut self, written: &[Expr], items: &[SelectItem]) -> Result<Grouping, SqlError> {
        let mut grouping = Grouping::default();
        let mut sets: Sets = vec![Vec::new()];
        let mut has_sets = false;
        for one in written {
            let more = match sets_of(one)? {
                Some(more) => {
                    has_sets = true;
                    more
                }
                None => vec![row_of(one)],
            };
            check_sets(sets.len() * more.len())?;
            if let [more] = more.as_slice() {
                sets.iter_mut().for_each(|set| set.extend_from_slice(more));
                continue;
            }
            sets =
                sets.iter().flat_map(|set| more.iter().map(|more| [&set[..], &more[..]].concat())).collect();
        }
        let (mut numbered, mut known) = (Vec::with_capacity(sets.len()), BTreeMap::new());
        for set in &sets {
            let mut numbers = Vec::with_capacity(set.len());
            for one in set {
                let number = match known.get(&Rc::as_ptr(one)) {
                    Some(number) => *number,
                    None => self.group_number(one, items, &mut grouping)?,
                };
                known.insert(Rc::as_ptr(one), number);
                if !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
            numbered.push(numbers);
        }
        if has_sets {
            grouping.sets = Some(numbered);
        }
        Ok(grouping)
    }

    /// The number of the group that an expression is.
    fn group_number(
        &mut self,
        written: &Expr,
        items: &[SelectItem],
        grouping: &mut Grouping,
    ) -> Result<u16, SqlError> {
        let meant = self.meant(written, items)?;
        if let Some((_, number)) = grouping.written.iter().find(|(known, _)| *known == meant) {
            return Ok(*number);
        }
        let bound = self.expression(&meant)?;
        let known = grouping.groups.iter().position(|known| is_same(&known.expression, &bound.expression));
        let number = known.unwrap_or_else(|| {
            grouping.groups.push(bound);
            grouping.groups.len() - 1
        }) as u16;
        numbering::check_count(grouping.groups.len(), "a query", "groups")?;
        grouping.written.push((meant, number));
        Ok(number)
    }

    /// `GROUPING()`: which of some groups the row is not grouped by, as bits.
    pub(super) fn grouping_question(&mut self, written: &[Expr]) -> Result<Bound, SqlError> {
        if written.len() > QUESTION_MAX {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new(SqlState::TOO_MANY_ARGUMENTS, message));
        }
        let level = self.levels.last_mut();
        if let Some(level) = &level
            && level.grouping.is_none()
            && !level.clause.is_empty()
        {
            let message = format!("grouping operations are not allowed in {}", level.clause);
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
        }
        let Some((level, grouping)) = level.and_then(|level| {
            let grouping = level.grouping.take()?;
            Some((level, grouping))
        }) else {
            return Err(no_group());
        };
        let was_in_aggregate = std::mem::take(&mut level.in_aggregate);
        // Its arguments are over ungrouped rows.
        let asked = self.asked_groups(written, &grouping);
        let level = self.level();
        level.in_aggregate = was_in_aggregate;
        let grouping = level.grouping.insert(grouping);
        let asked = asked?;
        if grouping.sets.is_none() {
            return Ok(Bound { expression: Expression::Constant(Datum::Int(0)), data_type: SqlType::INT4 });
        }
        let known = grouping.questions.iter().position(|known| *known == asked);
        let place = known.unwrap_or_else(|| {
            grouping.questions.push(asked);
            grouping.questions.len() - 1
        });
        let column = numbering::question(place)?;
        Ok(Bound { expression: Expression::Column(column), data_type: SqlType::INT4 })
    }

    fn asked_groups(&mut self, written: &[Expr], grouping: &Grouping) -> Result<Vec<u16>, SqlError> {
        let mut asked = Vec::with_capacity(written.len());
        for one in written {
            let bound = self.expression(one)?.expression;
            let group = grouping.groups.iter().position(|group| is_same(&group.expression, &bound));
            asked.push(group.ok_or_else(no_group)? as u16);
        }
        Ok(asked)
    }
}

/// The ways to group that an item of `GROUP BY` stands for; `None` if it is but an expression.
fn sets_of(written: &Expr) -> Result<Option<Sets>, SqlError> {
    match written {
        Expr::GroupingSets(sets) => {
            let mut all = Sets::new();
            for set in sets {
                match set.as_slice() {
                    [one] => match sets_of(one)? {
                        Some(more) => all.extend(more),
                        None => all.push(row_of(one)),
                    },
                    several => all.push(shared(several)),
                }
                check_sets(all.len())?;
            }
            Ok(Some(all))
        }
        Expr::Rollup(elements) => rolled_up(&all_shared(elements)).map(Some),
        Expr::Cube(elements) => cubed(&all_shared(elements)).map(Some),
        // Within GROUPING SETS they look like calls.
        Expr::Function(function) => of_call(function),
        Expr::Tuple(list) if list.is_empty() => Ok(Some(vec![Vec::new()])),
        _ => Ok(None),
    }
}

fn of_call(function: &Function) -> Result<Option<Sets>, SqlError> {
    let name = last_name(&function.name)?;
    if !matches!(name.as_str(), "rollup" | "cube") {
        return Ok(None);
    }
    let elements: Sets = arguments_of(function)?.iter().map(row_of).collect();
    if name == "cube" { cubed(&elements).map(Some) } else { rolled_up(&elements).map(Some) }
}

fn rolled_up(elements: &Sets) -> Result<Sets, SqlError> {
    numbering::check_count(elements.iter().map(Vec::len).sum(), "ROLLUP", "expressions")?;
    Ok((0..=elements.len()).rev().map(|count| elements[..count].concat()).collect())
}

fn cubed(elements: &Sets) -> Result<Sets, SqlError> {
    if elements.len() > CUBE_MAX {
        let message = format!("CUBE is limited to {CUBE_MAX} elements");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    numbering::check_count(elements.iter().map(Vec::len).sum(), "CUBE", "expressions")?;
    let chosen = |bits: usize| {
        let of = elements.iter().enumerate().filter(move |(place, _)| bits >> place & 1 == 1);
        of.flat_map(|(_, element)| element.clone()).collect()
    };
    Ok((0..1 << elements.len()).rev().map(chosen).collect())
}

/// The expressions of a row, or the one that it is.
fn row_of(written: &Expr) -> Set {
    match written {
        Expr::Tuple(list) => shared(list),
        Expr::Nested(inner) => vec![Rc::new((**inner).clone())],
        other => vec![Rc::new(other.clone())],
    }
}

fn shared(list: &[Expr]) -> Set {
    list.iter().cloned().map(Rc::new).collect()
}

fn all_shared(lists: &[Vec<Expr>]) -> Sets {
    lists.iter().map(|list| shared(list)).collect()
}

fn check_sets(count: usize) -> Result<(), SqlError> {
    if count <= SETS_MAX {
        return Ok(());
    }
    let message = format!("too many grouping sets present (maximum {SETS_MAX})");
    Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message))
}

fn no_group() -> SqlError {
    let message = "arguments to GROUPING must be grouping expressions of the associated query level";
    SqlError::new(SqlState::GROUPING_ERROR, message)
}
