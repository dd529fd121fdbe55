//! The database as sessions of SQL see it.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use ordain_db::data::{Direction, Key, KeyRange, Schema};
use ordain_db::error::{Error, Outcome};
use ordain_db::limits::ARGUMENTS_BYTES_MAX;
use ordain_db::message::Page;
use ordain_db::position::PartitionId;
use ordain_db::procedure::{self, ProcedureId};
use ordain_sql::advisory::AdvisoryAct;
use ordain_sql::catalog::user_definition;
use ordain_sql::catalog::{Catalog, Definition};
use ordain_sql::error::SqlError;
use ordain_sql::execute::columns::QueryEngine;
use ordain_sql::execute::{Budget, Interrupt};
use ordain_sql::keys::{DEFINITION_COLUMN, Storages};
use ordain_sql::procedure::NAME;
use ordain_sql::routines::Routines;
use ordain_sql::session::handshake::User;
use ordain_sql::session::merge::{self, Pages};
use ordain_sql::session::{Database, Options, Past, Session, View, take_definition};
use ordain_sql::state::{Signal, StateView};
use ordain_sql::types::Datum;

use super::activity::{Record, Wait};
use super::advisory::Advisory;
use super::alarms::{Alarms, Due};
use super::history::{self, History};
use super::state::Nodes;
use super::{janitor, lock};
use crate::caller::Pending;
use crate::connection::{Connection, Opening, Snapshot};
use crate::port::Port;
use crate::process::Process;

/// From the epoch of Unix to that of PostgreSQL, 2000-01-01 UTC, in microseconds.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// How old the definitions may be that a statement is planned with. What this process has changed itself is known at once; another
/// process's changes are noticed at the latest when a plan that relies on them is refused.
const DEFINITIONS_AGE_MAX: Duration = Duration::from_secs(1);

/// How long a request that is refused as busy is repeated.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// The first pause before it is repeated; it doubles up to [`BUSY_PAUSE_MAX`].
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// The longest such pause.
const BUSY_PAUSE_MAX: Duration = Duration::from_millis(64);

/// How many snapshots may be on their way to sessions that do not wait for them any more.
const GIVEN_UP_MAX: usize = 1024;

/// How long a session that pauses or waits goes without looking whether it is to end.
const PAUSE_STEP: Duration = Duration::from_millis(50);

/// So many bits of a number that is like no other are random; those before are the time in microseconds, until the year 2142.
const RANDOM_BITS: u32 = 76;

/// Most bytes of rows that all statements hold together, about.
const HELD_BYTES_MAX: usize = 2 << 30;

/// A database with the tables and the procedure of SQL, for as many sessions as there are.
#[derive(Clone)]
pub struct SqlDatabase(Arc<Shared>);

/// What the sessions share.
pub(super) struct Shared {
    port: Arc<dyn Port>,
    /// The nodes of this process.
    nodes: Nodes,
    catalog: procedure::Catalog,
    procedure: ProcedureId,
    routines: Routines,
    storages: Storages,
    /// Connections that no session uses. A connection is a client of the database, whose answers are kept until it has the earlier ones;
    /// so sessions, some of which wait long, do not share any, and there are never more than there were sessions at a time.
    idle: Mutex<Vec<Connection>>,
    /// Snapshots that were asked for and not waited for: whoever opens one next closes those that have come.
    given_up: Mutex<Vec<Opening>>,
    alarms: Arc<Alarms>,
    advisory: Advisory,
    /// What statements may hold together.
    budget: Arc<Budget>,
    definitions: Mutex<Option<Known>>,
    /// Held by whoever loads them.
    loading: Mutex<()>,
    /// Wakes the [`janitor`]; it ends when this is gone.
    garbage: Sender<()>,
    /// What is kept for reads of the past.
    pub(super) history: History,
    /// How many processes of the cluster may keep such states.
    pub(super) processes: usize,
    /// Makes numbers that are like no other, should the operating system have none.
    number: Mutex<u128>,
}

/// The definitions as of a time.
struct Known {
    catalog: Arc<Catalog>,
    /// Of the rows that they were read from.
    digest: u128,
    read: Instant,
}

impl SqlDatabase {
    /// The database behind `port`, of which this process, one of `processes`, runs some nodes, if its schema has the tables of SQL. Starts the thread that deletes rows which belong to nothing.
    ///
    /// # Errors
    /// When there is no randomness or no thread to be had.
    pub fn open(
        port: Arc<dyn Port>,
        process: &Arc<Process>,
        catalog: procedure::Catalog,
        processes: usize,
    ) -> Result<Option<SqlDatabase>, Error> {
        let nodes = Nodes::of(process, &catalog)?;
        let (Some(storages), Some(procedure)) =
            (Storages::find(&catalog.schema), catalog.procedures.find(NAME))
        else {
            return Ok(None);
        };
        let routines = Routines::of(&catalog.procedures);
        let (garbage, told) = mpsc::channel();
        let number = Mutex::new(
            random_number()
                .ok_or_else(|| Error::Unavailable("the operating system gives no randomness".to_owned()))?,
        );
        let no_thread = |error: std::io::Error| Error::Unavailable(format!("cannot start a thread: {error}"));
        let alarms = Alarms::start().map_err(no_thread)?;
        let shared = Arc::new(Shared {
            port,
            nodes,
            catalog,
            procedure,
            routines,
            storages,
            idle: Mutex::default(),
            given_up: Mutex::default(),
            alarms,
            advisory: Advisory::default(),
            budget: Arc::new(Budget::new(HELD_BYTES_MAX)),
            definitions: Mutex::default(),
            loading: Mutex::default(),
            garbage,
            history: History::default(),
            processes,
            number,
        });
        janitor::start(Arc::downgrade(&shared), told).map_err(no_thread)?;
        Ok(Some(SqlDatabase(shared)))
    }

    /// Keeps states of the past so long, for reads `AS OF` a time.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn keep_history(&self, retention: Duration) -> Result<(), Error> {
        history::start(&self.0, retention)
            .map_err(|error| Error::Unavailable(format!("cannot start a thread: {error}")))
    }

    /// The tables of the database.
    pub fn schema(&self) -> &Schema {
        &self.0.catalog.schema
    }

    /// Those in which SQL lives.
    pub fn storages(&self) -> &Storages {
        &self.0.storages
    }

    /// The database as one session sees it.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn session(&self) -> Result<SessionDatabase, Error> {
        SessionDatabase::new(&self.0)
    }

    /// A user by name, as of now.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub fn user(&self, name: &str) -> Result<Option<User>, Error> {
        let session = self.session()?;
        let key = self.0.storages.definition("", &user_definition(name));
        let Ok(key) = key else { return Ok(None) };
        let Some(row) = session.open_snapshot()?.get(&key)? else { return Ok(None) };
        let definition = self.0.storages.definitions.read(&row).byte_string(DEFINITION_COLUMN)?;
        match Definition::decode(definition) {
            Ok(Definition::User { verifier, .. }) => Ok(Some(User { verifier, may_connect: true })),
            Ok(Definition::Role { verifier, .. }) => Ok(Some(User { verifier, may_connect: false })),
            Ok(_) => Ok(None),
            Err(error) => Err(Error::Unavailable(error.to_string())),
        }
    }
}

impl SqlDatabase {
    /// Gives a user a password.
    ///
    /// # Errors
    /// When the database cannot be asked, or refuses.
    pub fn set_password(&self, user: &str, password: &str) -> Result<(), Error> {
        let options = Options { user: user.to_owned(), ..Options::default() };
        let (schema, storages) = (self.schema().clone(), self.storages().clone());
        Session::new(Arc::new(self.session()?), schema, storages, options)
            .and_then(|mut session| session.set_password(user, password))
            .map_err(|error| Error::Unavailable(format!("the password cannot be set: {error}")))
    }
}

/// The database as one session sees it.
pub struct SessionDatabase {
    shared: Arc<Shared>,
    /// `None` once it has been given back.
    connection: Option<Connection>,
    interrupt: Arc<Interrupt>,
    /// Its number among those that may have advisory locks.
    number: u64,
    /// The alarm that is set.
    due: Mutex<Option<Due>>,
    /// Where the session is seen, and sees others: those of its listener. `None` for what the server does itself.
    watched: Option<Watched>,
}

/// See [`SessionDatabase::watch`].
pub(super) struct Watched {
    pub(super) listener: Arc<super::listener::Shared>,
    record: Arc<Record>,
}

impl SessionDatabase {
    pub(super) fn new(shared: &Arc<Shared>) -> Result<SessionDatabase, Error> {
        let idle = lock(&shared.idle).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Connection::new(Arc::clone(&shared.port), shared.catalog.clone())?,
        };
        Ok(SessionDatabase {
            shared: Arc::clone(shared),
            connection: Some(connection),
            interrupt: Arc::new(Interrupt::sharing(Arc::clone(&shared.budget))),
            number: shared.advisory.session(),
            due: Mutex::default(),
            watched: None,
        })
    }

    /// Lets others see the session of a client, and the session others.
    pub(super) fn watch(&mut self, listener: &Arc<super::listener::Shared>, record: &Arc<Record>) {
        self.watched = Some(Watched { listener: Arc::clone(listener), record: Arc::clone(record) });
    }

    /// Lets others see for what the session waits.
    fn waiting<T>(&self, wait: Wait, act: impl FnOnce() -> T) -> T {
        match &self.watched {
            Some(watched) => watched.record.waiting(wait, act),
            None => act(),
        }
    }

    fn connection(&self) -> Result<&Connection, Error> {
        self.connection.as_ref().ok_or_else(|| Error::Unavailable("the session has ended".to_owned()))
    }

    pub(super) fn open_snapshot(&self) -> Result<Snapshot, Error> {
        let connection = self.connection()?;
        let mut given_up = lock(&self.shared.given_up);
        given_up.retain(|opening| opening.wait_for(Duration::ZERO).is_none());
        if given_up.len() >= GIVEN_UP_MAX {
            return Err(Error::Busy("too many snapshots are being opened".to_owned()));
        }
        drop(given_up);
        self.patiently(Wait::Snapshot, || {
            let opening = connection.begin_snapshot();
            loop {
                if let Some(outcome) = opening.wait_for(PAUSE_STEP) {
                    return outcome;
                }
                if self.interrupt.is_set() {
                    lock(&self.shared.given_up).push(opening);
                    return Err(Error::Unavailable("the statement waits no longer".to_owned()));
                }
            }
        })
    }

    /// Waits for an answer, but not much longer than `until_told` says.
    fn wait(&self, pending: Pending, until_told: impl Fn(&Interrupt) -> bool) -> Outcome {
        loop {
            if let Some(outcome) = pending.wait_for(PAUSE_STEP) {
                return outcome;
            }
            if until_told(&self.interrupt) {
                return Err(Error::Unavailable("the statement waits no longer".to_owned()));
            }
        }
    }

    /// Does what waits, again as long as the database is busy, for a while, unless the statement is to end.
    fn patiently<T>(&self, wait: Wait, mut act: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let begun = Instant::now();
        let mut pause = BUSY_PAUSE;
        self.waiting(wait, || {
            loop {
                match act() {
                    Err(Error::Busy(_)) if begun.elapsed() < BUSY_PATIENCE && !self.interrupt.is_set() => {
                        thread::sleep(pause);
                        pause = (2 * pause).min(BUSY_PAUSE_MAX);
                    }
                    outcome => return outcome,
                }
            }
        })
    }

    /// All definitions, as of now.
    pub(super) fn fresh_catalog(&self) -> Result<Catalog, Error> {
        Ok(self.load()?.0)
    }

    /// Reads all definitions; with a digest of what was read.
    fn load(&self) -> Result<(Catalog, u128), Error> {
        self.read_definitions(&self.open_snapshot()?)
    }

    /// The definitions that a snapshot sees; those that are known, if they are the same.
    pub(super) fn definitions_of(&self, snapshot: &Snapshot) -> Result<Arc<Catalog>, Error> {
        let (catalog, digest) = self.read_definitions(snapshot)?;
        let known = lock(&self.shared.definitions);
        let same = known.as_ref().filter(|known| known.digest == digest);
        Ok(same.map_or_else(|| Arc::new(catalog), |known| Arc::clone(&known.catalog)))
    }

    fn read_definitions(&self, snapshot: &Snapshot) -> Result<(Catalog, u128), Error> {
        let table = &self.shared.storages.definitions;
        let mut catalog = Catalog::new();
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        snapshot.scan(&table.all(), |key, row| {
            for part in [key, row] {
                hash.update(&(part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            take_definition(&mut catalog, &self.shared.storages, key, row)
        })?;
        Ok((catalog, hash.digest128()))
    }

    /// The definitions that are known, if they will do. Newer ones than some must have been read after they were `asked` for: what the
    /// session has just defined may be missing in any others.
    fn known(&self, outdated: Option<&Arc<Catalog>>, asked: Instant) -> Option<Arc<Catalog>> {
        let known = lock(&self.shared.definitions);
        let known = known.as_ref()?;
        let will_do = match outdated {
            Some(outdated) => !Arc::ptr_eq(outdated, &known.catalog) && known.read >= asked,
            None => known.read.elapsed() < DEFINITIONS_AGE_MAX,
        };
        will_do.then(|| Arc::clone(&known.catalog))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.alarms.close();
    }
}

impl Drop for SessionDatabase {
    fn drop(&mut self) {
        self.alarm(None);
        self.shared.advisory.end(self.number);
        lock(&self.shared.idle).extend(self.connection.take());
    }
}

impl Database for SessionDatabase {
    fn call(&self, arguments: Vec<u8>) -> Result<Bytes, Error> {
        if arguments.len() > ARGUMENTS_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "the statement with its values has {} bytes, and the limit is {ARGUMENTS_BYTES_MAX}: split it",
                arguments.len()
            )));
        }
        let arguments = Bytes::from(arguments);
        let connection = self.connection()?;
        self.patiently(Wait::Order, || {
            let pending = connection.submit(self.shared.procedure, arguments.clone())?;
            self.wait(pending, Interrupt::is_timed_out)
        })
    }

    fn routines(&self) -> Routines {
        self.shared.routines.clone()
    }

    fn call_routine(&self, procedure: ProcedureId, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let arguments = Bytes::from(arguments);
        let connection = self.connection()?;
        self.patiently(Wait::Order, || {
            let pending = connection.submit(procedure, arguments.clone())?;
            self.wait(pending, Interrupt::is_timed_out)
        })
    }

    fn read(&self, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let arguments = Bytes::from(arguments);
        let connection = self.connection()?;
        self.patiently(Wait::Read, || {
            let pending = connection.submit_read(self.shared.procedure, arguments.clone())?;
            self.wait(pending, Interrupt::is_set)
        })
    }

    fn snapshot(&self) -> Result<Box<dyn View>, Error> {
        Ok(Box::new(Seen(Arc::new(self.open_snapshot()?))))
    }

    fn past(&self, at: i64) -> Result<Past, SqlError> {
        let (snapshot, catalog) = self.shared.history.past(at)?;
        Ok(Past { view: Box::new(Seen(snapshot)), catalog })
    }

    fn catalog(&self, outdated: Option<&Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
        let asked = Instant::now();
        if let Some(known) = self.known(outdated, asked) {
            return Ok(known);
        }
        let _alone = match (self.shared.loading.try_lock(), outdated) {
            (Ok(alone), _) => alone,
            (Err(TryLockError::Poisoned(alone)), _) => alone.into_inner(),
            (Err(TryLockError::WouldBlock), None) => {
                // Somebody looks for newer ones; those that are there are not much older than they may be.
                let known = lock(&self.shared.definitions).as_ref().map(|known| Arc::clone(&known.catalog));
                match known {
                    Some(known) => return Ok(known),
                    None => lock(&self.shared.loading),
                }
            }
            (Err(TryLockError::WouldBlock), Some(_)) => lock(&self.shared.loading),
        };
        // Whoever had the lock before may have loaded what is asked for.
        if let Some(known) = self.known(outdated, asked) {
            return Ok(known);
        }
        let read = Instant::now();
        let (catalog, digest) = self.load()?;
        let mut known = lock(&self.shared.definitions);
        let same = known.as_ref().filter(|before| before.digest == digest);
        // Sessions see by that that nothing has changed, and keep what they have planned.
        let catalog = same.map_or_else(|| Arc::new(catalog), |before| Arc::clone(&before.catalog));
        *known = Some(Known { catalog: Arc::clone(&catalog), digest, read });
        Ok(catalog)
    }

    fn now(&self) -> i64 {
        now()
    }

    fn partitions(&self) -> u16 {
        self.shared.port.partitions()
    }

    fn state(&self, view: StateView) -> Result<Vec<Vec<Datum>>, Error> {
        match (view, &self.watched) {
            (StateView::Activity, Some(watched)) => Ok(watched.listener.activity.rows()),
            (StateView::Activity, None) => Ok(Vec::new()),
            (view, _) => {
                let catalog = self.catalog(None)?;
                Ok(self.shared.nodes.rows(view, &catalog, &self.shared.storages))
            }
        }
    }

    fn processes(&self) -> Vec<i32> {
        self.watched.as_ref().map_or_else(Vec::new, |watched| watched.listener.activity.processes())
    }

    fn signal(&self, process: i32, signal: Signal) {
        let Some(watched) = &self.watched else { return };
        if signal == Signal::Terminate {
            watched.listener.activity.terminate(process);
        }
        watched.listener.cancellations.signal(process, signal);
    }

    fn unique(&self) -> u128 {
        let random = random_number().unwrap_or_else(|| {
            let mut number = lock(&self.shared.number);
            *number = number.wrapping_add(1);
            xxhash_rust::xxh3::xxh3_128(&number.to_le_bytes())
        });
        (u128::from(now().cast_unsigned()) << RANDOM_BITS) | (random >> (u128::BITS - RANDOM_BITS))
    }

    fn query_engine(&self) -> Option<Arc<dyn QueryEngine>> {
        #[cfg(feature = "columns")]
        let engine: Option<Arc<dyn QueryEngine>> = Some(Arc::new(ordain_columns::Columns));
        #[cfg(not(feature = "columns"))]
        let engine = None;
        engine
    }

    fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    fn alarm(&self, microseconds: Option<u64>) {
        let mut due = lock(&self.due);
        if let Some(due) = due.take() {
            self.shared.alarms.take_back(due);
        }
        let set = |time| self.shared.alarms.set(Duration::from_micros(time), Arc::clone(&self.interrupt));
        *due = microseconds.map(set);
    }

    fn pause(&self, microseconds: u64) {
        let end = Instant::now() + Duration::from_micros(microseconds);
        self.waiting(Wait::Pause, || {
            while !self.interrupt.is_set() {
                let rest = end.saturating_duration_since(Instant::now());
                if rest.is_zero() {
                    break;
                }
                thread::sleep(rest.min(PAUSE_STEP));
            }
        });
    }

    fn advisory(&self, act: AdvisoryAct) -> Result<bool, SqlError> {
        let act = || self.shared.advisory.act(self.number, act, &self.interrupt);
        self.waiting(Wait::Advisory, act)
    }

    fn sweep(&self) {
        // The janitor lives as long as the database.
        let _ = self.shared.garbage.send(());
    }
}

/// A snapshot as a session sees it.
struct Seen(Arc<Snapshot>);

impl View for Seen {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        self.0.get(key)
    }

    fn get_all(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        self.0.get_all(keys)
    }

    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        merge::scan(self, self.0.owners(range)?, (range, direction), limit, visit)
    }
}

impl Pages for Seen {
    fn pages(
        &self,
        ranges: &[(PartitionId, KeyRange)],
        direction: Direction,
        rows: u32,
    ) -> Result<Vec<Page>, Error> {
        self.0.pages(ranges, direction, rows)
    }
}

/// The time: microseconds since 2000-01-01 UTC.
pub(super) fn now() -> i64 {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    unix.map_or(0, |unix| i64::try_from(unix.as_micros()).unwrap_or(i64::MAX)) - EPOCH_MICROSECONDS
}

fn random_number() -> Option<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(u128::from_le_bytes(bytes))
}
