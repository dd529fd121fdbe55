//! Sessions over a whole cluster in this thread.
#![expect(clippy::disallowed_types, reason = "a database is shared by sessions; here they take turns")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod procedures;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use ordain_db::cluster::Cluster;
use ordain_db::data::{Direction, KeyRange, Schema, SchemaBuilder};
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::message::{ClientId, ClientRequest, Operation};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{self, ProcedureId, Procedures};
use ordain_db::storage::memory::MemoryStorage;
use ordain_sql::advisory::{AdvisoryAct, AdvisoryLocks};
use ordain_sql::catalog::Catalog;
use ordain_sql::error::SqlError;
use ordain_sql::execute::columns::QueryEngine;
use ordain_sql::execute::{Budget, Interrupt};

use ordain_sql::keys::Storages;
use ordain_sql::procedure::SqlProcedure;
use ordain_sql::protocol::frontend::Frontend;
use ordain_sql::routines::Routines;
use ordain_sql::session::{Database, Options, Past, Session, View, definitions, not_kept};
use ordain_sql::state::{Signal, StateView};
use ordain_sql::types::{Datum, SqlType};

const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 1 };

struct State {
    cluster: Cluster,
    routines: Routines,
    random: u128,
    now: i64,
    /// States that are kept, and when each was complete.
    kept: Vec<(i64, Position)>,
    /// What sessions have done to others, as far as nobody has asked.
    signals: Vec<(i32, Signal)>,
    /// After how many calls the database is out of reach.
    calls_left: Option<u32>,
    /// Whether calls take effect and nobody is told.
    loses_answers: bool,
    /// The arguments of all calls, once somebody has asked for them.
    called: Option<Vec<Vec<u8>>>,
    /// Before how many calls somebody else calls with these arguments.
    meddling: (u32, Vec<u8>),
    advisory: AdvisoryLocks,
    /// How many sessions have begun.
    begun: u64,
}

/// A database in memory.
pub struct World {
    state: Arc<Mutex<State>>,
    schema: Schema,
    storages: Storages,
    sessions: BTreeMap<String, Session>,
    /// What all of them may hold together.
    budget: Arc<Budget>,
    /// What those that begin run parts of queries by.
    query_engine: Option<Arc<dyn QueryEngine>>,
    /// Their numbers among those that have begun.
    numbers: BTreeMap<String, u64>,
}

#[derive(Clone)]
struct Shared {
    state: Arc<Mutex<State>>,
    storages: Storages,
    /// What a session knows of the definitions, which others may have changed: each is as if on a server of its own.
    catalog: Arc<Mutex<Option<Arc<Catalog>>>>,
    interrupt: Arc<Interrupt>,
    query_engine: Option<Arc<dyn QueryEngine>>,
    number: u64,
    /// When the time of its statement is over.
    alarm: Arc<Mutex<Option<i64>>>,
}

struct Snapshot {
    shared: Shared,
    at: Position,
    /// Whether it goes on when nobody reads it.
    is_kept: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl World {
    /// What sessions have done to others since this was asked last.
    #[allow(dead_code, reason = "only scripts ask")]
    pub fn signals(&mut self) -> String {
        let signals = std::mem::take(&mut self.state.lock().unwrap().signals);
        signals.iter().map(|(process, signal)| format!("{signal:?} {process}\n")).collect()
    }

    /// The arguments of the calls since this was asked last, which are kept from the first time on.
    #[allow(dead_code, reason = "only one test looks at them")]
    pub fn called(&mut self) -> Vec<Vec<u8>> {
        self.state.lock().unwrap().called.replace(Vec::new()).unwrap_or_default()
    }

    /// Limits what sessions that begin from now on may hold together.
    #[allow(dead_code, reason = "only one test looks at it")]
    pub fn limit(&mut self, bytes: usize) {
        self.budget = Arc::new(Budget::new(bytes));
    }

    /// Has sessions that begin from now on run parts of queries by an engine.
    #[allow(dead_code, reason = "only the tests of an engine have one")]
    pub fn run_by(&mut self, query_engine: Option<Arc<dyn QueryEngine>>) {
        self.query_engine = query_engine;
    }

    /// Has somebody else do again what was called, right before each of so many calls.
    #[allow(dead_code, reason = "only some tests have somebody meddle")]
    pub fn meddle(&mut self, times: u32, arguments: Vec<u8>) {
        self.state.lock().unwrap().meddling = (times, arguments);
    }

    /// Puts the database out of reach after some calls, or back into it.
    #[allow(dead_code, reason = "only scripts ask")]
    pub fn calls_left(&mut self, calls: Option<u32>) {
        self.state.lock().unwrap().calls_left = calls;
    }

    /// Has calls take effect of which nobody is told, or ends that.
    #[allow(dead_code, reason = "only some tests lose answers")]
    pub fn loses_answers(&mut self, loses: bool) {
        self.state.lock().unwrap().loses_answers = loses;
    }

    /// Ends a session as when its process ends.
    #[allow(dead_code, reason = "only some tests end processes")]
    pub fn kill(&mut self, session: &str) {
        self.sessions.remove(session);
        if let Some(number) = self.numbers.remove(session) {
            let locks = &mut self.state.lock().unwrap().advisory;
            [true, false].into_iter().for_each(|kind| locks.give_back_all(number, kind));
        }
    }

    /// Lets time pass.
    #[allow(dead_code, reason = "only some tests wait")]
    pub fn wait(&mut self, microseconds: i64) {
        self.state.lock().unwrap().now += microseconds;
    }

    /// What a session that begins now knows of the database, without being a client.
    #[allow(dead_code, reason = "only some tests look behind the sessions")]
    pub fn database(&self) -> impl Database {
        self.shared()
    }

    /// A cluster with one engine and no tables.
    pub fn new(engine: EngineKind, partitions: u16) -> World {
        let mut builder = SchemaBuilder::new();
        let storages = Storages::register(&mut builder).unwrap();
        let mut procedures = Procedures::new();
        assert_eq!(procedures.register(SqlProcedure::new(storages.clone())), Ok(ProcedureId(0)));
        procedures::register(&mut builder, &mut procedures);
        let schema = builder.finish();
        let routines = Routines::of(&procedures);
        let catalog = procedure::Catalog { schema: schema.clone(), procedures };
        let cluster = Cluster::build(engine, partitions, &catalog, 7, |_| Box::new(MemoryStorage::new()));
        let state = State {
            cluster,
            routines,
            random: 1,
            now: 0,
            kept: Vec::new(),
            signals: Vec::new(),
            calls_left: None,
            loses_answers: false,
            called: None,
            meddling: (0, Vec::new()),
            advisory: AdvisoryLocks::default(),
            begun: 0,
        };
        let (sessions, numbers) = (BTreeMap::new(), BTreeMap::new());
        let state = Arc::new(Mutex::new(state));
        World { state, schema, storages, sessions, budget: Arc::default(), query_engine: None, numbers }
    }

    /// How many times statements were run to find out what they touch.
    #[allow(dead_code, reason = "most tests do not count")]
    pub fn reconnaissance(&self) -> u64 {
        self.state.lock().unwrap().cluster.scouting().iter().map(|node| node.runs).sum()
    }

    #[allow(dead_code, reason = "most tests do not look back")]
    /// Keeps the state of now for reads of the past; how many seconds after the beginning that was.
    pub fn keep(&mut self) -> i64 {
        let mut state = self.state.lock().unwrap();
        let at = state.cluster.open_snapshot(CLIENT).unwrap();
        state.now += 1_000_000;
        let now = state.now;
        state.kept.push((now, at));
        now / 1_000_000
    }

    /// Begins a session that names parameters when it connects; the bytes that it is welcomed with.
    ///
    /// # Errors
    /// When a parameter cannot be what is asked for.
    #[allow(dead_code, reason = "most tests name none")]
    pub fn connect(&mut self, session: &str, parameters: &[(&str, &str)]) -> Result<Vec<u8>, SqlError> {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut begun = self.begin(parameters.collect())?;
        let mut out = Vec::new();
        begun.welcome(1, &[0; 4], &mut out);
        self.sessions.insert(session.to_owned(), begun);
        Ok(out)
    }

    /// What a session is told of a statement.
    #[allow(dead_code, reason = "some tests send messages of other kinds")]
    pub fn ask(&mut self, session: &str, text: &str) -> String {
        told(&self.send(session, Frontend::Query(text.to_owned())))
    }

    /// The same of one that must not fail.
    #[allow(dead_code, reason = "some tests send messages of other kinds")]
    pub fn must(&mut self, session: &str, text: &str) -> String {
        let answer = self.ask(session, text);
        assert!(!answer.contains("ERROR"), "{text}: {answer}");
        answer
    }

    fn shared(&self) -> Shared {
        let catalog = Arc::new(Mutex::new(None));
        let (state, storages) = (Arc::clone(&self.state), self.storages.clone());
        let number = {
            let mut state = state.lock().unwrap();
            state.begun += 1;
            state.begun
        };
        let interrupt = Arc::new(Interrupt::sharing(Arc::clone(&self.budget)));
        let query_engine = self.query_engine.clone();
        Shared { state, storages, catalog, interrupt, query_engine, number, alarm: Arc::default() }
    }

    fn begin(&self, parameters: Vec<(String, String)>) -> Result<Session, SqlError> {
        let (schema, storages) = (self.schema.clone(), self.storages.clone());
        let options = Options { user: "ordain".into(), database: "ordain".into(), parameters };
        Session::new(Arc::new(self.shared()), schema, storages, options)
    }

    /// Gives a message to a session, which is begun if it is not there; the bytes that it sends.
    pub fn send(&mut self, session: &str, message: Frontend) -> Vec<u8> {
        let mut out = Vec::new();
        self.send_to(session, message, &mut out);
        out
    }

    /// The same where the bytes are appended.
    pub fn send_to(&mut self, session: &str, message: Frontend, out: &mut Vec<u8>) {
        if !self.sessions.contains_key(session) {
            let begun = self.begin(Vec::new()).unwrap();
            self.sessions.insert(session.to_owned(), begun);
            self.numbers.insert(session.to_owned(), self.state.lock().unwrap().begun);
        }
        self.sessions.get_mut(session).unwrap().handle(message, out);
    }

    /// The same to a session that has begun, with what is sent while the statement runs given to `send`; what is left at the end.
    #[allow(dead_code, reason = "most tests take all at once")]
    pub fn send_in_parts(
        &mut self,
        session: &str,
        message: Frontend,
        mut send: impl FnMut(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        self.sessions.get_mut(session).unwrap().handle_sending(message, &mut out, &mut send);
        out
    }
}

impl Database for Shared {
    /// As many for all clusters, so that one script is right for each.
    fn partitions(&self) -> u16 {
        4
    }

    /// One row, of what each column's type is.
    fn state(&self, view: StateView) -> Result<Vec<Vec<Datum>>, Error> {
        let value = |(name, data_type): &(&str, SqlType)| match (*name, *data_type) {
            (_, data_type) if data_type.array => Datum::Null,
            ("pid", _) => Datum::Int(7),
            (_, SqlType::INT4 | SqlType::INT8 | SqlType::OID) => Datum::Int(1),
            (name, SqlType::TEXT | SqlType::NAME) => Datum::Text(name.to_owned()),
            _ => Datum::Null,
        };
        Ok(vec![view.columns().iter().map(value).collect()])
    }

    fn processes(&self) -> Vec<i32> {
        vec![0, 7]
    }

    fn signal(&self, process: i32, signal: Signal) {
        self.state().signals.push((process, signal));
    }

    fn call(&self, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let mut state = self.state();
        if let Some(called) = &mut state.called {
            called.push(arguments.clone());
        }
        match &mut state.calls_left {
            Some(0) => return Err(Error::Unavailable("out of reach".to_owned())),
            Some(left) => *left -= 1,
            None => {}
        }
        if state.meddling.0 > 0 {
            state.meddling.0 -= 1;
            let meddling = state.meddling.1.clone();
            let request = state.cluster.call(PartitionId(0), CLIENT, ProcedureId(0), meddling);
            state.cluster.run_until_quiet();
            state.cluster.reply(request).as_ref().unwrap();
        }
        let request = state.cluster.call(PartitionId(0), CLIENT, ProcedureId(0), arguments);
        state.cluster.run_until_quiet();
        if state.loses_answers {
            return Err(Error::Unavailable("nobody knows".to_owned()));
        }
        state.cluster.reply(request).clone()
    }

    fn read(&self, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let mut state = self.state();
        let operation = Operation::Read { procedure: ProcedureId(0), arguments: arguments.into() };
        let request = state.cluster.submit(PartitionId(0), CLIENT, operation);
        state.cluster.run_until_quiet();
        state.cluster.reply(request).clone()
    }

    fn routines(&self) -> Routines {
        self.state().routines.clone()
    }

    fn call_routine(&self, procedure: ProcedureId, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let mut state = self.state();
        let request = state.cluster.call(PartitionId(0), CLIENT, procedure, arguments);
        state.cluster.run_until_quiet();
        state.cluster.reply(request).clone()
    }

    fn snapshot(&self) -> Result<Box<dyn View>, Error> {
        let at = self.state().cluster.open_snapshot(CLIENT)?;
        Ok(Box::new(Snapshot { shared: self.clone(), at, is_kept: false }))
    }

    fn catalog(&self, outdated: Option<&Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
        let known = self.catalog.lock().unwrap().clone();
        if let Some(known) = &known
            && outdated.is_none_or(|outdated| !Arc::ptr_eq(outdated, known))
        {
            return Ok(Arc::clone(known));
        }
        let catalog = Arc::new(definitions(&*self.snapshot()?, &self.storages)?);
        *self.catalog.lock().unwrap() = Some(Arc::clone(&catalog));
        Ok(catalog)
    }

    fn past(&self, at: i64) -> Result<Past, SqlError> {
        let state = self.state();
        let Some((_, at)) = state.kept.iter().rfind(|(ready, _)| *ready <= at) else {
            return Err(not_kept(state.kept.first().map(|(ready, _)| *ready)));
        };
        let view = Snapshot { shared: self.clone(), at: *at, is_kept: true };
        drop(state);
        let catalog = Arc::new(definitions(&view, &self.storages).unwrap());
        Ok(Past { view: Box::new(view), catalog })
    }

    fn now(&self) -> i64 {
        let mut state = self.state();
        state.now += 1_000_000;
        state.now
    }

    fn unique(&self) -> u128 {
        let mut state = self.state();
        state.random += 1;
        state.random
    }

    fn query_engine(&self) -> Option<Arc<dyn QueryEngine>> {
        self.query_engine.clone()
    }

    fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    fn alarm(&self, microseconds: Option<u64>) {
        let now = self.state().now;
        *self.alarm.lock().unwrap() = microseconds.map(|time| now + time.cast_signed());
    }

    /// Only here time passes that is long enough to be over.
    fn pause(&self, microseconds: u64) {
        let mut state = self.state();
        let end = state.now + microseconds.cast_signed();
        let alarm = self.alarm.lock().unwrap().filter(|alarm| *alarm <= end);
        state.now = alarm.unwrap_or(end);
        if alarm.is_some() {
            self.interrupt.time_out();
        }
    }

    /// Nobody can wait here, where all take turns.
    fn advisory(&self, act: AdvisoryAct) -> Result<bool, SqlError> {
        let locks = &mut self.state().advisory;
        match act {
            AdvisoryAct::Take { lock, waits: false } => locks.take(self.number, lock),
            AdvisoryAct::Take { lock, waits: true } if locks.take(self.number, lock)? => Ok(true),
            AdvisoryAct::Take { lock, waits: true } => {
                locks.wait(self.number, lock)?;
                Err(SqlError::unsupported("here a wait"))
            }
            AdvisoryAct::GiveBack(lock) => Ok(locks.give_back(self.number, lock)),
            AdvisoryAct::GiveBackAll { in_transaction } => {
                locks.give_back_all(self.number, in_transaction);
                Ok(true)
            }
        }
    }

    fn sweep(&self) {}
}

impl View for Snapshot {
    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut rows = self.shared.state().cluster.scan_directed(CLIENT, self.at, range, direction)?;
        rows.sort_by(|left, right| direction.compare(left, right));
        // Every partition has a copy of what is replicated.
        rows.dedup_by(|left, right| left.0 == right.0);
        for (key, row) in rows.iter().take(limit) {
            if visit(key, row).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.is_kept {
            self.shared.state().cluster.send(PartitionId(0), ClientRequest::CloseSnapshot(self.at));
        }
    }
}

/// Where in a statement the errors among messages of the server are, in what, and about what.
#[allow(dead_code, reason = "only scripts ask")]
pub fn places(mut bytes: &[u8]) -> String {
    let mut lines = String::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        let body = &rest[4..length];
        bytes = &rest[length..];
        for field in body.split(|byte| *byte == 0).filter(|field| *kind == b'E' && !field.is_empty()) {
            let name = match field[0] {
                b'P' => "AT",
                b'W' => "CONTEXT",
                b's' => "SCHEMA",
                b't' => "TABLE",
                _ => continue,
            };
            lines.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(&field[1..])));
        }
    }
    lines
}

/// What messages of the server say, a line each.
pub fn told(mut bytes: &[u8]) -> String {
    let mut lines = String::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        let body = &rest[4..length];
        bytes = &rest[length..];
        if let Some(line) = told_message(*kind, body) {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    lines
}

fn told_message(kind: u8, body: &[u8]) -> Option<String> {
    match kind {
        b'T' => Some(format!("({})", names(body).join(", "))),
        b'D' => Some(values(body).join(" | ")),
        b'C' => Some(text(body)),
        b'E' => Some(report("ERROR", body)),
        b'N' => Some(report("", body)),
        b'I' => Some("(empty)".to_owned()),
        b'G' => Some("(copy in)".to_owned()),
        b'H' => Some("(copy out)".to_owned()),
        b'd' => Some(String::from_utf8_lossy(body).trim_end().to_owned()),
        b's' => Some("(suspended)".to_owned()),
        b't' => {
            let oids = body[2..].chunks(4).map(|oid| u32::from_be_bytes(oid.try_into().unwrap()).to_string());
            Some(format!("parameters {}", oids.collect::<Vec<_>>().join(" ")))
        }
        b'n' => Some("(no data)".to_owned()),
        b'Z' if body != b"I" => Some(format!("[{}]", if body == b"T" { "in block" } else { "failed block" })),
        _ => None,
    }
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body.split(|byte| *byte == 0).next().unwrap()).into_owned()
}

fn names(body: &[u8]) -> Vec<String> {
    let mut rest = &body[2..];
    let mut names = Vec::new();
    while !rest.is_empty() {
        let name = text(rest);
        let oid = u32::from_be_bytes(rest[name.len() + 7..][..4].try_into().unwrap());
        rest = &rest[name.len() + 1 + 18..];
        names.push(match SqlType::from_oid(oid, -1) {
            Some(data_type) => format!("{name} {}", data_type.name()),
            None => format!("{name} {oid}"),
        });
    }
    names
}

fn values(body: &[u8]) -> Vec<String> {
    let mut rest = &body[2..];
    let mut values = Vec::new();
    while !rest.is_empty() {
        let length = i32::from_be_bytes(rest[..4].try_into().unwrap());
        rest = &rest[4..];
        if length < 0 {
            values.push("NULL".to_owned());
        } else {
            values.push(String::from_utf8_lossy(&rest[..length as usize]).into_owned());
            rest = &rest[length as usize..];
        }
    }
    values
}

fn report(kind: &str, body: &[u8]) -> String {
    let mut fields = BTreeMap::new();
    for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        fields.insert(field[0], String::from_utf8_lossy(&field[1..]).into_owned());
    }
    let mut line = match kind {
        "ERROR" => format!("ERROR {}: {}", fields[&b'C'], fields[&b'M']),
        _ if fields[&b'C'] == "00000" => format!("{}: {}", fields[&b'S'], fields[&b'M']),
        _ => format!("{} {}: {}", fields[&b'S'], fields[&b'C'], fields[&b'M']),
    };
    for (letter, name) in [(b'D', "DETAIL"), (b'H', "HINT")] {
        if let Some(text) = fields.get(&letter) {
            line.push_str(&format!("\n{name}: {text}"));
        }
    }
    line
}
