//! Statements that are for the session: transactions, settings, prepared statements, and what is accepted without effect.

use sqlparser::ast::{
    ContextModifier, CreateExtension, DateTimeField, Expr, Ident, ObjectName, Reset, Set,
    SetSessionAuthorizationParamKind, Statement, TransactionAccessMode, TransactionMode, VacuumStatement,
    Value,
};

use super::answer::{Answer, Rows, Tag};
use super::block::Block;
use super::past::PARAMETER;
use super::settings;
use super::{Notice, Session};
use crate::bind;
use crate::bind::interval_of_literal;
use crate::bind::names::{name_of, parts_of, quoted};
use crate::catalog::{FIRST_USER, user_definition};
use crate::error::{Remark, SqlError, SqlState};
use crate::execute::{Inputs, evaluate};
use crate::protocol::backend::NoticeSeverity;
use crate::types::{Datum, SqlType, Zone, text};

/// Whether a statement is one that has a plan.
pub(super) fn is_planned(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Call(_)
    ) || super::cursors::declaration(statement).is_some()
}

/// What is planned of a statement: itself, or what `EXPLAIN` tells of.
pub(super) fn planned_part(statement: &Statement) -> Option<&Statement> {
    let part = match statement {
        Statement::Explain { statement, .. } => statement,
        other => other,
    };
    is_planned(part).then_some(part)
}

/// Whether a statement begins or ends a transaction.
pub(super) fn bounds_transaction(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::StartTransaction { .. } | Statement::Commit { .. } | Statement::Rollback { .. }
    )
}

/// Whether a statement controls transactions or cannot be in one that begins by itself.
pub(super) fn stands_alone(statement: &Statement) -> bool {
    bounds_transaction(statement) || matches!(statement, Statement::Call(_))
}

/// Whether a statement reads or writes rows or definitions.
pub(super) fn touches_rows(statement: &Statement) -> bool {
    let others = matches!(
        statement,
        Statement::Copy { .. } | Statement::Explain { .. } | Statement::Execute { .. } | Statement::Call(_)
    );
    others || is_planned(statement) || bind::is_definition(statement)
}

/// The columns of what a statement for the session gives.
pub(super) fn column_names(statement: &Statement) -> Option<Vec<String>> {
    match statement {
        Statement::ShowVariable { variable } if is_all(variable) => {
            Some(vec!["name".to_owned(), "setting".to_owned()])
        }
        Statement::ShowVariable { variable } => Some(vec![variable_name(variable)]),
        Statement::Explain { .. } => Some(vec!["QUERY PLAN".to_owned()]),
        _ => None,
    }
}

impl Session {
    /// Runs a statement that has no plan.
    pub(super) fn perform(&mut self, statement: &Statement) -> Result<Answer, SqlError> {
        self.refuse_if_failed(Some(statement))?;
        if bind::is_definition(statement) {
            self.prepare_temporary(statement);
            let (defined, written) = self.define(statement)?;
            self.note_temporary(statement)?;
            self.notices.extend(defined.remarks.into_iter().map(Notice::from));
            return Ok(Answer::Tag(match defined.rows {
                Some(_) => Tag::Counted("SELECT", written),
                None => Tag::Plain(defined.tag),
            }));
        }
        self.command(statement)
    }

    /// In a block that has failed, nothing is accepted but its end.
    pub(super) fn refuse_if_failed(&self, statement: Option<&Statement>) -> Result<(), SqlError> {
        let ends = matches!(statement, Some(Statement::Commit { .. } | Statement::Rollback { .. }));
        if ends || !self.block.as_ref().is_some_and(|block| block.failed) {
            return Ok(());
        }
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        Err(SqlError::new(SqlState::IN_FAILED_SQL_TRANSACTION, message))
    }

    fn command(&mut self, statement: &Statement) -> Result<Answer, SqlError> {
        match statement {
            Statement::StartTransaction { modes, begin, .. } => self.begin(modes, *begin),
            Statement::Commit { chain: true, .. } => self.chained("COMMIT", Session::end_block),
            Statement::Commit { .. } => self.end_block(),
            Statement::Rollback { chain: true, savepoint: None } => {
                self.chained("ROLLBACK", Session::abandon_block)
            }
            Statement::Rollback { savepoint: None, .. } => self.abandon_block(),
            Statement::Rollback { savepoint: Some(name), .. } => self.go_back(&name_of(name)),
            Statement::Savepoint { name } => {
                let (portals, settings) = (self.portals.made(), self.settings.changes());
                self.open_block("SAVEPOINT")?.save(name_of(name), portals, settings);
                Ok(tag("SAVEPOINT"))
            }
            Statement::ReleaseSavepoint { name } => {
                self.open_block("RELEASE SAVEPOINT")?.release(&name_of(name))?;
                Ok(tag("RELEASE"))
            }
            Statement::Set(set) => self.set(set),
            Statement::ShowVariable { variable } => self.show(variable),
            Statement::Reset(reset) => {
                match &reset.reset {
                    Reset::ALL => {
                        self.set_past("")?;
                        self.reset_setting(None);
                    }
                    Reset::ConfigurationParameter(name) => {
                        let name = parts_of(name)?.join(".");
                        if name.eq_ignore_ascii_case(PARAMETER) {
                            self.set_past("")?;
                        }
                        self.reset_setting(Some(&name));
                    }
                    Reset::SessionAuthorization => {}
                }
                Ok(tag("RESET"))
            }
            Statement::Prepare { name, data_types, statement } => {
                let types =
                    data_types.iter().map(|name| bind::type_named(name).map(|known| Some(known.plain())));
                let types = types.collect::<Result<_, SqlError>>()?;
                self.name_statement(name_of(name), statement, types)?;
                Ok(tag("PREPARE"))
            }
            Statement::Execute { name: Some(name), parameters, .. } => {
                self.execute_prepared(name, parameters)
            }
            Statement::Deallocate { name, .. } => {
                let name = name_of(name);
                if name == "all" {
                    self.statements.forget_all();
                    return Ok(tag("DEALLOCATE ALL"));
                }
                self.statements.forget(&name)?;
                Ok(tag("DEALLOCATE"))
            }
            Statement::Copy { source, to, target, options, legacy_options, .. } => {
                self.copy(source, *to, target, options, legacy_options)
            }
            Statement::Fetch { name, direction, position, into: None } => {
                self.fetch(name, direction, position)
            }
            Statement::Close { cursor } => self.close(cursor),
            Statement::Discard { object_type } => self.discard(object_type),
            Statement::Explain { .. } => self.explain(statement, None),
            other => self.command_on_definitions(other),
        }
    }

    /// A statement about what is defined that changes no definition.
    fn command_on_definitions(&mut self, statement: &Statement) -> Result<Answer, SqlError> {
        match statement {
            Statement::Vacuum(VacuumStatement { reindex: true, boost, table_name: Some(name), .. }) => {
                self.reindex(name, *boost)?;
                Ok(tag("REINDEX"))
            }
            Statement::CreateExtension(extension) => self.create_extension(extension),
            Statement::Lock(lock) => {
                if self.block.is_none() {
                    let message = "LOCK TABLE can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
                }
                let catalog = self.catalog()?;
                lock.tables
                    .iter()
                    .try_for_each(|table| bind::locked(&table.name, &catalog, &self.surroundings))?;
                Ok(tag("LOCK TABLE"))
            }
            Statement::Grant(_) | Statement::GrantRole(_) => Ok(self.leave_rights("GRANT")),
            Statement::Revoke(_) | Statement::RevokeRole(_) => Ok(self.leave_rights("REVOKE")),
            Statement::AlterDefaultPrivileges(_) => Ok(self.leave_rights("ALTER DEFAULT PRIVILEGES")),
            other => accepted(other),
        }
    }

    /// Accepts what would give or take rights, and says that it does neither.
    fn leave_rights(&mut self, command: &'static str) -> Answer {
        self.remark(ALL_RIGHTS);
        tag(command)
    }

    /// Gives a user a password, as `ALTER USER` does.
    ///
    /// # Errors
    /// What the statement would fail with.
    pub fn set_password(&mut self, user: &str, password: &str) -> Result<(), SqlError> {
        let (user, password) = (user.replace('"', "\"\""), password.replace('\'', "''"));
        let statements = crate::syntax::parse(&format!("ALTER USER \"{user}\" PASSWORD '{password}'"))?;
        statements.iter().try_for_each(|statement| self.define(statement).map(drop))
    }

    fn begin(&mut self, modes: &[TransactionMode], begin: bool) -> Result<Answer, SqlError> {
        match &mut self.block {
            Some(block) if block.implicit => block.implicit = false,
            Some(_) => {
                self.warn(SqlState::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress")
            }
            None => self.block = Some(self.new_block()?),
        }
        // There is one isolation level, and it is at least as strict as any that is asked for.
        let in_past = self.block.as_ref().is_some_and(|block| block.past);
        for mode in modes {
            if let TransactionMode::AccessMode(mode) = mode
                && !in_past
            {
                self.set_read_only(*mode == TransactionAccessMode::ReadOnly)?;
            }
        }
        Ok(tag(if begin { "BEGIN" } else { "START TRANSACTION" }))
    }

    fn end_block(&mut self) -> Result<Answer, SqlError> {
        match &self.block {
            None => {
                self.warn_of_no_block();
                Ok(tag("COMMIT"))
            }
            Some(block) if block.failed => {
                self.portals.close_all();
                self.roll_back();
                Ok(tag("ROLLBACK"))
            }
            Some(_) => {
                self.portals.close_all();
                self.commit()?;
                Ok(tag("COMMIT"))
            }
        }
    }

    /// Goes back to a savepoint.
    fn go_back(&mut self, name: &str) -> Result<Answer, SqlError> {
        let (portals, settings) = self.open_block("ROLLBACK TO SAVEPOINT")?.go_back(name)?;
        self.portals.go_back(portals);
        self.take_back_settings(&settings);
        if let Some(block) = &mut self.block {
            self.cursors.go_back(block);
        }
        Ok(tag("ROLLBACK"))
    }

    /// Accepts an extension whose functions are there already.
    fn create_extension(&mut self, extension: &CreateExtension) -> Result<Answer, SqlError> {
        let name = name_of(&extension.name);
        match name.as_str() {
            "plpgsql" => {
                let message = format!("extension \"{name}\" already exists");
                let error = SqlError::new(SqlState::DUPLICATE_OBJECT, message);
                if !extension.if_not_exists {
                    return Err(error);
                }
                self.notices.push(Remark::skipping(&error).into());
            }
            "uuid-ossp" => {
                self.remark("of extension \"uuid-ossp\" only uuid_generate_v4() is there, and is without it")
            }
            "pgcrypto" => {
                return Err(SqlError::unsupported("the extension \"pgcrypto\"")
                    .with_hint("gen_random_uuid() is there without it."));
            }
            other => return Err(SqlError::unsupported(format!("the extension \"{other}\""))),
        }
        Ok(tag("CREATE EXTENSION"))
    }

    fn abandon_block(&mut self) -> Result<Answer, SqlError> {
        if self.block.is_none() {
            self.warn_of_no_block();
        }
        self.portals.close_all();
        self.roll_back();
        Ok(tag("ROLLBACK"))
    }

    /// Ends the block, and begins one of the same kind.
    fn chained(
        &mut self,
        command: &str,
        end: impl FnOnce(&mut Session) -> Result<Answer, SqlError>,
    ) -> Result<Answer, SqlError> {
        let block = self.open_block(&format!("{command} AND CHAIN"))?;
        let read_only = block.read_only && !block.past;
        let answer = end(self)?;
        let mut block = self.new_block()?;
        block.read_only = block.past || read_only;
        self.block = Some(block);
        Ok(answer)
    }

    fn open_block(&mut self, command: &str) -> Result<&mut Block, SqlError> {
        self.block.as_mut().filter(|block| !block.implicit).ok_or_else(|| {
            let message = format!("{command} can only be used in transaction blocks");
            SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message)
        })
    }

    fn set(&mut self, set: &Set) -> Result<Answer, SqlError> {
        match set {
            Set::SingleAssignment { scope, variable, values, .. } => {
                if let Some((names, deferred)) = crate::syntax::deferral(variable, values) {
                    return self.set_constraints(&names, deferred);
                }
                let name = parts_of(variable)?.join(".");
                let local = *scope == Some(ContextModifier::Local);
                if local && self.block.is_none() {
                    return Ok(self.set_without_block());
                }
                let text = if name.eq_ignore_ascii_case("search_path") { schema_text } else { setting_text };
                let values: Vec<String> = values.iter().map(text).collect();
                let is_default = values.len() == 1 && values[0].eq_ignore_ascii_case("default");
                if name.eq_ignore_ascii_case(PARAMETER) {
                    self.set_past(if is_default { "" } else { &values[0] })?;
                }
                if is_default {
                    self.reset_setting(Some(&name));
                } else if name.eq_ignore_ascii_case("session_authorization") {
                    self.stay_user(&values.join(", "))?;
                } else if name.eq_ignore_ascii_case("transaction_read_only") {
                    self.set_read_only(settings::truth(&values.join(", ")).unwrap_or(true))?;
                } else {
                    self.change_setting(&name, &values.join(", "), local)?;
                }
            }
            Set::SetTransaction { modes, session, .. } => {
                for mode in modes {
                    let TransactionMode::AccessMode(mode) = mode else { continue };
                    let read_only = *mode == TransactionAccessMode::ReadOnly;
                    if !session {
                        self.set_read_only(read_only)?;
                        continue;
                    }
                    let name = "default_transaction_read_only";
                    self.change_setting(name, if read_only { "on" } else { "off" }, false)?;
                }
            }
            Set::SetNames { charset_name, .. } => {
                self.change_setting("client_encoding", &charset_name.value, false)?;
            }
            Set::SetTimeZone { local, value } => {
                if *local && self.block.is_none() {
                    return Ok(self.set_without_block());
                }
                let zone = zone_text(value)?;
                let is_first = ["default", "local"].iter().any(|first| zone.eq_ignore_ascii_case(first));
                let zone = if is_first { self.settings.first("timezone")?.to_owned() } else { zone };
                self.change_setting("timezone", &zone, *local)?;
            }
            Set::SetNamesDefault {} => {}
            Set::SetSessionAuthorization(authorization) => match &authorization.kind {
                SetSessionAuthorizationParamKind::Default => {}
                SetSessionAuthorizationParamKind::User(name) => self.stay_user(&name_of(name))?,
            },
            Set::SetRole { role_name, .. } => self.set_role(role_name.as_ref())?,
            other => return Err(SqlError::unsupported(format!("SET {other}"))),
        }
        Ok(tag("SET"))
    }

    /// `SET SESSION AUTHORIZATION`: a session is its user's to its end.
    fn stay_user(&mut self, name: &str) -> Result<(), SqlError> {
        if name == self.surroundings.user {
            return Ok(());
        }
        self.find_role(name)?;
        Err(SqlError::unsupported("SET SESSION AUTHORIZATION to another user")
            .with_hint("Connect as that user."))
    }

    /// `SET ROLE`, which changes nothing: whatever the role, it may do everything.
    fn set_role(&mut self, name: Option<&Ident>) -> Result<(), SqlError> {
        let Some(name) = name else { return Ok(()) };
        let name = name_of(name);
        self.find_role(&name)?;
        if name != self.surroundings.user {
            self.remark(ALL_RIGHTS);
        }
        Ok(())
    }

    fn find_role(&mut self, name: &str) -> Result<(), SqlError> {
        let is_there = self.catalog()?.get("", &user_definition(name)).is_some();
        if is_there || name == FIRST_USER {
            return Ok(());
        }
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist")))
    }

    /// Says whether the block only reads.
    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if block.read_only && !read_only && (block.past || block.has_run) {
            let message = "transaction read-write mode must be set before any query";
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        block.read_only = read_only;
        Ok(())
    }

    fn show(&mut self, variable: &[Ident]) -> Result<Answer, SqlError> {
        if is_all(variable) {
            let rows: Vec<Vec<String>> =
                self.settings.all().map(|(name, value)| vec![name.to_owned(), value.to_owned()]).collect();
            return Ok(Answer::Rows(Rows::of_texts(&["name", "setting"], &rows, "SHOW")));
        }
        let name = variable_name(variable);
        let value = self.setting(&name)?.to_owned();
        Ok(Answer::Rows(Rows::of_texts(&[&name], &[vec![value]], "SHOW")))
    }

    /// The value of a parameter.
    pub(super) fn setting(&self, name: &str) -> Result<&str, SqlError> {
        if name.eq_ignore_ascii_case("transaction_read_only") && self.only_reads() {
            return Ok("on");
        }
        self.settings.get(name)
    }

    fn execute_prepared(&mut self, name: &ObjectName, written: &[Expr]) -> Result<Answer, SqlError> {
        let name = parts_of(name)?.join(".");
        let values = self.values_for(&name, written)?;
        self.execute_named(&name, &values)
    }

    /// The values with which a prepared statement is executed.
    pub(super) fn values_for(&mut self, name: &str, written: &[Expr]) -> Result<Vec<Datum>, SqlError> {
        let types = self.parameters_of(name)?;
        if types.len() != written.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {} parameters but got {}.", types.len(), written.len());
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).with_detail(detail));
        }
        let catalog = self.catalog()?;
        let mut values: Vec<Datum> = Vec::with_capacity(written.len());
        for (written, data_type) in written.iter().zip(types) {
            let expression = bind::value_of_type(written, data_type, &catalog, &self.surroundings)?;
            let zone = self.surroundings.zone;
            let inputs = Inputs { now: self.database.now(), zone, ..Inputs::default() };
            let value = evaluate(&expression, &inputs);
            values.push(value.ok_or_else(|| SqlError::unsupported(format!("EXECUTE with {written}")))?);
        }
        Ok(values)
    }

    fn warn_of_no_block(&mut self) {
        self.warn(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
    }

    fn set_without_block(&mut self) -> Answer {
        self.warn(SqlState::NO_ACTIVE_SQL_TRANSACTION, "SET LOCAL can only be used in transaction blocks");
        tag("SET")
    }

    fn remark(&mut self, text: &str) {
        self.notices.push(Remark::new(text).into());
    }

    pub(super) fn warn(&mut self, state: SqlState, text: &str) {
        self.notices.push(Notice { severity: NoticeSeverity::Warning, state, text: text.to_owned() });
    }
}

/// What is said where rights are given or taken.
pub(crate) const ALL_RIGHTS: &str = "all users have all rights here: nothing has changed";

/// Statements that clients send as a matter of course and that mean nothing here.
fn accepted(statement: &Statement) -> Result<Answer, SqlError> {
    Ok(tag(match statement {
        Statement::Vacuum(_) => "VACUUM",
        Statement::Analyze(_) => "ANALYZE",
        // Nobody listens.
        Statement::UNLISTEN { .. } => "UNLISTEN",
        other => return Err(crate::syntax::unsupported_statement(&other.to_string())),
    }))
}

pub(super) fn tag(tag: &'static str) -> Answer {
    Answer::Tag(Tag::Plain(tag))
}

fn is_all(variable: &[Ident]) -> bool {
    matches!(variable, [only] if only.value.eq_ignore_ascii_case("all"))
}

fn variable_name(variable: &[Ident]) -> String {
    let words: Vec<String> = variable.iter().map(name_of).collect();
    match words.join(" ").as_str() {
        "transaction isolation level" => "transaction_isolation".to_owned(),
        "time zone" => "timezone".to_owned(),
        _ => words.join("."),
    }
}

/// The value of the time zone as text.
fn zone_text(written: &Expr) -> Result<String, SqlError> {
    let Expr::Interval(interval) = written else { return Ok(setting_text(written)) };
    let has_others = |field: &DateTimeField| !matches!(field, DateTimeField::Hour | DateTimeField::Minute);
    if interval.leading_field.iter().chain(&interval.last_field).any(has_others) {
        let message = "time zone interval must be HOUR or HOUR TO MINUTE";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let value = text::parse(&setting_text(&interval.value), interval_of_literal(interval)?, Zone::Utc)?;
    Ok(format!("INTERVAL '{}'", text::to_string(&value, SqlType::INTERVAL, Zone::Utc)))
}

/// An element of `search_path`: a name, whether it is written as one or as a text.
fn schema_text(written: &Expr) -> String {
    match written {
        Expr::Identifier(name)
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default") =>
        {
            "default".to_owned()
        }
        Expr::Identifier(name) => quoted(&name_of(name)),
        other => quoted(&setting_text(other)),
    }
}

/// The value of a setting as text.
pub(super) fn setting_text(written: &Expr) -> String {
    match written {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    }
}
