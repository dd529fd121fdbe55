//! What is kept of a row, in an index or a generated column, is the same whoever computes it and whenever: else an entry could not be found
//! again.

use super::{Binder, Surroundings};
use crate::catalog::{Catalog, KeyPart, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Expression, is_same};
use crate::types::operators::Resolved;
use crate::types::{BaseType, SqlType, cast, functions};

/// Two years, in microseconds.
const LATER: i64 = 2 * 365 * 24 * 3600 * 1_000_000;

impl Binder<'_> {
    /// Fails unless what the indexes of a table compute depends on nothing but the row. Moments in it must have been written out.
    pub(super) fn check_indexes(&mut self, name: &str, table: &Table) -> Result<(), SqlError> {
        for index in &table.indexes {
            for part in &index.parts {
                if let KeyPart::Expression(text) = part
                    && !self.is_of_row(|binder| Ok(binder.index_expression(name, table, text)?.expression))?
                {
                    return Err(not_immutable("expression"));
                }
            }
            if let Some(text) = &index.predicate
                && !self.is_of_row(|binder| binder.index_predicate(name, table, text))?
            {
                return Err(not_immutable("predicate"));
            }
        }
        Ok(())
    }

    /// Whether a value depends on nothing but its row.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub(super) fn is_of_row(
        &mut self,
        bind: impl Fn(&mut Binder<'_>) -> Result<Expression, SqlError>,
    ) -> Result<bool, SqlError> {
        let here = bind(self)?;
        // Functions of the session and of the catalog become what they give. Elsewhere that is something else.
        let elsewhere = Surroundings {
            now: self.surroundings.now.wrapping_add(LATER),
            zone: self.surroundings.zone,
            ..Surroundings::default()
        };
        let is_same =
            bind(&mut Binder::new(&Catalog::new(), &elsewhere)).is_ok_and(|other| is_same(&other, &here));
        Ok(is_same && is_immutable(&here))
    }
}

fn not_immutable(what: &str) -> SqlError {
    let message = format!("functions in index {what} must be marked IMMUTABLE");
    let hint =
        "It must depend on the row alone, and neither on the session, nor on its time zone, nor on the time.";
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message).with_hint(hint)
}

/// Whether an expression has the same value for a row whenever it is computed, in whatever time zone.
pub fn is_immutable(expression: &Expression) -> bool {
    let mut is_immutable = true;
    expression.visit(0, &mut |part, _| {
        is_immutable &= match part {
            Expression::Call { function, .. } => functions::is_immutable(*function),
            Expression::Cast { from, to, .. } => cast::is_immutable(*from, *to),
            Expression::Binary { resolved, .. }
            | Expression::InList { resolved, .. }
            | Expression::Quantified { resolved, .. } => !mixes_moments(resolved),
            Expression::Subquery { .. }
            | Expression::Answer(_)
            | Expression::Parameter(_)
            | Expression::Outer { .. } => false,
            other => !other.is_volatile_itself(),
        };
    });
    is_immutable
}

/// Whether an operator takes a moment for a local time, or counts its days.
fn mixes_moments(resolved: &Resolved) -> bool {
    let is_moment = |data_type: SqlType| data_type.base == BaseType::TimestampTz;
    (is_moment(resolved.left) || is_moment(resolved.right)) && resolved.left.base != resolved.right.base
}
