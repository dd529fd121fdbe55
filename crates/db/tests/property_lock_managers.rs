//! The lock managers against a model that compares everybody with everybody, and against each other (DET-05: the same
//! order under either).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::collections::BTreeMap;

use ordain_db::engine::calvin::lock_manager::hash::HashLockManager;
use ordain_db::engine::calvin::lock_manager::vll::{LOOKS_PER_RELEASE_MAX, VllLockManager};
use ordain_db::engine::calvin::lock_manager::{LockManager, Slot};
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
    (prop::bool::weighted(0.4), 0u8..2, 0u8..8, length).prop_map(|(exclusive, site, start, length)| Lock {
        exclusive,
        site,
        start,
        end: (length > 0).then_some(start + length),
    })
}

#[derive(Clone, Debug)]
enum Action {
    Request(Vec<Lock>),
    /// One of those that hold their locks finishes: the one with this number, modulo.
    Release(usize),
    Analyse,
}

fn actions(ranges: bool) -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        4 => prop::collection::vec(lock(ranges), 0..5).prop_map(Action::Request),
        3 => any::<usize>().prop_map(Action::Release),
        1 => Just(Action::Analyse),
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

/// A lock manager with what it has said, held against the model at every grant.
struct Checked<L> {
    locks: L,
    /// Live transactions in the order of their requests: slot, locks, footprint, whether granted.
    live: BTreeMap<u32, (Slot, Vec<Lock>, Footprint, bool)>,
    requested: u32,
    free: Vec<Slot>,
}

impl<L: LockManager> Checked<L> {
    fn new() -> Checked<L> {
        Checked { locks: L::default(), live: BTreeMap::new(), requested: 0, free: Vec::new() }
    }

    /// Whoever is granted conflicts with nobody before it: conflicting transactions run in the order of their requests, and
    /// no two of them at a time (CAL-43, CAL-44).
    fn grant(&mut self, slot: Slot) {
        let number = *self.live.iter().find(|(_, (other, ..))| *other == slot).unwrap().0;
        let before: Vec<&Lock> = self.live.range(..number).flat_map(|(_, (_, locks, ..))| locks).collect();
        let (_, locks, _, granted) = &self.live[&number];
        assert!(!granted, "{number} is granted twice");
        for lock in locks {
            let conflict = before.iter().find(|before| before.conflicts(lock));
            assert!(conflict.is_none(), "{number} is granted {lock:?} while {conflict:?} is before it");
        }
        self.live.get_mut(&number).unwrap().3 = true;
    }

    fn request(&mut self, database: &Database, locks: &[Lock]) {
        let slot = self.free.pop().unwrap_or(Slot(self.live.len() as u32));
        let footprint = footprint(database, locks);
        let free = self.locks.is_free::<NoFailpoints>(&footprint, ME);
        let granted = self.locks.request::<NoFailpoints>(slot, &footprint, ME);
        assert_eq!(free, granted, "what is free is granted at once");
        self.live.insert(self.requested, (slot, locks.to_vec(), footprint, false));
        self.requested += 1;
        if granted {
            self.grant(slot);
        }
    }

    fn granted(&self) -> Vec<u32> {
        self.live.iter().filter(|(_, (.., granted))| *granted).map(|(number, _)| *number).collect()
    }

    /// Finishes one of those that are granted.
    fn release(&mut self, choice: usize) {
        let granted = self.granted();
        if granted.is_empty() {
            assert!(self.live.is_empty(), "nobody is granted, and nobody ever will be");
            return;
        }
        self.finish(granted[choice % granted.len()]);
    }

    fn finish(&mut self, number: u32) {
        let (slot, _, footprint, _) = self.live.remove(&number).unwrap();
        let mut granted = Vec::new();
        self.locks.release::<NoFailpoints>(slot, &footprint, ME, &mut granted);
        self.free.push(slot);
        granted.into_iter().for_each(|slot| self.grant(slot));
        assert_eq!(self.locks.live(), self.live.len());
    }

    /// Those that are found hold their locks on; every other one finishes at once if `finishes`. Who that was, in order.
    fn analyse(&mut self, finishes: bool) -> Vec<u32> {
        let (mut found, mut finished) = (0, Vec::new());
        while let Some(slot) = self.locks.analyse::<NoFailpoints>() {
            self.grant(slot);
            found += 1;
            if finishes && found % 2 == 0 {
                let number =
                    self.live.iter().find(|(_, (other, ..))| *other == slot).map(|(number, _)| *number);
                self.finish(number.unwrap());
                finished.push(number.unwrap());
            }
        }
        finished
    }

    /// Whoever is not granted after an analysis conflicts with somebody before it (keys only: a range may wait for more).
    fn nobody_is_missed(&self) {
        let mut before: Vec<&Lock> = Vec::new();
        for (number, (_, locks, _, granted)) in &self.live {
            let waits = locks.iter().any(|lock| before.iter().any(|before| before.conflicts(lock)));
            assert!(*granted || waits, "{number} could go on");
            before.extend(locks);
        }
    }

    /// Everybody is granted at last, whoever of those that are finishes next.
    fn drain(&mut self) {
        for choice in 0.. {
            if self.live.is_empty() {
                return;
            }
            self.release(choice * 7);
        }
    }
}

/// Any lock manager, analysed now and then or never.
fn is_safe_and_live<L: LockManager>(database: &Database, actions: &[Action], analyses: bool) {
    let mut checked = Checked::<L>::new();
    for action in actions {
        match action {
            Action::Request(locks) => checked.request(database, locks),
            Action::Release(choice) => checked.release(*choice),
            Action::Analyse if analyses => drop(checked.analyse(true)),
            Action::Analyse => {}
        }
    }
    checked.drain();
    assert_eq!(checked.locks.live(), 0);
}

/// With an analysis after each release, counters tell as much as queues: the same transactions hold their locks at any time.
fn are_equal(database: &Database, actions: &[Action]) {
    let (mut hash, mut vll) = (Checked::<HashLockManager>::new(), Checked::<VllLockManager>::new());
    for action in actions {
        match action {
            Action::Request(locks) => {
                hash.request(database, locks);
                vll.request(database, locks);
            }
            Action::Release(choice) => {
                hash.release(*choice);
                vll.release(*choice);
                vll.analyse(false);
            }
            Action::Analyse => {
                hash.release(0);
                vll.release(0);
                vll.analyse(true).into_iter().for_each(|number| hash.finish(number));
            }
        }
        if vll.locks.remembered() > LOOKS_PER_RELEASE_MAX {
            return;
        }
        assert_eq!(hash.granted(), vll.granted());
    }
}

/// What an analysis finds may finish at once, and then it finds those that waited for that, too.
fn nobody_is_missed(database: &Database, actions: &[Action]) {
    let mut vll = Checked::<VllLockManager>::new();
    for action in actions {
        match action {
            Action::Request(locks) => vll.request(database, locks),
            Action::Release(choice) => vll.release(*choice),
            Action::Analyse => {
                vll.analyse(true);
                if vll.locks.remembered() <= LOOKS_PER_RELEASE_MAX {
                    vll.nobody_is_missed();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn analyses_miss_nobody(actions in actions(false)) {
        nobody_is_missed(&Database::new(), &actions);
    }

    #[test]
    fn keys_are_safe_and_live(actions in actions(false)) {
        let database = Database::new();
        is_safe_and_live::<HashLockManager>(&database, &actions, false);
        is_safe_and_live::<VllLockManager>(&database, &actions, false);
        is_safe_and_live::<VllLockManager>(&database, &actions, true);
    }

    #[test]
    fn ranges_are_safe_and_live(actions in actions(true)) {
        let database = Database::new();
        is_safe_and_live::<HashLockManager>(&database, &actions, false);
        is_safe_and_live::<VllLockManager>(&database, &actions, false);
        is_safe_and_live::<VllLockManager>(&database, &actions, true);
    }

    #[test]
    fn both_grant_the_same(actions in prop_oneof![actions(false), actions(true)]) {
        are_equal(&Database::new(), &actions);
    }
}

/// Keys of `account/0/NUMBER`, all exclusive.
fn writes(numbers: &[u8]) -> Vec<Lock> {
    numbers.iter().map(|start| Lock { exclusive: true, site: 0, start: *start, end: None }).collect()
}

#[test]
fn releases_pay_for_what_an_analysis_looks_at() {
    let (database, mut vll) = (Database::new(), Checked::<VllLockManager>::new());
    // The fourth waits for the second. Whoever is first of all does not finish.
    [0, 1, 2, 1].iter().for_each(|number| vll.request(&database, &writes(&[*number])));
    (0..LOOKS_PER_RELEASE_MAX).for_each(|_| vll.request(&database, &writes(&[2])));
    vll.finish(1);
    vll.analyse(false);
    assert!(!vll.live[&3].3, "one release does not pay for so many looks");
    vll.finish(2);
    vll.analyse(false);
    assert!(vll.live[&3].3, "two do");
    vll.drain();
}

#[test]
fn who_is_not_blocked_any_more_is_forgotten() {
    let (database, mut vll) = (Database::new(), Checked::<VllLockManager>::new());
    (0..10).for_each(|_| vll.request(&database, &writes(&[1])));
    for _ in 0..1_000 {
        // The second of them was blocked, and its slot is given to another one that is.
        (0..2).for_each(|_| vll.release(0));
        (0..2).for_each(|_| vll.request(&database, &writes(&[1])));
        vll.analyse(false);
        assert!(vll.locks.remembered() <= 10);
    }
    vll.drain();
}

#[test]
fn who_was_blocked_for_many_keys_is_forgotten_too() {
    let (database, mut vll) = (Database::new(), Checked::<VllLockManager>::new());
    // More than a release pays for.
    let of_site = |site| (0..255).map(move |start| Lock { exclusive: true, site, start, end: None });
    let many: Vec<Lock> = (0..3).flat_map(of_site).collect();
    assert!(many.len() > LOOKS_PER_RELEASE_MAX);
    (0..2).for_each(|_| vll.request(&database, &many));
    for _ in 0..100 {
        vll.release(0);
        vll.request(&database, &many);
        vll.analyse(false);
        assert!(vll.locks.remembered() <= 4 * many.len());
    }
    vll.drain();
}
