//! What comments are about. A comment is a definition of its own beside that of what it is about, which plans rely on and which does not
//! change with it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Catalog, Definition, FIRST_USER, Table, system};

/// A kind of objects that comments can be about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Class {
    /// A table, index, sequence or view, or a column.
    Relation,
    /// A constraint of a table.
    Constraint,
    /// A schema.
    Schema,
    /// A type.
    Type,
    /// A role.
    Role,
    /// The database.
    Database,
}

impl Class {
    /// The system table that objects of this kind are in.
    pub fn table(self) -> &'static str {
        match self {
            Class::Relation => "pg_class",
            Class::Constraint => "pg_constraint",
            Class::Schema => "pg_namespace",
            Class::Type => "pg_type",
            Class::Role => "pg_authid",
            Class::Database => "pg_database",
        }
    }

    /// Whether it is of all databases, in PostgreSQL, which has such comments in `pg_shdescription`.
    pub fn is_shared(self) -> bool {
        matches!(self, Class::Role | Class::Database)
    }
}

/// What a comment is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The kind of the object.
    pub class: Class,
    /// Its number.
    pub object: u32,
    /// The column of it, from 1 on; 0 for the object itself.
    pub column: u16,
}

impl Subject {
    /// An object itself.
    pub fn of(class: Class, object: u32) -> Subject {
        Subject { class, object, column: 0 }
    }

    /// A column of a relation, by its number from 0 on.
    pub fn column(relation: u32, column: u16) -> Subject {
        Subject { class: Class::Relation, object: relation, column: column + 1 }
    }

    /// The name, in the schema without a name, of the definition of the comment.
    pub fn definition(self) -> String {
        format!("comment {} {} {}", self.class.table(), self.object, self.column)
    }
}

impl Table {
    /// What comments can be about that the table has, itself included.
    fn subjects(&self) -> BTreeSet<Subject> {
        let columns = (0..).zip(&self.columns).filter(|(_, column)| !column.dropped);
        let columns = columns.map(|(number, _)| Subject::column(self.object, number));
        let keys = self.primary_key.iter().map(|key| (key.object, true));
        let indexes = self.indexes.iter().map(|index| (index.object, index.constraint));
        let indexes = keys.chain(indexes).flat_map(|(object, is_constraint)| {
            let constraint = is_constraint.then_some(Subject::of(Class::Constraint, object));
            std::iter::once(Subject::of(Class::Relation, object)).chain(constraint)
        });
        let checks = self.checks.iter().map(|check| check.object);
        let constraints = checks.chain(self.foreign_keys.iter().map(|foreign_key| foreign_key.object));
        let constraints = constraints.map(|object| Subject::of(Class::Constraint, object));
        let own = std::iter::once(Subject::of(Class::Relation, self.object));
        own.chain(columns).chain(indexes).chain(constraints).collect()
    }
}

impl Catalog {
    /// The comment on something.
    pub fn comment(&self, subject: Subject) -> Option<&str> {
        match self.get("", &subject.definition()) {
            Some(Definition::Comment { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// All comments.
    pub fn comments(&self) -> impl Iterator<Item = (Subject, &str)> {
        self.iter().filter_map(|(_, _, definition)| match definition {
            Definition::Comment { subject, text } => Some((*subject, text.as_str())),
            _ => None,
        })
    }

    /// What comments can be about that is there by the definition of a name.
    pub fn subjects(&self, schema: &str, name: &str) -> BTreeSet<Subject> {
        let relation = |object: u32| Subject::of(Class::Relation, object);
        match self.get(schema, name) {
            _ if name.is_empty() && !schema.is_empty() => {
                let object = self.has_schema(schema).then(|| system::schema_object(self, schema));
                object.map(|object| Subject::of(Class::Schema, object)).into_iter().collect()
            }
            Some(Definition::Table(table)) => table.subjects(),
            Some(Definition::View { object, columns, .. }) => {
                let columns = (0..).zip(columns).map(|(number, _)| Subject::column(*object, number));
                std::iter::once(relation(*object)).chain(columns).collect()
            }
            Some(Definition::Sequence(sequence)) => BTreeSet::from([relation(sequence.object)]),
            Some(Definition::User { .. } | Definition::Role { .. }) => {
                let role = name.strip_prefix("user ").and_then(|role| self.role(role));
                role.map(|object| Subject::of(Class::Role, object)).into_iter().collect()
            }
            _ => BTreeSet::new(),
        }
    }

    /// The number of a role.
    pub fn role(&self, name: &str) -> Option<u32> {
        if name == FIRST_USER {
            return Some(system::OWNER);
        }
        self.get("", &super::user_definition(name)).and_then(Definition::object)
    }
}
