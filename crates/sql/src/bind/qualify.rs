//! Names in texts that are kept: queries of views, defaults, conditions. They are looked up once, when something is defined, and kept with
//! their schemas, so that the text means the same to whoever reads it, and whatever is made later.

use sqlparser::ast::{Expr, Ident};
use sqlparser::keywords::{
    Keyword, RESERVED_FOR_IDENTIFIER, RESERVED_FOR_TABLE_ALIAS, RESERVED_FOR_TABLE_FACTOR,
};
use sqlparser::tokenizer::{Location, Span, Token};

use super::Binder;
use super::expression::unnested;
use super::from::fields_of;
use super::names::quoted;
use super::scope::{Level, Qualifier, Relation, Starred};
use crate::catalog::Table;
use crate::error::SqlError;

/// Words that begin something else in `FROM`.
const BEGIN_FACTORS: [Keyword; 5] =
    [Keyword::LATERAL, Keyword::TABLE, Keyword::VALUES, Keyword::UNNEST, Keyword::ONLY];

/// What is written instead of a part of a text.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Naming {
    from: Location,
    /// The same as `from` if nothing is left out.
    until: Location,
    written: String,
}

impl Binder<'_> {
    /// Notes which relation a name without a schema stands for.
    pub(super) fn name_meant(&mut self, name: Option<&Ident>, schema: &str) {
        if let Some(Span { start, .. }) = name.map(|name| name.span) {
            self.note_naming(Naming {
                from: start,
                until: start,
                written: format!("{}.", schema_word(schema)),
            });
        }
    }

    /// Notes which relation a literal names.
    pub(super) fn literal_meant(&mut self, literal: &Expr, schema: &str, name: &str) {
        if let Expr::Value(value) = unnested(literal) {
            let Span { start, end } = value.span;
            let written = format!("'{}'", relation_word(schema, name).replace('\'', "''"));
            self.note_naming(Naming { from: start, until: end, written });
        }
    }

    fn note_naming(&mut self, naming: Naming) {
        // What was not written in the text has no place there.
        let is_written = naming.from.line > 0;
        if self.notes_names && self.texts == 0 && is_written && !self.namings.contains(&naming) {
            self.namings.push(naming);
        }
    }

    /// The text of an expression with the schemas of what it names, over the rows of a table if it has such. What cannot be bound stays
    /// as it is: whoever binds it then says why.
    pub(super) fn qualified_expression(mut self, text: &str, rows: Option<(&str, &Table)>) -> String {
        let Ok(written) = crate::syntax::parse_expression(text) else { return text.to_owned() };
        self.notes_names = true;
        if let Some((name, table)) = rows {
            let fields = fields_of(table);
            let relation = Relation { name: name.to_owned(), fields, offset: 0, key: Vec::new() };
            self.levels =
                vec![Level { relations: vec![relation], is_of_any_schema: true, ..Level::default() }];
        }
        match self.expression(&written) {
            Ok(_) => renamed(text, self.namings),
            Err(_) => text.to_owned(),
        }
    }

    /// The text of a condition on the rows of a table in which a column has another name.
    pub(super) fn with_column_renamed(
        mut self,
        text: &str,
        (name, table): (&str, &Table),
        column: u16,
        new: &str,
    ) -> Result<String, SqlError> {
        let written = crate::syntax::parse_expression(text)?;
        let relation =
            Relation { name: name.to_owned(), fields: fields_of(table), offset: 0, key: Vec::new() };
        self.levels = vec![Level { relations: vec![relation], is_of_any_schema: true, ..Level::default() }];
        self.renames = Some((column, quoted_anywhere(new)));
        self.notes_names = true;
        self.expression(&written)?;
        Ok(renamed(text, self.namings))
    }

    /// Notes that a name is that of a column, if the column is to have another one.
    pub(super) fn column_meant(&mut self, name: &Ident, column: u16) {
        let Some((_, new)) = self.renames.as_ref().filter(|(renamed, _)| *renamed == column) else { return };
        let (Span { start, end }, written) = (name.span, new.clone());
        self.note_naming(Naming { from: start, until: end, written });
    }

    /// Notes that a column is one of the only rows that the text is over: it needs no name of a table, which may get another one.
    pub(super) fn rows_meant(&mut self, first: Option<&Ident>, column: &Ident) {
        if let Some(first) = first.filter(|_| self.levels[0].is_of_any_schema) {
            let (from, until) = (first.span.start, column.span.start);
            self.note_naming(Naming { from, until, written: String::new() });
        }
    }

    /// Notes which columns `*` stands for. Where some cannot be named, as several of a relation have the name, it stays.
    pub(super) fn all_meant(&mut self, star: Span, columns: &[Starred]) {
        if !self.notes_names {
            return;
        }
        let word = |Starred { relation, field, column }: &Starred| {
            let qualifier = relation.as_deref().map(|name| Qualifier { schema: None, name });
            let outwards = qualifier.map_or(0, |relation| self.outwards(relation));
            let found = self.levels[self.levels.len() - 1 - outwards].find(qualifier, &field.name);
            let is_it = found.is_ok_and(|found| found.is_some_and(|(found, _)| found == *column));
            is_it.then(|| match relation {
                Some(relation) => format!("{}.{}", quoted_anywhere(relation), quoted(&field.name)),
                None => quoted_anywhere(&field.name),
            })
        };
        let words: Option<Vec<String>> = columns.iter().map(word).collect();
        if let Some(words) = words {
            self.note_naming(Naming { from: star.start, until: star.end, written: words.join(", ") });
        }
    }

    /// The text of a query with the schemas of what it names, and the names of its columns.
    pub(super) fn qualified_query(&mut self, text: &str) -> Result<(String, Vec<String>), SqlError> {
        let query = crate::syntax::parse_query(text)?;
        self.notes_names = true;
        let (_, fields) = self.query(&query)?;
        let columns = fields.into_iter().map(|field| field.name).collect();
        Ok((renamed(text, std::mem::take(&mut self.namings)), columns))
    }
}

/// The name of a relation with its schema, as a statement or a literal has it.
pub(super) fn relation_word(schema: &str, name: &str) -> String {
    format!("{}.{}", schema_word(schema), quoted(name))
}

/// A name that no keyword can be taken for.
fn quoted_anywhere(name: &str) -> String {
    match Token::make_keyword(name) {
        Token::Word(word) if word.keyword != Keyword::NoKeyword => format!("\"{name}\""),
        _ => quoted(name),
    }
}

/// The name of a schema as a statement has it, whatever the parser takes for a keyword.
fn schema_word(schema: &str) -> String {
    let Token::Word(word) = Token::make_keyword(schema) else { return quoted(schema) };
    let begins_otherwise = RESERVED_FOR_TABLE_FACTOR.contains(&word.keyword)
        || RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
        || RESERVED_FOR_IDENTIFIER.contains(&word.keyword)
        || BEGIN_FACTORS.contains(&word.keyword);
    if begins_otherwise { format!("\"{schema}\"") } else { quoted(schema) }
}

fn renamed(text: &str, mut namings: Vec<Naming>) -> String {
    namings.sort_by_key(|naming| (naming.from.line, naming.from.column));
    let mut namings = namings.into_iter().peekable();
    let mut renamed = String::with_capacity(text.len());
    let (mut place, mut left_out) = (Location::new(1, 1), None);
    for character in text.chars() {
        if left_out == Some(place) {
            left_out = None;
        }
        if let Some(naming) = namings.next_if(|naming| naming.from == place) {
            renamed.push_str(&naming.written);
            left_out = Some(naming.until).filter(|until| *until != place);
        }
        if left_out.is_none() {
            renamed.push(character);
        }
        place = if character == '\n' {
            Location::new(place.line + 1, 1)
        } else {
            Location::new(place.line, place.column + 1)
        };
    }
    renamed
}
