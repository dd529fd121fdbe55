//! `CREATE VIEW`.

use sqlparser::ast::CreateView;

use super::super::Binder;
use super::super::names::{name_of, qualified};
use super::Draft;
use crate::catalog::{Definition, Named};
use crate::error::{SqlError, SqlState};
use crate::types::SqlType;

impl Draft<'_> {
    pub(super) fn create_view(&mut self, create: &CreateView) -> Result<&'static str, SqlError> {
        const TAG: &str = "CREATE VIEW";
        if create.materialized {
            return Err(crate::syntax::unsupported_statement("CREATE MATERIALIZED VIEW"));
        }
        let (schema, name) = qualified(&create.name)?;
        let query = self.query_with_moments(create.query.to_string());
        let mut binder = Binder::until_told(self.before, self.surroundings, self.told);
        let (query, mut columns) = binder.qualified_query(&query)?;
        // What it reads goes with the session, and so does the view.
        let own = self.surroundings.temporary.as_str();
        let reads_temporary = !own.is_empty() && binder.reliances.iter().any(|known| known.schema == own);
        let (reliances, relations) = (binder.reliances, binder.relations);
        let needs_others = self.names_others(&reliances);
        self.reliances.extend(reliances);
        if reads_temporary && !create.temporary {
            self.remark(format!("view \"{name}\" will be a temporary view"));
        }
        let schema = self.schema_of_new(schema, create.temporary || reads_temporary)?;
        if create.columns.len() > columns.len() {
            let message = "CREATE VIEW specifies more column names than columns";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        for (name, column) in columns.iter_mut().zip(&create.columns) {
            *name = name_of(&column.name);
        }
        let at = (schema, name);
        let replaced = self.catalog.get(&at.0, &at.1).filter(|_| create.or_replace);
        let kept = replaced.and_then(Definition::object);
        if let Some(Definition::View { columns: known, query: before, .. }) = replaced {
            let types = [before, &query].map(|query| self.view_columns(&self.catalog, query));
            refuse_other_columns((known, &columns), types.map(Option::unwrap_or_default))?;
            self.refuse_recursion(&at, &relations)?;
        } else if !self.is_free(&at.0, &at.1, create.if_not_exists)? {
            return Ok(TAG);
        }
        // One that is replaced keeps its number, and what drops something relies on that it was not made anew all the same.
        let new = self.number();
        let object = kept.unwrap_or(new);
        if self.is_own && needs_others {
            self.count_on();
        }
        self.set(&at.0, &at.1, Some(Definition::View { object, columns, query }));
        Ok(TAG)
    }

    /// Fails if what a view would read instead reads the view.
    fn refuse_recursion(&mut self, view: &Named, relations: &[Named]) -> Result<(), SqlError> {
        let readers = self.views_of(&view.0, &view.1);
        if relations.iter().any(|read| read == view || readers.has_view(read)) {
            let message = format!("infinite recursion detected in rules for relation \"{}\"", view.1);
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        Ok(())
    }
}

/// Fails unless a view keeps the columns that it had, before those that come to it.
fn refuse_other_columns(
    (known, new): (&[String], &[String]),
    [known_types, new_types]: [Vec<SqlType>; 2],
) -> Result<(), SqlError> {
    let refused = |message: String| SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message);
    if new.len() < known.len() {
        return Err(refused("cannot drop columns from view".to_owned()));
    }
    if let Some((known, new)) = known.iter().zip(new).find(|(known, new)| known != new) {
        let message = format!("cannot change name of view column \"{known}\" to \"{new}\"");
        return Err(refused(message).with_hint("Drop the view, and create it with the other name."));
    }
    for (name, (known, new)) in known.iter().zip(known_types.iter().zip(&new_types)) {
        if known != new {
            let (known, new) = (known.name(), new.name());
            return Err(refused(format!(
                "cannot change data type of view column \"{name}\" from {known} to {new}"
            )));
        }
    }
    Ok(())
}
