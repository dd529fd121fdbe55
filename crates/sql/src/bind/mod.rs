//! From statements as written to plans: names and types are resolved, paths through tables chosen.

mod access;
mod aggregates;
mod arbiter;
mod call;
mod catalog_functions;
mod coerce;
mod column_name;
mod combination;
mod conditional;
mod constants;
mod define;
mod expression;
mod foreign_keys;
mod from;
mod functions;
mod grouping_sets;
mod immutable;
mod implied;
mod join;
mod join_order;
mod json;
mod kept;
mod locals;
mod mentioned;
mod modify;
pub(crate) mod names;
mod needed;
mod nulls;
mod numbering;
mod object_names;
mod order;
mod partial;
mod path;
mod places;
mod precedence;
mod pushed;
mod qualify;
mod query;
mod questions;
mod recursion;
mod row_texts;
mod scope;
mod sets;
mod spelled;
mod star;
mod subquery;
mod tuples;
mod types;
mod walk;
mod windows;

use std::sync::Arc;

use sqlparser::ast::{InsertOverriding, Statement};

use crate::catalog::{Catalog, Definition, Named, STATE_SCHEMA, Sequence, Table, system};
use crate::error::{SqlError, SqlState};
use crate::execute::Interrupt;
use crate::plan::{Action, ForeignKeyShape, Plan, Reliance, SequenceShape, SharedPlan, TableShape};
use crate::routines::Routines;
use crate::types::{SqlType, Zone};

pub(crate) use column_name::part_names;
pub(crate) use define::columns_of_check;
pub use define::{
    Build, Defined, Timing, Validation, Verification, complete, define, fill, forget, is_definition, renew,
    take_back, unfinished, validated, validation,
};
pub use foreign_keys::RowCheck;
pub use functions::VERSION_NUMBER;
pub(crate) use functions::arguments_of;
pub use immutable::is_immutable;
pub use mentioned::{copied, locked};
use qualify::Naming;
pub use questions::{AdvisoryFunction, Question};
use recursion::{Mentions, NamedQuery};
pub use row_texts::shape_with_indexes;
pub(crate) use row_texts::{as_column, as_condition, type_of_expression};
use scope::Level;
pub use scope::{Bound, Field};
pub(crate) use types::interval_of_literal;

/// The schema of what a session has made for itself, as statements may call it; what its own name begins with.
pub(crate) const TEMPORARY: &str = "pg_temp";

/// Whether a schema is that of what a session has made for itself.
pub(crate) fn is_temporary(schema: &str) -> bool {
    schema.starts_with(TEMPORARY)
}

/// What a session tells of itself to statements.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// Where names without a schema are looked up.
    pub search_path: Vec<String>,
    /// The schema of what the session has made for itself, which is looked up first; empty while there is none.
    pub temporary: String,
    /// When its transaction began, in microseconds since 2000-01-01 UTC.
    pub now: i64,
    /// Its time zone.
    pub zone: Zone,
    /// The procedures that can be called.
    pub routines: Routines,
}

impl Surroundings {
    /// What a name stands for in a catalog, with its schema.
    pub(crate) fn find<'c>(
        &self,
        catalog: &'c Catalog,
        schema: Option<&str>,
        name: &str,
    ) -> Option<(String, &'c Definition)> {
        let temporary = self.temporary.as_str();
        if let Some(schema) = schema {
            let schema = if schema == TEMPORARY { temporary } else { schema };
            return catalog.get(schema, name).map(|definition| (schema.to_owned(), definition));
        }
        // What the session has made for itself is looked up first, unless the path says when.
        let listed = &self.search_path;
        let first = (!listed.iter().any(|schema| schema == TEMPORARY)).then_some(TEMPORARY);
        let path = first.into_iter().chain(listed.iter().map(String::as_str));
        let path = path.map(|schema| if schema == TEMPORARY { temporary } else { schema });
        let mut path = path.filter(|schema| !schema.is_empty());
        path.find_map(|schema| catalog.get(schema, name).map(|definition| (schema.to_owned(), definition)))
    }

    /// The schemas of the path before one, in which others may come to be: not the session's own, nor those that are always as they are.
    fn passed<'s>(&'s self, found: &'s str) -> impl Iterator<Item = &'s str> {
        let is_fixed = |schema: &&str| {
            [TEMPORARY, "", "pg_catalog", "information_schema", STATE_SCHEMA].contains(schema)
                || *schema == self.temporary
        };
        // The session's own is the first if the path does not list it.
        let found = if found == self.temporary { TEMPORARY } else { found };
        let is_first = found == TEMPORARY && !self.search_path.iter().any(|schema| schema == TEMPORARY);
        let before = self.search_path.iter().map(String::as_str).take_while(move |schema| *schema != found);
        before.filter(move |schema| !is_first && !is_fixed(schema))
    }

    /// Whether a relation is found by its name without a schema.
    pub(crate) fn sees(&self, catalog: &Catalog, schema: &str, name: &str) -> bool {
        let found = self.find(catalog, None, name);
        // The schema of the system tables comes before all others.
        !system::is_named(name) && found.is_some_and(|(found, _)| found == schema)
    }
}

/// A statement that can be run, and what a client is told of it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The plan.
    pub plan: SharedPlan,
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its result, if it has one.
    pub fields: Option<Arc<[Field]>>,
    /// What it asks its session each time before it runs.
    pub questions: Vec<Question>,
    /// The time zone in which moments in its text are that have none.
    pub zone: Zone,
}

/// Makes the plan of a query or of a statement that changes rows, unless it is told to end. `parameters` are the types that the client has
/// named.
///
/// # Errors
/// What is wrong with the statement, as PostgreSQL says it.
pub fn prepare(
    statement: &Statement,
    catalog: &Catalog,
    surroundings: &Surroundings,
    parameters: &[Option<SqlType>],
    told: &Interrupt,
) -> Result<Prepared, SqlError> {
    let mut binder = Binder::until_told(catalog, surroundings, Some(told));
    binder.parameters = parameters.to_vec();
    let (action, fields) = match statement {
        Statement::Query(query) => binder.query_statement(query)?,
        Statement::Insert(insert) => binder.insert(insert)?,
        Statement::Update(update) => binder.update(update)?,
        Statement::Delete(delete) => binder.delete(delete)?,
        Statement::Call(function) => binder.call_statement(function)?,
        // The query of a cursor.
        Statement::Declare { stmts, .. } => match stmts.first().and_then(|one| one.for_query.as_deref()) {
            Some(query) => binder.query_statement(query)?,
            None => return Err(SqlError::unsupported(first_words(&statement.to_string()))),
        },
        other => return Err(crate::syntax::unsupported_statement(&other.to_string())),
    };
    binder.refuse_own_numbers()?;
    Ok(binder.finish(action, fields))
}

/// The type that a name stands for.
pub(crate) fn type_named(name: &sqlparser::ast::DataType) -> Result<SqlType, SqlError> {
    types::sql_type(name)
}

/// A value as written, made one of a type.
pub(crate) fn value_of_type(
    written: &sqlparser::ast::Expr,
    data_type: SqlType,
    catalog: &Catalog,
    surroundings: &Surroundings,
) -> Result<crate::plan::Expression, SqlError> {
    let mut binder = Binder::new(catalog, surroundings);
    let value = binder.expression(written)?;
    binder.assigned_to(value, data_type, "parameter")
}

/// The beginning of a statement, to name it by.
pub(crate) fn first_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(" ")
}

/// Binds statements.
pub(crate) struct Binder<'c> {
    catalog: &'c Catalog,
    surroundings: &'c Surroundings,
    /// What may tell it to end.
    told: Option<&'c Interrupt>,
    levels: Vec<Level>,
    /// Queries of `WITH` that can be named, the innermost last.
    named: Vec<NamedQuery>,
    /// How each query of `WITH` was named.
    mentions: Vec<Mentions>,
    /// How often rows come in the order that was asked for because of how a table is read.
    orders: usize,
    /// Recursive queries that were numbered.
    recursions: u16,
    /// How many expressions with queries within lie around.
    subqueries: usize,
    /// How many times queries of `WITH` and of views were put where they are named.
    expansions: usize,
    /// How many expressions of queries were put into the plan more often than they are written.
    copies: usize,
    /// How many queries lie around.
    nesting: usize,
    /// Whose values an insertion says that identity columns have: those that it gives, or their own.
    overriding: Option<InsertOverriding>,
    /// Whether literals in the list of the next query keep their type open, for what the query is part of to decide.
    keeps_open: bool,
    /// Whether the next query sorts its rows even if they come in order.
    keeps_sort: bool,
    parameters: Vec<Option<SqlType>>,
    tables: Vec<TableShape>,
    sequences: Vec<SequenceShape>,
    foreign_keys: Vec<ForeignKeyShape>,
    reliances: Vec<Reliance>,
    questions: Vec<Question>,
    /// Where the sequences are that the statement draws from.
    drawn: Vec<u32>,
    /// The relations that the statement names itself, and not a view in it.
    relations: Vec<Named>,
    /// Literals that have become moments, and the types that they have got.
    moments: Vec<(String, SqlType)>,
    /// How many texts that are kept lie around: of views, defaults, conditions.
    texts: usize,
    /// Whether what names stand for is noted, since the text is to be kept.
    notes_names: bool,
    namings: Vec<Naming>,
    /// A column of the outermost row that is to have another name.
    renames: Option<(u16, String)>,
    /// Whether a view is bound only to describe it, which needs no description of others.
    describes: bool,
}

/// Deepest nesting of queries and expressions.
const NESTING_MAX: usize = 100;

impl<'c> Binder<'c> {
    pub(crate) fn new(catalog: &'c Catalog, surroundings: &'c Surroundings) -> Binder<'c> {
        Binder::until_told(catalog, surroundings, None)
    }

    fn until_told(
        catalog: &'c Catalog,
        surroundings: &'c Surroundings,
        told: Option<&'c Interrupt>,
    ) -> Binder<'c> {
        Binder {
            catalog,
            surroundings,
            told,
            levels: Vec::new(),
            named: Vec::new(),
            mentions: Vec::new(),
            orders: 0,
            recursions: 0,
            subqueries: 0,
            expansions: 0,
            copies: 0,
            nesting: 0,
            overriding: None,
            keeps_open: false,
            keeps_sort: false,
            parameters: Vec::new(),
            tables: Vec::new(),
            sequences: Vec::new(),
            foreign_keys: Vec::new(),
            reliances: Vec::new(),
            questions: Vec::new(),
            drawn: Vec::new(),
            relations: Vec::new(),
            moments: Vec::new(),
            texts: 0,
            notes_names: false,
            namings: Vec::new(),
            renames: None,
            describes: false,
        }
    }

    fn finish(self, mut action: Action, fields: Option<Vec<Field>>) -> Prepared {
        if let Some(source) = action.source_mut() {
            self.put_single(source);
            constants::compute(source);
            needed::narrow(source);
        }
        let parameters = self.parameters.into_iter().map(|known| known.unwrap_or(SqlType::TEXT)).collect();
        let Binder { reliances, tables, sequences, foreign_keys, questions, surroundings, .. } = self;
        let plan = Plan { reliances, tables, sequences, foreign_keys, action };
        Prepared {
            plan: plan.into(),
            parameters,
            fields: fields.map(Arc::from),
            questions,
            zone: surroundings.zone,
        }
    }

    /// Notes that the plan relies on what a name stands for.
    fn rely(&mut self, schema: &str, name: &str) {
        let reliance = self.catalog.reliance(schema, name);
        if !self.reliances.contains(&reliance) {
            self.reliances.push(reliance);
        }
    }

    /// What a name stands for, with its schema. That it stands for nothing in what comes before that on the path, the plan relies on, too.
    fn find(&mut self, schema: Option<&str>, name: &str) -> Option<(String, &'c Definition)> {
        let found = self.surroundings.find(self.catalog, schema, name);
        if let (None, Some((found, _))) = (schema, &found) {
            let surroundings = self.surroundings;
            surroundings.passed(found).for_each(|passed| self.rely(passed, name));
        }
        found
    }

    /// The schemas of the path that are there.
    fn schemas_of_path(&self) -> impl Iterator<Item = &'c str> {
        self.surroundings
            .search_path
            .iter()
            .map(String::as_str)
            .filter(|schema| self.catalog.has_schema(schema))
    }

    /// The table that a name stands for.
    fn find_table(&mut self, schema: Option<&str>, name: &str) -> Result<(String, &'c Table), SqlError> {
        match self.find(schema, name) {
            Some((schema, Definition::Table(table))) => Ok((schema, table)),
            Some((_, Definition::View { .. })) => {
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is a view")))
            }
            Some(_) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a table"))),
            None => Err(undefined_table(schema, name)),
        }
    }

    /// Adds a table to the plan, with its checks, indexes and generated columns; its number.
    fn use_table(&mut self, schema: &str, name: &str, table: &Table) -> Result<u16, SqlError> {
        if let Some(known) = self.tables.iter().position(|known| known.storage == table.storage) {
            return Ok(known as u16);
        }
        self.rely(schema, name);
        let shape = self.shape(name, table)?;
        self.tables.push(shape);
        Ok((self.tables.len() - 1) as u16)
    }

    /// Adds a sequence to the plan; its number.
    fn use_sequence(&mut self, schema: &str, name: &str, sequence: &Sequence) -> u16 {
        if let Some(known) = self.sequences.iter().position(|known| known.storage == sequence.storage) {
            return known as u16;
        }
        self.rely(schema, name);
        self.sequences.push(sequence.shape(name));
        (self.sequences.len() - 1) as u16
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Goes on with the next of many parts, unless the statement is to end.
    fn go_on(&self) -> Result<(), SqlError> {
        self.told.map_or(Ok(()), Interrupt::check)
    }

    /// Does something one level of nesting deeper, unless the statement is to end.
    fn deeper<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, SqlError>) -> Result<T, SqlError> {
        self.go_on()?;
        if self.nesting >= NESTING_MAX {
            let message = format!("statement is nested more than {NESTING_MAX} deep");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.nesting += 1;
        let done = act(self);
        self.nesting -= 1;
        done
    }
}

/// The error of a table that is not there.
pub(crate) fn undefined_table(schema: Option<&str>, name: &str) -> SqlError {
    let name = schema.map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::PUBLIC;

    #[test]
    fn what_is_told_to_end_is_planned_no_further() {
        let (catalog, told) = (Catalog::new(), Interrupt::default());
        let surroundings = Surroundings { search_path: vec![PUBLIC.to_owned()], ..Surroundings::default() };
        let query = crate::syntax::parse("SELECT abs(1)").unwrap().remove(0);
        let table = crate::syntax::parse("CREATE TABLE t (a int)").unwrap().remove(0);
        let plan = |told: &Interrupt| {
            let planned = prepare(&query, &catalog, &surroundings, &[], told);
            let defined = define(&table, &catalog, &surroundings, Timing::Afterwards, 1, Some(told));
            [planned.err(), defined.err()]
        };
        assert_eq!(plan(&told), [None, None]);
        told.cancel();
        // The error is of no place in the statement.
        let ended = Some(told.error().unwrap());
        assert_eq!(plan(&told), [ended.clone(), ended]);
        told.terminate();
        let others = define(&table, &catalog, &surroundings, Timing::Afterwards, 1, None);
        assert!(others.is_ok(), "what the session itself asks for is carried out");
    }
}
