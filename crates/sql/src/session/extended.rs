//! The extended protocol: statements that are prepared, bound and executed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sqlparser::ast::{FetchPosition, Statement};

use super::answer::{Answer, Rows, describe, format_of, same_columns, send, text_field};
use super::deliver::is_query;
use super::out::Out;
use super::portals::{Portal, Progress, Waiting};
use super::{Session, SqlError, beginning_of};
use crate::bind::names::{name_of, parts_of};
use crate::bind::{Field, Prepared};
use crate::catalog::Catalog;
use crate::error::SqlState;
use crate::execute::Kept;
use crate::protocol::Format;
use crate::protocol::backend::Encoder;
use crate::protocol::frontend::{Frontend, Target};
use crate::syntax;
use crate::types::{Datum, SqlType, Values, binary, text};

/// Most prepared statements and most portals of one session.
const NAMED_MAX: usize = 4096;

/// About how many bytes a statement and its plan take for each of its text.
const BYTES_PER_CHARACTER: usize = 64;

/// A prepared statement.
#[derive(Clone)]
pub(super) struct Named {
    /// The statement; `None` if the text was empty.
    pub statement: Option<Arc<Statement>>,
    /// The beginning of its text.
    pub text: Arc<str>,
    /// About how many bytes it takes.
    bytes: usize,
    /// Whether `PREPARE` has made it.
    from_sql: bool,
    /// When it was made.
    at: i64,
    /// The types of its parameters that the client has named.
    types: Arc<[Option<SqlType>]>,
    /// Its plan, and the definitions from which that was made.
    pub planned: Option<(Arc<Catalog>, Arc<Prepared>)>,
    /// Whether its names may stand for something else by now.
    stale: bool,
    /// What it takes, from when a client keeps it.
    kept: Option<Arc<Kept>>,
}

impl Named {
    /// One that nobody has named or planned yet; its text is for those who watch.
    pub(super) fn of(statement: Option<Statement>, text: &str, types: Vec<Option<SqlType>>) -> Named {
        let bytes = text.len().saturating_mul(BYTES_PER_CHARACTER);
        let (statement, text, types) = (statement.map(Arc::new), beginning_of(text).into(), types.into());
        Named {
            statement,
            text,
            bytes,
            from_sql: false,
            at: 0,
            types,
            planned: None,
            stale: false,
            kept: None,
        }
    }
}

/// The prepared statements of a session.
#[derive(Default)]
pub(super) struct Statements(BTreeMap<String, Named>);

impl Statements {
    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Has them all planned anew: their names may stand for something else.
    pub(super) fn forget_plans(&mut self) {
        self.0.values_mut().for_each(|named| named.stale = true);
    }

    /// As `pg_prepared_statements` has them: those with a name.
    pub(super) fn rows(&self) -> Vec<Vec<Datum>> {
        let named = self.0.iter().filter(|(name, _)| !name.is_empty());
        let row = |(name, named): (&String, &Named)| {
            let types = named.planned.iter().flat_map(|(_, prepared)| &prepared.parameters);
            let types = types.map(|known| Datum::Text(known.name())).collect();
            vec![
                Datum::Text(name.clone()),
                Datum::Text(named.text.to_string()),
                Datum::Timestamp(named.at),
                Datum::Array(types),
                Datum::Bool(named.from_sql),
                Datum::Int(0),
                Datum::Int(0),
            ]
        };
        named.map(row).collect()
    }

    /// The one without a name lasts until the next text is read, be it wrong.
    pub(super) fn forget_unnamed(&mut self) {
        self.0.remove("");
    }

    pub(super) fn forget(&mut self, name: &str) -> Result<(), SqlError> {
        self.0.remove(name).map(drop).ok_or_else(|| unknown_statement(name))
    }
}

impl Session {
    pub(super) fn extended(&mut self, message: Frontend, out: &mut Out<'_>) -> Result<(), SqlError> {
        if !matches!(message, Frontend::Close { .. } | Frontend::Flush) {
            self.begin_timing();
        }
        self.go_on(out)?;
        match message {
            Frontend::Parse { name, query, parameter_types } => {
                self.parse(name, &query, &parameter_types)?;
                Encoder::new(out).parse_complete();
                Ok(())
            }
            Frontend::Bind { portal, statement, parameter_formats, parameters, result_formats } => {
                self.bind(portal, &statement, &parameter_formats, &parameters, result_formats)?;
                Encoder::new(out).bind_complete();
                Ok(())
            }
            Frontend::Describe { kind: Target::Statement, name } => self.describe_statement(&name, out),
            Frontend::Describe { kind: Target::Portal, name } => self.describe_portal(&name, out),
            Frontend::Execute { portal, max_rows } => {
                // Rows that come from the client follow at once.
                if self.block.is_some() || self.is_copy_in(&portal) {
                    self.run_portal(&portal, max_rows, out)
                } else {
                    // If it is the last before `Sync`, it is a transaction of its own.
                    self.waiting = Some(Waiting::Portal { name: portal, max_rows });
                    Ok(())
                }
            }
            Frontend::Close { kind, name } => {
                match kind {
                    Target::Statement => drop(self.statements.0.remove(&name)),
                    Target::Portal => {
                        let is_cursor = self.portals.open.remove(&name).is_none() && self.cursors.has(&name);
                        if is_cursor {
                            self.close_cursor(&name)?;
                        }
                    }
                }
                Encoder::new(out).close_complete();
                Ok(())
            }
            Frontend::Flush => Ok(()),
            Frontend::Wrong { error, .. } => Err(error),
            _ => Err(SqlError::unsupported("this message")),
        }
    }

    /// Runs an execution after which more comes before `Sync`: all of it is one transaction.
    pub(super) fn go_on(&mut self, out: &mut Out<'_>) -> Result<(), SqlError> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        if !matches!(&waiting, Waiting::Portal { name, .. } if self.begins_itself(name)) {
            self.begin_implicitly()?;
        }
        self.run_waiting(waiting, out)
    }

    fn run_waiting(&mut self, waiting: Waiting, out: &mut Out<'_>) -> Result<(), SqlError> {
        match waiting {
            Waiting::Portal { name, max_rows } => self.run_portal(&name, max_rows, out),
            Waiting::Copy(mut copy) => {
                let outcome = self.finish_copy(&mut copy);
                self.end_timing();
                outcome.map(|written| Encoder::new(out).command_complete("COPY", Some(written)))
            }
        }
    }

    /// Whether a portal's statement is one that controls transactions, or may not be in one.
    fn begins_itself(&self, portal: &str) -> bool {
        let statement = self.portals.open.get(portal).and_then(|portal| portal.named.statement.as_deref());
        statement.is_none_or(super::commands::stands_alone)
    }

    fn is_copy_in(&self, portal: &str) -> bool {
        let statement = self.portals.open.get(portal).and_then(|portal| portal.named.statement.as_deref());
        matches!(statement, Some(Statement::Copy { to: false, .. }))
    }

    pub(super) fn sync(&mut self, out: &mut Out<'_>) {
        if let Some(waiting) = self.waiting.take()
            && let Err(error) = self.run_waiting(waiting, out)
        {
            self.fail(&error, out);
        }
        self.skips = false;
        if self.copying.is_some() {
            return;
        }
        self.end_implicit(out);
        if self.block.is_none() {
            self.portals.close_all();
        }
        self.ready(out);
    }

    fn parse(&mut self, name: String, query: &str, types: &[u32]) -> Result<(), SqlError> {
        if name.is_empty() {
            self.statements.forget_unnamed();
        }
        if let Some(known) = self.parsed(query, types) {
            return self.keep_statement(name, known);
        }
        let _held = self.hold_statements(query)?;
        let mut statements = syntax::parse(query)?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let known = types.iter().map(|oid| known_type(*oid)).collect::<Result<Vec<_>, SqlError>>()?;
        self.keep_statement(name.clone(), Named::of(statements.pop(), query, known))?;
        if let Some(named) = self.statements.0.get(&name).cloned() {
            self.note_parsed(query, types, named);
        }
        Ok(())
    }

    /// Keeps a statement that SQL's `PREPARE` names.
    pub(super) fn name_statement(
        &mut self,
        name: String,
        statement: &Statement,
        types: Vec<Option<SqlType>>,
    ) -> Result<(), SqlError> {
        let named = Named::of(Some(statement.clone()), &statement.to_string(), types);
        self.keep_statement(name, Named { from_sql: true, ..named })
    }

    /// Counts what the statements of a text take while they are worked on.
    pub(super) fn hold_statements(&self, text: &str) -> Result<Kept, SqlError> {
        let mut held = Kept::nothing(&self.keeping);
        held.add(text.len().saturating_mul(BYTES_PER_CHARACTER), false)?;
        Ok(held)
    }

    fn keep_statement(&mut self, name: String, mut named: Named) -> Result<(), SqlError> {
        if !name.is_empty() && self.statements.0.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
        }
        if self.statements.0.len() >= NAMED_MAX {
            let message = format!("more than {NAMED_MAX} prepared statements");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint("Close some."));
        }
        self.refuse_if_failed(named.statement.as_deref())?;
        let mut kept = Kept::nothing(&self.keeping);
        kept.add(named.bytes, false)?;
        named.kept = Some(Arc::new(kept));
        named.at = if name.is_empty() { 0 } else { self.database.now() };

        // Mistakes are told now, and not when it runs.
        self.plan(&mut named)?;
        self.statements.0.insert(name, named);
        Ok(())
    }

    /// The plan of a prepared statement, made anew if definitions have changed; `None` for one that has none.
    fn plan(&mut self, named: &mut Named) -> Result<Option<Arc<Prepared>>, SqlError> {
        let Some(statement) = named.statement.clone() else { return Ok(None) };
        let Some(statement) = super::commands::planned_part(&statement) else { return Ok(None) };
        let catalog = self.catalog()?;
        if let Some((known, prepared)) = &named.planned
            && Arc::ptr_eq(known, &catalog)
            && !named.stale
        {
            return Ok(Some(Arc::clone(prepared)));
        }
        let (catalog, prepared) = match &named.planned {
            Some((_, known)) => {
                // Its parameters keep the types of its first plan: the client was told these, and values that are bound have them.
                let types: Vec<Option<SqlType>> = known.parameters.iter().copied().map(Some).collect();
                self.prepare_in(known.zone, statement, &types)?
            }
            None => self.prepare(statement, &named.types)?,
        };
        let prepared = Arc::new(prepared);
        if let Some((_, known)) = &named.planned {
            same_columns(known.fields.as_deref(), prepared.fields.as_deref())?;
        }
        named.planned = Some((catalog, Arc::clone(&prepared)));
        named.stale = false;
        Ok(Some(prepared))
    }

    pub(super) fn planned(&mut self, name: &str) -> Result<(Named, Option<Arc<Prepared>>), SqlError> {
        let mut named = self.statements.0.get(name).cloned().ok_or_else(|| unknown_statement(name))?;
        self.refuse_if_failed(named.statement.as_deref())?;
        let prepared = self.plan(&mut named)?;
        if let Some(known) = self.statements.0.get_mut(name) {
            known.planned.clone_from(&named.planned);
            known.stale = named.stale;
        }
        Ok((named, prepared))
    }

    fn bind(
        &mut self,
        portal: String,
        name: &str,
        formats: &[Format],
        values: &[Option<Bytes>],
        result_formats: Vec<Format>,
    ) -> Result<(), SqlError> {
        let (named, prepared) = self.planned(name)?;
        let types = prepared.as_ref().map_or(&[][..], |prepared| &prepared.parameters);
        let columns =
            prepared.as_ref().and_then(|prepared| prepared.fields.as_ref()).map(|fields| fields.len());
        if let Some(columns) =
            columns.filter(|columns| result_formats.len() > 1 && result_formats.len() != *columns)
        {
            let message = format!(
                "bind message has {} result formats but query has {columns} columns",
                result_formats.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        if values.len() != types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                values.len(),
                types.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        let zone = self.surroundings.zone;
        let mut parameters = Values::with_capacity(values.len());
        for (place, (value, data_type)) in values.iter().zip(types).enumerate() {
            parameters.push(match (value, format_of(formats, place)) {
                (None, _) => Datum::Null,
                (Some(bytes), Format::Binary) => binary::decode(bytes, *data_type)?,
                (Some(bytes), Format::Text) => text::parse(as_text(bytes)?, *data_type, zone)?,
            });
        }
        if !portal.is_empty() && self.portals.open.contains_key(&portal) {
            let message = format!("cursor \"{portal}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        if self.portals.open.len() >= NAMED_MAX {
            let message = format!("more than {NAMED_MAX} portals");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let mut kept = Kept::nothing(&self.keeping);
        kept.add(values.iter().flatten().map(Bytes::len).sum(), false)?;
        let number = self.portals.made;
        self.portals.made += 1;
        let formats = result_formats;
        let made = Portal { number, named, parameters, _kept: kept, formats, progress: Progress::New };
        self.portals.open.insert(portal, made);
        Ok(())
    }

    fn describe_statement(&mut self, name: &str, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let (named, prepared) = self.planned(name)?;
        let types = prepared.as_ref().map_or(&[][..], |prepared| &prepared.parameters);
        let types: Vec<u32> =
            types.iter().map(|data_type| super::answer::shown_type(*data_type).oid()).collect();
        Encoder::new(out).parameter_description(&types)?;
        describe_or_nothing(self.fields_of(&named, prepared.as_deref()).as_deref(), &[], out)
    }

    fn describe_portal(&mut self, name: &str, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let Some(portal) = self.portals.open.get(name) else {
            // A cursor may be asked for its columns as if it were one.
            let fields = self.cursors.fields(name).ok_or_else(|| unknown_portal(name))?;
            return describe(fields, &[], out);
        };
        let (mut named, formats) = (portal.named.clone(), portal.formats.clone());
        self.refuse_if_failed(named.statement.as_deref())?;
        let prepared = self.plan(&mut named)?;
        describe_or_nothing(self.fields_of(&named, prepared.as_deref()).as_deref(), &formats, out)
    }

    fn run_portal(&mut self, name: &str, max_rows: u32, out: &mut Out<'_>) -> Result<(), SqlError> {
        let outcome = self.advance_portal(name, max_rows, out);
        if self.copying.is_none() {
            self.end_timing();
        }
        outcome
    }

    fn advance_portal(&mut self, name: &str, max_rows: u32, out: &mut Out<'_>) -> Result<(), SqlError> {
        let portal = self.portals.open.get_mut(name).ok_or_else(|| unknown_portal(name))?;
        let most = if max_rows == 0 { usize::MAX } else { max_rows as usize };
        let (mut named, formats) = (portal.named.clone(), portal.formats.clone());
        if matches!(portal.progress, Progress::New) {
            // Its rows are of now: who goes back to before has none of them.
            portal.number = self.portals.made;
            self.portals.made += 1;
            let parameters = std::mem::take(&mut portal.parameters);
            let Some(statement) = named.statement.clone() else {
                Encoder::new(out).empty_query_response();
                return Ok(());
            };
            portal.progress = Progress::Ran;
            self.refuse_if_failed(Some(&statement))?;
            if super::commands::touches_rows(&statement) {
                self.begin_in_past(&statement)?;
            }
            let prepared = self.plan(&mut named)?;
            if let Some(prepared) = prepared.as_ref().filter(|prepared| is_query(&statement, prepared))
                && max_rows == 0
            {
                self.answer_query(&statement, prepared, &parameters, (true, &formats), out)?;
                if let (Some(portal), Some(fields)) = (self.portals.open.get_mut(name), &prepared.fields) {
                    portal.progress = Progress::Giving(Rows::given(Arc::clone(fields)));
                }
                return Ok(());
            }
            let answer = match prepared {
                Some(prepared) => self.run_planned(&statement, &prepared, &parameters, true)?,
                None => self.perform(&statement)?,
            };
            let Answer::Rows(rows) = answer else {
                self.answer(answer, &formats, out)?;
                if let Some(copy) = &mut self.copying {
                    copy.is_extended = true;
                }
                return Ok(());
            };
            if let Some(portal) = self.portals.open.get_mut(name) {
                portal.progress = Progress::Giving(rows);
            }
        }
        self.refuse_if_failed(named.statement.as_deref())?;
        let manner = self.manner(&formats);
        let Some(portal) = self.portals.open.get_mut(name) else { return Err(unknown_portal(name)) };
        let rows = match &mut portal.progress {
            Progress::Giving(rows) => rows,
            Progress::New | Progress::Ran => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
            }
        };
        let before = rows.sent;
        send(rows, &manner, most, out)?;
        match rows.sent - before {
            // Whether there are more is known to whoever asks for more.
            sent if sent == most => Encoder::new(out).portal_suspended(),
            sent => rows.tag.say(sent, out),
        }
        Ok(())
    }

    /// Runs a prepared statement by its name, with values for its parameters: `EXECUTE`.
    pub(super) fn execute_named(&mut self, name: &str, values: &[Datum]) -> Result<Answer, SqlError> {
        let (named, prepared) = self.planned(name)?;
        match (prepared, named.statement) {
            (Some(prepared), Some(statement)) => self.run_planned(&statement, &prepared, values, true),
            (None, Some(statement)) => self.perform(&statement),
            (_, None) => Ok(Answer::Empty),
        }
    }

    /// The columns of what a statement gives.
    fn fields_of(&self, named: &Named, prepared: Option<&Prepared>) -> Option<Arc<[Field]>> {
        match (prepared, named.statement.as_deref()?) {
            (_, Statement::Declare { .. }) => None,
            (Some(prepared), statement) if super::commands::is_planned(statement) => prepared.fields.clone(),
            (_, Statement::Fetch { name, position: FetchPosition::From, .. }) => {
                self.cursors.fields(&name_of(name)).map(Arc::from)
            }
            (_, Statement::Execute { name: Some(name), .. }) => {
                let executed = self.statements.0.get(&parts_of(name).ok()?.join("."))?;
                executed.planned.as_ref().and_then(|(_, prepared)| prepared.fields.clone())
            }
            (_, statement) => {
                let names = super::commands::column_names(statement)?;
                Some(names.iter().map(|name| text_field(name)).collect())
            }
        }
    }

    /// The types of the parameters of a prepared statement.
    pub(super) fn parameters_of(&mut self, name: &str) -> Result<Vec<SqlType>, SqlError> {
        let (_, prepared) = self.planned(name)?;
        Ok(prepared.map_or_else(Vec::new, |prepared| prepared.parameters.clone()))
    }
}

fn describe_or_nothing(
    fields: Option<&[Field]>,
    formats: &[Format],
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    match fields {
        Some(fields) => describe(fields, formats, out),
        None => {
            Encoder::new(out).no_data();
            Ok(())
        }
    }
}

fn known_type(oid: u32) -> Result<Option<SqlType>, SqlError> {
    if oid == 0 {
        return Ok(None);
    }
    match SqlType::from_oid(oid, -1) {
        Some(SqlType::UNKNOWN) => Ok(None),
        Some(data_type) => Ok(Some(data_type)),
        None => Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type with OID {oid} does not exist"))),
    }
}

fn as_text(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|_| {
        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")
    })
}

fn unknown_statement(name: &str) -> SqlError {
    let message = format!("prepared statement \"{name}\" does not exist");
    SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
}

fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
