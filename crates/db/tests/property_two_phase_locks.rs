//! The locks of the engine `two-phase` against a model that compares everybody with everybody (DET-29, DET-30): requests come in
//! several rounds, some are upgrades, and transactions give up while they wait.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::collections::BTreeMap;

use ordain_db::engine::two_phase::deadlock::cycle_through;
use ordain_db::engine::two_phase::locks::{Locks, Slot};
use ordain_db::failpoint::NoFailpoints;
use ordain_db::position::PartitionId;
use ordain_db::procedure::Footprint;
use proptest::prelude::*;

use interpreted::Database;
use interpreted::name::Name;

const ME: PartitionId = PartitionId(0);

/// What a transaction locks: a mode, and a key of `account/SITE/NUMBER` or a range of them.
#[derive(Clone, Debug)]
struct Lock {
    exclusive: bool,
    site: u8,
    /// From this number to before that one; a key, and no range, if there is none.
    start: u8,
    end: Option<u8>,
}

impl Lock {
    fn conflicts(&self, other: &Lock) -> bool {
        let end = |lock: &Lock| lock.end.unwrap_or(lock.start + 1);
        (self.exclusive || other.exclusive)
            && self.site == other.site
            && self.start < end(other)
            && other.start < end(self)
    }
}

fn lock(ranges: bool) -> impl Strategy<Value = Lock> {
    let length = if ranges { prop_oneof![4 => Just(0u8), 1 => 1u8..4].boxed() } else { Just(0).boxed() };
    (prop::bool::weighted(0.4), 0u8..2, 0u8..6, length).prop_map(|(exclusive, site, start, length)| Lock {
        exclusive,
        site,
        start,
        end: (length > 0).then_some(start + length),
    })
}

#[derive(Clone, Debug)]
enum Action {
    /// A new transaction.
    Begin(Vec<Lock>),
    /// One of those that have all that they asked for asks for more. The numbers are modulo.
    Grow(usize, Vec<Lock>),
    /// One of those that have all that they asked for ends.
    End(usize),
    /// Anybody gives up.
    GiveUp(usize),
}

fn actions(ranges: bool) -> impl Strategy<Value = Vec<Action>> {
    let locks = |most| prop::collection::vec(lock(ranges), 0..most);
    let action = prop_oneof![
        4 => locks(5).prop_map(Action::Begin),
        3 => (any::<usize>(), locks(3)).prop_map(|(who, locks)| Action::Grow(who, locks)),
        2 => any::<usize>().prop_map(Action::End),
        1 => any::<usize>().prop_map(Action::GiveUp),
    ];
    prop::collection::vec(action, 0..120)
}

fn footprint(database: &Database, locks: &[Lock]) -> Footprint {
    let part = |exclusive: bool, bytes: &[u8]| {
        [&[1 + u8::from(exclusive)], &(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
    };
    let (mut keys, mut ranges) = (Vec::new(), Vec::new());
    for Lock { exclusive, site, start, end } in locks {
        let key = |number: &u8| Name::Account(i32::from(*site), i64::from(*number)).key(&database.tables);
        match end {
            None => keys.push(part(*exclusive, &key(start))),
            Some(end) => ranges.push([part(*exclusive, &key(start)), part(*exclusive, &key(end))].concat()),
        }
    }
    let counts = [(keys.len() as u32).to_le_bytes(), (ranges.len() as u32).to_le_bytes()].concat();
    let mut footprint = Footprint::default();
    footprint
        .decode(&[counts, keys.concat(), ranges.concat()].concat(), &database.catalog.schema, 1)
        .unwrap();
    footprint
}

/// A transaction of the model.
#[derive(Debug)]
struct Live {
    slot: Slot,
    /// What it holds.
    held: Vec<Lock>,
    /// What it has asked for and does not have all of.
    asked: Vec<Lock>,
    waits: bool,
}

/// The locks with what they have said, held against the model.
struct Checked<'a> {
    database: &'a Database,
    locks: Locks,
    /// Live transactions by their age.
    live: BTreeMap<u32, Live>,
    begun: u32,
    free: Vec<Slot>,
}

impl Checked<'_> {
    fn new(database: &Database) -> Checked<'_> {
        Checked { database, locks: Locks::default(), live: BTreeMap::new(), begun: 0, free: Vec::new() }
    }

    fn of(&self, slot: Slot) -> u32 {
        *self.live.iter().find(|(_, live)| live.slot == slot).unwrap().0
    }

    fn request(&mut self, number: u32, locks: &[Lock]) {
        let live = &self.live[&number];
        let all: Vec<Lock> = live.held.iter().chain(locks).cloned().collect();
        let footprint = footprint(self.database, &all);
        let held = self.locks.request::<NoFailpoints>(live.slot, &footprint, ME);
        let live = self.live.get_mut(&number).unwrap();
        (live.asked, live.waits) = (locks.to_vec(), true);
        if held {
            self.grant(number);
        }
        assert_eq!(self.locks.waiting(), self.live.len() - self.running().len());
    }

    fn begin(&mut self, locks: &[Lock]) {
        let slot = self.free.pop().unwrap_or(Slot(self.live.len() as u32));
        let free = self.locks.is_free::<NoFailpoints>(&footprint(self.database, locks), ME);
        let number = self.begun;
        self.begun += 1;
        let earlier: Vec<Lock> =
            self.live.values().flat_map(|live| live.held.iter().chain(&live.asked)).cloned().collect();
        self.live.insert(number, Live { slot, held: Vec::new(), asked: Vec::new(), waits: false });
        self.request(number, locks);
        let waits = self.live[&number].waits;
        assert_eq!(free, !waits, "what is free is granted at once");
        let conflict = locks.iter().any(|lock| earlier.iter().any(|earlier| earlier.conflicts(lock)));
        assert!(waits || !conflict, "{number} has overtaken somebody");
        // A range may wait for more than what conflicts, where no range was locked before.
        assert!(!waits || conflict || locks.iter().any(|lock| lock.end.is_some()), "{number} could go on");
    }

    /// Whoever has all that it asked for conflicts with nobody who holds anything.
    fn grant(&mut self, number: u32) {
        let live = self.live.get_mut(&number).unwrap();
        assert!(live.waits, "{number} is granted twice");
        live.waits = false;
        let asked = std::mem::take(&mut live.asked);
        live.held.extend(asked);
        let own = &self.live[&number].held;
        for (other, live) in self.live.iter().filter(|(other, _)| **other != number) {
            let conflict = own.iter().find(|lock| live.held.iter().any(|held| held.conflicts(lock)));
            assert!(conflict.is_none(), "{number} is granted {conflict:?}, which {other} holds");
        }
    }

    fn release(&mut self, number: u32) {
        let Live { slot, .. } = self.live.remove(&number).unwrap();
        let mut granted = Vec::new();
        self.locks.release(slot, &mut granted);
        self.free.push(slot);
        granted.into_iter().for_each(|slot| self.grant(self.of(slot)));
        assert_eq!(self.locks.live(), self.live.len());
        assert_eq!(self.locks.waiting(), self.live.len() - self.running().len());
    }

    fn running(&self) -> Vec<u32> {
        self.live.iter().filter(|(_, live)| !live.waits).map(|(number, _)| *number).collect()
    }

    /// The graph names somebody for all that wait and nobody for others, and only who conflicts.
    fn check_graph(&self) {
        for (number, live) in &self.live {
            let edges = self.locks.waits_for(live.slot).to_vec();
            assert_eq!(live.waits, !edges.is_empty(), "{number} waits for {edges:?}");
            assert!(!edges.contains(&live.slot), "{number} waits for itself");
            assert!(edges.iter().all(|other| self.live.values().any(|live| live.slot == *other)));
        }
    }

    /// Whether a cycle was found, and its youngest member has given up.
    fn break_cycle(&mut self) -> bool {
        let slots: Vec<Slot> = self.live.values().map(|live| live.slot).collect();
        let cycle =
            slots.iter().find_map(|slot| cycle_through(*slot, |slot| self.locks.waits_for(slot).to_vec()));
        let Some(members) = cycle else { return false };
        let youngest = members.iter().map(|slot| self.of(*slot)).max().unwrap();
        self.release(youngest);
        true
    }

    /// What is held together is held together again after a start, in any order, and no more.
    fn replay(&self) {
        let mut locks = Locks::default();
        locks.begin_replay(self.database.catalog.schema.tables().iter().map(ordain_db::data::Table::id));
        let held: Vec<(Slot, Footprint)> = self
            .live
            .values()
            .map(|live| (live.slot, &live.held))
            .rev()
            .map(|(slot, held)| (slot, footprint(self.database, held)))
            .collect();
        for (slot, footprint) in &held {
            assert!(locks.request::<NoFailpoints>(*slot, footprint, ME), "{slot:?} waits");
        }
        locks.end_replay();
        for live in self.live.values().filter(|live| live.waits) {
            let free = locks.is_free::<NoFailpoints>(&footprint(self.database, &live.asked), ME);
            let others = self.live.values().filter(|other| other.slot != live.slot);
            let conflict = live
                .asked
                .iter()
                .any(|lock| others.clone().any(|other| other.held.iter().any(|held| held.conflicts(lock))));
            assert!(!(free && conflict), "{:?} is free", live.asked);
        }
    }

    /// Everybody ends at last: if nobody can, there is a cycle.
    fn drain(&mut self) {
        while !self.live.is_empty() {
            match self.running().last() {
                Some(number) => self.release(*number),
                None => assert!(self.break_cycle(), "nobody goes on, and there is no cycle"),
            }
            self.check_graph();
        }
    }
}

fn is_safe_and_live(database: &Database, actions: &[Action]) {
    let mut checked = Checked::new(database);
    for action in actions {
        let running = checked.running();
        match action {
            Action::Begin(locks) => checked.begin(locks),
            Action::Grow(..) | Action::End(_) if running.is_empty() => {}
            Action::Grow(who, locks) => checked.request(running[who % running.len()], locks),
            Action::End(who) => checked.release(running[who % running.len()]),
            Action::GiveUp(_) if checked.live.is_empty() => {}
            Action::GiveUp(who) => {
                let number = *checked.live.keys().nth(who % checked.live.len()).unwrap();
                checked.release(number);
            }
        }
        checked.check_graph();
    }
    checked.replay();
    checked.drain();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20000))]

    #[test]
    fn keys_are_safe_and_live(actions in actions(false)) {
        is_safe_and_live(&Database::new(), &actions);
    }

    #[test]
    fn ranges_are_safe_and_live(actions in actions(true)) {
        is_safe_and_live(&Database::new(), &actions);
    }
}
