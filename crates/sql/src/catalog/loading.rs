//! Rows that a transaction block loads in transactions of their own, before it ends.

use serde::{Deserialize, Serialize};

use super::{Catalog, Definition, garbage_name, version};
use crate::plan::{Action, DefinitionChange, Plan, Reliance};

/// For how long rows stand after the block that loads them has said so: a day, in microseconds.
const LEASE: i64 = 24 * 3600 * 1_000_000;

/// The rows of one transaction block in storages of which only it knows, and for how long they stand: a lease.
///
/// Its definition is there before the first row, each transaction that loads some relies on it, and so does the block's end, which removes
/// it. Whoever finds that its time is over has the rows deleted: the process of the block has ended, or its client has done nothing
/// for so long. That removes the definition too, so that either the block ends well or its rows are deleted, and never both.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loading {
    /// The storages, and whether every partition has their rows. There is always one; the first is in the definition's name.
    storages: Vec<(u32, bool)>,
    /// The end of the time: microseconds since 2000-01-01 UTC.
    until: i64,
}

impl Loading {
    /// What a block that has said this much has to say before it loads rows into storages; `None` if it is enough: they are among those, and
    /// more than half of the time is left.
    #[must_use]
    pub fn extended(known: Option<&Loading>, storages: &[(u32, bool)], now: i64) -> Option<Loading> {
        let mut all = known.map(|known| known.storages.clone()).unwrap_or_default();
        let others: Vec<_> = storages.iter().filter(|storage| !all.contains(storage)).copied().collect();
        if others.is_empty() && known.is_some_and(|known| known.until - now > LEASE / 2) {
            return None;
        }
        all.extend(others);
        Some(Loading { storages: all, until: now + LEASE })
    }

    /// The reliance of a plan on that it stands as it is.
    pub fn reliance(&self) -> Reliance {
        let version = Some(version(&Definition::Loading(self.clone()).encode()));
        Reliance { schema: String::new(), name: self.name(), version }
    }

    /// The plan that defines it, in the place of what its block has said before if there is something.
    pub fn begin(&self, before: Option<&Loading>) -> Plan {
        let none = || Reliance { schema: String::new(), name: self.name(), version: None };
        let reliance = before.map_or_else(none, Loading::reliance);
        let definition = Definition::Loading(self.clone());
        self.define(reliance, vec![change(self.name(), Some(&definition))])
    }

    /// The plan that removes it, and makes garbage of the rows in all storages but those of tables and indexes among some definitions.
    pub fn end(&self, definitions: &Catalog) -> Plan {
        let mut changes = vec![change(self.name(), None)];
        for (storage, replicated) in &self.storages {
            if !is_used(*storage, definitions) {
                let garbage = Definition::Garbage { storage: *storage, replicated: *replicated };
                changes.push(change(garbage_name(*storage), Some(&garbage)));
            }
        }
        self.define(self.reliance(), changes)
    }

    fn define(&self, reliance: Reliance, changes: Vec<DefinitionChange>) -> Plan {
        let action = Action::Define { changes, fill: Vec::new(), sequences: Vec::new() };
        Plan { reliances: vec![reliance], ..Plan::of(action) }
    }

    fn name(&self) -> String {
        format!("loading {}", self.storages.first().map_or(0, |(storage, _)| *storage))
    }
}

impl Catalog {
    /// Rows that are being loaded and whose time is over.
    pub fn overdue(&self, now: i64) -> impl Iterator<Item = &Loading> {
        self.iter().filter_map(move |(_, _, definition)| match definition {
            Definition::Loading(loading) if loading.until <= now => Some(loading),
            _ => None,
        })
    }
}

fn change(name: String, definition: Option<&Definition>) -> DefinitionChange {
    DefinitionChange { schema: String::new(), name, definition: definition.map(Definition::encode) }
}

fn is_used(storage: u32, definitions: &Catalog) -> bool {
    definitions.iter().any(|(_, _, definition)| match definition {
        Definition::Table(table) => {
            table.storage == storage || table.indexes.iter().any(|index| index.storage == storage)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_extended_when_half_of_it_is_over_or_for_more_storages() {
        let first = Loading::extended(None, &[(7, false), (8, false)], 0).unwrap();
        assert_eq!(first, Loading { storages: vec![(7, false), (8, false)], until: LEASE });
        assert_eq!(Loading::extended(Some(&first), &[(8, false)], LEASE / 2 - 1), None);
        let later = Loading::extended(Some(&first), &[(8, false)], LEASE / 2).unwrap();
        assert_eq!(later, Loading { until: LEASE / 2 + LEASE, ..first.clone() });
        let more = Loading::extended(Some(&first), &[(9, true), (8, false)], 1).unwrap();
        assert_eq!(more, Loading { storages: vec![(7, false), (8, false), (9, true)], until: 1 + LEASE });
        let mut catalog = Catalog::new();
        catalog.insert("", &first.name(), &Definition::Loading(first.clone()).encode()).unwrap();
        assert_eq!(catalog.overdue(LEASE - 1).next(), None);
        assert_eq!(catalog.overdue(LEASE).next(), Some(&first));
    }
}
