//! Statements whose texts come again: they are read and planned once.
//!
//! Clients that do not prepare send the same texts with other constants. What such texts have in common is their [shape](crate::syntax::shape()),
//! which is prepared when it comes for the second time, with a parameter for each constant: of the type that the constant has, or for a text of the
//! one that follows from where it stands. A prepared statement with these values means the same as the text, and its plan is kept as long as the
//! definitions are the same. A text that is prepared again, as by clients that prepare each statement without a name, is what it was before.

use std::sync::Arc;

use ordain_db::hash::{FastMap, FastSet, key_hash};
use sqlparser::ast::Statement;

use super::extended::Named;
use super::out::Out;
use super::{Session, commands};
use crate::bind::Prepared;
use crate::error::SqlError;
use crate::plan::Action;
use crate::syntax::{self, Constant};
use crate::types::{BaseType, SqlType, Values, text};

/// Most shapes that a session knows.
const KNOWN_MAX: usize = 256;

/// Most shapes of which it knows that they came once.
const SEEN_MAX: usize = 4096;

/// What is known of a shape that came more than once.
enum Known {
    /// It has a plan.
    Prepared(Named),
    /// Its constants are part of what it means.
    Varying,
}

/// The shapes of a session.
#[derive(Default)]
pub(super) struct Texts {
    known: FastMap<String, Known>,
    /// The hashes of those that came once.
    seen: FastSet<u64>,
}

impl Texts {
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Whether a shape came before.
    fn comes_again(&mut self, key: &str) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        !self.seen.insert(key_hash(key.as_bytes()))
    }

    fn note(&mut self, key: String, known: Known) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(key, known);
    }
}

/// A statement that needs no reading, with the values of its parameters.
pub(super) struct Repeated {
    pub statement: Arc<Statement>,
    pub prepared: Option<Arc<Prepared>>,
    pub values: Values,
}

impl Session {
    /// What a text is, if one of its shape was prepared.
    pub(super) fn repeated(&mut self, text: &str) -> Option<Repeated> {
        let routines = &self.surroundings.routines;
        let shape = syntax::shape(text, &|name| routines.has(name))?;
        let types = shape.constants.iter().map(|constant| constant.data_type);
        let key = shape.text + &types.map(letter).collect::<String>();
        match self.texts.known.get(&key) {
            Some(Known::Varying) => None,
            None => {
                if !self.texts.comes_again(&key) {
                    return None;
                }
                let known = match self.learn(text, &key, &shape.constants, shape.is_call) {
                    Ok(Some(named)) => Known::Prepared(named),
                    // Whatever is wrong with it is told of the text itself.
                    Ok(None) | Err(_) => Known::Varying,
                };
                self.texts.note(key, known);
                None
            }
            Some(Known::Prepared(named)) => {
                let named = named.clone();
                if !self.is_valid(&named) {
                    self.texts.known.remove(&key);
                    return None;
                }
                let statement = named.statement?;
                let Some((_, prepared)) = named.planned else {
                    return Some(Repeated { statement, prepared: None, values: Values::new() });
                };
                let types = prepared.parameters.iter();
                let zone = self.surroundings.zone;
                let values = shape.constants.iter().zip(types).map(|(constant, data_type)| {
                    is_plain(constant, *data_type)
                        .then(|| text::parse(&constant.text, *data_type, zone).ok())?
                });
                let values = values.collect::<Option<Values>>()?;
                Some(Repeated { statement, prepared: Some(prepared), values })
            }
        }
    }

    /// Prepares a shape, if that means the same as a text of it, and reads the same indexes: which may have the rows, or compute the value, of
    /// some constants only.
    fn learn(
        &mut self,
        text: &str,
        key: &str,
        constants: &[Constant],
        is_call: bool,
    ) -> Result<Option<Named>, SqlError> {
        let shaped = &key[..key.len() - constants.len()];
        let (Ok([written]), Ok([statement])) = (
            <[Statement; 1]>::try_from(syntax::parse(text)?),
            <[Statement; 1]>::try_from(syntax::parse(shaped)?),
        ) else {
            return Ok(None);
        };
        let types: Vec<Option<SqlType>> = constants.iter().map(|constant| constant.data_type).collect();
        if !commands::is_planned(&statement) {
            return Ok(
                commands::bounds_transaction(&statement).then(|| Named::of(Some(statement), text, types))
            );
        }
        if !self.is_in_present() || syntax::time_of(&written).is_some() {
            return Ok(None);
        }
        let (_, as_written) = self.prepare(&written, &[])?;
        let (catalog, prepared) = self.prepare(&statement, &types)?;
        let is_same = columns(&prepared) == columns(&as_written)
            && prepared.parameters.len() == constants.len()
            && prepared.plan.action.indexes() == as_written.plan.action.indexes()
            && (!is_call || matches!(as_written.plan.action, Action::Call { .. }))
            && constants.iter().zip(&prepared.parameters).all(|(one, known)| may_be(one, *known));
        let mut named = Named::of(Some(statement), text, types);
        named.planned = Some((catalog, Arc::new(prepared)));
        Ok(is_same.then_some(named))
    }

    /// What a text is that is prepared with these types, if it was before.
    pub(super) fn parsed(&mut self, text: &str, types: &[u32]) -> Option<Named> {
        let Some(Known::Prepared(named)) = self.texts.known.get(&key_of(text, types)) else { return None };
        let named = named.clone();
        self.is_valid(&named).then_some(named)
    }

    /// Keeps what a text is that was prepared.
    pub(super) fn note_parsed(&mut self, text: &str, types: &[u32], named: Named) {
        if text.len() <= syntax::SHAPED_MAX {
            let key = key_of(text, types);
            if self.texts.comes_again(&key) {
                self.texts.note(key, Known::Prepared(named));
            }
        }
    }

    /// Whether a plan is what would be made of its statement now.
    fn is_valid(&mut self, named: &Named) -> bool {
        let Some((catalog, prepared)) = &named.planned else { return true };
        prepared.zone == self.surroundings.zone
            && self.is_in_present()
            && self.catalog().is_ok_and(|current| Arc::ptr_eq(&current, catalog))
    }

    /// Runs and answers a statement that was not read.
    ///
    /// # Errors
    /// A [stale](SqlError::is_stale) one if its plan is: nothing was sent then, and it is to be read.
    pub(super) fn answer_repeated(&mut self, repeated: &Repeated, out: &mut Out<'_>) -> Result<(), SqlError> {
        self.begin_timing();
        match &repeated.prepared {
            Some(prepared) => {
                self.refuse_if_failed(Some(&repeated.statement))?;
                self.is_repeating = true;
                let outcome = self.answer_prepared(&repeated.statement, prepared, &repeated.values, out);
                self.is_repeating = false;
                outcome?;
            }
            None => {
                let answer = self.perform(&repeated.statement)?;
                self.answer(answer, &[], out)?;
            }
        }
        self.end_timing();
        Ok(())
    }
}

/// The key of a text that is prepared, which no shape has.
fn key_of(text: &str, types: &[u32]) -> String {
    let mut key = String::with_capacity(1 + text.len() + 11 * types.len());
    key.push('\0');
    key.push_str(text);
    types.iter().for_each(|oid| key.push_str(&format!("\0{oid}")));
    key
}

/// A constant's type in the key of its shape.
fn letter(data_type: Option<SqlType>) -> char {
    match data_type {
        None => 't',
        Some(SqlType::INT4) => 'i',
        Some(SqlType::INT8) => 'l',
        Some(_) => 'n',
    }
}

/// The names and types of what a statement gives.
fn columns(prepared: &Prepared) -> Option<Vec<(&str, SqlType)>> {
    let fields = prepared.fields.as_ref()?;
    Some(fields.iter().map(|field| (field.name.as_str(), field.data_type)).collect())
}

/// Whether a constant is a parameter of a type.
fn may_be(constant: &Constant, data_type: SqlType) -> bool {
    constant.data_type.is_none_or(|known| known == data_type) && is_plain(constant, data_type)
}

/// Whether a constant of a type is read alike in a text and as a parameter: types and texts that stand for other things are left to whoever reads
/// the text.
fn is_plain(constant: &Constant, data_type: SqlType) -> bool {
    use BaseType::{
        Bool, Cidr, Date, Float4, Float8, Inet, Int2, Int4, Int8, Json, Numeric, Text, Timestamp,
        TimestampTz, Uuid, Varchar,
    };
    match data_type.base {
        // Moments have names, too.
        Date | Timestamp | TimestampTz => constant.text.starts_with(|first: char| first.is_ascii_digit()),
        Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric | Text | Varchar | Uuid | Inet | Cidr
        | Json => data_type == SqlType::of(data_type.base),
        _ => false,
    }
}
