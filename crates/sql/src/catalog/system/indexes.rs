//! Tables and functions of indexes: `pg_index`, and the statements that would make them.

use super::super::{Catalog, ColumnOrder, Definition, KeyPart, Table};
use super::relations::{Relation, relations};
use super::types::operator_class;
use super::{Names, System, number, text, truth, with_schema};
use crate::bind;
use crate::types::functions::quote_ident;
use crate::types::{Datum, SqlType};

/// An index of a table, its primary key among them.
pub(super) struct Indexed {
    pub object: u32,
    pub name: String,
    pub parts: Vec<KeyPart>,
    /// Its columns, if it computes nothing and has all rows; else none.
    pub columns: Vec<u16>,
    pub orders: Vec<ColumnOrder>,
    pub included: Vec<u16>,
    pub predicate: Option<String>,
    pub unique: bool,
    pub primary: bool,
    pub constraint: bool,
    pub ready: bool,
}

impl Indexed {
    /// The names and types of its columns.
    pub(super) fn attributes(&self, name: &str, table: &Table, names: Names<'_>) -> Vec<(String, SqlType)> {
        let type_of = |column: &u16| table.columns.get(usize::from(*column)).map(|column| column.data_type);
        let types = self.parts.iter().map(|part| match part {
            KeyPart::Column(column) => type_of(column),
            KeyPart::Expression(text) => {
                bind::type_of_expression(name, table, text, names.catalog, names.surroundings)
            }
        });
        let types = types.chain(self.included.iter().map(type_of));
        let types = types.map(|data_type| data_type.unwrap_or(SqlType::TEXT));
        bind::part_names(table, &self.parts, &self.included).into_iter().zip(types).collect()
    }

    /// Each of its columns as a statement has it, but for orders.
    fn written(&self, table: &Table) -> Vec<String> {
        let column = |number: &u16| {
            let column = table.columns.get(usize::from(*number));
            quote_ident(column.map_or("", |column| &column.name))
        };
        let parts = self.parts.iter().map(|part| match part {
            KeyPart::Column(number) => column(number),
            KeyPart::Expression(text) => bind::as_column(text),
        });
        parts.chain(self.included.iter().map(column)).collect()
    }

    /// The statement that would make it on a relation as it is shown.
    fn statement(&self, table: &Table, shown: &str, is_pretty: bool) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let mut written = self.written(table);
        let included = written.split_off(self.parts.len());
        let parts = written.iter().zip(&self.orders).map(|(part, order)| format!("{part}{}", order.suffix()));
        let parts = parts.collect::<Vec<_>>().join(", ");
        let name = quote_ident(&self.name);
        let mut statement = format!("CREATE {unique}INDEX {name} ON {shown} USING btree ({parts})");
        if !included.is_empty() {
            statement.push_str(&format!(" INCLUDE ({})", included.join(", ")));
        }
        if let Some(predicate) = &self.predicate {
            let predicate = if is_pretty { predicate.clone() } else { bind::as_condition(predicate) };
            statement.push_str(&format!(" WHERE {predicate}"));
        }
        statement
    }
}

pub(super) fn indexes(table: Option<&Table>) -> Vec<Indexed> {
    let Some(table) = table else { return Vec::new() };
    let key = table.primary_key.iter().map(|key| Indexed {
        object: key.object,
        name: key.name.clone(),
        parts: key.columns.iter().copied().map(KeyPart::Column).collect(),
        columns: key.columns.clone(),
        orders: vec![ColumnOrder::default(); key.columns.len()],
        included: key.included.clone(),
        predicate: None,
        unique: true,
        primary: true,
        constraint: true,
        ready: true,
    });
    let others = table.indexes.iter().map(|index| Indexed {
        object: index.object,
        name: index.name.clone(),
        parts: index.parts.clone(),
        columns: index.plain_columns().unwrap_or_default(),
        orders: index.orders.clone(),
        included: index.included.clone(),
        predicate: index.predicate.clone(),
        unique: index.unique,
        primary: false,
        constraint: index.constraint,
        ready: index.state == crate::plan::IndexState::Ready,
    });
    key.chain(others).collect()
}

/// The names and numbers of a table's indexes.
pub(crate) fn index_numbers(definition: Option<&Definition>) -> Vec<(String, u32)> {
    let table = match definition {
        Some(Definition::Table(table)) => Some(table),
        _ => None,
    };
    indexes(table).into_iter().map(|index| (index.name, index.object)).collect()
}

pub(super) fn pg_index(names: Names<'_>) -> System {
    let columns = vec![
        ("indexrelid", SqlType::OID),
        ("indrelid", SqlType::OID),
        ("indnatts", SqlType::INT2),
        ("indnkeyatts", SqlType::INT2),
        ("indisunique", SqlType::BOOL),
        ("indisprimary", SqlType::BOOL),
        ("indisexclusion", SqlType::BOOL),
        ("indimmediate", SqlType::BOOL),
        ("indisclustered", SqlType::BOOL),
        ("indisvalid", SqlType::BOOL),
        ("indcheckxmin", SqlType::BOOL),
        ("indisready", SqlType::BOOL),
        ("indislive", SqlType::BOOL),
        ("indisreplident", SqlType::BOOL),
        ("indkey", SqlType::INT2.vector_of()),
        ("indoption", SqlType::INT2.vector_of()),
        ("indclass", SqlType::OID.vector_of()),
        ("indcollation", SqlType::OID.vector_of()),
        ("indnullsnotdistinct", SqlType::BOOL),
        ("indexprs", SqlType::TEXT),
        ("indpred", SqlType::TEXT),
    ];
    let mut rows = Vec::new();
    for Relation { object, name, table, .. } in relations(names.catalog) {
        let Some(table) = table else { continue };
        for index in indexes(Some(table)) {
            let count = index.parts.len();
            let part_number = |part: &KeyPart| match part {
                KeyPart::Column(column) => number(i64::from(*column) + 1),
                KeyPart::Expression(_) => number(0),
            };
            let included = index.included.iter().map(|column| number(i64::from(*column) + 1));
            let numbers = index.parts.iter().map(part_number).chain(included).collect();
            let attributes = index.attributes(&name, table, names);
            let classes = attributes.iter().take(count).map(|(_, of)| number(operator_class(*of))).collect();
            let options = index.orders.iter().map(|order| number(i64::from(order.option()))).collect();
            let texts = index.parts.iter().filter_map(|part| match part {
                KeyPart::Column(_) => None,
                KeyPart::Expression(text) => Some(bind::as_column(text)),
            });
            let texts: Vec<String> = texts.collect();
            rows.push(vec![
                number(index.object),
                number(object),
                number((count + index.included.len()) as i64),
                number(count as i64),
                truth(index.unique),
                truth(index.primary),
                truth(false),
                truth(true),
                truth(false),
                truth(index.ready),
                truth(false),
                truth(true),
                truth(true),
                truth(false),
                Datum::Array(numbers),
                Datum::Array(options),
                Datum::Array(classes),
                Datum::Array(vec![number(0); count]),
                truth(false),
                if texts.is_empty() { Datum::Null } else { text(texts.join(", ")) },
                index.predicate.as_ref().map_or(Datum::Null, |text_of| text(bind::as_condition(text_of))),
            ]);
        }
    }
    (rows, columns)
}

/// The numbers of indexes, and the statements that would make them. Tables have their schemas, unless they are to be found by `names`.
pub(crate) fn index_definitions(catalog: &Catalog, names: Option<Names<'_>>) -> Vec<(u32, String)> {
    let mut definitions = Vec::new();
    for relation in relations(catalog) {
        let Some(table) = relation.table else { continue };
        for index in indexes(Some(table)) {
            let Relation { schema, name, .. } = &relation;
            let shown = names.map_or_else(|| with_schema(schema, name), |names| names.shown(schema, name));
            let statement = index.statement(table, &shown, names.is_some());
            definitions.push((index.object, statement));
        }
    }
    definitions
}

/// The numbers of indexes, and the names of their columns.
pub(crate) fn index_columns(catalog: &Catalog) -> Vec<(u32, Vec<String>)> {
    let mut all = Vec::new();
    for relation in relations(catalog) {
        let Some(table) = relation.table else { continue };
        for index in indexes(Some(table)) {
            all.push((index.object, index.written(table)));
        }
    }
    all
}
