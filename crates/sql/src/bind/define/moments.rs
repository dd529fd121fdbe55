//! Moments in definitions.
//!
//! Defaults, checks, indexes and views are kept as texts, which every session binds for itself. A moment in them is that of whoever has defined them:
//! where its text has no zone, it is written out with one. What is converted only when a statement runs follows the zone of its session,
//! as in PostgreSQL.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::Draft;
use crate::bind::Binder;
use crate::catalog::{Catalog, Column, KeyPart, Table};
use crate::error::SqlError;
use crate::syntax;
use crate::types::{SqlType, Zone, text};

/// Literals that have become moments, and the types that they have got.
type Moments = Vec<(String, SqlType)>;

impl Draft<'_> {
    /// Writes out the moments in the defaults, generated columns, checks and indexes of a table.
    pub(super) fn write_out_moments(&self, name: &str, table: &mut Table) {
        for place in 0..table.columns.len() {
            let Some(default) = table.columns[place].default.clone() else { continue };
            let column = table.columns[place].clone();
            let written = self.written_out(&self.catalog, &default, |binder, text| {
                binder.default_of(&Column { default: Some(text.to_owned()), ..column.clone() })
            });
            table.columns[place].default = Some(written.unwrap_or(default));
        }
        for place in 0..table.columns.len() {
            let Some(value) = table.columns[place].generated.clone() else { continue };
            let written = self.written_out(&self.catalog, &value, |binder, text| {
                binder.generation(name, table, &table.columns[place], text)
            });
            table.columns[place].generated = Some(written.unwrap_or(value));
        }
        for place in 0..table.checks.len() {
            let condition = table.checks[place].condition.clone();
            let written = self.written_out(&self.catalog, &condition, |binder, text| {
                binder.check_condition(name, table, text)
            });
            table.checks[place].condition = written.unwrap_or(condition);
        }
        let before = table.clone();
        for index in &mut table.indexes {
            for part in &mut index.parts {
                let KeyPart::Expression(text) = part else { continue };
                let written = self.written_out(&self.catalog, text, |binder, text| {
                    Ok(binder.index_expression(name, &before, text)?.expression)
                });
                *text = written.unwrap_or_else(|| std::mem::take(text));
            }
            if let Some(text) = &mut index.predicate {
                let written = self.written_out(&self.catalog, text, |binder, text| {
                    binder.index_predicate(name, &before, text)
                });
                *text = written.unwrap_or_else(|| std::mem::take(text));
            }
        }
    }

    /// The text of a query with its moments written out.
    pub(super) fn query_with_moments(&self, query: String) -> String {
        let written = self.written_out(self.before, &query, |binder, text| {
            binder.query(&syntax::parse_query(text)?).map(|(node, _)| node)
        });
        written.unwrap_or(query)
    }

    /// A text whose moments have zones; `None` if they all have, or if it cannot be bound, which is told elsewhere.
    fn written_out<T: PartialEq>(
        &self,
        catalog: &Catalog,
        written: &str,
        bind: impl Fn(&mut Binder<'_>, &str) -> Result<T, SqlError>,
    ) -> Option<String> {
        let bound = |text: &str| -> Result<(T, Moments), SqlError> {
            let mut binder = Binder::new(catalog, self.surroundings);
            Ok((bind(&mut binder, text)?, binder.moments))
        };
        if !written.contains('\'') {
            return None;
        }
        let (meant, moments) = bound(written).ok()?;
        if moments.is_empty() {
            return None;
        }
        let dialect = PostgreSqlDialect {};
        let mut tokens = Tokenizer::new(&dialect, written).with_unescape(false).tokenize().ok()?;
        let mut changed = None;
        for place in 0..tokens.len() {
            let Token::SingleQuotedString(literal) = &tokens[place] else { continue };
            let Some((_, ty)) = moments.iter().find(|(moment, _)| moment == literal) else { continue };
            let Some(with_zone) = with_zone(literal, *ty, self.surroundings.zone) else { continue };
            let before = std::mem::replace(&mut tokens[place], Token::SingleQuotedString(with_zone));
            let text: String = tokens.iter().map(Token::to_string).collect();
            // The same text may stand in another place for something else, which would change.
            match bound(&text) {
                Ok((now, _)) if now == meant => changed = Some(text),
                _ => tokens[place] = before,
            }
        }
        changed
    }
}

/// The text of a moment with a zone, if it has none.
fn with_zone(literal: &str, ty: SqlType, zone: Zone) -> Option<String> {
    let elsewhere = Zone::fixed(3_600)?;
    let value = text::parse(literal, ty, zone).ok()?;
    let depends = text::parse(literal, ty, Zone::Utc).ok() != text::parse(literal, ty, elsewhere).ok();
    depends.then(|| text::to_string(&value, ty, zone))
}
