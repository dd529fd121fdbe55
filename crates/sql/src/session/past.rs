//! Reads of the past: `AS OF`.
//!
//! A transaction that is asked as of a time sees the newest state that the database has kept from not after it, with the definitions of then, and
//! only reads. A query `AS OF SYSTEM TIME` is such a transaction by itself; the parameter `as_of` makes one of each transaction that
//! begins while it is set, or of the one in which it is set before anything else.

use std::sync::Arc;

use sqlparser::ast::Statement;

use super::{Session, View};
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::types::{Datum, SqlType, text};

/// The parameter; empty for the present.
pub(super) const PARAMETER: &str = "as_of";

/// A state that was kept.
pub struct Past {
    /// Its rows.
    pub view: Box<dyn View>,
    /// Its definitions.
    pub catalog: Arc<Catalog>,
}

impl Session {
    /// Whether what a statement by itself reads is the present, unless it says otherwise.
    pub(super) fn is_in_present(&self) -> bool {
        self.settings.get(PARAMETER).unwrap_or_default().is_empty()
    }

    /// Begins the transaction that a statement which is asked as of a time is by itself, if it is one.
    pub(super) fn begin_in_past(&mut self, statement: &Statement) -> Result<(), SqlError> {
        if self.written_time(statement)?.is_none() {
            return Ok(());
        }
        match (&self.block, crate::syntax::time_of(statement)) {
            (Some(_), None) => Ok(()),
            (Some(_), Some(_)) => {
                let message =
                    "AS OF must not be in a transaction block, nor in a message with other statements";
                Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message)
                    .with_hint("SET LOCAL as_of before the first query of the block."))
            }
            (None, written) => {
                // That of the parameter, if there is none of its own, is entered with the new block.
                let past = written.map(|written| self.look_back(written)).transpose()?;
                self.begin_implicitly()?;
                if let (Some(block), Some(past)) = (&mut self.block, past) {
                    block.enter(past);
                }
                Ok(())
            }
        }
    }

    /// The time as of which a statement is asked, by itself or by the parameter.
    fn written_time<'a>(&'a self, statement: &'a Statement) -> Result<Option<&'a str>, SqlError> {
        let parameter = self.settings.get(PARAMETER)?;
        Ok(crate::syntax::time_of(statement).or(Some(parameter).filter(|written| !written.is_empty())))
    }

    /// The definitions with which a statement is planned that will be a transaction in the past by itself.
    pub(super) fn past_catalog(&self, statement: &Statement) -> Result<Option<Arc<Catalog>>, SqlError> {
        match self.written_time(statement)? {
            Some(written) if self.block.is_none() => Ok(Some(self.look_back(written)?.catalog)),
            _ => Ok(None),
        }
    }

    /// Has the block that is open read as of a time, or refuses what would not be so in it: that it reads the present again.
    pub(super) fn set_past(&mut self, written: &str) -> Result<(), SqlError> {
        let Some(block) = self.block.as_ref().filter(|block| block.past || !written.is_empty()) else {
            return Ok(());
        };
        if written.is_empty() || !block.is_fresh() {
            let message = match written {
                "" => "the transaction reads the past to its end",
                _ => "as_of must be set before any query, and before any savepoint",
            };
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        let past = self.look_back(written)?;
        if let Some(block) = &mut self.block {
            block.enter(past);
        }
        Ok(())
    }

    /// Fails for what is no time, or if nothing of the past is kept at all.
    pub(super) fn refuse_without_history(&self, written: &str) -> Result<(), SqlError> {
        let at = self.time_before(written)?;
        match self.database.past(at) {
            Err(error) if error.state == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE => Err(error),
            _ => Ok(()),
        }
    }

    /// The state that was kept from a time.
    pub(super) fn look_back(&self, written: &str) -> Result<Past, SqlError> {
        self.database.past(self.time_before(written)?)
    }

    /// A time that was written as such, or as an interval before now, in microseconds since 2000-01-01 UTC.
    pub(super) fn time_before(&self, written: &str) -> Result<i64, SqlError> {
        let now = self.database.now();
        let invalid = || {
            let message = format!("\"{written}\" is neither a time nor an interval before now");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Write '2026-03-01 12:30:00+00' or '-10 seconds'.")
        };
        let zone = self.surroundings.zone;
        let interval = text::parse(written, SqlType::INTERVAL, zone);
        let at = match (interval, text::parse(written, SqlType::TIMESTAMPTZ, zone)) {
            (_, Ok(Datum::Timestamp(at))) => at,
            (Ok(Datum::Interval { months: 0, days, microseconds }), _) => {
                let length = i64::from(days).checked_mul(86_400_000_000);
                let length = length.and_then(|length| length.checked_add(microseconds));
                length.and_then(|length| now.checked_add(length)).ok_or_else(invalid)?
            }
            _ => return Err(invalid()),
        };
        if at > now {
            let message = format!("\"{written}\" is in the future: AS OF reads the past");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        Ok(at)
    }
}
