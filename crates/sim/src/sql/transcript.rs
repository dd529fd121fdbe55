//! A session without a thread: it runs against a transcript of the database's answers.
//!
//! A session of `ordain-sql` waits in the [`Database`] trait; a simulated client cannot. So a conversation begins anew each time
//! that something is answered: the session is given the same messages, and what it asks is answered from the transcript, in the same
//! order. When it asks for something that nobody has answered yet, everything that it asks from then on fails, so that it comes to an
//! end soon; what it has told by then is forgotten, the question goes out into the simulated world, and the conversation is run again
//! when the answer is there. That a session asks the same again is checked. No lock is needed: the transcript does not change while a
//! session runs, but for cells that are set once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use ordain_db::data::{Direction, KeyRange, Schema};
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{Operation, Page};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::{self, ProcedureId};
use ordain_sql::catalog::Catalog;
use ordain_sql::error::SqlError;
use ordain_sql::execute::Interrupt;

use ordain_sql::keys::Storages;
use ordain_sql::procedure::NAME;
use ordain_sql::protocol::frontend::Frontend;
use ordain_sql::routines::Routines;
use ordain_sql::session::merge::{self, Pages};
use ordain_sql::session::{Database, Options, Past, Session, View, definitions, not_kept};
use ordain_sql::state::{Signal, StateView};
use ordain_sql::types::Datum;

use super::told::Told;

/// What a session asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Something that a client asks of the database under a number.
    Ask(Operation),
    /// The first rows of some ranges as of a snapshot.
    Pages {
        /// The snapshot.
        at: Position,
        /// Each with the partition that is asked.
        ranges: Vec<(PartitionId, KeyRange)>,
        /// From which of their ends.
        direction: Direction,
        /// At most so many rows of each.
        rows: u32,
    },
}

/// What the database has answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// To something that was asked under a number.
    Outcome(Outcome),
    /// To a question for rows: as many pages as there were ranges.
    Pages(Result<Vec<Page>, Error>),
}

/// A question with its answer.
struct Entry {
    question: Question,
    answer: Answer,
    /// The snapshot that was opened here is not needed any more.
    closed: OnceLock<()>,
    /// The definitions that were read over the snapshot which was opened here, and the number of the entry after that.
    definitions: OnceLock<(Arc<Catalog>, usize)>,
}

/// Where sessions are.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) schema: Schema,
    pub(crate) storages: Storages,
    pub(crate) procedure: ProcedureId,
    pub(crate) partitions: u16,
}

impl Scene {
    /// A cluster with so many partitions.
    pub(crate) fn of(catalog: &procedure::Catalog, partitions: u16) -> Result<Scene, Error> {
        let (storages, procedure) = (Storages::find(&catalog.schema), catalog.procedures.find(NAME));
        let (Some(storages), Some(procedure)) = (storages, procedure) else {
            return Err(Error::Invalid("the workload has no tables and procedure of SQL".to_owned()));
        };
        Ok(Scene { schema: catalog.schema.clone(), storages, procedure, partitions })
    }
}

/// What is said in a conversation.
pub(crate) trait Script {
    /// What the client says when it was told this; `None` at the end.
    fn next(&self, told: &[Told]) -> Option<String>;
}

impl Script for [&str] {
    fn next(&self, told: &[Told]) -> Option<String> {
        self.get(told.len()).map(|text| (*text).to_owned())
    }
}

/// How far a conversation has come.
pub(crate) enum Progress {
    /// It waits for an answer.
    Asks(Question),
    /// It is over; what the client was told of each message.
    Ended(Vec<Told>),
}

/// A conversation of a client with a session.
pub(crate) struct Conversation {
    entries: Vec<Entry>,
    /// Of these, the snapshots that the database was told are not needed any more.
    closed: Vec<usize>,
    /// The definitions that were known before.
    known: Option<Arc<Catalog>>,
    /// The time: microseconds.
    now: i64,
    /// Numbers that are like no other begin with this.
    seed: u128,
}

impl Conversation {
    /// A conversation that begins at a time. `seed` is like that of no other; below its 32 lowest bits, which are 0, are its numbers.
    pub(crate) fn new(known: Option<Arc<Catalog>>, now: i64, seed: u128) -> Conversation {
        Conversation { entries: Vec::new(), closed: Vec::new(), known, now, seed }
    }

    /// Takes the answer to the question that was asked last.
    pub(crate) fn answer(&mut self, question: Question, answer: Answer) {
        let (closed, definitions) = (OnceLock::new(), OnceLock::new());
        self.entries.push(Entry { question, answer, closed, definitions });
    }

    /// Runs it from the beginning as far as it comes.
    ///
    /// # Panics
    /// When a session does not ask again what it has asked before.
    pub(crate) fn run<S: Script + ?Sized>(&mut self, scene: &Scene, script: &S) -> Progress {
        let replay = Arc::new(Replay {
            scene: scene.clone(),
            entries: std::mem::take(&mut self.entries),
            next: AtomicUsize::new(0),
            question: OnceLock::new(),
            known: self.known.clone(),
            loaded: AtomicUsize::new(0),
            now: self.now,
            seed: self.seed,
            numbers: AtomicU64::new(0),
        });
        let told = converse(&replay, script);
        let replay = Arc::into_inner(replay).expect("the session has ended, and its snapshots with it");
        if replay.question.get().is_none() {
            self.known = replay.known().cloned();
        }
        self.entries = replay.entries;
        match replay.question.into_inner() {
            Some(question) => Progress::Asks(question),
            None => Progress::Ended(told),
        }
    }

    /// The definitions that are known now.
    pub(crate) fn known(self) -> Option<Arc<Catalog>> {
        self.known
    }

    /// The snapshots that have become unneeded since this was asked last: all of them if the conversation `is_over`.
    pub(crate) fn closed(&mut self, is_over: bool) -> Vec<Position> {
        let mut closed = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            if (is_over || entry.closed.get().is_some())
                && let Some(at) = entry.opened()
                && !self.closed.contains(&number)
            {
                self.closed.push(number);
                closed.push(at);
            }
        }
        closed
    }
}

impl Entry {
    /// The snapshot that was opened here.
    fn opened(&self) -> Option<Position> {
        match (&self.question, &self.answer) {
            (Question::Ask(Operation::OpenSnapshot), Answer::Outcome(Ok(at))) => {
                postcard::from_bytes(at).ok()
            }
            _ => None,
        }
    }
}

/// Gives a new session the messages of a script until it asks something new, or the script ends.
fn converse<S: Script + ?Sized>(replay: &Arc<Replay>, script: &S) -> Vec<Told> {
    let Replay { scene: Scene { schema, storages, .. }, .. } = &**replay;
    let options = Options { user: "ordain".into(), database: "ordain".into(), parameters: Vec::new() };
    let database = Arc::new(Replayed(Arc::clone(replay)));
    let session = Session::new(database, schema.clone(), storages.clone(), options);
    let mut session = session.expect("no parameters are asked for");
    let mut told = Vec::new();
    while let Some(text) = script.next(&told) {
        let mut out = Vec::new();
        session.handle(Frontend::Query(text), &mut out);
        if replay.question.get().is_some() {
            break;
        }
        told.push(Told::read(&out));
    }
    told
}

/// One run of a conversation.
struct Replay {
    scene: Scene,
    entries: Vec<Entry>,
    /// The number of the next entry.
    next: AtomicUsize,
    /// What was asked that nobody has answered.
    question: OnceLock<Question>,
    /// The definitions that were known before.
    known: Option<Arc<Catalog>>,
    /// The number, from 1, of the entry with the definitions that are known now; 0 for those from before.
    loaded: AtomicUsize,
    now: i64,
    seed: u128,
    /// Numbers that were given out.
    numbers: AtomicU64,
}

impl Replay {
    /// The answer to a question, with the number of its entry.
    fn ask(&self, question: Question) -> Result<(usize, &Answer), Error> {
        let waits = || Error::Unavailable("the answer has not come".to_owned());
        if self.question.get().is_some() {
            return Err(waits());
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match self.entries.get(number) {
            Some(entry) => {
                assert!(
                    entry.question == question,
                    "a session that is run again asks {question:?} instead of {:?}",
                    entry.question
                );
                Ok((number, &entry.answer))
            }
            None => {
                let _first = self.question.set(question);
                Err(waits())
            }
        }
    }

    fn outcome(&self, operation: Operation) -> Result<(usize, Bytes), Error> {
        match self.ask(Question::Ask(operation))? {
            (number, Answer::Outcome(outcome)) => Ok((number, outcome.clone()?)),
            (_, Answer::Pages(_)) => Err(Error::Invalid("pages are no answer to a request".to_owned())),
        }
    }

    /// The definitions that are known now.
    fn known(&self) -> Option<&Arc<Catalog>> {
        match self.loaded.load(Ordering::Relaxed).checked_sub(1) {
            None => self.known.as_ref(),
            Some(entry) => self.entries.get(entry)?.definitions.get().map(|(catalog, _)| catalog),
        }
    }
}

/// The database as a session sees it whose conversation is run again.
struct Replayed(Arc<Replay>);

impl Replayed {
    fn open(&self) -> Result<Snapshot, Error> {
        let (entry, at) = self.0.outcome(Operation::OpenSnapshot)?;
        let at = postcard::from_bytes(&at).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Snapshot { replay: Arc::clone(&self.0), entry, at })
    }

    fn load(&self) -> Result<Arc<Catalog>, Error> {
        let snapshot = self.open()?;
        let slot = self.0.entries.get(snapshot.entry).map(|entry| &entry.definitions);
        let slot = slot.ok_or_else(|| Error::Invalid("the snapshot is not in the transcript".to_owned()))?;
        if let Some((_, after)) = slot.get() {
            self.0.next.store(*after, Ordering::Relaxed);
        } else {
            let catalog = Arc::new(definitions(&snapshot, &self.0.scene.storages)?);
            let _first = slot.set((catalog, self.0.next.load(Ordering::Relaxed)));
        }
        self.0.loaded.store(snapshot.entry + 1, Ordering::Relaxed);
        let known = self.0.known().cloned();
        known.ok_or_else(|| Error::Invalid("definitions were not kept".to_owned()))
    }
}

impl Database for Replayed {
    fn call(&self, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let procedure = self.0.scene.procedure;
        Ok(self.0.outcome(Operation::Call { procedure, arguments: arguments.into() })?.1)
    }

    fn read(&self, arguments: Vec<u8>) -> Result<Bytes, Error> {
        let procedure = self.0.scene.procedure;
        Ok(self.0.outcome(Operation::Read { procedure, arguments: arguments.into() })?.1)
    }

    fn routines(&self) -> Routines {
        Routines::default()
    }

    fn call_routine(&self, procedure: ProcedureId, arguments: Vec<u8>) -> Result<Bytes, Error> {
        Ok(self.0.outcome(Operation::Call { procedure, arguments: arguments.into() })?.1)
    }

    fn snapshot(&self) -> Result<Box<dyn View>, Error> {
        Ok(Box::new(self.open()?))
    }

    fn catalog(&self, outdated: Option<&Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
        match self.0.known() {
            Some(known) if outdated.is_none_or(|outdated| !Arc::ptr_eq(outdated, known)) => {
                Ok(Arc::clone(known))
            }
            _ => self.load(),
        }
    }

    fn partitions(&self) -> u16 {
        self.0.scene.partitions
    }

    fn state(&self, _: StateView) -> Result<Vec<Vec<Datum>>, Error> {
        Err(Error::Invalid("simulated clients do not ask what a process knows of itself".to_owned()))
    }

    fn processes(&self) -> Vec<i32> {
        Vec::new()
    }

    /// There are no [`processes`](Database::processes) to send one to.
    fn signal(&self, _: i32, _: Signal) {}

    fn past(&self, _: i64) -> Result<Past, SqlError> {
        Err(not_kept(None))
    }

    fn now(&self) -> i64 {
        self.0.now
    }

    fn unique(&self) -> u128 {
        self.0.seed | u128::from(self.0.numbers.fetch_add(1, Ordering::Relaxed))
    }

    fn interrupt(&self) -> Arc<Interrupt> {
        Arc::default()
    }

    /// The scripts set no limits, and no time passes while a session runs.
    fn alarm(&self, _: Option<u64>) {}

    fn pause(&self, _: u64) {}

    fn sweep(&self) {}
}

/// A snapshot that a session has opened.
struct Snapshot {
    replay: Arc<Replay>,
    /// Where it was opened.
    entry: usize,
    at: Position,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // A session that is broken off lets everything go, and needs it again.
        if self.replay.question.get().is_none()
            && let Some(entry) = self.replay.entries.get(self.entry)
        {
            let _first = entry.closed.set(());
        }
    }
}

impl Pages for Snapshot {
    fn pages(
        &self,
        ranges: &[(PartitionId, KeyRange)],
        direction: Direction,
        rows: u32,
    ) -> Result<Vec<Page>, Error> {
        let question = Question::Pages { at: self.at, ranges: ranges.to_vec(), direction, rows };
        match self.replay.ask(question)? {
            (_, Answer::Pages(pages)) => pages.clone(),
            (_, Answer::Outcome(_)) => Err(Error::Invalid("an outcome is no answer with pages".to_owned())),
        }
    }
}

impl View for Snapshot {
    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let Scene { schema, partitions, .. } = &self.replay.scene;
        merge::scan(self, schema.holders(range, *partitions)?, (range, direction), limit, visit)
    }
}
