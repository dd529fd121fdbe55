//! Temporary tables: those of a session, in a schema of its own that is dropped when it ends.

use sqlparser::ast::{DiscardObject, OnCommit, Statement};

use super::Session;
use super::answer::Answer;
use super::commands::tag;
use crate::advisory::AdvisoryAct;
use crate::bind::{Defined, TEMPORARY};
use crate::error::{SqlError, SqlState};
use crate::syntax;

impl Session {
    /// Gives the session a schema for what it makes for itself, before it makes the first.
    pub(super) fn prepare_temporary(&mut self, statement: &Statement) {
        let is_temporary = match statement {
            Statement::CreateTable(create) => create.temporary,
            Statement::CreateView(create) => create.temporary,
            Statement::CreateSequence { temporary, .. } => *temporary,
            _ => false,
        };
        if is_temporary && self.surroundings.temporary.is_empty() {
            // Like no other, since other sessions may begin at the same time, at other servers too.
            self.surroundings.temporary = format!("{TEMPORARY}_{}", self.database.unique());
        }
    }

    /// Drops a table at once, or at the end of its block, if it was asked for so.
    pub(super) fn note_temporary(&mut self, statement: &Statement) -> Result<(), SqlError> {
        let Statement::CreateTable(create) = statement else { return Ok(()) };
        if create.on_commit != Some(OnCommit::Drop) {
            return Ok(());
        }
        let last = create.name.0.last().map(ToString::to_string).unwrap_or_default();
        let text = format!("DROP TABLE IF EXISTS {TEMPORARY}.{last} CASCADE");
        match &mut self.block {
            Some(block) => {
                block.at_end.push(text);
                Ok(())
            }
            None => self.define_text(&text).map(drop),
        }
    }

    /// Drops what a block has made for its own time.
    pub(super) fn drop_at_end(&mut self) -> Result<(), SqlError> {
        let Some(block) = &mut self.block else { return Ok(()) };
        let texts = std::mem::take(&mut block.at_end);
        if !texts.is_empty() {
            // It may do so in a block that otherwise only reads by now.
            block.read_only = false;
        }
        texts.iter().try_for_each(|text| self.define_text(text).map(drop))
    }

    /// Drops all that the session has made for itself.
    pub(super) fn drop_temporary(&mut self) -> Result<(), SqlError> {
        let schema = std::mem::take(&mut self.surroundings.temporary);
        if schema.is_empty() {
            return Ok(());
        }
        // It may do so in a session that otherwise only reads.
        self.settings.reset(Some("default_transaction_read_only"));
        self.define_text(&format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE")).map(drop)
    }

    /// Runs a definition that the client has not sent, also where its session is to end.
    pub(super) fn define_text(&mut self, text: &str) -> Result<Option<Defined>, SqlError> {
        let statement = syntax::parse(text)?.pop();
        statement.map(|statement| self.define_until(&statement, None).map(|(defined, _)| defined)).transpose()
    }

    /// `DISCARD`: the session is as it was when it began.
    pub(super) fn discard(&mut self, what: &DiscardObject) -> Result<Answer, SqlError> {
        match what {
            DiscardObject::ALL => {
                if self.block.as_ref().is_some_and(|block| !block.implicit) {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
                }
                self.cursors.close_all();
                self.portals.close_all();
                self.statements.forget_all();
                self.drop_temporary()?;
                if std::mem::take(&mut self.locks_in_session) {
                    self.database.advisory(AdvisoryAct::GiveBackAll { in_transaction: false })?;
                }
                self.reset_setting(None);
                self.drawn.clear();
                self.last_drawn = None;
                Ok(tag("DISCARD ALL"))
            }
            DiscardObject::PLANS => Ok(tag("DISCARD PLANS")),
            DiscardObject::SEQUENCES => {
                self.drawn.clear();
                self.last_drawn = None;
                Ok(tag("DISCARD SEQUENCES"))
            }
            DiscardObject::TEMP => {
                self.drop_temporary()?;
                Ok(tag("DISCARD TEMP"))
            }
        }
    }
}
