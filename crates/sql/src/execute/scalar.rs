//! Values of expressions that need no row and no database.

use std::cell::Cell;
use std::rc::Rc;

use super::evaluate::Environment;
use super::work::{self, WORK_BEFORE_MAX, WORK_MAX};
use super::{Failure, Row, malformed};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, Node};
use crate::state::Signal;
use crate::types::Datum;
use crate::types::operators::{self, Resolved};

/// The value of an expression that needs no row and no database, with the statement's inputs; `None` if it needs more or fails.
///
/// What fails here fails again when the statement runs, where the error is told.
pub fn evaluate(expression: &Expression, inputs: &super::Inputs) -> Option<Datum> {
    evaluate_within(expression, inputs, &mut 0, &Cell::new(WORK_BEFORE_MAX))
}

/// The same for one of several expressions of a statement. `randoms` counts the random values that they have taken, and `left` is the work
/// that all of them may do yet.
pub(super) fn evaluate_within(
    expression: &Expression,
    inputs: &super::Inputs,
    randoms: &mut u64,
    left: &Cell<u64>,
) -> Option<Datum> {
    operators::begin_run();
    within(inputs, randoms, left, |scalar| scalar.value(expression, &[]))
}

/// What can be computed with the inputs alone; `None` if it needs more or fails.
pub(super) fn within<T>(
    inputs: &super::Inputs,
    randoms: &mut u64,
    left: &Cell<u64>,
    compute: impl FnOnce(&mut Scalar<'_, '_>) -> Result<T, Failure>,
) -> Option<T> {
    let most = left.get().min(WORK_BEFORE_MAX);
    let mut scalar = Scalar { inputs, locals: Vec::new(), randoms, draw: None, left: Cell::new(most) };
    let value = compute(&mut scalar).ok();
    left.set(left.get() - (most - scalar.left.get()));
    value
}

/// The same as [`evaluate_within`], with the error if it fails. `draw` gives numbers of the statement's sequences.
///
/// # Errors
/// What is wrong with the values; that it needs a row or the database.
pub fn try_evaluate(
    expression: &Expression,
    inputs: &super::Inputs,
    randoms: &mut u64,
    draw: &mut dyn FnMut(u16) -> Result<i64, SqlError>,
) -> Result<Datum, SqlError> {
    operators::begin_run();
    let mut scalar =
        Scalar { inputs, locals: Vec::new(), randoms, draw: Some(draw), left: Cell::new(WORK_MAX) };
    scalar.value(expression, &[]).map_err(|failure| match failure {
        Failure::Sql(error) => error,
        Failure::Stop(stop) => SqlError::new(SqlState::INTERNAL_ERROR, format!("{stop:?}")),
    })
}

/// An environment with nothing but the inputs.
pub(super) struct Scalar<'a, 'd> {
    inputs: &'a super::Inputs,
    locals: Vec<Row>,
    randoms: &'a mut u64,
    draw: Option<&'d mut dyn FnMut(u16) -> Result<i64, SqlError>>,
    left: Cell<u64>,
}

impl Environment for Scalar<'_, '_> {
    fn inputs(&self) -> &super::Inputs {
        self.inputs
    }

    fn locals(&mut self) -> &mut Vec<Row> {
        &mut self.locals
    }

    fn work(&mut self, work: u64) -> Result<(), Failure> {
        Ok(work::take(&self.left, work)?)
    }

    fn outer(&self, _depth: u16, _column: u16) -> Result<Datum, Failure> {
        Err(malformed("outer row").into())
    }

    fn subquery(&mut self, _: &Node, _: bool, _: &[Datum]) -> Result<Rc<Vec<Row>>, Failure> {
        Err(malformed("rows").into())
    }

    fn is_member(&mut self, _: Datum, _: &Resolved, _: &Node, _: &[Row]) -> Result<Datum, Failure> {
        Err(malformed("rows").into())
    }

    fn next_value(&mut self, sequence: u16) -> Result<i64, Failure> {
        match &mut self.draw {
            Some(draw) => Ok(draw(sequence)?),
            None => Err(malformed("sequence").into()),
        }
    }

    fn set_value(&mut self, _: u16, _: i64, _: bool) -> Result<(), Failure> {
        Err(malformed("sequence").into())
    }

    fn next_random(&mut self) -> u64 {
        *self.randoms += 1;
        *self.randoms
    }

    fn signal(&mut self, _: i32, _: Signal) -> Result<(), Failure> {
        Err(SqlError::unsupported("pg_cancel_backend() and pg_terminate_backend() in such a place").into())
    }
}
