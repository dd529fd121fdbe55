//! What names mean: the relations of a query and of those around it.

use super::windows::Window;
use super::{TEMPORARY, is_temporary};
use crate::error::{SqlError, SqlState};
use crate::plan::{AggregateCall, Expression, SortKey, WindowCall};
use crate::types::SqlType;

/// A value with its type.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// The value.
    pub expression: Expression,
    /// Its type.
    pub data_type: SqlType,
}

/// A column of a relation or of a query's result.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: SqlType,
    /// The table and column that it is, as PostgreSQL's descriptions of rows tell.
    pub origin: Option<(u32, i16)>,
    /// Left out of `*`: a dropped column, or one that `USING` has merged.
    pub hidden: bool,
}

/// The origin of the values that a function gives: that of no table, as clients are told.
pub(super) const OF_FUNCTION: Option<(u32, i16)> = Some((0, 0));

/// Whether these are the columns of a function that gives values, for which the name of the relation stands.
pub(super) fn is_value(fields: &[Field]) -> bool {
    matches!(fields, [field, ..] if field.origin == OF_FUNCTION)
        && fields.iter().filter(|field| !field.hidden).count() == 1
}

/// A relation of a query.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// Its name or alias.
    pub name: String,
    /// Its columns.
    pub fields: Vec<Field>,
    /// The number of its first column in the query's row.
    pub offset: u16,
    /// The columns of its primary key, if it is a table.
    pub key: Vec<u16>,
}

/// A relation as it is named before a column.
#[derive(Clone, Copy)]
pub(super) struct Qualifier<'n> {
    /// The schema, if it is named too.
    pub schema: Option<&'n str>,
    pub name: &'n str,
}

/// A column that `USING` or `NATURAL` has made of two.
#[derive(Clone, Debug)]
pub(super) struct Merged {
    pub name: String,
    /// The number of the column in the query's row.
    pub column: u16,
    pub data_type: SqlType,
    /// The place of the first relation of the joins that it belongs to: in `*` it comes before their columns.
    pub first: usize,
}

/// One of the columns that `*` stands for.
pub(super) struct Starred {
    /// The name of its relation; `None` for one that `USING` or `NATURAL` has made of two.
    pub relation: Option<String>,
    pub field: Field,
    /// Its number in the query's row.
    pub column: u16,
}

/// A column of the row of the query that is so many queries further out.
pub(super) fn column_at(outwards: usize, column: u16) -> Expression {
    match u16::try_from(outwards) {
        Ok(0) => Expression::Column(column),
        depth => Expression::Outer { depth: depth.unwrap_or(u16::MAX), column },
    }
}

/// How the rows of a query are grouped.
#[derive(Clone, Default)]
pub(super) struct Grouping {
    /// What they are grouped by, as written, and the number of the group.
    pub written: Vec<(sqlparser::ast::Expr, u16)>,
    /// The groups.
    pub groups: Vec<Bound>,
    /// By which groups, if there are several ways.
    pub sets: Option<Vec<Vec<u16>>>,
    /// The groups that each `GROUPING()` asks for.
    pub questions: Vec<Vec<u16>>,
    /// The aggregates that have been found.
    pub aggregates: Vec<AggregateCall>,
}

/// The window functions of a query.
#[derive(Clone, Default)]
pub(super) struct Windows {
    /// Windows with a name.
    pub named: Vec<(String, Window)>,
    /// What partitions are by, their order, and the call.
    pub calls: Vec<(Vec<Expression>, Vec<SortKey>, WindowCall)>,
    /// What is bound that may have no window functions: window definitions, or calls of such functions.
    pub place: &'static str,
}

/// A query while it is bound.
#[derive(Clone, Default)]
pub(super) struct Level {
    pub relations: Vec<Relation>,
    /// The schemas of relations that have no alias, by their places: two may have the same name.
    pub schemas: Vec<(usize, String)>,
    /// The relations, by their places, that have rows of nulls where an outer join has found none.
    pub padded: Vec<usize>,
    /// Whether the others may be called by any schema: the table that a condition of a definition is about.
    pub is_of_any_schema: bool,
    /// Columns without a relation, the outermost join's first.
    pub merged: Vec<Merged>,
    pub grouping: Option<Grouping>,
    /// Whether an aggregate's arguments are bound: these are over ungrouped rows.
    pub in_aggregate: bool,
    /// Whether calls are those of the list that are written alike, even if they are other values each time: what rows are sorted by is shown.
    pub shares_calls: bool,
    /// The window functions, where there may be any.
    pub windows: Option<Windows>,
    /// The clause that is bound, as errors name it.
    pub clause: &'static str,
    /// The first relation that is seen: the condition of a join sees none of those before the comma.
    pub seen_from: usize,
}

/// The error of a name that several relations have.
pub(super) fn ambiguous_relation(name: &str) -> SqlError {
    SqlError::new(SqlState(*b"42P09"), format!("table reference \"{name}\" is ambiguous"))
}

impl Level {
    /// The number of columns of the row so far.
    pub fn width(&self) -> u16 {
        self.relations.last().map_or(0, |last| last.offset + last.fields.len() as u16)
    }

    /// The column with a name, of a relation if one is named.
    pub fn find(
        &self,
        relation: Option<Qualifier<'_>>,
        name: &str,
    ) -> Result<Option<(u16, SqlType)>, SqlError> {
        self.find_since(self.seen_from, relation, name)
    }

    /// Whether the relation at a place is the one that is named.
    pub fn is_named(&self, place: usize, relation: Qualifier<'_>) -> bool {
        let is_of = |schema: &str| match self.schema(place) {
            Some(known) => known == schema || (schema == TEMPORARY && is_temporary(known)),
            None => self.is_of_any_schema,
        };
        self.relations[place].name == relation.name && relation.schema.is_none_or(is_of)
    }

    /// The schema of the relation at a place, if that is known of it.
    pub fn schema(&self, place: usize) -> Option<&str> {
        let mut schemas = self.schemas.iter();
        schemas.find(|(known, _)| *known == place).map(|(_, schema)| schema.as_str())
    }

    /// Whether there is a relation with a name, seen or not.
    pub fn has(&self, relation: &str) -> bool {
        self.relations.iter().any(|known| known.name == relation)
    }

    /// Whether there is one that is seen.
    pub fn sees(&self, relation: Qualifier<'_>) -> bool {
        (self.seen_from..self.relations.len()).any(|place| self.is_named(place, relation))
    }

    /// The same, in the relations from one on.
    pub fn find_since(
        &self,
        first: usize,
        relation: Option<Qualifier<'_>>,
        name: &str,
    ) -> Result<Option<(u16, SqlType)>, SqlError> {
        if let Some(relation) = relation
            && (first..self.relations.len()).filter(|place| self.is_named(*place, relation)).count() > 1
        {
            return Err(ambiguous_relation(relation.name));
        }
        let mut found = None;
        let merged = self.merged.iter().filter(|merged| relation.is_none() && merged.first >= first);
        for merged in merged.filter(|merged| merged.name == name) {
            found = unless_found(found, name, (merged.column, merged.data_type))?;
        }
        for (place, candidate) in self.relations.iter().enumerate().skip(first) {
            if relation.is_some_and(|relation| !self.is_named(place, relation)) {
                continue;
            }
            for (place, field) in (0..).zip(&candidate.fields) {
                // A merged column is still there under the name of its relation.
                let visible = !field.hidden || (relation.is_some() && !field.name.is_empty());
                if field.name != name || !visible {
                    continue;
                }
                found = unless_found(found, name, (candidate.offset + place, field.data_type))?;
            }
        }
        Ok(found)
    }
}

fn unless_found(
    found: Option<(u16, SqlType)>,
    name: &str,
    new: (u16, SqlType),
) -> Result<Option<(u16, SqlType)>, SqlError> {
    match found {
        None => Ok(Some(new)),
        Some(_) => {
            let message = format!("column reference \"{name}\" is ambiguous");
            Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message))
        }
    }
}
