//! A simulated client with a session: the state machine around its conversations.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ordain_db::data::{Direction, KeyRange};
use ordain_db::error::{Error, Outcome};
use ordain_db::message::{Operation, Page};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure;
use ordain_sql::catalog::Catalog;

use super::Options;
use super::job::{Job, contradictions};
use super::jobs::Jobs;
use super::transcript::{Answer, Conversation, Progress, Question, Scene};
use crate::history::{Observed, PageRead};
use crate::time::{MICROSECOND, Nanoseconds};

/// Numbers of questions for pages are apart from those of ordered requests, which the client's session at its home counts.
pub(crate) const FIRST_SCAN: u64 = 1 << 40;

/// Most rows of a page: few, so that reading takes a while.
const PAGE_ROWS: u32 = 50;

/// How often a page is asked for that is refused, until the snapshot counts as lost.
const REFUSALS_MAX: u32 = 4;

/// How many conversations a client has until it forgets what it knows of the definitions, as a process does after a second.
const DEFINITIONS_KEPT: u64 = 8;

/// A question for a page that waits for its answer.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// The place of its page in the answer.
    place: usize,
    pub(crate) at: Position,
    pub(crate) partition: PartitionId,
    pub(crate) range: KeyRange,
    pub(crate) direction: Direction,
    pub(crate) rows: u32,
    /// How often it was asked.
    pub(crate) attempts: u16,
    refusals: u32,
}

/// What a client is to do now.
pub(crate) enum Next {
    /// Ask the database under its next number.
    Ask(Operation),
    /// Ask for the pages with these numbers.
    Scan(Vec<u64>),
    /// Nothing: the job is over, and this came of it.
    Rest(Box<Observed>),
}

/// What is under way.
struct Underway {
    job: Job,
    began: Nanoseconds,
    conversation: Conversation,
    /// What was asked last.
    question: Option<Question>,
    /// Pages that have come, by their places.
    pages: BTreeMap<usize, Page>,
}

/// See the [module](self).
pub(crate) struct SqlClient {
    scene: Scene,
    client: u64,
    jobs: Jobs,
    begun: u64,
    known: Option<Arc<Catalog>>,
    underway: Option<Underway>,
    scans: BTreeMap<u64, Scan>,
    next_scan: u64,
}

impl SqlClient {
    /// A client of a cluster with these tables and so many partitions.
    pub(crate) fn new(
        options: &Options,
        catalog: &procedure::Catalog,
        partitions: u16,
        seed: u64,
        client: u64,
    ) -> Result<SqlClient, Error> {
        Ok(SqlClient {
            scene: Scene::of(catalog, partitions)?,
            client,
            jobs: Jobs::new(options, seed, client),
            begun: 0,
            known: None,
            underway: None,
            scans: BTreeMap::new(),
            next_scan: FIRST_SCAN,
        })
    }

    /// Whether nothing is under way.
    pub(crate) fn is_resting(&self) -> bool {
        self.underway.is_none()
    }

    /// Begins with the next job.
    pub(crate) fn begin(&mut self, now: Nanoseconds) {
        self.begun += 1;
        if self.begun.is_multiple_of(DEFINITIONS_KEPT) {
            self.known = None;
        }
        let seed = u128::from(self.client + 1) << 96 | u128::from(self.begun) << 32;
        let microseconds = i64::try_from(now / MICROSECOND).unwrap_or(i64::MAX);
        self.underway = Some(Underway {
            job: self.jobs.next(),
            began: now,
            conversation: Conversation::new(self.known.take(), microseconds, seed),
            question: None,
            pages: BTreeMap::new(),
        });
    }

    /// Goes on with what is under way as far as it comes; with the snapshots that are not needed any more.
    pub(crate) fn go_on(&mut self, now: Nanoseconds) -> Option<(Next, Vec<Position>)> {
        let mut underway = self.underway.take()?;
        let progress = underway.conversation.run(&self.scene, &underway.job);
        let is_over = matches!(progress, Progress::Ended(_));
        let closed = underway.conversation.closed(is_over);
        let next = match progress {
            Progress::Asks(question) => {
                let next = self.ask(&question);
                underway.question = Some(question);
                self.underway = Some(underway);
                next
            }
            Progress::Ended(told) => {
                let Underway { job, began, conversation, .. } = underway;
                self.known = conversation.known();
                let (conclusion, facts) = job.learnt(&told);
                let contradictions = contradictions(&told).into_iter().collect();
                let client = self.client;
                let told = format!("{told:?}");
                Next::Rest(Box::new(Observed {
                    client,
                    began,
                    ended: now,
                    conclusion,
                    facts,
                    contradictions,
                    told,
                }))
            }
        };
        Some((next, closed))
    }

    fn ask(&mut self, question: &Question) -> Next {
        match question {
            Question::Ask(operation) => Next::Ask(operation.clone()),
            Question::Pages { at, ranges, direction, rows } => {
                let mut numbers = Vec::new();
                for (place, (partition, range)) in ranges.iter().enumerate() {
                    let (at, direction, rows) = (*at, *direction, (*rows).min(PAGE_ROWS));
                    let (partition, range) = (*partition, range.clone());
                    let scan =
                        Scan { place, at, partition, range, direction, rows, attempts: 0, refusals: 0 };
                    self.scans.insert(self.next_scan, scan);
                    numbers.push(self.next_scan);
                    self.next_scan += 1;
                }
                Next::Scan(numbers)
            }
        }
    }

    /// The question for a page with a number, if it waits for its answer.
    pub(crate) fn scan(&self, number: u64) -> Option<&Scan> {
        self.scans.get(&number)
    }

    /// Notes that it was asked.
    pub(crate) fn asked(&mut self, number: u64) {
        if let Some(scan) = self.scans.get_mut(&number) {
            scan.attempts = scan.attempts.wrapping_add(1);
        }
    }

    /// Takes the answer to what was asked under a number.
    pub(crate) fn answer(&mut self, outcome: Outcome) {
        self.answer_with(Answer::Outcome(outcome));
    }

    fn answer_with(&mut self, answer: Answer) {
        if let Some(underway) = &mut self.underway
            && let Some(question) = underway.question.take()
        {
            underway.conversation.answer(question, answer);
        }
    }

    /// Takes a page, or that it was refused; whether there is something to go on with, and what was read. `may_be_elsewhere`: whether
    /// another node may have the snapshot, or this one a little later.
    pub(crate) fn page(
        &mut self,
        number: u64,
        outcome: &Outcome,
        may_be_elsewhere: bool,
    ) -> (bool, Option<PageRead>) {
        let Some(scan) = self.scans.get_mut(&number) else { return (false, None) };
        let page = match outcome.as_ref().map(|page: &Bytes| postcard::from_bytes::<Page>(page)) {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return self.refused(Error::Invalid(error.to_string())),
            Err(error) => {
                scan.refusals += 1;
                if may_be_elsewhere && scan.refusals < REFUSALS_MAX {
                    return (false, None);
                }
                return self.refused(error.clone());
            }
        };
        let Some(Scan { place, at, partition, range, direction, rows, .. }) = self.scans.remove(&number)
        else {
            return (false, None);
        };
        let Some(underway) = &mut self.underway else { return (false, None) };
        underway.pages.insert(place, page.clone());
        let is_complete = self.scans.is_empty();
        if is_complete {
            let pages = std::mem::take(&mut underway.pages).into_values().collect();
            self.answer_with(Answer::Pages(Ok(pages)));
        }
        (is_complete, Some(PageRead { at, partition, range, direction, rows, page }))
    }

    fn refused(&mut self, error: Error) -> (bool, Option<PageRead>) {
        self.scans.clear();
        if let Some(underway) = &mut self.underway {
            underway.pages.clear();
        }
        self.answer_with(Answer::Pages(Err(error)));
        (true, None)
    }
}
