//! Definitions: what `CREATE`, `ALTER`, `DROP` and `TRUNCATE` become.
//!
//! Each is a plan that writes rows of the table of definitions, and relies on what it was made from: two that meet are ordered like any
//! transactions, and the later one is planned again. What would take long is not done in that plan: an index of a table that may be large
//! is filled afterwards in bounded steps, while all statements keep it up already, and then declared ready; rows of what was dropped
//! are deleted by and by.

mod alter;
mod comments;
mod constraints;
mod create;
mod dependents;
mod foreign_keys;
mod generated;
mod identity;
mod indexes;
mod like;
mod moments;
mod passes;
mod reindex;
mod remove;
mod rename;
mod rewrite;
mod sequences;
mod storage_options;
mod users;
mod views;

use sqlparser::ast::{AlterIndexOperation, ObjectName, ObjectType, Statement};

pub(crate) use constraints::columns_of_check;
pub use foreign_keys::{Validation, validated, validation};
pub use reindex::unfinished;

use super::{Binder, Surroundings, TEMPORARY};
use crate::catalog::{Catalog, Definition, Table, garbage_name};
use crate::error::{Remark, SqlError, SqlState};
use crate::execute::Interrupt;
use crate::plan::{Action, DefinitionChange, Plan, Reliance, SharedPlan};

/// An index that is to be filled once its definition is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Build {
    /// The schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
}

/// A condition that must hold for rows that are there: a query that must give none, and the error if it does.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The query.
    pub plan: SharedPlan,
    /// The error.
    pub error: SqlError,
}

/// What a definition comes to.
#[derive(Clone, Debug)]
pub struct Defined {
    /// The change; `None` if there is nothing to do.
    pub plan: Option<SharedPlan>,
    /// What must hold before.
    pub verifications: Vec<Verification>,
    /// Insertions of rows in a new form, which go before the change in its transaction.
    pub rewrites: Vec<SharedPlan>,
    /// The insertion of the rows of what is made, which goes after the change in its transaction; the client is told how many.
    pub rows: Option<SharedPlan>,
    /// What the client is told: PostgreSQL's command tag.
    pub tag: &'static str,
    /// What it is told besides.
    pub remarks: Vec<Remark>,
    /// Storages that nobody knew before.
    pub fresh: Vec<u32>,
    /// Indexes that are to be filled afterwards.
    pub builds: Vec<Build>,
    /// Foreign keys that are to be checked afterwards.
    pub validations: Vec<Validation>,
}

/// Whether a statement is one of definition.
pub fn is_definition(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateView(_)
            | Statement::CreateSequence { .. }
            | Statement::CreateSchema { .. }
            | Statement::AlterTable(_)
            | Statement::AlterSchema(_)
            | Statement::AlterIndex { .. }
            | Statement::Drop { .. }
            | Statement::Truncate(_)
            | Statement::CreateRole(_)
            | Statement::AlterRole { .. }
            | Statement::Comment { .. }
    )
}

/// When the work of a definition is done that is not its change itself.
pub enum Timing {
    /// After the change, in bounded steps.
    Afterwards,
    /// Within its transaction, as a block needs it. New storages have these numbers, as far as there are enough.
    AtOnce(Vec<u32>),
}

/// Plans a definition, unless it is told to end. `random` is a number like no other.
///
/// # Errors
/// What is wrong with it, as PostgreSQL says it.
pub fn define(
    statement: &Statement,
    catalog: &Catalog,
    surroundings: &Surroundings,
    timing: Timing,
    random: u128,
    told: Option<&Interrupt>,
) -> Result<Defined, SqlError> {
    let mut draft = Draft { told, ..Draft::timed(catalog, surroundings, timing, random) };
    let tag = match statement {
        Statement::CreateTable(create) => draft.create_table(create)?,
        Statement::CreateIndex(create) => draft.create_index(create)?,
        Statement::CreateView(create) => draft.create_view(create)?,
        Statement::CreateSequence { if_not_exists, name, sequence_options, temporary } => {
            draft.create_sequence(name, *temporary, *if_not_exists, sequence_options)?
        }
        Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            draft.create_schema(schema_name, *if_not_exists)?
        }
        Statement::AlterTable(alter) => draft.alter_table(alter)?,
        Statement::AlterSchema(alter) => draft.alter_schema(alter)?,
        Statement::AlterIndex { name, operation: AlterIndexOperation::RenameIndex { index_name } } => {
            draft.rename_index(name, index_name)?
        }
        Statement::CreateRole(create) => draft.create_role(create)?,
        Statement::AlterRole { name, operation } => draft.alter_role(name, operation)?,
        Statement::Drop { purge, temporary, table, .. } if *purge || *temporary || table.is_some() => {
            return Err(super::modify::foreign("DROP"));
        }
        Statement::Drop { object_type: ObjectType::Role | ObjectType::User, if_exists, names, .. } => {
            draft.drop_roles(names, *if_exists)?
        }
        Statement::Drop { object_type, if_exists, names, cascade, .. } => {
            draft.remove(*object_type, *if_exists, names, *cascade)?
        }
        Statement::Truncate(truncate) => draft.truncate(truncate)?,
        Statement::Comment { object_type, object_name, comment, if_exists: false, .. } => {
            draft.comment(*object_type, object_name, comment.as_deref())?
        }
        other => return Err(crate::syntax::unsupported_statement(&other.to_string())),
    };
    draft.finish(tag)
}

/// Plans that a table which is empty gets other storages, into which rows can be loaded before others see them.
///
/// # Errors
/// When there is no such table.
pub fn renew(
    table: &ObjectName,
    catalog: &Catalog,
    surroundings: &Surroundings,
    timing: Timing,
    random: u128,
) -> Result<Defined, SqlError> {
    let mut draft = Draft::timed(catalog, surroundings, timing, random);
    draft.renew(table)?;
    draft.finish("")
}

/// The change that makes an index ready once it has been filled: it is used from then on, or becomes the table.
///
/// # Errors
/// When the index is not there any more.
pub fn complete(
    catalog: &Catalog,
    surroundings: &Surroundings,
    build: &Build,
) -> Result<SharedPlan, SqlError> {
    let mut draft = Draft::new(catalog, surroundings, true);
    let mut table = draft.table(&build.schema, &build.table)?;
    draft.make_ready(&build.table, &mut table, &build.index)?;
    draft.set(&build.schema, &build.table, Some(Definition::Table(table)));
    draft.finish("")?.plan.ok_or_else(|| super::undefined_table(None, &build.table))
}

/// The change that takes back an index that could not be filled.
///
/// # Errors
/// When the index is not there any more.
pub fn take_back(
    catalog: &Catalog,
    surroundings: &Surroundings,
    build: &Build,
) -> Result<SharedPlan, SqlError> {
    let mut draft = Draft::new(catalog, surroundings, true);
    let mut table = draft.table(&build.schema, &build.table)?;
    let Some(place) = table.indexes.iter().position(|index| index.name == build.index) else {
        return Err(undefined_index(&build.index));
    };
    let index = table.indexes.remove(place);
    draft.discard(index.storage, table.replicated);
    draft.set(&build.schema, &index.name, None);
    draft.set(&build.schema, &build.table, Some(Definition::Table(table)));
    draft.finish("")?.plan.ok_or_else(|| undefined_index(&build.index))
}

/// The change that forgets rows that have been deleted.
pub fn forget(catalog: &Catalog, storage: u32) -> Plan {
    let name = garbage_name(storage);
    let changes = vec![DefinitionChange { schema: String::new(), name: name.clone(), definition: None }];
    let action = Action::Define { changes, fill: Vec::new(), sequences: Vec::new() };
    Plan { reliances: vec![catalog.reliance("", &name)], ..Plan::of(action) }
}

/// The plan that goes on filling an index after a key.
///
/// # Errors
/// When the index is not there any more.
pub fn fill(
    catalog: &Catalog,
    surroundings: &Surroundings,
    build: &Build,
    after: Option<Vec<u8>>,
    rows: u32,
) -> Result<SharedPlan, SqlError> {
    let mut binder = Binder::new(catalog, surroundings);
    let (schema, table) = binder.find_table(Some(&build.schema), &build.table)?;
    let number = binder.use_table(&schema, &build.table, table)?;
    let index = table.indexes.iter().position(|index| index.name == build.index);
    let index = index.ok_or_else(|| undefined_index(&build.index))? as u16;
    Ok(binder.finish(Action::Fill { table: number, index, after, rows }, None).plan)
}

/// The first name that is free: a stem, or the stem with a number behind it.
fn first_free(stem: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut names = std::iter::once(stem.to_owned()).chain((1..).map(|number| format!("{stem}{number}")));
    names.find(|name| is_free(name)).unwrap_or_default()
}

/// A change while it is planned.
struct Draft<'c> {
    /// The definitions as they will be.
    catalog: Catalog,
    before: &'c Catalog,
    surroundings: &'c Surroundings,
    /// What may tell it to end.
    told: Option<&'c Interrupt>,
    at_once: bool,
    /// Whether what is made is the session's own, and goes with it.
    is_own: bool,
    /// Whether the change of a table is one of several of its statement.
    has_others: bool,
    /// Numbers for new storages.
    storages: Vec<u32>,
    random: u128,
    numbers: u32,
    changes: Vec<DefinitionChange>,
    /// What else the change relies on.
    reliances: Vec<Reliance>,
    /// Tables and indexes that are filled within.
    fills: Vec<(String, String, String)>,
    sequences: Vec<(u32, i64)>,
    verifications: Vec<Verification>,
    rewrites: Vec<SharedPlan>,
    rows: Option<SharedPlan>,
    remarks: Vec<Remark>,
    fresh: Vec<u32>,
    builds: Vec<Build>,
    validations: Vec<Validation>,
}

impl<'c> Draft<'c> {
    fn new(catalog: &'c Catalog, surroundings: &'c Surroundings, at_once: bool) -> Draft<'c> {
        Draft {
            catalog: catalog.clone(),
            before: catalog,
            surroundings,
            told: None,
            at_once,
            is_own: false,
            has_others: false,
            storages: Vec::new(),
            random: 0,
            numbers: catalog.numbers(),
            changes: Vec::new(),
            reliances: Vec::new(),
            fills: Vec::new(),
            sequences: Vec::new(),
            verifications: Vec::new(),
            rewrites: Vec::new(),
            rows: None,
            remarks: Vec::new(),
            fresh: Vec::new(),
            builds: Vec::new(),
            validations: Vec::new(),
        }
    }

    fn timed(
        catalog: &'c Catalog,
        surroundings: &'c Surroundings,
        timing: Timing,
        random: u128,
    ) -> Draft<'c> {
        let mut draft = Draft::new(catalog, surroundings, matches!(timing, Timing::AtOnce(_)));
        if let Timing::AtOnce(storages) = timing {
            draft.storages = storages;
        }
        draft.random = random;
        draft
    }

    /// Goes on with the next of many parts, unless the statement is to end.
    fn go_on(&self) -> Result<(), SqlError> {
        self.told.map_or(Ok(()), Interrupt::check)
    }

    /// A number that nothing has.
    fn number(&mut self) -> u32 {
        if self.at_once && self.is_own {
            // Nobody else can need what the session makes for itself, so none of its blocks is in the way of another's.
            return self.storage();
        }
        self.count_on();
        self.numbers
    }

    /// Takes a number, on which whoever drops something relies: see [`Draft::rely_on_nothing_new`].
    fn count_on(&mut self) {
        self.numbers += 1;
    }

    /// Whether some of what is named is not the session's own.
    fn names_others(&self, named: &[Reliance]) -> bool {
        named.iter().any(|named| named.schema != self.surroundings.temporary)
    }

    /// A storage that nothing is in.
    fn storage(&mut self) -> u32 {
        let storage = self.storages.pop().unwrap_or_else(|| {
            self.count_on();
            self.numbers
        });
        self.fresh.push(storage);
        storage
    }

    /// Changes a definition.
    fn set(&mut self, schema: &str, name: &str, mut definition: Option<Definition>) {
        if let Some(Definition::Table(table)) = &mut definition {
            self.write_out_moments(name, table);
        }
        let encoded = definition.as_ref().map(Definition::encode);
        match &encoded {
            // What was encoded just now can be decoded.
            Some(bytes) => drop(self.catalog.insert(schema, name, bytes)),
            None => self.catalog.remove(schema, name),
        }
        let change =
            DefinitionChange { schema: schema.to_owned(), name: name.to_owned(), definition: encoded };
        match self.changes.iter_mut().find(|known| known.schema == schema && known.name == name) {
            Some(known) => *known = change,
            None => self.changes.push(change),
        }
    }

    /// Gives up a storage: its rows are deleted by and by.
    fn discard(&mut self, storage: u32, replicated: bool) {
        self.set("", &garbage_name(storage), Some(Definition::Garbage { storage, replicated }));
    }

    /// Notes that the change relies on what a name stood for before it.
    fn rely(&mut self, schema: &str, name: &str) {
        self.reliances.push(self.before.reliance(schema, name));
    }

    /// Notes that the change relies on all that there is, and that is not: whatever comes to need something takes a number, of which
    /// this is the last.
    fn rely_on_nothing_new(&mut self) {
        self.rely("", "");
    }

    fn finish(mut self, tag: &'static str) -> Result<Defined, SqlError> {
        self.forget_comments();
        if self.numbers != self.before.numbers() {
            let numbers = Definition::Numbers(self.numbers);
            self.set("", "", Some(numbers));
        }
        if self.changes.is_empty() && self.at_once {
            // That there is nothing to do is as it is in the end, too: nothing has been made that would be something.
            self.rely_on_nothing_new();
        }
        let plan = (self.at_once || !self.changes.is_empty()).then(|| self.plan().map(SharedPlan::from));
        let plan = plan.transpose()?;
        let Draft { verifications, rewrites, rows, remarks, fresh, builds, validations, .. } = self;
        Ok(Defined { plan, verifications, rewrites, rows, tag, remarks, fresh, builds, validations })
    }

    fn plan(&self) -> Result<Plan, SqlError> {
        let reliance = |change: &DefinitionChange| self.before.reliance(&change.schema, &change.name);
        let mut tables = Vec::new();
        let mut fill = Vec::new();
        for (schema, name, index) in &self.fills {
            let Some(Definition::Table(table)) = self.catalog.get(schema, name) else { continue };
            let Some(number) = table.indexes.iter().position(|known| known.name == *index) else { continue };
            let shape = Binder::new(&self.catalog, self.surroundings).shape(name, table)?;
            let place = tables.iter().position(|known| *known == shape).unwrap_or_else(|| {
                tables.push(shape);
                tables.len() - 1
            });
            fill.push((place as u16, number as u16));
        }
        let action =
            Action::Define { changes: self.changes.clone(), fill, sequences: self.sequences.clone() };
        let mut reliances: Vec<Reliance> = self.changes.iter().map(reliance).collect();
        for reliance in &self.reliances {
            if !reliances.contains(reliance) {
                reliances.push(reliance.clone());
            }
        }
        Ok(Plan { reliances, tables, ..Plan::of(action) })
    }

    /// The schema in which something new goes, which may be that of the session.
    fn schema_of_new(&mut self, schema: Option<String>, temporary: bool) -> Result<String, SqlError> {
        let own = &self.surroundings.temporary;
        // Where it comes first on the path, it is as if it was named.
        let first = self.surroundings.search_path.first().filter(|first| *first == TEMPORARY);
        let schema = schema.or_else(|| first.cloned());
        let names_own = schema.as_ref().is_some_and(|schema| schema == TEMPORARY || schema == own);
        if !temporary && !names_own {
            return self.schema_for(schema);
        }
        if schema.is_some() && !names_own {
            let message = "cannot create temporary relation in non-temporary schema";
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        if own.is_empty() {
            return Err(SqlError::unsupported("pg_temp before the first temporary table")
                .with_hint("Use CREATE TEMPORARY TABLE."));
        }
        let own = own.clone();
        self.is_own = true;
        if self.catalog.get(&own, "").is_none() {
            let object = self.number();
            self.set(&own, "", Some(Definition::Schema { object }));
        }
        Ok(own)
    }

    /// The schema in which something new goes.
    fn schema_for(&mut self, schema: Option<String>) -> Result<String, SqlError> {
        let of_path = || {
            let first = Binder::new(&self.catalog, self.surroundings).schemas_of_path().next();
            first.map(str::to_owned).ok_or("no schema has been selected to create in".to_owned())
        };
        let schema = schema.map_or_else(of_path, |schema| {
            let is_there = self.catalog.has_schema(&schema);
            if is_there { Ok(schema) } else { Err(format!("schema \"{schema}\" does not exist")) }
        });
        let schema = schema.map_err(|message| SqlError::new(SqlState::INVALID_SCHEMA_NAME, message))?;
        self.rely(&schema, "");
        Ok(schema)
    }

    /// Tells the client something.
    fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(Remark::new(text));
    }

    /// Tells the client that something is left out since it is there already.
    fn skip(&mut self, error: &SqlError) {
        self.remarks.push(Remark::skipping(error));
    }

    /// Whether a name is free; if it is not and that is no error, the client is told.
    fn is_free(&mut self, schema: &str, name: &str, if_not_exists: bool) -> Result<bool, SqlError> {
        if self.catalog.get(schema, name).is_none() {
            return Ok(true);
        }
        let message = format!("relation \"{name}\" already exists");
        let error = SqlError::new(SqlState::DUPLICATE_TABLE, message);
        if if_not_exists {
            self.rely(schema, name);
            self.skip(&error);
            return Ok(false);
        }
        Err(error)
    }

    /// A name that is free, beginning with some parts.
    fn free_name(&self, schema: &str, parts: &[&str]) -> String {
        let base = parts.join("_");
        first_free(&base[..base.floor_char_boundary(60)], |name| self.catalog.get(schema, name).is_none())
    }

    /// A table as it will be.
    fn table(&self, schema: &str, name: &str) -> Result<Table, SqlError> {
        match self.catalog.get(schema, name) {
            Some(Definition::Table(table)) => Ok(table.clone()),
            _ => Err(super::undefined_table(Some(schema), name)),
        }
    }

    /// The schema and name of what is there under a name. The change relies on that, and on what is not there earlier on the path.
    fn locate(&mut self, schema: Option<&str>, name: &str) -> Option<(String, Definition)> {
        let surroundings = self.surroundings;
        let found = surroundings.find(&self.catalog, schema, name);
        let found = found.map(|(schema, definition)| (schema, definition.clone()));
        if let Some((found, _)) = &found {
            self.rely(found, name);
            if schema.is_none() {
                surroundings.passed(found).for_each(|passed| self.rely(passed, name));
            }
        }
        found
    }
}

fn undefined_index(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist"))
}
