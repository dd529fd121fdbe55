//! Values of expressions.

use std::borrow::Cow;
use std::rc::Rc;

use super::among::{COMPARED_MAX, Fixed, Membership, is_among, quantified};
use super::random::random;
use super::work;
use super::{Failure, Row, Run, fill, malformed, none_drawn};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node, SubqueryKind};
use crate::state::Signal;
use crate::types::operators::{self, BinaryOperator, Resolved};
use crate::types::{Datum, SqlType, cast, functions};

/// Whether a condition holds: null is no.
pub(super) fn holds(value: &Datum) -> bool {
    matches!(value, Datum::Bool(true))
}

/// What an expression may ask for beyond its row.
pub(super) trait Environment {
    fn inputs(&self) -> &super::Inputs;
    /// The values of each [`Expression::Let`] around, the nearest last.
    fn locals(&mut self) -> &mut Vec<Row>;
    /// Counts work; see [`WORK_MAX`](work::WORK_MAX).
    fn work(&mut self, work: u64) -> Result<(), Failure>;
    /// Counts bytes that are held until they are let go; see [`Run::hold`].
    fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        let _ = bytes;
        Ok(())
    }
    /// See [`Run::let_go`].
    fn let_go(&mut self, bytes: usize) {
        let _ = bytes;
    }
    fn outer(&self, depth: u16, column: u16) -> Result<Datum, Failure>;
    fn subquery(&mut self, query: &Node, correlated: bool, row: &[Datum]) -> Result<Rc<Vec<Row>>, Failure>;
    /// Whether a value is among those of a subquery that depends on nothing, whose rows these are.
    fn is_member(
        &mut self,
        value: Datum,
        resolved: &Resolved,
        query: &Node,
        rows: &[Row],
    ) -> Result<Datum, Failure>;
    /// Whether a value is among others that are the same for all rows; `None` if that is to be found out one by one.
    fn is_among_fixed(&mut self, value: &Datum, others: Fixed<'_>) -> Result<Option<Datum>, Failure> {
        let _ = (value, others);
        Ok(None)
    }
    fn next_value(&mut self, sequence: u16) -> Result<i64, Failure>;
    fn set_value(&mut self, sequence: u16, value: i64, called: bool) -> Result<(), Failure>;
    /// How many random values were taken before this one, which is counted.
    fn next_random(&mut self) -> u64;
    /// Notes what the session is to do to another one.
    fn signal(&mut self, process: i32, signal: Signal) -> Result<(), Failure>;

    fn value(&mut self, expression: &Expression, row: &[Datum]) -> Result<Datum, Failure> {
        self.work(1)?;
        match expression {
            Expression::Constant(value) => self.copy_of(value),
            Expression::Parameter(number) => {
                let value = self.inputs().parameters.get(usize::from(*number)).cloned();
                self.copied(value.ok_or_else(|| malformed("parameter"))?)
            }
            Expression::Column(number) => {
                self.copy_of(row.get(usize::from(*number)).ok_or_else(|| malformed("column"))?)
            }
            Expression::Outer { depth, column } => {
                let value = self.outer(*depth, *column)?;
                self.copied(value)
            }
            Expression::Binary { operator, resolved, left, right } => {
                let left = self.operand(left, row)?;
                let right = self.operand(right, row)?;
                if let Some(holds) = operators::compare_short(*operator, &left, &right) {
                    self.work(1)?;
                    return Ok(Datum::Bool(holds));
                }
                let value = self.operated(*operator, resolved, &left, &right)?;
                self.made(value)
            }
            Expression::Unary { operator, resolved, operand } => {
                let operand = self.operand(operand, row)?;
                self.copied(operators::unary(*operator, &operand, resolved)?)
            }
            Expression::And(all) => self.conjunction(all, row, false),
            Expression::Or(any) => self.conjunction(any, row, true),
            Expression::Not(operand) => Ok(match *self.operand(operand, row)? {
                Datum::Bool(value) => Datum::Bool(!value),
                _ => Datum::Null,
            }),
            Expression::IsNull { operand, negated } => {
                Ok(Datum::Bool(self.operand(operand, row)?.is_null() != *negated))
            }
            Expression::IsBoolean { operand, value, negated } => {
                Ok(Datum::Bool((*self.operand(operand, row)? == Datum::Bool(*value)) != *negated))
            }
            Expression::NextValue(sequence) => Ok(Datum::Int(self.next_value(*sequence)?)),
            Expression::Random(kind) => {
                let number = self.next_random();
                Ok(random(*kind, self.inputs().seed, number))
            }
            Expression::Answer(number) => {
                let answer = self.inputs().answers.get(usize::from(*number));
                let unknown = || SqlError::unsupported("a function of the session in such a statement");
                Ok(answer.cloned().ok_or_else(unknown)?)
            }
            other => self.composed(other, row),
        }
    }

    /// The value of an expression for who only looks at it: where it is in the row or in the plan, it need not be copied.
    fn operand<'v>(
        &mut self,
        expression: &'v Expression,
        row: &'v [Datum],
    ) -> Result<Cow<'v, Datum>, Failure> {
        let value = match expression {
            Expression::Constant(value) => value,
            Expression::Column(number) => row.get(usize::from(*number)).ok_or_else(|| malformed("column"))?,
            other => return Ok(Cow::Owned(self.value(other, row)?)),
        };
        self.work(1)?;
        Ok(Cow::Borrowed(value))
    }

    /// A copy of a value, which is work if it is long.
    fn copy_of(&mut self, value: &Datum) -> Result<Datum, Failure> {
        self.copied(value.clone())
    }

    /// A value that was copied.
    fn copied(&mut self, value: Datum) -> Result<Datum, Failure> {
        match work::work_of_copy(&value) {
            0 => {}
            work => self.work(work)?,
        }
        Ok(value)
    }

    /// A value that was made, unless it is too long.
    fn made(&mut self, value: Datum) -> Result<Datum, Failure> {
        self.copied(work::limited(value)?)
    }

    /// Whether a session that is signalled is there.
    fn signalled(
        &mut self,
        process: &Expression,
        processes: &Expression,
        signal: Signal,
        row: &[Datum],
    ) -> Result<Datum, Failure> {
        let (process, processes) = (self.value(process, row)?, self.value(processes, row)?);
        let (Datum::Int(number), Datum::Array(known)) = (&process, &processes) else {
            return Ok(Datum::Null);
        };
        let is_there = known.contains(&process);
        if let (true, Ok(number)) = (is_there, i32::try_from(*number)) {
            self.signal(number, signal)?;
        }
        Ok(Datum::Bool(is_there))
    }

    /// Expressions that are less usual.
    fn composed(&mut self, expression: &Expression, row: &[Datum]) -> Result<Datum, Failure> {
        match expression {
            Expression::Signal { process, processes, signal } => {
                self.signalled(process, processes, *signal, row)
            }
            Expression::Cast { operand, from, to } => {
                let operand = self.value(operand, row)?;
                self.cast(operand, *from, *to)
            }
            Expression::Coerce { operand, to, explicit } => {
                let operand = self.value(operand, row)?;
                self.made(cast::coerce_length(operand, *to, *explicit)?)
            }
            Expression::Call { function, arguments } => {
                let arguments = self.values(arguments, row)?;
                self.called(*function, &arguments)
            }
            Expression::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if holds(&*self.operand(condition, row)?) {
                        return self.value(result, row);
                    }
                }
                otherwise.as_ref().map_or(Ok(Datum::Null), |otherwise| self.value(otherwise, row))
            }
            Expression::Coalesce(arguments) => {
                for argument in arguments {
                    let value = self.value(argument, row)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Expression::InList { operand, list, resolved } => self.in_list(operand, list, resolved, row),
            Expression::Quantified { .. } => self.quantified(expression, row),
            Expression::Array(elements) => {
                self.values(elements, row).and_then(|all| self.made(Datum::Array(all)))
            }
            Expression::Element { array, index } => {
                let (array, index) = (self.value(array, row)?, self.value(index, row)?);
                self.copied(element(&array, &index))
            }
            Expression::SetValue { sequence, value, called } => {
                let (value, called) = (self.value(value, row)?, self.value(called, row)?);
                let (Datum::Int(number), Datum::Bool(called)) = (&value, called) else {
                    return Ok(Datum::Null);
                };
                self.set_value(*sequence, *number, called)?;
                Ok(value)
            }
            Expression::Let { values, body } => {
                let values = self.values(values, row)?;
                self.locals().push(values);
                let value = self.value(body, row);
                self.locals().pop();
                value
            }
            Expression::Local(number) => {
                let value = self.locals().last().and_then(|values| values.get(usize::from(*number))).cloned();
                self.copied(value.ok_or_else(|| malformed("local value"))?)
            }
            Expression::Subquery { .. } => self.of_subquery(expression, row),
            _ => Err(malformed("expression").into()),
        }
    }

    /// What a query within stands for.
    fn of_subquery(&mut self, expression: &Expression, row: &[Datum]) -> Result<Datum, Failure> {
        let Expression::Subquery { kind, query, correlated } = expression else {
            return Err(malformed("expression").into());
        };
        let rows = self.subquery(query, *correlated, row)?;
        match kind {
            SubqueryKind::In { operand, resolved } if !correlated => {
                let operand = self.value(operand, row)?;
                self.is_member(operand, resolved, query, &rows)
            }
            kind => self.of_rows(kind, &rows, row),
        }
    }

    /// A value made one of another type.
    fn cast(&mut self, value: Datum, from: SqlType, to: SqlType) -> Result<Datum, Failure> {
        self.work(functions::work_of_cast(&value, to))?;
        let held = functions::memory_of_cast(&value, to);
        if held > 0 {
            self.hold(held)?;
        }
        let value = cast::cast(value, from, to, self.inputs().zone)?;
        if held > 0 {
            self.let_go(held);
        }
        self.made(value)
    }

    /// What a function gives.
    fn called(&mut self, function: functions::FunctionId, arguments: &[Datum]) -> Result<Datum, Failure> {
        let context = functions::CallContext { now: self.inputs().now, zone: self.inputs().zone };
        self.work(functions::work_of_call(function, arguments))?;
        let held = functions::memory_of_call(function, arguments);
        if held > 0 {
            self.hold(held)?;
        }
        let value = functions::call(function, arguments, &context)?;
        if held > 0 {
            self.let_go(held);
        }
        if functions::is_search(function) {
            self.work(operators::take_work_of_compiling())?;
        }
        self.made(value)
    }

    /// [`Expression::Quantified`].
    fn quantified(&mut self, expression: &Expression, row: &[Datum]) -> Result<Datum, Failure> {
        let Expression::Quantified { operator, resolved, left, array, all } = expression else {
            return Err(malformed("expression").into());
        };
        let left = self.value(left, row)?;
        if *operator == BinaryOperator::Equal
            && !all
            && let Some(fixed) = Fixed::array(array, resolved)
            && let Some(found) = self.is_among_fixed(&left, fixed)?
        {
            return Ok(found);
        }
        let array = self.value(array, row)?;
        let mut operate =
            |resolved: &_, left: &_, element: &_| self.operated(*operator, resolved, left, element);
        quantified(*operator, resolved, &left, &array, *all, &mut operate)
    }

    /// What an operator makes of two values.
    fn operated(
        &mut self,
        operator: BinaryOperator,
        resolved: &Resolved,
        left: &Datum,
        right: &Datum,
    ) -> Result<Datum, Failure> {
        self.work(functions::work_of_operator(operator, left, right))?;
        let value = operators::binary(operator, left, right, resolved, self.inputs().zone)?;
        if operator.is_regular() {
            self.work(operators::take_work_of_compiling())?;
        }
        Ok(value)
    }

    fn in_list(
        &mut self,
        operand: &Expression,
        list: &[Expression],
        resolved: &Resolved,
        row: &[Datum],
    ) -> Result<Datum, Failure> {
        let operand = self.value(operand, row)?;
        if let Some(fixed) = Fixed::list(list, resolved)
            && let Some(found) = self.is_among_fixed(&operand, fixed)?
        {
            return Ok(found);
        }
        let mut found = Membership::new(operand, resolved);
        for other in list {
            let other = self.value(other, row)?;
            self.work(work::work_of_comparing([&other]))?;
            if found.try_next(&other)? {
                break;
            }
        }
        Ok(found.result())
    }

    fn values(&mut self, expressions: &[Expression], row: &[Datum]) -> Result<Vec<Datum>, Failure> {
        let mut values = Vec::new();
        self.values_into(expressions, row, &mut values)?;
        Ok(values)
    }

    /// The values of expressions over a row, in place of others.
    fn values_into(
        &mut self,
        expressions: &[Expression],
        row: &[Datum],
        values: &mut Row,
    ) -> Result<(), Failure> {
        let mut bytes = 0;
        values.clear();
        values.reserve(expressions.len());
        for expression in expressions {
            let value = self.value(expression, row)?;
            bytes += functions::length(&value);
            if bytes > work::VALUES_BYTES_MAX {
                return Err(work::too_long().into());
            }
            values.push(value);
        }
        Ok(())
    }

    /// `AND` or, if `decisive` is true, `OR`: decided by the first such value, else null if one was null.
    fn conjunction(
        &mut self,
        operands: &[Expression],
        row: &[Datum],
        decisive: bool,
    ) -> Result<Datum, Failure> {
        let mut null = false;
        for operand in operands {
            match *self.operand(operand, row)? {
                Datum::Bool(value) if value == decisive => return Ok(Datum::Bool(decisive)),
                Datum::Bool(_) => {}
                _ => null = true,
            }
        }
        Ok(if null { Datum::Null } else { Datum::Bool(!decisive) })
    }

    /// What a subquery with these rows stands for.
    fn of_rows(&mut self, kind: &SubqueryKind, rows: &[Row], row: &[Datum]) -> Result<Datum, Failure> {
        let first = |row: &Row| row.first().cloned().unwrap_or(Datum::Null);
        match kind {
            SubqueryKind::Exists => Ok(Datum::Bool(!rows.is_empty())),
            SubqueryKind::Array => {
                let bytes: u64 = rows.iter().filter_map(|row| row.first()).map(functions::length).sum();
                if bytes > work::VALUES_BYTES_MAX {
                    return Err(work::too_long().into());
                }
                self.made(Datum::Array(rows.iter().map(first).collect()))
            }
            SubqueryKind::Scalar if rows.len() > 1 => Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            )
            .into()),
            SubqueryKind::Scalar => self.copied(rows.first().map_or(Datum::Null, first)),
            SubqueryKind::In { operand, resolved } => {
                let operand = self.value(operand, row)?;
                self.work(work::work_of_comparing(rows.iter().flatten()))?;
                is_among(operand, resolved, rows)
            }
        }
    }
}

fn element(array: &Datum, index: &Datum) -> Datum {
    let (Datum::Array(elements), Datum::Int(index)) = (array, index) else { return Datum::Null };
    let place = usize::try_from(*index).ok().and_then(|index| index.checked_sub(1));
    place.and_then(|place| elements.get(place)).cloned().unwrap_or(Datum::Null)
}

impl Environment for Run<'_, '_> {
    fn inputs(&self) -> &super::Inputs {
        self.inputs
    }

    fn locals(&mut self) -> &mut Vec<Row> {
        &mut self.locals
    }

    fn work(&mut self, work: u64) -> Result<(), Failure> {
        Ok(Run::work(self, work)?)
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        Ok(Run::hold(self, bytes)?)
    }

    fn let_go(&mut self, bytes: usize) {
        Run::let_go(self, bytes);
    }

    fn outer(&self, depth: u16, column: u16) -> Result<Datum, Failure> {
        let place = self.outer.len().checked_sub(usize::from(depth));
        let value = place.and_then(|place| self.outer.get(place)?.get(usize::from(column)));
        Ok(value.cloned().ok_or_else(|| malformed("outer column"))?)
    }

    fn subquery(&mut self, query: &Node, correlated: bool, row: &[Datum]) -> Result<Rc<Vec<Row>>, Failure> {
        let place = std::ptr::from_ref(query).addr();
        if !correlated && let Some(rows) = self.kept.get(&place) {
            return Ok(Rc::clone(rows));
        }
        let (rows, held) = if correlated {
            Run::work(self, work::work_of_copies(row))?;
            self.outer.push(row.to_vec());
            let outcome = self.holding(|run| run.query(query))?;
            self.outer.pop();
            outcome
        } else {
            let around = std::mem::take(&mut self.outer);
            let outcome = self.holding(|run| run.query(query));
            self.outer = around;
            outcome?
        };
        let rows = Rc::new(rows);
        self.let_go(held);
        if !correlated {
            self.keep(held)?;
            self.kept.insert(place, Rc::clone(&rows));
        }
        Ok(rows)
    }

    fn is_member(
        &mut self,
        value: Datum,
        resolved: &Resolved,
        query: &Node,
        rows: &[Row],
    ) -> Result<Datum, Failure> {
        self.work(work::work_of_comparing([&value]))?;
        if rows.len() <= COMPARED_MAX {
            return is_among(value, resolved, rows);
        }
        let place = std::ptr::from_ref(query).addr();
        let values = rows.iter().map(|row| row.first().unwrap_or(&Datum::Null));
        Ok(self.members_of(place, values)?.has(&value))
    }

    fn is_among_fixed(&mut self, value: &Datum, others: Fixed<'_>) -> Result<Option<Datum>, Failure> {
        let place = match others {
            Fixed::List(list) => list.as_ptr().addr(),
            Fixed::Array(array) => std::ptr::from_ref(array).addr(),
        };
        self.work(work::work_of_comparing([value]))?;
        if let Some(members) = self.members.get(&place) {
            return Ok(Some(members.has(value)));
        }
        let values = match others {
            Fixed::List(list) => self.values(list, &[])?,
            Fixed::Array(array) => match self.value(array, &[])? {
                Datum::Array(elements) => elements,
                _ => return Ok(None),
            },
        };
        if values.len() <= COMPARED_MAX {
            return Ok(None);
        }
        Ok(Some(self.members_of(place, values.iter())?.has(value)))
    }

    fn next_value(&mut self, sequence: u16) -> Result<i64, Failure> {
        if let Some(source) = &mut self.source {
            let shape =
                self.plan.sequences.get(usize::from(sequence)).ok_or_else(|| malformed("sequence"))?;
            let drawn = source.draw(shape)?;
            self.noted.note_drawn(shape.storage, drawn);
            return Ok(drawn);
        }
        match &self.inputs.drawn {
            None => self.draw(sequence),
            Some(drawn) => {
                let value = drawn.get(self.drawn).copied().ok_or_else(none_drawn)?;
                self.drawn += 1;
                Ok(value)
            }
        }
    }

    fn set_value(&mut self, sequence: u16, value: i64, called: bool) -> Result<(), Failure> {
        if let Some(source) = &mut self.source {
            let shape =
                self.plan.sequences.get(usize::from(sequence)).ok_or_else(|| malformed("sequence"))?;
            return Ok(source.set(shape, value, called)?);
        }
        match self.inputs.drawn {
            None => self.restart(sequence, value, called),
            // Where numbers were drawn before, the sequence was set before.
            Some(_) => Ok(fill::check_bounds(self.sequence(sequence)?, value)?),
        }
    }

    fn next_random(&mut self) -> u64 {
        self.randoms += 1;
        self.randoms
    }

    fn signal(&mut self, process: i32, signal: Signal) -> Result<(), Failure> {
        // There are no more than there are sessions, each of which is noted once.
        let signal = (process, signal);
        if !self.noted.signals.contains(&signal) {
            self.noted.signals.push(signal);
        }
        Ok(())
    }
}

impl Run<'_, '_> {
    /// The value of an expression over a row.
    pub(super) fn value(&mut self, expression: &Expression, row: &[Datum]) -> Result<Datum, Failure> {
        Environment::value(self, expression, row)
    }

    /// The values of expressions over a row.
    pub(super) fn values(&mut self, expressions: &[Expression], row: &[Datum]) -> Result<Row, Failure> {
        Environment::values(self, expressions, row)
    }

    /// The values of expressions over a row, in place of others.
    pub(super) fn values_into(
        &mut self,
        expressions: &[Expression],
        row: &[Datum],
        values: &mut Row,
    ) -> Result<(), Failure> {
        Environment::values_into(self, expressions, row, values)
    }

    /// The value of an expression over a row, where it is.
    pub(super) fn operand<'v>(
        &mut self,
        expression: &'v Expression,
        row: &'v [Datum],
    ) -> Result<Cow<'v, Datum>, Failure> {
        Environment::operand(self, expression, row)
    }
}
