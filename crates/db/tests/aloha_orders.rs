//! The transactions of golden test G-1 (after Fan and Golab, Figure 5) in every order in which two partitions can enter them, compute
//! them and hear from each other (with a reader after each, in a thousand of them): always the same rows, statuses and results.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use ordain_db::data::Key;
use ordain_db::engine::Engine;
use ordain_db::engine::aloha::Aloha;
use ordain_db::error::Outcome;
use ordain_db::hash::key_hash;
use ordain_db::message::Verdict;
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::storage::Storage;

use interpreted::model::Model;
use interpreted::name::Name;
use interpreted::operation::{Declares, Program};
use interpreted::part::Part;
use interpreted::{Database, arguments};

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// A partition enters the next transaction.
    Enter(usize),
    /// A partition gets the next message of the other one.
    Receive(usize),
}

/// Where A is, and how the transactions are declared.
#[derive(Clone, Debug)]
struct Form {
    site_of_a: i32,
    declares: Declares,
}

/// Versions 10, 20 and 30, and readers of both keys at 15, 25 and 35.
fn transactions(form: &Form) -> Vec<Bytes> {
    let (a, b) = (format!("account/{}/0", form.site_of_a), format!("account/{}/0", 1 - form.site_of_a));
    let program = |declares: &Declares, texts: &[String]| {
        let operations = texts.iter().map(|text| text.parse().unwrap()).collect();
        Bytes::from(arguments(&Program { declares: declares.clone(), operations }))
    };
    let load = program(&Declares::Exactly, &[format!("put {a} 150"), format!("put {b} 100")]);
    let moves = [format!("abort-if-below {a} 100"), format!("add {a} -100"), format!("add {b} 100")];
    let moves = program(&form.declares, &moves);
    let read = program(&Declares::Exactly, &[format!("get {a}"), format!("get {b}")]);
    vec![load, read.clone(), moves.clone(), read.clone(), moves, read]
}

fn rows(database: &Database) -> Vec<(Key, Vec<u8>)> {
    [0, 1].map(|site| (Name::Account(site, 0).key(&database.tables), database.row(1))).to_vec()
}

/// Two partitions and what is under way between them.
struct Run<'a> {
    parts: [Part<'a, Aloha>; 2],
    entered: [usize; 2],
    /// By receiver.
    messages: [VecDeque<Bytes>; 2],
    outcomes: BTreeMap<u32, Outcome>,
}

impl<'a> Run<'a> {
    fn new(database: &'a Database, rows: &[(Key, Vec<u8>)]) -> Run<'a> {
        let parts = [0, 1].map(|me| Part::new(me, database, rows, Aloha::new()));
        Run { parts, entered: [0; 2], messages: Default::default(), outcomes: BTreeMap::new() }
    }

    fn possible(&self, transactions: &[Bytes]) -> Vec<Step> {
        let enter = (0..2).filter(|me| self.entered[*me] < transactions.len()).map(Step::Enter);
        enter.chain((0..2).filter(|me| !self.messages[*me].is_empty()).map(Step::Receive)).collect()
    }

    fn make(&mut self, step: Step, transactions: &[Bytes]) {
        let me = match step {
            Step::Enter(me) => {
                let index = self.entered[me];
                let position = Position { epoch: Epoch(1), origin: PartitionId(0), index: index as u32 };
                self.parts[me].deliver(position, &transactions[index]);
                self.entered[me] += 1;
                me
            }
            Step::Receive(me) => {
                let reads = self.messages[me].pop_front().unwrap();
                self.parts[me].receive(reads);
                me
            }
        };
        for report in std::mem::take(&mut self.parts[me].effects.reports) {
            let outcome = match report.verdict {
                Verdict::Committed(result) => Ok(result),
                Verdict::Failed(error) => Err(error),
                Verdict::FootprintMissed => panic!("footprints are declared"),
            };
            let again = self.outcomes.insert(report.position.index, outcome);
            assert_eq!(again, None, "one of the two reports");
        }
        let reads = self.parts[me].reads();
        if !reads.is_empty() {
            self.messages[1 - me].push_back(reads);
        }
    }

    fn value(&self, site: i32) -> Vec<u8> {
        let part = &self.parts[site as usize];
        let key = Name::Account(site, 0).key(&part.database.tables);
        part.storage.row(part.storage.locate(&key, key_hash(&key)).unwrap()).to_vec()
    }
}

/// How often there was a message for somebody who had yet to enter what it is for, and how many orders there were.
#[derive(Default, Debug)]
struct Tried {
    orders: usize,
    pushed_before: usize,
}

/// What a form must come to, whatever the order.
struct Check<'a> {
    form: &'a Form,
    database: &'a Database,
    rows: Vec<(Key, Vec<u8>)>,
    transactions: Vec<Bytes>,
    expected: BTreeMap<u32, Outcome>,
    tried: Tried,
}

impl<'a> Check<'a> {
    fn new(form: &'a Form, database: &'a Database, transactions: Vec<Bytes>) -> Check<'a> {
        let rows = rows(database);
        let mut model = Model { rows: rows.iter().cloned().collect() };
        let outcomes = transactions.iter().map(|call| model.call(&database.catalog, call));
        let expected = (0..).zip(outcomes).collect();
        Check { form, database, rows, transactions, expected, tried: Tried::default() }
    }

    /// Makes all steps, each as it is chosen among so many, and looks what is left.
    fn order(&mut self, choose: &mut dyn FnMut(usize) -> usize) {
        let Check { form, database, rows, transactions, expected, tried } = self;
        let mut run = Run::new(database, rows);
        let mut made = Vec::new();
        let mut pushed_before = false;
        loop {
            let possible = run.possible(transactions);
            if possible.is_empty() {
                break;
            }
            let step = possible[choose(possible.len())];
            pushed_before |= matches!(step, Step::Receive(me) if run.entered[me] < transactions.len());
            run.make(step, transactions);
            made.push(step);
        }
        tried.orders += 1;
        tried.pushed_before += usize::from(pushed_before);
        assert_eq!(&run.outcomes, expected, "{form:?}: {made:?}");
        let balances = [form.site_of_a, 1 - form.site_of_a].map(|site| run.value(site));
        assert_eq!(balances, [50, 200].map(|value| database.row(value)), "{form:?}: {made:?}");
        for part in &run.parts {
            let mut left = String::new();
            part.engine.describe(&mut left);
            assert_eq!((part.engine.live(), left.as_str()), (0, ""), "{form:?}: {made:?}");
        }
    }

    /// Makes all orders that there are, depth first: each from the start.
    fn all(&mut self) {
        // The choices of the order that is made next, each with how many there were: beyond them the first is chosen.
        let mut choices: Vec<(usize, usize)> = Vec::new();
        loop {
            let mut place = 0;
            self.order(&mut |count| {
                if place == choices.len() {
                    choices.push((0, count));
                }
                place += 1;
                choices[place - 1].0
            });
            // The next one differs in the last choice that has another way left.
            while choices.pop_if(|(chosen, count)| *chosen + 1 == *count).is_some() {}
            match choices.last_mut() {
                Some((chosen, _)) => *chosen += 1,
                None => return,
            }
        }
    }

    /// Makes orders at random.
    fn some(&mut self, count: u64) {
        for seed in 0..count {
            let mut place = 0_u64;
            self.order(&mut |count| {
                place += 1;
                let drawn = key_hash(&[seed.to_le_bytes(), place.to_le_bytes()].concat());
                (drawn % count as u64) as usize
            });
        }
    }
}

/// Orders of the transactions with their readers that are made at random; without readers, all are.
const ORDERS: u64 = 1_000;

fn check(declares: Declares) {
    for site_of_a in [0, 1] {
        let form = Form { site_of_a, declares: declares.clone() };
        let database = Database::new();
        let [load, _, first, _, second, _] = &transactions(&form)[..] else { panic!("they are six") };
        let without_readers = [load, first, second].map(Bytes::clone).to_vec();
        let mut few = Check::new(&form, &database, without_readers);
        few.all();
        let mut with_readers = Check::new(&form, &database, transactions(&form));
        with_readers.some(ORDERS);
        for tried in [few.tried, with_readers.tried] {
            assert!(tried.orders >= 100 && tried.pushed_before > 20, "{form:?}: {tried:?}");
        }
    }
}

#[test]
fn transfers_with_functors_end_alike_in_every_order() {
    check(Declares::Functors);
}

#[test]
fn transfers_as_a_whole_end_alike_in_every_order() {
    check(Declares::Exactly);
}
