//! A client's session: its statements, prepared statements, portals and transaction.
//!
//! A session is driven by whoever holds the client's connection: it is given one message after the other and appends what is to be
//! sent. It asks the database through a trait, and waits there; everything else it decides by itself.
//!
//! A statement by itself becomes one ordered transaction. One that only reads, and more than a few rows by their keys, runs over a
//! snapshot that was opened after it came. A block runs over a snapshot with its own writes laid over it, and at its end becomes one
//! ordered transaction (see [`procedure`](crate::procedure)); one that only read is over then.

mod alone;
mod answer;
mod block;
mod commands;
mod constraints;
mod copy;
mod cursors;
mod database;
mod definitions;
mod deliver;
mod explain;
mod extended;
pub mod handshake;
mod loading;
pub mod merge;
mod numbers;
mod out;
mod past;
mod portals;
mod questions;
mod setting_table;
mod setting_values;
mod settings;
mod temporary;
mod texts;
mod transaction;
mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use ordain_db::data::Schema;
use sqlparser::ast::Statement;

use crate::bind::Surroundings;
use crate::error::{Remark, SqlError, SqlState};
use crate::execute::columns::QueryEngine;
use crate::execute::{Interrupt, Keeping};
use crate::keys::Storages;
use crate::protocol::backend::{Encoder, NoticeSeverity, Severity, TransactionStatus};
use crate::protocol::frontend::Frontend;
use crate::syntax;
use crate::types::Zone;
use block::Block;
use copy::CopyIn;
use cursors::Cursors;
use extended::Statements;
use out::{Out, Send};
use portals::{Portals, Waiting};
use settings::{Changes, Settings};
use texts::Texts;

pub(crate) use commands::ALL_RIGHTS;
pub use database::{Database, View, definitions, not_kept, take_definition};
pub use past::Past;
pub(crate) use settings::truth;

/// Who a session is for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// The parameters that the client named when it connected.
    pub parameters: Vec<(String, String)>,
}

/// Whether a session goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// It does.
    Continue,
    /// The client has ended it.
    End,
}

/// How a session stands between two messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing<'s> {
    /// Whether it is in a transaction.
    pub status: TransactionStatus,
    /// When that began: microseconds since 2000-01-01 UTC.
    pub transaction_began: Option<i64>,
    /// What the client calls itself.
    pub application_name: &'s str,
}

/// What a client is told besides an answer.
struct Notice {
    severity: NoticeSeverity,
    state: SqlState,
    text: String,
}

impl From<Remark> for Notice {
    fn from(Remark { state, text }: Remark) -> Notice {
        Notice { severity: NoticeSeverity::Notice, state, text }
    }
}

/// How much of a statement's text is told to those who watch, in bytes.
pub const TOLD_TEXT_BYTES: usize = 1024;

/// As much of a statement's text as is told.
fn beginning_of(text: &str) -> &str {
    let beginning = &text[..text.floor_char_boundary(TOLD_TEXT_BYTES)];
    // What sets a password is told up to it: it has one of these words after the other.
    let mut end = 0;
    for words in [["alter", "create"], ["user", "role"], ["password"; 2]] {
        let rest = &beginning.as_bytes()[end..];
        let behind = |word: &str| {
            let word = word.as_bytes();
            // Most places are told apart by their first letter.
            let is_word =
                |found: &[u8]| found[0].eq_ignore_ascii_case(&word[0]) && found.eq_ignore_ascii_case(word);
            let place = rest.windows(word.len()).position(is_word);
            place.map(|place| place + word.len())
        };
        let Some(next) = words.into_iter().filter_map(behind).min() else { return beginning };
        end += next;
    }
    &beginning[..end]
}

/// See the [module](self).
pub struct Session {
    database: Arc<dyn Database>,
    schema: Schema,
    storages: Storages,
    surroundings: Surroundings,
    settings: Settings,
    statements: Statements,
    texts: Texts,
    portals: Portals,
    cursors: Cursors,
    block: Option<Block>,
    /// Rows that are coming from the client.
    copying: Option<CopyIn>,
    /// After an error in the extended protocol, messages are skipped up to the next `Sync`.
    skips: bool,
    /// An execution that is under way once it is known whether more comes before `Sync`.
    waiting: Option<Waiting>,
    /// What the client is to be told besides the answer.
    notices: Vec<Notice>,
    /// Parameters whose new values it is to be told.
    reported: Vec<String>,
    interrupt: Arc<Interrupt>,
    /// What may run parts of queries.
    query_engine: Option<Arc<dyn QueryEngine>>,
    /// What counts the rows that it keeps.
    keeping: Arc<Keeping>,
    /// Whether a statement is under way, and its time is counted.
    is_timed: bool,
    /// Whether the client was told that it can go on, and has said nothing since.
    is_ready: bool,
    /// The last numbers that were drawn from sequences, by where these are.
    drawn: BTreeMap<u32, i64>,
    /// The sequence that was drawn from last.
    last_drawn: Option<u32>,
    /// The number by which statements are cancelled.
    process: i32,
    /// Whether it is told what the nodes of plans give.
    observes: bool,
    /// Whether a statement runs whose text came before, and is not to be planned with other definitions.
    is_repeating: bool,
    /// Whether it may have advisory locks that go with its transaction.
    locks_in_transaction: bool,
    /// Whether it may have others.
    locks_in_session: bool,
}

impl Session {
    /// A session for a client that has proved who it is.
    ///
    /// # Errors
    /// When a parameter cannot be what the client asks for.
    pub fn new(
        database: Arc<dyn Database>,
        schema: Schema,
        storages: Storages,
        options: Options,
    ) -> Result<Session, SqlError> {
        let surroundings = Surroundings {
            user: options.user,
            database: options.database,
            search_path: vec![crate::catalog::PUBLIC.to_owned()],
            temporary: String::new(),
            routines: database.routines(),
            now: 0,
            zone: Zone::Utc,
        };
        let (interrupt, query_engine) = (database.interrupt(), database.query_engine());
        let mut session = Session {
            database,
            schema,
            storages,
            surroundings,
            settings: Settings::default(),
            statements: Statements::default(),
            texts: Texts::default(),
            portals: Portals::default(),
            cursors: Cursors::default(),
            block: None,
            copying: None,
            skips: false,
            waiting: None,
            notices: Vec::new(),
            reported: Vec::new(),
            keeping: Keeping::of(&interrupt),
            interrupt,
            query_engine,
            is_timed: false,
            is_ready: false,
            drawn: BTreeMap::new(),
            last_drawn: None,
            process: 0,
            observes: false,
            is_repeating: false,
            locks_in_transaction: false,
            locks_in_session: false,
        };
        let parameters = &options.parameters;
        for (_, written) in parameters.iter().filter(|(name, _)| name == "options") {
            for (name, value) in settings::options_of(written)? {
                session.change_setting(&name, &value, false)?;
            }
        }
        for (name, value) in parameters {
            if !matches!(name.as_str(), "user" | "database" | "replication" | "options") {
                session.change_setting(name, value, false)?;
            }
        }
        session.settings.begin();
        session.reported.clear();
        Ok(session)
    }

    /// What tells the statement that runs to end.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// How it stands.
    pub fn standing(&self) -> Standing<'_> {
        Standing {
            status: self.status(),
            transaction_began: self.block.as_ref().map(|block| block.now),
            application_name: self.settings.get("application_name").unwrap_or_default(),
        }
    }

    /// The beginning of the text of the statement that a message has the session work on, without values of parameters; `None` for a
    /// message that is about none.
    pub fn statement_of<'m>(&'m self, message: &'m Frontend) -> Option<&'m str> {
        match message {
            Frontend::Query(text) => Some(beginning_of(text)),
            Frontend::Parse { query, .. } => Some(beginning_of(query)),
            Frontend::Execute { portal, .. } => self.portals.text(portal),
            _ => None,
        }
    }

    /// Appends what the server says of itself, the key by which statements are cancelled, and that it is ready.
    pub fn welcome(&mut self, process: i32, secret: &[u8], out: &mut Vec<u8>) {
        self.process = process;
        let mut encoder = Encoder::new(out);
        for (name, value) in self.settings.reported() {
            encoder.parameter_status(
                name,
                if name == "session_authorization" { &self.surroundings.user } else { value },
            );
        }
        encoder.backend_key_data(process, secret);
        encoder.ready_for_query(TransactionStatus::Idle);
        self.is_ready = true;
    }

    /// How long the client may say nothing from now on, in microseconds, and with what its connection ends if it says nothing for longer;
    /// `None` if it may do so for ever.
    pub fn idle_limit(&self) -> Option<(u64, SqlError)> {
        if !self.is_ready {
            return None;
        }
        let limits = self.settings.limits();
        let (limit, state, kind) = match self.block {
            None => (limits.idle, SqlState::IDLE_SESSION_TIMEOUT, "idle-session"),
            Some(_) => {
                let state = SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT;
                (limits.idle_in_block, state, "idle-in-transaction")
            }
        };
        let error = || SqlError::new(state, format!("terminating connection due to {kind} timeout"));
        limit.map(|limit| (limit, error()))
    }

    /// Counts the time of the statement that begins, unless it has begun already.
    fn begin_timing(&mut self) {
        if !self.is_timed {
            self.is_timed = true;
            self.interrupt.clear();
            if let Some(time) = self.settings.limits().statement {
                self.database.alarm(Some(time));
            }
        }
    }

    /// Counts the time of the statement no longer.
    fn end_timing(&mut self) {
        if self.is_timed {
            self.is_timed = false;
            self.database.alarm(None);
            self.interrupt.clear();
        }
    }

    /// Takes a message of the client; what is to be sent is appended.
    pub fn handle(&mut self, message: Frontend, out: &mut Vec<u8>) -> Flow {
        self.handle_sending(message, out, &mut |_| Ok(()))
    }

    /// The same where a statement that gives many rows has them sent while it runs.
    pub fn handle_sending<'s>(
        &mut self,
        message: Frontend,
        out: &'s mut Vec<u8>,
        send: &'s mut Send<'s>,
    ) -> Flow {
        let out = &mut Out::new(out, send);
        self.is_ready = false;
        match message {
            Frontend::Terminate => {
                self.end_timing();
                self.roll_back();
                // If the database cannot be reached, they stay.
                let _stayed = self.drop_temporary();
                return Flow::End;
            }
            _ if self.copying.is_some() => {
                self.copy_message(message, out);
                return Flow::Continue;
            }
            _ => {}
        }
        match message {
            // They were on their way when `COPY` failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
            Frontend::Sync => self.sync(out),
            _ if self.skips => {}
            Frontend::Query(text) => {
                // What was to be executed before comes first, and nothing after it if it fails.
                match self.go_on(out) {
                    Ok(()) => self.simple(&text, out),
                    Err(error) => {
                        self.fail(&error, out);
                        self.skips = true;
                    }
                }
            }
            Frontend::FunctionCall => {
                self.fail(&SqlError::unsupported("a call of a function by its number"), out);
                self.end_simple(out);
            }
            Frontend::Wrong { error, is_query: true } => {
                self.fail(&error, out);
                self.end_simple(out);
            }
            other => {
                if let Err(error) = self.extended(other, out) {
                    self.fail(&error, out);
                    self.skips = true;
                }
            }
        }
        Flow::Continue
    }

    /// Runs the statements of a text, which are one transaction unless they say otherwise.
    fn simple(&mut self, text: &str, out: &mut Out<'_>) {
        self.statements.forget_unnamed();
        // It may be planned before it is known what statements it has.
        self.begin_timing();
        let outcome = match self.repeated(text) {
            Some(repeated) => match self.answer_repeated(&repeated, out) {
                // The constants were read with the types that they had by the old definitions.
                Err(error) if error.is_stale && repeated.prepared.is_some() => self.read(text, out),
                outcome => outcome,
            },
            None => self.read(text, out),
        };
        if let Err(error) = outcome {
            self.fail(&error, out);
        }
        if self.copying.is_none() {
            self.end_simple(out);
        }
    }

    /// Reads a text, and runs its statements.
    fn read(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), SqlError> {
        let _held = self.hold_statements(text)?;
        self.all(&syntax::parse(text)?, out)
    }

    fn all(&mut self, statements: &[Statement], out: &mut Out<'_>) -> Result<(), SqlError> {
        if statements.is_empty() {
            Encoder::new(out).empty_query_response();
            return Ok(());
        }
        for statement in statements {
            self.begin_timing();
            if statements.len() > 1 {
                self.begin_implicitly()?;
            }
            if commands::touches_rows(statement) {
                self.begin_in_past(statement)?;
            }
            if commands::is_planned(statement) {
                self.answer_planned(statement, out)?;
            } else {
                let answer = self.perform(statement)?;
                self.answer(answer, &[], out)?;
            }
            if self.copying.is_some() {
                if statements.len() > 1 {
                    return Err(SqlError::unsupported(
                        "COPY FROM STDIN among other statements of one message",
                    ));
                }
                return Ok(());
            }
            self.end_timing();
        }
        Ok(())
    }

    /// The end of a simple query: what began by itself ends by itself.
    fn end_simple(&mut self, out: &mut Vec<u8>) {
        self.end_implicit(out);
        match self.block {
            Some(_) => self.portals.close_unnamed(),
            None => self.portals.close_all(),
        }
        self.ready(out);
    }

    /// The client can go on.
    fn ready(&mut self, out: &mut Vec<u8>) {
        self.end_timing();
        if self.block.is_none() {
            // A statement by itself was the transaction.
            self.end_local_settings();
            self.give_locks_back();
        }
        self.tell(out);
        // Else it is about to hear that its connection ends.
        if !self.interrupt.is_terminated() {
            Encoder::new(out).ready_for_query(self.status());
        }
        self.is_ready = true;
    }

    /// Begins a block that ends with the message.
    fn begin_implicitly(&mut self) -> Result<(), SqlError> {
        if self.block.is_none() {
            let mut block = self.new_block()?;
            block.implicit = true;
            self.block = Some(block);
        }
        Ok(())
    }

    fn end_implicit(&mut self, out: &mut Vec<u8>) {
        if self.block.as_ref().is_some_and(|block| block.implicit) {
            if self.block.as_ref().is_some_and(|block| block.failed) {
                self.roll_back();
            } else {
                self.begin_timing();
                if let Err(error) = self.commit() {
                    self.say(&error, out);
                }
            }
        }
    }

    /// Tells of an error. A block fails by it.
    fn fail(&mut self, error: &SqlError, out: &mut Vec<u8>) {
        if let Some(block) = &mut self.block {
            block.failed = true;
        }
        self.copying = None;
        self.say(error, out);
    }

    /// Tells the client of an error, but for the one with which its connection ends: that is said when it does.
    fn say(&self, error: &SqlError, out: &mut Vec<u8>) {
        if error.state != SqlState::ADMIN_SHUTDOWN {
            Encoder::new(out).error(error, Severity::Error);
        }
    }

    fn status(&self) -> TransactionStatus {
        match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.failed => TransactionStatus::Failed,
            Some(_) => TransactionStatus::InBlock,
        }
    }

    /// Tells the client what it is to be told besides an answer.
    fn tell(&mut self, out: &mut Vec<u8>) {
        let mut encoder = Encoder::new(out);
        for Notice { severity, state, text } in self.notices.drain(..) {
            if self.settings.tells_of(severity) {
                encoder.notice(severity, state, &text, None, None);
            }
        }
        for name in self.reported.drain(..) {
            encoder.parameter_status(&name, self.settings.get(&name).unwrap_or_default());
        }
    }

    /// Sets a parameter, `local`ly until the end of the transaction.
    fn change_setting(&mut self, name: &str, value: &str, local: bool) -> Result<(), SqlError> {
        if name.eq_ignore_ascii_case(past::PARAMETER) && !value.is_empty() {
            self.refuse_without_history(value)?;
        }
        self.changing(|settings| settings.set(name, value, local))
    }

    /// Gives a parameter its first value; all of them without a name.
    fn reset_setting(&mut self, name: Option<&str>) {
        self.changing(|settings| settings.reset(name));
    }

    /// Changes parameters; the client is to be told of those that it knows.
    fn changing<T>(&mut self, change: impl FnOnce(&mut Settings) -> T) -> T {
        let shown = |settings: &Settings| -> Vec<(String, String)> {
            settings.reported().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let before = shown(&self.settings);
        let changed = change(&mut self.settings);
        for (name, value) in shown(&self.settings) {
            if !before.contains(&(name.clone(), value)) && !self.reported.contains(&name) {
                self.reported.push(name);
            }
        }
        self.surroundings.zone = self.settings.zone();
        self.follow_path();
        changed
    }

    /// Ends what was set for the transaction.
    fn end_local_settings(&mut self) {
        if self.settings.has_local() {
            self.changing(Settings::end_local);
        }
    }

    /// Goes back to the parameters of before.
    fn take_back_settings(&mut self, before: &Changes) {
        if self.settings.changes() != *before {
            self.changing(|settings| settings.take_back(before.clone()));
        }
    }

    /// Has names looked up where `search_path` says.
    fn follow_path(&mut self) {
        let value = self.settings.get("search_path").unwrap_or_default();
        let user = &self.surroundings.user;
        let names = crate::bind::names::names_in(value, ',').unwrap_or_default().into_iter();
        let names = names.map(|name| if name == "$user" { user.clone() } else { name });
        let path: Vec<String> = names.filter(|name| !name.is_empty() && name != "pg_catalog").collect();
        if path != self.surroundings.search_path {
            self.surroundings.search_path = path;
            self.statements.forget_plans();
            self.texts.forget_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_told() {
        for text in [
            "ALTER USER me PASSWORD 'secret'",
            "select 1; Create role me login pAssword /* x */ 'secret'",
            "ALTER USER me WITH ENCRYPTED PASSWORD'secret' VALID UNTIL 'infinity'",
            "SELECT password FROM people; ALTER USER me PASSWORD 'secret'",
            "SELECT 1 AS password, 2 AS username; ALTER ROLE me PASSWORD 'secret'",
        ] {
            let told = beginning_of(text);
            assert!(text.starts_with(told) && told.to_lowercase().ends_with("password"), "{told}");
        }
        for text in ["SELECT * FROM people WHERE password = $1", "SELECT 'created' AS password, 5"] {
            assert_eq!(beginning_of(text), text);
        }
        assert_eq!(beginning_of(&"é".repeat(TOLD_TEXT_BYTES)).len(), TOLD_TEXT_BYTES);
    }
}
