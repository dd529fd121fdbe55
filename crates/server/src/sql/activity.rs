//! The sessions of SQL of a process: what each does, and how it is ended by another one.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ordain_sql::protocol::backend::TransactionStatus;
use ordain_sql::session::Standing;
use ordain_sql::types::Datum;

use super::lock;

/// All sessions, by their numbers.
#[derive(Default)]
pub struct Activity(Mutex<BTreeMap<i32, Arc<Record>>>);

/// A session, for those who watch.
pub struct Record {
    user: String,
    database: String,
    peer: SocketAddr,
    stream: Arc<TcpStream>,
    /// When it began: microseconds since 2000-01-01 UTC, as all times here.
    began: i64,
    ended_by_another: AtomicBool,
    /// Whether something is on its way to the client, which may not take it.
    sends: AtomicBool,
    now: Mutex<Now>,
}

/// What a session does.
struct Now {
    application_name: String,
    /// Whether a message is worked on.
    active: bool,
    status: TransactionStatus,
    transaction_began: Option<i64>,
    /// The statement that runs, or the last one.
    statement: String,
    statement_began: Option<i64>,
    changed: i64,
    waits: Option<Wait>,
}

/// What a statement waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Its place in the order, and what comes of it there.
    Order,
    /// An answer from the newest state.
    Read,
    /// A snapshot.
    Snapshot,
    /// The time for which it pauses.
    Pause,
    /// An advisory lock.
    Advisory,
}

impl Wait {
    /// Its class and its name, as `pg_stat_activity` has them.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Wait::Order => ("IPC", "Order"),
            Wait::Read => ("IPC", "Read"),
            Wait::Snapshot => ("IPC", "Snapshot"),
            Wait::Pause => ("Timeout", "PgSleep"),
            Wait::Advisory => ("Lock", "advisory"),
        }
    }
}

/// A session as long as it is among all.
pub struct Entered {
    activity: Arc<Activity>,
    process: i32,
    record: Arc<Record>,
}

impl Record {
    /// A session that begins.
    pub fn new(user: &str, database: &str, peer: SocketAddr, stream: Arc<TcpStream>, now: i64) -> Record {
        let at = Now {
            application_name: String::new(),
            active: false,
            status: TransactionStatus::Idle,
            transaction_began: None,
            statement: String::new(),
            statement_began: None,
            changed: now,
            waits: None,
        };
        Record {
            user: user.to_owned(),
            database: database.to_owned(),
            peer,
            stream,
            began: now,
            ended_by_another: AtomicBool::new(false),
            sends: AtomicBool::new(false),
            now: Mutex::new(at),
        }
    }

    /// Its user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whether another session has ended this one.
    pub fn is_ended(&self) -> bool {
        self.ended_by_another.load(Ordering::SeqCst)
    }

    /// A message is worked on from now on; with its statement, if it has one.
    pub fn begin(&self, statement: Option<&str>, at: i64) {
        let mut now = lock(&self.now);
        now.active = true;
        now.changed = at;
        if let Some(statement) = statement {
            now.statement.clear();
            now.statement.push_str(statement);
            now.statement_began = Some(at);
        }
    }

    /// The message is done.
    pub fn end(&self, standing: Standing<'_>, at: i64) {
        let mut now = lock(&self.now);
        now.active = false;
        now.changed = at;
        now.status = standing.status;
        now.transaction_began = standing.transaction_began;
        if now.application_name != standing.application_name {
            standing.application_name.clone_into(&mut now.application_name);
        }
    }

    /// The statement that runs, or the last one.
    pub fn statement(&self) -> String {
        lock(&self.now).statement.clone()
    }

    /// Sends something to its client.
    pub fn sending<T>(&self, send: impl FnOnce() -> T) -> T {
        self.sends.store(true, Ordering::SeqCst);
        let outcome = send();
        self.sends.store(false, Ordering::SeqCst);
        outcome
    }

    /// Does something during which the session waits.
    pub fn waiting<T>(&self, wait: Wait, act: impl FnOnce() -> T) -> T {
        let before = lock(&self.now).waits.replace(wait);
        let outcome = act();
        lock(&self.now).waits = before;
        outcome
    }

    /// Its row of `pg_stat_activity`.
    fn row(&self, process: i32) -> Vec<Datum> {
        let now = lock(&self.now);
        let text = |text: &str| Datum::Text(text.to_owned());
        let time = |time: Option<i64>| time.map_or(Datum::Null, Datum::Timestamp);
        let state = state_of(now.active, now.status);
        let waits = match now.waits {
            Some(wait) => Some(wait.names()),
            None if now.active => None,
            None => Some(("Client", "ClientRead")),
        };
        // A statement by itself is its own transaction.
        let alone = now.statement_began.filter(|_| now.active);
        vec![
            Datum::Int(1),
            text(&self.database),
            Datum::Int(i64::from(process)),
            Datum::Null,
            Datum::Null,
            text(&self.user),
            text(&now.application_name),
            text(&self.peer.ip().to_canonical().to_string()),
            Datum::Null,
            Datum::Int(i64::from(self.peer.port())),
            Datum::Timestamp(self.began),
            time(now.transaction_began.or(alone)),
            time(now.statement_began),
            Datum::Timestamp(now.changed),
            waits.map_or(Datum::Null, |(class, _)| text(class)),
            waits.map_or(Datum::Null, |(_, name)| text(name)),
            text(state),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            text(&now.statement),
            text("client backend"),
        ]
    }
}

/// The states of a session that are told apart.
pub const STATES: [&str; 4] = ["active", "idle", "idle in transaction", "idle in transaction (aborted)"];

fn state_of(active: bool, status: TransactionStatus) -> &'static str {
    let place = match status {
        _ if active => 0,
        TransactionStatus::Idle => 1,
        TransactionStatus::InBlock => 2,
        TransactionStatus::Failed => 3,
    };
    STATES[place]
}

impl Activity {
    /// Takes a session in under its number.
    pub fn enter(self: &Arc<Self>, process: i32, record: Arc<Record>) -> Entered {
        lock(&self.0).insert(process, Arc::clone(&record));
        Entered { activity: Arc::clone(self), process, record }
    }

    /// The numbers of all sessions.
    pub fn processes(&self) -> Vec<i32> {
        lock(&self.0).keys().copied().collect()
    }

    /// The rows of `pg_stat_activity`.
    pub fn rows(&self) -> Vec<Vec<Datum>> {
        lock(&self.0).iter().map(|(process, record)| record.row(*process)).collect()
    }

    /// How many sessions there are of each of the [`STATES`].
    pub fn counts(&self) -> [usize; STATES.len()] {
        let mut counts = [0; STATES.len()];
        for record in lock(&self.0).values() {
            let now = lock(&record.now);
            let state = state_of(now.active, now.status);
            if let Some(place) = STATES.iter().position(|known| *known == state) {
                counts[place] += 1;
            }
        }
        counts
    }

    /// Has a session end, if it is there.
    pub fn terminate(&self, process: i32) {
        if let Some(record) = lock(&self.0).get(&process) {
            record.ended_by_another.store(true, Ordering::SeqCst);
            // It may wait for its client, which still gets what is sent; but not where it waits for the client to take that.
            let how = if record.sends.load(Ordering::SeqCst) { Shutdown::Both } else { Shutdown::Read };
            let _ = record.stream.shutdown(how);
        }
    }
}

impl Entered {
    /// The session.
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// Its number.
    pub fn process(&self) -> i32 {
        self.process
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.activity.0).remove(&self.process);
    }
}
