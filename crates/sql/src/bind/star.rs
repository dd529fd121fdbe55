//! `*`, and `*` of a relation.

use super::Binder;
use super::query::Outputs;
use super::scope::{Field, Qualifier, Starred, ambiguous_relation, column_at};
use crate::error::{SqlError, SqlState};

impl Binder<'_> {
    /// What `*` stands for, of a relation if one is named.
    pub(super) fn all_of(&mut self, relation: Option<Qualifier<'_>>) -> Result<Vec<Starred>, SqlError> {
        self.all_at(0, relation)
    }

    /// How many queries further out there is one with the relation, or none if nowhere.
    pub(super) fn outwards(&self, relation: Qualifier<'_>) -> usize {
        self.levels.iter().rev().position(|level| level.sees(relation)).unwrap_or(0)
    }

    /// The same as [`all_of`](Binder::all_of), in the query that is so many queries further out.
    pub(super) fn all_at(
        &mut self,
        outwards: usize,
        relation: Option<Qualifier<'_>>,
    ) -> Result<Vec<Starred>, SqlError> {
        let level = &self.levels[self.levels.len() - 1 - outwards];
        let (relations, merged) = (level.relations.clone(), level.merged.clone());
        let is_meant = |place| relation.is_none_or(|relation| level.is_named(place, relation));
        let meant: Vec<bool> = (0..relations.len()).map(is_meant).collect();
        if let Some(relation) = relation
            && meant.iter().filter(|meant| **meant).count() > 1
        {
            return Err(ambiguous_relation(relation.name));
        }
        if relation.is_none() && relations.is_empty() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "SELECT * with no tables specified is not valid",
            ));
        }
        let mut columns = Vec::new();
        let mut found = false;
        for (number, known) in relations.into_iter().enumerate() {
            if relation.is_none() {
                // What joins that begin with a relation have made of two comes before it.
                for merged in merged.iter().filter(|merged| merged.first == number) {
                    let origin = self.origin(merged.column);
                    let (name, data_type) = (merged.name.clone(), merged.data_type);
                    let field = Field { name, data_type, origin, hidden: false };
                    columns.push(Starred { relation: None, field, column: merged.column });
                }
            } else if !meant[number] {
                continue;
            }
            found = true;
            for (column, field) in (known.offset..).zip(known.fields) {
                // Under its relation's name, a merged column is there.
                let is_shown = !field.hidden || (relation.is_some() && !field.name.is_empty());
                if is_shown {
                    let field = Field { hidden: false, ..field };
                    columns.push(Starred { relation: Some(known.name.clone()), field, column });
                }
            }
        }
        match relation {
            Some(relation) if !found => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("missing FROM-clause entry for table \"{}\"", relation.name),
            )),
            _ => Ok(columns),
        }
    }

    pub(super) fn put_all(
        &self,
        outwards: usize,
        columns: Vec<Starred>,
        outputs: &mut Outputs,
    ) -> Result<(), SqlError> {
        let place = self.levels.len() - 1 - outwards;
        for Starred { field, column, .. } in columns {
            let column = self.over_groups(place, column, &field.name)?;
            outputs.push((field, column_at(outwards, column)));
        }
        Ok(())
    }
}
