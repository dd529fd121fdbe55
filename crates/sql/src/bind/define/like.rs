//! `LIKE` among the columns of `CREATE TABLE`.

use sqlparser::ast::ObjectName;

use super::super::names::qualified;
use super::Draft;
use super::constraints::set_key;
use super::create::{NewKey, Parts, refuse_name};
use super::indexes::NewIndex;
use crate::catalog::{Column, Definition, Index, KeyPart, Table};
use crate::error::{SqlError, SqlState};
use crate::types::{Datum, SqlType};

/// What is taken over besides the columns.
#[derive(Clone, Copy, Default)]
struct Including {
    comments: bool,
    constraints: bool,
    defaults: bool,
    generated: bool,
    identity: bool,
    indexes: bool,
}

impl Including {
    /// Takes options in their order, such as `INCLUDING ALL EXCLUDING INDEXES`.
    fn read(options: &str) -> Result<Including, SqlError> {
        let mut including = Including::default();
        let mut words = options.split(' ');
        while let (Some(switch), Some(what)) = (words.next(), words.next()) {
            let is_on = switch == "including";
            match what {
                "all" => {
                    including = Including {
                        comments: is_on,
                        constraints: is_on,
                        defaults: is_on,
                        generated: is_on,
                        identity: is_on,
                        indexes: is_on,
                    }
                }
                "comments" => including.comments = is_on,
                "defaults" => including.defaults = is_on,
                "constraints" => including.constraints = is_on,
                "generated" => including.generated = is_on,
                "identity" => including.identity = is_on,
                "indexes" => including.indexes = is_on,
                // There is nothing of the kind.
                "compression" | "statistics" | "storage" => {}
                other => {
                    let message = format!("syntax error: unknown option {switch} {other} of LIKE");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        Ok(including)
    }
}

impl Draft<'_> {
    /// Gives a new table the columns of another, and what else is asked for.
    pub(super) fn columns_like(
        &mut self,
        (name, options): (&ObjectName, &str),
        table_name: &str,
        table: &mut Table,
        parts: &mut Parts,
    ) -> Result<Like, SqlError> {
        let including = Including::read(options)?;
        let mut other = self.table_like(name)?;
        if !including.constraints {
            other.checks.clear();
        }
        if !including.indexes {
            (other.primary_key, other.indexes) = (None, Vec::new());
        }
        let mut numbers = Vec::with_capacity(other.columns.len());
        for column in &other.columns {
            numbers.push(table.columns.len() as u16);
            if column.dropped {
                continue;
            }
            refuse_name(&column.name, table)?;
            let identity = column.identity.filter(|_| including.identity);
            if identity.is_some() {
                parts.sequences.push((column.name.clone(), column.data_type, Vec::new()));
            }
            // The default of an identity column is its sequence, which goes with the other table.
            let default = column.default.clone().filter(|_| including.defaults && column.identity.is_none());
            let generated = column.generated.clone().filter(|_| including.generated);
            table.columns.push(Column {
                default,
                generated,
                identity,
                missing: Datum::Null,
                ..column.clone()
            });
        }
        let checks = other.checks.iter();
        parts.checks.extend(checks.map(|check| (Some(check.name.clone()), check.condition.clone())));
        let renumbered = |columns: &[u16]| -> Vec<u16> {
            columns.iter().map(|column| numbers[usize::from(*column)]).collect()
        };
        let (mut indexes, others) = (Vec::new(), parts.unique.len());
        if including.indexes {
            if let Some(key) = &other.primary_key {
                let [columns, included] = [&key.columns, &key.included].map(|columns| renumbered(columns));
                set_key(table_name, parts, NewKey { name: None, columns, included })?;
                table.placing = other.placing;
            }
            for index in &other.indexes {
                let included = renumbered(&index.included);
                match index.plain_columns().filter(|_| index.constraint) {
                    Some(columns) => {
                        let columns = renumbered(&columns);
                        parts.unique.push(NewKey { name: None, columns, included });
                    }
                    None => indexes.push(index_like(index, included, renumbered)),
                }
            }
        }
        Ok(Like { other, numbers, others, indexes, comments: including.comments })
    }

    fn table_like(&mut self, name: &ObjectName) -> Result<Table, SqlError> {
        let (schema, name) = qualified(name)?;
        match self.locate(schema.as_deref(), &name) {
            Some((_, Definition::Table(table))) => Ok(table),
            Some((_, Definition::View { object, columns, query })) => {
                self.view_as_table(object, &columns, &query)
            }
            Some(_) => {
                let message = format!("relation \"{name}\" is invalid in LIKE clause");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            None => Err(super::super::undefined_table(schema.as_deref(), &name)),
        }
    }

    /// A table with the columns of a view.
    fn view_as_table(&self, object: u32, names: &[String], query: &str) -> Result<Table, SqlError> {
        let query = crate::syntax::parse_query(query)?;
        let (_, fields) = super::super::Binder::new(&self.catalog, self.surroundings).query(&query)?;
        let column = |(name, data_type): (&String, SqlType)| Column {
            name: name.clone(),
            data_type,
            not_null: false,
            default: None,
            generated: None,
            missing: Datum::Null,
            identity: None,
            dropped: false,
        };
        let types = fields.into_iter().map(|field| field.data_type);
        Ok(Table { columns: names.iter().zip(types).map(column).collect(), ..Table::empty(object, 0) })
    }

    /// Adds what the other table has besides once the new one has its own parts: the indexes that stand for no constraint, and comments.
    pub(super) fn finish_like(&mut self, schema: &str, name: &str, table: &mut Table, like: &mut Like) {
        let others = table.indexes.iter().filter(|index| !index.constraint).count();
        for index in std::mem::take(&mut like.indexes) {
            let name_of_index = self.free_index_name(schema, name, table, &index.parts, &index.included);
            self.add_index(schema, name, table, NewIndex { name: name_of_index, ..index });
        }
        if like.comments {
            self.copy_comments(like, table, others);
        }
    }
}

/// What a table takes over from another.
pub(super) struct Like {
    /// The other, without indexes and checks unless they are taken over.
    pub other: Table,
    /// The number of each of its columns in the new table.
    pub numbers: Vec<u16>,
    /// How many unique constraints the new table has before those of the other.
    pub others: usize,
    /// Its indexes that stand for no constraint, over columns of the new table.
    indexes: Vec<NewIndex>,
    /// Whether comments are taken over.
    pub comments: bool,
}

/// An index like one that stands for no constraint, but for its name.
fn index_like(index: &Index, included: Vec<u16>, renumbered: impl Fn(&[u16]) -> Vec<u16>) -> NewIndex {
    let part = |part: &KeyPart| match part {
        KeyPart::Column(column) => renumbered(&[*column]).into_iter().map(KeyPart::Column).collect(),
        KeyPart::Expression(_) => vec![part.clone()],
    };
    NewIndex {
        name: String::new(),
        parts: index.parts.iter().flat_map(part).collect(),
        orders: index.orders.clone(),
        included,
        predicate: index.predicate.clone(),
        unique: index.unique,
        constraint: false,
        covering: false,
        is_empty: true,
    }
}
