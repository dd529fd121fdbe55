//! Calls of the database's own procedures: `CALL name(…)`, `SELECT name(…)` and `SELECT * FROM name(…)`, each a statement by itself.

use std::sync::Arc;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, ObjectName, Query,
    Select, SelectItem, SetExpr, TableFactor,
};

use super::Binder;
use super::names::{name_of, parts_of};
use super::scope::Field;
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, CallForm, Expression};
use crate::routines::{Routine, RoutineValue};
use crate::types::{Datum, SqlType};

/// What a call becomes, with the columns of its result.
type Call = (Action, Option<Vec<Field>>);

impl Binder<'_> {
    /// `CALL name(…)`.
    pub(super) fn call_statement(&mut self, function: &Function) -> Result<Call, SqlError> {
        match self.routine(&function.name)? {
            Some(routine) => self.call_of(&routine, &arguments(function)?, CallForm::Statement),
            None => {
                let message = format!("procedure {} does not exist", function.name);
                Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
            }
        }
    }

    /// A query that is a call of a procedure; `None` for any other.
    pub(super) fn call_in_query(&mut self, query: &Query) -> Result<Option<Call>, SqlError> {
        let SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
        let [item] = select.projection.as_slice() else { return Ok(None) };
        let bare = query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && select.selection.is_none()
            && select.distinct.is_none();
        if !bare {
            return Ok(None);
        }
        match item {
            SelectItem::UnnamedExpr(Expr::Function(function))
            | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. }
                if select.from.is_empty() =>
            {
                let Some(routine) = self.routine(&function.name)? else { return Ok(None) };
                self.call_of(&routine, &arguments(function)?, CallForm::Value).map(Some)
            }
            SelectItem::Wildcard(_) => self.call_in_from(select),
            _ => Ok(None),
        }
    }

    fn call_in_from(&mut self, select: &Select) -> Result<Option<Call>, SqlError> {
        let [table] = select.from.as_slice() else { return Ok(None) };
        let (name, written) = match &table.relation {
            TableFactor::Table { name, args: Some(written), .. } => (name, &written.args),
            TableFactor::Function { name, args, .. } => (name, args),
            _ => return Ok(None),
        };
        if !table.joins.is_empty() {
            return Ok(None);
        }
        let Some(routine) = self.routine(name)? else { return Ok(None) };
        let written: Vec<&FunctionArg> = written.iter().collect();
        self.call_of(&routine, &written, CallForm::Relation).map(Some)
    }

    /// The error of a call where none can stand, in place of the one that there is no such function; `None` if no procedure has the name.
    pub(super) fn misplaced_call(&self, name: &str) -> Option<SqlError> {
        self.surroundings.routines.has(name).then(|| {
            let error = SqlError::unsupported(format!("a call of procedure {name} as a part of a query"));
            error.with_hint(format!(
                "It stands alone: CALL {name}(…), SELECT {name}(…) or SELECT * FROM {name}(…)."
            ))
        })
    }

    fn routine(&self, name: &ObjectName) -> Result<Option<Arc<Routine>>, SqlError> {
        self.surroundings.routines.find(&parts_of(name)?.join("."))
    }

    fn call_of(
        &mut self,
        routine: &Routine,
        written: &[&FunctionArg],
        form: CallForm,
    ) -> Result<Call, SqlError> {
        let parameters = routine.parameters();
        let mut values: Vec<Option<Expression>> = vec![None; parameters.len()];
        let mut has_named = false;
        for (place, argument) in written.iter().enumerate() {
            let is_named = !matches!(argument, FunctionArg::Unnamed(_));
            if has_named && !is_named {
                let message = "positional argument cannot follow named argument";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            has_named = is_named;
            let (place, value) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(place), value),
                FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg: FunctionArgExpr::Expr(value),
                    operator: FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment,
                } => {
                    let name = name_of(name);
                    (parameters.iter().position(|parameter| parameter.name == name), value)
                }
                other => return Err(SqlError::unsupported(format!("the argument {other}"))),
            };
            let slot = place.and_then(|place| Some((parameters.get(place)?, values.get_mut(place)?)));
            let Some((parameter, slot)) = slot.filter(|(_, slot)| slot.is_none()) else {
                return Err(wrong_arguments(routine));
            };
            let value = self.expression(value)?;
            // It would be rounded, and somebody else's.
            let (given, taken) = (value.data_type, parameter.data_type);
            if given.is_numeric() && !given.is_integer() && taken.is_integer() {
                return Err(fractional(routine, parameter, given));
            }
            let value = self.assigned_to(value, parameter.data_type, &parameter.name);
            let value = value.map_err(|error| of_argument(error, routine, &parameter.name))?;
            refuse_within(&value)?;
            *slot = Some(value);
        }
        // What may be missing is null; the call tells of what may not.
        if !has_named && written.len() != parameters.len() {
            return Err(wrong_arguments(routine));
        }
        let arguments =
            values.into_iter().map(|value| value.unwrap_or(Expression::Constant(Datum::Null))).collect();
        let columns = routine.columns(form).into_iter();
        let fields: Vec<Field> = columns
            .map(|column| Field {
                name: column.name,
                data_type: column.data_type,
                origin: None,
                hidden: false,
            })
            .collect();
        let fields = if fields.is_empty() { None } else { Some(fields) };
        Ok((Action::Call { routine: routine.name.clone(), arguments, form }, fields))
    }
}

fn arguments(function: &Function) -> Result<Vec<&FunctionArg>, SqlError> {
    match &function.args {
        FunctionArguments::None => Ok(Vec::new()),
        FunctionArguments::Subquery(_) => {
            Err(SqlError::unsupported("a query as the argument of a procedure"))
        }
        FunctionArguments::List(list) => Ok(list.args.iter().collect()),
    }
}

/// The error of a value of another type than the argument's, which is no column.
fn of_argument(error: SqlError, routine: &Routine, name: &str) -> SqlError {
    let column = format!("column \"{name}\"");
    let argument = format!("argument \"{name}\" of procedure {}", routine.name);
    let message = error.message.replacen(&column, &argument, 1);
    SqlError { message, ..error }.with_hint(routine.hint())
}

/// Fails for what can only be computed where there are rows.
fn refuse_within(argument: &Expression) -> Result<(), SqlError> {
    let mut refused = None;
    argument.visit(0, &mut |part, _| match part {
        Expression::Subquery { .. } => refused = Some("a query"),
        Expression::NextValue(_) => refused = Some("nextval"),
        Expression::SetValue { .. } => refused = Some("setval"),
        _ => {}
    });
    refused.map_or(Ok(()), |what| Err(SqlError::unsupported(format!("{what} in an argument of a procedure"))))
}

/// The error of a number with a fraction where an integer is expected.
fn fractional(routine: &Routine, parameter: &RoutineValue, given: SqlType) -> SqlError {
    let message = format!(
        "argument \"{}\" of procedure {} is of type {} but expression is of type {}",
        parameter.name,
        routine.name,
        parameter.data_type.name(),
        given.name()
    );
    SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_hint(routine.hint())
}

fn wrong_arguments(routine: &Routine) -> SqlError {
    let message = format!("procedure {} does not take these arguments", routine.name);
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(routine.hint())
}
