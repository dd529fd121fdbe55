//! `COMMENT ON`, and what becomes of comments.

use std::collections::BTreeSet;

use sqlparser::ast::{CommentObject, Ident, ObjectName};

use super::super::catalog_functions::type_number;
use super::super::names::{last_name, name_of, qualified};
use super::super::types::undefined as undefined_type;
use super::super::undefined_table;
use super::Draft;
use super::like::Like;
use crate::catalog::system::{self, DATABASE};
use crate::catalog::{Class, Definition, Named, Subject, Table, user_definition};
use crate::error::{SqlError, SqlState};
use crate::syntax::commented_constraint;
use crate::types::Datum;

/// Most bytes of a comment: with what belongs to it, it is one row of the database.
const COMMENT_BYTES_MAX: usize = 32 * 1024;

impl Draft<'_> {
    /// Sets the comment on something; an empty one is none.
    pub(super) fn comment(
        &mut self,
        kind: CommentObject,
        name: &ObjectName,
        text: Option<&str>,
    ) -> Result<&'static str, SqlError> {
        let subject = match (kind, commented_constraint(name)) {
            (CommentObject::Column, Some((table, constraint))) => {
                Some(self.commented_constraint(&table, &constraint)?)
            }
            (CommentObject::Column, None) => Some(self.commented_column(name)?),
            (
                CommentObject::Table
                | CommentObject::View
                | CommentObject::Index
                | CommentObject::Sequence
                | CommentObject::MaterializedView
                | CommentObject::ForeignTable,
                _,
            ) => Some(self.commented_relation(kind, name)?),
            _ => self.commented_other(kind, name)?,
        };
        if let Some(subject) = subject {
            self.set_comment(subject, text)?;
        }
        Ok("COMMENT")
    }

    fn set_comment(&mut self, subject: Subject, text: Option<&str>) -> Result<(), SqlError> {
        let text = text.filter(|text| !text.is_empty());
        if text.is_some_and(|text| text.len() > COMMENT_BYTES_MAX) {
            let message = format!("a comment can have at most {COMMENT_BYTES_MAX} bytes");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let before = self.catalog.comment(subject);
        if before == text {
            self.rely("", &subject.definition());
            return Ok(());
        }
        if before.is_none() && !self.is_own {
            // Whoever drops what it is about meanwhile does not know of it.
            self.count_on();
        }
        let definition = text.map(|text| Definition::Comment { subject, text: text.to_owned() });
        self.set("", &subject.definition(), definition);
        Ok(())
    }

    /// Forgets the comments on what is not there any more by what has been changed.
    pub(super) fn forget_comments(&mut self) {
        let mut gone = BTreeSet::new();
        let mut stays = BTreeSet::new();
        let mut is_own = true;
        for change in &self.changes {
            let (schema, name) = (change.schema.as_str(), change.name.as_str());
            let (before, after) = (self.before.subjects(schema, name), self.catalog.subjects(schema, name));
            is_own &= schema == self.surroundings.temporary || before.is_subset(&after);
            gone.extend(before);
            stays.extend(after);
        }
        let mut gone = gone.difference(&stays).peekable();
        if gone.peek().is_some() && !is_own {
            // Somebody may be about to comment on it.
            self.rely_on_nothing_new();
        }
        for subject in gone {
            if self.catalog.comment(*subject).is_some() {
                self.set("", &subject.definition(), None);
            }
        }
    }

    /// Gives a new table the comments on what it has taken over from another: columns, checks, which have the same names, and indexes, which
    /// are in the same order: those for constraints after others that the new table has, and those for none after `other_indexes`.
    pub(super) fn copy_comments(&mut self, like: &Like, table: &Table, other_indexes: usize) {
        let Like { other, numbers, others, .. } = like;
        let columns = (0..).zip(&other.columns).zip(numbers).filter(|((_, column), _)| !column.dropped);
        let mut pairs: Vec<(Subject, Subject)> = columns
            .map(|((from, _), to)| (Subject::column(other.object, from), Subject::column(table.object, *to)))
            .collect();
        for check in &table.checks {
            if let Some(known) = other.checks.iter().find(|known| known.name == check.name) {
                let [from, to] = [known, check].map(|check| Subject::of(Class::Constraint, check.object));
                pairs.push((from, to));
            }
        }
        let keys = other.primary_key.iter().zip(&table.primary_key);
        let mut indexes: Vec<(u32, u32)> = keys.map(|(from, to)| (from.object, to.object)).collect();
        for (is_constraint, before) in [(true, *others), (false, other_indexes)] {
            let of_kind = |table: &Table| -> Vec<u32> {
                let of_kind = table.indexes.iter().filter(|index| index.constraint == is_constraint);
                of_kind.map(|index| index.object).collect()
            };
            indexes.extend(of_kind(other).into_iter().zip(of_kind(table).into_iter().skip(before)));
        }
        let relation = |object: u32| Subject::of(Class::Relation, object);
        pairs.extend(indexes.into_iter().map(|(from, to)| (relation(from), relation(to))));
        for (from, subject) in pairs {
            if let Some(text) = self.catalog.comment(from).map(str::to_owned) {
                self.set("", &subject.definition(), Some(Definition::Comment { subject, text }));
            }
        }
    }

    /// What a name stands for, which the change relies on.
    fn commented(&mut self, name: &ObjectName) -> Result<(Named, Definition), SqlError> {
        let (schema, name) = qualified(name)?;
        let found = self.locate(schema.as_deref(), &name);
        let (schema, definition) = found.ok_or_else(|| undefined_table(schema.as_deref(), &name))?;
        self.is_own = schema == self.surroundings.temporary;
        Ok(((schema, name), definition))
    }

    fn commented_relation(&mut self, kind: CommentObject, name: &ObjectName) -> Result<Subject, SqlError> {
        let ((schema, name), found) = self.commented(name)?;
        let object = match (&found, kind) {
            (Definition::Table(_), CommentObject::Table)
            | (Definition::View { .. }, CommentObject::View)
            | (Definition::Sequence(_), CommentObject::Sequence) => found.object(),
            (Definition::Index(table), CommentObject::Index) => {
                self.rely(&schema, table);
                let numbers = system::index_numbers(self.catalog.get(&schema, table));
                numbers.into_iter().find(|(known, _)| *known == name).map(|(_, object)| object)
            }
            _ => None,
        };
        object.map(|object| Subject::of(Class::Relation, object)).ok_or_else(|| {
            let kind = kind.to_string().to_lowercase();
            let article = if kind == "index" { "an" } else { "a" };
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {article} {kind}"))
        })
    }

    fn commented_column(&mut self, name: &ObjectName) -> Result<Subject, SqlError> {
        let mut parts = name.clone();
        let column = parts.0.pop().map(|part| ObjectName(vec![part]));
        let column = column.as_ref().map(last_name).transpose()?.unwrap_or_default();
        let ((_, relation), found) = self.commented(&parts)?;
        let not_supported = |what: &str| {
            let message = format!("cannot set comment on relation \"{relation}\"");
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail(format!("This operation is not supported for {what}."))
        };
        let number = match &found {
            Definition::Table(table) => table.column(&column),
            Definition::View { columns, .. } => {
                columns.iter().position(|known| *known == column).map(|place| place as u16)
            }
            Definition::Index(_) => return Err(not_supported("indexes")),
            _ => return Err(not_supported("sequences")),
        };
        let subject = number.zip(found.object()).map(|(number, object)| Subject::column(object, number));
        subject.ok_or_else(|| {
            let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    }

    fn commented_constraint(&mut self, table: &ObjectName, constraint: &Ident) -> Result<Subject, SqlError> {
        let constraint = name_of(constraint);
        let ((_, name), found) = self.commented(table)?;
        let object = match &found {
            Definition::Table(table) => table.constraint(&constraint),
            Definition::Index(_) => {
                let message = format!("\"{name}\" is an index");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            _ => None,
        };
        object.map(|object| Subject::of(Class::Constraint, object)).ok_or_else(|| {
            let message = format!("constraint \"{constraint}\" for table \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// What is no relation, and in none; `None` for what is there without being defined.
    fn commented_other(
        &mut self,
        kind: CommentObject,
        name: &ObjectName,
    ) -> Result<Option<Subject>, SqlError> {
        let last = last_name(name)?;
        let undefined = |state: SqlState, kind: &str| {
            Err(SqlError::new(state, format!("{kind} \"{last}\" does not exist")))
        };
        Ok(match kind {
            CommentObject::Schema => {
                self.rely(&last, "");
                if !self.catalog.has_schema(&last) {
                    return undefined(SqlState::INVALID_SCHEMA_NAME, "schema");
                }
                Some(Subject::of(Class::Schema, system::schema_object(&self.catalog, &last)))
            }
            CommentObject::Database if last == self.surroundings.database => {
                Some(Subject::of(Class::Database, DATABASE))
            }
            CommentObject::Database => return undefined(SqlState::INVALID_CATALOG_NAME, "database"),
            CommentObject::Role | CommentObject::User => {
                self.rely("", &user_definition(&last));
                match self.catalog.role(&last) {
                    Some(object) => Some(Subject::of(Class::Role, object)),
                    None => return undefined(SqlState::UNDEFINED_OBJECT, "role"),
                }
            }
            // It is accepted, and stands for nothing that could be commented on.
            CommentObject::Extension if last == "plpgsql" => None,
            CommentObject::Type => match type_number(&name.to_string()) {
                Datum::Int(object) => u32::try_from(object).ok().map(|it| Subject::of(Class::Type, it)),
                _ => return Err(undefined_type(&name.to_string())),
            },
            other => return undefined(SqlState::UNDEFINED_OBJECT, &other.to_string().to_lowercase()),
        })
    }
}
