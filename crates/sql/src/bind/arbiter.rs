//! In which unique index an insertion may conflict, as `ON CONFLICT` says it.

use sqlparser::ast::{Expr, Ident};

use super::Binder;
use super::names::name_of;
use super::partial::has_all;
use super::path::{conjuncts, place_of};
use crate::catalog::Table;
use crate::error::{SqlError, SqlState};
use crate::plan::{ConflictTarget, Expression, IndexShape};
use crate::syntax::conflicting_expression;

impl Binder<'_> {
    /// What is unique in some columns and expressions, among the rows that fulfil a condition if there is one.
    pub(super) fn arbiter(
        &mut self,
        (name, table): (&str, &Table),
        number: u16,
        written: &[Ident],
        predicate: Option<&Expr>,
    ) -> Result<ConflictTarget, SqlError> {
        let mut places = Vec::with_capacity(written.len());
        for element in written {
            places.push(self.conflicting(name, table, number, element)?);
        }
        let mut conditions = Vec::new();
        if let Some(predicate) = predicate {
            let bound = self.over_rows(name, table, |binder| binder.condition(predicate, "WHERE"))?;
            conjuncts(bound, &mut conditions);
        }
        let conditions: Vec<&Expression> = conditions.iter().collect();
        let shape = self.shape_of(number);
        let is_same = |columns: &[u16]| {
            columns.iter().all(|column| places.contains(&Some(*column)))
                && places.iter().all(|place| place.is_some_and(|place| columns.contains(&place)))
        };
        if !shape.key.is_empty() && is_same(&shape.key) {
            return Ok(ConflictTarget::Key);
        }
        let fits =
            |index: &IndexShape| index.unique && has_all(index, &conditions) && is_same(&index.columns);
        let mut found = (0..).zip(&shape.indexes).filter(|(_, index)| fits(index));
        let Some((first, index)) = found.next() else { return Err(no_arbiter()) };
        // One of all rows has the conflicts of the others, too.
        let of_all = std::iter::once((first, index)).chain(found.clone());
        let of_all = of_all.into_iter().find(|(_, index)| index.predicate.is_none());
        if of_all.is_none() && found.any(|(_, other)| other.predicate != index.predicate) {
            let what = "ON CONFLICT where several partial indexes with other conditions are meant";
            return Err(SqlError::unsupported(what).with_hint("Repeat the condition of one of them."));
        }
        Ok(ConflictTarget::Index(of_all.map_or(first, |(number, _)| number)))
    }

    /// The number of the column or computed value in which there may be a conflict; `None` if no index computes such a value.
    fn conflicting(
        &mut self,
        name: &str,
        table: &Table,
        number: u16,
        written: &Ident,
    ) -> Result<Option<u16>, SqlError> {
        let Some(text) = conflicting_expression(written) else {
            let column = name_of(written);
            return table.column(&column).map(Some).ok_or_else(|| {
                let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            });
        };
        let value = self.index_expression(name, table, text)?.expression;
        Ok(match value {
            Expression::Column(column) => Some(column),
            other => place_of(self.shape_of(number), &other),
        })
    }

    /// The primary key or unique constraint with a name.
    pub(super) fn arbiter_named(
        &self,
        (table_name, table): (&str, &Table),
        number: u16,
        name: &str,
    ) -> Result<ConflictTarget, SqlError> {
        let shape = self.shape_of(number);
        if !shape.key.is_empty() && shape.key_name == name {
            return Ok(ConflictTarget::Key);
        }
        let is_it = |(_, index): &(u16, &IndexShape)| index.name == name && has_all(index, &[]);
        let found = (0..).zip(&shape.indexes).find(is_it).map(|(place, _)| place);
        let is_constraint = |place: &u16| table.indexes[usize::from(*place)].constraint;
        found.filter(is_constraint).map(ConflictTarget::Index).ok_or_else(|| {
            let message = format!("constraint \"{name}\" for table \"{table_name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }
}

fn no_arbiter() -> SqlError {
    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}
