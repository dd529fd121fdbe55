//! The catalog: definitions of tables, indexes, sequences and views, as rows of the database.
//!
//! A definition is changed by ordered transactions like any row, so replicas see it at the same position. Every plan names the
//! definitions that it was made from with a digest of each, and does nothing if one of them is another one by then.

mod comments;
mod loading;
mod shapes;
pub mod system;

use std::collections::BTreeMap;

pub use comments::{Class, Subject};
pub use loading::Loading;
pub use shapes::storage_numbers;

use ordain_db::data::Key;
use ordain_db::kept::decode_whole;
use serde::{Deserialize, Serialize};

use crate::error::{SqlError, SqlState};
use crate::plan::{FORM, IndexState, ReferentialAction, Reliance, other_form};
use crate::types::{Datum, SqlType};

/// The schema of tables whose names have none.
pub const PUBLIC: &str = "public";

/// The schema of what a process tells of itself; see [`state`](crate::state). It is always there.
pub const STATE_SCHEMA: &str = "ordain";

/// Numbers of objects below this one are PostgreSQL's own.
pub const FIRST_OBJECT: u32 = 16_384;

/// A column.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its name; empty once it is dropped.
    pub name: String,
    /// Its type.
    pub data_type: SqlType,
    /// Whether it must have a value.
    pub not_null: bool,
    /// The expression of its default, as SQL.
    pub default: Option<String>,
    /// The expression of the value that it always has, as SQL, if it is a generated one.
    pub generated: Option<String>,
    /// The value in rows from before there was the column.
    pub missing: Datum,
    /// Whether values may be given for an identity column: `None` if it is none, else whether they always come from its sequence.
    pub identity: Option<bool>,
    /// Whether it is gone. Its place in rows stays.
    pub dropped: bool,
}

/// An index.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Index {
    /// Its object number.
    pub object: u32,
    /// Its name.
    pub name: String,
    /// Where its entries are.
    pub storage: u32,
    /// What its entries are ordered by.
    pub parts: Vec<KeyPart>,
    /// In which order each part was asked for. Its entries ascend all the same, with nulls last.
    pub orders: Vec<ColumnOrder>,
    /// The columns that it includes besides, by number. Its entries do not hold them: they name rows, which are read anyway.
    pub included: Vec<u16>,
    /// The condition of the rows that are in it, as SQL; all are if there is none.
    pub predicate: Option<String>,
    /// Whether values may be there only once.
    pub unique: bool,
    /// Whether it stands for a constraint of the table.
    pub constraint: bool,
    /// Whether its entries hold whole rows: it is to become the table, with this primary key.
    pub covering: bool,
    /// How far it is.
    pub state: IndexState,
}

/// A part of the key of an index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum KeyPart {
    /// A column, by number.
    Column(u16),
    /// A value that is computed from the row, as SQL.
    Expression(String),
}

impl Index {
    /// Its columns, if it computes nothing and has all rows: what is unique in it is unique in the table.
    pub fn plain_columns(&self) -> Option<Vec<u16>> {
        let column = |part: &KeyPart| match part {
            KeyPart::Column(column) => Some(*column),
            KeyPart::Expression(_) => None,
        };
        if self.predicate.is_some() { None } else { self.parts.iter().map(column).collect() }
    }

    /// The texts over the rows of its table that it keeps.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let parts = self.parts.iter_mut().filter_map(|part| match part {
            KeyPart::Column(_) => None,
            KeyPart::Expression(text) => Some(text),
        });
        parts.chain(&mut self.predicate)
    }
}

/// The order of a column of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ColumnOrder {
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Whether nulls come first.
    pub nulls_first: bool,
}

impl ColumnOrder {
    /// As `pg_index` has it.
    pub fn option(self) -> u16 {
        u16::from(self.descending) + 2 * u16::from(self.nulls_first)
    }

    /// What is written after the name of the column.
    pub fn suffix(self) -> &'static str {
        match (self.descending, self.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        }
    }
}

/// A check constraint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Its object number.
    pub object: u32,
    /// Its name.
    pub name: String,
    /// The condition, as SQL.
    pub condition: String,
}

/// A primary key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PrimaryKey {
    /// The object number of its index.
    pub object: u32,
    /// The name.
    pub name: String,
    /// The columns, by number.
    pub columns: Vec<u16>,
    /// The columns that it was said to include besides, by number.
    pub included: Vec<u16>,
}

/// A foreign key. It is kept with the table that refers; the other one has a [`Referrer`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its object number.
    pub object: u32,
    /// Its name.
    pub name: String,
    /// The columns that refer, by number.
    pub columns: Vec<u16>,
    /// The table that is referred to, with its schema.
    pub table: Named,
    /// The columns there, in the order of `columns`.
    pub referenced: Vec<u16>,
    /// What happens to rows that refer to one that is deleted.
    pub on_delete: ReferentialAction,
    /// What happens to rows that refer to one whose key is changed.
    pub on_update: ReferentialAction,
    /// Whether it may be checked at the end of the transaction; `Some(true)` if it is.
    pub deferrable: Option<bool>,
    /// Whether the rows from before it have been checked too.
    pub validated: bool,
}

/// A foreign key that refers to a table, as that table knows it: its definition changes with each, so that no plan overlooks one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Referrer {
    /// The table that refers, with its schema.
    pub table: Named,
    /// The object number of the foreign key.
    pub object: u32,
}

/// A table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// Its object number.
    pub object: u32,
    /// Where its rows are. Changes when the table is emptied.
    pub storage: u32,
    /// Whether every partition has all rows.
    pub replicated: bool,
    /// How many columns of the key decide where a row is.
    pub placing: u8,
    /// The columns, those that are dropped too.
    pub columns: Vec<Column>,
    /// The primary key.
    pub primary_key: Option<PrimaryKey>,
    /// The other indexes.
    pub indexes: Vec<Index>,
    /// The checks.
    pub checks: Vec<Check>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// The foreign keys that refer to it.
    pub referrers: Vec<Referrer>,
}

impl Table {
    /// A table without columns.
    pub fn empty(object: u32, storage: u32) -> Table {
        Table {
            object,
            storage,
            replicated: false,
            placing: 1,
            columns: Vec::new(),
            primary_key: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referrers: Vec::new(),
        }
    }

    /// The names of its constraints, with their object numbers.
    pub fn constraints(&self) -> impl Iterator<Item = (&str, u32)> {
        let checks = self.checks.iter().map(|check| (&check.name, check.object));
        let foreign_keys =
            self.foreign_keys.iter().map(|foreign_key| (&foreign_key.name, foreign_key.object));
        let indexes = self.indexes.iter().filter(|index| index.constraint);
        let indexes = indexes.map(|index| (&index.name, index.object));
        let keys = self.primary_key.iter().map(|key| (&key.name, key.object));
        let all = checks.chain(foreign_keys).chain(indexes).chain(keys);
        all.map(|(name, object)| (name.as_str(), object))
    }

    /// The object number of the constraint with a name.
    pub fn constraint(&self, name: &str) -> Option<u32> {
        self.constraints().find(|(known, _)| *known == name).map(|(_, object)| object)
    }
}

/// A sequence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sequence {
    /// Its object number.
    pub object: u32,
    /// Where its state is.
    pub storage: u32,
    /// The type of its numbers.
    pub data_type: SqlType,
    /// The first number.
    pub start: i64,
    /// What is added each time.
    pub increment: i64,
    /// The least number.
    pub minimum: i64,
    /// The greatest number.
    pub maximum: i64,
    /// Whether it begins anew at its end.
    pub cycles: bool,
    /// The table and column that it goes with.
    pub owner: Option<(String, String)>,
}

/// What a name stands for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Definition {
    /// A table.
    Table(Table),
    /// An index of this table, in whose definition it is.
    Index(String),
    /// A sequence.
    Sequence(Sequence),
    /// A view, as SQL.
    View {
        /// Its object number.
        object: u32,
        /// The names of its columns.
        columns: Vec<String>,
        /// The query.
        query: String,
    },
    /// A schema. Its own name is empty.
    Schema {
        /// Its object number.
        object: u32,
    },
    /// Rows that belong to nothing any more and are yet to be deleted.
    Garbage {
        /// Their storage.
        storage: u32,
        /// Whether every partition has them.
        replicated: bool,
    },
    /// The numbers of objects and storages up to this one are taken.
    Numbers(u32),
    /// How a user proves to be one: as in `pg_authid`; `None` without a password.
    User {
        /// Its object number.
        object: u32,
        /// The verifier.
        verifier: Option<String>,
    },
    /// Rows that a transaction block loads, which is yet to end.
    Loading(Loading),
    /// A user who may not connect.
    Role {
        /// Its object number.
        object: u32,
        /// As that of [`User`](Definition::User).
        verifier: Option<String>,
    },
    /// The schema `public` was dropped, which is there without a definition.
    NoSchema,
    /// A comment.
    Comment {
        /// What it is about.
        subject: Subject,
        /// What it says.
        text: String,
    },
}

impl Definition {
    /// The form in a row: its version, and what is defined.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![FORM]).unwrap_or_default()
    }

    /// What a row holds.
    ///
    /// # Errors
    /// When that is none.
    pub fn decode(bytes: &[u8]) -> Result<Definition, SqlError> {
        let decoded = match bytes {
            [FORM, definition @ ..] => decode_whole(definition),
            [form, ..] => Err(other_form(*form)),
            [] => Err("it is empty".to_owned()),
        };
        decoded.map_err(|error| {
            SqlError::new(SqlState::INTERNAL_ERROR, format!("a definition cannot be read: {error}"))
        })
    }
}

/// The user that is there without a definition.
pub const FIRST_USER: &str = "ordain";

/// The name, in the schema without a name, of the definition of a user.
pub fn user_definition(user: &str) -> String {
    format!("user {user}")
}

/// The name, in the schema without a name, of the definition of rows that are yet to be deleted.
pub fn garbage_name(storage: u32) -> String {
    format!("garbage {storage}")
}

/// The digest by which plans rely on a definition.
pub fn version(definition: &[u8]) -> u64 {
    ordain_db::hash::key_hash(definition)
}

/// A definition with its name.
pub type Named = (String, String);

/// All definitions as of some position, and what a transaction has changed since.
#[derive(Clone, Default, Debug)]
pub struct Catalog {
    definitions: BTreeMap<Named, (Definition, u64)>,
}

impl Catalog {
    /// A catalog without definitions.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Takes a row of the table of definitions.
    ///
    /// # Errors
    /// When it is none.
    pub fn insert(&mut self, schema: &str, name: &str, definition: &[u8]) -> Result<(), SqlError> {
        let entry = (Definition::decode(definition)?, version(definition));
        self.definitions.insert((schema.to_owned(), name.to_owned()), entry);
        Ok(())
    }

    /// Forgets a definition.
    pub fn remove(&mut self, schema: &str, name: &str) {
        self.definitions.remove(&(schema.to_owned(), name.to_owned()));
    }

    /// What a name stands for.
    pub fn get(&self, schema: &str, name: &str) -> Option<&Definition> {
        // Names are looked up once per statement that is planned; a pair of owned strings is what the map has.
        self.definitions.get(&(schema.to_owned(), name.to_owned())).map(|(definition, _)| definition)
    }

    /// Whether there is a schema.
    pub fn has_schema(&self, schema: &str) -> bool {
        match self.get(schema, "") {
            None => schema == PUBLIC,
            Some(definition) => matches!(definition, Definition::Schema { .. }),
        }
    }

    /// The schemas of what users define.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        let made = self.iter().filter(|(_, name, _)| name.is_empty()).map(|(schema, _, _)| schema);
        let made = made.filter(|schema| *schema != PUBLIC);
        std::iter::once(PUBLIC).chain(made).filter(|schema| self.has_schema(schema))
    }

    /// All definitions.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Definition)> {
        self.definitions
            .iter()
            .map(|((schema, name), (definition, _))| (schema.as_str(), name.as_str(), definition))
    }

    /// The reliance of a plan on what a name stands for, or on that it stands for nothing.
    pub fn reliance(&self, schema: &str, name: &str) -> Reliance {
        let version =
            self.definitions.get(&(schema.to_owned(), name.to_owned())).map(|(_, version)| *version);
        Reliance { schema: schema.to_owned(), name: name.to_owned(), version }
    }

    /// The numbers that are taken.
    pub fn numbers(&self) -> u32 {
        match self.get("", "") {
            Some(Definition::Numbers(taken)) => *taken,
            _ => FIRST_OBJECT,
        }
    }
}

/// The part of a row's key that tells it from others of its storage.
pub fn locator(key: &Key) -> &[u8] {
    &key.bytes()[6..]
}

impl Definition {
    /// The object's number, if what the name stands for has one of its own here.
    pub fn object(&self) -> Option<u32> {
        match self {
            Definition::Table(table) => Some(table.object),
            Definition::Sequence(sequence) => Some(sequence.object),
            Definition::View { object, .. }
            | Definition::Schema { object }
            | Definition::User { object, .. }
            | Definition::Role { object, .. } => Some(*object),
            Definition::Index(_)
            | Definition::Garbage { .. }
            | Definition::Numbers(_)
            | Definition::Loading(_)
            | Definition::NoSchema
            | Definition::Comment { .. } => None,
        }
    }
}
