//! Checkers: what must hold of every run, one file per property.
//!
//! | property | holds when |
//! |---|---|
//! | [`serializability`] | the direct serialization graph of the committed transactions has no cycle |
//! | [`strict_serializability`] | the order agrees with real time |
//! | [`replicas_agree`] | the participants of a transaction, and nobody else, did the same |
//! | [`equals_oracle`] | verdicts, reads, writes, snapshots and the last state are those of the log run serially |
//! | [`durability`] | what a client was told of is in the log |
//! | [`exactly_once`] | a request has one effect and one answer |
//! | [`early_answers`] | a call that was acknowledged before it was computed stands where its client was told, and ends as it was told later |
//! | [`nothing_invented`] | every row that was seen was loaded or committed, and every transaction was asked for |
//! | [`reads`] | a read without a place in the order saw a state of the order, between what was answered before it and what was asked after it |
//! | [`sessions`] | what clients learnt by SQL fits one order of their transactions that respects real time |
//! | [`conditions`] | the workload's conditions hold |
//! | [`bounded`] | no queue was longer than its limit |
//! | [`liveness`] | the run came to an end |
//!
//! A checker is fed by a [`History`], which broken code may have made: it takes nothing for granted and never panics. Each
//! tells the first violation that it finds, and how many more there are.

pub mod bounded;
pub mod conditions;
pub mod durability;
pub mod early_answers;
pub mod equals_oracle;
pub mod evidence;
pub mod exactly_once;
pub mod graph;
pub mod liveness;
pub mod nothing_invented;
pub mod reads;
pub mod replicas_agree;
pub mod serializability;
pub mod sessions;
pub mod strict_serializability;
pub mod wording;

#[cfg(test)]
pub(crate) mod example;

use std::fmt;

use ordain_workload::Workload;

use crate::history::History;
use evidence::Evidence;

/// A property that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The property: the name of its checker, with spaces.
    pub property: &'static str,
    /// What was found.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.detail)
    }
}

/// A property that is checked over the whole evidence.
type Checker = fn(&Evidence<'_>) -> Result<(), String>;

/// The properties that are about transactions, in the order in which they are checked.
const OF_TRANSACTIONS: [(&str, Checker); 10] = [
    ("serializability", serializability::check),
    ("strict serializability", strict_serializability::check),
    ("replicas agree", replicas_agree::check),
    ("equals oracle", equals_oracle::check),
    ("durability", durability::check),
    ("exactly once", exactly_once::check),
    ("early answers", early_answers::check),
    ("nothing invented", nothing_invented::check),
    ("reads", reads::check),
    ("sessions", sessions::check),
];

/// The properties that do not hold where what was answered may be lost (see [`History::may_lose`]).
const OF_WHAT_LASTS: [&str; 5] =
    ["strict serializability", "durability", "early answers", "reads", "sessions"];

/// Checks all properties and returns those that do not hold, [`liveness`] last.
pub fn check(history: &History, workload: &dyn Workload) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut note = |property: &'static str, result: Result<(), String>| {
        violations.extend(result.err().map(|detail| Violation { property, detail }));
    };
    if history.may_lose && history.unfinished.is_some() {
        // Nobody knows which of the histories that nodes tell is to last.
        note("bounded", bounded::check(history));
        note("liveness", liveness::check(history));
        return violations;
    }
    match Evidence::new(history, workload) {
        Ok(evidence) => {
            let lasting = |(property, _): &(&str, Checker)| !OF_WHAT_LASTS.contains(property);
            for (property, checker) in
                OF_TRANSACTIONS.into_iter().filter(|of| !history.may_lose || lasting(of))
            {
                note(property, checker(&evidence));
            }
        }
        Err(problem) => note("evidence", Err(problem)),
    }
    note("conditions", conditions::check(history));
    note("bounded", bounded::check(history));
    note("liveness", liveness::check(history));
    violations
}

/// Collects what a checker finds: keeps the first and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    first: Option<String>,
    more: u64,
}

impl Findings {
    /// Notes a violation; `detail` is called for the first one only.
    pub(crate) fn note(&mut self, detail: impl FnOnce() -> String) {
        match self.first {
            None => self.first = Some(detail()),
            Some(_) => self.more += 1,
        }
    }

    /// Notes a violation unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.note(detail);
        }
    }

    /// What was found, if anything.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.first {
            None => Ok(()),
            Some(first) if self.more == 0 => Err(first),
            Some(first) => Err(format!("{first} (and {} more)", self.more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::engine::EngineKind;
    use ordain_db::failpoint::{Failpoint, Failpoints, NoFailpoints};

    use super::*;
    use crate::checkers::example::{self, Example};

    fn properties(history: &History) -> Vec<&'static str> {
        check(history, &example::bank()).iter().map(|violation| violation.property).collect()
    }

    #[test]
    fn clusters_without_mistakes_hold_all_properties() {
        for engine in EngineKind::ORDERED {
            for partitions in [1, 2, 3] {
                let history = example::run::<NoFailpoints>(engine, partitions, 120);
                assert_eq!(check(&history, &example::bank()), [], "{engine:?} on {partitions}");
                assert!(history.executed.len() >= 120 && history.snapshots.len() == 4);
            }
        }
    }

    #[test]
    fn clusters_without_an_order_in_advance_hold_all_properties() {
        for engine in [EngineKind::TwoPhase, EngineKind::TwoPhaseWithoutCommitProtocol] {
            for partitions in [1, 2, 3] {
                let history = example::run::<NoFailpoints>(engine, partitions, 120);
                assert_eq!(check(&history, &example::bank()), [], "{engine:?} on {partitions}");
                assert!(history.executed.len() >= 120 && history.snapshots.len() == 4);
            }
        }
    }

    #[test]
    fn one_broken_property_does_not_hide_others() {
        let mut history = example::run::<NoFailpoints>(EngineKind::Calvin, 2, 40);
        history.unfinished = Some("p1 is stuck".to_owned());
        history.gauges[0].highest = 99;
        history.conditions[1].holds = false;
        history.log.pop_first();
        let found = properties(&history);
        for expected in ["replicas agree", "durability", "conditions", "bounded"] {
            assert!(found.contains(&expected), "{found:?}");
        }
        assert_eq!(found.last(), Some(&"liveness"));
    }

    #[test]
    fn no_history_makes_the_checkers_panic() {
        let mut example = Example::new();
        example.history.partitions = 0;
        assert_eq!(properties(&example.history), ["evidence"]);
        example.history.partitions = u16::MAX;
        assert_eq!(properties(&example.history), ["evidence"]);
        // Names of partitions that cannot be, keys and rows that are none.
        let mut history = example::run::<NoFailpoints>(EngineKind::Serial, 2, 20);
        for (_, executed) in history.executed.values_mut().flatten() {
            executed.reads.push((bytes::Bytes::from_static(b"?"), None));
            executed.writes.push((bytes::Bytes::new(), Some(bytes::Bytes::from_static(b"?"))));
        }
        let strange = example::position(9, u16::MAX, u32::MAX);
        if let Some((_, mut ordered)) = history.log.pop_first() {
            ordered.request = example::request(u64::MAX, u64::MAX);
            history.log.insert(strange, ordered);
        }
        if let Some((_, mut executed)) = history.executed.pop_first() {
            executed[0].0.0 = u16::MAX;
            history.executed.insert(strange, executed);
        }
        history.rows.pop();
        history.statuses.clear();
        assert!(properties(&history).contains(&"replicas agree"));
    }

    struct Mistake<const NUMBER: usize>;

    impl<const NUMBER: usize> Failpoints for Mistake<NUMBER> {
        fn on(point: Failpoint) -> bool {
            Failpoint::ALL[NUMBER] == point
        }
    }

    /// Mistakes that show in any run; those that need a rare interleaving are left to the simulator.
    #[test]
    fn mistakes_of_the_database_are_found() {
        const NON_LOCAL: usize = Failpoint::ApplyNonLocalWrite as usize;
        const DUPLICATES: usize = Failpoint::LoseDuplicateCheck as usize;
        const DROPPED_ROW: usize = Failpoint::DropRemoteRow as usize;
        let run = |history: History| properties(&history);
        let found = run(example::run::<Mistake<NON_LOCAL>>(EngineKind::Calvin, 2, 60));
        assert!(found.contains(&"replicas agree") && found.contains(&"equals oracle"), "{found:?}");
        let found = run(example::run::<Mistake<DUPLICATES>>(EngineKind::Calvin, 2, 60));
        assert!(found.contains(&"exactly once"), "{found:?}");
        let found = run(example::run::<Mistake<DROPPED_ROW>>(EngineKind::Serial, 2, 60));
        assert!(found.contains(&"equals oracle"), "{found:?}");
    }
}
